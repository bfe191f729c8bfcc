//! Reads JSON one level at a time.
//!
//! A hostile document may nest data types and fill values arbitrarily deep. Nothing here recurses:
//! a list or an object is opened into the texts of its values, and a caller that opens those in
//! turn limits the depth.
//!
//! Python writes bare `NaN`, `Infinity` and `-Infinity`. Before a document is parsed, strings of
//! the same length replace them ([`mask_of`]), and [`Json::of`] returns them as
//! [`Json::NonFinite`]. These strings contain the character U+007F, which real documents do not.
//! Python also writes halves of pairs of surrogates, such as `\ud800`, which are no characters. An escape
//! of the same length replaces them, for U+FFFF, and a string with one is an error where it is read.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use crate::error::FormatError;

/// Each bare token, the string of the same length that replaces it, and its value.
const NON_FINITE: [(&str, &str, f64); 3] = [
    ("NaN", "\"\u{7f}\"", f64::NAN),
    ("Infinity", "\"\u{7f}+++++\"", f64::INFINITY),
    ("-Infinity", "\"\u{7f}------\"", f64::NEG_INFINITY),
];

/// The string that replaces the bare token at the beginning of `text`, if there is one.
pub(crate) fn mask_of(text: &[u8]) -> Option<&'static str> {
    NON_FINITE
        .iter()
        .find(|(token, _, _)| text.starts_with(token.as_bytes()))
        .map(|&(_, mask, _)| mask)
}

/// The escape that replaces half of a pair of surrogates, and the character that it stands for.
pub(crate) const HALF_PAIR: (&str, char) = ("\\uffff", '\u{ffff}');

/// The length of the escape that `bytes` begins with, and whether it is half of a pair of surrogates.
pub(crate) fn escape_of(bytes: &[u8]) -> (usize, bool) {
    let unit = |at: usize| {
        let digits = bytes.get(at..at + 6)?.strip_prefix(b"\\u")?;
        u16::from_str_radix(str::from_utf8(digits).ok()?, 16).ok()
    };
    match (unit(0), unit(6)) {
        (Some(0xd800..=0xdbff), Some(0xdc00..=0xdfff)) => (12, false),
        (Some(0xd800..=0xdfff), _) => (6, true),
        (Some(_), _) => (6, false),
        (None, _) => (2, false),
    }
}

/// Whether half of a pair of surrogates is in the JSON string `text`.
pub(crate) fn has_half_pair(text: &str) -> bool {
    let mut left = text;
    while let Some(at) = left.find('\\') {
        let escape = left.get(at..).unwrap_or_default();
        let (len, is_half) = escape_of(escape.as_bytes());
        if is_half {
            return true;
        }
        left = escape.get(len..).unwrap_or_default();
    }
    false
}

/// The bare token that `text` begins with, if it does.
pub(crate) fn bare_token_of(text: &[u8]) -> Option<&'static str> {
    let mut tokens = NON_FINITE.iter().map(|&(token, _, _)| token);
    tokens.find(|token| text.starts_with(token.as_bytes()))
}

/// The name of a number that is not finite, as Zarr v3 spells it in a string.
pub(crate) fn name_of(value: f64) -> &'static str {
    match NON_FINITE {
        [(nan, ..), _, _] if value.is_nan() => nan,
        [_, (positive, ..), _] if value > 0.0 => positive,
        [_, _, (negative, ..)] => negative,
    }
}

