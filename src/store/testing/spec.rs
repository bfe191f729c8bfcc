//! The values of `--inject`.
//!
//! ```text
//! slow=50ms[,jitter=10ms][,in-flight=64]   each request takes so long
//! record=FILE                              a line for each request: read a/c/0 0..4096
//! fail=KIND:N:HOW                          call number N of KIND (stat, open, read, …) fails:
//!                                          io, short or changed
//! hang=FILE                                reads of chunks hang while FILE exists
//! ```
//!
//! A later layer wraps the earlier ones. A call that a layer answers itself does not reach the layers in it, which do
//! not count it.

use std::io;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use super::{CallKind, Failure, Fault, Faulty, Gate, Recording, Slow, wrap};
use crate::store::Store;

/// A layer to put around the mounted store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Injection {
    /// [`Slow`].
    Slow {
        /// The delay of each request.
        latency: Duration,
        /// The most that is added to it at random.
        jitter: Duration,
        /// How many requests may be in flight.
        most_in_flight: usize,
    },
    /// [`Recording::to_file`].
    Record(PathBuf),
    /// [`Faulty::at`].
    Fail {
        /// The kind of call that fails.
        kind: CallKind,
        /// The number of the call among those of its kind, from 1.
        nth: usize,
        /// How it fails.
        failure: Failure,
    },
    /// [`Faulty::hang_chunks`] while this file exists.
    Hang(PathBuf),
}

/// `store`, with each of `injections` around those before it.
///
/// # Errors
/// A file cannot be opened.
pub fn inject(store: Arc<dyn Store>, injections: &[Injection]) -> io::Result<Arc<dyn Store>> {
    injections.iter().try_fold(store, |store, injection| {
        Ok(match injection {
            Injection::Slow {
                latency,
                jitter,
                most_in_flight,
            } => {
                let slow = Slow::new(*latency, *most_in_flight).with_jitter(*jitter, 0);
                wrap(store, &Arc::new(slow))
            }
            Injection::Record(path) => wrap(store, &Arc::new(Recording::to_file(path)?)),
            Injection::Fail { kind, nth, failure } => {
                let faulty = Faulty::default();
                faulty.at(*kind, *nth, Fault::Fails(*failure));
                wrap(store, &Arc::new(faulty))
            }
            Injection::Hang(path) => {
                let faulty = Faulty::default();
                faulty.hang_chunks(Arc::new(Gate::while_exists(path.clone())));
                wrap(store, &Arc::new(faulty))
            }
        })
    })
}

impl FromStr for Injection {
    type Err = String;

    /// Paths are made absolute: a daemon has another current directory.
    fn from_str(text: &str) -> Result<Injection, String> {
        let path = |text| std::path::absolute(text).map_err(|error| error.to_string());
        match text.split_once('=') {
            Some(("slow", value)) => slow(value),
            Some(("record", value)) => Ok(Injection::Record(path(value)?)),
            Some(("fail", value)) => fail(value).ok_or_else(|| {
                "expected fail=KIND:N:HOW, such as fail=read:3:io; HOW is io, short or changed"
                    .to_owned()
            }),
            Some(("hang", value)) => Ok(Injection::Hang(path(value)?)),
            _ => Err("expected slow=, record=, fail= or hang=".to_owned()),
        }
    }
}

fn slow(value: &str) -> Result<Injection, String> {
    let mut parts = value.split(',');
    let latency = duration(parts.next().unwrap_or_default())?;
    let (mut jitter, mut most_in_flight) = (Duration::ZERO, Slow::MOST_IN_FLIGHT);
    for part in parts {
        match part.split_once('=') {
            Some(("jitter", value)) => jitter = duration(value)?,
            Some(("in-flight", value)) => {
                let number = value.parse();
                most_in_flight = number.map_err(|_| "expected a number of requests".to_owned())?;
            }
            _ => return Err("expected jitter= or in-flight= after a comma".to_owned()),
        }
    }
    Ok(Injection::Slow {
        latency,
        jitter,
        most_in_flight,
    })
}

