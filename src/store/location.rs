//! The STORE argument: its forms, and how each is opened.
//!
//! It names a directory, which may be a node inside a hierarchy, a zip file, a set of references, one of
//! these on a server by its URL, or `demo:`. Everything else is refused here, so that the message can say what to do instead.
//!
//! A directory or a remote store may be an Icechunk repository or a set of references, which its documents tell
//! (`kinds`). Steps behind a `|` say where in it the store is (`chain`): `STORE|icechunk:@branch.NAME` names a snapshot of
//! a repository, of which the branch `main` is the store without that; `STORE|zip:PATH` names a directory in a zip file,
//! or a zip file in it where another step follows.
//!
//! A zip file often contains one directory with its own name. Where its root holds no Zarr metadata
//! and exactly one directory in the root does, that directory is the root of the store.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

#[cfg(feature = "remote")]
use super::Object;
use super::chain::{Step, spelled_with_steps, split_step};
#[cfg(feature = "icechunk")]
use super::icechunk::{IcechunkAddress, IcechunkStore};
use super::kinds::{StoreKind, kind_of};
use super::nested::{NestedForms, NestedStores};
use super::packed::find_hierarchy;
use super::references::{is_named_as_set, metadata_of_set};
#[cfg(feature = "remote")]
use super::remote::{RemoteOptions, RemoteStore, RemoteUrl};
use super::targets::{Address, Home};
use super::{
    AllowedPrefix, DirStore, Key, Prefix, ReferenceStore, Sharing, Store, StoreError, Symlinks,
    ZipStore, demo,
};

/// The built-in store, as it is typed.
const DEMO: &str = "demo:";

/// The name of the metadata of a set of references in Parquet.
const METADATA: &[u8] = b".zmetadata";

/// A parsed STORE argument.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Location {
    /// A directory. The path is as it was typed, so it may be relative to the current directory.
    Directory(PathBuf),
    /// A zip file, whatever it is called.
    Zip(PathBuf),
    /// A set of references: its file in JSON, or the metadata of one in Parquet.
    References(PathBuf),
    /// The built-in store.
    Demo,
    /// A store on a server, or a zip file.
    #[cfg(feature = "remote")]
    Remote(RemoteUrl),
    /// What lies at a path of the zip file at another location.
    InZip(Box<Location>, Prefix),
    /// A snapshot of the Icechunk repository at another location.
    #[cfg(feature = "icechunk")]
    Icechunk(Box<Location>, IcechunkAddress),
}

/// How a store is opened.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OpenOptions {
    /// Where symbolic links may lead to, in directories.
    pub symlinks: Symlinks,
    /// Which users the reported modes are for.
    pub sharing: Sharing,
    /// What references may name, besides what their own set lies in.
    pub allowed_references: Vec<AllowedPrefix>,
    /// Whether the store is read by its own keys, whatever other kinds of stores its documents tell of.
    pub by_keys: bool,
    /// The memory that files with the places of chunks may take; `None` stands for 256 MiB.
    pub memory_bytes: Option<u64>,
    /// How remote stores are reached.
    #[cfg(feature = "remote")]
    pub remote: RemoteOptions,
}

/// The path in `file:///path`; `None` for anything else.
///
/// # Errors
/// [`StoreError::Unsupported`] for a file of another host.
pub fn path_of_file_url(text: &OsStr) -> Result<Option<PathBuf>, StoreError> {
    let Some((scheme, rest)) = split_bytes(text.as_bytes()) else {
        return Ok(None);
    };
    if !scheme.eq_ignore_ascii_case(b"file") {
        return Ok(None);
    }
    let path = rest.strip_prefix(b"localhost").unwrap_or(rest);
    if !path.starts_with(b"/") {
        let shown = one_line(&text.to_string_lossy());
        let problem = "a file URL has no host: write file:///PATH";
        return Err(unsupported(format!("{shown}: {problem}")));
    }
    Ok(Some(PathBuf::from(OsString::from_vec(percent_decoded(
        path,
    )))))
}

/// `text` with `%41` as `A`. What is no escape stays.
pub(super) fn percent_decoded(text: &[u8]) -> Vec<u8> {
    let mut decoded = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&first, after)) = rest.split_first() {
        let escape = after.first_chunk().filter(|_| first == b'%');
        let escape = escape.and_then(|digits: &[u8; 2]| std::str::from_utf8(digits).ok());
        let byte = escape.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        decoded.push(byte.unwrap_or(first));
        let skipped = if byte.is_some() { 2 } else { 0 };
        rest = after.get(skipped..).unwrap_or_default();
    }
    decoded
}

