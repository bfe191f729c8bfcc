//! The text of a JSON document, the spans of its members, and edits of it.
//!
//! Before `serde_json` parses the text, it is masked: Python's bare `NaN`, `Infinity` and `-Infinity` are
//! replaced by strings of the same length, escapes of unpaired surrogates by another escape, and a byte order
//! mark by spaces. Spans of the masked text are therefore spans of the original, from which edits copy.
//!
//! Objects and lists are opened one level at a time, so that deep nesting cannot overflow the
//! stack.

use std::borrow::Cow;
use std::fmt::Display;
use std::ops::Range;

use serde_json::value::RawValue;

use super::json::{self, Json, Members};
use crate::error::FormatError;
use crate::grid::Dims;

/// A parsed document.
#[derive(Debug)]
pub(crate) struct JsonDocument<'t> {
    pub(crate) text: &'t [u8],
    masked: Cow<'t, str>,
}

impl<'t> JsonDocument<'t> {
    /// Reads `text`, one JSON value.
    ///
    /// # Errors
    ///
    /// When the text is not UTF-8 or not JSON; the error has the line and column.
    pub(crate) fn parse(text: &'t [u8]) -> Result<JsonDocument<'t>, FormatError> {
        let masked = mask(text)?;
        serde_json::from_str::<&RawValue>(&masked).map_err(|error| {
            let place = format!("line {} column {}", error.line(), error.column());
            let message = error.to_string();
            let problem = message.split(" at line ").next().unwrap_or_default();
            FormatError::document(place, format!("no JSON: {problem}"))
        })?;
        Ok(JsonDocument { text, masked })
    }

    /// The document's value.
    pub(crate) fn value(&self) -> Result<&RawValue, FormatError> {
        serde_json::from_str(&self.masked)
            .map_err(|error| FormatError::document("", error.to_string()))
    }

    /// The members of the document, which must be an object.
    pub(crate) fn root(&self) -> Result<Members<'_>, FormatError> {
        json::object(self.value()?, "an object").map_err(|error| error.within("the document"))
    }

    /// The span in the text of a value that was reached from [`value`](Self::value).
    pub(crate) fn span(&self, value: &RawValue) -> Range<usize> {
        let base = self.masked.as_ptr().addr();
        let start = value.get().as_ptr().addr().saturating_sub(base);
        start..start + value.get().len()
    }

    /// The original text of a value.
    pub(crate) fn text_of(&self, value: &RawValue) -> &'t [u8] {
        self.text.get(self.span(value)).unwrap_or_default()
    }

    /// The members of `object` with their spans.
    pub(crate) fn members<'d>(
        &'d self,
        object: &'d RawValue,
    ) -> Result<Vec<MemberSpan<'d>>, FormatError> {
        // A name begins at the first quote after the member before it, or after the brace.
        let mut end = self.span(object).start;
        let members = json::object(object, "an object")?;
        Ok(members
            .iter()
            .map(|(name, value)| {
                let rest = self.text.get(end..).unwrap_or_default();
                let start = end + rest.iter().position(|&byte| byte == b'"').unwrap_or(0);
                end = self.span(value).end;
                MemberSpan {
                    name: name.to_owned(),
                    value,
                    span: start..end,
                }
            })
            .collect())
    }
}

/// A member of an object.
#[derive(Debug)]
pub(crate) struct MemberSpan<'d> {
    /// Its name.
    pub(crate) name: String,
    /// Its value.
    pub(crate) value: &'d RawValue,
    /// From the quote that opens its name to the end of its value.
    pub(crate) span: Range<usize>,
}

/// The masked `text`; borrowed when it needs no mask.
fn mask(text: &[u8]) -> Result<Cow<'_, str>, FormatError> {
    let text = str::from_utf8(text).map_err(|error| {
        let place = format!("byte {}", error.valid_up_to());
        FormatError::document(place, "no UTF-8, so no JSON")
    })?;
    // The masked text so far, and the length of the original that it covers.
    let mut masked = String::new();
    let mut done = 0;
    let mut put = |at: usize, mask: &str| {
        masked.reserve_exact(if done == 0 { text.len() } else { 0 });
        masked.push_str(text.get(done..at).unwrap_or_default());
        masked.push_str(mask);
        done = at + mask.len();
    };
    if text.starts_with(MARK) {
        put(0, "   ");
    }
    for_each_masked(text, put);
    if done == 0 {
        return Ok(Cow::Borrowed(text));
    }
    masked.push_str(text.get(done..).unwrap_or_default());
    Ok(Cow::Owned(masked))
}

