//! The places where a store may say how an array lies on the earth, the most specific place first.
//!
//! ```text
//!                    CRS                                      transform
//! grid mapping       crs_wkt, spatial_ref                     GeoTransform, if the coordinates agree
//! the array itself   _CRS                                     gdal:geotransform
//! (GDAL, GeoZarr,    proj:code, proj:wkt2, proj:projjson      spatial:transform
//! EOPF)              proj:epsg                                proj:transform
//! groups above       proj:… of the group, or of a pyramid     spatial:transform of the level, or of the group
//! EOPF's product     stac_discovery, other_metadata
//! coordinates                                                 x and y, if they are regular
//! ```
//!
//! A description that is wrong is not replaced by one that is less specific: the array has none, and the reason is
//! kept. No CRS is guessed, not even from longitudes and latitudes.

use std::sync::Arc;

use super::affine::{self, Affine};
use super::crs::{Crs, CrsCode};
use super::{GeoFacts, Georeference, axes, grid_mapping};
use crate::error::FormatError;
use crate::metadata::{Attributes, JsonTree};
use crate::plain::Ancestor;

/// The facts about an array and about the documents around it.
#[derive(Debug, Clone, Copy)]
pub struct GeoSources<'a> {
    /// Length of the array in each dimension.
    pub shape: &'a [u64],
    /// The name of each dimension.
    pub dimension_names: &'a [Option<String>],
    /// The attributes of the array.
    pub attributes: &'a Attributes,
    /// The groups around the array, the nearest first.
    pub ancestors: &'a [Ancestor<'a>],
    /// The one-dimensional arrays in the same group that are named after their dimension: names and attributes.
    pub coordinates: &'a [(&'a str, &'a Attributes)],
    /// The attributes of the grid mapping variable that [`grid_mapping::name`] names, if it exists.
    pub grid_mapping: Option<&'a Attributes>,
}

type Found<T> = Result<Option<T>, FormatError>;

/// A transform, the axes that it is for, and whether coordinates may correct it.
struct FoundTransform {
    transform: Affine,
    axes: Option<[usize; 2]>,
    is_hint: bool,
}

