//! Recognises N5, so that it can be refused by name.
//!
//! Source: N5 specification, sections "Groups" and "Datasets".

use super::document::JsonDocument;
use crate::error::FormatError;

/// Whether `text` is the `attributes.json` of an N5 group or dataset, and not another file of that
/// name.
pub fn is_attributes(text: &[u8]) -> bool {
    let is_n5 = || {
        let document = JsonDocument::parse(text)?;
        let root = document.root()?;
        let is_dataset = ["dimensions", "blockSize", "dataType"]
            .iter()
            .all(|member| root.get(member).is_some());
        Ok::<bool, FormatError>(is_dataset || root.get("n5").is_some())
    };
    is_n5().unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn n5_is_told_by_its_members() {
        assert!(is_attributes(br#"{"n5": "2.5.0"}"#));
        assert!(is_attributes(
            br#"{"dimensions": [1], "blockSize": [1], "dataType": "uint8"}"#
        ));
        for text in [r#"{"dimensions": [1]}"#, "{}", "[]", "no JSON"] {
            assert!(!is_attributes(text.as_bytes()), "{text}");
        }
    }
}
