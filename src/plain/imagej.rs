//! `ImageJ`'s TIFF stack: one directory, and all planes one after the other.
//!
//! ```text
//! 0        "II", 42, offset 8
//! 8        13 entries, 2 more with a resolution, 2 more with names, colours or ranges of channels, 1 or 2 more for 3 or
//!          4 samples a pixel; next directory 0
//! .        description, NUL
//! .        what has no room in an entry: resolutions, metadata of channels, bits and formats of several samples
//! up(4096) planes: t slowest, then z, then c
//! ```
//!
//! Only the first plane has an offset. `images=` in the description has the number of planes,
//! which follow each other without gaps, so the file may exceed the 4 GiB of classic TIFF. Readers
//! that do not know `images=` see the first plane.
//! <https://imagej.net/ij/developer/source/ij/io/TiffDecoder.java.html>

mod calibration;
mod channels;
mod outside;

use super::image::{Image, ImageAxis};
use super::number::Scalar;
use super::tiff::{self, FieldType, IfdEntry, Sample, tag};
use super::{Array, Elements, FileFormat, Layout};
use crate::error::FormatError;
use crate::grid::product;
use calibration::Calibration;
use channels::Channels;
use outside::Outside;

/// The longest plane in bytes, and the most planes: `ImageJ` uses signed 32-bit integers.
const MOST: u64 = i32::MAX as u64;
/// The alignment of the first plane.
const ALIGNMENT: u64 = 4096;

/// Lays out `array` as a file.
pub(super) fn layout(array: &Array) -> Result<Layout, FormatError> {
    let spell = |number| tiff::sample(&array.data_type).filter(|_| is_held(number));
    let (number, sample) = Scalar::spelled(array, FileFormat::Tif, spell)?;
    let image = Image::of(array, FileFormat::Tif)?;
    let plane = image.plane();
    let sample = Sample {
        per_pixel: image.samples(),
        ..sample
    };
    let pixel_bytes = u64::from(sample.per_pixel).checked_mul(array.data_type.item_size);
    let plane_bytes = product(&plane).and_then(|n| n.checked_mul(pixel_bytes?));
    let (Some(plane_bytes), Some(n_planes)) = (plane_bytes, image.n_planes()) else {
        let found = format!("{:?}", array.shape);
        return Err(FormatError::too_large(
            "the size of the array in bytes",
            found,
            MOST,
        ));
    };
    FormatError::check_limit("the size of a plane in bytes", plane_bytes, MOST)?;
    FormatError::check_limit("the number of planes", n_planes, MOST)?;
    let calibration = Calibration::of(&image);
    let channels = Channels::of(&image, n_planes, number == Scalar::Int16);
    let description = description(&image, n_planes, &calibration, &channels);
    let fields = Fields {
        description,
        resolution: calibration.resolution(),
        channels: channels.metadata(),
    };
    let header = header(plane, plane_bytes, sample, fields)
        .ok_or_else(|| FileFormat::Tif.refused("shape", "a header longer than 32 bits can say"))?;
    let elements = Elements {
        order: image.order_tzc(),
        ..Elements::all(array, number.transform())?
    };
    Layout::of_header(header, ALIGNMENT, elements)
}

/// Whether a file holds numbers of this type: those that `ImageJ` works with, and wider integers, of
/// which masks of labels consist. TIFF stores these unchanged. `ImageJ` converts integers of 32 bits
/// to floats, and refuses those of 64 bits. It would take `int8` for unsigned numbers.
fn is_held(number: Scalar) -> bool {
    !matches!(
        number,
        Scalar::Int8
            | Scalar::Float16
            | Scalar::Float64
            | Scalar::Complex64
            | Scalar::Complex128
            | Scalar::Time
    )
}

