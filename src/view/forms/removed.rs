//! Removal of documents that are shown in another Zarr version, and of the nodes of drafts.

use std::sync::Arc;

use super::translated::{TranslatedForm, stored_array};
use crate::error::Error;
use crate::files::{Form, Objects, Writing, change_objects};
use crate::hierarchy::{DraftNode, Node};
use crate::metadata::{DocumentName, ZarrFormat};
use crate::store::{Key, Prefix, Refusal, StoreError, unless_absent};
use crate::translate::ObjectChange;
use crate::translate::copies::Wish;
use crate::view::nodes::path::NodePath;
use crate::view::tree::EndedArray;
use crate::view::{View, ViewKind};

impl TranslatedForm {
    /// The changes that remove the document.
    fn removal(&self, resolved: &NodePath) -> Result<Vec<ObjectChange>, Error> {
        const EMPTY: &[u8] = b"{}";
        let objects = Objects::of(resolved)?;
        match (&resolved.node, self.name) {
            (Node::Array(node), DocumentName::ZAttrs) => {
                let (array, texts) = self.array(node)?;
                let parse = |text: &[u8]| self.parse(&array, text);
                let array = stored_array(&array)?;
                self.document()?.without_attributes(array, &texts, parse)
            }
            (Node::Group(group), DocumentName::ZAttrs) => {
                self.of_group(group, resolved, EMPTY, None)
            }
            (Node::Group(group), DocumentName::ZMetadata) if group.format == ZarrFormat::V3 => {
                self.of_group(group, resolved, EMPTY, Some(Wish::Drop))
            }
            (Node::Array(_) | Node::Group(_), DocumentName::ZMetadata)
            | (Node::Implicit | Node::Broken(_), _) => Ok(Vec::new()),
            (Node::Array(_) | Node::Group(_), _) => {
                let copies = self.key_of(DocumentName::ZMetadata)?;
                let is_v2 = matches!(&resolved.node,
                    Node::Group(group) if group.format == ZarrFormat::V2);
                // The node's own document is removed last, so that the node is either whole or
                // gone.
                let keys = objects
                    .attributes
                    .into_iter()
                    .chain(is_v2.then_some(copies));
                let texts = keys.chain(objects.own).map(|key| self.read(key));
                let texts = texts.collect::<Result<Vec<_>, _>>()?;
                Ok(texts.iter().filter_map(|text| text.changed(None)).collect())
            }
        }
    }
}

impl View {
    /// Removes the document `name` of the node at `path`, which is shown in another version.
    pub(in crate::view) fn remove_translated(
        self: &Arc<Self>,
        writing: &Writing,
        (view, path): (ViewKind, &Prefix),
        name: DocumentName,
    ) -> Result<(), Error> {
        let tree = &self.tree;
        let resolved = tree.resolve(view, path)?;
        let form = self.translated_form(&resolved, name.as_str().as_bytes());
        let form = form.ok_or(Error::Stale)?;
        let is_kept = matches!(resolved.node, Node::Implicit) || name == DocumentName::ZAttrs;
        // A program that empties a directory removes the directory itself afterwards.
        let kept = resolved.draft().map(DraftNode::children).transpose()?;
        let kept = kept.and_then(|children| children.to_key());
        let mut ended = None;
        if let Node::Array(node) = &resolved.node
            && name != DocumentName::ZAttrs
            && let Some(array) = tree.shown(view, path)?.into_array()
        {
            self.check_ends(&array)?;
            let document = form
                .read(node.document.key.clone())?
                .bytes
                .unwrap_or_default();
            ended = Some(EndedArray { array, document });
        }
        let copies = form.keep_copies();
        let changes = form.removal(&resolved)?;
        let key = form.key()?;
        let chunks = ended
            .as_ref()
            .map_or_else(|| Ok(Vec::new()), |ended| ended.array.paths())?;
        let note = self.note_change(path, &[])?;
        let erased = writing.erase_by((&key, &chunks), is_kept, |writer| {
            let new = |key: &Key, _: &[u8]| Err(StoreError::changed(key).into());
            if let Some(kept) = kept.filter(|kept| !writer.is_directory(kept)) {
                writer.make_parents(&kept.to_prefix().key(b"any")?)?;
            }
            match change_objects(writer, &changes, new)? {
                None => Ok(()),
                Some(_) => Err(StoreError::changed(&key).into()),
            }
        });
        drop(copies);
        let keys: Vec<_> = changes.into_iter().map(|change| change.key).collect();
        if erased.is_err() {
            // A part of the documents may be removed.
            self.update_copies(&keys, note);
            return erased;
        }
        tree.node_changed(path);
        if is_kept {
            tree.unshow(view, path, name);
        } else {
            for name in DocumentName::ALL {
                tree.show_again(path, name);
            }
        }
        self.update_copies(&keys, note);
        if let Some(ended) = ended {
            tree.hierarchy.forget(&ended.array.node.prefix);
            tree.end(ended);
        }
        Ok(())
    }
}

impl View {
    /// Removes the directory of the node `draft`, which is at `path`.
    ///
    /// # Errors
    /// [`Refusal::NotEmpty`] where it has a document, children, or chunks.
    pub(in crate::view) fn remove_draft_node(
        &self,
        writing: &Writing,
        (view, path): (ViewKind, &Prefix),
        draft: &DraftNode,
    ) -> Result<(), Error> {
        let key = path.to_key().filter(|_| !draft.path.is_root());
        let key = key.ok_or_else(|| StoreError::refused(path, Refusal::Fixed))?;
        let has_document = self.tree.documents_now(view, path)?.is_some();
        if has_document {
            return Err(StoreError::refused(path, Refusal::NotEmpty).into());
        }
        let (data, children) = (draft.data()?.to_key(), draft.children()?.to_key());
        let other: Vec<_> = data.iter().chain(&children).map(Key::to_prefix).collect();
        writing.remove_prefix((&key, &other), |writer| {
            if let Some(data) = &data {
                unless_absent(writer.remove_prefix_with(data, &|_, is_directory| is_directory))?;
            }
            children.as_ref().map_or(Ok(()), |children| {
                unless_absent(writer.remove_prefix(children))
            })
        })?;
        self.tree.node_changed(path);
        Ok(())
    }
}
