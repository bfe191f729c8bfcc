//! Text for people: nothing in it is a command to a terminal or a line of its own.
//!
//! Names of nodes, codecs, types and attributes come from the store, and so do the values in the
//! system's answers and in the messages of parsers. Any of them may hold an escape sequence that
//! a terminal obeys, a line break that forges a line of the log, or a mark that shows the text
//! in another order than it has.
//!
//! There are two doors, and no message has to remember them. A message is escaped by the type
//! that it is displayed through ([`Escaped`]: the log, a line of progress, the crate's errors), or
//! it becomes a line of a [`Text`], which is the only thing that the command prints and what
//! `ERROR.txt` is made of.
//!
//! An escape is spelled as in Rust: `\n`, `\u{1b}`. A backslash stays as it is, so that text may
//! be escaped twice; [`Key`](crate::store::Key) doubles those of a name, so that two keys never
//! read the same.

use std::fmt::{self, Display, Write};

use serde_json::Value;

/// Displays a value on one line, with escapes for all that is not to reach a terminal.
///
/// ```
/// use zarr_mount::escape::Escaped;
///
/// let codec = "gzip\u{1b}[2J\nall is well";
/// let told = Escaped(format_args!("codec `{codec}`")).to_string();
/// assert_eq!(told, r"codec `gzip\u{1b}[2J\nall is well`");
/// assert_eq!(Escaped(&told).to_string(), told);
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Escaped<T>(pub T);

impl<T: Display> Display for Escaped<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let spell = as_in_rust;
        write!(Escaping { out: f, spell }, "{}", self.0)
    }
}

/// Lines for people, or JSON. Only this module puts a control character into it: the line feeds
/// that end the lines.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Text(String);

impl Text {
    /// A text without lines.
    pub fn new() -> Text {
        Text::default()
    }

    /// Adds `line`, [`Escaped`], and ends it.
    #[must_use]
    pub fn line(mut self, line: impl Display) -> Text {
        // Writing to a string fails only where the value itself cannot be displayed.
        let _ = writeln!(self.0, "{}", Escaped(line));
        self
    }

    /// Adds `value` as indented JSON, and ends its last line. What [`Escaped`] escapes is spelled
    /// in the way of JSON there, so that a parser reads the strings of `value`.
    #[must_use]
    pub fn json(mut self, value: &Value) -> Text {
        let (out, spell) = (&mut self.0, as_in_json as Spelling);
        // Writing to a string fails only where the value itself cannot be displayed.
        let _ = write!(Escaping { out, spell }, "{value:#}");
        self.0.push('\n');
        self
    }

    /// The lines, each with the line feed that ends it.
    pub fn as_bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }

    /// As [`Text::as_bytes`].
    pub fn into_bytes(self) -> Vec<u8> {
        self.0.into_bytes()
    }
}

/// Writes what stands in the place of a character.
type Spelling = fn(char, &mut dyn Write) -> fmt::Result;

fn as_in_rust(character: char, out: &mut dyn Write) -> fmt::Result {
    write!(out, "{}", character.escape_default())
}

/// For JSON that is indented: its serializer has escaped the line feeds of strings already.
fn as_in_json(character: char, out: &mut dyn Write) -> fmt::Result {
    if character == '\n' {
        return out.write_char(character);
    }
    let mut units = [0; 2];
    let mut units = character.encode_utf16(&mut units).iter();
    units.try_for_each(|unit| write!(out, "\\u{unit:04x}"))
}

/// Passes text on to `out`, with another spelling of every character that is escaped.
struct Escaping<'o> {
    out: &'o mut dyn Write,
    spell: Spelling,
}

impl Write for Escaping<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        // Each piece but the last ends with the one character in it that is escaped.
        for piece in text.split_inclusive(is_escaped) {
            self.out.write_str(piece.trim_end_matches(is_escaped))?;
            if let Some(last) = piece.chars().next_back().filter(|&last| is_escaped(last)) {
                (self.spell)(last, self.out)?;
            }
        }
        Ok(())
    }
}

