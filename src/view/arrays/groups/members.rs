//! The arrays and groups in a group. They are remembered: the file of each group above it has the same members, and
//! takes no request for them while they are trusted.

use std::sync::Arc;

use super::super::super::options::ViewKind;
use super::super::super::rights::{is_refused, refused};
use super::super::Arrays;
use super::super::context::GroupFacts;
use super::super::facts::ArrayFacts;
use super::super::inputs::Inputs;
use super::super::lock;
use super::super::names::PathKind;
use super::{Gathering, MOST_NODES};
use crate::budget::Holding;
use crate::error::{Error, FormatError};
use crate::fresh::{LastCheck, Observations};
use crate::metadata::attributes::MEMORY_PER_BYTE;
use crate::plain::{Group, Omitted};
use crate::store::Prefix;

/// The most memory of the remembered members of all groups, without memory of the budget.
pub(in crate::view::arrays) const KEPT_MEMBERS_BYTES: u64 = 6 << 20;
/// The fraction of the budget that the members may take in addition. Groups above one another have the same members,
/// and without enough memory each member is examined again for each group above it.
const MEMBERS_PART: u64 = 8;
/// Memory of the budget is reserved in this many pieces.
const MEMBERS_PIECES: u64 = 16;
/// Memory for each gathered node, beside its attributes.
const NODE_BYTES: u64 = 8 << 10;

/// A group without its members.
#[derive(Debug)]
pub(super) struct OwnParts {
    /// Its documents, and the directory of its names.
    pub(super) inputs: Inputs,
    facts: Arc<GroupFacts>,
    /// When they were last seen unchanged.
    pub(super) checked: LastCheck,
}

/// A group and its members.
#[derive(Debug)]
pub(in crate::view::arrays) struct Members {
    pub(super) own: Arc<OwnParts>,
    pub(super) list: Vec<Member>,
    /// The number of nodes and directories in the group, some of which are not members.
    n_nodes: usize,
    /// Their memory as [`Gathering::memory`] counts it.
    memory: u64,
    /// All inputs of the group and its members, without the members of the groups in it.
    pub(super) observations: Observations,
    /// When `observations` were last seen unchanged.
    pub(super) checked: LastCheck,
}

/// A node in a group.
#[derive(Debug)]
pub(super) struct Member {
    pub(super) name: String,
    pub(super) path: Prefix,
    pub(super) kind: MemberKind,
}

#[derive(Debug)]
pub(super) enum MemberKind {
    Array(Arc<ArrayFacts>),
    Group,
    /// No file can hold it.
    LeftOut(FormatError),
}

impl OwnParts {
    /// The group with its attributes, and without its members.
    pub(super) fn group(&self) -> Group {
        let left_out = self.facts.left_out.clone().map(|reason| Omitted {
            name: ":attributes".to_owned(),
            reason,
        });
        Group {
            attributes: self.facts.attributes.clone(),
            omitted: left_out.into_iter().collect(),
            ..Group::default()
        }
    }
}

impl MemberKind {
    /// Memory that a file of the member takes while it is made.
    pub(super) fn memory_bytes(&self) -> u64 {
        match self {
            MemberKind::Array(facts) => {
                let attributes = facts.tree_bytes.saturating_mul(MEMORY_PER_BYTE / 2);
                NODE_BYTES + facts.array.node.model_bytes + attributes
            }
            MemberKind::Group | MemberKind::LeftOut(_) => NODE_BYTES,
        }
    }
}

impl Members {
    /// An estimate of the memory that the members take while they are remembered.
    fn memory_bytes(&self) -> u64 {
        let bytes = self.list.iter().map(|member| {
            let facts = match &member.kind {
                MemberKind::Array(facts) => facts.memory_bytes(),
                MemberKind::Group | MemberKind::LeftOut(_) => 0,
            };
            let names = 2 * member.path.as_bytes().len();
            facts + (size_of::<Member>() + names) as u64
        });
        self.observations.memory_bytes() + bytes.sum::<u64>()
    }
}

impl Arrays {
    /// The documents and names of the group at `path` itself, without those of its members.
    pub(super) fn own_parts(&self, path: &Prefix) -> Result<OwnParts, Error> {
        let begun = LastCheck::now();
        let folder = self.tree.folder(ViewKind::Arrays, path)?;
        let facts = self.group_facts(path)?;
        let mut inputs = facts.inputs.clone();
        inputs.add_names(self.tree.loader.sources(), &folder.resolved.listed()?)?;
        Ok(OwnParts {
            inputs,
            checked: begun.or_older(&facts.checked),
            facts,
        })
    }

    /// The remembered members of the group at `path`, if they are still trusted or have not changed.
    pub(super) fn known_members(&self, path: &Prefix) -> Option<Arc<Members>> {
        let known = lock(&self.idle.members).get(path)?;
        let (freshness, sources) = (self.tree.options.freshness, self.tree.loader.sources());
        let ask = |subjects: &[&_]| sources.observe(subjects);
        let holds = freshness.holds(&known.observations, &known.checked, ask);
        if holds.unwrap_or(false) {
            return Some(known);
        }
        self.forget_facts(known.observations.prefixes());
        None
    }

    /// Remembers the members of the group at `path`.
    fn remember_members(&self, path: &Prefix, members: &Arc<Members>) {
        let bytes = members.memory_bytes();
        let kept = lock(&self.idle.members);
        let (missing, reserved) = (kept.missing_bytes(path, bytes), kept.reserved_bytes());
        drop(kept);
        let cache = self.tree.loader.cache();
        let most = cache.budget().limit() / MEMBERS_PART;
        let more = missing.max(most / MEMBERS_PIECES);
        let holding = Holding::NOTHING.to_hold("the members of groups");
        // The budget may evict members meanwhile, which locks them.
        let added = (missing > 0 && reserved.saturating_add(more) <= most)
            .then(|| cache.reserve_kept_if_spare(more, holding))
            .flatten();
        let mut kept = lock(&self.idle.members);
        if let Some(added) = added {
            kept.extend(more, added);
        }
        let removed = kept.put(path, Arc::clone(members), bytes);
        drop(kept);
        drop(removed);
    }

