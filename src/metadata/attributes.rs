//! Attributes as a tree that keeps their order, and that also holds NaN and integers beyond 64
//! bits.

mod compact;

use std::collections::HashMap;

use serde_json::value::RawValue;

pub use compact::compact;

use super::ZarrFormat;
use super::document::{JsonDocument, quoted};
use super::json;
use super::write::{StoredDocuments, attributes_of_array};
use crate::error::FormatError;

/// The deepest nesting of attributes.
const MOST_NESTING: usize = 64;
/// The longest attributes of one node that are parsed, in bytes of JSON.
const MOST_BYTES: usize = 4 << 20;
/// The most memory, in bytes, that each byte of JSON takes as a tree. The worst case is `1,`: two
/// bytes that need a value and, meanwhile, the span of its text. The writer of a plain file also
/// has a copy of the tree.
pub const MEMORY_PER_BYTE: u64 = size_of::<JsonTree>() as u64;
/// Where all attributes are too long for a tree, it has the short members only: the longest of
/// them, and the most of all of them together, in bytes of JSON.
const MOST_MEMBER_BYTES: usize = 4 << 10;
const MOST_SHORT_BYTES: usize = 64 << 10;
/// Members that describe the coordinates of an array, for which a greater length is allowed.
const OF_AXES: [&str; 2] = ["multiscales", "ome"];
const MOST_AXES_BYTES: usize = 256 << 10;

/// The attributes of a node, or the members of an object in them, in their order.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Attributes(Vec<(String, JsonTree)>);

/// A JSON value with all that is in it.
#[derive(Debug, Clone, PartialEq)]
pub enum JsonTree {
    /// `null`
    Null,
    /// `true` or `false`
    Bool(bool),
    /// A number spelled without a point or an exponent.
    Integer(i128),
    /// Any other number, and the bare `NaN` and `Infinity` that Python writes.
    Float(f64),
    /// A string.
    Text(String),
    /// A list.
    List(Vec<JsonTree>),
    /// An object, whose members keep their order.
    Object(Attributes),
}

impl Attributes {
    /// The text of the attributes of an array, from its documents; `None` when it has none.
    ///
    /// # Errors
    ///
    /// When the attributes are not a JSON object, or are too long.
    pub fn text_of_array(
        format: ZarrFormat,
        source: &StoredDocuments<'_>,
    ) -> Result<Option<Vec<u8>>, FormatError> {
        // The length is checked before anything is parsed.
        check_len(source.attributes.map_or(0, <[u8]>::len))?;
        let text = attributes_of_array(format, source)?;
        check_len(text.as_ref().map_or(0, Vec::len))?;
        Ok(text)
    }

    /// Parses the JSON object `text`. The last of several members of one name counts.
    ///
    /// # Errors
    ///
    /// When the text is not a JSON object, nests too deeply or is too long.
    pub fn parse(text: &[u8]) -> Result<Attributes, FormatError> {
        check_len(text.len())?;
        let document = JsonDocument::parse(text)?;
        match tree(document.value()?, 0)? {
            JsonTree::Object(attributes) => Ok(attributes),
            _ => Err(FormatError::document("attributes", "expected an object")),
        }
    }

    /// Parses only the short members of the JSON object `text`, until together they reach a limit.
    /// They include those that describe dimensions.
    ///
    /// # Errors
    ///
    /// Those of [`Attributes::parse`].
    pub fn parse_short(text: &[u8]) -> Result<Attributes, FormatError> {
        check_len(text.len())?;
        let document = JsonDocument::parse(text)?;
        let value = document.value()?;
        let within = |error: FormatError| error.within("attributes");
        if !value.get().starts_with('{') {
            return Err(within(json::mismatch(value, "an object")));
        }
        let mut left = MOST_SHORT_BYTES;
        let mut number = 0;
        let mut short = HashMap::new();
        json::for_each_value(value, |name, value| {
            let name = name.unwrap_or_default();
            let bytes = name.len() + value.get().len();
            let is_of_axes = OF_AXES.contains(&name.as_str()) && bytes <= MOST_AXES_BYTES;
            // The last of several members of one name counts, even where it is too long.
            if let Some((_, _, counted)) = short.remove(&name) {
                left += counted;
            }
            if is_of_axes || bytes <= MOST_MEMBER_BYTES.min(left) {
                let counted = if is_of_axes { 0 } else { bytes };
                left -= counted;
                number += 1;
                short.insert(name, (number, value, counted));
            }
            Ok(())
        })
        .map_err(within)?;
        let mut short: Vec<_> = short.into_iter().collect();
        short.sort_unstable_by_key(|(_, (number, ..))| *number);
        short
            .into_iter()
            .map(|(name, (_, value, _))| Ok((name, tree(value, 1)?)))
            .collect()
    }

