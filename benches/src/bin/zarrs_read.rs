//! The whole array with zarrs, into a fresh buffer, on all cores.
//!
//! usage: `zarrs_read SPEC`

use std::error::Error;
use std::sync::Arc;
use std::time::Instant;

use serde_json::json;
use zarr_mount_benches::report;
use zarr_mount_benches::spec::Spec;
use zarrs::array::{Array, ArrayBytes};
use zarrs::filesystem::FilesystemStore;

fn main() -> Result<(), Box<dyn Error>> {
    let spec = Spec::from_args()?;
    let start = Instant::now();
    let store = Arc::new(FilesystemStore::new(&spec.store)?);
    let array = Array::open(store, "/")?;
    let elements: ArrayBytes<'static> = array.retrieve_array_subset(&array.subset_all())?;
    let elapsed = start.elapsed();
    let bytes = elements.into_fixed()?;
    let mut told = report::reading(elapsed, bytes.len() as u64);
    told["crc"] = json!(crc32fast::hash(&bytes));
    report::tell(&told);
    Ok(())
}
