//! The list of the targets that are not read, for people.

use std::collections::BTreeMap;
use std::fmt;

/// The most prefixes that are listed by name.
const MOST_LISTED: usize = 16;

/// The most bytes of all prefixes. Beyond that, others are left out.
const MOST_BYTES: usize = 1 << 20;

/// The prefixes of targets that are not read, and how many there are in each.
#[derive(Debug, Default)]
pub(in crate::store) struct Refused {
    by_prefix: BTreeMap<String, u64>,
    bytes: usize,
}

impl Refused {
    /// Counts a target in `directory`.
    pub(in crate::store) fn add(&mut self, directory: String) {
        if let Some(n) = self.by_prefix.get_mut(&directory) {
            *n += 1;
        } else if self.bytes + directory.len() <= MOST_BYTES {
            self.bytes += directory.len();
            self.by_prefix.insert(directory, 1);
        }
    }

    pub(in crate::store) fn is_empty(&self) -> bool {
        self.by_prefix.is_empty()
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, (directory, n)) in self.by_prefix.iter().take(MOST_LISTED).enumerate() {
            let space = if at == 0 { "" } else { " " };
            write!(f, "{space}{directory} ({n})")?;
        }
        if self.by_prefix.len() > MOST_LISTED {
            write!(f, " and {} others", self.by_prefix.len() - MOST_LISTED)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_prefixes_take_little_memory() {
        let mut refused = Refused::default();
        for at in 0..100 {
            for _ in 0..2 {
                refused.add(format!("{at}{}", "x".repeat(60_000)));
            }
        }
        assert!(refused.bytes <= MOST_BYTES && refused.by_prefix.len() > 10);
        assert!(refused.by_prefix.values().all(|n| *n == 2));
    }
}
