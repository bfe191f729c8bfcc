//! The groups of options in `--help` and in the man page.

use clap::Arg;

/// The first option of each group, as the definition of the options has them, and the title of the group.
const GROUPS: [(&str, &str); 11] = [
    ("view", "What a mount shows"),
    ("cache_size", "Memory, time and freshness"),
    ("rw", "Writing"),
    ("follow_symlinks", "Links and references"),
    ("passthrough", "The mount"),
    ("log_level", "The log"),
    ("unmount", "Mounts and their daemons"),
    ("recover", "Without a mount"),
    ("anonymous", "Remote stores"),
    ("serve", "Serving"),
    ("man", "The program itself"),
];

/// Puts options, which come in the order of their definition, into groups: an option that begins no group is in the
/// group of the option before it.
pub(super) fn by_first() -> impl FnMut(Arg) -> Arg {
    let mut title = None;
    move |argument| {
        let begun = GROUPS
            .iter()
            .find(|(first, _)| argument.get_id().as_str() == *first);
        if let Some((_, begun)) = begun {
            title = Some(*begun);
        }
        match title {
            Some(title) if !argument.is_positional() => argument.help_heading(title),
            _ => argument,
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::cli::args::Args;

    #[test]
    fn every_option_is_in_a_group_and_every_group_has_options() {
        let command = Args::command();
        let options = command.get_arguments().filter(|one| !one.is_positional());
        let titles: Vec<_> = options.map(Arg::get_help_heading).collect();
        assert!(titles.iter().all(Option::is_some), "{titles:?}");
        for (first, title) in GROUPS {
            let is_built = match first {
                "anonymous" => cfg!(feature = "remote"),
                "serve" => cfg!(feature = "serve"),
                _ => true,
            };
            assert_eq!(titles.contains(&Some(title)), is_built, "{title}");
        }
    }
}
