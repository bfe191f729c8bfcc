//! Single flight between threads and processes: if several of them want the same key, range or page of names at the same
//! time, one of them requests it.
//!
//! A caller that finds an entry neither in memory nor on disk claims it, requests it, keeps the answer, and releases the
//! claim. If another caller has claimed the entry, the caller waits until that claim is released, on its own thread and
//! without a permit for requests, and looks for the entry again. No circle of waits is possible: a caller that has claimed
//! keys waits only for ranges and pages, and a caller that has claimed ranges or pages does not wait. If a wait was in
//! vain, the caller sends the request itself (`patience`), so that a process that is stopped or fails only delays the
//! others for a moment.

use std::ops::Range;
use std::sync::Arc;
use std::thread::sleep;
use std::time::Duration;

use super::Kept;
use super::recall::{NOTHING, is_asked_for_anew};
use crate::store::disk_cache::{Claim, ClaimByte};
use crate::store::remote::request::{Looked, Request};
use crate::store::remote::shared::Shared;
use crate::store::remote::tag::Pinned;
use crate::store::{CancelToken, Key, StoreError};

/// The time after which a waiting thread first looks whether the claim was given up. It grows up to [`MOST_LOOK`].
const FIRST_LOOK: Duration = Duration::from_micros(500);
const MOST_LOOK: Duration = Duration::from_millis(10);

impl Kept {
    /// Waits until none of `bytes` is claimed. Returns `false` if that takes too long, or if waiting is of no use.
    ///
    /// # Errors
    /// [`StoreError::Io`] when the caller's requests, such as that about `key`, are cancelled.
    pub(super) fn wait(
        &self,
        key: Option<&Key>,
        mut bytes: Vec<ClaimByte>,
    ) -> Result<bool, StoreError> {
        if self.cache.is_paused() {
            return Ok(false);
        }
        let Some(waiting) = self.patience.begin() else {
            return Ok(false);
        };
        let token = key.and_then(|key| Some((CancelToken::current()?, key)));
        let mut pause = FIRST_LOOK;
        loop {
            bytes.retain(|&byte| self.cache.is_claimed(byte));
            if bytes.is_empty() {
                return Ok(true);
            }
            if let Some((token, key)) = &token
                && token.is_cancelled()
            {
                return Err(CancelToken::error(key));
            }
            if waiting.is_late() {
                return Ok(false);
            }
            sleep(pause);
            pause = (pause * 3 / 2).min(MOST_LOOK);
        }
    }

    /// Notes whether what was waited for was there.
    fn note_end(&self, is_found: bool) {
        self.patience.note_end(is_found);
        if is_found {
            self.cache.note_shared();
        }
    }

    fn claim_byte(&self, path: &str) -> ClaimByte {
        self.answer_name(path).claim_byte()
    }
}

impl Shared {
    /// The result of `find` for `key`, once the entries on disk were brought into memory. If `find` returns `None`, the
    /// caller has to request the object from the server. But if another mount is requesting it, this function waits for
    /// that mount, and calls `find` once more.
    ///
    /// # Errors
    /// [`StoreError::Io`] when the caller's requests are cancelled.
    pub(in crate::store::remote) fn look<T>(
        &self,
        key: &Key,
        mut find: impl FnMut() -> Option<T>,
    ) -> Result<Looked<T>, StoreError> {
        let version = self.recall(key);
        if let Some(found) = find() {
            return Ok(Looked::Found(found));
        }
        let Some((kept, byte)) = self.claimed_for(key) else {
            return Ok(Looked::Ask(version, Request::default()));
        };
        let mut claim = kept.cache.claim(byte);
        let has_waited = claim.is_none();
        if has_waited && !kept.wait(Some(key), vec![byte])? {
            return Ok(Looked::Ask(version, Request::default()));
        }
        // The answer may have been kept since.
        let version = self.recall(key);
        let found = find();
        if has_waited && may_be_vain(key, found.is_some()) {
            kept.note_end(found.is_some());
        }
        if let Some(found) = found {
            return Ok(Looked::Found(found));
        }
        if has_waited {
            claim = kept.cache.claim(byte);
        }
        Ok(Looked::Ask(version, Request::new(&kept.patience, claim)))
    }

