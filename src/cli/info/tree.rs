//! The nodes as a tree, for people: a line for each node, indented by its depth, and lines below it for the parts of
//! its attributes that matter most.
//!
//! ```text
//! /              v3  group
//!   air              group
//!     lat            float64  (lat: 48)  384 B  1 chunk  bytes
//!         units: "degrees_north"
//! ```
//!
//! Where only one array is described, its report has a line for each fact ([`details`]).

use std::borrow::Cow;

use super::details;
use super::fit::shortened;
use super::node_report::NodeReport;
use super::node_row::{self, cell};
use super::table::{self, Cell, Row, Table};
use super::totals::Totals;
use super::words;
use crate::cli::output::Page;
use crate::escape::{Span, Style, Text};
use crate::store::{Key, Prefix};

/// The columns by which each level of the tree is indented.
const STEP: usize = 2;

/// Deeper nodes are indented no further.
const MOST_LEVELS: usize = 20;

/// The tree so far.
pub(super) struct Tree {
    page: Page,
    start: Prefix,
    table: Table,
    /// The names on the way to the last node below `start`.
    path: Vec<Vec<u8>>,
    /// The version of the last node.
    version: Option<String>,
    totals: Totals,
    is_begun: bool,
}

impl Tree {
    /// A tree of the nodes at and below `start`.
    pub(super) fn new(start: &Prefix, page: Page) -> Tree {
        Tree {
            page,
            start: start.clone(),
            table: Table::new(page),
            path: Vec::new(),
            version: None,
            totals: Totals::default(),
            is_begun: false,
        }
    }

    /// Adds a node, depth first. Returns the text of rows that are complete.
    pub(super) fn push(&mut self, report: &NodeReport) -> Option<Text> {
        self.totals.add(report);
        let is_start = report.prefix == self.start;
        if is_start && report.is_array() {
            self.is_begun = true;
            return Some(details::of_array(report, self.page));
        }
        let path = self.path_of(&report.prefix);
        let begun = (!self.is_begun && !is_start).then(|| self.directory(&[]));
        self.is_begun = true;
        // Directories on the way to the node, which are no nodes themselves.
        let known = path.iter().zip(&self.path);
        let known = known.take_while(|(one, other)| one == other).count();
        let above = known + 1..path.len();
        let above: Vec<Row> = above
            .filter_map(|depth| Some(self.directory(path.get(..depth)?)))
            .collect();
        let version = words::version(&report.facts).map(Cow::into_owned);
        let is_new = version.is_some() && version != self.version;
        let shown = version.clone().filter(|_| is_new).unwrap_or_default();
        let style = if report.is_array() {
            Style::Strong
        } else {
            Style::Directory
        };
        let mut row = Row {
            cells: vec![self.name(&path, style), cell(Style::Plain, shown)],
            indentation: indentation(path.len()),
            ..Row::default()
        };
        node_row::fill(&mut row, report);
        row.notes = if is_start {
            node_row::all_attributes(report, self.page)
        } else {
            node_row::main_attributes(report, self.page)
                .into_iter()
                .collect()
        };
        row.notes.extend(node_row::sentences(report));
        self.version = version.or(self.version.take());
        self.path = path;
        let rows = begun.into_iter().chain(above).chain([row]);
        let texts = rows.filter_map(|row| self.table.push(row));
        texts.reduce(|text, more| text.and(&more))
    }

    /// The end of the tree.
    pub(super) fn end(mut self) -> Text {
        let rows = self.table.take();
        let totals = self.totals.line();
        let totals = totals.map(|line| vec![Span::new(Style::Faint, line)]);
        let lines = totals.into_iter();
        let lines = lines.flat_map(|line| table::below(line, 0, self.page.width));
        lines.fold(rows, |text, line| text.styled(&line, self.page.colours))
    }

    /// The names from the start of the tree to `prefix`.
    fn path_of(&self, prefix: &Prefix) -> Vec<Vec<u8>> {
        let below = self.start.strip(prefix.as_bytes()).unwrap_or_default();
        let names = below.split(|&byte| byte == b'/');
        names
            .filter(|name| !name.is_empty())
            .map(<[u8]>::to_vec)
            .collect()
    }

    /// The row of a directory that is no node.
    fn directory(&self, path: &[Vec<u8>]) -> Row {
        Row {
            indentation: indentation(path.len()),
            cells: vec![
                self.name(path, Style::Directory),
                Cell::default(),
                cell(Style::Faint, "directory"),
            ],
            ..Row::default()
        }
    }

    /// The last of the names in `path`, indented; that of the start itself in full.
    fn name(&self, path: &[Vec<u8>], style: Style) -> Cell {
        let name = match path.last() {
            // The display of a key has no control characters, and shows bytes that are no text as escapes.
            Some(name) => {
                Key::parse(name).map_or_else(|error| error.to_string(), |key| key.to_string())
            }
            None => self.start.to_string(),
        };
        let indentation = indentation(path.len());
        // A space at the start of a name would look like another depth.
        let name = match name.strip_prefix(' ') {
            Some(rest) => format!("\\u{{20}}{rest}"),
            None => name,
        };
        let most = self.page.width.unwrap_or(usize::MAX);
        let name = shortened(&name, most.saturating_sub(indentation).max(1));
        cell(style, format!("{}{name}", " ".repeat(indentation)))
    }
}