impl Location {
    /// Whether `argument` is no path: the name of the built-in store, or a URL.
    pub fn is_name(argument: &OsStr) -> bool {
        argument == DEMO || split_bytes(argument.as_bytes()).is_some()
    }

    /// Parses `argument`, and looks whether there is a directory or a zip file.
    ///
    /// # Errors
    /// [`StoreError::Io`] or [`StoreError::Denied`] when the path cannot be examined,
    /// [`StoreError::Unsupported`] for what this build cannot open: URLs, other files.
    pub fn parse(argument: &OsStr) -> Result<Location, StoreError> {
        let argument = &*spelled_with_steps(argument)?;
        match split_step(argument) {
            Some((store, Step::Icechunk(address))) => {
                return Location::parse_snapshot(store, address);
            }
            Some((store, Step::Zip(path))) => {
                let zip = Location::parse(store)?;
                return Ok(Location::InZip(Box::new(zip), Prefix::parse(path)?));
            }
            None => {}
        }
        let text = argument.to_string_lossy();
        if text == DEMO {
            return Ok(Location::Demo);
        }
        if text.is_empty() {
            return Err(unsupported(
                "STORE is empty; name a directory, a zip file, or the built-in store `demo:`",
            ));
        }
        let local = path_of_file_url(argument)?;
        if local.is_none()
            && let Some(remote) = Location::parse_url(&text)?
        {
            return Ok(remote);
        }
        let path = local.unwrap_or_else(|| PathBuf::from(argument));
        let metadata = path
            .metadata()
            .map_err(|error| refuse_path(&path, &error))?;
        if metadata.is_dir() {
            Ok(Location::Directory(path))
        } else if metadata.is_file() && ZipStore::is_zip(&path)? {
            Ok(Location::Zip(path))
        } else if metadata.is_file() && is_set(&path)? {
            Ok(Location::References(path))
        } else {
            Err(refuse_file(&path))
        }
    }

    #[cfg(feature = "icechunk")]
    fn parse_snapshot(store: &OsStr, address: &[u8]) -> Result<Location, StoreError> {
        let store = Location::parse(store)?;
        if matches!(store, Location::Icechunk(..)) {
            let problem = "a snapshot of Icechunk holds no repositories: write |icechunk: once";
            return Err(unsupported(problem));
        }
        let address = std::str::from_utf8(address);
        let address = address.map_err(|_| unsupported("names in Icechunk are UTF-8"))?;
        let address = IcechunkAddress::parse(address)?;
        Ok(Location::Icechunk(Box::new(store), address))
    }

    #[cfg(not(feature = "icechunk"))]
    fn parse_snapshot(_: &OsStr, _: &[u8]) -> Result<Location, StoreError> {
        Err(unsupported(
            "this program was built without Icechunk repositories (the feature `icechunk`)",
        ))
    }

    #[cfg(feature = "remote")]
    fn parse_url(text: &str) -> Result<Option<Location>, StoreError> {
        let scheme = text.split_once("://").map(|(scheme, _)| scheme);
        let chain = scheme.filter(|scheme| !scheme.contains('/'));
        if let Some((first, _)) = chain.and_then(|scheme| scheme.split_once("::")) {
            return Err(unsupported(format!(
                "{}: of the chains of URLs, only zip:: is read",
                one_line(first)
            )));
        }
        Ok(RemoteUrl::parse(text)?.map(Location::Remote))
    }

    #[cfg(not(feature = "remote"))]
    fn parse_url(text: &str) -> Result<Option<Location>, StoreError> {
        let is_url = split_bytes(text.as_bytes()).is_some();
        if is_url {
            return Err(unsupported(
                "this program was built without remote stores (the feature `remote`)",
            ));
        }
        Ok(None)
    }
}

/// Opens the store at `location` for this user alone. `symlinks` applies to directories only.
///
/// # Errors
/// As [`open_store_for`].
pub fn open_store(location: &Location, symlinks: Symlinks) -> Result<Arc<dyn Store>, StoreError> {
    let options = OpenOptions {
        symlinks,
        ..OpenOptions::default()
    };
    open_store_for(location, &options)
}

