//! `.raw`: the elements alone, little-endian, in C order; records as they are stored.

use super::{Array, Elements, FileFormat, Layout, Transform};
use crate::error::FormatError;

pub(super) fn layout(array: &Array) -> Result<Layout, FormatError> {
    if array.data_type.is_variable() {
        let name = array.data_type.name.as_str();
        let title = FileFormat::Raw.title();
        return Err(FormatError::inexpressible("data type", name, title));
    }
    let mut builder = Layout::builder();
    builder.elements(Elements::all(array, Transform::None)?);
    builder.finish()
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
