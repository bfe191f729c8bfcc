//! A web server in this process. The test makes its answers.

#![cfg(feature = "remote")]

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::SystemTime;

/// A request, without its body.
#[derive(Debug)]
pub struct Request {
    pub method: String,
    pub target: String,
    /// Headers, by their names in small letters.
    pub headers: BTreeMap<String, String>,
}

/// A response: its status line, its headers, and its body, which a `HEAD` request does not get.
#[derive(Debug)]
pub struct Response {
    pub status: &'static str,
    pub headers: Vec<String>,
    pub body: Vec<u8>,
}

/// Answers requests.
pub trait Answers: Debug + Send + Sync + 'static {
    fn answer(&self, request: &Request) -> Response;
}

/// A server that runs until it is dropped.
#[derive(Debug)]
pub struct WebServer {
    url: String,
    state: Arc<State>,
}

#[derive(Debug, Default)]
struct State {
    is_over: AtomicBool,
    requests: AtomicUsize,
    /// Bytes of bodies that were sent.
    bytes: AtomicUsize,
}

impl WebServer {
    pub fn start(answers: Arc<dyn Answers>) -> WebServer {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let state = Arc::new(State::default());
        let serving = Arc::clone(&state);
        thread::spawn(move || {
            for stream in listener.incoming() {
                if serving.is_over.load(Ordering::Relaxed) {
                    break;
                }
                let (answers, state) = (Arc::clone(&answers), Arc::clone(&serving));
                let stream = stream.unwrap();
                // A connection that breaks is the client's affair.
                thread::spawn(move || drop(serve(&*answers, &state, &stream)));
            }
        });
        WebServer { url, state }
    }

    pub fn url(&self) -> &str {
        &self.url
    }

    /// How many requests came so far.
    pub fn requests(&self) -> usize {
        self.state.requests.load(Ordering::Relaxed)
    }

    /// How many bytes of bodies were sent so far.
    pub fn bytes(&self) -> usize {
        self.state.bytes.load(Ordering::Relaxed)
    }
}

impl Drop for WebServer {
    fn drop(&mut self) {
        self.state.is_over.store(true, Ordering::Relaxed);
        // The thread that accepts connections wakes up.
        let address = self.url.strip_prefix("http://").unwrap();
        drop(TcpStream::connect(address));
    }
}

/// Answers the requests of one connection.
fn serve(answers: &dyn Answers, state: &State, stream: &TcpStream) -> std::io::Result<()> {
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
        let request = Request {
            method,
            target,
            headers,
        };
        state.requests.fetch_add(1, Ordering::Relaxed);
        let response = answers.answer(&request);
        let (status, len) = (response.status, response.body.len());
        let mut head = format!("HTTP/1.1 {status}\r\nContent-Length: {len}\r\n");
        for line in response.headers {
            head += &line;
            head += "\r\n";
        }
        let mut bytes = (head + "\r\n").into_bytes();
        if request.method != "HEAD" {
            state.bytes.fetch_add(len, Ordering::Relaxed);
            bytes.extend(response.body);
        }
        stream.write_all(&bytes)?;
    }
}

/// The response to a request for an object, or a part of it. `tag` is its strong `ETag`, in quotes.
pub fn object(
    request: &Request,
    mut headers: Vec<String>,
    tag: Option<&str>,
    bytes: &[u8],
) -> Response {
    let named = |name: &str| request.headers.get(name).map(String::as_str);
    headers.extend(tag.map(|tag| format!("ETag: {tag}")));
    let range = named("range").and_then(|range| part(range, bytes.len()));
    let is_other = tag.is_some() && named("if-match").is_some_and(|asked| Some(asked) != tag);
    let is_same = tag.is_some() && named("if-none-match") == tag;
    let (status, body) = match range {
        _ if is_other => ("412 Changed", Vec::new()),
        _ if is_same => ("304 Not Modified", Vec::new()),
        Some((start, end)) => {
            let (last, len) = (end - 1, bytes.len());
            headers.push(format!("Content-Range: bytes {start}-{last}/{len}"));
            ("206 Part", bytes[start..end].to_vec())
        }
        None => ("200 OK", bytes.to_vec()),
    };
    Response {
        status,
        headers,
        body,
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

/// A time as headers have it.
pub fn in_headers(time: SystemTime) -> String {
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
