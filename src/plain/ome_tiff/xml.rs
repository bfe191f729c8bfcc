//! The OME-XML of one image, schema 2016-06.
//!
//! <https://www.openmicroscopy.org/Schemas/OME/2016-06/ome.xsd>

use std::fmt::Write;

use super::super::axes::{Axis, Channel, units::Unit};
use super::super::cf::attributes::OMITTED;
use super::super::format::shortened;
use super::super::image::{Image, ImageAxis};
use super::super::xml_text::escaped;
use super::super::{FileFormat, Omitted};
use super::pixels::Pixels;
use crate::metadata::{Attributes, JsonTree};

const SCHEMA: &str = "http://www.openmicroscopy.org/Schemas/OME/2016-06";
/// If there are more channels, they are counted but not described one by one.
const MOST_CHANNELS: u64 = 1024;
/// The most bytes of XML for attributes; attributes beyond that are left out.
const MOST_ATTRIBUTES: usize = 64 << 10;

/// The OME names of lengths that are no metres with a prefix, and the words that `Unit` parses.
const OTHER_LENGTHS: [(&str, &str); 6] = [
    ("Å", "angstrom"),
    ("in", "inch"),
    ("ft", "foot"),
    ("yd", "yard"),
    ("mi", "mile"),
    ("pc", "parsec"),
];
/// The OME unit of lengths that converts to no other.
const REFERENCE_FRAME: &str = "reference frame";
/// The prefixes that the OME model has for seconds.
const TIME_PREFIXES: [&str; 10] = ["M", "k", "", "d", "c", "m", "u", "n", "p", "f"];
const OTHER_TIMES: [(&str, &str); 3] = [("min", "minute"), ("h", "hour"), ("d", "day")];

/// The image of a document, beside its planes.
pub(super) struct Described<'a> {
    pub(super) name: &'a str,
    /// The attributes of the array or group.
    pub(super) attributes: &'a Attributes,
    /// The arrays and facts that the file does not hold.
    pub(super) omitted: &'a [Omitted],
}

