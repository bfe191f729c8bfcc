//! The names that stores in a directory of stores have.

use crate::store::references::is_named_as_set;

/// The ends of the names of zip files: `.ozx` is an OME-Zarr image in one file.
const ZIP_ENDS: [&[u8]; 2] = [b".zip", b".ozx"];
/// The ends of the names of directories that are sets of references in Parquet.
const PARQUET_ENDS: [&[u8]; 2] = [b".parq", b".parquet"];

/// The form that a store has if its name says the truth.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NamedForm {
    /// A zip file.
    Zip,
    /// A file with a set of references in JSON.
    Json,
    /// A directory with a set of references in Parquet.
    Parquet,
}

impl NamedForm {
    /// The form for the name at the end of `path`; `None` for other names.
    pub(super) fn of(path: &[u8]) -> Option<NamedForm> {
        let name = path.rsplit(|&byte| byte == b'/').next()?;
        if ends_as_one(name, &ZIP_ENDS) {
            Some(NamedForm::Zip)
        } else if ends_as_one(name, &PARQUET_ENDS) {
            Some(NamedForm::Parquet)
        } else {
            is_named_as_set(name).then_some(NamedForm::Json)
        }
    }

    /// Whether a store of this form is a file.
    pub(super) fn is_file(self) -> bool {
        self != NamedForm::Parquet
    }
}

/// Whether `name` has one of `ends`, and something before it.
fn ends_as_one(name: &[u8], ends: &[&[u8]]) -> bool {
    ends.iter().any(|end| {
        let at = name.len().checked_sub(end.len()).filter(|&at| at > 0);
        at.and_then(|at| name.get(at..))
            .is_some_and(|found| found.eq_ignore_ascii_case(end))
    })
}

/// Whether the file at `path` may be a store, judging by its name: a zip file, or a set of references in JSON.
pub fn may_be_store_file(path: &[u8]) -> bool {
    NamedForm::of(path).is_some_and(NamedForm::is_file)
}

/// Whether the file at `path` is a zip file, judging by its name.
pub fn is_named_as_zip(path: &[u8]) -> bool {
    NamedForm::of(path) == Some(NamedForm::Zip)
}

/// The lengths of those beginnings of `path` that end in a name that a store may have, and the forms of these
/// names; the shortest first.
pub(super) fn named_forms(path: &[u8]) -> impl Iterator<Item = (usize, NamedForm)> + '_ {
    // Most paths have no name with a dot in it.
    let path = if path.contains(&b'.') { path } else { &[] };
    let ends = (1..=path.len()).filter(|&at| at == path.len() || path.get(at) == Some(&b'/'));
    ends.filter_map(|end| Some((end, NamedForm::of(path.get(..end)?)?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_are_recognized_by_names() {
        for (name, expected) in [
            ("a.zip", Some(NamedForm::Zip)),
            ("a/b.ZIP", Some(NamedForm::Zip)),
            (".a.zip", Some(NamedForm::Zip)),
            ("a.ome.ozx", Some(NamedForm::Zip)),
            ("a/r.json", Some(NamedForm::Json)),
            ("r.json.zst", Some(NamedForm::Json)),
            ("a/zarr.json", None),
            ("attributes.json", None),
            ("r.parq", Some(NamedForm::Parquet)),
            ("r.parquet", Some(NamedForm::Parquet)),
            ("zip", None),
            (".zip", None),
            ("a/.zip", None),
            ("a.zip.txt", None),
            ("", None),
        ] {
            assert_eq!(NamedForm::of(name.as_bytes()), expected, "{name}");
        }
        assert!(is_named_as_zip(b"a.zip") && !is_named_as_zip(b"a.json"));
        assert!(may_be_store_file(b"a.zip") && !may_be_store_file(b"r.parq"));
        let found: Vec<_> = named_forms(b"a.zip/b/r.json").collect();
        assert_eq!(found, [(5, NamedForm::Zip), (14, NamedForm::Json)]);
    }
}
