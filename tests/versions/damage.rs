//! However the documents of a store are damaged, its views answer, and other arrays keep their values.

use std::fmt;
use std::sync::Arc;

use proptest::prelude::*;
use proptest::sample::Index;
use serde_json::Value;
use zarr_mount::metadata::Target;
use zarr_mount::store::{Detail, Key, MemoryStore};
use zarr_mount::view::{EntrySource, View, ViewKind, VnodeId, VnodeKind};

use super::choices::model;
use super::common;
use super::model::Model;
use super::{VERSIONS, cases, options};

/// The values that replace a value in a document.
const VALUES: [&str; 20] = [
    "null",
    "true",
    "0",
    "-1",
    "1.5",
    "1e400",
    "18446744073709551615",
    "99999999999999999999999",
    "\"\"",
    "\"F\"",
    "\"|O\"",
    "\"<f8\"",
    "\"..\"",
    "[]",
    "[0]",
    "[9223372036854775807]",
    "[[[[]]]]",
    "{}",
    "{\"name\":\"sharding_indexed\"}",
    "[{\"id\":\"zlib\"}]",
];

/// How a document is damaged.
#[derive(Debug, Clone)]
enum Edit {
    /// One value is replaced.
    Value(Index, usize),
    /// One member or item is removed.
    Removed(Index),
    /// Some bytes are replaced.
    Bytes(Index, usize, Vec<u8>),
    /// The rest of the document is removed.
    Cut(Index),
}

fn edit() -> impl Strategy<Value = Edit> {
    let bytes = prop::collection::vec(any::<u8>(), 0..4);
    prop_oneof![
        4 => (any::<Index>(), 0..VALUES.len()).prop_map(|(at, value)| Edit::Value(at, value)),
        2 => any::<Index>().prop_map(Edit::Removed),
        2 => (any::<Index>(), 0..4_usize, bytes)
            .prop_map(|(at, removed, bytes)| Edit::Bytes(at, removed, bytes)),
        1 => any::<Index>().prop_map(Edit::Cut),
    ]
}

impl Edit {
    fn apply(&self, text: &mut Vec<u8>) {
        match self {
            Edit::Bytes(at, removed, bytes) => {
                let at = at.index(text.len() + 1);
                let end = text.len().min(at + removed);
                text.splice(at..end, bytes.iter().copied());
            }
            Edit::Cut(at) => text.truncate(at.index(text.len() + 1)),
            Edit::Value(..) | Edit::Removed(_) => {
                let Ok(mut document) = serde_json::from_slice::<Value>(text) else {
                    return;
                };
                // `serde_json` cannot hold all of the values, so they are inserted as text.
                let mark = "\u{1}";
                let mut left = match self {
                    Edit::Value(at, _) | Edit::Removed(at) => at.index(count(&document)),
                    _ => 0,
                };
                let removed = matches!(self, Edit::Removed(_));
                change(&mut document, &mut left, removed, mark);
                let mut changed = document.to_string();
                if let Edit::Value(_, value) = self {
                    changed = changed.replace("\"\\u0001\"", VALUES[*value]);
                }
                *text = changed.into_bytes();
            }
        }
    }
}

/// The number of values in a document, the document itself included.
fn count(value: &Value) -> usize {
    1 + match value {
        Value::Array(items) => items.iter().map(count).sum(),
        Value::Object(members) => members.values().map(count).sum(),
        _ => 0,
    }
}

/// Changes the value that comes after `left` other values. Returns true if the caller has to remove it.
fn change(value: &mut Value, left: &mut usize, removed: bool, mark: &str) -> bool {
    if *left == 0 {
        *left = usize::MAX;
        if !removed {
            *value = Value::from(mark);
        }
        return removed;
    }
    *left -= 1;
    match value {
        Value::Array(items) => items.retain_mut(|item| !change(item, left, removed, mark)),
        Value::Object(members) => {
            members.retain(|_, member| !change(member, left, removed, mark));
        }
        _ => {}
    }
    false
}

/// Two arrays that have no document above both of them.
#[derive(Debug)]
struct Case {
    damaged: Model,
    /// The documents that replace those of the first array.
    documents: Vec<(String, Text)>,
    sibling: Model,
}

/// Bytes that are mostly text.
struct Text(Vec<u8>);

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0.escape_ascii())
    }
}

fn case() -> impl Strategy<Value = Case> {
    let edits = prop::collection::vec((any::<Index>(), edit()), 1..4);
    (model(&VERSIONS), edits, model(&VERSIONS)).prop_map(|(damaged, edits, sibling)| {
        let base = "damaged";
        let damaged = Model { base, ..damaged };
        let base = "sibling";
        let sibling = Model { base, ..sibling };
        let documents = damaged.documents().into_iter();
        let mut documents: Vec<_> = documents
            .map(|(key, text)| (key, Text(text.into_bytes())))
            .collect();
        for (which, edit) in edits {
            let at = which.index(documents.len());
            edit.apply(&mut documents[at].1.0);
        }
        Case {
            damaged,
            documents,
            sibling,
        }
    })
}

impl Case {
    fn store(&self) -> MemoryStore {
        let store = MemoryStore::new();
        let models = self
            .sibling
            .objects()
            .into_iter()
            .chain(self.damaged.objects());
        let documents = self.documents.iter();
        let documents = documents.map(|(key, text)| (key.clone(), text.0.clone()));
        for (key, bytes) in models.chain(documents) {
            store.insert(Key::parse(key.as_bytes()).unwrap(), bytes);
        }
        store
    }
}

/// Looks up, lists and reads everything. Answers may be errors, which must name a place.
fn look_around(view: &Arc<View>) {
    let mut pending = vec![(String::new(), VnodeId::ROOT)];
    while let Some((path, id)) = pending.pop() {
        let Some(mut directory) = answer(view.open_directory(id)).flatten() else {
            continue;
        };
        let mut seen = 0;
        // A damaged shape may have made the grid large, so its chunks are not listed to the end.
        while let Some(entry) = answer(directory.next_entry(Detail::Attributes)).flatten()
            && seen < 300
        {
            seen += 1;
            let name = String::from_utf8_lossy(&entry.name).into_owned();
            let Some(found) = answer(view.lookup(id, &entry.name)) else {
                continue;
            };
            let found = found.unwrap_or_else(|| panic!("{path}/{name} is listed and not found"));
            if entry.kind == VnodeKind::Directory {
                pending.push((format!("{path}/{name}"), found.id));
            } else if found.attributes.size < 1 << 20
                && let Some(opened) = answer(view.open(found.id)).flatten()
            {
                let size = usize::try_from(opened.attributes.size).unwrap();
                answer(common::read_at(&opened.file, 0, size));
            }
        }
    }
}

fn answer<T>(result: Result<T, zarr_mount::error::Error>) -> Option<T> {
    match result {
        Ok(found) => Some(found),
        Err(error) => {
            let text = error.to_string();
            assert!(
                !text.is_empty() && !text.starts_with(':'),
                "no place: {text}"
            );
            None
        }
    }
}

proptest! {
    #![proptest_config(cases(200))]

    #[test]
    fn a_damaged_document_harms_no_other_array(
        case in case(),
    ) {
        let store = Arc::new(case.store());
        for kind in [ViewKind::Keys, ViewKind::Chunks] {
            for shown_as in [None, Some(Target::V2), Some(Target::V3)] {
                let view = common::view(Arc::clone(&store) as _, options(kind, shown_as));
                look_around(&view);
                match shown_as {
                    None => case.sibling.check_native(&view, kind),
                    Some(target) => case.sibling.check_as(&view, kind, target),
                }
            }
        }
    }
}
