//! The `bytes` codec: elements in C order, each number in little or big endian.
//!
//! Spec: <https://zarr-specs.readthedocs.io/en/latest/v3/codecs/bytes/index.html>.
//! Names: v3 `bytes` (alias `endian`); in v2 the first character of the `dtype`.
//!
//! ```json
//! { "name": "bytes", "configuration": { "endian": "little" } }
//! ```

use crate::dtype::{ByteOrder, DataType};

/// Elements in C order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct BytesCodec {
    /// Byte order; `None` for single bytes.
    pub endian: Option<ByteOrder>,
}

impl BytesCodec {
    /// The bytes of a number whose order is reversed by decoding; 1 when none is.
    pub(super) fn swap_unit(self, dtype: &DataType) -> usize {
        match self.endian {
            Some(ByteOrder::Big) => dtype.swap_unit(),
            Some(ByteOrder::Little) | None => 1,
        }
    }
}

/// Copies `encoded` to `out`, of the same length, with the bytes of each unit reversed.
pub(super) fn copy_swapped(unit: usize, encoded: &[u8], out: &mut [u8]) {
    fn each<const N: usize>(reversed: impl Fn([u8; N]) -> [u8; N], encoded: &[u8], out: &mut [u8]) {
        let (from, _) = encoded.as_chunks::<N>();
        let (to, _) = out.as_chunks_mut::<N>();
        for (to, from) in to.iter_mut().zip(from) {
            *to = reversed(*from);
        }
    }
    debug_assert_eq!(encoded.len(), out.len(), "callers compare the lengths");
    match unit {
        0 | 1 => out.copy_from_slice(encoded),
        2 => each(reversed_2, encoded, out),
        4 => each(reversed_4, encoded, out),
        8 => each(reversed_8, encoded, out),
        _ => {
            out.copy_from_slice(encoded);
            swap(unit, out);
        }
    }
}

/// Copies `from` to the beginning of `to`, or as much of it as fits.
#[inline]
pub(super) fn copy_start(from: &[u8], to: &mut [u8]) {
    for (to, from) in to.iter_mut().zip(from) {
        *to = *from;
    }
}

/// Reverses the bytes of each unit in place.
pub(crate) fn swap(unit: usize, bytes: &mut [u8]) {
    fn each<const N: usize>(reversed: impl Fn([u8; N]) -> [u8; N], bytes: &mut [u8]) {
        for number in bytes.as_chunks_mut::<N>().0 {
            *number = reversed(*number);
        }
    }
    match unit {
        0 | 1 => {}
        2 => each(reversed_2, bytes),
        4 => each(reversed_4, bytes),
        8 => each(reversed_8, bytes),
        _ => bytes.chunks_exact_mut(unit).for_each(<[u8]>::reverse),
    }
}

// Numbers are reversed as words, of which one instruction reverses many; `[u8]::reverse` goes byte
// by byte.

fn reversed_2(number: [u8; 2]) -> [u8; 2] {
    u16::from_ne_bytes(number).swap_bytes().to_ne_bytes()
}

fn reversed_4(number: [u8; 4]) -> [u8; 4] {
    u32::from_ne_bytes(number).swap_bytes().to_ne_bytes()
}

fn reversed_8(number: [u8; 8]) -> [u8; 8] {
    u64::from_ne_bytes(number).swap_bytes().to_ne_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_reversed() {
        let encoded: Vec<u8> = (0..24).collect();
        for unit in [1, 2, 3, 4, 8] {
            let expected: Vec<u8> = encoded
                .chunks(unit)
                .flat_map(|number| number.iter().rev().copied())
                .collect();
            let mut copied = vec![0xa5; 24];
            copy_swapped(unit, &encoded, &mut copied);
            assert_eq!(copied, expected, "copy, unit {unit}");
            let mut in_place = encoded.clone();
            swap(unit, &mut in_place);
            assert_eq!(in_place, expected, "in place, unit {unit}");
        }
    }
}
