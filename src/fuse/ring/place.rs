//! The processor on which the thread of a ring runs.

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// The short requests in a row after which a thread goes home.
const SHORT_REQUESTS: u32 = 4;

/// Where the thread of a ring runs. Its home is the processor of its callers, which the reply to a short request reaches
/// fastest. During a long read, the caller copies what was read before. So the thread leaves it the processor, and runs on
/// the others that the process may use.
pub(super) struct Place {
    /// The home, and the other processors; `None` if there are no others.
    places: Option<(CpuSet, CpuSet)>,
    is_home: bool,
    /// How many short requests came since the last long read.
    n_short: u32,
}

impl Place {
    /// Moves the calling thread to `processor`, if the process may use it.
    pub(super) fn new(processor: Option<u16>) -> Place {
        let anywhere = sched_getaffinity(None).unwrap_or_else(|_| CpuSet::new());
        let processor = processor.map(usize::from);
        let home = processor
            .filter(|processor| *processor < CpuSet::MAX_CPU && anywhere.is_set(*processor));
        let places = home.map(|processor| {
            let (mut home, mut others) = (CpuSet::new(), anywhere);
            home.set(processor);
            others.unset(processor);
            (home, others)
        });
        let mut place = Place {
            places: places.filter(|(_, others)| others.count() > 0),
            is_home: false,
            n_short: 0,
        };
        place.go(true);
        place
    }

    /// Moves the calling thread to the best place for a request.
    pub(super) fn choose(&mut self, is_long_read: bool) {
        self.n_short = if is_long_read {
            0
        } else {
            self.n_short.saturating_add(1)
        };
        if is_long_read {
            self.go(false);
        } else if self.n_short >= SHORT_REQUESTS {
            self.go(true);
        }
    }

    fn go(&mut self, is_home: bool) {
        let Some((home, others)) = &self.places else {
            return;
        };
        if self.is_home != is_home {
            // If the system refuses, the thread works as well where it is, only slower.
            let _ = sched_setaffinity(None, if is_home { home } else { others });
            self.is_home = is_home;
        }
    }
}
