//! Grid mapping variables for arrays whose CRS is described in another way in the store, or in another group.
//!
//! ```text
//! store   height: {"proj:code": "EPSG:32632"}      file   height:grid_mapping = "spatial_ref"
//!                                                         spatial_ref:crs_wkt = "PROJCS[…"
//! ```
//!
//! The coordinates along y and x get the `standard_name` by which programs recognise them, if no attribute says yet what
//! they are. The value of a grid mapping variable means nothing, so it is an empty text. An array keeps the grid mapping
//! that its attributes name, if the file shows it.

use std::borrow::Cow;
use std::sync::Arc;

use super::dimensions::is_coordinate;
use crate::dtype::{DataType, FillValue};
use crate::grid::Dims;
use crate::metadata::{Attributes, JsonTree};
use crate::plain::geo::grid_mapping_attributes;
use crate::plain::{Array, ElementKind, Georeference, Group, Strings, StringsLimit};

/// The attribute that names the variable.
const GRID_MAPPING: &str = "grid_mapping";
/// The usual name of the variable.
const NAME: &str = "spatial_ref";
/// More different ones are not added to one group.
const MOST: usize = 64;

/// `group` with the variables that it lacks.
pub(in crate::plain) fn with_grid_mappings(group: &Group) -> Cow<'_, Group> {
    let mut above = Vec::new();
    match completed(group, &mut above) {
        Some(completed) => Cow::Owned(completed),
        None => Cow::Borrowed(group),
    }
}

/// The group with what it and the groups in it lack; `None` if that is nothing. `above` are the groups around it that
/// the file has.
fn completed<'a>(group: &'a Group, above: &mut Vec<&'a Group>) -> Option<Group> {
    above.push(group);
    let (mut added, mut named) = (Vec::<Array>::new(), Vec::new());
    for (place, array) in group.arrays.iter().enumerate() {
        let Some(geo) = array.geo.as_ref().filter(|_| !is_shown(array, above)) else {
            continue;
        };
        let Some(attributes) = grid_mapping_attributes(geo) else {
            continue;
        };
        let known = added.iter().find(|known| known.attributes == attributes);
        let name = match known {
            Some(known) => known.name.clone(),
            None if added.len() == MOST => continue,
            None => {
                let name = free_name(group, &added);
                added.push(variable(name.clone(), attributes));
                name
            }
        };
        named.push((place, name));
    }
    let groups = group.groups.iter().enumerate();
    let below = groups.filter_map(|(place, below)| Some((place, completed(below, above)?)));
    let below: Vec<(usize, Group)> = below.collect();
    above.pop();
    if added.is_empty() && below.is_empty() {
        return None;
    }
    let mut whole = group.clone();
    for (place, name) in named {
        let Some(array) = whole.arrays.get_mut(place) else {
            continue;
        };
        array.attributes = with_text(&array.attributes, GRID_MAPPING, &name);
        if let Some(geo) = array.geo.clone() {
            let called = geo
                .axes
                .map(|axis| array.dimension_names.get(axis).cloned().flatten());
            name_coordinates(&mut whole.arrays, &geo, called);
        }
    }
    whole.arrays.extend(added);
    whole.arrays.sort_by(|a, b| a.name.cmp(&b.name));
    for (place, completed) in below {
        if let Some(group) = whole.groups.get_mut(place) {
            *group = completed;
        }
    }
    Some(whole)
}

/// Gives the coordinates of `arrays` that are called `names` their standard names, if nothing says what they are.
fn name_coordinates(arrays: &mut [Array], geo: &Georeference, names: [Option<String>; 2]) {
    let standard = geo.standard_names().into_iter().flatten();
    for (name, standard) in names.into_iter().zip(standard) {
        let is_this =
            |array: &&mut Array| is_coordinate(array) && Some(&array.name) == name.as_ref();
        let says = |array: &Array| {
            let known = ["standard_name", "axis", "units"];
            known
                .iter()
                .any(|known| array.attributes.get(known).is_some())
        };
        if let Some(array) = arrays.iter_mut().find(is_this).filter(|array| !says(array)) {
            array.attributes = with_text(&array.attributes, "standard_name", standard);
        }
    }
}

/// Whether the file shows a variable that the array names as its grid mapping.
fn is_shown(array: &Array, groups: &[&Group]) -> bool {
    let text = array.attributes.text(GRID_MAPPING).unwrap_or_default();
    let mut names = text
        .split_whitespace()
        .map(|name| name.trim_end_matches(':'));
    names.any(|name| {
        let mut arrays = groups.iter().flat_map(|group| &group.arrays);
        arrays.any(|array| array.name == name)
    })
}

