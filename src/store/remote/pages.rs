//! Pages of names, as servers list them.

use std::sync::atomic::Ordering;
use std::time::{Instant, SystemTime};

use object_store::ListResult;
use object_store::list::{PaginatedListOptions, PaginatedListResult};
use object_store::path::Path;
use tokio::time::timeout;

use super::attempts::OFFLINE;
use super::client::RemoteClient;
use super::exchange::{Exchange, RequestKind};
use super::failure::Failure;
use super::web_names;

/// A request for a page of names.
#[derive(Debug, Clone, Default)]
pub(super) struct PageRequest {
    /// The names are those of keys that begin so.
    pub(super) start: String,
    /// The page follows the one that had this token.
    pub(super) token: Option<String>,
    /// The page begins after this key.
    pub(super) offset: Option<String>,
    /// The most names.
    pub(super) most: Option<usize>,
}

/// One page of names.
pub(super) struct Page {
    pub(super) names: ListResult,
    /// Continues the listing; `None` after the last page.
    pub(super) token: Option<String>,
    /// When the server sent the page, by its own clock.
    pub(super) date: Option<SystemTime>,
    /// When it was requested.
    pub(super) asked: Instant,
}

impl RemoteClient {
    /// One page of names.
    pub(super) async fn page(&self, request: &PageRequest) -> Result<Page, Failure> {
        let page = self.any_page(request).await;
        match &page {
            Ok(_) => self.seen.has_listed.store(true, Ordering::Relaxed),
            // This server has listed names before.
            Err(Failure::Unusable(problem)) if self.seen.has_listed.load(Ordering::Relaxed) => {
                return Err(Failure::transient(problem));
            }
            Err(_) => {}
        }
        page
    }

    /// Like [`RemoteClient::page`], where a failure may mean that the server does not list names.
    async fn any_page(&self, request: &PageRequest) -> Result<Page, Failure> {
        let PageRequest {
            start,
            token,
            offset,
            most,
        } = request;
        let Some(pages) = &self.pages else {
            return self.web_listing(start).await;
        };
        self.attempts(RequestKind::List, |_| async move {
            let exchange = Exchange::of_page();
            let mut options = PaginatedListOptions {
                offset: offset.clone(),
                delimiter: Some("/".into()),
                max_keys: *most,
                page_token: token.clone(),
                ..PaginatedListOptions::default()
            };
            options.extensions.insert(exchange.clone());
            let prefix = (!start.is_empty()).then_some(start.as_str());
            let asked = Instant::now();
            let found = pages.list_paginated(prefix, options).await;
            let PaginatedListResult { result, page_token } =
                found.map_err(|error| Failure::new(&error, &exchange.facts()))?;
            check_below(&result, start)?;
            if page_token.is_some() && page_token == *token {
                return Err(Failure::unusable(
                    "the server sends the same page of names again and again",
                ));
            }
            let facts = exchange.facts();
            if facts.left_out > 0 && !self.seen.left_out_names.swap(true, Ordering::Relaxed) {
                log::warn!(
                    "{} of the names below {start:?} are left out, because they have an empty \
                     segment, or . or .. as one (this is said once)",
                    facts.left_out
                );
            }
            Ok(Page {
                names: result,
                token: page_token,
                date: facts.date,
                asked,
            })
        })
        .await
    }

    /// The names that a web server lists by `WebDAV`. The facts of the answer are not passed on, so a failure means
    /// that the server cannot list names.
    async fn web_listing(&self, start: &str) -> Result<Page, Failure> {
        if self.is_offline {
            // Names come from the documents, as where a server lists none.
            return Err(Failure::unusable(OFFLINE));
        }
        self.statistics.count(RequestKind::List);
        let asked = Instant::now();
        let prefix = Path::parse(start).map_err(|_| Failure::Absent)?;
        let list = self.store.list_with_delimiter(Some(&prefix));
        let found = timeout(self.deadline, list).await;
        let names = found
            .map_err(|_| Failure::transient("the server does not answer"))?
            .map_err(|_| Failure::unusable("the web server does not list names"))?;
        Ok(Page {
            names: web_names::below(&self.web_root, &prefix, names)?,
            token: None,
            date: None,
            asked,
        })
    }

    /// Whether names can be listed after a key.
    pub(super) fn lists_pages(&self) -> bool {
        self.pages.is_some()
    }
}

/// Checks that all `names` are below `start`, as requested. A marker of the prefix itself is not below it.
fn check_below(names: &ListResult, start: &str) -> Result<(), Failure> {
    let objects = names.objects.iter().map(|object| &object.location);
    let is_other = |path: &&Path| {
        let path = path.as_ref();
        !path.starts_with(start) && path != start.trim_end_matches('/')
    };
    match objects.chain(&names.common_prefixes).find(is_other) {
        None => Ok(()),
        Some(path) => Err(Failure::Unusable(format!(
            "the server sent {path:?} where names below {start:?} were requested"
        ))),
    }
}