/// Opens the store at `location`: a repository of Icechunk at its branch `main`.
///
/// # Errors
/// As [`DirStore::open`], [`ZipStore::open`] and [`RemoteStore::open`]; where a repository cannot be read; and
/// [`StoreError::Unsupported`] for a URL of one object that is no zip file, and where stores of two kinds meet.
pub fn open_store_for(
    location: &Location,
    options: &OpenOptions,
) -> Result<Arc<dyn Store>, StoreError> {
    open_at(location, options).map(|opened| opened.store)
}

/// As [`open_store_for`], with those stores in a directory of stores that `forms` says.
///
/// # Errors
/// As [`open_store_for`].
pub fn open_directory_of_stores(
    location: &Location,
    options: &OpenOptions,
    forms: NestedForms,
) -> Result<Arc<dyn Store>, StoreError> {
    let Opened { store, has_keys } = open_at(location, options)?;
    if !has_keys {
        return Ok(store);
    }
    // A URL that is no address has no references.
    let address = address_of(location).ok();
    Ok(Arc::new(NestedStores::new(store, forms, address, options)))
}

/// A store that was opened.
struct Opened {
    store: Arc<dyn Store>,
    /// Whether its keys are those of its directory or URL, so that other stores may be in it.
    has_keys: bool,
}

impl Opened {
    fn whole(store: impl Store + 'static) -> Opened {
        Opened {
            store: Arc::new(store),
            has_keys: false,
        }
    }
}

/// Opens the store at `location`, of whatever kind it is.
fn open_at(location: &Location, options: &OpenOptions) -> Result<Opened, StoreError> {
    #[cfg(feature = "icechunk")]
    if let Location::Icechunk(repository, address) = location {
        let store = open_keys(repository, options)?.store;
        return open_repository(store, repository, address.clone(), options);
    }
    let opened = open_keys(location, options)?;
    if options.by_keys || matches!(location, Location::Demo | Location::References(_)) {
        return Ok(opened);
    }
    match kind_of(&*opened.store, &location.to_string())? {
        StoreKind::Keys => Ok(opened),
        #[cfg(feature = "icechunk")]
        StoreKind::Icechunk => {
            let address = IcechunkAddress::default();
            open_repository(opened.store, location, address, options)
        }
        StoreKind::References(metadata) => match location {
            #[cfg(feature = "remote")]
            Location::Remote(url) => open_remote_set(url, Some(&metadata), options),
            Location::Directory(path) => open_set(path, Some(&metadata), options),
            _ => Ok(opened),
        },
    }
}

/// Opens the snapshot at `address` of the repository in `store`, which is at `location`.
#[cfg(feature = "icechunk")]
fn open_repository(
    store: Arc<dyn Store>,
    location: &Location,
    address: IcechunkAddress,
    options: &OpenOptions,
) -> Result<Opened, StoreError> {
    let home = Home::new(address_of(location)?, store);
    let opened = IcechunkStore::open(home, address, options);
    let named = |error| match error {
        StoreError::Unsupported(problem) => unsupported(format!("{location}: {problem}")),
        error => error,
    };
    opened.map(Opened::whole).map_err(named)
}

/// Opens the store whose keys are those at `location`.
fn open_keys(location: &Location, options: &OpenOptions) -> Result<Opened, StoreError> {
    match location {
        Location::Directory(path) => Ok(Opened {
            store: Arc::new(DirStore::shared(path, options.symlinks, options.sharing)?),
            has_keys: true,
        }),
        Location::References(path) => match metadata_at(path) {
            Some((directory, metadata)) => open_set(directory, Some(&metadata?), options),
            None => open_set(path, None, options),
        },
        Location::Zip(_) => {
            let zip = open_zip(location, options)?;
            Ok(Opened::whole(at_hierarchy(zip, &location.to_string())?))
        }
        Location::InZip(zip, path) => open_in_zip(zip, path, options).map(Opened::whole),
        Location::Demo => Ok(Opened::whole(demo::demo_store())),
        #[cfg(feature = "remote")]
        Location::Remote(url) => open_remote(url, options),
        #[cfg(feature = "icechunk")]
        Location::Icechunk(..) => Err(unsupported("a snapshot is in a repository")),
    }
}