/// The byte order mark, with which JSON must not begin.
pub(super) const MARK: char = '\u{feff}';

/// Calls `each` with the position, and the text of the same length that replaces it, of each bare number that is not
/// finite and of each escape of an unpaired surrogate.
fn for_each_masked(text: &str, mut each: impl FnMut(usize, &'static str)) {
    let mut bytes = text.as_bytes();
    let mut in_string = false;
    while let Some((&byte, rest)) = bytes.split_first() {
        let at = text.len() - bytes.len();
        bytes = match (in_string, byte) {
            (true, b'\\') => {
                let (len, is_half) = json::escape_of(bytes);
                if is_half {
                    each(at, json::HALF_PAIR.0);
                }
                bytes.get(len..).unwrap_or_default()
            }
            (_, b'"') => {
                in_string = !in_string;
                rest
            }
            (false, b'N' | b'I' | b'-') => match json::mask_of(bytes) {
                Some(mask) => {
                    each(at, mask);
                    bytes.get(mask.len()..).unwrap_or_default()
                }
                None => rest,
            },
            _ => rest,
        };
    }
}

/// Replacements of spans of one text.
#[derive(Debug, Default)]
pub(crate) struct Edits(Vec<(Range<usize>, Vec<u8>)>);

impl Edits {
    /// Replaces `span` by `bytes`. Spans must not overlap.
    pub(crate) fn replace(&mut self, span: Range<usize>, bytes: impl Into<Vec<u8>>) {
        self.0.push((span, bytes.into()));
    }

    /// The text with all replacements made.
    pub(crate) fn apply(self, text: &[u8]) -> Vec<u8> {
        self.apply_within(text, 0..text.len())
    }

    /// The part `whole` of the text with all replacements made, which must be inside of it.
    pub(crate) fn apply_within(mut self, text: &[u8], whole: Range<usize>) -> Vec<u8> {
        self.0.sort_by_key(|(span, _)| span.start);
        let mut edited = Vec::with_capacity(whole.len());
        let mut done = whole.start;
        for (span, bytes) in self.0 {
            edited.extend_from_slice(text.get(done..span.start).unwrap_or_default());
            edited.extend_from_slice(&bytes);
            done = span.end;
        }
        edited.extend_from_slice(text.get(done..whole.end).unwrap_or_default());
        edited
    }
}

/// Whether the document `object` has no members.
///
/// # Errors
/// When it is not a JSON object.
pub(super) fn is_empty(object: &[u8]) -> Result<bool, FormatError> {
    Ok(JsonDocument::parse(object)?.root()?.iter().next().is_none())
}

/// `text` as a JSON string.
pub(crate) fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// The text of an object of `members`, whose values are JSON already.
pub(crate) fn object_text<N: AsRef<str>, V: Display>(
    members: impl IntoIterator<Item = (N, V)>,
) -> String {
    let member = |(name, value): (N, V)| format!("{}:{value}", quoted(name.as_ref()));
    let members: Vec<String> = members.into_iter().map(member).collect();
    format!("{{{}}}", members.join(","))
}

/// The text of a list of lengths.
pub(crate) fn list_of(lengths: &[u64]) -> String {
    let lengths: Vec<String> = lengths.iter().map(u64::to_string).collect();
    format!("[{}]", lengths.join(", "))
}

/// The largest number of dimensions of an array, as in `NumPy`.
const MOST_DIMENSIONS: u64 = 64;

/// The largest document of an array, in bytes. Its parsed form may be several times as large. Real
/// arrays do not have attributes of megabytes, and a list of a million codecs is an attack.
const MAX_ARRAY_DOCUMENT_BYTES: u64 = 4 << 20;

/// Checks the length of the document of an array before it is parsed.
///
/// # Errors
///
/// When it is too long.
pub fn check_array_document_len(bytes: u64) -> Result<(), FormatError> {
    FormatError::check_limit(
        "the size of an array's document",
        bytes,
        MAX_ARRAY_DOCUMENT_BYTES,
    )
}

/// A list of lengths, one for each dimension.
pub(crate) fn lengths(value: &RawValue) -> Result<Dims, FormatError> {
    let items = json::array(value, "a list of lengths")?;
    FormatError::check_limit(
        "the number of dimensions",
        items.len() as u64,
        MOST_DIMENSIONS,
    )?;
    json::each(items, json::length)
}

/// Like [`lengths`], where a length alone is a list of one: R has no other spelling for a vector of one number.
pub(crate) fn lengths_or_one(value: &RawValue) -> Result<Dims, FormatError> {
    match Json::of(value)? {
        Json::Number(_) => Ok(Dims::from_elem(json::length(value)?, 1)),
        _ => lengths(value),
    }
}

/// Checks that member `zarr_format` is the number `expected`.
pub(crate) fn check_format(root: &Members<'_>, expected: i128) -> Result<(), FormatError> {
    root.read("zarr_format", |value| match Json::of(value)?.integer() {
        Some(format) if format == expected => Ok(()),
        _ => Err(json::mismatch(value, &format!("the number {expected}"))),
    })
}

/// Whether an extension is marked as one that readers may ignore.
pub(crate) fn may_be_ignored(members: &Members<'_>) -> bool {
    members.get("must_understand").map(RawValue::get) == Some("false")
}

/// Fails on a member that is neither known nor marked as one that readers may ignore.
pub(crate) fn check_members(root: &Members<'_>, known: &[&str]) -> Result<(), FormatError> {
    for (name, value) in root.iter() {
        // The value of a known member is not opened, because attributes may be long.
        if known.contains(&name) {
            continue;
        }
        let tolerated = match (name, Json::of(value)?) {
            // zarr-python 3.0.0 writes `consolidated_metadata: null`, and writers of drafts an
            // empty list of `extensions`.
            ("consolidated_metadata", Json::Null) => true,
            ("extensions", Json::Array(items)) => items.is_empty(),
            (_, Json::Object(members)) => may_be_ignored(&members),
            _ => false,
        };
        if !tolerated {
            // A name may be empty, but the place of an error may not.
            let place = if name.is_empty() {
                "the document"
            } else {
                name
            };
            return Err(FormatError::unsupported(place, "extension", name));
        }
    }
    Ok(())
}

/// Whether the text of attributes says nothing: it is empty; or it is `null`, which zarr-python 3, and so xarray,
/// reads as no attributes; or it is an empty list, which R has in place of an empty object.
pub fn say_nothing(text: &[u8]) -> bool {
    let text = text.trim_ascii();
    let inside = text
        .strip_prefix(b"[")
        .and_then(|text| text.strip_suffix(b"]"));
    matches!(text, b"" | b"null") || inside.is_some_and(|inside| inside.trim_ascii().is_empty())
}

/// The member `attributes`; `None` also when it says nothing.
pub(crate) fn attributes_in<'a>(root: &Members<'a>) -> Option<&'a RawValue> {
    let attributes = root.get("attributes");
    attributes.filter(|value| !say_nothing(value.get().as_bytes()))
}

