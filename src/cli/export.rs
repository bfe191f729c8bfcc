//! `--cat` and `--export`: what a mount would show, without one.

use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use indicatif::BinaryBytes;

use super::config::{ExportConfig, ShownConfig, Talk};
use super::counted::counted;
use super::daemon;
use super::error::CliError;
use super::logging::start_log_at_terminal;
use super::output::{self, Output, print_warnings};
use super::progress_bar::{ProgressBar, Work};
use super::store::{
    SEARCH_TIME, budget_beside, nested_forms, nothing_in, open, useless_formats, useless_options,
    waiting_warning,
};
use crate::escape::Text;
use crate::export::{Counters, Export, FileError, write_to};
#[cfg(debug_assertions)]
use crate::store::testing::inject;
use crate::view::{View, ViewOptions};

/// `--cat`.
pub(super) fn cat(config: &ShownConfig) -> Result<(), CliError> {
    let view = view_of(config)?;
    print_warnings(useless_options(&view, &config.store));
    let shown = format!("{} of {}", config.path.display(), name_of(config));
    let failed = |error: &dyn std::fmt::Display| CliError::Failed(format!("{shown}: {error}"));
    let found = view.find_path(config.path.as_bytes());
    let found = found.map_err(|error| failed(&error))?;
    let found =
        found.ok_or_else(|| failed(&"no such file in this view; see --view and --files"))?;
    let mut out = Output::standard();
    let written = write_to(&found, |bytes| out.pass_on(bytes));
    match written.and_then(|()| out.flush().map_err(FileError::Written)) {
        // The reader closed the pipe, as in `zarr-mount --cat … | head`.
        Err(FileError::Written(error)) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        Err(error) => Err(failed(&error)),
        Ok(()) => Ok(()),
    }
}

/// `--export`.
pub(super) fn export(config: &ShownConfig, export: &ExportConfig) -> Result<(), CliError> {
    daemon::raise_descriptor_limit();
    let view = view_of(config)?;
    let deadline = Instant::now() + SEARCH_TIME;
    check_selection(&view, config, deadline)?;
    print_warnings(useless_formats(&view, &config.store, deadline));
    let counters = Arc::new(Counters::default());
    let work = Arc::clone(&counters);
    let progress = ProgressBar::new(export.talk, "files", move || {
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Work {
            done: of(&work.written) + of(&work.kept) + of(&work.failed),
            found: Some(of(&work.found)),
            bytes: of(&work.bytes),
            is_found: work.is_found.load(Ordering::Relaxed),
        }
    });
    let run = Export {
        path: config.path.as_bytes(),
        directory: &export.directory,
        resume: export.resume,
        subject: &subject(config),
        n_files_at_once: config.n_at_once,
    };
    let done = run.run(&view, &counters, &|path, error| {
        let path = String::from_utf8_lossy(path);
        let path = if path.is_empty() {
            "the root".into()
        } else {
            path
        };
        progress.around(|| output::print_error(&format_args!("{path}: {error}")));
    });
    progress.end();
    done.map_err(|error| CliError::Failed(format!("--export: {error}")))?;
    if export.talk == Talk::Usual {
        let summary = Text::new().line(summary(&counters, &export.directory));
        Output::standard()
            .print_all(&summary)
            .map_err(CliError::failed)?;
    }
    match counters.failed.load(Ordering::Relaxed) {
        0 => Ok(()),
        failed => {
            let files = counted(failed, "file or directory was", "files or directories were");
            let problem = format!("--export: {files} not exported; see above");
            Err(CliError::Failed(problem))
        }
    }
}

/// The subject of an export: the store, the path in the view, and the options of the view.
fn subject(config: &ShownConfig) -> Vec<u8> {
    let options = config.view.text();
    let names = [config.store.as_os_str(), &config.path].map(OsStrExt::as_bytes);
    [names[0], names[1], options.as_bytes()].join(&0)
}

/// Checks that each pattern of `--array` selects something of what is exported, before anything is written.
fn check_selection(
    view: &Arc<View>,
    config: &ShownConfig,
    deadline: Instant,
) -> Result<(), CliError> {
    let failed = |error: &dyn std::fmt::Display| CliError::Failed(format!("--export: {error}"));
    let start = view.find_path(config.path.as_bytes());
    let start = start.map_err(|error| failed(&error))?;
    let unused = start.map(|start| start.patterns_without_array(deadline));
    match unused.unwrap_or_default().first() {
        None => Ok(()),
        Some(pattern) => {
            let place = match config.path.to_string_lossy().trim_matches('/') {
                "" => String::new(),
                path => format!(" at or below {path}"),
            };
            Err(failed(&format_args!(
                "--array {pattern}: it selects no array{place}"
            )))
        }
    }
}

/// The view of a mount with this configuration. A warning tells of chunks in journals, which the view does not show.
pub(super) fn view_of(config: &ShownConfig) -> Result<Arc<View>, CliError> {
    start_log_at_terminal(&config.log, Arc::default())?;
    let forms = nested_forms(&config.view.views, false);
    let store = open(&config.store, &config.open, forms)?;
    #[cfg(debug_assertions)]
    let store = inject(store, &config.injections).map_err(CliError::failed)?;
    let options = ViewOptions {
        cache_budget_bytes: budget_beside(&*store, config.view.cache_budget_bytes),
        ..config.view.clone()
    };
    let view = View::new(Arc::clone(&store), options).map_err(CliError::failed)?;
    if !view.finds_anything().map_err(CliError::failed)? {
        return Err(nothing_in(&config.store, &*store));
    }
    print_warnings(waiting_warning(&config.store, &*store));
    Ok(Arc::new(view))
}

pub(super) fn name_of(config: &ShownConfig) -> impl std::fmt::Display {
    config.store.as_os_str().display()
}

/// The summary of a finished export.
fn summary(counters: &Counters, directory: &Path) -> String {
    let written = counters.written.load(Ordering::Relaxed);
    let kept = counters.kept.load(Ordering::Relaxed);
    let bytes = BinaryBytes(counters.bytes.load(Ordering::Relaxed));
    let kept = match kept {
        0 => String::new(),
        kept => format!(
            "; {}",
            counted(kept, "file was there already", "files were there already")
        ),
    };
    format!(
        "{}, {bytes}, in {}{kept}",
        counted(written, "file", "files"),
        directory.display()
    )
}
