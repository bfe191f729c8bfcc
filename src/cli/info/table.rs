//! Rows of cells in columns, and lines of text below each row.
//!
//! ```text
//! cells in columns ...................  the end of the row
//!     the cells for which the row has no room
//!     a note
//! ```

use super::fit::{escaped, width, wrapped};
use crate::cli::output::Page;
use crate::escape::{Span, Style, Text};

/// The number of rows that are aligned and then written, so that the rows of a large store are not
/// all in memory.
const MOST_ROWS: usize = 200;

/// A cell that is wider moves the rest of its row, and no other row.
const MOST_WIDTH: usize = 40;

/// The space between columns.
const GAP: &str = "  ";

/// The indentation of the lines below a row.
pub(super) const BELOW: usize = 4;

/// The lines below a row have room for this many columns at least, however deep the row is.
const LEAST_COLUMNS: usize = 20;

/// A line of cells, and lines below it.
#[derive(Debug, Default)]
pub(super) struct Row {
    /// The depth of the row: its columns of indentation, which the first cell has already.
    pub(super) indentation: usize,
    pub(super) cells: Vec<Cell>,
    /// The end of the row, which is not aligned.
    pub(super) end: Vec<Span>,
    pub(super) notes: Vec<Vec<Span>>,
}

/// A part of a row that is aligned with those of other rows.
#[derive(Debug, Default)]
pub(super) struct Cell {
    pub(super) text: Span,
    pub(super) alignment: Alignment,
}

/// The end of a column at which its cells begin or end.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) enum Alignment {
    #[default]
    Left,
    Right,
}

/// Rows that were not written yet.
#[derive(Debug)]
pub(super) struct Table {
    page: Page,
    rows: Vec<Row>,
    /// The width of each column, in columns of the terminal. It never shrinks.
    widths: Vec<usize>,
}

impl Table {
    pub(super) fn new(page: Page) -> Table {
        Table {
            page,
            rows: Vec::new(),
            widths: Vec::new(),
        }
    }

    /// Adds `row`. Returns the text of all rows when there are enough of them.
    pub(super) fn push(&mut self, mut row: Row) -> Option<Text> {
        row.end = row.end.into_iter().map(escaped).collect();
        for cell in &mut row.cells {
            cell.text = escaped(std::mem::take(&mut cell.text));
        }
        for (column, cell) in row.cells.iter().enumerate() {
            if self.widths.len() <= column {
                self.widths.push(0);
            }
            let width = width(&cell.text.text);
            if let Some(widest) = self.widths.get_mut(column)
                && width <= MOST_WIDTH
            {
                *widest = width.max(*widest);
            }
        }
        self.rows.push(row);
        (self.rows.len() == MOST_ROWS).then(|| self.take())
    }

    /// The text of the rows that were not written yet.
    pub(super) fn take(&mut self) -> Text {
        let rows = std::mem::take(&mut self.rows);
        let lines = rows.into_iter().flat_map(|row| self.lines(row));
        lines.fold(Text::new(), |text, line| {
            text.styled(&line, self.page.colours)
        })
    }

    fn lines(&self, row: Row) -> Vec<Vec<Span>> {
        let fits = |columns: usize| self.page.width.is_none_or(|most| columns <= most);
        let (mut line, mut used, mut rest) = (Vec::new(), 0, Vec::new());
        let aligned = row.cells.into_iter().zip(&self.widths);
        // A column that is empty so far takes no place.
        let aligned = aligned.filter(|(cell, column)| **column > 0 || !cell.text.text.is_empty());
        for (cell, &column) in aligned {
            let own = width(&cell.text.text);
            if rest.is_empty() && (used == 0 || fits(used + own)) {
                used += column.max(own) + GAP.len();
                line.extend(padded(cell, column));
            } else {
                rest.extend([cell.text, Span::new(Style::Plain, GAP)]);
            }
        }
        let end: usize = row.end.iter().map(|span| width(&span.text)).sum();
        if rest.is_empty() && fits(used + end) {
            line.extend(row.end);
        } else {
            rest.extend(row.end);
        }
        let rest = rest
            .iter()
            .any(|span| !span.text.trim().is_empty())
            .then_some(rest);
        let mut lines = vec![without_end_spaces(line)];
        for note in rest.into_iter().chain(row.notes) {
            lines.extend(below(note, row.indentation + BELOW, self.page.width));
        }
        lines
    }
}

