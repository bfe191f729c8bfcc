//! Selections: a part of an array, requested by a file name.
//!
//! ```text
//! t@3.npy              the first index is 3, which leaves that dimension out; the rest whole
//! t@3,:,10:20.npy      one entry for each dimension, those at the end may be left out
//! t@time=-1,lat=:90    by name, in any order; a negative index counts from the end
//! ```

use std::sync::Arc;

use super::array::Array;
use crate::error::FormatError;
use crate::grid::Dims;

/// The character between the name of an array and a selection.
pub const SIGN: char = '@';

/// A request for a box of an array.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Selection {
    entries: Vec<SelectionEntry>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct SelectionEntry {
    /// The name of the dimension. Without a name, the position of the entry is that of the
    /// dimension.
    dimension: Option<String>,
    range: IndexRange,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum IndexRange {
    /// One index; its dimension is removed.
    Index(i64),
    /// The indices from the first bound up to (not including) the second.
    Part(Option<i64>, Option<i64>),
}

/// A selection applied to the shape of an array.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Selected {
    /// First index in each dimension of the array.
    pub start: Dims,
    /// Length in each dimension of the array; 1 in those that are removed.
    pub shape: Dims,
    /// The dimensions of the array that are kept.
    pub kept: Vec<usize>,
}

impl Selection {
    /// Parses the text after [`SIGN`]; `None` if it is no selection.
    pub fn parse(text: &str) -> Option<Selection> {
        let entries: Vec<SelectionEntry> = text
            .split(',')
            .map(SelectionEntry::parse)
            .collect::<Option<_>>()?;
        let named = entries.iter().filter(|entry| entry.dimension.is_some());
        let count = named.count();
        (count == 0 || count == entries.len()).then_some(Selection { entries })
    }

    /// Resolves the selection for an array of `shape` whose dimensions are called `names`.
    ///
    /// # Errors
    ///
    /// When an index is out of range, or a dimension does not exist or is selected twice.
    pub fn of(&self, shape: &[u64], names: &[Option<String>]) -> Result<Selected, FormatError> {
        let mut selected = Selected::whole(shape);
        let mut seen = vec![false; shape.len()];
        for (position, entry) in self.entries.iter().enumerate() {
            let axis = match &entry.dimension {
                None => Some(position),
                Some(dimension) => names
                    .iter()
                    .position(|name| name.as_ref() == Some(dimension)),
            };
            let unseen = axis.and_then(|axis| seen.get_mut(axis).filter(|seen| !**seen));
            let (Some(axis), Some(seen)) = (axis, unseen) else {
                return Err(FormatError::document(
                    "selection",
                    format!(
                        "entry {} names no dimension, or one that another entry has",
                        position + 1
                    ),
                ));
            };
            *seen = true;
            let length = shape[axis];
            let (start, end) = entry.range.within(length).ok_or_else(|| {
                let problem = format!("{} is not within 0..{length}", entry.range);
                FormatError::document("selection", problem)
            })?;
            selected.start[axis] = start;
            selected.shape[axis] = end - start;
            if matches!(entry.range, IndexRange::Index(_)) {
                selected.kept.retain(|&kept| kept != axis);
            }
        }
        Ok(selected)
    }
}

impl Selected {
    /// The selection of a whole array.
    pub fn whole(shape: &[u64]) -> Selected {
        Selected {
            start: shape.iter().map(|_| 0).collect(),
            shape: shape.into(),
            kept: (0..shape.len()).collect(),
        }
    }

    /// The same part of another level of an image. The array of this level has the shape `own`, and the array of the
    /// other level has the shape `other`. `None` if the part has no counterpart there, because the levels differ along
    /// an axis along which the part is not whole.
    pub fn in_shape(&self, own: &[u64], other: &[u64]) -> Option<Selected> {
        let mut found = self.clone();
        let lengths = own.iter().zip(other).enumerate();
        for (axis, (&own, &other)) in lengths.filter(|(_, (own, other))| own != other) {
            let length = found.shape.get_mut(axis)?;
            let is_whole = self.kept.contains(&axis) && *length == own;
            *length = is_whole.then_some(other)?;
        }
        (own.len() == other.len()).then_some(found)
    }

    /// The description of the selected part of `array`.
    #[must_use]
    pub fn apply(&self, array: &Array) -> Array {
        let kept = || self.kept.iter().copied();
        let names = kept().map(|axis| array.dimension_names[axis].clone());
        let geo = array
            .geo
            .as_ref()
            .and_then(|geo| geo.part(&self.start, &self.kept));
        let axes = kept().map(|axis| array.axes[axis].part(self.start[axis], self.shape[axis]));
        Array {
            shape: kept().map(|axis| self.shape[axis]).collect(),
            dimension_names: names.collect(),
            axes: axes.collect(),
            chunk: array
                .chunk
                .as_ref()
                .map(|chunk| kept().map(|axis| chunk[axis]).collect()),
            geo: geo.map(Arc::new),
            ..array.clone()
        }
    }
}

