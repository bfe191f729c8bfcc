//! Pages of names, as they are kept on disk. They are used with `--immutable` and `--offline`: without these options, a
//! listing has to show whether names have changed. But several processes that list the same names at the same time
//! share a page.

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use object_store::path::Path;
use object_store::{Extensions, ListResult, ObjectMeta as ServerMeta};
use serde_json::{Value, json};

use super::{Kept, KeptTimes, clock, ms_of, ms_since_epoch};
use crate::store::AnswerTimes;
use crate::store::disk_cache::{Claim, EntryFacts, EntryKind, EntryName};
use crate::store::remote::failure::Failure;
use crate::store::remote::pages::{NO_NAMES, Page, PageRequest};
use crate::store::remote::shared::Shared;

/// A page that another process has requested is shared if its request began no longer than this before the page was
/// wanted here.
const MOST_AGE: Duration = Duration::from_secs(10);

impl Shared {
    /// A page of names, which may be a kept one.
    pub(in crate::store::remote) async fn page(
        &self,
        request: PageRequest,
    ) -> Result<Page, Failure> {
        let Some(kept) = self.kept.clone() else {
            return self.client.page(&request).await;
        };
        let begun = Instant::now();
        let found = {
            let (kept, request) = (Arc::clone(&kept), request.clone());
            tokio::task::spawn_blocking(move || kept.look_for_page(&request)).await
        };
        // The claim is given up after the answer was kept.
        let (found, _claim) = found.unwrap_or_default();
        if let Some((page, times)) = found {
            let is_current = |times: AnswerTimes| {
                let since_then = begun.saturating_duration_since(times.asked);
                since_then <= MOST_AGE && self.remembered.trust().covers(times.asked)
            };
            if kept.is_forever() || times.exact.is_some_and(is_current) {
                if !kept.is_forever() {
                    kept.cache.note_shared();
                }
                return page;
            }
        }
        let asked = Instant::now();
        let page = self.client.page(&request).await;
        let text = match &page {
            Ok(page) => Some(to_json(page)),
            // A web server that lists no names lists none the next time.
            Err(Failure::Unusable(problem)) if problem == NO_NAMES => {
                Some(json!({ "lists": false }))
            }
            Err(Failure::Denied(reason)) => Some(json!({ "denied": reason })),
            Err(_) => None,
        };
        if let Some(mut text) = text {
            let answered = Instant::now();
            text["times"] = clock::to_json(AnswerTimes { asked, answered });
            let keep = move || kept.keep_page(&request, asked, &text);
            // A page that cannot be kept is no error.
            let _ = tokio::task::spawn_blocking(keep).await;
        }
        page
    }
}

/// A kept page, or the failure of a server that lists no names or denies them, and the times of the answer.
type KeptPage = (Result<Page, Failure>, KeptTimes);

impl Kept {
    fn page(&self, request: &PageRequest) -> Option<KeptPage> {
        let (facts, text) = self.cache.read(&self.page_name(request))?;
        let text: Value = serde_json::from_slice(&text).ok()?;
        let times = KeptTimes::new(facts, &text);
        let page = of_json(&text, times.told.asked)?;
        // The server may grant the next request.
        if matches!(page, Err(Failure::Denied(_))) && !self.is_offline {
            return None;
        }
        // Without `--immutable` and `--offline`, the page is as new as one that this process requests.
        let is_kept = self.is_forever();
        Some((page.map(|page| Page { is_kept, ..page }), times))
    }

    /// The page, if it is of use: a page that does not change, or that another process has requested while this one
    /// waited. Otherwise the claim to request it.
    fn look_for_page(self: &Arc<Self>, request: &PageRequest) -> (Option<KeptPage>, Option<Claim>) {
        if self.is_forever()
            && let Some(found) = self.page(request)
        {
            return (Some(found), None);
        }
        if self.is_offline {
            return (None, None);
        }
        let byte = self.page_name(request).claim_byte();
        if let Some(claim) = self.cache.claim(byte) {
            let found = self.is_forever().then(|| self.page(request)).flatten();
            return (found, Some(claim));
        }
        let asked = |found: &KeptPage| found.1.exact.map(|times| times.asked);
        let last = self.page(request).as_ref().and_then(asked);
        if !self.wait(None, vec![byte]).unwrap_or(false) {
            return (None, None);
        }
        let is_new = |found: &KeptPage| self.is_forever() || asked(found) > last;
        match self.page(request).filter(is_new) {
            None => (None, self.cache.claim(byte)),
            found => (found, None),
        }
    }

    fn keep_page(&self, request: &PageRequest, asked: Instant, text: &Value) {
        let facts = EntryFacts {
            validated_ms: ms_of(asked),
            object_bytes: 0,
            modified_s: 0,
        };
        let name = self.page_name(request);
        // A page is of more use with `--offline` than a later refusal.
        if text.get("denied").is_some() && self.cache.has(&name) {
            return;
        }
        let text = text.to_string().into_bytes().into();
        self.cache.put(&name, facts, &[text]);
    }

