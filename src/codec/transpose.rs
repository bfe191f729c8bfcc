//! The `transpose` codec: the axes of a chunk in another order.
//!
//! Spec: <https://zarr-specs.readthedocs.io/en/latest/v3/codecs/transpose/index.html>. Names:
//! v3 `transpose`; v2 and v1 `"order": "F"`, which is the reversal.
//!
//! ```json
//! { "name": "transpose", "configuration": { "order": [1, 0] } }
//! ```
//!
//! Encoded axis i is decoded axis `order[i]`: a decoded 2 x 3 becomes, with `[1, 0]`, 3 x 2.
//!
//! ```text
//! decoded  a b c      encoded  a d      in bytes  a d b e c f
//!          d e f               b e
//!                              c f
//! ```
//!
//! Decoding drops axes of length 1, joins axes that stay adjacent, and takes unchanged inner axes
//! as one run. The remaining axes are copied in squares, so that both sides stay in the cache.

use super::strided::{StridedAxes, StridedAxis, c_strides, walk};
use crate::{
    error::FormatError,
    grid::{self, Dims},
};

/// A permutation of axes.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Transpose {
    order: Vec<usize>,
}

impl Transpose {
    /// The codec with the configured `order`, for arrays of `rank`.
    ///
    /// # Errors
    /// `order` is no permutation of `0..rank`.
    pub fn new(order: &[u64], rank: usize) -> Result<Transpose, FormatError> {
        let mut seen = vec![false; rank];
        let axes = order.iter().map(|&axis| {
            let axis = usize::try_from(axis).ok()?;
            let seen = seen.get_mut(axis)?;
            (!std::mem::replace(seen, true)).then_some(axis)
        });
        let axes: Option<Vec<usize>> = axes.collect();
        match axes {
            Some(order) if order.len() == rank => Ok(Transpose { order }),
            _ => {
                let problem = format!("{order:?} is no permutation of {rank} axes");
                Err(FormatError::document("order", problem))
            }
        }
    }

    /// All axes in reverse: `"order": "F"`.
    pub fn reversal(rank: usize) -> Transpose {
        Transpose {
            order: (0..rank).rev().collect(),
        }
    }

    /// The permutation of both: `self` encodes first, then `next`.
    pub(super) fn then(&self, next: &Transpose) -> Transpose {
        let order = next.order.iter().filter_map(|&axis| self.order.get(axis));
        Transpose {
            order: order.copied().collect(),
        }
    }

    /// Encoded axis i is decoded axis `order()[i]`.
    pub fn order(&self) -> &[usize] {
        &self.order
    }

    /// Whether every axis stays where it is.
    pub fn is_identity(&self) -> bool {
        self.order.iter().enumerate().all(|(i, &axis)| i == axis)
    }

    /// Shape of the encoded chunk, from that of the decoded one.
    pub fn encoded_shape(&self, shape: &[u64]) -> Dims {
        let lengths = self.order.iter().filter_map(|&axis| shape.get(axis));
        lengths.copied().collect()
    }

    /// Checks that chunks of `shape` have as many axes as this.
    ///
    /// # Errors
    /// They do not.
    pub(super) fn check_rank(&self, shape: &[u64]) -> Result<(), FormatError> {
        if self.order.len() == shape.len() {
            return Ok(());
        }
        let problem = format!("order {:?} for {shape:?}", self.order);
        Err(FormatError::encoded("transpose", problem))
    }

