//! Pages of names, as servers list them.

use std::sync::atomic::Ordering;
use std::time::{Instant, SystemTime};

use http::StatusCode;
use object_store::ListResult;
use object_store::list::{PaginatedListOptions, PaginatedListResult};
use object_store::path::Path;

use super::client::RemoteClient;
use super::exchange::{Exchange, LISTING, RequestKind};
use super::failure::Failure;
use super::web_names;

/// The problem of a web server that lists no names, and will not do so later.
pub(super) const NO_NAMES: &str = "the web server does not list names";

/// The failure of a web server whose answer is no list of names.
const NO_LIST: &str = "the web server sent no list of names";

/// The failure of a server that has sent pages without names for as long as a request may take.
pub(super) fn no_end() -> Failure {
    Failure::transient("the server sends page after page without names")
}

/// A request for a page of names.
#[derive(Debug, Clone, Default)]
pub(super) struct PageRequest {
    /// The text with which all keys of the page begin.
    pub(super) start: String,
    /// The token of the page before; `None` for the first page.
    pub(super) token: Option<String>,
    /// The key after which the page begins.
    pub(super) offset: Option<String>,
    /// The most names of the page.
    pub(super) most: Option<usize>,
}

/// One page of names.
pub(super) struct Page {
    pub(super) names: ListResult,
    /// The token with which the next page is requested; `None` if this is the last one.
    pub(super) token: Option<String>,
    /// When the server sent the page, by its own clock.
    pub(super) date: Option<SystemTime>,
    /// When the page was requested.
    pub(super) asked: Instant,
    /// Whether the page was kept on disk, where answers about its objects may be later.
    pub(super) is_kept: bool,
}

impl Page {
    /// Whether there is a name in it.
    pub(super) fn has_names(&self) -> bool {
        !self.names.objects.is_empty() || !self.names.common_prefixes.is_empty()
    }
}

impl RemoteClient {
    /// One page of names.
    pub(super) async fn page(&self, request: &PageRequest) -> Result<Page, Failure> {
        let page = self.any_page(request).await;
        match &page {
            Ok(_) => self.seen.has_listed.store(true, Ordering::Relaxed),
            // A server that has listed names before can do so, and the failure will pass.
            Err(Failure::Unusable(problem)) if self.seen.has_listed.load(Ordering::Relaxed) => {
                return Err(Failure::transient(problem));
            }
            Err(_) => {}
        }
        page
    }

    /// Like [`RemoteClient::page`], without regard to earlier pages: any failure may mean that the server does not
    /// list names.
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
            // Some servers send an empty token with the last page.
            let page_token = page_token.filter(|token| !token.is_empty());
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
                is_kept: false,
            })
        })
        .await
    }

    /// The names that a web server lists by `WebDAV`. With `--offline`, this fails as for a server that lists none, so
    /// that the caller takes names from the documents.
    async fn web_listing(&self, start: &str) -> Result<Page, Failure> {
        let prefix = &Path::parse(start).map_err(|_| Failure::Absent)?;
        let listed = self.attempts(RequestKind::List, |exchange| async move {
            let asked = Instant::now();
            let list = self.store.list_with_delimiter(Some(prefix));
            let found = LISTING.scope(exchange.clone(), list).await;
            let facts = exchange.facts();
            match found.map_err(|error| Failure::new(&error, &facts)) {
                Ok(names) => Ok(Ok((names, facts.date, asked))),
                Err(Failure::Transient(transient)) if self.may_list() => {
                    Err(Failure::Transient(transient))
                }
                // It is an answer that a server lists no names.
                Err(_) => Ok(Err(no_names(facts.status))),
            }
        });
        let listed = listed.await;
        // A server that answers other requests, and has never listed names, may have no other way to say that it cannot.
        if let Err(Failure::Transient(transient)) = &listed
            && !self.seen.has_listed.load(Ordering::Relaxed)
            && self.is_reached.load(Ordering::Relaxed)
        {
            self.seen.fails_to_list.store(true, Ordering::Relaxed);
            let problem = format!("{NO_LIST}: {}", transient.problem);
            return Err(Failure::Unusable(problem));
        }
        let (names, date, asked) = listed??;
        Ok(Page {
            names: web_names::below(&self.web_root, prefix, names)?,
            token: None,
            date,
            asked,
            is_kept: false,
        })
    }

    /// Whether a web server has listed names, or may do so after a failure.
    fn may_list(&self) -> bool {
        let seen = &self.seen;
        seen.has_listed.load(Ordering::Relaxed) || !seen.fails_to_list.load(Ordering::Relaxed)
    }

    /// Whether names can be listed page by page, from any key on.
    pub(super) fn lists_pages(&self) -> bool {
        self.pages.is_some()
    }
}

