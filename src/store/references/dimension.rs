//! The values of a dimension of generated references (`gen` in a reference file).

use serde_json::value::RawValue;

use super::budget::too_large;
use super::members::members;

/// Bytes of a value in a list.
const VALUE_BYTES: u64 = 8;

/// The values of a dimension.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Dimension {
    List(Vec<i64>),
    Range { start: i64, step: i64, n: u64 },
}

impl Dimension {
    /// Parses `[1, 2, 4]` or `{"start": 0, "stop": 9, "step": 1}`. A list may take `most_bytes` of memory.
    ///
    /// # Errors
    /// A message.
    pub(super) fn parse(json: &str, most_bytes: u64) -> Result<Dimension, String> {
        match json.bytes().next() {
            Some(b'[') => {
                let n_commas = json.bytes().filter(|&byte| byte == b',').count() as u64;
                if (n_commas + 1).saturating_mul(VALUE_BYTES) > most_bytes {
                    return Err(too_large(most_bytes));
                }
                let values = serde_json::from_str(json);
                Ok(Dimension::List(values.map_err(|error| {
                    format!("not all values are integers: {error}")
                })?))
            }
            Some(b'{') => {
                let members = members(json, most_bytes)?;
                let member = |name: &str, default: Option<i64>| {
                    let mut found = members.iter().filter(|(member, _)| member == name);
                    match found.next() {
                        Some((_, value)) => integer(value),
                        None => default.ok_or_else(|| format!("`{name}` is missing")),
                    }
                };
                let (start, step) = (member("start", Some(0))?, member("step", Some(1))?);
                Dimension::range(start, member("stop", None)?, step)
            }
            _ => Err("neither a list nor a range".to_owned()),
        }
    }

    fn range(start: i64, end: i64, step: i64) -> Result<Dimension, String> {
        if step == 0 {
            return Err("the step is 0".to_owned());
        }
        let span = i128::from(end) - i128::from(start);
        let is_empty = span == 0 || (span < 0) != (step < 0);
        let n = if is_empty {
            0
        } else {
            (span.unsigned_abs() - 1) / i128::from(step).unsigned_abs() + 1
        };
        let n = u64::try_from(n).unwrap_or(u64::MAX);
        Ok(Dimension::Range { start, step, n })
    }

    pub(super) fn len(&self) -> u64 {
        match self {
            Dimension::List(values) => values.len() as u64,
            Dimension::Range { n, .. } => *n,
        }
    }

    /// The value at `place`, which is below the length.
    pub(super) fn value(&self, place: u32) -> i64 {
        match self {
            Dimension::List(values) => {
                let place = usize::try_from(place).ok();
                let value = place.and_then(|place| values.get(place));
                value.copied().unwrap_or_default()
            }
            // The sum lies between start and stop, so it is right even if the product wraps.
            Dimension::Range { start, step, .. } => {
                start.wrapping_add(step.wrapping_mul(i64::from(place)))
            }
        }
    }

    pub(super) fn memory_bytes(&self) -> u64 {
        match self {
            Dimension::List(values) => VALUE_BYTES * values.len() as u64,
            Dimension::Range { .. } => 0,
        }
    }
}

fn integer(json: &RawValue) -> Result<i64, String> {
    let value = serde_json::from_str(json.get());
    value.map_err(|_| format!("{json} is no integer"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_those_of_lists_and_of_ranges_in_python() {
        for (json, expected) in [
            ("[3, 1, -2]", vec![3, 1, -2]),
            ("[]", vec![]),
            (r#"{"stop": 3}"#, vec![0, 1, 2]),
            (r#"{"start": 9, "stop": 2, "step": -4}"#, vec![9, 5]),
            (r#"{"start": 2, "stop": 9, "step": -1}"#, vec![]),
            (
                r#"{"start": -9223372036854775808, "stop": 9223372036854775807, "step": 9223372036854775807}"#,
                vec![i64::MIN, -1, i64::MAX - 1],
            ),
        ] {
            let dimension = Dimension::parse(json, 1000).unwrap();
            let n = u32::try_from(dimension.len()).unwrap();
            let values: Vec<_> = (0..n).map(|place| dimension.value(place)).collect();
            assert_eq!(values, expected, "{json}");
        }
    }

    #[test]
    fn what_is_no_dimension_is_refused() {
        for (json, expected) in [
            ("3", "neither a list"),
            ("[1, 2.5]", "not all values are integers"),
            ("[1, null]", "not all values are integers"),
            (r#"{"start": 2}"#, "`stop` is missing"),
            (r#"{"stop": 2, "step": 0}"#, "step is 0"),
            (r#"{"stop": "2"}"#, "\"2\" is no integer"),
            (r#"{"stop": 2, "stop": 3}"#, "twice"),
        ] {
            let problem = Dimension::parse(json, 1000).unwrap_err();
            assert!(problem.contains(expected), "{json}: {problem}");
        }
        let problem = Dimension::parse("[1, 2, 3]", 16).unwrap_err();
        assert!(problem.contains("memory"), "{problem}");
    }
}
