//! The window on links that are simulated.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::*;

const MIB: u64 = 1 << 20;

/// A link to a server that answers one request after the other.
#[derive(Debug, Clone, Copy)]
struct Link {
    /// There and back.
    delay: Duration,
    /// A further delay of each answer is random, and up to this.
    jitter: Duration,
    /// The server's time for a request, beside that for its bytes.
    service: Duration,
    bytes_per_second: u64,
}

impl Link {
    /// A link that ends in this machine, whose cores and those of the server manage 2,000 requests and 500 MiB a
    /// second.
    fn of(delay_ms: u64) -> Link {
        Link {
            delay: Duration::from_millis(delay_ms),
            jitter: Duration::ZERO,
            service: Duration::from_micros(500),
            bytes_per_second: 500 * MIB,
        }
    }

    fn service(&self, bytes: u64) -> Duration {
        let sending = Duration::from_secs(bytes) / u32::try_from(self.bytes_per_second).unwrap();
        self.service + sending
    }

    /// The requests that the link carries at once, without a queue.
    fn carries(&self, bytes: u64) -> usize {
        let alone = self.delay + self.jitter / 2 + self.service(bytes);
        usize::try_from(alone.as_nanos().div_ceil(self.service(bytes).as_nanos())).unwrap()
    }
}

/// Requests over a link, as many at once as a window allows.
struct Transfer {
    now: Duration,
    free: Duration,
    in_flight: BinaryHeap<Reverse<(Duration, Duration, u64, u64)>>,
    random: u64,
}

/// A limit of requests that is never changed.
struct Always(usize);

trait Limit {
    fn limit(&self) -> usize;
    fn round(&self) -> u64 {
        0
    }
    fn answered(&mut self, _: Answer) {}
}

impl Limit for Always {
    fn limit(&self) -> usize {
        self.0
    }
}

impl Limit for Window {
    fn limit(&self) -> usize {
        Window::limit(self)
    }

    fn round(&self) -> u64 {
        Window::round(self)
    }

    fn answered(&mut self, answer: Answer) {
        Window::answered(self, answer);
    }
}

impl Transfer {
    fn new() -> Transfer {
        Transfer {
            now: Duration::ZERO,
            free: Duration::ZERO,
            in_flight: BinaryHeap::new(),
            random: 1,
        }
    }

    fn send(&mut self, link: &Link, round: u64, bytes: u64) {
        self.random = self
            .random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        let late = link.jitter * u32::try_from(self.random >> 33).unwrap() / (1 << 31);
        let arrived = self.now + link.delay / 2;
        self.free = arrived.max(self.free) + link.service(bytes);
        let answered = self.free + link.delay / 2 + late;
        self.in_flight
            .push(Reverse((answered, self.now, round, bytes)));
    }

    /// Sends a request for each of `lengths`, and returns the time until the last answer.
    fn run(
        &mut self,
        link: &Link,
        lengths: impl IntoIterator<Item = u64>,
        window: &mut impl Limit,
    ) -> Duration {
        let begun = self.now;
        let mut lengths = lengths.into_iter().peekable();
        loop {
            while self.in_flight.len() < window.limit()
                && let Some(bytes) = lengths.next()
            {
                self.send(link, window.round(), bytes);
            }
            let is_full = lengths.peek().is_some();
            let Some(Reverse((answered, sent, round, bytes))) = self.in_flight.pop() else {
                return self.now.saturating_sub(begun);
            };
            self.now = answered;
            let time = answered.saturating_sub(sent);
            window.answered(Answer {
                round,
                time,
                bytes,
                is_full,
            });
        }
    }
}

/// A window after the documents that a mount reads.
fn mounted(link: &Link) -> (Window, Transfer) {
    let (mut window, mut transfer) = (Window::new(256), Transfer::new());
    transfer.run(link, [500; 4], &mut window);
    (window, transfer)
}

/// The time of the same requests with as many in flight as possible.
fn best(link: &Link, lengths: impl IntoIterator<Item = u64>) -> Duration {
    Transfer::new().run(link, lengths, &mut Always(256))
}

fn objects(count: usize, bytes: u64) -> impl Iterator<Item = u64> {
    std::iter::repeat_n(bytes, count)
}

#[test]
fn links_of_all_lengths_are_filled_and_little_more() {
    for (delay, bytes) in [0, 5, 20, 50, 150].into_iter().flat_map(|delay| {
        let lengths = [64 << 10, MIB, 8 * MIB];
        lengths.map(|bytes| (delay, bytes))
    }) {
        let link = Link::of(delay);
        let (mut window, mut transfer) = mounted(&link);
        let first = transfer.run(&link, objects(512, bytes), &mut window);
        transfer.run(&link, objects(2000, bytes), &mut window);
        let later = transfer.run(&link, objects(2000, bytes), &mut window);
        let (limit, carries) = (window.limit(), link.carries(bytes).min(256));
        let what = format!("{delay} ms, {bytes} B: {limit} where {carries} are needed");
        assert!(
            carries <= limit && limit <= 2 * carries.max(LEAST),
            "{what}"
        );
        // A longer link needs two round trips more than at its best, for 128 and 256 requests in flight.
        let best_first = best(&link, objects(512, bytes)) + 2 * link.delay;
        assert!(
            first <= best_first.mul_f64(1.01),
            "{what}: {first:?}, {best_first:?}"
        );
        let best_later = best(&link, objects(2000, bytes));
        assert!(
            later <= best_later.mul_f64(1.03),
            "{what}: {later:?}, {best_later:?}"
        );
    }
}

