//! Encoding by hand: what writing a store costs when nothing stands around the compressor.
//!
//! usage: `encode_floor SOURCE CHUNK_BYTES CODEC ITEM_BYTES THREADS`
//!
//! SOURCE has decoded chunks, one after the other; they are in memory before the clock starts. Each
//! thread has one encoder, whose contexts and buffer serve all its chunks. With the codec `none`, a
//! chunk is copied.

use std::io;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::thread;
use std::time::Instant;

use serde_json::json;
use zarr_mount_benches::arguments::{argument, number};
use zarr_mount_benches::codec::{Codec, Encoder};
use zarr_mount_benches::report;
use zarr_mount_benches::source::Source;

fn main() -> io::Result<()> {
    let source = Source::read(&argument(1)?, number(2)?)?;
    let codec: Codec = serde_json::from_value(json!(argument(3)?)).map_err(io::Error::other)?;
    let (item_size, threads) = (number(4)?, number(5)?);
    let encoders = (0..threads).map(|_| {
        let mut encoder = Encoder::new(codec, item_size)?;
        // The first chunk touches each page that is needed, so that the kernel's zeroing is not measured.
        encoder.encode(source.chunk(0).unwrap_or_default())?;
        Ok(encoder)
    });
    let encoders = encoders.collect::<io::Result<Vec<_>>>()?;

    let (next, encoded) = (AtomicUsize::new(0), AtomicU64::new(0));
    let work = |mut encoder: Encoder| -> io::Result<()> {
        while let Some(chunk) = source.chunk(next.fetch_add(1, Ordering::Relaxed)) {
            let len = encoder.encode(chunk)?.len();
            encoded.fetch_add(len as u64, Ordering::Relaxed);
        }
        Ok(())
    };
    let start = Instant::now();
    thread::scope(|scope| {
        let all: Vec<_> = encoders
            .into_iter()
            .map(|encoder| scope.spawn(|| work(encoder)))
            .collect();
        all.into_iter()
            .try_for_each(|one| one.join().map_err(|_| io::Error::other("a panic"))?)
    })?;
    let mut told = report::reading(start.elapsed(), source.bytes());
    told["encoded"] = json!(encoded.into_inner());
    report::tell(&told);
    Ok(())
}
