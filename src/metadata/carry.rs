//! Carries changes of a document, as a view shows it, back to the stored document.
//!
//! ```text
//! stored   {"shape": [9], "codecs": [.., {"name": "gzip"}], "attributes": {}}
//! shown    {"shape": [9], "codecs": [..],                   "attributes": {}}
//! written  {"shape": [12], "codecs": [..],                  "attributes": {"a": 1}}
//! carried  {"shape": [12], "codecs": [.., {"name": "gzip"}], "attributes": {"a": 1}}
//! ```
//!
//! Members that are the same in both texts stay as they are stored, byte for byte. Whether a member
//! may change is not decided here: the caller shows the result again, and compares that with what was
//! written ([`differences`]).

use std::collections::HashMap;

use serde_json::value::RawValue;

use super::DocumentName;
use super::document::{Edits, JsonDocument, MemberSpan, quoted};
use super::json::{self, Json, Members};
use super::splice;
use crate::error::FormatError;

/// The member whose members are carried one by one, because a view may hide some of them.
pub(super) const ATTRIBUTES: &str = "attributes";

/// The kind of an object whose members are compared. Members of a document such as `compressor` may be spelled in
/// several ways, but attributes of the same names are values like any other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ObjectKind {
    /// The document of a node.
    Document,
    /// Attributes.
    Attributes,
}

impl ObjectKind {
    /// The kind of the object in the stored document whose key ends in the segment `name`.
    pub fn of(name: &[u8]) -> ObjectKind {
        match DocumentName::of(name) {
            Some(DocumentName::ZAttrs | DocumentName::ZGroup) => ObjectKind::Attributes,
            None if matches!(name, b"attrs" | b"__zattr__") => ObjectKind::Attributes,
            _ => ObjectKind::Document,
        }
    }
}

/// The document `stored` with what `written` changes in `shown`.
///
/// # Errors
/// When one of the texts is no JSON object.
pub fn carried(stored: &[u8], shown: &[u8], written: &[u8]) -> Result<Vec<u8>, FormatError> {
    carried_in(ObjectKind::Document, stored, shown, written)
}

/// Like [`carried`], for objects of this `kind`.
///
/// # Errors
/// Those of [`carried`].
pub fn carried_in(
    kind: ObjectKind,
    stored: &[u8],
    shown: &[u8],
    written: &[u8],
) -> Result<Vec<u8>, FormatError> {
    let [shown, written] = [JsonDocument::parse(shown)?, JsonDocument::parse(written)?];
    let (before, after) = (shown.root()?, written.root()?);
    let (before, last) = (by_name(&before), by_name(&after));
    let old = JsonDocument::parse(stored)?;
    let members = old.members(old.value()?)?;
    let goes = |member: &MemberSpan<'_>| {
        let name = member.name.as_str();
        !last.contains_key(name) && before.contains_key(name)
    };
    let mut edits = Edits::default();
    splice::remove(&members, &mut edits, goes);
    // Of several members with one name, the last one counts.
    let places: HashMap<&str, &MemberSpan<'_>> = members
        .iter()
        .map(|member| (member.name.as_str(), member))
        .collect();
    let mut added = Vec::new();
    for (name, value) in after.iter() {
        if !last
            .get(name)
            .is_some_and(|last| std::ptr::eq(*last, value))
        {
            continue;
        }
        let shown_value = before.get(name).copied();
        let is_unchanged = |before| is_same_in(kind, name, (&shown, before), (&written, value));
        if shown_value.is_some_and(|before| is_unchanged(before).unwrap_or(false)) {
            continue;
        }
        let text = written.text_of(value);
        match places.get(name) {
            Some(member) => {
                let is_opened = kind == ObjectKind::Document && name == ATTRIBUTES;
                let opened = shown_value.filter(|_| is_opened);
                let changed = match opened.map(|value| shown.text_of(value)) {
                    Some(shown) => {
                        let stored = old.text_of(member.value);
                        carried_in(ObjectKind::Attributes, stored, shown, text)
                    }
                    None => Ok(text.to_vec()),
                };
                // Values that are not objects have no members.
                let changed = changed.unwrap_or_else(|_| text.to_vec());
                edits.replace(old.span(member.value), changed);
            }
            None => added.push([quoted(name).as_bytes(), b": ", text].concat()),
        }
    }
    append(&edits.apply(stored), &added)
}

/// The members by name; the last one where several have a name.
fn by_name<'m>(members: &'m Members<'m>) -> HashMap<&'m str, &'m RawValue> {
    members.iter().collect()
}

