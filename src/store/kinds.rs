//! Finds out the kind of the store in a directory or below a URL, by the documents at its root.
//!
//! | document | kind |
//! |---|---|
//! | `zarr.json`, `.zgroup`, `.zarray`, `.zmetadata`, `meta`, `__zmeta__` | a store of Zarr |
//! | `repo`, or `refs/branch.main/ref.json`, as Icechunk writes them | an Icechunk repository |
//! | `attributes.json` with `n5`, or with the members of an array | a container of N5 |
//! | `.zmetadata` with `record_size` | a set of references in Parquet |
//!
//! Documents of Zarr win over all others. Where two of the other kinds meet, the user has to say which is meant.

#[cfg(feature = "icechunk")]
use super::icechunk::IcechunkStore;
use super::references::{has_members, metadata_of_set_up_to};
use super::{Key, Prefix, Store, StoreError};
use crate::notice::TOLD;

/// Documents of Zarr, but for `.zmetadata`, which a set of references has too.
const ZARR: [&[u8]; 5] = [b"zarr.json", b".zgroup", b".zarray", b"__zmeta__", b"meta"];

/// `.zmetadata` of a store of Zarr is not searched for the members of a set if it is longer than this.
const MOST_SEARCHED_BYTES: u64 = 1 << 20;

/// A longer `attributes.json` is not that of N5.
const MOST_N5_BYTES: u64 = 4 << 20;

/// How the keys of a store are read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum StoreKind {
    /// As the keys of the hierarchy, of Zarr or of N5.
    Keys,
    /// As the keys of an Icechunk repository.
    #[cfg(feature = "icechunk")]
    Icechunk,
    /// As the keys of a set of references in Parquet, with its metadata at this key.
    References(Key),
}

/// A kind of store that is not of Zarr, and was found.
struct OtherKind {
    kind: StoreKind,
    /// The name of the kind in messages.
    title: &'static str,
    /// The text that a user writes behind the name of the store to name this kind.
    step: &'static str,
}

/// The kind of `store`, which is called `shown` in messages.
///
/// # Errors
/// [`StoreError::Unsupported`] where two kinds meet; those of reading the documents.
pub(super) fn kind_of(store: &dyn Store, shown: &str) -> Result<StoreKind, StoreError> {
    let zarr = zarr_document(store)?;
    let mut others = other_kinds(store, zarr.is_some())?;
    match (zarr, &others[..]) {
        (Some(document), others) => {
            for OtherKind { title, step, .. } in others {
                log::warn!(
                    target: TOLD,
                    "{shown}: read as a store of Zarr, because it has {document}; it also has {title}: {shown}{step}"
                );
            }
            Ok(StoreKind::Keys)
        }
        (None, [first, second, ..]) => Err(StoreError::Unsupported(format!(
            "{shown}: it has {}, and {}; write {shown}{} or {shown}{} to say which is meant",
            first.title, second.title, first.step, second.step
        ))),
        (None, _) => Ok(others.pop().map_or(StoreKind::Keys, |other| other.kind)),
    }
}

/// The name of a document of Zarr at the root of `store`.
fn zarr_document(store: &dyn Store) -> Result<Option<Key>, StoreError> {
    let keys = ZARR.iter().map(|name| Key::parse(name));
    let keys: Vec<Key> = keys.collect::<Result<_, _>>()?;
    let found = store.stat_objects(&keys);
    // A key that is a directory, or cannot be examined, is no document. The search for nodes gives the error.
    let mut found = keys.into_iter().zip(found);
    let document = found.find(|(_, found)| matches!(found, Ok(Some(_))));
    Ok(document.map(|(key, _)| key))
}

/// The kinds of store that are not of Zarr in `store`, which may be one of Zarr too.
fn other_kinds(store: &dyn Store, is_zarr: bool) -> Result<Vec<OtherKind>, StoreError> {
    let mut others = Vec::new();
    #[cfg(feature = "icechunk")]
    if IcechunkStore::is_repository(store)? {
        others.push(OtherKind {
            kind: StoreKind::Icechunk,
            title: "an Icechunk repository",
            step: "|icechunk:",
        });
    }
    if is_n5(store)? {
        others.push(OtherKind {
            kind: StoreKind::Keys,
            title: "a container of N5",
            step: "|n5:",
        });
    }
    let most_bytes = is_zarr.then_some(MOST_SEARCHED_BYTES);
    if let Some(metadata) = metadata_of_set_up_to(store, &Prefix::root(), most_bytes)? {
        others.push(OtherKind {
            kind: StoreKind::References(metadata),
            title: "a set of references in Parquet",
            step: "/.zmetadata",
        });
    }
    Ok(others)
}

