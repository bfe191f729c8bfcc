//! Findings of one kind, of which there may be millions.

use std::fmt::Display;

use super::finding::{Finding, Found, Severity};
use crate::store::Prefix;

/// The most findings of one kind that are named. Further findings are counted.
const MOST_NAMED: u64 = 20;

/// Things of one kind that readers ignore, or do not notice.
#[derive(Default)]
pub(super) struct Ignored {
    count: u64,
}

impl Ignored {
    /// Reports the thing at `key`, or only counts it if there were many.
    pub(super) fn add(
        &mut self,
        path: &Prefix,
        key: &dyn Display,
        what: &dyn Display,
        found: &Found<'_>,
    ) {
        self.count += 1;
        if self.count <= MOST_NAMED {
            found(Finding::new(Severity::Note, path, format!("{key}: {what}")));
        }
    }

    /// Reports how many were not named. `what` follows the number.
    pub(super) fn end(&self, path: &Prefix, what: &str, found: &Found<'_>) {
        let more = self.count.saturating_sub(MOST_NAMED);
        if more > 0 {
            found(Finding::new(
                Severity::Note,
                path,
                format!("{more} more {what}"),
            ));
        }
    }
}
