//! How the store at a location is opened.
//!
//! A directory or a remote store may be an Icechunk repository or a set of references, which its documents show
//! (`kinds`). A URL of one object may be that of a zip file.
//!
//! A zip file often contains one directory with its own name. Where its root holds no Zarr metadata
//! and exactly one directory in the root does, that directory is the root of the store.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

#[cfg(feature = "remote")]
use super::Object;
#[cfg(feature = "icechunk")]
use super::icechunk::{IcechunkAddress, IcechunkStore};
use super::kinds::{StoreKind, kind_of};
#[cfg(feature = "remote")]
use super::location::{METADATA, one_line};
use super::location::{absolute, metadata_at, unsupported};
use super::nested::{NestedForms, NestedStores};
use super::packed::find_hierarchy;
#[cfg(feature = "remote")]
use super::references::is_named_as_set;
#[cfg(feature = "remote")]
use super::remote::{RemoteOptions, RemoteStore, RemoteUrl};
use super::targets::{Address, Home};
use super::{
    AllowedPrefix, DirStore, Key, Location, Prefix, ReferenceStore, Sharing, Store, StoreError,
    Symlinks, ZipStore, demo,
};

/// How a store is opened.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OpenOptions {
    /// Where symbolic links may lead to, in directories.
    pub symlinks: Symlinks,
    /// Which users the reported modes are for.
    pub sharing: Sharing,
    /// The places that references may name, besides the store that their own set lies in.
    pub allowed_references: Vec<AllowedPrefix>,
    /// Whether the store is read by its own keys, even if it has documents of other kinds of stores.
    pub by_keys: bool,
    /// The memory that files with the places of chunks may take; `None` stands for 256 MiB.
    pub memory_bytes: Option<u64>,
    /// How remote stores are reached.
    #[cfg(feature = "remote")]
    pub remote: RemoteOptions,
}

/// Opens the store at `location` for this user alone. `symlinks` applies to directories only.
///
/// # Errors
/// Those of [`open_store_for`].
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
/// Those of [`DirStore::open`], [`ZipStore::open`] and [`RemoteStore::open`]; when a repository cannot be read; and
/// [`StoreError::Unsupported`] for a URL of one object that is no zip file, and for a directory that is a store of two
/// kinds.
pub fn open_store_for(
    location: &Location,
    options: &OpenOptions,
) -> Result<Arc<dyn Store>, StoreError> {
    open_at(location, options).map(|opened| opened.store)
}

/// Like [`open_store_for`]. In a directory of stores, `forms` says which stores are looked into.
///
/// # Errors
/// Those of [`open_store_for`].
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
    /// Whether its keys are the paths below its directory or URL, so that there may be other stores in it.
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
        "{shown}: |zip: leads into a zip file, and this is no zip file"
    ))
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

/// Like [`open_set`], at `url`.
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

/// The store of the hierarchy in a zip file, which is called `shown`.
fn at_hierarchy(store: ZipStore, shown: &str) -> Result<ZipStore, StoreError> {
    let root = find_hierarchy(&store)?.unwrap_or_else(Prefix::root);
    if !root.is_root() {
        log::info!("{shown}: the hierarchy is in its directory {root}");
    }
    Ok(store.below(root))
}