/// Opens what lies at `path` of the zip file at `location`. Without a path, that is the hierarchy in it.
fn open_in_zip(
    location: &Location,
    path: &Prefix,
    options: &OpenOptions,
) -> Result<ZipStore, StoreError> {
    let shown = location.to_string();
    let zip = open_zip(location, options)?;
    let Some(key) = path.to_key() else {
        return at_hierarchy(zip, &shown);
    };
    match zip.stat(&key)? {
        Some(stat) if stat.prefix_meta().is_some() => Ok(zip.below(path.clone())),
        Some(_) => Err(unsupported(format!(
            "{shown}|zip:{key}: this is a file; for a zip file in a zip file, write |zip: behind it"
        ))),
        None => Err(unsupported(format!(
            "{shown}: the zip file has no directory {key}"
        ))),
    }
}

/// Opens the zip file at `location`, with all its entries.
fn open_zip(location: &Location, options: &OpenOptions) -> Result<ZipStore, StoreError> {
    let shown = location.to_string();
    match location {
        Location::Zip(path) => {
            let zip = ZipStore::shared(path, options.sharing)?;
            let size = zip.file_bytes()?;
            Ok(zip.described_as(format!("{shown}: a zip file of {size} bytes")))
        }
        #[cfg(feature = "remote")]
        Location::Remote(url) => match open_remote_zip(url, options)? {
            Ok(zip) => Ok(zip),
            Err(_) => Err(no_zip(&shown)),
        },
        Location::InZip(outer, path) => {
            let key = path.to_key().ok_or_else(|| no_zip(&shown))?;
            let outer: Arc<dyn Store> = Arc::new(open_zip(outer, options)?);
            match outer.open(&key)? {
                Some(object) => {
                    let size = object.meta().size();
                    let zip = ZipStore::of_object(&outer, &key, object, shown.clone())?;
                    let zip = zip.ok_or_else(|| no_zip(&shown))?;
                    Ok(zip.described_as(format!("{shown}: a zip file of {size} bytes")))
                }
                None => Err(no_zip(&shown)),
            }
        }
        _ => Err(no_zip(&shown)),
    }
}

fn no_zip(shown: &str) -> StoreError {
    unsupported(format!(
        "{shown}: |zip: names what lies in a zip file, and this is none"
    ))
}

/// The directory of the set of references in Parquet whose metadata are in the file at `path`, and their key in it; `None`
/// if the file has another name.
fn metadata_at(path: &Path) -> Option<(&Path, Result<Key, StoreError>)> {
    let name = path.file_name()?.as_bytes();
    (name == METADATA).then_some((path.parent()?, Key::parse(name)))
}

/// Whether the file at `path` is named as a set of references is, or has the metadata of one.
fn is_set(path: &Path) -> Result<bool, StoreError> {
    let name = path.file_name().unwrap_or_default().as_bytes();
    if let Some((directory, _)) = metadata_at(path) {
        let store = DirStore::open(&absolute(directory)?, Symlinks::Inside)?;
        return Ok(metadata_of_set(&store, &Prefix::root())?.is_some());
    }
    Ok(is_named_as_set(name))
}

fn absolute(path: &Path) -> Result<PathBuf, StoreError> {
    std::path::absolute(path).map_err(|error| StoreError::io(path.display(), &error))
}

/// The address of `location`.
fn address_of(location: &Location) -> Result<Address, StoreError> {
    match location {
        Location::Directory(path) | Location::Zip(path) | Location::References(path) => {
            Address::of_path(&absolute(path)?)
        }
        Location::Demo | Location::InZip(..) => Ok(Address::nowhere()),
        #[cfg(feature = "icechunk")]
        Location::Icechunk(..) => Ok(Address::nowhere()),
        #[cfg(feature = "remote")]
        Location::Remote(url) => Address::of_url(url),
    }
}

/// Opens the set of references at `path`, whose metadata are in the key `metadata` if it is a directory.
fn open_set(
    path: &Path,
    metadata: Option<&Key>,
    options: &OpenOptions,
) -> Result<Opened, StoreError> {
    let path = absolute(path)?;
    let name = path.file_name().unwrap_or_default();
    let directory = path.parent().unwrap_or(&path);
    let key = set_key(name.as_bytes(), metadata)?;
    let store = DirStore::shared(directory, options.symlinks, options.sharing)?;
    let home = Home::new(Address::of_path(directory)?, Arc::new(store));
    ReferenceStore::open(home, key, options).map(Opened::whole)
}

/// The key of a set that is called `name`, in what it lies in.
fn set_key(name: &[u8], metadata: Option<&Key>) -> Result<Key, StoreError> {
    match metadata {
        Some(metadata) => Prefix::parse(name)?.key(metadata.as_bytes()),
        None => Key::parse(name),
    }
}

