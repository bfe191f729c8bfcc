//! Errors of the command: each is one line and an exit status.

use std::process::ExitCode;

use crate::store::StoreError;

/// The reason why the command failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CliError {
    /// Not an error to the user: `--help` and `--version` print and end.
    #[error("{0}")]
    Print(clap::Error),
    /// The command line cannot be understood.
    #[error("{0}; see zarr-mount --help")]
    Usage(String),
    /// The command line cannot be understood, and the message has its likely meaning.
    #[error("{0}")]
    Meant(String),
    /// The task was understood, and could not be done.
    #[error("{0}")]
    Failed(String),
    /// The task could not be done, because the store as a whole is damaged.
    #[error("{0}")]
    Damaged(String),
    /// The store, or something in it, could not be examined.
    #[error("{0}")]
    Unread(String),
}

impl CliError {
    pub(crate) fn failed(error: impl std::fmt::Display) -> Self {
        CliError::Failed(error.to_string())
    }

    /// An error of opening a store.
    pub(crate) fn of_store(error: &StoreError) -> Self {
        match error {
            StoreError::Damaged { .. } => CliError::Damaged(error.to_string()),
            _ => CliError::failed(error),
        }
    }

    /// This error, from a search for damage: nothing is known of the store then.
    pub(crate) fn of_search(self) -> Self {
        match self {
            CliError::Failed(problem) => CliError::Unread(problem),
            error => error,
        }
    }

    /// The exit status of a helper of mount(8), which passes it on as its own.
    pub(crate) fn status_of_helper(&self) -> ExitCode {
        match self {
            CliError::Print(_) => ExitCode::SUCCESS,
            CliError::Usage(_) | CliError::Meant(_) => ExitCode::from(1),
            CliError::Failed(_) | CliError::Damaged(_) | CliError::Unread(_) => ExitCode::from(32),
        }
    }

    pub(crate) fn status(&self) -> ExitCode {
        match self {
            CliError::Print(_) => ExitCode::SUCCESS,
            CliError::Failed(_) | CliError::Damaged(_) => ExitCode::FAILURE,
            CliError::Usage(_) | CliError::Meant(_) | CliError::Unread(_) => ExitCode::from(2),
        }
    }
}

impl From<clap::Error> for CliError {
    fn from(error: clap::Error) -> Self {
        if error.use_stderr() {
            CliError::Usage(one_line(&error.render().to_string()))
        } else {
            CliError::Print(error)
        }
    }
}

/// clap's message without its label, its usage and its pointer to the help.
fn one_line(message: &str) -> String {
    let message = message.strip_prefix("error: ").unwrap_or(message);
    let lines = message.lines().map(str::trim);
    let lines =
        lines.take_while(|line| !line.starts_with("Usage:") && !line.starts_with("For more"));
    let lines: Vec<_> = lines.filter(|line| !line.is_empty()).collect();
    lines.join("; ").replace(":;", ":")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_of_clap_becomes_one_line() {
        let message = "error: unexpected argument '--wiew' found\n\n  \
                       tip: a similar argument exists: '--view'\n\n\
                       Usage: zarr-mount a\n       zarr-mount b\n\n\
                       For more information, try '--help'.\n";
        assert_eq!(
            one_line(message),
            "unexpected argument '--wiew' found; tip: a similar argument exists: '--view'"
        );
    }
}
