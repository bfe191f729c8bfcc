//! `--recover`: what a killed daemon left is removed or saved.

use std::sync::Arc;

use super::config::{LogConfig, StoreArgument, Talk};
use super::counted::counted;
use super::error::CliError;
use super::logging::start_log_at_terminal;
use super::output::Output;
use super::progress_bar::{ProgressBar, Work};
use super::store::{open, open_writer};
use crate::escape::Text;
use crate::store::{OpenOptions, WriterOptions};
use crate::view::{View, ViewOptions};

/// `--recover`: opening a store for changes removes the temporary files that a killed daemon left, and the inner chunks
/// in its journals are written to their shards.
pub(super) fn recover(
    store: &StoreArgument,
    writing: &WriterOptions,
    log: &LogConfig,
    talk: Talk,
) -> Result<(), CliError> {
    start_log_at_terminal(log, Arc::default())?;
    let opened = open(store, &OpenOptions::default(), None)?;
    let writer = open_writer(&*opened, writing)?;
    let shown = store.as_os_str().display();
    let removed = writer.recovered();
    let view = View::writable(Arc::clone(&opened), ViewOptions::default(), writer);
    let view = Arc::new(view.map_err(CliError::failed)?);
    let progress = Arc::clone(&view);
    let progress = ProgressBar::new(talk, "chunks", move || {
        let (found, done) = progress.recovery();
        Work {
            found: Some(found),
            done,
            bytes: 0,
            is_found: found > 0,
        }
    });
    let found = view.recover().map_err(CliError::failed)?;
    view.finish_writing();
    progress.end();
    let mut said = Vec::new();
    if removed > 0 {
        let files = counted(removed, "temporary file", "temporary files");
        said.push(format!(
            "{files} removed; each object is wholly old or wholly new"
        ));
    }
    if found.packed > 0 {
        let chunks = counted(found.packed, "chunk", "chunks");
        said.push(format!("{chunks} saved that waited in the journal"));
    }
    if found.changed > 0 {
        let chunks = counted(found.changed, "chunk", "chunks");
        said.push(format!(
            "{chunks} dropped, because another program has changed what the store has"
        ));
    }
    if found.copied > 0 {
        let documents = counted(found.copied, "change of metadata", "changes of metadata");
        said.push(format!("{documents} brought into consolidated metadata"));
    }
    if said.is_empty() && found.left == 0 && found.unusable == 0 && found.stale == 0 {
        said.push("nothing was left to recover".to_owned());
    }
    let mut text = Text::new();
    for said in said {
        text = text.line(format_args!("{shown}: {said}"));
    }
    if talk == Talk::Usual {
        Output::standard()
            .print_all(&text)
            .map_err(CliError::failed)?;
    }
    let mut failed = Vec::new();
    if found.left > 0 {
        let chunks = counted(found.left, "chunk stays", "chunks stay");
        failed.push(format!("{chunks} in the journal, and cannot be saved"));
    }
    if found.unusable > 0 {
        let journals = counted(found.unusable, "journal is", "journals are");
        failed.push(format!("{journals} not used and left alone"));
    }
    if found.stale > 0 {
        let documents = counted(found.stale, "change of metadata", "changes of metadata");
        failed.push(format!("{documents} not in consolidated metadata"));
    }
    if !failed.is_empty() {
        let failed = failed.join("; ");
        return Err(CliError::Failed(format!(
            "STORE {shown}: {failed}; see above"
        )));
    }
    Ok(())
}
