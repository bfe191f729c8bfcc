//! A JSON text as lines that people can read. A text that has line breaks already stays as it is. Numbers, escapes and
//! the order of members are always those of the store, because the text is not parsed.

/// The deepest indentation, so that nesting in a hostile document does not make a page long.
const MOST_DEPTH: usize = 16;

/// `text` with a line for each member, if all of it is on one line.
pub(super) fn in_lines(text: &str) -> String {
    if text.trim_end().contains('\n') {
        return text.to_owned();
    }
    let mut lines = String::with_capacity(2 * text.len());
    let (mut depth, mut in_string, mut is_escaped) = (0_usize, false, false);
    let mut characters = text.trim().chars().peekable();
    while let Some(character) = characters.next() {
        if in_string {
            lines.push(character);
            in_string = is_escaped || character != '"';
            is_escaped = character == '\\' && !is_escaped;
            continue;
        }
        match character {
            ' ' | '\t' | '\r' => {
                let is_between = |character: char| !",:[]{} \n".contains(character);
                let next = characters.peek().copied();
                if lines.chars().next_back().is_some_and(is_between) && next.is_some_and(is_between)
                {
                    lines.push(' ');
                }
            }
            '[' | '{' => {
                lines.push(character);
                while characters.next_if(char::is_ascii_whitespace).is_some() {}
                let closing = if character == '[' { ']' } else { '}' };
                if characters.next_if_eq(&closing).is_some() {
                    lines.push(closing);
                } else {
                    depth += 1;
                    begin_line(&mut lines, depth);
                }
            }
            ']' | '}' => {
                depth = depth.saturating_sub(1);
                begin_line(&mut lines, depth);
                lines.push(character);
            }
            ',' => {
                lines.push(',');
                begin_line(&mut lines, depth);
            }
            ':' => lines.push_str(": "),
            _ => {
                lines.push(character);
                in_string = character == '"';
            }
        }
    }
    lines
}

fn begin_line(lines: &mut String, depth: usize) {
    lines.push('\n');
    lines.extend(std::iter::repeat_n("  ", depth.min(MOST_DEPTH)));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_member_has_a_line() {
        for (text, lines) in [
            (
                r#"{"a":[1,  2],"b":{}}"#,
                "{\n  \"a\": [\n    1,\n    2\n  ],\n  \"b\": {}\n}",
            ),
            (r#"{"a\"{,": "x, \\"}"#, "{\n  \"a\\\"{,\": \"x, \\\\\"\n}"),
            ("{\n \"a\":1}\n", "{\n \"a\":1}\n"),
            ("[ ]", "[]"),
            ("no  json }", "no json\n}"),
        ] {
            assert_eq!(in_lines(text), lines);
        }
    }

    #[test]
    fn deep_nesting_takes_bounded_room() {
        let lines = in_lines(&"[".repeat(10_000));
        assert!(
            lines.len() < 10_000 * (2 * MOST_DEPTH + 3),
            "{}",
            lines.len()
        );
    }
}
