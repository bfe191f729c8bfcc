//! Files of whole groups: the arrays in a group, and in some formats the groups in it too.

mod text;

use std::sync::Arc;

use super::super::folder::Folder;
use super::super::options::ViewKind;
use super::super::rights::{is_refused, more_private, refused};
use super::Arrays;
use super::facts::ArrayFacts;
use super::file::{ElementSource, FileParts, is_refusal};
use super::inputs::Inputs;
use super::lock;
use super::names::PathKind;
use super::strings;
use crate::budget::{Holding, Reservation};
use crate::error::{Error, FormatError};
use crate::hierarchy::Node;
use crate::metadata::attributes::MEMORY_PER_BYTE;
use crate::plain::{ElementKind, FileFormat, Group, Omitted, Options, group_file, is_anndata};
use crate::store::{Access, ObjectMeta, Prefix};

/// The most nodes and directories that are walked for one file.
const MOST_NODES: usize = 10_000;
/// Memory for each gathered node, beside its attributes.
const NODE_BYTES: u64 = 8 << 10;
/// Memory that is used without a reservation.
const FREE_BYTES: u64 = 16 << 20;
/// The budget is asked for this part of itself at a time.
const ROOM_PARTS: u64 = 16;
/// The most levels of groups.
const MOST_DEPTH: usize = 64;

/// The state of a walk over the nodes of a group.
struct Gathering<'v> {
    arrays: &'v Arrays,
    format: FileFormat,
    sources: Vec<ElementSource>,
    /// The arrays that were gathered, with those that need no source because they are strings.
    n_arrays: usize,
    /// The bytes of strings that may still be read.
    strings_left: u64,
    has_strings: bool,
    inputs: Inputs,
    /// The attributes of the file.
    meta: ObjectMeta,
    /// The access that the file will be shown with. Nodes that fewer users may read are left out.
    shown: Access,
    n_nodes: usize,
    /// An estimate of the memory of what was gathered, and the reservations for it.
    memory: u64,
    reserved: Vec<Reservation>,
    deadline: crate::load::Deadline,
}

impl Arrays {
    pub(super) fn make_group_file(
        &self,
        path: &Prefix,
        format: FileFormat,
    ) -> Result<Option<FileParts>, Error> {
        if !matches!(self.kind_of(path)?, PathKind::Directory | PathKind::Array) {
            return Ok(None);
        }
        let Some(meta) = self.group_meta(path)? else {
            return Ok(None);
        };
        // One walk at a time: each may hold much of the budget while it asks for more.
        let _alone = lock(&self.gathering);
        let mut gathering = Gathering {
            arrays: self,
            format,
            sources: Vec::new(),
            n_arrays: 0,
            strings_left: self.most_strings(format),
            has_strings: false,
            inputs: Inputs::default(),
            meta,
            shown: meta.access(),
            n_nodes: 0,
            memory: 0,
            reserved: Vec::new(),
            deadline: self.tree.loader.deadline(),
        };
        if format == FileFormat::H5ad && !self.is_anndata(path)? {
            return Ok(None);
        }
        let mut group = gathering.root(path)?;
        let most = self.most_gathered();
        let beyond = if gathering.n_nodes > MOST_NODES {
            Some(("the number of nodes in one file", MOST_NODES as u64))
        } else if gathering.memory > most {
            let what = "the memory that all nodes of one file take (see --cache-size)";
            Some((what, most))
        } else {
            None
        };
        if let Some((what, limit)) = beyond {
            return Err(Error::in_document(path, more_than(what, limit)));
        }
        if gathering.n_arrays == 0 {
            self.say_omitted(path, format, &group.omitted);
            return Ok(None);
        }
        group.name = self.text_name_of(path);
        let file = group_file(format, &group, &self.group_options())
            .map_err(|error| Error::in_document(path, error))?;
        self.say_omitted(path, format, &file.omitted);
        Ok(Some(FileParts {
            layout: file.layout,
            sources: gathering.sources,
            meta,
            omitted: file.omitted,
            inputs: gathering.inputs,
            has_strings: gathering.has_strings,
        }))
    }

    fn say_omitted(&self, path: &Prefix, format: FileFormat, omitted: &[Omitted]) {
        for Omitted { name, reason } in omitted {
            let title = format.title();
            self.tree.warn_of_omission(&(path, format, name), || {
                format!("{path}: {name} is not in the {title} file: {reason}")
            });
        }
    }

    /// The documents and names of a group itself, without those of its children, and the group with
    /// its attributes.
    fn own_inputs(&self, folder: &Folder) -> Result<(Inputs, Group), Error> {
        let facts = self.group_facts(&folder.resolved.path)?;
        let mut own = facts.inputs.clone();
        own.add_names(self.tree.loader.sources(), &folder.resolved.listed()?)?;
        let left_out = facts.left_out.clone().map(|reason| Omitted {
            name: ":attributes".to_owned(),
            reason,
        });
        let group = Group {
            attributes: facts.attributes.clone(),
            omitted: left_out.into_iter().collect(),
            ..Group::default()
        };
        Ok((own, group))
    }

