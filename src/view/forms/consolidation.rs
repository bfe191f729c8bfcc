//! Consolidated metadata of a group that is shown in another Zarr version. What is written to it is a
//! wish to have it: the copies are those of the documents that the store has.

use std::collections::BTreeSet;

use super::objects::read_object;
use crate::error::{Error, FormatError};
use crate::files::ObjectChange;
use crate::metadata::carry::with_member;
use crate::metadata::consolidated::{copies_v2, copies_v3, is_inline};
use crate::metadata::translate::NodeDocuments;
use crate::metadata::{DocumentName, ZarrFormat, write};
use crate::store::{DirWriter, Prefix};

/// What is wished of consolidated metadata.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Wish {
    /// Copies of the documents of the nodes at these paths, which are relative to the group.
    Have(BTreeSet<String>),
    /// None.
    Drop,
}

impl Wish {
    /// What is wished by who has `written` a document in the place of the one `before`; `None` where
    /// consolidated metadata is not concerned.
    pub(super) fn of(
        (name, written): (DocumentName, &[u8]),
        before: Option<&[u8]>,
    ) -> Result<Option<Wish>, FormatError> {
        let copies = match name {
            DocumentName::ZMetadata => copies_v2(written)?.ok_or_else(|| {
                let problem = "there is no consolidated metadata of version 1 in it";
                FormatError::document("zarr_consolidated_format", problem)
            })?,
            DocumentName::ZarrJson if is_inline(written) => copies_v3(written)?.unwrap_or_default(),
            DocumentName::ZarrJson if before.is_some_and(is_inline) => return Ok(Some(Wish::Drop)),
            _ => return Ok(None),
        };
        let path = |key: &str| key.rsplit_once('/').map_or("", |(path, _)| path).to_owned();
        let paths = copies.iter().map(|copy| path(&copy.key)).collect();
        Ok(Some(Wish::Have(paths)))
    }
}

/// Puts into `new`, the documents of a group of the version `format`, what is wished of consolidated
/// metadata, or returns the change of the object that has it.
pub(super) fn consolidate(
    (writer, group): (&DirWriter, &Prefix),
    format: ZarrFormat,
    wish: &Wish,
    new: &mut NodeDocuments,
) -> Result<Option<ObjectChange>, Error> {
    let refused = |error| Error::unacceptable(group, error);
    if format == ZarrFormat::V3 {
        let copies = match wish {
            Wish::Drop => None,
            Wish::Have(paths) => {
                let copies = copies_of((writer, group), paths, &[DocumentName::ZarrJson], None)?;
                let copies = copies.into_iter().filter_map(|(key, text)| {
                    let path = key.strip_suffix("/zarr.json")?.to_owned();
                    Some((path, text))
                });
                let copies: Vec<_> = copies.collect();
                Some(write::consolidated_v3(&copies).map_err(refused)?)
            }
        };
        let document = with_member(&new.document, "consolidated_metadata", copies.as_deref());
        new.document = document.map_err(refused)?;
        return Ok(None);
    }
    let name = DocumentName::ZMetadata.as_str().as_bytes();
    let old = read_object(writer, group.key(name)?)?;
    Ok(match wish {
        Wish::Drop => old.changed(None),
        Wish::Have(paths) => {
            const NAMES: [DocumentName; 3] = [
                DocumentName::ZArray,
                DocumentName::ZAttrs,
                DocumentName::ZGroup,
            ];
            let copies = copies_of((writer, group), paths, &NAMES, Some(new))?;
            let text = write::consolidated_v2(&copies).map_err(refused)?;
            old.changed(Some(text))
        }
    })
}

/// The documents called `names` of the nodes at `paths`, with their keys; those of the group itself
/// as `new` has them.
fn copies_of(
    (writer, group): (&DirWriter, &Prefix),
    paths: &BTreeSet<String>,
    names: &[DocumentName],
    new: Option<&NodeDocuments>,
) -> Result<Vec<(String, Vec<u8>)>, Error> {
    let mut copies = Vec::new();
    if let Some(new) = new {
        let name = |name: DocumentName| name.as_str().to_owned();
        if let Some(attributes) = &new.attributes {
            copies.push((name(DocumentName::ZAttrs), attributes.clone()));
        }
        copies.push((name(DocumentName::ZGroup), new.document.clone()));
    }
    for path in paths.iter().filter(|path| !path.is_empty()) {
        for name in names {
            let relative = format!("{path}/{}", name.as_str());
            let Ok(key) = group.key(relative.as_bytes()) else {
                continue;
            };
            if let Some(bytes) = read_object(writer, key)?.bytes {
                copies.push((relative, bytes));
            }
        }
    }
    Ok(copies)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wish_is_found_in_documents() {
        let paths = |paths: &[&str]| Wish::Have(paths.iter().map(ToString::to_string).collect());
        let v2 =
            br#"{"zarr_consolidated_format": 1, "metadata": {".zgroup": {}, "g/a/.zarray": {}}}"#;
        let v3 = br#"{"consolidated_metadata": {"kind": "inline", "metadata": {"g/a": {}}}}"#;
        let of = |name, written: &[u8], before: Option<&[u8]>| Wish::of((name, written), before);
        let found = of(DocumentName::ZMetadata, v2, None).unwrap();
        assert_eq!(found, Some(paths(&["", "g/a"])));
        let found = of(DocumentName::ZarrJson, v3, None).unwrap();
        assert_eq!(found, Some(paths(&["g/a"])));
        let found = of(DocumentName::ZarrJson, b"{}", Some(v3)).unwrap();
        assert_eq!(found, Some(Wish::Drop));
        assert_eq!(
            of(DocumentName::ZarrJson, b"{}", Some(b"{}")).unwrap(),
            None
        );
        assert!(of(DocumentName::ZMetadata, b"{}", None).is_err());
    }
}
