//! The list of the targets that are not read, for people.

use std::collections::BTreeMap;
use std::fmt;

/// The most prefixes that are listed by name.
const MOST_LISTED: usize = 16;

/// The prefixes of targets that are not read, and how many there are in each.
#[derive(Debug, Default)]
pub(in crate::store) struct Refused(BTreeMap<String, u64>);

impl Refused {
    /// Counts a target in `directory`.
    pub(in crate::store) fn add(&mut self, directory: String) {
        *self.0.entry(directory).or_default() += 1;
    }

    pub(in crate::store) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, (directory, n)) in self.0.iter().take(MOST_LISTED).enumerate() {
            let space = if at == 0 { "" } else { " " };
            write!(f, "{space}{directory} ({n})")?;
        }
        if self.0.len() > MOST_LISTED {
            write!(f, " and {} others", self.0.len() - MOST_LISTED)?;
        }
        Ok(())
    }
}
