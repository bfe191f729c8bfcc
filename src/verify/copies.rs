//! Consolidated metadata: whether each copy of a document says what the document says.

use std::sync::Arc;

use serde_json::Value;

use super::finding::{Finding, Found, Severity};
use crate::budget::Holding;
use crate::error::Error;
use crate::hierarchy::{GroupNode, Hierarchy};
use crate::metadata::consolidated::{CopiedDocument, copies_v2, copies_v3};
use crate::metadata::{DocumentName, ZarrFormat};
use crate::store::{Key, Prefix};

/// The member of a v3 document that holds copies. A copy of a group may have another one than the group itself.
const COPIES: &str = "consolidated_metadata";

/// Compares the copies in the document of the group at `path` with the documents.
///
/// # Errors
/// [`Error`] of reading the document that holds the copies.
pub(super) fn compare(
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
    for copy in copies.into_iter().flatten() {
        let CopiedDocument {
            key: name, span, ..
        } = copy;
        let Ok(own) = Key::parse(name.as_bytes()).and_then(|name| path.key(name.as_bytes())) else {
            let problem = format!("{key}: the copy `{name}` is of no document");
            found(Finding::new(Severity::Damage, path, problem));
            continue;
        };
        let problem = match hierarchy.read(&own, Holding::SOURCE) {
            Ok(Some(document)) => {
                let copy = text.bytes.get(span).unwrap_or_default();
                (meaning(copy) != meaning(&document.bytes)).then_some("says something else than")
            }
            Ok(None) => Some("is of a document that is not there:"),
            Err(error) => {
                found(Finding::of_error(path, None, &error));
                None
            }
        };
        if let Some(problem) = problem {
            let problem = format!("{key}: the copy in consolidated metadata {problem} {own}");
            found(Finding::new(Severity::Damage, path, problem));
        }
    }
    Ok(())
}

/// What a document says. The spelling of JSON does not matter, nor do the copies that it holds itself.
fn meaning(document: &[u8]) -> Option<Value> {
    let mut value: Value = serde_json::from_slice(document).ok()?;
    if let Value::Object(members) = &mut value {
        members.remove(COPIES);
    }
    Some(value)
}
