//! References that are generated: one for each combination of the values of some dimensions.
//!
//! ```text
//! {"key": "x/{{i}}.{{j}}", "url": "{{u}}/{{i}}.nc", "offset": "{{j * 100}}", "length": "100",
//!  "dimensions": {"i": {"stop": 3}, "j": [0, 1, 5]}}
//! ```

use std::collections::BTreeSet;
use std::fmt;

use serde::de::{Deserializer as _, Error as _, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::budget::{ENTRY_BYTES, too_large};
use super::dimension::Dimension;
use super::expression::{Expression, Names, Pattern, Skeleton};
use super::members::members;
use super::row::ReferenceValue;
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

/// Parses the list of generators, which may take `most_bytes` of memory.
///
/// # Errors
/// A message; also if they make more references than any set may have.
pub(super) fn parse(json: &str, most_bytes: u64) -> Result<Vec<Generator>, String> {
    let mut parser = serde_json::Deserializer::from_str(json);
    let generators = parser.deserialize_seq(GeneratorList { most_bytes });
    let generators = generators.map_err(|error| format!("gen: {error}"))?;
    let products = generators.iter().map(Generator::n_products);
    let all = products.fold(0_u64, u64::saturating_add);
    if all > MOST_PRODUCTS {
        return Err(format!(
            "gen: it makes {all} references, and no more than {MOST_PRODUCTS} are made"
        ));
    }
    Ok(generators)
}

struct GeneratorList {
    most_bytes: u64,
}

impl<'de> Visitor<'de> for GeneratorList {
    type Value = Vec<Generator>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of generators")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        let mut generators = Vec::new();
        let mut left_bytes = self.most_bytes;
        while let Some(entry) = list.next_element::<&RawValue>()? {
            let at = generators.len();
            let generator = Generator::parse(entry.get(), left_bytes);
            let named = |problem| A::Error::custom(format!("entry {at}: {problem}"));
            let generator = generator.map_err(named)?;
            let left = left_bytes.checked_sub(generator.memory_bytes());
            left_bytes = left.ok_or_else(|| named(too_large(self.most_bytes)))?;
            generators.push(generator);
        }
        Ok(generators)
    }
}

impl Generator {
    fn parse(json: &str, most_bytes: u64) -> Result<Generator, String> {
        let members = members(json, most_bytes)?;
        let member = |name: &str| {
            let mut found = members.iter().filter(|(member, _)| member == name);
            found.next().map(|(_, value)| value.get())
        };
        let pattern = |name: &str| {
            let Some(value) = member(name) else {
                return Ok(None);
            };
            let text = match serde_json::from_str::<String>(value) {
                Ok(text) => text,
                Err(_) => match serde_json::from_str::<i64>(value) {
                    Ok(number) => number.to_string(),
                    Err(_) => return Err(format!("`{name}` is neither a text nor an integer")),
                },
            };
            Pattern::parse_within(&text, most_bytes).map(Some)
        };
        let needed = |name: &str| pattern(name)?.ok_or_else(|| format!("`{name}` is missing"));
        let range = match (pattern("offset")?, pattern("length")?) {
            (Some(offset), Some(length)) => Some((offset, length)),
            (None, None) => None,
            _ => return Err("`offset` and `length` are given together or not at all".to_owned()),
        };
        let dimensions = member("dimensions").ok_or("`dimensions` is missing")?;
        let problem = |problem| format!("dimensions: {problem}");
        let dimensions = self::members(dimensions, most_bytes).map_err(problem)?;
        let mut left_bytes = most_bytes;
        let mut parsed = Vec::with_capacity(dimensions.len());
        for (name, values) in dimensions {
            let problem = |problem| format!("dimensions: {name}: {problem}");
            let values = Dimension::parse(values.get(), left_bytes).map_err(problem)?;
            left_bytes = left_bytes.saturating_sub(values.memory_bytes());
            parsed.push((name, values));
        }
        Ok(Generator {
            key: needed("key")?,
            url: needed("url")?,
            range,
            dimensions: parsed,
        })
    }

    /// The number of references that it makes.
    pub(super) fn n_products(&self) -> u64 {
        // If one dimension has no values, there are no products, however many values the others have.
        let lengths = || self.dimensions.iter().map(|(_, dimension)| dimension.len());
        if lengths().any(|length| length == 0) {
            return 0;
        }
        lengths().fold(1, u64::saturating_mul)
    }

    /// The key for the values at `places`.
    ///
    /// # Errors
    /// A message, for expressions without a value.
    pub(super) fn key(&self, places: &[u32], templates: &Templates) -> Result<String, String> {
        self.key.text(&self.names(places, templates))
    }

    /// The places of the values of all dimensions in one product. The last dimension changes fastest.
    pub(super) fn places_of(&self, product: u64) -> Vec<u32> {
        let mut left = product;
        let mut places = vec![0; self.dimensions.len()];
        for (place, (_, dimension)) in places.iter_mut().zip(&self.dimensions).rev() {
            let n = dimension.len().max(1);
            *place = u32::try_from(left % n).unwrap_or(u32::MAX);
            left /= n;
        }
        places
    }