/// Checks that member `attributes` is an object, where it says something.
pub(crate) fn check_attributes(root: &Members<'_>) -> Result<(), FormatError> {
    match attributes_in(root) {
        Some(value) if !value.get().starts_with('{') => {
            Err(json::mismatch(value, "an object").within("attributes"))
        }
        _ => Ok(()),
    }
}

/// Checks that `text`, a document that has only attributes (`.zattrs`), is an object.
///
/// # Errors
/// [`FormatError::Document`].
pub fn check_attributes_document(text: &[u8]) -> Result<(), FormatError> {
    JsonDocument::parse(text)?.root().map(drop)
}

/// Checks the parts of the document `text` that its outline leaves out: the whole must be JSON, and
/// the attributes an object.
///
/// # Errors
///
/// When it is not; the error has the place.
pub fn check_outlined(text: &[u8]) -> Result<(), FormatError> {
    check_attributes(&JsonDocument::parse(text)?.root()?)
}

/// The longest JSON that is shown in full, in characters.
const LONGEST_SPELLED: usize = 4096;

/// A value as one line, for messages: the characters of a string, or the JSON without white space.
/// Long JSON, such as a record of very many fields, is cut.
pub(crate) fn spelled(value: &RawValue) -> String {
    if let Ok(Json::String(text)) = Json::of(value) {
        return text;
    }
    let (mut in_string, mut escaped) = (false, false);
    let mut spelled: String = value
        .get()
        .chars()
        .filter(|&character| {
            if !in_string {
                in_string = character == '"';
                return !character.is_ascii_whitespace();
            }
            in_string = escaped || character != '"';
            escaped = !escaped && character == '\\';
            true
        })
        .take(LONGEST_SPELLED)
        .collect();
    if spelled.chars().count() == LONGEST_SPELLED {
        spelled.push('…');
    }
    spelled
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_may_say_nothing() {
        for text in ["", " \n", "null", "[]", "[ ]\n"] {
            assert!(say_nothing(text.as_bytes()), "{text:?}");
        }
        for text in ["{}", "[1]", "[[]]", "[", "]", "[],[]", "0"] {
            assert!(!say_nothing(text.as_bytes()), "{text:?}");
        }
    }

    #[test]
    fn spans_are_those_of_the_original() {
        let text = "\u{feff}{\"a\" : NaN, \"NaN\\\\\\\"\": [-Infinity, \"NaN\"],\n\"c\":Infinity}";
        let document = JsonDocument::parse(text.as_bytes()).unwrap();
        let root = document.root().unwrap();
        let values: Vec<_> = root
            .iter()
            .map(|(_, value)| document.text_of(value))
            .collect();
        assert_eq!(values, [&b"NaN"[..], b"[-Infinity, \"NaN\"]", b"Infinity"]);
        let members = document.members(document.value().unwrap()).unwrap();
        let members: Vec<_> = members.into_iter().map(|m| &text[m.span]).collect();
        assert_eq!(
            members,
            [
                "\"a\" : NaN",
                "\"NaN\\\\\\\"\": [-Infinity, \"NaN\"]",
                "\"c\":Infinity"
            ]
        );
    }

    #[test]
    fn what_is_no_json_is_refused_with_its_place() {
        for (text, message) in [
            (&b""[..], "line 1 column 0: no JSON: EOF"),
            (
                b"not json at all {",
                "line 1 column 2: no JSON: expected ident",
            ),
            (b"{\"a\": 1,\n \"b\": }", "line 2 column 7: no JSON"),
            (b"{} x", "line 1 column 4: no JSON: trailing"),
            (b"{\"a\": xNaN}", "no JSON"),
            (b"{\"a\": NaN1}", "no JSON"),
            (b"\xff", "byte 0: no UTF-8"),
            (b"[1]", "the document: found [1], expected an object"),
        ] {
            let error = JsonDocument::parse(text)
                .and_then(|document| document.root().map(|_| ()))
                .unwrap_err()
                .to_string();
            assert!(error.contains(message), "{error}");
        }
    }

    #[test]
    fn depth_uses_no_stack() {
        for depth in [1_000, 50_000, 1_000_000] {
            let text = format!("{{\"x\":{}{}}}", "[".repeat(depth), "]".repeat(depth));
            let document = JsonDocument::parse(text.as_bytes()).unwrap();
            let value = document.root().unwrap().get("x").unwrap();
            assert_eq!(document.text_of(value).len(), 2 * depth);
            let unclosed = "{\"a\":".repeat(depth);
            assert!(JsonDocument::parse(unclosed.as_bytes()).is_err());
        }
    }

    #[test]
    fn values_are_spelled_on_one_line() {
        for (text, line) in [
            (r#""<i4""#, "<i4"),
            (
                "{ \"na me\" :\n [1, \"\\\" \\\\\", 2] }",
                "{\"na me\":[1,\"\\\" \\\\\",2]}",
            ),
        ] {
            let raw: &RawValue = serde_json::from_str(text).unwrap();
            assert_eq!(spelled(raw), line);
        }
    }
}