impl GeoSources<'_> {
    /// All facts in the documents.
    pub fn find(&self) -> GeoFacts {
        let mut facts = GeoFacts::default();
        if self.shape.len() < 2 {
            return facts;
        }
        let crs = self.crs().unwrap_or_else(|error| {
            facts.problems.push(error);
            None
        });
        let transform = self.transform().unwrap_or_else(|error| {
            facts.problems.push(error);
            None
        });
        let of_names = axes::of_names(self.dimension_names, self.coordinates);
        if let Some([y, x]) = of_names
            && transform.as_ref().is_none_or(|found| found.is_hint)
        {
            let name = |axis: usize| {
                let name = self.dimension_names.get(axis)?.as_deref()?;
                let known = self.coordinates.iter().any(|(of, _)| *of == name);
                known.then(|| name.to_owned())
            };
            facts.coordinates = name(y).zip(name(x)).map(|(y, x)| [y, x]);
        }
        let last_two = [self.shape.len() - 2, self.shape.len() - 1];
        let axes = transform.as_ref().and_then(|found| found.axes);
        facts.axes = axes.or(of_names).unwrap_or(last_two);
        let transform = transform.map(|found| found.transform);
        if crs.is_some() || transform.is_some() {
            facts.known = Some(Arc::new(Georeference {
                crs,
                transform,
                axes: facts.axes,
            }));
        }
        facts
    }

    fn crs(&self) -> Found<Crs> {
        if let Some(attributes) = self.grid_mapping
            && let Some(crs) = grid_mapping::crs(attributes)?
        {
            return Ok(Some(crs));
        }
        if let Some(crs) = crs_of_gdal(self.attributes)? {
            return Ok(Some(crs));
        }
        if let Some(crs) = crs_of_proj(self.attributes)? {
            return Ok(Some(crs));
        }
        for (distance, group) in self.ancestors.iter().enumerate() {
            if (distance == 0 || level_of(group).is_some())
                && let Some(crs) = crs_of_proj(group.attributes)?
            {
                return Ok(Some(crs));
            }
        }
        self.crs_of_product()
    }

    /// The CRS of a product of EOPF, which its arrays with axes y and x have in common.
    fn crs_of_product(&self) -> Found<Crs> {
        let has = |wanted: &str| {
            let mut names = self.dimension_names.iter().flatten();
            names.any(|name| name == wanted)
        };
        if !(has("y") && has("x")) {
            return Ok(None);
        }
        for group in self.ancestors {
            let object = |name| group.attributes.get(name).and_then(JsonTree::as_object);
            let code = object("other_metadata").and_then(|other| other.get("horizontal_CRS_code"));
            if let Some(code) = code.filter(|code| **code != JsonTree::Null) {
                return of_code("`horizontal_CRS_code`", code).map(Some);
            }
            let properties = object("stac_discovery").and_then(|item| item.get("properties"));
            if let Some(properties) = properties.and_then(JsonTree::as_object)
                && let Some(crs) = crs_of_proj(properties)?
            {
                return Ok(Some(crs));
            }
        }
        Ok(None)
    }

    fn transform(&self) -> Found<FoundTransform> {
        let value = self.grid_mapping.and_then(|of| of.get("GeoTransform"));
        if let Some(value) = value {
            let transform = affine::in_gdal_order("`GeoTransform`", value)?;
            return Ok(Some(FoundTransform {
                transform,
                axes: None,
                is_hint: true,
            }));
        }
        let own = |name: &str| some(self.attributes, name);
        if let Some(value) = own("gdal:geotransform") {
            let transform = affine::in_gdal_order("`gdal:geotransform`", value)?;
            return Ok(Some(FoundTransform::of(transform)));
        }
        if let Some(found) = self.spatial()? {
            return Ok(Some(found));
        }
        let Some(value) = own("proj:transform") else {
            return Ok(None);
        };
        let transform = affine::in_matrix_order("`proj:transform`", value)?;
        self.check_shape(own("proj:shape"), None)?;
        Ok(Some(FoundTransform::of(transform)))
    }

    /// The transform of the convention `spatial:`, which the array, its level of a pyramid or its group may have. A
    /// level does not have the transform of its group, which is that of the first level.
    fn spatial(&self) -> Found<FoundTransform> {
        let mut places = vec![self.attributes];
        places.extend(self.ancestors.iter().filter_map(level_of));
        let parent = self.ancestors.first().map(|group| group.attributes);
        let is_pyramid = |group: &Attributes| {
            let multiscales = group.get("multiscales").and_then(JsonTree::as_object);
            multiscales.is_some_and(|multiscales| multiscales.get("layout").is_some())
        };
        places.extend(parent.filter(|group| !is_pyramid(group)));
        let found = places
            .iter()
            .find_map(|place| Some((*place, some(place, "spatial:transform")?)));
        let Some((place, value)) = found else {
            return Ok(None);
        };
        // Members that are the same for all levels are in the group of the pyramid.
        let pyramids = self
            .ancestors
            .iter()
            .filter(|group| level_of(group).is_some());
        places.extend(pyramids.map(|group| group.attributes));
        let any = |name: &str| places.iter().find_map(|place| some(place, name));
        let axes = match any("spatial:dimensions") {
            None => None,
            Some(names) => match self.axes_called(names)? {
                // The convention is for other arrays of the group.
                None => return Ok(None),
                axes => axes,
            },
        };
        match any("spatial:transform_type").map(JsonTree::as_text) {
            None | Some(Some("affine")) => {}
            Some(_) => {
                let problem = "only transforms of the type `affine` are known";
                return Err(FormatError::document("`spatial:transform_type`", problem));
            }
        }
        self.check_shape(some(place, "spatial:shape"), axes)?;
        let transform = affine::in_matrix_order("`spatial:transform`", value)?;
        let transform = match any("spatial:registration").map(JsonTree::as_text) {
            None | Some(Some("pixel")) => transform,
            // The transform is that of the centres of pixels.
            Some(Some("node")) => affine::moved(transform, -0.5, -0.5),
            Some(_) => {
                let problem = "it is neither `pixel` nor `node`";
                return Err(FormatError::document("`spatial:registration`", problem));
            }
        };
        Ok(Some(FoundTransform {
            transform,
            axes,
            is_hint: false,
        }))
    }

    /// The axes y and x that have these names; `None` if the array has no dimensions of these names.
    fn axes_called(&self, names: &JsonTree) -> Found<[usize; 2]> {
        let texts: Option<Vec<&str>> = names
            .as_list()
            .and_then(|names| names.iter().take(3).map(JsonTree::as_text).collect());
        let Some(&[y, x]) = texts.as_deref() else {
            let problem = "it is not the two names of the axes y and x";
            return Err(FormatError::document("`spatial:dimensions`", problem));
        };
        let place = |wanted: &str| {
            let mut names = self.dimension_names.iter();
            names.position(|name| name.as_deref() == Some(wanted))
        };
        let axes = place(y).zip(place(x)).filter(|(y, x)| y != x);
        Ok(axes.map(|(y, x)| [y, x]))
    }

    /// Checks that a transform is for an array of this size: `shape` is the lengths of y and x, if the store has
    /// them.
    fn check_shape(
        &self,
        shape: Option<&JsonTree>,
        axes: Option<[usize; 2]>,
    ) -> Result<(), FormatError> {
        let Some(shape) = shape else { return Ok(()) };
        let lengths = match axes.or_else(|| axes::of_names(self.dimension_names, self.coordinates))
        {
            Some([y, x]) => [self.shape.get(y), self.shape.get(x)],
            None => [self.shape.iter().rev().nth(1), self.shape.last()],
        };
        let expected = lengths.map(|length| length.map(|&length| i128::from(length)));
        let found = shape.as_list().unwrap_or_default();
        let is_same = |(found, expected): (&JsonTree, &Option<i128>)| match found {
            JsonTree::Integer(found) => Some(*found) == *expected,
            _ => false,
        };
        if found.len() == 2 && found.iter().zip(&expected).all(is_same) {
            return Ok(());
        }
        let problem = format!("the transform is for another size: {shape}");
        Err(FormatError::document("shape", problem))
    }
}

