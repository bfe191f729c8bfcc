//! Entries of TIFF directories, for classic TIFF and for `BigTIFF`.
//!
//! ```text
//! classic: tag u16, type u16, count u32, value or its offset: 4 bytes   12
//! `BigTIFF`: tag u16, type u16, count u64, value or its offset: 8 bytes   20
//! ```
//!
//! Source: TIFF 6.0, section 2 "TIFF Structure"; <https://www.awaresystems.be/imaging/tiff/bigtiff.html>.

mod field;

use super::number::Scalar;
use crate::dtype::DataType;

pub(super) use field::{Field, FieldValues, Pieces, image_fields};

/// The tags, which are the meanings of entries.
pub(super) mod tag {
    pub(in crate::plain) const NEW_SUBFILE_TYPE: u16 = 254;
    pub(in crate::plain) const IMAGE_WIDTH: u16 = 256;
    pub(in crate::plain) const IMAGE_LENGTH: u16 = 257;
    pub(in crate::plain) const BITS_PER_SAMPLE: u16 = 258;
    pub(in crate::plain) const COMPRESSION: u16 = 259;
    pub(in crate::plain) const PHOTOMETRIC: u16 = 262;
    pub(in crate::plain) const IMAGE_DESCRIPTION: u16 = 270;
    pub(in crate::plain) const STRIP_OFFSETS: u16 = 273;
    pub(in crate::plain) const SAMPLES_PER_PIXEL: u16 = 277;
    pub(in crate::plain) const ROWS_PER_STRIP: u16 = 278;
    pub(in crate::plain) const STRIP_BYTE_COUNTS: u16 = 279;
    pub(in crate::plain) const X_RESOLUTION: u16 = 282;
    pub(in crate::plain) const Y_RESOLUTION: u16 = 283;
    pub(in crate::plain) const PLANAR_CONFIGURATION: u16 = 284;
    pub(in crate::plain) const RESOLUTION_UNIT: u16 = 296;
    pub(in crate::plain) const TILE_WIDTH: u16 = 322;
    pub(in crate::plain) const TILE_LENGTH: u16 = 323;
    pub(in crate::plain) const TILE_OFFSETS: u16 = 324;
    pub(in crate::plain) const TILE_BYTE_COUNTS: u16 = 325;
    pub(in crate::plain) const SUB_IFDS: u16 = 330;
    pub(in crate::plain) const EXTRA_SAMPLES: u16 = 338;
    pub(in crate::plain) const SAMPLE_FORMAT: u16 = 339;
    pub(in crate::plain) const GDAL_METADATA: u16 = 42112;
    pub(in crate::plain) const GDAL_NODATA: u16 = 42113;
    pub(in crate::plain) const IMAGEJ_METADATA_LENGTHS: u16 = 50838;
    pub(in crate::plain) const IMAGEJ_METADATA: u16 = 50839;
}

/// The type of the values of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum FieldType {
    /// 8 bits.
    Byte = 1,
    /// Text, terminated by NUL.
    Ascii = 2,
    /// 16 bits.
    Short = 3,
    /// 32 bits.
    Long = 4,
    /// Two numbers of 32 bits.
    Rational = 5,
    /// A floating point number of 64 bits.
    Double = 12,
    /// 64 bits, in `BigTIFF`.
    Long8 = 16,
    /// The offset of a directory, in `BigTIFF`.
    Ifd8 = 18,
}

impl FieldType {
    /// The size of a value in bytes.
    pub(super) fn bytes(self) -> usize {
        match self {
            FieldType::Byte | FieldType::Ascii => 1,
            FieldType::Short => 2,
            FieldType::Long => 4,
            FieldType::Rational | FieldType::Double | FieldType::Long8 | FieldType::Ifd8 => 8,
        }
    }
}

/// An entry of an image file directory (IFD).
#[derive(Debug, Clone, Copy)]
pub(super) struct IfdEntry {
    /// The meaning of the entry.
    pub(super) tag: u16,
    /// The type of its values.
    pub(super) kind: FieldType,
    /// The number of values.
    pub(super) count: u64,
    /// The value if there is one, else the offset of the values in the file.
    pub(super) value: u64,
}

impl IfdEntry {
    /// An entry with one number.
    pub(super) fn one(tag: u16, kind: FieldType, value: u64) -> IfdEntry {
        IfdEntry {
            tag,
            kind,
            count: 1,
            value,
        }
    }

    /// The entry in a `BigTIFF`.
    pub(super) fn big(self) -> [u8; 20] {
        let mut bytes = [0; 20];
        bytes[..2].copy_from_slice(&self.tag.to_le_bytes());
        bytes[2..4].copy_from_slice(&(self.kind as u16).to_le_bytes());
        bytes[4..12].copy_from_slice(&self.count.to_le_bytes());
        // A number of fewer bytes stands at the front of the field, as little-endian order puts it.
        bytes[12..].copy_from_slice(&self.value.to_le_bytes());
        bytes
    }

