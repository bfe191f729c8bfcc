//! A web server, or a bucket, in this process, whose objects change between requests.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;
use std::time::{Duration, SystemTime};

use serde_json::json;

/// The number of chunks of the array, which is shown in this order.
pub(crate) const CHUNKS: usize = 24;

/// Elements of a chunk.
pub(crate) const ITEMS: usize = 2;

/// Inner chunks of a shard.
const PER_SHARD: usize = 2;

/// Random numbers that follow from a seed (xorshift64*).
#[derive(Debug)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 1
    }

    /// A number less than `end`.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        (self.next() >> 8) % end
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Service {
    Http,
    S3,
}

/// What `Last-Modified` is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dates {
    /// There is none.
    None,
    /// The time of the upload, by the clock of the server.
    Upload,
    /// A time long before the upload; another one for each version.
    Old,
}

/// How the server tells versions.
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
/// object, `None` where it is absent.
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
    /// Objects that were absent once, and are not removed: nothing tells one absence from another.
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
    url: String,
}

#[derive(Debug)]
struct Shared {
    ways: Ways,
    world: Mutex<World>,
    is_over: AtomicBool,
    requests: AtomicUsize,
    /// Requests for attributes that were refused.
    refused: AtomicUsize,
    /// Bytes of bodies that were sent.
    bytes: AtomicUsize,
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
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let shared = Arc::new(Shared {
            ways,
            world: Mutex::new(world),
            is_over: AtomicBool::new(false),
            requests: AtomicUsize::new(0),
            refused: AtomicUsize::new(0),
            bytes: AtomicUsize::new(0),
        });
        let serving = Arc::clone(&shared);
        thread::spawn(move || {
            for stream in listener.incoming() {
                if serving.is_over.load(Ordering::Relaxed) {
                    break;
                }
                let (serving, stream) = (Arc::clone(&serving), stream.unwrap());
                // A connection that breaks is the client's affair.
                thread::spawn(move || drop(serving.serve(&stream)));
            }
        });
        Server { shared, url }
    }

    pub(crate) fn ways(&self) -> Ways {
        self.shared.ways
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// Lets about one of `requests` requests find a change; none with 0.
    pub(crate) fn change_every(&self, requests: u64) {
        self.shared.world().change_every = requests;
    }

    /// How many requests came so far.
    pub(crate) fn requests(&self) -> usize {
        self.shared.requests.load(Ordering::Relaxed)
    }

    /// How many requests for attributes were refused so far.
    pub(crate) fn refused(&self) -> usize {
        self.shared.refused.load(Ordering::Relaxed)
    }

    /// How many bytes of bodies were sent so far.
    pub(crate) fn bytes(&self) -> usize {
        self.shared.bytes.load(Ordering::Relaxed)
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

impl Drop for Server {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::Relaxed);
        // The thread that accepts connections wakes up.
        let address = self.url.strip_prefix("http://").unwrap();
        drop(TcpStream::connect(address));
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

fn in_headers(time: SystemTime) -> String {
    let time = seconds(time);
    let (days, seconds) = (time / 86400, time % 86400);
    let weekday = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"][(days % 7) as usize];
    let (year, month, day) = civil(days);
    let month = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ][month - 1];
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    format!("{weekday}, {day:02} {month} {year} {hour:02}:{minute:02}:{second:02} GMT")
}

/// Seconds since 1970.
fn seconds(time: SystemTime) -> u64 {
    time.duration_since(SystemTime::UNIX_EPOCH)
        .unwrap()
        .as_secs()
}

/// Year, month and day of a number of days since 1970.
fn civil(days: u64) -> (u64, usize, u64) {
    let is_leap = |year: u64| {
        year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
    };
    let (mut year, mut day) = (1970, days);
    while day >= 365 + u64::from(is_leap(year)) {
        day -= 365 + u64::from(is_leap(year));
        year += 1;
    }
    let lengths = [
        31,
        28 + u64::from(is_leap(year)),
        31,
        30,
        31,
        30,
        31,
        31,
        30,
        31,
        30,
        31,
    ];
    let mut month = 0;
    while day >= lengths[month] {
        day -= lengths[month];
        month += 1;
    }
    (year, month + 1, day + 1)
}

impl Shared {
    fn world(&self) -> MutexGuard<'_, World> {
        self.world.lock().unwrap()
    }

    /// Answers the requests of one connection.
    fn serve(&self, stream: &TcpStream) -> std::io::Result<()> {
        stream.set_nodelay(true)?;
        let (mut reader, mut stream) = (BufReader::new(stream), stream);
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line)? == 0 {
                return Ok(());
            }
            let mut words = line.split(' ').map(str::to_owned);
            let (method, target) = (words.next().unwrap(), words.next().unwrap_or_default());
            let mut headers = BTreeMap::new();
            loop {
                let mut line = String::new();
                reader.read_line(&mut line)?;
                let Some((name, value)) = line.trim_end().split_once(':') else {
                    break;
                };
                headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
            }
            if let Some(len) = headers.get("content-length") {
                let mut body = vec![0; len.parse().unwrap()];
                reader.read_exact(&mut body)?;
            }
            stream.write_all(&self.answer(&method, &target, &headers))?;
        }
    }

    fn answer(&self, method: &str, target: &str, headers: &BTreeMap<String, String>) -> Vec<u8> {
        self.requests.fetch_add(1, Ordering::Relaxed);
        if let Some(status) = self.ways.heads.filter(|_| method == "HEAD") {
            self.refused.fetch_add(1, Ordering::Relaxed);
            return format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n").into_bytes();
        }
        let mut world = self.world();
        let at = clock(self.ways);
        let every = world.change_every;
        if every > 0 && world.random.below(every) == 0 {
            world.change(at);
        }
        let mut told = vec![format!("Date: {}", in_headers(at))];
        let path = target.split('?').next().unwrap_or_default();
        let path = path.strip_prefix("/bucket").unwrap_or(path);
        let object = path.strip_prefix("/z/").and_then(|path| world.object(path));
        let is_listing = target.contains("list-type");
        let (status, body) = match object {
            _ if !matches!(method, "GET" | "HEAD") || is_listing => ("405 No", Vec::new()),
            None => ("404 Not Found", Vec::new()),
            Some((bytes, number)) => {
                let tag = format!("\"tag {number}\"");
                if self.ways.tags {
                    told.push(format!("ETag: {tag}"));
                }
                let modified = match self.ways.dates {
                    Dates::None => None,
                    Dates::Upload => Some(world.uploads[&number]),
                    // The newer, the older.
                    Dates::Old => {
                        let before = Duration::from_secs(1_000_000 + 10 * u64::from(number));
                        Some(world.begun - before)
                    }
                };
                if let Some(modified) = modified {
                    told.push(format!("Last-Modified: {}", in_headers(modified)));
                }
                let differs = |name: &str| headers.get(name).is_some_and(|value| *value != tag);
                let is_same = headers
                    .get("if-none-match")
                    .is_some_and(|value| *value == tag);
                match headers
                    .get("range")
                    .and_then(|range| part(range, bytes.len()))
                {
                    _ if self.ways.tags && differs("if-match") => ("412 Changed", Vec::new()),
                    _ if self.ways.tags && is_same => ("304 Not Modified", Vec::new()),
                    Some((start, end)) => {
                        told.push(format!(
                            "Content-Range: bytes {start}-{}/{}",
                            end - 1,
                            bytes.len()
                        ));
                        ("206 Part", bytes[start..end].to_vec())
                    }
                    None => ("200 OK", bytes),
                }
            }
        };
        drop(world);
        let mut head = format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\n", body.len());
        for line in told {
            head += &line;
            head += "\r\n";
        }
        let mut answer = (head + "\r\n").into_bytes();
        if method != "HEAD" {
            self.bytes.fetch_add(body.len(), Ordering::Relaxed);
            answer.extend(body);
        }
        answer
    }
}

/// The bytes that the header `Range` asks for.
fn part(range: &str, len: usize) -> Option<(usize, usize)> {
    let (start, end) = range.strip_prefix("bytes=")?.split_once('-')?;
    if start.is_empty() {
        return Some((len.saturating_sub(end.parse().ok()?), len));
    }
    let end = end.parse().map_or(len, |end: usize| (end + 1).min(len));
    Some((start.parse().ok()?, end))
}