impl FoundTransform {
    fn of(transform: Affine) -> FoundTransform {
        FoundTransform {
            transform,
            axes: None,
            is_hint: false,
        }
    }
}

/// The attribute `name`, unless it is null.
fn some<'a>(attributes: &'a Attributes, name: &str) -> Option<&'a JsonTree> {
    attributes
        .get(name)
        .filter(|value| **value != JsonTree::Null)
}

/// The level of `GeoZarr`'s pyramid in `group` that the array is in. A level is an array, or a group of arrays.
fn level_of<'a>(group: &Ancestor<'a>) -> Option<&'a Attributes> {
    let multiscales = group.attributes.get("multiscales")?.as_object()?;
    let mut levels = multiscales.get("layout")?.as_list()?.iter();
    levels.find_map(|level| {
        let level = level.as_object()?;
        let asset = level.text("asset")?.trim_matches('/');
        let rest = group.path.strip_prefix(asset)?;
        let is_child = rest
            .strip_prefix('/')
            .is_some_and(|name| !name.contains('/'));
        (rest.is_empty() || is_child).then_some(level)
    })
}

/// GDAL's attribute `_CRS`. GDAL itself takes the first description that it can read.
fn crs_of_gdal(attributes: &Attributes) -> Found<Crs> {
    let Some(value) = some(attributes, "_CRS") else {
        return Ok(None);
    };
    let Some(object) = value.as_object() else {
        return Err(FormatError::document("`_CRS`", "it is no object"));
    };
    merged(object, "`_CRS`", ["url", "wkt", "projjson"])
}

/// The members of the convention `proj:`, and `proj:epsg` of earlier versions of STAC, which EOPF uses.
fn crs_of_proj(attributes: &Attributes) -> Found<Crs> {
    let found = merged(
        attributes,
        "`proj:`",
        ["proj:code", "proj:wkt2", "proj:projjson"],
    )?;
    let Some(code) = some(attributes, "proj:epsg") else {
        return Ok(found);
    };
    let number = match code {
        JsonTree::Integer(number) => CrsCode::new("EPSG", &number.to_string()),
        _ => None,
    };
    let problem = || FormatError::document("`proj:epsg`", "it is no code of a CRS");
    let number = number.ok_or_else(problem)?;
    let mut crs = found.unwrap_or_default();
    crs.code = crs.code.or(Some(number));
    Ok(Some(crs))
}

/// The CRS of which `object` has up to three descriptions: a code, a text and PROJJSON.
fn merged(object: &Attributes, place: &str, [code, wkt, projjson]: [&str; 3]) -> Found<Crs> {
    let mut crs = Crs::default();
    if let Some(value) = some(object, code) {
        crs.code = of_code(place, value)?.code;
    }
    if let Some(value) = some(object, wkt) {
        let Some(text) = value.as_text() else {
            let problem = format!("`{wkt}` is no text");
            return Err(FormatError::document(place, problem));
        };
        crs.wkt = Crs::of_text(place, text)?.wkt;
    }
    if let Some(value) = some(object, projjson) {
        crs.projjson = Crs::of_projjson(place, value)?.projjson;
    }
    Ok((crs != Crs::default()).then_some(crs))
}

/// The CRS with a code: `EPSG:4326`, or an address of it.
fn of_code(place: &str, value: &JsonTree) -> Result<Crs, FormatError> {
    let code = value.as_text().and_then(CrsCode::parse);
    let problem = || FormatError::document(place, "it is no code of a CRS like EPSG:4326");
    Ok(Crs {
        code: Some(code.ok_or_else(problem)?),
        ..Crs::default()
    })
}

#[cfg(test)]
mod tests;
