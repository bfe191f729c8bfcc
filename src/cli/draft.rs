//! Detects a STORE inside a hierarchy of the v3 draft, which cannot be mounted in parts.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use crate::metadata::draft::parse_entry;

/// Most bytes of an entry document that are read.
const MOST_BYTES: u64 = 64 << 10;

/// The root of the v3 draft's hierarchy that contains the directory `store` in its `meta` or
/// `data`.
pub(super) fn root_around(store: &Path) -> Option<PathBuf> {
    let store = store.canonicalize().ok()?;
    let inside = store.ancestors().find(|directory| {
        let name = directory.file_name();
        name.is_some_and(|name| name == "meta" || name == "data") && has_entry(directory)
    })?;
    inside.parent().map(Path::to_path_buf)
}

/// Whether there is a draft's entry document beside `directory`.
fn has_entry(directory: &Path) -> bool {
    let mut text = Vec::new();
    let read = File::open(directory.with_file_name("zarr.json"))
        .and_then(|file| file.take(MOST_BYTES).read_to_end(&mut text));
    read.is_ok() && matches!(parse_entry(&text), Ok(Some(_)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_drafts_root_is_found_from_within() {
        let root = tempfile::tempdir().unwrap();
        let data = root.path().join("data/root/a");
        fs::create_dir_all(&data).unwrap();
        fs::write(root.path().join("zarr.json"), r#"{"zarr_format": 3}"#).unwrap();
        assert_eq!(root_around(&data), None);
        let entry = r#"{"zarr_format": "https://purl.org/zarr/spec/protocol/core/3.0",
            "metadata_encoding": "https://purl.org/zarr/spec/protocol/core/3.0",
            "metadata_key_suffix": ".json", "extensions": []}"#;
        fs::write(root.path().join("zarr.json"), entry).unwrap();
        let found = root_around(&data).unwrap();
        assert_eq!(found, root.path().canonicalize().unwrap());
        assert_eq!(root_around(root.path()), None);
    }
}
