//! Names that a web server lists by `WebDAV`. The client library returns each as a path from the root of the server,
//! which begins with the path of the store's URL.

use object_store::ListResult;
use object_store::path::Path;

use super::failure::Failure;

/// `listed` with paths below `root`, the path of the store's URL, and without the directory `asked` itself.
///
/// # Errors
/// [`Failure::Unusable`] for a path that is not below that directory.
pub(super) fn below(root: &str, asked: &Path, listed: ListResult) -> Result<ListResult, Failure> {
    let mut names = ListResult {
        common_prefixes: Vec::new(),
        objects: Vec::new(),
        extensions: listed.extensions,
    };
    for path in listed.common_prefixes {
        names
            .common_prefixes
            .extend(path_below(root, asked, &path)?);
    }
    for mut object in listed.objects {
        if let Some(path) = path_below(root, asked, &object.location)? {
            object.location = path;
            names.objects.push(object);
        }
    }
    Ok(names)
}

/// `path` below `root`; `None` for `asked` itself.
fn path_below(root: &str, asked: &Path, path: &Path) -> Result<Option<Path>, Failure> {
    let other = || {
        let problem =
            format!("the server lists {path:?} where names below {asked:?} were requested");
        Failure::Unusable(problem)
    };
    let rest = path.as_ref().strip_prefix(root).ok_or_else(other)?;
    let rest = match rest.strip_prefix('/') {
        Some(rest) => rest,
        None if rest.is_empty() || root.is_empty() => rest,
        None => return Err(other()),
    };
    let rest = Path::parse(rest).map_err(|_| other())?;
    if rest == *asked {
        return Ok(None);
    }
    if !rest.prefix_matches(asked) {
        return Err(other());
    }
    Ok(Some(rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> Path {
        Path::parse(text).unwrap()
    }

    #[test]
    fn names_are_below_the_url_of_the_store() {
        for (root, asked, listed, expected) in [
            ("s", "", "s/x", Ok(Some("x"))),
            ("s", "", "s", Ok(None)),
            ("d/s", "x", "d/s/x/c", Ok(Some("x/c"))),
            ("d/s", "x", "d/s/x", Ok(None)),
            ("", "", "x", Ok(Some("x"))),
            ("", "x", "x/c", Ok(Some("x/c"))),
            ("s", "", "st/x", Err(())),
            ("s", "", "x", Err(())),
            ("s", "x", "s/y", Err(())),
            ("s", "x", "s/xy", Err(())),
        ] {
            let found = path_below(root, &path(asked), &path(listed)).map_err(|_| ());
            assert_eq!(
                found,
                expected.map(|it| it.map(path)),
                "{root} {asked} {listed}"
            );
        }
    }
}
