//! Integers of 32 and 64 bits as narrower numbers, in images for programs that open no wide integers.
//!
//! The values of an array are known only when all of it has been read, and its document does not bound
//! them: values outside `valid_range` are legal (they count as missing), and the colours of OME-NGFF need
//! not name every label. So the user chooses the type, and each value is checked against it when it is
//! read. A value that the type does not hold is an error, and never another value.

use super::{Array, FileFormat, Transform};
use crate::dtype::{DataType, Element, FillValue, FloatFormat, element_bytes};
use crate::error::FormatError;

/// The type of numbers that images hold in place of integers of 32 and 64 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum NarrowType {
    /// 0 to 255.
    UInt8,
    /// 0 to 65535.
    UInt16,
    /// All integers up to 2^24, and some that are larger.
    Float32,
}

impl NarrowType {
    /// All types, the narrowest first.
    pub const ALL: [NarrowType; 3] = [NarrowType::UInt8, NarrowType::UInt16, NarrowType::Float32];

    /// The name of the type, as Zarr v3 has it.
    pub fn name(self) -> &'static str {
        match self {
            NarrowType::UInt8 => "uint8",
            NarrowType::UInt16 => "uint16",
            NarrowType::Float32 => "float32",
        }
    }

    fn bytes(self) -> usize {
        match self {
            NarrowType::UInt8 => 1,
            NarrowType::UInt16 => 2,
            NarrowType::Float32 => 4,
        }
    }

    fn data_type(self) -> Result<DataType, FormatError> {
        match self {
            NarrowType::UInt8 | NarrowType::UInt16 => Ok(DataType::unsigned(self.bytes())),
            NarrowType::Float32 => {
                let format = FloatFormat::of_name(self.name())
                    .ok_or_else(|| FormatError::unsupported("", "data type", self.name()))?;
                DataType::of(self.name().to_owned(), Element::Float(format))
            }
        }
    }

    /// `value` as a number of this type, in the first bytes; `None` if the type does not hold it.
    fn holding(self, value: i128) -> Option<[u8; 4]> {
        let mut bytes = [0; 4];
        match self {
            NarrowType::UInt8 => bytes[..1].copy_from_slice(&[u8::try_from(value).ok()?]),
            NarrowType::UInt16 => {
                bytes[..2].copy_from_slice(&u16::try_from(value).ok()?.to_le_bytes());
            }
            NarrowType::Float32 => bytes = exact_float(value)?.to_le_bytes(),
        }
        Some(bytes)
    }
}

/// `value` as a float of 32 bits; `None` if that rounds.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    reason = "a loss is found by the conversion back; the values have 64 bits"
)]
fn exact_float(value: i128) -> Option<f32> {
    let float = value as f32;
    (float as i128 == value).then_some(float)
}

/// The wide integers of an array, and the type that they become.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Narrowing {
    is_signed: bool,
    wide_bytes: usize,
    to: NarrowType,
}

impl Narrowing {
    /// `array` with elements of type `to`, as a file of `format` has it; `None` if the file has them
    /// as they are, because the format is not one of images, or they are no wide integers.
    pub(super) fn of(
        array: &Array,
        format: FileFormat,
        to: NarrowType,
    ) -> Result<Option<(Array, Narrowing)>, FormatError> {
        let Element::Integer(integers) = &array.data_type.element else {
            return Ok(None);
        };
        if !format.takes_narrowed() || !matches!(integers.bytes, 4 | 8) {
            return Ok(None);
        }
        array.n_bytes()?;
        let narrowing = Narrowing {
            is_signed: integers.signed,
            wide_bytes: integers.bytes,
            to,
        };
        let data_type = to.data_type()?;
        let narrowed = Array {
            fill_value: FillValue::undefined(&data_type),
            data_type,
            ..array.clone()
        };
        Ok(Some((narrowed, narrowing)))
    }

    /// Bytes of one integer of the array.
    pub(super) fn wide_bytes(self) -> usize {
        self.wide_bytes
    }

    /// Bytes of one number of the file.
    pub(super) fn narrow_bytes(self) -> usize {
        self.to.bytes()
    }

    /// Turns integers into narrower numbers, at the front of the same bytes.
    ///
    /// # Errors
    ///
    /// When the type does not hold an integer, which the error names.
    pub(super) fn apply(self, elements: &mut [u8]) -> Result<(), FormatError> {
        let (wide, narrow) = (self.wide_bytes, self.narrow_bytes());
        for number in 0..elements.len() / wide.max(1) {
            let from = elements.get(number * wide..(number + 1) * wide);
            let from = from.unwrap_or_default();
            let value = if self.is_signed {
                i128::from(element_bytes::signed(from))
            } else {
                i128::from(element_bytes::unsigned(from))
            };
            let Some(bytes) = self.to.holding(value) else {
                let name = self.to.name();
                let problem = format!("{value} is no {name} (see --integers)");
                return Err(FormatError::encoded("integers", problem));
            };
            if let Some(to) = elements.get_mut(number * narrow..(number + 1) * narrow) {
                to.copy_from_slice(&bytes[..narrow]);
            }
        }
        Ok(())
    }

