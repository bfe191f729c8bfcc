//! Names in listings that the client library refuses: with an empty segment (`a//b`), or with `.` or
//! `..` as one. It refuses the page that they are on, too, so they are taken out of the page before
//! it reads it.

use object_store::path::Path;

/// What has a name in the pages of S3, Google and Azure, and the element of its name.
const ELEMENTS: [(&str, &str); 4] = [
    ("Contents", "Key"),
    ("CommonPrefixes", "Prefix"),
    ("Blob", "Name"),
    ("BlobPrefix", "Name"),
];

/// `page` without what has a name that cannot be read, and how much that is.
pub(super) fn without_unreadable_names(page: &str) -> (String, u64) {
    let (mut kept, mut left_out) = (String::with_capacity(page.len()), 0);
    let mut rest = page;
    while let Some(at) = rest.find('<') {
        let (before, from) = rest.split_at(at);
        kept.push_str(before);
        let end = ELEMENTS.iter().find_map(|names| end_of(from, names));
        // Without one, this tag alone is passed over.
        let len = end.map_or(1, |(end, _)| end);
        let (element, after) = from.split_at(len);
        if end.is_some_and(|(_, is_readable)| !is_readable) {
            left_out += 1;
        } else {
            kept.push_str(element);
        }
        rest = after;
    }
    kept.push_str(rest);
    (kept, left_out)
}

/// Where the element ends with which `text` begins, and whether its name can be read; `None` where
/// this is no such element.
fn end_of(text: &str, (outer, inner): &(&str, &str)) -> Option<(usize, bool)> {
    let body = text
        .strip_prefix('<')?
        .strip_prefix(outer)?
        .strip_prefix('>')?;
    let close = format!("</{outer}>");
    let len = body.find(&close)?;
    let end = text.len() - body.len() + len + close.len();
    let (_, name) = body.get(..len)?.split_once(&format!("<{inner}>"))?;
    let (name, _) = name.split_once(&format!("</{inner}>"))?;
    Some((end, Path::parse(decoded(name)).is_ok()))
}

/// `text` with a character for each reference. Only those matter here that could be a `.` or a `/`.
fn decoded(text: &str) -> String {
    let mut decoded = text.to_owned();
    for (character, references) in [
        (".", ["&#46;", "&#x2E;", "&#x2e;"]),
        ("/", ["&#47;", "&#x2F;", "&#x2f;"]),
    ] {
        for reference in references {
            decoded = decoded.replace(reference, character);
        }
    }
    decoded
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(names: &[(&str, &str, &str)]) -> String {
        let element = |(outer, inner, name): &(&str, &str, &str)| {
            format!("<{outer}><{inner}>{name}</{inner}><Size>1</Size></{outer}>")
        };
        let elements: String = names.iter().map(element).collect();
        format!("<?xml version=\"1.0\"?><List><Prefix>z//</Prefix>{elements}</List>")
    }

    #[test]
    fn names_that_no_path_has_are_taken_out() {
        let good = [
            ("Contents", "Key", "z/a&amp;b"),
            ("CommonPrefixes", "Prefix", "z/a/"),
            ("Blob", "Name", "z/..b"),
            ("BlobPrefix", "Name", "z/b/"),
        ];
        let bad = [
            ("Contents", "Key", "z//a"),
            ("CommonPrefixes", "Prefix", "z//"),
            ("CommonPrefixes", "Prefix", "z&#x2F;/"),
            ("Blob", "Name", "z/."),
            ("BlobPrefix", "Name", "z/../"),
        ];
        let all: Vec<_> = good.iter().chain(&bad).copied().collect();
        let mut turned = all.clone();
        turned.reverse();
        assert_eq!(without_unreadable_names(&page(&all)), (page(&good), 5));
        assert_eq!(without_unreadable_names(&page(&turned)).1, 5);
        assert_eq!(without_unreadable_names(&page(&good)), (page(&good), 0));
    }

    #[test]
    fn what_is_no_page_stays_as_it_is() {
        for text in [
            "",
            "<",
            "<Contents>",
            "<Contents><Key>a//b</Contents>",
            "<<\u{e9}>a//b",
        ] {
            assert_eq!(without_unreadable_names(text), (text.to_owned(), 0));
        }
    }
}