    /// Calls `ask` with the positions of the `keys` that no other caller is requesting. Then waits for the requests of
    /// other callers, and calls `ask` with the positions of all other keys. By then, the entries of these keys on disk
    /// are in memory; `ask` also gets the versions that were kept. A key for which `is_here` is true needs no request.
    pub(in crate::store::remote) fn in_turn(
        &self,
        keys: &[Key],
        is_here: impl Fn(usize, &Key) -> bool,
        mut ask: impl FnMut(&[usize], Vec<Option<Pinned>>),
    ) {
        let (mut ours, mut versions, mut others) = (Vec::new(), Vec::new(), Vec::new());
        let mut claims = Vec::new();
        for (at, key) in keys.iter().enumerate() {
            let mut version = self.recall(key);
            if let Some((kept, byte)) = self.claimed_for(key)
                && !is_here(at, key)
            {
                let Some(claim) = kept.cache.claim(byte) else {
                    others.push((at, byte));
                    continue;
                };
                version = self.recall(key);
                if !is_here(at, key) {
                    claims.push(claim);
                }
            }
            ours.push(at);
            versions.push(version);
        }
        if !ours.is_empty() {
            let request = self
                .kept
                .as_ref()
                .map(|kept| Request::new(&kept.patience, claims));
            ask(&ours, versions);
            drop(request);
        }
        let Some(kept) = self.kept.as_ref().filter(|_| !others.is_empty()) else {
            return;
        };
        let bytes = others.iter().map(|(_, byte)| *byte).collect();
        // Nothing cancels a wait without a key.
        let has_waited = kept.wait(None, bytes).unwrap_or(false);
        let (mut rest, mut versions) = (Vec::new(), Vec::new());
        for (at, _) in others {
            if let Some(key) = keys.get(at) {
                versions.push(self.recall(key));
                let is_found = is_here(at, key);
                if has_waited && may_be_vain(key, is_found) {
                    kept.note_end(is_found);
                }
            }
            rest.push(at);
        }
        ask(&rest, versions);
    }

    /// The answers of `ask` about each of `keys`, which are kept. It is called as [`Shared::in_turn`] does.
    pub(in crate::store::remote) fn each<T>(
        &self,
        keys: &[Key],
        mut ask: impl FnMut(Vec<Key>) -> Result<Vec<Result<T, StoreError>>, StoreError>,
    ) -> Vec<Result<T, StoreError>> {
        let mut all: Vec<Option<Result<T, StoreError>>> = keys.iter().map(|_| None).collect();
        let is_here = |_, key: &Key| self.remembered.get(key).is_some();
        self.in_turn(keys, is_here, |places, _| {
            let asked: Vec<Key> = places
                .iter()
                .filter_map(|&at| keys.get(at).cloned())
                .collect();
            let found = ask(asked.clone());
            self.save_all(&asked);
            let found = found.unwrap_or_else(|error| {
                let failed = |_: &Key| Err(error.clone());
                asked.iter().map(failed).collect()
            });
            for (&at, found) in places.iter().zip(found) {
                if let Some(answer) = all.get_mut(at) {
                    *answer = Some(found);
                }
            }
        });
        let lost = || Err(StoreError::problem("remote-io", "an answer is missing"));
        all.into_iter()
            .map(|answer| answer.unwrap_or_else(lost))
            .collect()
    }

    /// Claims those of `keys` about which nothing is known, before all of them are requested at once. One of them may
    /// be a name that does not exist. If another caller requests one of them, this waits for that request first.
    pub(in crate::store::remote) fn begin_all(&self, keys: &[(&Shared, &Key)]) -> Request {
        let Some(kept) = &self.kept else {
            return Request::default();
        };
        let missing = || {
            let mut bytes = Vec::new();
            for (shared, key) in keys {
                shared.recall(key);
                if shared.remembered.get(key).is_none()
                    && let Some((_, byte)) = shared.claimed_for(key)
                {
                    bytes.push(byte);
                }
            }
            if self.kept_nothing().is_none() {
                bytes.push(kept.claim_byte(NOTHING));
            }
            bytes
        };
        let wanted = missing();
        if kept.is_offline {
            return Request::default();
        }
        let n_wanted = wanted.len();
        let claim = |bytes: Vec<ClaimByte>| -> (Vec<Claim>, Vec<ClaimByte>) {
            let (mut claims, mut others) = (Vec::new(), Vec::new());
            for byte in bytes {
                match kept.cache.claim(byte) {
                    Some(claim) => claims.push(claim),
                    None => others.push(byte),
                }
            }
            (claims, others)
        };
        let (mut claims, others) = claim(wanted);
        if !others.is_empty() {
            claims.clear();
            if kept.wait(None, others).unwrap_or(false) {
                let wanted = missing();
                kept.note_end(wanted.len() < n_wanted);
                claims = claim(wanted).0;
            }
        }
        // The answers may have been kept since.
        missing();
        Request::new(&kept.patience, claims)
    }

