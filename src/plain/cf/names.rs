//! Names that the `NetCDF` library can read, copy and distinguish.
//!
//! A name begins with a letter, a digit, `_` or a character outside of ASCII. It has no control
//! character, no `/`, no DEL and no blank at its end, and at most 255 bytes. It is in Unicode
//! normal form C: the library normalises the names that programs ask for, so it would not find any
//! other.
//!
//! Source: "The `NetCDF` Classic Format Specification", section "Note on names".

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use unicode_normalization::UnicodeNormalization;

/// The longest name in bytes.
pub(in crate::plain) const MOST_BYTES: usize = 255;

/// The names of one kind of object that are taken.
#[derive(Debug, Clone, Default)]
pub(in crate::plain) struct Names {
    taken: HashSet<String>,
    /// For each name that was taken, the next suffix to try, so that many objects of one name take
    /// linear time.
    next: HashMap<String, u64>,
}

impl Names {
    /// Takes a free name: `wanted` with `_` for each character that is not allowed, and with the
    /// suffix `_2`, `_3` … if that name is taken.
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
    // ASCII is in normal form C, and most names are ASCII.
    let wanted = if wanted.is_ascii() {
        Cow::Borrowed(wanted)
    } else {
        wanted.nfc().collect()
    };
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

/// The longest beginning of `name` that has at most `len` bytes.
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
