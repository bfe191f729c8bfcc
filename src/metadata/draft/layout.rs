//! The layout of keys in a draft's hierarchy: the conversion of paths of nodes to keys, which are
//! relative to the root of the hierarchy, and back.
//!
//! | path | array document | chunks | in the text of December 2022 | |
//! |---|---|---|---|---|
//! | `a/b` | `meta/root/a/b.array.json` | `data/root/a/b` | `meta/a/b.array.json` | `data/a/b` |
//! | the root | `meta/root.array.json` | `data/root` | `meta/array.json` | `data` |
//!
//! The document of a group ends in `.group.json`. The children of a node are in a directory with
//! the name of the node's document without its ending.

/// The draft that a document follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Generation {
    /// 2019: documents without a suffix, chunk keys without a `c`.
    Early,
    /// 2020 to 2022, "protocol", which zarr-python 2, zarrita, xtensor-zarr and GDAL write.
    Protocol,
    /// December 2022, "core".
    Core,
}

/// The layout of the keys of a hierarchy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DraftLayout {
    is_flat: bool,
    suffix: String,
}

const ARRAY: &str = "array";
const GROUP: &str = "group";

impl DraftLayout {
    /// The layout of keys without (`is_flat`) or with a segment `root`, and of documents whose
    /// names end in `suffix`.
    pub(super) fn new(is_flat: bool, suffix: String) -> DraftLayout {
        DraftLayout { is_flat, suffix }
    }

    /// The layouts that hierarchies have, where the document of the root does not say which.
    pub fn usual() -> [DraftLayout; 3] {
        [(false, ".json"), (true, ".json"), (false, "")]
            .map(|(is_flat, suffix)| DraftLayout::new(is_flat, suffix.to_owned()))
    }

    /// The same layout, with the segment `root` in keys unless it `is_flat`.
    #[must_use]
    pub fn with_flatness(self, is_flat: bool) -> DraftLayout {
        DraftLayout { is_flat, ..self }
    }

    /// Whether keys have no segment `root`.
    pub fn is_flat(&self) -> bool {
        self.is_flat
    }

    /// The draft that documents of this layout follow.
    pub fn generation(&self) -> Generation {
        match (self.is_flat, self.suffix.is_empty()) {
            (true, _) => Generation::Core,
            (false, false) => Generation::Protocol,
            (false, true) => Generation::Early,
        }
    }

    /// The key of the document of the array at `path` ("" is the root).
    pub fn array_document(&self, path: &[u8]) -> Vec<u8> {
        self.document(path, ARRAY)
    }

    /// The key of the document of the group at `path`.
    pub fn group_document(&self, path: &[u8]) -> Vec<u8> {
        self.document(path, GROUP)
    }

    fn document(&self, path: &[u8], kind: &str) -> Vec<u8> {
        let mut key = self.children(path);
        key.push(if self.is_flat && path.is_empty() {
            b'/'
        } else {
            b'.'
        });
        key.extend_from_slice(kind.as_bytes());
        key.extend_from_slice(self.suffix.as_bytes());
        key
    }

    /// Whether the entry `name` of `meta` is the document of the root in a layout without the
    /// segment `root`.
    pub fn is_flat_document_of_root(&self, name: &[u8]) -> bool {
        let stem = name.strip_suffix(self.suffix.as_bytes());
        [ARRAY, GROUP]
            .iter()
            .any(|kind| stem == Some(kind.as_bytes()))
    }

    /// The prefix of the documents of the children of the node at `path`.
    pub fn children(&self, path: &[u8]) -> Vec<u8> {
        self.below(b"meta", path)
    }

    /// The prefix of the chunks of the array at `path`.
    pub fn data(&self, path: &[u8]) -> Vec<u8> {
        self.below(b"data", path)
    }

    fn below(&self, top: &[u8], path: &[u8]) -> Vec<u8> {
        let root: &[u8] = if self.is_flat { b"" } else { b"root" };
        let segments = [top, root, path];
        let present: Vec<&[u8]> = segments.into_iter().filter(|s| !s.is_empty()).collect();
        present.join(&b'/')
    }

