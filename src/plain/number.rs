//! The numeric data types that other formats have names for, as one closed list.

use super::{Array, FileFormat, Transform};
use crate::dtype::{DataType, Element, IntegerFormat};
use crate::error::FormatError;

/// A number in IEEE 754 or two's complement, or a pair of such numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scalar {
    /// One byte: 0 is false, anything else is true.
    Bool,
    Int8,
    UInt8,
    Int16,
    UInt16,
    Int32,
    UInt32,
    Int64,
    UInt64,
    Float16,
    Float32,
    Float64,
    /// Two `Float32`.
    Complex64,
    /// Two `Float64`.
    Complex128,
    /// A date or a duration: a count stored like `Int64`, whose least value means "not a time".
    Time,
}

impl Scalar {
    /// The scalar type that `data_type` is; `None` for types that are no numbers, and for numbers
    /// that only Zarr has.
    pub(super) fn of(data_type: &DataType) -> Option<Scalar> {
        Scalar::of_element(&data_type.element)
    }

    /// The scalar type that `element` is; `None` as for [`Scalar::of`].
    pub(super) fn of_element(element: &Element) -> Option<Scalar> {
        let is =
            |format: &IntegerFormat| *format == IntegerFormat::whole(format.bytes, format.signed);
        Some(match element {
            Element::Bool => Scalar::Bool,
            Element::Integer(format) if is(format) => match (format.bytes, format.signed) {
                (1, true) => Scalar::Int8,
                (1, false) => Scalar::UInt8,
                (2, true) => Scalar::Int16,
                (2, false) => Scalar::UInt16,
                (4, true) => Scalar::Int32,
                (4, false) => Scalar::UInt32,
                (8, true) => Scalar::Int64,
                (8, false) => Scalar::UInt64,
                _ => return None,
            },
            Element::Float(format) => match format.name() {
                "float16" => Scalar::Float16,
                "float32" => Scalar::Float32,
                "float64" => Scalar::Float64,
                _ => return None,
            },
            Element::Complex(format) => match format.name() {
                "float32" => Scalar::Complex64,
                "float64" => Scalar::Complex128,
                _ => return None,
            },
            Element::Time(_) => Scalar::Time,
            _ => return None,
        })
    }

    /// The scalar type of `array` and its name (or code) in `format`, according to `spell`.
    ///
    /// # Errors
    ///
    /// When `spell` has no name for the type.
    pub(super) fn spelled<T>(
        array: &Array,
        format: FileFormat,
        spell: impl Fn(Scalar) -> Option<T>,
    ) -> Result<(Scalar, T), FormatError> {
        Scalar::of(&array.data_type)
            .and_then(|number| Some((number, spell(number)?)))
            .ok_or_else(|| format.refused_type(array))
    }

    /// The transform from decoded elements to little-endian numbers.
    pub(super) fn transform(self) -> Transform {
        match self {
            Scalar::Bool => Transform::Bool,
            _ => Transform::None,
        }
    }

    /// Whether it is a pair of numbers, one after the other.
    pub(super) fn is_complex(self) -> bool {
        matches!(self, Scalar::Complex64 | Scalar::Complex128)
    }
}

/// The unit of a time, spelled as in CF: `25 s since 1970-01-01`. `None` for types that are no
/// times, and for times without a unit.
pub(super) fn time_units(data_type: &DataType) -> Option<String> {
    let Element::Time(time) = &data_type.element else {
        return None;
    };
    let count = match time.scale {
        1 => String::new(),
        scale => format!("{scale} "),
    };
    let since = if time.is_duration {
        ""
    } else {
        " since 1970-01-01"
    };
    (time.unit != "generic").then(|| format!("{count}{}{since}", time.unit))
}

#[cfg(test)]
mod tests {
    use super::super::testing::array;
    use super::*;

    #[test]
    fn only_plain_numbers_are_known() {
        for (typestr, number) in [
            ("|b1", Some(Scalar::Bool)),
            ("<u8", Some(Scalar::UInt64)),
            ("<f2", Some(Scalar::Float16)),
            ("<c8", Some(Scalar::Complex64)),
            ("<m8[s]", Some(Scalar::Time)),
            ("bfloat16", None),
            ("float8_e5m2", None),
            ("int4", None),
            ("complex_float16", None),
            ("|S2", None),
            ("|V2", None),
        ] {
            let array = array("t", &format!("\"{typestr}\""), &[1]);
            assert_eq!(Scalar::of(&array.data_type), number, "{typestr}");
        }
    }
}
