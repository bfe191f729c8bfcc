//! The window of the chunk grid: a table with a cell for each chunk, links to the windows around it, and a form for any other.

use std::collections::BTreeMap;
use std::fmt::Display;

use super::html::Html;
use crate::escape::human_bytes;
use crate::view::{ChunkCell, ChunkState, ChunkWindow, DimensionDescription};

/// The most reasons why chunks cannot be read.
const MOST_REASONS: usize = 5;

/// A window, the names of its dimensions, and the file that the page is about, if it is about one.
pub(super) struct Grid<'p> {
    pub(super) window: &'p ChunkWindow,
    pub(super) dimensions: &'p [DimensionDescription],
    pub(super) about: Option<&'p [u8]>,
}

impl Grid<'_> {
    pub(super) fn write(&self, page: &mut Html) {
        page.markup("<section aria-labelledby=\"chunks\">\n<h2 id=\"chunks\">Chunks</h2>\n");
        self.counts(page);
        page.markup("<div class=\"wide\" tabindex=\"0\" role=\"group\" aria-labelledby=\"chunks\">\n<table class=\"grid\">\n");
        self.caption(page);
        self.head(page);
        let columns = usize::try_from(self.window.columns)
            .unwrap_or(usize::MAX)
            .max(1);
        page.markup("<tbody>\n");
        for row in self.window.cells.chunks(columns) {
            page.markup("<tr><th scope=\"row\">");
            let index = row.first().and_then(|cell| from_end(&cell.indices, 2));
            match index {
                Some(index) => page.text(index),
                None => page.text("stored"),
            };
            page.markup("</th>");
            for cell in row {
                chunk(cell, page);
            }
            page.markup("</tr>\n");
        }
        page.markup("</tbody>\n</table>\n</div>\n");
        self.reasons(page);
        self.steps(page);
        self.form(page);
        page.markup("</section>\n");
    }

    /// How many chunks of the window are stored.
    fn counts(&self, page: &mut Html) {
        let count = |is: fn(&ChunkState) -> bool| {
            let states = self.window.cells.iter().map(|cell| &cell.state);
            states.filter(|state| is(state)).count()
        };
        let stored = count(|state| matches!(state, ChunkState::Stored(_)));
        let absent = count(|state| *state == ChunkState::Absent);
        let unknown = count(|state| *state == ChunkState::InShard);
        let unreadable = count(|state| matches!(state, ChunkState::Unreadable(_)));
        let all = self.window.cells.len();
        page.markup("<p>Of the chunks in this table, ")
            .text(stored)
            .markup(" of ")
            .text(all);
        page.markup(" are stored, and ")
            .text(absent)
            .markup(" are absent, which means that they are full of the fill value.");
        if unknown > 0 {
            page.markup(" ")
                .text(unknown)
                .markup(" may be in shards whose indices were not read for this page.");
        }
        if unreadable > 0 {
            page.markup(" ")
                .text(unreadable)
                .markup(" cannot be examined.");
        }
        page.markup("</p>\n");
    }

    fn caption(&self, page: &mut Html) {
        let ChunkWindow { counts, first, .. } = self.window;
        page.markup("<caption>Bytes of each stored chunk");
        let rank = counts.len();
        for (axis, (index, count)) in first.iter().zip(counts).enumerate() {
            page.markup(if axis == 0 { ". " } else { "; " });
            let side = match rank - axis {
                1 => Some(("columns", self.window.columns)),
                2 => Some(("rows", self.window.rows)),
                _ => None,
            };
            match side {
                Some((side, n)) => {
                    page.text(side)
                        .markup(": ")
                        .text(self.name(axis))
                        .markup(", chunks ")
                        .text(index);
                    page.markup(" to ")
                        .text(index.saturating_add(n - 1))
                        .markup(" of ")
                        .text(count);
                }
                None => {
                    page.text(self.name(axis))
                        .markup(": chunk ")
                        .text(index)
                        .markup(" of ")
                        .text(count);
                }
            }
        }
        page.markup("</caption>\n");
    }

    fn head(&self, page: &mut Html) {
        page.markup("<thead><tr><th scope=\"col\">");
        let rank = self.window.counts.len();
        match rank {
            0 => page.text("chunk"),
            1 => page.text(self.name(0)),
            _ => page
                .text(self.name(rank - 2))
                .text(" \\ ")
                .text(self.name(rank - 1)),
        };
        page.markup("</th>");
        let columns = usize::try_from(self.window.columns).unwrap_or(usize::MAX);
        for cell in self.window.cells.iter().take(columns) {
            page.markup("<th scope=\"col\">");
            match from_end(&cell.indices, 1) {
                Some(index) => page.text(index),
                None => page.text("bytes"),
            };
            page.markup("</th>");
        }
        page.markup("</tr></thead>\n");
    }

    /// Why chunks cannot be examined. The chunks of a damaged shard have one reason.
    fn reasons(&self, page: &mut Html) {
        let mut reasons: BTreeMap<&str, Vec<&[u64]>> = BTreeMap::new();
        for cell in &self.window.cells {
            if let ChunkState::Unreadable(reason) = &cell.state {
                reasons.entry(reason).or_default().push(&cell.indices);
            }
        }
        for (reason, chunks) in reasons.iter().take(MOST_REASONS) {
            let first = chunks.first().copied().unwrap_or_default();
            page.markup("<p class=\"problem\">")
                .text(chunk_in_words(first, "Chunk"));
            if let more @ 1.. = chunks.len() - 1 {
                let chunks = if more == 1 { "chunk" } else { "chunks" };
                page.text(format_args!(" and {more} more {chunks}"));
            }
            page.markup(": ").text(reason).markup("</p>\n");
        }
    }

    /// Links to the windows before and after this one.
    fn steps(&self, page: &mut Html) {
        let ChunkWindow {
            counts,
            first,
            rows,
            columns,
            ..
        } = self.window;
        let rank = counts.len();
        let mut links = Html::default();
        for (from_end, side, n) in [(1, "columns", *columns), (2, "rows", *rows)] {
            let Some(axis) = rank.checked_sub(from_end) else {
                continue;
            };
            let (Some(&index), Some(&count)) = (first.get(axis), counts.get(axis)) else {
                continue;
            };
            let widest = if rank == 1 { 32 } else { 16 };
            let before = (index > 0).then(|| index.saturating_sub(widest));
            let after = index.checked_add(n).filter(|&after| after < count);
            for (word, target) in [("Previous", before), ("Next", after)] {
                let Some(target) = target else { continue };
                let mut there = first.clone();
                if let Some(place) = there.get_mut(axis) {
                    *place = target;
                }
                links.markup("<li><a href=\"");
                self.address(&there, &mut links);
                links
                    .markup("\">")
                    .text(word)
                    .markup(" ")
                    .text(side)
                    .markup("</a></li>\n");
            }
        }
        if links.len() > 0 {
            page.markup("<nav aria-label=\"Other chunks\">\n<ul class=\"steps\">\n");
            page.part(&links).markup("</ul>\n</nav>\n");
        }
    }

    fn address(&self, first: &[u64], page: &mut Html) {
        page.markup("?");
        if let Some(about) = self.about {
            page.markup("about=").sent_field(about).markup("&amp;");
        }
        for (axis, index) in first.iter().enumerate() {
            page.markup(if axis == 0 { "i" } else { "&amp;i" })
                .text(axis)
                .markup("=")
                .text(index);
        }
        page.markup("#chunks");
    }

    /// A form with a field for the index in each dimension.
    fn form(&self, page: &mut Html) {
        let ChunkWindow {
            counts,
            first,
            cells,
            ..
        } = self.window;
        let all = counts
            .iter()
            .try_fold(1_u64, |product, &count| product.checked_mul(count));
        if counts.is_empty() || all == Some(cells.len() as u64) {
            return;
        }
        page.markup("<form method=\"get\" action=\"#chunks\">\n");
        if let Some(about) = self.about {
            page.markup("<input type=\"hidden\" name=\"about\" value=\"")
                .field(about)
                .markup("\">\n");
        }
        for (axis, (index, count)) in first.iter().zip(counts).enumerate() {
            page.markup("<label>From chunk along ")
                .text(self.name(axis));
            page.markup(" <input type=\"number\" min=\"0\" max=\"")
                .text(count - 1);
            page.markup("\" name=\"i")
                .text(axis)
                .markup("\" value=\"")
                .text(index)
                .markup("\"></label>\n");
        }
        page.markup("<button>Show these chunks</button>\n</form>\n");
    }

    fn name(&self, axis: usize) -> String {
        let name = self
            .dimensions
            .get(axis)
            .and_then(|dimension| dimension.name.as_deref());
        name.map_or_else(
            || format!("dimension {axis}"),
            |name| super::node::cut(name, 60),
        )
    }
}

