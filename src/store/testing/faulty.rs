//! A store that fails or hangs.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use super::call::{Call, CallKind};
use super::gate::Gate;
use super::layer::Layer;
use crate::store::{CancelToken, StoreError};

/// Makes chosen calls fail or hang.
#[derive(Debug, Default)]
pub struct Faulty {
    rules: Mutex<Vec<Rule>>,
}

/// The effect on a call.
#[derive(Debug, Clone)]
pub enum Fault {
    /// It fails, with an error about its own key.
    Fails(Failure),
    /// It fails with this error.
    Error(StoreError),
    /// It waits at the gate, and then continues, or fails if it is cancelled before.
    Hangs(Arc<Gate>),
}

/// How a call fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failure {
    /// [`StoreError::Io`] with `EIO`.
    Io,
    /// [`StoreError::Short`].
    Short,
    /// [`StoreError::Changed`].
    Changed,
}

#[derive(Debug)]
struct Rule {
    when: When,
    fault: Fault,
}

#[derive(Debug)]
enum When {
    /// At a call of this kind, after so many that succeed.
    After(CallKind, usize),
    /// At each call that reads bytes of a chunk.
    ForChunk,
    /// At no further call.
    Never,
}

impl Faulty {
    /// `fault` happens to call number `nth` of `kind`, counted from 1 from now on.
    pub fn at(&self, kind: CallKind, nth: usize, fault: Fault) {
        self.add(When::After(kind, nth.saturating_sub(1)), fault);
    }

    /// Each call that reads bytes of a chunk ([`Call::is_for_chunk`]) waits at `gate`.
    pub fn hang_chunks(&self, gate: Arc<Gate>) {
        self.add(When::ForChunk, Fault::Hangs(gate));
    }

    fn add(&self, when: When, fault: Fault) {
        let mut rules = self.rules.lock().unwrap_or_else(PoisonError::into_inner);
        rules.push(Rule { when, fault });
    }

    /// The fault to inject at `call`.
    fn due(&self, call: &Call) -> Vec<Fault> {
        let mut rules = self.rules.lock().unwrap_or_else(PoisonError::into_inner);
        let due = rules.iter_mut().filter_map(|rule| {
            let fault = || rule.fault.clone();
            rule.when.is_now(call).then(fault)
        });
        due.collect()
    }
}

impl When {
    /// Whether the fault is at `call`; counts the call.
    fn is_now(&mut self, call: &Call) -> bool {
        match self {
            When::After(kind, 0) if *kind == call.kind => {
                *self = When::Never;
                true
            }
            When::After(kind, before) if *kind == call.kind => {
                *before -= 1;
                false
            }
            When::ForChunk => call.is_for_chunk(),
            When::After(..) | When::Never => false,
        }
    }
}

impl Fault {
    fn happen(self, call: &Call) -> Result<(), StoreError> {
        match self {
            Fault::Fails(failure) => Err(failure.at(call)),
            Fault::Error(error) => Err(error),
            Fault::Hangs(gate) if gate.pass() => Ok(()),
            Fault::Hangs(_) => Err(CancelToken::error(&call.path)),
        }
    }
}

impl Failure {
    fn at(self, call: &Call) -> StoreError {
        let key = call.path.to_string();
        match self {
            Failure::Io => StoreError::io(key, &io::Error::from_raw_os_error(libc::EIO)),
            Failure::Changed => StoreError::Changed { key },
            Failure::Short => {
                let wanted = call.ranges.first().cloned().unwrap_or_default();
                StoreError::Short {
                    key,
                    offset: wanted.start,
                    len: wanted.end.saturating_sub(wanted.start),
                    size: wanted.start,
                }
            }
        }
    }
}