    /// The attribute `name`.
    pub fn get(&self, name: &str) -> Option<&JsonTree> {
        self.iter()
            .find(|(member, _)| *member == name)
            .map(|(_, value)| value)
    }

    /// The attribute `name`, if it is a string.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.get(name)?.as_text()
    }

    /// The attribute `name`, if it is a number.
    pub fn number(&self, name: &str) -> Option<f64> {
        self.get(name)?.as_number()
    }

    /// The name and value of each attribute, in their order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &JsonTree)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value))
    }

    /// Whether there are no attributes.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl FromIterator<(String, JsonTree)> for Attributes {
    fn from_iter<I: IntoIterator<Item = (String, JsonTree)>>(members: I) -> Self {
        Attributes(members.into_iter().collect())
    }
}

impl JsonTree {
    /// The string, if it is one.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            JsonTree::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The number, if it is one.
    #[expect(
        clippy::cast_precision_loss,
        reason = "for what is measured, not counted"
    )]
    pub fn as_number(&self) -> Option<f64> {
        match *self {
            JsonTree::Integer(value) => Some(value as f64),
            JsonTree::Float(value) => Some(value),
            _ => None,
        }
    }

    /// The list, if it is one.
    pub fn as_list(&self) -> Option<&[JsonTree]> {
        match self {
            JsonTree::List(items) => Some(items),
            _ => None,
        }
    }

    /// The object, if it is one.
    pub fn as_object(&self) -> Option<&Attributes> {
        match self {
            JsonTree::Object(members) => Some(members),
            _ => None,
        }
    }
}

/// Compact JSON, with the strings of Zarr v3 for numbers that are not finite.
impl std::fmt::Display for JsonTree {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            JsonTree::Null => f.write_str("null"),
            JsonTree::Bool(value) => write!(f, "{value}"),
            JsonTree::Integer(value) => write!(f, "{value}"),
            JsonTree::Float(value) if value.is_nan() => f.write_str("\"NaN\""),
            JsonTree::Float(value) if value.is_infinite() && *value > 0.0 => {
                f.write_str("\"Infinity\"")
            }
            JsonTree::Float(value) if value.is_infinite() => f.write_str("\"-Infinity\""),
            // This is the shortest text that reads as the same number.
            JsonTree::Float(value) => write!(f, "{value:?}"),
            JsonTree::Text(text) => f.write_str(&quoted(text)),
            JsonTree::List(items) => {
                f.write_str("[")?;
                for (i, item) in items.iter().enumerate() {
                    let comma = if i == 0 { "" } else { "," };
                    write!(f, "{comma}{item}")?;
                }
                f.write_str("]")
            }
            JsonTree::Object(members) => write!(f, "{members}"),
        }
    }
}

impl std::fmt::Display for Attributes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("{")?;
        for (i, (name, value)) in self.iter().enumerate() {
            let comma = if i == 0 { "" } else { "," };
            write!(f, "{comma}{}:{value}", quoted(name))?;
        }
        f.write_str("}")
    }
}

/// Checks the length of attributes, in bytes of JSON.
///
/// # Errors
///
/// When they are too long to be parsed.
pub fn check_len(bytes: usize) -> Result<(), FormatError> {
    FormatError::check_limit(
        "the size of the attributes",
        bytes as u64,
        MOST_BYTES as u64,
    )
}

fn check_depth(depth: usize) -> Result<(), FormatError> {
    if depth <= MOST_NESTING {
        return Ok(());
    }
    let problem = format!("nested more than {MOST_NESTING} deep");
    Err(FormatError::document("attributes", problem))
}

