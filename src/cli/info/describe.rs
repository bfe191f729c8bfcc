//! Gathers what is said about one node.

use std::sync::Arc;

use serde_json::{Value, json};

use super::attributes::NodeAttributes;
use super::counters::InfoCounters;
use super::facts::{DimensionNames, FileFacts, facts_of_array, facts_of_group, insert_files};
use super::fill_text::FillText;
use super::node_report::NodeReport;
use super::omissions::SaidOmissions;
use super::other_version;
use super::stored::StoredObjects;
use crate::budget::Holding;
use crate::cli::config::InfoConfig;
use crate::dtype::Element;
use crate::error::Error;
use crate::hierarchy::{ArrayNode, BrokenKind, GroupNode, Hierarchy, Node};
use crate::metadata::write;
use crate::metadata::{Attributes, DocumentName, ZarrFormat, missing};
use crate::store::{Key, Prefix, WaitingParts};
use crate::view::{FileFormat, UnusedDescriptions, View};

/// Gathers what is said about the nodes of a store.
pub(super) struct Describer<'c> {
    pub(super) config: &'c InfoConfig,
    pub(super) hierarchy: Arc<Hierarchy>,
    pub(super) waiting: WaitingParts,
    /// Makes the files of arrays, if formats were requested.
    pub(super) arrays: Option<View>,
    pub(super) said: SaidOmissions,
    pub(super) counters: Arc<InfoCounters>,
}

