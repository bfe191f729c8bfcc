//! Fields of the header with an item for each axis.

use std::fmt::Write;

/// Writes a field with one item for each axis; `first` is the item of the axis of complex numbers.
pub(super) fn per_axis(
    out: &mut String,
    field: &str,
    first: Option<&str>,
    items: impl Iterator<Item = String>,
) {
    let _ = write!(out, "{field}:");
    if let Some(first) = first {
        let _ = write!(out, " {first}");
    }
    for item in items {
        let _ = write!(out, " {item}");
    }
    out.push('\n');
}