    /// The member of a group that is at `path`; `None` if no node is there, or `--array` does not select it.
    pub(super) fn member_at(
        &self,
        path: &Prefix,
        inputs: &mut Inputs,
    ) -> Result<Option<MemberKind>, Error> {
        // The directory is examined before its nodes are listed, so that a later change is noticed.
        let directory = self.tree.stat_prefix(path)?;
        let kind = self.kind_of(path)?;
        if kind != PathKind::Array {
            let observations = &mut inputs.observations;
            observations.add_directory(path, directory.as_ref());
        }
        Ok(match kind {
            PathKind::Array if !self.is_chosen(path) => None,
            PathKind::Array => match self.array_facts(path) {
                Ok(facts) => facts.map(MemberKind::Array),
                Err(Error::Metadata { error, .. }) => {
                    self.observe_document(path, inputs)?;
                    Some(MemberKind::LeftOut(error))
                }
                Err(error) => return Err(error),
            },
            PathKind::Unusable | PathKind::BrokenGroup => {
                self.observe_document(path, inputs)?;
                let error = FormatError::document("metadata", "cannot be decoded");
                Some(MemberKind::LeftOut(error))
            }
            PathKind::Directory => Some(MemberKind::Group),
            PathKind::Nothing => None,
        })
    }

    /// Adds the document of a node that cannot be shown.
    fn observe_document(&self, path: &Prefix, inputs: &mut Inputs) -> Result<(), Error> {
        let resolved = self.tree.resolve(ViewKind::Arrays, path)?;
        if let Some(document) = resolved
            .document()
            .filter(|_| resolved.group_document().is_none())
        {
            let observations = &mut inputs.observations;
            observations.add_object(&document.key, Some(&document.meta));
        }
        Ok(())
    }
}

impl Gathering<'_> {
    /// The members of the group at `path`; `None` if they are more than a file can hold, because of `n_nodes` or
    /// `memory`.
    pub(super) fn members(
        &mut self,
        path: &Prefix,
        known: Option<Arc<Members>>,
        own: Arc<OwnParts>,
    ) -> Result<Option<Arc<Members>>, Error> {
        let Some(known) = known else {
            return self.examine(path, own);
        };
        self.n_nodes += known.n_nodes;
        if self.n_nodes > MOST_NODES {
            return Ok(None);
        }
        self.account_for(known.memory)?;
        Ok(self.has_room().then_some(known))
    }

    fn examine(
        &mut self,
        path: &Prefix,
        own: Arc<OwnParts>,
    ) -> Result<Option<Arc<Members>>, Error> {
        let arrays = self.arrays;
        let folder = arrays.tree.folder(ViewKind::Arrays, path)?;
        let mut inputs = Inputs {
            observations: own.inputs.observations.clone(),
            ..Inputs::default()
        };
        let listed = folder.resolved.listed()?;
        let directory = arrays.tree.stat_prefix(&listed)?;
        inputs
            .observations
            .add_directory(&listed, directory.as_ref());
        let mut children = arrays
            .tree
            .nodes_in(&folder, MOST_NODES.saturating_sub(self.n_nodes))?;
        let n_nodes = children.len();
        self.n_nodes += n_nodes;
        if self.n_nodes > MOST_NODES {
            return Ok(None);
        }
        children.sort_unstable();
        let (mut list, mut memory) = (Vec::new(), 0);
        for (name, path) in children {
            self.deadline.check(|| path.to_string())?;
            let (name, kind) = if let Ok(name) = String::from_utf8(name) {
                (name, self.examine_member(&path, &mut inputs)?)
            } else {
                // A lossy name could be the name of another node.
                let error = FormatError::document("name", "is not UTF-8");
                (path.to_string(), Some(MemberKind::LeftOut(error)))
            };
            let bytes = kind.as_ref().map_or(NODE_BYTES, MemberKind::memory_bytes);
            self.account_for(bytes)?;
            memory += bytes;
            if !self.has_room() {
                return Ok(None);
            }
            list.extend(kind.map(|kind| Member { name, path, kind }));
        }
        let arrays_checked = list.iter().filter_map(|member| match &member.kind {
            MemberKind::Array(facts) => Some(facts.last_checked()),
            MemberKind::Group | MemberKind::LeftOut(_) => None,
        });
        let checked = arrays_checked.fold(own.checked.clone(), |first, last| first.or_older(&last));
        let members = Arc::new(Members {
            list,
            n_nodes,
            memory,
            observations: inputs.observations.shared(),
            checked,
            own,
        });
        if members.observations.are_settled() {
            arrays.remember_members(path, &members);
        }
        Ok(Some(members))
    }

    /// Like [`Arrays::member_at`], with the inputs of its array. A node that the store refuses is left out.
    pub(super) fn examine_member(
        &mut self,
        path: &Prefix,
        inputs: &mut Inputs,
    ) -> Result<Option<MemberKind>, Error> {
        let found = match self.arrays.member_at(path, inputs) {
            Err(Error::Store(error)) if is_refused(&error) => {
                inputs.add_refused();
                Some(MemberKind::LeftOut(refused(&error)))
            }
            found => found?,
        };
        if let Some(MemberKind::Array(facts)) = &found {
            inputs.observations.add_all(&facts.inputs.observations);
        }
        Ok(found)
    }
}
