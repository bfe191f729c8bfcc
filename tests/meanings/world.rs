//! A store whose arrays other programs write object by object.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fs;
use std::io::{Read as _, Write as _};
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, SystemTime};

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use serde_json::json;

use crate::common::random::Random;
use crate::common::web::{self, Answers, Request, Response, in_headers};

/// Chunks of each array.
pub(crate) const CHUNKS: usize = 4;

/// Elements of a chunk.
const ITEMS: usize = 3;

/// Inner chunks of a shard.
const PER_SHARD: usize = 2;

/// The paths at which there may be nodes. The last two are below an array, where it is one: directories of its chunks.
pub(crate) const NAMES: [&str; 4] = ["x", "g/y", "x/c", "g"];

/// How a web server shows versions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ways {
    /// By strong `ETag`s.
    Tags,
    /// By the time of the upload.
    Dates,
    /// By times long before the upload, another one for each version.
    OldDates,
    /// By nothing but the length.
    Lengths,
}

/// Where the store is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Site {
    Directory,
    Web(Ways),
}

/// The kind of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Group,
    /// An array of version 2, whose chunks are compressed.
    Two,
    /// An array of version 3, whose chunks are compressed.
    Three,
    /// An array of version 3 in shards.
    Sharded,
}

/// A node. The elements of its chunks follow from its number.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Node {
    pub(crate) kind: Kind,
    number: u32,
}

impl Node {
    /// The key of a chunk, below that of the array.
    pub(crate) fn key_of(self, chunk: usize) -> String {
        match self.kind {
            Kind::Two => chunk.to_string(),
            Kind::Group | Kind::Three | Kind::Sharded => format!("c/{chunk}"),
        }
    }

    pub(crate) fn decoded(self, chunk: usize) -> Vec<u8> {
        let number = 1000 * self.number + chunk as u32;
        number.to_le_bytes().repeat(ITEMS)
    }

    pub(crate) fn all_decoded(self) -> Vec<u8> {
        (0..CHUNKS).flat_map(|chunk| self.decoded(chunk)).collect()
    }

    /// A chunk as it is stored, by itself or in its shard.
    pub(crate) fn encoded(self, chunk: usize) -> Vec<u8> {
        let decoded = self.decoded(chunk);
        if self.kind == Kind::Sharded {
            return decoded;
        }
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(&decoded).unwrap();
        encoder.finish().unwrap()
    }

