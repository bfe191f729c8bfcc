//! The OME-XML of one image, schema 2016-06.
//!
//! <https://www.openmicroscopy.org/Schemas/OME/2016-06/ome.xsd>

use std::fmt::Write;

use super::super::Array;
use super::super::axes::{Axis, units::Unit};
use super::super::image::{Image, Role};
use crate::metadata::Json;

const SCHEMA: &str = "http://www.openmicroscopy.org/Schemas/OME/2016-06";
/// More channels than these are counted, but not named one by one.
const MOST_CHANNELS: u64 = 1024;
/// Attributes take no more bytes of XML than this; those that would are left out.
const MOST_ATTRIBUTES: usize = 64 << 10;

/// Lengths of the model by their powers of ten of a metre.
const LENGTHS: [(&str, i32); 22] = [
    ("Ym", 24),
    ("Zm", 21),
    ("Em", 18),
    ("Pm", 15),
    ("Tm", 12),
    ("Gm", 9),
    ("Mm", 6),
    ("km", 3),
    ("hm", 2),
    ("dam", 1),
    ("m", 0),
    ("dm", -1),
    ("cm", -2),
    ("mm", -3),
    ("µm", -6),
    ("nm", -9),
    ("Å", -10),
    ("pm", -12),
    ("fm", -15),
    ("am", -18),
    ("zm", -21),
    ("ym", -24),
];
/// Lengths of the model by the first of their words.
const OTHER_LENGTHS: [(&str, &str); 5] = [
    ("in", "inch"),
    ("ft", "foot"),
    ("yd", "yard"),
    ("mi", "mile"),
    ("pc", "parsec"),
];
/// Times of the model that are powers of ten of a second.
const TIMES: [(&str, i32); 10] = [
    ("Ms", 6),
    ("ks", 3),
    ("s", 0),
    ("ds", -1),
    ("cs", -2),
    ("ms", -3),
    ("µs", -6),
    ("ns", -9),
    ("ps", -12),
    ("fs", -15),
];
const OTHER_TIMES: [(&str, &str); 3] = [("min", "minute"), ("h", "hour"), ("d", "day")];

/// The document.
pub(super) fn document(array: &Array, image: &Image<'_>, pixel_type: &str) -> String {
    let mut xml = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <OME xmlns=\"{SCHEMA}\" xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\" \
         xsi:schemaLocation=\"{SCHEMA} {SCHEMA}/ome.xsd\" Creator=\"zarr-mount {}\">\n",
        env!("CARGO_PKG_VERSION")
    );
    let annotations = annotations(array);
    // Writing to a string never fails.
    let _ = writeln!(
        xml,
        "<Image ID=\"Image:0\" Name=\"{}\">",
        escaped(&array.name)
    );
    xml.push_str(&pixels(image, pixel_type));
    if !annotations.is_empty() {
        xml.push_str("<AnnotationRef ID=\"Annotation:0\"/>\n");
    }
    xml.push_str("</Image>\n");
    xml.push_str(&annotations);
    xml.push_str("</OME>\n");
    xml
}

fn pixels(image: &Image<'_>, pixel_type: &str) -> String {
    let [size_y, size_x] = image.plane();
    let [size_z, size_c, size_t] = [Role::Z, Role::C, Role::T].map(|role| image.len(role));
    let mut xml = format!(
        "<Pixels ID=\"Pixels:0\" DimensionOrder=\"{}\" Type=\"{pixel_type}\" BigEndian=\"false\" \
         SizeX=\"{size_x}\" SizeY=\"{size_y}\" SizeZ=\"{size_z}\" SizeC=\"{size_c}\" \
         SizeT=\"{size_t}\"",
        dimension_order(image)
    );
    let [y, x] = image.plane_axes();
    let space = [("X", x), ("Y", y), ("Z", image.axis(Role::Z))];
    let mut position = String::new();
    for (name, axis) in space {
        let Some((axis, unit)) = axis.and_then(|axis| Some((axis, length_unit(axis)?))) else {
            continue;
        };
        if let Some(spacing) = axis.spacing {
            let _ = write!(
                xml,
                " PhysicalSize{name}=\"{spacing:?}\" PhysicalSize{name}Unit=\"{unit}\""
            );
        }
        if let Some(origin) = axis.origin {
            let _ = write!(
                position,
                " Position{name}=\"{origin:?}\" Position{name}Unit=\"{unit}\""
            );
        }
    }
    let increment = image
        .axis(Role::T)
        .and_then(|t| Some((t.spacing?, time_unit(t)?)));
    if let Some((spacing, unit)) = increment {
        let _ = write!(
            xml,
            " TimeIncrement=\"{spacing:?}\" TimeIncrementUnit=\"{unit}\""
        );
    }
    xml.push_str(">\n");
    if size_c <= MOST_CHANNELS {
        for channel in 0..size_c {
            let _ = writeln!(
                xml,
                "<Channel ID=\"Channel:0:{channel}\" SamplesPerPixel=\"1\"/>"
            );
        }
    }
    let n_planes = image.n_planes().unwrap_or(1);
    let _ = writeln!(xml, "<TiffData IFD=\"0\" PlaneCount=\"{n_planes}\"/>");
    if !position.is_empty() {
        let _ = writeln!(xml, "<Plane TheZ=\"0\" TheC=\"0\" TheT=\"0\"{position}/>");
    }
    xml.push_str("</Pixels>\n");
    xml
}

