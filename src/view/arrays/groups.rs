//! Files of whole groups: the arrays in a group and, in some formats, also the groups in it.

mod levels;
mod members;
mod text;

use std::sync::Arc;

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
use crate::fresh::{LastCheck, Observations};
use crate::hierarchy::Node;
use crate::plain::{ElementKind, FileFormat, Group, Omitted, Options, group_file, is_anndata};
use crate::store::{Access, ObjectMeta, Prefix};
pub(super) use members::{KEPT_MEMBERS_BYTES, Members};
use members::{Member, MemberKind};

/// The most nodes and directories that are walked for one file.
const MOST_NODES: usize = 10_000;
/// Memory that a walk uses without a reservation.
const FREE_BYTES: u64 = 16 << 20;
/// A walk reserves memory in pieces of this fraction of the budget.
const ROOM_PARTS: u64 = 16;
/// The most levels of groups.
const MOST_DEPTH: usize = 64;

/// The state of a walk over the nodes of a group.
struct Gathering<'v> {
    arrays: &'v Arrays,
    format: FileFormat,
    sources: Vec<ElementSource>,
    /// The number of arrays that were gathered. Arrays of strings, which need no source, count too.
    n_arrays: usize,
    /// The bytes of strings that may still be read.
    strings_left: u64,
    has_strings: bool,
    inputs: Inputs,
    /// The attributes of the file.
    meta: ObjectMeta,
    /// The access that the file will be shown with. Nodes that fewer users may read are left out of
    /// it.
    shown: Access,
    /// A time since which no gathered node was seen to change.
    checked: LastCheck,
    n_nodes: usize,
    /// An estimate of the memory of the gathered nodes, and the reservations for it.
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
        if format.holds_levels() && !self.is_image(path)? {
            return Ok(None);
        }
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
            checked: LastCheck::now(),
            reserved: Vec::new(),
            deadline: self.tree.loader.deadline(),
        };
        let observed = &mut gathering.inputs.observations;
        if format == FileFormat::H5ad && !self.is_anndata(path, observed)? {
            return Ok(None);
        }
        let mut group = gathering.root(path)?;
        let most = self.most_gathered();
        let beyond = if gathering.n_nodes > MOST_NODES {
            Some(("the number of nodes in one file", MOST_NODES as u64))
        } else if !gathering.has_room() {
            let what = "the memory that all nodes of one file take (see --cache-size)";
            Some((what, most))
        } else {
            None
        };
        if let Some((what, limit)) = beyond {
            return Err(Error::in_document(path, more_than(what, limit)));
        }
        // If no level is left, the error has the reasons of the levels.
        let is_empty = gathering.n_arrays == 0;
        if is_empty && (group.omitted.is_empty() || !format.holds_levels()) {
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
            checked: gathering.checked,
            has_elements: gathering.has_strings,
            preview: None,
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

    /// Whether the file of the group at `path` may include an array with these `facts`: all readers
    /// of the group must be allowed to read the inputs of the facts.
    pub(super) fn may_include(&self, path: &Prefix, facts: &ArrayFacts) -> Result<bool, Error> {
        let folder = self.tree.folder(ViewKind::Arrays, path)?;
        let Some(meta) = self.group_meta(path)?.filter(|_| folder.has_children()) else {
            return Ok(true);
        };
        let own = self.own_parts(path)?.inputs;
        let shown = meta.access().with_mode(own.readers.bits_for(meta.access()));
        Ok(facts.inputs.readers.include(shown, &own.readers))
    }

    /// The most memory that one walk may take.
    fn most_gathered(&self) -> u64 {
        FREE_BYTES + self.tree.loader.cache().budget().limit() / 2
    }

    /// Whether the group at `path` holds an `AnnData` object. Its documents are added to `observed`.
    pub(super) fn is_anndata(
        &self,
        path: &Prefix,
        observed: &mut Observations,
    ) -> Result<bool, Error> {
        let folder = self.tree.folder(ViewKind::Arrays, path)?;
        if !folder.has_children() {
            return Ok(false);
        }
        let facts = self.group_facts(&folder.resolved.path)?;
        observed.add_all(&facts.inputs.observations);
        Ok(is_anndata(&facts.attributes))
    }

    /// The options of group files.
    pub(super) fn group_options(&self) -> Options {
        Options {
            unlimited: self.tree.options.arrays.unlimited.clone(),
            integers: self.tree.options.arrays.integers,
        }
    }

    /// The attributes of a group's document, or of its directory where it has no document.
    pub(super) fn group_meta(&self, path: &Prefix) -> Result<Option<ObjectMeta>, Error> {
        let resolved = self.tree.resolve(ViewKind::Arrays, path)?;
        match (&resolved.node, resolved.group_document()) {
            (Node::Array(node), _) => Ok(Some(node.document.meta)),
            (_, Some(document)) => self.tree.object_meta(&document.key),
            // The mode of a directory may grant more than reading, so only its read bits are used.
            _ => self.tree.directory_meta(ViewKind::Arrays, path),
        }
    }
}

