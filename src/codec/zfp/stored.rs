//! Conversions between the integers of blocks and the elements of an array.

use super::super::number::{Number, Value};
use crate::dtype::IntegerFormat;

/// How a number of a block is stored in the array.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Stored {
    /// As the same number.
    AsIs,
    /// As an unsigned number of the same width. An unsigned number above the greatest signed number becomes the greatest
    /// signed number in a block, as in zarrs.
    Unsigned(IntegerFormat),
    /// As an integer of at most 16 bits, which become the highest bits of an `int32` below its sign. The middle of an
    /// unsigned range is the number 0 of a block.
    Narrow(IntegerFormat),
}

impl Stored {
    /// The number of a block that an element stands for.
    pub(super) fn promoted(self, element: &[u8]) -> i64 {
        let read = |format| match Number::Integer(format).read(element) {
            Value::Int(number) => number,
            Value::Float(_) => 0,
        };
        let number = match self {
            Stored::AsIs => read(IntegerFormat::whole(element.len(), true)),
            Stored::Unsigned(format) => {
                let signed = IntegerFormat::whole(format.bytes, true);
                read(format).min(signed.range().1)
            }
            Stored::Narrow(format) => (read(format) - middle(format)) << (31 - format.bits),
        };
        i64::try_from(number).unwrap_or(i64::MAX)
    }

    /// The element that the number of a block stands for.
    pub(super) fn demoted(self, number: i64) -> i64 {
        match self {
            Stored::AsIs => number,
            Stored::Unsigned(_) => number.max(0),
            Stored::Narrow(format) => {
                let element = i128::from(number >> (31 - format.bits)) + middle(format);
                let (least, most) = format.range();
                i64::try_from(element.clamp(least, most)).unwrap_or(0)
            }
        }
    }
}

/// The element that stands for zero.
fn middle(format: IntegerFormat) -> i128 {
    if format.signed {
        0
    } else {
        1 << (format.bits - 1)
    }
}