/// The axes, fastest first; those that the array lacks last.
fn dimension_order(image: &Image<'_>) -> String {
    let mut order: Vec<Role> = image.roles().rev().collect();
    for role in [Role::Z, Role::C, Role::T] {
        if !order.contains(&role) {
            order.push(role);
        }
    }
    let letters = order.iter().map(|role| match role {
        Role::T => 'T',
        Role::C => 'C',
        Role::Z => 'Z',
    });
    "XY".chars().chain(letters).collect()
}

/// The name of the unit of length of an axis in the model. Sizes without a unit get one that no
/// other can be made of, because to say none means micrometres.
fn length_unit(axis: &Axis) -> Option<&'static str> {
    let Some(word) = axis.unit.as_deref() else {
        return Some("reference frame");
    };
    named(Unit::length(word)?, &LENGTHS, &OTHER_LENGTHS, Unit::length)
}

fn time_unit(axis: &Axis) -> Option<&'static str> {
    let unit = Unit::time(axis.unit.as_deref()?)?;
    named(unit, &TIMES, &OTHER_TIMES, Unit::time)
}

fn named(
    unit: Unit,
    powers: &[(&'static str, i32)],
    others: &[(&'static str, &str)],
    parse: impl Fn(&str) -> Option<Unit>,
) -> Option<&'static str> {
    let mut powers = powers.iter();
    let power = powers.find(|(_, power)| Unit::power(*power) == unit);
    let mut others = others.iter();
    power.map(|(name, _)| *name).or_else(|| {
        others
            .find(|(_, word)| parse(word) == Some(unit))
            .map(|(name, _)| *name)
    })
}

/// The attributes of the array as text by name.
fn annotations(array: &Array) -> String {
    let mut pairs = String::new();
    for (name, value) in array.attributes.iter() {
        let text = match value {
            Json::Text(text) => escaped(text),
            other => escaped(&other.to_string()),
        };
        let pair = format!("<M K=\"{}\">{text}</M>\n", escaped(name));
        if pairs.len() + pair.len() <= MOST_ATTRIBUTES {
            pairs.push_str(&pair);
        }
    }
    if pairs.is_empty() {
        return pairs;
    }
    format!(
        "<StructuredAnnotations>\n<MapAnnotation ID=\"Annotation:0\" Namespace=\"zarr.dev/attributes\">\n\
         <Value>\n{pairs}</Value>\n</MapAnnotation>\n</StructuredAnnotations>\n"
    )
}

/// Text for an element or a quoted attribute. Characters that XML 1.0 has no way to say are
/// replaced (section 2.2).
fn escaped(text: &str) -> String {
    let mut xml = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => xml.push_str("&amp;"),
            '<' => xml.push_str("&lt;"),
            '>' => xml.push_str("&gt;"),
            '"' => xml.push_str("&quot;"),
            // A reader would make blanks of them in an attribute.
            '\t' | '\n' | '\r' => {
                let _ = write!(xml, "&#{};", u32::from(character));
            }
            '\0'..='\x1f' | '\u{fffe}' | '\u{ffff}' => xml.push('\u{fffd}'),
            other => xml.push(other),
        }
    }
    xml
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_escaped() {
        assert_eq!(
            escaped("a<b>&\"c\"\n\u{1}é"),
            "a&lt;b&gt;&amp;&quot;c&quot;&#10;\u{fffd}é"
        );
    }

    #[test]
    fn units_have_the_symbols_of_the_model() {
        let unit = |word: Option<&str>| {
            length_unit(&Axis {
                unit: word.map(str::to_owned),
                ..Axis::default()
            })
        };
        assert_eq!(unit(Some("micrometer")), Some("µm"));
        assert_eq!(unit(Some("angstrom")), Some("Å"));
        assert_eq!(unit(Some("inch")), Some("in"));
        assert_eq!(unit(Some("degrees_north")), None);
        assert_eq!(unit(None), Some("reference frame"));
        let minute = Axis {
            unit: Some("minute".to_owned()),
            ..Axis::default()
        };
        assert_eq!(time_unit(&minute), Some("min"));
    }
}
