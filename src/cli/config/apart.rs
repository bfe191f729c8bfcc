//! Whether a directory is in another one, by whatever names and links the two were typed.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

/// Whether `inner`, which need not exist yet, is in the directory `outer`, or is that directory.
pub(super) fn is_in(inner: &Path, outer: &Path) -> bool {
    // The file system may be mounted at two places, so that a directory has two paths.
    let identity = |path: &Path| {
        let found = fs::metadata(path).ok()?;
        Some((found.dev(), found.ino()))
    };
    let outer = identity(outer);
    let inner = without_links(inner);
    outer.is_some() && inner.ancestors().any(|path| identity(path) == outer)
}

/// The place of the absolute `path`. Links lead from a name to directories that are elsewhere. A name that does not exist
/// yet is that of a new directory, so that `..` behind it leads back.
fn without_links(path: &Path) -> PathBuf {
    let mut place = PathBuf::new();
    for component in path.components() {
        match component {
            Component::ParentDir => drop(place.pop()),
            Component::CurDir => {}
            Component::Prefix(_) | Component::RootDir | Component::Normal(_) => {
                place.push(component);
                if let Ok(real) = fs::canonicalize(&place) {
                    place = real;
                }
            }
        }
    }
    place
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_are_found_behind_links_and_names_that_are_missing() {
        let root = tempfile::tempdir().unwrap();
        let at = |name: &str| root.path().join(name);
        fs::create_dir_all(at("store/a")).unwrap();
        fs::create_dir(at("other")).unwrap();
        std::os::unix::fs::symlink("store/a", at("link")).unwrap();
        for (inner, expected) in [
            ("store", true),
            ("store/new/newer", true),
            ("link/new", true),
            ("link/../new", true),
            ("new/../store/new", true),
            ("other/../new/.././store", true),
            ("other/new", false),
            ("store/../new", false),
            ("store2", false),
            ("link/../../new", false),
        ] {
            assert_eq!(is_in(&at(inner), &at("store")), expected, "{inner}");
        }
        assert!(!is_in(&at("other"), &at("missing")));
    }
}
