//! The variables that say how remote stores are reached: those of the process, and before them
//! those of `--env-file`, which `fstab` and autofs need because they have no environment.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use super::{env_file, small_file};
use crate::store::remote::credentials::credential_error::CredentialError;

/// Names and values. A variable that is empty counts as absent, so that a file can take away a
/// variable of the process.
#[derive(Clone, Default)]
pub(crate) struct Environment {
    process: BTreeMap<String, String>,
    file: BTreeMap<String, String>,
}

impl Environment {
    /// The variables of this process that are UTF-8.
    pub(crate) fn of_process() -> Environment {
        let utf8 = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        };
        Environment {
            process: std::env::vars_os().filter_map(utf8).collect(),
            file: BTreeMap::new(),
        }
    }

    /// Adds the variables of `path`, which go before those of the process.
    ///
    /// # Errors
    /// [`CredentialError`] when others can read or change the file, and for a line that is no
    /// variable.
    pub(crate) fn with_file(mut self, path: &Path) -> Result<Environment, CredentialError> {
        let text = small_file::read_private(path)?;
        self.file.extend(env_file::parse(path, &text)?);
        Ok(self)
    }

    /// The value of `name`, unless it is absent or empty.
    pub(crate) fn get(&self, name: &str) -> Option<String> {
        self.value(name).map(str::to_owned)
    }

    /// The first of `names` that has a value, with its name.
    pub(crate) fn first<'n>(&self, names: &[&'n str]) -> Option<(&'n str, String)> {
        let found = |name: &&'n str| Some((*name, self.get(name)?));
        names.iter().find_map(found)
    }

    /// Whether the variable `name` says yes; `None` if it says nothing.
    ///
    /// # Errors
    /// [`CredentialError::Setting`] when it says neither yes nor no.
    pub(crate) fn flag(&self, name: &str) -> Result<Option<bool>, CredentialError> {
        let Some(value) = self.value(name) else {
            return Ok(None);
        };
        match value.to_ascii_lowercase().as_str() {
            "1" | "true" | "yes" | "on" | "y" => Ok(Some(true)),
            "0" | "false" | "no" | "off" | "n" => Ok(Some(false)),
            _ => Err(CredentialError::setting(name, "expected true or false")),
        }
    }

    /// Whether the file gives `name` another value than the process has. Some libraries only look in the process.
    pub(crate) fn is_changed_by_file(&self, name: &str) -> bool {
        self.file.contains_key(name) && self.file.get(name) != self.process.get(name)
    }

    /// Whether the file has the variable `name`, perhaps without a value.
    pub(crate) fn is_in_file(&self, name: &str) -> bool {
        self.file.contains_key(name)
    }

    /// The variables of the file, for programs that are started.
    pub(crate) fn of_file(&self) -> Vec<(String, String)> {
        let owned = |(name, value): (&String, &String)| (name.clone(), value.clone());
        self.file.iter().map(owned).collect()
    }

    /// `path` where `~/` at its beginning is the home of the user; `None` without a home.
    pub(crate) fn in_home(&self, path: &str) -> Option<PathBuf> {
        match path.strip_prefix("~/") {
            Some(rest) => Some(Path::new(self.value("HOME")?).join(rest)),
            None => Some(PathBuf::from(path)),
        }
    }

    fn value(&self, name: &str) -> Option<&str> {
        let value = self.file.get(name).or_else(|| self.process.get(name));
        value.map(String::as_str).filter(|value| !value.is_empty())
    }
}

impl FromIterator<(String, String)> for Environment {
    /// Variables as if they were those of the process.
    fn from_iter<T: IntoIterator<Item = (String, String)>>(variables: T) -> Environment {
        Environment {
            process: variables.into_iter().collect(),
            file: BTreeMap::new(),
        }
    }
}

impl fmt::Debug for Environment {
    /// Shows how many variables there are; their values may be secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Environment")
            .field("process", &self.process.len())
            .field("file", &self.file.len())
            .finish()
    }
}

#[cfg(test)]
pub(crate) mod testing {
    use super::Environment;

    /// An environment of these variables alone.
    pub(crate) fn environment(variables: &[(&str, &str)]) -> Environment {
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        variables.iter().map(owned).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt;

    use super::testing::environment;
    use super::*;

    #[test]
    fn a_file_goes_before_the_process_and_debug_shows_no_value() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("env");
        fs::write(&path, "AWS_B=hunter2\nAWS_C=\nAWS_D=4\n").unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
        let process = environment(&[("AWS_A", "1"), ("AWS_B", "2"), ("AWS_C", "3"), ("X", "5")]);
        let env = process.clone().with_file(&path).unwrap();
        assert_eq!(env.get("AWS_A").as_deref(), Some("1"));
        assert_eq!(env.get("AWS_B").as_deref(), Some("hunter2"));
        assert_eq!(env.get("AWS_C"), None);
        assert!(env.is_in_file("AWS_C") && !env.is_in_file("AWS_A"));
        assert!(env.is_changed_by_file("AWS_B") && !env.is_changed_by_file("AWS_A"));
        assert_eq!(env.first(&["NO", "X"]), Some(("X", "5".to_owned())));
        let shown = format!("{env:?}{env:#?}");
        assert!(!shown.contains("hunter2"), "{shown}");

        fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
        assert!(process.with_file(&path).is_err());
    }

    #[test]
    fn flags_say_yes_or_no_and_nothing_else() {
        let env = environment(&[("A", "TRUE"), ("B", "off"), ("C", "hunter2"), ("D", "")]);
        assert_eq!(env.flag("A").unwrap(), Some(true));
        assert_eq!(env.flag("B").unwrap(), Some(false));
        assert_eq!(env.flag("D").unwrap(), None);
        let message = env.flag("C").unwrap_err().to_string();
        assert_eq!(message, "C: expected true or false");
    }

    #[test]
    fn a_tilde_is_the_home_where_there_is_one() {
        let env = environment(&[("HOME", "/h")]);
        assert_eq!(env.in_home("~/a").unwrap(), Path::new("/h/a"));
        assert_eq!(env.in_home("/a").unwrap(), Path::new("/a"));
        assert_eq!(environment(&[]).in_home("~/a"), None);
    }
}
