//! Tiled `BigTIFF`: an image and smaller copies of it, its levels, each in tiles.
//!
//! There are two arrangements. In both, all directories are in front of all tiles.
//!
//! ```text
//! pyramid   a directory for each plane, which points to the directories of its levels (SubIFDs);
//!           then the tiles of the image, and of each level after it
//! cog       the ghost area; one directory for the image, with its planes as bands (PlanarConfiguration 2),
//!           which is followed by one for each level; then the tiles of the smallest level first
//! ```
//!
//! <https://docs.openmicroscopy.org/ome-model/6.3.1/ome-tiff/specification.html#sub-resolutions>,
//! <https://gdal.org/en/stable/drivers/raster/cog.html>

use super::Array;
use super::bigtiff::{ALIGNMENT, Directories, Linking};
use super::layout::{Layout, Tiles};
use super::tiff::{self, Field, FieldType, FieldValues, Pieces, Sample, tag};
use crate::error::FormatError;

/// TIFF wants tiles whose sides are multiples of this.
const TILE_UNIT: u64 = 16;
/// The most bytes of a tile that is a chunk, because programs hold tiles in memory.
const MOST_TILE_BYTES: u64 = 16 << 20;
/// The sides of a tile where chunks do not suit.
const USUAL_TILE: [u64; 2] = [256, 256];

/// Readers of a COG look for these lines behind the header. The blank at the end leaves room for `YES`,
/// which a program writes when it changes the file.
const GHOST: &str =
    "LAYOUT=IFDS_BEFORE_DATA\nBLOCK_ORDER=ROW_MAJOR\nKNOWN_INCOMPATIBLE_EDITION=NO\n ";

/// An image, or a smaller copy of one.
pub(super) struct Level {
    /// The elements. Each level is an array of its own, which has its own [`Array::id`].
    pub(super) tiles: Tiles,
    /// The type of the samples. Those of a COG are made planar.
    pub(super) sample: Sample,
    /// Fields of each directory of the level, beside those that TIFF requires.
    pub(super) fields: Vec<Field>,
}

/// The arrangement of planes, levels and directories.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Arrangement {
    /// A directory for each plane, with its levels as `SubIFDs`.
    Pyramid,
    /// One directory, with the planes as bands and the levels as overviews.
    Cog,
}

/// The height and width of the tiles of `array`, whose axes y and x are `plane`: those of its chunks, if
/// TIFF has such tiles, and they are not very large.
pub(super) fn tile_shape(array: &Array, plane: [usize; 2]) -> [u64; 2] {
    let side = |axis: usize| array.chunk.as_ref()?.get(axis).copied();
    let [Some(height), Some(width)] = plane.map(side) else {
        return USUAL_TILE;
    };
    let fits = |side: u64| side.is_multiple_of(TILE_UNIT) && side > 0;
    let bytes = height.checked_mul(width);
    let bytes = bytes.and_then(|n| n.checked_mul(array.data_type.item_size));
    let is_small = bytes.is_some_and(|bytes| bytes <= MOST_TILE_BYTES);
    if fits(height) && fits(width) && is_small {
        [height, width]
    } else {
        USUAL_TILE
    }
}

