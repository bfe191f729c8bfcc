//! The walk over all nodes, and the threads that read chunks.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, Scope};

use super::chunks::ObjectPart;
use super::copies::Copies;
use super::counters::Counters;
use super::finding::{Finding, Found, Severity};
use super::ignored::Ignored;
use super::objects::ArrayObjects;
use super::purpose::Purpose;
use super::strays::Strays;
use crate::budget::Holding;
use crate::error::Error;
use crate::hierarchy::{ArrayNode, BrokenKind, Hierarchy, Node, TreeNode, TreePlace, Walk};
use crate::load::{ChunkedArray, Loader, Shards};
use crate::metadata::{DocumentName, ZarrFormat, check_attributes_document};
use crate::store::Prefix;

/// The objects that are found before they are read. More of them would be remembered for nothing.
const MOST_FOUND: usize = 1024;

/// A verification of the nodes at and below a path.
pub struct Verification<'a> {
    /// Whether to verify the store, or to fill the disk cache.
    pub purpose: Purpose,
    /// Whether the array at a path is examined.
    pub selects: &'a (dyn Fn(&Prefix) -> bool + Sync),
    /// The path.
    pub start: &'a Prefix,
    /// The nodes of the store.
    pub hierarchy: &'a Arc<Hierarchy>,
    /// The loader of their chunks.
    pub loader: &'a Arc<Loader>,
    /// How many objects are read at once. The answer may change.
    pub at_once: &'a (dyn Fn() -> usize + Sync),
}

/// Threads that read the parts of arrays, as many as are of use.
struct Readers<'a> {
    verification: &'a Verification<'a>,
    parts: Mutex<Receiver<ObjectPart>>,
    count: AtomicUsize,
    counters: &'a Counters,
    /// The shards in which several chunks have the same bytes.
    shared: Mutex<Ignored>,
    found: &'a Found<'a>,
}

/// Facts that are gathered from node to node.
#[derive(Default)]
struct Gathered {
    copies: Copies,
    /// The arrays whose chunks have no checksum.
    unchecked: Ignored,
}