/// `spans` as lines that are indented by `indentation`, on a page with lines of `most` columns.
pub(super) fn below(
    spans: Vec<Span>,
    indentation: usize,
    most: Option<usize>,
) -> impl Iterator<Item = Vec<Span>> {
    let indentation = match most {
        Some(most) => indentation.min(most.saturating_sub(LEAST_COLUMNS)),
        None => indentation,
    };
    let columns = most.map(|most| most.saturating_sub(indentation));
    let spans = spans.into_iter().map(escaped).collect();
    wrapped(spans, columns).into_iter().map(move |mut line| {
        line.insert(0, Span::new(Style::Plain, " ".repeat(indentation)));
        without_end_spaces(line)
    })
}

/// The cell, the spaces that align it, and the gap after it.
fn padded(cell: Cell, column: usize) -> [Span; 3] {
    let space = column.saturating_sub(width(&cell.text.text));
    let (before, after) = match cell.alignment {
        Alignment::Left => (0, space),
        Alignment::Right => (space, 0),
    };
    [
        Span::new(Style::Plain, " ".repeat(before)),
        cell.text,
        Span::new(Style::Plain, " ".repeat(after + GAP.len())),
    ]
}

pub(super) fn without_end_spaces(mut line: Vec<Span>) -> Vec<Span> {
    while let Some(last) = line.last_mut() {
        last.text.truncate(last.text.trim_end().len());
        if !last.text.is_empty() {
            break;
        }
        line.pop();
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::escape::Colours;

    fn plain(text: &str) -> Span {
        Span::new(Style::Plain, text)
    }

    fn row(cells: &[&str], end: &str, notes: &[&str]) -> Row {
        let cell = |text: &&str| Cell {
            text: plain(text),
            alignment: Alignment::Left,
        };
        Row {
            indentation: 0,
            cells: cells.iter().map(cell).collect(),
            end: vec![plain(end)],
            notes: notes.iter().map(|note| vec![plain(note)]).collect(),
        }
    }

    fn page(width: Option<usize>) -> Page {
        Page {
            width,
            colours: Colours::Hidden,
        }
    }

    fn lines(rows: Vec<Row>, width: Option<usize>) -> String {
        let mut table = Table::new(page(width));
        for row in rows {
            assert!(table.push(row).is_none());
        }
        String::from_utf8(table.take().into_bytes()).unwrap()
    }

    #[test]
    fn cells_are_aligned_and_notes_are_below() {
        let mut sized = row(&["t\u{e9}", "v3", "(8, 4)", "9 B"], "", &["no tif"]);
        sized.cells[3].alignment = Alignment::Right;
        let rows = vec![
            row(&["/", "v3"], "", &[]),
            row(&["temperature", "v3", "(8)", "10 B"], "bytes", &[]),
            sized,
        ];
        assert_eq!(
            lines(rows, None),
            "/            v3\n\
             temperature  v3  (8)     10 B  bytes\n\
             t\u{e9}           v3  (8, 4)   9 B\n    no tif\n"
        );
    }

    #[test]
    fn an_empty_column_takes_no_place() {
        let rows = vec![row(&["a", "", "b"], "c", &[]), row(&["a", ""], "d", &[])];
        assert_eq!(lines(rows, None), "a  b  c\na  d\n");
    }

    #[test]
    fn a_long_cell_moves_its_own_row_only() {
        let long = "n".repeat(MOST_WIDTH + 1);
        let rows = vec![row(&["a", "b"], "c", &[]), row(&[&long, "b"], "c", &[])];
        assert_eq!(lines(rows, None), format!("a  b  c\n{long}  b  c\n"));
    }

    #[test]
    fn what_a_line_has_no_room_for_is_below_it() {
        let rows = || {
            vec![
                row(&["a", "int8", "(2000)"], "chunks (10)", &[]),
                row(
                    &["temp", "float32", "(4)"],
                    "1 chunk",
                    &["a note of many words"],
                ),
            ]
        };
        let at_24 = "a     int8     (2000)\n    chunks (10)\n\
                     temp  float32  (4)\n    1 chunk\n    a note of many words\n";
        assert_eq!(lines(rows(), Some(24)), at_24);
        let at_16 = "a     int8\n(2000)  chunks\n(10)\ntemp  float32\n(4)  1 chunk\n\
                     a note of many\nwords\n";
        assert_eq!(lines(rows(), Some(16)), at_16);
        for width in 1..60 {
            let text = lines(rows(), Some(width));
            let widest = text.lines().map(str::len).max().unwrap();
            assert!(widest <= width.max("temp".len()), "{width}: {text}");
        }
    }

    #[test]
    fn many_rows_are_written_in_parts() {
        let mut table = Table::new(page(None));
        let push = |_: &usize| table.push(row(&["a"], "", &[])).is_some();
        assert_eq!((0..MOST_ROWS * 2).filter(push).count(), 2);
    }
}
