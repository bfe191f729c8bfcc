//! `ImageJ`'s TIFF stack: one directory, and all planes one after the other.
//!
//! ```text
//! 0        "II", 42, offset 8
//! 8        13 entries, 2 more with a resolution, 1 or 2 more for 3 or 4 samples a pixel; next directory 0
//! .        description, NUL
//! up(8)    the two resolutions; bits and formats of several samples
//! up(4096) planes: t slowest, then z, then c
//! ```
//!
//! Only the first plane has an offset. `images=` in the description tells the number of planes,
//! which follow each other without gaps, so the file may exceed the 4 GiB of classic TIFF. Readers
//! that do not know `images=` see the first plane.
//! <https://imagej.net/ij/developer/source/ij/io/TiffDecoder.java.html>

mod calibration;

use super::image::{Image, ImageAxis};
use super::number::Scalar;
use super::tiff::{self, FieldType, IfdEntry, Sample, tag};
use super::{Array, Elements, FileFormat, Layout};
use crate::error::FormatError;
use crate::grid::product;
use calibration::Calibration;

/// The longest plane in bytes, and the most planes: `ImageJ` uses signed 32-bit integers.
const MOST: u64 = i32::MAX as u64;
/// The alignment of the first plane.
const ALIGNMENT: u64 = 4096;
/// Room for a short number of each of four samples.
const SAMPLES_BYTES: u64 = 8;

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
    let description = description(&image, n_planes, &calibration);
    let resolution = calibration.resolution();
    let header = header(plane, plane_bytes, sample, &description, resolution)
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

/// The description, which tells `ImageJ` the dimensions of the stack and its calibration.
fn description(image: &Image<'_>, n_planes: u64, calibration: &Calibration) -> String {
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
            lines.push("mode=grayscale".to_owned());
        }
    }
    lines.extend(calibration.lines());
    lines.push("loop=false".to_owned());
    lines.join("\n") + "\n"
}

/// The bytes before the planes; `None` if an offset does not fit 32 bits.
fn header(
    plane: [u64; 2],
    plane_bytes: u64,
    sample: Sample,
    description: &str,
    resolution: Option<[(u32, u32); 2]>,
) -> Option<Vec<u8>> {
    // Two entries are the description and the unit of the resolution.
    let n = sample.n_entries() + 2 + if resolution.is_some() { 2 } else { 0 };
    let description_at = 8 + 2 + 12 * n + 4;
    let description_len = description.len() as u64 + 1;
    let resolution_at = (description_at + description_len).next_multiple_of(8);
    let samples_at = resolution_at + if resolution.is_some() { 16 } else { 0 };
    let end = if sample.per_pixel > 1 {
        samples_at + 2 * SAMPLES_BYTES
    } else if resolution.is_some() {
        samples_at
    } else {
        description_at + description_len
    };
    let strip = (end.next_multiple_of(ALIGNMENT), plane_bytes);
    let description_field = Some((description_len, description_at));
    let mut entries = tiff::entries(plane, sample, description_field, strip, FieldType::Long);
    if resolution.is_some() {
        let rational = |tag, at| IfdEntry::one(tag, FieldType::Rational, at);
        entries.push(rational(tag::X_RESOLUTION, resolution_at));
        entries.push(rational(tag::Y_RESOLUTION, resolution_at + 8));
    }
    // The unit of the resolution stands in the description.
    entries.push(IfdEntry::one(tag::RESOLUTION_UNIT, FieldType::Short, 1));
    entries.sort_by_key(|entry| entry.tag);
    // Numbers for more than two samples have no room in their entry.
    let mut samples = Vec::new();
    for entry in entries.iter_mut().filter(|entry| entry.count > 2) {
        if let FieldType::Short = entry.kind {
            let at = samples_at + SAMPLES_BYTES * samples.len() as u64;
            samples.push(std::mem::replace(&mut entry.value, at).to_le_bytes());
        }
    }

    let mut bytes = b"II\x2a\0\x08\0\0\0".to_vec();
    bytes.extend(u16::try_from(entries.len()).ok()?.to_le_bytes());
    for entry in entries {
        bytes.extend(entry.classic()?);
    }
    bytes.extend([0; 4]);
    bytes.extend(description.as_bytes());
    bytes.push(0);
    if let Some(rationals) = resolution {
        bytes.resize(usize::try_from(resolution_at).ok()?, 0);
        for (numerator, denominator) in rationals {
            bytes.extend(numerator.to_le_bytes());
            bytes.extend(denominator.to_le_bytes());
        }
    }
    if !samples.is_empty() {
        bytes.resize(usize::try_from(samples_at).ok()?, 0);
        bytes.extend(samples.concat());
    }
    Some(bytes)
}

#[cfg(test)]
mod tests;
