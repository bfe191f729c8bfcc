//! Parts of documents as texts.

pub(super) use super::super::dimensions::ARRAY_DIMENSIONS;
use super::super::document::{self, JsonDocument, quoted};
use super::super::json::{self, Json};
use super::super::{ArrayMetadata, DocumentName, NodeMetadata, carry, strict, v2, v3};
use crate::error::FormatError;

/// An object without members.
pub(super) const EMPTY: &[u8] = b"{}";

/// The member `attributes` of the document `text`, which is an object.
///
/// # Errors
/// When the text is no JSON object, or the member is none.
pub fn attributes_in(text: &[u8]) -> Result<Vec<u8>, FormatError> {
    let document = JsonDocument::parse(text)?;
    let found = document.root()?;
    let Some(attributes) = document::attributes_in(&found) else {
        return Ok(EMPTY.to_vec());
    };
    json::object(attributes, "an object").map_err(|error| error.within("attributes"))?;
    Ok(document.text_of(attributes).to_vec())
}

/// The text of the member `name` of an object.
pub(super) fn member_text(object: &[u8], name: &str) -> Result<Option<Vec<u8>>, FormatError> {
    let document = JsonDocument::parse(object)?;
    let found = document.root()?.get(name);
    Ok(found.map(|value| document.text_of(value).to_vec()))
}

/// The names in the member `_ARRAY_DIMENSIONS` of an object of attributes; `None` without it.
///
/// # Errors
/// When it is not a list of one string for each of `rank` dimensions.
pub(super) fn dimension_names_in(
    attributes: &[u8],
    rank: usize,
) -> Result<Option<Vec<Option<String>>>, FormatError> {
    let document = JsonDocument::parse(attributes)?;
    let root = document.root()?;
    let Some(value) = root.get(ARRAY_DIMENSIONS) else {
        return Ok(None);
    };
    let wrong = || json::mismatch(value, "one name for each dimension").within(ARRAY_DIMENSIONS);
    let Json::Array(items) = Json::of(value)? else {
        return Err(wrong());
    };
    if items.len() != rank {
        return Err(wrong());
    }
    let name = |item| json::string(item, "a name").map(Some);
    let names = items.into_iter().map(name).collect::<Result<_, _>>();
    names.map(Some).map_err(|_| wrong())
}

/// Names as a JSON list; `None` if a dimension has no name, which attributes cannot say.
pub(super) fn list_of_names(names: &[Option<String>]) -> Option<Vec<u8>> {
    let names: Option<Vec<String>> = (names.iter())
        .map(|name| name.as_deref().map(quoted))
        .collect();
    Some(format!("[{}]", names?.join(", ")).into_bytes())
}

/// Parses the document `name` of an array.
pub(super) fn parse_array(name: DocumentName, text: &[u8]) -> Result<ArrayMetadata, FormatError> {
    match name {
        DocumentName::ZArray => v2::parse_array(text),
        _ => match v3::parse(text)? {
            NodeMetadata::Array(array) => Ok(*array),
            NodeMetadata::Group => Err(FormatError::document(
                "node_type",
                "an array does not become a group",
            )),
        },
    }
}

/// Refuses `written`, with this `problem`, unless it describes the same chunks as `shown`, whatever the
/// lengths of the array are.
pub(super) fn check_same_chunks(
    name: DocumentName,
    (shown, written): (&[u8], &[u8]),
    problem: &str,
) -> Result<ArrayMetadata, FormatError> {
    let (before, after) = (parse_array(name, shown)?, parse_array(name, written)?);
    strict::check_array(&after, written, Some(shown))?;
    if before.has_same_chunks(&after) {
        return Ok(after);
    }
    let changed = carry::differences(shown, written)?;
    let may_change = ["attributes", "dimension_names", "storage_transformers"];
    let is_fixed = |member: &&String| !may_change.contains(&member.as_str());
    let member = changed
        .iter()
        .find(|member| is_fixed(member) && *member != "shape");
    let member = member.map_or("shape", String::as_str);
    Err(FormatError::document(member, problem))
}

/// Refuses members of `written` that a document of another version could not say.
pub(super) fn check_known(shown: &[u8], written: &[u8], more: &[&str]) -> Result<(), FormatError> {
    let (shown, written) = (JsonDocument::parse(shown)?, JsonDocument::parse(written)?);
    let (shown, written) = (shown.root()?, written.root()?);
    for (name, value) in written.iter() {
        let is_nothing = matches!(Json::of(value)?, Json::Null);
        if shown.get(name).is_none() && !more.contains(&name) && !is_nothing {
            let problem = "the version in which the node is stored has no such member";
            return Err(FormatError::document(name, problem));
        }
    }
    Ok(())
}