impl Describer<'_> {
    /// The report on a node; `None` on a directory without a document.
    pub(super) fn describe(&mut self, prefix: &Prefix, node: &Node) -> Option<NodeReport> {
        let mut report = match node {
            Node::Implicit => return None,
            Node::Broken(broken) => NodeReport::new(
                prefix,
                json!({
                    "node_type": if broken.kind == BrokenKind::Group { "group" } else { "unknown" },
                    "document": broken.document.key.to_text(),
                    "error": broken.error.to_string(),
                }),
            ),
            Node::Group(group) => self.group(prefix, group),
            Node::Array(array) => self.array(prefix, array),
        };
        self.add_files(node, &mut report);
        if let (Node::Array(array), true) = (node, self.config.sizes) {
            let store = Arc::clone(self.hierarchy.store());
            match StoredObjects::of(&*store, array, &self.counters) {
                Ok(stored) => stored.insert_into(&mut report.facts, &array.metadata),
                // The rest of the array is described all the same, and so are the other nodes.
                Err(error) => {
                    report.facts["stored_error"] = error.to_string().into();
                    let remark = format!("the stored size is unknown: {error}");
                    report.remarks.push(remark);
                }
            }
        }
        Some(report)
    }

    /// The report on a node that cannot be read.
    pub(super) fn unreadable(prefix: &Prefix, error: &Error) -> NodeReport {
        let facts = json!({ "node_type": "unknown", "error": error.to_string() });
        NodeReport::new(prefix, facts)
    }

    fn group(&self, prefix: &Prefix, group: &GroupNode) -> NodeReport {
        let mut report = NodeReport::new(prefix, facts_of_group(group.format));
        report.attributes = match self.attributes_of_group(prefix, group) {
            Ok(attributes) => attributes,
            Err(error) => NodeAttributes::unreadable(&error.to_string()),
        };
        report.attributes.insert_into(&mut report.facts);
        // Invalid consolidated metadata has no remark here: the mount warns of it.
        let copied = self.hierarchy.only_copied(prefix).unwrap_or_default();
        if !copied.is_empty() {
            let names: Vec<String> = copied.iter().map(ToString::to_string).collect();
            let names = names.join(", ");
            let remark = format!("only in consolidated metadata, so not shown: {names}");
            report.remarks.push(remark);
            let paths = copied.iter().map(|path| Value::from(path.to_text()));
            report.facts["only_in_consolidated_metadata"] = paths.collect();
        }
        report
    }

    fn attributes_of_group(
        &self,
        prefix: &Prefix,
        group: &GroupNode,
    ) -> Result<NodeAttributes, Error> {
        if group.format == ZarrFormat::V2 {
            let key = prefix.key(DocumentName::ZAttrs.as_str().as_bytes())?;
            let text = self.hierarchy.read(&key, Holding::SOURCE)?;
            return Ok(NodeAttributes::of(Ok(text.map(|text| text.bytes))));
        }
        let Some(document) = &group.document else {
            return Ok(NodeAttributes::default());
        };
        let text = self.hierarchy.text(document)?;
        let text = text.map(|text| write::group_attributes_v2(group.format, &text.bytes));
        Ok(NodeAttributes::of(text.transpose().map(Option::flatten)))
    }

    fn array(&self, prefix: &Prefix, array: &ArrayNode) -> NodeReport {
        let metadata = &array.metadata;
        // Where the attributes cannot be read, the array is described without them.
        let text = match self.hierarchy.documents(array) {
            Ok(Some(documents)) => {
                Attributes::text_of_array(metadata.zarr_format, &documents.source())
                    .map_err(|error| error.to_string())
            }
            Ok(None) => Ok(None),
            Err(error) => Err(error.to_string()),
        };
        let known = text.as_ref().ok().and_then(Option::as_deref);
        let mut facts = facts_of_array(array, &dimension_names(array, known));
        let missing_value = known.and_then(|text| missing::declared_text(metadata, text));
        let attributes = match text {
            Ok(text) => NodeAttributes::of(Ok(text)).with_missing_value(missing_value),
            Err(reason) => NodeAttributes::unreadable(&reason),
        };
        attributes.insert_into(&mut facts);
        let fill_value = metadata.decoding.as_ref().ok().map(FillText::of);
        if let Some(fill_value) = &fill_value {
            facts["fill_value"] = fill_value.json().clone();
        }
        let inserted = self.config.shown_as.map_or(Ok(()), |target| {
            other_version::insert_into(&mut facts, array, target, &self.hierarchy)
        });
        let mut report = NodeReport {
            attributes,
            fill_value,
            ..NodeReport::new(prefix, facts)
        };
        if let Err(error) = inserted {
            report.facts["inexpressible_error"] = error.to_string().into();
            let remark = format!("what --as cannot express is unknown: {error}");
            report.remarks.push(remark);
        }
        let of_array = |(key, _): &&(Key, u64)| array.prefix.strip(key.as_bytes()).is_some();
        let n = self.waiting.iter().filter(of_array).count();
        if let Some(waiting) = crate::cli::store::waiting_in_words(n) {
            report.remarks.push(waiting);
            report.facts["chunks_in_journal"] = n.into();
        }
        report
    }

    /// Adds the files of a node in the requested formats.
    fn add_files(&mut self, node: &Node, report: &mut NodeReport) {
        let Some(view) = &self.arrays else {
            return;
        };
        let files = match node {
            Node::Array(_) => view.arrays().outcomes(&report.prefix).map(|outcomes| {
                let outcomes = outcomes.unwrap_or_default().into_iter();
                outcomes.map(FileFacts::of_array).collect::<Vec<_>>()
            }),
            Node::Group(_) => view
                .arrays()
                .group_outcomes(&report.prefix)
                .map(|outcomes| {
                    let outcomes = outcomes.into_iter();
                    outcomes.map(FileFacts::of_group).collect()
                }),
            Node::Implicit | Node::Broken(_) => return,
        };
        let files = match files {
            Ok(files) => files,
            Err(error) => {
                report.facts["error"] = error.to_string().into();
                return;
            }
        };
        if let Node::Array(_) = node {
            match view.arrays().unused_descriptions(&report.prefix) {
                Ok(unused) => insert_unused(report, &unused),
                Err(error) => report.facts["error"] = error.to_string().into(),
            }
        }
        if self.config.json {
            insert_files(&mut report.facts, &files);
            return;
        }
        report.files = self.said.sentence(&report.prefix, &files, view);
        let cache_bytes = report.facts["whole_array_cache_bytes"].as_u64();
        let beyond = cache_bytes.filter(|&bytes| bytes > self.config.cache_budget_bytes);
        let mebibytes = beyond.map(|bytes| bytes.div_ceil(1 << 20));
        report.remarks.extend(
            mebibytes
                .map(|mebibytes| format!("read whole with --cache-size {mebibytes}MiB or more")),
        );
        report.remarks.extend(self.wide_integers(node, &files));
    }

    /// A remark on the TIFF files of an array whose integers many programs do not open.
    fn wide_integers(&self, node: &Node, files: &[FileFacts]) -> Option<String> {
        let options = self.config.arrays.as_ref()?;
        let Node::Array(array) = node else {
            return None;
        };
        let data_type = &array.metadata.decoding.as_ref().ok()?.data_type;
        let is_wide =
            matches!(&data_type.element, Element::Integer(integers) if integers.bytes == 8);
        let is_image = files.iter().any(|file| match file.format {
            FileFormat::Tif => file.is_there(),
            // There is no OME-TIFF file of such integers. Narrower integers would fit, unless the array has no planes.
            FileFormat::OmeTif => array.metadata.shape.len() >= 2,
            _ => false,
        });
        (is_wide && is_image && options.integers.is_none()).then(|| {
            "ImageJ, Pillow and OME-TIFF have no integers of 64 bits (see --integers)".to_owned()
        })
    }
}

