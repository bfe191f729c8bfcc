//! Small reads of several chunks, which a worker has a part in.

use std::sync::{Arc, Barrier};
use std::thread;

use super::model::{Compressor, Current, Model};
use super::simple;
use crate::chunk::{ArrayReader, Policy, Region, Versions};
use crate::error::Error;
use crate::store::Version;

/// What a worker finds when it asks for the version of a chunk.
#[derive(Clone, Copy)]
enum Finds {
    Version,
    Stale,
    Panic,
}

/// The versions in the store, for a reader and a worker who ask for one each, at the same time.
struct Meeting {
    both: Barrier,
    worker: Finds,
}

impl Versions for Meeting {
    fn version(
        &self,
        reader: &Arc<ArrayReader>,
        indices: &[u64],
    ) -> Result<Option<Version>, Error> {
        self.both.wait();
        let name = thread::current().name().map(str::to_owned);
        let is_worker = name.is_some_and(|name| name.starts_with("worker-"));
        match self.worker {
            Finds::Stale if is_worker => Err(Error::Stale),
            Finds::Panic if is_worker => panic!("on purpose"),
            _ => Current.version(reader, indices),
        }
    }

    fn known(&self, _: &Arc<ArrayReader>, _: &[u64]) -> Option<Option<Version>> {
        None
    }
}

/// Reads the end of one chunk and the beginning of the next.
fn read(worker: Finds) -> Result<(), Error> {
    let model = Model {
        shape: vec![8],
        compressor: Compressor::Blosc {
            name: c"lz4",
            level: 5,
            shuffle: 1,
            typesize: 2,
            blocksize: 0,
        },
        absent: 0,
        chunk: vec![4],
        ..simple()
    };
    let (reader, _store) = model.reader(1 << 20);
    let versions: Arc<dyn Versions> = Arc::new(Meeting {
        both: Barrier::new(2),
        worker,
    });
    let region = Region::all(&model.shape);
    let mut out = [0xee; 9];
    reader.gather(&region, 3, &mut out, &versions, Policy::ByCost)?;
    assert_eq!(out[..], model.run(&region)[3..][..9]);
    Ok(())
}

#[test]
fn a_worker_reads_one_of_two_chunks() {
    read(Finds::Version).unwrap();
}

#[test]
fn what_a_worker_fails_at_fails() {
    assert!(matches!(read(Finds::Stale), Err(Error::Stale)));
}

#[test]
fn a_panic_of_a_worker_is_an_error_of_the_read() {
    assert!(matches!(read(Finds::Panic), Err(Error::Panicked)));
}
