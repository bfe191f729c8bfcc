//! The inputs of a file: stored objects and directories with their versions, so that a change is noticed without making
//! the file again, and the users who may read all of them.

use crate::error::Error;
use crate::fresh::{Freshness, LastCheck, Observations, Subject};
use crate::load::Sources;
use crate::store::{Access, Key, ObjectMeta, Prefix, ReadRight, Readers};

/// Stored objects and directories, in the versions that they had when a file was made.
#[derive(Debug, Clone, Default)]
pub(in crate::view) struct Inputs {
    pub(super) observations: Observations,
    /// The users who may read everything that is in the file. Objects that were only examined do not count.
    pub(super) readers: Readers,
}

impl Inputs {
    /// Adds `others`, whose contents are in the file.
    pub(super) fn add_all(&mut self, others: &Inputs) {
        self.readers.add_all(&others.readers);
        self.observations.add_all(&others.observations);
    }

    /// Adds a document whose contents are in the file.
    pub(super) fn add_document(
        &mut self,
        sources: &Sources,
        key: &Key,
        meta: &ObjectMeta,
    ) -> Result<(), Error> {
        self.observations.add_object(key, Some(meta));
        if let Some(right) = sources.object_right(meta) {
            self.readers.add(right);
        }
        self.add_search(sources, &key.parent())
    }

    /// Adds `prefix` and all directories above it: readers of the file must be allowed to search
    /// them.
    pub(super) fn add_search(&mut self, sources: &Sources, prefix: &Prefix) -> Result<(), Error> {
        if !sources.checks_permissions() {
            return Ok(());
        }
        for directory in prefix.with_ancestors() {
            if let Some(access) = self.observe_access(sources, &directory)? {
                self.readers.add(ReadRight::of_directory(access));
            }
        }
        Ok(())
    }

    /// Adds a directory whose names are in the file.
    pub(super) fn add_names(&mut self, sources: &Sources, prefix: &Prefix) -> Result<(), Error> {
        if let Some(access) = self.observe_access(sources, prefix)? {
            self.readers.add(ReadRight::of_listed_directory(access));
        }
        self.add_search(sources, prefix)
    }

    /// Notes that the store refused something that the file would have. Neither the mode of a directory nor the version of an
    /// object shows when the store gives it, so that the file is made again each time.
    pub(super) fn add_refused(&mut self) {
        self.observations.add_unobserved();
    }

    /// Adds a directory whose owner and mode alone matter, because they decide which users can reach objects in it. If
    /// permissions are not checked, nothing depends on it.
    fn observe_access(
        &mut self,
        sources: &Sources,
        prefix: &Prefix,
    ) -> Result<Option<Access>, Error> {
        if !sources.checks_permissions() {
            return Ok(None);
        }
        let access = sources.directory_access(prefix)?;
        self.observations.add_passage(prefix, access);
        Ok(access)
    }

    /// Whether the inputs still count as unchanged by the rule of `freshness`, if they were last checked at `last`. An
    /// input that cannot be examined counts as changed.
    pub(super) fn hold(&self, freshness: Freshness, last: &LastCheck, sources: &Sources) -> bool {
        hold(&self.observations, freshness, last, sources)
    }

    /// Whether the store still has the same versions. An input that cannot be examined counts as changed.
    pub(super) fn are_unchanged(&self, sources: &Sources) -> bool {
        let ask = |subjects: &[&Subject]| sources.observe(subjects);
        self.observations.are_unchanged(ask).unwrap_or(false)
    }
}

/// Whether `observations` still count as unchanged by the rule of `freshness`, as [`Inputs::hold`] says.
pub(super) fn hold(
    observations: &Observations,
    freshness: Freshness,
    last: &LastCheck,
    sources: &Sources,
) -> bool {
    let ask = |subjects: &[&Subject]| sources.observe(subjects);
    freshness.holds(observations, last, ask).unwrap_or(false)
}
