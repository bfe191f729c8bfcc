//! The configuration of a repository of version 1, `config.yaml`: the names of its virtual chunk containers.
//!
//! ```yaml
//! virtual_chunk_containers:
//!   s3://bucket/data/:
//!     name: rows
//!     url_prefix: s3://bucket/data/
//!     store: !s3 {..}
//! ```
//!
//! The text is read event by event, and everything else in it is skipped. Aliases are not expanded, so that a short text
//! cannot become long in memory.

use saphyr_parser::{Event, Parser, ScalarStyle, StrInput};

use super::files::check_rights;
use super::prefixes::Prefixes;
use crate::store::{Access, Key, Store, StoreError};

/// The file of the configuration.
const CONFIGURATION: &[u8] = b"config.yaml";

/// The longest file that is read. A file with a hundred containers has 20 KB.
const MOST_BYTES: u64 = 256 << 10;

type Events<'t> = Parser<'t, StrInput<'t>>;

/// Reads the prefixes of containers in the repository in `store`, or why they are not known. All users who may read
/// `shown` have to be allowed to read the file.
///
/// # Errors
/// Errors that may not come again, and [`StoreError::Denied`] for a file that fewer users may read.
pub(super) fn read(
    store: &dyn Store,
    shown: Option<Access>,
) -> Result<Result<Prefixes, String>, StoreError> {
    let key = Key::parse(CONFIGURATION)?;
    let mut file = Vec::new();
    let Some(fetched) = store.fetch(&key, MOST_BYTES, &mut file)? else {
        return Ok(Ok(Prefixes::default()));
    };
    check_rights(&key, &*fetched.object, shown)?;
    if !fetched.is_read {
        return Ok(Err(format!("it has more than {MOST_BYTES} bytes")));
    }
    let text = str::from_utf8(&file).map_err(|_| "it is not UTF-8".to_owned());
    Ok(text.and_then(prefixes_in))
}

/// The prefixes of containers in `text`.
fn prefixes_in(text: &str) -> Result<Prefixes, String> {
    let mut prefixes = Prefixes::default();
    let mut events = Parser::new_from_str(text);
    loop {
        match next(&mut events)? {
            Event::StreamStart | Event::DocumentStart(_) => {}
            Event::MappingStart(..) => break,
            // An empty file.
            Event::StreamEnd => return Ok(prefixes),
            _ => return Err("it is no mapping".to_owned()),
        }
    }
    each_member(&mut events, |events, member, value| {
        if member != "virtual_chunk_containers" || !matches!(value, Event::MappingStart(..)) {
            return skip(events, value);
        }
        each_member(events, |events, _, value| {
            if !matches!(value, Event::MappingStart(..)) {
                return skip(events, value);
            }
            let (mut name, mut prefix) = (None, None);
            each_member(events, |events, member, value| {
                match member {
                    "name" => name = text_of(&value),
                    "url_prefix" => prefix = text_of(&value),
                    _ => {}
                }
                skip(events, value)
            })?;
            prefixes.add(name.as_deref(), prefix.as_deref())
        })
    })?;
    Ok(prefixes)
}

/// Calls `take` with the key of each member of a mapping, which has begun, and with the first event of its value. `take`
/// reads the other events of that value.
fn each_member<'t>(
    events: &mut Events<'t>,
    mut take: impl FnMut(&mut Events<'t>, &str, Event<'t>) -> Result<(), String>,
) -> Result<(), String> {
    loop {
        let key = match next(events)? {
            Event::MappingEnd => return Ok(()),
            Event::Scalar(key, ..) => Some(key),
            other => {
                skip(events, other)?;
                None
            }
        };
        let value = next(events)?;
        match key {
            Some(key) => take(events, &key, value)?,
            None => skip(events, value)?,
        }
    }
}

/// Passes over a value whose first event was read.
fn skip<'t>(events: &mut Events<'t>, first: Event<'t>) -> Result<(), String> {
    let mut depth = 0_u64;
    let mut event = first;
    loop {
        match event {
            Event::MappingStart(..) | Event::SequenceStart(..) => depth += 1,
            Event::MappingEnd | Event::SequenceEnd => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 {
            return Ok(());
        }
        event = next(events)?;
    }
}

fn next<'t>(events: &mut Events<'t>) -> Result<Event<'t>, String> {
    let event = events.next_event().ok_or("it ends too early")?;
    event
        .map(|(event, _)| event)
        .map_err(|error| error.to_string())
}

