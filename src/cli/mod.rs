//! The command: from flags to a checked configuration to a mount that answers.
//!
//! 1. `command_line`, `args`, `options` parse the command line as typed, `-o` included, and
//!    `mount_helper` that of a helper of mount(8).
//! 2. `config` decides what it means, with absolute paths.
//! 3. `daemon` moves to the background, before anything is opened.
//! 4. `logging`, the file system itself, `mountpoint`, then
//!    [`Session`]: any of them may fail, and the line that says
//!    so reaches the user through `daemon`'s pipe.

mod addresses;
mod allocator;
mod appearance;
mod args;
mod at;
mod byte;
mod command_line;
pub mod config;
mod counted;
mod daemon;
#[cfg(feature = "remote")]
mod disk_cache_args;
mod draft;
mod ending;
mod environment;
mod error;
mod export;
mod format_step;
mod generated;
mod help;
mod help_groups;
mod info;
mod json_element;
mod json_list;
mod list;
mod logging;
mod memory_limit;
mod mount_helper;
mod mountpoint;
mod mounts;
mod options;
mod output;
mod passthrough;
mod progress_bar;
#[cfg(feature = "remote")]
mod remote_args;
#[cfg(feature = "serve")]
mod serve;
#[cfg(feature = "serve")]
mod serve_args;
mod size;
mod status;
mod suggestion;
mod syslog;
mod verify;
mod version;

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::fs::{Access, AtFlags, CWD, accessat};
use rustix::io::Errno;
use sd_notify::NotifyState;

use self::args::Args;
use self::config::{CliTask, InfoConfig, LogConfig, MountConfig, Passthrough, StoreArgument, Talk};
use self::counted::counted;
use self::daemon::{Forked, StartupReport};
use self::error::CliError;
use self::logging::StandardError;
use self::mountpoint::Mountpoint;
use self::options::Unknown;
use self::output::Output;
use self::progress_bar::{ProgressBar, Work};
use crate::escape::Text;
use crate::fresh::Freshness;
use crate::fuse::session::{Session, outlive_long_files};
use crate::fuse::{FsOptions, ZarrFs};
use crate::recent_lines::RecentLines;
#[cfg(debug_assertions)]
use crate::store::testing::inject;
use crate::store::{
    Cursor, Detail, DirWriter, Location, NestedForms, OpenOptions, Prefix, Store, WaitingParts,
    WriterOptions, open_directory_of_stores, open_store_for,
};
use crate::view::{OwnLog, View, ViewKind, ViewOptions};

/// Runs the command with its arguments, the program's name first, and returns its status: 0 when it has done its task,
/// 1 when it could not, 2 when it was not understood. A helper of mount(8) returns 32 and 1 for the last two.
///
/// A process must call this once, before anything else: it may fork and close descriptors.
pub fn run(args: impl Iterator<Item = OsString>) -> ExitCode {
    let command_line: Vec<_> = args.collect();
    outlive_long_files();
    let is_helper = mount_helper::is_meant(&command_line);
    let Err(error) = execute(&command_line, is_helper) else {
        return ExitCode::SUCCESS;
    };
    match &error {
        // Standard output may be closed, and then the text is lost.
        CliError::Print(text) => drop(text.print()),
        _ => output::print_error(&error),
    }
    if is_helper {
        error.status_of_helper()
    } else {
        error.status()
    }
}

