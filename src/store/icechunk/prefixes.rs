//! The prefixes that the names of virtual chunk containers stand for.

use std::collections::BTreeMap;

/// The most containers that are read.
const MOST_CONTAINERS: usize = 1024;

/// The prefixes of containers by their names; `None` for a name that several containers have.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Prefixes {
    by_name: BTreeMap<String, Option<String>>,
    n_containers: usize,
}

impl Prefixes {
    /// Adds a container.
    ///
    /// # Errors
    /// There are too many.
    pub(super) fn add(&mut self, name: Option<&str>, prefix: Option<&str>) -> Result<(), String> {
        self.n_containers += 1;
        if self.n_containers > MOST_CONTAINERS {
            return Err(format!(
                "more than {MOST_CONTAINERS} virtual chunk containers"
            ));
        }
        if let (Some(name), Some(prefix)) = (name, prefix) {
            let prefix = Some(prefix.to_owned());
            let entry = self.by_name.entry(name.to_owned());
            entry.and_modify(|known| *known = None).or_insert(prefix);
        }
        Ok(())
    }

    /// The prefix of the container `name`; the inner `None` if several have this name.
    #[expect(
        clippy::option_option,
        reason = "there may be none, one or several of a name"
    )]
    pub(super) fn get(&self, name: &str) -> Option<Option<&String>> {
        self.by_name.get(name).map(Option::as_ref)
    }

    /// The names, and their prefixes.
    #[cfg(test)]
    pub(super) fn iter(&self) -> impl Iterator<Item = (String, Option<String>)> {
        self.by_name.clone().into_iter()
    }
}
