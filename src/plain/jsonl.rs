//! `.jsonl`: strings or bytes of any length, one JSON value a line, in C order.
//!
//! ```text
//! strings   "a"\n      ""\n   "\n\""\n       line i + 1 is element i
//! bytes     "YQ=="\n   ""\n   "CiI="\n       in base64
//! ```
//!
//! The length of a file is unknown until all of it is decoded.

use super::strings::{ElementKind, Strings};
use crate::error::FormatError;
use crate::metadata::base64;

/// The lines of `strings`, of at most `limit` bytes.
///
/// # Errors
///
/// When the lines are longer.
pub fn lines(strings: &Strings, limit: u64) -> Result<Vec<u8>, FormatError> {
    let mut out = Vec::new();
    for element in strings.iter() {
        line(&mut out, element, strings.kind());
        if out.len() as u64 > limit {
            let what = "the size of the JSON lines file in bytes (see --cache-size)";
            return Err(FormatError::above_limit(what, limit));
        }
    }
    Ok(out)
}

/// Appends one element as a line.
fn line(out: &mut Vec<u8>, element: &[u8], kind: ElementKind) {
    let text = match kind {
        // Strings are valid UTF-8.
        ElementKind::Text => {
            let text = String::from_utf8_lossy(element);
            escaped(&serde_json::Value::from(text).to_string())
        }
        // Base64 needs no escapes.
        ElementKind::Bytes => format!("\"{}\"", base64::encode(element)),
    };
    out.extend_from_slice(text.as_bytes());
    out.push(b'\n');
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

#[cfg(test)]
mod tests {
    use super::super::strings::StringsLimit;
    use super::*;

    fn of(all: &[&[u8]], kind: ElementKind, most: u64) -> Result<String, FormatError> {
        let limit = StringsLimit {
            what: "",
            bytes: 1000,
        };
        let mut strings = Strings::filled(all.len() as u64, b"", kind, limit)?;
        for (rank, element) in (0..).zip(all) {
            strings.put(rank, element)?;
        }
        Ok(String::from_utf8(lines(&strings, most)?).unwrap())
    }

    #[test]
    fn one_value_a_line() {
        let all: [&[u8]; 3] = [b"a", b"", "\n\"é\u{2028}".as_bytes()];
        let text = of(&all, ElementKind::Text, 100).unwrap();
        assert_eq!(text, "\"a\"\n\"\"\n\"\\n\\\"é\\u2028\"\n");
        assert!(of(&all, ElementKind::Text, 19).is_err());
        let all: [&[u8]; 2] = [b"a", b"\n\"\xc3\xa9"];
        let text = of(&all, ElementKind::Bytes, 100).unwrap();
        assert_eq!(text, "\"YQ==\"\n\"CiLDqQ==\"\n");
        assert_eq!(of(&[], ElementKind::Text, 0).unwrap(), "");
    }
}
