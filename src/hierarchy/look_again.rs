//! Looks again at nodes that are still trusted.
//!
//! A cached node is trusted for the time to live. That is too long for a caller that has found an object that fits no
//! node, because a program may have made the node since: an object at `a/c/0/0`, while the cache has no node at `a`.

use super::detect::NAMES;
use super::draft::possible_roots;
use super::{Hierarchy, Node};
use crate::error::Error;
use crate::fresh::{LastCheck, Subject};
use crate::store::{Key, Prefix};

/// The objects that have the attributes of nodes of v2 and v1.
const ATTRIBUTES: [&[u8]; 2] = [b".zattrs", b"attrs"];

impl Hierarchy {
    /// Makes sure that the next lookup of the node of `prefix` finds the current node, or a later one.
    ///
    /// # Errors
    /// [`Error::Store`] when a document cannot be examined.
    pub fn look_again(&self, prefix: &Prefix) -> Result<(), Error> {
        if self.freshness.is_immutable() {
            return Ok(());
        }
        for root in possible_roots(prefix) {
            self.look_again_at(&root?)?;
        }
        // Below an array, no prefix is a node.
        for above in prefix.with_ancestors().skip(1) {
            let known = self.lock().get(&above);
            if known.is_some_and(|known| matches!(known.node, Node::Array(_))) {
                self.look_again_at(&above)?;
            }
        }
        self.look_again_at(prefix)
    }

    /// Like [`Hierarchy::look_again`], for the array that a document at `key` describes or would
    /// describe.
    ///
    /// # Errors
    /// Those of [`Hierarchy::node`].
    pub fn look_again_by(&self, key: &Key) -> Result<(), Error> {
        self.look_again(&key.parent())?;
        match self.described_at(key)? {
            Some(prefix) => self.look_again(&prefix),
            None => Ok(()),
        }
    }

    fn look_again_at(&self, prefix: &Prefix) -> Result<(), Error> {
        let known = self.lock().get(prefix);
        let subjects = known.iter().flat_map(|known| known.observations.subjects());
        let keys = subjects.filter_map(|subject| match subject {
            Subject::Object(key) => Some(key.clone()),
            Subject::Directory(_) | Subject::Passage(_) => None,
        });
        self.store.ask_again_for(&keys.collect::<Vec<_>>());
        if let Some(known) = known {
            let begun = LastCheck::now();
            let observations = &known.observations;
            let ask = |subjects: &[&Subject]| self.observe(subjects);
            if observations.are_settled() && observations.are_unchanged(ask)? {
                known.checked.set(&begun);
                return Ok(());
            }
        }
        self.ask_again_for_documents(prefix);
        // After this, a load that has begun before does not enter the cache.
        self.lock().forget(prefix);
        Ok(())
    }

    /// Like [`Hierarchy::forget`], for a node whose document has changed.
    pub fn forget_changed(&self, prefix: &Prefix) {
        self.ask_again_for_documents(prefix);
        self.forget(prefix);
    }

    /// Makes the store request the documents of the node of `prefix` again: those that were absent when they were last
    /// requested may describe another node now.
    fn ask_again_for_documents(&self, prefix: &Prefix) {
        let names = NAMES.iter().chain(&ATTRIBUTES);
        let keys: Vec<Key> = names.filter_map(|name| prefix.key(name).ok()).collect();
        self.store.ask_again_for(&keys);
    }
}
