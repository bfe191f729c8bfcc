//! `.jsonl`: strings or bytes of any length, one JSON value a line, in C order.
//!
//! ```text
//! decoded   03000000 | 01000000 61 | 00000000 | 02000000 0a22     numbers u32, little-endian
//! strings   "a"\n                    ""\n       "\n\""\n           line i + 1 is element i
//! bytes     "YQ=="\n                 ""\n       "CiI="\n           in base64
//! ```
//!
//! The length of a file is unknown until all of it is decoded. The caller gathers the elements of
//! an array from its chunks.

use super::strings::{ElementKind, Strings};
use crate::error::FormatError;
use crate::metadata::base64;

/// The name in error messages.
const NAME: &str = "JSON lines";

/// The lines of `strings`, of at most `limit` bytes.
///
/// # Errors
///
/// When the lines are longer.
pub fn lines(strings: &Strings, limit: u64) -> Result<Vec<u8>, FormatError> {
    let mut out = Vec::new();
    for element in strings.iter() {
        line(&mut out, element, strings.kind())?;
        if out.len() as u64 > limit {
            let what = "the size of the JSON lines file in bytes (see --cache-size)";
            return Err(FormatError::too_large(what, "more", limit));
        }
    }
    Ok(out)
}

/// Appends one element as a line.
///
/// # Errors
///
/// When a string is not valid UTF-8; nothing is appended then.
fn line(out: &mut Vec<u8>, element: &[u8], kind: ElementKind) -> Result<(), FormatError> {
    let text = match kind {
        ElementKind::Text => {
            let text = str::from_utf8(element).map_err(|error| {
                let problem = format!("a string is no UTF-8 from byte {} on", error.valid_up_to());
                FormatError::encoded(NAME, problem)
            })?;
            escaped(&serde_json::Value::from(text).to_string())
        }
        // Base64 needs no escapes.
        ElementKind::Bytes => format!("\"{}\"", base64::encode(element)),
    };
    out.extend_from_slice(text.as_bytes());
    out.push(b'\n');
    Ok(())
}

/// JSON text with escapes for the characters that some readers take for the end of a line.
fn escaped(json: &str) -> String {
    const LINE_ENDS: [char; 3] = ['\u{85}', '\u{2028}', '\u{2029}'];
    if !json.contains(LINE_ENDS) {
        return json.to_owned();
    }
    let escape = |character: char| match character {
        end if LINE_ENDS.contains(&end) => format!("\\u{:04x}", u32::from(end)),
        other => other.to_string(),
    };
    json.chars().map(escape).collect()
}

/// An iterator over the elements of a decoded chunk, in C order.
#[derive(Debug, Clone)]
pub struct ChunkElements<'a> {
    rest: &'a [u8],
    left: u32,
}

/// The elements of `block`, which is a count followed by the elements, each with its length in
/// front. The iterator ends after an error; bytes after the last element are an error.
///
/// # Errors
///
/// When the count is missing.
pub fn elements(block: &[u8]) -> Result<ChunkElements<'_>, FormatError> {
    let (left, rest) = word(block).ok_or_else(|| wrong("no count of elements"))?;
    Ok(ChunkElements { rest, left })
}

impl<'a> Iterator for ChunkElements<'a> {
    type Item = Result<&'a [u8], FormatError>;

    fn next(&mut self) -> Option<Self::Item> {
        let left = std::mem::take(&mut self.left);
        let rest = std::mem::take(&mut self.rest);
        if left == 0 {
            let extra = rest.len();
            return (extra > 0)
                .then(|| Err(wrong(format!("{extra} bytes behind the last element"))));
        }
        let found = word(rest).and_then(|(length, rest)| {
            let length = usize::try_from(length).ok()?;
            rest.split_at_checked(length)
        });
        let Some((element, rest)) = found else {
            let problem = format!("cut off {left} elements before the end");
            return Some(Err(wrong(problem)));
        };
        (self.left, self.rest) = (left - 1, rest);
        Some(Ok(element))
    }
}

fn word(bytes: &[u8]) -> Option<(u32, &[u8])> {
    let (word, rest) = bytes.split_first_chunk::<4>()?;
    Some((u32::from_le_bytes(*word), rest))
}

fn wrong(problem: impl Into<String>) -> FormatError {
    FormatError::encoded(NAME, problem)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(block: &[u8], kind: ElementKind) -> Result<String, FormatError> {
        let mut out = Vec::new();
        for element in elements(block)? {
            line(&mut out, element?, kind)?;
        }
        Ok(String::from_utf8(out).unwrap())
    }

    #[test]
    fn one_value_a_line() {
        let block = b"\x03\0\0\0\x01\0\0\0a\0\0\0\0\x04\0\0\0\n\"\xc3\xa9";
        assert_eq!(
            lines(block, ElementKind::Text).unwrap(),
            "\"a\"\n\"\"\n\"\\n\\\"é\"\n"
        );
        assert_eq!(
            lines(block, ElementKind::Bytes).unwrap(),
            "\"YQ==\"\n\"\"\n\"CiLDqQ==\"\n"
        );
        assert_eq!(lines(&[0; 4], ElementKind::Text).unwrap(), "");
    }

    #[test]
    fn every_length_is_checked() {
        for (block, problem) in [
            (&b""[..], "no count"),
            (b"\x01\0\0", "no count"),
            (b"\x01\0\0\0", "cut off 1"),
            (b"\xff\xff\xff\xff\0\0\0\0\x01\0\0\0", "cut off 4294967294"),
            (b"\x01\0\0\0\xff\xff\xff\xffa", "cut off 1"),
            (b"\0\0\0\0a", "1 bytes behind"),
            (b"\x01\0\0\0\x01\0\0\0\xff", "no UTF-8 from byte 0"),
        ] {
            let error = lines(block, ElementKind::Text).unwrap_err().to_string();
            assert!(error.contains(problem), "{error}");
        }
    }
}
