//! References that are generated: one for each combination of the values of some dimensions.
//!
//! ```text
//! {"key": "x/{{i}}.{{j}}", "url": "{{u}}/{{i}}.nc", "offset": "{{j * 100}}", "length": "100",
//!  "dimensions": {"i": {"stop": 3}, "j": [0, 1, 5]}}
//! ```

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::expression::{Names, Pattern};
use super::table::{ReferenceValue, TableBuilder, TooLarge, too_large};
use super::templates::Templates;

/// The most references that all generators of a set make.
const MOST_PRODUCTS: u64 = 10_000_000;

/// An entry of `gen`.
#[derive(Debug)]
pub(super) struct Generator {
    key: Pattern,
    url: Pattern,
    /// Offset and length.
    range: Option<(Pattern, Pattern)>,
    dimensions: Vec<(String, Dimension)>,
}

/// The values of a dimension.
#[derive(Debug)]
enum Dimension {
    List(Vec<i64>),
    Range { start: i64, step: i64, n: u64 },
}

/// Parses the list of generators.
///
/// # Errors
/// A message.
pub(super) fn parse(json: &str) -> Result<Vec<Generator>, String> {
    let entries = serde_json::from_str::<Vec<Map<String, Value>>>(json);
    let entries = entries.map_err(|error| format!("gen: {error}"))?;
    let each = entries.iter().enumerate();
    each.map(|(at, entry)| {
        Generator::parse(entry).map_err(|problem| format!("gen[{at}]: {problem}"))
    })
    .collect()
}

/// Checks how many references `generators` make.
///
/// # Errors
/// A message, if they are too many.
pub(super) fn check_number(generators: &[Generator]) -> Result<(), String> {
    let products = generators.iter().map(Generator::n_products);
    let all = products.fold(0_u64, u64::saturating_add);
    if all > MOST_PRODUCTS {
        return Err(format!(
            "gen: it makes {all} references, and no more than {MOST_PRODUCTS} are made"
        ));
    }
    Ok(())
}

impl Generator {
    fn parse(entry: &Map<String, Value>) -> Result<Generator, String> {
        let pattern = |name: &str| match entry.get(name) {
            None => Ok(None),
            Some(Value::String(text)) => Pattern::parse(text).map(Some),
            Some(Value::Number(number)) => Pattern::parse(&number.to_string()).map(Some),
            Some(_) => Err(format!("`{name}` is neither a text nor a number")),
        };
        let needed = |name: &str| pattern(name)?.ok_or_else(|| format!("`{name}` is missing"));
        let range = match (pattern("offset")?, pattern("length")?) {
            (Some(offset), Some(length)) => Some((offset, length)),
            (None, None) => None,
            _ => return Err("`offset` and `length` are given together or not at all".to_owned()),
        };
        let Some(Value::Object(dimensions)) = entry.get("dimensions") else {
            return Err("`dimensions` is no object".to_owned());
        };
        let dimensions = dimensions.iter().map(|(name, values)| {
            let parsed = Dimension::parse(values);
            let parsed = parsed.map_err(|problem| format!("dimensions: {name}: {problem}"))?;
            Ok((name.clone(), parsed))
        });
        Ok(Generator {
            key: needed("key")?,
            url: needed("url")?,
            range,
            dimensions: dimensions.collect::<Result<_, String>>()?,
        })
    }

    fn n_products(&self) -> u64 {
        let lengths = self.dimensions.iter().map(|(_, dimension)| dimension.len());
        // A dimension without values makes all products none, however many the others have.
        if self
            .dimensions
            .iter()
            .any(|(_, dimension)| dimension.len() == 0)
        {
            return 0;
        }
        lengths.fold(1, u64::saturating_mul)
    }

    /// Adds all references to `builder`.
    ///
    /// # Errors
    /// A message, for expressions without a value, and where the memory does not suffice.
    pub(super) fn add_to(
        &self,
        builder: &mut TableBuilder,
        templates: &Templates,
    ) -> Result<(), String> {
        for product in 0..self.n_products() {
            let names = ProductNames {
                integers: self.values_of(product),
                templates,
            };
            let failed = |problem: String| format!("gen: {problem}");
            let key = self.key.text(&names).map_err(failed)?;
            let url = self.url.text(&names).map_err(failed)?;
            let value = match &self.range {
                None => ReferenceValue::Whole(url),
                Some((offset, length)) => {
                    let number = |pattern: &Pattern| {
                        let text = pattern.text(&names).map_err(failed)?;
                        let number = text.trim().parse::<i64>().ok();
                        let number = number.and_then(|number| u64::try_from(number).ok());
                        number
                            .ok_or_else(|| failed(format!("{key}: {text} is no offset or length")))
                    };
                    ReferenceValue::Range(url, number(offset)?, number(length)?)
                }
            };
            let added = builder.add(key.as_bytes(), value);
            added.map_err(|TooLarge| too_large(builder.most_bytes()))?;
        }
        Ok(())
    }

    /// The values of all dimensions in one product. The last dimension changes fastest.
    fn values_of(&self, product: u64) -> BTreeMap<&str, i64> {
        let mut left = product;
        let mut values = BTreeMap::new();
        for (name, dimension) in self.dimensions.iter().rev() {
            let n = dimension.len().max(1);
            values.insert(name.as_str(), dimension.value(left % n));
            left /= n;
        }
        values
    }
}

impl Dimension {
    fn parse(values: &Value) -> Result<Dimension, String> {
        let integer = |value: &Value| {
            value
                .as_i64()
                .ok_or_else(|| format!("{value} is no integer"))
        };
        match values {
            Value::Array(values) => {
                let values = values.iter().map(integer);
                Ok(Dimension::List(values.collect::<Result<_, String>>()?))
            }
            Value::Object(members) => {
                let member = |name: &str, default: Option<i64>| match members.get(name) {
                    Some(value) => integer(value),
                    None => default.ok_or_else(|| format!("`{name}` is missing")),
                };
                let (start, step) = (member("start", Some(0))?, member("step", Some(1))?);
                let end = member("stop", None)?;
                let span = i128::from(end) - i128::from(start);
                let step_wide = i128::from(step);
                if step == 0 {
                    return Err("the step is 0".to_owned());
                }
                let is_empty = span == 0 || (span < 0) != (step < 0);
                let n = if is_empty {
                    0
                } else {
                    (span.unsigned_abs() - 1) / step_wide.unsigned_abs() + 1
                };
                let n = u64::try_from(n).unwrap_or(u64::MAX);
                Ok(Dimension::Range { start, step, n })
            }
            _ => Err("neither a list nor a range".to_owned()),
        }
    }

    fn len(&self) -> u64 {
        match self {
            Dimension::List(values) => values.len() as u64,
            Dimension::Range { n, .. } => *n,
        }
    }

    fn value(&self, at: u64) -> i64 {
        match self {
            Dimension::List(values) => {
                let value = usize::try_from(at).ok().and_then(|at| values.get(at));
                value.copied().unwrap_or_default()
            }
            Dimension::Range { start, step, .. } => {
                // It lies between start and stop, so nothing wraps in the end.
                let at = i64::try_from(at).unwrap_or(i64::MAX);
                start.wrapping_add(step.wrapping_mul(at))
            }
        }
    }
}

struct ProductNames<'g> {
    integers: BTreeMap<&'g str, i64>,
    templates: &'g Templates,
}

impl Names for ProductNames<'_> {
    fn integer(&self, name: &str) -> Option<i64> {
        self.integers.get(name).copied()
    }

    fn text(&self, name: &str) -> Option<&str> {
        self.templates.text(name)
    }
}
