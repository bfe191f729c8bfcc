//! The grammar of `--env-file`: one `NAME=value` a line, as both systemd's `EnvironmentFile` and a
//! shell take it. Nothing is expanded. A line that the two read differently is refused, as is a
//! value that goes on in the next line.
//!
//! ```text
//! # a comment
//! AWS_ACCESS_KEY_ID=AKIA...
//! export AWS_SECRET_ACCESS_KEY='a value in quotes'
//! ```

use std::path::Path;

use crate::store::remote::credentials::command_words;
use crate::store::remote::credentials::credential_error::CredentialError;

const NO_VARIABLE: &str = "this is no NAME=value; there may be no space before or after the `=`";
const NOT_CLOSED: &str = "a quote is not closed in this line, or a backslash ends it; write the \
                          whole value in one line";
const UNQUOTED_SPACE: &str = "the value has a space; put quotes around the whole value";
const NUL: &str = "this line has a NUL byte";

/// The names and values of `text`, in their order. `path` is for messages, which have no values.
///
/// # Errors
/// [`CredentialError::Line`].
pub(crate) fn parse(path: &Path, text: &str) -> Result<Vec<(String, String)>, CredentialError> {
    let mut variables = Vec::new();
    for (at, line) in text.lines().enumerate() {
        let parsed = parse_line(line).map_err(|problem| CredentialError::Line {
            path: path.to_owned(),
            line: at + 1,
            problem,
        })?;
        variables.extend(parsed);
    }
    Ok(variables)
}

fn parse_line(line: &str) -> Result<Option<(String, String)>, &'static str> {
    let line = line.trim();
    if line.is_empty() || line.starts_with(['#', ';']) {
        return Ok(None);
    }
    if line.contains('\0') {
        return Err(NUL);
    }
    let line = match line.strip_prefix("export") {
        Some(rest) if rest.starts_with([' ', '\t']) => rest.trim_start(),
        _ => line,
    };
    let (name, value) = line.split_once('=').ok_or(NO_VARIABLE)?;
    let is_letter = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if name.is_empty() || !name.chars().all(is_letter) || name.starts_with(|c: char| c.is_numeric())
    {
        return Err(NO_VARIABLE);
    }
    if value.starts_with(char::is_whitespace) {
        return Err(NO_VARIABLE);
    }
    // Quotes and backslashes are those of a command, of which a value is one word.
    let mut words = command_words::split(value).ok_or(NOT_CLOSED)?;
    if words.len() > 1 {
        return Err(UNQUOTED_SPACE);
    }
    Ok(Some((name.to_owned(), words.pop().unwrap_or_default())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_as_systemd_and_a_shell_read_them() {
        for (line, expected) in [
            ("A=b", Some(("A", "b"))),
            ("  export  A_1=b  ", Some(("A_1", "b"))),
            ("exportA=b", Some(("exportA", "b"))),
            ("A=", Some(("A", ""))),
            ("A=''", Some(("A", ""))),
            ("A=b=c==", Some(("A", "b=c=="))),
            ("A='b \"c\" \\ $d'", Some(("A", "b \"c\" \\ $d"))),
            (r#"A="b 'c' \" \\ \$ \n""#, Some(("A", r#"b 'c' " \ $ \n"#))),
            (r"A=b\ c\\d", Some(("A", r"b c\d"))),
            ("A=b'c d'\"e f\"g", Some(("A", "bc de fg"))),
            ("A=$HOME`x`", Some(("A", "$HOME`x`"))),
            ("A=?sv=1&sig=x%3D", Some(("A", "?sv=1&sig=x%3D"))),
            ("A=#b", Some(("A", "#b"))),
            ("", None),
            ("   # A=b", None),
            ("; A=b", None),
        ] {
            let found = parse_line(line).unwrap();
            let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
            assert_eq!(found, expected, "{line}");
        }
        let path = Path::new("f");
        let found = parse(path, "A=1\r\n\r\nB=2\r\nA=3").unwrap();
        let names: Vec<_> = found.iter().map(|(n, v)| format!("{n}{v}")).collect();
        assert_eq!(names, ["A1", "B2", "A3"]);
    }

    #[test]
    fn errors_have_the_number_of_the_line_and_no_value() {
        for (line, problem) in [
            ("hunter2", NO_VARIABLE),
            ("A = hunter2", NO_VARIABLE),
            ("A= hunter2", NO_VARIABLE),
            ("1A=hunter2", NO_VARIABLE),
            ("=hunter2", NO_VARIABLE),
            ("A-B=hunter2", NO_VARIABLE),
            ("\u{feff}A=hunter2", NO_VARIABLE),
            ("A=hunter2 # comment", UNQUOTED_SPACE),
            ("A=hunter2 three", UNQUOTED_SPACE),
            ("A='hunter2", NOT_CLOSED),
            ("A=\"hunter2\\", NOT_CLOSED),
            ("A=\"hunter2", NOT_CLOSED),
            ("A=hunter2\\", NOT_CLOSED),
            ("A=hunter2\0", NUL),
        ] {
            let text = format!("# first\n{line}\n");
            let error = parse(Path::new("/etc/f"), &text).unwrap_err();
            assert_eq!(error.to_string(), format!("/etc/f: line 2: {problem}"));
        }
    }
}
