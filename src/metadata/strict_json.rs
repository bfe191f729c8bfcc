//! JSON that every parser takes, and reads alike.
//!
//! | stored | Python | others | shown |
//! |---|---|---|---|
//! | `NaN`, `-Infinity` | a number | refuse it | `"NaN"`, `"-Infinity"` |
//! | `1e400` | infinity | refuse it | `"Infinity"` |
//! | `"\ud800"`, half of a pair | takes it | refuse it, or read U+FFFD | `"\ufffd"` |
//! | two members of one name | the last one | the last one, or refuse them | the last one |
//! | a byte order mark | refuses it, or skips it | skip it | none |
//!
//! All other bytes stay as they are.

use std::cmp::Ordering;
use std::iter::Peekable;
use std::ops::Range;
use std::str::Chars;

use super::document::{JsonDocument, MARK};
use super::json;

/// `text` as JSON that every parser accepts. Text that no parser accepts as JSON stays unchanged.
pub fn strict_json(text: Vec<u8>) -> Vec<u8> {
    if JsonDocument::parse(&text).is_err() {
        return text;
    }
    let found = str::from_utf8(&text).map_or(None, rewritten);
    found.unwrap_or(text)
}

/// The JSON `text`, in which everything that some parsers refuse is replaced. `None` if there is nothing to replace.
fn rewritten(text: &str) -> Option<Vec<u8>> {
    // There may be very many replacements, so they are not collected in a list.
    let mut edited = Vec::new();
    let mut done = 0;
    if text.starts_with(MARK) {
        done = MARK.len_utf8();
    }
    let goes = overridden(text);
    let mut goes = goes.iter().copied().peekable();
    let mut tokens = Tokens { text, at: done };
    while let Some((span, token)) = tokens.next() {
        let start = u32::try_from(span.start).ok();
        let replaced = if start.is_some_and(|start| goes.next_if_eq(&start).is_some()) {
            String::new()
        } else if let Some(replaced) = replacement(text.get(span.clone())?, token) {
            replaced
        } else {
            continue;
        };
        if edited.is_empty() {
            edited.reserve_exact(text.len());
        }
        edited.extend_from_slice(text.get(done..span.start)?.as_bytes());
        edited.extend_from_slice(replaced.as_bytes());
        done = span.end;
        if replaced.is_empty() {
            done = tokens.pass_member();
            skip(&mut goes, done);
        }
    }
    if done == 0 {
        return None;
    }
    edited.extend_from_slice(text.get(done..)?.as_bytes());
    Some(edited)
}

/// Passes the numbers below `end`.
fn skip(numbers: &mut Peekable<impl Iterator<Item = u32>>, end: usize) {
    while numbers
        .next_if(|&number| usize::try_from(number).is_ok_and(|number| number < end))
        .is_some()
    {}
}

/// The text that replaces the text of a token; `None` if it stays.
fn replacement(text: &str, token: Token) -> Option<String> {
    match token {
        Token::Text => json::has_half_pair(text).then(|| without_half_pairs(text)),
        Token::Word => {
            let number = match json::bare_token_of(text.as_bytes()) {
                Some(name) => return Some(format!("\"{name}\"")),
                // Only a long text, or one with an exponent, is a number beyond all doubles.
                None if text.len() < 300 && !text.contains(['e', 'E']) => return None,
                None => text.parse::<f64>().ok()?,
            };
            (number.is_infinite()).then(|| format!("\"{}\"", json::name_of(number)))
        }
        _ => None,
    }
}

/// The JSON string `text` with U+FFFD in place of each half of a pair of surrogates.
fn without_half_pairs(text: &str) -> String {
    let mut whole = String::with_capacity(text.len());
    let mut left = text;
    while let Some(at) = left.find('\\') {
        let (before, escape) = left.split_at(at);
        let (len, is_half) = json::escape_of(escape.as_bytes());
        let (escape, rest) = escape.split_at_checked(len).unwrap_or((escape, ""));
        whole.push_str(before);
        whole.push_str(if is_half { "\\ufffd" } else { escape });
        left = rest;
    }
    whole.push_str(left);
    whole
}

