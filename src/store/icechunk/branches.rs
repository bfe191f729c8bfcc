//! Branches and tags, and the snapshots that they stand for.
//!
//! Version 2 of the specification has all of them in one file, `repo`, which is the only one that changes. Version 1
//! has a file for each: `refs/branch.NAME/ref.json` and `refs/tag.NAME/ref.json`. A tag beside which there is a file
//! `ref.json.deleted` is deleted.

use std::sync::Arc;

use bytes::Bytes;
use serde_json::Value;

use super::containers::Containers;
use super::envelope::FileKind;
use super::files::{FetchedFile, RepositoryFiles};
use super::flat::{Flat, Malformed, Record, Records};
use super::object_id::ObjectId;
use super::reference::{Reference, escaped};
use crate::store::{Cursor, Detail, Key, Object, Prefix, StoreError};

/// The file of version 2 that has all branches and tags.
pub(in crate::store) const REPOSITORY: &[u8] = b"repo";

/// The file of version 1 that has the branch of which a repository has always one.
pub(in crate::store) const MAIN_BRANCH: &[u8] = b"refs/branch.main/ref.json";

/// The most names of branches and tags in a message.
const MOST_NAMES: usize = 20;

/// The file that says which snapshot a branch or a tag stands for.
#[derive(Debug, Clone)]
pub(super) enum BranchFile {
    /// The file of version 2, which has all branches and tags.
    Repository(Key),
    /// The file of version 1, which has a single branch or tag.
    Single(Key),
}

/// The snapshot that a branch, a tag or its own name stands for.
#[derive(Debug)]
pub(super) struct NamedSnapshot {
    pub(super) id: ObjectId,
    /// The object that says so; `None` if no file does.
    pub(super) object: Option<Arc<dyn Object>>,
    /// The virtual chunk containers that the repository has now.
    pub(super) containers: Containers,
}

impl NamedSnapshot {
    /// The snapshot `id`, which was named itself.
    pub(super) fn by_itself(id: ObjectId, files: &RepositoryFiles) -> Result<Self, StoreError> {
        let file = BranchFile::of_version_2()?;
        let named = file.read_if_there(files, &Reference::Snapshot(id))?;
        Ok(named.unwrap_or_else(|| NamedSnapshot {
            id,
            object: None,
            containers: Containers::of_version_1(),
        }))
    }
}

impl BranchFile {
    /// The file of version 2.
    pub(super) fn of_version_2() -> Result<BranchFile, StoreError> {
        Key::parse(REPOSITORY).map(BranchFile::Repository)
    }

    /// The file of version 1 for `reference`; `None` for a snapshot, which has none.
    pub(super) fn of_version_1(reference: &Reference) -> Result<Option<BranchFile>, StoreError> {
        let name = match reference {
            Reference::Branch(name) => format!("refs/branch.{name}/ref.json"),
            Reference::Tag(name) => format!("refs/tag.{name}/ref.json"),
            Reference::Snapshot(_) => return Ok(None),
        };
        Key::parse(name.as_bytes()).map(|key| Some(BranchFile::Single(key)))
    }

    pub(super) fn key(&self) -> &Key {
        match self {
            BranchFile::Repository(key) | BranchFile::Single(key) => key,
        }
    }

    /// The version of the specification.
    pub(super) fn specification(&self) -> u8 {
        match self {
            BranchFile::Repository(_) => 2,
            BranchFile::Single(_) => 1,
        }
    }

    /// The snapshot that `reference` stands for.
    pub(super) fn read(
        &self,
        files: &RepositoryFiles,
        reference: &Reference,
    ) -> Result<NamedSnapshot, StoreError> {
        let found = self.read_if_there(files, reference)?;
        found.ok_or_else(|| unknown(files, reference, None))
    }

    /// Like [`BranchFile::read`]; `None` if there is no such file.
    fn read_if_there(
        &self,
        files: &RepositoryFiles,
        reference: &Reference,
    ) -> Result<Option<NamedSnapshot>, StoreError> {
        let key = self.key();
        let Some(FetchedFile { bytes, object }) = files.fetch(key, FileKind::Repository)? else {
            return Ok(None);
        };
        let (id, containers) = match self {
            BranchFile::Repository(key) => {
                let table = files.table(key, &bytes, FileKind::Repository)?;
                match in_repository(&table, reference).map_err(|problem| problem.of(key))? {
                    Some(found) => found,
                    None => return Err(unknown(files, reference, Some(&table))),
                }
            }
            BranchFile::Single(key) => {
                if is_deleted(files, reference)? {
                    return Err(unknown(files, reference, None));
                }
                let id = in_json(&bytes).map_err(|problem| problem.of(key))?;
                (id, Containers::of_version_1())
            }
        };
        Ok(Some(NamedSnapshot {
            id,
            object: Some(object),
            containers,
        }))
    }
}

