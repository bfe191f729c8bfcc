//! The row of one node in a tree: its cells, and the lines below it.

use super::details::{LEAST_VALUE, MOST_NAME, MOST_VALUE};
use super::fit::{shortened, width};
use super::node_report::NodeReport;
use super::table::{Alignment, BELOW, Cell, Row};
use super::{chunk_words, words};
use crate::cli::counted::counted;
use crate::cli::output::Page;
use crate::escape::{Span, Style};

/// The most columns of a data type in a row, and of a shape.
const MOST_TYPE: usize = 60;
const MOST_SHAPE: usize = 200;

/// The most attributes that are shown of the node at which a tree starts, each in a line.
const MOST_ATTRIBUTES: usize = 12;

/// The attributes that a row shows, besides `standard_name` in the place of a `long_name`.
const SHOWN: [&str; 6] = [
    "title",
    "long_name",
    "units",
    "scale_factor",
    "add_offset",
    "_FillValue",
];

/// Adds the cells about a node after those of its name and its version.
pub(super) fn fill(row: &mut Row, report: &NodeReport) {
    let facts = &report.facts;
    if report.is_array() {
        let size = facts["decoded_bytes"].as_u64().map(words::human);
        let stored = chunk_words::size_and_ratio(facts).map(|size| format!("{size} stored"));
        row.cells.extend([
            cell(Style::Type, shortened(report.data_type(), MOST_TYPE)),
            cell(Style::Plain, shortened(&words::shape(facts), MOST_SHAPE)),
            right(size.unwrap_or_default()),
            cell(Style::Plain, stored.unwrap_or_default()),
        ]);
        row.end = vec![
            Span::new(Style::Plain, chunk_words::chunks(facts) + "  "),
            Span::new(Style::Faint, words::codecs(facts)),
        ];
    } else {
        let kind = facts["node_type"].as_str().unwrap_or_default();
        row.cells.push(cell(Style::Type, kind));
    }
}

/// Lines about a problem of the node, about its files, and about parts of it that are shown otherwise than stored.
pub(super) fn sentences(report: &NodeReport) -> impl Iterator<Item = Vec<Span>> {
    let problem = report.problem();
    let files = report.files.clone().filter(|_| problem.is_none());
    let told = [(Style::Problem, problem), (Style::Plain, files)];
    let told = told
        .into_iter()
        .filter_map(|(style, text)| Some((style, text?)));
    let warnings = report.warnings().map(|text| (Style::Warning, text));
    told.chain(warnings)
        .map(|(style, text)| vec![Span::new(style, text)])
}

/// The attributes of the node at which the tree starts, each with a line of its own.
pub(super) fn all_attributes(report: &NodeReport, page: Page) -> Vec<Vec<Span>> {
    let attributes = report.attributes.texts();
    let lines = attributes.take(MOST_ATTRIBUTES);
    let mut lines: Vec<Vec<Span>> = lines
        .map(|(name, text)| {
            // The line is indented, and a colon and a space follow the name.
            let name = shortened(name, MOST_NAME);
            let room = page
                .width
                .map(|most| most.saturating_sub(BELOW + width(&name) + 2));
            let most = room.map_or(MOST_VALUE, |room| room.max(LEAST_VALUE));
            attribute(name, &text, most).into()
        })
        .collect();
    let more = report.attributes.count() - lines.len();
    if more > 0 {
        let told = format!("and {} more", counted(more, "attribute", "attributes"));
        lines.push(vec![Span::new(Style::Faint, told)]);
    }
    lines
}

/// The line with the attributes that matter most.
pub(super) fn main_attributes(report: &NodeReport, page: Page) -> Option<Vec<Span>> {
    let attributes = &report.attributes;
    let mut shown: Vec<(&str, String)> = Vec::new();
    for name in SHOWN {
        let standard = || Some(("standard_name", attributes.text("standard_name")?));
        let own = attributes.text(name).map(|text| (name, text));
        let own = own.or_else(|| (name == "long_name").then(standard)?);
        shown.extend(own);
    }
    let has_missing_value = shown.iter().any(|(name, _)| *name == "_FillValue");
    let fill_value = report.fill_value.as_ref().filter(|_| !has_missing_value);
    let fill_value = fill_value.and_then(|fill| fill.unusual());
    shown.extend(fill_value.map(|text| ("fill value", text.to_owned())));
    let spans = shown.into_iter().flat_map(|(name, text)| {
        let most = page.width.unwrap_or(MOST_VALUE).min(MOST_VALUE);
        let [name, text] = attribute(name.to_owned(), &text, most);
        [name, text, Span::new(Style::Plain, "  ")]
    });
    let spans: Vec<Span> = spans.collect();
    (!spans.is_empty()).then_some(spans)
}

fn attribute(name: String, text: &str, most: usize) -> [Span; 2] {
    [
        Span::new(Style::Faint, name + ": "),
        Span::new(Style::Plain, shortened(text, most)),
    ]
}

pub(super) fn cell(style: Style, text: impl Into<String>) -> Cell {
    Cell {
        text: Span::new(style, text),
        alignment: Alignment::Left,
    }
}

fn right(text: String) -> Cell {
    Cell {
        text: Span::new(Style::Plain, text),
        alignment: Alignment::Right,
    }
}
