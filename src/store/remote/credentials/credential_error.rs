//! Errors of credentials, or of the configuration of a cloud. No message has a value that may be
//! secret.

use std::path::{Path, PathBuf};

/// Credentials or a setting that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum CredentialError {
    /// A file.
    #[error("{}: {problem}", .path.display())]
    File {
        /// Its path.
        path: PathBuf,
        /// The problem, and advice.
        problem: String,
    },
    /// A line of a file.
    #[error("{}: line {line}: {problem}", .path.display())]
    Line {
        /// The path of the file.
        path: PathBuf,
        /// The number of the line, from 1.
        line: usize,
        /// The problem, and advice.
        problem: &'static str,
    },
    /// A variable, an option, a profile, or a server.
    #[error("{name}: {problem}")]
    Setting {
        /// How it is called.
        name: String,
        /// The problem, and advice.
        problem: String,
    },
    /// A program that gives credentials.
    #[error("{program}: {problem}")]
    Program {
        /// Its name, without arguments.
        program: String,
        /// The problem, and advice.
        problem: String,
    },
}

impl CredentialError {
    /// The error for a problem of the file at `path`.
    pub(crate) fn file(path: &Path, problem: impl Into<String>) -> CredentialError {
        CredentialError::File {
            path: path.to_owned(),
            problem: problem.into(),
        }
    }

    /// The error for a problem of a setting.
    pub(crate) fn setting(name: impl Into<String>, problem: impl Into<String>) -> CredentialError {
        CredentialError::Setting {
            name: name.into(),
            problem: problem.into(),
        }
    }
}
