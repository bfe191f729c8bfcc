//! The command `--info`: describes all nodes, one element (`--at`), or one byte (`--offset`).

use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

use super::report;
use crate::cli::config::{InfoConfig, StoreArgument};
use crate::cli::error::CliError;
use crate::cli::logging::start_log_at_terminal;
use crate::cli::output::{Output, print_warnings};
use crate::cli::store::{open, unlisted, unlisted_page};
use crate::cli::{appearance, at, byte};
use crate::escape::Text;
#[cfg(debug_assertions)]
use crate::store::testing::inject;
use crate::store::{NestedForms, Prefix};

/// Prints what is asked of STORE.
pub(in crate::cli) fn print(config: &InfoConfig) -> Result<(), CliError> {
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
        (None, Ok(())) => report(&store, &start, config, out),
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
