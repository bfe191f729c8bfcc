//! `.raw`: the elements and nothing else, little-endian and in C order. Fields of records keep
//! their stored byte order.

use super::{Array, Elements, FileFormat, Layout, Transform};
use crate::error::FormatError;

pub(super) fn layout(array: &Array) -> Result<Layout, FormatError> {
    if array.data_type.is_variable() {
        return Err(FileFormat::Raw.refused_type(array));
    }
    Layout::of_header(Vec::new(), 1, Elements::all(array, Transform::None)?)
}

/// The name of the `.raw` file of the array `name`, as it stands in a header of `format`. Neither
/// NRRD nor MetaImage can escape characters.
///
/// Readers take a name with `%` for a pattern of numbered files (in NRRD only if a `d` follows) and
/// a name that begins with `LIST` for a list of files. Readers of NRRD take `C:` for a drive.
///
/// # Errors
///
/// When readers would take the name for a pattern, or when it has a control character.
pub(super) fn data_file(name: &str, format: FileFormat) -> Result<String, FormatError> {
    let is_nrrd = format == FileFormat::Nhdr;
    let is_pattern = name
        .split_once('%')
        .is_some_and(|(_, rest)| !is_nrrd || rest.contains('d'));
    if is_pattern || name.contains(char::is_control) {
        return Err(format.refused("name", name.escape_debug().to_string()));
    }
    let is_special = name.starts_with("LIST")
        || name.starts_with(char::is_whitespace)
        || is_nrrd && name.chars().nth(1) == Some(':');
    let here = if is_special { "./" } else { "" };
    Ok(format!("{here}{name}.raw"))
}

#[cfg(test)]
mod tests {
    use super::super::testing::{array, check_slices, counting, whole};
    use super::*;
    use crate::dtype::DataType;

    #[test]
    fn elements_are_the_file() {
        for typestr in [r#"">f8""#, r#"[["a",">i2"],["b","|u1"]]"#, r#""bfloat16""#] {
            let array = array("t", typestr, &[3, 4]);
            let elements = counting(&array, 9);
            let layout = layout(&array).unwrap();
            assert_eq!(whole(&layout, &[(&array, &elements)]), elements);
            check_slices(&layout, &[(&array, &elements)]);
        }
        let mut strings = array("t", r#""|u1""#, &[3]);
        strings.data_type = DataType::objects("vlen-utf8");
        assert!(layout(&strings).is_err());
    }
}
