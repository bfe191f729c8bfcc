//! Assigns offsets to variables.
//!
//! ```text
//! header 300 | time, 64 bytes | lat, 48 | air, 9000 bytes     | area, 10  | records
//! 0          4096             4160      8192           17192  20480       20496
//! ```
//!
//! The header shares no page with elements: it must stay readable when a chunk cannot be decoded.

use crate::error::FormatError;
use crate::plain::file_too_large;

/// A variable of this size or more shares no page with anything else.
const PAGE: u64 = 4096;

/// The size of a variable.
#[derive(Debug, Clone, Copy)]
pub(super) struct VariableSize {
    /// Its size, or that of one of its records, in bytes without padding.
    pub(super) slab: u64,
    pub(super) is_record: bool,
}

/// The offsets of the variables of a file.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct VariableOffsets {
    /// The offset of each variable, or of its first record.
    pub(super) begins: Vec<u64>,
    /// Bytes from the start of a record to the start of the next.
    pub(super) record_len: u64,
    /// The length of the file.
    pub(super) end: u64,
}

impl VariableOffsets {
    /// The offsets of variables after a header of `header_len` bytes.
    pub(super) fn of(
        header_len: u64,
        slots: &[VariableSize],
        n_records: u64,
    ) -> Result<VariableOffsets, FormatError> {
        offsets(header_len, slots, n_records).ok_or_else(file_too_large)
    }
}

fn offsets(header_len: u64, slots: &[VariableSize], n_records: u64) -> Option<VariableOffsets> {
    let mut begins = vec![0; slots.len()];
    let n_record_variables = slots.iter().filter(|slot| slot.is_record).count();
    let (mut end, mut record_len) = (header_len, 0_u64);
    // The header counts as a large variable.
    let mut alone = true;
    for (slot, begin) in slots.iter().zip(&mut begins) {
        if slot.is_record {
            *begin = record_len;
            // A single record variable is not padded: the specification keeps this old rule.
            let len = match n_record_variables {
                1 => slot.slab,
                _ => padded(slot.slab)?,
            };
            record_len = record_len.checked_add(len)?;
        } else {
            *begin = next(end, slot.slab, &mut alone)?;
            end = begin.checked_add(padded(slot.slab)?)?;
        }
    }
    if n_record_variables > 0 {
        let all = record_len.checked_mul(n_records)?;
        let first = next(end, all, &mut alone)?;
        for (slot, begin) in slots.iter().zip(&mut begins) {
            if slot.is_record {
                *begin = first.checked_add(*begin)?;
            }
        }
        end = first.checked_add(all)?;
    }
    Some(VariableOffsets {
        begins,
        record_len,
        end,
    })
}

/// The offset of the next `len` bytes, at `at` or after it. `alone` says whether the bytes before
/// `at` share no page; it is updated for these bytes.
fn next(at: u64, len: u64, alone: &mut bool) -> Option<u64> {
    let large = len >= PAGE;
    let to = if large || *alone { PAGE } else { 8 };
    *alone = large;
    at.checked_next_multiple_of(to)
}

/// `bytes` rounded up to a multiple of 4.
pub(super) fn padded(bytes: u64) -> Option<u64> {
    bytes.checked_next_multiple_of(4)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fixed(slab: u64) -> VariableSize {
        VariableSize {
            slab,
            is_record: false,
        }
    }

    fn record(slab: u64) -> VariableSize {
        VariableSize {
            slab,
            is_record: true,
        }
    }

    #[test]
    fn small_ones_are_packed_and_large_ones_alone() {
        let slots = [fixed(64), fixed(45), fixed(9000), fixed(10), fixed(4095)];
        let offsets = VariableOffsets::of(300, &slots, 0).unwrap();
        assert_eq!(offsets.begins, [4096, 4160, 8192, 20480, 20496]);
        assert_eq!(offsets.end, 20496 + 4096);
        let empty = VariableOffsets::of(300, &[], 0).unwrap();
        assert_eq!((empty.begins, empty.end), (vec![], 300));
    }

    #[test]
    fn records_are_padded_unless_there_is_one_variable() {
        let one = VariableOffsets::of(4096, &[fixed(1), record(21)], 7).unwrap();
        assert_eq!(one.begins, [4096, 4104]);
        assert_eq!((one.record_len, one.end), (21, 4104 + 7 * 21));
        let two = VariableOffsets::of(4096, &[record(21), fixed(1), record(2)], 300).unwrap();
        assert_eq!(two.begins, [8192, 4096, 8192 + 24]);
        assert_eq!((two.record_len, two.end), (28, 8192 + 300 * 28));
        assert!(VariableOffsets::of(4096, &[record(1 << 62), record(1 << 62)], 3).is_err());
        assert!(VariableOffsets::of(4096, &[fixed(u64::MAX)], 0).is_err());
    }
}
