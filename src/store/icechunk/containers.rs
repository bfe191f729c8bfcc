//! The virtual chunk containers of a repository: names for prefixes of URLs, with which the locations of virtual chunks
//! may begin.
//!
//! ```text
//! vcc://NAME/PATH     PATH, behind the prefix of the container NAME
//! ```
//!
//! Version 2 of the specification has them in the configuration in the file `repo`, and version 1 in a file of its own
//! ([`config_file`]), which is only read for a location that names a container. What a container says besides, such as
//! the server that has a bucket, is not used: the repository decides nothing about what is read.

use std::sync::OnceLock;

use super::config_file;
use super::flat::{Flat, Malformed};
use super::flex::{FlexMap, FlexValue};
use super::prefixes::Prefixes;
use crate::store::{Access, Store, StoreError};

/// The beginning of locations that name a container.
const SCHEME: &str = "vcc://";

/// The containers that have names, or the reason why they are not known.
#[derive(Debug)]
pub(super) enum Containers {
    /// The containers of a repository of version 2.
    Known(Result<Prefixes, String>),
    /// The containers of a repository of version 1, once they were needed.
    InFile(OnceLock<Result<Prefixes, String>>),
}

impl Containers {
    /// The containers of a repository of version 2 with this configuration. If that is damaged, chunks that name no
    /// container are still read.
    pub(super) fn of_configuration(config: Option<&[u8]>) -> Containers {
        let prefixes = config.map_or_else(|| Ok(Prefixes::default()), prefixes_in);
        let problem =
            |Malformed(problem)| format!("the configuration of the repository: {problem}");
        Containers::Known(prefixes.map_err(problem))
    }

    /// The containers of a repository of version 1, which were not needed yet.
    pub(super) fn of_version_1() -> Containers {
        Containers::InFile(OnceLock::new())
    }

    /// Whether the names stand for the same prefixes. The containers of version 1 stay as they are as long as a
    /// snapshot is shown.
    pub(super) fn are_as(&self, others: &Containers) -> bool {
        match (self, others) {
            (Containers::Known(these), Containers::Known(others)) => these == others,
            (Containers::InFile(_), Containers::InFile(_)) => true,
            _ => false,
        }
    }

    /// Makes [`Containers::resolve`] ready for `location`, which may take a request to the `store` of the repository.
    /// The repository is shown with the access `shown`, if other users can reach the mount.
    pub(super) fn prepare(
        &self,
        location: &str,
        store: &dyn Store,
        shown: Option<Access>,
    ) -> Result<(), StoreError> {
        let Containers::InFile(read) = self else {
            return Ok(());
        };
        if location.starts_with(SCHEME) && read.get().is_none() {
            let found = config_file::read(store, shown)?;
            // Another thread may have been faster.
            let _ = read.set(found.map_err(|problem| format!("config.yaml: {problem}")));
        }
        Ok(())
    }

    fn prefixes(&self) -> Result<&Prefixes, String> {
        let read = match self {
            Containers::Known(read) => Some(read),
            Containers::InFile(read) => read.get(),
        };
        let read = read.map_or(Err("config.yaml was not read"), |read| {
            read.as_ref().map_err(String::as_str)
        });
        read.map_err(str::to_owned)
    }

    /// The URL that `location` stands for; `None` if it stands for itself.
    ///
    /// # Errors
    /// The reason why it stands for no URL.
    pub(super) fn resolve(&self, location: &str) -> Result<Option<String>, String> {
        let Some(rest) = location.strip_prefix(SCHEME) else {
            return Ok(None);
        };
        // A query might have a secret.
        let shown = location.split(['?', '#']).next().unwrap_or_default();
        let (name, path) = rest.split_once('/').unwrap_or((rest, ""));
        if path.split('/').any(|segment| segment == "..") {
            return Err(format!("{shown}: this leads out of its container"));
        }
        let prefixes = self.prefixes();
        let prefixes = prefixes.map_err(|problem| format!("{shown}: {problem}"))?;
        match prefixes.get(name) {
            Some(Some(prefix)) => {
                let prefix = prefix.strip_suffix('/').unwrap_or(prefix);
                Ok(Some(format!("{prefix}/{path}")))
            }
            Some(None) => Err(format!(
                "{shown}: several virtual chunk containers of the repository are called {name}"
            )),
            None => Err(format!(
                "{shown}: the repository has no virtual chunk container that is called {name}"
            )),
        }
    }
}

/// Reads the prefixes in the `config` of a repository of version 2.
fn prefixes_in(config: &[u8]) -> Flat<Prefixes> {
    let mut prefixes = Prefixes::default();
    let config = FlexValue::root(config)?.map()?;
    let list = config.map(|config| config.get("virtual_chunk_containers"));
    let list = list.transpose()?.flatten();
    let Some(list) = list.map(|list| list.map()).transpose()?.flatten() else {
        return Ok(prefixes);
    };
    for index in 0..list.len() {
        let Some(container) = list.value(index)?.map()? else {
            continue;
        };
        let (name, prefix) = (text(&container, "name")?, text(&container, "url_prefix")?);
        prefixes.add(name, prefix).map_err(Malformed)?;
    }
    Ok(prefixes)
}

