//! The order in which a reader goes through the chunks of an array, as far as it repeats.
//!
//! A reader of every tenth chunk, or of a box of an array, reads runs of equal steps, such as 3 times 1 and once 97,
//! again and again.

use std::collections::HashMap;

/// The most ranks before the last one that are used.
const MOST_RANKS: usize = 1 << 10;

/// If no sequence repeats, more than half of this many recent steps must be equal.
const RECENT: usize = 32;

/// Steps from chunk to chunk, which are expected to repeat.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Pattern {
    is_descending: bool,
    /// The repeated runs of equal steps, in order.
    runs: Vec<Run>,
    /// The number of steps of the first run that were already made.
    made: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Run {
    step: u64,
    count: u64,
}

impl Pattern {
    /// The pattern of a reader that has read the chunks of `ranks`, the one of `last` at the end; `None` if there is no
    /// pattern.
    pub(super) fn of(mut ranks: Vec<u64>, last: u64) -> Option<Pattern> {
        let n_before = ranks.iter().filter(|&&rank| rank < last).count();
        let n_after = ranks.iter().filter(|&&rank| rank > last).count();
        let is_descending = n_after > n_before;
        // Distances to the last rank, of the ranks on the side that the reader comes from.
        ranks.retain(|&rank| (rank > last) == is_descending || rank == last);
        ranks.sort_unstable_by_key(|&rank| rank.abs_diff(last));
        ranks.truncate(MOST_RANKS);
        let steps: Vec<u64> = ranks
            .windows(2)
            .filter_map(|pair| Some(pair.first()?.abs_diff(*pair.get(1)?)))
            .rev()
            .collect();
        let (runs, made) =
            repeated(&runs_of(&steps)).or_else(|| Some((vec![usual(&steps)?], 0)))?;
        Some(Pattern {
            is_descending,
            runs,
            made,
        })
    }

    /// Whether each chunk is read.
    pub(super) fn is_dense(&self) -> bool {
        !self.is_descending && matches!(self.runs.as_slice(), [Run { step: 1, .. }])
    }

    /// The ranks below `end` that follow `last`.
    pub(super) fn ranks(&self, last: u64, end: u64) -> impl Iterator<Item = u64> {
        let steps = self
            .runs
            .iter()
            .cycle()
            .flat_map(|run| (0..run.count).map(|_| run.step))
            .skip(usize::try_from(self.made).unwrap_or(usize::MAX));
        let mut at = last;
        steps.map_while(move |step| {
            at = if self.is_descending {
                at.checked_sub(step)?
            } else {
                at.checked_add(step).filter(|&at| at < end)?
            };
            Some(at)
        })
    }
}

fn runs_of(steps: &[u64]) -> Vec<Run> {
    let equal = steps.chunk_by(|one, other| one == other);
    let run = |steps: &[u64]| {
        let step = *steps.first()?;
        let count = steps.len() as u64;
        Some(Run { step, count })
    };
    equal.filter_map(run).collect()
}

/// The shortest sequence of runs that repeats up to the end, and the steps of its first run that were already made. The
/// first and the last run may be cut.
fn repeated(runs: &[Run]) -> Option<(Vec<Run>, u64)> {
    let (last, before) = runs.split_last()?;
    if before.is_empty() {
        return Some((vec![*last], 0));
    }
    let is_period = |&period: &usize| {
        let Some(whole) = before.get(1..) else {
            return false;
        };
        let is_last_begun = before
            .len()
            .checked_sub(period)
            .and_then(|at| before.get(at));
        let goes_on = is_last_begun.is_some_and(|run| {
            // The very first run may be cut, and counts as long enough.
            run.step == last.step && (last.count <= run.count || period == before.len())
        });
        let repeats = whole
            .iter()
            .zip(whole.iter().skip(period))
            .all(|(a, b)| a == b);
        goes_on && repeats
    };
    // Each run of a period occurs, and one of them occurs again.
    let period = (2..=before.len()).find(is_period)?;
    let mut cycle = before.get(before.len() - period..)?.to_vec();
    if let Some(first) = cycle.first_mut() {
        first.count = first.count.max(last.count);
    }
    Some((cycle, last.count))
}

/// The step that most of the recent steps are equal to.
fn usual(steps: &[u64]) -> Option<Run> {
    let recent = steps.get(steps.len().saturating_sub(RECENT)..)?;
    let mut counts: HashMap<u64, usize> = HashMap::new();
    for &step in recent {
        *counts.entry(step).or_default() += 1;
    }
    let (step, count) = counts.into_iter().max_by_key(|&(_, count)| count)?;
    (2 * count > recent.len()).then_some(Run { step, count: 1 })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn next(ranks: &[u64], count: usize) -> Vec<u64> {
        let pattern = Pattern::of(ranks.to_vec(), *ranks.last().unwrap());
        let last = *ranks.last().unwrap();
        pattern.map_or_else(Vec::new, |pattern| {
            pattern.ranks(last, 1000).take(count).collect()
        })
    }

    #[test]
    fn steps_go_on() {
        assert_eq!(next(&[0], 3), [0; 0]);
        assert_eq!(next(&[0, 1, 2], 3), [3, 4, 5]);
        assert_eq!(next(&[0, 10], 3), [10 + 10, 30, 40]);
        assert_eq!(next(&[900, 890, 880], 3), [870, 860, 850]);
        assert_eq!(next(&[20, 10, 0], 3), [0; 0], "no rank is below 0");
        assert_eq!(next(&[970, 980, 990], 3), [0; 0], "nor beyond the end");
        assert_eq!(
            next(&[5, 0, 10, 20, 30, 40], 2),
            [50, 60],
            "after a look elsewhere"
        );
    }

    #[test]
    fn rows_of_a_box_go_on() {
        let rows = |n: u64| (0..n).flat_map(|row| (0..4).map(move |at| 100 * row + 7 + at));
        let all: Vec<u64> = rows(9).collect();
        for read in 6..20 {
            assert_eq!(next(&all[..read], 8), all[read..read + 8], "after {read}");
        }
        let planes = (0..9).flat_map(|plane| {
            (0..3).flat_map(move |row| (0..2).map(move |at| 100 * plane + 10 * row + at))
        });
        let all: Vec<u64> = planes.collect();
        for read in 14..30 {
            assert_eq!(next(&all[..read], 9), all[read..read + 9], "after {read}");
        }
        let back: Vec<u64> = all.iter().rev().copied().collect();
        for read in 14..30 {
            assert_eq!(next(&back[..read], 9), back[read..read + 9], "after {read}");
        }
    }

    #[test]
    fn chunks_that_come_out_of_order_hide_no_step() {
        let ranks = [0, 10, 20, 30, 50, 40, 60, 80, 70, 100];
        assert_eq!(next(&ranks, 2), [110, 120]);
    }

    #[test]
    fn random_ranks_have_no_pattern() {
        let mut rank = 1;
        let ranks: Vec<u64> = (0..100)
            .map(|_| {
                rank = rank * 7919 % 999_983;
                rank
            })
            .collect();
        for read in 8..100 {
            assert_eq!(Pattern::of(ranks[..read].to_vec(), ranks[read - 1]), None);
        }
    }
}
