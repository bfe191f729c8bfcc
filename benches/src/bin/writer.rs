//! Writes chunk files as a plain program does, and tells how long it took.
//!
//! usage: `writer SOURCE FILE_BYTES STREAMS WRITE_BYTES [SYNC]`
//!
//! Each line of standard input is a path. The first file gets the first `FILE_BYTES` of SOURCE, the
//! second file the next ones, and so on; SOURCE is in memory before the clock starts. STREAMS threads
//! open or make one file after the other, empty it, write it in calls of `WRITE_BYTES`, and close it.
//! At last the file SYNC is synced, if there is one: that counts, too.

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, Write};
use std::os::fd::IntoRawFd;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Instant;

use zarr_mount_benches::arguments::{argument, number};
use zarr_mount_benches::report;
use zarr_mount_benches::source::Source;

fn main() -> io::Result<()> {
    let source = Source::read(&argument(1)?, number(2)?)?;
    let (streams, write_bytes) = (number(3)?, number(4)?);
    if write_bytes == 0 {
        return Err(io::Error::other("WRITE_BYTES is 0"));
    }
    let sync = std::env::args().nth(5);
    let paths: Vec<String> = io::stdin().lock().lines().collect::<io::Result<_>>()?;
    let next = AtomicUsize::new(0);
    let write_some = || -> io::Result<u64> {
        let mut bytes = 0;
        loop {
            let n = next.fetch_add(1, Ordering::Relaxed);
            let Some(path) = paths.get(n) else {
                return Ok(bytes);
            };
            let content = source.chunk(n).ok_or(io::ErrorKind::UnexpectedEof)?;
            let written = write(path, content, write_bytes);
            written.map_err(|error| io::Error::new(error.kind(), format!("{path}: {error}")))?;
            bytes += content.len() as u64;
        }
    };
    let start = Instant::now();
    let bytes = thread::scope(|scope| {
        let writers: Vec<_> = (0..streams).map(|_| scope.spawn(write_some)).collect();
        let each = writers.into_iter().map(|writer| match writer.join() {
            Ok(written) => written,
            Err(_) => Err(io::Error::other("a writer panicked")),
        });
        each.sum::<io::Result<u64>>()
    })?;
    if let Some(path) = sync {
        File::open(path)?.sync_all()?;
    }
    report::tell(&report::reading(start.elapsed(), bytes));
    Ok(())
}

fn write(path: &str, content: &[u8], write_bytes: usize) -> io::Result<()> {
    let mut options = OpenOptions::new();
    let mut file = options.write(true).create(true).truncate(true).open(path)?;
    for part in content.chunks(write_bytes) {
        file.write_all(part)?;
    }
    close(file)
}

/// Closes a file and returns the error, which `drop` would ignore: a mount saves a chunk when its file is closed.
fn close(file: File) -> io::Result<()> {
    #[expect(
        unsafe_code,
        reason = "the standard library does not tell errors of close(2)"
    )]
    // SAFETY: the descriptor is not owned by anything else any more.
    let status = unsafe { libc::close(file.into_raw_fd()) };
    if status == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}
