//! Adds the references of generators to a table: as a whole, where each can be made when it is asked for, or one by
//! one.

use std::sync::Arc;

use super::budget::{TooLarge, too_large};
use super::generated::Generator;
use super::product::{Product, ProductKeys};
use super::table::TableBuilder;
use super::templates::Templates;

/// The references of a generator of fewer take little memory, and are made when the set is read.
const LEAST_KEPT: u64 = 64;

/// Adds all references of `generator` to `builder`, in place of earlier ones.
///
/// # Errors
/// A message, for expressions without a value, and where the memory does not suffice.
pub(super) fn add(
    generator: Generator,
    builder: &mut TableBuilder,
    templates: &Arc<Templates>,
) -> Result<(), String> {
    let failed = |problem| format!("gen: {problem}");
    if generator.n_products() < LEAST_KEPT {
        return add_each(&generator, builder, templates).map_err(failed);
    }
    let Some(keys) = ProductKeys::of(&generator, templates, builder.left_bytes()) else {
        return add_each(&generator, builder, templates).map_err(failed);
    };
    // An error that all references would have is returned at once.
    let first = generator.reference(&generator.places_of(0), templates);
    first.map_err(failed)?;
    let added = builder.add_product(Product::new(keys, generator, templates));
    added.map_err(|TooLarge| too_large(builder.most_bytes()))
}

