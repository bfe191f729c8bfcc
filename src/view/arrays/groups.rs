//! Files of whole groups: the arrays in a group, and for some formats the groups in it too.

use super::super::View;
use super::super::options::ViewKind;
use super::facts::in_document;
use super::file::{Parts, Source, is_refusal};
use super::inputs::Inputs;
use super::lock;
use super::names::Kind;
use crate::budget::{Holding, Reservation};
use crate::chunk::Deadline;
use crate::error::{Error, FormatError};
use crate::hierarchy::{GroupNode, Node};
use crate::metadata::Attributes;
use crate::metadata::attributes::MEMORY_PER_BYTE;
use crate::plain::{FileFormat, Group, Omitted, Options, group_file};
use crate::store::{Cursor, Detail, ObjectMeta, Prefix};

/// Nodes in one file at most; also directories that are looked through for them.
const MOST_NODES: usize = 10_000;
/// Memory that a node takes while a group is gathered, beside its attributes.
const NODE_BYTES: u64 = 8 << 10;
/// Gathered without a reservation.
const FREE_BYTES: u64 = 16 << 20;
/// Asked of the budget at once, of all that it has.
const ROOM_PARTS: u64 = 16;
/// Groups within each other at most.
const MOST_DEPTH: usize = 64;

/// A group while it is gathered.
struct Gathering<'v> {
    view: &'v View,
    format: FileFormat,
    sources: Vec<Source>,
    inputs: Inputs,
    mode: u32,
    n_nodes: usize,
    /// What has been gathered so far takes, about, and the room that it has.
    memory: u64,
    reserved: Vec<Reservation>,
    deadline: Deadline,
}

impl View {
    pub(super) fn make_group_file(
        &self,
        path: &Prefix,
        format: FileFormat,
    ) -> Result<Option<Parts>, Error> {
        if !matches!(self.kind_of(path)?, Kind::Directory | Kind::Array) {
            return Ok(None);
        }
        let Some(meta) = self.group_meta(path)? else {
            return Ok(None);
        };
        // One at a time: each may hold a good part of the budget while it asks for more.
        let _alone = lock(&self.arrays.gathering);
        let mut gathering = Gathering {
            view: self,
            format,
            sources: Vec::new(),
            inputs: Inputs::default(),
            mode: meta.mode,
            n_nodes: 0,
            memory: 0,
            reserved: Vec::new(),
            deadline: Deadline::start(),
        };
        let mut group = gathering.group(path, 0)?;
        let name = || path.to_string();
        if gathering.n_nodes > MOST_NODES {
            return Err(Error::Metadata {
                key: name(),
                error: FormatError::TooLarge {
                    what: "the number of nodes in one file",
                    found: "more".to_owned(),
                    limit: MOST_NODES as u64,
                },
            });
        }
        let most = self.most_gathered();
        if gathering.memory > most {
            return Err(Error::Metadata {
                key: name(),
                error: FormatError::TooLarge {
                    what: "the memory that all nodes of one file take (see --cache-size)",
                    found: "more".to_owned(),
                    limit: most,
                },
            });
        }
        if gathering.sources.is_empty() {
            return Ok(None);
        }
        group.name = String::from_utf8_lossy(&self.name_of(path)).into_owned();
        let key = path.to_string();
        let file = group_file(format, &group, &self.group_options())
            .map_err(|error| Error::Metadata { key: name(), error })?;
        for Omitted { name, reason } in &file.omitted {
            let title = format.title();
            self.say_once(&(path, format, name), || {
                format!("{key}: {name} is not in the {title} file: {reason}")
            });
        }
        Ok(Some(Parts {
            layout: file.layout,
            sources: gathering.sources,
            meta,
            mode: gathering.mode,
            omitted: file.omitted,
            inputs: gathering.inputs,
        }))
    }

    /// Memory that gathering a group may take.
    fn most_gathered(&self) -> u64 {
        FREE_BYTES + self.shared.cache.budget().limit() / 2
    }

    /// What is asked of files of groups.
    pub(super) fn group_options(&self) -> Options {
        Options {
            unlimited: self.options.arrays.unlimited.clone(),
        }
    }

    /// The attributes of the document of a group, or of its directory where it has none.
    fn group_meta(&self, path: &Prefix) -> Result<Option<ObjectMeta>, Error> {
        let place = self.place(ViewKind::Arrays, path)?;
        match &place.node {
            Node::Array(node) => Ok(Some(node.document.meta)),
            Node::Group(GroupNode {
                document: Some(document),
                ..
            }) => self.object_meta(&document.key),
            // A directory may be searched; a file is only read.
            _ => self.directory_meta(ViewKind::Arrays, path),
        }
    }
}

