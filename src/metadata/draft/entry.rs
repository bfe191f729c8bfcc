//! The `zarr.json` of a draft, of which there is one, at the root of the hierarchy.

use super::super::document::JsonDocument;
use super::layout::Generation;
use super::{DraftLayout, check_extensions};
use crate::error::FormatError;
use crate::metadata::json::{self, Json, Members};

/// Parses the `zarr.json` of a draft, whose `zarr_format` is a string. The result is the layout
/// that the document states; the keys in the store may show another one. `None` when the document
/// is not one of a draft.
///
/// # Errors
///
/// When the document is one of a draft, and this build does not know the version of the draft or one of its extensions.
pub fn parse_entry(text: &[u8]) -> Result<Option<DraftLayout>, FormatError> {
    let document = JsonDocument::parse(text)?;
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
    Ok(Some(DraftLayout::new(
        by_version == Generation::Core,
        suffix,
    )))
}

/// The generation that a version URI names: `…/protocol/core/3.0` or `…/spec/core/3.0`.
fn generation(version: &str) -> Option<Generation> {
    let (head, number) = version.rsplit_once('/')?;
    number.strip_prefix("3.")?;
    match head {
        _ if head.ends_with("/protocol/core") => Some(Generation::Protocol),
        _ if head.ends_with("/spec/core") => Some(Generation::Core),
        _ => None,
    }
}

/// The suffix of the names of documents, a member of the root or of `metadata_encoding`.
fn suffix(root: &Members<'_>) -> Result<Option<String>, FormatError> {
    const NAME: &str = "metadata_key_suffix";
    const ENCODING: &str = "metadata_encoding";
    let encoding = root.read_some(ENCODING, |value| match Json::of(value)? {
        // A URI only says that documents are JSON.
        Json::String(_) => Ok(Members::default()),
        Json::Object(members) => Ok(members),
        _ => Err(json::mismatch(value, "a URI or an object")),
    })?;
    let encoding = encoding.unwrap_or_default();
    let kind = encoding.get_some("type");
    let other_kind = kind.filter(|kind| kind.get() != "\"json\"");
    if let Some(name) = other_kind.or_else(|| encoding.get_some("extension")) {
        let name = super::spelled(name);
        return Err(FormatError::unsupported(
            ENCODING,
            "metadata encoding",
            name,
        ));
    }
    let holder = if root.get_some(NAME).is_some() {
        root
    } else {
        &encoding
    };
    holder.read_some(NAME, |value| match Json::of(value)? {
        Json::String(suffix) if !suffix.contains(['/', '\0']) => Ok(suffix),
        _ => Err(json::mismatch(value, "the end of a name")),
    })
}