    /// The entry in a classic TIFF; `None` if a number does not fit.
    pub(super) fn classic(self) -> Option<[u8; 12]> {
        let mut bytes = [0; 12];
        bytes[..2].copy_from_slice(&self.tag.to_le_bytes());
        bytes[2..4].copy_from_slice(&(self.kind as u16).to_le_bytes());
        bytes[4..8].copy_from_slice(&u32::try_from(self.count).ok()?.to_le_bytes());
        bytes[8..].copy_from_slice(&u32::try_from(self.value).ok()?.to_le_bytes());
        Some(bytes)
    }
}

/// The entries of the directory of one plane in a classic TIFF, which has at most 4 samples a pixel.
/// `description` is its length and its offset, `strip` is the offset and the length of the plane's only
/// strip.
pub(super) fn entries(
    plane: [u64; 2],
    sample: Sample,
    description: (u64, u64),
    strip: (u64, u64),
) -> Vec<IfdEntry> {
    let long = |tag, value| IfdEntry::one(tag, FieldType::Long, value);
    let fields = image_fields(plane, sample, 0);
    let mut entries: Vec<IfdEntry> = fields.iter().filter_map(Field::entry).collect();
    entries.extend([
        IfdEntry {
            tag: tag::IMAGE_DESCRIPTION,
            kind: FieldType::Ascii,
            count: description.0,
            value: description.1,
        },
        long(tag::STRIP_OFFSETS, strip.0),
        long(tag::ROWS_PER_STRIP, plane[0]),
        long(tag::STRIP_BYTE_COUNTS, strip.1),
    ]);
    entries.sort_by_key(|entry| entry.tag);
    entries
}

/// The type of samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Sample {
    /// `BitsPerSample`.
    pub(super) bits: u16,
    /// `SampleFormat`: 1 unsigned, 2 signed, 3 floating point, 6 complex.
    pub(super) format: u16,
    /// `SamplesPerPixel`: 1, 3 or 4 that follow each other, or any number in planes of their own.
    pub(super) per_pixel: u16,
    /// Whether each sample of a pixel has a plane of its own.
    pub(super) is_planar: bool,
}

impl Sample {
    /// `PhotometricInterpretation`: RGB, or black is zero.
    fn photometric(self) -> u16 {
        if self.per_pixel > 1 && !self.is_planar {
            2
        } else {
            1
        }
    }

    /// The meaning of the samples after grey, or after the three colours.
    fn extra(self) -> Vec<u16> {
        /// Opacity that is not multiplied into the colours.
        const OPACITY: u16 = 2;
        match self.per_pixel {
            n if self.is_planar => vec![0; usize::from(n).saturating_sub(1)],
            4 => vec![OPACITY],
            _ => Vec::new(),
        }
    }

    /// The number of [`entries`] of a plane, without a description.
    pub(super) fn n_entries(self) -> u64 {
        match self.per_pixel {
            1 => 11,
            3 => 12,
            _ => 13,
        }
    }
}

/// The sample type of elements of `data_type`. Truth values are numbers of 8 bits.
pub(super) fn sample(data_type: &DataType) -> Option<Sample> {
    let format = match Scalar::of(data_type)? {
        Scalar::Bool | Scalar::UInt8 | Scalar::UInt16 | Scalar::UInt32 | Scalar::UInt64 => 1,
        Scalar::Int8 | Scalar::Int16 | Scalar::Int32 | Scalar::Int64 => 2,
        Scalar::Float16 | Scalar::Float32 | Scalar::Float64 => 3,
        Scalar::Complex64 | Scalar::Complex128 => 6,
        Scalar::Time => return None,
    };
    let bits = u16::try_from(8 * data_type.item_size).ok()?;
    Some(Sample {
        bits,
        format,
        per_pixel: 1,
        is_planar: false,
    })
}

#[cfg(test)]
mod tests {
    use super::super::testing::array;
    use super::*;

    #[test]
    fn numbers_are_at_the_front_of_their_field() {
        let entry = IfdEntry::one(tag::BITS_PER_SAMPLE, FieldType::Short, 16);
        let classic = [2, 1, 3, 0, 1, 0, 0, 0, 16, 0, 0, 0];
        assert_eq!(entry.classic(), Some(classic));
        let big = [2, 1, 3, 0, 1, 0, 0, 0, 0, 0, 0, 0, 16, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(entry.big(), big);
        assert_eq!(
            IfdEntry::one(tag::STRIP_OFFSETS, FieldType::Long, 1 << 32).classic(),
            None
        );
    }

    #[test]
    fn samples_of_types() {
        let cases = [
            ("|b1", Some((8, 1))),
            ("<i8", Some((64, 2))),
            ("<u4", Some((32, 1))),
            ("<f2", Some((16, 3))),
            ("<c16", Some((128, 6))),
            ("<M8[s]", None),
            ("|S4", None),
        ];
        for (typestr, expected) in cases {
            let array = array("a", &format!("\"{typestr}\""), &[1]);
            let expected = expected.map(|(bits, format)| Sample {
                bits,
                format,
                per_pixel: 1,
                is_planar: false,
            });
            assert_eq!(sample(&array.data_type), expected, "{typestr}");
        }
    }
}
