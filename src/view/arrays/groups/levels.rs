//! The levels of an image, which become one file, a pyramid.

use super::super::Arrays;
use super::Gathering;
use super::members::MemberKind;
use crate::error::{Error, FormatError};
use crate::plain::{Group, Omitted, multiscale};
use crate::store::Prefix;
use crate::view::options::ViewKind;
use crate::view::rights::{is_refused, refused};

impl Arrays {
    /// Whether the group at `path` is an image with levels.
    pub(in crate::view::arrays) fn is_image(&self, path: &Prefix) -> Result<bool, Error> {
        let folder = self.tree.folder(ViewKind::Arrays, path)?;
        if !folder.has_children() {
            return Ok(false);
        }
        let facts = self.group_facts(&folder.resolved.path)?;
        Ok(multiscale(&facts.attributes).is_some())
    }

    /// The path of the node that these names lead to from the group at `path`, whether or not it exists.
    pub(in crate::view::arrays) fn path_below(
        &self,
        path: &Prefix,
        names: &[String],
    ) -> Result<Option<Prefix>, Error> {
        let mut found = path.clone();
        for name in names {
            match self.child_called(&found, name.as_bytes())? {
                Some(child) => found = child,
                None => return Ok(None),
            }
        }
        Ok(Some(found))
    }
}

impl Gathering<'_> {
    /// Gathers the levels of the image at `path`, in the order of its multiscale.
    pub(super) fn levels(&mut self, path: &Prefix) -> Result<Group, Error> {
        let own = self.arrays.own_parts(path)?;
        let bits = own.inputs.readers.bits_for(self.shown);
        self.shown = self.shown.with_mode(bits);
        self.inputs.add_all(&own.inputs);
        self.checked = self.checked.or_older(&own.checked);
        let mut group = own.group();
        let Some(image) = multiscale(&group.attributes) else {
            return Ok(group);
        };
        group.omitted.extend(image.omitted);
        for (name, segments) in image.levels {
            self.deadline.check(|| format!("{path}/{name}"))?;
            let reason = match self.arrays.path_below(path, &segments) {
                Ok(Some(level)) => self.level(&level, &name, &mut group)?,
                Ok(None) => Some(no_array()),
                Err(Error::Store(error)) if is_refused(&error) => {
                    self.inputs.add_refused();
                    Some(refused(&error))
                }
                Err(error) => return Err(error),
            };
            let omitted = reason.map(|reason| Omitted { name, reason });
            group.omitted.extend(omitted);
        }
        Ok(group)
    }

    /// Adds the level at `path` to the `group` of the image, or returns the reason why it is left out. A level that `--array` does
    /// not select has no reason.
    fn level(
        &mut self,
        path: &Prefix,
        name: &str,
        group: &mut Group,
    ) -> Result<Option<FormatError>, Error> {
        if !self.arrays.is_chosen(path) {
            return Ok(None);
        }
        let mut inputs = std::mem::take(&mut self.inputs);
        let found = self.examine_member(path, &mut inputs);
        self.inputs = inputs;
        let facts = match found? {
            Some(MemberKind::Array(facts)) => facts,
            Some(MemberKind::LeftOut(reason)) => return Ok(Some(reason)),
            Some(MemberKind::Group) | None => return Ok(Some(no_array())),
        };
        self.checked = self.checked.or_older(&facts.last_checked());
        self.n_nodes += 1;
        self.account_for(MemberKind::Array(facts.clone()).memory_bytes())?;
        if let Some(reason) = &facts.axes_error {
            group.omitted.push(Omitted {
                name: format!("{name}:coordinateTransformations"),
                reason: reason.clone(),
            });
        }
        self.array(&facts, name, group)
    }
}

fn no_array() -> FormatError {
    FormatError::document("path", "there is no array")
}