impl Gathering<'_> {
    /// Gathers the node at `path`, for which the file is made.
    fn root(&mut self, path: &Prefix) -> Result<Group, Error> {
        let arrays = self.arrays;
        let folder = arrays.tree.folder(ViewKind::Arrays, path)?;
        if self.format.holds_levels() {
            return self.levels(path);
        }
        if folder.has_children() {
            // No node is more private than the group of the file.
            return Ok(self.group(path, 0)?.unwrap_or_default());
        }
        // A file of a single array leaves nothing out.
        self.shown = self.shown.with_mode(0);
        let name = arrays.text_name_of(path);
        let mut group = Group::default();
        let reason = match arrays.member_at(path, &mut self.inputs)? {
            Some(MemberKind::Array(facts)) => {
                self.inputs.observations.add_all(&facts.inputs.observations);
                self.checked = self.checked.or_older(&facts.last_checked());
                self.account_for(MemberKind::Array(Arc::clone(&facts)).memory_bytes())?;
                self.array(&facts, &name, &mut group)?
            }
            Some(MemberKind::LeftOut(reason)) => Some(reason),
            Some(MemberKind::Group) | None => None,
        };
        let omitted = reason.map(|reason| Omitted { name, reason });
        group.omitted.extend(omitted);
        Ok(group)
    }

    /// Accounts for `bytes` more, and reserves memory a little ahead of use.
    fn account_for(&mut self, bytes: u64) -> Result<(), Error> {
        self.memory = self.memory.saturating_add(bytes);
        let cache = &self.arrays.tree.loader.cache();
        let room = (cache.budget().limit() / ROOM_PARTS).max(1);
        let wanted = self.memory.min(self.arrays.most_gathered());
        let wanted = wanted.saturating_sub(FREE_BYTES);
        while self.reserved.len() as u64 * room < wanted {
            let holding = Holding::NOTHING.to_hold("the members of a group");
            let mut reservation = cache.reserve(room, holding)?;
            // This reservation is kept while more is reserved, so no caller should wait for it.
            reservation.keep();
            self.reserved.push(reservation);
        }
        Ok(())
    }

    /// Whether the memory of the gathered nodes is within its limit.
    fn has_room(&self) -> bool {
        self.memory <= self.arrays.most_gathered()
    }

    /// Gathers the group at `path`, at this depth below the root. Returns the reason if it is left
    /// out.
    fn group(&mut self, path: &Prefix, depth: usize) -> Result<Result<Group, FormatError>, Error> {
        self.deadline.check(|| path.to_string())?;
        let known = self.arrays.known_members(path);
        let own = match &known {
            Some(known) => Arc::clone(&known.own),
            None => Arc::new(self.arrays.own_parts(path)?),
        };
        let readers = &own.inputs.readers;
        if depth == 0 {
            self.shown = self.shown.with_mode(readers.bits_for(self.shown));
        } else if !readers.include(self.shown, &self.inputs.readers) {
            self.inputs.observations.add_all(&own.inputs.observations);
            return Ok(Err(more_private()));
        }
        self.inputs.readers.add_all(readers);
        let mut group = own.group();
        let Some(members) = self.members(path, known, own)? else {
            return Ok(Ok(group));
        };
        self.inputs.observations.add_all(&members.observations);
        self.checked = self.checked.or_older(&members.checked);
        for member in &members.list {
            let n_sources = self.sources.len();
            let reason = match self.member(member, depth, &mut group) {
                // A node that the store refuses is left out.
                Err(Error::Store(error)) if is_refused(&error) => {
                    self.sources.truncate(n_sources);
                    self.inputs.add_refused();
                    Some(refused(&error))
                }
                reason => reason?,
            };
            let name = &member.name;
            let omitted = reason.map(|reason| Omitted {
                name: name.clone(),
                reason,
            });
            group.omitted.extend(omitted);
        }
        Ok(Ok(group))
    }

    /// Adds `member` to `group`, or returns the reason why it is left out.
    fn member(
        &mut self,
        member: &Member,
        depth: usize,
        group: &mut Group,
    ) -> Result<Option<FormatError>, Error> {
        match &member.kind {
            MemberKind::Array(facts) => return self.array(facts, &member.name, group),
            MemberKind::LeftOut(reason) => return Ok(Some(reason.clone())),
            MemberKind::Group if !self.format.holds_subgroups() => return Ok(None),
            MemberKind::Group => {}
        }
        if depth == MOST_DEPTH {
            let what = "the number of groups within each other";
            return Ok(Some(more_than(what, MOST_DEPTH as u64)));
        }
        match self.group(&member.path, depth + 1)? {
            Ok(below) if below == Group::default() => Ok(None),
            Ok(mut below) => {
                member.name.clone_into(&mut below.name);
                group.groups.push(below);
                Ok(None)
            }
            Err(reason) => Ok(Some(reason)),
        }
    }

    /// Adds an array to `group`, or returns the reason why it is left out.
    fn array(
        &mut self,
        facts: &ArrayFacts,
        name: &str,
        group: &mut Group,
    ) -> Result<Option<FormatError>, Error> {
        // All readers of the file must be allowed to read the inputs of the array's facts.
        let readers = &facts.inputs.readers;
        if !readers.include(self.shown, &self.inputs.readers) {
            return Ok(Some(more_private()));
        }
        self.inputs.readers.add_all(readers);
        let strings = match strings::kind_of(facts) {
            Some(ElementKind::Text) => match self.strings(facts)? {
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

/// The error that `what` is more than `limit`.
pub(super) fn more_than(what: &'static str, limit: u64) -> FormatError {
    FormatError::above_limit(what, limit)
}
