//! `ImageJ`'s TIFF stack: one directory, and all planes behind the first.
//!
//! ```text
//! 0        "II", 42, offset 8
//! 8        13 entries, or 15 with a resolution; next directory 0
//! .        description, NUL
//! up(8)    the two resolutions
//! up(4096) planes: t slowest, then z, then c
//! ```
//!
//! `images=` in the description says how many planes there are, and that they follow each other
//! is what makes a file longer than the 4 GiB of classic TIFF: only the first has an offset.
//! Readers that know nothing of that see the first plane.
//! <https://imagej.net/ij/developer/source/ij/io/TiffDecoder.java.html>

mod calibration;

use super::image::{Image, Role};
use super::tiff::{self, Entry, Kind, tag};
use super::{Array, Elements, FileFormat, Layout, Transform};
use crate::dtype::{Element, FLOAT32, IntegerFormat};
use crate::error::FormatError;
use calibration::Calibration;

/// The longest plane and the most planes: `ImageJ` counts in signed 32 bits.
const MOST: u64 = i32::MAX as u64;
/// Where planes may begin.
const ALIGNMENT: u64 = 4096;

/// The file of `array`.
pub(super) fn layout(array: &Array) -> Result<Layout, FormatError> {
    let title = FileFormat::Tif.title();
    let refused = |place: &str, name: &str| Err(FormatError::inexpressible(place, name, title));
    let int16 = IntegerFormat::whole(2, true);
    let uint16 = IntegerFormat::whole(2, false);
    let uint8 = IntegerFormat::whole(1, false);
    let transform = match &array.data_type.element {
        Element::Bool => Transform::Bool,
        Element::Integer(format) if [int16, uint16, uint8].contains(format) => Transform::None,
        Element::Float(FLOAT32) => Transform::None,
        _ => return refused("data type", &array.data_type.name),
    };
    let Some(sample) = tiff::sample(&array.data_type) else {
        return refused("data type", &array.data_type.name);
    };
    let image = Image::of(array, title)?;
    let [ny, nx] = image.plane();
    let plane = ny
        .checked_mul(nx)
        .and_then(|n| n.checked_mul(array.data_type.item_size));
    let (Some(plane), Some(n_planes)) = (plane, image.n_planes()) else {
        return Err(too_large("the size of the array in bytes", &array.shape));
    };
    if plane > MOST {
        return Err(too_large("the size of a plane in bytes", &plane));
    }
    if n_planes > MOST {
        return Err(too_large("the number of planes", &n_planes));
    }
    let header = Header {
        nx,
        ny,
        plane,
        sample,
        calibration: Calibration::of(&image),
        description: description(&image, n_planes),
    };
    let mut builder = Layout::builder();
    match header.bytes() {
        Some(bytes) => builder.bytes(bytes),
        None => return refused("shape", "a header longer than 32 bits can say"),
    };
    builder.align(ALIGNMENT);
    let mut elements = Elements::all(array, transform)?;
    elements.order = image.order([Role::T, Role::Z, Role::C]);
    builder.elements(elements);
    builder.finish()
}

fn too_large(what: &'static str, found: &dyn std::fmt::Debug) -> FormatError {
    FormatError::TooLarge {
        what,
        found: format!("{found:?}"),
        limit: MOST,
    }
}

/// What `ImageJ` reads of the stack beside its planes.
fn description(image: &Image<'_>, n_planes: u64) -> String {
    let mut lines = vec!["ImageJ=1.54f".to_owned()];
    if n_planes > 1 {
        lines.push(format!("images={n_planes}"));
        let [channels, slices, frames] = [Role::C, Role::Z, Role::T].map(|role| image.len(role));
        for (name, n) in [
            ("channels", channels),
            ("slices", slices),
            ("frames", frames),
        ] {
            if n > 1 {
                lines.push(format!("{name}={n}"));
            }
        }
        lines.push("hyperstack=true".to_owned());
        lines.push("mode=grayscale".to_owned());
    }
    lines.extend(Calibration::of(image).lines());
    lines.push("loop=false".to_owned());
    lines.join("\n") + "\n"
}

/// All before the planes.
struct Header {
    nx: u64,
    ny: u64,
    plane: u64,
    sample: tiff::Sample,
    calibration: Calibration,
    description: String,
}

impl Header {
    /// `None` when 32 bits cannot say an offset.
    fn bytes(&self) -> Option<Vec<u8>> {
        let resolution = self.calibration.resolution();
        let n: u64 = if resolution.is_some() { 15 } else { 13 };
        let description_at = 8 + 2 + 12 * n + 4;
        let description_len = self.description.len() as u64 + 1;
        let resolution_at = (description_at + description_len).next_multiple_of(8);
        let end = match resolution {
            Some(_) => resolution_at + 16,
            None => description_at + description_len,
        };
        let short = |tag, value: u64| Entry::one(tag, Kind::Short, value);
        let long = |tag, value: u64| Entry::one(tag, Kind::Long, value);
        let mut entries = vec![
            long(tag::NEW_SUBFILE_TYPE, 0),
            long(tag::IMAGE_WIDTH, self.nx),
            long(tag::IMAGE_LENGTH, self.ny),
            short(tag::BITS_PER_SAMPLE, u64::from(self.sample.bits)),
            short(tag::COMPRESSION, 1),
            short(tag::PHOTOMETRIC, 1),
            Entry {
                tag: tag::IMAGE_DESCRIPTION,
                kind: Kind::Ascii,
                count: description_len,
                value: description_at,
            },
            long(tag::STRIP_OFFSETS, end.next_multiple_of(ALIGNMENT)),
            short(tag::SAMPLES_PER_PIXEL, 1),
            long(tag::ROWS_PER_STRIP, self.ny),
            long(tag::STRIP_BYTE_COUNTS, self.plane),
        ];
        if resolution.is_some() {
            entries.push(Entry::one(tag::X_RESOLUTION, Kind::Rational, resolution_at));
            entries.push(Entry::one(
                tag::Y_RESOLUTION,
                Kind::Rational,
                resolution_at + 8,
            ));
        }
        // The unit of the resolution is in the description.
        entries.push(short(tag::RESOLUTION_UNIT, 1));
        entries.push(short(tag::SAMPLE_FORMAT, u64::from(self.sample.format)));

        let mut bytes = b"II\x2a\0\x08\0\0\0".to_vec();
        bytes.extend(u16::try_from(entries.len()).ok()?.to_le_bytes());
        for entry in entries {
            bytes.extend(entry.classic()?);
        }
        bytes.extend([0; 4]);
        bytes.extend(self.description.as_bytes());
        bytes.push(0);
        if let Some(rationals) = resolution {
            bytes.resize(usize::try_from(resolution_at).ok()?, 0);
            for (numerator, denominator) in rationals {
                bytes.extend(numerator.to_le_bytes());
                bytes.extend(denominator.to_le_bytes());
            }
        }
        Some(bytes)
    }
}

#[cfg(test)]
mod tests;
