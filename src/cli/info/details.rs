//! The report on one array, for people: a line for each fact, and one for each attribute.
//!
//! ```text
//! air/temperature  v3 array
//!   type        float32
//!   shape       (time: 8, lat: 48, lon: 96)
//!   ...
//!   attributes
//!     units      "K"
//! ```

use serde_json::Value;

use super::attributes::NodeAttributes;
use super::fit::{escaped, shortened, width, wrapped};
use super::node_report::NodeReport;
use super::table::without_end_spaces;
use super::{chunk_words, words};
use crate::cli::counted::counted;
use crate::cli::output::Page;
use crate::escape::{Span, Style, Text};

/// The most attributes that are shown, and the most columns of the name and of the value of each.
const MOST_ATTRIBUTES: usize = 40;
pub(super) const MOST_NAME: usize = 40;
pub(super) const MOST_VALUE: usize = 200;
/// The columns that a value has at least, on a terminal of any width.
pub(super) const LEAST_VALUE: usize = 10;

/// The columns of the names of facts.
const LABEL: usize = 12;

/// The report on an array.
pub(super) fn of_array(report: &NodeReport, page: Page) -> Text {
    let facts = &report.facts;
    let most = page.width.unwrap_or(usize::MAX);
    let name = shortened(&report.prefix.to_string(), most);
    let version = words::version(facts).unwrap_or_default();
    let mut lines = wrapped(
        vec![
            Span::new(Style::Strong, name + "  "),
            Span::new(Style::Plain, format!("{version} array")),
        ],
        page.width,
    );
    let mut add = |label: &str, style: Style, text: String| {
        lines.extend(labelled(label, Span::new(style, text), page));
    };
    add(
        "type",
        Style::Type,
        shortened(report.data_type(), MOST_VALUE),
    );
    add("shape", Style::Plain, words::shape(facts));
    add("chunks", Style::Plain, chunks(facts));
    if facts["shard_shape"].is_array() {
        let lengths = chunk_words::lengths(&facts["shard_shape"]);
        add(
            "shards",
            Style::Plain,
            number_of(&facts["shards"], &lengths),
        );
    }
    add("codecs", Style::Plain, words::codecs(facts));
    if let Some(fill_value) = &report.fill_value {
        add(
            "fill value",
            Style::Plain,
            shortened(&fill_value.text(), MOST_VALUE),
        );
    }
    if let Some(bytes) = facts["decoded_bytes"].as_u64() {
        add("size", Style::Plain, words::human(bytes) + " decoded");
    }
    if let Some(stored) = chunk_words::stored(facts) {
        add("stored", Style::Plain, stored);
    }
    let problem = report.problem();
    if problem.is_none()
        && let Some(files) = &report.files
    {
        add("files", Style::Plain, files.clone());
    }
    if let Some(problem) = problem {
        add("error", Style::Problem, problem);
    }
    for warning in report.warnings() {
        add("note", Style::Warning, warning);
    }
    let attributes = attributes(&report.attributes, page);
    if !attributes.is_empty() {
        lines.push(vec![Span::new(Style::Faint, "  attributes")]);
        lines.extend(attributes);
    }
    let lines = lines.into_iter().map(without_end_spaces);
    lines.fold(Text::new(), |text, line| text.styled(&line, page.colours))
}

/// The number, shape and size of the chunks.
fn chunks(facts: &Value) -> String {
    let told = number_of(
        &facts["chunks"],
        &chunk_words::lengths(&facts["chunk_shape"]),
    );
    let Some(bytes) = facts["decoded_chunk_bytes"].as_u64() else {
        return told;
    };
    let up_to = if told.contains(" to ") { "up to " } else { "" };
    format!("{told}, {up_to}{} each", words::human(bytes))
}

/// The number of chunks of these lengths, if it is known.
fn number_of(n: &Value, lengths: &str) -> String {
    let n = n.as_u64().map(|n| format!("{n} of "));
    n.unwrap_or_default() + lengths
}

/// The fact `text` with its name, in as many lines as it takes.
fn labelled(label: &str, text: Span, page: Page) -> Vec<Vec<Span>> {
    let indentation = 2 + LABEL;
    let columns = page
        .width
        .map(|most| most.saturating_sub(indentation).max(LEAST_VALUE));
    let lines = wrapped(vec![escaped(text)], columns)
        .into_iter()
        .enumerate();
    lines
        .map(|(i, mut line)| {
            let label = if i == 0 { label } else { "" };
            line.insert(0, Span::new(Style::Faint, format!("  {label:LABEL$}")));
            line
        })
        .collect()
}

/// A line for each attribute: the name and the value as JSON, which is shortened to the width of the page.
fn attributes(attributes: &NodeAttributes, page: Page) -> Vec<Vec<Span>> {
    let shown = || attributes.texts().take(MOST_ATTRIBUTES);
    // A value has half of a narrow line at least.
    let most_name = page.width.map_or(MOST_NAME, |most| MOST_NAME.min(most / 3));
    let names = shown().map(|(name, _)| width(&shortened(name, most_name)));
    let column = names.max().unwrap_or(0);
    let room = page.width.map_or(MOST_VALUE, |most| {
        most.saturating_sub(4 + column + 2).max(LEAST_VALUE)
    });
    let mut lines: Vec<Vec<Span>> = shown()
        .map(|(name, value)| {
            let name = shortened(name, most_name);
            let space = " ".repeat(column.saturating_sub(width(&name)) + 2);
            vec![
                Span::new(Style::Faint, format!("    {name}{space}")),
                Span::new(Style::Plain, shortened(&value, room.min(MOST_VALUE))),
            ]
        })
        .collect();
    let more = attributes.count() - lines.len();
    if more > 0 {
        let told = format!(
            "    and {} more, in --json",
            counted(more, "attribute", "attributes")
        );
        lines.push(vec![Span::new(Style::Faint, told)]);
    }
    lines
}
