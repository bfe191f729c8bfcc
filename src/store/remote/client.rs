//! The client of a server. Its requests are sent by the modules [`reads`](super::reads),
//! [`attributes`](super::attributes) and [`pages`](super::pages).

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, SystemTime};

use object_store::list::PaginatedListStore;
use object_store::path::Path;
use object_store::{ObjectMeta as ServerMeta, ObjectStore};

use super::backend::Backend;
use super::credentials::access::Access;
use super::flow::Flow;
use super::methods::Methods;
use super::options::RemoteOptions;
use super::statistics::RemoteStatistics;
use super::tag::{LastModified, Pinned};
use super::url::{RemoteUrl, Service};
use crate::store::{Key, Prefix};

/// A client of one store.
#[derive(Clone)]
pub(super) struct RemoteClient {
    pub(super) store: Arc<dyn ObjectStore>,
    pub(super) pages: Option<Arc<dyn PaginatedListStore>>,
    /// The prefix of all keys in the bucket, with a slash at the end unless it is empty.
    base: String,
    /// The path of the URL on a web server. Its listings have this path before each name.
    pub(super) web_root: String,
    /// Whether the store is the one object at the URL itself. Then every key names this object.
    is_single: bool,
    pub(super) flow: Arc<Flow>,
    pub(super) statistics: Arc<RemoteStatistics>,
    /// How long a request and its repetitions may take.
    pub(super) deadline: Duration,
    /// The longest object that is read whole if the server cannot send parts.
    pub(super) most_whole_bytes: u64,
    /// Whether the message that requests are repeated was logged.
    pub(super) is_patient: Arc<AtomicBool>,
    /// Whether a connection to the server was ever made.
    pub(super) is_reached: Arc<AtomicBool>,
    pub(super) seen: Arc<Seen>,
    pub(super) access: Access,
    pub(super) last_modified: LastModified,
    pub(super) methods: Arc<Methods>,
    /// Whether no request is sent (`--offline`).
    pub(super) is_offline: bool,
}

/// Properties of the server that its answers to one client have shown.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// Whether the server sends whole objects for ranges. A message is logged when this is found out.
    pub(super) sends_whole: AtomicBool,
    /// Whether the server sent a whole document for a range.
    pub(super) lacks_parts: AtomicBool,
    /// Whether the server has sent a page of names.
    pub(super) has_listed: AtomicBool,
    /// Whether all requests for a page of names failed for as long as requests are repeated. Later ones are sent once.
    pub(super) fails_to_list: AtomicBool,
    /// Whether the message that names are left out was logged.
    pub(super) left_out_names: AtomicBool,
}

impl fmt::Debug for RemoteClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RemoteClient({:?}, {:?})", self.base, self.flow)
    }
}

impl RemoteClient {
    /// A client of the store at `url`.
    pub(super) fn new(url: &RemoteUrl, options: &RemoteOptions, backend: &Backend) -> RemoteClient {
        let base = if backend.path.is_empty() {
            String::new()
        } else {
            format!("{}/", backend.path)
        };
        let disk_cache = options.disk_cache.as_ref();
        RemoteClient {
            store: Arc::clone(&backend.store),
            pages: backend.pages.clone(),
            base,
            web_root: url.path_on_web().unwrap_or_default(),
            is_single: false,
            flow: Flow::new(options.most_requests(), options.budget_bytes),
            statistics: Arc::default(),
            deadline: options.timeout,
            most_whole_bytes: options.most_whole_bytes,
            is_patient: Arc::default(),
            is_reached: Arc::default(),
            seen: Arc::default(),
            access: backend.access.clone(),
            last_modified: match url.service {
                Service::S3 | Service::Gcs | Service::Azure => LastModified::OfUpload,
                Service::Http => LastModified::OfFile,
            },
            methods: Arc::default(),
            is_offline: disk_cache.is_some_and(|cache| cache.is_offline),
        }
    }

    /// A client of the object at the URL itself, which shares connections and permits with this
    /// one.
    pub(super) fn of_url_itself(&self) -> RemoteClient {
        RemoteClient {
            pages: None,
            is_single: true,
            seen: Arc::default(),
            ..self.clone()
        }
    }

    /// The version that the server describes, at a time when its clock shows `date`.
    pub(super) fn pinned(&self, found: &ServerMeta, date: Option<SystemTime>) -> Pinned {
        Pinned::new(found, date, self.last_modified)
    }

    /// Whether the server is a web server, whose answers may be wrong even for `HEAD`.
    pub(super) fn is_web(&self) -> bool {
        self.last_modified == LastModified::OfFile
    }

    /// The path of `key` in the bucket; `None` if the key is not text, or has control characters, so that no object can
    /// have it.
    pub(super) fn path(&self, key: &Key) -> Option<Path> {
        if self.is_single {
            return Path::parse(&self.base).ok();
        }
        let key = std::str::from_utf8(key.as_bytes()).ok()?;
        Path::parse(format!("{}{key}", self.base)).ok()
    }

    /// The prefix of the keys below `prefix` in the bucket.
    pub(super) fn start_of(&self, prefix: &Prefix) -> Option<String> {
        let text = std::str::from_utf8(prefix.as_bytes()).ok()?;
        let slash = if prefix.is_root() { "" } else { "/" };
        Some(format!("{}{text}{slash}", self.base))
    }
}
