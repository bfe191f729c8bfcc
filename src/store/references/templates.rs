//! The templates of a set of version 1.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::expression::{Names, Pattern};

/// Texts by their names.
#[derive(Debug, Default)]
pub(super) struct Templates(BTreeMap<String, String>);

impl Templates {
    pub(super) fn new(templates: BTreeMap<String, String>) -> Templates {
        Templates(templates)
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
