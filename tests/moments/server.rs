//! A web server, or a bucket, in this process, whose objects change between requests.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, SystemTime};

use serde_json::json;

use crate::common::random::Random;
use crate::common::web::{self, Answers, Request, Response, WebServer, in_headers};

/// The number of chunks of the array, which is shown in this order.
pub(crate) const CHUNKS: usize = 24;

/// Elements of a chunk.
pub(crate) const ITEMS: usize = 2;

/// Inner chunks of a shard.
const PER_SHARD: usize = 2;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Service {
    Http,
    S3,
}

/// The kind of times in `Last-Modified`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dates {
    /// No time: the header is absent.
    None,
    /// The time of the upload, by the clock of the server.
    Upload,
    /// A time long before the upload; another one for each version.
    Old,
}

/// How the server shows versions.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ways {
    pub(crate) service: Service,
    /// Whether there is a strong `ETag`.
    pub(crate) tags: bool,
    pub(crate) dates: Dates,
    /// By how many seconds the clock of the server is ahead.
    pub(crate) clock: i64,
    /// The answer to requests for attributes, where they are refused.
    pub(crate) heads: Option<&'static str>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Layout {
    Plain,
    Sharded,
}

/// One state of the store: a number for the document, which is the fill value, and one for each stored
/// object, `None` if it is absent.
#[derive(Debug, Clone)]
struct State {
    document: u32,
    objects: Vec<Option<u32>>,
}

impl State {
    /// Whether the array has all that was `shown`.
    fn shows(&self, shown: &BTreeMap<usize, u32>) -> bool {
        let per_object = CHUNKS / self.objects.len();
        shown.iter().all(|(chunk, number)| {
            self.objects[chunk / per_object].unwrap_or(self.document) == *number
        })
    }
}

#[derive(Debug)]
struct World {
    layout: Layout,
    /// All states, in their order.
    states: Vec<State>,
    /// When each number was put in its place, by the clock of the server.
    uploads: BTreeMap<u32, SystemTime>,
    next: u32,
    /// When the server began, by its own clock.
    begun: SystemTime,
    /// Objects that were absent once, and are not removed: two absences look alike.
    came: Vec<bool>,
    random: Random,
    change_every: u64,
}

impl World {
    fn now(&self) -> &State {
        self.states.last().unwrap()
    }

    fn number(&mut self, at: SystemTime) -> u32 {
        self.next += 1;
        self.uploads.insert(self.next, at);
        self.next
    }

    /// Changes all objects, or one, or removes some, or changes the document.
    fn change(&mut self, at: SystemTime) {
        let mut state = self.now().clone();
        let count = state.objects.len() as u64;
        let kind = self.random.below(8);
        let one = self.random.below(count) as usize;
        match kind {
            0..=2 => {
                for object in &mut state.objects {
                    *object = Some(self.number(at));
                }
            }
            3 | 4 => state.objects[one] = Some(self.number(at)),
            5 => self.remove(&mut state, one),
            6 => (0..state.objects.len()).for_each(|index| self.remove(&mut state, index)),
            _ => {
                state.document = self.number(at);
                for index in 0..state.objects.len() {
                    if self.random.below(2) == 0 {
                        state.objects[index] = Some(self.number(at));
                    } else {
                        self.remove(&mut state, index);
                    }
                }
            }
        }
        let before = self.now().objects.clone();
        for ((before, now), came) in before.iter().zip(&state.objects).zip(&mut self.came) {
            *came |= before.is_none() && now.is_some();
        }
        self.states.push(state);
    }

    fn remove(&self, state: &mut State, index: usize) {
        if !self.came[index] {
            state.objects[index] = None;
        }
    }

    /// The bytes at a path below the store, and their number.
    fn object(&self, path: &str) -> Option<(Vec<u8>, u32)> {
        let state = self.now();
        if path == "zarr.json" {
            return Some((self.document(state.document), state.document));
        }
        let index: usize = path.strip_prefix("c/")?.parse().ok()?;
        let number = (*state.objects.get(index)?)?;
        let chunk = number.to_le_bytes().repeat(ITEMS);
        Some(match self.layout {
            Layout::Plain => (chunk, number),
            Layout::Sharded => (shard(&chunk), number),
        })
    }

    fn document(&self, number: u32) -> Vec<u8> {
        let bytes = json!([{"name": "bytes", "configuration": {"endian": "little"}}]);
        let (codecs, chunk) = match self.layout {
            Layout::Plain => (bytes, ITEMS),
            Layout::Sharded => (
                json!([{"name": "sharding_indexed", "configuration": {
                    "chunk_shape": [ITEMS], "codecs": bytes, "index_codecs": bytes,
                }}]),
                ITEMS * PER_SHARD,
            ),
        };
        let document = json!({
            "zarr_format": 3, "node_type": "array", "shape": [self.now().objects.len() * chunk], "data_type": "uint32",
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [chunk]}},
            "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
            "fill_value": number, "codecs": codecs,
        });
        // All versions have one length.
        format!("{document:<600}").into_bytes()
    }
}

