//! The levels of an image, from the attributes of its group: OME-NGFF, section "multiscales".
//!
//! The first multiscale is the image, as the specification has it. Paths come from the store, so that they are checked here.

use super::ngff::normal;
use crate::error::FormatError;
use crate::metadata::{Attributes, JsonTree};
use crate::plain::Omitted;

/// The most levels that are examined: each is half as long as the one before it, or nearly so.
const MOST_LEVELS: usize = 32;
/// The most multiscales and levels that are named one by one where they are left out.
const MOST_NAMED: usize = 16;

/// The image of a group.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Multiscale {
    /// The paths of its levels below the group, the finest level first, each with its segments.
    pub levels: Vec<(String, Vec<String>)>,
    /// Levels whose paths lead nowhere, and other multiscales of the group.
    pub omitted: Vec<Omitted>,
}

/// The image of a group with these attributes; `None` if its first multiscale has no list of datasets, or there is none.
pub fn multiscale(attributes: &Attributes) -> Option<Multiscale> {
    let multiscales = multiscales(attributes)?;
    let datasets = datasets(multiscales.first()?)?;
    let mut found = Multiscale::default();
    for (number, dataset) in datasets.iter().enumerate().take(MOST_LEVELS) {
        let path = dataset.as_object().and_then(|dataset| dataset.text("path"));
        let segments = path
            .and_then(normal)
            .filter(|segments| !segments.is_empty());
        match segments {
            Some(segments) => {
                let name = segments.join("/");
                let segments = segments.into_iter().map(str::to_owned);
                found.levels.push((name, segments.collect()));
            }
            None => found.omit(
                format!("datasets[{number}]"),
                FormatError::document("path", "names no array below the group"),
            ),
        }
    }
    if datasets.len() > MOST_LEVELS {
        let what = "the number of levels";
        let error = FormatError::too_large(what, datasets.len(), MOST_LEVELS as u64);
        found.omit(format!("datasets[{MOST_LEVELS}]"), error);
    }
    for number in 1..multiscales.len().min(MOST_NAMED) {
        let problem = "only the first multiscale of a group is in its file";
        found.omit(
            format!("multiscales[{number}]"),
            FormatError::document("multiscales", problem),
        );
    }
    Some(found)
}

impl Multiscale {
    fn omit(&mut self, name: String, reason: FormatError) {
        self.omitted.push(Omitted { name, reason });
    }
}

/// The multiscales of a group, which version 0.5 and later have within `ome`.
fn multiscales(attributes: &Attributes) -> Option<&[JsonTree]> {
    let ome = attributes.get("ome").and_then(JsonTree::as_object);
    let mut places = ome.into_iter().chain([attributes]);
    places.find_map(|place| {
        let multiscales = place.get("multiscales")?.as_list()?;
        datasets(multiscales.first()?).map(|_| multiscales)
    })
}

fn datasets(multiscale: &JsonTree) -> Option<&[JsonTree]> {
    let datasets = multiscale.as_object()?.get("datasets")?.as_list()?;
    (!datasets.is_empty()).then_some(datasets)
}

#[cfg(test)]
mod tests {
    use super::super::super::testing::attributes;
    use super::*;

    fn of(text: &str) -> Option<Multiscale> {
        multiscale(&attributes(text))
    }

    fn names(found: &Multiscale) -> Vec<&str> {
        found.levels.iter().map(|(name, _)| name.as_str()).collect()
    }

    #[test]
    fn levels_have_checked_paths() {
        let list = r#"[{"datasets": [{"path": "0"}, {"path": "./a//1/"}, {"path": "../2"}, {"path": "/"}, {"path": 3}, 4]}]"#;
        for text in [
            format!(r#"{{"multiscales": {list}}}"#),
            format!(r#"{{"ome": {{"multiscales": {list}}}, "multiscales": 3}}"#),
            format!(r#"{{"ome": {{"multiscales": []}}, "multiscales": {list}}}"#),
        ] {
            let found = of(&text).unwrap();
            assert_eq!(names(&found), ["0", "a/1"]);
            assert_eq!(found.levels[1].1, ["a", "1"]);
            let omitted: Vec<_> = found.omitted.iter().map(|it| it.name.as_str()).collect();
            assert_eq!(
                omitted,
                ["datasets[2]", "datasets[3]", "datasets[4]", "datasets[5]"]
            );
        }
    }

    #[test]
    fn the_first_multiscale_is_the_image() {
        let found = of(
            r#"{"multiscales": [{"datasets": [{"path": "a"}]}, {"datasets": [{"path": "b"}]}, 3]}"#,
        )
        .unwrap();
        assert_eq!(names(&found), ["a"]);
        let omitted: Vec<_> = found.omitted.iter().map(|it| it.name.as_str()).collect();
        assert_eq!(omitted, ["multiscales[1]", "multiscales[2]"]);
        // GeoZarr's multiscales are an object, which is another convention.
        for text in [
            "{}",
            r#"{"multiscales": {"layout": [{"asset": "0"}]}}"#,
            r#"{"multiscales": []}"#,
            r#"{"multiscales": [3]}"#,
            r#"{"multiscales": [{"datasets": []}]}"#,
            r#"{"ome": {"plate": {}}}"#,
        ] {
            assert_eq!(of(text), None, "{text}");
        }
    }

    #[test]
    fn very_many_levels_are_not_examined() {
        let many = vec![r#"{"path": "0"}"#; 100_000].join(",");
        let text = format!(
            r#"{{"multiscales": [{{"datasets": [{many}]}}{}]}}"#,
            ", 1".repeat(100_000)
        );
        let found = of(&text).unwrap();
        assert_eq!((found.levels.len(), found.omitted.len()), (32, 16));
    }
}
