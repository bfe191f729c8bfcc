//! Each codec as the mount decodes it, beside its decompressor by hand; and chunks of a shard read
//! by pread(2) beside chunks of a mapped one.

use std::fs::File;
use std::hint::black_box;
use std::io::Write;
use std::os::unix::fs::FileExt;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use zarr_mount::codec::ChunkSpec;
use zarr_mount_benches::codec::{Codec, Decoder};

mod support;

const CODECS: [(&str, Codec); 5] = [
    ("uncompressed", Codec::None),
    ("blosc-lz4", Codec::Blosc),
    ("zstd", Codec::Zstd),
    ("zlib", Codec::Zlib),
    ("gzip", Codec::Gzip),
];
const CHUNKS_OF_A_SHARD: usize = 64;

fn decode(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("decode");
    group.throughput(Throughput::Bytes(support::CHUNK_BYTES as u64));
    for (name, codec) in CODECS {
        let encoded = support::encoded(codec, 1);
        let mut out = vec![1; support::CHUNK_BYTES];
        let array = support::array(codec, 1);
        let decoding = array.decoding.as_ref().expect("a known codec");
        let longest = array.chunks.longest();
        let spec = ChunkSpec {
            shape: &longest,
            dtype: &decoding.data_type,
            fill: &decoding.fill_value,
        };
        group.bench_function(format!("{name}/mount"), |bencher| {
            bencher.iter(|| {
                let done = decoding.codecs.decode(&spec, black_box(&encoded), &mut out);
                done.expect("encoded above");
            });
        });
        let mut decoder = Decoder::new(codec);
        group.bench_function(format!("{name}/by hand"), |bencher| {
            bencher.iter(|| {
                let done = decoder.decode(black_box(&encoded), &mut out);
                done.expect("encoded above");
            });
        });
    }
    group.finish();
}

fn shard(criterion: &mut Criterion) {
    let mut file = tempfile::tempfile().expect("a temporary file");
    let mut ranges = Vec::new();
    let mut end = 0;
    for seed in 0..CHUNKS_OF_A_SHARD {
        let encoded = support::encoded(Codec::Blosc, seed as u64);
        file.write_all(&encoded).expect("room");
        ranges.push((end, encoded.len()));
        end += encoded.len();
    }
    let mut group = criterion.benchmark_group("chunk of a shard");
    group.throughput(Throughput::Bytes(support::CHUNK_BYTES as u64));
    let mut out = vec![1; support::CHUNK_BYTES];
    let mut decoder = Decoder::new(Codec::Blosc);
    let (mut at, mut buffer) = (0, Vec::new());
    group.bench_function("pread", |bencher| {
        bencher.iter(|| {
            let (offset, len) = ranges[at % ranges.len()];
            at += 1;
            buffer.resize(len, 0);
            file.read_exact_at(&mut buffer, offset as u64)
                .expect("written above");
            decoder.decode(&buffer, &mut out).expect("encoded above");
        });
    });
    group.bench_function("mapped once", |bencher| {
        let map = map(&file);
        bencher.iter(|| {
            let (offset, len) = ranges[at % ranges.len()];
            at += 1;
            decoder
                .decode(&map[offset..offset + len], &mut out)
                .expect("encoded above");
        });
    });
    group.bench_function("mapped anew", |bencher| {
        bencher.iter(|| {
            let (offset, len) = ranges[at % ranges.len()];
            at += 1;
            let map = map(&file);
            decoder
                .decode(&map[offset..offset + len], &mut out)
                .expect("encoded above");
        });
    });
    group.finish();
}

#[expect(unsafe_code, reason = "mapping a file is")]
fn map(file: &File) -> memmap2::Mmap {
    // SAFETY: nobody else has the file, and nobody truncates it.
    unsafe { memmap2::Mmap::map(file) }.expect("a plain file")
}

criterion_group!(benches, decode, shard);
criterion_main!(benches);
