//! The type of one element, in enough detail to read and write a fill value.
//!
//! A [`DataType`](super::DataType) has the sizes that decoding needs. The data types of all
//! versions of documents are parsed into an [`Element`] first, which also decides how a fill value
//! is spelled.

use std::sync::Arc;

use super::float::FloatFormat;
use super::{ByteOrder, ItemLayout};
use crate::error::FormatError;

/// How deeply structured types may nest.
pub(crate) const MAX_NESTING: usize = 32;

/// The type of one element.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Element {
    /// One byte, 0 or 1.
    Bool,
    /// A whole number.
    Integer(IntegerFormat),
    /// A floating point number.
    Float(FloatFormat),
    /// Real part, then imaginary part.
    Complex(FloatFormat),
    /// A date or a duration: a count in eight bytes, whose least value means "not a time".
    Time(TimeFormat),
    /// Bytes, padded with NUL.
    Bytes {
        /// The number of bytes with the padding.
        len: u64,
    },
    /// UTF-32 code units, padded with NUL.
    Text {
        /// The number of code units with the padding.
        units: u64,
    },
    /// Opaque bytes.
    Raw {
        /// The number of bytes.
        len: u64,
    },
    /// Fields, one after the other without a gap. They are in an `Arc` because there may be very
    /// many.
    Record(Arc<[Field]>),
    /// An element of no fixed number of bytes.
    Variable(Variable),
}

/// The kind of an element without a fixed size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Variable {
    /// A string: v3 `string`, v2 `|O` with `vlen-utf8`.
    Text,
    /// Bytes: v3 `bytes`, v2 `|O` with `vlen-bytes`.
    Bytes,
    /// An object that only its codec can read: v2 `|O` with any other object codec.
    Object,
}

/// The unit in which dates or durations are counted.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct TimeFormat {
    /// Whether it is a duration (`m8`), not a date (`M8`).
    pub(crate) is_duration: bool,
    /// `Y M W D h m s ms us ns ps fs as`, or `generic`.
    pub(crate) unit: String,
    /// The number of units that a count of one stands for: 1 or more.
    pub(crate) scale: u32,
}

impl TimeFormat {
    /// Whether it is a date whose unit is not known. `NumPy` knows one such date alone, "not a time".
    pub(crate) fn is_unitless_date(&self) -> bool {
        !self.is_duration && self.unit == "generic"
    }
}

/// A field of a structured type.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Field {
    /// The name of the field; empty for the padding of aligned `NumPy` records.
    pub(crate) name: String,
    /// Its type.
    pub(crate) element: Element,
    /// Shape of a sub-array; empty for one element.
    pub(crate) shape: Vec<u64>,
    /// Byte order of the stored field; meaningless where the field is a record itself.
    pub(crate) order: ByteOrder,
}

impl Field {
    /// The number of elements in the field: more than one in a sub-array.
    pub(crate) fn count(&self) -> Option<u64> {
        self.shape
            .iter()
            .try_fold(1_u64, |count, &length| count.checked_mul(length))
    }

    /// The size of the field in bytes; `None` when it does not fit 64 bits.
    pub(crate) fn size(&self) -> Result<Option<u64>, FormatError> {
        let size = self.element.size()?;
        Ok(self.count().and_then(|count| count.checked_mul(size)))
    }
}

/// An integer of `bits` significant bits that is stored in `bytes` bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct IntegerFormat {
    /// Bytes of one number.
    pub(crate) bytes: usize,
    /// Number of significant bits, which are the low ones.
    pub(crate) bits: u32,
    /// Whether it may be negative.
    pub(crate) signed: bool,
}

impl IntegerFormat {
    /// An integer whose bits are all significant. `bytes` is 1, 2, 4 or 8.
    pub(crate) fn whole(bytes: usize, signed: bool) -> IntegerFormat {
        IntegerFormat {
            bytes,
            bits: u32::try_from(8 * bytes).unwrap_or(64),
            signed,
        }
    }

    /// The least and the greatest value.
    pub(crate) fn range(self) -> (i128, i128) {
        if self.signed {
            let past = 1_i128 << (self.bits - 1);
            (-past, past - 1)
        } else {
            (0, (1_i128 << self.bits) - 1)
        }
    }

    /// Whether `value` can be stored.
    pub(crate) fn holds(self, value: i128) -> bool {
        let (least, most) = self.range();
        (least..=most).contains(&value)
    }
}

impl Element {
    /// Bytes of one element; 0 when they vary.
    pub(crate) fn size(&self) -> Result<u64, FormatError> {
        let size = match self {
            Element::Bool => Some(1),
            Element::Integer(format) => u64::try_from(format.bytes).ok(),
            Element::Float(format) => u64::try_from(format.bytes).ok(),
            Element::Complex(format) => u64::try_from(2 * format.bytes).ok(),
            Element::Time(_) => Some(8),
            Element::Variable(_) => Some(0),
            Element::Bytes { len } | Element::Raw { len } => Some(*len),
            Element::Text { units } => units.checked_mul(4),
            Element::Record(fields) => fields.iter().try_fold(Some(0_u64), |total, field| {
                let sizes = total.zip(field.size()?);
                Ok::<_, FormatError>(sizes.and_then(|(total, size)| total.checked_add(size)))
            })?,
        };
        size.ok_or_else(|| {
            let found = "more than 64 bits can say";
            FormatError::too_large("the size of one element", found, u64::MAX)
        })
    }

