//! The fill value of an array, for people.

use serde_json::Value;

use crate::cli::json_element::json_element;
use crate::dtype::element_text;
use crate::metadata::Decoding;

/// The most bytes of a fill value that are shown.
const MOST_BYTES: usize = 1 << 10;

/// The element of which absent chunks consist.
#[derive(Debug)]
pub(super) struct FillText {
    text: String,
    /// As JSON; null where the document has no fill value.
    json: Value,
    is_zero: bool,
}

impl FillText {
    pub(super) fn of(decoding: &Decoding) -> FillText {
        let Decoding {
            data_type,
            fill_value,
            ..
        } = decoding;
        let bytes = fill_value.bytes();
        let text = element_text(data_type, bytes.get(..MOST_BYTES).unwrap_or(bytes));
        FillText {
            is_zero: bytes.iter().all(|&byte| byte == 0),
            json: if fill_value.is_defined() {
                json_element(&data_type.element, &text)
            } else {
                Value::Null
            },
            text,
        }
    }

    pub(super) fn json(&self) -> &Value {
        &self.json
    }

    /// The value. If the document has none, the text also has the value that absent chunks are read as.
    pub(super) fn text(&self) -> String {
        match self.json {
            Value::Null => format!("none, read as {}", self.text),
            _ => self.text.clone(),
        }
    }

    /// The value, unless it is zero, as in most arrays, or the document has none.
    pub(super) fn unusual(&self) -> Option<&str> {
        (!self.is_zero && !self.json.is_null()).then_some(&self.text)
    }
}
