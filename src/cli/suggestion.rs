//! The likely meaning of a command line whose first word is a subcommand of other programs.
//!
//! `zarr-mount` has none, and takes such a word for STORE, so the word is only examined after that
//! has failed.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use super::error::CliError;

/// First words, and the options or the store that they mean.
const MEANT: [(&str, &str); 13] = [
    ("help", "--help"),
    ("version", "--version"),
    ("info", "--info"),
    ("ls", "--info"),
    ("list", "--info"),
    ("tree", "--info"),
    ("show", "--info"),
    ("describe", "--info"),
    ("inspect", "--info"),
    ("umount", "--unmount"),
    ("unmount", "--unmount"),
    ("mount", ""),
    ("demo", "demo:"),
];

/// Adds the command line that was probably meant to `error`, which `typed` led to. The first word
/// of `typed` is the program.
pub(super) fn add(error: CliError, typed: &[OsString]) -> CliError {
    let Some(meant) = meant_by(typed) else {
        return error;
    };
    match error {
        CliError::Usage(problem) | CliError::Failed(problem) => {
            CliError::Meant(format!("{problem}; did you mean `{meant}`?"))
        }
        other => other,
    }
}

fn meant_by(typed: &[OsString]) -> Option<String> {
    let word = typed.get(1)?;
    let (_, option) = MEANT
        .iter()
        .find(|(known, _)| OsStr::new(known) == word.as_os_str())?;
    // A store may have this name.
    if Path::new(word).symlink_metadata().is_ok() {
        return None;
    }
    let takes_rest = !matches!(*option, "--help" | "--version");
    let rest = typed.iter().skip(2).filter(|_| takes_rest);
    let words = ["zarr-mount", option].into_iter().map(str::to_owned);
    let words = words.chain(rest.map(|word| word.to_string_lossy().into_owned()));
    let words: Vec<String> = words.filter(|word| !word.is_empty()).collect();
    Some(words.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meant(words: &[&str]) -> Option<String> {
        let words = ["zarr-mount"].iter().chain(words).map(OsString::from);
        meant_by(&words.collect::<Vec<_>>())
    }

    #[test]
    fn a_subcommand_of_other_programs_is_an_option() {
        for (words, expected) in [
            (&["info", "a.zarr"][..], "zarr-mount --info a.zarr"),
            (&["ls", "a.zarr", "b/c"], "zarr-mount --info a.zarr b/c"),
            (&["umount", "/mnt/z"], "zarr-mount --unmount /mnt/z"),
            (&["mount", "a.zarr", "m", "-f"], "zarr-mount a.zarr m -f"),
            (&["help", "info"], "zarr-mount --help"),
            (&["demo", "m"], "zarr-mount demo: m"),
        ] {
            assert_eq!(meant(words).unwrap(), expected);
        }
    }

    #[test]
    fn other_words_are_stores() {
        // `src` is in the working directory of tests.
        for words in [&["a.zarr", "info"][..], &["src"], &["information"], &[]] {
            assert_eq!(meant(words), None);
        }
    }
}
