//! Whole numbers that documents spell as floats, `5.0` for `5`, or as text.
//!
//! A program that computes a level or a length may write it so. Strict readers take no float for a whole
//! number, so documents that are edited or made have none.

use std::borrow::Cow;

use serde_json::value::RawValue;

use super::json;
use super::strict_json::{Token, Tokens};

/// Parameters of codecs that are real numbers. Their spelling has a meaning: the codec `fixedscaleoffset`
/// makes floats of integers where its offset is a float.
const REAL: [&str; 5] = ["offset", "scale", "scalar_map", "rate", "tolerance"];

/// The text of the parameter `name` of a codec or a data type, with whole numbers spelled as such.
pub(super) fn parameter<'a>(name: &str, value: &'a RawValue) -> Cow<'a, str> {
    let text = value.get();
    if REAL.contains(&name) {
        return Cow::Borrowed(text);
    }
    let mut edited = String::new();
    let mut done = 0;
    for (span, token) in Tokens::of(text) {
        let number = text.get(span.clone()).filter(|_| token == Token::Word);
        let number = number.filter(|number| number.contains(['.', 'e', 'E']));
        if let Some(whole) = number.and_then(json::integer) {
            edited.push_str(text.get(done..span.start).unwrap_or_default());
            edited.push_str(&whole.to_string());
            done = span.end;
        }
    }
    if done == 0 {
        return Cow::Borrowed(text);
    }
    edited.push_str(text.get(done..).unwrap_or_default());
    Cow::Owned(edited)
}

/// Like [`parameter`], for a codec of numcodecs in a document older than v3, where NetCDF-C spells whole numbers as text:
/// `"5"`.
pub(super) fn numcodecs_parameter<'a>(name: &str, value: &'a RawValue) -> Cow<'a, str> {
    let text = value.get().strip_prefix('"');
    let digits = text.and_then(|text| text.strip_suffix('"'));
    let whole = digits.and_then(|digits| digits.parse::<i128>().ok());
    match whole.filter(|_| !REAL.contains(&name)) {
        Some(whole) => Cow::Owned(whole.to_string()),
        None => parameter(name, value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_lose_their_points() {
        for (name, text, whole) in [
            ("level", "5.0", "5"),
            ("level", "-1e0", "-1"),
            ("level", "1.5", "1.5"),
            ("level", "1e300", "1e300"),
            ("order", "[1.0, 0]", "[1, 0]"),
            (
                "filters",
                r#"[{"id": 3.0, "a": "1.0"}, null, true]"#,
                r#"[{"id": 3, "a": "1.0"}, null, true]"#,
            ),
            ("cname", "\"1.0\"", "\"1.0\""),
            ("offset", "10.0", "10.0"),
            ("tolerance", "1.0", "1.0"),
        ] {
            let value: &RawValue = serde_json::from_str(text).unwrap();
            assert_eq!(parameter(name, value), whole, "{name} {text}");
        }
    }

    #[test]
    fn texts_of_whole_numbers_become_numbers_for_numcodecs() {
        for (name, text, whole) in [
            ("level", "\"5\"", "5"),
            ("level", "\"-1\"", "-1"),
            ("level", "5.0", "5"),
            ("level", "\"5.5\"", "\"5.5\""),
            ("cname", "\"lz4\"", "\"lz4\""),
            ("cname", "\"\"", "\"\""),
            ("labels", "[\"1\"]", "[\"1\"]"),
            ("offset", "\"10\"", "\"10\""),
        ] {
            let value: &RawValue = serde_json::from_str(text).unwrap();
            assert_eq!(numcodecs_parameter(name, value), whole, "{name} {text}");
        }
    }
}