fn execute(command_line: &[OsString], is_helper: bool) -> Result<(), CliError> {
    let parsed = if is_helper {
        mount_helper::parse(command_line)
    } else {
        Args::parse_from(command_line, Unknown::Refused)
    };
    let task = parsed
        .and_then(|(args, options)| {
            let verifies = args.verify;
            let task = CliTask::new(args, options);
            task.map_err(|error| if verifies { error.of_search() } else { error })
        })
        .map_err(|error| {
            if is_helper {
                error
            } else {
                suggestion::add(error, command_line)
            }
        })?;
    match task {
        CliTask::Print(text) => Output::standard().print(&text).map_err(CliError::failed),
        CliTask::Mount(config) => mount(&config),
        CliTask::Check(config) => check(&config),
        CliTask::List(form) => list::list(form),
        CliTask::Status { mountpoint, json } => status::status(&mountpoint, json),
        CliTask::Unmount(mountpoint, how) => mountpoint::unmount_ours(&mountpoint, how),
        CliTask::Recover(store, writing, log, how) => recover(&store, &writing, &log, how),
        CliTask::Info(config) => print_info(&config),
        CliTask::Verify(config, verify) => verify::verify(&config, &verify),
        CliTask::Cat(config) => export::cat(&config),
        CliTask::Export(config, export) => export::export(&config, &export),
        #[cfg(feature = "serve")]
        CliTask::Serve(config, serve) => serve::serve(&config, &serve),
    }
}

