//! Requests that ask for several things at once, in every store.

use zarr_mount::store::{Cursor, Detail, FetchBuffer, ReadRange, StoreError};

use crate::{bytes, entries, fixtures, key, names, open};

#[test]
fn many_keys_have_the_results_of_each_of_them() {
    for fixture in fixtures() {
        fixture.put("a/b", b"12");
        fixture.put("c", b"345");
        let store = fixture.store();
        let keys = ["a", "a/b", "x", "c", "a/b"].map(key);
        let together = store.stat_many(&keys).into_iter().map(Result::unwrap);
        let alone = keys.iter().map(|key| store.stat(key).unwrap());
        assert!(together.eq(alone));
        assert!(store.stat_many(&[]).is_empty());
    }
}

#[test]
fn several_ranges_are_read_or_none() {
    for fixture in fixtures() {
        fixture.put("a", b"0123456789");
        let object = open(fixture.store(), "a");
        let read = |ranges: &[(u64, usize)]| {
            let mut buffers: Vec<Vec<u8>> = ranges.iter().map(|&(_, len)| vec![0; len]).collect();
            let each = ranges.iter().zip(&mut buffers);
            let mut ranges: Vec<ReadRange<'_>> = each
                .map(|(&(offset_bytes, _), buf)| ReadRange { offset_bytes, buf })
                .collect();
            object.read_ranges(&mut ranges).map(|()| buffers)
        };
        let found = read(&[(7, 3), (0, 2), (10, 0), (1, 4)]).unwrap();
        assert_eq!(found, [&b"789"[..], b"01", b"", b"1234"]);
        assert!(read(&[]).unwrap().is_empty());
        for past in [(9, 2), (11, 0), (u64::MAX, 1)] {
            let error = read(&[(0, 2), past, (1, 1)]).unwrap_err();
            assert!(matches!(error, StoreError::Short { .. }), "{error}");
        }
        fixture.overwrite("a", b"longer than before");
        let error = read(&[(0, 2), (4, 2)]).unwrap_err();
        assert!(matches!(error, StoreError::Changed { .. }), "{error}");
    }
}

#[test]
fn received_bytes_are_those_of_one_version() {
    for fixture in fixtures() {
        fixture.put("a", b"0123456789");
        let object = open(fixture.store(), "a");
        let received = object.receive(&[0..2, 4..4, 5..8]).unwrap();
        assert_eq!(received.len(), 5);
        let mut three = [0; 3];
        assert!(received.read(5, &mut three));
        assert_eq!(&three, b"567");
        assert!(!received.read(1, &mut three), "a gap");
        let error = object.receive(&[0..2, 9..11]).unwrap_err();
        assert!(matches!(error, StoreError::Short { .. }), "{error}");
        fixture.overwrite("a", b"longer than before");
        let error = object.receive(&[0..2, 4..6]).unwrap_err();
        assert!(matches!(error, StoreError::Changed { .. }), "{error}");
    }
}

#[test]
fn a_version_is_verified_without_a_read() {
    for fixture in fixtures() {
        fixture.put("a", b"old bytes");
        let replaced = open(fixture.store(), "a");
        replaced.verify().unwrap();
        fixture.put("a", b"new bytes");
        replaced.verify().unwrap();
        let written = open(fixture.store(), "a");
        fixture.overwrite("a", b"longer than before");
        let error = written.verify().unwrap_err();
        assert!(matches!(error, StoreError::Changed { .. }), "{error}");
    }
}

#[test]
fn what_is_fetched_is_read_if_it_is_short_enough() {
    for fixture in fixtures() {
        fixture.put("a/b", b"12345");
        fixture.put("empty", b"");
        let store = fixture.store();
        for (name, most, expected) in [
            ("a/b", u64::MAX, Some(&b"12345"[..])),
            ("a/b", 5, Some(b"12345")),
            ("a/b", 4, None),
            ("empty", 0, Some(b"")),
        ] {
            let mut buffer = Vec::new();
            let fetched = store.fetch(&key(name), most, &mut buffer).unwrap().unwrap();
            assert_eq!(fetched.is_read.then_some(&*buffer), expected, "{name}");
            let version = open(store, name).meta().version;
            assert_eq!(fetched.object.meta().version, version);
            bytes(&*fetched.object).unwrap();
        }
        let mut buffer = Vec::new();
        assert!(store.fetch(&key("x"), 5, &mut buffer).unwrap().is_none());
        let refused = store.fetch(&key("a"), 5, &mut buffer).unwrap_err();
        assert!(
            matches!(refused, StoreError::NotAnObject { .. }),
            "{refused}"
        );
    }
}

/// No memory, whatever is asked for.
struct NoMemory;

impl FetchBuffer for NoMemory {
    fn of_len(&mut self, _: u64) -> Option<&mut [u8]> {
        None
    }
}

#[test]
fn what_finds_no_memory_is_opened_and_not_read() {
    for fixture in fixtures() {
        fixture.put("a", b"12345");
        let fetched = fixture.store().fetch(&key("a"), 5, &mut NoMemory);
        let fetched = fetched.unwrap().unwrap();
        assert!(!fetched.is_read);
        assert_eq!(bytes(&*fetched.object).unwrap(), b"12345");
    }
}

#[test]
fn names_that_come_and_go_do_not_shift_a_listing() {
    for fixture in fixtures() {
        for number in 10..30 {
            fixture.put(&format!("a/object-{number}"), b"12");
            fixture.put(&format!("a/prefix-{number}/below"), b"1");
        }
        let list = |after| entries(fixture.store(), "a", after, Detail::Names);
        let all = list(Cursor::START);
        for at in [15, 25] {
            let seen = &all[at];
            let is_object = seen.name.starts_with(b"object");
            let name = String::from_utf8(seen.name.clone()).unwrap();
            let below = if is_object { "" } else { "/below" };
            fixture.remove(&format!("a/{name}{below}"));
            fixture.put(&format!("a/new-{at}"), b"1");
            let is_new = |name: &Vec<u8>| name.starts_with(b"new");
            let mut rest = names(&list(seen.cursor.clone()));
            rest.retain(|name| !is_new(name));
            let mut expected = names(&all[at + 1..]);
            expected.retain(|name| !is_new(name));
            assert_eq!(rest, expected, "after {name}");
        }
    }
}

#[test]
fn temporary_stores_are_local() {
    for fixture in fixtures() {
        assert!(fixture.store().profile().is_local);
    }
}
