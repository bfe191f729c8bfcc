//! The attributes of a node: as JSON for programs, and as short texts for people.

use serde_json::{Map, Number, Value};

use crate::error::FormatError;
use crate::metadata::attributes::{Attributes, JsonTree};
use crate::metadata::say_nothing;

/// The longest attributes that are described in full, in bytes of JSON. Of longer ones, only the short members are
/// parsed, so that a store cannot take much memory.
const MOST_BYTES: usize = 1 << 20;

/// The attributes of a node.
#[derive(Debug, Default)]
pub(super) struct NodeAttributes {
    attributes: Attributes,
    /// The reason why attributes are missing here, if some are.
    left_out: Option<String>,
    /// The element that the attribute `_FillValue` says, if xarray has encoded it.
    missing_value: Option<String>,
}

impl NodeAttributes {
    /// The attributes with the JSON `text`, which need not exist.
    pub(super) fn of(text: Result<Option<Vec<u8>>, FormatError>) -> NodeAttributes {
        let text = match text {
            Ok(text) => text.unwrap_or_default(),
            Err(error) => return NodeAttributes::unreadable(&error.to_string()),
        };
        if say_nothing(&text) {
            return NodeAttributes::default();
        }
        let is_whole = text.len() <= MOST_BYTES;
        let parsed = if is_whole {
            Attributes::parse(&text)
        } else {
            Attributes::parse_short(&text)
        };
        match parsed {
            Ok(attributes) => NodeAttributes {
                attributes,
                left_out: (!is_whole).then(|| {
                    let bytes = text.len();
                    format!("they take {bytes} bytes, so that only short ones are here")
                }),
                missing_value: None,
            },
            Err(error) => NodeAttributes::unreadable(&error.to_string()),
        }
    }

    /// Attributes that cannot be read, for this reason.
    pub(super) fn unreadable(reason: &str) -> NodeAttributes {
        NodeAttributes {
            left_out: Some(
                reason
                    .strip_prefix("attributes: ")
                    .unwrap_or(reason)
                    .to_owned(),
            ),
            ..NodeAttributes::default()
        }
    }

    /// The same attributes, where `_FillValue` says the element `text`.
    pub(super) fn with_missing_value(self, text: Option<String>) -> NodeAttributes {
        NodeAttributes {
            missing_value: text,
            ..self
        }
    }

    /// The reason why attributes are missing here, if some are.
    pub(super) fn left_out(&self) -> Option<&str> {
        self.left_out.as_deref()
    }

    /// The names and values for people, in their order. The names of dimensions are shown elsewhere.
    pub(super) fn texts(&self) -> impl Iterator<Item = (&str, String)> {
        self.shown()
            .map(|(name, value)| (name, self.text_of(name, value)))
    }

    /// The number of attributes for people.
    pub(super) fn count(&self) -> usize {
        self.shown().count()
    }

    /// The value for people of the attribute `name`.
    pub(super) fn text(&self, name: &str) -> Option<String> {
        let (_, value) = self.shown().find(|(known, _)| *known == name)?;
        Some(self.text_of(name, value))
    }

    fn shown(&self) -> impl Iterator<Item = (&str, &JsonTree)> {
        let attributes = self.attributes.iter();
        attributes.filter(|(name, _)| *name != "_ARRAY_DIMENSIONS")
    }

    fn text_of(&self, name: &str, value: &JsonTree) -> String {
        match &self.missing_value {
            Some(text) if name == "_FillValue" => text.clone(),
            _ => value.to_string(),
        }
    }

    /// Adds the attributes to the facts about a node.
    pub(super) fn insert_into(&self, facts: &mut Value) {
        facts["attributes"] = Value::Object(object(&self.attributes));
        if let Some(reason) = &self.left_out {
            facts["attributes_left_out"] = reason.as_str().into();
        }
    }
}

fn object(attributes: &Attributes) -> Map<String, Value> {
    let members = attributes.iter();
    members
        .map(|(name, value)| (name.to_owned(), json(value)))
        .collect()
}

/// The value as JSON. A number that JSON lacks becomes the text that Zarr v3 has for it. An integer beyond 64 bits
/// becomes the text of its digits, because programs would read another number.
fn json(tree: &JsonTree) -> Value {
    match tree {
        JsonTree::Null => Value::Null,
        JsonTree::Bool(value) => (*value).into(),
        JsonTree::Integer(value) => {
            let number = Number::from_i128(*value);
            number.map_or_else(|| value.to_string().into(), Value::Number)
        }
        JsonTree::Float(value) if value.is_nan() => "NaN".into(),
        JsonTree::Float(value) if value.is_infinite() && *value > 0.0 => "Infinity".into(),
        JsonTree::Float(value) if value.is_infinite() => "-Infinity".into(),
        JsonTree::Float(value) => (*value).into(),
        JsonTree::Text(text) => text.as_str().into(),
        JsonTree::List(items) => items.iter().map(json).collect(),
        JsonTree::Object(members) => Value::Object(object(members)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> NodeAttributes {
        NodeAttributes::of(Ok(Some(text.into())))
    }

    fn facts(attributes: &NodeAttributes) -> Value {
        let mut facts = serde_json::json!({});
        attributes.insert_into(&mut facts);
        facts
    }

    #[test]
    fn json_has_all_values() {
        let text = r#"{"b": [1, 2.5, NaN, -Infinity], "a": {"x": null, "y": true},
            "n": 18446744073709551615, "m": 18446744073709551616}"#;
        assert_eq!(
            facts(&of(text))["attributes"].to_string(),
            r#"{"a":{"x":null,"y":true},"b":[1,2.5,"NaN","-Infinity"],"m":"18446744073709551616","n":18446744073709551615}"#
        );
        let none = NodeAttributes::of(Ok(None));
        assert_eq!(facts(&none).to_string(), r#"{"attributes":{}}"#);
        assert_eq!(facts(&of("null")).to_string(), r#"{"attributes":{}}"#);
    }

    #[test]
    fn people_see_them_in_their_order_without_the_names_of_dimensions() {
        let text = r#"{"units": "K", "_ARRAY_DIMENSIONS": ["x"], "_FillValue": "AAAAAAAA+H8="}"#;
        let attributes = of(text).with_missing_value(Some("NaN".to_owned()));
        let shown: Vec<_> = attributes.texts().collect();
        assert_eq!(
            shown,
            [
                ("units", "\"K\"".to_owned()),
                ("_FillValue", "NaN".to_owned())
            ]
        );
        assert_eq!(attributes.text("units").as_deref(), Some("\"K\""));
        assert_eq!(attributes.text("_ARRAY_DIMENSIONS"), None);
    }

    #[test]
    fn of_long_ones_the_short_members_stay_and_broken_ones_are_told() {
        let long = format!(r#"{{"long": "{}", "units": "K"}}"#, "x".repeat(MOST_BYTES));
        let facts_of_long = facts(&of(&long));
        assert_eq!(facts_of_long["attributes"].to_string(), r#"{"units":"K"}"#);
        let reason = facts_of_long["attributes_left_out"].as_str().unwrap();
        assert!(reason.contains("only short ones"), "{reason}");
        assert!(of("[1]").left_out().is_some());
    }
}
