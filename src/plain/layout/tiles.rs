//! The elements of an array in tiles: rectangles of its planes, each in one piece.
//!
//! ```text
//! a plane of 5 x 7 in tiles of 4 x 4, one byte an element: 4 tiles of 16 bytes
//!
//!        0  1  2  3 | 4  5  6  .
//!   0    a  a  a  a | b  b  b  0       file:  a a a a  a a a a  a a a a  a a a a
//!   1    a  a  a  a | b  b  b  0              b b b 0  b b b 0  b b b 0  b b b 0
//!   2    a  a  a  a | b  b  b  0              c c c c  0 0 0 0  0 0 0 0  0 0 0 0
//!   3    a  a  a  a | b  b  b  0              d d d 0  0 0 0 0  0 0 0 0  0 0 0 0
//!       ------------+------------
//!   4    c  c  c  c | d  d  d  0       elements outside of the array are zeros
//! ```
//!
//! The tiles of a plane follow each other in row-major order, and so do the planes.

use super::{AxisOrder, ElementBox, Elements, Slabs};
use crate::error::FormatError;
use crate::grid::{Dims, product};
use crate::plain::array::Array;
use crate::plain::file_too_large;
use crate::plain::transform::Transform;

/// All elements of an array in tiles. There are at least one tile and one byte.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tiles {
    /// The array, by its [`Array::id`].
    pub array: usize,
    /// The transform from decoded elements to the bytes of the file.
    pub transform: Transform,
    axes: TileAxes,
    /// Height and width of a tile in elements.
    tile: [u64; 2],
    /// The lengths of the axes of the array.
    shape: Dims,
    /// Bytes of an element in the file.
    item_bytes: u64,
    tile_bytes: u64,
    /// The number of tiles below each other and beside each other in a plane.
    grid: [u64; 2],
    n_planes: u64,
}

/// The axes of an array in the order of a file in tiles, slowest first: those in front of the planes,
/// y, x, and an axis of samples that follow each other in a pixel, if the array has one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TileAxes {
    /// Each axis of the array once.
    pub order: AxisOrder,
    /// The number of axes in front of the planes.
    pub outer: usize,
}

impl Tiles {
    /// The elements of `array` in tiles that have the height and width `tile`.
    ///
    /// # Errors
    ///
    /// When the array has no planes or no elements, and when a tile exceeds 32 bits or the file exceeds
    /// the greatest file offset.
    pub(in crate::plain) fn new(
        array: &Array,
        axes: TileAxes,
        tile: [u64; 2],
    ) -> Result<Tiles, FormatError> {
        let shape = array.shape.clone();
        let length = |k: usize| axes.order.get(k).and_then(|&axis| shape.get(axis)).copied();
        let [y, x] = [axes.outer, axes.outer + 1].map(length);
        let (Some(y), Some(x)) = (y, x) else {
            return Err(array.without_planes());
        };
        if shape.contains(&0) || tile.contains(&0) || axes.order.len() != shape.len() {
            return Err(array.without_planes());
        }
        let all = |range: std::ops::Range<usize>| {
            let lengths: Option<Dims> = range.map(length).collect();
            product(&lengths?)
        };
        let item_bytes = array.data_type.item_size;
        let grid = [y.div_ceil(tile[0]), x.div_ceil(tile[1])];
        let pixel_bytes = all(axes.outer + 2..shape.len()).and_then(|n| n.checked_mul(item_bytes));
        let tile_bytes = pixel_bytes.and_then(|pixel| product(&[tile[0], tile[1], pixel]));
        let n_planes = all(0..axes.outer);
        let (Some(tile_bytes), Some(n_planes)) = (tile_bytes, n_planes) else {
            return Err(file_too_large());
        };
        FormatError::check_limit("the size of a tile in bytes", tile_bytes, u32::MAX.into())?;
        product(&[n_planes, grid[0], grid[1], tile_bytes])
            .filter(|&len| len > 0 && i64::try_from(len).is_ok())
            .ok_or_else(file_too_large)?;
        Ok(Tiles {
            array: array.id,
            transform: Transform::None,
            axes,
            tile,
            shape,
            item_bytes,
            tile_bytes,
            grid,
            n_planes,
        })
    }

