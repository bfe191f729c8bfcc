//! `--status MOUNTPOINT`: what a mount is doing.

use std::fs;
use std::path::Path;
use std::thread;
use std::time::Duration;

use indicatif::BinaryBytes;
use serde_json::Value;

use super::error::CliError;
use super::mountpoint::resolve;
use super::mounts::{FoundMount, MountState, mount_at};
use super::output::Output;
use crate::escape::Text;

/// The time between two looks at the counters, whose difference is a rate a second.
const EVERY: Duration = Duration::from_secs(1);
/// The lines of the log that are shown.
const LINES_OF_LOG: usize = 5;

/// Prints what the mount at `mountpoint` is doing: again and again on a terminal, and once elsewhere.
pub(super) fn status(mountpoint: &Path, json: bool) -> Result<(), CliError> {
    let path = resolve(mountpoint)?;
    let mut before = look(&path)?;
    if json {
        let MountState::Running(counters) = before.state else {
            return Err(not_running(&before));
        };
        let text = Text::new().json(counters);
        return Output::standard()
            .print_all(&text)
            .map_err(CliError::failed);
    }
    let mut out = Output::standard();
    let is_terminal = out.page().width.is_some();
    let mut shown = 0;
    loop {
        thread::sleep(EVERY);
        let now = look(&path)?;
        let MountState::Running(_) = now.state else {
            return Err(not_running(&now));
        };
        let text = describe(&before, &now, &log_of(&path));
        let lines = text.n_lines();
        out.print_over(shown, &text).map_err(CliError::failed)?;
        if !is_terminal {
            return Ok(());
        }
        (shown, before) = (lines, now);
    }
}

fn look(path: &Path) -> Result<FoundMount, CliError> {
    let shown = path.display();
    let found = mount_at(path).map_err(|error| CliError::Failed(format!("--status: {error}")))?;
    found.ok_or_else(|| {
        CliError::Failed(format!(
            "{shown} is no mount of zarr-mount; --list shows those of this user"
        ))
    })
}

fn not_running(mount: &FoundMount) -> CliError {
    let shown = mount.mountpoint.display();
    CliError::Failed(match mount.state {
        MountState::Dead => {
            format!("the daemon of {shown} has ended; umount -l {shown} removes it")
        }
        MountState::Closed => {
            format!("{shown} belongs to another user, and no one else may look at it")
        }
        _ => format!("the daemon of {shown} does not answer"),
    })
}

/// The last lines of the mount's log, which only its owner may read.
fn log_of(path: &Path) -> Vec<String> {
    let text = fs::read(path.join(".zarr-mount/log")).unwrap_or_default();
    let text = String::from_utf8_lossy(&text).into_owned();
    let lines: Vec<&str> = text.lines().collect();
    let first = lines.len().saturating_sub(LINES_OF_LOG);
    lines.into_iter().skip(first).map(str::to_owned).collect()
}

/// The activity of the mount between `before` and `now`, a second apart, and its totals.
fn describe(before: &FoundMount, now: &FoundMount, log: &[String]) -> Text {
    let n = |member: &str| now.state.number(member).unwrap_or(0);
    let rate = |member: &str| n(member).saturating_sub(before.state.number(member).unwrap_or(0));
    let bytes = |member: &str| BinaryBytes(n(member));
    let mut text = Text::new()
        .line(format_args!(
            "{}  {}  pid {}",
            now.mountpoint.display(),
            now.store,
            n("/pid")
        ))
        .line(format_args!(
            "programs  {}/s in {} reads, {} opens, {} lookups",
            BinaryBytes(rate("/bytes_read")),
            rate("/requests/read"),
            rate("/requests/open"),
            rate("/requests/lookup"),
        ))
        .line(format_args!(
            "store     {}/s from {} objects, {} chunks decoded",
            BinaryBytes(rate("/store/bytes")),
            rate("/store/fetches"),
            rate("/chunks/decodes"),
        ));
    if has(now, "/server/in_flight") {
        text = text.line(format_args!(
            "server    {} of {} requests in flight, {}/s; so far {} repeated, {} failed",
            n("/server/in_flight"),
            n("/server/in_flight_limit"),
            BinaryBytes(rate("/server/received_bytes")),
            n("/server/retries"),
            n("/server/failures"),
        ));
    }
    let (hits, misses) = (n("/cache/hits"), n("/cache/misses"));
    let percent = hits
        .saturating_mul(100)
        .checked_div(hits.saturating_add(misses));
    text = text.line(format_args!(
        "memory    {} of {}, at most {} so far; {} % of blocks found",
        bytes("/cache/bytes"),
        bytes("/cache/budget_bytes"),
        bytes("/cache/peak_bytes"),
        percent.unwrap_or(0),
    ));
    if n("/requests/write") + n("/writes/drafts") + n("/writes/staged") > 0 {
        text = text.line(format_args!(
            "writing   {}/s; {} files not in the store yet, {} of them not saved; {} chunks in the journal",
            BinaryBytes(rate("/bytes_written")),
            n("/writes/drafts"),
            n("/writes/unsaved"),
            n("/writes/staged"),
        ));
    }
    let errors = ["EIO", "EACCES", "ESTALE", "EOPNOTSUPP", "other"].map(|name| {
        let count = n(&format!("/errors/{name}"));
        (count > 0).then(|| format!("{name} {count}"))
    });
    let errors: Vec<String> = errors.into_iter().flatten().collect();
    text = if errors.is_empty() {
        text.line("errors    none so far")
    } else {
        text.line(format_args!("errors    so far {}", errors.join(", ")))
    };
    log.iter().fold(text, |text, line| {
        text.line(format_args!("log       {line}"))
    })
}

fn has(mount: &FoundMount, member: &str) -> bool {
    matches!(&mount.state, MountState::Running(counters) if counters.pointer(member).is_some_and(Value::is_u64))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn rates_are_differences() {
        let mount = |counters| FoundMount {
            mountpoint: "/mnt/z".into(),
            store: "demo:".to_owned(),
            state: MountState::Running(counters),
        };
        let before = mount(json!({"pid": 7, "bytes_read": 1000, "requests": {"read": 5}}));
        let now = mount(json!({
            "pid": 7, "bytes_read": 1000 + 2048, "requests": {"read": 8, "open": 1},
            "cache": {"hits": 3, "misses": 1, "bytes": 1024, "budget_bytes": 4096, "peak_bytes": 2048},
            "errors": {"EIO": 2},
        }));
        let text = describe(&before, &now, &["x".to_owned()]);
        let expected = "/mnt/z  demo:  pid 7\n\
            programs  2.00 KiB/s in 3 reads, 1 opens, 0 lookups\n\
            store     0 B/s from 0 objects, 0 chunks decoded\n\
            memory    1.00 KiB of 4.00 KiB, at most 2.00 KiB so far; 75 % of blocks found\n\
            errors    so far EIO 2\n\
            log       x\n";
        assert_eq!(String::from_utf8_lossy(text.as_bytes()), expected);
    }
}
