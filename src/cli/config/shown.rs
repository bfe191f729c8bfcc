//! Tasks that need no mount: `--verify`, `--warm`, `--cat`, `--export` and `--serve`.

#[cfg(feature = "serve")]
use super::ServeConfig;
use std::path::Path;

use super::apart::is_in;
use super::values::{absolute, log_config, talk};
use super::view::{array_options, view_options};
use super::{CliTask, ExportConfig, ShownConfig, StoreArgument, VerifyConfig};
use crate::cli::args::Args;
use crate::cli::error::CliError;
use crate::metadata::ZarrFormat;
use crate::store::OpenOptions;
use crate::verify::Purpose;

/// The number of files or objects of a remote store that are read at the same time: each read waits for the server most
/// of the time.
const REMOTE_AT_ONCE: usize = 32;

/// The task of `--verify`, `--warm`, `--cat`, `--export` or `--serve`.
pub(super) fn shown_task(
    args: Args,
    store: StoreArgument,
    open: OpenOptions,
    read_as: Option<ZarrFormat>,
) -> Result<CliTask, CliError> {
    if args.warms() && !store.is_remote() {
        let problem = "--warm: only stores on servers are kept in the disk cache";
        return Err(CliError::Usage(problem.to_owned()));
    }
    let log = log_config(&args)?;
    let talk = talk(&args);
    let arrays = array_options(&args, &store, false)?;
    let view = view_options(&args, &store, read_as, arrays);
    if args.cat && args.target.is_none() {
        let problem = "PATH missing: --cat prints one file of what a mount would show";
        return Err(CliError::Usage(problem.to_owned()));
    }
    let directory = args.export.as_deref().map(absolute).transpose()?;
    if let (Some(directory), Some(store)) = (&directory, store.local_path()) {
        check_apart(directory, store)?;
    }
    #[cfg(feature = "serve")]
    let serve = serve_config(&args)?;
    let shown = Box::new(ShownConfig {
        n_at_once: if store.is_remote() {
            REMOTE_AT_ONCE
        } else {
            view.decode_threads.saturating_mul(2)
        },
        store,
        open,
        view,
        path: args.target.unwrap_or_default(),
        log,
        #[cfg(debug_assertions)]
        injections: args.inject,
    });
    #[cfg(feature = "serve")]
    if let Some(serve) = serve {
        return Ok(CliTask::Serve(shown, serve));
    }
    Ok(match directory {
        Some(directory) => {
            let resume = args.resume;
            CliTask::Export(
                shown,
                ExportConfig {
                    directory,
                    resume,
                    talk,
                },
            )
        }
        None if args.cat => CliTask::Cat(shown),
        None => {
            let purpose = if args.verify {
                Purpose::Verify
            } else {
                Purpose::Warm
            };
            let json = args.json;
            CliTask::Verify(
                shown,
                VerifyConfig {
                    purpose,
                    json,
                    talk,
                },
            )
        }
    })
}

/// Checks that an export to `directory` writes nothing into the store, and that the store is not in `directory`.
fn check_apart(directory: &Path, store: &Path) -> Result<(), CliError> {
    let problem = if is_in(directory, store) {
        "is in STORE, which would be exported into itself"
    } else if is_in(store, directory) {
        "has STORE in it, which the files of the export could replace"
    } else {
        return Ok(());
    };
    let directory = directory.display();
    Err(CliError::Usage(format!(
        "--export: {directory} {problem}; name another directory"
    )))
}

/// The configuration of the server, if `--serve` is given.
#[cfg(feature = "serve")]
pub(super) fn serve_config(args: &Args) -> Result<Option<ServeConfig>, CliError> {
    let serving = args.serving.clone();
    let Some(address) = serving.serve else {
        return Ok(None);
    };
    Ok(Some(ServeConfig {
        address,
        token_file: serving.token_file.as_deref().map(absolute).transpose()?,
        hosts: serving.host,
        origins: serving.cors,
        tls: match (&serving.tls_cert, &serving.tls_key) {
            (Some(certificate), Some(key)) => Some((absolute(certificate)?, absolute(key)?)),
            _ => None,
        },
        is_insecure: serving.insecure,
        talk: talk(args),
    }))
}