/// The snapshot in a `ref.json`.
pub(super) fn in_json(file: &[u8]) -> Flat<ObjectId> {
    let document: Value =
        serde_json::from_slice(file).map_err(|error| Malformed(error.to_string()))?;
    let snapshot = document.get("snapshot").and_then(Value::as_str);
    let id = snapshot.and_then(ObjectId::parse);
    id.ok_or_else(|| Malformed("it has no `snapshot` of 20 characters".to_owned()))
}

/// Whether a tag of version 1 was deleted.
fn is_deleted(files: &RepositoryFiles, reference: &Reference) -> Result<bool, StoreError> {
    let Reference::Tag(name) = reference else {
        return Ok(false);
    };
    let key = Key::parse(format!("refs/tag.{name}/ref.json.deleted").as_bytes())?;
    Ok(files.store.stat_object(&key)?.is_some())
}

/// The snapshot of `reference` in the file of version 2, and the containers. Checks that the repository may be read.
fn in_repository(table: &Bytes, reference: &Reference) -> Flat<Option<(ObjectId, Containers)>> {
    let root = Record::root(table)?;
    let status = root.required_record(5)?;
    if status.u8(0)? == 2 {
        let reason = status.text(2)?.unwrap_or("no reason is given");
        return Err(Malformed(format!("the repository is offline: {reason}")));
    }
    let containers = Containers::of_configuration(root.bytes(9)?);
    let (list, name) = match reference {
        Reference::Branch(name) => (root.required_records(2)?, name),
        Reference::Tag(name) => (root.required_records(1)?, name),
        Reference::Snapshot(id) => return Ok(Some((*id, containers))),
    };
    for named in list.iter() {
        let named = named?;
        if named.required_text(0)? != name {
            continue;
        }
        let at = usize::try_from(named.u32(1)?).unwrap_or(usize::MAX);
        let snapshots = root.required_records(4)?;
        if at >= snapshots.len() {
            return Err(Malformed(format!(
                "the {reference} stands for snapshot number {at} of {}",
                snapshots.len()
            )));
        }
        let id = ObjectId(snapshots.get(at)?.required_fixed(0)?);
        return Ok(Some((id, containers)));
    }
    Ok(None)
}

/// The error for a name that the repository does not have. It lists those that it has.
pub(super) fn unknown(
    files: &RepositoryFiles,
    reference: &Reference,
    table: Option<&Bytes>,
) -> StoreError {
    let names = match table {
        Some(table) => names_in_repository(table).unwrap_or_default(),
        None => names_in_files(files).unwrap_or_default(),
    };
    let mut parts = vec![format!("the repository has no {reference}")];
    for (kind, mut names) in [("branches", names.0), ("tags", names.1)] {
        if names.is_empty() {
            continue;
        }
        let others = names.len().saturating_sub(MOST_NAMES);
        names.sort_unstable();
        names.truncate(MOST_NAMES);
        let more = match others {
            0 => String::new(),
            others => format!(" and {others} more"),
        };
        let names: Vec<_> = names.iter().map(|name| escaped(name).to_string()).collect();
        parts.push(format!("its {kind} are {}{more}", names.join(", ")));
    }
    StoreError::Unsupported(parts.join("; "))
}

/// The names of branches, and those of tags.
type Names = (Vec<String>, Vec<String>);

fn names_in_repository(table: &Bytes) -> Flat<Names> {
    let root = Record::root(table)?;
    let names = |list: Records<'_>| {
        let names = list.iter().map(|named| named?.required_text(0));
        names
            .map(|name| name.map(str::to_owned))
            .collect::<Flat<Vec<_>>>()
    };
    Ok((
        names(root.required_records(2)?)?,
        names(root.required_records(1)?)?,
    ))
}

fn names_in_files(files: &RepositoryFiles) -> Result<Names, StoreError> {
    let mut names = Names::default();
    let refs = Prefix::parse(b"refs")?;
    let mut listing = files.store.list(&refs, Cursor::START, Detail::Names)?;
    while let Some(listing) = &mut listing
        && let Some(entry) = listing.next_entry()?
    {
        let Ok(name) = String::from_utf8(entry.name) else {
            continue;
        };
        if let Some(branch) = name.strip_prefix("branch.") {
            names.0.push(branch.to_owned());
        } else if let Some(tag) = name.strip_prefix("tag.")
            && !is_deleted(files, &Reference::Tag(tag.to_owned()))?
        {
            names.1.push(tag.to_owned());
        }
    }
    Ok(names)
}
