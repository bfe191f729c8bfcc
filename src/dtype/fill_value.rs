//! Fill values: the element that absent chunks are filled with.
//!
//! A fill value is kept as decoded bytes, so that filling is copying. The size of an element comes
//! from the document and may be absurd (`|S99999999999`), so the zeros at the end of an element
//! larger than [`WHOLE_ELEMENT_BYTES`] are not kept.

use super::{DataType, Element};

/// Elements up to this size are kept in full, in bytes.
const WHOLE_ELEMENT_BYTES: u64 = 64 * 1024;

/// One element that absent chunks are filled with, as decoded bytes: little-endian, structured
/// types in the order that they are stored in.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct FillValue {
    bytes: Vec<u8>,
    item_size: u64,
    agreement: Agreement,
}

/// Whether Zarr libraries agree on the fill value of a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Agreement {
    /// The document has no fill value.
    Undefined,
    /// Some libraries read another value than other libraries do.
    Disputed,
    Undisputed,
}

impl FillValue {
    /// A fill value of the decoded bytes of one whole element.
    pub fn new(bytes: Vec<u8>, defined: bool) -> FillValue {
        let item_size = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        FillValue::padded(bytes, item_size, defined)
    }

    /// The undefined fill value (`null`) of `data_type`: the value that Zarr libraries use instead,
    /// which is "not a time" (`NaT`) for times and zeros for all other types, records of times
    /// included.
    pub fn undefined(data_type: &DataType) -> FillValue {
        let bytes = match data_type.element {
            Element::Time(_) => i64::MIN.to_le_bytes().to_vec(),
            _ => Vec::new(),
        };
        FillValue::padded(bytes, data_type.item_size, false)
    }

    /// An element of `data_type` that begins with `bytes`.
    pub(crate) fn of_type(data_type: &DataType, bytes: Vec<u8>) -> FillValue {
        if data_type.is_variable() {
            return FillValue::new(bytes, true);
        }
        FillValue::padded(bytes, data_type.item_size, true)
    }

    /// An element of `item_size` bytes that begins with `bytes`; the rest of it is zeros.
    pub(super) fn padded(mut bytes: Vec<u8>, item_size: u64, defined: bool) -> FillValue {
        if item_size <= WHOLE_ELEMENT_BYTES {
            bytes.resize(usize::try_from(item_size).unwrap_or(0), 0);
        } else {
            let used = bytes.iter().rposition(|&byte| byte != 0);
            bytes.truncate(used.map_or(0, |last| last + 1));
        }
        FillValue {
            bytes,
            item_size,
            agreement: if defined {
                Agreement::Undisputed
            } else {
                Agreement::Undefined
            },
        }
    }

    /// The same fill value. If it `is_disputed`, some Zarr libraries read another value in its place.
    pub(crate) fn disputed_if(mut self, is_disputed: bool) -> FillValue {
        if is_disputed && self.is_defined() {
            self.agreement = Agreement::Disputed;
        }
        self
    }

    /// The decoded bytes. The zeros at the end of an element larger than 64 KiB are left out.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The size of the whole element in bytes.
    pub fn item_size(&self) -> u64 {
        self.item_size
    }

    /// Whether the document has a fill value; without one (`null`) it is [`FillValue::undefined`].
    pub fn is_defined(&self) -> bool {
        self.agreement != Agreement::Undefined
    }

    /// Whether the document has a fill value that all Zarr libraries read alike. Only then may a chunk
    /// that is full of it be left out of a store.
    pub fn is_undisputed(&self) -> bool {
        self.agreement == Agreement::Undisputed
    }

    /// Fills `out` with copies of the element. `out` begins `offset_bytes` into a run of elements.
    pub fn fill(&self, offset_bytes: u64, out: &mut [u8]) {
        if self.bytes.iter().all(|&byte| byte == 0) {
            out.fill(0);
            return;
        }
        let Some(start) = offset_bytes.checked_rem(self.item_size) else {
            return;
        };
        // The first period is written byte by byte, from wherever in the element it begins.
        let period = usize::try_from(self.item_size).unwrap_or(usize::MAX);
        let phase = usize::try_from(start).unwrap_or(usize::MAX);
        let first = period.min(out.len());
        let (head, _) = out.split_at_mut(first);
        for (byte, at) in head.iter_mut().zip((phase..period).chain(0..phase)) {
            *byte = self.bytes.get(at).copied().unwrap_or(0);
        }
        // The rest is copied from the filled part, which doubles with every copy.
        let mut filled = first;
        while filled < out.len() {
            let n = filled.min(out.len() - filled);
            out.copy_within(..n, filled);
            filled += n;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fills_from_any_byte_of_an_element() {
        for element in [&[7][..], &[1, 2], &[1, 2, 3], &[0, 0, 9, 0, 1]] {
            let fill = FillValue::new(element.to_vec(), true);
            for offset in 0..11_u64 {
                for len in 0..40 {
                    let mut out = vec![0xee; len];
                    fill.fill(offset, &mut out);
                    let expected: Vec<u8> = element
                        .iter()
                        .cycle()
                        .skip(usize::try_from(offset).unwrap() % element.len())
                        .take(len)
                        .copied()
                        .collect();
                    assert_eq!(out, expected, "{element:?} from {offset}");
                }
            }
        }
    }

    #[test]
    fn huge_elements_hold_no_memory() {
        let fill = FillValue::padded(b"ab\0\0".to_vec(), 99_999_999_999, true);
        assert_eq!(
            (fill.bytes(), fill.item_size()),
            (&b"ab"[..], 99_999_999_999)
        );
        let mut out = [0xee; 4];
        fill.fill(99_999_999_998, &mut out);
        assert_eq!(out, [0, b'a', b'b', 0]);
        assert_eq!(FillValue::padded(Vec::new(), u64::MAX, false).bytes(), b"");
        assert_eq!(FillValue::padded(Vec::new(), 3, false).bytes(), [0, 0, 0]);
        assert!(!FillValue::padded(Vec::new(), 3, false).is_defined());
    }
}
