//! Nodes of N5, whose one document is `attributes.json`.
//!
//! ```text
//! R/attributes.json     {"n5": "4.0.0"}                                    the root of a container, a group
//! R/g/attributes.json   {"resolution": [4, 4]}                             a group, because R is above it
//! R/g/s0/attributes.json {"dimensions": [..], "blockSize": [..], ..}       an array
//! ```
//!
//! A file of this name that has no member of N5 is the document of a group only inside of a container. A group without
//! attributes has no document: it is an implicit group. A store whose format is said to be N5 is inside of one.

use super::detect::{DocumentSearch, MAX_COMMON_BYTES};
use super::document::counts_as_absent;
use super::node::{BrokenKind, Node};
use super::{DocumentText, Hierarchy};
use crate::budget::Holding;
use crate::error::Error;
use crate::metadata::ZarrFormat;
use crate::metadata::n5::{self, N5Node};
use crate::store::{Key, ObjectMeta, Prefix};

impl DocumentSearch<'_> {
    /// The node at `prefix` whose `attributes.json` has this `text`; `None` when it is a file of another kind.
    pub(super) fn n5_node(
        &mut self,
        prefix: &Prefix,
        text: DocumentText,
    ) -> Result<Option<Node>, Error> {
        Ok(match n5::node(&text.bytes) {
            Some(N5Node::Dataset) => {
                let metadata = n5::parse_array(&text.bytes);
                Some(Node::array(prefix, text.into_document(), None, metadata))
            }
            Some(N5Node::Root) => Some(match n5::parse_group(&text.bytes) {
                Ok(()) => Node::group(ZarrFormat::N5, text.into_document()),
                Err(error) => Node::broken(text.into_document(), error, BrokenKind::Group),
            }),
            Some(N5Node::Group) => {
                // The memory of the text is given back before other documents are read.
                let document = text.into_document();
                let is_node = self.is_in_container(prefix)?;
                is_node.then(|| Node::group(ZarrFormat::N5, document))
            }
            None => None,
        })
    }

    /// Whether `prefix` is inside of a container: its root is above, perhaps outside of the store.
    fn is_in_container(&mut self, prefix: &Prefix) -> Result<bool, Error> {
        if self.hierarchy.read_as == Some(ZarrFormat::N5) {
            return Ok(true);
        }
        for above in prefix.with_ancestors().skip(1) {
            let key = above.key(n5::DOCUMENT.as_bytes())?;
            if let Some(root) = self.hierarchy.root_of_n5(&key)? {
                self.observations.add_object(&key, Some(&root));
                return Ok(true);
            }
        }
        // A path may have thousands of prefixes, in each of which a root may appear.
        self.observations.add_unobserved();
        Ok(false)
    }
}

impl Hierarchy {
    /// The attributes of the document at `key`, if it is that of the root of a container.
    fn root_of_n5(&self, key: &Key) -> Result<Option<ObjectMeta>, Error> {
        let found = self.object_meta(key)?;
        if found.is_none_or(|meta| meta.size() > MAX_COMMON_BYTES) {
            return Ok(None);
        }
        let text = match self.read(key, Holding::SOURCE) {
            Err(Error::Store(error)) if counts_as_absent(key, &error) => None,
            text => text?,
        };
        let root = text.filter(|text| n5::node(&text.bytes) == Some(N5Node::Root));
        Ok(root.map(|text| text.document.meta))
    }

    /// Whether the directory at `prefix`, which has no document, is a group in a container of N5.
    ///
    /// # Errors
    /// Those of [`Hierarchy::node`].
    pub fn is_group_of_n5(&self, prefix: &Prefix) -> Result<bool, Error> {
        for above in prefix.with_ancestors().skip(1) {
            match self.node(&above)? {
                Node::Implicit => {}
                Node::Group(group) => return Ok(group.format == ZarrFormat::N5),
                Node::Array(_) | Node::Broken(_) => return Ok(false),
            }
        }
        Ok(self.read_as == Some(ZarrFormat::N5))
    }
}
