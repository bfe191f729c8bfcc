//! Consolidated metadata: whether each copy of a document says what the document says, and whether each document has
//! one.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use super::finding::{Finding, Found, Severity};
use super::ignored::Ignored;
use crate::budget::Holding;
use crate::error::{Error, FormatError};
use crate::hierarchy::{GroupNode, Hierarchy, Node};
use crate::metadata::carry::{ObjectKind, differences_in};
use crate::metadata::consolidated::{CopiedDocument, copies_v2, copies_v3};
use crate::metadata::{DocumentName, ZarrFormat};
use crate::store::{Key, Prefix};

/// The member of a v3 document that holds copies. A copy of a group may have another one than the group itself.
const COPIES: &str = "consolidated_metadata";

/// The consolidated metadata of the groups above the path where a walk is.
#[derive(Default)]
pub(super) struct Copies {
    above: Vec<Consolidated>,
}

/// The consolidated metadata of a group.
struct Consolidated {
    path: Prefix,
    format: ZarrFormat,
    /// The key of the document that has it.
    key: Key,
    /// The hashes of the keys, relative to the group, of which it has copies. A million keys themselves would take much
    /// memory.
    copied: HashSet<u64>,
    lacking: Ignored,
}

const LACKING: &str = "so readers that use only consolidated metadata do not find the node";

impl Copies {
    /// Looks for a copy of the document of `node` in the consolidated metadata of each group above `path`.
    pub(super) fn look_for(&mut self, path: &Prefix, node: &Node, found: &Found<'_>) {
        while let Some(last) = self
            .above
            .pop_if(|last| last.path.strip(path.as_bytes()).is_none())
        {
            last.end(found);
        }
        let (format, document) = match node {
            Node::Array(array) => (array.metadata.zarr_format, Some(&array.document)),
            Node::Group(group) => (group.format, group.document.as_ref()),
            Node::Implicit | Node::Broken(_) => return,
        };
        let Some(document) = document else {
            return;
        };
        for above in &mut self.above {
            let name = above.path.strip(document.key.as_bytes());
            let is_lacking = |name| !above.copied.contains(&hash_of(name));
            if above.format == format && name.is_some_and(is_lacking) {
                let what = format!(
                    "no copy of it is in consolidated metadata ({}), {LACKING}",
                    above.key
                );
                above.lacking.add(path, &document.key, &what, found);
            }
        }
    }

    /// Ends the walk.
    pub(super) fn end(self, found: &Found<'_>) {
        for above in self.above {
            above.end(found);
        }
    }

    /// Compares the copies in the document of the group at `path` with the documents.
    ///
    /// # Errors
    /// [`Error`] of reading the document that holds the copies.
    pub(super) fn compare(
        &mut self,
        hierarchy: &Arc<Hierarchy>,
        path: &Prefix,
        group: &GroupNode,
        found: &Found<'_>,
    ) -> Result<(), Error> {
        let holder = match group.format {
            ZarrFormat::V3 => DocumentName::ZarrJson,
            ZarrFormat::V2 => DocumentName::ZMetadata,
            _ => return Ok(()),
        };
        let key = path.key(holder.as_str().as_bytes())?;
        let Some(text) = hierarchy.read(&key, Holding::SOURCE)? else {
            return Ok(());
        };
        let parse = match group.format {
            ZarrFormat::V3 => copies_v3,
            _ => copies_v2,
        };
        let copies = parse(&text.bytes).map_err(|error| Error::in_document(&key, error))?;
        let Some(copies) = copies else {
            return Ok(());
        };
        let hashes = copies.iter().map(|copy| hash_of(copy.key.as_bytes()));
        self.above.push(Consolidated {
            path: path.clone(),
            format: group.format,
            key: key.clone(),
            copied: hashes.collect(),
            lacking: Ignored::default(),
        });
        for copy in copies {
            let CopiedDocument {
                key: name, span, ..
            } = copy;
            let Ok(own) = Key::parse(name.as_bytes()).and_then(|name| path.key(name.as_bytes()))
            else {
                let problem = format!("{key}: the copy `{name}` is of no document");
                found(Finding::new(Severity::Damage, path, problem));
                continue;
            };
            let problem = match hierarchy.read(&own, Holding::SOURCE) {
                Ok(Some(document)) => {
                    let copy = text.bytes.get(span).unwrap_or_default();
                    match is_unlike(&own, copy, &document.bytes) {
                        Ok(is_unlike) => is_unlike.then_some("says something else than"),
                        Err(error) => {
                            let problem = format!(
                                "{key}: the copy in consolidated metadata was not compared with {own}: {error}"
                            );
                            found(Finding::new(Severity::Unread, path, problem));
                            None
                        }
                    }
                }
                Ok(None) => Some("is of a document that is not there:"),
                // The walk comes to the documents of nodes, and reports the same error.
                Err(error) if own.name() == DocumentName::ZAttrs.as_str().as_bytes() => {
                    found(Finding::of_error(path, None, &error));
                    None
                }
                Err(_) => None,
            };
            if let Some(problem) = problem {
                let problem = format!("{key}: the copy in consolidated metadata {problem} {own}");
                found(Finding::new(Severity::Damage, path, problem));
            }
        }
        Ok(())
    }
}

impl Consolidated {
    fn end(self, found: &Found<'_>) {
        let what = format!(
            "nodes that have no copy in consolidated metadata ({})",
            self.key
        );
        self.lacking.end(&self.path, &what, found);
    }
}

fn hash_of(key: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    key.hash(&mut hasher);
    hasher.finish()
}

/// Whether `copy` says something else than `document`, which is at `key`, however the two are spelled. Copies of other
/// documents in them are not compared.
///
/// # Errors
/// When one of them is no JSON object.
fn is_unlike(key: &Key, copy: &[u8], document: &[u8]) -> Result<bool, FormatError> {
    let unlike = differences_in(ObjectKind::of(key.name()), copy, document)?;
    Ok(unlike.iter().any(|name| name != COPIES))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_is_compared_as_the_program_reads_json() {
        let key = Key::parse(b"a/.zattrs").unwrap();
        let bom = "\u{feff}";
        let document = format!(r#"{bom}{{"_FillValue": NaN, "max": Infinity, "units": "m"}}"#);
        for (copy, expected) in [
            (
                r#"{"units": "\u006d", "_FillValue": NaN, "max": Infinity}"#,
                Some(false),
            ),
            (
                r#"{"_FillValue": NaN, "max": Infinity, "units": "K"}"#,
                Some(true),
            ),
            (
                r#"{"_FillValue": NaN, "max": -Infinity, "units": "m"}"#,
                Some(true),
            ),
            (
                r#"{"_FillValue": NaN, "max": Infinity, "units": "m", "consolidated_metadata": {}}"#,
                Some(false),
            ),
            ("7", None),
        ] {
            let found = is_unlike(&key, copy.as_bytes(), document.as_bytes());
            assert_eq!(found.ok(), expected, "{copy}");
        }
        assert!(is_unlike(&key, b"{}", b"{").is_err());
    }
}