/// The failure of a web server that answers a request for names with this status.
fn no_names(status: Option<StatusCode>) -> Failure {
    let is_refused = |status: StatusCode| {
        status == StatusCode::NOT_IMPLEMENTED
            // With other headers, the server may list names.
            || status.is_client_error() && status != StatusCode::UNAUTHORIZED
    };
    Failure::unusable(match status {
        Some(status) if is_refused(status) => NO_NAMES,
        _ => NO_LIST,
    })
}

/// Checks that all `names` are below `start`, as requested. The key of the prefix itself is accepted, too: some
/// programs mark a directory by an object.
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

#[cfg(test)]
pub(super) mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use object_store::list::PaginatedListStore;
    use object_store::memory::InMemory;
    use tokio::runtime::Builder;

    use super::*;
    use crate::store::disk_cache::Origin;
    use crate::store::remote::RemoteStore;
    use crate::store::remote::backend::Backend;
    use crate::store::remote::credentials::access::Access;
    use crate::store::remote::options::RemoteOptions;
    use crate::store::remote::url::RemoteUrl;

    /// A server whose first pages have no names, each with the token of the page after it. The last page has these
    /// prefixes.
    pub(in crate::store::remote) struct EmptyPages {
        pub(in crate::store::remote) count: usize,
        pub(in crate::store::remote) prefixes: &'static [&'static str],
    }

    #[async_trait::async_trait]
    impl PaginatedListStore for EmptyPages {
        async fn list_paginated(
            &self,
            _: Option<&str>,
            options: PaginatedListOptions,
        ) -> object_store::Result<PaginatedListResult> {
            let number = options.page_token.map_or(0, |token| token.parse().unwrap());
            let (prefixes, page_token) = if number < self.count {
                (&[][..], Some((number + 1).to_string()))
            } else {
                (self.prefixes, None)
            };
            Ok(PaginatedListResult {
                result: ListResult {
                    common_prefixes: prefixes.iter().map(|&prefix| prefix.into()).collect(),
                    objects: Vec::new(),
                    extensions: object_store::Extensions::default(),
                },
                page_token,
            })
        }
    }

    /// A store in the bucket `bucket`, whose names `pages` lists. No server has its objects. Requests are repeated for
    /// `timeout`.
    pub(in crate::store::remote) fn listed_by(
        pages: impl PaginatedListStore + 'static,
        timeout: Duration,
    ) -> RemoteStore {
        let options = RemoteOptions {
            anonymous: true,
            region: Some("us-east-1".to_owned()),
            endpoint: Some("http://127.0.0.1:1".to_owned()),
            timeout,
            ..RemoteOptions::default()
        };
        let url = RemoteUrl::parse("s3://bucket").unwrap().unwrap();
        let mut store = RemoteStore::open(url, &options).unwrap();
        let shared = Arc::get_mut(&mut store.shared).unwrap();
        shared.client.pages = Some(Arc::new(pages));
        store
    }

    /// A server whose pages have no names, and this token.
    struct Tokens(&'static str);

    #[async_trait::async_trait]
    impl PaginatedListStore for Tokens {
        async fn list_paginated(
            &self,
            _: Option<&str>,
            _: PaginatedListOptions,
        ) -> object_store::Result<PaginatedListResult> {
            Ok(PaginatedListResult {
                result: ListResult {
                    common_prefixes: Vec::new(),
                    objects: Vec::new(),
                    extensions: object_store::Extensions::default(),
                },
                page_token: Some(self.0.to_owned()),
            })
        }
    }

    #[test]
    fn an_empty_token_is_that_of_the_last_page() {
        let runtime = Builder::new_current_thread().enable_time().build().unwrap();
        for (sent, expected) in [("", None), ("t", Some("t"))] {
            let backend = Backend {
                store: Arc::new(InMemory::new()),
                pages: Some(Arc::new(Tokens(sent))),
                path: String::new(),
                credentials: String::new(),
                access: Access::Anonymous,
                origin: Origin {
                    endpoint: "".into(),
                    bucket: "b".into(),
                },
            };
            let url = RemoteUrl::parse("s3://b").unwrap().unwrap();
            let client = RemoteClient::new(&url, &RemoteOptions::default(), &backend);
            let page = runtime.block_on(client.page(&PageRequest::default()));
            assert_eq!(page.ok().unwrap().token.as_deref(), expected);
        }
    }
}
