//! Names that the `NetCDF` library can read, copy and tell apart.
//!
//! A name begins with a letter, a digit, `_` or what is not ASCII; it has no control character,
//! no `/`, no DEL, no blank at its end, and 255 bytes at most. It is in normal form C: the library
//! looks for the normal form of what it is asked for, and finds no other.
//!
//! Source: "The `NetCDF` Classic Format Specification", section "Note on names".

use std::collections::{HashMap, HashSet};

use unicode_normalization::UnicodeNormalization;

/// The longest name, in bytes.
pub(in crate::plain) const MOST_BYTES: usize = 255;

/// Names of one kind of object that are taken.
#[derive(Debug, Clone, Default)]
pub(in crate::plain) struct Names {
    taken: HashSet<String>,
    /// What is tried next behind a name that was taken, so that many of one name are not slow.
    next: HashMap<String, u64>,
}

impl Names {
    /// A free name: `wanted` with `_` for each character that cannot be, and with `_2`, `_3` …
    /// behind it if that is taken.
    pub(in crate::plain) fn take(&mut self, wanted: &str) -> String {
        let base = readable(wanted);
        let mut name = cut(&base, MOST_BYTES).to_owned();
        if self.taken.contains(&name) {
            let n = self.next.entry(name.clone()).or_insert(2);
            while self.taken.contains(&name) {
                let suffix = format!("_{n}");
                name = format!("{}{suffix}", cut(&base, MOST_BYTES - suffix.len()));
                *n += 1;
            }
        }
        self.taken.insert(name.clone());
        name
    }
}

fn readable(wanted: &str) -> String {
    let wanted: String = wanted.nfc().collect();
    let blanks_from = wanted.trim_end_matches(' ').len();
    let replaced = wanted.char_indices().map(|(at, character)| {
        let good = match character {
            'a'..='z' | 'A'..='Z' | '0'..='9' | '_' => true,
            '/' => false,
            ' ' => at > 0 && at < blanks_from,
            character if character.is_ascii() => at > 0 && !character.is_control(),
            character => !character.is_control(),
        };
        if good { character } else { '_' }
    });
    let name: String = replaced.collect();
    if name.is_empty() {
        "_".to_owned()
    } else {
        name
    }
}

/// As much of `name` as `len` bytes hold.
fn cut(name: &str, len: usize) -> &str {
    let ends = (0..=len.min(name.len())).rev();
    ends.into_iter()
        .find_map(|end| name.get(..end))
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_readable_and_differ() {
        let mut names = Names::default();
        for (wanted, name) in [
            ("a b", "a b"),
            ("a.b", "a.b"),
            ("1x", "1x"),
            ("a:b", "a:b"),
            ("日本", "日本"),
            ("e\u{301}", "é"),
            ("(a", "_a"),
            ("-a", "_a_2"),
            ("a/b", "a_b"),
            ("a ", "a_"),
            ("a\t", "a__2"),
            ("a\u{7f}b", "a_b_2"),
            ("a\u{85}b", "a_b_3"),
            ("  ", "__"),
            ("", "_"),
            ("", "__2"),
            ("a b", "a b_2"),
        ] {
            assert_eq!(names.take(wanted), name, "{wanted:?}");
        }
        let long = "é".repeat(200);
        assert_eq!(names.take(&long), "é".repeat(127));
        assert_eq!(names.take(&long), format!("{}_2", "é".repeat(126)));
    }
}
