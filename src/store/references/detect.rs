//! Tells sets of references from other stores.

use std::fmt;

use serde::de::{Deserializer as _, IgnoredAny, MapAccess, Visitor};

use super::not_numbers::Masked;
use crate::store::{Key, Store, StoreError};

/// The ends of the names of sets in JSON.
const EXTENSIONS: [&[u8]; 2] = [b".json", b".json.zst"];

/// The name of the metadata of a set in Parquet.
const METADATA: &[u8] = b".zmetadata";

/// Metadata that is longer than this is that of another store.
const MOST_METADATA_BYTES: u64 = 64 << 20;

/// A member that no other metadata has.
const MEMBER: &str = "record_size";

/// Whether `name` may be that of a set in JSON. That of a metadata document is not.
pub(in crate::store) fn is_named_as_set(name: &[u8]) -> bool {
    let is_set = EXTENSIONS.iter().any(|end| {
        let rest = name.len().checked_sub(end.len());
        rest.is_some_and(|at| {
            at > 0
                && name
                    .get(at..)
                    .is_some_and(|it| it.eq_ignore_ascii_case(end))
        })
    });
    is_set && !matches!(name, b"zarr.json" | b"attributes.json")
}

/// The key of the metadata of a set in Parquet, if `store` is one.
///
/// # Errors
/// [`StoreError`] where that cannot be found out.
pub(in crate::store) fn metadata_of_set(store: &dyn Store) -> Result<Option<Key>, StoreError> {
    let key = Key::parse(METADATA)?;
    let mut bytes = Vec::new();
    let fetched = match store.fetch(&key, MOST_METADATA_BYTES, &mut bytes) {
        Ok(fetched) => fetched,
        // The store says so when the document is read as one of its own.
        Err(StoreError::Denied { .. } | StoreError::NotAnObject { .. }) => None,
        Err(error) => return Err(error),
    };
    let is_read = fetched.is_some_and(|fetched| fetched.is_read);
    Ok((is_read && has_member(&bytes)).then_some(key))
}

fn has_member(json: &[u8]) -> bool {
    let quoted = format!("\"{MEMBER}\"");
    let is_in = json
        .windows(quoted.len())
        .any(|part| part == quoted.as_bytes());
    let mut parser = serde_json::Deserializer::from_reader(Masked::new(json));
    is_in && parser.deserialize_map(RecordSize).unwrap_or(false)
}

/// Looks for the member in the root of a document.
struct RecordSize;

impl<'de> Visitor<'de> for RecordSize {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<bool, A::Error> {
        let mut has = false;
        while let Some((name, _)) = map.next_entry::<String, IgnoredAny>()? {
            has |= name == MEMBER;
        }
        Ok(has)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_are_told_by_their_names_and_members() {
        for (name, expected) in [
            ("a.json", true),
            ("a.JSON.zst", true),
            (".json", false),
            ("zarr.json", false),
            ("a.zarr", false),
        ] {
            assert_eq!(is_named_as_set(name.as_bytes()), expected, "{name}");
        }
        for (json, expected) in [
            (r#"{"metadata": {"a": NaN}, "record_size": 10}"#, true),
            (r#"{"metadata": {"record_size": 10}}"#, false),
            (r#"{"record_size": 10"#, false),
        ] {
            assert_eq!(has_member(json.as_bytes()), expected, "{json}");
        }
    }
}