/// The cell of a chunk. Its state is a word or a size, and not only a colour.
fn chunk(cell: &ChunkCell, page: &mut Html) {
    match &cell.state {
        ChunkState::Stored(bytes) => {
            page.markup("<td class=\"stored\">");
            let size = human_bytes(*bytes);
            if cell.path.is_empty() {
                page.text(size);
            } else {
                page.markup("<a href=\"")
                    .segments(&cell.path)
                    .markup("\" aria-label=\"");
                page.text(chunk_in_words(&cell.indices, "chunk"))
                    .markup(", ")
                    .text(&size)
                    .markup("\">")
                    .text(&size)
                    .markup("</a>");
            }
        }
        ChunkState::Absent => {
            page.markup("<td class=\"absent\">absent");
        }
        ChunkState::InShard => {
            page.markup("<td>not read");
        }
        ChunkState::Unreadable(_) => {
            page.markup("<td class=\"unreadable\">error");
        }
    }
    page.markup("</td>");
}

fn from_end(indices: &[u64], from_end: usize) -> Option<u64> {
    indices.get(indices.len().checked_sub(from_end)?).copied()
}

/// `word` and the indices of a chunk. The one chunk of an array without dimensions has none.
fn chunk_in_words(indices: &[u64], word: &str) -> impl Display {
    let texts: Vec<String> = indices.iter().map(u64::to_string).collect();
    match &texts[..] {
        [] => word.to_owned(),
        texts => format!("{word} {}", texts.join(", ")),
    }
}
