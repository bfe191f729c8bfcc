//! Copies boxes between buffers with different strides, in runs that are as long as possible.
//!
//! Axes of length 1 are left out, and neighbouring axes are joined where both sides are contiguous.
//! Bytes that are contiguous on both sides are one run. Runs of the size of a number are copied in
//! squares over the innermost axes of the two sides, so that both sides stay in the processor's
//! cache.

use std::ops::Range;

use smallvec::SmallVec;

/// One axis of a box. Strides are in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CopyAxis {
    pub(super) length: usize,
    pub(super) from: usize,
    pub(super) to: usize,
}

pub(super) type CopyAxes = SmallVec<[CopyAxis; 7]>;

/// Copies a box that begins with the first byte on both sides. `None` when it passes the end of one side; `to` then has
/// unspecified bytes.
pub(super) fn copy(axes: &[CopyAxis], from: &[u8], to: &mut [u8]) -> Option<()> {
    let (axes, run) = fold(axes)?;
    let fits = end(&axes, run, |axis| axis.from)? <= from.len()
        && end(&axes, run, |axis| axis.to)? <= to.len();
    fits.then_some(())?;
    match run {
        1 => copy_squares::<1>(&axes, from, to),
        2 => copy_squares::<2>(&axes, from, to),
        4 => copy_squares::<4>(&axes, from, to),
        8 => copy_squares::<8>(&axes, from, to),
        16 => copy_squares::<16>(&axes, from, to),
        _ => walk(&axes, |at_from, at_to| {
            let from = from.get(at_from..at_from.checked_add(run)?)?;
            to.get_mut(at_to..at_to.checked_add(run)?)?
                .copy_from_slice(from);
            Some(())
        }),
    }
}

/// Bytes that are contiguous on both sides.
pub(super) fn run_len(axes: &[CopyAxis]) -> Option<usize> {
    fold(axes).map(|(_, run)| run)
}

/// Calls `visit` with each run that is contiguous on both sides: its range in the source and in the
/// target, in the order of the target. `None` when `visit` returns `None`.
pub(super) fn for_each_run(
    axes: &[CopyAxis],
    mut visit: impl FnMut(Range<usize>, Range<usize>) -> Option<()>,
) -> Option<()> {
    let (axes, run) = fold(axes)?;
    walk(&axes, |from, to| {
        visit(from..from.checked_add(run)?, to..to.checked_add(run)?)
    })
}

/// Joins axes and sorts them by the target, the slowest first. Returns them with the length of a
/// run.
fn fold(axes: &[CopyAxis]) -> Option<(CopyAxes, usize)> {
    let mut sorted: CopyAxes = axes.into();
    sorted.sort_unstable_by_key(|axis| std::cmp::Reverse(axis.to));
    let mut folded = CopyAxes::new();
    for axis in sorted {
        let (from, to) = (
            axis.from.checked_mul(axis.length)?,
            axis.to.checked_mul(axis.length)?,
        );
        match folded.last_mut() {
            Some(last) if (last.from, last.to) == (from, to) => {
                last.length = last.length.checked_mul(axis.length)?;
                (last.from, last.to) = (axis.from, axis.to);
            }
            _ => folded.push(axis),
        }
    }
    let run = match folded.last() {
        Some(&CopyAxis {
            length,
            from: 1,
            to: 1,
        }) => {
            folded.pop();
            length
        }
        _ => 1,
    };
    Some((folded, run))
}

/// One past the last byte on one side.
fn end(axes: &[CopyAxis], run: usize, stride: impl Fn(&CopyAxis) -> usize) -> Option<usize> {
    axes.iter().try_fold(run, |end, axis| {
        (axis.length - 1)
            .checked_mul(stride(axis))?
            .checked_add(end)
    })
}

