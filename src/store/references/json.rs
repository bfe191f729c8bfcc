//! Reads a set of references in JSON, as kerchunk defines it.
//!
//! ```text
//! version 0   {"x/.zarray": "..", "x/0.0": ["s3://b/a.nc", 1000, 500]}
//! version 1   {"version": 1, "templates": {"u": "s3://b"}, "gen": [..],
//!              "refs": {"x/0.0": ["{{u}}/a.nc", 1000, 500]}}
//! ```
//!
//! A value is a text (`base64:` for other bytes), a document in JSON, `[url]` or `[url, offset,
//! length]`. The members are read one after the other, so that the text is never in memory as a whole.
//! The members of version 1 may be in any order, so the address of a target is kept as a template, which
//! is expanded when the reference is read.
//!
//! Source: <https://fsspec.github.io/kerchunk/spec.html>

use std::fmt;
use std::io::BufRead;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::budget::{TooLarge, too_large};
use super::expansion;
use super::expression::{MOST_TEXT_BYTES, Pattern, too_long};
use super::generated::{self, Generator};
use super::not_numbers::unmasked;
use super::row::ReferenceValue;
use super::table::{Table, TableBuilder};
use super::templates::Templates;
use super::text::Progress;

/// A set in JSON.
#[derive(Debug)]
pub(super) struct JsonSet {
    pub(super) table: Table,
    pub(super) templates: Arc<Templates>,
    /// Keys that are no names.
    pub(super) n_invalid: u64,
}

/// Reads `text`, whose references may take `most_bytes` of memory.
///
/// # Errors
/// A message that says what is wrong.
pub(super) fn read(
    text: impl BufRead,
    most_bytes: u64,
    progress: &Progress,
) -> Result<JsonSet, String> {
    let mut members = Members {
        root: TableBuilder::new(most_bytes),
        refs: None,
        version: None,
        templates: Templates::default(),
        generators: Vec::new(),
        most_bytes,
        progress,
    };
    let mut json = serde_json::Deserializer::from_reader(text);
    let read = Root(&mut members).deserialize(&mut json);
    read.and_then(|()| json.end())
        .map_err(|error| error.to_string())?;
    let Members {
        root,
        refs,
        version,
        templates,
        generators,
        ..
    } = members;
    let templates = Arc::new(templates);
    let mut builder = match (version, refs) {
        (None | Some(0), None) if generators.is_empty() => root,
        (None | Some(0), _) => {
            return Err("it has `refs` or `gen`, and not the version 1".to_owned());
        }
        (Some(1), refs) => refs.unwrap_or_else(|| TableBuilder::new(most_bytes)),
        (Some(other), _) => return Err(format!("version {other}; 0 and 1 are known")),
    };
    for generator in generators {
        expansion::add(generator, &mut builder, &templates)?;
    }
    let n_invalid = builder.n_invalid;
    let set = JsonSet {
        table: builder.finish(),
        templates,
        n_invalid,
    };
    if set.memory_bytes() > most_bytes {
        return Err(too_large(most_bytes));
    }
    Ok(set)
}

impl JsonSet {
    /// Memory of the references and the templates.
    pub(super) fn memory_bytes(&self) -> u64 {
        self.table.memory_bytes() + self.templates.memory_bytes()
    }
}

/// The members that were read so far.
struct Members<'p> {
    /// The members of the root, which are the references of version 0.
    root: TableBuilder,
    refs: Option<TableBuilder>,
    version: Option<u64>,
    templates: Templates,
    generators: Vec<Generator>,
    most_bytes: u64,
    progress: &'p Progress,
}

/// Reads the root.
struct Root<'m, 'p>(&'m mut Members<'p>);

