//! Requests to a store that has other stores in it. Each request goes to one of the inner stores, or to the outer one.

use std::collections::VecDeque;
use std::sync::Arc;

use super::contents::Contents;
use super::form::{NamedForm, named_forms};
use super::listing::LookingListing;
use super::{NestedForms, NestedKey, NestedStores, Place};
use crate::store::references::metadata_key;
use crate::store::{
    AnswerTimes, Cursor, Detail, FetchBuffer, FetchRequest, Fetched, FirstRead, Key, Listing,
    Object, ObjectMeta, Prefix, Profile, Stat, Store, StoreError,
};

/// Whether a store may be above `key`.
fn may_be_nested(key: &Key) -> bool {
    named_forms(key.parent().as_bytes()).next().is_some()
}

impl Store for NestedStores {
    fn inner(&self) -> Option<&dyn Store> {
        Some(&*self.within)
    }

    fn stat(&self, key: &Key) -> Result<Option<Stat>, StoreError> {
        if let Some(NestedKey { store, key }) = self.place_of(key)? {
            return store.stat(&key);
        }
        let form = NamedForm::of(key.as_bytes()).filter(|_| self.is_on_server);
        let form = form.filter(|&form| self.looks_into(form, key));
        // The attributes of a file on a server come with the bytes that say what it holds.
        let object = form.map_or(Ok(None), |form| self.object_at(key, form))?;
        let stat = match object {
            Some(meta) => Some(Stat::of_object(meta)),
            None => self.within.stat(key)?,
        };
        Ok(stat.map(|stat| Stat {
            below: self.prefix_below(key, &stat),
            ..stat
        }))
    }

    fn stat_many(&self, keys: &[Key]) -> Vec<Result<Option<Stat>, StoreError>> {
        if keys.iter().any(may_be_nested) {
            return keys.iter().map(|key| self.stat(key)).collect();
        }
        let found = keys.iter().zip(self.within.stat_many(keys));
        let with_below = found.map(|(key, found)| {
            Ok(found?.map(|stat| Stat {
                below: self.prefix_below(key, &stat),
                ..stat
            }))
        });
        with_below.collect()
    }

    fn stat_objects(&self, keys: &[Key]) -> Vec<Result<Option<ObjectMeta>, StoreError>> {
        if !keys.iter().any(may_be_nested) {
            return self.within.stat_objects(keys);
        }
        let each = keys.iter().map(|key| match self.place_of(key)? {
            Some(NestedKey { store, key }) => store.stat_object(&key),
            None => self.within.stat_object(key),
        });
        each.collect()
    }

    fn stat_root(&self) -> Result<ObjectMeta, StoreError> {
        self.within.stat_root()
    }

    fn open(&self, key: &Key) -> Result<Option<Arc<dyn Object>>, StoreError> {
        match self.place_of(key)? {
            Some(NestedKey { store, key }) => store.open(&key),
            None => self.within.open(key),
        }
    }

    fn open_reading(
        &self,
        key: &Key,
        first: FirstRead,
    ) -> Result<Option<Arc<dyn Object>>, StoreError> {
        match self.place_of(key)? {
            Some(NestedKey { store, key }) => store.open_reading(&key, first),
            None => self.within.open_reading(key, first),
        }
    }

    fn fetch(
        &self,
        key: &Key,
        most_bytes: u64,
        buffer: &mut dyn FetchBuffer,
    ) -> Result<Option<Fetched>, StoreError> {
        match self.place_of(key)? {
            Some(NestedKey { store, key }) => store.fetch(&key, most_bytes, buffer),
            None => self.within.fetch(key, most_bytes, buffer),
        }
    }

