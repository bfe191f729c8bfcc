//! STORE: how the commands open it, and what they say about it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::config::StoreArgument;
use super::counted::counted;
use super::draft;
use super::error::CliError;
use crate::store::{
    Cursor, Detail, DirWriter, Location, NestedForms, OpenOptions, Prefix, Store, WaitingParts,
    WriterOptions, open_directory_of_stores, open_store_for,
};
use crate::view::{View, ViewKind};

/// Opens STORE. `forms` says which stores in it are looked into.
pub(super) fn open(
    store: &StoreArgument,
    options: &OpenOptions,
    forms: Option<NestedForms>,
) -> Result<Arc<dyn Store>, CliError> {
    let location = Location::parse(store.as_os_str()).map_err(CliError::failed)?;
    if let Location::Directory(path) = &location
        && let Some(root) = draft::root_around(path)
    {
        return Err(CliError::Failed(format!(
            "{location}: this is part of a hierarchy of a v3 draft; name {}, where its zarr.json is",
            root.display()
        )));
    }
    let opened = match forms {
        Some(forms) => open_directory_of_stores(&location, options, forms),
        None => open_store_for(&location, options),
    };
    opened.map_err(|error| CliError::of_store(&error))
}

/// The files in a directory of stores (zip files, sets of references) that are shown as directories. Nothing can be
/// written into such a directory, so a store that is written to has none. With the keys view alone, files stay files.
pub(super) fn nested_forms(views: &[ViewKind], is_written: bool) -> Option<NestedForms> {
    if is_written {
        None
    } else if views.iter().all(|view| *view == ViewKind::Keys) {
        Some(NestedForms::Directories)
    } else {
        Some(NestedForms::All)
    }
}

/// Opens the store for changes.
pub(super) fn open_writer(
    store: &dyn Store,
    options: &WriterOptions,
) -> Result<DirWriter, CliError> {
    let writer = store.writer(options).map_err(CliError::failed)?;
    writer.ok_or_else(|| {
        let problem = if store.snapshot().is_some() {
            "an Icechunk repository is only read; leave out --rw"
        } else {
            "this store cannot be written to, only a directory can"
        };
        CliError::Failed(problem.to_owned())
    })
}

/// The memory of `budget_bytes` that the store itself does not hold.
pub(super) fn budget_beside(store: &dyn Store, budget_bytes: u64) -> u64 {
    budget_bytes.saturating_sub(store.held_bytes())
}

/// The error that nothing is in STORE.
pub(super) fn nothing_in(argument: &StoreArgument, store: &dyn Store) -> CliError {
    let unlisted = unlisted_page(argument, store);
    let problem = unlisted.unwrap_or("nothing is in it; is this what holds the hierarchy?");
    let shown = argument.as_os_str().display();
    CliError::Failed(format!("STORE {shown}: {problem}"))
}

/// The problem of a URL that is a directory of a web server without a node, if the server lists no names; `None` for
/// other stores.
pub(super) fn unlisted_page(argument: &StoreArgument, store: &dyn Store) -> Option<&'static str> {
    (argument.is_web() && store.is_page()).then_some(
        "no Zarr node is at this URL, and the web server does not list the names below it; name the URL of \
         a group or an array",
    )
}

/// A warning about a web server that does not list names, where names are needed: for the nodes of a store, unless the
/// mount `knows_nodes` without them, and for the chunks, if a view lists the stored ones (`lists_chunks`).
pub(super) fn unlisted(
    argument: &StoreArgument,
    store: &dyn Store,
    knows_nodes: bool,
    lists_chunks: bool,
) -> Option<String> {
    if !argument.is_web() || knows_nodes && !lists_chunks {
        return None;
    }
    let error = store.list(&Prefix::root(), Cursor::START, Detail::Names);
    let mut line = format!("STORE {}: {}", argument.as_os_str().display(), error.err()?);
    if !knows_nodes {
        line += "; a listing has only names that documents mention, and others open by name";
    }
    if lists_chunks {
        line += "; a directory of chunks gives an error when it is listed, so that no copy lacks them \
                 without a word; --view chunks lists all chunks";
    }
    Some(line)
}

/// The clause that says how the chunks in the journal get into the store.
pub(super) const SAVED_BY: &str = "a mount with --rw, or zarr-mount --recover, saves such chunks";

/// The chunks of `store` that wait in journals. Journals of other users, which this user may not read, are not
/// included.
pub(super) fn waiting_in(store: &dyn Store) -> WaitingParts {
    store.waiting().unwrap_or_default()
}

/// A clause about the `n` chunks that wait in journals, if there are any.
pub(super) fn waiting_in_words(n: usize) -> Option<String> {
    let chunks = counted(n, "chunk waits", "chunks wait");
    (n > 0).then(|| format!("{chunks} in a journal, not shown; {SAVED_BY}"))
}

/// A warning about the chunks that wait in journals of STORE, if there are any.
pub(super) fn waiting_warning(argument: &StoreArgument, store: &dyn Store) -> Option<String> {
    let waiting = waiting_in_words(waiting_in(store).len())?;
    Some(format!(
        "STORE {}: {waiting}",
        argument.as_os_str().display()
    ))
}

/// The longest search for the arrays and groups that `--array`, `--unlimited` and `--files` name.
pub(super) const SEARCH_TIME: Duration = Duration::from_secs(2);

/// A line for each pattern of `--array`, for `--unlimited`, and for `--files h5ad`, that certainly names nothing in
/// STORE.
pub(super) fn useless_options(view: &View, store: &StoreArgument) -> Vec<String> {
    let deadline = Instant::now() + SEARCH_TIME;
    let patterns = view
        .arrays()
        .patterns_without_array(&Prefix::root(), deadline);
    let shown = store.as_os_str().display();
    let patterns = patterns
        .iter()
        .map(|pattern| format!("--array {pattern}: it selects no array of {shown}"));
    patterns
        .chain(useless_formats(view, store, deadline))
        .collect()
}

/// The lines for `--unlimited` and `--files h5ad`. The search in STORE ends at `deadline`.
pub(super) fn useless_formats(
    view: &View,
    store: &StoreArgument,
    deadline: Instant,
) -> Vec<String> {
    let store = store.as_os_str().display();
    let unlimited = view.arrays().unlimited_without_array(deadline).into_iter();
    let unlimited =
        unlimited.map(|name| format!("--unlimited {name}: no array of {store} has this dimension"));
    let anndata = view.arrays().asks_for_anndata_in_vain(deadline);
    let anndata =
        anndata.then(|| format!("--files h5ad: no group of {store} is an AnnData object"));
    unlimited.chain(anndata).collect()
}
