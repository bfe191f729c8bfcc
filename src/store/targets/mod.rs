//! The objects that references name: which of them are read, and how.
//!
//! A set of references or a repository may come from anyone, so it decides nothing about what is read. What is said of
//! a set here holds for a repository too:
//!
//! * Targets below the directory or prefix that the set lies in are read as the set itself is, with its
//!   credentials.
//! * Other targets are read only below a prefix that the user allows ([`AllowedPrefix`]), and without
//!   credentials, which belong to the set.
//! * A file is found by the kernel below the allowed directory, as the files of [`DirStore`] are, and
//!   is shown to those users who may read it and may search all directories on the way to it.
//! * A name of a web server may not stand for a private address, and no redirect may lead to one,
//!   unless a prefix has the address itself. Nothing is read over HTTP where the set is read over HTTPS.

mod address;
mod allowed;
mod opened;
mod refused;
mod seen;
mod target;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use self::opened::OpenedStores;
use self::seen::SeenTargets;
use self::target::{RangeObject, Target, TargetRights};
use crate::store::dir::rights::readers_through;
#[cfg(feature = "remote")]
use crate::store::remote::{PrivateAddresses, RemoteOptions, RemoteStore, Service};
use crate::store::{
    DirStore, Key, Object, ObjectMeta, OpenOptions, Prefix, Sharing, Store, StoreError, Symlinks,
    Version,
};

pub(in crate::store) use self::address::Address;
pub use self::allowed::AllowedPrefix;
pub(in crate::store) use self::refused::Refused;
#[cfg(feature = "icechunk")]
pub(in crate::store) use self::target::Checksum;
pub(in crate::store) use self::target::Reference;

/// How long answers about targets are trusted, at least.
#[cfg(feature = "remote")]
const FOREIGN_TTL: Duration = Duration::from_secs(60);

/// The time in which a server whose store could not be opened is not asked again. Readers that have waited for the same
/// answer would each wait as long for the next one.
const FAILED: Duration = Duration::from_secs(5);

/// Parses the address of a target, which may be a path from the directory of another address.
type ParseAddress = fn(&str, &Address) -> Result<Address, StoreError>;

/// Decides which targets are read, and reads them. Shared by all requests of a mount.
#[derive(Debug)]
pub(in crate::store) struct Targets {
    /// The directory or prefix that the set lies in.
    home: Home,
    /// How addresses of targets are parsed.
    parse: ParseAddress,
    allowed: Vec<AllowedPrefix>,
    options: OpenOptions,
    /// Stores of the prefixes, by the directory or the root of the server, opened when they are needed.
    opened: OpenedStores,
    seen: Arc<SeenTargets>,
}

/// The directory or prefix that a set of references lies in, or that of a repository.
#[derive(Debug, Clone)]
pub(in crate::store) struct Home {
    /// Where it is.
    pub(in crate::store) address: Address,
    /// A store that has all that lies below it.
    pub(in crate::store) store: Arc<dyn Store>,
    /// Its prefix in that store.
    pub(in crate::store) path: Prefix,
}

impl Home {
    /// The directory or prefix at `address`, which is the root of `store`.
    pub(in crate::store) fn new(address: Address, store: Arc<dyn Store>) -> Home {
        let path = Prefix::root();
        Home {
            address,
            store,
            path,
        }
    }
}

impl Targets {
    /// The targets of a set that lies in `home`, whose addresses `parse` parses. Sends no request.
    pub(in crate::store) fn new(home: Home, parse: ParseAddress, options: &OpenOptions) -> Targets {
        Targets {
            home,
            parse,
            allowed: options.allowed_references.clone(),
            options: options.clone(),
            opened: OpenedStores::new(FAILED),
            seen: Arc::new(SeenTargets::new(is_immutable(options))),
        }
    }

    /// Attributes of the object `key`, which is `reference` in the set with the attributes `set`.
    ///
    /// # Errors
    /// [`StoreError`] where the target cannot be examined, and the reference does not have the length either.
    pub(in crate::store) fn stat(
        &self,
        key: &Key,
        reference: &Reference<'_>,
        set: &ObjectMeta,
    ) -> Result<ObjectMeta, StoreError> {
        let found = self.find(key, reference.address);
        let found = found.and_then(|target| RangeObject::stat(&target, reference, set));
        found.or_else(|error| told_when_opened(error, reference, set))
    }

