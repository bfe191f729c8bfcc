//! Numbers of things, in messages.

/// `n` things, of which one is called `one`, and more of them `more`; each name may have a verb and more words.
pub(super) fn counted(n: usize, one: &str, more: &str) -> String {
    format!("{n} {}", if n == 1 { one } else { more })
}

#[cfg(test)]
mod tests {
    use super::counted;

    #[test]
    fn one_is_no_plural() {
        let files = [0, 1, 2].map(|n| counted(n, "file is here", "files are here"));
        assert_eq!(
            files,
            ["0 files are here", "1 file is here", "2 files are here"]
        );
    }
}