/// The positions of members that a later member of the same name overrides, in order.
fn overridden(text: &str) -> Vec<u32> {
    let mut found = Vec::new();
    let mut names = Vec::new();
    for event in Members::of(text) {
        match event {
            // Documents that are read have less than 2^32 bytes.
            Member::Name(span) => names.extend(u32::try_from(span.start)),
            Member::End { names: first } => {
                let first = first.min(names.len());
                add_overridden(text, names.get_mut(first..).unwrap_or_default(), &mut found);
                names.truncate(first);
            }
        }
    }
    found.sort_unstable();
    found
}

/// Adds to `found` the positions of those members of one object that later members override. `names` has the positions of
/// all its members.
fn add_overridden(text: &str, names: &mut [u32], found: &mut Vec<u32>) {
    if names.len() < 2 {
        return;
    }
    let name = |start: u32| {
        let at = usize::try_from(start).unwrap_or(text.len());
        let mut tokens = Tokens { text, at };
        let span = tokens.next().map_or(at..at, |(span, _)| span);
        text.get(span).unwrap_or_default()
    };
    names.sort_unstable_by(|&one, &other| {
        compare(name(one), name(other)).then_with(|| one.cmp(&other))
    });
    for pair in names.windows(2) {
        if let &[one, other] = pair
            && compare(name(one), name(other)).is_eq()
        {
            found.push(one);
        }
    }
}

/// Compares the characters of two JSON strings, whatever escapes they have.
fn compare(one: &str, other: &str) -> Ordering {
    if !one.contains('\\') && !other.contains('\\') {
        return one.cmp(other);
    }
    Characters(one.chars()).cmp(Characters(other.chars()))
}

/// The characters of a JSON string, with its quotes.
struct Characters<'t>(Chars<'t>);

impl Characters<'_> {
    /// The number of four hexadecimal digits.
    fn unit(chars: &mut Chars<'_>) -> Option<u16> {
        let (digits, rest) = chars.as_str().split_at_checked(4)?;
        *chars = rest.chars();
        u16::from_str_radix(digits, 16).ok()
    }
}

impl Iterator for Characters<'_> {
    type Item = char;

    fn next(&mut self) -> Option<char> {
        let escaped = match self.0.next()? {
            '\\' => self.0.next()?,
            character => return Some(character),
        };
        Some(match escaped {
            'b' => '\u{8}',
            'f' => '\u{c}',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'u' => {
                let first = Characters::unit(&mut self.0)?;
                let mut after = self.0.clone();
                let second = (after.next() == Some('\\') && after.next() == Some('u'))
                    .then(|| Characters::unit(&mut after))
                    .flatten();
                let pair = char::decode_utf16([first].into_iter().chain(second)).next()?;
                if pair.is_ok() && char::decode_utf16([first]).all(|unit| unit.is_err()) {
                    self.0 = after;
                }
                pair.unwrap_or(char::REPLACEMENT_CHARACTER)
            }
            other => other,
        })
    }
}

/// The string that the member `wanted` of the document `text` says, without its quotes, also where the text ends too
/// soon.
pub(super) fn text_member<'t>(text: &'t str, wanted: &str) -> Option<&'t str> {
    let mut members = Members::of(text);
    let mut found = None;
    while let Some(event) = members.next() {
        let Member::Name(span) = event else { continue };
        if members.open.len() > 1 || text.get(span)? != format!("\"{wanted}\"") {
            continue;
        }
        let mut after = Tokens {
            text,
            at: members.tokens.at,
        };
        found = match (after.next(), after.next()) {
            (Some((_, Token::Colon)), Some((value, Token::Text))) => text.get(value),
            _ => None,
        };
    }
    found?.strip_prefix('"')?.strip_suffix('"')
}

/// A name of a member, or the end of an object.
enum Member {
    /// The span of its name, with the quotes.
    Name(Range<usize>),
    /// The number of names before those of the object that ends.
    End { names: usize },
}