/// Whether a terminal or a reader of the log could be misled by this character: controls (a
/// terminal obeys those of C1 too), ends of lines, and what has no width or reorders its
/// neighbours. The joiners U+200C and U+200D stay: words of some scripts are spelled with them.
fn is_escaped(character: char) -> bool {
    matches!(
        character,
        '\0'..='\u{1f}'
            | '\u{7f}'..='\u{9f}'
            | '\u{ad}' // soft hyphen
            | '\u{61c}' // a mark of direction
            | '\u{180e}' // without width
            | '\u{200b}' // without width
            | '\u{200e}'..='\u{200f}' // marks of direction
            | '\u{2028}'..='\u{2029}' // ends of a line and of a paragraph
            | '\u{202a}'..='\u{202e}' // embeddings and overrides of direction
            | '\u{2060}'..='\u{206f}' // without width; isolates of direction
            | '\u{feff}' // byte order mark
            | '\u{fff9}'..='\u{fffb}' // interlinear annotations
            | '\u{e0000}'..='\u{e007f}' // tags
    )
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Text of which every other character is likely to be one that is escaped.
    fn hostile() -> impl Strategy<Value = String> {
        let harmful = proptest::char::ranges(
            vec![
                '\0'..='\u{1f}',
                '\u{7f}'..='\u{9f}',
                '\u{2028}'..='\u{202e}',
                '\u{2060}'..='\u{206f}',
                '\u{e0000}'..='\u{e007f}',
            ]
            .into(),
        );
        let character = prop_oneof![harmful, any::<char>(), Just('\\'), Just('"')];
        proptest::collection::vec(character, 0..24).prop_map(String::from_iter)
    }

    /// By the standard library's word: this file's own table is what is tested.
    fn is_harmful(character: char) -> bool {
        character.is_control() || "\u{2028}\u{2029}\u{202e}\u{2066}\u{feff}".contains(character)
    }

    #[test]
    fn spellings() {
        for (text, told) in [
            ("plain, 'quoted' \\ text", "plain, 'quoted' \\ text"),
            ("a\nb\r\tc\0", r"a\nb\r\tc\u{0}"),
            ("\u{1b}]0;title\u{7}", r"\u{1b}]0;title\u{7}"),
            ("\u{7f}\u{9b}2J\u{85}", r"\u{7f}\u{9b}2J\u{85}"),
            ("\u{202e}txt.exe\u{2069}", r"\u{202e}txt.exe\u{2069}"),
            ("one\u{2028}two\u{2029}", r"one\u{2028}two\u{2029}"),
            (
                "\u{e9}\u{3000}\u{1f469}\u{200d}\u{1f52c}",
                "é\u{3000}👩\u{200d}🔬",
            ),
        ] {
            assert_eq!(Escaped(text).to_string(), told);
        }
    }

    #[test]
    fn json_keeps_its_values_and_its_lines() {
        let value = serde_json::json!({"a\u{9b}": ["\u{1b}\u{7f}\n", "\u{e0041}", "é"]});
        let told = "{\n  \"a\\u009b\": [\n    \"\\u001b\\u007f\\n\",\n    \
                    \"\\udb40\\udc41\",\n    \"é\"\n  ]\n}\n";
        assert_eq!(Text::new().json(&value).as_bytes(), told.as_bytes());
    }

    proptest! {
        #[test]
        fn nothing_harmful_passes(text in hostile()) {
            let told = Escaped(&text).to_string();
            prop_assert!(!told.contains(is_harmful), "{told:?}");
            prop_assert_eq!(Escaped(&told).to_string(), told.clone(), "twice is once");
            if !text.contains(is_escaped) {
                prop_assert_eq!(told, text);
            }
        }

        #[test]
        fn a_line_is_one_line(first in hostile(), second in hostile()) {
            let text = Text::new().line(&first).line(&second).into_bytes();
            let text = String::from_utf8(text).unwrap();
            let lines: Vec<&str> = text.split_terminator('\n').collect();
            prop_assert_eq!(lines, [first, second].map(|line| Escaped(line).to_string()));
        }

        #[test]
        fn json_reads_back(name in hostile(), value in hostile()) {
            let object = Value::Object([(name, value.into())].into_iter().collect());
            let text = Text::new().json(&object).into_bytes();
            let told = String::from_utf8(text.clone()).unwrap();
            prop_assert!(!told.replace('\n', "").contains(is_harmful), "{told:?}");
            prop_assert_eq!(serde_json::from_slice::<Value>(&text).unwrap(), object);
        }
    }
}