    /// Like [`Targets::stat`]; `None` if that would take a request to a server.
    ///
    /// # Errors
    /// Those of [`Targets::stat`].
    pub(in crate::store) fn stat_at_once(
        &self,
        key: &Key,
        reference: &Reference<'_>,
        set: &ObjectMeta,
    ) -> Result<Option<ObjectMeta>, StoreError> {
        if reference.range.is_none() {
            let target = self.find(key, reference.address);
            if target.is_ok_and(|target| !target.is_known_at_once()) {
                return Ok(None);
            }
        }
        self.stat(key, reference, set).map(Some)
    }

    /// `meta` of the object at `key` of the store that the set lies in, with the rights of those users who may reach it
    /// from the directory of the set.
    pub(in crate::store) fn reachable(&self, key: &Key, meta: ObjectMeta) -> ObjectMeta {
        let root = self.home.address.local_path();
        let Some(root) = root.filter(|_| self.options.sharing == Sharing::Others) else {
            return meta;
        };
        // An unknown right is granted only to the owner.
        let below = self.home.path.strip(key.as_bytes()).unwrap_or_default();
        let below = Prefix::parse(below).unwrap_or_else(|_| key.to_prefix());
        let way = readers_through(&root, &below);
        let bits = way.map_or(0o400, |readers| readers.bits_for(meta.access()));
        let mode = meta.mode & bits;
        ObjectMeta { mode, ..meta }
    }

    /// Opens the object `key`, as [`Targets::stat`] examines it.
    ///
    /// # Errors
    /// [`StoreError::Denied`] where the target may not be read; [`StoreError::Io`] where it is missing, which is not
    /// the absence of the key; [`StoreError::Damaged`] where it ends before the range does. For an object on a server,
    /// the errors may come when it is read.
    pub(in crate::store) fn open(
        &self,
        key: &Key,
        reference: &Reference<'_>,
        set: &ObjectMeta,
    ) -> Result<Arc<dyn Object>, StoreError> {
        let target = self.find(key, reference.address)?;
        Ok(Arc::new(RangeObject::open(key, target, reference, set)?))
    }

    /// Why the target at `text` is not read; `None` if it is.
    pub(in crate::store) fn refusal(&self, text: &str) -> Option<String> {
        let address = match (self.parse)(text, &self.home.address) {
            Ok(address) => address,
            Err(error) => return Some(error.to_string()),
        };
        if address.below(&self.home.address).is_some() {
            return None;
        }
        #[cfg(feature = "remote")]
        if address.is_less_secret_than(&self.home.address) {
            return Some(format!(
                "{address} would be read over http:, and the set of references came over https:"
            ));
        }
        if self.allowing(&address).is_some() {
            return None;
        }
        let parent = address.parent();
        Some(format!(
            "the reference is to {address}, which is outside {}; --allow-refs {parent} allows it",
            self.home.address
        ))
    }

    /// The prefix that `text` lies in, for the list of those that are not read.
    pub(in crate::store) fn directory_of(&self, text: &str) -> String {
        let address = (self.parse)(text, &self.home.address);
        address.map_or_else(
            |error| error.to_string(),
            |found| found.parent().to_string(),
        )
    }

    /// Whether a target may be on a server, so that reading it takes longer than a system call.
    pub(in crate::store) fn may_be_remote(&self) -> bool {
        let mut allowed = self.allowed.iter();
        !self.home.store.profile().is_local || allowed.any(|it| it.0.local_path().is_none())
    }

    /// How many requests may be in flight.
    pub(in crate::store) fn most_in_flight(&self) -> usize {
        let home = self.home.store.profile().most_in_flight;
        #[cfg(feature = "remote")]
        if self.may_be_remote() {
            return home.max(self.options.remote.most_requests());
        }
        home
    }

    /// Like [`Store::useful_in_flight`]. That of servers other than the set's own is not known.
    pub(in crate::store) fn useful_in_flight(&self) -> usize {
        if self.home.store.profile().is_local {
            self.most_in_flight()
        } else {
            self.home.store.useful_in_flight()
        }
    }

    fn allowing(&self, address: &Address) -> Option<&AllowedPrefix> {
        let mut allowed = self.allowed.iter();
        allowed.find(|prefix| address.below(&prefix.0).is_some())
    }

