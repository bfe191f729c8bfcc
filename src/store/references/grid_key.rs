//! Keys that end in indices, as those of chunks do.
//!
//! ```text
//! key          head     separator   indices
//! x/0.12       x/       .           0, 12
//! x/c/0/12     x/c/     /           0, 12
//! x/7          x/       .           7
//! ```
//!
//! The indices of a key are packed into one number, in which each takes the same number of bits, so
//! that numbers are in the order of the indices. A key whose indices do not fit is not one of these.

use smallvec::SmallVec;

/// The indices of a key.
pub(super) type Indices = SmallVec<[u32; 6]>;

/// The most indices of a key.
const MOST_INDICES: usize = 16;

/// A key, taken apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct GridKey<'k> {
    /// The part before the indices: empty, or a prefix with its slash.
    pub(super) head: &'k [u8],
    pub(super) separator: u8,
    pub(super) indices: Indices,
}

impl GridKey<'_> {
    /// Takes `key` apart; `None` if it does not end in indices.
    pub(super) fn parse(key: &[u8]) -> Option<GridKey<'_>> {
        let last = key.iter().rposition(|&byte| byte == b'/');
        let start = last.map_or(0, |at| at + 1);
        let (head, name) = key.split_at_checked(start)?;
        if name.contains(&b'.') {
            let indices: Option<Indices> = name.split(|&byte| byte == b'.').map(index).collect();
            let indices = indices?;
            return fits(&indices).then_some(GridKey {
                head,
                separator: b'.',
                indices,
            });
        }
        let mut indices: Indices = SmallVec::new();
        // The start of the last segment that was taken; one past the end of the key as long as none was.
        let mut start = key.len() + 1;
        while let Some(end) = start.checked_sub(1) {
            let before = key.get(..end)?;
            let slash = before.iter().rposition(|&byte| byte == b'/');
            let segment_start = slash.map_or(0, |at| at + 1);
            let Some(found) = index(before.get(segment_start..)?) else {
                break;
            };
            indices.insert(0, found);
            start = segment_start;
        }
        let head = key.get(..start.min(key.len()))?;
        let separator = if indices.len() > 1 { b'/' } else { b'.' };
        (!indices.is_empty() && fits(&indices)).then_some(GridKey {
            head,
            separator,
            indices,
        })
    }
}

/// The number in `text`, in its only spelling.
pub(super) fn index(text: &[u8]) -> Option<u32> {
    let is_usual = text == b"0"
        || text
            .first()
            .is_some_and(|first| (b'1'..=b'9').contains(first));
    let text = std::str::from_utf8(text).ok().filter(|_| is_usual)?;
    text.parse().ok()
}

/// Bits of each of `n` indices.
fn bits(n: usize) -> u32 {
    let n = u32::try_from(n).unwrap_or(u32::MAX).max(1);
    (128 / n).min(32)
}

fn fits(indices: &[u32]) -> bool {
    let n = indices.len();
    let bits = bits(n);
    n <= MOST_INDICES && indices.iter().all(|&index| u64::from(index) >> bits == 0)
}

/// The number of `indices` in the order of all.
pub(super) fn pack(indices: &[u32]) -> u128 {
    let bits = bits(indices.len());
    let mut packed = 0;
    for &index in indices {
        packed = packed << bits | u128::from(index);
    }
    packed
}

/// The `n` indices in `packed`.
pub(super) fn unpack(packed: u128, n: usize) -> Indices {
    let bits = bits(n);
    let mask = (1_u128 << bits) - 1;
    let each = (0..n).rev().map(|at| {
        let shift = bits.saturating_mul(u32::try_from(at).unwrap_or(0));
        u32::try_from(packed >> shift & mask).unwrap_or(0)
    });
    each.collect()
}

/// The largest index where there are `n`.
pub(super) fn most_index(n: usize) -> u32 {
    u32::try_from((1_u64 << bits(n)) - 1).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_chunks_are_taken_apart() {
        for (key, expected) in [
            ("x/0.12", Some(("x/", b'.', vec![0, 12]))),
            ("a/x/c/0/12", Some(("a/x/c/", b'/', vec![0, 12]))),
            ("x/7", Some(("x/", b'.', vec![7]))),
            ("0.1", Some(("", b'.', vec![0, 1]))),
            ("0/1/2", Some(("", b'/', vec![0, 1, 2]))),
            ("3", Some(("", b'.', vec![3]))),
            ("0/c/1", Some(("0/c/", b'.', vec![1]))),
            ("0/1.2", Some(("0/", b'.', vec![1, 2]))),
            ("x/.zarray", None),
            ("x/00", None),
            ("x/1.", None),
            ("x/4294967296", None),
            ("x/c", None),
        ] {
            let found = GridKey::parse(key.as_bytes());
            let found = found.map(|it| (it.head, it.separator, it.indices.to_vec()));
            let expected = expected.map(|(head, by, indices)| (head.as_bytes(), by, indices));
            assert_eq!(found, expected, "{key}");
        }
    }

    #[test]
    fn packed_indices_come_back_in_order() {
        for indices in [vec![0, 5, 7], vec![u32::MAX, 0], vec![1; 16], vec![9]] {
            assert!(fits(&indices));
            assert_eq!(unpack(pack(&indices), indices.len()).to_vec(), indices);
        }
        assert!(pack(&[1, 0]) > pack(&[0, u32::MAX]));
        assert!(!fits(&[256; 16]) && !fits(&[0; 17]));
        assert_eq!(most_index(16), 255);
    }
}
