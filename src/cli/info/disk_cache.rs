//! The line of `--info` about the disk cache.

use super::words::human;
use crate::store::Store;

/// The size and the counters of the disk cache; `None` if there is none.
pub(super) fn described(store: &dyn Store) -> Option<String> {
    let counters = store.statistics();
    let counter = |wanted: &str| {
        let found = counters.iter().find(|(name, _)| *name == wanted);
        found.map(|(_, n)| *n)
    };
    Some(format!(
        "disk cache: {} of {}; {} hits ({}), {} misses, {} evictions, {} damaged entries",
        human(counter("disk_bytes")?),
        human(counter("disk_limit_bytes")?),
        counter("disk_hits")?,
        human(counter("disk_hit_bytes")?),
        counter("disk_misses")?,
        counter("disk_evictions")?,
        counter("disk_corrupt")?,
    ))
}