/// As [`open_set`], at `url`.
#[cfg(feature = "remote")]
fn open_remote_set(
    url: &RemoteUrl,
    metadata: Option<&Key>,
    options: &OpenOptions,
) -> Result<Opened, StoreError> {
    let (directory, name) = url.parent_and_name();
    let key = set_key(&name, metadata)?;
    let address = Address::of_url(&directory)?;
    let store = RemoteStore::open(directory, &options.remote)?;
    let home = Home::new(address, Arc::new(store));
    ReferenceStore::open(home, key, options).map(Opened::whole)
}

/// The store of the hierarchy in a zip file, which is called `shown`.
fn at_hierarchy(store: ZipStore, shown: &str) -> Result<ZipStore, StoreError> {
    let root = find_hierarchy(&store)?.unwrap_or_else(Prefix::root);
    if !root.is_root() {
        log::info!("{shown}: the hierarchy is in its directory {root}");
    }
    Ok(store.below(root))
}

/// Opens the store at `url`, or in the zip file at `url`.
#[cfg(feature = "remote")]
fn open_remote(url: &RemoteUrl, options: &OpenOptions) -> Result<Opened, StoreError> {
    let (directory, name) = url.parent_and_name();
    if is_named_as_set(&name) {
        return open_remote_set(url, None, options);
    }
    if name == METADATA {
        return open_remote_set(&directory, Some(&Key::parse(METADATA)?), options);
    }
    match open_remote_zip(url, options)? {
        Ok(zip) => {
            let shown = one_line(&url.to_string());
            Ok(Opened::whole(at_hierarchy(zip, &shown)?))
        }
        Err(store) => Ok(Opened {
            store: Arc::new(store),
            has_keys: true,
        }),
    }
}

/// Opens the zip file at `url`, or else the store whose keys are below it.
#[cfg(feature = "remote")]
fn open_remote_zip(
    url: &RemoteUrl,
    options: &OpenOptions,
) -> Result<Result<ZipStore, RemoteStore>, StoreError> {
    let mut store = RemoteStore::open(url.clone(), &options.remote)?;
    let mut first = store.ask_first()?;
    if first.is_directory {
        store.note_page();
    }
    if let Some(found) = first.single.take() {
        let shown = one_line(&url.to_string());
        let (object, key) = (&found.object, &found.key);
        let zip = ZipStore::of_object(&found.store, key, Arc::clone(object), shown.clone())?;
        if let Some(zip) = zip {
            let described = format!("{shown}: a zip file of {}", found.version);
            log::info!("{described}");
            return Ok(Ok(zip.described_as(described)));
        }
        if !may_be_listing(&**object)? && !store.has_names()? {
            let size = object.meta().size();
            return Err(unsupported(format!(
                "{shown}: one object of {size} bytes, which is no zip file; name what holds the \
                 metadata documents (`zarr.json`, `.zgroup`, `.zarray`)"
            )));
        }
        store.note_page();
    }
    store.check(first)?;
    Ok(Err(store))
}

/// Whether `object` may be what a server answers for a directory: a page of HTML, or nothing.
#[cfg(feature = "remote")]
fn may_be_listing(object: &dyn Object) -> Result<bool, StoreError> {
    let len = object.meta().size().min(512);
    let mut start = vec![0; usize::try_from(len).unwrap_or(0)];
    object.read_at(0, &mut start)?;
    let text = start.trim_ascii_start();
    let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
    Ok(text.is_empty() || text.starts_with(b"<"))
}

impl fmt::Display for Location {
    /// The text for the mount table: one line, in which bytes that are not UTF-8 are replaced.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Location::Directory(path) | Location::Zip(path) | Location::References(path) => {
                f.write_str(&one_line(&path.to_string_lossy()))
            }
            Location::Demo => f.write_str(DEMO),
            #[cfg(feature = "remote")]
            Location::Remote(url) => f.write_str(&one_line(&url.to_string())),
            Location::InZip(zip, path) => {
                let path = String::from_utf8_lossy(path.as_bytes());
                write!(f, "{zip}|zip:{}", one_line(&path))
            }
            #[cfg(feature = "icechunk")]
            Location::Icechunk(location, address) => {
                let address = one_line(&address.to_string());
                write!(f, "{location}|icechunk:{address}")
            }
        }
    }
}

