//! The `zarr.json` of a draft, which stands once at the root of its hierarchy.

use super::super::json::Document;
use super::layout::Generation;
use super::{Layout, check_extensions};
use crate::dtype::json::{self, Json, Object};
use crate::error::FormatError;

/// What `zarr.json` says, if it is one of a draft.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The layout that its version means. The keys may tell another one.
    pub layout: Layout,
}

/// Parses a `zarr.json` whose `zarr_format` is a string; `None` when it is none: v3, or no draft.
///
/// # Errors
///
/// When it is a draft's, of a version or with an extension that is not known.
pub fn parse_entry(text: &[u8]) -> Result<Option<Entry>, FormatError> {
    let document = Document::parse(text)?;
    let root = document.root()?;
    let Some(value) = root.get("zarr_format") else {
        return Ok(None);
    };
    let Json::String(version) = Json::of(value)? else {
        return Ok(None);
    };
    let Some(by_version) = generation(&version) else {
        let expected = "3, or a version of the drafts such as \
                        \"https://purl.org/zarr/spec/core/3.0\"";
        return Err(json::mismatch(value, expected).within("zarr_format"));
    };
    check_extensions(&root)?;
    let suffix = suffix(&root)?.unwrap_or_else(|| match by_version {
        Generation::Core => ".json".to_owned(),
        Generation::Early | Generation::Protocol => String::new(),
    });
    Ok(Some(Entry {
        layout: Layout::new(by_version == Generation::Core, suffix),
    }))
}

/// The generation that a version URI names: `…/protocol/core/3.0` or `…/spec/core/3.0`.
fn generation(version: &str) -> Option<Generation> {
    let (head, number) = version.rsplit_once('/')?;
    number.strip_prefix("3.")?;
    if head.ends_with("/protocol/core") {
        Some(Generation::Protocol)
    } else if head.ends_with("/spec/core") {
        Some(Generation::Core)
    } else {
        None
    }
}

/// What the names of documents end in: a member of the entry, or of its `metadata_encoding`.
fn suffix(root: &Object<'_>) -> Result<Option<String>, FormatError> {
    const NAME: &str = "metadata_key_suffix";
    const ENCODING: &str = "metadata_encoding";
    let encoding = match root.get_some(ENCODING) {
        None => Object::default(),
        Some(value) => match Json::of(value)? {
            // A URI, which says no more than that documents are JSON.
            Json::String(_) => Object::default(),
            Json::Object(members) => members,
            _ => return Err(json::mismatch(value, "a URI or an object").within(ENCODING)),
        },
    };
    for member in ["type", "extension"] {
        match encoding.get_some(member) {
            Some(value) if member != "type" || value.get() != "\"json\"" => {
                let name = super::spelled(value);
                return Err(FormatError::unsupported(
                    ENCODING,
                    "metadata encoding",
                    name,
                ));
            }
            _ => {}
        }
    }
    let Some(value) = root.get_some(NAME).or_else(|| encoding.get_some(NAME)) else {
        return Ok(None);
    };
    match Json::of(value)? {
        Json::String(suffix) if !suffix.contains(['/', '\0']) => Ok(Some(suffix)),
        _ => Err(json::mismatch(value, "the end of a name").within(NAME)),
    }
}
