//! The likely contents of a directory in which no Zarr node is found.
//!
//! A bounded number of names is examined, in the directory itself and then in directories among them, and the first
//! bytes of a few files.

use crate::store::{Cursor, Detail, EntryKind, Key, Prefix, Store};

/// The most names of one directory that are examined.
const MOST_NAMES: usize = 256;
/// The most directories in the directory that are examined.
const MOST_DIRECTORIES: usize = 16;
/// The most files of one directory of which the first bytes are read.
const MOST_FILES: usize = 16;
/// Enough for the members that show the kind of a JSON document.
const HEAD_BYTES: u64 = 4096;

/// The names in a directory.
#[derive(Default)]
struct Names {
    files: Vec<Vec<u8>>,
    directories: Vec<Vec<u8>>,
}

/// The end of a sentence about a directory in which no Zarr node was found: its likely contents, if they are known.
pub(super) fn hint(store: &dyn Store) -> String {
    appearance(store).map_or_else(String::new, |found| format!("; it looks like {found}"))
}

/// Whether the root of `store` is an Icechunk repository, which writing Zarr would damage.
pub(super) fn is_icechunk(store: &dyn Store) -> bool {
    Names::of(store, &Prefix::root()).is_icechunk()
}

/// The likely contents of the root of `store`, as the end of a sentence that begins with "it looks like"; `None` if
/// they are unknown, or cannot be read.
fn appearance(store: &dyn Store) -> Option<String> {
    let root = Prefix::root();
    let names = Names::of(store, &root);
    if let Some(found) = of_directory(store, &root, &names) {
        return Some(found.to_owned());
    }
    let directories = names.directories.iter().take(MOST_DIRECTORIES);
    let children = directories.filter_map(|name| Some(root.key(name).ok()?.to_prefix()));
    for child in children {
        if let Some(found) = of_directory(store, &child, &Names::of(store, &child)) {
            return Some(format!(
                "a directory that holds others, of which {child} is {found}"
            ));
        }
    }
    None
}

fn of_directory(store: &dyn Store, prefix: &Prefix, names: &Names) -> Option<&'static str> {
    if names.is_icechunk() {
        return Some("an Icechunk repository: give it as STORE by itself");
    }
    if names.files.iter().any(|name| is_reference_table(name)) {
        return Some(REFERENCES);
    }
    let files = names.files.iter().take(MOST_FILES);
    let mut heads = files.filter_map(|name| {
        let head = head(store, &prefix.key(name).ok()?, HEAD_BYTES)?;
        of_file(name, &head)
    });
    heads.next()
}

const REFERENCES: &str = "references to chunks in other files (kerchunk, VirtualiZarr): name the set as STORE, or mount with --view \
     chunks or --view arrays";

/// Whether a file of this name belongs to references in Parquet.
fn is_reference_table(name: &[u8]) -> bool {
    name.starts_with(b"refs.") && (name.ends_with(b".parq") || name.ends_with(b".parquet"))
}

/// The likely kind of a file that begins with `head`.
fn of_file(name: &[u8], head: &[u8]) -> Option<&'static str> {
    let is_references = || {
        let text = String::from_utf8_lossy(head);
        name.ends_with(b".json")
            && (text.contains("\"refs\"")
                || [".zgroup", ".zarray", "zarr.json", ".zattrs"]
                    .iter()
                    .any(|key| text.contains(&format!("{key}\""))))
    };
    Some(match head {
        [0x89, b'H', b'D', b'F', b'\r', b'\n', 0x1a, b'\n', ..] => {
            "HDF5 or NetCDF-4 files: convert them to Zarr, or open them with h5py"
        }
        [b'C', b'D', b'F', 1 | 2 | 5, ..] => "NetCDF files: convert them to Zarr",
        [b'P', b'K', 3, 4, ..] | [b'P', b'K', 5, 6, ..] => {
            "zip files: name the one that holds a Zarr hierarchy as STORE, or, for a directory of \
             several, mount with --view chunks or --view arrays"
        }
        _ if is_references() => REFERENCES,
        _ => return None,
    })
}

/// The first bytes of the object at `key`, up to `most`.
fn head(store: &dyn Store, key: &Key, most: u64) -> Option<Vec<u8>> {
    let object = store.open(key).ok()??;
    let len = usize::try_from(object.meta().size().min(most)).ok()?;
    let mut head = vec![0; len];
    object.read_at(0, &mut head).ok()?;
    Some(head)
}

impl Names {
    fn is_icechunk(&self) -> bool {
        let is_there =
            |wanted: &str| (self.directories.iter()).any(|name| name == wanted.as_bytes());
        let has_repository = self.files.iter().any(|name| name == b"repo");
        is_there("snapshots") && is_there("manifests") && (is_there("refs") || has_repository)
    }

    fn of(store: &dyn Store, prefix: &Prefix) -> Names {
        let mut names = Names::default();
        let listing = store.list(prefix, Cursor::START, Detail::Names);
        let Ok(Some(mut listing)) = listing else {
            return names;
        };
        for _ in 0..MOST_NAMES {
            let Ok(Some(entry)) = listing.next_entry() else {
                break;
            };
            match entry.kind {
                EntryKind::Object => names.files.push(entry.name),
                EntryKind::Prefix => names.directories.push(entry.name),
                EntryKind::Unreadable => {}
            }
        }
        names
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::MemoryStore;

    /// Keys and their bytes.
    type Objects<'a> = &'a [(&'a str, &'a [u8])];

    fn found(objects: Objects<'_>) -> Option<String> {
        let store = MemoryStore::new();
        for (key, bytes) in objects {
            store.insert(Key::parse(key.as_bytes()).unwrap(), bytes.to_vec());
        }
        appearance(&store)
    }

    #[test]
    fn directories_of_other_formats_are_named() {
        let cases: [(Objects<'_>, &str); 7] = [
            (
                &[("refs/b", b""), ("snapshots/a", b""), ("manifests/a", b"")],
                "Icechunk",
            ),
            (
                &[("repo", b""), ("snapshots/a", b""), ("manifests/a", b"")],
                "Icechunk",
            ),
            (&[("a.h5", b"\x89HDF\r\n\x1a\n.....")], "HDF5"),
            (&[("t/a.nc", b"CDF\x01....")], "t is NetCDF files"),
            (&[("a.zip", b"PK\x03\x04....")], "zip files"),
            (&[("r.json", br#"{"version": 1, "refs": {}}"#)], "kerchunk"),
            (&[("a.parq/refs.0.parq", b"")], "kerchunk"),
        ];
        for (objects, expected) in cases {
            let found = found(objects).unwrap_or_default();
            assert!(found.contains(expected), "{objects:?}: {found}");
        }
    }

    #[test]
    fn other_directories_look_like_nothing() {
        let cases: [Objects<'_>; 3] = [
            &[],
            &[("notes.json", b"{}")],
            &[("refs/a", b""), ("PK", b"PK")],
        ];
        for objects in cases {
            assert_eq!(found(objects), None);
        }
    }
}
