//! Reads of the documents of groups in a remote store that are under way.
//!
//! All arrays of a group need what its documents say. Many of them are examined at the same time, and one request for
//! each document answers all of them.

use std::collections::HashSet;
use std::sync::{Condvar, Mutex};

use super::lock;
use crate::store::Prefix;

/// The groups whose documents are being read.
#[derive(Debug, Default)]
pub(super) struct GroupReads {
    under_way: Mutex<HashSet<Prefix>>,
    /// Notified when a read has ended.
    ended: Condvar,
}

/// The read of the documents of one group. It ends when this is dropped.
pub(super) struct GroupRead<'r> {
    reads: &'r GroupReads,
    path: Prefix,
}

impl GroupReads {
    /// Begins to read the documents of the group at `path`. If another thread reads them, waits until that has ended
    /// and returns `None`: the caller looks at the result, and reads them itself if it cannot use that.
    pub(super) fn begin_or_wait(&self, path: &Prefix) -> Option<GroupRead<'_>> {
        let mut under_way = lock(&self.under_way);
        if under_way.insert(path.clone()) {
            return Some(GroupRead {
                reads: self,
                path: path.clone(),
            });
        }
        while under_way.contains(path) {
            let woken = self.ended.wait(under_way);
            under_way = woken.unwrap_or_else(std::sync::PoisonError::into_inner);
        }
        None
    }
}

impl Drop for GroupRead<'_> {
    fn drop(&mut self) {
        lock(&self.reads.under_way).remove(&self.path);
        self.reads.ended.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::thread;

    use super::*;

    #[test]
    fn a_read_of_the_same_group_waits_and_others_do_not() {
        let path = |name: &str| Prefix::parse(name.as_bytes()).unwrap();
        let reads = GroupReads::default();
        let first = reads.begin_or_wait(&path("g"));
        assert!(first.is_some());
        assert!(reads.begin_or_wait(&path("other")).is_some());
        let (tell, told) = mpsc::channel();
        thread::scope(|scope| {
            let reads = &reads;
            scope.spawn(move || {
                let read = reads.begin_or_wait(&path("g"));
                tell.send(read.is_some()).unwrap();
            });
            thread::sleep(std::time::Duration::from_millis(20));
            assert!(told.try_recv().is_err(), "the first read is under way");
            drop(first);
            assert!(
                !told.recv().unwrap(),
                "the second caller looks at the result"
            );
        });
        assert!(reads.begin_or_wait(&path("g")).is_some(), "it has ended");
    }
}
