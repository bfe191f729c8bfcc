//! Steps behind a `|` in a STORE argument. A step says where the store is within the file or repository that is named
//! before the `|`.
//!
//! ```text
//! a.zip|zip:b/c               the directory b/c of a zip file
//! a.zip|zip:b.zip|zip:c       the directory c of a zip file in a zip file
//! repo|icechunk:@tag.v1       a snapshot of a repository
//! ```
//!
//! fsspec spells the first two as chains of URLs, `zip://b/c::a.zip` and `zip://c::zip://b.zip::a.zip`. A file or
//! directory whose own name looks like this is found by that name.
//!
//! Source: ZEP 8, a draft

use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

use super::StoreError;

const ZIP: &[u8] = b"|zip:";
const ICECHUNK: &[u8] = b"|icechunk:";

/// A step, and what it names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step<'a> {
    /// A path in a zip file.
    Zip(&'a [u8]),
    /// The snapshot and the node of an Icechunk repository.
    Icechunk(&'a [u8]),
}

/// The part of `argument` before its last step, and that step; `None` if it has no step.
pub(super) fn split_step(argument: &OsStr) -> Option<(&OsStr, Step<'_>)> {
    let (store, step) = split_step_off(argument)?;
    let step = step.as_bytes();
    let found = match step.strip_prefix(ZIP) {
        Some(path) => Step::Zip(path),
        None => Step::Icechunk(step.strip_prefix(ICECHUNK)?),
    };
    Some((store, found))
}

/// Like `split_step`, but returns the step as it is spelled.
pub fn split_step_off(argument: &OsStr) -> Option<(&OsStr, &OsStr)> {
    let bytes = argument.as_bytes();
    let last = |step: &[u8]| bytes.windows(step.len()).rposition(|part| part == step);
    let at = last(ZIP).max(last(ICECHUNK))?;
    if Path::new(argument).exists() {
        return None;
    }
    let (store, step) = bytes.split_at(at);
    Some((OsStr::from_bytes(store), OsStr::from_bytes(step)))
}

/// `argument` with steps in place of a chain of URLs of zip files.
///
/// # Errors
/// [`StoreError::Unsupported`] for a chain that names no zip file.
pub fn spelled_with_steps(argument: &OsStr) -> Result<Cow<'_, OsStr>, StoreError> {
    let bytes = argument.as_bytes();
    let (path, zip) = if let Some(zip) = bytes.strip_prefix(b"zip::") {
        (b"".as_slice(), zip)
    } else if let Some(rest) = bytes.strip_prefix(b"zip://")
        && let Some(at) = rest.windows(2).position(|part| part == b"::")
    {
        (
            rest.get(..at).unwrap_or_default(),
            rest.get(at + 2..).unwrap_or_default(),
        )
    } else {
        return Ok(Cow::Borrowed(argument));
    };
    if zip.is_empty() {
        return Err(StoreError::Unsupported(
            "zip::: the path or URL of a zip file is missing".to_owned(),
        ));
    }
    let zip = spelled_with_steps(OsStr::from_bytes(zip))?;
    let spelled = [zip.as_bytes(), ZIP, path].concat();
    Ok(Cow::Owned(OsString::from_vec(spelled)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_step_is_split_off() {
        for (argument, expected) in [
            ("a.zip|zip:b/c", Some(("a.zip", Step::Zip(b"b/c")))),
            ("a|zip:b.zip|zip:", Some(("a|zip:b.zip", Step::Zip(b"")))),
            (
                "s3://b/r.zip|zip:r|icechunk:@tag.v1",
                Some(("s3://b/r.zip|zip:r", Step::Icechunk(b"@tag.v1"))),
            ),
            ("a|icechunk:|zip:b", Some(("a|icechunk:", Step::Zip(b"b")))),
            ("a.zip", None),
            ("a|tar:b", None),
        ] {
            let expected = expected.map(|(store, step)| (OsStr::new(store), step));
            assert_eq!(split_step(OsStr::new(argument)), expected, "{argument}");
        }
    }

    #[test]
    fn a_file_of_such_a_name_is_found() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a|zip:b");
        std::fs::write(&path, "").unwrap();
        assert_eq!(split_step(path.as_os_str()), None);
    }

    #[test]
    fn chains_of_zip_files_become_steps() {
        for (chain, expected) in [
            ("zip::https://h/a.zip", "https://h/a.zip|zip:"),
            ("zip://b/c::s3://b/a.zip", "s3://b/a.zip|zip:b/c"),
            ("zip://c::zip://b.zip::/data/a", "/data/a|zip:b.zip|zip:c"),
            ("simplecache::https://h/a", "simplecache::https://h/a"),
            ("zip://a", "zip://a"),
            ("/data/zip::a", "/data/zip::a"),
        ] {
            let spelled = spelled_with_steps(OsStr::new(chain)).unwrap();
            assert_eq!(&*spelled, OsStr::new(expected));
        }
        assert!(spelled_with_steps(OsStr::new("zip://a::")).is_err());
    }
}
