//! The command that mounts, and `--check`, which stops before the mount.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rustix::fs::{Access, AtFlags, CWD, accessat};
use rustix::io::Errno;
use sd_notify::NotifyState;

use super::config::{MountConfig, Passthrough};
use super::counted::counted;
use super::daemon::{Forked, StartupReport};
use super::error::CliError;
use super::logging::{StandardError, start_log, start_log_at_terminal};
use super::mountpoint::Mountpoint;
use super::output::print_warnings;
use super::service_manager::tell_manager;
use super::store::{
    budget_beside, nested_forms, nothing_in, open, open_writer, unlisted, useless_options,
    waiting_warning,
};
use super::{addresses, allocator, appearance, daemon};
use crate::fresh::Freshness;
use crate::fuse::session::Session;
use crate::fuse::{FsOptions, ZarrFs};
use crate::recent_lines::RecentLines;
#[cfg(debug_assertions)]
use crate::store::testing::inject;
use crate::view::{OwnLog, View, ViewOptions};

/// How long the kernel may cache a store that never changes.
const UNCHANGING: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// Checks all that a mount needs, and leaves everything as it is.
pub(super) fn check(config: &MountConfig) -> Result<(), CliError> {
    daemon::check_descriptor_limit().map_err(CliError::Failed)?;
    addresses::check().map_err(CliError::Failed)?;
    let recent = Arc::default();
    start_log_at_terminal(&config.log, Arc::clone(&recent))?;
    let (_, warnings) = build(config, recent)?;
    print_warnings(warnings);
    Mountpoint::check(config)
}

/// Mounts STORE, in the background unless the user wants otherwise, and returns when the mount has ended.
pub(super) fn mount(config: &MountConfig) -> Result<(), CliError> {
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
    if config.writing.is_none() {
        warnings.extend(waiting_warning(&config.store, &*store));
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