impl Verification<'_> {
    /// Examines everything, and calls `found` with each finding.
    pub fn run(&self, counters: &Counters, found: &Found<'_>) {
        let purpose = self.purpose;
        let found: &Found<'_> = &|finding: Finding| {
            if purpose == Purpose::Verify || finding.severity != Severity::Note {
                found(finding);
            }
        };
        let (sender, receiver) = sync_channel(MOST_FOUND);
        let readers = Readers {
            verification: self,
            parts: Mutex::new(receiver),
            count: AtomicUsize::new(0),
            counters,
            shared: Mutex::default(),
            found,
        };
        thread::scope(|scope| {
            readers.add_missing(scope);
            self.find_all(&sender, counters, found);
            counters.is_found.store(true, Ordering::Relaxed);
            // The threads end after the last object.
            drop(sender);
        });
        let shared = readers.shared.into_inner();
        let shared = shared.unwrap_or_else(PoisonError::into_inner);
        shared.end(
            self.start,
            "shards in which several entries of the index have the same bytes",
            found,
        );
    }

    /// Examines the documents of all nodes, and sends the objects of the arrays.
    fn find_all(&self, sender: &SyncSender<ObjectPart>, counters: &Counters, found: &Found<'_>) {
        let mut strays = Strays::new(self.hierarchy);
        let mut gathered = Gathered::default();
        for (path, node) in Walk::of_all_names(self.hierarchy, self.start) {
            let outcome = node.and_then(|TreeNode { node, place }| {
                if self.purpose == Purpose::Verify && matches!(place, TreePlace::Store) {
                    self.look_around(&path, &node, &mut strays, found);
                    gathered.copies.look_for(&path, &node, found);
                }
                if matches!(node, Node::Implicit) {
                    report_document_name(&path, found);
                    return self.warm_prefix(&path, &place);
                }
                counters.nodes.fetch_add(1, Ordering::Relaxed);
                self.find_of_node(&path, &node, &mut gathered, (sender, counters), found)
            });
            if let Err(error) = outcome {
                found(Finding::of_error(&path, None, &error));
            }
        }
        strays.end(self.start, found);
        gathered.copies.end(found);
        let what = "arrays whose chunks have no checksum";
        gathered.unchecked.end(self.start, what, found);
    }

    /// Asks what a mount asks about a path without a document, so that the disk cache has the answer.
    fn warm_prefix(&self, path: &Prefix, place: &TreePlace) -> Result<(), Error> {
        if self.purpose == Purpose::Warm
            && matches!(place, TreePlace::Store)
            && let Some(key) = path.to_key()
        {
            self.hierarchy.store().stat(&key)?;
        }
        Ok(())
    }

    /// Reports what lies in the directory of `node` and belongs to no node. Arrays are examined with their chunks.
    fn look_around(&self, path: &Prefix, node: &Node, strays: &mut Strays<'_>, found: &Found<'_>) {
        match node {
            Node::Group(group) if group.draft.is_none() => {
                let own = group.document.as_ref().map(|document| &document.key);
                strays.look_beside_documents(path, own, found);
            }
            Node::Implicit => strays.look_without_document(path, self.selects, found),
            // Chunks may be below it.
            Node::Broken(broken) if broken.kind != BrokenKind::Group => strays.leave_out(path),
            Node::Group(_) | Node::Broken(_) | Node::Array(_) => {}
        }
    }

    fn find_of_node(
        &self,
        path: &Prefix,
        node: &Node,
        gathered: &mut Gathered,
        (sender, counters): (&SyncSender<ObjectPart>, &Counters),
        found: &Found<'_>,
    ) -> Result<(), Error> {
        match node {
            Node::Implicit => Ok(()),
            Node::Broken(broken) => Err(Error::in_document(
                &broken.document.key,
                broken.error.clone(),
            )),
            Node::Group(_) if self.purpose == Purpose::Warm => Ok(()),
            Node::Group(group) => {
                if group.is_faulty
                    && let Some(document) = &group.document
                {
                    let problem = format!("{}: it has a fault; see the log", document.key);
                    found(Finding::new(Severity::Damage, path, problem));
                }
                self.look_at_attributes(path, node, found);
                gathered.copies.compare(self.hierarchy, path, group, found)
            }
            Node::Array(_) if !(self.selects)(path) => Ok(()),
            Node::Array(array) => {
                counters.arrays.fetch_add(1, Ordering::Relaxed);
                if self.purpose == Purpose::Verify {
                    self.look_at_attributes(path, node, found);
                }
                self.find_of_array(path, array, gathered, (sender, counters), found)
            }
        }
    }

    /// Reports the document of the attributes of `node`, if it is damaged. The rest of the node is examined all the same.
    fn look_at_attributes(&self, path: &Prefix, node: &Node, found: &Found<'_>) {
        if let Err(error) = self.check_attributes(path, node) {
            found(Finding::of_error(path, None, &error));
        }
    }

    /// Checks the document of the attributes of `node`, where it has one beside its own.
    ///
    /// # Errors
    /// [`Error`] when it is damaged or cannot be read.
    fn check_attributes(&self, path: &Prefix, node: &Node) -> Result<(), Error> {
        let key = match node {
            Node::Array(array) => array.attributes.clone(),
            Node::Group(group) if group.format == ZarrFormat::V2 => {
                let name = DocumentName::ZAttrs.as_str();
                Some(path.key(name.as_bytes())?)
            }
            _ => None,
        };
        let Some(key) = key else {
            return Ok(());
        };
        let text = self.hierarchy.read(&key, Holding::SOURCE)?;
        let checked = text.map_or(Ok(()), |text| check_attributes_document(&text.bytes));
        checked.map_err(|error| Error::in_document(&key, error))
    }

    fn find_of_array(
        &self,
        path: &Prefix,
        node: &ArrayNode,
        gathered: &mut Gathered,
        (sender, counters): (&SyncSender<ObjectPart>, &Counters),
        found: &Found<'_>,
    ) -> Result<(), Error> {
        let key = &node.document.key;
        let array = ChunkedArray::new(node, Shards::Expand);
        let array = array.map_err(|error| Error::in_document(key, error))?;
        if let Ok(decoding) = &node.metadata.decoding
            && !decoding.codecs.has_checksum()
        {
            let codecs = match &node.metadata.codecs[..] {
                [] => "no codecs".to_owned(),
                codecs => codecs.join(", "),
            };
            let what = format!(
                "chunks have no checksum ({codecs}), so that other values may be in them unnoticed"
            );
            gathered.unchecked.add(path, key, &what, found);
        }
        let objects = ArrayObjects {
            path,
            node,
            array: &Arc::new(array),
        };
        let mut send = |part| {
            counters.found.fetch_add(1, Ordering::Relaxed);
            sender.send(part).is_ok()
        };
        objects.send_all(&**self.hierarchy.store(), found, &mut send)
    }
}

impl Readers<'_> {
    /// Starts threads until there are as many as are of use, and at least one.
    fn add_missing<'s>(&'s self, scope: &'s Scope<'s, '_>) {
        let wanted = (self.verification.at_once)().max(1);
        let is_few = |count| (count < wanted).then_some(count + 1);
        while self.change_count(is_few) {
            scope.spawn(move || self.read_all(scope));
        }
    }

    /// Reads the parts that come, until none comes any more, or there are too many threads.
    fn read_all<'s>(&'s self, scope: &'s Scope<'s, '_>) {
        loop {
            let next = self.parts.lock();
            let next = next.unwrap_or_else(PoisonError::into_inner).recv();
            let Ok(part) = next else { return };
            let (purpose, loader) = (self.verification.purpose, self.verification.loader);
            part.read(purpose, loader, (self.counters, &self.shared), self.found);
            self.counters.examined.fetch_add(1, Ordering::Relaxed);
            let wanted = (self.verification.at_once)().max(1);
            if self.change_count(|count| (count > wanted).then_some(count - 1)) {
                return;
            }
            self.add_missing(scope);
        }
    }

    fn change_count(&self, change: impl Fn(usize) -> Option<usize>) -> bool {
        let ordering = Ordering::Relaxed;
        self.count.fetch_update(ordering, ordering, change).is_ok()
    }
}

/// Reports the directory at `path`, which is no node, if it has the name of a document: the document is missing.
fn report_document_name(path: &Prefix, found: &Found<'_>) {
    let name = path.to_key();
    if name.is_some_and(|key| DocumentName::of(key.name()).is_some()) {
        let problem = format!("{path}: a directory in the place of a document");
        found(Finding::new(Severity::Damage, path, problem));
    }
}