    /// The transform that only narrows elements.
    pub(super) fn transform(self) -> Transform {
        Transform::Narrow(self)
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{array, check_slices, whole};
    use super::super::{FileFormat, array_file};
    use super::*;

    fn narrowed(typestr: &str, values: &[u8], to: NarrowType) -> Result<Vec<u8>, FormatError> {
        let array = array("a", typestr, &[1]);
        let (_, narrowing) = Narrowing::of(&array, FileFormat::Tif, to)?.unwrap();
        let mut bytes = values.to_vec();
        let n = bytes.len() / narrowing.wide_bytes();
        narrowing.apply(&mut bytes)?;
        bytes.truncate(n * narrowing.narrow_bytes());
        Ok(bytes)
    }

    #[test]
    fn a_value_is_held_exactly_or_refused() {
        let signed = |values: &[i64]| -> Vec<u8> {
            let bytes = values.iter().flat_map(|value| value.to_le_bytes());
            bytes.collect()
        };
        let floats = |values: &[f32]| -> Vec<u8> {
            let bytes = values.iter().flat_map(|value| value.to_le_bytes());
            bytes.collect()
        };
        let held = [
            (NarrowType::UInt8, vec![0, 255, 7], vec![0, 255, 7]),
            (NarrowType::UInt16, vec![1, 65535], vec![1, 0, 255, 255]),
            (
                NarrowType::Float32,
                vec![-3, 1 << 24, i64::MIN],
                floats(&[-3.0, 16_777_216.0, -9_223_372_036_854_775_808.0]),
            ),
        ];
        for (to, values, expected) in held {
            let found = narrowed(r#""<i8""#, &signed(&values), to);
            assert_eq!(found.unwrap(), expected, "{values:?} {to:?}");
        }
        let refused = [
            (NarrowType::UInt8, 256),
            (NarrowType::UInt8, -1),
            (NarrowType::UInt16, 65536),
            (NarrowType::Float32, (1 << 24) + 1),
            (NarrowType::Float32, i64::MAX),
        ];
        for (to, value) in refused {
            let error = narrowed(r#""<i8""#, &signed(&[1, value]), to).unwrap_err();
            let told = error.to_string();
            let expected = format!("{value} is no {} (see --integers)", to.name());
            assert!(told.contains(&expected), "{told}");
        }
        let most = u64::MAX.to_le_bytes();
        assert!(narrowed(r#""<u8""#, &most, NarrowType::Float32).is_err());
        let most = u32::MAX.to_le_bytes();
        assert!(narrowed(r#""<u4""#, &most, NarrowType::UInt16).is_err());
        let minus_one = narrowed(r#""<i4""#, &most, NarrowType::Float32);
        assert_eq!(minus_one.unwrap(), floats(&[-1.0]));
    }

    #[test]
    fn only_wide_integers_in_images_are_narrowed() {
        for (typestr, format, expected) in [
            (r#""<i8""#, FileFormat::Tif, true),
            (r#""<u8""#, FileFormat::OmeTif, true),
            (r#""<i4""#, FileFormat::Nii, true),
            (r#""<u4""#, FileFormat::Mrc, true),
            (r#""<i2""#, FileFormat::Tif, false),
            (r#""|b1""#, FileFormat::Tif, false),
            (r#""<f8""#, FileFormat::Nii, false),
            (r#""<i8""#, FileFormat::Npy, false),
            (r#""<i8""#, FileFormat::Fits, false),
        ] {
            let array = array("a", typestr, &[2, 3]);
            let found = Narrowing::of(&array, format, NarrowType::UInt8).unwrap();
            assert_eq!(found.is_some(), expected, "{typestr} {format:?}");
        }
    }

    #[test]
    fn any_range_of_a_file_is_that_of_the_narrow_array() {
        let shape = [2, 3, 5, 7];
        let values = (0..2 * 3 * 5 * 7).map(|i: u64| i * 17 % 251);
        let wide: Vec<u8> = values.clone().flat_map(u64::to_le_bytes).collect();
        let wide_array = array("a", r#""<u8""#, &shape);
        for (to, typestr) in [
            (NarrowType::UInt8, r#""|u1""#),
            (NarrowType::UInt16, r#""<u2""#),
            (NarrowType::Float32, r#""<f4""#),
        ] {
            let narrow: Vec<u8> = values
                .clone()
                .flat_map(|value| to.holding(value.into()).unwrap()[..to.bytes()].to_vec())
                .collect();
            let narrow_array = array("a", typestr, &shape);
            for format in [FileFormat::Tif, FileFormat::OmeTif, FileFormat::Nii] {
                let layout = array_file(format, &wide_array, Some(to)).unwrap();
                let expected = array_file(format, &narrow_array, None).unwrap();
                assert_eq!(
                    whole(&layout, &[(&wide_array, &wide)]),
                    whole(&expected, &[(&narrow_array, &narrow)]),
                    "{format:?} {to:?}"
                );
                check_slices(&layout, &[(&wide_array, &wide)]);
            }
        }
    }
}
