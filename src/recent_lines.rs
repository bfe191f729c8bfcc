//! The last lines of a text, in bounded memory: of the log, which `.zarr-mount/log` shows, and of the
//! refused changes, which `.zarr-mount/refused` shows.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The longest line that is kept whole, in bytes.
const LONGEST: usize = 1024;

/// The mark behind a line that was cut.
const CUT: &str = "…";

/// The last lines.
#[derive(Debug)]
pub struct RecentLines {
    most: usize,
    lines: Mutex<Lines>,
}

#[derive(Debug, Default)]
struct Lines {
    kept: VecDeque<Box<str>>,
    /// The bytes of all of them, with a line end each.
    n_bytes: usize,
}

impl Default for RecentLines {
    fn default() -> Self {
        RecentLines::new(1000)
    }
}

impl RecentLines {
    /// The last `most` lines.
    pub fn new(most: usize) -> RecentLines {
        let lines = Mutex::default();
        RecentLines { most, lines }
    }

    /// Adds a line, given without its end, and drops the oldest one where there are too many.
    pub fn push(&self, line: &str) {
        let line = cut(line, LONGEST);
        let mut lines = self.lock();
        lines.n_bytes += line.len() + 1;
        lines.kept.push_back(line);
        if lines.kept.len() > self.most
            && let Some(oldest) = lines.kept.pop_front()
        {
            lines.n_bytes -= oldest.len() + 1;
        }
    }

    /// The number of bytes of [`RecentLines::text`].
    pub fn n_bytes(&self) -> u64 {
        self.lock().n_bytes as u64
    }

    /// The lines, oldest first, each with its end.
    pub fn text(&self) -> Vec<u8> {
        let lines = self.lock();
        let mut text = Vec::with_capacity(lines.n_bytes);
        for line in &lines.kept {
            text.extend_from_slice(line.as_bytes());
            text.push(b'\n');
        }
        text
    }

    fn lock(&self) -> MutexGuard<'_, Lines> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// `line` in at most `longest` bytes, with a mark where it was cut.
pub fn cut(line: &str, longest: usize) -> Box<str> {
    if line.len() <= longest {
        return line.into();
    }
    let room = longest.saturating_sub(CUT.len());
    let ends = line
        .char_indices()
        .map(|(at, letter)| at + letter.len_utf8());
    let end = ends.take_while(|end| *end <= room).last().unwrap_or(0);
    format!("{}{CUT}", &line[..end]).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_lines_are_kept() {
        let recent = RecentLines::new(1000);
        assert_eq!((recent.n_bytes(), recent.text()), (0, Vec::new()));
        for n in 0..1007 {
            recent.push(&format!("line {n}"));
        }
        let text = String::from_utf8(recent.text()).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 1000);
        assert_eq!((lines[0], lines[999]), ("line 7", "line 1006"));
        assert_eq!(recent.n_bytes(), text.len() as u64);
        assert!(text.ends_with('\n'));
    }

    #[test]
    fn a_long_line_is_cut_between_characters() {
        for letter in ["x", "é", "語", "𝒙"] {
            let recent = RecentLines::default();
            recent.push(&letter.repeat(2000));
            let text = String::from_utf8(recent.text()).unwrap();
            assert!(text.ends_with("…\n") && text.starts_with(letter));
            let n = text.len();
            assert!((LONGEST - 3..=LONGEST + 1).contains(&n), "{letter}: {n}");
        }
        assert_eq!(*cut("abc", 3), *"abc");
        assert_eq!(*cut("abcd", 3), *"…");
    }
}