/// A JSON value, opened by one level.
#[derive(Debug)]
pub(crate) enum Json<'a> {
    /// `null`
    Null,
    /// `true` or `false`
    Bool(bool),
    /// A number as the document spells it.
    Number(&'a str),
    /// One of Python's bare tokens.
    NonFinite(f64),
    /// A string, unescaped.
    String(String),
    /// A list.
    Array(Vec<&'a RawValue>),
    /// An object.
    Object(Members<'a>),
}

impl<'a> Json<'a> {
    /// Opens `raw` by one level.
    pub(crate) fn of(raw: &'a RawValue) -> Result<Json<'a>, FormatError> {
        let text = raw.get();
        if let Some(&(_, _, value)) = NON_FINITE.iter().find(|(_, mask, _)| *mask == text) {
            return Ok(Json::NonFinite(value));
        }
        Ok(match text.as_bytes().first() {
            Some(b'n') => Json::Null,
            Some(b't') => Json::Bool(true),
            Some(b'f') => Json::Bool(false),
            Some(b'"') => Json::String(whole(read(text)?)?),
            Some(b'[') => Json::Array(read(text)?),
            Some(b'{') => Json::Object(read(text)?),
            _ => Json::Number(text),
        })
    }

    /// The whole number, if it is one.
    pub(crate) fn integer(&self) -> Option<i128> {
        match self {
            Json::Number(text) => integer(text),
            _ => None,
        }
    }
}

/// `text`, unless half of a pair of surrogates is in it.
fn whole(text: String) -> Result<String, FormatError> {
    if text.contains(HALF_PAIR.1) {
        let problem = "found half of a pair of surrogates, which is no character";
        return Err(FormatError::document("", problem));
    }
    Ok(text)
}

fn read<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T, FormatError> {
    serde_json::from_str(text).map_err(|error| FormatError::document("", error.to_string()))
}

/// The characters of the JSON string `raw`, with U+FFFD in place of invalid ones; `None` for another value.
pub(crate) fn lossy_text(raw: &RawValue) -> Option<String> {
    let text = raw.get();
    let is_text = text.starts_with('"') && NON_FINITE.iter().all(|(_, mask, _)| *mask != text);
    let text: Option<String> = is_text.then(|| read(text).ok())?;
    text.map(lossy)
}

/// `text` with U+FFFD in place of each half of a pair of surrogates.
fn lossy(text: String) -> String {
    if text.contains(HALF_PAIR.1) {
        text.replace(HALF_PAIR.1, "\u{fffd}")
    } else {
        text
    }
}

/// The string `raw`, or an error with the value that was found instead of `expected`.
pub(crate) fn string(raw: &RawValue, expected: &str) -> Result<String, FormatError> {
    match Json::of(raw)? {
        Json::String(text) => Ok(text),
        _ => Err(mismatch(raw, expected)),
    }
}

/// The meaning of the string `raw`, which must be one of `words`.
pub(crate) fn word<T: Copy>(raw: &RawValue, words: &[(&str, T)]) -> Result<T, FormatError> {
    let found = match Json::of(raw)? {
        Json::String(text) => words.iter().find(|(word, _)| *word == text),
        _ => None,
    };
    found.map(|&(_, meaning)| meaning).ok_or_else(|| {
        let words: Vec<String> = words.iter().map(|(word, _)| format!("{word:?}")).collect();
        mismatch(raw, &words.join(" or "))
    })
}

/// The items of the list `raw`, or an error with the value that was found instead of `expected`.
pub(crate) fn array<'a>(
    raw: &'a RawValue,
    expected: &str,
) -> Result<Vec<&'a RawValue>, FormatError> {
    match Json::of(raw)? {
        Json::Array(items) => Ok(items),
        _ => Err(mismatch(raw, expected)),
    }
}

/// The results of `read` for each item of the list `raw`; an error names the index of its item.
pub(crate) fn list<'a, T, C: FromIterator<T>>(
    raw: &'a RawValue,
    expected: &str,
    read: impl FnMut(&'a RawValue) -> Result<T, FormatError>,
) -> Result<C, FormatError> {
    each(array(raw, expected)?, read)
}

/// Like [`list`], for a list that is already open.
pub(crate) fn each<'a, T, C: FromIterator<T>>(
    items: Vec<&'a RawValue>,
    mut read: impl FnMut(&'a RawValue) -> Result<T, FormatError>,
) -> Result<C, FormatError> {
    items
        .into_iter()
        .enumerate()
        .map(|(i, item)| read(item).map_err(|error| error.within(&format!("[{i}]"))))
        .collect()
}

/// The members of the object `raw`, or an error with the value that was found instead of `expected`.
pub(crate) fn object<'a>(raw: &'a RawValue, expected: &str) -> Result<Members<'a>, FormatError> {
    match Json::of(raw)? {
        Json::Object(members) => Ok(members),
        _ => Err(mismatch(raw, expected)),
    }
}

