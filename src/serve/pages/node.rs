//! The part of a page that describes a node: its kind, dimensions, attributes and documents.

use super::html::Html;
use super::json_text::in_lines;
use crate::escape::human_bytes;
use crate::view::{ArrayDescription, DescribedKind, NodeDescription, NodeTexts};

/// The most characters of the value of an attribute.
const MOST_VALUE: usize = 2000;
/// The most codecs, and the most characters of the name of one.
const MOST_CODECS: usize = 64;
const MOST_NAME: usize = 200;

/// One line about a node.
pub(super) fn line(node: &NodeDescription) -> String {
    match &node.kind {
        DescribedKind::Group => format!("group, {}", node.format),
        DescribedKind::Unusable(_) => "node that cannot be shown".to_owned(),
        DescribedKind::Array(array) => format!(
            "array of {} ({}), {}",
            cut(&array.data_type, MOST_NAME),
            shape(array),
            node.format
        ),
    }
}

/// The lengths of the dimensions, each after its name where it has one.
fn shape(array: &ArrayDescription) -> String {
    let lengths = array
        .dimensions
        .iter()
        .map(|dimension| match &dimension.name {
            Some(name) => format!("{}: {}", cut(name, MOST_NAME), dimension.length),
            None => dimension.length.to_string(),
        });
    lengths.collect::<Vec<_>>().join(", ")
}

/// The problem of a node, if it has one.
pub(super) fn problem(node: &NodeDescription, page: &mut Html) {
    let (what, reason) = match &node.kind {
        DescribedKind::Group => return,
        DescribedKind::Unusable(reason) => ("This node cannot be shown: ", reason),
        DescribedKind::Array(array) => match &array.problem {
            Some(reason) => ("This array cannot be decoded: ", reason),
            None => return,
        },
    };
    page.markup("<p class=\"problem\">")
        .text(what)
        .text(reason)
        .markup("</p>\n");
}

/// The dimensions of an array, its data type and its codecs.
pub(super) fn dimensions(array: &ArrayDescription, page: &mut Html) {
    page.markup(
        "<section aria-labelledby=\"dimensions\">\n<h2 id=\"dimensions\">Dimensions</h2>\n",
    );
    if array.dimensions.is_empty() {
        page.markup("<p>The array has no dimensions, and one element.</p>\n");
    } else {
        page.markup("<div class=\"wide\" tabindex=\"0\" role=\"group\" aria-labelledby=\"dimensions\">\n<table>\n");
        page.markup(
            "<caption>Lengths in elements</caption>\n<thead><tr><th scope=\"col\">Dimension</th>",
        );
        page.markup("<th scope=\"col\">Length</th><th scope=\"col\">Chunk</th>");
        page.markup(if array.is_sharded {
            "<th scope=\"col\">Shard</th>"
        } else {
            ""
        });
        page.markup("<th scope=\"col\">Chunks</th></tr></thead>\n<tbody>\n");
        for (axis, dimension) in array.dimensions.iter().enumerate() {
            page.markup("<tr><th scope=\"row\"><bdi>");
            match &dimension.name {
                Some(name) => page.text(cut(name, MOST_NAME)),
                None => page.text(format_args!("dimension {axis}")),
            };
            page.markup("</bdi></th>");
            number(dimension.length, page);
            number(&dimension.chunk, page);
            if let Some(shard) = &dimension.shard {
                number(shard, page);
            }
            match dimension.n_chunks {
                Some(n) => number(n, page),
                None => number("unknown", page),
            }
            page.markup("</tr>\n");
        }
        page.markup("</tbody>\n</table>\n</div>\n");
    }
    page.markup("<dl>\n");
    fact("Data type", &cut(&array.data_type, MOST_NAME), page);
    fact(
        "Fill value",
        array.fill_value.as_deref().unwrap_or("unknown"),
        page,
    );
    let names = array
        .codecs
        .iter()
        .take(MOST_CODECS)
        .map(|name| cut(name, MOST_NAME));
    let names = names.collect::<Vec<_>>().join(", ");
    fact(
        "Codecs",
        if names.is_empty() { "none" } else { &names },
        page,
    );
    if let Some(n_chunks) = array.n_chunks {
        let kind = if array.is_sharded {
            " inner chunks of shards"
        } else {
            ""
        };
        fact("Chunks of the grid", &format!("{n_chunks}{kind}"), page);
    }
    if let Some(bytes) = array.decoded_bytes {
        fact("Decoded size", &human_bytes(bytes), page);
    }
    page.markup("</dl>\n</section>\n");
}

fn number(value: impl std::fmt::Display, page: &mut Html) {
    page.markup("<td class=\"number\">")
        .text(value)
        .markup("</td>");
}

fn fact(name: &'static str, value: &str, page: &mut Html) {
    page.markup("<dt>")
        .text(name)
        .markup("</dt><dd><bdi>")
        .text(value)
        .markup("</bdi></dd>\n");
}

/// The attributes of a node.
pub(super) fn attributes(texts: &NodeTexts, page: &mut Html) {
    if texts.attributes.is_empty() && texts.left_out.is_none() {
        return;
    }
    page.markup(
        "<section aria-labelledby=\"attributes\">\n<h2 id=\"attributes\">Attributes</h2>\n",
    );
    if let Some(reason) = &texts.left_out {
        page.markup("<p>Some attributes are left out: ")
            .text(reason)
            .markup("</p>\n");
    }
    if !texts.attributes.is_empty() {
        page.markup("<div class=\"wide\" tabindex=\"0\" role=\"group\" aria-labelledby=\"attributes\">\n<table>\n");
        page.markup("<caption>Values as JSON</caption>\n<thead><tr><th scope=\"col\">Name</th><th scope=\"col\">Value</th>");
        page.markup("</tr></thead>\n<tbody>\n");
        for (name, value) in &texts.attributes {
            page.markup("<tr><th scope=\"row\"><bdi>")
                .text(cut(name, MOST_NAME));
            page.markup("</bdi></th><td><code>")
                .text(cut(value, MOST_VALUE))
                .markup("</code></td></tr>\n");
        }
        page.markup("</tbody>\n</table>\n</div>\n");
    }
    page.markup("</section>\n");
}

/// The documents of a node.
pub(super) fn documents(texts: &NodeTexts, page: &mut Html) {
    if texts.documents.is_empty() {
        return;
    }
    page.markup("<section aria-labelledby=\"documents\">\n<h2 id=\"documents\">Documents as they are stored</h2>\n");
    for document in &texts.documents {
        let size = human_bytes(document.size);
        let Some(text) = &document.text else {
            page.markup("<p><bdi>").text(&document.key);
            page.markup("</bdi> takes ")
                .text(size)
                .markup(", too much for this page.</p>\n");
            continue;
        };
        page.markup("<details>\n<summary><bdi>")
            .text(&document.key)
            .markup("</bdi>, ")
            .text(size)
            .markup("</summary>\n");
        page.markup("<pre tabindex=\"0\">")
            .lines(&in_lines(text))
            .markup("</pre>\n</details>\n");
    }
    page.markup("</section>\n");
}

/// The first characters of `text`, with an ellipsis where some are left out.
pub(super) fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
    }
}
