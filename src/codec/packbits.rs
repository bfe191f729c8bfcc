//! The `packbits` codec: only the significant bits of each element, one after the other.
//!
//! Spec: <https://github.com/zarr-developers/zarr-extensions/tree/main/codecs/packbits>.
//!
//! ```json
//! { "name": "packbits", "configuration": { "padding_encoding": "first_byte",
//!                                          "first_bit": 0, "last_bit": 2 } }
//! ```
//!
//! The first bit is the lowest bit of the first byte, as in zarrs. The filter of numcodecs with the
//! same name packs in the other direction.

use super::{bytes::copy_start, decoded::expect_length, number::Number};
use crate::dtype::DataType;
use crate::error::FormatError;

const NAME: &str = "packbits";

/// Where the number of unused bits of the last byte is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PaddingEncoding {
    /// Nowhere.
    None,
    /// In a byte before the packed bits.
    FirstByte,
    /// In a byte behind the packed bits.
    LastByte,
}

/// Which bits of each element are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PackBits {
    padding: PaddingEncoding,
    first_bit: u32,
    last_bit: u32,
    /// Bytes of a number in memory.
    number_bytes: usize,
    is_signed: bool,
}

impl PackBits {
    /// The codec for numbers of `data_type`.
    ///
    /// # Errors
    /// The elements of the type are not numbers, or a number does not have these bits.
    pub fn new(
        data_type: &DataType,
        padding: PaddingEncoding,
        first_bit: Option<u64>,
        last_bit: Option<u64>,
    ) -> Result<PackBits, FormatError> {
        let number = Number::part_of(data_type).ok_or_else(|| {
            FormatError::unsupported("", "data type of packbits", &data_type.name)
        })?;
        let bits = number.bits();
        let first = first_bit.unwrap_or(0);
        let last = last_bit.unwrap_or(u64::from(bits) - 1);
        if first > last || last >= u64::from(bits) {
            let problem = format!("bits {first} to {last} of numbers of {bits} bits");
            return Err(FormatError::document("", problem));
        }
        Ok(PackBits {
            padding,
            first_bit: u32::try_from(first).unwrap_or(0),
            last_bit: u32::try_from(last).unwrap_or(0),
            number_bytes: number.size(),
            is_signed: matches!(number, Number::Integer(format) if format.signed),
        })
    }

    fn bits(&self) -> u32 {
        self.last_bit - self.first_bit + 1
    }

    /// The encoded length of `decoded_len` bytes, including the count of padding.
    pub(super) fn encoded_len(&self, decoded_len: u64) -> u64 {
        let numbers = u128::from(decoded_len) / self.number_bytes.max(1) as u128;
        let bytes = (numbers * u128::from(self.bits())).div_ceil(8);
        let padding = u64::from(self.padding != PaddingEncoding::None);
        u64::try_from(bytes)
            .unwrap_or(u64::MAX)
            .saturating_add(padding)
    }

    /// Unpacks `encoded` to all of `out`.
    ///
    /// # Errors
    /// [`FormatError`] for another length, or another count of padding.
    pub(super) fn decode(&self, encoded: &[u8], out: &mut [u8]) -> Result<(), FormatError> {
        expect_length(NAME, encoded.len(), self.encoded_len(out.len() as u64))?;
        let counted = match self.padding {
            PaddingEncoding::None => None,
            PaddingEncoding::FirstByte => encoded.split_first(),
            PaddingEncoding::LastByte => encoded.split_last(),
        };
        let packed = counted.map_or(encoded, |(_, packed)| packed);
        let width = self.bits();
        let numbers = (out.len() / self.number_bytes) as u128;
        let unused = (8 - (numbers * u128::from(width)) % 8) % 8;
        if let Some((&padding, _)) = counted
            && u128::from(padding) != unused
        {
            let problem = format!("{padding} bits of padding, expected {unused}");
            return Err(FormatError::encoded(NAME, problem));
        }
        // The bits that were read from bytes, and not yet used by a number.
        let (mut pending, mut n_pending) = (0_u128, 0);
        let mut bytes = packed.iter();
        for number in out.chunks_exact_mut(self.number_bytes) {
            while n_pending < width {
                let byte = bytes.next().copied().unwrap_or(0);
                pending |= u128::from(byte) << n_pending;
                n_pending += 8;
            }
            let bits = pending & ((1 << width) - 1);
            pending >>= width;
            n_pending -= width;
            let mut value = bits << self.first_bit;
            if self.is_signed && bits >> (width - 1) == 1 {
                value |= u128::MAX << self.last_bit;
            }
            copy_start(&value.to_le_bytes(), number);
        }
        Ok(())
    }
}

impl PackBits {
    /// Whether some elements decode to other values, because not all of their bits are stored.
    pub(super) fn can_lose(&self) -> bool {
        self.bits() as usize != 8 * self.number_bytes
    }

