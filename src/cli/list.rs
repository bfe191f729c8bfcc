//! `--list`: the mounts of this user.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use indicatif::HumanDuration;
use serde_json::{Value, json};

use super::error::CliError;
use super::json_list::JsonList;
use super::mounts::{FoundMount, MountState, mountpoints_of, mounts_of};
use super::output::Output;
use crate::escape::Text;

/// The form in which the mounts are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ListForm {
    /// A line for each mount, with what its daemon says.
    Table,
    /// The same facts for programs.
    Json,
    /// The mountpoints alone. No daemon is asked.
    Mountpoints,
}

/// Prints the mounts.
pub(super) fn list(form: ListForm) -> Result<(), CliError> {
    let uid = rustix::process::geteuid().as_raw();
    let text = match form {
        ListForm::Table => mounts_of(uid).map(|mounts| lines(&mounts, SystemTime::now())),
        ListForm::Json => mounts_of(uid).map(|mounts| {
            let mut list = JsonList::default();
            let begun = mounts.iter().fold(Text::new(), |text, mount| {
                text.and(&list.push(as_json(mount)))
            });
            begun.and(&list.end())
        }),
        ListForm::Mountpoints => mountpoints_of(uid).map(|mountpoints| {
            let paths = mountpoints.iter().map(|path| path.display());
            paths.fold(Text::new(), Text::line)
        }),
    };
    let text = text.map_err(|error| CliError::Failed(format!("--list: {error}")))?;
    Output::standard()
        .print_all(&text)
        .map_err(CliError::failed)
}

/// A line for each mount: its mountpoint, the process ID of its daemon, its age, and its store.
fn lines(mounts: &[FoundMount], now: SystemTime) -> Text {
    let rows: Vec<[String; 4]> = mounts.iter().map(|mount| row(mount, now)).collect();
    let heading = ["MOUNTPOINT", "PID", "FOR", "STORE"].map(str::to_owned);
    let all: Vec<_> = std::iter::once(heading).chain(rows).collect();
    let mut text = Text::new();
    if mounts.is_empty() {
        return text;
    }
    let width = |column: usize| all.iter().map(|row| row[column].chars().count()).max();
    let widths = [0, 1, 2].map(|column| width(column).unwrap_or(0));
    for [mountpoint, pid, age, store] in &all {
        let [first, second, third] = widths;
        text = text.line(format_args!(
            "{mountpoint:first$}  {pid:second$}  {age:third$}  {store}"
        ));
    }
    text
}

fn row(mount: &FoundMount, now: SystemTime) -> [String; 4] {
    let state = mount.state.name();
    let pid = mount.state.number("/pid").map(|pid| pid.to_string());
    let age = match &mount.state {
        MountState::Running(_) => since(&mount.state)
            .and_then(|since| now.duration_since(since).ok())
            .map(|age| HumanDuration(age).to_string()),
        _ => Some(state.to_owned()),
    };
    let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    [
        mount.mountpoint.display().to_string(),
        or_dash(pid),
        or_dash(age),
        mount.store.clone(),
    ]
}

/// The time at which the mount was made.
fn since(state: &MountState) -> Option<SystemTime> {
    let seconds = state.number("/since")?;
    UNIX_EPOCH.checked_add(Duration::from_secs(seconds))
}

fn as_json(mount: &FoundMount) -> Value {
    json!({
        "mountpoint": mount.mountpoint.to_string_lossy(),
        "store": mount.store,
        "state": mount.state.name(),
        "pid": mount.state.number("/pid"),
        "since": mount.state.number("/since"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mount(mountpoint: &str, state: MountState) -> FoundMount {
        FoundMount {
            mountpoint: mountpoint.into(),
            store: "demo:".to_owned(),
            state,
        }
    }

    #[test]
    fn columns_are_as_wide_as_their_longest_text() {
        let running = json!({"pid": 12, "since": 1000});
        let mounts = [
            mount("/mnt/a", MountState::Running(running)),
            mount("/mnt/longer name", MountState::Dead),
        ];
        let now = UNIX_EPOCH + Duration::from_secs(1000 + 7200);
        let expected = "MOUNTPOINT        PID  FOR      STORE\n\
            /mnt/a            12   2 hours  demo:\n\
            /mnt/longer name  -    dead     demo:\n";
        assert_eq!(lines(&mounts, now).as_bytes(), expected.as_bytes());
        assert_eq!(lines(&[], now).as_bytes(), b"");
    }
}
