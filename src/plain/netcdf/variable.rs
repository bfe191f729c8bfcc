//! Arrays as variables: types, and the dimension that text and complex numbers have on top.

use super::{Cdf, MOST_DIMENSIONS};
use crate::dtype::Element;
use crate::error::FormatError;
use crate::grid::product;
use crate::plain::cf::time;
use crate::plain::number::Number;
use crate::plain::{Array, FileFormat, Transform};

/// The widest text element, in bytes: one is transformed as a whole.
const MOST_TEXT_BYTES: u64 = 64 << 10;

/// The types of the format, with their codes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Type {
    Byte = 1,
    Char = 2,
    Short = 3,
    Int = 4,
    Float = 5,
    Double = 6,
    // In CDF-5 only:
    UByte = 7,
    UShort = 8,
    UInt = 9,
    Int64 = 10,
    UInt64 = 11,
}

impl Type {
    /// The code in `cdf`, and whether the same bits mean an unsigned number there by the
    /// attribute `_Unsigned`.
    pub(super) fn code(self, cdf: Cdf) -> (u8, bool) {
        match (cdf, self) {
            (Cdf::Two, Type::UByte) => (Type::Byte as u8, true),
            (Cdf::Two, Type::UShort) => (Type::Short as u8, true),
            (Cdf::Two, Type::UInt) => (Type::Int as u8, true),
            (_, other) => (other as u8, false),
        }
    }

    /// Bytes of one value.
    pub(super) fn size(self) -> usize {
        match self {
            Type::Byte | Type::Char | Type::UByte => 1,
            Type::Short | Type::UShort => 2,
            Type::Int | Type::UInt | Type::Float => 4,
            Type::Double | Type::Int64 | Type::UInt64 => 8,
        }
    }
}

/// What makes a dimension: its name as it is stored, and its length.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Key<'a> {
    pub(super) name: Option<&'a str>,
    pub(super) len: u64,
}

/// An array as a variable.
#[derive(Debug, Clone)]
pub(super) struct Variable<'a> {
    pub(super) array: &'a Array,
    pub(super) kind: Type,
    pub(super) transform: Transform,
    /// The dimension behind those of the array, that each element has.
    inner: Option<(String, u64)>,
}

impl<'a> Variable<'a> {
    /// # Errors
    ///
    /// When no version of the format can hold the array.
    pub(super) fn of(array: &'a Array) -> Result<Variable<'a>, FormatError> {
        let element = &array.data_type.element;
        let size = array.data_type.item_size;
        let (kind, inner) = match element {
            Element::Bytes { len: 1.. } => (Type::Char, Some(text(size))),
            Element::Text { units: 1.. } if size <= MOST_TEXT_BYTES => {
                (Type::Char, Some(text(size)))
            }
            // A count that no word of CF stands for would be read as another time.
            Element::Time(format) if time::units(format).is_none() => {
                return Err(FileFormat::Nc.refused_type(array));
            }
            _ => {
                let (number, kind) = Number::spelled(array, FileFormat::Nc, type_of)?;
                let parts = number.is_complex().then(|| ("ri".to_owned(), 2));
                (kind, parts)
            }
        };
        let transform = match (element, array.data_type.swap_unit()) {
            (Element::Bool, _) => Transform::Bool,
            (Element::Text { units }, _) => Transform::Utf8 {
                units: usize::try_from(*units).unwrap_or(usize::MAX),
            },
            (_, 1) => Transform::None,
            (_, unit) => Transform::Swap { unit },
        };
        let variable = Variable {
            array,
            kind,
            transform,
            inner,
        };
        array.n_bytes()?;
        let long = |key: &Key<'_>| i64::try_from(key.len).is_err();
        if variable.keys().any(|key| long(&key)) || variable.keys().count() > MOST_DIMENSIONS {
            return Err(variable.refused_shape());
        }
        Ok(variable)
    }

    /// What makes its dimensions, in their order.
    pub(super) fn keys(&self) -> impl Iterator<Item = Key<'_>> {
        let outer = self.outer_keys();
        let inner = self.inner.as_ref().map(|(name, len)| Key {
            name: Some(name.as_str()),
            len: *len,
        });
        outer.chain(inner)
    }

    /// Those of the array itself.
    fn outer_keys(&self) -> impl Iterator<Item = Key<'a>> + use<'a> {
        let array = self.array;
        (0..array.rank()).filter_map(|axis| {
            Some(Key {
                name: array.dimension_names.get(axis)?.as_deref(),
                len: *array.shape.get(axis)?,
            })
        })
    }

    /// What makes its first dimension.
    pub(super) fn first_key(&self) -> Option<Key<'a>> {
        self.outer_keys().next()
    }

    /// Whether its first dimension is `record`, that of the records.
    pub(super) fn is_along(&self, record: Option<Key<'_>>) -> bool {
        record.is_some() && self.first_key() == record
    }

    /// Bytes of all of it, or of one record of it, without padding.
    pub(super) fn slab(&self, is_record: bool) -> Result<u64, FormatError> {
        if !is_record {
            return self.array.n_bytes();
        }
        let lengths = self.array.shape.get(1..).unwrap_or_default();
        product(lengths)
            .and_then(|count| count.checked_mul(self.array.data_type.item_size))
            .filter(|&bytes| i64::try_from(bytes).is_ok())
            .ok_or_else(|| self.refused_shape())
    }

    /// Its shape cannot be held.
    pub(super) fn refused_shape(&self) -> FormatError {
        FileFormat::Nc.refused_shape(self.array)
    }
}

/// The type of a number, or of the parts of a complex one.
fn type_of(number: Number) -> Option<Type> {
    Some(match number {
        Number::Bool | Number::UInt8 => Type::UByte,
        Number::Int8 => Type::Byte,
        Number::Int16 => Type::Short,
        Number::UInt16 => Type::UShort,
        Number::Int32 => Type::Int,
        Number::UInt32 => Type::UInt,
        Number::Int64 | Number::Time => Type::Int64,
        Number::UInt64 => Type::UInt64,
        Number::Float32 | Number::Complex64 => Type::Float,
        Number::Float64 | Number::Complex128 => Type::Double,
        Number::Float16 => return None,
    })
}

fn text(bytes: u64) -> (String, u64) {
    (format!("string{bytes}"), bytes)
}