fn shard(chunk: &[u8]) -> Vec<u8> {
    let mut bytes = chunk.repeat(PER_SHARD);
    for at in 0..PER_SHARD {
        for number in [at * chunk.len(), chunk.len()] {
            bytes.extend((number as u64).to_le_bytes());
        }
    }
    bytes
}

/// A server that runs until it is dropped.
#[derive(Debug)]
pub(crate) struct Server {
    shared: Arc<Shared>,
    server: WebServer,
}

#[derive(Debug)]
struct Shared {
    ways: Ways,
    world: Mutex<World>,
    /// Requests for attributes that were refused.
    refused: AtomicUsize,
}

impl Server {
    /// A server of an array of so many `chunks`.
    pub(crate) fn start(ways: Ways, layout: Layout, chunks: usize, seed: u64) -> Server {
        let count = match layout {
            Layout::Plain => chunks,
            Layout::Sharded => chunks / PER_SHARD,
        };
        let state = State {
            document: 0,
            objects: vec![None; count],
        };
        let mut world = World {
            layout,
            states: vec![state],
            uploads: BTreeMap::new(),
            next: 0,
            begun: clock(ways),
            came: vec![false; count],
            random: Random::new(seed),
            change_every: 0,
        };
        let long_ago = clock(ways) - Duration::from_secs(7200);
        let document = world.number(long_ago);
        let objects = (0..count).map(|_| {
            let is_stored = world.random.below(4) > 0;
            is_stored.then(|| world.number(long_ago))
        });
        let objects = objects.collect();
        world.states = vec![State { document, objects }];
        let shared = Arc::new(Shared {
            ways,
            world: Mutex::new(world),
            refused: AtomicUsize::new(0),
        });
        let answers: Arc<dyn Answers> = Arc::clone(&shared) as Arc<dyn Answers>;
        let server = WebServer::start(answers);
        Server { shared, server }
    }

    pub(crate) fn ways(&self) -> Ways {
        self.shared.ways
    }

    pub(crate) fn url(&self) -> &str {
        self.server.url()
    }

    /// Lets about one of `requests` requests find a change; none with 0.
    pub(crate) fn change_every(&self, requests: u64) {
        self.shared.world().change_every = requests;
    }

    /// How many requests came so far.
    pub(crate) fn requests(&self) -> usize {
        self.server.requests()
    }

    /// How many requests for attributes were refused so far.
    pub(crate) fn refused(&self) -> usize {
        self.shared.refused.load(Ordering::Relaxed)
    }

    /// How many bytes of bodies were sent so far.
    pub(crate) fn bytes(&self) -> usize {
        self.server.bytes()
    }

    /// Whether some state had all that was `shown`.
    pub(crate) fn had(&self, shown: &BTreeMap<usize, u32>) -> bool {
        let world = self.shared.world();
        world.states.iter().any(|state| state.shows(shown))
    }

    /// Whether the current state has all that was `shown`.
    pub(crate) fn has(&self, shown: &BTreeMap<usize, u32>) -> bool {
        let world = self.shared.world();
        world.now().shows(shown)
    }
}

fn clock(ways: Ways) -> SystemTime {
    let ahead = Duration::from_secs(ways.clock.unsigned_abs());
    if ways.clock < 0 {
        SystemTime::now() - ahead
    } else {
        SystemTime::now() + ahead
    }
}

impl Shared {
    fn world(&self) -> MutexGuard<'_, World> {
        self.world.lock().unwrap()
    }
}

impl Answers for Shared {
    fn answer(&self, request: &Request) -> Response {
        if let Some(status) = self.ways.heads.filter(|_| request.method == "HEAD") {
            self.refused.fetch_add(1, Ordering::Relaxed);
            return Response {
                status,
                headers: Vec::new(),
                body: Vec::new(),
            };
        }
        let mut world = self.world();
        let at = clock(self.ways);
        let every = world.change_every;
        if every > 0 && world.random.below(every) == 0 {
            world.change(at);
        }
        let mut told = vec![format!("Date: {}", in_headers(at))];
        let path = request.target.split('?').next().unwrap_or_default();
        let path = path.strip_prefix("/bucket").unwrap_or(path);
        let object = path.strip_prefix("/z/").and_then(|path| world.object(path));
        let is_listing = request.target.contains("list-type");
        let is_read = matches!(request.method.as_str(), "GET" | "HEAD");
        let Some((bytes, number)) = object.filter(|_| is_read && !is_listing) else {
            return Response {
                status: if is_read && !is_listing {
                    "404 Not Found"
                } else {
                    "405 No"
                },
                headers: told,
                body: Vec::new(),
            };
        };
        let modified = match self.ways.dates {
            Dates::None => None,
            Dates::Upload => Some(world.uploads[&number]),
            // The newer a version is, the older is its time.
            Dates::Old => {
                let before = Duration::from_secs(1_000_000 + 10 * u64::from(number));
                Some(world.begun - before)
            }
        };
        told.extend(modified.map(|modified| format!("Last-Modified: {}", in_headers(modified))));
        let tag = self.ways.tags.then(|| format!("\"tag {number}\""));
        web::object(request, told, tag.as_deref(), &bytes)
    }
}
