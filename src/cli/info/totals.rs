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

    /// The line; `None` for fewer than two arrays, because the line of one array has the same facts.
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
            n if n == self.arrays => "of unknown size".to_owned(),
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

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::store::Prefix;

    fn line(nodes: &[Value]) -> Option<String> {
        let mut totals = Totals::default();
        for facts in nodes {
            totals.add(&NodeReport::new(&Prefix::root(), facts.clone()));
        }
        totals.line()
    }

    #[test]
    fn sizes_are_those_of_all_arrays_that_have_one() {
        let group = json!({"node_type": "group"});
        let strings = json!({"node_type": "array"});
        let sized = json!({
            "node_type": "array", "decoded_bytes": 1024, "stored_objects": 1, "stored_bytes": 512,
        });
        for (nodes, told) in [
            (vec![&group, &sized], None),
            (
                vec![&group, &sized, &sized],
                Some("1 group, 2 arrays, 2.0 KiB, 1.0 KiB stored in 2 objects"),
            ),
            (
                vec![&sized, &strings],
                Some("2 arrays, 1.0 KiB and 1 array of unknown size, 512 B stored in 1 object"),
            ),
            (vec![&strings, &strings], Some("2 arrays, of unknown size")),
        ] {
            let nodes: Vec<Value> = nodes.into_iter().cloned().collect();
            assert_eq!(line(&nodes).as_deref(), told);
        }
    }
}
