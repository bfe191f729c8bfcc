//! The clock by which processes compare the times of answers. It is the monotonic clock, which cannot be set. Its times have
//! a meaning only in one boot of one machine, and in one time namespace, so they are kept with the identity of both.

use std::fs;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};
use serde_json::{Value, json};

use crate::store::AnswerTimes;

/// An [`Instant`], and what the clock showed then.
struct Base {
    instant: Instant,
    us: u64,
}

/// The identity of the clock; `None` if the system does not report it.
static IDENTITY: LazyLock<Option<String>> = LazyLock::new(|| {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    // Systems without this cannot shift the clock.
    let shift = fs::read_link("/proc/self/ns/time").unwrap_or_default();
    Some(format!("{} {}", boot.trim(), shift.display()))
});

/// How exactly the clock and an [`Instant`] are compared.
const GRAIN: Duration = Duration::from_micros(100);

static BASE: LazyLock<Base> = LazyLock::new(|| {
    loop {
        let instant = Instant::now();
        let shown = clock_gettime(ClockId::Monotonic);
        // Another thread may have run in between.
        if instant.elapsed() < GRAIN {
            let whole = u64::try_from(shown.tv_sec)
                .unwrap_or(0)
                .saturating_mul(1_000_000);
            let rest = u64::try_from(shown.tv_nsec / 1000).unwrap_or(0);
            let us = whole.saturating_add(rest);
            return Base { instant, us };
        }
    }
});

/// `times` by the clock, in a form that is kept. An earlier time of the request and a later one of the answer prove less.
pub(super) fn to_json(times: AnswerTimes) -> Value {
    let answered = times.answered.checked_add(GRAIN).map(us_of);
    json!({
        "clock": &*IDENTITY,
        "asked_us": us_of(times.asked),
        "answered_us": answered,
    })
}

/// The times in `text`; `None` if another clock has shown them.
pub(super) fn of_json(text: &Value) -> Option<AnswerTimes> {
    let identity = IDENTITY.as_deref()?;
    if text.get("clock")?.as_str()? != identity {
        return None;
    }
    let instant = |name: &str| instant_of(text.get(name)?.as_u64()?);
    let asked = instant("asked_us")?.checked_sub(GRAIN)?;
    let answered = instant("answered_us")?;
    (asked <= Instant::now()).then_some(AnswerTimes { asked, answered })
}

fn us_of(at: Instant) -> u64 {
    let base = &*BASE;
    let us = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
    match at.checked_duration_since(base.instant) {
        Some(since) => base.us.saturating_add(us(since)),
        None => base.us.saturating_sub(us(base.instant - at)),
    }
}

fn instant_of(us: u64) -> Option<Instant> {
    let base = &*BASE;
    if let Some(since) = us.checked_sub(base.us) {
        return base.instant.checked_add(Duration::from_micros(since));
    }
    let before = Duration::from_micros(base.us - us);
    base.instant.checked_sub(before)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_as_they_were_kept_and_never_prove_more() {
        let asked = Instant::now();
        let answered = Instant::now();
        let kept = to_json(AnswerTimes { asked, answered });
        let read = of_json(&kept).unwrap();
        assert!(read.asked <= asked && asked - read.asked < 3 * GRAIN);
        assert!(read.answered >= answered && read.answered - answered < 3 * GRAIN);
    }

    #[test]
    fn times_of_another_clock_and_of_the_future_are_none() {
        let now = AnswerTimes::of_now();
        let mut kept = to_json(now);
        kept["clock"] = "another".into();
        assert_eq!(of_json(&kept), None);
        let mut kept = to_json(now);
        kept["asked_us"] = (us_of(now.asked) + 60_000_000).into();
        assert_eq!(of_json(&kept), None);
        assert_eq!(of_json(&json!({})), None);
    }
}