    /// Puts encoded elements of `item_size` bytes back into their decoded order. Both buffers are a
    /// full chunk of `decoded_shape`.
    ///
    /// # Panics
    /// If a buffer has another length, or the shape another rank, which is a mistake of the caller;
    /// the contents never cause a panic.
    pub fn decode(&self, decoded_shape: &[u64], item_size: usize, encoded: &[u8], out: &mut [u8]) {
        let length = grid::product(decoded_shape)
            .and_then(|n| usize::try_from(n).ok())
            .and_then(|n| n.checked_mul(item_size));
        assert!(
            self.order.len() == decoded_shape.len()
                && length == Some(out.len())
                && length == Some(encoded.len()),
            "buffers of {} and {} bytes for {decoded_shape:?} of {item_size} bytes",
            encoded.len(),
            out.len(),
        );
        if out.is_empty() {
            return;
        }
        let (axes, run) = self.folded(decoded_shape);
        match run * item_size {
            1 => copy_squares::<1>(&axes, encoded, out),
            2 => copy_squares::<2>(&axes, encoded, out),
            4 => copy_squares::<4>(&axes, encoded, out),
            8 => copy_squares::<8>(&axes, encoded, out),
            16 => copy_squares::<16>(&axes, encoded, out),
            run_bytes => copy_runs(&axes, run_bytes, encoded, out),
        }
    }

    /// Puts decoded elements of `item_size` bytes into their encoded order. Both buffers are a full
    /// chunk of `decoded_shape`.
    ///
    /// # Panics
    /// Like [`decode`](Self::decode).
    pub fn encode(&self, decoded_shape: &[u64], item_size: usize, decoded: &[u8], out: &mut [u8]) {
        let mut order = vec![0; self.order.len()];
        for (i, &axis) in self.order.iter().enumerate() {
            if let Some(place) = order.get_mut(axis) {
                *place = i;
            }
        }
        let inverse = Transpose { order };
        inverse.decode(&self.encoded_shape(decoded_shape), item_size, decoded, out);
    }

    /// The axes in decoded order, without those that need no move, and the number of elements in a
    /// run that is the same on both sides. Strides are in runs.
    fn folded(&self, decoded_shape: &[u64]) -> (StridedAxes, usize) {
        let length = |&n: &u64| usize::try_from(n).expect("no longer than the chunk in memory");
        let decoded: Vec<usize> = decoded_shape.iter().map(length).collect();
        let to = c_strides(&decoded, 1).expect("no larger than the chunk in memory");
        let axes = decoded.into_iter().zip(to);
        let mut axes: StridedAxes = axes
            .map(|(length, to)| StridedAxis {
                length,
                from: 1,
                to,
            })
            .collect();
        let mut stride = 1;
        for &axis in self.order.iter().rev() {
            if let Some(axis) = axes.get_mut(axis) {
                axis.from = stride;
                stride *= axis.length;
            }
        }
        let mut folded = StridedAxes::new();
        for axis in axes.into_iter().filter(|axis| axis.length > 1) {
            match folded.last_mut() {
                Some(last) if last.from == axis.from * axis.length => {
                    last.length *= axis.length;
                    (last.from, last.to) = (axis.from, axis.to);
                }
                _ => folded.push(axis),
            }
        }
        let run = folded.last().filter(|axis| axis.from == 1);
        let run = run.map_or(1, |axis| axis.length);
        if run > 1 {
            folded.pop();
        }
        for axis in &mut folded {
            axis.from /= run;
            axis.to /= run;
        }
        (folded, run)
    }
}

/// Copies elements of `N` bytes, in squares over the innermost axes of the two sides.
fn copy_squares<const N: usize>(axes: &[StridedAxis], encoded: &[u8], out: &mut [u8]) {
    const SIDE: usize = 32;
    let (from, _) = encoded.as_chunks::<N>();
    let (to, _) = out.as_chunks_mut::<N>();
    // The innermost axis of the encoded chunk is never that of the decoded one, since that axis
    // would have been folded into the run.
    let mut outer: StridedAxes = axes.into();
    let columns = outer.pop();
    let rows = outer.iter().position(|axis| axis.from == 1);
    let (Some(columns), Some(rows)) = (columns, rows) else {
        // Nothing moves.
        return to.copy_from_slice(from);
    };
    let rows = outer.remove(rows);
    for (from_at, to_at) in walk(&outer, (0, 0)) {
        for first_row in (0..rows.length).step_by(SIDE) {
            for first_column in (0..columns.length).step_by(SIDE) {
                let width = SIDE.min(columns.length - first_column);
                for row in first_row..rows.length.min(first_row + SIDE) {
                    let from_at = from_at + row + first_column * columns.from;
                    let to_at = to_at + row * rows.to + first_column;
                    let from = from.get(from_at..).unwrap_or_default();
                    let to = to.get_mut(to_at..to_at + width).unwrap_or_default();
                    for (to, from) in to.iter_mut().zip(from.iter().step_by(columns.from)) {
                        *to = *from;
                    }
                }
            }
        }
    }
}

