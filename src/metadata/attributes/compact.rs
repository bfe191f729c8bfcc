//! Attributes as compact JSON, token by token: what [`Attributes`](super::Attributes) shows of a
//! text, without the tree, which takes some thirty times the memory of the text.

use std::hash::{BuildHasher, RandomState};

use super::{Json, MOST_NESTING, number};
use crate::dtype::json;
use crate::error::FormatError;
use crate::metadata::json::Document;

/// The JSON object `text` without white space, each value spelled as the tree of it is shown.
/// Memory is a few times that of the text.
///
/// # Errors
///
/// When it is no JSON object or too deep, or when an object has two members of one name, of which
/// only the tree knows which counts.
pub fn compact(text: &[u8]) -> Result<String, FormatError> {
    let document = Document::parse(text)?;
    let value = document.value()?.get();
    if !value.starts_with('{') {
        return Err(FormatError::document("attributes", "expected an object"));
    }
    let mut writer = Writer {
        out: String::with_capacity(value.len()),
        open: Vec::new(),
        hasher: RandomState::new(),
    };
    let mut rest = value;
    while let Some(first) = rest.bytes().next() {
        let len = token_len(rest, first);
        let (token, after) = rest.split_at_checked(len).unwrap_or((rest, ""));
        writer.token(first, token)?;
        rest = after;
    }
    Ok(writer.out)
}

struct Writer {
    out: String,
    open: Vec<Level>,
    hasher: RandomState,
}

/// An object or a list that is not closed yet.
enum Level {
    Object {
        /// The value of each name so far.
        names: Vec<u64>,
        expects_name: bool,
    },
    List,
}

impl Writer {
    /// Takes one token of a valid document.
    fn token(&mut self, first: u8, token: &str) -> Result<(), FormatError> {
        match first {
            b' ' | b'\t' | b'\r' | b'\n' => return Ok(()),
            b',' => {
                if let Some(Level::Object { expects_name, .. }) = self.open.last_mut() {
                    *expects_name = true;
                }
            }
            b':' => {
                if let Some(Level::Object { expects_name, .. }) = self.open.last_mut() {
                    *expects_name = false;
                }
            }
            b'}' | b']' => self.close()?,
            b'{' | b'[' => {
                self.check_depth()?;
                self.open.push(if first == b'[' {
                    Level::List
                } else {
                    Level::Object {
                        names: Vec::new(),
                        expects_name: true,
                    }
                });
            }
            b'"' => return self.string(token),
            _ => {
                self.check_depth()?;
                if matches!(first, b'n' | b't' | b'f') {
                    self.out.push_str(token);
                } else {
                    self.out.push_str(&number(token)?.to_string());
                }
                return Ok(());
            }
        }
        self.out.push(char::from(first));
        Ok(())
    }

    fn string(&mut self, token: &str) -> Result<(), FormatError> {
        let raw = serde_json::from_str(token)
            .map_err(|error| FormatError::document("attributes", error.to_string()))?;
        let is_escaped = token.contains('\\');
        if let Some(Level::Object {
            names,
            expects_name: true,
        }) = self.open.last_mut()
        {
            let name = json::string(raw, "a name")?;
            names.push(self.hasher.hash_one(&name));
        } else {
            self.check_depth()?;
            if let json::Json::NonFinite(value) = json::Json::of(raw)? {
                self.out.push_str(&Json::Float(value).to_string());
                return Ok(());
            }
        }
        if is_escaped {
            let text = json::string(raw, "a text")?;
            self.out.push_str(&Json::Text(text).to_string());
        } else {
            self.out.push_str(token);
        }
        Ok(())
    }

    fn close(&mut self) -> Result<(), FormatError> {
        let Some(Level::Object { mut names, .. }) = self.open.pop() else {
            return Ok(());
        };
        names.sort_unstable();
        if names.is_sorted_by(|left, right| left < right) {
            return Ok(());
        }
        let problem = "a name is given twice, which is read only of attributes that are shorter";
        Err(FormatError::document("attributes", problem))
    }

    fn check_depth(&self) -> Result<(), FormatError> {
        if self.open.len() <= MOST_NESTING {
            return Ok(());
        }
        let problem = format!("nested more than {MOST_NESTING} deep");
        Err(FormatError::document("attributes", problem))
    }
}

/// Bytes of the token, or of the white space, that valid JSON begins with.
fn token_len(text: &str, first: u8) -> usize {
    let ends = |byte: u8| matches!(byte, b',' | b']' | b'}' | b' ' | b'\t' | b'\r' | b'\n');
    match first {
        b'"' => {
            let mut escaped = false;
            let end = text.bytes().skip(1).position(|byte| {
                let is_end = byte == b'"' && !escaped;
                escaped = byte == b'\\' && !escaped;
                is_end
            });
            end.map_or(text.len(), |end| end + 2)
        }
        b'{' | b'}' | b'[' | b']' | b',' | b':' | b' ' | b'\t' | b'\r' | b'\n' => 1,
        _ => text.bytes().position(ends).unwrap_or(text.len()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::Attributes;
    use super::*;

    #[test]
    fn it_is_what_the_tree_shows() {
        for text in [
            "{}",
            " { \"a\" : [ 1 , 2.50, -0, 1e3, 1E-7, 123456789012345678901234567890 ] ,\n\"b\":{} }",
            "{\"\": [NaN, -Infinity, Infinity, \"NaN\"], \"NaN\": null}",
            r#"{"a\"\\\u0041\n": "\u00e9\ud83d\ude00 \/ \\\\", "t": true, "f": [false, [[]]]}"#,
            "\u{feff}{\"d\": {\"d\": {\"d\": [{}, \"{[,:]}\"]}}}",
            "{\"x\": 1e400, \"y\": 18446744073709551616, \"z\": 0.1}",
        ] {
            let tree = Attributes::parse(text.as_bytes()).unwrap().to_string();
            assert_eq!(compact(text.as_bytes()).unwrap(), tree, "{text}");
        }
    }

    #[test]
    fn it_refuses_what_the_tree_refuses_and_double_names() {
        for depth in [62, 63, 64, 65, 66, 100] {
            let text = format!("{{\"a\": {}1{}}}", "[".repeat(depth), "]".repeat(depth));
            let tree = Attributes::parse(text.as_bytes());
            assert_eq!(compact(text.as_bytes()).is_ok(), tree.is_ok(), "{depth}");
        }
        for text in [
            "[1]",
            "{",
            "{\"a\": x}",
            "",
            r#"{"a": 1, "b": {"c": 1, "\u0063": 2}}"#,
        ] {
            assert!(compact(text.as_bytes()).is_err(), "{text}");
        }
        assert!(compact(br#"{"a": {"b": 1}, "b": [{"a": 1}, {"a": 1}]}"#).is_ok());
    }
}