fn is_n5(store: &dyn Store) -> Result<bool, StoreError> {
    let mut bytes = Vec::new();
    let fetched = match store.fetch(&Key::parse(b"attributes.json")?, MOST_N5_BYTES, &mut bytes) {
        Ok(fetched) => fetched,
        // The search for nodes returns the error.
        Err(StoreError::Denied { .. } | StoreError::NotAnObject { .. }) => None,
        Err(error) => return Err(error),
    };
    let is_read = fetched.is_some_and(|fetched| fetched.is_read);
    let has = |names: &[&str]| has_members(&bytes, names);
    Ok(is_read && (has(&["n5"]) || has(&["dimensions", "blockSize", "dataType"])))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::MemoryStore;

    const ZARR_JSON: (&str, &str) = ("zarr.json", "{}");
    const N5: (&str, &str) = ("attributes.json", r#"{"n5": "4.0.0"}"#);
    const REFERENCES: (&str, &str) = (".zmetadata", r#"{"metadata": {}, "record_size": 10}"#);
    #[cfg(feature = "icechunk")]
    const ICECHUNK: (&str, &str) = (
        "refs/branch.main/ref.json",
        r#"{"snapshot": "1CECHNKREP0F1RSTCMT0"}"#,
    );

    fn found(documents: &[(&str, &str)]) -> Result<StoreKind, String> {
        let store = MemoryStore::new();
        for (key, text) in documents {
            store.insert(
                Key::parse(key.as_bytes()).unwrap(),
                text.as_bytes().to_vec(),
            );
        }
        kind_of(&store, "s3://b/a").map_err(|error| error.to_string())
    }

    #[test]
    fn one_kind_is_recognized_by_its_documents() {
        let metadata = Key::parse(b".zmetadata").unwrap();
        assert_eq!(found(&[]), Ok(StoreKind::Keys));
        assert_eq!(found(&[N5]), Ok(StoreKind::Keys));
        assert_eq!(found(&[REFERENCES]), Ok(StoreKind::References(metadata)));
        for document in [
            (".zmetadata", r#"{"metadata": {"record_size": 10}}"#),
            ("attributes.json", r#"{"attributes": {"n5": 1}}"#),
            ("repo", "a file of another program"),
        ] {
            assert_eq!(found(&[document]), Ok(StoreKind::Keys), "{document:?}");
        }
        #[cfg(feature = "icechunk")]
        assert_eq!(found(&[ICECHUNK]), Ok(StoreKind::Icechunk));
    }

    #[test]
    fn documents_of_zarr_win() {
        let mut others = vec![N5, REFERENCES];
        #[cfg(feature = "icechunk")]
        others.push(ICECHUNK);
        for name in ["zarr.json", ".zgroup", ".zarray", "__zmeta__", "meta"] {
            for other in &others {
                let documents = [(name, "{}"), *other];
                assert_eq!(found(&documents), Ok(StoreKind::Keys), "{documents:?}");
            }
        }
        others.push(ZARR_JSON);
        assert_eq!(found(&others), Ok(StoreKind::Keys));
    }

    #[test]
    fn two_other_kinds_are_refused_with_what_decides() {
        let n5 = ("a container of N5", "s3://b/a|n5:");
        let set = ("a set of references in Parquet", "s3://b/a/.zmetadata");
        let cases = [([N5, REFERENCES], [n5, set])].into_iter();
        #[cfg(feature = "icechunk")]
        let cases = {
            let repository = ("an Icechunk repository", "s3://b/a|icechunk:");
            cases.chain([
                ([ICECHUNK, N5], [repository, n5]),
                ([REFERENCES, ICECHUNK], [repository, set]),
            ])
        };
        for (documents, said) in cases {
            let message = found(&documents).unwrap_err();
            for (title, step) in said {
                assert!(
                    message.contains(title) && message.contains(step),
                    "{message}"
                );
            }
        }
    }
}