fn tree(raw: &RawValue, depth: usize) -> Result<JsonTree, FormatError> {
    check_depth(depth)?;
    if let Some(text) = json::lossy_text(raw) {
        return Ok(JsonTree::Text(text));
    }
    Ok(match json::Json::of(raw)? {
        json::Json::Null => JsonTree::Null,
        json::Json::Bool(value) => JsonTree::Bool(value),
        json::Json::Number(text) => number(text)?,
        json::Json::NonFinite(value) => JsonTree::Float(value),
        json::Json::String(text) => JsonTree::Text(text),
        json::Json::Array(items) => JsonTree::List(
            items
                .into_iter()
                .map(|item| tree(item, depth + 1))
                .collect::<Result<_, _>>()?,
        ),
        json::Json::Object(members) => {
            let mut tree_of: Vec<(String, JsonTree)> = Vec::new();
            let mut places = HashMap::new();
            for (name, value) in members.iter() {
                let value = tree(value, depth + 1)?;
                let known = places.get(name).copied();
                if let Some((_, held)) = known.and_then(|place: usize| tree_of.get_mut(place)) {
                    *held = value;
                } else {
                    places.insert(name.to_owned(), tree_of.len());
                    tree_of.push((name.to_owned(), value));
                }
            }
            JsonTree::Object(Attributes(tree_of))
        }
    })
}

fn number(text: &str) -> Result<JsonTree, FormatError> {
    if let Ok(value) = text.parse() {
        return Ok(JsonTree::Integer(value));
    }
    let value = text.parse().map(JsonTree::Float);
    value.map_err(|_| FormatError::document("attributes", format!("{text} is no number")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_long_ones_the_last_of_a_name_counts_and_axes_are_read_at_any_length() {
        let (long, axes) = ("1,".repeat(MOST_MEMBER_BYTES), "1,".repeat(100 << 10));
        let text = format!(
            r#"{{"a": 1, "b": 1, "ome": [{axes}1], "b": [{long}1], "a": 2, "multiscales": [{axes}{axes}1]}}"#
        );
        let attributes = Attributes::parse_short(text.as_bytes()).unwrap();
        let names: Vec<&str> = attributes.iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["ome", "a"]);
        assert_eq!(attributes.number("a"), Some(2.0));
    }

    #[test]
    fn of_long_ones_the_short_members_are_read() {
        let long = "1,".repeat(MOST_MEMBER_BYTES);
        let text = format!("{{\"a\": [\"x\"], \"long\": [{long}1], \"b\": 2}}");
        let attributes = Attributes::parse_short(text.as_bytes()).unwrap();
        assert_eq!(attributes.to_string(), "{\"a\":[\"x\"],\"b\":2}");
        let many: Vec<String> = (0..100_000).map(|n| format!("\"{n}\":{n}")).collect();
        let text = format!("{{{}}}", many.join(","));
        let attributes = Attributes::parse_short(text.as_bytes()).unwrap();
        assert!(attributes.iter().count() < MOST_SHORT_BYTES);
        assert_eq!(attributes.number("0"), Some(0.0));
    }

    #[test]
    fn order_width_and_nan_are_kept() {
        let text =
            br#"{"z": 1, "a": [NaN, 18446744073709551615, 1e3, null, true], "z": {"k": "v"}}"#;
        let attributes = Attributes::parse(text).unwrap();
        let names: Vec<&str> = attributes.iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["z", "a"]);
        let again = attributes.to_string();
        assert_eq!(
            again,
            r#"{"z":{"k":"v"},"a":["NaN",18446744073709551615,1000.0,null,true]}"#
        );
        assert_eq!(
            attributes.get("z").unwrap().as_object().unwrap().text("k"),
            Some("v")
        );
    }

    #[test]
    fn what_is_too_deep_is_refused() {
        let deep = format!("{{\"a\": {}1{}}}", "[".repeat(100), "]".repeat(100));
        assert!(Attributes::parse(deep.as_bytes()).is_err());
        assert!(Attributes::parse(b"[1]").is_err());
    }
}
