//! Consolidated metadata in another version: made by walking the nodes below a group, each copy
//! from the node's own documents, as the view shows them.

use std::sync::atomic::Ordering;

use super::View;
use super::folder::Folder;
use super::options::ViewKind;
use super::rights::{is_closed, more_private, not_given};
use super::shown::{Shown, ShownArray};
use crate::error::{Error, FormatError};
use crate::metadata::write;
use crate::metadata::{DocumentName, Target};
use crate::store::{Access, Cursor, Detail, EntryKind, Prefix, Readers};

/// Nodes and directories walked through at most.
const MOST_NODES: usize = 1000;
/// Bytes of copies at most.
const MOST_BYTES: usize = 16 << 20;

/// A key relative to the group, or a path, and a document.
pub(super) type DocumentCopy = (String, Vec<u8>);

impl View {
    /// The documents of the nodes below `group` as consolidated metadata of `target` have them,
    /// by key or path; `None` when there are too many. They are for `audience`: those who may read a
    /// file that is shown so, of those who are among some readers. What fewer may read, and what the
    /// store does not give, is left out and named in the log.
    pub(super) fn copies(
        &self,
        (view, group): (ViewKind, &Prefix),
        target: Target,
        audience: (Access, &Readers),
    ) -> Result<Option<Vec<DocumentCopy>>, Error> {
        let deadline = self.loader.deadline();
        let (mut copies, mut n_nodes, mut n_bytes) = (Vec::new(), 0, 0);
        let mut pending = vec![group.clone()];
        while let Some(path) = pending.pop() {
            n_nodes += 1;
            let late = deadline.check(|| group.to_string()).is_err();
            if late || n_nodes > MOST_NODES || n_bytes > MOST_BYTES {
                if !self.gave_up_walking.swap(true, Ordering::Relaxed) {
                    log::warn!("{group}: too many nodes for consolidated metadata: none is shown");
                }
                return Ok(None);
            }
            let folder = match self.folder(view, &path) {
                Err(Error::Store(error)) if is_closed(&error) => {
                    self.say_not_copied(group, &path, &not_given(&error));
                    continue;
                }
                folder => folder?,
            };
            let Some(name) = group
                .strip(path.as_bytes())
                .or((path == *group).then_some(b""))
            else {
                continue;
            };
            let Ok(name) = str::from_utf8(name) else {
                continue;
            };
            match self.copies_for(&folder, name, target, audience) {
                Err(Error::Store(error)) if is_closed(&error) => {
                    self.say_not_copied(group, &path, &not_given(&error));
                }
                Ok(None) => self.say_not_copied(group, &path, &more_private()),
                Ok(Some(mut found)) => {
                    n_bytes += found.iter().map(|(_, text)| text.len()).sum::<usize>();
                    copies.append(&mut found);
                }
                Err(Error::Metadata { key, error }) => {
                    // Absent from the copy is an error to a reader; a wrong copy would not be.
                    log::debug!("{group}: the copy of {key} is left out: {error}");
                }
                Err(error) => return Err(error),
            }
            match self.children_for(&folder, audience) {
                Err(Error::Store(error)) if is_closed(&error) => {
                    self.say_not_copied(group, &path, &not_given(&error));
                }
                children => pending.extend(children?),
            }
        }
        copies.sort_unstable();
        Ok(Some(copies))
    }

    fn say_not_copied(&self, group: &Prefix, path: &Prefix, reason: &FormatError) {
        self.say_once(&(group, path, "consolidated"), || {
            format!("{group}: {path} is not in the consolidated metadata: {reason}")
        });
    }

    /// As [`View::copies_of`]; `None` when not all of the audience may read them.
    fn copies_for(
        &self,
        folder: &Folder,
        name: &str,
        target: Target,
        (shown, readers): (Access, &Readers),
    ) -> Result<Option<Vec<DocumentCopy>>, Error> {
        let own = self.readers_of_node(&folder.path, &folder.place)?;
        if !own.include(shown, readers) {
            return Ok(None);
        }
        self.copies_of(folder, name, target).map(Some)
    }

    /// The children of a group that all of the audience may list.
    fn children_for(
        &self,
        folder: &Folder,
        (shown, readers): (Access, &Readers),
    ) -> Result<Vec<Prefix>, Error> {
        let mut own = Readers::default();
        self.add_names(&folder.path, &folder.place, &mut own)?;
        if !folder.has_children() || !own.include(shown, readers) {
            return Ok(Vec::new());
        }
        self.children(folder)
    }

    /// The documents of one node, called `name` below the group.
    fn copies_of(
        &self,
        folder: &Folder,
        name: &str,
        target: Target,
    ) -> Result<Vec<DocumentCopy>, Error> {
        use DocumentName::{ZArray, ZAttrs, ZGroup, ZarrJson};
        let documents = match (&folder.shown, target) {
            (Shown::Unusable(_), _) => return Ok(Vec::new()),
            (Shown::Array(array), Target::V3) => {
                vec![(ZarrJson, self.array_document(array, ZarrJson)?)]
            }
            (Shown::Array(array), Target::V2) => vec![
                (ZArray, self.array_document(array, ZArray)?),
                (ZAttrs, self.array_document(array, ZAttrs)?),
            ],
            (Shown::Plain, _) => {
                let attributes = self.group_attributes(&folder.path, &folder.place)?;
                match target {
                    Target::V3 => {
                        let text = write::group_v3(attributes.as_deref(), None);
                        let text = text.map_err(|error| Error::Metadata {
                            key: folder.path.to_string(),
                            error,
                        })?;
                        vec![(ZarrJson, Some(text))]
                    }
                    Target::V2 => vec![
                        (ZGroup, Some(write::group_v2().to_vec())),
                        (ZAttrs, attributes),
                    ],
                }
            }
        };
        let copies = documents.into_iter().filter_map(|(document, text)| {
            let key = match (target, name.is_empty()) {
                // The group's own document is what holds the copies.
                (Target::V3, true) => return None,
                (Target::V3, false) => name.to_owned(),
                (Target::V2, true) => document.as_str().to_owned(),
                (Target::V2, false) => format!("{name}/{}", document.as_str()),
            };
            Some((key, text?))
        });
        Ok(copies.collect())
    }

    /// The document `name` of an array as the view shows it, foreign or not.
    fn array_document(
        &self,
        array: &ShownArray,
        name: DocumentName,
    ) -> Result<Option<Vec<u8>>, Error> {
        if array.foreign.is_some() {
            self.array_text(array, name)
        } else {
            self.own_document(array, name)
        }
    }

    /// The directories of a group.
    fn children(&self, folder: &Folder) -> Result<Vec<Prefix>, Error> {
        let store = self.loader.sources().store();
        let listed = match folder.draft() {
            Some(draft) => draft.children()?,
            None => folder.path.clone(),
        };
        let mut children = Vec::new();
        let Some(mut listing) = store.list(&listed, Cursor::START, Detail::Names)? else {
            return Ok(children);
        };
        while let Some(entry) = listing.next_entry()? {
            if children.len() > MOST_NODES {
                // Too many already.
                break;
            }
            let child = match folder.draft() {
                Some(_) => self.listed_child(folder, &entry)?.map(|(_, child)| child),
                None if entry.kind != EntryKind::Prefix => None,
                None if self.is_hidden_by_control(&folder.path, &entry.name) => None,
                None => Some(folder.path.key(&entry.name)?.to_prefix()),
            };
            children.extend(child);
        }
        Ok(children)
    }
}
