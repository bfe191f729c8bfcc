//! The templates of a set of version 1.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::budget::ENTRY_BYTES;
use super::expression::{Names, Pattern};
use super::members::members;

/// Texts by their names.
#[derive(Debug, Default)]
pub(super) struct Templates(BTreeMap<String, String>);

impl Templates {
    /// Parses the member `templates` of a set, which may take `most_bytes` of memory.
    ///
    /// # Errors
    /// A message.
    pub(super) fn parse(json: &str, most_bytes: u64) -> Result<Templates, String> {
        let each = members(json, most_bytes)?.into_iter();
        let texts = each.map(|(name, value)| {
            let text = serde_json::from_str(value.get());
            Ok((name, text.map_err(|_| "they are not all texts")?))
        });
        texts.collect::<Result<_, String>>().map(Templates)
    }

    /// Memory of the templates.
    pub(super) fn memory_bytes(&self) -> u64 {
        let each = self.0.iter();
        let each = each.map(|(name, text)| ENTRY_BYTES + (name.len() + text.len()) as u64);
        each.sum()
    }

    /// `text` with the templates that it names in their places.
    ///
    /// # Errors
    /// A message, for what is not understood.
    pub(super) fn expand<'t>(&self, text: &'t str) -> Result<Cow<'t, str>, String> {
        if !text.contains("{{") {
            return Ok(Cow::Borrowed(text));
        }
        Pattern::parse(text)?.text(self).map(Cow::Owned)
    }
}

impl Names for Templates {
    fn integer(&self, _name: &str) -> Option<i64> {
        None
    }

    fn text(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }
}
