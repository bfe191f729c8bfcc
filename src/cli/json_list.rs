//! The list of `--json`: one element for each node, written as it is found, so that the nodes of a large store are
//! not all in memory.

use std::fmt::{self, Display};

use serde_json::Value;

use crate::escape::Text;

/// A list whose last element is not written yet, because a comma must follow it if another element comes.
#[derive(Debug, Default)]
pub(super) struct JsonList {
    last: Option<Value>,
    is_begun: bool,
}

impl JsonList {
    /// Adds `value`. Returns the text that can be written now.
    pub(super) fn push(&mut self, value: Value) -> Text {
        let text = self.begun();
        match self.last.replace(value) {
            Some(before) => text.json(Indented(&before, ",")),
            None => text,
        }
    }

    /// The end of the list.
    pub(super) fn end(mut self) -> Text {
        match self.last.take() {
            Some(last) => self.begun().json(Indented(&last, "")).json("]"),
            None => Text::new().json("[]"),
        }
    }

    fn begun(&mut self) -> Text {
        if std::mem::replace(&mut self.is_begun, true) {
            return Text::new();
        }
        Text::new().json("[")
    }
}

/// An element of the list with what follows it.
struct Indented<'v>(&'v Value, &'static str);

impl Display for Indented<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The line feeds in strings are escaped, so each line feed of the text is between members.
        let text = format!("{:#}", self.0).replace('\n', "\n  ");
        write!(f, "  {text}{}", self.1)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_text_is_that_of_the_whole_list() {
        let values = [json!({"a\n": [1, {}]}), json!({}), json!({"b": "\n"})];
        for n in 0..=values.len() {
            let mut list = JsonList::default();
            let mut bytes = Vec::new();
            for value in &values[..n] {
                bytes.extend(list.push(value.clone()).into_bytes());
            }
            bytes.extend(list.end().into_bytes());
            let whole = Value::from(values[..n].to_vec());
            assert_eq!(bytes, Text::new().json(whole).into_bytes());
        }
    }
}
