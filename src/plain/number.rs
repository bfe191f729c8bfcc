//! The data types that other formats have names for, as one closed list.

use super::{Array, FileFormat, Transform};
use crate::dtype::{DataType, Element, IntegerFormat};
use crate::error::FormatError;

/// A number that is nothing but IEEE 754 or two's complement, or is made of such.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Number {
    /// One byte, 0 or not.
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
    /// Dates and durations: a count like `Int64`, whose least value means "not a time".
    Time,
}

impl Number {
    /// What `data_type` is; `None` of what is no number, and of numbers that only Zarr has.
    pub(super) fn of(data_type: &DataType) -> Option<Number> {
        Number::of_element(&data_type.element)
    }

    /// What `element` is.
    pub(super) fn of_element(element: &Element) -> Option<Number> {
        let is =
            |format: &IntegerFormat| *format == IntegerFormat::whole(format.bytes, format.signed);
        Some(match element {
            Element::Bool => Number::Bool,
            Element::Integer(format) if is(format) => match (format.bytes, format.signed) {
                (1, true) => Number::Int8,
                (1, false) => Number::UInt8,
                (2, true) => Number::Int16,
                (2, false) => Number::UInt16,
                (4, true) => Number::Int32,
                (4, false) => Number::UInt32,
                (8, true) => Number::Int64,
                (8, false) => Number::UInt64,
                _ => return None,
            },
            Element::Float(format) => match format.name() {
                "float16" => Number::Float16,
                "float32" => Number::Float32,
                "float64" => Number::Float64,
                _ => return None,
            },
            Element::Complex(format) => match format.name() {
                "float32" => Number::Complex64,
                "float64" => Number::Complex128,
                _ => return None,
            },
            Element::Time(_) => Number::Time,
            _ => return None,
        })
    }

    /// What the elements of `array` are, and what they are to `format`, by its table `spell`.
    ///
    /// # Errors
    ///
    /// When the table has no such number.
    pub(super) fn spelled<T>(
        array: &Array,
        format: FileFormat,
        spell: impl Fn(Number) -> Option<T>,
    ) -> Result<(Number, T), FormatError> {
        Number::of(&array.data_type)
            .and_then(|number| Some((number, spell(number)?)))
            .ok_or_else(|| format.refused_type(array))
    }

    /// What makes little-endian numbers of decoded elements.
    pub(super) fn transform(self) -> Transform {
        match self {
            Number::Bool => Transform::Bool,
            _ => Transform::None,
        }
    }

    /// Whether it is two numbers, one behind the other.
    pub(super) fn is_complex(self) -> bool {
        matches!(self, Number::Complex64 | Number::Complex128)
    }
}

/// What times are counted in, as CF says it: `25 s since 1970-01-01`; `None` of what is no time,
/// and of times without a unit.
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
            ("|b1", Some(Number::Bool)),
            ("<u8", Some(Number::UInt64)),
            ("<f2", Some(Number::Float16)),
            ("<c8", Some(Number::Complex64)),
            ("<m8[s]", Some(Number::Time)),
            ("bfloat16", None),
            ("float8_e5m2", None),
            ("int4", None),
            ("complex_float16", None),
            ("|S2", None),
            ("|V2", None),
        ] {
            let array = array("t", &format!("\"{typestr}\""), &[1]);
            assert_eq!(Number::of(&array.data_type), number, "{typestr}");
        }
    }
}
