//! The positions of the axes: as columns of one matrix if all axes are in space (or of channels) and all of those in
//! space have a spacing, else axis by axis. No axis has both.

use std::fmt::Write;

use super::per_axis::per_axis;
use crate::plain::axes::are_partly_spaced;
use crate::plain::symbols::symbol;
use crate::plain::{Axis, AxisKind};

/// The most dimensions of a space.
const MOST_SPACE: usize = 8;

/// Writes the fields about axes; `axes` are sorted fastest first.
pub(super) fn fields(out: &mut String, complex: bool, axes: &[&Axis]) {
    let first = |text: &'static str| complex.then_some(text);
    let measured = |axis: &&Axis| axis.spacing.or(axis.origin).is_some();
    let space: Vec<&Axis> = axes
        .iter()
        .copied()
        .filter(|axis| is_in_space(axis))
        .collect();
    // ITK accepts a space only if all axes are in it, except the axes of channels.
    let only_space = axes
        .iter()
        .all(|axis| matches!(axis.kind, AxisKind::Space | AxisKind::Channel));
    let has_space = only_space
        && space.iter().any(measured)
        && space.len() <= MOST_SPACE
        && !are_partly_spaced(space.iter().copied());
    if has_space {
        write_space(out, complex, axes, &space);
    }
    let alone: Vec<Option<&Axis>> = axes
        .iter()
        .map(|axis| Some(*axis).filter(|axis| !(has_space && is_in_space(axis))))
        .collect();
    let number = |value: Option<f64>| value.map_or_else(|| "nan".to_owned(), |x| format!("{x:?}"));
    let spacings = alone
        .iter()
        .map(|axis| number(axis.and_then(|axis| axis.spacing)));
    known(out, "spacings", complex, "nan", spacings);
    let origins = || alone.iter().map(|axis| axis.and_then(|axis| axis.origin));
    if known(out, "axis mins", complex, "nan", origins().map(number)) {
        let center = |origin: Option<f64>| origin.map_or("none", |_| "node").to_owned();
        per_axis(out, "centers", first("none"), origins().map(center));
    }
    let units = alone
        .iter()
        .map(|axis| axis.and_then(|axis| axis.unit.as_deref()));
    known(
        out,
        "units",
        complex,
        "\"\"",
        units.map(|unit| quoted(unit.map(symbol))),
    );
    if complex || axes.iter().any(|axis| axis.kind != AxisKind::Other) {
        let kinds = axes.iter().map(|axis| kind(axis.kind).to_owned());
        per_axis(out, "kinds", first("complex"), kinds);
    }
    let labels = axes.iter().map(|axis| quoted(axis.name.as_deref()));
    known(out, "labels", complex, "\"\"", labels);
}

/// Writes a field unless all `items` are `unknown`, which is also the item of the axis of complex
/// numbers. Returns whether it was written.
fn known(
    out: &mut String,
    field: &str,
    complex: bool,
    unknown: &str,
    items: impl Iterator<Item = String>,
) -> bool {
    let items: Vec<String> = items.collect();
    let any = items.iter().any(|item| item != unknown);
    if any {
        per_axis(out, field, complex.then_some(unknown), items.into_iter());
    }
    any
}

fn write_space(out: &mut String, complex: bool, axes: &[&Axis], space: &[&Axis]) {
    let dimension = space.len();
    let _ = writeln!(out, "space dimension: {dimension}");
    if space.iter().any(|axis| axis.unit.is_some()) {
        let units = space
            .iter()
            .map(|axis| quoted(axis.unit.as_deref().map(symbol)));
        per_axis(out, "space units", None, units);
    }
    let mut place = 0;
    let directions = axes.iter().map(|axis| {
        if !is_in_space(axis) {
            return "none".to_owned();
        }
        let spacing = axis.spacing.unwrap_or(1.0);
        let column = (0..dimension).map(|row| if row == place { spacing } else { 0.0 });
        let column = vector(column);
        place += 1;
        column
    });
    per_axis(
        out,
        "space directions",
        complex.then_some("none"),
        directions,
    );
    let origin = space.iter().map(|axis| axis.origin.unwrap_or(0.0));
    let _ = writeln!(out, "space origin: {}", vector(origin));
}

fn vector(items: impl Iterator<Item = f64>) -> String {
    let items: Vec<String> = items.map(|item| format!("{item:?}")).collect();
    format!("({})", items.join(","))
}

fn is_in_space(axis: &Axis) -> bool {
    axis.kind == AxisKind::Space
}

fn kind(kind: AxisKind) -> &'static str {
    match kind {
        AxisKind::Space => "space",
        AxisKind::Time => "time",
        AxisKind::Channel => "list",
        AxisKind::Other => "???",
    }
}

/// `text` in quotes; empty if it cannot stand on a line.
fn quoted(text: Option<&str>) -> String {
    let text = text.filter(|text| !text.contains(char::is_control) && !text.ends_with('\\'));
    format!("\"{}\"", text.unwrap_or_default().replace('"', "\\\""))
}
