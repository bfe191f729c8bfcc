//! Attributes as key/value pairs `key:=value`, with `\n` and `\\` escaped. Some attributes cannot
//! be pairs: those with other control characters than a tab, with a key that is empty, begins with
//! `#`, has a `:` or ends in blanks, or outside of ASCII, which some readers drop byte by byte.
//! These, and attributes that are too long, stand only in the JSON file beside this one.

use std::fmt::Write;

use crate::metadata::{Attributes, JsonTree};

/// The longest value in bytes.
const MOST_VALUE: usize = 64 * 1024;
/// The most bytes of all pairs.
const MOST_TOTAL: usize = 1024 * 1024;

/// Writes those of `attributes` that can be pairs.
pub(super) fn pairs(out: &mut String, attributes: &Attributes) {
    let mut room = MOST_TOTAL;
    for (key, value) in attributes.iter() {
        let text = match value {
            JsonTree::Text(text) => text.clone(),
            other => other.to_string(),
        };
        let length = key.len().saturating_add(text.len());
        let is_plain = key.is_ascii() && text.is_ascii() && !has_control(&text);
        if is_key(key) && is_plain && text.len() <= MOST_VALUE && length <= room {
            room -= length;
            pair(out, key, &text);
        }
    }
}

/// Names of fields; some readers take a pair with such a key for the field, in spite of the `:=`.
const FIELDS: [&str; 43] = [
    "number",
    "type",
    "block size",
    "blocksize",
    "dimension",
    "space",
    "space dimension",
    "sizes",
    "spacings",
    "thicknesses",
    "axis mins",
    "axismins",
    "axis maxs",
    "axismaxs",
    "centers",
    "centerings",
    "labels",
    "units",
    "min",
    "max",
    "old min",
    "oldmin",
    "old max",
    "oldmax",
    "endian",
    "encoding",
    "content",
    "sample units",
    "sampleunits",
    "space units",
    "space origin",
    "space directions",
    "measurement frame",
    "kinds",
    "data file",
    "datafile",
    "line skip",
    "lineskip",
    "byte skip",
    "byteskip",
    "keyvalue",
    "comment",
    "magic",
];

/// Writes a pair. A key that is the name of a field gets the prefix `zarr_`.
pub(super) fn pair(out: &mut String, key: &str, value: &str) {
    let is_field = FIELDS.iter().any(|field| field.eq_ignore_ascii_case(key));
    let prefix = if is_field { "zarr_" } else { "" };
    let _ = writeln!(out, "{prefix}{}:={}", escaped(key), escaped(value));
}

fn is_key(key: &str) -> bool {
    let is_other = key.is_empty() || key.starts_with('#') || key.contains(':');
    !is_other && key.trim() == key && !has_control(key)
}

fn has_control(text: &str) -> bool {
    text.contains(|c: char| c.is_ascii_control() && c != '\n' && c != '\t')
}

fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('\n', "\\n")
}
