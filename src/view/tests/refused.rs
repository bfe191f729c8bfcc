//! Files of nodes that the store refuses, or that cannot be read.

use std::fmt;
use std::io;
use std::sync::Mutex;

use super::arrays::{arrays, group};
use super::*;
use crate::plain::FileFormat;
use crate::store::StoreError;
use crate::store::testing::{Call, Layer, wrap};

/// Gives an error for all objects whose keys begin with one text.
struct Closed {
    below: Mutex<Option<&'static str>>,
    error: fn(String) -> StoreError,
}

impl fmt::Debug for Closed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Closed")
    }
}

impl Closed {
    fn new(error: fn(String) -> StoreError) -> Arc<Closed> {
        let below = Mutex::new(None);
        Arc::new(Closed { below, error })
    }

    fn close(&self, below: Option<&'static str>) {
        *self.below.lock().unwrap() = below;
    }
}

impl Layer for Closed {
    fn around<T>(
        &self,
        call: &Call,
        ask: impl FnOnce() -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let below = *self.below.lock().unwrap();
        let is_below = |below: &str| call.path.as_bytes().starts_with(below.as_bytes());
        if below.is_some_and(is_below) {
            return Err((self.error)(call.path.to_string()));
        }
        ask()
    }
}

fn named(name: &str, attributes: Value) -> Vec<u8> {
    let mut document = array(&[4], &[4], &plain());
    document["dimension_names"] = json!([name]);
    document["attributes"] = attributes;
    text(&document)
}

#[test]
fn what_the_store_refused_is_in_the_files_when_it_is_refused_no_longer() {
    let closed = Closed::new(|key| StoreError::Denied {
        key,
        reason: "it is closed".to_owned(),
    });
    let options = arrays(&[FileFormat::Nc, FileFormat::Nhdr]);
    let fixture = Fixture::layered(options, &[], |store| wrap(store, &closed));
    fixture.put_old("zarr.json", &group());
    fixture.put_old("t/zarr.json", &named("x", json!({})));
    let unit = json!({"units": "micrometer", "axis": "X"});
    fixture.put_old("x/zarr.json", &named("x", unit));
    let has = |file: &str, text: &[u8]| {
        let bytes = fixture.read(file).unwrap();
        bytes.windows(text.len()).any(|window| window == text)
    };
    for refused in ["x/", "x/zarr.json"] {
        closed.close(Some(refused));
        assert!(!has("store.nc", b"micrometer"), "{refused}");
        assert!(!has("t.nhdr", b"units: \"um\""), "{refused}");
        closed.close(None);
        assert!(has("store.nc", b"micrometer"), "{refused}");
        assert!(has("t.nhdr", b"units: \"um\""), "{refused}");
    }
}

#[test]
fn files_that_cannot_be_made_are_listed() {
    let closed = Closed::new(|key| StoreError::io(key, &io::Error::from_raw_os_error(libc::EIO)));
    let options = arrays(&[FileFormat::Nc, FileFormat::Npy]);
    let fixture = Fixture::layered(options, &[], |store| wrap(store, &closed));
    fixture.put_old("zarr.json", &group());
    fixture.put_old("t/zarr.json", &named("x", json!({})));
    fixture.put_old("t.npy/zarr.json", &group());
    closed.close(Some("t.npy/zarr.json"));
    let listed = fixture.list("");
    for name in ["store.nc", "t.json", "t.npy"] {
        assert!(listed.contains(&name.to_owned()), "{name} of {listed:?}");
    }
    for name in ["store.nc", "t.npy"] {
        assert_eq!(refusal(&fixture, name), ErrorKind::Io, "{name}");
    }
    closed.close(None);
    let listed = fixture.list("");
    assert_eq!(listed, ["store.nc", "t.json", "t.npy", "t.npy~"]);
}