/// Adds the errors of the axes and of the georeference that the documents describe, and that no file can use.
fn insert_unused(report: &mut NodeReport, unused: &UnusedDescriptions) {
    if let Some(error) = &unused.axes {
        report.facts["axes_error"] = error.to_string().into();
        report
            .remarks
            .push(format!("no spacings and units: {error}"));
    }
    let problems = unused.georeference.iter().map(ToString::to_string);
    let problems: Vec<String> = problems.collect();
    if !problems.is_empty() {
        let problems = problems.join("; ");
        report.facts["georeference_error"] = problems.as_str().into();
        report
            .remarks
            .push(format!("no georeference, or not all of it: {problems}"));
    }
}

/// The names of the dimensions of an array, which versions before v3 have among its `attributes`.
fn dimension_names(array: &ArrayNode, attributes: Option<&[u8]>) -> DimensionNames {
    let metadata = &array.metadata;
    if metadata.dimension_names.is_some() || metadata.zarr_format == ZarrFormat::V3 {
        return metadata.dimension_names.clone();
    }
    write::dimension_names(metadata, attributes).ok()?
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::Budget;
    use crate::cli::args::Args;
    use crate::cli::config::CliTask;
    use crate::cli::options::Unknown;
    use crate::fresh::Freshness;
    use crate::hierarchy::Walk;
    use crate::store::testing::{Call, Layer, wrap};
    use crate::store::{MemoryStore, StoreError};
    use crate::view::{ViewKind, ViewOptions};

    /// Lets nobody read the attributes of the array `a`.
    #[derive(Debug)]
    struct Denies;

    impl Layer for Denies {
        fn around<T>(
            &self,
            call: &Call,
            ask: impl FnOnce() -> Result<T, StoreError>,
        ) -> Result<T, StoreError> {
            let key = Key::parse(b"a/.zattrs").unwrap();
            if call.path != key.to_prefix() {
                return ask();
            }
            Err(StoreError::Denied {
                key: key.to_text(),
                reason: "mode".to_owned(),
            })
        }
    }

    #[test]
    fn attributes_that_cannot_be_read_end_no_description() {
        const ARRAY: &str = r#"{"zarr_format": 2, "shape": [4], "chunks": [2], "dtype": "<i4", "compressor": null,
            "filters": null, "order": "C", "fill_value": 0}"#;
        let store = MemoryStore::new();
        for (key, text) in [
            (".zgroup", r#"{"zarr_format": 2}"#),
            ("a/.zarray", ARRAY),
            ("a/.zattrs", "{}"),
            ("b/.zarray", ARRAY),
        ] {
            store.insert(Key::parse(key.as_bytes()).unwrap(), text);
        }
        let store = wrap(Arc::new(store), &Arc::new(Denies));
        let words = [
            "zarr-mount",
            "--info",
            "--as",
            "v3",
            "--files",
            "npy,h5",
            "demo:",
        ];
        let words = words.map(std::ffi::OsString::from);
        let (args, options) = Args::parse_from(&words, Unknown::Refused).unwrap();
        let Ok(CliTask::Info(config)) = CliTask::new(args, options) else {
            panic!("{words:?}");
        };
        let options = ViewOptions {
            views: vec![ViewKind::Arrays],
            arrays: config.arrays.clone().unwrap(),
            ..ViewOptions::default()
        };
        let view = View::new(Arc::clone(&store), options).unwrap();
        let hierarchy = Hierarchy::new(store, Budget::new(1 << 20), Freshness::Immutable);
        let hierarchy = Arc::new(hierarchy);
        let mut describer = Describer {
            config: &config,
            hierarchy: Arc::clone(&hierarchy),
            waiting: WaitingParts::default(),
            arrays: Some(view),
            said: SaidOmissions::default(),
            counters: Arc::default(),
        };
        let nodes = Walk::new(&hierarchy, &Prefix::root());
        let reports = nodes.filter_map(|(path, found)| {
            let report = describer.describe(&path, &found.unwrap().node)?;
            Some((
                path.to_text(),
                report.facts["inexpressible_error"].is_string(),
            ))
        });
        let reports: Vec<_> = reports.collect();
        let [root, a, b] = ["/", "a", "b"].map(str::to_owned);
        assert_eq!(reports, [(root, false), (a, true), (b, false)]);
    }
}
