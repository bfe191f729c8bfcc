//! Pages of names, as they are kept on disk. They are used with `--immutable` and `--offline`: whoever lists names at other
//! times wants to know whether they have changed.

use std::time::{Duration, Instant, SystemTime};

use object_store::path::Path;
use object_store::{Extensions, ListResult, ObjectMeta as ServerMeta};
use serde_json::{Value, json};

use super::{Kept, ms_of, ms_since_epoch};
use crate::store::disk_cache::{EntryFacts, EntryKind, EntryName};
use crate::store::remote::client::{Page, PageRequest};
use crate::store::remote::failure::Failure;
use crate::store::remote::shared::Shared;

impl Shared {
    /// A page of names, which may be a kept one.
    pub(in crate::store::remote) async fn page(
        &self,
        request: PageRequest,
    ) -> Result<Page, Failure> {
        let Some(kept) = self.kept.clone() else {
            return self.client.page(&request).await;
        };
        if kept.is_forever() {
            let (kept, request) = (kept.clone(), request.clone());
            let found = tokio::task::spawn_blocking(move || kept.page(&request)).await;
            if let Ok(Some(page)) = found {
                return page;
            }
        }
        let asked = Instant::now();
        let page = self.client.page(&request).await;
        let text = match &page {
            Ok(page) => Some(to_json(page)),
            // A web server that lists no names does so the next time.
            Err(Failure::Unusable(problem)) if !self.client.lists_pages() && !kept.is_offline => {
                Some(json!({ "unusable": problem }))
            }
            Err(_) => None,
        };
        if let Some(text) = text {
            let keep = move || kept.keep_page(&request, asked, &text);
            // Keeping fails as silently as it does elsewhere.
            let _ = tokio::task::spawn_blocking(keep).await;
        }
        page
    }
}

impl Kept {
    fn page(&self, request: &PageRequest) -> Option<Result<Page, Failure>> {
        let (_, text) = self.cache.read(&self.page_name(request))?;
        of_json(&serde_json::from_slice(&text).ok()?)
    }

    fn keep_page(&self, request: &PageRequest, asked: Instant, text: &Value) {
        let facts = EntryFacts {
            validated_ms: ms_of(asked),
            object_bytes: 0,
            modified_s: 0,
        };
        let text = text.to_string().into_bytes().into();
        self.cache.put(&self.page_name(request), facts, &[text]);
    }

    fn page_name(&self, request: &PageRequest) -> EntryName {
        // A token or an offset may be any text, so the four are told apart as JSON.
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

/// The page in `text`, or that the server lists none; `None` for any other text.
fn of_json(text: &Value) -> Option<Result<Page, Failure>> {
    if let Some(problem) = text.get("unusable") {
        return Some(Err(Failure::Unusable(problem.as_str()?.to_owned())));
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
    }))
}
