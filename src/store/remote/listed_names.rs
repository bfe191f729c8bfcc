//! Pages of names, before the client library reads them. It refuses a page with a name that has an empty
//! segment (`a//b`), or `.` or `..` as one, so these are taken out of the page. And it takes each other
//! document, such as a page for logging in, for one without names, after which all chunks would be absent.

use object_store::path::Path;

/// What has a name in the pages of S3, Google and Azure, and the element of its name.
const ELEMENTS: [(&str, &str); 4] = [
    ("Contents", "Key"),
    ("CommonPrefixes", "Prefix"),
    ("Blob", "Name"),
    ("BlobPrefix", "Name"),
];

/// The elements that pages of names are.
const PAGES: [&str; 2] = ["ListBucketResult", "EnumerationResults"];

/// Checks that `page` is a page of names, and that it tells how to ask for the next one if it says that
/// more names follow. A page of S3 that has no name has to say that none follow.
///
/// # Errors
/// The problem, as a message.
pub(super) fn check_page(page: &str) -> Result<(), String> {
    let outer = outer_element(page).unwrap_or_default();
    if !PAGES.contains(&outer) {
        return Err(format!("its outer element is {outer:?}"));
    }
    let has = |text| page.contains(text);
    if outer == "ListBucketResult"
        && !["IsTruncated>", "Contents>", "CommonPrefixes>"]
            .into_iter()
            .any(has)
    {
        return Err("it has no name, and does not say that none follow".to_owned());
    }
    let token = page.split_once("NextContinuationToken>");
    if has("IsTruncated>true<") && token.is_none_or(|(_, token)| token.starts_with('<')) {
        return Err("it says that more names follow, and not how to ask for them".to_owned());
    }
    Ok(())
}

/// The name of the outer element of an XML document, without its namespace.
fn outer_element(document: &str) -> Option<&str> {
    let mut rest = document.trim_start_matches('\u{feff}').trim_start();
    loop {
        let end = if rest.starts_with("<!--") {
            "-->"
        } else if rest.starts_with("<?") || rest.starts_with("<!") {
            ">"
        } else {
            break;
        };
        rest = rest.split_once(end)?.1.trim_start();
    }
    let name = rest.strip_prefix('<')?;
    let len = name.find(|character: char| character.is_whitespace() || "/>".contains(character))?;
    let name = name.get(..len)?;
    Some(name.rsplit(':').next().unwrap_or(name))
}

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
    fn a_document_that_is_no_page_of_names_is_told() {
        let head = "<?xml version='1.0'?>\n<!-- a -->";
        for page in [
            "<ListBucketResult xmlns=\"a\"><Contents><Key>a</Key></Contents></ListBucketResult>",
            "\u{feff}<?xml version='1.0'?><a:ListBucketResult>\n<a:IsTruncated>false</a:IsTruncated>",
            &format!("{head}<EnumerationResults ServiceEndpoint='a'></EnumerationResults>"),
            "<ListBucketResult><IsTruncated>false</IsTruncated></ListBucketResult>",
            "<ListBucketResult><IsTruncated>true</IsTruncated>\
             <NextContinuationToken>a</NextContinuationToken></ListBucketResult>",
        ] {
            assert_eq!(check_page(page), Ok(()), "{page}");
        }
        for page in [
            "",
            "{\"items\": []}",
            "<",
            "<?xml",
            "<!doctype html><html><body>Log in</body></html>",
            "<?xml version='1.0'?><Error><Code>InternalError</Code></Error>",
            "<ListAllMyBucketsResult></ListAllMyBucketsResult>",
            "<ListBucketResult></ListBucketResult>",
            "<ListBucketResult><IsTruncated>true</IsTruncated></ListBucketResult>",
            "<ListBucketResult><IsTruncated>true</IsTruncated>\
             <NextContinuationToken></NextContinuationToken></ListBucketResult>",
        ] {
            assert!(check_page(page).is_err(), "{page}");
        }
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
