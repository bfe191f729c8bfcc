//! The documents of all nodes below a group.

use crate::error::Error;
use crate::hierarchy::Node;
use crate::metadata::DocumentName;
use crate::store::{Cursor, Detail, EntryKind, Key, Prefix, StoreError};
use crate::view::rights::is_refused;
use crate::view::tree::Tree;
use crate::view::vnode::CONTROL;

/// The keys at which documents may be.
#[derive(Debug, Default)]
pub(super) struct DocumentsBelow {
    /// The keys. The document of an array may be absent: its directory, which may have many chunks, is not listed.
    pub(super) keys: Vec<Key>,
    /// Directories that the store refuses to list.
    pub(super) refused: Vec<(Prefix, StoreError)>,
}

impl Tree {
    /// The documents at `prefix` and below it, other than consolidated metadata.
    pub(super) fn documents_below(&self, prefix: &Prefix) -> Result<DocumentsBelow, Error> {
        let (mut found, mut left) = (DocumentsBelow::default(), vec![prefix.clone()]);
        while let Some(prefix) = left.pop() {
            let node = self.hierarchy.node(&prefix);
            let may_have_nodes = node.map(|node| match node {
                Node::Group(_) | Node::Implicit => true,
                Node::Array(_) => false,
                Node::Broken(broken) => broken.kind.may_have_nodes(),
            });
            let looked = match may_have_nodes {
                Ok(true) => self.list_documents(&prefix, &mut found.keys, &mut left),
                Ok(false) => {
                    let names = DocumentName::ALL;
                    let names = names.into_iter().filter(|name| is_of_one_node(*name));
                    let keys = names.map(|name| prefix.key(name.as_str().as_bytes()));
                    found.keys.extend(keys.collect::<Result<Vec<_>, _>>()?);
                    Ok(())
                }
                Err(error) => Err(error),
            };
            match looked {
                Err(Error::Store(error)) if is_refused(&error) => {
                    found.refused.push((prefix, error));
                }
                looked => looked?,
            }
        }
        Ok(found)
    }

    /// Adds the documents in the directory `prefix` to `keys`, and the directories in it to `left`.
    fn list_documents(
        &self,
        prefix: &Prefix,
        keys: &mut Vec<Key>,
        left: &mut Vec<Prefix>,
    ) -> Result<(), Error> {
        let Some(mut listing) = self.store().list(prefix, Cursor::START, Detail::Names)? else {
            return Ok(());
        };
        while let Some(entry) = listing.next_entry()? {
            match (entry.kind, DocumentName::of(&entry.name)) {
                (EntryKind::Object, Some(name)) if is_of_one_node(name) => {
                    keys.push(prefix.key(&entry.name)?);
                }
                (EntryKind::Prefix, _) if entry.name != CONTROL => {
                    left.push(prefix.key(&entry.name)?.to_prefix());
                }
                _ => {}
            }
        }
        Ok(())
    }
}

fn is_of_one_node(name: DocumentName) -> bool {
    name != DocumentName::ZMetadata
}