    /// The places of the last values.
    pub(super) fn last_places(&self) -> Vec<u32> {
        let lengths = self.dimensions.iter().map(|(_, dimension)| dimension.len());
        let last = |length: u64| u32::try_from(length.saturating_sub(1)).unwrap_or(u32::MAX);
        lengths.map(last).collect()
    }

    fn names<'g>(&'g self, places: &'g [u32], templates: &'g Templates) -> PlacedNames<'g> {
        PlacedNames {
            dimensions: &self.dimensions,
            places,
            templates,
        }
    }

    /// The reference for the values at `places`.
    ///
    /// # Errors
    /// A message, for expressions without a value.
    pub(super) fn reference(
        &self,
        places: &[u32],
        templates: &Templates,
    ) -> Result<ReferenceValue, String> {
        let names = self.names(places, templates);
        let url = self.url.text(&names)?;
        let Some((offset, length)) = &self.range else {
            return Ok(ReferenceValue::Whole(url));
        };
        let number = |pattern: &Pattern| {
            let text = pattern.text(&names)?;
            let number = text.trim().parse::<i64>().ok();
            let number = number.and_then(|number| u64::try_from(number).ok());
            number.ok_or_else(|| format!("{text} is no offset or length"))
        };
        Ok(ReferenceValue::Range(url, number(offset)?, number(length)?))
    }

    /// The key, with `0` for each expression that names a dimension.
    ///
    /// # Errors
    /// A message, for other expressions without a value.
    pub(super) fn key_skeleton(&self, templates: &Templates) -> Result<Skeleton<'_>, String> {
        let names = self.names(&[], templates);
        self.key
            .skeleton(&names, |name| self.number_of(name).is_some())
    }

    fn number_of(&self, name: &str) -> Option<usize> {
        self.dimensions.iter().position(|(found, _)| found == name)
    }

    /// The number of the dimension that `expression` names, if it names one.
    pub(super) fn only_dimension(&self, expression: &Expression) -> Option<usize> {
        let mut found = expression
            .names()
            .into_iter()
            .map(|name| self.number_of(name));
        let first = found.next()??;
        found.all(|other| other == Some(first)).then_some(first)
    }

    /// The number of values of a dimension.
    pub(super) fn len_of(&self, dimension: usize) -> Option<u32> {
        let (_, values) = self.dimensions.get(dimension)?;
        u32::try_from(values.len()).ok()
    }

    /// The value of `expression`, which names one dimension, for the value at `place`.
    pub(super) fn value_at(
        &self,
        expression: &Expression,
        dimension: usize,
        place: u32,
    ) -> Option<i64> {
        let (_, values) = self.dimensions.get(dimension)?;
        expression.value(&OnlyValue(values.value(place))).ok()
    }

    /// At most `most` of the addresses of targets.
    pub(super) fn some_addresses(&self, templates: &Templates, most: u64) -> BTreeSet<String> {
        let named = self.url.names();
        let varies: Vec<usize> = named
            .into_iter()
            .filter_map(|name| self.number_of(name))
            .collect();
        let mut places = vec![0; self.dimensions.len()];
        let mut found = BTreeSet::new();
        for _ in 0..most {
            found.extend(self.url.text(&self.names(&places, templates)));
            // The next combination of the values that the address depends on.
            let increased = varies.iter().any(|&at| {
                let (Some(place), Some(n)) = (places.get_mut(at), self.len_of(at)) else {
                    return false;
                };
                *place = if *place + 1 < n { *place + 1 } else { 0 };
                *place > 0
            });
            if !increased {
                break;
            }
        }
        found
    }

    pub(super) fn memory_bytes(&self) -> u64 {
        let range = self
            .range
            .iter()
            .flat_map(|(offset, length)| [offset, length]);
        let patterns = [&self.key, &self.url].into_iter().chain(range);
        let dimensions = self
            .dimensions
            .iter()
            .map(|(name, dimension)| ENTRY_BYTES + name.len() as u64 + dimension.memory_bytes());
        ENTRY_BYTES + patterns.map(Pattern::memory_bytes).sum::<u64>() + dimensions.sum::<u64>()
    }
}

/// Names that stand for the values of dimensions at some places, and for templates.
struct PlacedNames<'g> {
    dimensions: &'g [(String, Dimension)],
    places: &'g [u32],
    templates: &'g Templates,
}

impl Names for PlacedNames<'_> {
    fn integer(&self, name: &str) -> Option<i64> {
        let mut each = self.dimensions.iter().zip(self.places);
        let ((_, dimension), place) = each.find(|((found, _), _)| found == name)?;
        Some(dimension.value(*place))
    }

    fn text(&self, name: &str) -> Option<&str> {
        self.templates.text(name)
    }
}

/// The value of the only dimension that is named.
struct OnlyValue(i64);

impl Names for OnlyValue {
    fn integer(&self, _name: &str) -> Option<i64> {
        Some(self.0)
    }

    fn text(&self, _name: &str) -> Option<&str> {
        None
    }
}
