//! The ranges of bytes that a request asks for (RFC 9110, section 14).

use std::ops::Range;

/// The most ranges of one request. Programs that ask for more get the whole file, as a server may decide (section 14.2).
const MOST_RANGES: usize = 64;

/// The part of a file that a `Range` header asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Wanted {
    /// All bytes.
    Whole,
    /// These bytes, at least one.
    Part(Range<u64>),
    /// Several ranges, in the order of the header. They have no byte in common.
    Parts(Vec<Range<u64>>),
    /// Bytes that the file does not have.
    Outside,
}

/// The part that `header` asks for of a file of `len` bytes. A header that is not understood is ignored, and so is one with
/// too many ranges or with ranges that overlap, as the specification allows: the client gets the whole file.
pub(super) fn wanted(header: &str, len: u64) -> Wanted {
    let Some(mut ranges) = parse(header, len) else {
        return Wanted::Whole;
    };
    let n_named = ranges.len();
    // Ranges that the file does not have are left out if it has another one.
    ranges.retain(|range| range.start < range.end);
    match &ranges[..] {
        [] if n_named > 0 => Wanted::Outside,
        [one] => Wanted::Part(one.clone()),
        [_, ..] if n_named <= MOST_RANGES && are_apart(&ranges) => Wanted::Parts(ranges),
        _ => Wanted::Whole,
    }
}

/// Whether no two of `ranges` have a byte in common.
fn are_apart(ranges: &[Range<u64>]) -> bool {
    let mut sorted: Vec<_> = ranges.iter().collect();
    sorted.sort_by_key(|range| range.start);
    sorted.is_sorted_by(|before, after| before.end <= after.start)
}

/// The named ranges. Those behind the end of the file are empty. `None` if `header` is not understood.
fn parse(header: &str, len: u64) -> Option<Vec<Range<u64>>> {
    let (unit, ranges) = header.split_once('=')?;
    if !unit.trim().eq_ignore_ascii_case("bytes") {
        return None;
    }
    // A list may have empty members (section 5.6.1).
    let members = ranges.split(',').map(str::trim);
    let members = members.filter(|member| !member.is_empty());
    members.map(|member| parse_one(member, len)).collect()
}

fn parse_one(member: &str, len: u64) -> Option<Range<u64>> {
    let (first, last) = member.split_once('-')?;
    let number = |text: &str| {
        let text = text.trim();
        if text.is_empty() {
            return Some(None);
        }
        // `parse` alone would take a sign.
        let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
        // A number that is too large for 64 bits is behind the end of any file.
        is_number.then(|| Some(text.parse().unwrap_or(u64::MAX)))
    };
    match (number(first)?, number(last)?) {
        (Some(first), Some(last)) if last < first => None,
        (Some(first), Some(last)) => Some(first..last.saturating_add(1).min(len)),
        (Some(first), None) => Some(first..len),
        (None, Some(count)) => Some(len.saturating_sub(count)..len),
        (None, None) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_as_the_specification_has_them() {
        use Wanted::{Outside, Part, Parts, Whole};
        let parts = |ranges: &[Range<u64>]| Parts(ranges.to_vec());
        let cases = [
            ("bytes=0-0", 10, Part(0..1)),
            ("bytes=2-5", 10, Part(2..6)),
            ("bytes=2-", 10, Part(2..10)),
            ("bytes=-3", 10, Part(7..10)),
            ("bytes=-30", 10, Part(0..10)),
            ("bytes=5-100", 10, Part(5..10)),
            ("bytes=5-99999999999999999999999", 10, Part(5..10)),
            ("BYTES = 1-2", 10, Part(1..3)),
            ("bytes=10-", 10, Outside),
            ("bytes=99999999999999999999999-", 10, Outside),
            ("bytes=-0", 10, Outside),
            ("bytes=0-", 0, Outside),
            ("bytes=-1", 0, Outside),
            ("bytes=5-2", 10, Whole),
            ("bytes=-", 10, Whole),
            ("bytes=", 10, Whole),
            ("bytes=+1-2", 10, Whole),
            ("bytes=1-2,4-5", 10, parts(&[1..3, 4..6])),
            ("bytes=7-, ,0-1,2-2", 10, parts(&[7..10, 0..2, 2..3])),
            ("bytes=0-0,-1", 10, parts(&[0..1, 9..10])),
            ("bytes=1-2,20-30", 10, Part(1..3)),
            ("bytes=10-,20-30,-0", 10, Outside),
            ("bytes=1-2,2-5", 10, Whole),
            ("bytes=4-5,0-9", 10, Whole),
            ("bytes=0-0,0-0", 10, Whole),
            ("bytes=1-2,x", 10, Whole),
            ("bytes=1-2,5-4", 10, Whole),
            ("bytes=,", 10, Whole),
            ("bytes=a-b", 10, Whole),
            ("items=0-1", 10, Whole),
            ("", 10, Whole),
        ];
        for (header, len, expected) in cases {
            assert_eq!(wanted(header, len), expected, "{header}");
        }
    }

    #[test]
    fn more_ranges_than_are_served_are_the_whole_file() {
        let header = |n: usize| {
            let ranges: Vec<_> = (0..n).map(|at| format!("{0}-{0}", 2 * at)).collect();
            format!("bytes={}", ranges.join(","))
        };
        assert!(matches!(
            wanted(&header(MOST_RANGES), 1000),
            Wanted::Parts(_)
        ));
        assert_eq!(wanted(&header(MOST_RANGES + 1), 1000), Wanted::Whole);
    }
}