/// Calls a function with each item of a list, or each member of an object, while it is parsed.
struct EachValue<F>(F);

impl<'de, F: FnMut(Option<String>, &'de RawValue)> Visitor<'de> for EachValue<F> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object or a list")
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<(), A::Error> {
        while let Some((name, value)) = map.next_entry()? {
            (self.0)(Some(lossy(name)), value);
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut items: A) -> Result<(), A::Error> {
        while let Some(value) = items.next_element()? {
            (self.0)(None, value);
        }
        Ok(())
    }
}

/// Calls `each` with the name and value of each member of an object, or with each item of a list
/// and no name. They are not collected, so that very many of them take no memory. After an error
/// `each` is not called again.
pub(crate) fn for_each_value<'a>(
    raw: &'a RawValue,
    mut each: impl FnMut(Option<String>, &'a RawValue) -> Result<(), FormatError>,
) -> Result<(), FormatError> {
    let mut result = Ok(());
    let visitor = EachValue(|name, value| {
        if result.is_ok() {
            result = each(name, value);
        }
    });
    serde_json::Deserializer::from_str(raw.get())
        .deserialize_any(visitor)
        .map_err(|error| FormatError::document("", error.to_string()))?;
    result
}

/// A whole number that is not negative.
pub(crate) fn length(raw: &RawValue) -> Result<u64, FormatError> {
    let length = Json::of(raw)?.integer();
    length
        .and_then(|length| u64::try_from(length).ok())
        .ok_or_else(|| mismatch(raw, "a whole number from 0 to 2^64 - 1"))
}

/// The whole number that `text` spells: `5`, and also `5.0` and `5e0` up to 2^53.
pub(crate) fn integer(text: &str) -> Option<i128> {
    const MOST: u128 = 1 << 53;
    let value = any_integer(text)?;
    // Above 2^53 a float does not identify one integer.
    let is_one = value.unsigned_abs() <= MOST || text.parse::<i128>().is_ok();
    is_one.then_some(value)
}

/// Like [`integer`], where a float of any size is the integer that is equal to it, as an element of an array is.
pub(crate) fn any_integer(text: &str) -> Option<i128> {
    if let Ok(value) = text.parse() {
        return Some(value);
    }
    let value: f64 = text.parse().ok()?;
    let is_whole = value.fract() == 0.0;
    is_whole.then(|| format!("{value:.0}").parse().ok())?
}

/// The error that a required member is missing.
pub(crate) fn missing(name: &str) -> FormatError {
    FormatError::document(name, "missing, but required")
}

/// The error "found …, expected …".
pub(crate) fn mismatch(raw: &RawValue, expected: &str) -> FormatError {
    FormatError::document("", format!("found {}, expected {expected}", excerpt(raw)))
}

/// The beginning of the text of a value, for messages.
pub(crate) fn excerpt(raw: &RawValue) -> String {
    const LONGEST: usize = 60;
    if let Some((token, _, _)) = NON_FINITE.iter().find(|(_, mask, _)| *mask == raw.get()) {
        return (*token).to_owned();
    }
    let mut text: String = raw.get().chars().take(LONGEST).collect();
    if text.len() < raw.get().len() {
        text.push('…');
    }
    text
}

/// The members of a JSON object, in the order of the text, duplicates included.
#[derive(Debug, Default)]
pub(crate) struct Members<'a>(Vec<(String, &'a RawValue)>);

