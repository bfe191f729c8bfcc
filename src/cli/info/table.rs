//! Lines of words in columns.

use crate::escape::Text;

/// The number of rows that are aligned and then written, so that the rows of a large store are not
/// all in memory.
const MOST_ROWS: usize = 200;

/// A cell that is longer moves the rest of its row, and no other row.
const MOST_WIDTH: usize = 40;

/// The space between columns.
const GAP: &str = "  ";

/// A line: cells that are aligned with those of other lines, and text after them.
#[derive(Debug, Default)]
pub(super) struct Row {
    pub(super) cells: Vec<String>,
    pub(super) remarks: Vec<String>,
}

/// Rows that were not written yet.
#[derive(Debug, Default)]
pub(super) struct Table {
    rows: Vec<Row>,
    /// The width of each column, in characters. It never shrinks.
    widths: Vec<usize>,
}

impl Table {
    /// Adds `row`. Returns the text of all rows when there are enough of them.
    pub(super) fn push(&mut self, row: Row) -> Option<Text> {
        for (column, cell) in row.cells.iter().enumerate() {
            if self.widths.len() <= column {
                self.widths.push(0);
            }
            let width = cell.chars().count();
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
        rows.into_iter()
            .fold(Text::new(), |text, row| text.line(self.line(&row)))
    }

    fn line(&self, row: &Row) -> String {
        let padded = row.cells.iter().zip(&self.widths);
        // A column that is empty so far takes no place.
        let padded = padded.filter(|(cell, width)| **width > 0 || !cell.is_empty());
        let padded = padded.map(|(cell, &width)| format!("{cell:width$}"));
        let words: Vec<String> = padded.chain(row.remarks.iter().cloned()).collect();
        words.join(GAP).trim_end().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(cells: &[&str], remarks: &[&str]) -> Row {
        let owned = |texts: &[&str]| texts.iter().copied().map(str::to_owned).collect();
        Row {
            cells: owned(cells),
            remarks: owned(remarks),
        }
    }

    fn lines(rows: Vec<Row>) -> String {
        let mut table = Table::default();
        for row in rows {
            assert!(table.push(row).is_none());
        }
        String::from_utf8(table.take().into_bytes()).unwrap()
    }

    #[test]
    fn cells_are_aligned_and_remarks_follow() {
        let rows = vec![
            row(&["/", "v3 group"], &[]),
            row(&["temperature", "v3 array", "(8)", "9 B"], &[]),
            row(&["t\u{e9}", "v3 array", "(8, 4)", "10 B"], &["no tif"]),
        ];
        assert_eq!(
            lines(rows),
            "/            v3 group\n\
             temperature  v3 array  (8)     9 B\n\
             t\u{e9}           v3 array  (8, 4)  10 B  no tif\n"
        );
    }

    #[test]
    fn an_empty_column_takes_no_place() {
        let rows = vec![row(&["a", "", "b"], &["c"]), row(&["a", ""], &["d"])];
        assert_eq!(lines(rows), "a  b  c\na  d\n");
    }

    #[test]
    fn a_long_cell_moves_its_own_row_only() {
        let long = "n".repeat(MOST_WIDTH + 1);
        let rows = vec![row(&["a", "b", "c"], &[]), row(&[&long, "b", "c"], &[])];
        assert_eq!(lines(rows), format!("a  b  c\n{long}  b  c\n"));
    }

    #[test]
    fn many_rows_are_written_in_parts() {
        let mut table = Table::default();
        let parts = (0..MOST_ROWS * 2).filter(|_| table.push(row(&["a"], &[])).is_some());
        assert_eq!(parts.count(), 2);
    }
}
