//! Text of a page. Markup is written in this program, and everything else passes through an escape.
//!
//! Names, attributes and messages come from a store, and none of them may become markup. So [`Html`] takes markup only
//! as a `&'static str`, which no text of a store is, and escapes all other text: control characters and marks of
//! direction as in all messages of this program ([`Escaped`]), and then the characters that mean something in HTML. The
//! escape is right between tags and in attributes with double quotes, and pages have no scripts and no unquoted
//! attributes.

use std::fmt::{self, Display, Write};

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_encode};

use crate::escape::Escaped;

/// All characters but the unreserved ones of RFC 3986, section 2.3.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// A page, or a part of one.
#[derive(Debug, Default)]
pub(super) struct Html(String);

impl Html {
    /// Adds markup.
    pub(super) fn markup(&mut self, markup: &'static str) -> &mut Html {
        self.0.push_str(markup);
        self
    }

    /// Adds text.
    pub(super) fn text(&mut self, text: impl Display) -> &mut Html {
        // Writing to a string fails only where the value itself cannot be displayed.
        let _ = write!(Characters(&mut self.0), "{}", Escaped(text));
        self
    }

    /// Adds lines of text, which stay lines.
    pub(super) fn lines(&mut self, lines: &str) -> &mut Html {
        for line in lines.split_inclusive('\n') {
            let end = line.strip_suffix('\n');
            self.text(end.unwrap_or(line));
            self.markup(if end.is_some() { "\n" } else { "" });
        }
        self
    }

    /// Adds a name of a file or directory, which may be any bytes, and may be written from right to left.
    pub(super) fn name(&mut self, name: &[u8]) -> &mut Html {
        self.markup("<bdi>").text(shown_name(name)).markup("</bdi>")
    }

    /// Adds a segment of an address.
    pub(super) fn segment(&mut self, name: &[u8]) -> &mut Html {
        // Only unreserved characters and percent signs are left.
        self.0.extend(percent_encode(name, RESERVED));
        self
    }

    /// Adds a name as the value of a field of a form. The name is encoded here, because a field cannot hold all bytes,
    /// and once more by the browser that sends the form.
    pub(super) fn field(&mut self, name: &[u8]) -> &mut Html {
        self.segment(name)
    }

    /// Adds a name to the query of an address, in the form in which a browser sends an [`Html::field`].
    pub(super) fn sent_field(&mut self, name: &[u8]) -> &mut Html {
        let field = percent_encode(name, RESERVED).to_string();
        self.segment(field.as_bytes())
    }

    /// Adds the segments of a path.
    pub(super) fn segments(&mut self, path: &[u8]) -> &mut Html {
        for (number, name) in path.split(|&byte| byte == b'/').enumerate() {
            self.markup(if number > 0 { "/" } else { "" }).segment(name);
        }
        self
    }

    /// Adds another part.
    pub(super) fn part(&mut self, part: &Html) -> &mut Html {
        self.0.push_str(&part.0);
        self
    }

    /// The bytes so far.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn into_string(self) -> String {
        self.0
    }
}

/// A name as text. As in all messages, a backslash is doubled, so that no two names look the same because of an escape.
pub(super) fn shown_name(name: &[u8]) -> String {
    String::from_utf8_lossy(name).replace('\\', r"\\")
}

/// Escapes the characters that mean something in HTML.
struct Characters<'t>(&'t mut String);

impl Write for Characters<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for character in text.chars() {
            match character {
                '&' => self.0.push_str("&amp;"),
                '<' => self.0.push_str("&lt;"),
                '>' => self.0.push_str("&gt;"),
                '"' => self.0.push_str("&quot;"),
                '\'' => self.0.push_str("&#39;"),
                _ => self.0.push(character),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_is_markup() {
        let mut page = Html::default();
        page.text("<script>alert('1')</script> & \"\u{202e}\u{1b}[2J\n")
            .markup("<br>")
            .lines("<a\nb\u{9b}>\n")
            .name(b"\\\xff<b>");
        assert_eq!(
            page.into_string(),
            "&lt;script&gt;alert(&#39;1&#39;)&lt;/script&gt; &amp; &quot;\\u{202e}\\u{1b}[2J\\n<br>&lt;a\nb\\u{9b}&gt;\n\
             <bdi>\\\\\u{fffd}&lt;b&gt;</bdi>"
        );
    }

    #[test]
    fn addresses_have_unreserved_characters_only() {
        let mut page = Html::default();
        page.segment("javascript:a\"b'<>&?#% é/..".as_bytes())
            .markup(" ")
            .segments(b"a b/c.0~-_");
        assert_eq!(
            page.into_string(),
            "javascript%3Aa%22b%27%3C%3E%26%3F%23%25%20%C3%A9%2F.. a%20b/c.0~-_"
        );
    }
}