impl<'a> Members<'a> {
    /// The member `name`; the last one where there are several.
    pub(crate) fn get(&self, name: &str) -> Option<&'a RawValue> {
        self.0
            .iter()
            .rev()
            .find(|(member, _)| member == name)
            .map(|&(_, value)| value)
    }

    /// The member `name`, `None` also when it is `null`.
    pub(crate) fn get_some(&self, name: &str) -> Option<&'a RawValue> {
        self.get(name).filter(|value| value.get() != "null")
    }

    /// The member `name`, or an error that it is missing.
    pub(crate) fn require(&self, name: &str) -> Result<&'a RawValue, FormatError> {
        self.get(name).ok_or_else(|| missing(name))
    }

    /// The result of `read` for the required member `name`; an error names the member.
    pub(crate) fn read<T>(
        &self,
        name: &str,
        read: impl FnOnce(&'a RawValue) -> Result<T, FormatError>,
    ) -> Result<T, FormatError> {
        read(self.require(name)?).map_err(|error| error.within(name))
    }

    /// Like [`Members::read`], for an optional member: `None` when it is absent or `null`.
    pub(crate) fn read_some<T>(
        &self,
        name: &str,
        read: impl FnOnce(&'a RawValue) -> Result<T, FormatError>,
    ) -> Result<Option<T>, FormatError> {
        let read = self.get_some(name).map(read);
        read.transpose().map_err(|error| error.within(name))
    }

    /// Name and value of each member.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &'a RawValue)> {
        self.0.iter().map(|(name, value)| (name.as_str(), *value))
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Members<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut members = Vec::new();
        let each = |name: Option<String>, value| members.push((name.unwrap_or_default(), value));
        deserializer.deserialize_map(EachValue(each))?;
        Ok(Members(members))
    }
}

/// An extension point of Zarr v3: a name alone, or an object of `name` and `configuration`.
/// Documents before March 2023 say `type` for `name`.
#[derive(Debug)]
pub(crate) struct Extension<'a> {
    /// The name as the document spells it.
    pub(crate) name: String,
    /// The configuration; empty when it is absent.
    pub(crate) configuration: Members<'a>,
    /// The text of the whole extension point.
    pub(crate) text: &'a RawValue,
}

impl<'a> Extension<'a> {
    /// Reads `text`; `expected` describes it in an error message.
    pub(crate) fn of(text: &'a RawValue, expected: &str) -> Result<Extension<'a>, FormatError> {
        let (name, configuration) = match Json::of(text)? {
            Json::String(name) => (name, Members::default()),
            Json::Object(members) => {
                let name = members.get("name").or_else(|| members.get("type"));
                let name = name.ok_or_else(|| missing("name"))?;
                let configuration =
                    members.read_some("configuration", |value| object(value, "an object"))?;
                let name = string(name, "a name").map_err(|error| error.within("name"))?;
                (name, configuration.unwrap_or_default())
            }
            _ => return Err(mismatch(text, expected)),
        };
        Ok(Extension {
            name,
            configuration,
            text,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_exact_and_floats_may_be_whole() {
        for (text, value) in [
            ("18446744073709551615", Some(18_446_744_073_709_551_615)),
            ("-9223372036854775808", Some(-9_223_372_036_854_775_808)),
            ("5.0", Some(5)),
            ("-1e3", Some(-1000)),
            ("5.5", None),
            ("1e300", None),
            ("18446744073709551615.0", None),
        ] {
            assert_eq!(integer(text), value, "{text}");
        }
    }

    #[test]
    fn floats_of_any_size_may_be_whole() {
        for (text, value) in [
            ("-9.223372036854776e+18", Some(-9_223_372_036_854_775_808)),
            ("9.223372036854776e18", Some(9_223_372_036_854_775_808)),
            ("9223372036854775807", Some(9_223_372_036_854_775_807)),
            ("5.0", Some(5)),
            ("5.5", None),
            ("1e300", None),
            ("1e400", None),
            ("nan", None),
        ] {
            assert_eq!(any_integer(text), value, "{text}");
        }
    }

    #[test]
    fn the_last_of_duplicate_members_wins() {
        let members: Members<'_> = serde_json::from_str(r#"{"a":1,"b":2,"a":3}"#).unwrap();
        assert_eq!(members.get("a").unwrap().get(), "3");
        assert_eq!(members.iter().count(), 3);
    }

    #[test]
    fn masks_are_as_long_as_their_tokens() {
        for (token, mask, _) in NON_FINITE {
            assert_eq!(token.len(), mask.len());
            assert_eq!(mask_of(format!("{token},").as_bytes()), Some(mask));
        }
    }
}
