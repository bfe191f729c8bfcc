//! `NaN` and `Infinity` in JSON.
//!
//! Python writes these words, although they are no JSON. While a set is parsed, they are replaced by two
//! numbers that no program would write. In the texts of documents, these numbers are replaced back.

use std::borrow::Cow;
use std::io::{self, Read};

/// The words, and the numbers for them. A minus sign stays before either.
const WORDS: [(&[u8], &str); 2] = [(b"NaN", "9E-90817263"), (b"Infinity", "9E-90817264")];

/// Replaces the words outside of texts.
pub(super) struct Masked<R> {
    json: R,
    is_in_text: bool,
    is_escaped: bool,
    /// The beginning of a word that was read, which may still be another one.
    word: Vec<u8>,
    /// Bytes that are ready.
    ready: Vec<u8>,
    taken: usize,
    is_end: bool,
}

impl<R: Read> Masked<R> {
    pub(super) fn new(json: R) -> Masked<R> {
        Masked {
            json,
            is_in_text: false,
            is_escaped: false,
            word: Vec::new(),
            ready: Vec::new(),
            taken: 0,
            is_end: false,
        }
    }

    fn add(&mut self, part: &[u8]) {
        for &byte in part {
            if !self.word.is_empty() {
                self.word.push(byte);
                let mut words = WORDS
                    .iter()
                    .filter(|(word, _)| word.starts_with(&self.word));
                match words.next() {
                    Some((word, number)) if word.len() == self.word.len() => {
                        self.ready.extend_from_slice(number.as_bytes());
                        self.word.clear();
                    }
                    Some(_) => {}
                    // No JSON: the parser says so.
                    None => self.ready.append(&mut self.word),
                }
                continue;
            }
            if self.is_in_text {
                if self.is_escaped {
                    self.is_escaped = false;
                } else {
                    self.is_escaped = byte == b'\\';
                    self.is_in_text = byte != b'"';
                }
            } else if let b'N' | b'I' = byte {
                self.word.push(byte);
                continue;
            } else {
                self.is_in_text = byte == b'"';
            }
            self.ready.push(byte);
        }
    }
}

impl<R: Read> Read for Masked<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let mut part = [0; 8 << 10];
        while self.taken == self.ready.len() && !self.is_end {
            self.ready.clear();
            self.taken = 0;
            let n = self.json.read(&mut part)?;
            self.is_end = n == 0;
            if self.is_end {
                let rest = std::mem::take(&mut self.word);
                self.ready.extend(rest);
            }
            self.add(part.get(..n).unwrap_or_default());
        }
        let ready = self.ready.get(self.taken..).unwrap_or_default();
        let n = ready.len().min(buf.len());
        if let (Some(target), Some(source)) = (buf.get_mut(..n), ready.get(..n)) {
            target.copy_from_slice(source);
        }
        self.taken += n;
        Ok(n)
    }
}

/// `json` with the words in their places again.
pub(super) fn unmasked(json: &str) -> Cow<'_, str> {
    let mut text = Cow::Borrowed(json);
    for (word, number) in WORDS {
        if text.contains(number) {
            let word = String::from_utf8_lossy(word);
            text = Cow::Owned(text.replace(number, &word));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_outside_of_texts_are_numbers_while_they_are_parsed() {
        for json in [
            r#"{"a": NaN, "NaN": [Infinity, -Infinity], "b": "\"NaN\\"}"#,
            "[NaN,NaN]",
            "{}",
            "[Nix]",
            "NaNInf",
            "N",
        ] {
            let mut masked = String::new();
            Masked::new(json.as_bytes())
                .read_to_string(&mut masked)
                .unwrap();
            assert_eq!(unmasked(&masked), json);
        }
        let mut masked = Vec::new();
        let json = br#"[NaN, -Infinity, "NaN"]"#;
        Masked::new(json.as_slice())
            .read_to_end(&mut masked)
            .unwrap();
        let parsed: serde_json::Value = serde_json::from_slice(&masked).unwrap();
        assert_eq!(parsed[2], "NaN");
    }
}