impl SelectionEntry {
    fn parse(text: &str) -> Option<SelectionEntry> {
        let (dimension, range) = match text.rsplit_once('=') {
            Some((name, range)) if !name.is_empty() => (Some(name.to_owned()), range),
            Some(_) => return None,
            None => (None, text),
        };
        let bound = |text: &str| -> Option<Option<i64>> {
            if text.is_empty() {
                return Some(None);
            }
            text.parse().ok().map(Some)
        };
        let range = match range.split_once(':') {
            Some((start, end)) => IndexRange::Part(bound(start)?, bound(end)?),
            None => IndexRange::Index(range.parse().ok()?),
        };
        Some(SelectionEntry { dimension, range })
    }
}

/// The spelling in a file name.
impl std::fmt::Display for Selection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (i, entry) in self.entries.iter().enumerate() {
            let comma = if i == 0 { "" } else { "," };
            match &entry.dimension {
                Some(dimension) => write!(f, "{comma}{dimension}={}", entry.range)?,
                None => write!(f, "{comma}{}", entry.range)?,
            }
        }
        Ok(())
    }
}

impl IndexRange {
    /// The first index and one past the last; `None` if the range is not within `length`.
    fn within(self, length: u64) -> Option<(u64, u64)> {
        let resolve = |index: i64| {
            if index < 0 {
                length.checked_sub(index.unsigned_abs())
            } else {
                Some(index.unsigned_abs())
            }
        };
        let (start, end) = match self {
            IndexRange::Index(index) => {
                let start = resolve(index)?;
                (start, start.checked_add(1)?)
            }
            IndexRange::Part(start, end) => (
                start.map_or(Some(0), resolve)?,
                end.map_or(Some(length), resolve)?,
            ),
        };
        (start <= end && end <= length).then_some((start, end))
    }
}

impl std::fmt::Display for IndexRange {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let bound = |bound: Option<i64>| bound.map_or_else(String::new, |bound| bound.to_string());
        match self {
            IndexRange::Index(index) => write!(f, "{index}"),
            IndexRange::Part(start, end) => write!(f, "{}:{}", bound(*start), bound(*end)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Option<(Vec<u64>, Vec<u64>, Vec<usize>)> {
        let names = [Some("t".to_owned()), None, Some("x".to_owned())];
        let selected = Selection::parse(text)?.of(&[4, 5, 6], &names).ok()?;
        Some((
            selected.start.to_vec(),
            selected.shape.to_vec(),
            selected.kept,
        ))
    }

    #[test]
    fn selections_are_boxes() {
        type Case<'a> = (&'a str, &'a [u64], &'a [u64], &'a [usize]);
        let cases: [Case<'_>; 7] = [
            ("3", &[3, 0, 0], &[1, 5, 6], &[1, 2]),
            ("-1,:,2:4", &[3, 0, 2], &[1, 5, 2], &[1, 2]),
            ("1:,:3", &[1, 0, 0], &[3, 3, 6], &[0, 1, 2]),
            ("x=0,t=-2:", &[2, 0, 0], &[2, 5, 1], &[0, 1]),
            ("0,0,0", &[0, 0, 0], &[1, 1, 1], &[]),
            ("2:2", &[2, 0, 0], &[0, 5, 6], &[0, 1, 2]),
            (":", &[0, 0, 0], &[4, 5, 6], &[0, 1, 2]),
        ];
        for (text, start, shape, kept) in cases {
            let expected = (start.to_vec(), shape.to_vec(), kept.to_vec());
            assert_eq!(of(text), Some(expected), "{text}");
        }
    }

    #[test]
    fn parts_have_counterparts_in_levels_that_differ_along_whole_axes() {
        let of = |text: &str, other: &[u64]| {
            let selected = Selection::parse(text)?
                .of(&[4, 5, 6], &vec![None; 3])
                .ok()?;
            let found = selected.in_shape(&[4, 5, 6], other)?;
            Some((found.start.to_vec(), found.shape.to_vec()))
        };
        let found = Some((vec![3, 0, 0], vec![1, 3, 2]));
        assert_eq!(of("3", &[4, 3, 2]), found);
        assert_eq!(of("3", &[2, 3, 2]), None);
        assert_eq!(of(":,1:", &[4, 3, 2]), None);
        assert_eq!(of(":,1:", &[4, 5, 2]), Some((vec![0, 1, 0], vec![4, 4, 2])));
        assert_eq!(of("3", &[4, 5]), None);
        assert_eq!(of("3", &[4, 5, 6, 1]), None);
    }

    #[test]
    fn what_is_outside_is_refused() {
        for text in [
            "", "4", "-5", "3:2", "0,0,0,0", "y=1", "x=1,x=2", "t=1,0", "=1", "1:2:3", "a", "5:6",
        ] {
            assert_eq!(of(text), None, "{text}");
        }
    }
}