    /// The number of bytes that are reversed together when the byte order changes; 1 when none are.
    pub(crate) fn unit(&self) -> usize {
        match self {
            Element::Bool
            | Element::Bytes { .. }
            | Element::Raw { .. }
            | Element::Record(_)
            | Element::Variable(_) => 1,
            Element::Integer(format) => format.bytes,
            Element::Float(format) | Element::Complex(format) => format.bytes,
            Element::Time(_) => 8,
            Element::Text { .. } => 4,
        }
    }

    /// The structure of the bytes.
    pub(crate) fn layout(&self) -> ItemLayout {
        match self {
            Element::Record(_) => ItemLayout::Structured {
                multi_byte: !self.field_orders().is_empty(),
            },
            Element::Variable(_) => ItemLayout::Variable,
            number => ItemLayout::Numbers {
                unit: number.unit(),
            },
        }
    }

    /// The different byte orders of the numbers of several bytes in a record: none, one or two.
    pub(crate) fn field_orders(&self) -> Vec<ByteOrder> {
        let Element::Record(fields) = self else {
            return Vec::new();
        };
        let mut orders = Vec::new();
        for field in fields.iter() {
            if field.element.unit() > 1 {
                orders.push(field.order);
            }
            orders.extend(field.element.field_orders());
        }
        orders.sort_by_key(|&order| order == ByteOrder::Big);
        orders.dedup();
        orders
    }

    /// Sets the byte order of all numbers of several bytes in a record.
    pub(crate) fn set_field_order(&mut self, order: ByteOrder) {
        if let Element::Record(fields) = self {
            for field in Arc::make_mut(fields) {
                if field.element.unit() > 1 {
                    field.order = order;
                }
                field.element.set_field_order(order);
            }
        }
    }

    /// The byte order that all numbers of several bytes in a record share.
    pub(crate) fn common_order(&self) -> Option<ByteOrder> {
        match self.field_orders().as_slice() {
            [order] => Some(*order),
            _ => None,
        }
    }

    /// The number of fields of a record, nested records included.
    pub(crate) fn count_fields(&self) -> u64 {
        match self {
            Element::Record(fields) => fields
                .iter()
                .map(|field| 1 + field.element.count_fields())
                .sum(),
            _ => 0,
        }
    }

    /// Converts `bytes`, one little-endian element or several, to `order`.
    pub(crate) fn reorder(&self, order: ByteOrder, bytes: &mut [u8]) -> Result<(), FormatError> {
        if order == ByteOrder::Little {
            return Ok(());
        }
        let Element::Record(fields) = self else {
            for number in bytes.chunks_exact_mut(self.unit()) {
                number.reverse();
            }
            return Ok(());
        };
        let size = usize::try_from(self.size()?).unwrap_or(usize::MAX).max(1);
        for record in bytes.chunks_exact_mut(size) {
            let mut rest = record;
            for field in fields.iter() {
                let len = field.size()?.unwrap_or(u64::MAX);
                let len = usize::try_from(len).unwrap_or(usize::MAX);
                let Some((own, after)) = rest.split_at_mut_checked(len) else {
                    break;
                };
                field.element.reorder(order, own)?;
                rest = after;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::float::{FLOAT32, FLOAT64};
    use super::*;

    fn field(element: Element, count: u64) -> Field {
        Field {
            name: "f".to_owned(),
            element,
            shape: vec![count],
            order: ByteOrder::Little,
        }
    }

    #[test]
    fn records_are_packed_and_reordered_leaf_by_leaf() {
        let inner = Element::Record(Arc::new([
            field(Element::Bool, 1),
            field(Element::Text { units: 1 }, 1),
        ]));
        let record = Element::Record(Arc::new([
            field(Element::Complex(FLOAT32), 1),
            field(inner, 2),
        ]));
        assert_eq!(record.size(), Ok(18));
        assert_eq!(record.layout(), ItemLayout::Structured { multi_byte: true });
        let mut bytes: Vec<u8> = (0..18).collect();
        record.reorder(ByteOrder::Big, &mut bytes).unwrap();
        assert_eq!(
            bytes,
            [3, 2, 1, 0, 7, 6, 5, 4, 8, 12, 11, 10, 9, 13, 17, 16, 15, 14]
        );
    }

    #[test]
    fn sizes_never_wrap() {
        let huge = field(Element::Raw { len: u64::MAX }, 2);
        assert!(Element::Record(Arc::new([huge])).size().is_err());
        assert!(Element::Text { units: 1 << 62 }.size().is_err());
        assert_eq!(Element::Float(FLOAT64).size(), Ok(8));
    }
}
