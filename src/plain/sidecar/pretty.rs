//! Pretty-printed JSON: two blanks for each level, and short lists of plain values on one line.
//!
//! [`Attributes::parse`] limits the nesting of attributes, and so the recursion here. Long
//! attributes are not indented, because indentation could multiply their size.

use std::fmt::Write;

use crate::metadata::{Attributes, JsonTree};

/// The most columns of a list on one line.
const WIDTH: usize = 80;
/// The longest attributes that are indented, in bytes of compact JSON.
pub const MOST_INDENTED: usize = 64 * 1024;

/// Capacity that is reserved for the members after a long one.
const ROOM: usize = 4 << 10;

/// A JSON object under construction.
pub(super) struct PrettyObject {
    out: String,
}

impl PrettyObject {
    /// An object without members.
    pub(super) fn new() -> PrettyObject {
        PrettyObject {
            out: "{".to_owned(),
        }
    }

    /// Adds a member.
    pub(super) fn member(&mut self, name: &str, value: &JsonTree) {
        self.name(name);
        write(&mut self.out, value, 1);
    }

    /// Adds attributes.
    pub(super) fn attributes(&mut self, name: &str, attributes: &Attributes) {
        self.name(name);
        if write!(ByteLimit(MOST_INDENTED), "{attributes}").is_err() {
            // Writing to a string never fails.
            let _ = write!(self.out, "{attributes}");
        } else {
            members(&mut self.out, attributes, 1);
        }
    }

    /// Adds a member whose value is compact JSON already.
    pub(super) fn compact(&mut self, name: &str, text: &str) {
        self.name(name);
        self.out.reserve_exact(text.len() + ROOM);
        self.out.push_str(text);
    }

    /// The finished document.
    pub(super) fn finish(mut self) -> Vec<u8> {
        self.out.push_str("\n}\n");
        self.out.into_bytes()
    }

    fn name(&mut self, name: &str) {
        if self.out.len() > 1 {
            self.out.push(',');
        }
        begin(&mut self.out, name, 1);
    }
}

fn write(out: &mut String, value: &JsonTree, depth: usize) {
    match value {
        JsonTree::List(items) if !is_short(items) => {
            for (i, item) in items.iter().enumerate() {
                out.push(if i == 0 { '[' } else { ',' });
                line(out, depth + 1);
                write(out, item, depth + 1);
            }
            line(out, depth);
            out.push(']');
        }
        JsonTree::List(items) => {
            out.push('[');
            for (i, item) in items.iter().enumerate() {
                let comma = if i == 0 { "" } else { ", " };
                let _ = write!(out, "{comma}{item}");
            }
            out.push(']');
        }
        JsonTree::Object(object) => members(out, object, depth),
        plain => {
            let _ = write!(out, "{plain}");
        }
    }
}

fn members(out: &mut String, object: &Attributes, depth: usize) {
    if object.is_empty() {
        out.push_str("{}");
        return;
    }
    for (i, (name, value)) in object.iter().enumerate() {
        out.push(if i == 0 { '{' } else { ',' });
        begin(out, name, depth + 1);
        write(out, value, depth + 1);
    }
    line(out, depth);
    out.push('}');
}

fn line(out: &mut String, depth: usize) {
    out.push('\n');
    out.extend(std::iter::repeat_n("  ", depth));
}

/// Starts a line with the name of a member.
fn begin(out: &mut String, name: &str, depth: usize) {
    line(out, depth);
    let _ = write!(out, "{}: ", serde_json::Value::from(name));
}

/// Whether a list fits on one line.
fn is_short(items: &[JsonTree]) -> bool {
    let is_plain = |item: &JsonTree| !matches!(item, JsonTree::List(_) | JsonTree::Object(_));
    if !items.iter().all(is_plain) {
        return false;
    }
    let mut room = ByteLimit(WIDTH);
    items.iter().all(|item| write!(room, "{item}, ").is_ok())
}

/// A writer that discards its input, and fails when it exceeds this number of bytes.
struct ByteLimit(usize);

impl Write for ByteLimit {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        self.0 = self.0.checked_sub(text.len()).ok_or(std::fmt::Error)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::testing::attributes;
    use super::*;

    #[test]
    fn two_blanks_a_level() {
        let mut document = PrettyObject::new();
        document.member(
            "shape",
            &JsonTree::List(vec![JsonTree::Integer(1), JsonTree::Integer(2)]),
        );
        document.attributes(
            "attributes",
            &attributes(r#"{"a": {"b": [{"c": null}, []], "d": {}}, "e": "f\n"}"#),
        );
        let expected = r#"{
  "shape": [1, 2],
  "attributes": {
    "a": {
      "b": [
        {
          "c": null
        },
        []
      ],
      "d": {}
    },
    "e": "f\n"
  }
}
"#;
        assert_eq!(String::from_utf8(document.finish()).unwrap(), expected);
    }

    #[test]
    fn long_attributes_stay_on_one_line() {
        let items = vec!["[]"; 40_000].join(",");
        let long = attributes(&format!("{{\"a\":[{items}]}}"));
        let mut document = PrettyObject::new();
        document.attributes("attributes", &long);
        assert_eq!(
            document.finish().len(),
            "{\n  \"attributes\": {\"a\":[]}\n}\n".len() + items.len()
        );
    }
}