/// Adds the references of a generator one by one.
fn add_each(
    generator: &Generator,
    builder: &mut TableBuilder,
    templates: &Templates,
) -> Result<(), String> {
    for product in 0..generator.n_products() {
        let places = generator.places_of(product);
        let key = generator.key(&places, templates)?;
        let value = generator.reference(&places, templates);
        let value = value.map_err(|problem| format!("{key}: {problem}"))?;
        let added = builder.add(key.as_bytes(), value);
        added.map_err(|TooLarge| too_large(builder.most_bytes()))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::store::references::row::Found;
    use crate::store::references::table::Table;
    use crate::store::references::text::Progress;
    use crate::store::references::{generated, json};
    use crate::store::{Cursor, Prefix};

    /// The references of an entry of `gen`, as they are kept, and each added by itself.
    fn tables(entry: &str) -> (Table, Table) {
        let templates = Arc::new(Templates::parse(r#"{"u": "s3://b", "d": "x"}"#, 1000).unwrap());
        let generators = || generated::parse(&format!("[{entry}]"), 1 << 20).unwrap();
        let [mut kept, mut added] = [1 << 20; 2].map(TableBuilder::new);
        for generator in generators() {
            add(generator, &mut kept, &templates).unwrap();
        }
        for generator in generators() {
            add_each(&generator, &mut added, &templates).unwrap();
        }
        (kept.finish(), added.finish())
    }

    #[test]
    fn references_are_those_that_are_made_one_by_one() {
        let dimensions = r#""dimensions": {"i": {"stop": 8}, "j": [9, 4, 6, 5, 4, 0], "k": {"start": 3, "stop": 0, "step": -1}}"#;
        for (key, is_kept) in [
            ("x/{{i}}.{{j}}.{{k}}", true),
            ("{{d}}/c/{{ 2 * i + 1 }}/{{7}}/{{j // 2}}", true),
            ("x/{{k - 1}}.0.{{i % 3}}", true),
            ("{{i}}.{{j}}", true),
            ("x/{{i}}", true),
            ("x/1{{i}}.{{j}}", false),
            ("x/{{i}}.{{i}}", false),
            ("x/{{i + j}}.{{k}}", false),
            ("x{{i}}/{{j}}.{{k}}", false),
            ("x/{{i - 1}}.{{j}}", false),
            ("x/{{i}}-{{j}}", false),
            ("../x/{{i}}.{{j}}", false),
        ] {
            for range in ["", r#""offset": "{{i * 100 + j * 10 + k}}", "length": 7,"#] {
                let entry = format!(
                    r#"{{"key": "{key}", "url": "{{{{u}}}}/{{{{i}}}}-{{{{k}}}}", {range} {dimensions}}}"#
                );
                let (kept, added) = tables(&entry);
                assert_eq!(kept.products().count() > 0, is_kept, "{key}");
                assert_eq!(listed(&kept), listed(&added), "{key}");
            }
        }
    }

    /// All references, found by listing.
    fn listed(table: &Table) -> BTreeMap<String, Option<Found>> {
        let mut found = BTreeMap::new();
        let mut prefixes = vec![Prefix::root()];
        while let Some(prefix) = prefixes.pop() {
            let mut after = Cursor::START;
            while let Some(name) = table.next(&prefix, &after) {
                let key = prefix.key(&name.bytes).unwrap();
                if name.is_prefix {
                    prefixes.push(key.to_prefix());
                } else {
                    let value = table.get(key.as_bytes());
                    assert!(found.insert(key.to_string(), value).is_none(), "{key}");
                }
                after = name.cursor;
            }
        }
        found
    }

    #[test]
    fn later_references_replace_earlier_ones() {
        let range = r#""dimensions": {"i": {"stop": 100}}}"#;
        let text = format!(
            r#"{{"version": 1, "refs": {{"x/7": "listed", "x/107": "listed", "x/{{}}": "no key", "x/3": 5}}, "gen": [
            {{"key": "x/{{{{i}}}}", "url": "first", {range},
            {{"key": "x/5", "url": "between", "dimensions": {{}}}},
            {{"key": "x/{{{{i * 2}}}}", "url": "second", {range}]}}"#
        );
        let set = json::read(text.as_bytes(), 1 << 20, &Progress::default()).unwrap();
        assert_eq!(set.table.products().count(), 2);
        let found = listed(&set.table);
        let at = |address: &str| Some(Found::At(address.into(), None));
        for (key, expected) in [
            ("x/7", at("first")),
            ("x/3", at("first")),
            ("x/5", at("between")),
            ("x/6", at("second")),
            ("x/198", at("second")),
            ("x/107", Some(Found::Inline("listed".into()))),
        ] {
            assert_eq!(found.get(key), Some(&expected), "{key}");
        }
        assert_eq!(found.len(), 100 + 50 + 1 + 1);
    }

    #[test]
    fn ten_million_references_take_little_memory() {
        for (key, dimensions) in [
            (
                "x/{{i}}.{{j}}",
                r#"{"i": {"stop": 4000}, "j": {"stop": 2500}}"#,
            ),
            ("x/{{i}}", r#"{"i": {"stop": 10000000}}"#),
        ] {
            let entry =
                format!(r#"{{"key": "{key}", "url": "u{{{{i}}}}", "dimensions": {dimensions}}}"#);
            let text = format!(r#"{{"version": 1, "gen": [{entry}]}}"#);
            let set = json::read(text.as_bytes(), 1 << 20, &Progress::default()).unwrap();
            assert!(set.table.memory_bytes() < 10_000);
            assert!(set.table.addresses().count() > 1000);
        }
    }

    #[test]
    fn templates_that_make_no_reference_are_reported_when_the_set_is_read() {
        for (url, expected) in [("{{k}}", "called `k`"), ("{{1 // (i - 1)}}", "")] {
            let entry = format!(
                r#"{{"key": "x/{{{{i}}}}", "url": "{url}", "dimensions": {{"i": {{"stop": 100}}}}}}"#
            );
            let text = format!(r#"{{"version": 1, "gen": [{entry}]}}"#);
            let set = json::read(text.as_bytes(), 1 << 20, &Progress::default());
            match set {
                Err(problem) => assert!(
                    problem.contains(expected) && !expected.is_empty(),
                    "{problem}"
                ),
                // A value that only some lack is an error of their keys.
                Ok(set) => {
                    assert!(matches!(set.table.get(b"x/1"), Some(Found::Bad(_))));
                    assert_eq!(set.table.get(b"x/0"), Some(Found::At("-1".into(), None)));
                }
            }
        }
    }
}
