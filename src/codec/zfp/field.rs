//! The array that a stream holds, and the places of its blocks.

use std::fmt;

use super::{FormatError, NAME};

/// The array that a stream holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Field {
    /// The number of dimensions, from 1 to 4.
    pub(super) dimensions: u32,
    /// The lengths of the dimensions in the reverse order of the chunk's shape, filled up with ones.
    pub(super) lengths: [usize; 4],
}

impl Field {
    /// The field of a chunk of this shape. A chunk of no dimension is one number in one dimension.
    ///
    /// # Errors
    /// More than four dimensions.
    pub(super) fn of(shape: &[u64]) -> Result<Field, FormatError> {
        let mut lengths = [1; 4];
        for (i, &length) in shape.iter().rev().enumerate() {
            let Some(place) = lengths.get_mut(i) else {
                let name = format!("{NAME} of {} dimensions, more than four", shape.len());
                return Err(FormatError::unsupported("", "codec", name));
            };
            *place = usize::try_from(length).unwrap_or(usize::MAX);
        }
        let dimensions = u32::try_from(shape.len()).unwrap_or(4).max(1);
        Ok(Field {
            dimensions,
            lengths,
        })
    }

    pub(super) fn lengths(&self) -> &[usize] {
        self.lengths
            .get(..self.dimensions as usize)
            .unwrap_or_default()
    }

    pub(super) fn count(self) -> Option<usize> {
        self.lengths
            .iter()
            .try_fold(1_usize, |count, &length| count.checked_mul(length))
    }

    pub(super) fn blocks(self) -> u64 {
        let blocks = self.lengths.iter().map(|length| length.div_ceil(4) as u64);
        blocks.fold(1, u64::saturating_mul)
    }

    /// The indices of the first element of each block, in the order in which blocks are stored.
    pub(super) fn block_starts(self) -> impl Iterator<Item = [usize; 4]> {
        let [nx, ny, nz, nw] = self.lengths;
        let starts = |length| (0..length).step_by(4);
        starts(nw).flat_map(move |w| {
            starts(nz).flat_map(move |z| {
                starts(ny).flat_map(move |y| starts(nx).map(move |x| [x, y, z, w]))
            })
        })
    }

    /// The first element of the block at `begin`; `None` if the array lacks one of the block's `N` elements.
    #[inline]
    pub(super) fn whole_block<const N: usize>(self, begin: [usize; 4]) -> Option<usize> {
        let dimensions = N.trailing_zeros() as usize / 2;
        let mut ends = begin.iter().zip(self.lengths).take(dimensions);
        let [x, y, z, w] = begin;
        let [nx, ny, nz, _] = self.lengths;
        let is_whole = ends.all(|(begin, length)| length - begin >= 4);
        is_whole.then(|| ((w * nz + z) * ny + y) * nx + x)
    }

    /// The number of elements from the first one of a block to the first one of each row of the block.
    pub(super) fn row_offsets<const N: usize>(self) -> [usize; 64] {
        let [nx, ny, nz, _] = self.lengths;
        let mut offsets = [0; 64];
        for (row, offset) in offsets.iter_mut().enumerate().take(N / 4) {
            *offset = ((row / 16 * nz + row / 4 % 4) * ny + row % 4) * nx;
        }
        offsets
    }

    /// The first element of a row of a block, and how many of its four elements the array has;
    /// `None` when it has none.
    #[inline]
    pub(super) fn row(self, [x, y, z, w]: [usize; 4], row: usize) -> Option<(usize, usize)> {
        let [nx, ny, nz, nw] = self.lengths;
        let (y, z, w) = (y + row % 4, z + row / 4 % 4, w + row / 16);
        let first = ((w * nz + z) * ny + y) * nx + x;
        (y < ny && z < nz && w < nw).then(|| (first, (nx - x).min(4)))
    }

    /// The first element of the row that stands at `row` of an encoded block, and how many of its four
    /// elements the array has. Beyond the last row of the array, other rows are [repeated].
    #[inline]
    pub(super) fn repeated_row(self, [x, y, z, w]: [usize; 4], row: usize) -> (usize, usize) {
        let [nx, ny, nz, nw] = self.lengths;
        let y = y + repeated(row % 4, ny - y);
        let z = z + repeated(row / 4 % 4, nz - z);
        let w = w + repeated(row / 16, nw - w);
        (((w * nz + z) * ny + y) * nx + x, (nx - x).min(4))
    }
}

/// The place of the element that stands at `place` of a line of four. If the array has only the first `own` ones, the
/// line is `a a a a`, `a b b a` or `a b c a`.
#[inline]
pub(super) fn repeated(place: usize, own: usize) -> usize {
    match (place, own) {
        (place, own) if place < own => place,
        (2, 2) => 1,
        _ => 0,
    }
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lengths: Vec<usize> = self.lengths().iter().rev().copied().collect();
        write!(f, "shape {lengths:?}")
    }
}

/// A type of numbers that zfp has blocks of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum NumberType {
    Int32,
    Int64,
    Float32,
    Float64,
}

impl NumberType {
    /// The number of the type in a header.
    pub(super) fn code(self) -> u64 {
        match self {
            NumberType::Int32 => 0,
            NumberType::Int64 => 1,
            NumberType::Float32 => 2,
            NumberType::Float64 => 3,
        }
    }

    pub(super) fn of_code(code: u64) -> NumberType {
        match code {
            0 => NumberType::Int32,
            1 => NumberType::Int64,
            2 => NumberType::Float32,
            _ => NumberType::Float64,
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            NumberType::Int32 => "int32",
            NumberType::Int64 => "int64",
            NumberType::Float32 => "float32",
            NumberType::Float64 => "float64",
        }
    }

    pub(super) fn bits(self) -> u32 {
        match self {
            NumberType::Int32 | NumberType::Float32 => 32,
            NumberType::Int64 | NumberType::Float64 => 64,
        }
    }

    /// The most bits of a block that are before its bit planes.
    pub(super) fn header_bits(self, is_reversible: bool) -> u32 {
        match (self, is_reversible) {
            (NumberType::Int32 | NumberType::Int64, false) => 0,
            (NumberType::Float32, false) => 1 + 8,
            (NumberType::Float64, false) => 1 + 11,
            (NumberType::Int32, true) => 5,
            (NumberType::Int64, true) => 6,
            (NumberType::Float32, true) => 2 + 8 + 5,
            (NumberType::Float64, true) => 2 + 11 + 6,
        }
    }
}
