//! The nodes of a view. The most recent ones are kept.

use std::sync::{Arc, PoisonError};
use std::time::Instant;

use crate::error::Error;
use crate::hierarchy::{ArrayNode, Node};
use crate::metadata::ZarrFormat;
use crate::store::Prefix;
use crate::view::nodes::node::{FileForm, ShownArray, ShownNode, Unusable};
use crate::view::nodes::path::NodePath;
use crate::view::options::ViewKind;
use crate::view::tree::Tree;
use crate::view::vnode::ChunkPlace;

impl Tree {
    /// The node at `path` as `view` shows it.
    pub(in crate::view) fn shown(&self, view: ViewKind, path: &Prefix) -> Result<ShownNode, Error> {
        self.shown_at(&self.resolve(view, path)?)
    }

    /// Like [`Tree::shown`], of a path that is resolved already.
    pub(in crate::view) fn shown_at(&self, resolved: &NodePath) -> Result<ShownNode, Error> {
        Ok(self.understood_at(resolved)?.in_view(resolved))
    }

    /// Like [`Tree::shown_at`], except that a node with a document that cannot be understood is unusable in the keys
    /// view, too.
    pub(in crate::view) fn understood_at(&self, resolved: &NodePath) -> Result<ShownNode, Error> {
        let node = match &resolved.node {
            Node::Implicit if self.is_writable() => {
                let ended = self.ended(resolved.view, &resolved.path);
                return Ok(ended.map_or(ShownNode::Plain, ShownNode::Array));
            }
            // The remains of a draft's array are shown as a group.
            Node::Group(group) if self.is_writable() && group.format == ZarrFormat::Draft => {
                let ended = self.ended(resolved.view, &resolved.path);
                return Ok(ended.map_or(ShownNode::Plain, ShownNode::Array));
            }
            Node::Group(_) | Node::Implicit => return Ok(ShownNode::Plain),
            Node::Broken(broken) => {
                let unusable = Unusable::new(resolved, &broken.document, &broken.error);
                return Ok(ShownNode::Unusable(Arc::new(unusable)));
            }
            // The keys of N5 are shown as they are, because no reader of Zarr takes them for chunks.
            Node::Array(node)
                if node.metadata.zarr_format == ZarrFormat::N5
                    && resolved.view == ViewKind::Keys
                    && resolved.foreign.is_none() =>
            {
                return Ok(ShownNode::Plain);
            }
            Node::Array(node) => node,
        };
        let key = (resolved.view, resolved.path.clone());
        let mut known = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        match known.get(&key) {
            Some(ShownNode::Array(array)) if Arc::ptr_eq(&array.node, node) => {
                return Ok(ShownNode::Array(Arc::clone(array)));
            }
            Some(ShownNode::Unusable(unusable)) => {
                let unusable = Arc::clone(unusable);
                drop(known);
                if self.stays_unusable(&unusable, node)? {
                    return Ok(ShownNode::Unusable(unusable));
                }
            }
            _ => drop(known),
        }
        let told = self.store().told_at(&node.document.key);
        let since = told.map_or_else(Instant::now, |told| told.answered);
        let made = ShownArray::new(Arc::clone(node), resolved, &self.options, since)
            .map_err(|error| Error::in_document(&node.document.key, error));
        // No chunk is shown before its array's document is known to be writable for this view:
        // readers would take chunks without a matching document for something else.
        let mut attributes = None;
        let checked = made.and_then(|array| {
            self.check_document(&array, &mut attributes)?;
            Ok(array)
        });
        let shown = match checked {
            Ok(array) => {
                if array.view != ViewKind::Arrays {
                    let counts = array.grid().counts();
                    let identity = (node.chunk_identity, node.chunk_form);
                    let grid = (counts, array.shown.n_names_in_array(counts));
                    self.numbers
                        .add_array(array.view, &array.path, identity, grid);
                }
                let place = (array.view, array.path.clone());
                if array.form == FileForm::Stored {
                    self.translated.forget(&place);
                } else {
                    self.translated.put(place, ());
                }
                ShownNode::Array(Arc::new(array))
            }
            Err(Error::Metadata { error, .. }) => {
                log::warn!("{}: {error}", node.document.key);
                let unusable = Unusable::new(resolved, &node.document, &error);
                ShownNode::Unusable(Arc::new(Unusable {
                    attributes,
                    ..unusable
                }))
            }
            Err(error) => return Err(error),
        };
        let mut known = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        let replaced = known.put(key, shown.clone());
        drop(known);
        drop(replaced);
        Ok(shown)
    }

    /// Whether the array `node` cannot be used for the same reason as before. The attributes are no part of its
    /// identity, but no document of another version can be made of attributes that are damaged.
    fn stays_unusable(&self, unusable: &Unusable, node: &ArrayNode) -> Result<bool, Error> {
        if unusable.identity != node.identity
            || unusable.document.meta.version != node.document.meta.version
        {
            return Ok(false);
        }
        let Some(read) = &unusable.attributes else {
            return Ok(true);
        };
        let now = self.loader.sources().stat(&read.key)?;
        Ok(now.map(|meta| meta.version) == read.version)
    }

    /// The array that has the chunk, or the directory of chunks, at `place`.
    pub(in crate::view) fn array_of(&self, place: &ChunkPlace) -> Result<Arc<ShownArray>, Error> {
        match self.shown(place.view, &place.path)? {
            ShownNode::Array(array) if array.node.chunk_identity == place.identity => Ok(array),
            // A caller that repeats the lookup must not find that there is no chunk.
            ShownNode::Unusable(unusable) => Err(unusable.why()),
            _ => Err(Error::Stale),
        }
    }
}
