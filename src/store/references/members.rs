//! The members of an object in JSON, in their order.

use std::collections::HashSet;
use std::fmt;

use serde::de::{Deserializer as _, Error as _, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::budget::{ENTRY_BYTES, too_large};

/// The names of all members of `json`, and the texts of their values. They may take `most_bytes` of memory.
///
/// # Errors
/// A message, for anything but an object, and for names that are there twice.
pub(super) fn members(json: &str, most_bytes: u64) -> Result<Vec<(String, &RawValue)>, String> {
    let mut parser = serde_json::Deserializer::from_str(json);
    let found = parser.deserialize_map(Members { most_bytes });
    let found = found.map_err(|error| error.to_string())?;
    let mut names = HashSet::new();
    match found.iter().find(|(name, _)| !names.insert(name)) {
        Some((name, _)) => Err(format!("`{name}` is there twice")),
        None => Ok(found),
    }
}

struct Members {
    most_bytes: u64,
}

impl<'de> Visitor<'de> for Members {
    type Value = Vec<(String, &'de RawValue)>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut found = Vec::new();
        let mut left_bytes = self.most_bytes;
        while let Some(name) = map.next_key::<String>()? {
            let left = left_bytes.checked_sub(ENTRY_BYTES + name.len() as u64);
            left_bytes = left.ok_or_else(|| A::Error::custom(too_large(self.most_bytes)))?;
            found.push((name, map.next_value()?));
        }
        Ok(found)
    }
}