    fn page_name(&self, request: &PageRequest) -> EntryName {
        // A token or an offset may be any text, so the fields are joined as JSON, from which each can be read back.
        let PageRequest {
            start,
            token,
            offset,
            most,
        } = request;
        EntryName {
            kind: EntryKind::Names,
            origin: self.origin.clone(),
            key: start.clone(),
            tag: String::new(),
            version: json!([token, offset, most]).to_string(),
            range: 0..0,
        }
    }
}

fn to_json(page: &Page) -> Value {
    let objects: Vec<Value> = page.names.objects.iter().map(object_to_json).collect();
    let prefixes: Vec<&str> = page
        .names
        .common_prefixes
        .iter()
        .map(AsRef::as_ref)
        .collect();
    json!({
        "objects": objects,
        "prefixes": prefixes,
        "token": page.token,
        "date": page.date.map(ms_since_epoch),
    })
}

fn object_to_json(found: &ServerMeta) -> Value {
    json!([
        found.location.as_ref(),
        found.size,
        ms_since_epoch(found.last_modified.into()),
        found.e_tag,
    ])
}

/// The page in `text`, or the failure of a server that lists no names or denies them; `None` for any other text.
fn of_json(text: &Value, asked: Instant) -> Option<Result<Page, Failure>> {
    if text.get("lists") == Some(&Value::Bool(false)) {
        return Some(Err(Failure::unusable(NO_NAMES)));
    }
    if let Some(reason) = text.get("denied") {
        return Some(Err(Failure::Denied(reason.as_str()?.to_owned())));
    }
    let objects = text.get("objects")?.as_array()?;
    let prefixes = text.get("prefixes")?.as_array()?;
    let time = |ms: u64| SystemTime::UNIX_EPOCH.checked_add(Duration::from_millis(ms));
    let path = |text: &Value| Path::parse(text.as_str()?).ok();
    let object = |object: &Value| {
        Some(ServerMeta {
            location: path(object.get(0)?)?,
            size: object.get(1)?.as_u64()?,
            last_modified: time(object.get(2)?.as_u64()?)?.into(),
            e_tag: object.get(3)?.as_str().map(str::to_owned),
            version: None,
        })
    };
    Some(Ok(Page {
        names: ListResult {
            objects: objects.iter().map(object).collect::<Option<_>>()?,
            common_prefixes: prefixes.iter().map(path).collect::<Option<_>>()?,
            extensions: Extensions::default(),
        },
        token: text.get("token")?.as_str().map(str::to_owned),
        date: text.get("date")?.as_u64().and_then(time),
        asked,
        is_kept: true,
    }))
}

#[cfg(test)]
mod tests {
    use tempfile::tempdir;

    use super::super::answer::KeptAnswer;
    use super::super::recall::tests::{described, key, pinned, store};
    use super::*;
    use crate::store::{Cursor, Detail, Store};

    /// A page of the objects at `paths` and of the prefixes at `below`.
    fn page_of(paths: &[&str], below: &[&str], token: Option<&str>) -> Page {
        Page {
            names: ListResult {
                objects: paths.iter().map(|path| described(path, "t")).collect(),
                common_prefixes: below.iter().map(|path| Path::from(*path)).collect(),
                extensions: Extensions::default(),
            },
            token: token.map(str::to_owned),
            date: None,
            asked: Instant::now(),
            is_kept: false,
        }
    }

    #[test]
    fn kept_pages_of_a_listing_show_what_is_absent_offline() {
        let cache = tempdir().unwrap();
        let begun = store(cache.path(), false);
        let kept = begun.shared.kept.as_ref().unwrap();
        let keep = |start: &str, token: Option<&str>, page: &Page| {
            let request = PageRequest {
                start: start.to_owned(),
                token: token.map(str::to_owned),
                ..PageRequest::default()
            };
            kept.keep_page(&request, page.asked, &to_json(page));
        };
        keep(
            "z/",
            None,
            &page_of(&["z/zarr.json"], &["z/c", "z/e"], None),
        );
        keep("z/c/", None, &page_of(&["z/c/1", "z/c/3"], &[], Some("t")));
        keep("z/c/", Some("t"), &page_of(&["z/c/5"], &["z/c/7"], None));
        // The next page of this listing is not kept.
        keep("z/e/", None, &page_of(&["z/e/1"], &[], Some("t")));
        let store = store(cache.path(), true);
        // Pages are read again where another page than the last one is needed.
        for absent in [
            "c/4", "c/0", "c/2", "c/8", "c/7", "c", "c/10", "e/0", "f", "d/0", "d/g/0",
        ] {
            let opened = store.open(&key(absent));
            assert!(opened.unwrap().is_none(), "{absent}");
        }
        for unknown in ["e/2", "c/7/0"] {
            store.open(&key(unknown)).unwrap_err();
        }
        let is_prefix = |path: &str| {
            let stat = store.stat(&key(path)).unwrap();
            stat.is_some_and(|stat| stat.object_meta().is_none())
        };
        assert!(is_prefix("c") && is_prefix("e") && !is_prefix("c/2"));
    }

