//! Text for people: control characters are escaped, so that no text from a store can command a
//! terminal or forge a line.
//!
//! Names of nodes, codecs, types and attributes come from the store, and so do the values in the
//! system's answers and in the messages of parsers. Any of them may hold an escape sequence that a
//! terminal obeys, a line break that forges a line of the log, or a mark that shows the text in
//! another order than it is stored in.
//!
//! The code that builds a message need not escape it, because all output passes one of two types:
//! [`Escaped`] displays the messages of the log, of progress and of the crate's errors, and
//! [`Text`] holds the lines that the command prints and that `ERROR.txt` is made of. This file alone writes the
//! sequences that colour a line ([`Style`]); a text from a store brings none.
//!
//! An escape is spelled as in Rust: `\n`, `\u{1b}`. A backslash stays as it is, so that text may be
//! escaped twice; [`Key`](crate::store::Key) doubles the backslashes of a name, so that no two keys
//! look the same.

use std::fmt::{self, Display, Write};

/// Displays a value on one line, with escapes for all characters that must not reach a terminal.
///
/// ```
/// use zarr_mount::escape::Escaped;
///
/// let codec = "gzip\u{1b}[2J\nall is well";
/// let escaped = Escaped(format_args!("codec `{codec}`")).to_string();
/// assert_eq!(escaped, r"codec `gzip\u{1b}[2J\nall is well`");
/// assert_eq!(Escaped(&escaped).to_string(), escaped);
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Escaped<T>(pub T);

impl<T: Display> Display for Escaped<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let style = as_in_rust;
        write!(Escaping { out: f, style }, "{}", self.0)
    }
}

/// Lines for people, or JSON. The only control characters in it are the line feeds that end its
/// lines, and the sequences of a [`Style`] in lines that were asked to have colours.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Text(String);

/// How a terminal shows a part of a line.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Style {
    /// As all other text.
    #[default]
    Plain,
    /// Bold.
    Strong,
    /// With less contrast.
    Faint,
    /// Bold and blue, as `ls` shows a directory.
    Directory,
    /// Cyan.
    Type,
    /// Yellow.
    Warning,
    /// Red.
    Problem,
}

impl Style {
    /// The parameters of the sequence "select graphic rendition" (ECMA-48), which all terminals with colours know;
    /// empty for plain text.
    fn parameters(self) -> &'static str {
        match self {
            Style::Plain => "",
            Style::Strong => "1",
            Style::Faint => "2",
            Style::Directory => "1;34",
            Style::Type => "36",
            Style::Warning => "33",
            Style::Problem => "31",
        }
    }
}

/// Whether lines have the sequences of their styles. Only a terminal understands them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Colours {
    /// They have them.
    Shown,
    /// They are plain text.
    Hidden,
}

/// A part of a line.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Span {
    /// How it looks.
    pub style: Style,
    /// The text.
    pub text: String,
}

impl Span {
    /// `text` in this style.
    pub fn new(style: Style, text: impl Into<String>) -> Span {
        let text = text.into();
        Span { style, text }
    }
}

impl Text {
    /// An empty text.
    pub fn new() -> Text {
        Text::default()
    }

    /// Adds `line`, [`Escaped`], and a line feed.
    #[must_use]
    pub fn line(mut self, line: impl Display) -> Text {
        // Writing to a string fails only where the value itself cannot be displayed.
        let _ = writeln!(self.0, "{}", Escaped(line));
        self
    }

    /// Adds a line of `spans`, each [`Escaped`], and a line feed.
    #[must_use]
    pub fn styled(mut self, spans: &[Span], colours: Colours) -> Text {
        for Span { style, text } in spans {
            let parameters = style.parameters();
            // Writing to a string never fails.
            let _ = if colours == Colours::Hidden || parameters.is_empty() {
                write!(self.0, "{}", Escaped(text))
            } else {
                write!(self.0, "\u{1b}[{parameters}m{}\u{1b}[0m", Escaped(text))
            };
        }
        self.0.push('\n');
        self
    }

    /// Adds `value`, which its alternate form (`{:#}`) displays as indented JSON, and a line feed.
    /// The characters that [`Escaped`] escapes become JSON escapes, so that a parser still reads
    /// the same strings.
    #[must_use]
    pub fn json(mut self, value: impl Display) -> Text {
        let (out, style) = (&mut self.0, as_in_json as EscapeStyle);
        // Writing to a string fails only where the value itself cannot be displayed.
        let _ = write!(Escaping { out, style }, "{value:#}");
        self.0.push('\n');
        self
    }

    /// Adds the lines of `other`.
    #[must_use]
    pub fn and(mut self, other: &Text) -> Text {
        self.0.push_str(&other.0);
        self
    }

    /// The number of lines.
    pub fn n_lines(&self) -> usize {
        self.0.lines().count()
    }

