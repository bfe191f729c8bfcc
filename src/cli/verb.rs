//! The verbs of the command line, and the options that each of them takes. An option without effect is refused.

use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Command};

use super::error::CliError;

/// A task of the program. Each verb but [`Verb::Mount`] is an option, too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verb {
    /// `zarr-mount STORE MOUNTPOINT`
    Mount,
    Unmount,
    List,
    Status,
    Recover,
    Info,
    Verify,
    Warm,
    Cat,
    Export,
    Serve,
    /// Print something about the program itself.
    Version,
    Man,
    Completions,
}

use Verb::{
    Cat, Export, Info, List, Mount, Recover, Serve, Status, Unmount, Verify, Version, Warm,
};

/// The verbs that are options, by the identifiers of these.
const VERBS: [(&str, Verb); 13] = [
    ("unmount", Unmount),
    ("list", List),
    ("status", Status),
    ("recover", Recover),
    ("info", Info),
    ("verify", Verify),
    ("warm", Warm),
    ("cat", Cat),
    ("export", Export),
    ("serve", Serve),
    ("version", Version),
    ("man", Verb::Man),
    ("completions", Verb::Completions),
];

/// The verbs that take options, and the identifiers of the options. The arguments STORE and MOUNTPOINT are among them.
const TAKEN: [(&[Verb], &[&str]); 18] = [
    (
        &[Mount, Recover, Info, Verify, Warm, Cat, Export, Serve],
        &["store", "log_level", "log_file"],
    ),
    (
        &[
            Mount, Unmount, List, Status, Recover, Info, Verify, Warm, Cat, Export, Serve, Version,
        ],
        &["verbose"],
    ),
    (
        &[Mount, Info, Verify, Warm, Cat, Export, Serve],
        &[
            "target",
            "cache_size",
            "max_chunk",
            "timeout",
            "immutable",
            "follow_symlinks",
            "allow_refs",
            "inject",
        ],
    ),
    // Remote stores.
    (
        &[Mount, Info, Verify, Warm, Cat, Export, Serve],
        &[
            "anonymous",
            "region",
            "endpoint",
            "profile",
            "requester_pays",
            "header",
            "ca_file",
            "requests",
            "absent_403",
            "env_file",
            "disk_cache",
            "disk_cache_size",
            "offline",
        ],
    ),
    // --info is asked about a mount, whose options are typed with it.
    (
        &[Mount, Info, Verify, Warm, Cat, Export, Serve],
        &["ttl", "threads"],
    ),
    // These choose the files of a mount. --info says which arrays fit a version or a format.
    (
        &[Mount, Info, Cat, Export, Serve],
        &["view", "shards", "missing", "sidecar", "readahead"],
    ),
    (
        &[Mount, Info, Cat, Export, Serve],
        &["shown_as", "files", "unlimited", "strings", "integers"],
    ),
    (&[Mount, Info, Verify, Warm, Cat, Export, Serve], &["array"]),
    // Writing.
    (
        &[Mount],
        &["rw", "write_empty_chunks", "conflict", "lossy", "check"],
    ),
    (&[Mount, Recover], &["durability", "lock", "staging"]),
    // The kernel.
    (
        &[Mount],
        &["passthrough", "transport", "uid", "gid", "umask"],
    ),
    // A server always stays there.
    (&[Mount, Serve], &["foreground"]),
    // The file of a group depends on the users who look into the mount (allow_other).
    (&[Mount, Info], &["options"]),
    // Reports.
    (&[Info], &["sizes", "at", "offset"]),
    (&[List, Status, Info, Verify, Warm], &["json"]),
    (
        &[Unmount, List, Recover, Info, Verify, Warm, Export, Serve],
        &["quiet"],
    ),
    (&[Export], &["resume"]),
    (
        &[Serve],
        &[
            "token_file",
            "host",
            "cors",
            "tls_cert",
            "tls_key",
            "insecure",
        ],
    ),
];

impl Verb {
    /// Whether an option has an effect.
    pub(super) fn takes(self, option: &str) -> bool {
        takers(option).contains(&self)
    }

    /// As users type it.
    fn typed(self) -> String {
        let option = VERBS.iter().find(|(_, verb)| *verb == self);
        option.map_or_else(|| "a mount".to_owned(), |(id, _)| format!("--{id}"))
    }
}

/// The verbs that take an option.
fn takers(option: &str) -> &'static [Verb] {
    let mut rows = TAKEN.iter();
    let row = rows.find(|(_, options)| options.contains(&option));
    row.map_or(&[], |(verbs, _)| verbs)
}