/// The description, from which `ImageJ` reads the dimensions of the stack and its calibration.
fn description(
    image: &Image<'_>,
    n_planes: u64,
    calibration: &Calibration,
    channels: &Channels<'_>,
) -> String {
    let mut lines = vec!["ImageJ=1.54f".to_owned()];
    if n_planes > 1 {
        lines.push(format!("images={n_planes}"));
        for (name, role) in [
            ("channels", ImageAxis::C),
            ("slices", ImageAxis::Z),
            ("frames", ImageAxis::T),
        ] {
            let n = image.len(role);
            if n > 1 {
                lines.push(format!("{name}={n}"));
            }
        }
        lines.push("hyperstack=true".to_owned());
        if image.samples() == 1 {
            lines.push(format!("mode={}", channels.mode()));
        }
    }
    lines.extend(calibration.lines());
    lines.extend(channels.lines());
    lines.push("loop=false".to_owned());
    lines.join("\n") + "\n"
}

/// The entries of the directory beside those of the plane.
struct Fields {
    description: String,
    /// Pixels per unit along x and y, as numerators and denominators.
    resolution: Option<[(u32, u32); 2]>,
    /// The lengths of the parts of the metadata of channels, and the metadata.
    channels: Option<(Vec<u32>, Vec<u8>)>,
}

/// The bytes before the planes; `None` if an offset does not fit 32 bits.
fn header(plane: [u64; 2], plane_bytes: u64, sample: Sample, fields: Fields) -> Option<Vec<u8>> {
    let pairs = u64::from(fields.resolution.is_some()) + u64::from(fields.channels.is_some());
    // Two entries are the description and the unit of the resolution.
    let n = sample.n_entries() + 2 + 2 * pairs;
    let mut outside = Outside::after(8 + 2 + 12 * n + 4);
    let mut description = fields.description.into_bytes();
    description.push(0);
    let description = (description.len() as u64, outside.put(&description));
    let strip = (0, plane_bytes);
    let mut entries = tiff::entries(plane, sample, description, strip);
    if let Some(rationals) = fields.resolution {
        let tags = [tag::X_RESOLUTION, tag::Y_RESOLUTION];
        for (tag, (numerator, denominator)) in tags.into_iter().zip(rationals) {
            let at = outside.put(&[numerator, denominator].map(u32::to_le_bytes).concat());
            entries.push(IfdEntry::one(tag, FieldType::Rational, at));
        }
    }
    // The unit of the resolution stands in the description.
    entries.push(IfdEntry::one(tag::RESOLUTION_UNIT, FieldType::Short, 1));
    if let Some((lengths, metadata)) = fields.channels {
        let bytes: Vec<u8> = lengths.iter().flat_map(|it| it.to_le_bytes()).collect();
        entries.push(IfdEntry {
            tag: tag::IMAGEJ_METADATA_LENGTHS,
            kind: FieldType::Long,
            count: lengths.len() as u64,
            value: outside.put(&bytes),
        });
        entries.push(IfdEntry {
            tag: tag::IMAGEJ_METADATA,
            kind: FieldType::Byte,
            count: metadata.len() as u64,
            value: outside.put(&metadata),
        });
    }
    entries.sort_by_key(|entry| entry.tag);
    // Short numbers for more than two samples have no room in their entry.
    let is_of_samples =
        |entry: &&mut IfdEntry| matches!(entry.kind, FieldType::Short) && entry.count > 2;
    for entry in entries.iter_mut().filter(is_of_samples) {
        entry.value = outside.put(&entry.value.to_le_bytes());
    }
    let payload = outside.end().next_multiple_of(ALIGNMENT);
    let mut strips = entries.iter_mut();
    strips.find(|entry| entry.tag == tag::STRIP_OFFSETS)?.value = payload;

    let mut bytes = b"II\x2a\0\x08\0\0\0".to_vec();
    bytes.extend(u16::try_from(entries.len()).ok()?.to_le_bytes());
    for entry in entries {
        bytes.extend(entry.classic()?);
    }
    bytes.extend([0; 4]);
    bytes.extend(outside.into_bytes());
    Some(bytes)
}

#[cfg(test)]
mod tests;