fn fail(value: &str) -> Option<Injection> {
    let mut parts = value.split(':');
    let kind = CallKind::of_name(parts.next()?)?;
    let nth = parts.next()?.parse().ok().filter(|&nth| nth > 0)?;
    let failure = match parts.next()? {
        "io" => Failure::Io,
        "short" => Failure::Short,
        "changed" => Failure::Changed,
        _ => return None,
    };
    let is_all = parts.next().is_none();
    is_all.then_some(Injection::Fail { kind, nth, failure })
}

/// `50ms`, `200us` or `2s`.
fn duration(text: &str) -> Result<Duration, String> {
    let (number, unit) = text.split_at(text.trim_end_matches(char::is_alphabetic).len());
    let number = number.parse().ok();
    let found = number.and_then(|number| match unit {
        "us" => Some(Duration::from_micros(number)),
        "ms" => Some(Duration::from_millis(number)),
        "s" => Some(Duration::from_secs(number)),
        _ => None,
    });
    found.ok_or_else(|| "expected a duration, such as 50ms, 200us or 2s".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{Key, MemoryStore};

    fn slow(latency: u64, jitter: u64, most_in_flight: usize) -> Injection {
        Injection::Slow {
            latency: Duration::from_millis(latency),
            jitter: Duration::from_millis(jitter),
            most_in_flight,
        }
    }

    #[test]
    fn specifications_are_read() {
        let fail = |kind, nth, failure| Injection::Fail { kind, nth, failure };
        for (text, expected) in [
            ("slow=50ms", slow(50, 0, 64)),
            ("slow=2s,jitter=10ms", slow(2000, 10, 64)),
            ("slow=0ms,in-flight=8,jitter=3000us", slow(0, 3, 8)),
            ("record=/a=b,c", Injection::Record("/a=b,c".into())),
            ("fail=read:3:io", fail(CallKind::Read, 3, Failure::Io)),
            (
                "fail=stat:1:changed",
                fail(CallKind::Stat, 1, Failure::Changed),
            ),
            (
                "fail=fetch:2:short",
                fail(CallKind::Fetch, 2, Failure::Short),
            ),
            ("hang=/a", Injection::Hang("/a".into())),
        ] {
            assert_eq!(text.parse(), Ok(expected), "{text}");
        }
    }

    #[test]
    fn paths_become_absolute() {
        let Ok(Injection::Record(path)) = "record=lines".parse() else {
            panic!("a path is a path");
        };
        assert!(path.is_absolute() && path.ends_with("lines"));
    }

    #[test]
    fn anything_else_is_refused() {
        for text in [
            "",
            "slow",
            "slow=",
            "slow=50",
            "slow=-5ms",
            "slow=5ms,x=3",
            "slow=5ms,in-flight=x",
            "fail=read:0:io",
            "fail=read:3",
            "fail=read:3:io:4",
            "fail=write:3:io",
            "record=",
            "other=1",
        ] {
            assert!(text.parse::<Injection>().is_err(), "{text}");
        }
    }

    #[test]
    fn later_layers_lie_around_earlier_ones() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("lines");
        let injections = [
            "fail=stat:2:io".parse().unwrap(),
            "slow=1ms,in-flight=3".parse().unwrap(),
            Injection::Record(file.clone()),
        ];
        let store = inject(Arc::new(MemoryStore::new()), &injections).unwrap();
        assert_eq!(store.profile().most_in_flight, 3);
        let key = Key::parse(b"a").unwrap();
        assert!(store.stat(&key).unwrap().is_none());
        assert!(store.stat(&key).is_err());
        let lines = std::fs::read_to_string(file).unwrap();
        assert_eq!(lines, "stat a\nstat a\n");
        let missing = Injection::Record(directory.path().join("no/such"));
        assert!(inject(Arc::new(MemoryStore::new()), &[missing]).is_err());
    }
}
