//! The last line of a tree: how many nodes it has, and their sizes together.

use super::node_report::NodeReport;
use super::words;
use crate::cli::counted::counted;

/// The numbers and sizes of the nodes so far.
#[derive(Debug, Default)]
pub(super) struct Totals {
    groups: u64,
    arrays: u64,
    /// Arrays whose decoded size is not known, such as those of strings.
    unsized_arrays: u64,
    decoded_bytes: u64,
    stored: Option<(u64, u64)>,
}

impl Totals {
    pub(super) fn add(&mut self, report: &NodeReport) {
        let facts = &report.facts;
        if facts["node_type"] == "group" {
            self.groups += 1;
        }
        if !report.is_array() {
            return;
        }
        self.arrays += 1;
        match facts["decoded_bytes"].as_u64() {
            Some(bytes) => self.decoded_bytes = self.decoded_bytes.saturating_add(bytes),
            None => self.unsized_arrays += 1,
        }
        let number = |name: &str| facts[name].as_u64();
        if let (Some(objects), Some(bytes)) = (number("stored_objects"), number("stored_bytes")) {
            let (all, total) = self.stored.unwrap_or_default();
            self.stored = Some((all.saturating_add(objects), total.saturating_add(bytes)));
        }
    }

    /// The line; `None` for less than two arrays, of which it would say nothing new.
    pub(super) fn line(&self) -> Option<String> {
        if self.arrays < 2 {
            return None;
        }
        let mut parts = Vec::new();
        if self.groups > 0 {
            parts.push(counted(self.groups, "group", "groups"));
        }
        parts.push(counted(self.arrays, "array", "arrays"));
        let size = words::human(self.decoded_bytes);
        parts.push(match self.unsized_arrays {
            0 => size,
            n => format!(
                "{size} and {} of unknown size",
                counted(n, "array", "arrays")
            ),
        });
        if let Some((objects, bytes)) = self.stored {
            let objects = counted(objects, "object", "objects");
            parts.push(format!("{} stored in {objects}", words::human(bytes)));
        }
        Some(parts.join(", "))
    }
}
