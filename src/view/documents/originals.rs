//! The documents that a consolidated document has copies of, its *originals*, so that a change of one of them is noticed.
//!
//! A copy that is older than its original can make a reader take the bytes of a chunk for other elements. In a local
//! store, the originals are therefore examined whenever the consolidated document is opened, in other stores after the
//! time to live.

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lru::LruCache;

use crate::fresh::{Freshness, LastCheck, Observations, Subject};
use crate::load::Sources;

/// The most memory of the observations of all consolidated documents, in bytes: those of some 16,000 arrays.
const MOST_BYTES: u64 = 8 << 20;

/// The most consolidated documents whose originals are remembered.
const MOST_TEXTS: NonZeroUsize = NonZeroUsize::new(4096).expect("4096 is not 0");

/// The number of locks. One is held while a consolidated document is made. Few documents share a lock.
const STRIPES: usize = 16;

/// The originals of each consolidated document.
#[derive(Debug)]
pub(super) struct Originals {
    kept: Mutex<Kept>,
    next: AtomicU64,
    making: [Mutex<()>; STRIPES],
}

#[derive(Debug)]
struct Kept {
    by_text: LruCache<u64, Arc<Observed>>,
    bytes: u64,
}

#[derive(Debug)]
struct Observed {
    /// The state of the originals that the text was made of.
    state: u64,
    observations: Observations,
    checked: LastCheck,
}

/// A consolidated document that a thread looks for, and makes if it has to.
#[derive(Debug)]
pub(super) struct Making<'o> {
    text: u64,
    /// A number for the current state of the originals. It is a new one if one of them has changed, or if they are not
    /// known; the text is then made.
    pub(super) state: u64,
    _lock: MutexGuard<'o, ()>,
}

impl Observed {
    fn memory_bytes(&self) -> u64 {
        self.observations.memory_bytes()
    }
}

impl Originals {
    pub(super) fn new() -> Originals {
        Originals {
            kept: Mutex::new(Kept {
                by_text: LruCache::new(MOST_TEXTS),
                bytes: 0,
            }),
            next: AtomicU64::new(0),
            making: Default::default(),
        }
    }

    /// Begins to look for `text`, which one thread at a time does.
    pub(super) fn begin(&self, text: u64, freshness: Freshness, sources: &Sources) -> Making<'_> {
        let stripe = usize::try_from(text % STRIPES as u64).expect("less than 16");
        let lock = self.making[stripe].lock();
        let lock = lock.unwrap_or_else(PoisonError::into_inner);
        let known = self.lock().by_text.get(&text).cloned();
        // Documents that cannot be examined count as changed.
        let ask = |subjects: &[&Subject]| sources.observe(subjects);
        let holds = |known: &Arc<Observed>| {
            let held = freshness.holds(&known.observations, &known.checked, ask);
            held.unwrap_or(false)
        };
        let state = match known.filter(holds) {
            Some(known) => known.state,
            None => self.next.fetch_add(1, Ordering::Relaxed),
        };
        Making {
            text,
            state,
            _lock: lock,
        }
    }

    /// Notes the originals of the text that was made, which were read after `begun`. If all originals take too much
    /// memory, those of the least recent texts count as unchanged.
    pub(super) fn put(&self, made: &Making<'_>, observations: Observations, begun: LastCheck) {
        let observed = Observed {
            state: made.state,
            observations,
            checked: begun,
        };
        let mut kept = self.lock();
        kept.bytes += observed.memory_bytes();
        if let Some((_, replaced)) = kept.by_text.push(made.text, Arc::new(observed)) {
            kept.bytes -= replaced.memory_bytes();
        }
        let Kept { by_text, bytes } = &mut *kept;
        for (_, observed) in by_text.iter_mut().rev() {
            if *bytes <= MOST_BYTES {
                break;
            }
            *bytes -= observed.memory_bytes();
            *observed = Arc::new(Observed {
                state: observed.state,
                observations: Observations::default(),
                checked: observed.checked.clone(),
            });
        }
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