    /// Whether the file of the group at `path` may include an array with these `facts`: all readers
    /// of the group must be allowed to read what they are made from.
    pub(super) fn may_include(&self, path: &Prefix, facts: &ArrayFacts) -> Result<bool, Error> {
        let folder = self.tree.folder(ViewKind::Arrays, path)?;
        let Some(meta) = self.group_meta(path)?.filter(|_| folder.has_children()) else {
            return Ok(true);
        };
        let (own, _) = self.own_inputs(&folder)?;
        let shown = meta.access().with_mode(own.readers.bits_for(meta.access()));
        Ok(facts.inputs.readers.include(shown, &own.readers))
    }

    /// The most memory that one walk may take.
    fn most_gathered(&self) -> u64 {
        FREE_BYTES + self.tree.loader.cache().budget().limit() / 2
    }

    /// Whether the group at `path` holds an `AnnData` object.
    pub(super) fn is_anndata(&self, path: &Prefix) -> Result<bool, Error> {
        let folder = self.tree.folder(ViewKind::Arrays, path)?;
        if !folder.has_children() {
            return Ok(false);
        }
        let facts = self.group_facts(&folder.resolved.path)?;
        Ok(is_anndata(&facts.attributes))
    }

    /// The options of group files.
    pub(super) fn group_options(&self) -> Options {
        Options {
            unlimited: self.tree.options.arrays.unlimited.clone(),
        }
    }

    /// The attributes of a group's document, or of its directory where it has no document.
    fn group_meta(&self, path: &Prefix) -> Result<Option<ObjectMeta>, Error> {
        let resolved = self.tree.resolve(ViewKind::Arrays, path)?;
        match (&resolved.node, resolved.group_document()) {
            (Node::Array(node), _) => Ok(Some(node.document.meta)),
            (_, Some(document)) => self.tree.object_meta(&document.key),
            // The mode of a directory may grant more than read; only its read bits are used.
            _ => self.tree.directory_meta(ViewKind::Arrays, path),
        }
    }
}

