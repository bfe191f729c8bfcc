//! The levels of a picture that are coarser than an array: those after it in the list of levels of a group.
//!
//! | convention | list |
//! |---|---|
//! | OME-NGFF | `datasets` of each of `multiscales`: `path` |
//! | GeoZarr | `layout` of `multiscales`: `asset`, an array, or a group that has an array of one name in each level |
//!
//! <https://ngff.openmicroscopy.org/0.5/#multiscale-md>, <https://github.com/zarr-conventions/multiscales>.

use super::ngff::normal;
use crate::metadata::{Attributes, JsonTree};

/// The most levels of a list: each is half as long as the one before it, or nearly so.
const MOST_LEVELS: usize = 32;

/// The paths of the coarser levels of the array at `path`, both below a group with these attributes, the
/// finest first. They may lead to no array. `None` if no list of the group has the array.
pub fn coarser_levels(attributes: &Attributes, path: &str) -> Option<Vec<Vec<String>>> {
    let own = normal(path)?;
    let ome = attributes.get("ome").and_then(JsonTree::as_object);
    let ome = ome.and_then(|ome| ome.get("multiscales"));
    let lists = [ome, attributes.get("multiscales")];
    lists.into_iter().flatten().find_map(|lists| match lists {
        JsonTree::List(multiscales) => multiscales.iter().find_map(|multiscale| {
            let datasets = multiscale.as_object()?.get("datasets")?;
            after(datasets.as_list()?, "path", &own)
        }),
        lists => after(lists.as_object()?.get("layout")?.as_list()?, "asset", &own),
    })
}

/// The levels after that of `own` in a list whose entries have their paths in the member `name`.
fn after(list: &[JsonTree], name: &str, own: &[&str]) -> Option<Vec<Vec<String>>> {
    let levels = list.iter().take(MOST_LEVELS).filter_map(|level| {
        let path = normal(level.as_object()?.text(name)?)?;
        (!path.is_empty()).then_some(path)
    });
    let levels: Vec<Vec<&str>> = levels.collect();
    let number = levels.iter().position(|level| own.starts_with(level))?;
    let below = own.get(levels.get(number)?.len()..)?;
    let coarser = levels.get(number + 1..)?.iter();
    let whole = coarser.map(|level| level.iter().chain(below).map(|&name| name.to_owned()));
    Some(whole.map(Iterator::collect).collect())
}

#[cfg(test)]
mod tests {
    use super::super::super::testing::attributes;
    use super::*;

    fn of(json: &str, path: &str) -> Option<Vec<String>> {
        let levels = coarser_levels(&attributes(json), path)?;
        Some(levels.iter().map(|level| level.join("/")).collect())
    }

    #[test]
    fn the_levels_after_an_array_are_coarser() {
        let ome = r#"{"multiscales": [{"datasets": [{"path": "s0"}, {"path": "./s1/"}, {"path": "../s2"}, {"path": 3}]},
            {"datasets": [{"path": "a"}, {"path": "b"}]}]}"#;
        let within = format!(r#"{{"ome": {ome}}}"#);
        let geo = r#"{"multiscales": {"layout": [{"asset": "r10m"}, {"asset": "r20m"}, {"asset": ""}, {"asset": "r60m"}]}}"#;
        for (json, path, expected) in [
            (ome, "s0", Some(&["s1"][..])),
            (ome, "s1", Some(&[])),
            (ome, "a", Some(&["b"])),
            (ome, "s2", None),
            (&within, "s0", Some(&["s1"])),
            (geo, "r10m", Some(&["r20m", "r60m"])),
            (geo, "r20m/b02", Some(&["r60m/b02"])),
            (geo, "r30m/b02", None),
            (r#"{"multiscales": {"layout": 1}}"#, "a", None),
            (r#"{"multiscales": "a"}"#, "a", None),
            ("{}", "a", None),
        ] {
            let expected =
                expected.map(|paths| paths.iter().map(|&path| path.to_owned()).collect());
            assert_eq!(of(json, path), expected, "{json} {path}");
        }
        let long: Vec<String> = (0..40).map(|n| format!(r#"{{"asset": "{n}"}}"#)).collect();
        let long = format!(r#"{{"multiscales": {{"layout": [{}]}}}}"#, long.join(","));
        assert_eq!(of(&long, "0").unwrap().len(), 31);
    }
}
