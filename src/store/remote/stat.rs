//! Whether a key is an object, or a prefix of others.

use std::time::Instant;

use futures_util::join;

use super::attempts::OFFLINE;
use super::documents::is_no_prefix;
use super::failure::Failure;
use super::pages::{PageRequest, no_end};
use super::shared::Shared;
use crate::store::{Key, ObjectMeta, Prefix, Stat, StatKind, StoreError};

impl Shared {
    /// Whether a key is an object, or a prefix of others.
    pub(super) async fn stat(
        &self,
        key: &Key,
        prefix_meta: ObjectMeta,
    ) -> Result<Option<Stat>, StoreError> {
        let prefix = key.to_prefix();
        let remembered = self.remembered.get(key);
        let object = async {
            match remembered {
                Some(known) => Ok((known.0, false)),
                None => self.head_or_directory(key).await,
            }
        };
        let below = async {
            match self.remembered.has_prefix(&prefix) {
                Some(has) => Ok(has),
                None if !self.client.lists_pages() || is_no_prefix(key.name()) => Ok(false),
                None => self.has_names(&prefix).await,
            }
        };
        let (object, below) = join!(object, below);
        let (object, is_directory) = object?;
        let below = (below? || is_directory).then_some(prefix_meta);
        Ok(match (object, below) {
            (Some(object), below) => Some(Stat {
                kind: StatKind::Object,
                meta: object.meta,
                below,
            }),
            (None, Some(meta)) => Some(Stat::of_prefix(meta)),
            (None, None) => None,
        })
    }

    /// Whether some key begins with `prefix`, as kept listings of it or of the prefix above show: `start` is its path.
    ///
    /// # Errors
    /// [`StoreError::Io`] if none is kept, because some key may begin with the prefix.
    async fn is_kept_prefix(&self, prefix: &Prefix, start: String) -> Result<bool, StoreError> {
        let of_all = PageRequest {
            start,
            ..PageRequest::default()
        };
        if let Ok(page) = self.page(of_all).await {
            let has = page.has_names();
            if has || page.token.is_none() {
                return Ok(has);
            }
        }
        if let Some(key) = prefix.to_key()
            && let Some(has) = self.lists_offline(&key, b"/").await
        {
            return Ok(has);
        }
        Err(Failure::unusable(OFFLINE).into_error(prefix, false))
    }

    /// Whether some key begins with `prefix`. `false` if the server refuses to list names.
    pub(super) async fn has_names(&self, prefix: &Prefix) -> Result<bool, StoreError> {
        let Some(start) = self.client.start_of(prefix) else {
            return Ok(false);
        };
        let mut request = PageRequest {
            start,
            most: Some(1),
            ..PageRequest::default()
        };
        let begun = Instant::now();
        let mut asked = begun;
        let has = loop {
            let page = match self.page(request.clone()).await {
                Ok(page) => page,
                Err(Failure::Unusable(problem)) if problem == OFFLINE => {
                    return self.is_kept_prefix(prefix, request.start).await;
                }
                Err(
                    Failure::Absent
                    | Failure::Denied(_)
                    | Failure::Refused(_)
                    | Failure::Unusable(_),
                ) => return Ok(false),
                Err(failure) => {
                    return Err(failure.into_error(prefix, false));
                }
            };
            asked = asked.min(page.asked);
            let has = page.has_names();
            match page.token {
                // Names may follow a page without names, whose own may be ones that no path has.
                Some(_) if !has && begun.elapsed() >= self.client.deadline => {
                    return Err(no_end().into_error(prefix, false));
                }
                Some(token) if !has => {
                    request.token = Some(token);
                    request.most = None;
                }
                _ => break has,
            }
        };
        if has {
            self.remembered.put_prefix(prefix, asked);
        } else {
            self.remembered.put_no_prefix(prefix, asked);
        }
        Ok(has)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use super::super::pages::tests::{EmptyPages, listed_by};
    use super::*;

    #[test]
    fn a_page_without_names_does_not_show_that_there_are_none() {
        for (count, prefixes, expected) in [
            (0, &[][..], Some(false)),
            (0, &["a/b"], Some(true)),
            (2, &[], Some(false)),
            (2, &["a/b"], Some(true)),
            (usize::MAX, &[], None),
        ] {
            let is_endless = expected.is_none();
            let timeout = Duration::from_millis(if is_endless { 200 } else { 60_000 });
            let store = listed_by(EmptyPages { count, prefixes }, timeout);
            let prefix = Key::parse(b"a").unwrap().to_prefix();
            let (shared, asked) = (Arc::clone(&store.shared), prefix.clone());
            let has = async move { shared.has_names(&asked).await };
            let has = store.shared.runtime.wait_for(has).unwrap();
            assert_eq!(has.ok(), expected, "{count}");
            assert_eq!(store.shared.remembered.has_prefix(&prefix), expected);
        }
    }
}
