//! Decoding by hand: what reading a store costs when nothing stands around the decompressor.
//!
//! usage: `decode_floor SPEC whole THREADS` | `decode_floor SPEC one COUNT` | `decode_floor SPEC part COUNT`
//!
//! * `whole`: every chunk is read, decoded and copied to its place in a prefaulted array.
//! * `one`: single chunks, in an order that looks random, one after the other.
//! * `part`: 4 KiB of single chunks: a blosc block, or a range of an uncompressed chunk.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Instant;

use serde_json::json;
use zarr_mount_benches::codec::{Codec, Decoder, blosc_items};
use zarr_mount_benches::report;
use zarr_mount_benches::scatter::Scatter;
use zarr_mount_benches::spec::Spec;

const PART_BYTES: usize = 4096;
/// A step that visits chunks in an order that no read-ahead foresees.
const STRIDE: usize = 7919;

fn main() -> io::Result<()> {
    let spec = Spec::from_args()?;
    let mode = std::env::args().nth(2).unwrap_or_default();
    let number = std::env::args().nth(3).and_then(|n| n.parse().ok());
    let number = number.ok_or_else(|| io::Error::other("the third argument is a number"))?;
    match mode.as_str() {
        "whole" => whole(&spec, number),
        "one" => one(&spec, number),
        "part" => part(&spec, number),
        _ => Err(io::Error::other(
            "the second argument is whole, one or part",
        )),
    }
}

fn whole(spec: &Spec, threads: usize) -> io::Result<()> {
    // Every page is touched before the clock starts, so that the kernel's zeroing is not measured.
    let mut array = vec![1u8; spec.array_bytes()];
    let start = Instant::now();
    let stored = spec.open()?;
    let scatter = Scatter::new(&mut array, &spec.shape, spec.item);
    let next = AtomicUsize::new(0);
    let work = || -> io::Result<()> {
        let mut decoder = Decoder::new(spec.codec);
        let (mut encoded, mut chunk) = (Vec::new(), vec![0; spec.chunk_bytes()]);
        while let Some(place) = stored.places.get(next.fetch_add(1, Ordering::Relaxed)) {
            stored.read(place, &mut encoded)?;
            let values = if spec.codec == Codec::None {
                &encoded
            } else {
                decoder.decode(&encoded, &mut chunk)?;
                &chunk
            };
            scatter.put(values, &spec.chunks, &place.origin);
        }
        Ok(())
    };
    thread::scope(|scope| {
        let all: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        all.into_iter()
            .try_for_each(|one| one.join().map_err(|_| io::Error::other("a panic"))?)
    })?;
    let elapsed = start.elapsed();
    let mut told = report::reading(elapsed, array.len() as u64);
    told["crc"] = json!(crc32fast::hash(&array));
    report::tell(&told);
    Ok(())
}

fn one(spec: &Spec, count: usize) -> io::Result<()> {
    let stored = spec.open()?;
    let mut decoder = Decoder::new(spec.codec);
    let (mut encoded, mut chunk) = (Vec::new(), vec![0; spec.chunk_bytes()]);
    let mut each = Vec::new();
    for n in 0..count.min(stored.places.len()) {
        let place = &stored.places[n * STRIDE % stored.places.len()];
        let start = Instant::now();
        stored.read(place, &mut encoded)?;
        if spec.codec != Codec::None {
            decoder.decode(&encoded, &mut chunk)?;
        }
        each.push(start.elapsed());
    }
    report::tell(&report::latencies(each));
    Ok(())
}

fn part(spec: &Spec, count: usize) -> io::Result<()> {
    let stored = spec.open()?;
    let (mut encoded, mut out) = (Vec::new(), vec![0; PART_BYTES]);
    let parts = spec.chunk_bytes() / PART_BYTES;
    let mut each = Vec::new();
    for n in 0..count.min(stored.places.len()) {
        let place = &stored.places[n * STRIDE % stored.places.len()];
        let from = n * STRIDE % parts * PART_BYTES;
        let start = Instant::now();
        if spec.codec == Codec::None {
            stored.read_part(place, from as u64, &mut out)?;
        } else {
            stored.read(place, &mut encoded)?;
            blosc_items(&encoded, from / spec.item, spec.item, &mut out)
                .ok_or_else(|| io::Error::other("no such items, or no blosc"))?;
        }
        each.push(start.elapsed());
    }
    report::tell(&report::latencies(each));
    Ok(())
}