/// The whole document.
pub(super) fn document(described: &Described<'_>, planes: &Pixels<'_>) -> String {
    let mut xml = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <OME xmlns=\"{SCHEMA}\" xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\" \
         xsi:schemaLocation=\"{SCHEMA} {SCHEMA}/ome.xsd\" Creator=\"zarr-mount {}\">\n",
        env!("CARGO_PKG_VERSION")
    );
    let annotations = annotations(described);
    // Writing to a string never fails.
    let _ = writeln!(
        xml,
        "<Image ID=\"Image:0\" Name=\"{}\">",
        escaped(described.name)
    );
    xml.push_str(&pixels(&planes.image, planes.pixel_type));
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
    let [size_z, size_c, size_t] =
        [ImageAxis::Z, ImageAxis::C, ImageAxis::T].map(|role| image.len(role));
    let samples = image.samples();
    let mut xml = format!(
        "<Pixels ID=\"Pixels:0\" DimensionOrder=\"{}\" Type=\"{pixel_type}\" BigEndian=\"false\" \
         SizeX=\"{size_x}\" SizeY=\"{size_y}\" SizeZ=\"{size_z}\" SizeC=\"{}\" \
         SizeT=\"{size_t}\"",
        dimension_order(image),
        // The samples of a pixel count as channels.
        size_c.saturating_mul(samples.into())
    );
    let [y, x] = image.plane_axes();
    let space = [("X", x), ("Y", y), ("Z", image.axis(ImageAxis::Z))];
    let mut position = String::new();
    for (name, axis) in space {
        let Some((axis, unit)) = axis.map(|axis| (axis, length_unit(axis))) else {
            continue;
        };
        if let Some(spacing) = axis.spacing {
            xml.push_str(&quantity(&format!("PhysicalSize{name}"), spacing, &unit));
        }
        if let Some(origin) = axis.origin {
            position.push_str(&quantity(&format!("Position{name}"), origin, &unit));
        }
    }
    let time = image.axis(ImageAxis::T);
    if let Some((spacing, unit)) =
        time.and_then(|t| Some((t.spacing?, known_time(t.unit.as_deref()?)?)))
    {
        xml.push_str(&quantity("TimeIncrement", spacing, &unit));
    }
    xml.push_str(">\n");
    if size_c <= MOST_CHANNELS {
        let axis = image.axis(ImageAxis::C);
        let mut described = axis.map(|axis| axis.channels.iter()).unwrap_or_default();
        for number in 0..size_c {
            let described = described.next().map(channel).unwrap_or_default();
            let _ = writeln!(
                xml,
                "<Channel ID=\"Channel:0:{number}\"{described} SamplesPerPixel=\"{samples}\"/>"
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

/// The XML attributes of a channel: its name, and its colour as a signed number with red, green, blue and opacity from the highest byte on.
fn channel(channel: &Channel) -> String {
    let mut xml = String::new();
    if let Some(label) = &channel.label {
        let _ = write!(xml, " Name=\"{}\"", escaped(label));
    }
    if let Some([red, green, blue]) = channel.color {
        let number = i32::from_be_bytes([red, green, blue, u8::MAX]);
        let _ = write!(xml, " Color=\"{number}\"");
    }
    xml
}

/// The XML attributes of a quantity: the number and its unit.
fn quantity(name: &str, value: f64, unit: &str) -> String {
    format!(" {name}=\"{value:?}\" {name}Unit=\"{unit}\"")
}

/// The letters of the axes, fastest first; axes that the array lacks come last.
fn dimension_order(image: &Image<'_>) -> String {
    let mut order: Vec<ImageAxis> = image.roles().rev().collect();
    for role in [ImageAxis::Z, ImageAxis::C, ImageAxis::T] {
        if !order.contains(&role) {
            order.push(role);
        }
    }
    let letters = order.iter().map(|role| match role {
        ImageAxis::T => 'T',
        ImageAxis::C => 'C',
        ImageAxis::Z => 'Z',
    });
    "XY".chars().chain(letters).collect()
}

/// The OME name of the unit of an axis in space. Without a unit, or with one that OME lacks, it is "reference frame", because OME
/// reads a missing unit as micrometres.
fn length_unit(axis: &Axis) -> String {
    let name = axis.unit.as_deref().and_then(known_length);
    name.unwrap_or_else(|| REFERENCE_FRAME.to_owned())
}

/// The OME name of the unit of length called `word`.
fn known_length(word: &str) -> Option<String> {
    if matches!(word, "pixel" | "pixels") {
        return Some("pixel".to_owned());
    }
    named(Unit::length(word)?, "m", &OTHER_LENGTHS, Unit::length)
}

/// A function that gives the OME name of the unit called by a word.
type UnitName = fn(&str) -> Option<String>;

/// The units along which `planes` have sizes, and which OME lacks.
pub(super) fn unknown_units(planes: &Pixels<'_>) -> Vec<Omitted> {
    let [y, x] = planes.image.plane_axes();
    let [z, time] = [ImageAxis::Z, ImageAxis::T].map(|role| planes.image.axis(role));
    let all: [(&str, Option<&Axis>, UnitName); 4] = [
        ("X", x, known_length),
        ("Y", y, known_length),
        ("Z", z, known_length),
        ("T", time, known_time),
    ];
    let unknown = all.into_iter().filter_map(|(name, axis, known)| {
        let axis = axis.filter(|axis| axis.spacing.is_some())?;
        let word = axis.unit.as_deref().filter(|word| known(word).is_none())?;
        Some(Omitted {
            name: format!("{}:{name}", planes.array.name),
            reason: FileFormat::OmeTif.refused("unit", shortened(word)),
        })
    });
    unknown.collect()
}

/// The OME name of the unit of time called `word`.
fn known_time(word: &str) -> Option<String> {
    let unit = Unit::time(word)?;
    let is_known = unit.prefix().is_none_or(|it| TIME_PREFIXES.contains(&it));
    named(unit, "s", &OTHER_TIMES, Unit::time).filter(|_| is_known)
}

/// The OME name of a unit: a prefix and `symbol`, or one of the `others`.
fn named(
    unit: Unit,
    symbol: &str,
    others: &[(&str, &str)],
    parse: fn(&str) -> Option<Unit>,
) -> Option<String> {
    if let Some(prefix) = unit.prefix() {
        return Some(format!("{}{symbol}", prefix.replace('u', "µ")));
    }
    let mut others = others.iter();
    let other = others.find(|(_, word)| parse(word) == Some(unit));
    other.map(|(name, _)| (*name).to_owned())
}

/// The attributes and what is left out, as an annotation with text by name.
fn annotations(described: &Described<'_>) -> String {
    let mut pairs = String::new();
    let mut add = |name: &str, text: &str| {
        let pair = format!("<M K=\"{}\">{}</M>\n", escaped(name), escaped(text));
        if pairs.len() + pair.len() <= MOST_ATTRIBUTES {
            pairs.push_str(&pair);
        }
    };
    if !described.omitted.is_empty() {
        let lines = described.omitted.iter();
        let lines = lines.map(|Omitted { name, reason }| format!("{name}: {reason}"));
        add(OMITTED, &lines.collect::<Vec<_>>().join("\n"));
    }
    for (name, value) in described.attributes.iter() {
        match value {
            JsonTree::Text(text) => add(name, text),
            other => add(name, &other.to_string()),
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
        assert_eq!(unit(Some("micrometer")), "µm");
        assert_eq!(unit(Some("angstrom")), "Å");
        assert_eq!(unit(Some("inch")), "in");
        assert_eq!(unit(Some("pixels")), "pixel");
        assert_eq!(unit(Some("degrees_north")), "reference frame");
        assert_eq!(unit(None), "reference frame");
        assert_eq!(known_time("minute").as_deref(), Some("min"));
        assert_eq!(known_time("frame"), None);
    }
}
