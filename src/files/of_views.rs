//! The files that are written through all views of a mount.

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

use super::name_locks::NameLock;

/// The files that are written through the views of a mount, which change one store.
#[derive(Debug)]
pub(crate) struct Writings {
    writer: Arc<DirWriter>,
    keys: Arc<Writing>,
    chunks: Arc<Writing>,
    counters: Arc<WriteCounters>,
    staging: Arc<Staging>,
}

impl Writings {
    /// No files are written yet. Drafts that could not be saved, and whose error no program gets, are noted in
    /// `refused`.
    pub(crate) fn new(
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

    /// These files, with the meanings of keys in the keys view and in the chunks view.
    #[must_use]
    pub(crate) fn with_meanings<M: Meanings + 'static>(self, keys: M, chunks: M) -> Writings {
        self.keys.meanings.get_or_init(|| Box::new(keys));
        self.chunks.meanings.get_or_init(|| Box::new(chunks));
        self
    }

    /// The journals of inner chunks of shards.
    pub(crate) fn staging(&self) -> &Arc<Staging> {
        &self.staging
    }

    /// The files of the keys view.
    pub(crate) fn keys(&self) -> &Arc<Writing> {
        &self.keys
    }

    /// The files of the chunks view.
    pub(crate) fn chunks(&self) -> &Arc<Writing> {
        &self.chunks
    }

    fn all(&self) -> [&Arc<Writing>; 2] {
        [&self.keys, &self.chunks]
    }

    /// The writer that changes the store.
    pub(crate) fn writer(&self) -> &DirWriter {
        &self.writer
    }

    /// The counters of changes so far.
    pub(crate) fn counters(&self) -> &WriteCounters {
        &self.counters
    }

    /// Whether files with names of chunks were made below `prefix`, and are not in the store yet.
    pub(crate) fn has_made_chunks_below(&self, prefix: &Prefix) -> bool {
        self.all()
            .iter()
            .any(|writing| writing.has_made_chunks_below(prefix))
    }

    /// How many files have drafts that are not in the store yet, and how many are only in the mount.
    pub(crate) fn n_drafts(&self) -> (usize, usize) {
        let found = self.all().map(|writing| writing.n_drafts());
        let (mut drafts, mut scratch) = (0, 0);
        for (drafts_here, scratch_here) in found {
            drafts += drafts_here;
            scratch += scratch_here;
        }
        (drafts, scratch)
    }

    /// How many files were closed, could not be saved, and are retried.
    pub(crate) fn n_unsaved(&self) -> usize {
        self.all().map(|writing| writing.n_unsaved()).iter().sum()
    }

    /// Commits all files for `who`, and makes all changes survive a loss of power.
    ///
    /// # Errors
    /// The first error, after all files were tried.
    pub(crate) fn sync_all(&self, who: Syncer) -> Result<(), Error> {
        let committed = self
            .all()
            .map(|writing| writing.commit_where(who, |_| true));
        let committed: Result<(), Error> = committed.into_iter().collect();
        let committed = committed.and(self.staging.settle_below(&Prefix::root()));
        let removed = self.writer.sync_removed_journals();
        let synced = removed.and(self.writer.sync_below(&Prefix::root()));
        committed?;
        Ok(synced?)
    }

    /// The files of all views but that of `own`.
    fn others(&self, own: &Arc<Writing>) -> impl Iterator<Item = &Arc<Writing>> {
        let is_other = move |other: &&Arc<Writing>| !Arc::ptr_eq(own, other);
        self.all().into_iter().filter(is_other)
    }

    /// Waits for all commits below `directory`, through any view, and commits the files of `own`, which are those of
    /// the caller's view. The directory is about to be renamed. Saving may take long, and other callers wait for the
    /// rename, so it comes before the rename.
    ///
    /// # Errors
    /// The errors of saving.
    pub(crate) fn prepare_rename(&self, own: &Arc<Writing>, directory: &Key) -> Result<(), Error> {
        for other in self.others(own) {
            drop(other.take_names(&[directory], &[]));
        }
        own.prepare_rename(directory)
    }

    /// Prevents changes of names in two directories through other views than that of `own`, and saves of files there.
    pub(crate) fn keep_others(
        &self,
        own: &Arc<Writing>,
        from: &Key,
        to: &Key,
    ) -> Vec<NameLock<'_>> {
        let others = self.others(own);
        let locks = others.map(|other| other.take_names(&[from, to], &[]));
        locks.collect()
    }

    /// Notes in the other views than that of `own` that a directory was renamed through it. The caller holds the locks
    /// of their names.
    pub(crate) fn moved(&self, own: &Arc<Writing>, from: &Key, to: &Key) {
        for other in self.others(own) {
            other.follow(from, to);
        }
    }

    /// Commits all files and ends all writing.
    pub(crate) fn finish(&self) {
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
            log::warn!("{scratch} files that were only in the mount, not in the store, are gone");
        }
        self.staging.finish();
        self.writer.finish();
    }
}
