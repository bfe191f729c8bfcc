//! Base64 with the standard alphabet and padding, as fill values use it (RFC 4648, section 4).

/// The bytes that `text` encodes; `None` unless it is strictly right, padding included.
pub(crate) fn decode(text: &str) -> Option<Vec<u8>> {
    let digits = text.as_bytes();
    if !digits.len().is_multiple_of(4) {
        return None;
    }
    let mut bytes = Vec::with_capacity(digits.len() / 4 * 3);
    let mut groups = digits.chunks_exact(4).peekable();
    while let Some(group) = groups.next() {
        let padding = group
            .iter()
            .rev()
            .take_while(|&&digit| digit == b'=')
            .count();
        if padding > 2 || (padding > 0 && groups.peek().is_some()) {
            return None;
        }
        let (data, _) = group.split_at_checked(4 - padding)?;
        let mut word = 0_u32;
        for &digit in data {
            word = (word << 6) | value_of(digit)?;
        }
        let [_, first, second, third] = (word << (6 * padding)).to_be_bytes();
        bytes.extend([first, second, third].iter().take(3 - padding));
    }
    Some(bytes)
}

/// `bytes` in base64, padded.
pub(crate) fn encode(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let byte = |i: usize| u32::from(group.get(i).copied().unwrap_or(0));
        let word = (byte(0) << 16) | (byte(1) << 8) | byte(2);
        for (i, shift) in [18, 12, 6, 0].into_iter().enumerate() {
            let digit = usize::try_from((word >> shift) & 63).ok();
            let digit = digit
                .filter(|_| i <= group.len())
                .and_then(|digit| DIGITS.get(digit));
            text.push(digit.map_or('=', |&digit| digit.into()));
        }
    }
    text
}

fn value_of(digit: u8) -> Option<u32> {
    Some(u32::from(match digit {
        b'A'..=b'Z' => digit - b'A',
        b'a'..=b'z' => digit - b'a' + 26,
        b'0'..=b'9' => digit - b'0' + 52,
        b'+' => 62,
        b'/' => 63,
        _ => return None,
    }))
}

#[cfg(test)]
mod tests {
    use super::{decode, encode};

    #[test]
    fn decodes_only_what_is_strictly_base64() {
        for (text, bytes) in [
            ("", Some(&b""[..])),
            ("YQ==", Some(b"a")),
            ("YWI=", Some(b"ab")),
            ("YWJj", Some(b"abc")),
            ("YWJjZA==", Some(b"abcd")),
            ("/+8=", Some(b"\xff\xef")),
            ("YWI", None),
            ("a", None),
            ("YQ==YQ==", None),
            ("Y===", None),
            ("====", None),
            ("YW\n=", None),
        ] {
            assert_eq!(decode(text).as_deref(), bytes, "{text}");
            if let Some(bytes) = bytes {
                assert_eq!(encode(bytes), text);
            }
        }
    }
}
