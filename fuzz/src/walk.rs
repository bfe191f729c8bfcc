//! All objects of a store that reads hostile files.

use zarr_mount::store::{Cursor, Detail, EntryKind, Key, ObjectMeta, Prefix, Store};

/// The most names that are looked at.
const MOST_NAMES: usize = 200;

/// Calls `check` with each object that is listed and can be examined. Whatever is listed has to be there.
pub(crate) fn each_object(store: &dyn Store, mut check: impl FnMut(&Key, ObjectMeta)) {
    let mut waiting = vec![Prefix::root()];
    let mut n_names = 0;
    while let Some(prefix) = waiting.pop() {
        let Ok(Some(mut listing)) = store.list(&prefix, Cursor::START, Detail::Attributes) else {
            panic!("{prefix:?} was listed");
        };
        while let Ok(Some(entry)) = listing.next_entry() {
            n_names += 1;
            if n_names > MOST_NAMES {
                return;
            }
            let key = prefix.key(&entry.name).expect("a name is one segment");
            if entry.kind == EntryKind::Prefix {
                waiting.push(key.to_prefix());
                continue;
            }
            let Ok(stat) = store.stat(&key) else { continue };
            let meta = stat.and_then(|stat| stat.object_meta());
            check(&key, meta.expect("it was listed"));
        }
    }
}
