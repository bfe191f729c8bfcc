//! Extended attributes (`-o xattr`): the facts about an array, and the place where a chunk is
//! stored.

use std::sync::Arc;

use super::View;
use super::options::ViewKind;
use super::vnode::{ChunkPlace, PlainKind, PlainName, Vnode, VnodeId};
use crate::error::Error;
use crate::load::Loader;
use crate::metadata::write::chunk_lengths;
use crate::store::{Prefix, Readers};
use crate::view::nodes::node::ShownArray;

impl View {
    /// Names (`user.zarr.…`) and values of the extended attributes of `id`.
    ///
    /// # Errors
    /// Those of [`View::attributes`].
    pub fn extended_attributes(&self, id: VnodeId) -> Result<Vec<(&'static str, Vec<u8>)>, Error> {
        match self.vnode(id)? {
            Vnode::Prefix { view, path } => {
                let Some(array) = self.tree.shown(view, &path)?.into_array() else {
                    return Ok(Vec::new());
                };
                // Users may be allowed to list a directory, but not to read its document. They must
                // not see the contents of the document here.
                let tells = self.tells_of_document(view, &path, &array)?;
                Ok(if tells { of_array(&array) } else { Vec::new() })
            }
            Vnode::Plain(PlainName {
                path,
                kind: PlainKind::Array(..) | PlainKind::Sidecar | PlainKind::Crs(_),
            }) => {
                let array = self.tree.shown(ViewKind::Arrays, &path)?.into_array();
                Ok(array.map(|array| of_array(&array)).unwrap_or_default())
            }
            Vnode::Chunk(place) => {
                let array = self.tree.array_of(&place)?;
                // The place of the chunk in its shard is known once the shard is written.
                (self.tree).settle(&array.chunked.stored_key(&place.indices)?)?;
                of_chunk(&self.tree.loader, &array, &place)
            }
            _ => Ok(Vec::new()),
        }
    }

    /// Whether all users who may list the directory of an array may read its document.
    fn tells_of_document(
        &self,
        view: ViewKind,
        path: &Prefix,
        array: &ShownArray,
    ) -> Result<bool, Error> {
        let Some(directory) = self.tree.directory_meta(view, path)? else {
            return Ok(false);
        };
        let (mut to_tell, mut to_read) = (Readers::default(), Readers::default());
        self.tree.add_search(path, &mut to_tell)?;
        let document = &array.node.document;
        self.tree
            .add_object(&document.key, &document.meta, &mut to_read)?;
        Ok(to_read.include(directory.access(), &to_tell))
    }
}

fn of_array(array: &ShownArray) -> Vec<(&'static str, Vec<u8>)> {
    let metadata = &array.node.metadata;
    vec![
        ("user.zarr.shape", list(&metadata.shape)),
        (
            "user.zarr.data_type",
            metadata.data_type.clone().into_bytes(),
        ),
        (
            "user.zarr.chunk_shape",
            chunk_lengths(array.grid().chunks())
                .to_string()
                .into_bytes(),
        ),
        ("user.zarr.codecs", metadata.codecs.join(",").into_bytes()),
    ]
}

fn of_chunk(
    loader: &Arc<Loader>,
    array: &ShownArray,
    place: &ChunkPlace,
) -> Result<Vec<(&'static str, Vec<u8>)>, Error> {
    let chunked = &array.chunked;
    let mut found = vec![("user.zarr.region", region(array, &place.indices))];
    let Some(object) = loader.open_stored(chunked, &place.indices, None)? else {
        return Ok(found);
    };
    if let Some(chunk) = loader.locate(chunked, &object, &place.indices)? {
        let key = chunked.stored_key(&place.indices)?;
        found.push(("user.zarr.key", key.as_bytes().to_vec()));
        found.push(("user.zarr.nbytes", chunk.encoded.len().to_string().into()));
        // Offsets in a decoded shard are not offsets of the stored object.
        if chunk.encoded.in_memory().is_none() {
            found.push((
                "user.zarr.offset",
                chunk.encoded.offset().to_string().into(),
            ));
        }
    }
    Ok(found)
}

/// The numbers as a JSON list: `[8,48,96]`.
fn list(lengths: &[u64]) -> Vec<u8> {
    serde_json::json!(lengths).to_string().into_bytes()
}

/// The element ranges that a chunk covers, cut at the end of the array: `0:4,8:12`.
fn region(array: &ShownArray, indices: &[u64]) -> Vec<u8> {
    let grid = array.grid();
    let axes = grid.chunks().axes().iter().zip(grid.shape());
    let ranges: Vec<String> = indices
        .iter()
        .zip(axes)
        .map(|(&index, (chunks, &shape))| {
            let (start, length) = chunks.span(index).unwrap_or((shape, 0));
            format!("{start}:{}", start.saturating_add(length).min(shape))
        })
        .collect();
    ranges.join(",").into_bytes()
}
