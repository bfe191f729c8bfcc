//! The object at the URL of a store itself, if there is one: a zip file.
//!
//! The keys of a store are paths below its URL, so the object at the URL itself has no key. It is the only
//! object of a separate store.

use std::fmt::Display;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Instant, SystemTime};

use bytes::Bytes;
use object_store::{GetOptions, GetRange};

use super::RemoteStore;
use super::body::joined;
use super::failure::Failure;
use super::first_bytes::FirstBytes;
use super::object::RemoteObject;
use super::remembered::Known;
use super::shared::Shared;
use super::tag::Pinned;
use crate::store::zip::TAIL_BYTES;
use crate::store::{Key, Object, Store};

/// A server that sends no ranges sends objects of up to this length whole.
const MOST_WHOLE_BYTES: u64 = 1 << 20;

/// The object at a URL.
#[derive(Debug)]
pub(in crate::store) struct SingleObject {
    /// The store in which it is the only object.
    pub(in crate::store) store: Arc<dyn Store>,
    pub(in crate::store) key: Key,
    /// The current version.
    pub(in crate::store) object: Arc<dyn Object>,
    /// The attributes of the version, in words.
    pub(in crate::store) version: String,
}

impl RemoteStore {
    /// The store that has the object at the URL itself, and the key of that object. `None` for a
    /// URL of a bucket or a host.
    pub(super) fn of_url_itself(&self) -> Option<(RemoteStore, Key)> {
        let shared = &self.shared;
        let key = Key::parse(self.url.name()?.as_bytes()).ok()?;
        let store = RemoteStore {
            url: self.url.clone(),
            shared: Arc::new(Shared {
                runtime: Arc::clone(&shared.runtime),
                client: shared.client.of_url_itself(),
                remembered: shared.remembered.emptied(),
                kept: shared
                    .kept
                    .as_ref()
                    .map(|kept| Arc::new(kept.of_url_itself())),
                is_immutable: shared.is_immutable,
                first_memory: Arc::default(),
                absent_403: false,
                hides_absence: AtomicBool::new(false),
                lacks_suffixes: AtomicBool::new(shared.lacks_suffixes.load(Ordering::Relaxed)),
            }),
            prefix_meta: self.prefix_meta,
            most_requests: self.most_requests,
            credentials: self.credentials.clone(),
            is_page: false,
        };
        Some((store, key))
    }

    /// The object that [`Shared::open_single`] found.
    pub(super) fn single(self, key: Key, (pinned, tail): (Pinned, Option<Bytes>)) -> SingleObject {
        let version = in_words(&pinned);
        let size = pinned.meta.size();
        let object = RemoteObject::new(Arc::clone(&self.shared), key.clone(), pinned);
        let object = match tail {
            Some(tail) => {
                let start = size.saturating_sub(tail.len() as u64);
                let memory = &self.shared.first_memory;
                object.with_first(FirstBytes::new(tail, start, (size, size), memory))
            }
            None => object,
        };
        SingleObject {
            store: Arc::new(self),
            key,
            object: Arc::new(object),
            version,
        }
    }
}

impl Shared {
    /// Opens the object at `key` by reading its last bytes, or the whole object if the server sends
    /// no ranges.
    pub(super) async fn open_single(&self, key: &Key) -> Result<(Pinned, Option<Bytes>), Failure> {
        match self.remembered.get(key) {
            Some(Known(Some(found))) => return Ok((found, None)),
            Some(Known(None)) if self.remembered.has_prefix(&key.to_prefix()) == Some(true) => {
                return Err(Failure::Directory);
            }
            Some(Known(None)) => return Err(Failure::Absent),
            None => {}
        }
        let begun = Instant::now();
        let read = if self.lacks_suffixes.load(Ordering::Relaxed) {
            self.client.head(key).await.map(|found| (found, None))
        } else {
            let range = GetRange::Suffix(TAIL_BYTES);
            let read = self.client.get_first(key, range, None).await;
            read.map(|(found, _, body)| (found, Some(body)))
        };
        let (found, body) = match read {
            // An empty object has no last bytes.
            Err(Failure::BeyondEnd) => (self.client.head(key).await?, None),
            Err(Failure::NotPartial) => {
                self.lacks_suffixes.store(true, Ordering::Relaxed);
                self.client.get_whole(key, MOST_WHOLE_BYTES).await?
            }
            // Some servers do not send the last bytes of an object. A web server may answer so for a directory.
            Err(Failure::Unusable(_)) if !self.client.is_web() => {
                let found = self.client.head(key).await?;
                self.lacks_suffixes.store(true, Ordering::Relaxed);
                (found, None)
            }
            Err(Failure::Absent) => {
                self.remembered.put(key, begun, None);
                return Err(Failure::Absent);
            }
            Err(Failure::Directory) => {
                self.remembered.put(key, begun, None);
                self.remembered.put_prefix(&key.to_prefix(), begun);
                return Err(Failure::Directory);
            }
            read => read?,
        };
        self.remembered.put(key, begun, Some(found.clone()));
        Ok((found, body.map(|body| joined(&body))))
    }
}

fn in_words(found: &Pinned) -> String {
    let size = found.meta.size();
    match &found.tag {
        Some(tag) => format!("{size} bytes, ETag {tag}"),
        None => match date(found.meta.version.mtime) {
            Some(date) => format!("{size} bytes, changed {date}"),
            None => format!("{size} bytes"),
        },
    }
}

/// `time` as a date. The result has the type of a date in a condition of a request.
fn date(time: SystemTime) -> Option<impl Display> {
    let mut options = GetOptions::new();
    options.if_unmodified_since = Some(time.into());
    options.if_unmodified_since
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_version_without_a_tag_is_described_by_its_date() {
        let time = SystemTime::UNIX_EPOCH + Duration::from_secs(1_795_886_473);
        let told = date(time).map(|date| date.to_string());
        assert_eq!(told.as_deref(), Some("2026-11-28 17:21:13 UTC"));
    }
}
