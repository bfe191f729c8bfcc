//! The words of a command, split as a POSIX shell splits them. Nothing is expanded, and no
//! character but blanks, quotes and backslashes has a meaning (POSIX, "Shell Command Language",
//! section "Quoting").

/// The words of `command`; `None` if a quote is not closed or a backslash is last.
pub(crate) fn split(command: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut rest = command.chars();
    while let Some(c) = rest.next() {
        if matches!(c, ' ' | '\t' | '\n' | '\r') {
            words.extend(word.take());
            continue;
        }
        let word = word.get_or_insert_default();
        match c {
            '\'' => loop {
                match rest.next()? {
                    '\'' => break,
                    c => word.push(c),
                }
            },
            '"' => loop {
                match rest.next()? {
                    '"' => break,
                    '\\' => match rest.next()? {
                        c @ ('"' | '\\' | '$' | '`') => word.push(c),
                        c => word.extend(['\\', c]),
                    },
                    c => word.push(c),
                }
            },
            '\\' => word.push(rest.next()?),
            c => word.push(c),
        }
    }
    words.extend(word);
    Some(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_those_of_a_shell_without_expansion() {
        for (command, expected) in [
            (
                "/opt/bin/awscreds  helen",
                vec!["/opt/bin/awscreds", "helen"],
            ),
            (r#"c "a b" 'c d'"#, vec!["c", "a b", "c d"]),
            (r#""/path with/x" y"#, vec!["/path with/x", "y"]),
            (r"a\ b c\\d", vec!["a b", r"c\d"]),
            (r#"c "a\"b\n\$" 'e\f'"#, vec!["c", r#"a"b\n$"#, r"e\f"]),
            ("c '' \"\" a''b", vec!["c", "", "", "ab"]),
            (
                "c $HOME `x` ; rm | y > z #k",
                vec!["c", "$HOME", "`x`", ";", "rm", "|", "y", ">", "z", "#k"],
            ),
            (" \t\n", vec![]),
        ] {
            assert_eq!(split(command).unwrap(), expected, "{command}");
        }
        for command in ["c 'a", "c \"a", "c \\", "c \"a\\"] {
            assert_eq!(split(command), None, "{command}");
        }
    }
}