/// The text of a value; `None` for a null, or what is no text.
fn text_of(value: &Event<'_>) -> Option<String> {
    let Event::Scalar(text, style, ..) = value else {
        return None;
    };
    let is_null =
        *style == ScalarStyle::Plain && ["", "~", "null", "Null", "NULL"].contains(&text.as_ref());
    (!is_null).then(|| text.clone().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The configuration as Icechunk writes it, with some parts left out.
    const TEXT: &str = "\
inline_chunk_threshold_bytes: null
storage:
  concurrency:
    max_concurrent_requests_for_object: 5
  storage_class: null
virtual_chunk_containers:
  file:///d/:
    name: null
    url_prefix: file:///d/
    store: !local_file_system /d
  's3://b/a: b/':
    name: x
    url_prefix: 's3://b/a: b/'
    store: !s3
      region: null
      tags:
      - [name, y]
manifest: null
";

    fn names(text: &str) -> Result<Vec<(String, Option<String>)>, String> {
        prefixes_in(text).map(|prefixes| prefixes.iter().collect())
    }

    #[test]
    fn containers_have_names_and_prefixes() {
        let expected = vec![("x".to_owned(), Some("s3://b/a: b/".to_owned()))];
        assert_eq!(names(TEXT), Ok(expected.clone()));
        // This is the same in another style of YAML, behind a directive.
        let flow = r#"%YAML 1.2
---
{"virtual_chunk_containers": {"k": {"store": {"name": 1}, "url_prefix": "s3://b/a\u003a b/", ? "name" : &n x}}}
"#;
        assert_eq!(names(flow), Ok(expected));
    }

    #[test]
    fn texts_without_containers_have_no_names() {
        for text in [
            "",
            "# nothing\n",
            "a: 1",
            "virtual_chunk_containers: null",
            "virtual_chunk_containers: {}",
            "virtual_chunk_containers: {a: 1, b: {name: x}, c: {url_prefix: y}, d: {name: ~, url_prefix: y}}",
            "virtual_chunk_containers: [name, url_prefix]",
            "{[a, b]: c, d: {virtual_chunk_containers: {e: {name: x, url_prefix: y}}}}",
            // An alias stands for nothing.
            "a: &a {name: x, url_prefix: y}\nvirtual_chunk_containers: {b: *a}",
        ] {
            assert_eq!(names(text), Ok(Vec::new()), "{text}");
        }
    }

    #[test]
    fn damaged_texts_are_errors() {
        for (text, expected) in [
            ("- a", "no mapping"),
            ("a", "no mapping"),
            ("a: [", ""),
            ("a: *b", ""),
            (&TEXT[..TEXT.len() - 40], ""),
            ("virtual_chunk_containers: {", ""),
        ] {
            let problem = names(text).map_or_else(|problem| problem, |found| format!("{found:?}"));
            assert!(problem.contains(expected), "{text}: {problem}");
        }
        assert!(names("virtual_chunk_containers: {").is_err());
        let many: Vec<_> = (0..2000).map(|n| format!("  k{n}: {{}}")).collect();
        let many = many.join("\n");
        let problem = names(&format!("virtual_chunk_containers:\n{many}")).unwrap_err();
        assert!(problem.contains("more than 1024"), "{problem}");
    }

    #[test]
    fn a_hostile_text_takes_time_in_proportion_to_its_length() {
        for part in [
            "- ", "? ", "[", "{", "&a ", "!a ", "a: {", "\"", "\n\t", "*a ", "a: &a\n", "|\n",
            "---\n", "%a\n",
        ] {
            let text = part.repeat(usize::try_from(MOST_BYTES).unwrap() / part.len());
            let _ = names(&text);
            let _ = names(&format!("virtual_chunk_containers:\n  {text}"));
        }
    }

    proptest::proptest! {
        #[test]
        fn no_text_panics(parts in proptest::collection::vec(0..PARTS.len(), 0..60)) {
            let text: String = parts.into_iter().map(|at| PARTS[at]).collect();
            let _ = names(&text);
            let _ = names(&format!("virtual_chunk_containers:\n {text}"));
        }
    }

    const PARTS: [&str; 32] = [
        "a",
        ":",
        ": ",
        "\n",
        " ",
        "  ",
        "\t",
        "- ",
        "-",
        "? ",
        "[",
        "]",
        "{",
        "}",
        ",",
        "\"",
        "'",
        "#",
        "&a",
        "*a",
        "!",
        "!!str ",
        "|",
        ">",
        "|2-",
        "%YAML 1.2\n",
        "---",
        "...",
        "\\x4",
        "\\",
        "\u{feff}",
        "é",
    ];
}
