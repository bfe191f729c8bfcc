//! Texts of arrays with long attributes: in the cache, where they are evicted and made again, and not
//! with the file, of which a listing only wants the length.

use std::sync::Arc;

use super::super::View;
use super::super::vnode::{PlainKind, PlainName};
use super::file::{Parts, SMALL_BYTES};
use crate::chunk::{Block, BlockKey, Owner, Part};
use crate::error::Error;
use crate::plain::{Content, Layout};
use crate::store::ObjectMeta;

impl Parts {
    /// Takes the text of a sidecar out of its layout, where it is long.
    pub(super) fn take_long_text(&mut self, name: &PlainName) -> Option<Arc<[u8]>> {
        if name.kind != PlainKind::Sidecar || self.layout.len() <= SMALL_BYTES {
            return None;
        }
        let text = match self.layout.parts() {
            [part] => match &part.content {
                Content::Bytes(bytes) => Arc::clone(bytes),
                Content::Computed(_) | Content::Elements(_) => return None,
            },
            _ => return None,
        };
        self.layout = Layout::of_bytes(Vec::new());
        Some(text)
    }
}

impl View {
    /// The text of the file called `name`, with the attributes of its document, where that is long:
    /// `None` when there is no such file, or it is short by now.
    pub(in crate::view) fn long_text(
        &self,
        name: &PlainName,
    ) -> Result<Option<(ObjectMeta, Arc<Block>)>, Error> {
        let Some(file) = self.plain_if_held(name)? else {
            return Ok(None);
        };
        if file.text_len.is_none() {
            return Ok(None);
        }
        let block = self.long_text_block(&file.meta, file.identity, || {
            let mut parts = self.make_plain(name)?.ok_or(Error::Stale)?;
            if parts.identity(name) != file.identity {
                return Err(Error::Stale);
            }
            parts.take_long_text(name).ok_or(Error::Stale)
        })?;
        Ok(Some((file.meta, block)))
    }

    /// A long text in the cache, where it may be evicted and is made again.
    pub(super) fn long_text_block(
        &self,
        meta: &ObjectMeta,
        identity: u64,
        text: impl FnOnce() -> Result<Arc<[u8]>, Error>,
    ) -> Result<Arc<Block>, Error> {
        let key = BlockKey {
            owner: Owner::Object(identity),
            version: meta.version,
            part: Part::Document { epoch: 0 },
        };
        self.shared
            .cache
            .get_or_load(key, || self.document_block(text()?.to_vec()))
    }
}
