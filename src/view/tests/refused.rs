//! Files that lack what the store refuses, until the store gives it.

use std::sync::Mutex;

use super::arrays::{arrays, group};
use super::*;
use crate::plain::FileFormat;
use crate::store::StoreError;
use crate::store::testing::{Call, Layer, wrap};

/// Refuses all objects whose keys begin with one text.
#[derive(Debug, Default)]
struct Closed(Mutex<Option<&'static str>>);

impl Closed {
    fn close(&self, below: Option<&'static str>) {
        *self.0.lock().unwrap() = below;
    }
}

impl Layer for Closed {
    fn around<T>(
        &self,
        call: &Call,
        ask: impl FnOnce() -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let closed = *self.0.lock().unwrap();
        if closed.is_some_and(|closed| call.path.as_bytes().starts_with(closed.as_bytes())) {
            return Err(StoreError::Denied {
                key: call.path.to_string(),
                reason: "it is closed".to_owned(),
            });
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
    let closed = Arc::new(Closed::default());
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
