//! A command line and the values of `-o` in it.

use std::ffi::OsString;

use clap::{CommandFactory, FromArgMatches};

use super::args::Args;
use super::error::CliError;
use super::options::{MountOptions, Unknown};
use super::verb;

impl Args {
    /// Parses a command line, program name first. An option given by `-o` counts as if it were
    /// typed first, so that its long form overrides it.
    pub(crate) fn parse_from(
        command_line: &[OsString],
        unknown: Unknown,
    ) -> Result<(Self, MountOptions), CliError> {
        let typed = parse(command_line)?;
        let options = MountOptions::parse(&typed.options, unknown)?;
        if options.flags.is_empty() {
            return Ok((typed, options));
        }
        let program = command_line.iter().take(1);
        let rest = command_line.iter().skip(1);
        let all = program.chain(&options.flags).chain(rest);
        Ok((parse(all)?, options))
    }
}

/// Parses a command line, all options of which have an effect.
fn parse(
    command_line: impl IntoIterator<Item = impl Into<OsString> + Clone>,
) -> Result<Args, CliError> {
    let mut command = Args::command();
    let typed = command.try_get_matches_from_mut(command_line)?;
    verb::check(&command, &typed)?;
    let args = Args::from_arg_matches(&typed);
    Ok(args.map_err(|error| error.format(&mut command))?)
}