/// Checks that `typed` has one verb, and only options that have an effect with it.
///
/// # Errors
/// [`CliError::Usage`] names two options that do not go together.
pub(super) fn check(command: &Command, typed: &ArgMatches) -> Result<(), CliError> {
    let is_typed = |argument: &&Arg| {
        let source = typed.value_source(argument.get_id().as_str());
        source == Some(ValueSource::CommandLine)
    };
    let given: Vec<&Arg> = command.get_arguments().filter(is_typed).collect();
    let verb_of = |argument: &&Arg| {
        let found = VERBS.iter().find(|(id, _)| argument.get_id() == id);
        found.map(|(_, verb)| *verb)
    };
    let mut verbs = given.iter().filter_map(verb_of);
    let verb = verbs.next().unwrap_or(Mount);
    if let Some(other) = verbs.next() {
        let problem = format!("{} cannot be used with {}", verb.typed(), other.typed());
        return Err(CliError::Usage(problem));
    }
    let mut options = given.iter().filter(|argument| verb_of(argument).is_none());
    let Some(wrong) = options.find(|argument| !verb.takes(argument.get_id().as_str())) else {
        return Ok(());
    };
    let option = name_of(wrong);
    let takers = takers(wrong.get_id().as_str()).iter();
    let takers: Vec<_> = takers.map(|verb| verb.typed()).collect();
    let takers = in_words(&takers);
    Err(CliError::Usage(if verb == Mount {
        format!("{option} is for {takers}")
    } else {
        let verb = verb.typed();
        format!("{option} cannot be used with {verb}; it is for {takers}")
    }))
}

/// An argument as users type it.
fn name_of(argument: &Arg) -> String {
    let of_value = || argument.get_value_names()?.first().map(ToString::to_string);
    match (argument.get_long(), argument.get_short()) {
        (Some(long), _) => format!("--{long}"),
        (None, Some(short)) => format!("-{short}"),
        (None, None) => of_value().unwrap_or_default(),
    }
}

/// `a, b and c`.
fn in_words(words: &[String]) -> String {
    match words {
        [] => String::new(),
        [one] => one.clone(),
        [most @ .., last] => format!("{} and {last}", most.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use clap::CommandFactory;

    use super::*;
    use crate::cli::args::Args;
    use crate::cli::options::Unknown;

    fn refused(words: &[&str]) -> Option<String> {
        let words = ["zarr-mount"].iter().chain(words).map(OsString::from);
        let parsed = Args::parse_from(&words.collect::<Vec<_>>(), Unknown::Refused);
        parsed.err().map(|error| error.to_string())
    }

    #[test]
    fn every_argument_is_a_verb_or_is_taken_by_one() {
        for argument in Args::command().get_arguments() {
            let id = argument.get_id().as_str();
            let is_verb = VERBS.iter().any(|(verb, _)| *verb == id);
            let rows = TAKEN.iter().filter(|(_, options)| options.contains(&id));
            let n = rows.count() + usize::from(is_verb || id == "help");
            assert_eq!(
                n, 1,
                "an option is in one row of TAKEN, that of the verbs with which it has an effect; see `{id}`"
            );
        }
        // This build has all of them.
        if cfg!(all(feature = "remote", feature = "serve", debug_assertions)) {
            let command = Args::command();
            let is_built = |id: &str| command.get_arguments().any(|known| known.get_id() == id);
            let options = TAKEN.iter().flat_map(|(_, options)| *options);
            let verbs = VERBS.iter().map(|(verb, _)| verb);
            assert!(options.chain(verbs).all(|id| is_built(id)));
        }
    }

    #[test]
    fn options_without_effect_are_refused_and_the_others_are_not() {
        for (words, problem) in [
            (
                &["--resume", "s", "m"][..],
                "--resume is for --export; see zarr-mount --help",
            ),
            (
                &["--cat", "--staging", "d", "s", "a"],
                "--staging cannot be used with --cat; it is for a mount and --recover",
            ),
            (
                &["--info", "-f", "s"],
                "--foreground cannot be used with --info; it is for a mount and --serve",
            ),
            (
                &["--verify", "--files", "nc", "s"],
                "--files cannot be used with --verify; it is for a mount, --info, --cat, --export and --serve",
            ),
            (
                &["--export", "d", "-o", "shards=keep,allow_other", "s"],
                "-o cannot be used with --export",
            ),
            (
                &["--unmount", "m", "s"],
                "STORE cannot be used with --unmount",
            ),
            (
                &["--recover", "s", "m"],
                "MOUNTPOINT cannot be used with --recover",
            ),
            (
                &["--list", "--verify", "s"],
                "--list cannot be used with --verify",
            ),
            (
                &["--status", "m", "--info"],
                "--status cannot be used with --info",
            ),
            (&["--version", "s"], "STORE cannot be used with --version"),
        ] {
            let found = refused(words).unwrap_or_default();
            assert!(found.starts_with(problem), "{words:?}: {found}");
        }
        for words in [
            &["--cat", "--view", "chunks", "--as", "v2", "-v", "s", "a"][..],
            &["--info", "--files", "nc", "-o", "allow_other", "s"],
            &[
                "--info",
                "--view",
                "arrays",
                "--threads",
                "2",
                "--ttl",
                "0",
                "s",
            ],
            &["--serve", "0", "-f", "s"],
            &["--unmount", "m", "-v"],
            &["--export", "d", "--resume", "--array", "x", "--quiet", "s"],
            &["--recover", "--staging", "d", "--durability", "close", "s"],
            &[
                "--rw",
                "--lossy",
                "-f",
                "-o",
                "shards=keep,array=x",
                "s",
                "m",
            ],
            &["--version", "-v"],
        ] {
            assert_eq!(refused(words), None, "{words:?}");
        }
    }
}