impl Layer for Faulty {
    fn around<T>(
        &self,
        call: &Call,
        ask: impl FnOnce() -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let mut due = self.due(call).into_iter();
        due.try_for_each(|fault| fault.happen(call))?;
        ask()
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::super::{Recording, wrap};
    use super::*;
    use crate::store::{Key, MemoryStore, Store};

    fn key(name: &str) -> Key {
        Key::parse(name.as_bytes()).unwrap()
    }

    fn faulty_store(faulty: &Arc<Faulty>) -> Arc<dyn Store> {
        let store = MemoryStore::new();
        store.insert(key("c/0"), b"0123456789".to_vec());
        store.insert(key("zarr.json"), b"{}".to_vec());
        wrap(Arc::new(store), faulty)
    }

    fn read(store: &dyn Store, name: &str) -> Result<u8, StoreError> {
        let mut bytes = [0; 1];
        let object = store.open(&key(name))?.unwrap();
        object.read_at(1, &mut bytes).map(|()| bytes[0])
    }

    #[test]
    fn one_call_of_a_kind_fails_and_those_around_it_do_not() {
        let faulty = Arc::new(Faulty::default());
        let store = faulty_store(&faulty);
        faulty.at(CallKind::Read, 3, Fault::Fails(Failure::Io));
        faulty.at(CallKind::Read, 4, Fault::Fails(Failure::Short));
        faulty.at(CallKind::Open, 5, Fault::Fails(Failure::Changed));
        let denied = StoreError::Denied {
            key: "k".to_owned(),
            reason: "r".to_owned(),
        };
        faulty.at(CallKind::Stat, 1, Fault::Error(denied.clone()));
        let told = store.stat(&key("c/0")).unwrap_err();
        assert_eq!(told.to_string(), denied.to_string());
        assert!(store.stat(&key("c/0")).unwrap().is_some());
        let mut errors = (0..6).map(|_| read(&*store, "c/0").err());
        let mut next = || errors.next().flatten();
        assert!(next().is_none() && next().is_none());
        assert!(matches!(
            next(),
            Some(StoreError::Io {
                errno: Some(libc::EIO),
                ..
            })
        ));
        assert!(matches!(
            next(),
            Some(StoreError::Short {
                offset: 1,
                len: 1,
                size: 1,
                ..
            })
        ));
        assert!(matches!(next(), Some(StoreError::Changed { key }) if key == "c/0"));
        assert!(next().is_none());
    }

    #[test]
    fn chunks_hang_until_the_gate_opens_and_documents_do_not() {
        let faulty = Arc::new(Faulty::default());
        let recording = Arc::new(Recording::default());
        let store = wrap(faulty_store(&faulty), &recording);
        let gate = Arc::new(Gate::default());
        faulty.hang_chunks(Arc::clone(&gate));
        assert_eq!(read(&*store, "zarr.json").unwrap(), b'}');
        thread::scope(|scope| {
            let hanging = scope.spawn(|| read(&*store, "c/0"));
            while gate.waiting() == 0 {
                thread::yield_now();
            }
            assert!(!hanging.is_finished());
            gate.open();
            assert_eq!(hanging.join().unwrap().unwrap(), b'1');
        });
        assert_eq!(recording.count(CallKind::Read), 2);
        assert_eq!(read(&*store, "c/0").unwrap(), b'1');
    }

    #[test]
    fn a_file_is_a_gate_while_it_exists() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("hang");
        std::fs::write(&file, b"").unwrap();
        let faulty = Arc::new(Faulty::default());
        let store = faulty_store(&faulty);
        let gate = Arc::new(Gate::while_exists(file.clone()));
        faulty.at(CallKind::Fetch, 1, Fault::Hangs(Arc::clone(&gate)));
        thread::scope(|scope| {
            let hanging = scope.spawn(|| {
                let mut buffer = Vec::new();
                let fetched = store.fetch(&key("c/0"), 10, &mut buffer);
                fetched.map(|_| buffer)
            });
            while gate.waiting() == 0 {
                thread::yield_now();
            }
            assert!(!hanging.is_finished());
            std::fs::remove_file(&file).unwrap();
            assert_eq!(hanging.join().unwrap().unwrap(), b"0123456789");
        });
    }
}