/// `--recover`: opening a store for changes removes the temporary files that a killed daemon left, and the inner chunks
/// in its journals are written to their shards.
fn recover(
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
        Output::standard().print(&text).map_err(CliError::failed)?;
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

/// `--info`.
fn print_info(config: &InfoConfig) -> Result<(), CliError> {
    start_log_at_terminal(&config.log, Arc::default())?;
    let store = open(&config.store, &config.open, Some(NestedForms::All))?;
    #[cfg(debug_assertions)]
    let store = inject(store, &config.injections).map_err(CliError::failed)?;
    let path = config.path.as_deref().unwrap_or_default();
    let start = Prefix::parse(path.as_bytes()).map_err(CliError::failed)?;
    let out = &mut Output::standard();
    let mut described = Vec::new();
    if !config.json {
        described.extend(store.description().map(str::to_owned));
        described.extend(store.snapshot());
    }
    let mut described = described.into_iter();
    let begun = described.try_for_each(|described| out.print(&Text::new().line(described)));
    let printed = match (&config.at, begun) {
        (_, Err(error)) => Err(error),
        _ if config.offset.is_some() => {
            let offset = config.offset.unwrap_or_default();
            let text = byte::describe_byte(Arc::clone(&store), &start, offset, config)?;
            out.print(&text).map(|()| true)
        }
        (Some(indices), Ok(())) => {
            let text = at::describe_element(Arc::clone(&store), &start, indices, config)?;
            out.print(&text).map(|()| true)
        }
        (None, Ok(())) => info::report(&store, &start, config, out),
    };
    if matches!(printed, Ok(true)) {
        // Problems of the nodes were logged already.
        print_warnings(unlisted(&config.store, &*store, true, true));
    }
    match printed {
        Ok(true) => Ok(()),
        Ok(false) => {
            if let Some(problem) = unlisted_page(&config.store, &*store) {
                let node = shown_node(&config.store, &start);
                return Err(CliError::Failed(format!("{node}: {problem}")));
            }
            let advice = if start.is_root() {
                let hint = appearance::hint(&*store);
                if hint.is_empty() {
                    "; is this the directory that holds the hierarchy?".to_owned()
                } else {
                    hint
                }
            } else {
                "; without a path, --info lists all nodes".to_owned()
            };
            let node = shown_node(&config.store, &start);
            let problem = format!("{node}: no Zarr node here or below{advice}");
            Err(CliError::Failed(problem))
        }
        // The reader closed the pipe, as in `zarr-mount --info … | head`.
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        Err(error) => Err(CliError::failed(error)),
    }
}

/// The node at `path` of STORE, for a message.
fn shown_node(store: &StoreArgument, path: &Prefix) -> String {
    let store = store.as_os_str().display();
    if path.is_root() {
        store.to_string()
    } else {
        format!("{path} in {store}")
    }
}

/// Opens STORE, with those stores in it that `forms` says.
fn open(
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

/// Which stores in a directory of stores are shown as directories of their own. Nothing is written into them, so that
/// there are none where the store is written to, and files stay files in the keys view.
fn nested_forms(views: &[ViewKind], is_written: bool) -> Option<NestedForms> {
    if is_written {
        None
    } else if views.iter().all(|view| *view == ViewKind::Keys) {
        Some(NestedForms::Directories)
    } else {
        Some(NestedForms::All)
    }
}

/// Checks all that a mount needs, and leaves everything as it is.
fn check(config: &MountConfig) -> Result<(), CliError> {
    daemon::check_descriptor_limit().map_err(CliError::Failed)?;
    addresses::check().map_err(CliError::Failed)?;
    let recent = Arc::default();
    start_log_at_terminal(&config.log, Arc::clone(&recent))?;
    let (_, warnings) = build(config, recent)?;
    print_warnings(warnings);
    Mountpoint::check(config)
}

fn mount(config: &MountConfig) -> Result<(), CliError> {
    daemon::check_descriptor_limit().map_err(CliError::Failed)?;
    addresses::check().map_err(CliError::Failed)?;
    let (report, stderr) = if config.foreground {
        (StartupReport::to_nobody(), StandardError::Terminal)
    } else {
        match daemon::fork().map_err(CliError::failed)? {
            Forked::Parent(verdict) => {
                let outcome = verdict.wait(|warning| print_warnings([warning]));
                return outcome.map_err(CliError::Failed);
            }
            Forked::Daemon(report) => (report, StandardError::Null),
        }
    };
    allocator::limit_heaps();
    match start(config, stderr, report.clone()) {
        Ok(Started {
            session,
            mountpoint,
            view,
            warnings,
        }) => {
            let ready = report.ready(&warnings);
            if config.foreground {
                print_warnings(warnings);
                tell_manager(NotifyState::Ready);
            }
            let end = match ready {
                Ok(()) => session.wait(|| {
                    if config.foreground {
                        tell_manager(NotifyState::Stopping);
                    }
                    // Open files are saved at once, even if programs keep the mount busy.
                    view.finish_writing();
                }),
                Err(_) => session.end(),
            };
            // A program may still have files open that it has written to.
            view.finish_writing();
            drop(mountpoint);
            end.map_err(|error| {
                if stderr == StandardError::Null {
                    log::error!("{error}");
                }
                CliError::failed(error)
            })
        }
        Err(error) => {
            report.failed(&error.to_string());
            Err(error)
        }
    }
}

/// Tells the service manager, if it has started the program as a service of the type `notify`.
fn tell_manager(state: NotifyState<'_>) {
    if let Err(error) = sd_notify::notify(&[state]) {
        log::warn!("the service manager could not be told: {error}");
    }
}

/// Starts the log of a command that ends by itself.
fn start_log_at_terminal(log: &LogConfig, recent: Arc<RecentLines>) -> Result<(), CliError> {
    start_log(
        log,
        StandardError::Command,
        recent,
        StartupReport::to_nobody(),
    )
}

fn start_log(
    log: &LogConfig,
    stderr: StandardError,
    recent: Arc<RecentLines>,
    report: StartupReport,
) -> Result<(), CliError> {
    logging::start(log, stderr, recent, report).map_err(|error| {
        let path = log.file.as_deref().unwrap_or("standard error".as_ref());
        CliError::Failed(format!("log file {}: {error}", path.display()))
    })
}

fn print_warnings(warnings: impl IntoIterator<Item = String>) {
    for warning in warnings {
        output::print_error(&format_args!("warning: {warning}"));
    }
}

/// A mount that answers.
struct Started {
    session: Session,
    mountpoint: Mountpoint,
    view: Arc<View>,
    /// Warnings for the user, one line each.
    warnings: Vec<String>,
}

/// Does everything up to a mount that answers.
fn start(
    config: &MountConfig,
    stderr: StandardError,
    report: StartupReport,
) -> Result<Started, CliError> {
    let recent = Arc::default();
    start_log(&config.log, stderr, Arc::clone(&recent), report)?;
    daemon::raise_descriptor_limit();
    let (filesystem, warnings) = build(config, recent)?;
    for warning in &warnings {
        // In the foreground, the log is where the warnings are printed.
        if !config.foreground {
            log::warn!("{warning}");
        }
    }
    let view = filesystem.view();
    // The mountpoint comes last, so that giving up a slow store leaves no directory behind.
    let mountpoint = Mountpoint::prepare(config)?;
    let session =
        Session::mount(filesystem, &mountpoint.path, &config.session).map_err(CliError::failed)?;
    Ok(Started {
        session,
        mountpoint,
        view,
        warnings,
    })
}

/// Builds the file system of a store, and returns lines about its oddities. Only a bounded part of the store is
/// examined for them. A STORE that contains nothing is an error, unless it is a directory, which may fill later.
fn build(
    config: &MountConfig,
    recent: Arc<RecentLines>,
) -> Result<(ZarrFs, Vec<String>), CliError> {
    let forms = nested_forms(&config.view.views, config.writing.is_some());
    let store = open(&config.store, &config.open, forms)?;
    let writing = config.writing.as_ref();
    let writer = writing.map(|options| open_writer(&*store, options));
    let writer = writer.transpose()?;
    #[cfg(debug_assertions)]
    let store = inject(store, &config.injections).map_err(CliError::failed)?;
    let options = ViewOptions {
        cache_budget_bytes: budget_beside(&*store, config.view.cache_budget_bytes),
        ..config.view.clone()
    };
    let view = match writer {
        Some(writer) => View::writable(Arc::clone(&store), options, writer),
        None => View::new(Arc::clone(&store), options),
    };
    let view = view.map_err(CliError::failed)?;
    let recovered = view.recover().map_err(CliError::failed)?;
    let view = view.with_log(OwnLog {
        lines: recent,
        uid: rustix::process::geteuid().as_raw(),
        gid: rustix::process::getegid().as_raw(),
    });
    log::info!(
        "threads that decode: {}, that answer: {}",
        view.loader().decoders(),
        config.session.n_threads
    );
    let shown = config.store.as_os_str().display();
    let is_directory = config.store.path().is_some_and(Path::is_dir);
    if !is_directory && !view.finds_anything().map_err(CliError::failed)? {
        return Err(nothing_in(&config.store, &*store));
    }
    let mut warnings = Vec::new();
    warnings.extend(config.hint.map(str::to_owned));
    warnings.extend(no_right_to_write(config));
    if recovered.packed > 0 {
        let chunks = counted(recovered.packed, "chunk", "chunks");
        warnings.push(format!(
            "STORE {shown}: {chunks} saved that an earlier mount had left in its journal"
        ));
    }
    // Other stores list their names, so their root is not examined for this.
    let knows_nodes =
        !config.store.is_web() || view.knows_names_of_root().map_err(CliError::failed)?;
    let lists_chunks = config.view.lists_stored_chunks();
    warnings.extend(unlisted(&config.store, &*store, knows_nodes, lists_chunks));
    if config.writing.is_none()
        && let Some(waiting) = waiting_in_words(waiting_in(&*store).len())
    {
        warnings.push(format!("STORE {shown}: {waiting}"));
    }
    if writing.is_some() && view.is_of_n5().map_err(CliError::failed)? {
        return Err(CliError::Failed(format!(
            "STORE {shown}: it is N5, which cannot be written"
        )));
    }
    if is_directory && view.finds_nodes().map_err(CliError::failed)? == Some(false) {
        if writing.is_some() && appearance::is_icechunk(&*store) {
            return Err(CliError::Failed(format!(
                "STORE {shown}: it is an Icechunk repository, which cannot be written"
            )));
        }
        warnings.push(format!(
            "STORE {shown}: no Zarr node is in it or directly below it; mounted all the same{}",
            appearance::hint(&*store)
        ));
    }
    let only_copied = view.only_copied();
    if let [first, ..] = &only_copied[..] {
        let arrays = counted(only_copied.len(), "array", "arrays");
        warnings.push(format!(
            "STORE {shown}: {arrays} (such as {first}) not shown: only consolidated metadata has their documents"
        ));
    }
    warnings.extend(useless_options(&view, &config.store));
    let is_immutable = config.view.freshness.is_immutable();
    let ttl = match config.view.freshness {
        Freshness::Immutable => UNCHANGING,
        Freshness::Checked(ttl) => ttl,
    };
    let options = FsOptions {
        ttl,
        keep_listings: is_immutable,
        passthrough: match config.passthrough {
            Passthrough::Always => true,
            Passthrough::Auto => is_immutable,
            Passthrough::Never => false,
        },
        xattr: config.xattr,
        event_threads: config.session.n_threads,
        transport: config.transport,
    };
    Ok((ZarrFs::new(Arc::new(view), options), warnings))
}

/// The clause that says how the chunks in the journal get into the store.
const SAVED_BY: &str = "a mount with --rw, or zarr-mount --recover, saves such chunks";

/// The chunks of `store` that wait in journals. Journals of other users, which this user may not read, are not
/// included.
fn waiting_in(store: &dyn Store) -> WaitingParts {
    store.waiting().unwrap_or_default()
}

/// A clause about the `n` chunks that wait in journals, if there are any.
fn waiting_in_words(n: usize) -> Option<String> {
    let chunks = counted(n, "chunk waits", "chunks wait");
    (n > 0).then(|| format!("{chunks} in a journal, not shown; {SAVED_BY}"))
}

/// A line for a mount that programs may write to, if the daemon has no right to change the directory of the store.
fn no_right_to_write(config: &MountConfig) -> Option<String> {
    let store = config.writing.as_ref().and(config.store.path())?;
    let wanted = Access::WRITE_OK | Access::EXEC_OK;
    let allowed = accessat(CWD, store, wanted, AtFlags::EACCESS);
    (allowed == Err(Errno::ACCESS)).then(|| {
        format!(
            "STORE {}: this user may not write to this directory, so that what programs write may be refused \
             (EACCES)",
            store.display()
        )
    })
}

/// A warning about a web server that does not list names, where names are needed: for the nodes of a store, unless the
/// mount `knows_nodes` without them, and for the chunks, if a view lists the stored ones (`lists_chunks`).
fn unlisted(
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

/// The problem of a URL that is a directory of a web server without a node, if the server lists no names; `None` for
/// other stores.
fn unlisted_page(argument: &StoreArgument, store: &dyn Store) -> Option<&'static str> {
    (argument.is_web() && store.is_page()).then_some(
        "no Zarr node is at this URL, and the web server does not tell the names below it; name the URL of \
         a group or an array",
    )
}

/// The error that nothing is in STORE.
fn nothing_in(argument: &StoreArgument, store: &dyn Store) -> CliError {
    let unlisted = unlisted_page(argument, store);
    let problem = unlisted.unwrap_or("nothing is in it; is this what holds the hierarchy?");
    let shown = argument.as_os_str().display();
    CliError::Failed(format!("STORE {shown}: {problem}"))
}

/// Opens the store for changes.
fn open_writer(store: &dyn Store, options: &WriterOptions) -> Result<DirWriter, CliError> {
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
fn budget_beside(store: &dyn Store, budget_bytes: u64) -> u64 {
    budget_bytes.saturating_sub(store.held_bytes())
}

/// The longest search for the arrays and groups that `--array`, `--unlimited` and `--files` name.
const SEARCH_TIME: Duration = Duration::from_secs(2);

/// A line for each pattern of `--array`, for `--unlimited`, and for `--files h5ad`, that certainly names nothing in
/// STORE.
fn useless_options(view: &View, store: &StoreArgument) -> Vec<String> {
    let deadline = Instant::now() + SEARCH_TIME;
    let store = store.as_os_str().display().to_string();
    let patterns = view.patterns_without_array(deadline).into_iter();
    let patterns =
        patterns.map(|pattern| format!("--array {pattern}: it selects no array of {store}"));
    let unlimited = view.unlimited_without_array(deadline).into_iter();
    let unlimited =
        unlimited.map(|name| format!("--unlimited {name}: no array of {store} has this dimension"));
    let anndata = view.asks_for_anndata_in_vain(deadline);
    let anndata =
        anndata.then(|| format!("--files h5ad: no group of {store} is an AnnData object"));
    patterns.chain(unlimited).chain(anndata).collect()
}

/// How long the kernel may cache a store that never changes.
const UNCHANGING: Duration = Duration::from_secs(365 * 24 * 60 * 60);