    fn fetch_many(
        &self,
        requests: &mut [FetchRequest<'_>],
    ) -> Vec<Result<Option<Fetched>, StoreError>> {
        let Some(first) = requests.iter().find(|request| may_be_nested(request.key)) else {
            return self.within.fetch_many(requests);
        };
        let parent = first.key.parent();
        if requests
            .iter()
            .all(|request| request.key.parent() == parent)
        {
            return match self.place(&parent) {
                Ok(Place::Outside) => self.within.fetch_many(requests),
                Ok(Place::Within(store, path)) => fetch_below(&*store, &path, requests),
                Err(error) => requests.iter().map(|_| Err(error.clone())).collect(),
            };
        }
        let each = requests.iter_mut();
        each.map(|request| self.fetch(request.key, request.most_bytes, request.buffer))
            .collect()
    }

    fn list(
        &self,
        prefix: &Prefix,
        after: Cursor,
        detail: Detail,
    ) -> Result<Option<Box<dyn Listing>>, StoreError> {
        if let Place::Within(store, path) = self.place(prefix)? {
            return store.list(&path, after, detail);
        }
        let listing = self.within.list(prefix, after, detail)?;
        let may_look = self.forms == NestedForms::All && self.is_on_server;
        Ok(match listing {
            Some(listing) if may_look && !self.is_known_hierarchy(prefix) => {
                Some(Box::new(LookingListing {
                    within: Arc::clone(&self.within),
                    known: Arc::clone(&self.known),
                    prefix: prefix.clone(),
                    listing,
                    ahead: VecDeque::new(),
                }))
            }
            listing => listing,
        })
    }

    fn profile(&self) -> Profile {
        self.profile
    }

    fn known_object(&self, key: &Key) -> Option<Option<ObjectMeta>> {
        if may_be_nested(key) {
            return None;
        }
        self.within.known_object(key)
    }

    fn told_at(&self, key: &Key) -> Option<AnswerTimes> {
        match self.place_of(key) {
            Ok(Some(NestedKey { store, key })) => store.told_at(&key),
            Ok(None) | Err(_) => self.within.told_at(key),
        }
    }

    fn ask_again_for(&self, keys: &[Key]) {
        let files = keys.iter().flat_map(|key| {
            let parent = key.parent();
            let above = named_forms(parent.as_bytes()).filter_map(|(end, form)| {
                let path = Prefix::parse(parent.as_bytes().get(..end)?).ok()?;
                match form {
                    NamedForm::Parquet => {
                        let file = metadata_key(&path).ok()?;
                        // The set has its answers about chunks from other files, too.
                        let within = key.as_bytes().get(end + 1..).map(Key::parse);
                        if let (Some(set), Some(Ok(key))) = (self.open.known(&file), within) {
                            set.ask_again_for(&[key]);
                        }
                        Some(file)
                    }
                    NamedForm::Zip | NamedForm::Json => path.to_key(),
                }
            });
            above.collect::<Vec<_>>()
        });
        let all: Vec<Key> = files.chain(keys.iter().cloned()).collect();
        self.within.ask_again_for(&all);
    }

    fn is_unopened(&self, path: &Prefix) -> bool {
        let form = NamedForm::of(path.as_bytes());
        let (Some(key), Some(form)) = (path.to_key(), form) else {
            return false;
        };
        let is_costly = form == NamedForm::Json || form == NamedForm::Zip && self.is_on_server;
        if !is_costly || !self.looks_into(form, &key) {
            return false;
        }
        let Ok(Some(meta)) = self.object_at(&key, form) else {
            return false;
        };
        let is_store = match self.known.get(&key, &meta.version) {
            Some(Contents::Other | Contents::Damaged(_)) => false,
            Some(Contents::Zip(_) | Contents::References) => true,
            None => form == NamedForm::Zip,
        };
        is_store && self.open.get(&key, &meta.version).is_none()
    }
}

/// [`Store::fetch_many`] of keys in one prefix, which is at `path` of `store`.
fn fetch_below(
    store: &dyn Store,
    path: &Prefix,
    requests: &mut [FetchRequest<'_>],
) -> Vec<Result<Option<Fetched>, StoreError>> {
    let keys = requests.iter().map(|request| path.key(request.key.name()));
    let keys: Vec<Key> = match keys.collect() {
        Ok(keys) => keys,
        Err(error) => {
            return requests
                .iter()
                .map(|_| Err(StoreError::clone(&error)))
                .collect();
        }
    };
    let below = requests.iter_mut().zip(&keys);
    let below = below.map(|(request, key)| FetchRequest {
        key,
        most_bytes: request.most_bytes,
        buffer: &mut *request.buffer,
    });
    let mut below: Vec<_> = below.collect();
    store.fetch_many(&mut below)
}
