//! What is written through all views of a mount.

use std::sync::Arc;

use super::ended::Unsaved;
use super::{Meanings, Syncer, Writing};
use crate::counters::WriteCounters;
use crate::error::Error;
use crate::hierarchy::Hierarchy;
use crate::load::Loader;
use crate::recent_lines::RecentLines;
use crate::shards::Staging;
use crate::store::{DirWriter, Key, Prefix};
use crate::view::ViewKind;
use crate::view::name_locks::NameLock;

/// What is written through the views of a mount, which change one store.
#[derive(Debug)]
pub(in crate::view) struct Writings {
    writer: Arc<DirWriter>,
    keys: Arc<Writing>,
    chunks: Arc<Writing>,
    counters: Arc<WriteCounters>,
    staging: Arc<Staging>,
}

impl Writings {
    /// Nothing is written yet. What is not saved, and of which no program is told, is noted in `refused`.
    pub(in crate::view) fn new(
        writer: DirWriter,
        loader: &Arc<Loader>,
        hierarchy: &Arc<Hierarchy>,
        refused: &Arc<RecentLines>,
    ) -> Writings {
        let writer = Arc::new(writer);
        let counters = Arc::new(WriteCounters::default());
        let staging = Staging::new(
            Arc::clone(&writer),
            Arc::clone(loader),
            Arc::clone(hierarchy),
            Arc::clone(&counters),
        );
        let of_view = || {
            let staging = Arc::clone(&staging);
            Arc::new(Writing::new(
                Arc::clone(&writer),
                Arc::clone(&counters),
                staging,
                Arc::clone(refused),
            ))
        };
        Writings {
            keys: of_view(),
            chunks: of_view(),
            writer,
            counters,
            staging,
        }
    }

    /// These, where `meanings` tells what keys are in a view.
    #[must_use]
    pub(in crate::view) fn with_meanings<M: Meanings + 'static>(
        self,
        meanings: impl Fn(ViewKind) -> M,
    ) -> Writings {
        for (view, writing) in [
            (ViewKind::Keys, &self.keys),
            (ViewKind::Chunks, &self.chunks),
        ] {
            writing.meanings.get_or_init(|| Box::new(meanings(view)));
        }
        self
    }

    /// Where inner chunks of shards go.
    pub(in crate::view) fn staging(&self) -> &Arc<Staging> {
        &self.staging
    }

    /// What is written through `view`; `None` where nothing may be.
    pub(in crate::view) fn of(&self, view: ViewKind) -> Option<&Arc<Writing>> {
        match view {
            ViewKind::Keys => Some(&self.keys),
            ViewKind::Chunks => Some(&self.chunks),
            ViewKind::Arrays => None,
        }
    }

    fn all(&self) -> [&Arc<Writing>; 2] {
        [&self.keys, &self.chunks]
    }

    /// Who changes the store.
    pub(in crate::view) fn writer(&self) -> &DirWriter {
        &self.writer
    }

    /// What was written so far.
    pub(in crate::view) fn counters(&self) -> &WriteCounters {
        &self.counters
    }

    /// Whether files that are named as chunks were made below `prefix`, and are not in the store yet.
    pub(in crate::view) fn has_made_chunks_below(&self, prefix: &Prefix) -> bool {
        self.all()
            .iter()
            .any(|writing| writing.has_made_chunks_below(prefix))
    }

    /// How many files have what is not in the store yet, and how many are in the mount only.
    pub(in crate::view) fn n_drafts(&self) -> (usize, usize) {
        let found = self.all().map(|writing| writing.n_drafts());
        let (mut drafts, mut scratch) = (0, 0);
        for (drafts_here, scratch_here) in found {
            drafts += drafts_here;
            scratch += scratch_here;
        }
        (drafts, scratch)
    }

    /// How many files were closed, could not be saved, and are tried again.
    pub(in crate::view) fn n_unsaved(&self) -> usize {
        self.all().map(|writing| writing.n_unsaved()).iter().sum()
    }

    /// Commits all files for `who`, and makes all that was changed survive a loss of power.
    ///
    /// # Errors
    /// The first error, after all were tried.
    pub(in crate::view) fn sync_all(&self, who: Syncer) -> Result<(), Error> {
        let committed = self
            .all()
            .map(|writing| writing.commit_where(who, |_| true));
        let committed: Result<(), Error> = committed.into_iter().collect();
        let committed = committed.and(self.staging.settle_below(&Prefix::root()));
        let removed = self.writer.sync_removed_journals();
        committed.and(Ok(removed.and(self.writer.sync_below(&Prefix::root()))?))
    }

    /// The writings of all views but `view`.
    fn others(&self, view: ViewKind) -> impl Iterator<Item = &Arc<Writing>> {
        let own = self.of(view);
        let is_other = move |other: &&Arc<Writing>| !own.is_some_and(|own| Arc::ptr_eq(own, other));
        self.all().into_iter().filter(is_other)
    }

    /// Waits for whoever saves something below `directory`, through any view, and saves what was written through
    /// `view`. The directory is about to be renamed: others wait for that, and this may take long.
    ///
    /// # Errors
    /// Those of saving.
    pub(in crate::view) fn prepare_rename(
        &self,
        view: ViewKind,
        directory: &Key,
    ) -> Result<(), Error> {
        for other in self.others(view) {
            drop(other.take_names(&[directory], &[]));
        }
        self.of(view)
            .map_or(Ok(()), |writing| writing.prepare_rename(directory))
    }

    /// Keeps the names in two directories from being changed through other views than `view`, and files from being
    /// saved there.
    pub(in crate::view) fn keep_others(
        &self,
        view: ViewKind,
        from: &Key,
        to: &Key,
    ) -> Vec<NameLock<'_>> {
        let others = self.others(view);
        let locks = others.map(|other| other.take_names(&[from, to], &[]));
        locks.collect()
    }

    /// Notes in the other views than `view` that a directory was renamed through it. The caller keeps their names.
    pub(in crate::view) fn moved(&self, view: ViewKind, from: &Key, to: &Key) {
        for other in self.others(view) {
            other.follow(from, to);
        }
    }

    /// Commits all files and ends all writing.
    pub(in crate::view) fn finish(&self) {
        let mut unsaved = Unsaved::default();
        for writing in self.all() {
            writing.finish(&mut unsaved);
        }
        let Unsaved {
            lost,
            kept,
            scratch,
        } = unsaved;
        if lost > 0 {
            log::error!("{lost} files were not saved");
        }
        if kept > 0 {
            log::error!(
                "{kept} files could not be saved. They are in the journal, for the next mount with --rw, or \
                 zarr-mount --recover"
            );
        }
        if scratch > 0 {
            log::warn!("{scratch} files that were in the mount only, not in the store, are gone");
        }
        self.staging.finish();
        self.writer.finish();
    }
}