/// The text at `key`, if there is one.
fn text<'b>(map: &FlexMap<'b>, key: &str) -> Flat<Option<&'b str>> {
    let found = map.get(key)?;
    Ok(found.map(|found| found.text()).transpose()?.flatten())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{Key, MemoryStore};

    /// `{"virtual_chunk_containers": {"f": {"name": null, "url_prefix": "file:///d/"}, "s3://b/": {"name": "x",
    /// "store": {"s3": {"region": null}}, "url_prefix": "s3://b/"}}}`, as another program writes it.
    const CONFIG: &[u8] = b"virtual_chunk_containers\0s3://b/\0name\0\x01x\0url_prefix\0\x07s3://b/\0store\0s3\0region\0\
        \x01\x08\x01\x01\x01\0\0\x01\x12\x01\x01\x01\x07\x24\x03\x3b\x20\x35\x03\x01\x03\x3b\x0a\x2f\x14\x24\x14\
        f\0name\0url_prefix\0\x0afile:///d/\0\x02\x1d\x19\x02\x01\x02\0\x12\0\x14\x02\x29\x79\x02\x01\x02\x0a\x35\x24\x24\
        \x01\x9b\x01\x01\x01\x09\x24\x02\x24\x01";

    /// Containers with the name `x`.
    fn named(prefixes: &[&str]) -> Containers {
        let mut all = Prefixes::default();
        for prefix in prefixes {
            all.add(Some("x"), Some(prefix)).unwrap();
        }
        Containers::Known(Ok(all))
    }

    #[test]
    fn names_stand_for_prefixes() {
        let containers = Containers::of_configuration(Some(CONFIG));
        let resolved = |location| containers.resolve(location);
        assert_eq!(resolved("vcc://x/a/b"), Ok(Some("s3://b/a/b".to_owned())));
        assert_eq!(resolved("s3://b/a"), Ok(None));
        for (location, expected) in [
            ("vcc://y/a", "is called y"),
            ("vcc:///a", "is called "),
            ("vcc://x/a/../../c", "leads out of its container"),
        ] {
            let problem = resolved(location).unwrap_err();
            assert!(problem.contains(expected), "{problem}");
        }
    }

    #[test]
    fn a_container_has_a_prefix_with_or_without_a_slash() {
        for (prefix, expected) in [("file:///", "file:///a"), ("s3://b/c", "s3://b/c/a")] {
            let containers = named(&[prefix]);
            assert_eq!(
                containers.resolve("vcc://x/a"),
                Ok(Some(expected.to_owned()))
            );
        }
        let twice = named(&["s3://b", "s3://c"]);
        assert!(twice.resolve("vcc://x/a").unwrap_err().contains("several"));
    }

    #[test]
    fn a_configuration_may_have_none_and_may_be_damaged() {
        let null: &[u8] = &[0, 0, 1];
        for config in [None, Some(null)] {
            let containers = Containers::of_configuration(config);
            assert!(containers.are_as(&named(&[])));
        }
        let damaged = Containers::of_configuration(Some(&CONFIG[..100]));
        let problem = damaged.resolve("vcc://x/a").unwrap_err();
        assert!(
            problem.starts_with("vcc://x/a: the configuration"),
            "{problem}"
        );
        assert_eq!(damaged.resolve("s3://b/a"), Ok(None));
    }

    #[test]
    fn the_file_of_version_1_is_read_for_a_location_that_needs_it() {
        let store = MemoryStore::new();
        let containers = Containers::of_version_1();
        containers.prepare("s3://b/a", &store, None).unwrap();
        let key = Key::parse(b"config.yaml").unwrap();
        let config = "virtual_chunk_containers: {a: {name: x, url_prefix: s3://b/}}";
        store.insert(key.clone(), config);
        containers.prepare("vcc://x/a", &store, None).unwrap();
        assert_eq!(
            containers.resolve("vcc://x/a"),
            Ok(Some("s3://b/a".to_owned()))
        );
        // It is read once.
        store.insert(key.clone(), "[");
        containers.prepare("vcc://x/a", &store, None).unwrap();
        assert!(containers.resolve("vcc://x/a").is_ok());
        for (file, expected) in [
            ("[".repeat(10), "config.yaml: "),
            ("#".repeat(300_000), "config.yaml: it has more than"),
            (String::new(), "is called x"),
        ] {
            store.insert(key.clone(), file);
            let containers = Containers::of_version_1();
            containers.prepare("vcc://x/a", &store, None).unwrap();
            let problem = containers.resolve("vcc://x/a").unwrap_err();
            assert!(problem.contains(expected), "{problem}");
        }
    }
}