/// The members of all objects, in the order of the text.
struct Members<'t> {
    tokens: Tokens<'t>,
    /// For each open object: the number of names before it, and the number of lists that are open in it.
    open: Vec<(u32, u32)>,
    names: u32,
    expects_name: bool,
}

impl<'t> Members<'t> {
    fn of(text: &'t str) -> Members<'t> {
        let at = if text.starts_with(MARK) {
            MARK.len_utf8()
        } else {
            0
        };
        Members {
            tokens: Tokens { text, at },
            open: Vec::new(),
            names: 0,
            expects_name: false,
        }
    }
}

impl Iterator for Members<'_> {
    type Item = Member;

    fn next(&mut self) -> Option<Member> {
        loop {
            let (span, token) = self.tokens.next()?;
            let expected = std::mem::take(&mut self.expects_name);
            match (token, self.open.last_mut()) {
                (Token::OpenObject, _) => {
                    self.open.push((self.names, 0));
                    self.expects_name = true;
                }
                (Token::OpenList, Some((_, lists))) => *lists = lists.saturating_add(1),
                (Token::CloseList, Some((_, lists))) => *lists = lists.saturating_sub(1),
                (Token::CloseObject, Some(&mut (names, _))) => {
                    self.open.pop();
                    self.names = names;
                    let names = usize::try_from(names).unwrap_or(usize::MAX);
                    return Some(Member::End { names });
                }
                (Token::Comma, Some(&mut (_, lists))) => self.expects_name = lists == 0,
                (Token::Text, _) if expected => {
                    self.names = self.names.saturating_add(1);
                    return Some(Member::Name(span));
                }
                _ => {}
            }
        }
    }
}

/// A piece of JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Token {
    OpenObject,
    CloseObject,
    OpenList,
    CloseList,
    Comma,
    Colon,
    /// A string, with its quotes.
    Text,
    /// A number, `true`, `false`, `null`, or a bare `NaN`.
    Word,
}

/// The tokens of a text, from the position `at`.
pub(super) struct Tokens<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Tokens<'t> {
    /// All tokens of `text`.
    pub(super) fn of(text: &'t str) -> Tokens<'t> {
        Tokens { text, at: 0 }
    }

    /// Passes the rest of a member, the comma behind it, and the space after that. Returns the position after that.
    fn pass_member(&mut self) -> usize {
        let mut depth = 0_usize;
        while let Some((span, token)) = self.next() {
            match token {
                Token::OpenObject | Token::OpenList => depth += 1,
                Token::CloseObject | Token::CloseList => depth = depth.saturating_sub(1),
                Token::Comma if depth == 0 => {
                    self.at = span.end;
                    break;
                }
                _ => {}
            }
        }
        self.pass_space();
        self.at
    }

    fn pass_space(&mut self) {
        let rest = self.text.as_bytes().get(self.at..).unwrap_or_default();
        let is_space = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\n' | b'\r');
        self.at += rest
            .iter()
            .position(|byte| !is_space(byte))
            .unwrap_or(rest.len());
    }
}

impl Iterator for Tokens<'_> {
    type Item = (Range<usize>, Token);

    fn next(&mut self) -> Option<(Range<usize>, Token)> {
        self.pass_space();
        let rest = self.text.as_bytes().get(self.at..)?;
        let (token, len) = match rest.first()? {
            b'{' => (Token::OpenObject, 1),
            b'}' => (Token::CloseObject, 1),
            b'[' => (Token::OpenList, 1),
            b']' => (Token::CloseList, 1),
            b',' => (Token::Comma, 1),
            b':' => (Token::Colon, 1),
            b'"' => (Token::Text, text_len(rest)),
            _ => {
                let ends = |byte: &u8| b"{}[],:\" \t\n\r".contains(byte);
                let end = rest.iter().position(ends);
                (Token::Word, end.unwrap_or(rest.len()))
            }
        };
        let start = self.at;
        self.at += len;
        Some((start..self.at, token))
    }
}

