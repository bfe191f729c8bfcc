//! The end of a STORE argument that names the format of the nodes: `cells.n5|n5:c0/s0`.
//!
//! Other programs spell a place in this way (ZEP 8). It is the place `cells.n5/c0/s0`, where documents of other formats
//! are not looked at.

use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

use crate::metadata::ZarrFormat;
use crate::store::is_named_as_zip;

/// The separators before the path of a node, and the formats that they name.
const STEPS: [(&[u8], ZarrFormat); 3] = [
    (b"|n5:", ZarrFormat::N5),
    (b"|zarr2:", ZarrFormat::V2),
    (b"|zarr3:", ZarrFormat::V3),
];

/// The place that `typed` names, and the format of its nodes if it names that too. If a file or directory has the whole
/// of `typed` as its name, `typed` is the place.
pub(super) fn split(typed: &OsStr) -> (Cow<'_, OsStr>, Option<ZarrFormat>) {
    let found = STEPS.into_iter().filter_map(|(step, format)| {
        let bytes = typed.as_bytes();
        let at = bytes.windows(step.len()).rposition(|part| part == step)?;
        let (store, path) = (bytes.get(..at)?, bytes.get(at + step.len()..)?);
        Some((at, joined(store, path), format))
    });
    match found.max_by_key(|(at, ..)| *at) {
        Some((_, place, format)) if !Path::new(typed).exists() => {
            (Cow::Owned(OsString::from_vec(place)), Some(format))
        }
        _ => (Cow::Borrowed(typed), None),
    }
}

/// The node at `path` in `store`, which may be a zip file, or itself end with a step, as `a.zip|zip:` does.
fn joined(store: &[u8], path: &[u8]) -> Vec<u8> {
    let is_zip = is_named_as_zip(store) && !store.contains(&b'|');
    let store = store.strip_suffix(b"/").unwrap_or(store);
    let path = path.strip_prefix(b"/").unwrap_or(path);
    let is_step = store.contains(&b'|') && store.ends_with(b":");
    let separator: &[u8] = if path.is_empty() || is_step {
        b""
    } else if is_zip && !Path::new(OsStr::from_bytes(store)).is_dir() {
        b"|zip:"
    } else {
        b"/"
    };
    [store, separator, path].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_step_names_the_format() {
        let (n5, v2, v3) = (
            Some(ZarrFormat::N5),
            Some(ZarrFormat::V2),
            Some(ZarrFormat::V3),
        );
        for (typed, place, format) in [
            ("https://host/a.n5|n5:c0/s0", "https://host/a.n5/c0/s0", n5),
            ("s3://bucket/a.n5/|n5:/c0", "s3://bucket/a.n5/c0", n5),
            ("a.n5|n5:", "a.n5", n5),
            ("a|n5:b|zarr2:c", "a|n5:b/c", v2),
            ("https://host/a.zip|n5:c", "https://host/a.zip|zip:c", n5),
            ("a.ozx|zarr3:", "a.ozx", v3),
            ("a.zip/|zarr3:c", "a.zip/c", v3),
            ("a.zip|zip:|zarr3:c", "a.zip|zip:c", v3),
            ("a.zip|zip:b|zarr3:c", "a.zip|zip:b/c", v3),
            ("a.n5", "a.n5", None),
            ("a|zip:b", "a|zip:b", None),
        ] {
            let (found, found_format) = split(OsStr::new(typed));
            assert_eq!((&*found, found_format), (OsStr::new(place), format));
        }
    }

    #[test]
    fn a_directory_of_such_a_name_is_found() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a|n5:b");
        std::fs::create_dir(&path).unwrap();
        assert_eq!(split(path.as_os_str()), (path.as_os_str().into(), None));
    }
}