    /// The same tiles with elements that are transformed.
    #[must_use]
    pub(in crate::plain) fn transformed(self, transform: Transform) -> Tiles {
        Tiles { transform, ..self }
    }

    /// The array axes in the order of the axes of the file, slowest first.
    pub fn order(&self) -> &AxisOrder {
        &self.axes.order
    }

    /// The height and the width of a plane.
    pub(in crate::plain) fn plane(&self) -> [u64; 2] {
        [0, 1].map(|k| self.shape[self.axes.order[self.axes.outer + k]])
    }

    /// The height and the width of a tile.
    pub(in crate::plain) fn tile(&self) -> [u64; 2] {
        self.tile
    }

    /// The number of planes.
    pub(in crate::plain) fn n_planes(&self) -> u64 {
        self.n_planes
    }

    /// The number of tiles of a plane.
    pub(in crate::plain) fn tiles_of_plane(&self) -> u64 {
        self.grid[0] * self.grid[1]
    }

    /// The size of each tile in bytes.
    pub fn tile_bytes(&self) -> u64 {
        self.tile_bytes
    }

    /// The size of all tiles in bytes.
    #[expect(clippy::len_without_is_empty, reason = "there is at least one byte")]
    pub fn len(&self) -> u64 {
        self.n_planes * self.tiles_of_plane() * self.tile_bytes
    }

    /// The lengths of a tile along the axes of the file.
    pub fn lengths(&self) -> Dims {
        let in_plane = |k: usize| k.checked_sub(self.axes.outer);
        let lengths = self.axes.order.iter().enumerate();
        let lengths = lengths.map(|(k, &axis)| match in_plane(k) {
            None => 1,
            Some(k) => *self.tile.get(k).unwrap_or(&self.shape[axis]),
        });
        lengths.collect()
    }

    /// The bytes of decoded elements, and of zeros outside of the array, that `n` bytes of the file are made
    /// of. They differ where numbers become narrower.
    pub(super) fn source_bytes(&self, n: u64) -> u64 {
        let (unit, source) = (self.transform.unit(), self.transform.source_unit());
        // A file offset, times 8 at most; it only shows in which order reads come.
        (n / unit as u64).saturating_mul(source as u64)
    }

    /// The elements of tile `number`. They begin where the tile begins.
    pub(super) fn elements(&self, number: u64) -> Elements {
        let in_plane = number % self.tiles_of_plane();
        let corner = [in_plane / self.grid[1], in_plane % self.grid[1]];
        let mut bounds = ElementBox {
            start: self.shape.iter().map(|_| 0).collect(),
            shape: self.shape.clone(),
        };
        let mut plane = number / self.tiles_of_plane();
        let (outer, plane_axes) = self.axes.order.split_at(self.axes.outer);
        for &axis in outer.iter().rev() {
            bounds.start[axis] = plane % self.shape[axis];
            bounds.shape[axis] = 1;
            plane /= self.shape[axis];
        }
        for ((&axis, length), index) in plane_axes.iter().zip(self.tile).zip(corner) {
            bounds.start[axis] = index * length;
            bounds.shape[axis] = length.min(self.shape[axis] - index * length);
        }
        let pixel_bytes = self.tile_bytes / (self.tile[0] * self.tile[1]);
        let [height, width] = [0, 1].map(|k| bounds.shape[plane_axes[k]]);
        let row = width * pixel_bytes;
        let slabs = Slabs {
            len: row,
            stride: self.tile[1] * pixel_bytes,
        };
        Elements {
            array: self.array,
            order: self.axes.order.clone(),
            bounds: Some(Box::new(bounds)),
            skip: 0,
            len: height * row,
            transform: self.transform.clone(),
            slabs: (width < self.tile[1]).then_some(slabs),
        }
    }
}