/// Calls `visit` with the positions of all points, the last axis fastest.
fn walk(axes: &[CopyAxis], mut visit: impl FnMut(usize, usize) -> Option<()>) -> Option<()> {
    let mut indices: SmallVec<[usize; 7]> = SmallVec::from_elem(0, axes.len());
    let (mut from, mut to) = (0_usize, 0_usize);
    loop {
        visit(from, to)?;
        let mut turns = indices.iter_mut().zip(axes).rev();
        loop {
            let Some((i, along)) = turns.next() else {
                return Some(());
            };
            *i += 1;
            if *i < along.length {
                from = from.checked_add(along.from)?;
                to = to.checked_add(along.to)?;
                break;
            }
            *i = 0;
            from -= along.from * (along.length - 1);
            to -= along.to * (along.length - 1);
        }
    }
}

/// Copies runs of `N` bytes, square by square over the two axes that are innermost on either
/// side.
fn copy_squares<const N: usize>(axes: &[CopyAxis], from: &[u8], to: &mut [u8]) -> Option<()> {
    const SIDE: usize = 32;
    let mut outer: CopyAxes = axes.into();
    let single = CopyAxis {
        length: 1,
        from: N,
        to: N,
    };
    let columns = outer.pop().unwrap_or(single);
    let innermost = (0..outer.len()).min_by_key(|&axis| outer[axis].from);
    let rows = innermost.map_or(single, |axis| outer.remove(axis));
    walk(&outer, |at_from, at_to| {
        for first_row in (0..rows.length).step_by(SIDE) {
            for first_column in (0..columns.length).step_by(SIDE) {
                let width = SIDE.min(columns.length - first_column);
                for row in first_row..rows.length.min(first_row + SIDE) {
                    let at_from = at_from + row * rows.from + first_column * columns.from;
                    let at_to = at_to + row * rows.to + first_column * columns.to;
                    let from = from.get(at_from..)?.chunks(columns.from).take(width);
                    let to = to.get_mut(at_to..)?;
                    if columns.to == N {
                        // This is the same as below in half the time, for the axis that is most
                        // often the fastest one of the file.
                        for (to, from) in to.as_chunks_mut::<N>().0.iter_mut().zip(from) {
                            *to = *from.first_chunk()?;
                        }
                        continue;
                    }
                    for (to, from) in to.chunks_mut(columns.to).zip(from) {
                        *to.first_chunk_mut::<N>()? = *from.first_chunk()?;
                    }
                }
            }
        }
        Some(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn axes(axes: &[(usize, usize, usize)]) -> CopyAxes {
        let axes = axes.iter();
        axes.map(|&(length, from, to)| CopyAxis { length, from, to })
            .collect()
    }

    #[test]
    fn bytes_without_a_gap_are_one_run() {
        for (given, folded, run) in [
            (&[(3, 8, 8), (2, 4, 4), (4, 1, 1)][..], &[][..], 24),
            (&[(3, 100, 8), (2, 4, 4), (4, 1, 1)], &[(3, 100, 8)], 8),
            (
                &[(2, 4, 12), (3, 8, 4), (4, 1, 1)],
                &[(2, 4, 12), (3, 8, 4)],
                4,
            ),
            (&[(4, 1, 1), (3, 8, 4)], &[(3, 8, 4)], 4),
            (&[(3, 2, 1)], &[(3, 2, 1)], 1),
            (&[], &[], 1),
        ] {
            assert_eq!(fold(&axes(given)), Some((axes(folded), run)), "{given:?}");
        }
    }

    #[test]
    fn boxes_past_an_end_are_refused() {
        let from = [1; 24];
        for given in [&[(4, 8, 4), (4, 1, 1)][..], &[(25, 1, 1)], &[(9, 3, 1)]] {
            assert_eq!(copy(&axes(given), &from, &mut [0; 100]), None, "{given:?}");
        }
        assert_eq!(copy(&axes(&[(4, 1, 3)]), &from, &mut [0; 9]), None);
        let mut out = [0; 3];
        assert_eq!(copy(&axes(&[(3, 8, 1)]), &from, &mut out), Some(()));
        assert_eq!(out, [1; 3]);
    }
}
