//! Arrays as variables: the type, and the additional dimension of text and complex numbers.

use super::cdf::{Cdf, MOST_DIMENSIONS};
use crate::dtype::Element;
use crate::error::FormatError;
use crate::grid::product;
use crate::plain::cf::{COMPLEX, MOST_TEXT, text_dimension, time};
use crate::plain::number::Scalar;
use crate::plain::{Array, FileFormat, Strings, Transform};

/// The types of the format; the numbers are their codes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum NcType {
    Byte = 1,
    Char = 2,
    Short = 3,
    Int = 4,
    Float = 5,
    Double = 6,
    // The following types exist in CDF-5 only.
    UByte = 7,
    UShort = 8,
    UInt = 9,
    Int64 = 10,
    UInt64 = 11,
}

impl NcType {
    /// The code in `cdf`, and whether a signed type with the attribute `_Unsigned` stands for an
    /// unsigned one.
    pub(super) fn code(self, cdf: Cdf) -> (u8, bool) {
        match (cdf, self) {
            (Cdf::Two, NcType::UByte) => (NcType::Byte as u8, true),
            (Cdf::Two, NcType::UShort) => (NcType::Short as u8, true),
            (Cdf::Two, NcType::UInt) => (NcType::Int as u8, true),
            (_, other) => (other as u8, false),
        }
    }

    /// Size of one value in bytes.
    pub(super) fn size(self) -> usize {
        match self {
            NcType::Byte | NcType::Char | NcType::UByte => 1,
            NcType::Short | NcType::UShort => 2,
            NcType::Int | NcType::UInt | NcType::Float => 4,
            NcType::Double | NcType::Int64 | NcType::UInt64 => 8,
        }
    }
}

/// The key of a dimension: variables share a dimension if its stored name and its length are the
/// same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct DimKey<'a> {
    pub(super) name: Option<&'a str>,
    pub(super) len: u64,
}

/// An array as a variable.
#[derive(Debug, Clone)]
pub(super) struct NcVariable<'a> {
    pub(super) array: &'a Array,
    pub(super) kind: NcType,
    pub(super) transform: Transform,
    /// The size of one element in bytes.
    item_size: u64,
    /// The additional last dimension, which each element of the array has.
    inner: Option<(String, u64)>,
}

