//! The names of the dimensions of an array.
//!
//! ```text
//! v3             zarr.json   {"dimension_names": ["time", "x"]}
//! xarray, v2     .zattrs     {"_ARRAY_DIMENSIONS": ["time", "x"]}
//! NCZarr, v2     .zarray     {"_NCZARR_ARRAY": {"dimrefs": ["/time", "/x"]}}
//! NCZarr, v2     .zattrs     {"_nczarr_array": {"dimension_references": ["/time", "/x"]}}
//! ```
//!
//! A reference of `NCZarr` is the path of a dimension, whose last segment is the name. Either object of `NCZarr` may
//! be in either document, in the spelling of its release.
//!
//! Sources: xarray 2026.9, `backends/zarr.py`: `_get_zarr_dims_and_attrs`; the stores that `NetCDF`-C 4.9 and 4.10
//! write.

use super::ArrayMetadata;
use super::json::{self, Json, Members};

/// The attribute with the names of a v2 array's dimensions, by the convention of xarray.
pub(super) const ARRAY_DIMENSIONS: &str = "_ARRAY_DIMENSIONS";

/// The places of the references to dimensions in `NCZarr`, the older place first.
const REFERENCES: [[&str; 2]; 2] = [
    ["_NCZARR_ARRAY", "dimrefs"],
    ["_nczarr_array", "dimension_references"],
];

/// The names of the dimensions of `array`, some of which may have none; `None` if there are no names. `texts` reads the
/// list at a path in the attributes; `None` if there is no list of texts.
pub fn dimension_names(
    array: &ArrayMetadata,
    texts: impl Fn(&[&str]) -> Option<Vec<String>>,
) -> Option<Vec<Option<String>>> {
    if array.dimension_names.is_some() {
        return array.dimension_names.clone();
    }
    let rank = array.shape.len();
    let fits = |names: &Vec<String>| names.len() == rank;
    let stored = || array.dimension_references.clone().filter(fits);
    let of_path = |path| references(&texts(path)?).filter(fits);
    let names = (texts(&[ARRAY_DIMENSIONS]).filter(fits))
        .or_else(stored)
        .or_else(|| REFERENCES.iter().find_map(|path| of_path(path)));
    names.map(|names| names.into_iter().map(Some).collect())
}

/// The names that `NCZarr` gives in the `.zarray` with the members `root`.
pub(super) fn of_zarray(root: &Members<'_>) -> Option<Vec<String>> {
    REFERENCES
        .iter()
        .find_map(|path| references(&texts(root, path)?))
}

/// The list of texts at `path` in the object `root`.
pub(super) fn texts(root: &Members<'_>, path: &[&str]) -> Option<Vec<String>> {
    let (first, rest) = path.split_first()?;
    let mut value = root.get(first)?;
    for name in rest {
        value = json::object(value, "an object").ok()?.get(name)?;
    }
    let Ok(Json::Array(items)) = Json::of(value) else {
        return None;
    };
    let texts = items.into_iter().map(|item| json::string(item, "a name"));
    texts.collect::<Result<_, _>>().ok()
}

/// The names in references of `NCZarr`; `None` if one of them is empty.
fn references(paths: &[String]) -> Option<Vec<String>> {
    let names = paths.iter().map(|path| {
        let name = path.rsplit('/').next().filter(|name| !name.is_empty());
        name.map(str::to_owned)
    });
    names.collect()
}

#[cfg(test)]
mod tests {
    use crate::metadata::{v2, write};

    fn names_of(zarray: &str, zattrs: Option<&str>) -> Option<Vec<Option<String>>> {
        let document = format!(
            r#"{{"zarr_format": 2, "shape": [2, 3], "chunks": [2, 3], "dtype": "<i2", "fill_value": 0,
            "order": "C", "compressor": null, "filters": null{zarray}}}"#
        );
        let array = v2::parse_array(document.as_bytes()).unwrap();
        write::dimension_names(&array, zattrs.map(str::as_bytes)).unwrap()
    }

    #[test]
    fn names_of_nczarr_count_where_xarray_has_none() {
        let old = r#", "_NCZARR_ARRAY": {"dimrefs": ["/lat", "/g/lon"], "storage": "chunked"}"#;
        let new = r#"{"_nczarr_array": {"dimension_references": ["/y", "/g/x"]}}"#;
        let xarray = r#"{"_ARRAY_DIMENSIONS": ["a", "b"]}"#;
        let attribute = r#"{"_NCZARR_ARRAY": {"dimrefs": ["p", "q"]}}"#;
        for (zarray, zattrs, expected) in [
            (old, None, Some(["lat", "lon"])),
            (old, Some("{}"), Some(["lat", "lon"])),
            (old, Some(xarray), Some(["a", "b"])),
            (old, Some(new), Some(["lat", "lon"])),
            ("", Some(new), Some(["y", "x"])),
            ("", Some(attribute), Some(["p", "q"])),
            ("", None, None),
        ] {
            let expected = expected.map(|names| names.map(|name| Some(name.to_owned())).to_vec());
            assert_eq!(names_of(zarray, zattrs), expected, "{zarray} {zattrs:?}");
        }
    }

    #[test]
    fn other_references_give_no_names() {
        for object in [
            r#"{"dimrefs": ["/lat"]}"#,
            r#"{"dimrefs": ["/lat", 1]}"#,
            r#"{"dimrefs": ["/lat", "/"]}"#,
            r#"{"dimrefs": "/lat"}"#,
            r#"["dimrefs"]"#,
            "{}",
            "null",
        ] {
            let member = format!(r#", "_NCZARR_ARRAY": {object}"#);
            assert_eq!(names_of(&member, None), None, "{object}");
        }
    }
}
