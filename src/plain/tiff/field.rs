//! The fields of an image: entries of a directory together with all their values.

use super::{FieldType, IfdEntry, Sample, tag};

/// An entry of a directory, and its values.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(in crate::plain) struct Field {
    /// The meaning of the entry.
    pub(in crate::plain) tag: u16,
    /// The type of its values.
    pub(in crate::plain) kind: FieldType,
    /// Its values.
    pub(in crate::plain) values: FieldValues,
}

/// The values of a field.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(in crate::plain) enum FieldValues {
    /// The little-endian bytes of the values.
    Same(Vec<u8>),
    /// One number, several times.
    Repeated {
        /// The number.
        value: u64,
        /// How often it is repeated.
        count: u64,
    },
    /// The offsets of the strips or tiles of a plane.
    Pieces(Pieces),
    /// The offsets of the directories of a plane after its first one.
    Levels,
}

/// The strips or tiles of planes. Those of a plane follow each other, and so do the planes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(in crate::plain) struct Pieces {
    /// Offset of the first piece of the first plane, counted from the first byte after the directories
    /// and their values.
    pub(in crate::plain) start: u64,
    /// The size of each piece in bytes.
    pub(in crate::plain) bytes: u64,
    /// The number of pieces of a plane.
    pub(in crate::plain) count: u64,
}

impl Field {
    /// A field with values that are the same in the directory of each plane.
    pub(in crate::plain) fn of(tag: u16, kind: FieldType, values: FieldValues) -> Field {
        Field { tag, kind, values }
    }

    /// A field of short numbers.
    pub(in crate::plain) fn shorts(tag: u16, values: &[u16]) -> Field {
        let bytes = values.iter().flat_map(|value| value.to_le_bytes());
        Field::of(tag, FieldType::Short, FieldValues::Same(bytes.collect()))
    }

    /// A field of one number of 32 bits; one that is too large is cut off.
    pub(in crate::plain) fn long(tag: u16, value: u64) -> Field {
        let bytes = value.to_le_bytes()[..4].to_vec();
        Field::of(tag, FieldType::Long, FieldValues::Same(bytes))
    }

    /// A field of floating point numbers.
    pub(in crate::plain) fn doubles(tag: u16, values: &[f64]) -> Field {
        let bytes = values.iter().flat_map(|value| value.to_le_bytes());
        Field::of(tag, FieldType::Double, FieldValues::Same(bytes.collect()))
    }

    /// A field of text, which must not contain NUL.
    pub(in crate::plain) fn text(tag: u16, text: &str) -> Field {
        let bytes = text.bytes().chain([0]);
        Field::of(tag, FieldType::Ascii, FieldValues::Same(bytes.collect()))
    }

    /// The entry, if its values have room in it, which are 8 bytes at most, even though an entry of a
    /// classic TIFF has room for only 4.
    pub(in crate::plain) fn entry(&self) -> Option<IfdEntry> {
        let FieldValues::Same(bytes) = &self.values else {
            return None;
        };
        let mut value = [0; 8];
        value.get_mut(..bytes.len())?.copy_from_slice(bytes);
        Some(IfdEntry {
            tag: self.tag,
            kind: self.kind,
            count: (bytes.len() / self.kind.bytes()) as u64,
            value: u64::from_le_bytes(value),
        })
    }
}

/// The fields with the size of a plane and the type of its samples, in the order of their tags.
/// `subfile` is 0 for an image, and 1 for a smaller copy of one.
pub(in crate::plain) fn image_fields(
    [height, width]: [u64; 2],
    sample: Sample,
    subfile: u64,
) -> Vec<Field> {
    let per_sample = |tag, value| Field::shorts(tag, &vec![value; sample.per_pixel.into()]);
    let mut fields = vec![
        Field::long(tag::NEW_SUBFILE_TYPE, subfile),
        Field::long(tag::IMAGE_WIDTH, width),
        Field::long(tag::IMAGE_LENGTH, height),
        per_sample(tag::BITS_PER_SAMPLE, sample.bits),
        Field::shorts(tag::COMPRESSION, &[1]),
        Field::shorts(tag::PHOTOMETRIC, &[sample.photometric()]),
        Field::shorts(tag::SAMPLES_PER_PIXEL, &[sample.per_pixel]),
    ];
    if sample.per_pixel > 1 {
        // The samples of a pixel follow each other, or each sample has a plane of its own.
        let planar = if sample.is_planar { 2 } else { 1 };
        fields.push(Field::shorts(tag::PLANAR_CONFIGURATION, &[planar]));
    }
    let extra = sample.extra();
    if !extra.is_empty() {
        fields.push(Field::shorts(tag::EXTRA_SAMPLES, &extra));
    }
    fields.push(per_sample(tag::SAMPLE_FORMAT, sample.format));
    fields
}
