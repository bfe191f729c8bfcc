//! One array in memory, which many threads fill chunk by chunk.

use std::marker::PhantomData;

/// Bytes of an array in C order that threads write boxes of.
pub struct Scatter<'a> {
    start: *mut u8,
    shape: Vec<usize>,
    item_size: usize,
    _array: PhantomData<&'a mut [u8]>,
}

#[expect(
    unsafe_code,
    reason = "boxes of one buffer have no slices of their own"
)]
// SAFETY: nothing is read, and `Scatter::put` asks for disjoint boxes.
unsafe impl Sync for Scatter<'_> {}

impl<'a> Scatter<'a> {
    /// The array in `bytes`.
    ///
    /// # Panics
    /// When `bytes` has another length than the array.
    pub fn new(bytes: &'a mut [u8], shape: &[usize], item_size: usize) -> Scatter<'a> {
        assert_eq!(bytes.len(), shape.iter().product::<usize>() * item_size);
        Scatter {
            start: bytes.as_mut_ptr(),
            shape: shape.to_vec(),
            item_size,
            _array: PhantomData,
        }
    }

    /// Copies the part of `chunk` (C order, `chunk_shape`) that lies in the array to its place,
    /// the box that begins at `origin`. Boxes put at one time must be disjoint.
    ///
    /// # Panics
    /// When `origin` is outside the array, or `chunk` is shorter than its shape.
    pub fn put(&self, chunk: &[u8], chunk_shape: &[usize], origin: &[usize]) {
        let last = self.shape.len() - 1;
        let extent: Vec<usize> = (0..=last)
            .map(|axis| chunk_shape[axis].min(self.shape[axis] - origin[axis]))
            .collect();
        let row_bytes = extent[last] * self.item_size;
        let mut at = vec![0; last];
        loop {
            let (mut from, mut to) = (0, 0);
            for axis in 0..last {
                from = from * chunk_shape[axis] + at[axis];
                to = to * self.shape[axis] + origin[axis] + at[axis];
            }
            from *= chunk_shape[last] * self.item_size;
            to = (to * self.shape[last] + origin[last]) * self.item_size;
            let row = &chunk[from..from + row_bytes];
            #[expect(
                unsafe_code,
                reason = "boxes of one buffer have no slices of their own"
            )]
            // SAFETY: the box was clipped to the array, and no other thread writes to it.
            unsafe {
                std::ptr::copy_nonoverlapping(row.as_ptr(), self.start.add(to), row_bytes);
            }
            if !next(&mut at, &extent) {
                return;
            }
        }
    }
}

/// The next index in C order within the leading axes of `extent`; `false` after the last.
fn next(at: &mut [usize], extent: &[usize]) -> bool {
    for axis in (0..at.len()).rev() {
        at[axis] += 1;
        if at[axis] < extent[axis] {
            return true;
        }
        at[axis] = 0;
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chunk_at_the_edge_is_clipped() {
        let mut array = [0; 6];
        Scatter::new(&mut array, &[2, 3], 1).put(&[1, 2, 3, 4], &[2, 2], &[0, 2]);
        assert_eq!(array, [0, 0, 1, 0, 0, 3]);
    }
}
