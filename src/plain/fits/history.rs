//! Attributes that no card is for: `key = value`, the value as JSON, in as many cards of
//! `HISTORY` as it takes. What is too long is in the JSON beside the file alone.

use std::fmt::Write;

use super::Cards;
use crate::metadata::Attributes;

/// Columns for text in a card.
const WIDTH: usize = 72;
/// The longest attribute, in characters.
const MOST_EACH: usize = 4096;
/// The most of all, in characters.
const MOST_TOTAL: usize = 64 * 1024;

/// Writes those of `attributes` that have not been `told`.
pub(super) fn cards(cards: &mut Cards, attributes: &Attributes, told: &[&str]) {
    let mut room = MOST_TOTAL;
    for (name, value) in attributes.iter().filter(|(name, _)| !told.contains(name)) {
        let text = ascii(&format!("{name} = {value}"));
        if text.len() > MOST_EACH || text.len() > room {
            continue;
        }
        room -= text.len();
        for part in text.as_bytes().chunks(WIDTH) {
            // ASCII can be cut anywhere.
            cards.comment("HISTORY", str::from_utf8(part).unwrap_or_default());
        }
    }
}

/// With the escapes of JSON for all that is not printable ASCII.
fn ascii(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        if matches!(character, ' '..='~') {
            out.push(character);
            continue;
        }
        for unit in character.encode_utf16(&mut [0; 2]) {
            // Writing to a string never fails.
            let _ = write!(out, "\\u{unit:04x}");
        }
    }
    out
}
