//! The XML before and after the elements.

use std::fmt::Write;

use super::image::VtkImage;
use crate::plain::Axis;
use crate::plain::axes::{are_partly_spaced, units::Unit};
use crate::plain::xml_text::escaped;

/// The text after the elements.
pub(super) const TAIL: &str = "\n  </AppendedData>\n</VTKFile>\n";

/// The text before the length of the first array. Each array has `len` bytes; the elements of the
/// first begin at a multiple of `align`.
pub(super) fn head(image: &VtkImage<'_>, len: u64, align: usize) -> Vec<u8> {
    let mut extent = String::new();
    let lengths = image.shape.iter().rev().chain(std::iter::repeat(&1));
    for length in lengths.take(3) {
        let blank = if extent.is_empty() { "" } else { " " };
        // No axis is empty.
        let _ = write!(extent, "{blank}0 {}", length.saturating_sub(1));
    }
    let is_partial = are_partly_spaced(image.axes);
    let axes = if is_partial { &[] } else { image.axes };
    let origin = measures(axes, 0.0, |axis| axis.origin);
    let spacing = measures(axes, 1.0, |axis| axis.spacing);
    let first = image.names.first().map_or("", String::as_str);
    let mut out = format!(
        "<?xml version=\"1.0\"?>\n\
         <VTKFile type=\"ImageData\" version=\"1.0\" byte_order=\"LittleEndian\" header_type=\"UInt64\">\n  \
         <ImageData WholeExtent=\"{extent}\" Origin=\"{origin}\" Spacing=\"{spacing}\">\n    \
         <Piece Extent=\"{extent}\">\n      \
         <PointData Scalars=\"{}\">\n",
        escaped(first)
    );
    let (kind, components) = (image.type_name, image.components);
    let mut offset = 0_u64;
    for name in &image.names {
        let name = escaped(name);
        let _ = writeln!(
            out,
            "        <DataArray type=\"{kind}\" Name=\"{name}\" \
             NumberOfComponents=\"{components}\" format=\"appended\" offset=\"{offset}\"/>"
        );
        // The sum does not exceed the length of the file, which is checked.
        offset = offset.saturating_add(len).saturating_add(8);
    }
    out.push_str(
        "      </PointData>\n    </Piece>\n  </ImageData>\n  <AppendedData encoding=\"raw\">\n",
    );
    let mut out = out.into_bytes();
    // The underscore and the length take 9 bytes.
    let end = (out.len() + 9).next_multiple_of(align);
    out.resize(end - 9, b' ');
    out.push(b'_');
    out
}

/// A number for each of x, y and z. The format has no units, so that all lengths are in the first unit of length.
fn measures(axes: &[Axis], unknown: f64, of: impl Fn(&Axis) -> Option<f64>) -> String {
    let length = |axis: &Axis| axis.unit.as_deref().and_then(Unit::length);
    let first = axes.iter().rev().find_map(length);
    let measure = |axis: &Axis| match length(axis).zip(first) {
        Some((unit, first)) => unit.convert(of(axis)?, first),
        None => of(axis),
    };
    let known = axes
        .iter()
        .rev()
        .map(|axis| measure(axis).unwrap_or(unknown));
    let all = known.chain(std::iter::repeat(unknown)).take(3);
    let all: Vec<String> = all.map(|value| format!("{value:?}")).collect();
    all.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_escaped() {
        assert_eq!(
            escaped("<a&\"b\"\n\u{1}é>"),
            "&lt;a&amp;&quot;b&quot;&#10;\u{fffd}é&gt;"
        );
    }
}