    /// The path of the array whose chunks have the prefix `key`: the inverse of
    /// [`DraftLayout::data`].
    pub fn path_of_data<'k>(&self, key: &'k [u8]) -> Option<&'k [u8]> {
        self.path_below(b"data", key)
    }

    fn path_below<'k>(&self, top: &[u8], key: &'k [u8]) -> Option<&'k [u8]> {
        let mut rest = below(key, top)?;
        if !self.is_flat {
            rest = below(rest, b"root")?;
        }
        Some(rest)
    }

    /// The path of the array whose document has the key `key`: the inverse of
    /// [`DraftLayout::array_document`].
    pub fn path_of_array_document<'k>(&self, key: &'k [u8]) -> Option<&'k [u8]> {
        let stem = key.strip_suffix(self.suffix.as_bytes())?;
        if self.is_flat && stem == b"meta/array" {
            return stem.get(..0);
        }
        let stem = stem.strip_suffix(ARRAY.as_bytes())?.strip_suffix(b".")?;
        if stem.is_empty() || stem.ends_with(b"/") {
            return None;
        }
        self.path_below(b"meta", stem)
    }

    /// The child whose document is the entry `name` of [`DraftLayout::children`]. An entry with
    /// another name is a child only where it is a directory.
    pub fn child<'n>(&self, name: &'n [u8]) -> Option<&'n [u8]> {
        let stem = name.strip_suffix(self.suffix.as_bytes())?;
        let stem = [ARRAY, GROUP]
            .iter()
            .find_map(|kind| stem.strip_suffix(kind.as_bytes()));
        stem?.strip_suffix(b".").filter(|child| !child.is_empty())
    }
}

/// The rest of `key` after its first segment, which must be `top`; "" when there is no rest.
fn below<'k>(key: &'k [u8], top: &[u8]) -> Option<&'k [u8]> {
    let rest = key.strip_prefix(top)?;
    if rest.is_empty() {
        return Some(rest);
    }
    rest.strip_prefix(b"/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_and_paths_are_inverse() {
        let rooted = DraftLayout::new(false, ".json".to_owned());
        let flat = DraftLayout::new(true, ".json".to_owned());
        let early = DraftLayout::new(false, String::new());
        for (layout, path, array, group, data) in [
            (
                &rooted,
                "a/b",
                "meta/root/a/b.array.json",
                "meta/root/a/b.group.json",
                "data/root/a/b",
            ),
            (
                &rooted,
                "",
                "meta/root.array.json",
                "meta/root.group.json",
                "data/root",
            ),
            (
                &flat,
                "a/b",
                "meta/a/b.array.json",
                "meta/a/b.group.json",
                "data/a/b",
            ),
            (&flat, "", "meta/array.json", "meta/group.json", "data"),
            (
                &early,
                "a",
                "meta/root/a.array",
                "meta/root/a.group",
                "data/root/a",
            ),
        ] {
            let path = path.as_bytes();
            assert_eq!(layout.array_document(path), array.as_bytes());
            assert_eq!(layout.group_document(path), group.as_bytes());
            assert_eq!(layout.data(path), data.as_bytes());
            assert_eq!(layout.path_of_data(data.as_bytes()), Some(path));
            let found = layout.path_of_array_document(array.as_bytes());
            assert_eq!(found, Some(path), "{array}");
            assert_eq!(layout.path_of_array_document(group.as_bytes()), None);
        }
    }

    #[test]
    fn other_keys_are_of_no_node() {
        let rooted = DraftLayout::new(false, ".json".to_owned());
        let flat = DraftLayout::new(true, ".json".to_owned());
        for key in ["data", "data/rootx/a", "meta/root/a", "dat/root"] {
            assert_eq!(rooted.path_of_data(key.as_bytes()), None, "{key}");
        }
        for key in [
            "meta/root/.array.json",
            "meta/.array.json",
            "meta/a.array",
            "meta/root/a/array.json",
        ] {
            assert_eq!(rooted.path_of_array_document(key.as_bytes()), None, "{key}");
            assert_eq!(flat.path_of_array_document(key.as_bytes()), None, "{key}");
        }
    }

    #[test]
    fn names_of_documents_are_names_of_children() {
        let layout = DraftLayout::new(true, ".json".to_owned());
        for (name, child) in [
            ("a.array.json", Some("a")),
            ("a.b.group.json", Some("a.b")),
            ("array.json", None),
            (".array.json", None),
            ("a.json", None),
            ("a", None),
        ] {
            assert_eq!(
                layout.child(name.as_bytes()),
                child.map(str::as_bytes),
                "{name}"
            );
        }
    }
}
