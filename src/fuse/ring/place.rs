//! The processor on which the thread of a ring runs.

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// Where the thread of a ring runs. Its home is the processor of its callers, which a reply reaches fastest. While
/// another thread answers a long read of the same callers, both threads would have to share the home, so this one
/// leaves it for the other processors that the process may use.
pub(super) struct Place {
    /// The home, and the other processors; `None` if there are no others.
    places: Option<(CpuSet, CpuSet)>,
    is_home: bool,
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
        };
        place.choose(false);
        place
    }

    /// Moves the calling thread away from home, or back.
    pub(super) fn choose(&mut self, is_away: bool) {
        let Some((home, others)) = &self.places else {
            return;
        };
        if self.is_home == is_away {
            let place = if is_away { others } else { home };
            // If the system refuses, the thread works as well where it is, only slower.
            let _ = sched_setaffinity(None, place);
            self.is_home = !is_away;
        }
    }
}
