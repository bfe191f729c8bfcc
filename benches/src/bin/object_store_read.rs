//! An array of a web server, read with `object_store` and decoded by hand: what a program without a
//! Zarr library does. It asks for the metadata document first, as a program must that knows no more
//! than the address.
//!
//! usage: `object_store_read URL SPEC REQUESTS all` | `object_store_read URL SPEC REQUESTS some`
//!
//! * `all`: the whole array, into a fresh buffer. A shard is one request.
//! * `some`: the chunks whose numbers (in C order) are the lines of standard input, each decoded and
//!   dropped. The index of a shard is asked for once.
//!
//! `REQUESTS` are in flight at once. The spec is that of `decode_floor`; its directory is read
//! nowhere.

use std::error::Error;
use std::io::{self, BufRead};
use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use futures_util::stream::{self, StreamExt, TryStreamExt};
use object_store::http::{HttpBuilder, HttpStore};
use object_store::path::Path;
use object_store::{ClientOptions, GetOptions, GetRange, ObjectStore, ObjectStoreExt};
use serde_json::json;
use tokio::sync::OnceCell;
use zarr_mount_benches::codec::Decoder;
use zarr_mount_benches::report;
use zarr_mount_benches::scatter::Scatter;
use zarr_mount_benches::spec::{Spec, index_bytes, index_ranges};

type Failure = Box<dyn Error + Send + Sync>;
/// Where a chunk is in its object, and its first element in the array.
type PlacedChunk = (Range<usize>, Vec<usize>);

struct Reader {
    store: HttpStore,
    spec: Spec,
    requests: usize,
}

fn main() -> Result<(), Failure> {
    let argument = |n| std::env::args().nth(n).unwrap_or_default();
    // Clients are made with what TLS needs, although the addresses are of plain HTTP.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime.enable_all().build()?;
    let options = ClientOptions::new().with_allow_http(true);
    let store = HttpBuilder::new().with_url(argument(1));
    let reader = Arc::new(Reader {
        store: store.with_client_options(options).build()?,
        spec: serde_json::from_str(&argument(2))?,
        requests: argument(3).parse()?,
    });
    let told = match argument(4).as_str() {
        "all" => runtime.block_on(all(reader))?,
        "some" => {
            let lines = io::stdin().lock().lines();
            let numbers = lines.map(|line| line?.parse().map_err(io::Error::other));
            let numbers = numbers.collect::<io::Result<Vec<usize>>>()?;
            runtime.block_on(some(reader, numbers))?
        }
        _ => return Err("what to read?".into()),
    };
    report::tell(&told);
    Ok(())
}

async fn all(reader: Arc<Reader>) -> Result<serde_json::Value, Failure> {
    let start = Instant::now();
    reader.document().await?;
    let mut array = vec![0; reader.spec.array_bytes()];
    let target = Scatter::new(&mut array, &reader.spec.shape, reader.spec.item);
    let objects: Vec<_> = reader.spec.objects().collect();
    // Chunks are few or large: a task for each decodes beside the others' requests.
    let (send, receive) = std::sync::mpsc::channel();
    let reading = async {
        let decoded = stream::iter(objects).map(|(key, origin)| {
            let (reader, send) = (Arc::clone(&reader), send.clone());
            let task = tokio::spawn(async move {
                let encoded = reader.store.get(&Path::parse(key)?).await?.bytes().await?;
                for (range, origin) in reader.chunks_in(&encoded, &origin)? {
                    let part = encoded.get(range).ok_or("a chunk is outside its shard")?;
                    // The receiver outlives this.
                    let _ = send.send((reader.decode(part)?, origin));
                }
                Ok::<(), Failure>(())
            });
            async { task.await? }
        });
        let mut decoded = decoded.buffer_unordered(reader.requests);
        while decoded.try_next().await?.is_some() {
            for (chunk, origin) in receive.try_iter() {
                target.put(&chunk, &reader.spec.chunks, &origin);
            }
        }
        Ok::<(), Failure>(())
    };
    reading.await?;
    let mut told = report::reading(start.elapsed(), array.len() as u64);
    told["crc"] = json!(crc32fast::hash(&array));
    Ok(told)
}

async fn some(reader: Arc<Reader>, numbers: Vec<usize>) -> Result<serde_json::Value, Failure> {
    let start = Instant::now();
    reader.document().await?;
    let places: Vec<_> = reader.spec.chunk_places().collect();
    let indices: Vec<_> = reader.spec.objects().map(|_| OnceCell::new()).collect();
    let indices = Arc::new(indices);
    let chosen = numbers.iter().map(|&number| places.get(number).cloned());
    let chosen = chosen.collect::<Option<Vec<_>>>().ok_or("no such chunk")?;
    let bytes: Vec<usize> = stream::iter(chosen)
        .map(|place| {
            let (reader, indices) = (Arc::clone(&reader), Arc::clone(&indices));
            let task = tokio::spawn(async move {
                let path = Path::parse(&place.key)?;
                let encoded = match place.number_in_shard {
                    None => reader.store.get(&path).await?.bytes().await?,
                    Some(number) => {
                        let index = indices.get(place.object).ok_or("no such shard")?;
                        let index = index.get_or_try_init(|| reader.index(&path)).await?;
                        let range = index.get(number).cloned().ok_or("no such chunk")?;
                        reader.store.get_range(&path, range).await?
                    }
                };
                Ok::<_, Failure>(reader.decode(&encoded)?.len())
            });
            async { task.await? }
        })
        .buffer_unordered(reader.requests)
        .try_collect()
        .await?;
    Ok(report::reading(
        start.elapsed(),
        bytes.iter().sum::<usize>() as u64,
    ))
}

impl Reader {
    async fn document(&self) -> Result<(), Failure> {
        let found = self.store.get(&Path::from("zarr.json")).await?;
        let _: serde_json::Value = serde_json::from_slice(&found.bytes().await?)?;
        Ok(())
    }

    /// Where the chunks of a shard are in it.
    async fn index(&self, path: &Path) -> Result<Vec<Range<u64>>, Failure> {
        let len = index_bytes(self.spec.chunks_a_shard()) as u64;
        let options = GetOptions::new().with_range(Some(GetRange::Suffix(len)));
        let found = self.store.get_opts(path, options).await?;
        Ok(index_ranges(&found.bytes().await?))
    }

    /// The chunks of an object, and where their first elements are in the array.
    fn chunks_in(&self, encoded: &[u8], origin: &[usize]) -> Result<Vec<PlacedChunk>, Failure> {
        if self.spec.shards.is_none() {
            return Ok(vec![(0..encoded.len(), origin.to_vec())]);
        }
        let len = index_bytes(self.spec.chunks_a_shard());
        let begin = encoded.len().checked_sub(len).ok_or("a shard is short")?;
        let ranges = index_ranges(&encoded[begin..]);
        let origins = self.spec.origins_in_shard(origin);
        let chunks = ranges.into_iter().zip(origins).map(|(range, origin)| {
            let range = usize::try_from(range.start)?..usize::try_from(range.end)?;
            Ok((range, origin))
        });
        chunks.collect()
    }

    fn decode(&self, encoded: &[u8]) -> Result<Vec<u8>, Failure> {
        let mut chunk = vec![0; self.spec.chunk_bytes()];
        Decoder::new(self.spec.codec).decode(encoded, &mut chunk)?;
        Ok(chunk)
    }
}
