//! Recognises the files of sets of references among other files and stores.

use std::fmt;
use std::io::Read;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};

use super::not_numbers::Masked;
use super::text::{Decompressed, ZSTD_MAGIC};
use crate::store::{Key, Prefix, Store, StoreError};

/// The ends of the names of sets in JSON.
const EXTENSIONS: [&[u8]; 2] = [b".json", b".json.zst"];

/// The name of the metadata of a set in Parquet.
const METADATA: &[u8] = b".zmetadata";

/// A longer `.zmetadata` does not belong to a set.
const MOST_METADATA_BYTES: u64 = 64 << 20;

/// A member that only the metadata of a set in Parquet has.
const MEMBER: &str = "record_size";

/// Whether a file called `name` may be a set in JSON. Metadata documents are JSON, too, but no sets.
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

/// The key of the metadata that a set in Parquet at `path` has.
///
/// # Errors
/// None, because the name is a valid one.
pub(in crate::store) fn metadata_key(path: &Prefix) -> Result<Key, StoreError> {
    path.key(METADATA)
}

/// The key of the metadata of a set in Parquet, if one is at `path` of `store`.
///
/// # Errors
/// [`StoreError`] where that cannot be found out.
pub(in crate::store) fn metadata_of_set(
    store: &dyn Store,
    path: &Prefix,
) -> Result<Option<Key>, StoreError> {
    metadata_of_set_up_to(store, path, None)
}

/// Like [`metadata_of_set`], if the metadata has at most `most_bytes`.
///
/// # Errors
/// Those of [`metadata_of_set`].
pub(in crate::store) fn metadata_of_set_up_to(
    store: &dyn Store,
    path: &Prefix,
    most_bytes: Option<u64>,
) -> Result<Option<Key>, StoreError> {
    let key = metadata_key(path)?;
    let mut bytes = Vec::new();
    let most_bytes = most_bytes.unwrap_or(MOST_METADATA_BYTES);
    let fetched = match store.fetch(&key, most_bytes, &mut bytes) {
        Ok(fetched) => fetched,
        // This is no error here: the store reports it when the document is read as a document of the store.
        Err(StoreError::Denied { .. } | StoreError::NotAnObject { .. }) => None,
        Err(error) => return Err(error),
    };
    let is_read = fetched.is_some_and(|fetched| fetched.is_read);
    Ok((is_read && has_members(&bytes, &[MEMBER])).then_some(key))
}

/// Whether `json` is an object that has members with all of `names`.
pub(in crate::store) fn has_members(json: &[u8], names: &[&str]) -> bool {
    let is_in = |name: &&str| {
        let quoted = format!("\"{name}\"");
        json.windows(quoted.len())
            .any(|part| part == quoted.as_bytes())
    };
    let mut parser = serde_json::Deserializer::from_reader(Masked::new(json));
    names.iter().all(is_in) && parser.deserialize_map(HasMembers(names)).unwrap_or(false)
}

/// The number of first bytes of a file that [`looks_like_set`] needs.
pub(in crate::store) const HEAD_BYTES: u64 = 32 << 10;

/// The most text that is made of the first bytes of a compressed file.
const MOST_HEAD_TEXT: u64 = 1 << 20;

/// Whether a file that begins with `head` is a set in JSON. Among the first members of a set of version 0 are keys of
/// metadata documents. A set of version 1 has these keys in its member `refs`, or has the members `version` and `refs`
/// (or `gen`).
pub(in crate::store) fn looks_like_set(head: &[u8]) -> bool {
    let mut text = Vec::new();
    if head.starts_with(&ZSTD_MAGIC) {
        let Ok(decompressed) = Decompressed::new(head) else {
            return false;
        };
        // The last bytes are missing, which is an error at the end of the others.
        let _ = decompressed.take(MOST_HEAD_TEXT).read_to_end(&mut text);
    } else {
        text.extend_from_slice(head);
    }
    let mut found = Members::default();
    let mut parser = serde_json::Deserializer::from_reader(Masked::new(text.as_slice()));
    // The text may end anywhere.
    let _ = MembersOf(&mut found).deserialize(&mut parser);
    found.has_document || found.has_version && found.has_references
}

/// The members of a text in JSON that show what it is.
#[derive(Debug, Default)]
struct Members {
    has_version: bool,
    has_references: bool,
    /// Whether a key is that of a metadata document.
    has_document: bool,
}

/// Reads the members of an object, and those of its member `refs`.
struct MembersOf<'m>(&'m mut Members);

impl<'de> DeserializeSeed<'de> for MembersOf<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<(), D::Error> {
        json.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for MembersOf<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let found = self.0;
        while let Some(name) = map.next_key::<String>()? {
            let last = name.rsplit('/').next().unwrap_or_default();
            found.has_document |= matches!(last, ".zgroup" | ".zarray" | ".zattrs" | "zarr.json");
            found.has_version |= name == "version";
            found.has_references |= matches!(&*name, "refs" | "gen");
            if name == "refs" {
                map.next_value_seed(MembersOf(found))?;
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(())
    }
}

/// Looks for members in the root of a document.
struct HasMembers<'n>(&'n [&'n str]);

impl<'de> Visitor<'de> for HasMembers<'_> {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<bool, A::Error> {
        let mut missing: Vec<&str> = self.0.to_vec();
        while let Some((name, _)) = map.next_entry::<String, IgnoredAny>()? {
            missing.retain(|wanted| *wanted != name);
        }
        Ok(missing.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_in_json_is_recognized_by_its_first_bytes() {
        for (head, expected) in [
            (r#"{"version": 1, "refs": {"x/0.0": ["a"#, true),
            (
                r#"{"version": 1, "templates": {"u": "s3://b"}, "gen": [{"#,
                true,
            ),
            (r#"{"refs": {".zgroup": "{\"zarr_"#, true),
            (r#"{"x/zarr.json": {"fill_value": NaN"#, true),
            (r#"{".zgroup": "{}", "x/0": "base64:AA=="}"#, true),
            (
                r#"{"version": 1, "name": "a catalogue", "links": []}"#,
                false,
            ),
            (r#"{"refs": [1, 2]}"#, false),
            (r#"{"metadata": {".zgroup": {}}}"#, false),
            (r#"["zarr.json"]"#, false),
            ("no JSON", false),
            ("", false),
        ] {
            assert_eq!(looks_like_set(head.as_bytes()), expected, "{head}");
            let mut packed = Vec::with_capacity(1000);
            zstd_safe::compress(&mut packed, head.as_bytes(), 1).unwrap();
            assert_eq!(looks_like_set(&packed), expected, "compressed {head}");
        }
        // A file that is longer than what is read of it.
        let rows: Vec<_> = (0..40_000)
            .map(|n| format!(r#","x/{n}": ["a.nc", {n}]"#))
            .collect();
        let rows = rows.concat();
        let text = format!(r#"{{".zgroup": "{{}}"{rows}}}"#);
        let mut packed = Vec::with_capacity(text.len());
        zstd_safe::compress(&mut packed, text.as_bytes(), 1).unwrap();
        let most = usize::try_from(HEAD_BYTES).unwrap();
        assert!(packed.len() > most && looks_like_set(&packed[..most]));
        assert!(looks_like_set(&text.as_bytes()[..most]));
    }

    #[test]
    fn sets_are_recognized_by_their_names_and_members() {
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
            assert_eq!(has_members(json.as_bytes(), &[MEMBER]), expected, "{json}");
        }
    }
}