fn one_line(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_control() { '\u{fffd}' } else { c })
        .collect()
}

/// Scheme and rest of `scheme://rest`; `None` for a path with a `/` before the `://`.
fn split_bytes(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let at = text.windows(3).position(|part| part == b"://")?;
    let (scheme, rest) = text.split_at(at);
    let is_scheme = !scheme.is_empty() && !scheme.contains(&b'/');
    is_scheme.then_some((scheme, rest.get(3..)?))
}

fn unsupported(message: impl Into<String>) -> StoreError {
    StoreError::Unsupported(message.into())
}

fn refuse_path(path: &Path, error: &std::io::Error) -> StoreError {
    let key = one_line(&path.to_string_lossy());
    match error.kind() {
        std::io::ErrorKind::NotFound => StoreError::Io {
            key,
            message: "no such file or directory".to_owned(),
            errno: error.raw_os_error(),
        },
        std::io::ErrorKind::PermissionDenied => StoreError::Denied {
            key,
            reason: "no permission".to_owned(),
        },
        _ => StoreError::io(key, error),
    }
}

fn refuse_file(path: &Path) -> StoreError {
    let shown = one_line(&path.to_string_lossy());
    unsupported(format!(
        "{shown}: neither a directory nor a zip file, nor called *.json as a set of references; name the \
         directory that holds the metadata documents (`zarr.json`, `.zgroup`, `.zarray`)"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(argument: &str) -> String {
        Location::parse(OsStr::new(argument))
            .expect_err(argument)
            .to_string()
    }

    #[test]
    fn the_demo_and_directories_are_stores() {
        assert_eq!(Location::parse("demo:".as_ref()).unwrap(), Location::Demo);
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path();
        let location = Location::parse(path.as_os_str()).unwrap();
        assert_eq!(location, Location::Directory(path.to_owned()));
        assert_eq!(location.to_string(), path.display().to_string());
        open_store(&location, Symlinks::Inside).unwrap();
    }

    #[test]
    fn names_are_told_from_paths() {
        for name in ["demo:", "s3://b/a", "zip::https://example.org/a.zip"] {
            assert!(Location::is_name(name.as_ref()), "{name}");
        }
        for path in ["demo", "demo:a", "./https://a", "a/s3://b", "/data/a:b"] {
            assert!(!Location::is_name(path.as_ref()), "{path}");
        }
    }

    #[test]
    fn a_zip_suffix_does_not_spoil_a_directory() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.zarr.zip");
        std::fs::create_dir(&path).unwrap();
        assert!(Location::parse(path.as_os_str()).is_ok());
    }

    #[test]
    fn everything_else_is_refused_by_name() {
        let directory = tempfile::tempdir().unwrap();
        let file = |name: &str| {
            let path = directory.path().join(name);
            std::fs::write(&path, b"PK").unwrap();
            path.to_str().unwrap().to_owned()
        };
        for (argument, expected) in [
            ("", "STORE is empty"),
            ("ftp://example.org/a.zarr", "ftp://: this scheme"),
            ("simplecache::https://example.org/a.zip", "chains of URLs"),
            ("file:///no/a.zarr", "/no/a.zarr: no such file or directory"),
            ("file://host/a.zarr", "a file URL has no host"),
            ("/nowhere/a::b", "/nowhere/a::b: no such file"),
            (&file("a.zarr.ZIP"), "neither a directory nor a zip file"),
            (&file("zarr.json"), "name the directory that holds"),
            (
                "/nowhere/a.zarr",
                "/nowhere/a.zarr: no such file or directory",
            ),
            ("./https://a", "no such file or directory"),
        ] {
            let message = message(argument);
            assert!(message.contains(expected), "{argument}: {message}");
        }
    }

    #[test]
    fn file_urls_are_decoded() {
        for (url, expected) in [
            ("file:///data/a%20b.zarr", Some("/data/a b.zarr")),
            ("FILE://localhost/a%2", Some("/a%2")),
            ("/data/a.zarr", None),
            ("s3://b/a", None),
        ] {
            let path = path_of_file_url(OsStr::new(url)).unwrap();
            assert_eq!(path.as_deref(), expected.map(Path::new), "{url}");
        }
    }

    #[test]
    fn the_table_of_mounts_keeps_its_lines() {
        let location = Location::Directory(PathBuf::from("/data/a\nb c.zarr"));
        assert_eq!(location.to_string(), "/data/a\u{fffd}b c.zarr");
    }
}
