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

/// This many requests may always be in flight: they keep the server, the connections and the cores busy.
const LEAST: usize = 8;

/// The least number of requests in flight when the server asks for fewer.
const LEAST_THROTTLED: usize = 2;

/// The answers of a round are a quarter of the window, within these limits.
const ROUND: (usize, usize) = (16, 64);

/// This many answers of one length are enough to know their base.
const ENOUGH: u64 = 4;

/// Answers that take at least this many percent of their base have waited for other answers.
const QUEUED: u64 = 150;

/// Answers that take fewer percent of their base have not waited.
const CLEAR: u64 = 120;

/// Answers that take fewer percent of the earlier time have become faster.
const FASTER: u64 = 83;

/// The window is this many percent of the number of requests that would be enough, so that there is always another request
/// when one is answered.
const SPARE: u64 = 125;

/// After this many rounds in a row without a queue, the window doubles again.
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
mod tests;
