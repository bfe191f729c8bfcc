//! Grid mappings: variables whose attributes describe a CRS.
//!
//! ```text
//! air:grid_mapping = "spatial_ref"           the variable `spatial_ref` of the group, or of a group above
//! air:grid_mapping = "crs: x y wgs: lat lon" one for each pair of coordinates
//! ```
//!
//! CF conventions 1.11, section 5.6 "Horizontal Coordinate Reference Systems, Grid Mappings, and Projections"; the name
//! `spatial_ref` and the attributes `spatial_ref` and `GeoTransform` are GDAL's and rioxarray's.

use std::sync::Arc;

use super::crs::Crs;
use crate::error::FormatError;
use crate::metadata::Attributes;

/// The name that rioxarray gives to the variable, and looks for where no attribute names one.
pub(super) const USUAL_NAME: &str = "spatial_ref";

/// The name of the grid mapping variable of an array with these attributes, in a group with `of_group`.
pub fn name<'a>(
    attributes: &'a Attributes,
    dimension_names: &[Option<String>],
    of_group: Option<&Attributes>,
) -> Option<&'a str> {
    if dimension_names.len() < 2 {
        return None;
    }
    if let Some(text) = attributes.text("grid_mapping") {
        return chosen(text, dimension_names);
    }
    // xarray lists a variable that it takes for a coordinate of all arrays in the attributes of the group.
    let lists = |attributes: &Attributes| {
        let names = attributes.text("coordinates").unwrap_or_default();
        names.split_whitespace().any(|name| name == USUAL_NAME)
    };
    (lists(attributes) || of_group.is_some_and(lists)).then_some(USUAL_NAME)
}

/// The mapping of the coordinates along the array's own dimensions.
fn chosen<'a>(text: &'a str, dimension_names: &[Option<String>]) -> Option<&'a str> {
    if !text.contains(':') {
        return Some(text.trim()).filter(|name| !name.is_empty());
    }
    let mut mappings: Vec<(&str, bool)> = Vec::new();
    for word in text.split_whitespace() {
        if let Some(name) = word.strip_suffix(':') {
            mappings.push((name, true));
        } else if let Some((_, is_along)) = mappings.last_mut() {
            let mut names = dimension_names.iter().flatten();
            *is_along &= names.any(|name| name == word);
        }
    }
    let along = mappings.into_iter().find(|(_, is_along)| *is_along);
    along.map(|(name, _)| name).filter(|name| !name.is_empty())
}

/// The CRS that the attributes of a grid mapping variable describe; `None` if they describe none.
///
/// # Errors
/// When the description is wrong.
pub(super) fn crs(attributes: &Attributes) -> Result<Option<Crs>, FormatError> {
    let own = Some(Arc::new(attributes.clone()));
    for name in ["crs_wkt", "spatial_ref"] {
        let Some(value) = attributes.get(name) else {
            continue;
        };
        let place = format!("`{name}`");
        let Some(text) = value.as_text() else {
            return Err(FormatError::document(place, "it is no text"));
        };
        if text.trim().is_empty() {
            continue;
        }
        return Ok(Some(Crs {
            grid_mapping: own,
            ..Crs::of_text(&place, text)?
        }));
    }
    let is_named = attributes.text("grid_mapping_name").is_some();
    Ok(is_named.then(|| Crs {
        grid_mapping: own,
        ..Crs::default()
    }))
}

#[cfg(test)]
mod tests {
    use super::super::super::testing::attributes;
    use super::*;

    #[test]
    fn the_variable_is_named_in_several_ways() {
        let names = ["t", "y", "x"].map(|name| Some(name.to_owned()));
        let of = |json: &str, group: &str| {
            let own = attributes(json);
            let group = attributes(group);
            name(&own, &names, Some(&group)).map(str::to_owned)
        };
        for (json, group, expected) in [
            (r#"{"grid_mapping": "crs"}"#, "{}", Some("crs")),
            (
                r#"{"grid_mapping": "wgs: lat lon crs: x y"}"#,
                "{}",
                Some("crs"),
            ),
            (r#"{"grid_mapping": "wgs: lat lon"}"#, "{}", None),
            (r#"{"grid_mapping": ""}"#, "{}", None),
            (r#"{"grid_mapping": ":"}"#, "{}", None),
            (r#"{"grid_mapping": 7}"#, "{}", None),
            (
                r#"{"coordinates": "a spatial_ref"}"#,
                "{}",
                Some("spatial_ref"),
            ),
            (
                "{}",
                r#"{"coordinates": "spatial_ref"}"#,
                Some("spatial_ref"),
            ),
            ("{}", r#"{"coordinates": "a"}"#, None),
        ] {
            assert_eq!(of(json, group).as_deref(), expected, "{json} {group}");
        }
        assert_eq!(
            name(&attributes(r#"{"grid_mapping": "crs"}"#), &names[..1], None),
            None
        );
    }

    #[test]
    fn any_of_the_texts_will_do() {
        let text = r#"{"spatial_ref": "GEOGCS[\"a\"]", "crs_wkt": " "}"#;
        let found = crs(&attributes(text)).unwrap().unwrap();
        assert_eq!(found.wkt.as_deref(), Some("GEOGCS[\"a\"]"));
        let named = crs(&attributes(r#"{"grid_mapping_name": "a"}"#)).unwrap();
        assert!(named.unwrap().grid_mapping.is_some());
        assert_eq!(crs(&attributes(r#"{"units": "1"}"#)), Ok(None));
        for wrong in [r#"{"crs_wkt": 7}"#, r#"{"spatial_ref": "nonsense"}"#] {
            assert!(crs(&attributes(wrong)).is_err(), "{wrong}");
        }
    }
}