#[test]
fn a_narrow_link_gets_few_requests() {
    let link = Link {
        bytes_per_second: 10 * MIB,
        ..Link::of(20)
    };
    let (mut window, mut transfer) = mounted(&link);
    let time = transfer.run(&link, objects(500, MIB), &mut window);
    assert!(window.limit() <= 2 * LEAST, "{}", window.limit());
    assert!(
        time <= best(&link, objects(500, MIB)).mul_f64(1.01),
        "{time:?}"
    );
}

#[test]
fn answers_that_differ_by_chance_are_no_queue() {
    let link = Link {
        jitter: Duration::from_millis(100),
        ..Link::of(50)
    };
    let (mut window, mut transfer) = mounted(&link);
    let time = transfer.run(&link, objects(4000, 64 << 10), &mut window);
    let (limit, carries) = (window.limit(), link.carries(64 << 10));
    assert!(limit >= carries, "{limit} where {carries} are needed");
    let best = best(&link, objects(4000, 64 << 10));
    assert!(time <= best.mul_f64(1.1), "{time:?}, {best:?}");
}

#[test]
fn the_window_follows_a_link_that_changes() {
    let (near, far) = (Link::of(0), Link::of(50));
    let (mut window, mut transfer) = mounted(&near);
    for _ in 0..3 {
        transfer.run(&near, objects(4000, 64 << 10), &mut window);
        assert!(window.limit() <= 2 * LEAST, "near: {}", window.limit());
        // It is found out within less than a second.
        let begun = transfer.now;
        while transfer.now < begun + Duration::from_millis(900) {
            transfer.run(&far, objects(window.limit() + 1, 64 << 10), &mut window);
        }
        transfer.run(&far, objects(500, 64 << 10), &mut window);
        let (limit, carries) = (window.limit(), far.carries(64 << 10));
        assert!(limit >= carries, "far: {limit} where {carries} are needed");
    }
}

#[test]
fn short_objects_do_not_make_a_queue_of_long_ones() {
    let link = Link::of(50);
    let lengths = || (0..4000).map(|number| [100, 4 * MIB, 70_000, 500_000][number % 4]);
    let (mut window, mut transfer) = mounted(&link);
    let time = transfer.run(&link, lengths(), &mut window);
    let carries = link.carries((100 + 4 * MIB + 570_000) / 4);
    assert!(window.limit() >= carries, "{} of {carries}", window.limit());
    let best = best(&link, lengths());
    assert!(time <= best.mul_f64(1.03), "{time:?}, {best:?}");
}

#[test]
fn readers_that_want_few_requests_change_nothing() {
    let link = Link::of(50);
    let (mut window, mut transfer) = mounted(&link);
    for _ in 0..100 {
        transfer.run(&link, objects(5, MIB), &mut window);
    }
    assert_eq!(window.limit(), FIRST);
}

#[test]
fn a_server_that_asks_for_fewer_gets_half_and_later_more() {
    let link = Link::of(50);
    let (mut window, mut transfer) = mounted(&link);
    for limit in [32, 16, 8, 4, 2, 2] {
        window.throttled();
        assert_eq!(window.limit(), limit);
    }
    transfer.run(&link, objects(40, 64 << 10), &mut window);
    assert!((3..LEAST).contains(&window.limit()), "{}", window.limit());
    transfer.run(&link, objects(2000, 64 << 10), &mut window);
    assert!(window.limit() >= link.carries(64 << 10));
}

#[test]
fn there_are_never_more_than_the_most() {
    for most in [1, 2, 7, 20] {
        let (mut window, mut transfer) = (Window::new(most), Transfer::new());
        for _ in 0..2000 {
            assert!((1..=most).contains(&window.limit()));
            transfer.run(&Link::of(50), [1000], &mut window);
        }
        window.throttled();
        assert!((1..=most).contains(&window.limit()));
        transfer.run(&Link::of(50), objects(2000, 1000), &mut window);
        assert_eq!(window.limit(), most);
    }
}

#[test]
fn lengths_have_two_classes_for_each_power_of_two() {
    for (bytes, class) in [
        (0, 0),
        (1023, 0),
        (1024, 2),
        (1535, 2),
        (1536, 3),
        (2047, 3),
        (2048, 4),
        (u64::MAX, CLASSES - 1),
    ] {
        assert_eq!(class_of(bytes), class, "{bytes}");
    }
}