impl<'a> NcVariable<'a> {
    /// # Errors
    ///
    /// When no version of the format can hold the array.
    pub(super) fn of(array: &'a Array) -> Result<NcVariable<'a>, FormatError> {
        let element = &array.data_type.element;
        let size = match &array.strings {
            Some(strings) => width(strings)?,
            None => array.data_type.item_size,
        };
        let (kind, inner) = match element {
            Element::Variable(_) if array.strings.is_some() => (NcType::Char, Some(text(size))),
            // A byte is a char by itself. Such arrays are text whose last dimension is that of the array.
            Element::Bytes { len: 1 } => (NcType::Char, None),
            Element::Bytes { len: 2.. } => (NcType::Char, Some(text(size))),
            Element::Text { units: 1.. } if size <= MOST_TEXT => (NcType::Char, Some(text(size))),
            // If CF has no name for the unit, readers would take the count for another time.
            Element::Time(format) if time::units(format).is_none() => {
                return Err(FileFormat::Nc.refused_type(array));
            }
            _ => {
                let (number, kind) = Scalar::spelled(array, FileFormat::Nc, type_of)?;
                let parts = number.is_complex().then(|| (COMPLEX.to_owned(), 2));
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
        let variable = NcVariable {
            array,
            kind,
            transform,
            item_size: size,
            inner,
        };
        variable.slab(false)?;
        let long = |key: &DimKey<'_>| i64::try_from(key.len).is_err();
        if variable.keys().any(|key| long(&key)) || variable.keys().count() > MOST_DIMENSIONS {
            return Err(variable.refused_shape());
        }
        Ok(variable)
    }

    /// The keys of its dimensions, in order.
    pub(super) fn keys(&self) -> impl Iterator<Item = DimKey<'_>> {
        let outer = self.outer_keys();
        let inner = self.inner.as_ref().map(|(name, len)| DimKey {
            name: Some(name.as_str()),
            len: *len,
        });
        outer.chain(inner)
    }

    /// The keys of the array's own dimensions.
    fn outer_keys(&self) -> impl Iterator<Item = DimKey<'a>> + use<'a> {
        let axes = self.array.dimension_names.iter().zip(&self.array.shape);
        axes.map(|(name, &len)| DimKey {
            name: name.as_deref(),
            len,
        })
    }

    /// The key of its first dimension.
    pub(super) fn first_key(&self) -> Option<DimKey<'a>> {
        self.outer_keys().next()
    }

    /// Whether its first dimension is the record dimension `record`.
    pub(super) fn is_along(&self, record: Option<DimKey<'_>>) -> bool {
        record.is_some() && self.first_key() == record
    }

    /// Whether it has strings of any length along the record dimension `record`. Their bytes would
    /// be spread over the records, which the layout of bytes in memory cannot do.
    pub(super) fn is_text_along(&self, record: Option<DimKey<'_>>) -> bool {
        let strings = self.array.strings.as_ref();
        self.is_along(record) && strings.is_some_and(|strings| !strings.is_empty())
    }

    /// Its size, or that of one of its records, in bytes without padding.
    pub(super) fn slab(&self, is_record: bool) -> Result<u64, FormatError> {
        let lengths = self.array.shape.get(usize::from(is_record)..);
        product(lengths.unwrap_or_default())
            .and_then(|count| count.checked_mul(self.item_size))
            .filter(|&bytes| i64::try_from(bytes).is_ok())
            .ok_or_else(|| self.refused_shape())
    }

    /// The number of bytes of strings of any length, which are kept in memory; 0 for other elements.
    pub(super) fn text_bytes(&self) -> u64 {
        let strings = self.array.strings.as_ref();
        strings.map_or(0, |strings| {
            self.item_size.saturating_mul(strings.len() as u64)
        })
    }

    /// The bytes of strings of any length, each padded with NUL; `None` for other elements.
    pub(super) fn text(&self) -> Option<Vec<u8>> {
        let strings = self.array.strings.as_ref()?;
        let width = usize::try_from(self.item_size).ok()?;
        let mut bytes = Vec::with_capacity(width * strings.len());
        for string in strings.iter() {
            let end = bytes.len() + width;
            bytes.extend_from_slice(string);
            bytes.resize(end, 0);
        }
        Some(bytes)
    }

    /// An error: the format cannot hold its shape.
    pub(super) fn refused_shape(&self) -> FormatError {
        FileFormat::Nc.refused_shape(self.array)
    }
}

/// The type of a number, or of either part of a complex number.
fn type_of(number: Scalar) -> Option<NcType> {
    Some(match number {
        Scalar::Bool | Scalar::UInt8 => NcType::UByte,
        Scalar::Int8 => NcType::Byte,
        Scalar::Int16 => NcType::Short,
        Scalar::UInt16 => NcType::UShort,
        Scalar::Int32 => NcType::Int,
        Scalar::UInt32 => NcType::UInt,
        Scalar::Int64 | Scalar::Time => NcType::Int64,
        Scalar::UInt64 => NcType::UInt64,
        Scalar::Float32 | Scalar::Complex64 => NcType::Float,
        Scalar::Float64 | Scalar::Complex128 => NcType::Double,
        Scalar::Float16 => return None,
    })
}

/// The length of the dimension of `strings`.
fn width(strings: &Strings) -> Result<u64, FormatError> {
    if strings.have_nul() {
        // A reader would take it for the end of the string.
        return Err(FileFormat::Nc.refused("strings", "a NUL"));
    }
    // No dimension may have the length 0.
    Ok(strings.longest().max(1))
}

fn text(bytes: u64) -> (String, u64) {
    (text_dimension(bytes), bytes)
}
