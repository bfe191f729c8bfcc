//! How many requests are in flight: as many as the link carries, and few more, because further requests would only queue.
//!
//! The rule is that of TCP Vegas, for requests of different lengths. The time of an answer is compared with its *base*:
//! the time of an answer of that length that waits for no other. As long as answers take no longer than their bases, the
//! window grows. Like that of a new TCP connection, it doubles until requests queue. If answers take twice as long, half
//! of the window would have been enough (Little's law), so the window shrinks to a little more than half.
//!
//! ```text
//! round:   as many answers as a quarter of the window, all to requests that were sent since it last changed
//!          time / base   < 1.2: more     1.2 to 1.5: as many     > 1.5: fewer
//! probe:   now and then, and when requests queue for the first time, the window is halved for a round. If answers get
//!          faster, they had queued: it is halved again. If they do not, their time is the base from now on.
//! ```
//!
//! A base is the mean of a round and not the least time, so that answers that differ by chance do not look like a
//! queue. Probes correct a base that is too long, because requests queued from the beginning, or too short, because the
//! link has changed.
//!
//! Nothing here has a clock. The kept crates with such rules (`tower-acc`, `tower-resilience-adaptive`,
//! `rate_limiter_aimd`, `throttle-net`) compare all answers with the fastest one, whatever their lengths.

use std::time::Duration;

/// Requests in flight before the first answer.
const FIRST: usize = 64;

/// After the first answers, the window is the time of the fastest one divided by this. So a link of 2 ms begins with
/// [`LEAST`], and one of 20 ms with [`FIRST`].
const FIRST_INTERVAL: Duration = Duration::from_micros(300);

/// So few requests may always be in flight: they keep the server, the connections and the cores busy.
const LEAST: usize = 8;

/// The least number of requests in flight when the server asks for fewer.
const LEAST_THROTTLED: usize = 2;

/// The answers of a round are a quarter of the window, within these limits.
const ROUND: (usize, usize) = (16, 64);

/// This many answers of one length are enough to know their base.
const ENOUGH: u64 = 4;

/// Answers that take this part of their base, in percent, or more, wait for other answers.
const QUEUED: u64 = 150;

/// Answers that take less than this part do not.
const CLEAR: u64 = 120;

/// Answers that take less than this part have become faster.
const FASTER: u64 = 83;

/// The window is this many percent of the number of requests that would be enough, so that there is always another request
/// when one is answered.
const SPARE: u64 = 125;

/// After so many rounds in a row without a queue the window doubles again.
const CLEAR_ROUNDS: u32 = 3;

/// Rounds between two probes.
const PROBE_ROUNDS: u32 = 32;

/// Answers are compared with those of about the same length: there are two classes for each power of two.
const CLASSES: usize = 32;

/// The number of requests that may be in flight.
#[derive(Debug)]
pub(super) struct Window {
    limit: usize,
    most: usize,
    phase: Phase,
    /// The usual time of an answer of each class, in nanoseconds; 0 where it is not known.
    base: [u64; CLASSES],
    /// The shortest time of an answer.
    shortest: Duration,
    /// The limit before it was halved for a probe, and the phase that follows if requests had not queued.
    before_probe: (usize, Phase),
    /// Rounds in a row without a queue.
    clear: u32,
    /// Rounds since the last probe.
    since_probe: u32,
    round: Round,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// The window was never full for a round, and follows the fastest answer.
    New,
    /// It doubles until requests queue.
    Doubles,
    /// It follows the times of answers.
    Follows,
    /// It was halved to find out whether answers get faster.
    Probes,
}

/// Answers to requests that were sent since the window last changed.
#[derive(Debug, Default)]
struct Round {
    number: u64,
    answers: usize,
    /// Whether other requests waited all the time.
    is_full: bool,
    /// The number of answers of each class, and their time in nanoseconds.
    of_class: [(u64, u64); CLASSES],
}

/// An answer without an error.
#[derive(Debug, Clone, Copy)]
pub(super) struct Answer {
    /// [`Window::round`] when the request was sent.
    pub(super) round: u64,
    /// From sending the request to the last byte.
    pub(super) time: Duration,
    /// The length.
    pub(super) bytes: u64,
    /// Whether as many requests were in flight as may be.
    pub(super) is_full: bool,
}

impl Window {
    /// At most `most` requests.
    pub(super) fn new(most: usize) -> Window {
        let most = most.max(1);
        Window {
            limit: FIRST.min(most),
            most,
            phase: Phase::New,
            base: [0; CLASSES],
            shortest: Duration::MAX,
            before_probe: (0, Phase::New),
            clear: 0,
            since_probe: 0,
            round: Round::new(0),
        }
    }

    /// The number of requests that may be in flight.
    pub(super) fn limit(&self) -> usize {
        self.limit
    }

    /// The number of the round, for an [`Answer`] to a request that is sent now.
    pub(super) fn round(&self) -> u64 {
        self.round.number
    }

    /// Notes an answer, which may change the limit.
    pub(super) fn answered(&mut self, answer: Answer) {
        if self.phase == Phase::New && answer.time < self.shortest {
            self.shortest = answer.time;
            let fit = answer.time.as_nanos() / FIRST_INTERVAL.as_nanos();
            self.set(usize::try_from(fit).unwrap_or(FIRST).clamp(LEAST, FIRST));
        }
        if answer.round != self.round.number {
            return;
        }
        self.round.add(answer);
        if self.round.answers >= (self.limit / 4).clamp(ROUND.0, ROUND.1) {
            self.end_round();
            self.begin_round();
        }
    }

