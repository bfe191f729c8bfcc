//! Numbers of things, in messages.

use std::fmt::Display;

/// `n` things, of which one is called `one`, and more of them `more`; each name may have a verb and more words.
pub(super) fn counted<N>(n: N, one: &str, more: &str) -> String
where
    N: Display + PartialEq + From<u8> + Copy,
{
    let words = if n == N::from(1) { one } else { more };
    format!("{n} {words}")
}

#[cfg(test)]
mod tests {
    use super::counted;

    #[test]
    fn one_is_no_plural() {
        let files = [0_usize, 1, 2].map(|n| counted(n, "file is here", "files are here"));
        assert_eq!(
            files,
            ["0 files are here", "1 file is here", "2 files are here"]
        );
    }
}
