//! Where the hierarchy in a zip file is.

use super::{Cursor, Detail, EntryKind, Prefix, Store, StoreError};

/// A hierarchy of any Zarr version, or of N5, has one of these keys at its root.
const ROOT_KEYS: [&[u8]; 7] = [
    b"zarr.json",
    b".zgroup",
    b".zarray",
    b".zmetadata",
    b"meta",
    b"__zmeta__",
    b"attributes.json",
];

/// The prefix of the hierarchy in a zip file: the root, also where several directories in it hold
/// one; or the only directory that does. `None` if there is no hierarchy.
pub(super) fn find_hierarchy(store: &dyn Store) -> Result<Option<Prefix>, StoreError> {
    let root = Prefix::root();
    if holds_hierarchy(store, &root)? {
        return Ok(Some(root));
    }
    let mut found = None;
    let mut listing = store.list(&root, Cursor::START, Detail::Names)?;
    while let Some(listing) = &mut listing
        && let Some(entry) = listing.next_entry()?
    {
        if entry.kind != EntryKind::Prefix {
            continue;
        }
        let prefix = root.key(&entry.name)?.to_prefix();
        if holds_hierarchy(store, &prefix)? && found.replace(prefix).is_some() {
            return Ok(Some(root));
        }
    }
    Ok(found)
}

fn holds_hierarchy(store: &dyn Store, prefix: &Prefix) -> Result<bool, StoreError> {
    for name in ROOT_KEYS {
        let stat = store.stat(&prefix.key(name)?)?;
        // A directory may have any of these names.
        if stat.is_some_and(|stat| stat.object_meta().is_some()) {
            return Ok(true);
        }
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{Key, MemoryStore};

    #[test]
    fn a_directory_is_no_document() {
        let store = MemoryStore::new();
        for key in ["meta/a.txt", "d/zarr.json"] {
            store.insert(Key::parse(key.as_bytes()).unwrap(), "");
        }
        let found = find_hierarchy(&store).unwrap();
        assert_eq!(found, Some(Prefix::parse(b"d").unwrap()));
    }
}