    /// Claims those of `ranges` that no other caller is requesting. Returns the ranges that another caller is requesting.
    pub(in crate::store::remote) fn begin_ranges(
        &self,
        key: &Key,
        pinned: &Pinned,
        ranges: &[Range<u64>],
    ) -> (Request, Vec<Range<u64>>) {
        let (mut claims, mut others) = (Vec::new(), Vec::new());
        let Some(kept) = &self.kept else {
            return (Request::default(), others);
        };
        for (range, byte) in self.range_bytes(key, pinned, ranges) {
            match kept.cache.claim(byte) {
                Some(claim) => claims.push(claim),
                None => others.push(range),
            }
        }
        (Request::new(&kept.patience, claims), others)
    }

    /// Waits until none of `ranges` is claimed.
    ///
    /// # Errors
    /// [`StoreError::Io`] when the caller's requests are cancelled.
    pub(in crate::store::remote) fn wait_for_ranges(
        &self,
        key: &Key,
        pinned: &Pinned,
        ranges: &[Range<u64>],
    ) -> Result<bool, StoreError> {
        let Some(kept) = &self.kept else {
            return Ok(false);
        };
        let bytes = self.range_bytes(key, pinned, ranges);
        kept.wait(Some(key), bytes.map(|(_, byte)| byte).collect())
    }

    /// Notes whether a range that was waited for was there.
    pub(in crate::store::remote) fn note_range(&self, is_found: bool) {
        if let Some(kept) = &self.kept {
            kept.note_end(is_found);
        }
    }

    fn range_bytes(
        &self,
        key: &Key,
        pinned: &Pinned,
        ranges: &[Range<u64>],
    ) -> impl Iterator<Item = (Range<u64>, ClaimByte)> {
        let kept = self.kept.as_ref().filter(|kept| !kept.is_offline);
        let kept = kept.zip(self.client.path(key));
        ranges.iter().filter_map(move |range| {
            let (kept, path) = kept.as_ref()?;
            let (name, _) = kept.range(path.as_ref(), pinned, range.clone())?;
            Some((range.clone(), name.claim_byte()))
        })
    }

    /// The byte that a caller claims before it requests something about `key`; `None` with `--offline`, where nothing
    /// is requested.
    fn claimed_for(&self, key: &Key) -> Option<(&Arc<Kept>, ClaimByte)> {
        let kept = self.kept.as_ref().filter(|kept| !kept.is_offline)?;
        let path = self.client.path(key)?;
        Some((kept, kept.claim_byte(path.as_ref())))
    }
}

/// Whether the end of a wait shows if waiting is of use. The end of a wait for a document shows nothing if the answer
/// is there but too old for the caller.
fn may_be_vain(key: &Key, is_found: bool) -> bool {
    is_found || !is_asked_for_anew(key)
}

#[cfg(test)]
mod tests {
    use tempfile::tempdir;

    use super::super::recall::tests::{key, pinned, store};
    use crate::store::remote::object::RemoteObject;
    use crate::store::{Object, ReadRange};
    use std::sync::Arc;
    use std::time::Duration;

    #[test]
    fn a_read_does_not_wait_for_its_own_request() {
        let cache = tempdir().unwrap();
        let mut store = store(cache.path(), false);
        let shared = Arc::get_mut(&mut store.shared).unwrap();
        // No server answers.
        shared.client.deadline = Duration::from_millis(1);
        let object = RemoteObject::new(Arc::clone(&store.shared), key("c/0"), pinned("1"));
        let (mut first, mut second) = ([0; 5], [0; 5]);
        for _ in 0..4 {
            let both = [&mut first, &mut second].map(|buf| ReadRange {
                offset_bytes: 0,
                buf,
            });
            assert!(object.read_ranges(&mut { both }).is_err());
        }
        let kept = store.shared.kept.as_ref().unwrap();
        assert!(kept.patience.begin().is_some(), "there were vain waits");
    }
}
