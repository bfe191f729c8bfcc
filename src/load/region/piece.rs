//! The wanted boxes of one chunk, and their places in the output.

use smallvec::SmallVec;

use super::copy::{self, CopyAxes, CopyAxis};
use super::space::{Bounds, Space, permuted};
use crate::error::Error;

/// A box of bytes of a decoded chunk, and the place of each byte in the output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Piece {
    /// Axes of the array, then the bytes of an element.
    pub(super) axes: SmallVec<[PieceAxis; 7]>,
    /// The offset of the first byte of the box in the output.
    pub(super) out: u64,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct PieceAxis {
    /// The start of the box in the chunk, in points.
    pub(super) start: u64,
    /// The length of the box, which is never 0.
    pub(super) length: u64,
    /// Bytes of the output from one point to the next.
    pub(super) out: u64,
}

impl Piece {
    /// The pieces of `len` bytes of `chunk` from `from` on, in the order of the chunk, which go to
    /// the beginning of the output.
    pub(crate) fn of_range(chunk: &Space, from: u64, len: u64) -> SmallVec<[Piece; 2]> {
        let boxes = chunk.boxes(from, from + len);
        let pieces = boxes.map(|bounds| {
            let axes = bounds.iter().zip(chunk.strides());
            let mut piece = Piece {
                axes: axes
                    .map(|(&(low, high), &out)| PieceAxis {
                        start: low,
                        length: high - low,
                        out,
                    })
                    .collect(),
                out: 0,
            };
            piece.out = piece.first(chunk) - from;
            piece
        });
        pieces.collect()
    }

    /// The same piece of a chunk whose axes are permuted, as [`Space::permuted`] does.
    pub(crate) fn permuted(&self, order: &[usize]) -> Option<Piece> {
        Some(Piece {
            axes: permuted(&self.axes, order)?,
            out: self.out,
        })
    }

    /// Bytes of the piece.
    pub(crate) fn len(&self) -> u64 {
        self.axes.iter().map(|axis| axis.length).product()
    }

    /// The offset of the first byte of the piece in `chunk`.
    fn first(&self, chunk: &Space) -> u64 {
        let axes = self.axes.iter().zip(chunk.strides());
        axes.map(|(axis, stride)| axis.start * stride).sum()
    }

    /// Copies the piece from `window`, which has the bytes of `chunk` from `window_start` on.
    /// `None` when not all of the piece lies in it; the output then has unspecified bytes.
    pub(crate) fn copy(
        &self,
        chunk: &Space,
        window: &[u8],
        window_start: u64,
        out: &mut [u8],
    ) -> Option<()> {
        let from = self.first(chunk).checked_sub(window_start)?;
        let axes = self.axes_to_copy(|k| chunk.strides()[k])?;
        let from = window.get(usize::try_from(from).ok()?..)?;
        let out = out.get_mut(usize::try_from(self.out).ok()?..)?;
        copy::copy(&axes, from, out)
    }

    /// The same piece for an output where it lies at `at` without gaps.
    pub(crate) fn packed(&self, at: u64) -> Piece {
        let mut packed = self.clone();
        packed.out = at;
        let mut stride = 1;
        for axis in packed.axes.iter_mut().rev() {
            axis.out = stride;
            stride *= axis.length;
        }
        packed
    }

    /// Copies the piece from `bytes`, where it lies as in `packed`, the result of
    /// [`packed`](Self::packed).
    pub(crate) fn unpack(&self, packed: &Piece, bytes: &[u8], out: &mut [u8]) -> Option<()> {
        let axes = self.axes_to_copy(|k| packed.axes[k].out)?;
        let from = usize::try_from(packed.out).ok()?;
        let to = usize::try_from(self.out).ok()?;
        copy::copy(&axes, bytes.get(from..)?, out.get_mut(to..)?)
    }