/// The object `text` with more members at its end.
fn append(text: &[u8], added: &[Vec<u8>]) -> Result<Vec<u8>, FormatError> {
    if added.is_empty() {
        return Ok(text.to_vec());
    }
    let document = JsonDocument::parse(text)?;
    let object = document.span(document.value()?);
    let last = document.members(document.value()?)?;
    let (at, comma) = match last.last() {
        Some(last) => (last.span.end, &b", "[..]),
        None => (object.start + 1, &b""[..]),
    };
    let mut edits = Edits::default();
    edits.replace(at..at, [comma, added.join(&b", "[..]).as_slice()].concat());
    Ok(edits.apply(text))
}

/// The object `text` with the member `name` set to `value`, JSON, or without it.
///
/// # Errors
/// When the text is no JSON object.
pub fn with_member(text: &[u8], name: &str, value: Option<&[u8]>) -> Result<Vec<u8>, FormatError> {
    let old = {
        let document = JsonDocument::parse(text)?;
        let root = document.root()?;
        root.get(name).map(|value| document.text_of(value).to_vec())
    };
    let as_object = |value: Option<&[u8]>| value.map_or(b"{}".to_vec(), |v| object_of(name, v));
    carried(text, &as_object(old.as_deref()), &as_object(value))
}

/// The object that has one member, whose value is JSON already.
pub fn object_of(name: &str, value: &[u8]) -> Vec<u8> {
    [b"{", quoted(name).as_bytes(), b": ", value, b"}"].concat()
}

/// The names of the members of the documents that are not the same in both.
///
/// # Errors
/// When one of the texts is no JSON object.
pub fn differences(one: &[u8], other: &[u8]) -> Result<Vec<String>, FormatError> {
    differences_in(ObjectKind::Document, one, other)
}

/// Like [`differences`], for objects of this `kind`.
///
/// # Errors
/// Those of [`differences`].
pub fn differences_in(
    kind: ObjectKind,
    one: &[u8],
    other: &[u8],
) -> Result<Vec<String>, FormatError> {
    let [one_text, other_text] = [JsonDocument::parse(one)?, JsonDocument::parse(other)?];
    let (one, other) = (one_text.root()?, other_text.root()?);
    let (in_one, in_other) = (by_name(&one), by_name(&other));
    let mut names = Vec::new();
    for (name, value) in one.iter() {
        // Of several members with one name, the last one counts.
        if in_one
            .get(name)
            .is_some_and(|last| !std::ptr::eq(*last, value))
        {
            continue;
        }
        let same = in_other
            .get(name)
            .map(|other| is_same_in(kind, name, (&one_text, value), (&other_text, other)));
        if !same.transpose()?.unwrap_or(false) {
            names.push(name.to_owned());
        }
    }
    let more = other.iter().filter(|(name, _)| !in_one.contains_key(name));
    names.extend(more.map(|(name, _)| name.to_owned()));
    Ok(names)
}

/// The optional members of a document of v3 that are `null`, as if they were not there.
///
/// # Errors
/// When the text is no JSON object.
pub fn nothing_in(text: &[u8]) -> Result<Vec<String>, FormatError> {
    const OPTIONAL: [&str; 3] = ["attributes", "dimension_names", "storage_transformers"];
    let document = JsonDocument::parse(text)?;
    let root = document.root()?;
    let null = OPTIONAL.into_iter().filter(|name| {
        let value = root.get(name);
        value.is_some_and(|value| value.get() == "null")
    });
    Ok(null.map(str::to_owned).collect())
}

/// The members of v3 that are extensions, or lists of them.
const EXTENSIONS: [&str; 5] = [
    "chunk_grid",
    "chunk_key_encoding",
    "codecs",
    "data_type",
    "storage_transformers",
];

