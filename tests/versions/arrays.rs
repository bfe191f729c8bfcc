//! Whole arrays as plain files, held against the elements that were written.

use std::collections::BTreeSet;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use zarr_mount::view::{ArrayOptions, FileFormat, View};

use super::common;
use super::model::{Model, indices, rank_of};
use super::types::Type;
use super::write::join;

/// The name of a root array.
const ROOT: &str = "array";

/// Formats that between them hold every type.
pub fn options() -> ArrayOptions {
    ArrayOptions {
        files: vec![FileFormat::Npy, FileFormat::Raw, FileFormat::Jsonl],
        root_name: ROOT.to_owned(),
        ..ArrayOptions::default()
    }
}

impl Model {
    /// The elements of the array in C order.
    fn elements(&self) -> Vec<Vec<u8>> {
        let element = |at: Vec<usize>| {
            let within: Vec<usize> = at.iter().zip(&self.inner).map(|(i, n)| i % n).collect();
            let chunk: Vec<usize> = at.iter().zip(&self.inner).map(|(i, n)| i / n).collect();
            self.items(&chunk)[rank_of(&within, &self.inner)].clone()
        };
        indices(&self.shape).into_iter().map(element).collect()
    }

    /// The files of the array, and parts of them.
    pub fn check_arrays(&self, view: &Arc<View>, slices: &[(u16, u16)]) {
        let node = self.node();
        let stem = if node.is_empty() { ROOT } else { &node };
        let file = |extension: &str| format!("{stem}.{extension}");
        let directory = stem.rsplit_once('/').map_or("", |(directory, _)| directory);
        let elements = self.elements();
        let mut expected = BTreeSet::from([file("json")]);
        if self.item.is_variable() {
            expected.insert(file("jsonl"));
            self.check_lines(view, &file("jsonl"), &elements);
        } else {
            let bytes = elements.into_iter().flat_map(|mut element| {
                // Records are as they are stored; all else is little-endian.
                if let Type::Record(_) = self.item {
                    self.item.swap(&mut element);
                }
                element
            });
            let bytes: Vec<u8> = bytes.collect();
            expected.insert(file("raw"));
            Self::check_bytes(view, &file("raw"), &bytes, slices);
            if !self.item.is_brain_float() {
                expected.insert(file("npy"));
                let npy = common::read(view, &file("npy")).unwrap().unwrap();
                assert!(
                    npy.starts_with(b"\x93NUMPY") && npy.ends_with(&bytes),
                    "npy"
                );
                assert_eq!((npy.len() - bytes.len()) % 64, 0, "length of the header");
            }
        }
        let found: BTreeSet<String> = common::files(view, directory)
            .into_iter()
            .filter(|path| path.starts_with(stem))
            .collect();
        assert_eq!(found, expected, "files");
        let sidecar = common::read(view, &file("json")).unwrap().unwrap();
        let sidecar: Value = serde_json::from_slice(&sidecar).unwrap();
        assert_eq!(sidecar["shape"], serde_json::json!(self.shape));
        // Nothing else of the store is there.
        for (key, _) in self.documents() {
            assert!(
                common::walk(view, &key).unwrap().is_none(),
                "{key} is there"
            );
        }
        assert!(common::walk(view, &join(&[&node, "0"])).unwrap().is_none());
    }

    fn check_bytes(view: &Arc<View>, path: &str, bytes: &[u8], slices: &[(u16, u16)]) {
        let opened = common::open(view, path).unwrap().unwrap();
        assert_eq!(opened.len(), bytes.len() as u64, "{path}: length");
        for &(start, len) in slices {
            let start = usize::from(start) % (bytes.len() + 1);
            let len = usize::from(len) % (bytes.len() + 2);
            let end = (start + len).min(bytes.len());
            let part = common::read_at(&opened, start as u64, len).unwrap();
            assert_eq!(part, bytes[start..end], "{path}: {start}..{end}");
        }
        let all = common::read(view, path).unwrap().unwrap();
        assert_eq!(all, bytes, "{path}");
    }

    fn check_lines(&self, view: &Arc<View>, path: &str, elements: &[Vec<u8>]) {
        let text = String::from_utf8(common::read(view, path).unwrap().unwrap()).unwrap();
        let lines: Vec<Vec<u8>> = text
            .lines()
            .map(|line| {
                let text: String = serde_json::from_str(line).unwrap();
                match self.item {
                    Type::ByteStrings => STANDARD.decode(text).unwrap(),
                    _ => text.into_bytes(),
                }
            })
            .collect();
        assert_eq!(lines, elements, "{path}");
    }
}