/// The file of an image, which is the first of `levels`; the others have the same planes, and get smaller.
/// The first directory also has the fields `own`.
///
/// # Errors
///
/// When levels have different numbers of planes, when a COG has more bands than TIFF, or when the file
/// exceeds the greatest file offset.
pub(super) fn file(
    levels: Vec<Level>,
    arrangement: Arrangement,
    own: &[Field],
) -> Result<Layout, FormatError> {
    let n_planes = levels.first().map_or(0, |image| image.tiles.n_planes());
    if n_planes == 0
        || levels
            .iter()
            .any(|level| level.tiles.n_planes() != n_planes)
    {
        let problem = "levels with different numbers of planes";
        return Err(FormatError::document("levels", problem));
    }
    let starts = starts(&levels, arrangement);
    let fields = levels.iter().zip(&starts).enumerate();
    let mut fields = fields
        .map(|(number, (level, &start))| level.all_fields(number, start, arrangement))
        .collect::<Result<Vec<_>, _>>()?;
    let directories = match arrangement {
        Arrangement::Pyramid => {
            if levels.len() > 1
                && let Some(image) = fields.first_mut()
            {
                let levels = Field::of(tag::SUB_IFDS, FieldType::Ifd8, FieldValues::Levels);
                image.push(levels);
            }
            Directories::new(Vec::new(), &fields, own, n_planes, Linking::ByField)?
        }
        Arrangement::Cog => {
            let size = GHOST.len();
            let ghost = format!("GDAL_STRUCTURAL_METADATA_SIZE={size:06} bytes\n{GHOST}");
            Directories::new(ghost.into_bytes(), &fields, own, 1, Linking::InChain)?
        }
    };
    let payload = directories.payload();
    let mut builder = Layout::builder();
    builder.computed(directories);
    let mut parts: Vec<_> = levels.into_iter().zip(starts).collect();
    parts.sort_by_key(|(_, start)| *start);
    for (level, start) in parts {
        builder
            .seek(payload.saturating_add(start))
            .tiles(level.tiles);
    }
    builder.finish()
}

/// Offset of the first tile of each level, counted from that of all.
fn starts(levels: &[Level], arrangement: Arrangement) -> Vec<u64> {
    let mut at = 0_u64;
    let place = |level: &Level| {
        let start = at;
        // `LayoutBuilder::finish` refuses a file in which this does not fit.
        let end = at.saturating_add(level.tiles.len());
        at = end.checked_next_multiple_of(ALIGNMENT).unwrap_or(end);
        start
    };
    match arrangement {
        Arrangement::Pyramid => levels.iter().map(place).collect(),
        Arrangement::Cog => {
            let mut starts: Vec<u64> = levels.iter().rev().map(place).collect();
            starts.reverse();
            starts
        }
    }
}

impl Level {
    /// The fields of each directory of the level, which is level `number`, and whose tiles begin at `start`.
    fn all_fields(
        &self,
        number: usize,
        start: u64,
        arrangement: Arrangement,
    ) -> Result<Vec<Field>, FormatError> {
        let (mut sample, mut count) = (self.sample, self.tiles.tiles_of_plane());
        if arrangement == Arrangement::Cog && self.tiles.n_planes() > 1 {
            let bands = self.tiles.n_planes();
            FormatError::check_limit("the number of bands", bands, u16::MAX.into())?;
            sample.per_pixel = u16::try_from(bands).unwrap_or(u16::MAX);
            sample.is_planar = true;
            // The tiles have a size that fits 64 bits, each of one byte or more.
            count *= bands;
        }
        let [height, width] = self.tiles.plane();
        for (what, side) in [
            ("the height of a plane", height),
            ("the width of a plane", width),
        ] {
            FormatError::check_limit(what, side, i32::MAX.unsigned_abs().into())?;
        }
        let pieces = Pieces {
            start,
            bytes: self.tiles.tile_bytes(),
            count,
        };
        let sizes = FieldValues::Repeated {
            value: pieces.bytes,
            count,
        };
        let [tile_height, tile_width] = self.tiles.tile();
        let mut fields = tiff::image_fields([height, width], sample, u64::from(number > 0));
        fields.extend([
            Field::long(tag::TILE_WIDTH, tile_width),
            Field::long(tag::TILE_LENGTH, tile_height),
            Field::of(
                tag::TILE_OFFSETS,
                FieldType::Long8,
                FieldValues::Pieces(pieces),
            ),
            Field::of(tag::TILE_BYTE_COUNTS, FieldType::Long, sizes),
        ]);
        fields.extend_from_slice(&self.fields);
        Ok(fields)
    }
}

#[cfg(test)]
mod tests;