/// Whether two values of the member `name` of objects of this `kind`, each in its document, are the same.
fn is_same_in(
    kind: ObjectKind,
    name: &str,
    (one_text, one): (&JsonDocument<'_>, &RawValue),
    (other_text, other): (&JsonDocument<'_>, &RawValue),
) -> Result<bool, FormatError> {
    // An attribute with the name of a member has one spelling, as the member `attributes` has.
    let name = if kind == ObjectKind::Document {
        name
    } else {
        ATTRIBUTES
    };
    is_same_by(name, (one, other), |one, other| {
        one_text.text_of(one) == other_text.text_of(other)
    })
}

/// Whether two values of the member `name` are the same, however they are spelled: spaces, escapes and the order of
/// members do not matter, nor whether NaN is bare or a string, but `1` and `1.0` are two values. An extension without a
/// configuration may have an empty one, and a codec of v2 may state its defaults, and spell a number as text.
pub(super) fn is_same(name: &str, values: (&RawValue, &RawValue)) -> Result<bool, FormatError> {
    is_same_by(name, values, |one, other| one.get() == other.get())
}

/// Like [`is_same`]. `has_same_text` compares the texts of strings with halves of pairs of surrogates, because the
/// values do not say which half each of them is.
fn is_same_by(
    name: &str,
    values: (&RawValue, &RawValue),
    has_same_text: impl Fn(&RawValue, &RawValue) -> bool,
) -> Result<bool, FormatError> {
    let is_extension = EXTENSIONS.contains(&name);
    let is_codec = matches!(name, "compressor" | "filters");
    // A stack, because values may nest deeply.
    let mut left = vec![values];
    while let Some((one, other)) = left.pop() {
        let has_half_pair = |value: &RawValue| value.get().contains(json::HALF_PAIR.0);
        let is_string = |value: &RawValue| value.get().starts_with('"');
        if one.get() == other.get() && !has_half_pair(one) {
            continue;
        }
        if is_string(one) && is_string(other) && (has_half_pair(one) || has_half_pair(other)) {
            if has_same_text(one, other) {
                continue;
            }
            return Ok(false);
        }
        match (Json::of(one)?, Json::of(other)?) {
            (Json::Array(one), Json::Array(other)) if one.len() == other.len() => {
                left.extend(one.into_iter().zip(other));
            }
            (Json::Object(one), Json::Object(other)) => {
                let (mut one, mut other) = (sorted(&one), sorted(&other));
                if is_extension {
                    one.retain(is_configured);
                    other.retain(is_configured);
                }
                if is_codec {
                    one.retain(says_something);
                    other.retain(says_something);
                }
                let same_names = one.len() == other.len()
                    && one
                        .iter()
                        .zip(&other)
                        .all(|((one, _), (other, _))| one == other);
                if !same_names {
                    return Ok(false);
                }
                left.extend(
                    one.iter()
                        .zip(&other)
                        .map(|((_, one), (_, other))| (*one, *other)),
                );
            }
            (Json::String(one), Json::String(other)) if one == other => {}
            // NetCDF-C spells the number as this string.
            (Json::String(text), Json::Number(number))
            | (Json::Number(number), Json::String(text))
                if is_codec && text == number => {}
            // A view shows the number as this string.
            (Json::String(text), Json::NonFinite(value))
            | (Json::NonFinite(value), Json::String(text))
                if text == json::name_of(value) => {}
            (Json::Number(one), Json::Number(other)) if is_same_number(one, other) => {}
            _ => return Ok(false),
        }
    }
    Ok(true)
}

/// Whether a member of an extension is anything else than an empty configuration.
fn is_configured((name, value): &(String, &RawValue)) -> bool {
    let is_empty = |value| matches!(Json::of(value), Ok(Json::Object(members)) if members.iter().next().is_none());
    name != "configuration" || !is_empty(value)
}

/// Whether a member of a codec of v2 matters to readers. Those that do not are never shown, because older releases of
/// numcodecs and tensorstore refuse them, and recent releases write them with each codec.
fn says_something((name, value): &(String, &RawValue)) -> bool {
    !matches!(
        (name.as_str(), value.get()),
        ("typesize", _) | ("checksum", "false")
    )
}

/// The members by name; the last one where several have a name.
fn sorted<'a>(members: &Members<'a>) -> Vec<(String, &'a RawValue)> {
    let mut sorted: Vec<_> = members
        .iter()
        .map(|(name, value)| (name.to_owned(), value))
        .collect();
    // Stable, so that the last one of each name is the last of its run.
    sorted.sort_by(|(one, _), (other, _)| one.cmp(other));
    sorted.reverse();
    sorted.dedup_by(|(later, _), (first, _)| later == first);
    sorted
}

/// Whether two spellings are of the same number. A whole number is not the same as a float.
fn is_same_number(one: &str, other: &str) -> bool {
    match (one.parse::<i128>(), other.parse::<i128>()) {
        (Ok(one), Ok(other)) => one == other,
        (Err(_), Err(_)) => {
            let is_whole = |text: &str| !text.contains(['.', 'e', 'E']);
            if is_whole(one) || is_whole(other) {
                // Digits beyond 128 bits are those of one number only.
                return one == other;
            }
            let value = |text: &str| text.parse::<f64>().ok().filter(|value| value.is_finite());
            let bits = |text: &str| value(text).map(f64::to_bits);
            bits(one).is_some() && bits(one) == bits(other)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_codec_may_say_what_it_does_anyway() {
        for (one, other, expected) in [
            (
                r#"{"id": "zstd", "level": 0}"#,
                r#"{"id": "zstd", "level": 0, "checksum": false}"#,
                true,
            ),
            (
                r#"{"id": "zstd", "level": 0}"#,
                r#"{"id": "zstd", "level": 0, "checksum": true}"#,
                false,
            ),
            (
                r#"{"id": "blosc"}"#,
                r#"{"id": "blosc", "typesize": 4}"#,
                true,
            ),
            (
                r#"{"id": "zstd", "level": 0}"#,
                r#"{"id": "zstd", "level": 1}"#,
                false,
            ),
            (
                r#"{"id": "zlib", "level": 5}"#,
                r#"{"id": "zlib", "level": "5"}"#,
                true,
            ),
            (
                r#"{"id": "zlib", "level": "4"}"#,
                r#"{"id": "zlib", "level": 5}"#,
                false,
            ),
        ] {
            let [one, other] = [one, other].map(|text| format!(r#"{{"compressor": {text}}}"#));
            let found = differences(one.as_bytes(), other.as_bytes()).unwrap();
            assert_eq!(found.is_empty(), expected, "{one} {other}");
        }
    }

    #[test]
    fn attributes_with_the_names_of_members_are_values_like_any_other() {
        for (one, other) in [
            (
                r#"{"compressor": {"cname": "zstd", "typesize": 4}}"#,
                r#"{"compressor": {"cname": "zstd", "typesize": 8}}"#,
            ),
            (
                r#"{"filters": [{"checksum": false}]}"#,
                r#"{"filters": [{}]}"#,
            ),
            (
                r#"{"codecs": [{"configuration": {}}]}"#,
                r#"{"codecs": [{}]}"#,
            ),
        ] {
            let found = differences_in(ObjectKind::Attributes, one.as_bytes(), other.as_bytes());
            assert_eq!(found.unwrap().len(), 1, "{one}");
            let [one_kept, other_kept] = [one, other].map(str::as_bytes);
            let found = carried_in(ObjectKind::Attributes, one_kept, one_kept, other_kept);
            assert_eq!(found.unwrap(), other_kept, "{one}");
            let [one, other] = [one, other].map(|text| object_of(ATTRIBUTES, text.as_bytes()));
            assert_eq!(differences(&one, &other).unwrap(), [ATTRIBUTES]);
            assert_eq!(carried(&one, &one, &other).unwrap(), other);
        }
        for (name, expected) in [
            (&b".zattrs"[..], ObjectKind::Attributes),
            (b".zgroup", ObjectKind::Attributes),
            (b"attrs", ObjectKind::Attributes),
            (b".zarray", ObjectKind::Document),
            (b"zarr.json", ObjectKind::Document),
        ] {
            assert_eq!(ObjectKind::of(name), expected);
        }
    }

    #[test]
    fn what_changed_is_carried_and_the_rest_stays_as_it_was() {
        let stored =
            br#"{ "shape":[9],  "codecs": ["gzip"], "attributes": {"filters": [1], "a": 1.50} }"#;
        let shown = br#"{ "shape":[9],  "codecs": [], "attributes": {"a": 1.50} }"#;
        for (written, expected) in [
            (
                r#"{"shape": [9], "codecs": [], "attributes": {"a": 1.5}}"#,
                r#"{ "shape":[9],  "codecs": ["gzip"], "attributes": {"filters": [1], "a": 1.50} }"#,
            ),
            (
                r#"{"shape": [12], "codecs": [], "attributes": {"a": 1.5, "b": {}}}"#,
                r#"{ "shape":[12],  "codecs": ["gzip"], "attributes": {"filters": [1], "a": 1.50, "b": {}} }"#,
            ),
            (
                r#"{"codecs": [], "shape": [9], "attributes": {}, "more": null}"#,
                r#"{ "shape":[9],  "codecs": ["gzip"], "attributes": {"filters": [1]}, "more": null }"#,
            ),
            (
                r#"{"shape": [9], "codecs": []}"#,
                r#"{ "shape":[9],  "codecs": ["gzip"] }"#,
            ),
            (
                r#"{"shape": [1], "shape": [2], "codecs": [], "attributes": {"a": 1.5}, "b": 1, "b": 2}"#,
                r#"{ "shape":[2],  "codecs": ["gzip"], "attributes": {"filters": [1], "a": 1.50}, "b": 2 }"#,
            ),
        ] {
            let found = carried(stored, shown, written.as_bytes()).unwrap();
            assert_eq!(String::from_utf8(found).unwrap(), expected, "{written}");
        }
        assert!(carried(stored, shown, b"[]").is_err());
        assert!(carried(stored, shown, b"{").is_err());
    }

    #[test]
    fn members_are_added_to_an_empty_object() {
        let found = carried(b"{}", b"{}", br#"{"a": 1, "b": [2]}"#).unwrap();
        assert_eq!(found, br#"{"a": 1, "b": [2]}"#);
        let found = carried(br#"{"a": 1}"#, br#"{"a": 1}"#, br#"{"b": 2}"#).unwrap();
        assert_eq!(found, br#"{"b": 2}"#);
    }

    #[test]
    fn the_same_value_may_be_spelled_in_several_ways() {
        for (one, other, expected) in [
            (
                r#"{"a": [1, {"b": 2, "c": 3}]}"#,
                r#"{"a":[1,{"c":3,"b":2}]}"#,
                None,
            ),
            ("{\"a\": \"\\u00e9\"}", r#"{"a": "é"}"#, None),
            (r#"{"a": 1}"#, r#"{"a": 1.0}"#, Some("a")),
            (r#"{"a": 1.50}"#, r#"{"a": 15e-1}"#, None),
            (r#"{"a": NaN}"#, r#"{"a": NaN}"#, None),
            (
                r#"{"a": [NaN, "-Infinity"]}"#,
                r#"{"a": ["NaN", -Infinity]}"#,
                None,
            ),
            (r#"{"a": NaN}"#, r#"{"a": "nan"}"#, Some("a")),
            (r#"{"a": Infinity}"#, r#"{"a": "-Infinity"}"#, Some("a")),
            (r#"{"a": 1}"#, r#"{"a": 1, "b": null}"#, Some("b")),
            (r#"{"a": 1, "a": 2}"#, r#"{"a": 2}"#, None),
            (r#"{"a": "\ud800"}"#, r#"{"a":"\ud800"}"#, None),
            (r#"{"a": "\ud800"}"#, r#"{"a": "\udfff"}"#, Some("a")),
            (r#"{"a": ["\ud800"]}"#, r#"{"a": ["\uffff"]}"#, Some("a")),
            (r#"{"a": ["\ud800", 1]}"#, r#"{"a":["\ud800",1]}"#, None),
            (r#"{"a": ["\ud800", 1]}"#, r#"{"a":["b",1]}"#, Some("a")),
            (
                r#"{"a": ["\ud83d\ude00"]}"#,
                r#"{"a":["\uD83D\uDE00"]}"#,
                None,
            ),
            (r#"{"a": 1e400}"#, r#"{"a": 1e400}"#, None),
            (r#"{"a": 1e400}"#, r#"{"a": 1e999}"#, Some("a")),
            (
                r#"{"codecs": [{"name": "vlen-utf8"}]}"#,
                r#"{"codecs": [{"name": "vlen-utf8", "configuration": {}}]}"#,
                None,
            ),
            (
                r#"{"codecs": [{"name": "gzip"}]}"#,
                r#"{"codecs": [{"name": "gzip", "configuration": {"level": 1}}]}"#,
                Some("codecs"),
            ),
            (
                r#"{"attributes": {"name": "a"}}"#,
                r#"{"attributes": {"name": "a", "configuration": {}}}"#,
                Some("attributes"),
            ),
        ] {
            let found = differences(one.as_bytes(), other.as_bytes()).unwrap();
            assert_eq!(
                found,
                expected.into_iter().collect::<Vec<_>>(),
                "{one} {other}"
            );
        }
    }

    #[test]
    fn whole_numbers_of_any_length_are_compared_exactly() {
        let with = |last: &str| format!("{{\"a\": {}{last}}}", "9".repeat(40));
        for (one, other, is_same) in [("1", "1", true), ("1", "2", false), ("1", "1.0", false)] {
            let found = differences(with(one).as_bytes(), with(other).as_bytes()).unwrap();
            assert_eq!(found.is_empty(), is_same, "{one} {other}");
        }
    }

    #[test]
    fn deep_values_are_compared_without_recursion() {
        let deep = |end: &str| format!("{{\"a\": {}{end}{}}}", "[".repeat(100), "]".repeat(100));
        let found = differences(deep("1").as_bytes(), deep(" 1").as_bytes()).unwrap();
        assert!(found.is_empty());
        let found = differences(deep("1").as_bytes(), deep("2").as_bytes()).unwrap();
        assert_eq!(found, ["a"]);
    }
}