impl Gathering<'_> {
    /// Gathers the node at `path`, of which the file is made.
    fn root(&mut self, path: &Prefix) -> Result<Group, Error> {
        let arrays = self.arrays;
        let folder = arrays.tree.folder(ViewKind::Arrays, path)?;
        let mut group = Group::default();
        if folder.has_children() {
            let own;
            (own, group) = arrays.own_inputs(&folder)?;
            self.shown = self.shown.with_mode(own.readers.bits_for(self.shown));
            self.inputs.add_all(&own);
            self.children(&folder, 0, &mut group)?;
        } else {
            // A file of a single array leaves nothing out.
            self.shown = self.shown.with_mode(0);
            let name = arrays.text_name_of(path);
            let reason = self.array(path, &name, &mut group)?;
            let omitted = reason.map(|reason| Omitted { name, reason });
            group.omitted.extend(omitted);
        }
        Ok(group)
    }

    /// Gathers the group at `path`, at some depth below the root; or the reason to leave it out.
    fn group(&mut self, path: &Prefix, depth: usize) -> Result<Result<Group, FormatError>, Error> {
        let folder = self.arrays.tree.folder(ViewKind::Arrays, path)?;
        let (own, mut group) = self.arrays.own_inputs(&folder)?;
        if !self.may_hold(&own) {
            return Ok(Err(more_private()));
        }
        self.children(&folder, depth, &mut group)?;
        Ok(Ok(group))
    }

    /// Whether all readers of the file may read what is made from `inputs`. Either way the file
    /// depends on them.
    fn may_hold(&mut self, inputs: &Inputs) -> bool {
        let holds = inputs.readers.include(self.shown, &self.inputs.readers);
        if holds {
            self.inputs.add_all(inputs);
        } else {
            self.inputs.observations.add_all(&inputs.observations);
        }
        holds
    }

    fn children(&mut self, folder: &Folder, depth: usize, group: &mut Group) -> Result<(), Error> {
        let arrays = self.arrays;
        let listed = folder.resolved.listed()?;
        self.inputs
            .observations
            .add_directory(&listed, arrays.tree.stat_prefix(&listed)?.as_ref());
        let mut children = arrays
            .tree
            .nodes_in(folder, MOST_NODES.saturating_sub(self.n_nodes))?;
        if self.n_nodes + children.len() > MOST_NODES {
            self.n_nodes += children.len();
            return Ok(());
        }
        children.sort_unstable();
        for (name, child) in children {
            self.n_nodes += 1;
            self.deadline.check(|| folder.resolved.path.to_string())?;
            self.account_for(NODE_BYTES)?;
            if self.n_nodes > MOST_NODES || self.memory > arrays.most_gathered() {
                break;
            }
            // A lossy name could be the name of another node.
            let Ok(name) = String::from_utf8(name) else {
                group.omitted.push(Omitted {
                    name: child.to_string(),
                    reason: FormatError::document("name", "is no UTF-8"),
                });
                continue;
            };
            let n_sources = self.sources.len();
            let reason = match self.child(&child, &name, depth, group) {
                // A node that the store refuses is left out.
                Err(Error::Store(error)) if is_refused(&error) => {
                    self.sources.truncate(n_sources);
                    self.inputs
                        .observe_access(arrays.tree.loader.sources(), &child)?;
                    Some(refused(&error))
                }
                reason => reason?,
            };
            let omitted = reason.map(|reason| Omitted { name, reason });
            group.omitted.extend(omitted);
        }
        Ok(())
    }

    /// Accounts for `bytes` more, and reserves memory a little ahead of use.
    fn account_for(&mut self, bytes: u64) -> Result<(), Error> {
        self.memory = self.memory.saturating_add(bytes);
        let cache = &self.arrays.tree.loader.cache();
        let room = (cache.budget().limit() / ROOM_PARTS).max(1);
        let wanted = self.memory.min(self.arrays.most_gathered());
        let wanted = wanted.saturating_sub(FREE_BYTES);
        while self.reserved.len() as u64 * room < wanted {
            let holding = Holding::NOTHING.to_hold("what is gathered of a group");
            let mut reservation = cache.reserve(room, holding)?;
            // The reservation stays while more is reserved, so nobody should wait for it.
            reservation.keep();
            self.reserved.push(reservation);
        }
        Ok(())
    }

    /// Adds the node at `path` to `group`, or returns the reason to leave it out.
    fn child(
        &mut self,
        path: &Prefix,
        name: &str,
        depth: usize,
        group: &mut Group,
    ) -> Result<Option<FormatError>, Error> {
        // Examined before its nodes are listed, so that a later change is noticed.
        let directory = self.arrays.tree.stat_prefix(path)?;
        let kind = self.arrays.kind_of(path)?;
        if kind != PathKind::Array {
            self.inputs
                .observations
                .add_directory(path, directory.as_ref());
        }
        Ok(match kind {
            PathKind::Array => self.array(path, name, group)?,
            PathKind::Unusable | PathKind::BrokenGroup => {
                self.document(path)?;
                Some(FormatError::document("metadata", "cannot be decoded"))
            }
            PathKind::Directory if !self.format.holds_subgroups() => None,
            PathKind::Directory if depth == MOST_DEPTH => Some(more_than(
                "the number of groups within each other",
                MOST_DEPTH as u64,
            )),
            PathKind::Directory => match self.group(path, depth + 1)? {
                Ok(below) if below == Group::default() => None,
                Ok(mut below) => {
                    name.clone_into(&mut below.name);
                    group.groups.push(below);
                    None
                }
                Err(reason) => Some(reason),
            },
            PathKind::Nothing => None,
        })
    }

    /// Makes the file depend on the document of a node that cannot be shown.
    fn document(&mut self, path: &Prefix) -> Result<(), Error> {
        let resolved = self.arrays.tree.resolve(ViewKind::Arrays, path)?;
        if let Some(document) = resolved
            .document()
            .filter(|_| resolved.group_document().is_none())
        {
            self.inputs
                .observations
                .add_object(&document.key, Some(&document.meta));
        }
        Ok(())
    }

    /// Adds the array at `path` to `group`, or returns the reason to leave it out.
    fn array(
        &mut self,
        path: &Prefix,
        name: &str,
        group: &mut Group,
    ) -> Result<Option<FormatError>, Error> {
        let arrays = self.arrays;
        if !arrays.is_chosen(path) {
            return Ok(None);
        }
        let facts = match arrays.array_facts(path) {
            Ok(Some(facts)) => facts,
            Ok(None) => return Ok(None),
            Err(Error::Metadata { error, .. }) => {
                self.document(path)?;
                return Ok(Some(error));
            }
            Err(error) => return Err(error),
        };
        self.account_for(facts.array.node.model_bytes)?;
        self.account_for(facts.tree_bytes.saturating_mul(MEMORY_PER_BYTE / 2))?;
        if !self.may_hold(&facts.inputs) {
            return Ok(Some(more_private()));
        }
        let strings = match strings::kind_of(&facts) {
            Some(ElementKind::Text) => match self.strings(&facts)? {
                Ok(strings) => Some(Arc::new(strings)),
                Err(reason) => return Ok(Some(reason)),
            },
            _ => None,
        };
        let is_read = strings.is_some();
        match facts.array(self.sources.len(), name, self.format, strings) {
            Ok(array) => {
                group.arrays.push(array);
                self.n_arrays += 1;
                if !is_read {
                    self.sources.push(ElementSource::whole(&facts.array));
                }
                Ok(None)
            }
            Err(error) if is_refusal(&error) => Ok(Some(error)),
            Err(error) => Err(Error::in_document(&facts.array.node.document.key, error)),
        }
    }
}

/// The error that there is more than `limit` of `what`.
pub(super) fn more_than(what: &'static str, limit: u64) -> FormatError {
    FormatError::above_limit(what, limit)
}