fn free_name(group: &Group, added: &[Array]) -> String {
    let is_taken = |name: &str| {
        let dimensions = |array: &Array| {
            let mut names = array.dimension_names.iter().flatten();
            names.any(|dimension| dimension == name)
        };
        let mut all = group.arrays.iter().chain(added);
        all.any(|array| array.name == name || dimensions(array))
            || group.groups.iter().any(|below| below.name == name)
    };
    let mut names = (2_u64..).map(|n| format!("{NAME}_{n}"));
    if is_taken(NAME) {
        names.find(|name| !is_taken(name)).unwrap_or_default()
    } else {
        NAME.to_owned()
    }
}

/// A variable without dimensions.
fn variable(name: String, attributes: Attributes) -> Array {
    let limit = StringsLimit {
        what: "",
        bytes: u64::MAX,
    };
    let text = Strings::filled(1, b"", ElementKind::Text, limit).ok();
    let data_type = DataType::objects("vlen-utf8");
    let fill_value = FillValue::undefined(&data_type);
    Array {
        name,
        attributes,
        strings: text.map(Arc::new),
        ..Array::of_elements(Dims::new(), data_type, fill_value)
    }
}

/// `attributes` with the text `text` as the attribute `name`.
fn with_text(attributes: &Attributes, name: &str, text: &str) -> Attributes {
    let others = attributes.iter().filter(|(other, _)| *other != name);
    let others = others.map(|(name, value)| (name.to_owned(), value.clone()));
    let own = (name.to_owned(), JsonTree::Text(text.to_owned()));
    others.chain(std::iter::once(own)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plain::geo::Crs;
    use crate::plain::testing::{array, attributes};

    fn map(name: &str, code: &str, json: &str) -> Array {
        let mut array = array(name, "\"<f4\"", &[2, 3]);
        array.attributes = attributes(json);
        array.dimension_names = ["y", "x"].map(|name| Some(name.to_owned())).to_vec();
        let code = crate::plain::geo::CrsCode::parse(code);
        array.geo = Some(Arc::new(Georeference {
            crs: Some(Crs {
                code,
                ..Crs::default()
            }),
            transform: None,
            axes: [0, 1],
        }));
        array
    }

    fn coordinate(name: &str, json: &str) -> Array {
        let mut array = array(name, "\"<f8\"", &[3]);
        array.dimension_names = vec![Some(name.to_owned())];
        array.attributes = attributes(json);
        array
    }

    fn of(arrays: Vec<Array>, groups: Vec<Group>) -> Group {
        Group {
            arrays,
            groups,
            ..Group::default()
        }
    }

    /// Name and grid mapping of each array.
    fn listed(group: &Group) -> Vec<(&str, Option<&str>)> {
        let arrays = group.arrays.iter();
        let named = arrays.map(|array| (array.name.as_str(), array.attributes.text(GRID_MAPPING)));
        named.collect()
    }

    #[test]
    fn arrays_of_one_crs_share_a_variable() {
        let all = vec![
            map(
                "a",
                "EPSG:32632",
                r#"{"units": "m", "grid_mapping": "gone"}"#,
            ),
            map("b", "EPSG:4326", "{}"),
            map("c", "EPSG:32632", "{}"),
            map("d", "ESRI:54009", "{}"),
            array("spatial_ref", "\"<i4\"", &[]),
            coordinate("x", "{}"),
            coordinate("y", r#"{"units": "m"}"#),
        ];
        let group = of(all, Vec::new());
        let shown = with_grid_mappings(&group);
        assert_eq!(
            listed(&shown),
            [
                ("a", Some("spatial_ref_2")),
                ("b", Some("spatial_ref_3")),
                ("c", Some("spatial_ref_2")),
                ("d", None),
                ("spatial_ref", None),
                ("spatial_ref_2", None),
                ("spatial_ref_3", None),
                ("x", None),
                ("y", None),
            ]
        );
        let standard = |place: usize| shown.arrays[place].attributes.text("standard_name");
        assert_eq!(
            (standard(7), standard(8)),
            (Some("projection_x_coordinate"), None)
        );
        assert_eq!(shown.arrays[0].attributes.text("units"), Some("m"));
        let variable = &shown.arrays[5];
        assert_eq!(
            (variable.rank(), variable.strings.as_ref().unwrap().len()),
            (0, 1)
        );
        assert!(
            variable
                .attributes
                .text("crs_wkt")
                .unwrap()
                .contains("32632")
        );
    }

    #[test]
    fn a_variable_that_the_file_shows_is_enough() {
        let named = r#"{"grid_mapping": "crs: x y"}"#;
        let below = of(vec![map("b", "EPSG:4326", named)], Vec::new());
        let mut group = of(vec![map("a", "EPSG:4326", named)], vec![below]);
        let shown = with_grid_mappings(&group).into_owned();
        assert_eq!(listed(&shown)[0], ("a", Some("spatial_ref")));
        assert_eq!(listed(&shown.groups[0])[0], ("b", Some("spatial_ref")));
        group.arrays.push(array("crs", "\"<i4\"", &[]));
        assert!(matches!(with_grid_mappings(&group), Cow::Borrowed(_)));
    }
}
