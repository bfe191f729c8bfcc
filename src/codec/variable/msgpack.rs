//! Walks over values of `MessagePack`, as far as the shape of a chunk needs it.
//!
//! Spec: <https://github.com/msgpack/msgpack/blob/master/spec.md>.

/// The shape that a chunk of `msgpack2` says, and the number of items in its outermost list; `None`
/// when it is not one list of items, their type and their shape.
pub(super) fn shape(mut bytes: &[u8]) -> Option<(u64, Vec<u64>)> {
    let Head::List(length) = head(&mut bytes)? else {
        return None;
    };
    let items = length.checked_sub(2)?;
    for _ in 0..items {
        skip(&mut bytes)?;
    }
    let Head::Text = head(&mut bytes)? else {
        return None;
    };
    let Head::List(rank) = head(&mut bytes)? else {
        return None;
    };
    let mut shape = Vec::new();
    for _ in 0..rank {
        let Head::Whole(length) = head(&mut bytes)? else {
            return None;
        };
        shape.push(length);
    }
    bytes.is_empty().then_some((items, shape))
}

/// The beginning of a value.
enum Head {
    /// A whole number that is not negative.
    Whole(u64),
    /// Text, which is skipped.
    Text,
    /// This many values follow.
    List(u64),
    /// Twice as many values follow.
    Map(u64),
    /// Anything else, which is skipped.
    Other,
}

/// Removes one value from `bytes`. The values inside it are counted, without recursion, so that no
/// depth is too deep.
fn skip(bytes: &mut &[u8]) -> Option<()> {
    let mut left = 1_u64;
    while let Some(others) = left.checked_sub(1) {
        left = match head(bytes)? {
            Head::List(length) => others.checked_add(length)?,
            Head::Map(length) => others.checked_add(length.checked_mul(2)?)?,
            _ => others,
        };
    }
    Some(())
}

/// Removes the beginning of a value from `bytes`.
fn head(bytes: &mut &[u8]) -> Option<Head> {
    let first = number(bytes, 1)?;
    let low = |mask: u64| first & mask;
    Some(match first {
        0x00..=0x7f => Head::Whole(first),
        0x80..=0x8f => Head::Map(low(0x0f)),
        0x90..=0x9f => Head::List(low(0x0f)),
        0xa0..=0xbf => text(bytes, low(0x1f))?,
        0xc0 | 0xc2 | 0xc3 | 0xe0..=0xff => Head::Other,
        0xc4..=0xc6 => {
            let length = number(bytes, 1 << (first - 0xc4))?;
            other(bytes, length)?
        }
        0xc7..=0xc9 => {
            let length = number(bytes, 1 << (first - 0xc7))?;
            other(bytes, length.checked_add(1)?)?
        }
        0xca | 0xd2 => other(bytes, 4)?,
        0xcb | 0xd3 => other(bytes, 8)?,
        0xcc..=0xcf => Head::Whole(number(bytes, 1 << (first - 0xcc))?),
        0xd0 => other(bytes, 1)?,
        0xd1 => other(bytes, 2)?,
        0xd4..=0xd8 => other(bytes, (1 << (first - 0xd4)) + 1)?,
        0xd9..=0xdb => {
            let length = number(bytes, 1 << (first - 0xd9))?;
            text(bytes, length)?
        }
        0xdc | 0xdd => Head::List(number(bytes, 2 << (first - 0xdc))?),
        0xde | 0xdf => Head::Map(number(bytes, 2 << (first - 0xde))?),
        _ => return None,
    })
}

fn text(bytes: &mut &[u8], length: u64) -> Option<Head> {
    str::from_utf8(take(bytes, length)?).ok()?;
    Some(Head::Text)
}

fn other(bytes: &mut &[u8], length: u64) -> Option<Head> {
    take(bytes, length).map(|_| Head::Other)
}

/// A number of `length` bytes, big-endian.
fn number(bytes: &mut &[u8], length: u64) -> Option<u64> {
    let digits = take(bytes, length)?.iter();
    Some(digits.fold(0, |number, byte| number << 8 | u64::from(*byte)))
}

fn take<'b>(bytes: &mut &'b [u8], length: u64) -> Option<&'b [u8]> {
    let (taken, rest) = bytes.split_at_checked(usize::try_from(length).ok()?)?;
    *bytes = rest;
    Some(taken)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_stand_at_the_end() {
        for (bytes, expected) in [
            (&b"\x93\xa1a\xa2|O\x91\x01"[..], Some((1, vec![1]))),
            (b"\x92\xa2|O\x90", Some((0, vec![]))),
            (
                b"\xdc\0\x03\xc0\xa2|O\x92\xcc\x01\xcd\x01\x00",
                Some((1, vec![1, 256])),
            ),
            (
                b"\x93\x81\xa1k\x92\xcb12345678\xc4\x01x\xd9\x02|O\x90",
                Some((1, vec![])),
            ),
            (b"\x93\xd4\x01x\xa2|O\x90", Some((1, vec![]))),
            (b"\x93\xc7\x02\x01xx\xa2|O\x90", Some((1, vec![]))),
            (b"\x93\xa1a\xa2|O\x91\x01!", None),
            (b"\x93\xa1a\xa2|O\x91", None),
            (b"\x91\x90", None),
            (b"\x92\xc0\x90", None),
            (b"\x92\xa2|O\x91\xff", None),
            (b"\x92\xa2\xff\xff\x90", None),
            (b"\xdd\xff\xff\xff\xff\x90", None),
            (b"\xc1", None),
            (b"", None),
        ] {
            assert_eq!(shape(bytes), expected, "{bytes:02x?}");
        }
        let deep = [&b"\x93"[..], &vec![0x91; 100_000], b"\xc0\xa2|O\x91\x01"].concat();
        assert_eq!(shape(&deep), Some((1, vec![1])));
    }
}
