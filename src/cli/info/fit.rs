//! Text that fits a number of columns: shortened, or broken into lines.
//!
//! Widths are those of a terminal, where some characters take two columns and some take none.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::escape::{Escaped, Span};

/// The columns of `text`.
pub(super) fn width(text: &str) -> usize {
    UnicodeWidthStr::width(text)
}

/// `text` as it is printed: with escapes, and, if it takes more columns than `most`, with an ellipsis in place of its end.
pub(super) fn shortened(text: &str, most: usize) -> String {
    let escaped = Escaped(text).to_string();
    if width(&escaped) <= most {
        return escaped;
    }
    let end = end_of_columns(&escaped, most.saturating_sub(1));
    format!("{}…", escaped.get(..end).unwrap_or_default())
}

/// The number of bytes of `text` that fit `columns`.
fn end_of_columns(text: &str, columns: usize) -> usize {
    let mut used = 0;
    for (start, character) in text.char_indices() {
        used += character.width().unwrap_or(0);
        if used > columns {
            return start;
        }
    }
    text.len()
}

/// `span` as it is printed, whose width is then known.
pub(super) fn escaped(span: Span) -> Span {
    let text = Escaped(span.text).to_string();
    Span { text, ..span }
}

/// `spans`, which are [`escaped`], as lines of `columns`, broken at spaces, or within a word that is too long for a line; one line where
/// `columns` is `None`.
pub(super) fn wrapped(spans: Vec<Span>, columns: Option<usize>) -> Vec<Vec<Span>> {
    let Some(columns) = columns else {
        return vec![spans];
    };
    let columns = columns.max(1);
    let (mut lines, mut line, mut used) = (Vec::new(), Vec::new(), 0);
    for Span { style, text } in spans {
        for word in text.split_inclusive(' ') {
            let mut rest = word;
            if used > 0 && used + width(rest.trim_end()) > columns {
                lines.push(std::mem::take(&mut line));
                used = 0;
            }
            while width(rest.trim_end()) > columns {
                let end = end_of_columns(rest, columns)
                    .max(rest.chars().next().map_or(1, char::len_utf8));
                let (part, after) = rest.split_at(end);
                lines.push(vec![Span::new(style, part)]);
                rest = after;
            }
            if rest.is_empty() {
                continue;
            }
            used += width(rest);
            add(&mut line, Span::new(style, rest));
        }
    }
    if !line.is_empty() || lines.is_empty() {
        lines.push(line);
    }
    lines
}

/// Adds a part to a line, as one with the last part where both look the same.
fn add(line: &mut Vec<Span>, part: Span) {
    match line.last_mut() {
        Some(last) if last.style == part.style => last.text += &part.text,
        _ => line.push(part),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::escape::Style;

    fn lines(texts: &[&str], columns: usize) -> Vec<String> {
        let spans = texts.iter().map(|text| Span::new(Style::Plain, *text));
        let lines = wrapped(spans.collect(), Some(columns)).into_iter();
        let texts = lines.map(|line| line.into_iter().map(|span| span.text).collect::<String>());
        texts.map(|line| line.trim_end().to_owned()).collect()
    }

    #[test]
    fn long_texts_are_shortened_by_columns() {
        for (text, most, short) in [
            ("abc", 3, "abc"),
            ("abcd", 3, "ab…"),
            ("漢字仮名", 8, "漢字仮名"),
            ("漢字仮名", 6, "漢字…"),
            ("e\u{301}tat", 4, "e\u{301}tat"),
            ("a\nb", 4, "a\\nb"),
            ("a\nb", 3, "a\\…"),
            ("abc", 0, "…"),
        ] {
            assert_eq!(shortened(text, most), short);
        }
    }

    #[test]
    fn lines_break_at_spaces_and_in_long_words() {
        assert_eq!(lines(&["ab cd ", "ef gh"], 5), ["ab cd", "ef gh"]);
        assert_eq!(lines(&["ab cdefghijk l"], 5), ["ab", "cdefg", "hijk", "l"]);
        assert_eq!(lines(&["漢字仮名"], 5), ["漢字", "仮名"]);
        assert_eq!(lines(&["漢字"], 1), ["漢", "字"]);
        assert_eq!(lines(&["ab"], 0), ["a", "b"]);
        assert_eq!(lines(&[], 5), [""]);
    }
}
