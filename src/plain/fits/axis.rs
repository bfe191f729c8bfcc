//! The world coordinates of one axis.

use super::Cards;
use crate::plain::Axis;
use crate::plain::symbols::symbol;

/// Writes the cards of axis `number`; 1 is the fastest axis.
pub(super) fn cards(cards: &mut Cards, number: usize, axis: &Axis) {
    if let Some(name) = axis.name.as_deref().filter(|name| !name.is_empty()) {
        cards.text(&format!("CTYPE{number}"), name);
    }
    // With a unit and no spacing, readers would take one element for one unit.
    if axis.spacing.or(axis.origin).is_some() {
        if let Some(unit) = axis.unit.as_deref().and_then(unit) {
            cards.text(&format!("CUNIT{number}"), unit);
        }
        cards.float(&format!("CRPIX{number}"), 1.0);
        cards.float(&format!("CRVAL{number}"), axis.origin.unwrap_or(0.0));
        cards.float(&format!("CDELT{number}"), axis.spacing.unwrap_or(1.0));
    }
}

/// The spelling of a unit in FITS. Units that FITS does not define are left out, because readers
/// fail on them.
fn unit(unit: &str) -> Option<&str> {
    let known_as = match symbol(unit) {
        "angstrom" | "angstroms" | "Å" => "Angstrom",
        "degree" | "degrees" | "degrees_north" | "degrees_east" | "degree_north"
        | "degree_east" | "deg" => "deg",
        "radian" | "radians" | "rad" => "rad",
        "kelvin" | "K" => "K",
        "pixel" | "pixels" => "pixel",
        other => other,
    };
    let known = [
        "Angstrom", "deg", "rad", "K", "pixel", "m", "km", "cm", "mm", "um", "nm", "pm", "s", "ms",
        "us", "ns", "min", "h", "d", "Hz",
    ];
    known.contains(&known_as).then_some(known_as)
}