    /// The bytes of all lines, each with the line feed that ends it.
    pub fn as_bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }

    /// The same bytes as [`Text::as_bytes`].
    pub fn into_bytes(self) -> Vec<u8> {
        self.0.into_bytes()
    }
}

/// A size in binary units with one digit after the point.
#[must_use]
pub fn human_bytes(bytes: u64) -> String {
    let units = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    let larger = (1..)
        .zip(units)
        .take_while(|(power, _)| bytes >> (10 * power) > 0);
    match larger.last() {
        None => format!("{bytes} B"),
        Some((power, unit)) => {
            let smaller = bytes >> (10 * (power - 1));
            format!("{}.{} {unit}", smaller / 1024, smaller % 1024 * 10 / 1024)
        }
    }
}

/// Writes the escape that replaces a character.
type EscapeStyle = fn(char, &mut dyn Write) -> fmt::Result;

fn as_in_rust(character: char, out: &mut dyn Write) -> fmt::Result {
    write!(out, "{}", character.escape_default())
}

/// Escapes a character of indented JSON. A line feed is part of the layout: the serializer has
/// already escaped those inside strings.
fn as_in_json(character: char, out: &mut dyn Write) -> fmt::Result {
    if character == '\n' {
        return out.write_char(character);
    }
    let mut units = [0; 2];
    let mut units = character.encode_utf16(&mut units).iter();
    units.try_for_each(|unit| write!(out, "\\u{unit:04x}"))
}

/// Passes text on to `out`, and replaces each character that must be escaped.
struct Escaping<'o> {
    out: &'o mut dyn Write,
    style: EscapeStyle,
}

impl Write for Escaping<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        // Each piece but the last ends with a character that must be escaped, and holds no other
        // one.
        for piece in text.split_inclusive(is_escaped) {
            self.out.write_str(piece.trim_end_matches(is_escaped))?;
            if let Some(last) = piece.chars().next_back().filter(|&last| is_escaped(last)) {
                (self.style)(last, self.out)?;
            }
        }
        Ok(())
    }
}

/// Whether this character could mislead a terminal or a reader of the log: controls (a terminal
/// obeys those of C1 too), line breaks, and characters without width or that reorder others. The
/// joiners U+200C and U+200D are not escaped, because some scripts need them.
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
    use serde_json::Value;

    use super::*;

    /// Text of which about half of the characters must be escaped.
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

    /// Judges by the standard library, because the table of this file is under test.
    fn is_harmful(character: char) -> bool {
        character.is_control() || "\u{2028}\u{2029}\u{202e}\u{2066}\u{feff}".contains(character)
    }

    #[test]
    fn spellings() {
        for (text, escaped) in [
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
            assert_eq!(Escaped(text).to_string(), escaped);
        }
    }

    #[test]
    fn json_keeps_its_values_and_its_lines() {
        let value = serde_json::json!({"a\u{9b}": ["\u{1b}\u{7f}\n", "\u{e0041}", "é"]});
        let escaped = "{\n  \"a\\u009b\": [\n    \"\\u001b\\u007f\\n\",\n    \
                    \"\\udb40\\udc41\",\n    \"é\"\n  ]\n}\n";
        assert_eq!(Text::new().json(&value).as_bytes(), escaped.as_bytes());
    }

    #[test]
    fn colours_are_those_of_the_styles() {
        let spans = [
            Span::new(Style::Strong, "a\u{1b}[2J"),
            Span::new(Style::Plain, " b\n"),
            Span::new(Style::Problem, "c"),
        ];
        let told = |colours| String::from_utf8(Text::new().styled(&spans, colours).into_bytes());
        assert_eq!(
            told(Colours::Shown).unwrap(),
            "\u{1b}[1ma\\u{1b}[2J\u{1b}[0m b\\n\u{1b}[31mc\u{1b}[0m\n"
        );
        assert_eq!(told(Colours::Hidden).unwrap(), "a\\u{1b}[2J b\\nc\n");
    }

    #[test]
    fn sizes_are_told_in_binary_units() {
        for (bytes, told) in [
            (0, "0 B"),
            (1023, "1023 B"),
            (1536, "1.5 KiB"),
            (1 << 30, "1.0 GiB"),
            (u64::MAX, "15.9 EiB"),
        ] {
            assert_eq!(human_bytes(bytes), told);
        }
    }

    proptest! {
        #[test]
        fn nothing_harmful_passes(text in hostile()) {
            let escaped = Escaped(&text).to_string();
            prop_assert!(!escaped.contains(is_harmful), "{escaped:?}");
            prop_assert_eq!(Escaped(&escaped).to_string(), escaped.clone(), "nothing is escaped twice");
            if !text.contains(is_escaped) {
                prop_assert_eq!(escaped, text);
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
            let escaped = String::from_utf8(text.clone()).unwrap();
            prop_assert!(!escaped.replace('\n', "").contains(is_harmful), "{escaped:?}");
            prop_assert_eq!(serde_json::from_slice::<Value>(&text).unwrap(), object);
        }
    }
}
