//! Sidecars of groups (`G/G.json`): their attributes, and the parts that their other files leave out.
//!
//! A group has one if it has attributes, which the listing of a group reads in any case. So a listing takes no further
//! request to know whether there is one.

use super::super::options::ViewKind;
use super::Arrays;
use super::file::FileParts;
use super::inputs::Inputs;
use super::sidecar::MEMORY_OF_LONG;
use crate::error::Error;
use crate::fresh::LastCheck;
use crate::hierarchy::Node;
use crate::metadata::attributes::check_len;
use crate::metadata::{Attributes, ZarrFormat};
use crate::plain::{GroupSidecarFacts, Layout, LeftOut, MOST_INDENTED, group_sidecar};
use crate::store::Prefix;

/// Format and file name of each file of a group, and what the formats leave out.
type FilesOfGroup = (Vec<(String, String)>, Vec<(String, LeftOut)>);

impl Arrays {
    /// Whether the group at `path` has a sidecar: it has a document with attributes, some of which may be unreadable.
    pub(super) fn has_group_sidecar(&self, path: &Prefix) -> Result<bool, Error> {
        if self.format_of_group(path)?.is_none() {
            return Ok(false);
        }
        let facts = self.group_facts(path)?;
        Ok(!facts.attributes.is_empty() || facts.left_out.is_some())
    }

    /// The Zarr version of the group at `path`; `None` if no document says that there is a group.
    fn format_of_group(&self, path: &Prefix) -> Result<Option<ZarrFormat>, Error> {
        Ok(match self.tree.resolve(ViewKind::Arrays, path)?.node {
            Node::Group(group) => Some(group.format),
            Node::Array(_) | Node::Implicit | Node::Broken(_) => None,
        })
    }

    pub(super) fn make_group_sidecar(&self, path: &Prefix) -> Result<Option<FileParts>, Error> {
        let begun = LastCheck::now();
        let (Some(zarr_format), Some(meta)) = (self.format_of_group(path)?, self.group_meta(path)?)
        else {
            return Ok(None);
        };
        if !self.has_group_sidecar(path)? {
            return Ok(None);
        }
        let facts = self.group_facts(path)?;
        let mut inputs = facts.inputs.clone();
        let (files, left_out) = self.files_of_group(path, &mut inputs)?;
        let bytes = usize::try_from(facts.attribute_bytes).unwrap_or(usize::MAX);
        let is_long = facts.attribute_bytes > self.most_tree_bytes() && check_len(bytes).is_ok();
        let long = if is_long { facts.attribute_bytes } else { 0 };
        let _working = self.working_memory(long.saturating_mul(MEMORY_OF_LONG))?;
        let mut error = facts.left_out.clone().filter(|_| !is_long);
        let (mut text, mut parsed) = (None, None);
        if is_long {
            match self.compact_group_attributes(path)? {
                Ok(compact) if compact.len() <= MOST_INDENTED => {
                    parsed = Some(Attributes::parse(compact.as_bytes()).unwrap_or_default());
                }
                Ok(compact) => text = Some(compact),
                Err(unreadable) => {
                    error = Some(unreadable);
                    parsed = Some(Attributes::default());
                }
            }
        }
        let error = error.map(|error| error.within("attributes").to_string());
        let parsed = parsed.as_ref().unwrap_or(&facts.attributes);
        let bytes = group_sidecar(&GroupSidecarFacts {
            zarr_format,
            attributes: text.as_deref().ok_or(parsed),
            attributes_error: error.as_deref(),
            files: &files,
            left_out: &left_out,
        });
        Ok(Some(FileParts {
            layout: Layout::of_bytes(bytes),
            sources: Vec::new(),
            meta,
            omitted: Vec::new(),
            inputs,
            checked: begun.or_older(&facts.checked),
            has_elements: false,
            preview: None,
        }))
    }

    /// The files of the group at `path`, and the parts of it that they leave out, each after the name of its format.
    /// Everything that they depend on is added to `inputs`.
    fn files_of_group(&self, path: &Prefix, inputs: &mut Inputs) -> Result<FilesOfGroup, Error> {
        let (mut files, mut left_out) = (Vec::new(), Vec::new());
        for format in self.group_formats() {
            let name = format.name().to_owned();
            match self.group_outcome(path, format, inputs) {
                Ok(None) => {}
                Ok(Some(Ok((file, omitted)))) => {
                    files.push((name.clone(), file));
                    if !omitted.is_empty() {
                        left_out.push((name, LeftOut::Members(omitted)));
                    }
                }
                Ok(Some(Err(reason))) => left_out.push((name, LeftOut::Group(reason.to_string()))),
                // Damage below the group does not hide its attributes.
                Err(error @ (Error::Metadata { .. } | Error::Chunk { .. })) => {
                    inputs.observations.add_unobserved();
                    left_out.push((name, LeftOut::Group(error.to_string())));
                }
                Err(error) => return Err(error),
            }
        }
        if !left_out.is_empty() {
            // Reasons name members of the group, which only users who may list it may see.
            let listed = self
                .tree
                .folder(ViewKind::Arrays, path)?
                .resolved
                .listed()?;
            inputs.add_names(self.tree.loader.sources(), &listed)?;
        }
        Ok((files, left_out))
    }
}