    fn document(self) -> (&'static str, Vec<u8>) {
        let shape = [CHUNKS * ITEMS];
        let bytes = json!({"name": "bytes", "configuration": {"endian": "little"}});
        let grid =
            |items: usize| json!({"name": "regular", "configuration": {"chunk_shape": [items]}});
        let (codecs, grid) = match self.kind {
            Kind::Group => {
                let attributes = json!({"number": self.number});
                let document =
                    json!({"zarr_format": 3, "node_type": "group", "attributes": attributes});
                return ("zarr.json", document.to_string().into_bytes());
            }
            Kind::Two => {
                let document = json!({
                    "zarr_format": 2, "shape": shape, "chunks": [ITEMS], "dtype": "<u4", "order": "C",
                    "compressor": {"id": "gzip", "level": 1}, "filters": null, "fill_value": 0,
                });
                return (".zarray", document.to_string().into_bytes());
            }
            Kind::Three => {
                let gzip = json!({"name": "gzip", "configuration": {"level": 1}});
                (json!([bytes, gzip]), grid(ITEMS))
            }
            Kind::Sharded => {
                let codec = json!({"name": "sharding_indexed", "configuration": {
                    "chunk_shape": [ITEMS], "codecs": [bytes], "index_codecs": [bytes],
                }});
                (json!([codec]), grid(ITEMS * PER_SHARD))
            }
        };
        let document = json!({
            "zarr_format": 3, "node_type": "array", "shape": shape, "data_type": "uint32",
            "chunk_grid": grid, "codecs": codecs, "fill_value": 0,
            "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        });
        ("zarr.json", document.to_string().into_bytes())
    }

    /// The objects of the node, below its path.
    fn objects(self) -> Vec<(String, Vec<u8>)> {
        let (name, document) = self.document();
        let mut all = vec![(name.to_owned(), document)];
        match self.kind {
            Kind::Group => {}
            Kind::Two | Kind::Three => {
                all.extend((0..CHUNKS).map(|chunk| (self.key_of(chunk), self.encoded(chunk))));
            }
            Kind::Sharded => all.extend((0..CHUNKS / PER_SHARD).map(|shard| {
                let mut bytes = Vec::new();
                for at in 0..PER_SHARD {
                    bytes.extend(self.decoded(shard * PER_SHARD + at));
                }
                for at in 0..PER_SHARD {
                    for number in [at * ITEMS * 4, ITEMS * 4] {
                        bytes.extend((number as u64).to_le_bytes());
                    }
                }
                (format!("c/{shard}"), bytes)
            })),
        }
        all
    }
}

/// A change that is still to be made: a key, and the bytes that its object gets, or `None` if the object is removed.
type Change = (String, Option<Vec<u8>>);

struct State {
    /// The stored objects, with a number for each version.
    objects: Objects,
    pending: VecDeque<Change>,
    /// The nodes that are there once nothing is pending.
    nodes: BTreeMap<&'static str, Node>,
    /// All that there have been.
    made: Vec<Node>,
    /// All bytes that any object has had.
    stored: BTreeSet<Vec<u8>>,
    /// All elements that the array at a path has had, with those that a program was just replacing.
    seen: BTreeSet<(&'static str, Vec<u8>)>,
    next: u32,
    random: Random,
}

/// The store.
pub(crate) struct World {
    site: Site,
    folder: PathBuf,
    begun: SystemTime,
    state: Mutex<State>,
}

/// For a person who looks for a fault: what is stored in which versions, and what is still to be done.
impl std::fmt::Debug for World {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let state = self.state();
        for (key, (bytes, number)) in &state.objects {
            writeln!(f, "{number}: {key} {}", bytes.escape_ascii())?;
        }
        for (key, bytes) in &state.pending {
            let bytes = bytes.as_deref().map(<[u8]>::escape_ascii);
            let what = bytes.map_or("is removed".to_owned(), |bytes| bytes.to_string());
            writeln!(f, "pending: {key} {what}")?;
        }
        writeln!(f, "nodes: {:?}", state.nodes)?;
        writeln!(f, "made: {:?}", state.made)
    }
}

impl World {
    pub(crate) fn new(site: Site, folder: PathBuf, seed: u64) -> World {
        let world = World {
            site,
            folder,
            begun: SystemTime::now(),
            state: Mutex::new(State {
                objects: BTreeMap::new(),
                pending: VecDeque::new(),
                nodes: BTreeMap::new(),
                made: Vec::new(),
                stored: BTreeSet::new(),
                seen: BTreeSet::new(),
                next: 0,
                random: Random::new(seed),
            }),
        };
        let root = br#"{"zarr_format": 3, "node_type": "group"}"#.to_vec();
        let mut state = world.state();
        world.put(&mut state, ("zarr.json".to_owned(), Some(root)));
        drop(state);
        world
    }

    /// Whether a reader can tell that an object has changed.
    pub(crate) fn tells_versions(&self) -> bool {
        self.site != Site::Web(Ways::Lengths)
    }

    pub(crate) fn is_web(&self) -> bool {
        self.site != Site::Directory
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    /// Writes or removes one object, as another program does that has decided to replace a node.
    pub(crate) fn step(&self) {
        let mut state = self.state();
        if state.pending.is_empty() {
            decide(&mut state);
        }
        if let Some(change) = state.pending.pop_front() {
            self.put(&mut state, change);
        }
    }

    /// Does all that is still to be done.
    pub(crate) fn finish(&self) {
        let mut state = self.state();
        while let Some(change) = state.pending.pop_front() {
            self.put(&mut state, change);
        }
    }

    fn put(&self, state: &mut State, (key, bytes): Change) {
        if !self.is_web() {
            let path = self.folder.join(&key);
            if let Some(bytes) = &bytes {
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                let draft = self.folder.join("draft");
                fs::write(&draft, bytes).unwrap();
                fs::rename(draft, path).unwrap();
            } else {
                fs::remove_file(&path).unwrap();
                // Directories go with their last names.
                let above = path.ancestors().skip(1);
                for folder in above.take_while(|folder| *folder != self.folder) {
                    if fs::remove_dir(folder).is_err() {
                        break;
                    }
                }
            }
        }
        match bytes {
            Some(bytes) => {
                state.next += 1;
                state.stored.insert(bytes.clone());
                state.objects.insert(key, (bytes, state.next));
            }
            None => {
                state.objects.remove(&key);
            }
        }
        for name in NAMES {
            let elements = elements(&state.objects, name);
            state.seen.extend(elements.map(|elements| (name, elements)));
        }
    }

    /// The kinds of the arrays of which `key` is a chunk or a shard, and whose documents are in the store, the outermost
    /// first. The list is empty if `key` is no chunk of the outermost array above it, because no node is below an array.
    /// There may be several kinds while one array replaces another array in whose directory it is. If a node has documents
    /// of both versions, the one of version 3 counts.
    pub(crate) fn kinds_of(&self, key: &str) -> Vec<Kind> {
        let state = self.state();
        let slashes = key.match_indices('/');
        let above = slashes.filter_map(|(at, _)| {
            let kind = document(&state.objects, &key[..at])?;
            (kind != Kind::Group).then_some((kind, &key[at + 1..]))
        });
        let has_key = |(kind, below): &(Kind, &str)| match kind {
            Kind::Three | Kind::Sharded => below.starts_with("c/"),
            Kind::Two => !below.contains('/'),
            Kind::Group => false,
        };
        let above: Vec<_> = above.collect();
        if !above.first().is_some_and(has_key) {
            return Vec::new();
        }
        above
            .into_iter()
            .filter(has_key)
            .map(|(kind, _)| kind)
            .collect()
    }

    /// Whether some array has had this chunk.
    pub(crate) fn had_decoded(&self, bytes: &[u8]) -> bool {
        self.had(|node, chunk| node.decoded(chunk) == bytes) || is_fill_value(bytes)
    }

    /// Whether some array has had this chunk as it is stored.
    pub(crate) fn had_encoded(&self, bytes: &[u8]) -> bool {
        self.had(|node, chunk| node.encoded(chunk) == bytes)
    }

    fn had(&self, is_it: impl Fn(&Node, usize) -> bool) -> bool {
        let state = self.state();
        let mut arrays = state.made.iter().filter(|node| node.kind != Kind::Group);
        arrays.any(|node| (0..CHUNKS).any(|chunk| is_it(node, chunk)))
    }

    /// Whether these were the elements of the array `name` at some moment.
    pub(crate) fn had_array(&self, name: &str, bytes: &[u8]) -> bool {
        let state = self.state();
        state
            .seen
            .iter()
            .any(|(at, seen)| *at == name && seen == bytes)
    }

    /// Whether some object has had these bytes.
    pub(crate) fn had_object(&self, bytes: &[u8]) -> bool {
        self.state().stored.contains(bytes)
    }

    /// The arrays that are there, and their paths.
    pub(crate) fn arrays(&self) -> Vec<(&'static str, Node)> {
        let state = self.state();
        let all = state.nodes.iter().map(|(name, node)| (*name, *node));
        all.filter(|(_, node)| node.kind != Kind::Group).collect()
    }
}

/// The elements of a chunk that is not stored. All other chunks have a number that is not 0.
fn is_fill_value(bytes: &[u8]) -> bool {
    bytes == [0; ITEMS * 4]
}

type Objects = BTreeMap<String, (Vec<u8>, u32)>;

/// The document at a path, and the kind of its node.
fn document(objects: &Objects, name: &str) -> Option<Kind> {
    if let Some((bytes, _)) = objects.get(&format!("{name}/zarr.json")) {
        let text = String::from_utf8_lossy(bytes);
        return Some(match () {
            () if text.contains("\"group\"") => Kind::Group,
            () if text.contains("sharding_indexed") => Kind::Sharded,
            () => Kind::Three,
        });
    }
    let is_two = objects.contains_key(&format!("{name}/.zarray"));
    is_two.then_some(Kind::Two)
}

/// The elements of the array `name`; `None` if there is none, or a chunk is not one of its own.
fn elements(objects: &Objects, name: &str) -> Option<Vec<u8>> {
    let kind = document(objects, name).filter(|kind| *kind != Kind::Group)?;
    let node = Node { kind, number: 0 };
    let chunks = (0..CHUNKS).map(|chunk| {
        let at = match kind {
            Kind::Sharded => chunk / PER_SHARD,
            Kind::Group | Kind::Two | Kind::Three => chunk,
        };
        let Some((bytes, _)) = objects.get(&format!("{name}/{}", node.key_of(at))) else {
            return Some(vec![0; ITEMS * 4]);
        };
        let mut decoded = Vec::new();
        if kind == Kind::Sharded {
            let is_whole = bytes.len() == PER_SHARD * (ITEMS * 4 + 16);
            decoded.extend(bytes.chunks(ITEMS * 4).nth(chunk % PER_SHARD)?);
            return is_whole.then_some(decoded);
        }
        GzDecoder::new(&bytes[..]).read_to_end(&mut decoded).ok()?;
        (decoded.len() == ITEMS * 4).then_some(decoded)
    });
    chunks
        .collect::<Option<Vec<_>>>()
        .map(|chunks| chunks.concat())
}

/// Decides what a program does next: it removes a node with all below it, and may write another one in its place.
fn decide(state: &mut State) {
    let name = NAMES[state.random.below(NAMES.len() as u64) as usize];
    let folder = format!("{name}/");
    let old: Vec<_> = state.objects.keys().cloned().collect();
    let old = old.into_iter().filter(|key| key.starts_with(&folder));
    let removals: Vec<Change> = old.map(|key| (key, None)).collect();
    state
        .nodes
        .retain(|at, _| *at != name && !at.starts_with(&folder));
    // No array has a node below it.
    let is_below_array = state.nodes.iter().any(|(at, node)| {
        node.kind != Kind::Group
            && name
                .strip_prefix(at)
                .is_some_and(|rest| rest.starts_with('/'))
    });
    let kind = match state.random.below(5) {
        _ if is_below_array => None,
        0 => None,
        1 => Some(Kind::Group),
        2 => Some(Kind::Two),
        3 => Some(Kind::Three),
        _ => Some(Kind::Sharded),
    };
    let mut writes: Vec<Change> = Vec::new();
    if let Some(kind) = kind {
        let number = state.made.len() as u32 + 1;
        let node = Node { kind, number };
        state.made.push(node);
        state.nodes.insert(name, node);
        let objects = node.objects().into_iter();
        writes = objects
            .map(|(key, bytes)| (folder.clone() + &key, Some(bytes)))
            .collect();
        // Libraries write the document first. Programs that copy a tree write in any order.
        if state.random.below(2) == 0 {
            let count = writes.len();
            for at in (1..count).rev() {
                let other = state.random.below(at as u64 + 1) as usize;
                writes.swap(at, other);
            }
        }
    }
    if is_below_array {
        return;
    }
    // A program that does not remove the old node first replaces its objects, and removes the others afterwards.
    let is_replaced = state.random.below(2) == 0;
    let names: BTreeSet<_> = writes.iter().map(|(key, _)| key.clone()).collect();
    if is_replaced {
        let left = removals.into_iter().filter(|(key, _)| !names.contains(key));
        writes.extend(left);
        state.pending.extend(writes);
    } else {
        state.pending.extend(removals);
        state.pending.extend(writes);
    }
}

impl Answers for World {
    fn answer(&self, request: &Request) -> Response {
        let state = self.state();
        let mut told = vec![format!("Date: {}", in_headers(SystemTime::now()))];
        let path = request.target.split('?').next().unwrap_or_default();
        let object = path
            .strip_prefix("/z/")
            .and_then(|key| state.objects.get(key));
        let is_read = matches!(request.method.as_str(), "GET" | "HEAD");
        let Some((bytes, number)) = object.filter(|_| is_read) else {
            return Response {
                status: if is_read { "404 Not Found" } else { "405 No" },
                headers: told,
                body: Vec::new(),
            };
        };
        let ago = Duration::from_secs(1_000_000 + 10 * u64::from(*number));
        let modified = match self.site {
            Site::Web(Ways::Dates) => Some(self.begun + Duration::from_secs(u64::from(*number))),
            Site::Web(Ways::OldDates) => Some(self.begun - ago),
            Site::Web(Ways::Tags | Ways::Lengths) | Site::Directory => None,
        };
        told.extend(modified.map(|modified| format!("Last-Modified: {}", in_headers(modified))));
        let tag = (self.site == Site::Web(Ways::Tags)).then(|| format!("\"tag {number}\""));
        web::object(request, told, tag.as_deref(), bytes)
    }
}