    /// Notes that the server asks for fewer requests: half as many are allowed.
    pub(super) fn throttled(&mut self) {
        self.phase = Phase::Follows;
        self.clear = 0;
        self.set((self.limit / 2).max(LEAST_THROTTLED).min(self.limit));
        self.begin_round();
    }

    /// Notes that no request is answered any more: twice as many are allowed, because those in flight may hang.
    pub(super) fn hangs(&mut self) {
        self.set(self.limit.saturating_mul(2));
    }

    fn end_round(&mut self) {
        let percent = self.round.percent_of(&self.base);
        if !self.round.is_full {
            // The readers want no more requests than these, so only their times are of use.
            return self.lower_base();
        }
        if self.phase == Phase::Probes {
            self.set_base();
            if percent < FASTER && self.limit > LEAST {
                return self.probe(Phase::Follows);
            }
            let (limit, phase) = self.before_probe;
            self.phase = phase;
            return self.set(limit);
        }
        if self.limit <= LEAST {
            // With so few requests, a long time does not mean that they queue.
            self.set_base();
            return self.grow();
        }
        self.lower_base();
        if self.phase == Phase::New && self.round.mean() > self.shortest * 2 {
            // They queue from the beginning, or the server takes longer for longer answers.
            return self.probe(Phase::Doubles);
        }
        self.since_probe += 1;
        if percent > QUEUED {
            self.shrink(percent);
        } else if percent < CLEAR {
            self.grow();
        } else {
            self.clear = 0;
        }
        if self.since_probe >= PROBE_ROUNDS {
            self.probe(Phase::Follows);
        }
    }

    fn grow(&mut self) {
        self.clear += 1;
        if self.phase == Phase::New {
            self.phase = Phase::Doubles;
        }
        let doubles = self.phase == Phase::Doubles || self.clear > CLEAR_ROUNDS;
        let larger = if doubles {
            self.limit.saturating_mul(2)
        } else {
            part(self.limit, SPARE, 100)
        };
        self.set(larger.max(self.limit + 1));
    }

    /// Shrinks the window after a round whose answers took `percent` of their bases.
    fn shrink(&mut self, percent: u64) {
        let is_first = self.phase != Phase::Follows;
        self.phase = Phase::Follows;
        self.clear = 0;
        let enough = part(self.limit, SPARE, percent);
        self.set(enough.max(self.limit / 2).max(LEAST));
        if is_first {
            self.probe(Phase::Follows);
        }
    }

    fn probe(&mut self, next: Phase) {
        self.phase = Phase::Probes;
        self.since_probe = 0;
        self.before_probe = (self.limit, next);
        self.set((self.limit / 2).max(LEAST).min(self.limit));
    }

    fn set(&mut self, limit: usize) {
        self.limit = limit.min(self.most);
    }

    fn begin_round(&mut self) {
        self.round = Round::new(self.round.number + 1);
    }

    /// Takes the means of the round as bases.
    fn set_base(&mut self) {
        for (base, mean) in self.base.iter_mut().zip(self.round.means()) {
            *base = mean.unwrap_or(*base);
        }
    }

    /// Takes the means of the round where no base is known, and half of the way to them where the base is longer.
    fn lower_base(&mut self) {
        for (base, mean) in self.base.iter_mut().zip(self.round.means()) {
            match mean {
                Some(mean) if *base == 0 => *base = mean,
                Some(mean) if mean < *base => *base = u64::midpoint(*base, mean),
                _ => {}
            }
        }
    }
}

impl Round {
    fn new(number: u64) -> Round {
        Round {
            number,
            is_full: true,
            ..Round::default()
        }
    }

    fn add(&mut self, answer: Answer) {
        self.answers += 1;
        self.is_full &= answer.is_full;
        if let Some((count, time)) = self.of_class.get_mut(class_of(answer.bytes)) {
            let nanoseconds = u64::try_from(answer.time.as_nanos()).unwrap_or(u64::MAX);
            *count += 1;
            *time = time.saturating_add(nanoseconds);
        }
    }

    /// The mean time of each class that has enough answers.
    fn means(&self) -> impl Iterator<Item = Option<u64>> {
        let classes = self.of_class.iter();
        classes.map(|&(count, time)| (count >= ENOUGH).then(|| (time / count).max(1)))
    }

    /// The mean time of all answers.
    fn mean(&self) -> Duration {
        let all = self.of_class.iter().map(|&(_, time)| time);
        let all = all.fold(0, u64::saturating_add);
        Duration::from_nanos(all / (self.answers as u64).max(1))
    }

    /// The time of the answers in percent of their bases; 100 where no base is known.
    fn percent_of(&self, base: &[u64; CLASSES]) -> u64 {
        let (mut taken, mut usual) = (0_u64, 0_u64);
        for (&(count, time), &base) in self.of_class.iter().zip(base) {
            if base > 0 {
                taken = taken.saturating_add(time);
                usual = usual.saturating_add(count.saturating_mul(base));
            }
        }
        taken.saturating_mul(100).checked_div(usual).unwrap_or(100)
    }
}

/// `limit` times `a` by `b`.
fn part(limit: usize, a: u64, b: u64) -> usize {
    let part = (limit as u64).saturating_mul(a) / b.max(1);
    usize::try_from(part).unwrap_or(usize::MAX)
}

/// The class of answers with `bytes`. All below 1 KiB are in one.
fn class_of(bytes: u64) -> usize {
    let halves = (bytes >> 9).max(1);
    let octave = halves.ilog2();
    let is_upper = octave > 0 && (halves >> (octave - 1)) & 1 == 1;
    (2 * octave as usize + usize::from(is_upper)).min(CLASSES - 1)
}

#[cfg(test)]
mod tests {
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
            let sending =
                Duration::from_secs(bytes) / u32::try_from(self.bytes_per_second).unwrap();
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
}
