//! Reads files as a plain program does, and tells how long it took.
//!
//! usage: `reader file PATH` | `reader tree DIR` | `reader random` | `reader open` | `reader stat`
//!        | `reader beside THREADS`
//!
//! * `file`, `tree`: from end to end with read(2) of 1 MiB, one file after the other, in the
//!   order of the directory; `tree` leaves out metadata documents.
//! * `random`: each line of standard input is `OFFSET PATH`; pread(2) of 4 KiB there. Files are
//!   opened before the clock starts.
//! * `beside`: each line is a path: many threads open, read and close one file after the other.
//! * `open`, `stat`: each line is a path: open, read and close, or stat.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, BufRead, Read};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Instant;

use zarr_mount_benches::report;

const BUFFER_BYTES: usize = 1 << 20;
const PAGE_BYTES: usize = 4096;

fn main() -> io::Result<()> {
    let argument = |n| std::env::args().nth(n).unwrap_or_default();
    let path = PathBuf::from(argument(2));
    let told = match argument(1).as_str() {
        "file" => {
            let mut buffer = vec![1; BUFFER_BYTES];
            let start = Instant::now();
            let bytes = read_file(&path, &mut buffer)?;
            report::reading(start.elapsed(), bytes)
        }
        "tree" => {
            let mut buffer = vec![1; BUFFER_BYTES];
            let start = Instant::now();
            let bytes = read_tree(&path, &mut buffer)?;
            report::reading(start.elapsed(), bytes)
        }
        "random" => random()?,
        "beside" => beside(argument(2).parse().map_err(io::Error::other)?)?,
        "open" => {
            let mut buffer = vec![1; BUFFER_BYTES];
            each(|path| read_file(path, &mut buffer).map(drop))?
        }
        "stat" => each(|path| fs::symlink_metadata(path).map(drop))?,
        _ => return Err(io::Error::other("what to read?")),
    };
    report::tell(&told);
    Ok(())
}

fn read_file(path: &Path, buffer: &mut [u8]) -> io::Result<u64> {
    let mut file = File::open(path)?;
    let mut bytes = 0;
    loop {
        match file.read(buffer)? {
            0 => return Ok(bytes),
            n => bytes += n as u64,
        }
    }
}

fn read_tree(folder: &Path, buffer: &mut [u8]) -> io::Result<u64> {
    let mut bytes = 0;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        if entry.file_type()?.is_dir() {
            bytes += read_tree(&entry.path(), buffer)?;
        } else if name != "zarr.json" && !name.to_string_lossy().starts_with('.') {
            bytes += read_file(&entry.path(), buffer)?;
        }
    }
    Ok(bytes)
}

fn random() -> io::Result<serde_json::Value> {
    let mut files: HashMap<String, File> = HashMap::new();
    let mut places = Vec::new();
    for line in io::stdin().lock().lines() {
        let line = line?;
        let (offset, path) = line.split_once(' ').ok_or(io::ErrorKind::InvalidInput)?;
        if !files.contains_key(path) {
            files.insert(path.to_owned(), File::open(path)?);
        }
        places.push((path.to_owned(), offset.parse().map_err(io::Error::other)?));
    }
    let mut buffer = [0; PAGE_BYTES];
    let mut elapsed = Vec::with_capacity(places.len());
    for (path, offset) in &places {
        let file = &files[path];
        let start = Instant::now();
        file.read_exact_at(&mut buffer, *offset)?;
        elapsed.push(start.elapsed());
    }
    Ok(report::latencies(elapsed))
}

/// Reads the files of standard input with `threads` threads, and tells how long all of them took.
fn beside(threads: usize) -> io::Result<serde_json::Value> {
    let paths: Vec<String> = io::stdin().lock().lines().collect::<io::Result<_>>()?;
    let next = AtomicUsize::new(0);
    let read_some = || -> io::Result<u64> {
        let mut buffer = vec![1; BUFFER_BYTES];
        let mut bytes = 0;
        while let Some(path) = paths.get(next.fetch_add(1, Ordering::Relaxed)) {
            bytes += read_file(Path::new(path), &mut buffer)?;
        }
        Ok(bytes)
    };
    let start = Instant::now();
    let bytes = thread::scope(|scope| {
        let readers: Vec<_> = (0..threads).map(|_| scope.spawn(read_some)).collect();
        let each = readers.into_iter().map(|reader| match reader.join() {
            Ok(read) => read,
            Err(_) => Err(io::Error::other("a reader panicked")),
        });
        each.sum::<io::Result<u64>>()
    })?;
    Ok(report::reading(start.elapsed(), bytes))
}

/// Does `what` with each path of standard input, which is read before the clock starts.
fn each(mut what: impl FnMut(&Path) -> io::Result<()>) -> io::Result<serde_json::Value> {
    let paths: Vec<String> = io::stdin().lock().lines().collect::<io::Result<_>>()?;
    let mut elapsed = Vec::with_capacity(paths.len());
    for path in &paths {
        let start = Instant::now();
        what(Path::new(path))?;
        elapsed.push(start.elapsed());
    }
    Ok(report::latencies(elapsed))
}
