//! Pages for browsers: one for each directory, with its names, and with the dimensions, chunks, attributes, documents and
//! previews of its node.
//!
//! A page needs no script and nothing from another server. Each of its parts is a function from facts to [`html::Html`],
//! which escapes all text that comes from the store:
//!
//! | file | part |
//! |---|---|
//! | `html` | text, names and addresses as HTML |
//! | `frame` | the head, the way to the directory, the foot |
//! | `names` | the table of names, and the previews among them |
//! | `node`, `json_text` | dimensions, attributes and documents |
//! | `grid` | the window of the chunk grid |
//! | `query` | what the address of a page asks for |

mod frame;
mod grid;
mod html;
mod json_text;
mod names;
mod node;
mod query;

use crate::error::Error;
use crate::view::{ArrayDescription, DescribedKind, HeldVnode, NodeTexts, VnodeKind};
use grid::Grid;
use html::Html;
use names::Names;
use query::Query;

/// A file that pages refer to, which does not depend on the store.
#[derive(Debug, Clone, Copy)]
pub(super) struct Asset {
    /// No view has such a name, because `.zarr-mount` is the program's own directory.
    pub(super) path: &'static str,
    pub(super) content_type: &'static str,
    pub(super) text: &'static str,
}

/// The style sheet of all pages.
pub(super) const STYLE: Asset = Asset {
    path: "/.zarr-mount/page.css",
    content_type: "text/css; charset=utf-8",
    text: include_str!("pages/page.css"),
};
/// The icon of all pages. A browser that finds none in a page asks for `/favicon.ico`.
pub(super) const ICON: Asset = Asset {
    path: "/.zarr-mount/icon.svg",
    content_type: "image/svg+xml",
    text: include_str!("pages/icon.svg"),
};
/// The header `Content-Security-Policy` of a page.
pub(super) const POLICY: &str = "default-src 'none'; img-src 'self'; style-src 'self'; form-action 'self'; \
     base-uri 'none'; frame-ancestors 'none'";

/// The directory that a page shows.
#[derive(Debug, Clone, Copy)]
pub(super) struct Request<'r> {
    /// The name of the store, for people.
    pub(super) store: &'r str,
    /// The path of the directory in the mount: names with slashes between them, and empty for the root.
    pub(super) path: &'r [u8],
    /// The part of the address after the question mark; empty if there is none.
    pub(super) query: &'r str,
}

/// The page of `directory`; `None` if it is gone.
///
/// # Errors
/// [`Error`] when the store cannot be read.
pub(super) fn directory(
    directory: &HeldVnode,
    request: &Request<'_>,
) -> Result<Option<String>, Error> {
    let query = Query::parse(request.query);
    let Some(names) = Names::read(directory, query.from)? else {
        return Ok(None);
    };
    let mut contents = Html::default();
    let file = file_of_node(directory, &query)?;
    let about = file.as_ref().and(query.about.as_deref());
    let facts = Facts {
        subject: file.as_ref().unwrap_or(directory),
        about,
        request,
        first: &query.first,
        names: &names,
    };
    facts.write(&mut contents)?;
    let (title, way) = (frame::title(request), frame::way(request));
    Ok(Some(frame::page(&title, &way, &contents)))
}

/// A page that says why there is no other one.
pub(super) fn error(status: u16, title: &str, text: &str) -> String {
    let mut contents = Html::default();
    contents
        .markup("<h1>")
        .text(title)
        .markup("</h1>\n<p>")
        .text(text)
        .markup("</p>\n<p class=\"about\">HTTP status ");
    contents.text(status).markup("</p>\n");
    frame::page(
        &format!("{title} – zarr-mount"),
        &Html::default(),
        &contents,
    )
}

/// The file of a node in this directory that the page is about.
fn file_of_node(directory: &HeldVnode, query: &Query) -> Result<Option<HeldVnode>, Error> {
    let is_name = |name: &&[u8]| !name.is_empty() && !name.contains(&b'/') && !name.contains(&0);
    let Some(name) = query.about.as_deref().filter(is_name) else {
        return Ok(None);
    };
    let Some(file) = directory.child(name)? else {
        return Ok(None);
    };
    let is_of_node = file.kind() == VnodeKind::File && file.describe()?.is_some();
    Ok(is_of_node.then_some(file))
}

/// The subject of a page, and the facts that the page needs.
struct Facts<'p> {
    /// The directory, or the file in it that the page is about.
    subject: &'p HeldVnode,
    /// The name of that file.
    about: Option<&'p [u8]>,
    request: &'p Request<'p>,
    /// The first chunk of the window.
    first: &'p [u64],
    names: &'p Names,
}

impl Facts<'_> {
    fn write(&self, page: &mut Html) -> Result<(), Error> {
        self.heading(page);
        let Some(described) = self.subject.describe()? else {
            page.markup("<p class=\"about\">directory</p>\n");
            self.names.write(page);
            self.names.previews(page);
            return Ok(());
        };
        let line = node::line(&described);
        page.markup("<p class=\"about\">")
            .text(line)
            .markup("</p>\n");
        node::problem(&described, page);
        let texts = self.subject.texts()?;
        match described.kind {
            DescribedKind::Array(array) => {
                self.array(&with_names(*array, &texts), page)?;
                node::attributes(&texts, page);
                node::documents(&texts, page);
                self.names.write(page);
            }
            DescribedKind::Group | DescribedKind::Unusable(_) => {
                self.names.write(page);
                self.names.previews(page);
                node::attributes(&texts, page);
                node::documents(&texts, page);
            }
        }
        Ok(())
    }

    fn heading(&self, page: &mut Html) {
        let own = frame::names(self.request.path).pop();
        page.markup("<h1>");
        match self.about.or(own) {
            Some(name) => page.name(name),
            None => (page.markup("<bdi>").text(self.request.store)).markup("</bdi>"),
        };
        page.markup("</h1>\n");
    }

    fn array(&self, array: &ArrayDescription, page: &mut Html) -> Result<(), Error> {
        if let Some(path) = self.subject.preview()? {
            self.preview(&path, page);
        }
        node::dimensions(array, page);
        if let Some(window) = self.subject.chunk_window(self.first)? {
            let grid = Grid {
                window: &window,
                dimensions: &array.dimensions,
                about: self.about,
            };
            grid.write(page);
        }
        Ok(())
    }

    /// The picture at `path` in the mount.
    fn preview(&self, path: &[u8], page: &mut Html) {
        page.markup("<section aria-labelledby=\"preview\">\n<h2 id=\"preview\">Preview</h2>\n");
        page.markup("<img loading=\"lazy\" src=\"");
        for _ in frame::names(self.request.path) {
            page.markup("../");
        }
        page.segments(path);
        page.markup(
            "\" alt=\"Preview of the array, a small picture of one plane of it\">\n</section>\n",
        );
    }
}

/// The array with the names of dimensions that it has among its attributes, as in v2.
fn with_names(mut array: ArrayDescription, texts: &NodeTexts) -> ArrayDescription {
    let names = texts.dimension_names.iter().flatten();
    for (dimension, name) in array.dimensions.iter_mut().zip(names) {
        dimension.name.clone_from(name);
    }
    array
}

#[cfg(test)]
mod tests;
