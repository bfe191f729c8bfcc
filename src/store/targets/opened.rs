//! The stores that targets are in, which are opened when they are needed.

use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::address::Address;
use crate::store::{Store, StoreError};

/// Stores by the directory or the root of the server.
#[derive(Debug)]
pub(super) struct OpenedStores {
    by_place: Mutex<Vec<(Address, Arc<OpenedStore>)>>,
    /// How long an error of a server is remembered.
    failed_time: Duration,
}

/// The store of one place.
#[derive(Debug, Default)]
struct OpenedStore {
    store: OnceLock<Arc<dyn Store>>,
    /// When the store could not be opened, and why. The lock is held while the store is opened, for which a server may be
    /// asked: only those who need the same store wait for it.
    failed: Mutex<Option<(Instant, StoreError)>>,
}

impl OpenedStores {
    /// No stores. An error of a server is remembered for `failed_time`.
    pub(super) fn new(failed_time: Duration) -> OpenedStores {
        OpenedStores {
            by_place: Mutex::default(),
            failed_time,
        }
    }

    /// The store of `place`, which `open` opens if it is not open.
    ///
    /// # Errors
    /// Those of `open`, also of an earlier call.
    pub(super) fn get(
        &self,
        place: &Address,
        open: impl FnOnce() -> Result<Arc<dyn Store>, StoreError>,
    ) -> Result<Arc<dyn Store>, StoreError> {
        let opened = {
            let mut by_place = self.by_place.lock();
            if let Some((_, opened)) = by_place.iter().find(|(known, _)| known == place) {
                if let Some(store) = opened.store.get() {
                    return Ok(Arc::clone(store));
                }
                Arc::clone(opened)
            } else {
                let opened = Arc::<OpenedStore>::default();
                by_place.push((place.clone(), Arc::clone(&opened)));
                opened
            }
        };
        let mut failed = opened.failed.lock();
        if let Some(store) = opened.store.get() {
            return Ok(Arc::clone(store));
        }
        if let Some((at, error)) = &*failed
            && at.elapsed() < self.failed_time
        {
            return Err(error.clone());
        }
        match open() {
            Ok(store) => Ok(Arc::clone(opened.store.get_or_init(|| store))),
            Err(error) => {
                if place.local_path().is_none() {
                    *failed = Some((Instant::now(), error.clone()));
                } else {
                    // A set of references may name any number of directories that are not there.
                    self.by_place.lock().retain(|(known, _)| known != place);
                }
                Err(error)
            }
        }
    }
}

#[cfg(test)]
#[cfg(not(feature = "model"))]
mod tests {
    use super::*;
    use crate::store::MemoryStore;

    const HOUR: Duration = Duration::from_secs(3600);

    fn store() -> Arc<dyn Store> {
        Arc::new(MemoryStore::new())
    }

    fn failed() -> Result<Arc<dyn Store>, StoreError> {
        Err(StoreError::problem("p", "it is not reached"))
    }

    fn place(text: &str) -> Address {
        Address::parse(text, &Address::nowhere()).unwrap()
    }

    #[test]
    fn a_store_is_opened_once_while_those_of_other_places_are_used() {
        let (stores, one, other) = (OpenedStores::new(HOUR), place("/one"), place("/other"));
        let found = stores.get(&one, || {
            stores.get(&other, || Ok(store())).unwrap();
            stores.get(&other, || panic!("it is open")).unwrap();
            Ok(store())
        });
        let again = stores.get(&one, || panic!("it is open")).unwrap();
        assert!(Arc::ptr_eq(&found.unwrap(), &again));
    }

    #[test]
    fn a_directory_that_could_not_be_opened_is_not_remembered() {
        let stores = OpenedStores::new(HOUR);
        stores.get(&place("/one"), failed).unwrap_err();
        assert!(stores.by_place.lock().is_empty());
        stores.get(&place("/one"), || Ok(store())).unwrap();
    }

    #[cfg(feature = "remote")]
    #[test]
    fn the_error_of_a_server_is_remembered_for_a_while() {
        let bucket = place("s3://bucket/a");
        let stores = OpenedStores::new(HOUR);
        stores.get(&bucket, failed).unwrap_err();
        let again = stores.get(&bucket, || panic!("it was asked just now"));
        assert_eq!(again.unwrap_err().to_string(), "p: it is not reached");
        let stores = OpenedStores::new(Duration::ZERO);
        stores.get(&bucket, failed).unwrap_err();
        stores.get(&bucket, || Ok(store())).unwrap();
    }
}