    /// Calls `fill` for each run of the piece in the output, with the offset within an element at
    /// which it begins. This is for chunks whose elements are all equal.
    pub(crate) fn fill(&self, out: &mut [u8], mut fill: impl FnMut(u64, &mut [u8])) -> Option<()> {
        // The runs are those of a copy from bytes that are laid out like the output.
        let axes = self.axes_to_copy(|k| self.axes[k].out)?;
        let phase = self.axes.last().map_or(0, |bytes| bytes.start);
        let out = out.get_mut(usize::try_from(self.out).ok()?..)?;
        copy::for_each_run(&axes, |_, to| {
            fill(phase, out.get_mut(to)?);
            Some(())
        })
    }

    fn axes_to_copy(&self, stride: impl Fn(usize) -> u64) -> Option<CopyAxes> {
        let axes = self.axes.iter().enumerate();
        axes.filter(|(_, axis)| axis.length > 1)
            .map(|(k, axis)| {
                Some(CopyAxis {
                    length: usize::try_from(axis.length).ok()?,
                    from: usize::try_from(stride(k)).ok()?,
                    to: usize::try_from(axis.out).ok()?,
                })
            })
            .collect()
    }

    /// Bytes that are contiguous in the chunk and in the output.
    pub(crate) fn run_len(&self, chunk: &Space) -> u64 {
        let axes = self.axes_to_copy(|k| chunk.strides()[k]);
        axes.and_then(|axes| copy::run_len(&axes))
            .map_or(0, |run| run as u64)
    }

    /// Calls `read` with each run of [`run_len`](Self::run_len) bytes: its offset in the chunk, and
    /// its part of the output.
    ///
    /// # Errors
    /// The errors of `read`; [`Error::Internal`] when the output is too short.
    pub(crate) fn for_each_run(
        &self,
        chunk: &Space,
        out: &mut [u8],
        mut read: impl FnMut(u64, &mut [u8]) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let outside = || Error::internal(format!("{self:?} outside of its output"));
        let first = self.first(chunk);
        let at = usize::try_from(self.out).ok();
        let out = at.and_then(|at| out.get_mut(at..)).ok_or_else(outside)?;
        let axes = self.axes_to_copy(|k| chunk.strides()[k]);
        let mut done = Ok(());
        let all = copy::for_each_run(&axes.ok_or_else(outside)?, |from, to| {
            done = read(first + from.start as u64, out.get_mut(to)?);
            done.is_ok().then_some(())
        });
        done?;
        all.ok_or_else(outside)
    }

    /// Calls `visit` with the first and one past the last byte of each run that is contiguous in
    /// the chunk, in the order of the chunk.
    ///
    /// # Errors
    /// [`Error::Internal`] when an offset does not fit `usize`.
    pub(crate) fn for_each_span(
        &self,
        chunk: &Space,
        mut visit: impl FnMut(u64, u64),
    ) -> Result<(), Error> {
        let first = self.first(chunk);
        // The runs are those of a copy to the same places.
        let axes = self.axes.iter().zip(chunk.strides());
        let spans: Option<CopyAxes> = axes
            .filter(|(axis, _)| axis.length > 1)
            .map(|(axis, &stride)| {
                let stride = usize::try_from(stride).ok()?;
                Some(CopyAxis {
                    length: usize::try_from(axis.length).ok()?,
                    from: stride,
                    to: stride,
                })
            })
            .collect();
        let visited = spans.and_then(|spans| {
            copy::for_each_run(&spans, |from, _| {
                visit(first + from.start as u64, first + from.end as u64);
                Some(())
            })
        });
        visited.ok_or_else(|| Error::internal(format!("{self:?} beyond the address space")))
    }

    /// The part of the piece that lies in `bounds`, a box of `chunk`; `None` when none does.
    pub(crate) fn within_box(&self, bounds: &Bounds) -> Option<Piece> {
        let mut part = self.clone();
        for (axis, &(low, high)) in part.axes.iter_mut().zip(bounds) {
            let start = axis.start.max(low);
            let end = (axis.start + axis.length).min(high);
            part.out += (start - axis.start) * axis.out;
            axis.length = end.checked_sub(start).filter(|&length| length > 0)?;
            axis.start = start;
        }
        Some(part)
    }
}