fn indentation(depth: usize) -> usize {
    STEP * depth.min(MOST_LEVELS)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::attributes::NodeAttributes;
    use super::*;
    use crate::escape::Colours;

    fn group(path: &str, attributes: &str) -> NodeReport {
        let prefix = Prefix::parse(path.as_bytes()).unwrap();
        NodeReport {
            attributes: NodeAttributes::of(Ok(Some(attributes.into()))),
            ..NodeReport::new(&prefix, json!({"node_type": "group", "zarr_format": 3}))
        }
    }

    fn array(path: &str, facts: &Value) -> NodeReport {
        let mut all = json!({
            "node_type": "array", "zarr_format": 3, "data_type": "int8", "shape": [4], "chunk_shape": [4],
            "chunks": 1, "codecs": ["bytes"], "decoded_bytes": 4,
        });
        for (name, value) in facts.as_object().unwrap() {
            all[name] = value.clone();
        }
        NodeReport::new(&Prefix::parse(path.as_bytes()).unwrap(), all)
    }

    fn text(start: &str, reports: &[NodeReport], width: Option<usize>) -> String {
        let page = Page {
            width,
            colours: Colours::Hidden,
        };
        let mut tree = Tree::new(&Prefix::parse(start.as_bytes()).unwrap(), page);
        let mut whole = Text::new();
        for report in reports {
            whole = tree.push(report).iter().fold(whole, Text::and);
        }
        whole = whole.and(&tree.end());
        String::from_utf8(whole.into_bytes()).unwrap()
    }

    #[test]
    fn each_node_has_its_last_name_at_its_depth() {
        let old = json!({"zarr_format": 2, "dimension_names": ["x"]});
        let reports = [
            group("", r#"{"title": "all", "n": 1}"#),
            group("air", r#"{"title": "the air", "n": 1}"#),
            array("air/t", &json!({})),
            array("air/no/group/u", &old),
            array("v", &json!({"error": "bad", "chunks": null})),
        ];
        assert_eq!(
            text("", &reports, None),
            r#"/            v3  group
    title: "all"
    n: 1
  air            group
      title: "the air"
    t            int8       (4)     4 B  1 chunk  bytes
    no           directory
      group      directory
        u    v2  int8       (x: 4)  4 B  1 chunk  bytes
  v          v3  int8       (4)     4 B  chunks (4)  bytes
      cannot be decoded: bad
2 groups, 3 arrays, 12 B
"#
        );
        assert_eq!(
            text("air", &reports[3..4], None),
            "air            directory\n  no           directory\n    group      directory\n      \
             u    v2  int8       (x: 4)  4 B  1 chunk  bytes\n"
        );
    }

    #[test]
    fn an_array_alone_has_a_line_for_each_fact() {
        let facts = json!({
            "dimension_names": ["x"], "stored_bytes": 2, "stored_objects": 1, "absent_objects": 0,
            "compression_ratio": 2.0, "decoded_chunk_bytes": 4,
        });
        let attributes = r#"{"units": "K", "a long name": [1, 2], "_FillValue": NaN}"#;
        let report = NodeReport {
            attributes: NodeAttributes::of(Ok(Some(attributes.into()))),
            files: Some("fits npy; not tif: shape".to_owned()),
            ..array("air/t", &facts)
        };
        let told = r#"air/t  v3 array
  type        int8
  shape       (x: 4)
  chunks      1 of (4), 4 B each
  codecs      bytes
  size        4 B decoded
  stored      2 B (2.0x) in 1 chunk
  files       fits npy; not tif: shape
  attributes
    units        "K"
    a long name  [1,2]
    _FillValue   "NaN"
"#;
        assert_eq!(text("air/t", &[report], None), told);
    }

    #[test]
    fn no_name_and_no_value_leaves_its_line() {
        let long = "n".repeat(200);
        let poison = "\u{1b}[2J\n  forged  v3  group";
        let attributes = format!(r#"{{"title": "{long}", "units": "\u001b[2J\n"}}"#);
        let hostile = || {
            let facts = json!({"dimension_names": [poison], "data_type": long});
            vec![
                group("", &attributes),
                group(&long, &attributes),
                array(&format!("{long}/ {poison}"), &facts),
                array("漢字/仮名", &json!({"codecs": [poison]})),
            ]
        };
        for width in [20, 40, 80, 200] {
            let text = text("", &hostile(), Some(width));
            for line in text.lines() {
                let columns = unicode_width::UnicodeWidthStr::width(line);
                assert!(columns <= width, "{width}: {columns}: {line}");
                let is_forged = line.contains('\u{1b}') || line.starts_with("  forged");
                assert!(!is_forged, "{line}");
            }
        }
        let text = text("", &hostile(), None);
        assert!(
            text.contains(&long) && text.contains(r"\u{20}\u{1b}[2J\n"),
            "{text}"
        );
    }
}