impl<'de> DeserializeSeed<'de> for Root<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<(), D::Error> {
        json.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Root<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a set of references, which is an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let members = self.0;
        members.progress.begin_member();
        while let Some(key) = map.next_key::<String>()? {
            match &*key {
                "refs" => {
                    let mut builder = TableBuilder::new(members.most_bytes);
                    map.next_value_seed(References(&mut builder, members.progress))?;
                    members.refs = Some(builder);
                }
                "version" => {
                    let text = map.next_value::<Box<RawValue>>()?;
                    let version = serde_json::from_str(text.get());
                    let problem = || A::Error::custom("the version is no small number");
                    members.version = Some(version.map_err(|_| problem())?);
                }
                "templates" => {
                    let text = map.next_value::<Box<RawValue>>()?;
                    let templates = Templates::parse(text.get(), members.most_bytes);
                    let failed = |problem| A::Error::custom(format!("templates: {problem}"));
                    members.templates = templates.map_err(failed)?;
                }
                "gen" => {
                    let text = map.next_value::<Box<RawValue>>()?;
                    let generators = generated::parse(text.get(), members.most_bytes);
                    members.generators = generators.map_err(A::Error::custom)?;
                }
                _ => {
                    let value = map.next_value::<Box<RawValue>>()?;
                    let added = members.root.add(key.as_bytes(), reference(value.get()));
                    added.map_err(|TooLarge| A::Error::custom(too_large(members.most_bytes)))?;
                }
            }
            members.progress.begin_member();
        }
        Ok(())
    }
}

/// Reads the references of version 1.
struct References<'b>(&'b mut TableBuilder, &'b Progress);

impl<'de> DeserializeSeed<'de> for References<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<(), D::Error> {
        json.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for References<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("references by their keys")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let References(builder, progress) = self;
        progress.begin_member();
        while let Some(key) = map.next_key::<String>()? {
            let value = map.next_value::<Box<RawValue>>()?;
            let added = builder.add(key.as_bytes(), reference(value.get()));
            added.map_err(|TooLarge| A::Error::custom(too_large(builder.most_bytes())))?;
            progress.begin_member();
        }
        Ok(())
    }
}

/// The reference that the text of a value describes.
fn reference(json: &str) -> ReferenceValue {
    let bad = |problem: &str| ReferenceValue::Bad(problem.to_owned());
    match json.bytes().next() {
        Some(b'{') => ReferenceValue::Inline(unmasked(json).into_owned().into_bytes()),
        Some(b'"') => match serde_json::from_str::<String>(json) {
            Ok(text) => match text.strip_prefix("base64:") {
                None => ReferenceValue::Inline(text.into_bytes()),
                Some(encoded) => match STANDARD.decode(encoded) {
                    Ok(bytes) => ReferenceValue::Inline(bytes),
                    Err(error) => bad(&format!("its base64 is damaged: {error}")),
                },
            },
            Err(error) => bad(&error.to_string()),
        },
        Some(b'[') => {
            let expected = "expected [url] or [url, offset, length]";
            let (address, range) = if let Ok((address, offset, len)) =
                serde_json::from_str::<(Option<String>, Option<u64>, Option<u64>)>(json)
            {
                match (offset, len) {
                    (Some(offset), Some(len)) => (address, Some((offset, len))),
                    (None, None) => (address, None),
                    _ => return bad(expected),
                }
            } else if let Ok((address,)) = serde_json::from_str::<(Option<String>,)>(json) {
                (address, None)
            } else {
                return bad(expected);
            };
            let Some(address) = address else {
                return bad("it names no target, and a default target is not known");
            };
            if address.len() > MOST_TEXT_BYTES {
                return ReferenceValue::Bad(too_long());
            }
            if let Err(problem) = Pattern::parse(&address) {
                return ReferenceValue::Bad(problem);
            }
            let most = i64::MAX.unsigned_abs();
            match range {
                None => ReferenceValue::Whole(address),
                Some((offset, len)) if offset <= most && len <= most => {
                    ReferenceValue::Range(address, offset, len)
                }
                Some(_) => bad("its range is beyond the size of any object"),
            }
        }
        _ => bad("neither a text, nor a document, nor a reference"),
    }
}

#[cfg(test)]
mod tests;