    /// Packs `decoded` to all of `out`.
    ///
    /// # Errors
    /// [`FormatError`] when the lengths do not fit each other.
    pub(super) fn encode(&self, decoded: &[u8], out: &mut [u8]) -> Result<(), FormatError> {
        expect_length(NAME, out.len(), self.encoded_len(decoded.len() as u64))?;
        let width = self.bits();
        let numbers = (decoded.len() / self.number_bytes) as u128;
        let unused = (8 - (numbers * u128::from(width)) % 8) % 8;
        let unused = u8::try_from(unused).unwrap_or(0);
        let counted = match self.padding {
            PaddingEncoding::None => None,
            PaddingEncoding::FirstByte => out.split_first_mut(),
            PaddingEncoding::LastByte => out.split_last_mut(),
        };
        let packed = match counted {
            Some((padding, packed)) => {
                *padding = unused;
                packed
            }
            None => out,
        };
        // The bits of numbers that do not fill a byte yet.
        let (mut pending, mut n_pending) = (0_u128, 0);
        let mut bytes = packed.iter_mut();
        let mut next = |pending: u128| {
            if let (Some(byte), [low, ..]) = (bytes.next(), pending.to_le_bytes()) {
                *byte = low;
            }
            pending >> 8
        };
        for number in decoded.chunks_exact(self.number_bytes) {
            let mut word = [0; 16];
            copy_start(number, &mut word);
            let bits = u128::from_le_bytes(word) >> self.first_bit & ((1 << width) - 1);
            pending |= bits << n_pending;
            n_pending += width;
            while n_pending >= 8 {
                pending = next(pending);
                n_pending -= 8;
            }
        }
        if n_pending > 0 {
            next(pending);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtype::v3_name;

    fn data_type(name: &str) -> DataType {
        let element = v3_name::without_parameters(name).unwrap();
        DataType::of(name.to_owned(), element).unwrap()
    }

    fn decode(codec: &PackBits, encoded: &[u8], len: usize) -> Result<Vec<u8>, FormatError> {
        let mut out = vec![0xee; len];
        codec.decode(encoded, &mut out)?;
        Ok(out)
    }

    #[test]
    fn the_lowest_bit_is_first() {
        use PaddingEncoding::{FirstByte, LastByte, None as Nowhere};
        let bools = |padding| PackBits::new(&data_type("bool"), padding, None, None).unwrap();
        let elements = [1, 0, 1, 1, 0];
        for (padding, encoded) in [
            (Nowhere, &[0b0_1101][..]),
            (FirstByte, &[3, 0b0_1101]),
            (LastByte, &[0b0_1101, 3]),
        ] {
            let codec = bools(padding);
            assert_eq!(decode(&codec, encoded, 5).unwrap(), elements);
            assert!(decode(&codec, encoded, 9).is_err());
            assert!(decode(&codec, &[], 5).is_err());
            assert_eq!(decode(&codec, &encoded[1..], 0).is_ok(), padding == Nowhere);
        }
        assert!(decode(&bools(FirstByte), &[2, 0b0_1101], 5).is_err());
    }

    #[test]
    fn bits_go_back_to_their_place_with_their_sign() {
        let codec = |name, first, last| {
            let (first, last) = (Some(first), Some(last));
            PackBits::new(&data_type(name), PaddingEncoding::None, first, last)
        };
        let int4 = PackBits::new(&data_type("int4"), PaddingEncoding::None, None, None).unwrap();
        assert_eq!(decode(&int4, &[0x7f, 0x08], 3).unwrap(), [0xff, 7, 0xf8]);
        let middle = codec("int16", 4, 11).unwrap();
        assert_eq!(
            decode(&middle, &[0x81, 0x12], 4).unwrap(),
            [0x10, 0xf8, 0x20, 1]
        );
        let whole = codec("uint64", 0, 63).unwrap();
        let bytes: Vec<u8> = (1..17).collect();
        assert_eq!(decode(&whole, &bytes, 16).unwrap(), bytes);
        let complex = codec("complex64", 31, 31).unwrap();
        assert_eq!(
            decode(&complex, &[2], 8).unwrap(),
            [0, 0, 0, 0, 0, 0, 0, 0x80]
        );
        for (first, last) in [(3, 2), (0, 16), (u64::MAX, u64::MAX)] {
            assert!(codec("int16", first, last).is_err());
        }
        assert!(codec("r16", 0, 1).is_err());
    }

    #[test]
    fn packed_bits_are_those_that_are_unpacked() {
        use PaddingEncoding::{FirstByte, LastByte, None as Nowhere};
        for (name, first, last, loses) in [
            ("bool", 0, 0, true),
            ("int4", 0, 3, true),
            ("uint8", 0, 7, false),
            ("int16", 4, 11, true),
            ("uint64", 0, 63, false),
            ("uint64", 1, 63, true),
            ("complex64", 31, 31, true),
        ] {
            for (padding, count) in [(Nowhere, 7), (FirstByte, 8), (LastByte, 3), (FirstByte, 0)] {
                let codec =
                    PackBits::new(&data_type(name), padding, Some(first), Some(last)).unwrap();
                assert_eq!(codec.can_lose(), loses, "{name}");
                let length = count * codec.number_bytes;
                let noise: Vec<u8> = (0..length)
                    .map(|i| (i * 89 % 251).to_le_bytes()[0])
                    .collect();
                let encode = |decoded: &[u8]| {
                    let length = codec.encoded_len(decoded.len() as u64);
                    let mut out = vec![0xee; usize::try_from(length).unwrap()];
                    codec.encode(decoded, &mut out).unwrap();
                    out
                };
                let encoded = encode(&noise);
                let kept = decode(&codec, &encoded, length).unwrap();
                assert_eq!(encode(&kept), encoded, "{name} {padding:?}");
                assert!(loses || kept == noise, "{name} {padding:?}");
                assert!(
                    codec
                        .encode(&noise, &mut vec![0; encoded.len() + 1])
                        .is_err()
                );
            }
        }
    }
}
