//! The range of bytes that a request asks for (RFC 9110, section 14).

use std::ops::Range;

/// What a `Range` header asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Wanted {
    /// All bytes.
    Whole,
    /// These bytes, at least one.
    Part(Range<u64>),
    /// Bytes that the file does not have.
    Outside,
}

/// What `header` asks for of a file of `len` bytes. A header that is not understood, or that names several ranges, is
/// ignored, as the specification allows: the client gets the whole file.
pub(super) fn wanted(header: &str, len: u64) -> Wanted {
    let Some(range) = parse(header) else {
        return Wanted::Whole;
    };
    let (start, end) = match range {
        (Some(start), Some(last)) => (start, last.saturating_add(1).min(len)),
        (Some(start), None) => (start, len),
        (None, Some(count)) => (len.saturating_sub(count), len),
        (None, None) => return Wanted::Whole,
    };
    if start < end {
        Wanted::Part(start..end)
    } else {
        Wanted::Outside
    }
}

/// The first and the last byte, or the number of bytes at the end.
fn parse(header: &str) -> Option<(Option<u64>, Option<u64>)> {
    let (unit, range) = header.split_once('=')?;
    if !unit.trim().eq_ignore_ascii_case("bytes") {
        return None;
    }
    let (first, last) = range.trim().split_once('-')?;
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
    let (first, last) = (number(first)?, number(last)?);
    let is_backwards = matches!((first, last), (Some(first), Some(last)) if last < first);
    (!is_backwards).then_some((first, last))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_as_the_specification_has_them() {
        use Wanted::{Outside, Part, Whole};
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
            ("bytes=1-2,4-5", 10, Whole),
            ("bytes=a-b", 10, Whole),
            ("items=0-1", 10, Whole),
            ("", 10, Whole),
        ];
        for (header, len, expected) in cases {
            assert_eq!(wanted(header, len), expected, "{header}");
        }
    }
}
