//! Answers of the server about keys, as they are kept on disk.

use std::time::{Duration, SystemTime};

use object_store::ObjectMeta as ServerMeta;
use serde_json::{Value, json};

use super::{Kept, KeptTimes, clock, ms_of, ms_since_epoch};
use crate::store::disk_cache::{EntryFacts, EntryKind, EntryName};
use crate::store::remote::tag::Pinned;
use crate::store::{AnswerTimes, Arrival};

/// An answer of the server about a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::store::remote) enum KeptAnswer {
    /// The version of the object there.
    Object(Pinned),
    /// There is no object.
    Absent,
    /// There is no object, but others lie below the key.
    Directory,
    /// Access is denied, for this reason.
    Denied(String),
}

impl Kept {
    /// The kept answer about `path`, and its times.
    pub(super) fn answer(&self, path: &str) -> Option<(KeptAnswer, KeptTimes)> {
        let (facts, text) = self.cache.read(&self.answer_name(path))?;
        let text: Value = serde_json::from_slice(&text).ok()?;
        Some((self.parse(&text)?, KeptTimes::new(facts, &text)))
    }

    /// Keeps the answer about `path` that was given at these times.
    pub(in crate::store::remote) fn keep_answer(
        &self,
        path: &str,
        times: AnswerTimes,
        answer: &KeptAnswer,
    ) {
        let (object_bytes, modified_s) = match answer {
            KeptAnswer::Object(pinned) => {
                if !self.keeps(pinned) {
                    return;
                }
                let modified_s = ms_since_epoch(pinned.meta.version.mtime) / 1000;
                (pinned.meta.size(), modified_s)
            }
            KeptAnswer::Absent | KeptAnswer::Directory | KeptAnswer::Denied(_) => (0, 0),
        };
        let mut text = match answer {
            KeptAnswer::Object(pinned) => json!({
                "object": {
                    "bytes": object_bytes,
                    "modified": modified_s,
                    "tag": pinned.tag,
                    // Rounded up, because the object was not there before.
                    "arrived_ms": match pinned.meta.arrival {
                        Arrival::Uploaded(at) => Some(ms_since_epoch(at).saturating_add(1)),
                        Arrival::Untold | Arrival::Changed => None,
                    },
                },
            }),
            KeptAnswer::Absent => json!({ "absent": true }),
            KeptAnswer::Directory => json!({ "directory": true }),
            KeptAnswer::Denied(reason) => json!({ "denied": reason }),
        };
        text["times"] = clock::to_json(times);
        let facts = EntryFacts {
            validated_ms: ms_of(times.asked),
            object_bytes,
            modified_s,
        };
        let text = text.to_string().into_bytes().into();
        self.cache.put(&self.answer_name(path), facts, &[text]);
    }

    /// Deletes the answer about `path`.
    pub(in crate::store::remote) fn forget_answer(&self, path: &str) {
        self.cache.remove(&self.answer_name(path));
    }

    /// The entry of the answer about `path`.
    pub(super) fn answer_name(&self, path: &str) -> EntryName {
        EntryName {
            kind: EntryKind::Answer,
            origin: self.origin.clone(),
            key: path.to_owned(),
            tag: String::new(),
            // The same answer of the server has two meanings.
            version: if self.absent_403 { "absent-403" } else { "" }.to_owned(),
            range: 0..0,
        }
    }

    fn parse(&self, text: &Value) -> Option<KeptAnswer> {
        if let Some(object) = text.get("object") {
            let number = |name: &str| object.get(name)?.as_u64();
            let modified = Duration::from_secs(number("modified")?);
            let tag = object.get("tag").and_then(Value::as_str);
            let found = ServerMeta {
                location: "".into(),
                last_modified: SystemTime::UNIX_EPOCH.checked_add(modified)?.into(),
                size: number("bytes")?,
                e_tag: tag.map(str::to_owned),
                version: None,
            };
            // The clock of the server is not known any more.
            let mut pinned = Pinned::new(&found, None, self.last_modified);
            // It was examined when the answer was kept.
            pinned.is_young = false;
            if let Some(ms) = number("arrived_ms") {
                let arrived = SystemTime::UNIX_EPOCH.checked_add(Duration::from_millis(ms))?;
                pinned.meta.arrival = Arrival::Uploaded(arrived);
            }
            return Some(KeptAnswer::Object(pinned));
        }
        if let Some(reason) = text.get("denied") {
            return Some(KeptAnswer::Denied(reason.as_str()?.to_owned()));
        }
        let says = |name: &str| text.get(name) == Some(&Value::Bool(true));
        if says("directory") {
            return Some(KeptAnswer::Directory);
        }
        says("absent").then_some(KeptAnswer::Absent)
    }
}
