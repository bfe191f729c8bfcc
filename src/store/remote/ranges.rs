//! Plans the requests that read a set of ranges of one object.

use std::ops::Range;

/// Ranges are merged over a gap of at most this many bytes.
const MOST_GAP_BYTES: u64 = 64 << 10;

/// The longest merged request.
const MOST_MERGED_BYTES: u64 = 8 << 20;

/// A longer range is cut in parts of this length, which are requested side by side.
pub(super) const PART_BYTES: u64 = 8 << 20;

/// The requests that read all of `wanted`. Each wanted range is inside one of them, or is covered
/// by several that follow each other. Two ranges share a request if the gap between them is short,
/// and no longer than half of the wanted bytes of the request so far.
pub(super) fn requests(wanted: &[Range<u64>]) -> Vec<Range<u64>> {
    let mut sorted: Vec<Range<u64>> = wanted.iter().filter(|r| !r.is_empty()).cloned().collect();
    sorted.sort_unstable_by_key(|range| (range.start, range.end));
    let mut requests: Vec<Range<u64>> = Vec::new();
    let mut useful = 0;
    for range in sorted {
        if let Some(last) = requests.last_mut() {
            let gap = range.start.saturating_sub(last.end);
            let end = last.end.max(range.end);
            let is_near = gap <= MOST_GAP_BYTES && gap <= useful / 2;
            let is_inside = range.start < last.end;
            if is_inside || (is_near && end - last.start <= MOST_MERGED_BYTES) {
                useful += range.end.saturating_sub(range.start.max(last.end));
                last.end = end;
                continue;
            }
        }
        useful = range.end - range.start;
        requests.push(range);
    }
    requests.into_iter().flat_map(parts).collect()
}

/// `range` in parts of equal length, none longer than [`PART_BYTES`].
pub(super) fn parts(range: Range<u64>) -> impl Iterator<Item = Range<u64>> {
    let len = range.end - range.start;
    let count = len.div_ceil(PART_BYTES).max(1);
    let step = len.div_ceil(count);
    (0..count).map(move |number| {
        let start = range.start + number * step;
        start..(start + step).min(range.end)
    })
}

#[expect(
    clippy::single_range_in_vec_init,
    reason = "lists of ranges may have one"
)]
#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_ranges_share_a_request() {
        const K: u64 = 1 << 10;
        for (wanted, expected, why) in [
            (vec![0..10 * K, 10 * K..20 * K], vec![0..20 * K], "adjacent"),
            (
                vec![10 * K..20 * K, 0..10 * K],
                vec![0..20 * K],
                "in any order",
            ),
            (
                vec![0..10 * K, 14 * K..20 * K],
                vec![0..20 * K],
                "a short gap",
            ),
            (
                vec![0..K, 3 * K..4 * K],
                vec![0..K, 3 * K..4 * K],
                "a gap longer than what is wanted",
            ),
            (
                vec![0..1000 * K, 1065 * K..1066 * K],
                vec![0..1000 * K, 1065 * K..1066 * K],
                "a long gap",
            ),
            (vec![0..10, 2..5, 5..5], vec![0..10], "inside, and empty"),
        ] {
            assert_eq!(requests(&wanted), expected, "{why}");
        }
    }

    #[test]
    fn a_long_range_is_cut_in_parts() {
        let parts = requests(&[5..5 + 20 * (1 << 20)]);
        assert_eq!(parts.len(), 3);
        assert!(parts.windows(2).all(|pair| pair[0].end == pair[1].start));
        assert_eq!(parts.last().unwrap().end, 5 + 20 * (1 << 20));
        assert!(parts.iter().all(|part| part.end - part.start <= PART_BYTES));
    }

    #[test]
    fn every_wanted_byte_is_requested_once() {
        let mut seed = 1_u64;
        let mut next = |most: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (seed >> 33) % most
        };
        for _ in 0..200 {
            let wanted: Vec<Range<u64>> = (0..next(20))
                .map(|_| {
                    let start = next(40 << 20);
                    start..start + next(3 << 20)
                })
                .collect();
            let requests = requests(&wanted);
            assert!(requests.windows(2).all(|pair| pair[0].end <= pair[1].start));
            for range in wanted {
                let mut at = range.start;
                for request in &requests {
                    if request.contains(&at) {
                        at = request.end;
                    }
                }
                assert!(at >= range.end, "{range:?} of {requests:?}");
            }
        }
    }
}
