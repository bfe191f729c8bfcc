//! Counters of requests to remote stores, which `.zarr-mount/stats.json` shows.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::exchange::RequestKind;
use crate::counters::Counter;

/// Bins of latencies: one for each power of the square root of 2, from 0.1 ms on.
const BINS: usize = 48;
const FIRST_BIN: Duration = Duration::from_micros(100);

/// When so many reads were answered from the disk since the last request, further ones are expected to be.
const LEAST_DISK_READS: u64 = 4;

/// Counts of requests to a server, and of its answers.
#[derive(Debug, Default)]
pub struct RemoteStatistics {
    /// Requests that read bytes.
    pub gets: Counter,
    /// Requests for attributes.
    pub heads: Counter,
    /// Requests for names.
    pub lists: Counter,
    /// Bytes of the bodies of answers.
    pub received_bytes: Counter,
    /// Requests that were sent again after a failure.
    pub retries: Counter,
    /// Answers that ask for fewer requests.
    pub throttles: Counter,
    /// Requests that were sent a second time because the first was slow.
    pub hedges: Counter,
    /// Objects that had changed when they were read.
    pub changed: Counter,
    /// Requests that failed for good.
    pub failures: Counter,
    /// The time until the head of the answer.
    pub latencies: Latencies,
    /// Reads since the last request, whose bytes were on disk. It is not shown.
    disk_reads: AtomicU64,
}

/// Times until the first byte of answers.
#[derive(Debug)]
pub struct Latencies([AtomicU64; BINS]);

impl RemoteStatistics {
    pub(super) fn count(&self, kind: RequestKind) {
        let counter = match kind {
            RequestKind::Get => &self.gets,
            RequestKind::Head => &self.heads,
            RequestKind::List => &self.lists,
        };
        counter.add(1);
        self.disk_reads.store(0, Ordering::Relaxed);
    }

    /// Notes a read whose bytes were on disk.
    pub(super) fn note_disk_read(&self) {
        self.disk_reads.fetch_add(1, Ordering::Relaxed);
    }

    /// Expects that the first reads need no request. The first request shows that they do.
    pub(super) fn expect_disk_reads(&self) {
        self.disk_reads.store(LEAST_DISK_READS, Ordering::Relaxed);
    }

    /// Whether the last reads needed no request, because their bytes were on disk.
    pub(super) fn reads_from_disk(&self) -> bool {
        self.disk_reads.load(Ordering::Relaxed) >= LEAST_DISK_READS
    }

    /// The counters by their names in `stats.json`.
    pub(super) fn shown(&self) -> Vec<(&'static str, u64)> {
        let percentile = |percent| {
            let latency = self.latencies.percentile(percent).unwrap_or_default();
            u64::try_from(latency.as_micros()).unwrap_or(u64::MAX)
        };
        vec![
            ("gets", self.gets.get()),
            ("heads", self.heads.get()),
            ("lists", self.lists.get()),
            ("received_bytes", self.received_bytes.get()),
            ("retries", self.retries.get()),
            ("throttles", self.throttles.get()),
            ("hedges", self.hedges.get()),
            ("changed", self.changed.get()),
            ("failures", self.failures.get()),
            ("first_byte_p50_us", percentile(50)),
            ("first_byte_p95_us", percentile(95)),
            ("first_byte_p99_us", percentile(99)),
        ]
    }

    /// All requests, including those that were repeated.
    pub(super) fn requests(&self) -> u64 {
        [&self.gets, &self.heads, &self.lists]
            .iter()
            .map(|counter| counter.get())
            .sum()
    }
}

impl Default for Latencies {
    fn default() -> Latencies {
        Latencies([const { AtomicU64::new(0) }; BINS])
    }
}

impl Latencies {
    /// Notes one answer.
    pub(super) fn add(&self, latency: Duration) {
        let bins = self.0.iter().enumerate();
        let found = bins.skip_while(|&(bin, _)| bin + 1 < BINS && upper(bin) < latency);
        if let Some((_, bin)) = found.into_iter().next() {
            bin.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// The latency that a part of the answers, in percent, did not exceed; `None` before the first
    /// answer. It is the upper end of a bin, so up to 41 % too long.
    pub fn percentile(&self, percent: u64) -> Option<Duration> {
        let counts: Vec<u64> = self.0.iter().map(|n| n.load(Ordering::Relaxed)).collect();
        let all: u64 = counts.iter().sum();
        let wanted = (all * percent).div_ceil(100).max(1);
        let mut seen = 0;
        let bin = counts.iter().position(|count| {
            seen += count;
            seen >= wanted
        });
        bin.filter(|_| all > 0).map(upper)
    }
}

/// The longest latency of a bin.
fn upper(bin: usize) -> Duration {
    let power = i32::try_from(bin).unwrap_or(i32::MAX);
    FIRST_BIN.mul_f64(std::f64::consts::SQRT_2.powi(power))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_those_of_the_bins() {
        let latencies = Latencies::default();
        assert_eq!(latencies.percentile(50), None);
        for _ in 0..95 {
            latencies.add(Duration::from_millis(10));
        }
        for _ in 0..5 {
            latencies.add(Duration::from_secs(3600));
        }
        let median = latencies.percentile(50).unwrap().as_secs_f64();
        assert!((0.010..0.0142).contains(&median), "{median}");
        assert_eq!(latencies.percentile(95), latencies.percentile(50));
        assert!(latencies.percentile(99).unwrap() > Duration::from_secs(60));
    }
}
