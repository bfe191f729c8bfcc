//! The names in a directory: a table with what each of them is, and the previews among them.
//!
//! A directory may have any number of names. A page has some of them, and links to those before and after.

use std::time::{Duration, Instant};

use super::html::{Html, shown_name};
use super::node::line;
use crate::error::Error;
use crate::escape::human_bytes;
use crate::store::Detail;
use crate::view::{EntrySource, HeldVnode, VnodeKind};

/// The most names of a page, and the most that come before those of any page.
const MOST_NAMES: u64 = 500;
const MOST_BEFORE: u64 = 100_000;
/// The page says of this many names at most what they are, and of no further name once this time has passed.
const MOST_DESCRIBED: usize = 200;
const MOST_TIME: Duration = Duration::from_secs(3);
/// The most previews of a page.
const MOST_PREVIEWS: usize = 60;

/// Some of the names in a directory.
#[derive(Debug, Default)]
pub(super) struct Names {
    /// The number of names before these.
    from: u64,
    listed: Vec<Listed>,
    /// Whether more names follow.
    has_more: bool,
    /// The reason why the list ends before its end.
    problem: Option<String>,
}

/// A name.
#[derive(Debug)]
struct Listed {
    name: Vec<u8>,
    kind: VnodeKind,
    size: Option<u64>,
    /// A description of the node, if the entry is its directory or one of its files.
    node: Option<String>,
}

impl Names {
    /// Reads the names after the first `from` ones; `None` if the directory is gone.
    ///
    /// # Errors
    /// [`Error`] when the directory cannot be opened. Where the list breaks off, the page says so.
    pub(super) fn read(directory: &HeldVnode, from: u64) -> Result<Option<Names>, Error> {
        let Some(mut entries) = directory.list()? else {
            return Ok(None);
        };
        let mut names = Names {
            from: from.min(MOST_BEFORE),
            ..Names::default()
        };
        let since = Instant::now();
        let mut passed = 0;
        loop {
            let is_shown = passed >= names.from;
            let detail = if is_shown {
                Detail::Attributes
            } else {
                Detail::Names
            };
            let entry = match entries.next_entry(detail) {
                Ok(Some(entry)) => entry,
                Ok(None) => break,
                Err(error) => {
                    names.problem = Some(error.to_string());
                    break;
                }
            };
            passed += 1;
            if !is_shown {
                continue;
            }
            if names.listed.len() as u64 == MOST_NAMES {
                names.has_more = true;
                break;
            }
            let may_describe = names.listed.len() < MOST_DESCRIBED && since.elapsed() < MOST_TIME;
            // A node that cannot be read has a page of its own, which gives the reason.
            let node = may_describe.then(|| directory.listed(&entry).describe());
            names.listed.push(Listed {
                size: entry.attributes.map(|attributes| attributes.size),
                name: entry.name,
                kind: entry.kind,
                node: node
                    .and_then(|node| node.ok().flatten())
                    .map(|node| line(&node)),
            });
        }
        Ok(Some(names))
    }

    /// The table of names.
    pub(super) fn write(&self, page: &mut Html) {
        page.markup(
            "<section aria-labelledby=\"names\">\n<h2 id=\"names\">In this directory</h2>\n",
        );
        if let Some(problem) = &self.problem {
            page.markup("<p class=\"problem\">The list is not complete: ")
                .text(problem)
                .markup("</p>\n");
        }
        if self.listed.is_empty() {
            page.markup(if self.from > 0 {
                "<p>No further names.</p>\n"
            } else {
                "<p>Nothing is here.</p>\n"
            });
        } else {
            self.table(page);
        }
        self.steps(page);
        page.markup("</section>\n");
    }

    fn table(&self, page: &mut Html) {
        page.markup("<div class=\"wide\" tabindex=\"0\" role=\"group\" aria-labelledby=\"names\">\n<table>\n<caption>");
        let n = self.listed.len() as u64;
        if self.from > 0 || self.has_more {
            page.text(format_args!("Names {} to {}", self.from + 1, self.from + n));
        } else {
            page.text(format_args!(
                "{n} {}",
                if n == 1 { "name" } else { "names" }
            ));
        }
        page.markup(
            "</caption>\n<thead><tr><th scope=\"col\">Name</th><th scope=\"col\">What it is</th>",
        );
        page.markup("<th scope=\"col\">Size</th></tr></thead>\n<tbody>\n");
        for listed in &self.listed {
            listed.row(page);
        }
        page.markup("</tbody>\n</table>\n</div>\n");
    }

    fn steps(&self, page: &mut Html) {
        let next = self.from + MOST_NAMES;
        if self.from == 0 && !self.has_more {
            return;
        }
        page.markup("<nav aria-label=\"Other names\">\n<ul class=\"steps\">\n");
        if self.from > 0 {
            page.markup("<li><a href=\"?from=")
                .text(self.from.saturating_sub(MOST_NAMES));
            page.markup("#names\">Previous names</a></li>\n");
        }
        if self.has_more && next <= MOST_BEFORE {
            page.markup("<li><a href=\"?from=")
                .text(next)
                .markup("#names\">Next names</a></li>\n");
        } else if self.has_more {
            page.markup("<li>There are more names than pages show.</li>\n");
        }
        page.markup("</ul>\n</nav>\n");
    }

    /// The pictures among the files of arrays.
    pub(super) fn previews(&self, page: &mut Html) {
        let is_preview =
            |listed: &&Listed| listed.kind == VnodeKind::File && listed.name.ends_with(b".png");
        let previews = self.listed.iter().filter(is_preview);
        let previews = previews.filter_map(|listed| Some((listed, listed.node.as_ref()?)));
        let mut items = Html::default();
        for (listed, node) in previews.take(MOST_PREVIEWS) {
            items
                .markup("<li><figure><img loading=\"lazy\" src=\"")
                .segment(&listed.name);
            items
                .markup("\" alt=\"Preview of ")
                .text(shown_name(&listed.name))
                .markup(", ")
                .text(node);
            items
                .markup("\"><figcaption><a href=\"?about=")
                .sent_field(&listed.name)
                .markup("\">");
            items
                .name(&listed.name)
                .markup("</a>: ")
                .text(node)
                .markup("</figcaption></figure></li>\n");
        }
        if items.len() > 0 {
            page.markup("<section aria-labelledby=\"previews\">\n<h2 id=\"previews\">Previews</h2>\n<ul class=\"previews\">\n");
            page.part(&items).markup("</ul>\n</section>\n");
        }
    }
}

impl Listed {
    fn row(&self, page: &mut Html) {
        let is_directory = self.kind == VnodeKind::Directory;
        page.markup("<tr><th scope=\"row\"><a href=\"")
            .segment(&self.name);
        page.markup(if is_directory { "/\">" } else { "\">" })
            .name(&self.name);
        page.markup(if is_directory {
            "/</a></th><td>"
        } else {
            "</a></th><td>"
        });
        match (&self.node, is_directory) {
            (Some(node), true) => page.text(node),
            (Some(node), false) => {
                page.markup("<a href=\"?about=").sent_field(&self.name);
                page.markup("\">file of: ").text(node).markup("</a>")
            }
            (None, true) => page.text("directory"),
            (None, false) => page.text("file"),
        };
        page.markup("</td><td class=\"number\">");
        match self.size.filter(|_| !is_directory) {
            Some(size) => page.text(human_bytes(size)),
            None => page.markup("<span aria-hidden=\"true\">–</span>"),
        };
        page.markup("</td></tr>\n");
    }
}
