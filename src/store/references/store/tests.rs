//! Sets whose store fails for a while.

use super::*;
use crate::store::MemoryStore;
use crate::store::testing::{CallKind, Failure, Fault, Faulty, wrap};

fn key(text: &str) -> Key {
    Key::parse(text.as_bytes()).unwrap()
}

fn opened(store: Arc<dyn Store>, name: &str) -> ReferenceStore {
    ReferenceStore::within(store, key(name), &OpenOptions::default()).unwrap()
}

#[test]
fn a_failure_of_the_system_is_not_remembered() {
    let mut sets = vec![("a.json", r#"{"x/0": "a"}"#, r#"{"x/0": "b"}"#)];
    if cfg!(feature = "references") {
        let [first, second] = [1, 2].map(|size| {
            let text = format!(r#"{{"record_size": {size}, "metadata": {{"x/0": "b"}}}}"#);
            &*text.leak()
        });
        sets.push(("a/.zmetadata", first, second));
    }
    for (name, first, second) in sets {
        let within = Arc::new(MemoryStore::new());
        within.insert(key(name), first.as_bytes());
        let faulty = Arc::<Faulty>::default();
        let set = opened(wrap(Arc::clone(&within) as _, &faulty), name);
        within.insert(key(name), second.as_bytes());
        faulty.at(CallKind::Read, 1, Fault::Fails(Failure::Io));
        let error = set.open(&key("x/0")).unwrap_err();
        assert!(
            matches!(error, StoreError::Io { errno: Some(_), .. }),
            "{error}"
        );
        let object = set.open(&key("x/0")).unwrap().unwrap();
        let mut byte = [0];
        object.read_at(0, &mut byte).unwrap();
        assert_eq!(&byte, b"b");
    }
}