impl Gathering<'_> {
    /// What is at `path`, whose name the caller knows.
    fn group(&mut self, path: &Prefix, depth: usize) -> Result<Group, Error> {
        let view = self.view;
        let mut group = Group::default();
        let folder = view.folder(ViewKind::Arrays, path)?;
        if !folder.has_children() {
            // The root is an array.
            let name = String::from_utf8_lossy(&view.name_of(path)).into_owned();
            self.array(path, &name, &mut group)?;
            return Ok(group);
        }
        let attributes = view.group_attributes_at(path, &mut self.inputs)?;
        group.attributes = Attributes::clone(&attributes);
        let listed = match folder.draft() {
            Some(draft) => draft.children()?,
            None => path.clone(),
        };
        self.inputs
            .add_directory(&listed, view.stat_prefix(&listed)?.as_ref());
        let mut children = Vec::new();
        let store = view.shared.sources.store();
        if let Some(mut listing) = store.list(&listed, Cursor::START, Detail::Names)? {
            while let Some(entry) = listing.next_entry()? {
                children.extend(view.node_listed(&folder, &entry)?);
                if self.n_nodes + children.len() > MOST_NODES {
                    self.n_nodes += children.len();
                    return Ok(group);
                }
            }
        }
        children.sort_unstable();
        for (name, child) in children {
            self.n_nodes += 1;
            self.deadline.check(|| path.to_string())?;
            self.make_room(NODE_BYTES)?;
            if self.n_nodes > MOST_NODES || self.memory > view.most_gathered() {
                break;
            }
            // Another name would be another node.
            let Ok(name) = String::from_utf8(name) else {
                group.omitted.push(Omitted {
                    name: child.to_string(),
                    reason: FormatError::document("name", "is no UTF-8"),
                });
                continue;
            };
            self.child(&child, name, depth, &mut group)?;
        }
        Ok(group)
    }

    /// Takes `bytes` more, which the budget is asked for a little ahead.
    fn make_room(&mut self, bytes: u64) -> Result<(), Error> {
        self.memory = self.memory.saturating_add(bytes);
        let cache = &self.view.shared.cache;
        let room = (cache.budget().limit() / ROOM_PARTS).max(1);
        let wanted = self.memory.min(self.view.most_gathered());
        let wanted = wanted.saturating_sub(FREE_BYTES);
        while self.reserved.len() as u64 * room < wanted {
            let holding = Holding::NOTHING.to_hold("what is gathered of a group");
            let mut reservation = cache.reserve(room, holding)?;
            // It stays while more is asked for: whoever waits for it may be waited for.
            reservation.keep();
            self.reserved.push(reservation);
        }
        Ok(())
    }

    fn child(
        &mut self,
        path: &Prefix,
        name: String,
        depth: usize,
        group: &mut Group,
    ) -> Result<(), Error> {
        // Before it is looked at: whatever comes to be in it after that is noticed.
        let directory = self.view.stat_prefix(path)?;
        let kind = self.view.kind_of(path)?;
        if kind != Kind::Array {
            self.inputs.add_directory(path, directory.as_ref());
        }
        match kind {
            Kind::Array => self.array(path, &name, group),
            Kind::Unusable => {
                self.document(path)?;
                let reason = FormatError::document("metadata", "cannot be decoded");
                group.omitted.push(Omitted { name, reason });
                Ok(())
            }
            Kind::Directory if self.format != FileFormat::H5 => Ok(()),
            Kind::Directory if depth == MOST_DEPTH => {
                let reason = FormatError::TooLarge {
                    what: "the number of groups within each other",
                    found: "more".to_owned(),
                    limit: MOST_DEPTH as u64,
                };
                group.omitted.push(Omitted { name, reason });
                Ok(())
            }
            Kind::Directory => {
                let mut below = self.group(path, depth + 1)?;
                below.name = name;
                if below != Group::default() {
                    group.groups.push(below);
                }
                Ok(())
            }
            Kind::Nothing => Ok(()),
        }
    }

    /// The document of what cannot be shown may become another.
    fn document(&mut self, path: &Prefix) -> Result<(), Error> {
        let document = match self.view.place(ViewKind::Arrays, path)?.node {
            Node::Array(node) => node.document.clone(),
            Node::Broken(broken) => broken.document.clone(),
            Node::Group(_) | Node::Implicit => return Ok(()),
        };
        self.inputs.add_object(&document.key, Some(&document.meta));
        Ok(())
    }

    fn array(&mut self, path: &Prefix, name: &str, group: &mut Group) -> Result<(), Error> {
        let view = self.view;
        if !view.is_chosen(path) {
            return Ok(());
        }
        let facts = match view.array_facts(path) {
            Ok(Some(facts)) => facts,
            Ok(None) => return Ok(()),
            Err(Error::Metadata { error, .. }) => {
                self.document(path)?;
                group.omitted.push(Omitted {
                    name: name.to_owned(),
                    reason: error,
                });
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        self.make_room(facts.array.node.model_bytes)?;
        self.make_room(facts.tree_bytes.saturating_mul(MEMORY_PER_BYTE / 2))?;
        self.inputs.add_all(&facts.inputs);
        match facts.array(self.sources.len(), name, self.format) {
            Ok(array) => {
                group.arrays.push(array);
                self.mode &= facts.array.node.document.meta.mode;
                self.sources.push(Source::whole(&facts.array));
                Ok(())
            }
            Err(error) if is_refusal(&error) => {
                group.omitted.push(Omitted {
                    name: name.to_owned(),
                    reason: error,
                });
                Ok(())
            }
            Err(error) => Err(in_document(&facts.array.node.document.key, error)),
        }
    }
}
