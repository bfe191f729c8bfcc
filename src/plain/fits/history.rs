//! Attributes without a card of their own: `key = value`, with the value as JSON, in as many
//! `HISTORY` cards as it takes. Attributes that are too long stand only in the JSON file beside
//! this one.

use std::fmt::Write;

use super::Cards;
use crate::metadata::Attributes;

/// Columns for text in a card.
const WIDTH: usize = 72;
/// The longest attribute, in characters.
const MOST_EACH: usize = 4096;
/// The most characters of all attributes.
const MOST_TOTAL: usize = 64 * 1024;

/// Writes those of `attributes` that are not in `expressed`, which other cards express.
pub(super) fn cards(cards: &mut Cards, attributes: &Attributes, expressed: &[&str]) {
    let mut room = MOST_TOTAL;
    for (name, value) in attributes
        .iter()
        .filter(|(name, _)| !expressed.contains(name))
    {
        let text = ascii(&format!("{name} = {value}"));
        if text.len() > MOST_EACH || text.len() > room {
            continue;
        }
        room -= text.len();
        for part in text.as_bytes().chunks(WIDTH) {
            // ASCII can be split anywhere.
            cards.comment("HISTORY", str::from_utf8(part).unwrap_or_default());
        }
    }
}

/// `text` with escapes of JSON for every character that is not printable ASCII.
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
