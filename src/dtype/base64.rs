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
    use super::decode;

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
        }
    }
}