    #[test]
    fn offline_a_prefix_is_absent_only_if_the_server_has_said_so() {
        let cache = tempdir().unwrap();
        let begun = store(cache.path(), false);
        let kept = begun.shared.kept.as_ref().unwrap();
        let asked = Instant::now();
        let request = |name: &str| PageRequest {
            start: format!("z/{name}/"),
            most: Some(1),
            ..PageRequest::default()
        };
        let page = |prefixes: &[&str]| {
            let page = Page {
                names: ListResult {
                    objects: Vec::new(),
                    common_prefixes: prefixes.iter().map(|&prefix| prefix.into()).collect(),
                    extensions: Extensions::default(),
                },
                token: None,
                date: None,
                asked,
                is_kept: false,
            };
            to_json(&page)
        };
        let denied = json!({ "denied": "the server answered 403" });
        let (none, some) = (page(&[]), page(&["z/some/x"]));
        for (name, answers, expected) in [
            ("unknown", vec![], None),
            ("none", vec![&none], Some(false)),
            ("denied", vec![&denied], Some(false)),
            ("some", vec![&some, &denied], Some(true)),
            (
                "granted",
                vec![&denied, &page(&["z/granted/x"])],
                Some(true),
            ),
        ] {
            let answered = AnswerTimes {
                asked,
                answered: asked,
            };
            kept.keep_answer(&format!("z/{name}"), answered, &KeptAnswer::Absent);
            for answer in answers {
                kept.keep_page(&request(name), asked, answer);
            }
            let stat = store(cache.path(), true).stat(&key(name));
            let found = stat.map(|stat| stat.is_some());
            assert_eq!(found.ok(), expected, "{name}");
        }
        let found = kept.page(&request("denied"));
        assert!(found.is_none(), "the server is asked again");
    }

    #[test]
    fn an_answer_that_is_later_than_a_kept_page_counts_and_stays() {
        let asked = Instant::now().checked_sub(Duration::from_secs(10)).unwrap();
        let of = |asked| AnswerTimes {
            asked,
            answered: asked,
        };
        for (is_offline, is_our_clock) in
            [(false, false), (false, true), (true, false), (true, true)]
        {
            let cache = tempdir().unwrap();
            let first = store(cache.path(), false);
            let kept = first.shared.kept.as_ref().unwrap();
            let objects = ["1", "2", "3"].map(|n| described(&format!("z/c/{n}"), "listed"));
            let page = Page {
                names: ListResult {
                    objects: objects.to_vec(),
                    common_prefixes: Vec::new(),
                    extensions: Extensions::default(),
                },
                token: None,
                date: None,
                asked,
                is_kept: false,
            };
            let mut text = to_json(&page);
            text["times"] = clock::to_json(of(asked));
            if !is_our_clock {
                text["times"]["clock"] = "another".into();
            }
            let request = PageRequest {
                start: "z/c/".to_owned(),
                ..PageRequest::default()
            };
            kept.keep_page(&request, asked, &text);
            let (earlier, later) = (asked.checked_sub(Duration::from_secs(10)), Instant::now());
            let answers = [
                ("0", later, KeptAnswer::Object(pinned("later"))),
                ("1", later, KeptAnswer::Object(pinned("later"))),
                ("2", earlier.unwrap(), KeptAnswer::Absent),
            ];
            for (n, asked, answer) in &answers {
                kept.keep_answer(&format!("z/c/{n}"), of(*asked), answer);
            }
            let store = store(cache.path(), is_offline);
            let prefix = key("c").to_prefix();
            let listing = store.list(&prefix, Cursor::START, Detail::Names);
            assert!(listing.unwrap().unwrap().next_entry().unwrap().is_some());
            let expected = [
                Some("later"),
                Some("later"),
                Some("listed"),
                Some("listed"),
                None,
            ];
            for (n, tag) in expected.into_iter().enumerate() {
                let (key, path) = (key(&format!("c/{n}")), format!("z/c/{n}"));
                let before = kept.answer(&path).map(|(answer, _)| answer);
                for _ in 0..2 {
                    let found = store.known_object(&key).unwrap();
                    let version = tag.map(|tag| pinned(tag).meta.version);
                    assert_eq!(found.map(|meta| meta.version), version, "{n}");
                }
                store.shared.save(&key);
                assert_eq!(kept.answer(&path).map(|(answer, _)| answer), before, "{n}");
            }
        }
    }
}
