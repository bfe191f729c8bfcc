//! Random numbers of tests, and a loop over seeds.

use std::sync::atomic::{AtomicU64, Ordering};

/// How many seeds run at once. The runs spend most of their time waiting.
const AT_ONCE: usize = 4;

/// Calls `run` with the seeds `first..first + count`, several at once, in no order. The environment may choose others:
///
/// - `ZARR_MOUNT_SEQUENCES=N`: `N` instead of `count`;
/// - `ZARR_MOUNT_FROM=N`: without the first `N` seeds;
/// - `ZARR_MOUNT_SEED=N`: only the seed `first + N`, a hundred times.
pub fn for_seeds(first: u64, count: u64, run: impl Fn(u64) + Sync) {
    if let Ok(only) = std::env::var("ZARR_MOUNT_SEED") {
        let seed = first + only.parse::<u64>().unwrap();
        return (0..100).for_each(|_| run(seed));
    }
    let count = std::env::var("ZARR_MOUNT_SEQUENCES").map_or(count, |text| text.parse().unwrap());
    let from = std::env::var("ZARR_MOUNT_FROM").map_or(0, |text| text.parse().unwrap());
    let next = AtomicU64::new(from);
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= count {
                        return;
                    }
                    run(first + number);
                }
            });
        }
    });
}

/// Random numbers that follow from a seed (xorshift64*).
#[derive(Debug)]
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 1
    }

    /// A number less than `end`.
    pub fn below(&mut self, end: u64) -> u64 {
        (self.next() >> 8) % end
    }
}