/// Copies runs of any length one by one.
fn copy_runs(axes: &[StridedAxis], run_bytes: usize, encoded: &[u8], out: &mut [u8]) {
    let run = |at: usize| at * run_bytes..(at + 1) * run_bytes;
    for (from, to) in walk(axes, (0, 0)) {
        if let (Some(from), Some(to)) = (encoded.get(run(from)), out.get_mut(run(to))) {
            to.copy_from_slice(from);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Element by element, by its indices.
    fn naive(order: &[usize], shape: &[u64], item: usize, encoded: &[u8]) -> Vec<u8> {
        let encoded_shape: Vec<u64> = order.iter().map(|&axis| shape[axis]).collect();
        let n = grid::product(shape).unwrap();
        let mut out = Vec::new();
        for rank in 0..n {
            let indices = grid::indices_of(rank, shape).unwrap();
            let permuted: Vec<u64> = order.iter().map(|&axis| indices[axis]).collect();
            let at = grid::rank_of(&permuted, &encoded_shape).unwrap();
            let at = usize::try_from(at).unwrap() * item;
            out.extend(&encoded[at..at + item]);
        }
        out
    }

    #[test]
    fn any_order_is_what_the_indices_say() {
        let mut state = 7_u64;
        let mut random = |below: u64| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        for _ in 0..1500 {
            let rank = random(6);
            let most = [1, 80, 40, 12, 7, 5][usize::try_from(rank).unwrap()];
            let shape: Vec<u64> = (0..rank).map(|_| 1 + random(most)).collect();
            let item = [1, 2, 3, 4, 8, 12, 16, 20][usize::try_from(random(8)).unwrap()];
            let mut axes: Vec<u64> = (0..rank).collect();
            let order: Vec<u64> = (0..rank)
                .map(|i| axes.remove(usize::try_from(random(rank - i)).unwrap()))
                .collect();
            let transpose = Transpose::new(&order, shape.len()).unwrap();
            let n = usize::try_from(grid::product(&shape).unwrap()).unwrap() * item;
            let encoded: Vec<u8> = (0..n).map(|_| random(256).to_le_bytes()[0]).collect();
            let mut out = vec![0xa5; n];
            transpose.decode(&shape, item, &encoded, &mut out);
            let expected = naive(transpose.order(), &shape, item, &encoded);
            assert!(out == expected, "{shape:?} {order:?} of {item} bytes");
            let mut back = vec![0xa5; n];
            transpose.encode(&shape, item, &out, &mut back);
            assert!(back == encoded, "{shape:?} {order:?} of {item} bytes, back");
        }
    }

    #[test]
    fn the_drawing_is_decoded() {
        let transpose = Transpose::new(&[1, 0], 2).unwrap();
        assert_eq!(transpose.encoded_shape(&[2, 3])[..], [3, 2]);
        let mut out = [0xa5; 6];
        transpose.decode(&[2, 3], 1, b"adbecf", &mut out);
        assert_eq!(&out, b"abcdef");
    }

    #[test]
    fn orders_are_checked() {
        for (order, rank) in [
            (&[0, 0][..], 2),
            (&[0], 2),
            (&[0, 2], 2),
            (&[0, 1], 1),
            (&[0], 0),
        ] {
            assert!(Transpose::new(order, rank).is_err(), "{order:?} of {rank}");
        }
        assert!(Transpose::new(&[], 0).unwrap().is_identity());
        assert!(!Transpose::reversal(2).is_identity());
        assert_eq!(Transpose::reversal(3).order(), [2, 1, 0]);
        let cycle = Transpose::new(&[1, 2, 0], 3).unwrap();
        assert_eq!(cycle.then(&cycle).order(), [2, 0, 1]);
        assert!(cycle.then(&cycle).then(&cycle).is_identity());
    }
}