    fn find(&self, key: &Key, text: &str) -> Result<Target, StoreError> {
        if let Some(reason) = self.refusal(text) {
            return Err(StoreError::denied(key, reason));
        }
        let address = (self.parse)(text, &self.home.address)?;
        let place = self.place_of(&address);
        let store = self.store_of(&place)?;
        let shown = address.to_string();
        let rest = address.below(&place).unwrap_or_default();
        let below = Key::parse(rest)
            .map_err(|_| StoreError::Unsupported(format!("{shown}: this is no object")))?;
        let rights = match place.local_path() {
            None => TargetRights::Object,
            Some(_) if self.options.sharing == Sharing::Nobody => TargetRights::OwnFile,
            // The user has chosen to share what the set lies in, as with any other store.
            Some(root) if place == self.home.address => TargetRights::SharedFile {
                root,
                path: below.to_prefix(),
            },
            Some(_) => TargetRights::SharedFile {
                root: PathBuf::from("/"),
                path: address.path(),
            },
        };
        let key = if place == self.home.address {
            self.home.path.key(below.as_bytes())?
        } else {
            below
        };
        Ok(Target {
            store,
            key,
            shown,
            rights,
            seen: Arc::clone(&self.seen),
        })
    }

    /// The directory, or the root of the server, whose store has the object at `address`, which may be read.
    fn place_of(&self, address: &Address) -> Address {
        let home = &self.home.address;
        if address.below(home).is_some() {
            return home.clone();
        }
        match self.allowing(address) {
            // A prefix may be a single file.
            Some(AllowedPrefix(prefix)) => match prefix.local_path() {
                Some(path) if path.is_dir() => prefix.clone(),
                Some(_) => address.parent(),
                None => address.root(),
            },
            None => address.parent(),
        }
    }

    fn store_of(&self, place: &Address) -> Result<Arc<dyn Store>, StoreError> {
        if *place == self.home.address {
            return Ok(Arc::clone(&self.home.store));
        }
        self.opened.get(place, || self.opened_store(place))
    }

    fn opened_store(&self, place: &Address) -> Result<Arc<dyn Store>, StoreError> {
        if let Some(path) = place.local_path() {
            // A link could lead out of what was allowed.
            let (symlinks, sharing) = (Symlinks::Inside, self.options.sharing);
            return Ok(Arc::new(DirStore::shared(&path, symlinks, sharing)?));
        }
        #[cfg(feature = "remote")]
        if let Some(url) = place.server_url() {
            let options = self.foreign_options(url.service);
            return Ok(Arc::new(RemoteStore::open(url, &options)?));
        }
        Err(StoreError::Unsupported(format!(
            "{place}: cannot be opened"
        )))
    }

    /// The options for servers that the user has named for references alone.
    #[cfg(feature = "remote")]
    fn foreign_options(&self, service: Service) -> RemoteOptions {
        let given = &self.options.remote;
        let addresses = self.allowed.iter().filter_map(|it| it.0.literal_host());
        let n_servers = self.allowed.iter().filter(|it| it.0.local_path().is_none());
        let n_stores = n_servers.count() as u64 + 1;
        RemoteOptions {
            anonymous: true,
            // A version is asked for once in this time, and one set names many objects.
            time_to_live: given.time_to_live.map(|ttl| ttl.max(FOREIGN_TTL)),
            profile: None,
            requester_pays: false,
            headers: Vec::new(),
            // Answers to all servers share the part of the budget that answers may take.
            budget_bytes: given.budget_bytes / n_stores,
            private_addresses: match service {
                Service::Http => PrivateAddresses::Only(addresses.collect()),
                // The user has configured the servers of clouds.
                Service::S3 | Service::Gcs | Service::Azure => PrivateAddresses::All,
            },
            ..given.clone()
        }
    }
}

/// Whether nothing ever changes on servers.
#[cfg(feature = "remote")]
fn is_immutable(options: &OpenOptions) -> bool {
    options.remote.time_to_live.is_none()
}

/// There are no servers.
#[cfg(not(feature = "remote"))]
fn is_immutable(_options: &OpenOptions) -> bool {
    true
}

/// Attributes of an object whose target gives `error` when it is examined. The object exists, and the error comes when
/// it is opened: other chunks of its array are read.
///
/// # Errors
/// `error`, where the length of the object is not known.
fn told_when_opened(
    error: StoreError,
    reference: &Reference<'_>,
    set: &ObjectMeta,
) -> Result<ObjectMeta, StoreError> {
    let is_denied = matches!(error, StoreError::Denied { .. });
    let len = reference.range.map(|(_, len)| len);
    let meta = sized(len.or(is_denied.then_some(0)).ok_or(error)?, set);
    let mode = if is_denied { 0 } else { meta.mode };
    Ok(ObjectMeta { mode, ..meta })
}

/// Attributes of an object of this length, which is of the version of the set.
pub(in crate::store) fn sized(size: u64, set: &ObjectMeta) -> ObjectMeta {
    ObjectMeta {
        version: Version {
            size,
            tag: set.version.fingerprint(),
            ..set.version
        },
        mode: set.mode & 0o444,
        ..*set
    }
}

#[cfg(test)]
mod tests;