/// The length of the JSON string that `bytes` begins with, with its quotes.
fn text_len(bytes: &[u8]) -> usize {
    let mut at = 1;
    while let Some(byte) = bytes.get(at) {
        at += match byte {
            b'"' => return at + 1,
            b'\\' => 2,
            _ => 1,
        };
    }
    bytes.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strict(text: &str) -> String {
        String::from_utf8(strict_json(text.as_bytes().to_vec())).unwrap()
    }

    #[test]
    fn numbers_that_are_not_finite_become_strings() {
        for (text, expected) in [
            (
                "\u{feff}{\"NaN\": [NaN, -Infinity], \"a\": \"-Infinity\\\" NaN\", \"b\":Infinity}",
                r#"{"NaN": ["NaN", "-Infinity"], "a": "-Infinity\" NaN", "b":"Infinity"}"#,
            ),
            (
                "[1e400,-1E+400, 1e308]",
                r#"["Infinity","-Infinity", 1e308]"#,
            ),
            ("-1e400", r#""-Infinity""#),
        ] {
            assert_eq!(strict(text), expected);
        }
        let long = "9".repeat(400);
        assert_eq!(strict(&format!("[{long}]")), r#"["Infinity"]"#);
    }

    #[test]
    fn halves_of_pairs_become_the_replacement_character() {
        for (text, expected) in [
            (r#"["\ud800"]"#, r#"["\ufffd"]"#),
            (r#"["a\uDFFFb\\ud800"]"#, r#"["a\ufffdb\\ud800"]"#),
            (r#"["\ud83d\ude00"]"#, r#"["\ud83d\ude00"]"#),
            (r#"["\ud83d\ud83d\ude00"]"#, r#"["\ufffd\ud83d\ude00"]"#),
            (r#"{"\ud800x": 1}"#, r#"{"\ufffdx": 1}"#),
        ] {
            assert_eq!(strict(text), expected);
        }
    }

    #[test]
    fn the_last_of_several_members_with_one_name_stays() {
        for (text, expected) in [
            (r#"{"a": 1, "b": 2, "a": 3}"#, r#"{"b": 2, "a": 3}"#),
            (r#"{"a": 1, "a": 2, "a": 3}"#, r#"{"a": 3}"#),
            (
                r#"{"a":{"b":[1,2],"b":NaN},"\u0061":{"b":1,"b":2}}"#,
                r#"{"\u0061":{"b":2}}"#,
            ),
            (
                r#"{"a": [{"x": 1}, {"x": 1, "x": 2}], "x": 3}"#,
                r#"{"a": [{"x": 1}, {"x": 2}], "x": 3}"#,
            ),
            (
                r#"{"é": 1, "\u00E9": 2, "\ud83d\ude00": 1, "😀": 2}"#,
                r#"{"\u00E9": 2, "😀": 2}"#,
            ),
            ("{\"\\n\": 1,\n  \"\\u000a\" : 2 }", "{\"\\u000a\" : 2 }"),
        ] {
            assert_eq!(strict(text), expected);
        }
    }

    #[test]
    fn what_needs_no_change_and_what_is_no_json_stays() {
        for same in [
            &b"{\"a\": [1, -2, \"NaN\"], \"b\": {\"a\": null}}"[..],
            b"{\"a\": NaN\xff}",
            b"{\"a\": NaN",
            b"{\"a\": 1, \"a\": }",
            b"",
        ] {
            assert_eq!(strict_json(same.to_vec()), same);
        }
        let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        assert_eq!(strict(&deep), deep);
    }

    #[test]
    fn a_member_is_found_in_a_text_that_is_cut_off() {
        for (text, expected) in [
            (r#"{"node_type": "group", "attributes": {"a"#, Some("group")),
            (
                r#"{"a": {"node_type": "array"}, "node_type":"group"}"#,
                Some("group"),
            ),
            (
                r#"{"a": ["node_type", "group"], "b": {"node_type": "group"#,
                None,
            ),
            (r#"{"node_type": "gro"#, None),
            (r#"{"node_type": 3}"#, None),
            ("", None),
        ] {
            assert_eq!(text_member(text, "node_type"), expected, "{text}");
        }
    }
}
