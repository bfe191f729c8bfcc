//! The outline of a long document: its text without the parts that make it long, which are its
//! attributes and its copies of other documents.
//!
//! ```text
//! {"zarr_format": 3, "attributes": {… 120 MB …}, "node_type": "group"}
//! {"zarr_format": 3, "attributes": {}, "node_type": "group"}
//! ```
//!
//! The document is read piece by piece and is never in memory as a whole. The parts that are left
//! out are not checked here.

use crate::error::FormatError;

/// Members of the document whose objects are left out.
const CUT: [&[u8]; 2] = [b"attributes", b"consolidated_metadata"];
/// The length of the longest of these names.
const LONGEST_NAME: usize = 21;

/// An outline that is being built while its document is read.
#[derive(Debug)]
pub struct Outline {
    text: Vec<u8>,
    limit: usize,
    depth: u64,
    place: TextPlace,
    /// The last string at the top level of the document, up to the length of the longest name that
    /// matters.
    name: Vec<u8>,
    /// Whether a value at the top level begins next.
    expects_value: bool,
    is_cutting: bool,
    has_copies: bool,
}

/// The position of the next byte: between the strings of the JSON, or in one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TextPlace {
    Between,
    Within,
    AfterBackslash,
}

impl Outline {
    /// The outline of a document of which nothing was read yet. It may have at most `limit` bytes.
    pub fn new(limit: usize) -> Outline {
        Outline {
            text: Vec::new(),
            limit,
            depth: 0,
            place: TextPlace::Between,
            name: Vec::new(),
            expects_value: false,
            is_cutting: false,
            has_copies: false,
        }
    }

    /// Takes the next bytes of the document.
    ///
    /// # Errors
    ///
    /// When the outline itself is too long.
    pub fn feed(&mut self, bytes: &[u8]) -> Result<(), FormatError> {
        for &byte in bytes {
            if !self.is_cutting {
                self.text.push(byte);
            }
            match self.place {
                TextPlace::Between => self.between_texts(byte),
                TextPlace::Within | TextPlace::AfterBackslash => self.in_text(byte),
            }
        }
        if self.text.len() <= self.limit {
            return Ok(());
        }
        let what = "the size of the document without its attributes";
        Err(FormatError::above_limit(what, self.limit as u64))
    }

    /// The outline, and whether the document had copies of other documents.
    pub fn finish(self) -> (Vec<u8>, bool) {
        (self.text, self.has_copies)
    }

    fn in_text(&mut self, byte: u8) {
        self.place = match (self.place, byte) {
            (TextPlace::Within, b'"') => TextPlace::Between,
            (TextPlace::Within, b'\\') => TextPlace::AfterBackslash,
            _ => TextPlace::Within,
        };
        let ends = self.place == TextPlace::Between;
        if self.depth == 1 && !ends && self.name.len() <= LONGEST_NAME {
            self.name.push(byte);
        }
    }

    fn between_texts(&mut self, byte: u8) {
        match byte {
            b'"' => {
                self.place = TextPlace::Within;
                if self.depth == 1 {
                    self.name.clear();
                    self.expects_value = false;
                }
            }
            b':' if self.depth == 1 => self.expects_value = true,
            b'{' | b'[' => {
                self.depth += 1;
                let is_cut = byte == b'{' && self.depth == 2 && self.expects_value;
                if is_cut && CUT.contains(&self.name.as_slice()) {
                    self.is_cutting = true;
                    self.has_copies |= self.name.starts_with(b"c");
                }
                self.expects_value = false;
            }
            b'}' | b']' => {
                self.depth = self.depth.saturating_sub(1);
                if self.is_cutting && self.depth == 1 {
                    self.is_cutting = false;
                    self.text.push(byte);
                }
            }
            b' ' | b'\t' | b'\r' | b'\n' => {}
            _ => self.expects_value = false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outline(text: &str, piece: usize) -> (String, bool) {
        let mut outline = Outline::new(1000);
        for bytes in text.as_bytes().chunks(piece) {
            outline.feed(bytes).unwrap();
        }
        let (text, has_copies) = outline.finish();
        (String::from_utf8(text).unwrap(), has_copies)
    }

    #[test]
    fn attributes_and_copies_are_cut_out() {
        for (text, expected, has_copies) in [
            (
                r#"{"a": 1, "attributes" : {"x": ["}\"", {"attributes": {}}]}, "b": [{"attributes": {"c": 1}}]}"#,
                r#"{"a": 1, "attributes" : {}, "b": [{"attributes": {"c": 1}}]}"#,
                false,
            ),
            (
                r#"{"consolidated_metadata": {"metadata": {"a": {}}}, "attributes": {}}"#,
                r#"{"consolidated_metadata": {}, "attributes": {}}"#,
                true,
            ),
            (
                r#"{"consolidated_metadata": null, "attributes": [NaN, {"a": "attributes"}]}"#,
                r#"{"consolidated_metadata": null, "attributes": [NaN, {"a": "attributes"}]}"#,
                false,
            ),
            (
                r#"{"x": "attributes", "y": {"z": 1}, "attributes\\": {"z": 1}}"#,
                r#"{"x": "attributes", "y": {"z": 1}, "attributes\\": {"z": 1}}"#,
                false,
            ),
            ("]}{\"", "]}{\"", false),
        ] {
            for piece in [1, 2, 7, 1000] {
                assert_eq!(outline(text, piece), (expected.to_owned(), has_copies));
            }
        }
    }

    #[test]
    fn the_rest_is_bounded() {
        let mut outline = Outline::new(1000);
        outline.feed(b"{\"attributes\": {\"a\": \"").unwrap();
        outline.feed(&[b'x'; 10_000]).unwrap();
        outline.feed(b"\"}, \"b\": \"").unwrap();
        assert!(outline.feed(&[b'x'; 1001]).is_err());
    }
}
