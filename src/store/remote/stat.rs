//! Whether a key is an object, or a prefix of others.

use futures_util::join;

use super::documents::is_no_prefix;
use super::failure::Failure;
use super::pages::PageRequest;
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

    /// Whether some key begins with `prefix`. `false` if the server refuses to list names.
    pub(super) async fn has_names(&self, prefix: &Prefix) -> Result<bool, StoreError> {
        let Some(start) = self.client.start_of(prefix) else {
            return Ok(false);
        };
        let request = PageRequest {
            start,
            most: Some(1),
            ..PageRequest::default()
        };
        let (has, begun) = match self.page(request).await {
            Ok(page) => {
                let has = !page.names.objects.is_empty() || !page.names.common_prefixes.is_empty();
                (has, page.asked)
            }
            Err(
                Failure::Absent | Failure::Denied(_) | Failure::Refused(_) | Failure::Unusable(_),
            ) => return Ok(false),
            Err(failure) => {
                return Err(failure.into_error(prefix, false));
            }
        };
        if has {
            self.remembered.put_prefix(prefix, begun);
        } else {
            self.remembered.put_no_prefix(prefix, begun);
        }
        Ok(has)
    }
}
