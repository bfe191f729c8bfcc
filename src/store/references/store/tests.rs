//! Sets whose store fails for a while, and the times of answers about a set in Parquet.

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

/// A store that has noted when it answered.
#[cfg(feature = "references")]
#[derive(Debug)]
struct Dated {
    within: MemoryStore,
    answers: std::collections::BTreeMap<Key, AnswerTimes>,
    asked_again: parking_lot::Mutex<Vec<Key>>,
}

#[cfg(feature = "references")]
impl Store for Dated {
    fn inner(&self) -> Option<&dyn Store> {
        Some(&self.within)
    }

    fn stat(&self, key: &Key) -> Result<Option<Stat>, StoreError> {
        self.within.stat(key)
    }

    fn stat_root(&self) -> Result<ObjectMeta, StoreError> {
        self.within.stat_root()
    }

    fn open(&self, key: &Key) -> Result<Option<Arc<dyn Object>>, StoreError> {
        self.within.open(key)
    }

    fn list(
        &self,
        prefix: &Prefix,
        after: Cursor,
        detail: Detail,
    ) -> Result<Option<Box<dyn Listing>>, StoreError> {
        self.within.list(prefix, after, detail)
    }

    fn profile(&self) -> Profile {
        self.within.profile()
    }

    fn told_at(&self, key: &Key) -> Option<AnswerTimes> {
        self.answers.get(key).copied()
    }

    fn ask_again_for(&self, keys: &[Key]) {
        self.asked_again.lock().extend_from_slice(keys);
    }
}

#[cfg(feature = "references")]
#[test]
fn an_answer_about_a_chunk_is_as_old_as_that_about_its_record() {
    let start = Instant::now();
    let at = |seconds| start + std::time::Duration::from_secs(seconds);
    let answer = |asked, answered| AnswerTimes {
        asked: at(asked),
        answered: at(answered),
    };
    let (metadata, records) = (key("s/.zmetadata"), key("s/0/refs.1.parq"));
    let within = MemoryStore::new();
    let array = r#"{"shape": [4], "chunks": [1]}"#;
    let text = format!(r#"{{"record_size": 2, "metadata": {{"0/.zarray": {array}}}}}"#);
    within.insert(metadata.clone(), text);
    let store = Arc::new(Dated {
        within,
        answers: [
            (metadata.clone(), answer(5, 6)),
            (records.clone(), answer(2, 8)),
        ]
        .into(),
        asked_again: parking_lot::Mutex::default(),
    });
    let set = opened(Arc::clone(&store) as _, "s/.zmetadata");
    let chunk = key("0/3");
    assert_eq!(set.told_at(&chunk), Some(answer(2, 8)));
    for other in ["0/.zarray", "0/4", "none"] {
        assert_eq!(set.told_at(&key(other)), Some(answer(5, 6)), "{other}");
    }
    set.ask_again_for(&[chunk]);
    assert_eq!(*store.asked_again.lock(), [records, metadata]);
}
