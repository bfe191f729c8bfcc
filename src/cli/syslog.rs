//! The log of the system: datagrams to `/dev/log`, where journald or a syslog daemon listens.
//!
//! A record is one datagram in the format of RFC 3164, `<PRIORITY>TAG[PID]: TEXT`. It has no time
//! and no name of the machine, because its receiver is on this machine and adds both (section 4.3).
//! A record that the receiver does not take at once is lost: requests must not wait for a log.

use std::io;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};

use log::Level;

use crate::recent_lines::cut;

/// The socket at which a log daemon listens.
const SOCKET: &str = "/dev/log";

/// The longest datagram, by section 4.1 of RFC 3164.
const LONGEST: usize = 1024;

/// The facility of daemons without one of their own.
const DAEMON: u8 = 3;

/// The log of the system, whether or not a daemon listens.
#[derive(Debug)]
pub(super) struct Syslog {
    socket: UnixDatagram,
    path: PathBuf,
    pid: u32,
}

impl Syslog {
    /// The log of this machine, for records of this process.
    ///
    /// # Errors
    /// When there is no descriptor left.
    pub(super) fn of_system() -> io::Result<Syslog> {
        Syslog::at(Path::new(SOCKET))
    }

    fn at(path: &Path) -> io::Result<Syslog> {
        let socket = UnixDatagram::unbound()?;
        socket.set_nonblocking(true)?;
        Ok(Syslog {
            socket,
            path: path.to_owned(),
            pid: std::process::id(),
        })
    }

    /// Sends a record, `text` being one line without control characters.
    pub(super) fn send(&self, level: Level, text: &str) {
        let record = record(level, self.pid, text);
        // The path is resolved each time, so that a log daemon may start late, or again, or never.
        self.socket.send_to(record.as_bytes(), &self.path).ok();
    }
}

fn record(level: Level, pid: u32, text: &str) -> Box<str> {
    let severity = match level {
        Level::Error => 3,
        Level::Warn => 4,
        Level::Info => 6,
        Level::Debug | Level::Trace => 7,
    };
    let priority = DAEMON << 3 | severity;
    cut(&format!("<{priority}>zarr-mount[{pid}]: {text}"), LONGEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_names_severity_and_process() {
        let cases = [
            (Level::Error, "<27>zarr-mount[7]: a b"),
            (Level::Warn, "<28>zarr-mount[7]: a b"),
            (Level::Info, "<30>zarr-mount[7]: a b"),
            (Level::Trace, "<31>zarr-mount[7]: a b"),
        ];
        for (level, expected) in cases {
            assert_eq!(*record(level, 7, "a b"), *expected);
        }
        assert_eq!(record(Level::Warn, 7, &"x".repeat(5000)).len(), LONGEST);
    }

    #[test]
    fn records_arrive_and_no_daemon_is_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let log = Syslog::at(&path).unwrap();
        log.send(Level::Warn, "before");
        let daemon = UnixDatagram::bind(&path).unwrap();
        for n in 0..5000 {
            log.send(Level::Warn, &format!("record {n}"));
        }
        let mut buffer = [0; 2048];
        let len = daemon.recv(&mut buffer).unwrap();
        let expected = format!("<28>zarr-mount[{}]: record 0", std::process::id());
        assert_eq!(&buffer[..len], expected.as_bytes());
        drop(daemon);
        std::fs::remove_file(&path).unwrap();
        let daemon = UnixDatagram::bind(&path).unwrap();
        log.send(Level::Info, "to the next daemon");
        assert!(daemon.recv(&mut buffer).unwrap() > 0);
    }
}
