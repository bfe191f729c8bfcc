//! A command line and the values of `-o` in it.

use std::ffi::OsString;

use clap::Parser;

use super::args::Args;
use super::error::CliError;
use super::options::{MountOptions, Unknown};

impl Args {
    /// Parses a command line, program name first. An option given by `-o` counts as if it were
    /// typed first, so that its long form overrides it.
    pub(crate) fn parse_from(
        command_line: &[OsString],
        unknown: Unknown,
    ) -> Result<(Self, MountOptions), CliError> {
        let typed = Args::try_parse_from(command_line)?;
        let options = MountOptions::parse(&typed.options, unknown)?;
        if options.flags.is_empty() {
            return Ok((typed, options));
        }
        let program = command_line.iter().take(1);
        let rest = command_line.iter().skip(1);
        let all = program.chain(&options.flags).chain(rest);
        Ok((Args::try_parse_from(all)?, options))
    }
}
