//! Identities of arrays, by which caches and vnode numbers distinguish arrays.
//!
//! An identity is a hash of the fields that this file lists, one after the other. The models of
//! data types and codecs add all of their fields (`derive(Hash)`): the number of a variant, the
//! length before a list, the bytes of a number, and the bytes of a text and a byte that ends it. So
//! equal models have equal identities, and models that differ in any field have different ones.
//!
//! The hash has random keys, so that no store can make two arrays of one identity. An identity is
//! therefore never kept beyond this process.

use std::hash::{BuildHasher, Hash, Hasher, RandomState};
use std::sync::LazyLock;

use crate::metadata::{ArrayMetadata, Decoding};
use crate::store::Prefix;

/// The keys of all hashes.
static KEYS: LazyLock<RandomState> = LazyLock::new(RandomState::new);

/// The hashes of an array, and the size of the hashed data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ArrayIdentity {
    /// The hash of the prefix and of all of the metadata.
    pub(crate) array: u64,
    /// The hash of what determines the keys and bytes of chunks below the prefix: all but the shape, the names of
    /// dimensions, and the spelling of the document. Of a list of chunk lengths, it has only the first length.
    pub(crate) form: u64,
    /// The hash of the prefix and of `form`.
    pub(crate) chunks: u64,
    /// The approximate memory of the metadata, in bytes.
    pub(crate) model_bytes: u64,
}

impl ArrayIdentity {
    /// The identity of the array at `prefix`.
    pub(crate) fn of(prefix: &Prefix, metadata: &ArrayMetadata) -> ArrayIdentity {
        ArrayIdentity::hashed(prefix, metadata, KEYS.build_hasher())
    }

    fn hashed(prefix: &Prefix, metadata: &ArrayMetadata, hasher: impl Hasher) -> ArrayIdentity {
        // Without `..`, a field that is new in the model does not compile before it is listed here.
        let ArrayMetadata {
            zarr_format,
            shape,
            chunks,
            data_type,
            codecs,
            chunk_keys,
            separator_is_assumed,
            dimension_names,
            dimension_references,
            doubts,
            decoding,
        } = metadata;
        let mut hasher = Counting { hasher, bytes: 0 };
        zarr_format.hash(&mut hasher);
        // A list of lengths may get more of them when the array grows, and then its chunks are still the same.
        let first = chunks.axes().iter().map(|axis| axis.span(0));
        first.collect::<Vec<_>>().hash(&mut hasher);
        chunk_keys.hash(&mut hasher);
        separator_is_assumed.hash(&mut hasher);
        let spelling = match decoding {
            Ok(decoding) => {
                let Decoding {
                    data_type,
                    fill_value,
                    codecs,
                    pipeline,
                } = decoding;
                true.hash(&mut hasher);
                data_type.hash(&mut hasher);
                fill_value.hash(&mut hasher);
                codecs.hash(&mut hasher);
                Some(pipeline)
            }
            Err(error) => {
                false.hash(&mut hasher);
                error.hash(&mut hasher);
                data_type.hash(&mut hasher);
                codecs.hash(&mut hasher);
                None
            }
        };
        let form = hasher.finish();
        if let Some(pipeline) = spelling {
            data_type.hash(&mut hasher);
            codecs.hash(&mut hasher);
            pipeline.hash(&mut hasher);
        }
        doubts.hash(&mut hasher);
        chunks.hash(&mut hasher);
        prefix.hash(&mut hasher);
        shape.hash(&mut hasher);
        dimension_names.hash(&mut hasher);
        dimension_references.hash(&mut hasher);
        // The lists and texts take about as much again for their pointers and lengths.
        let model_bytes = size_of::<ArrayMetadata>() as u64 + 2 * hasher.bytes;
        let array = hasher.finish();
        ArrayIdentity {
            array,
            form,
            chunks: chunk_identity_at(prefix, form),
            model_bytes,
        }
    }
}

/// The identity of the chunks of an array at `prefix`, whose other metadata has the hash `form`.
pub(crate) fn chunk_identity_at(prefix: &Prefix, form: u64) -> u64 {
    KEYS.hash_one((prefix, form))
}

/// A hasher that counts the bytes that it gets.
struct Counting<H> {
    hasher: H,
    bytes: u64,
}

impl<H: Hasher> Hasher for Counting<H> {
    fn write(&mut self, bytes: &[u8]) {
        self.hasher.write(bytes);
        self.bytes = self.bytes.saturating_add(bytes.len() as u64);
    }

    fn finish(&self) -> u64 {
        self.hasher.finish()
    }
}

#[cfg(test)]
mod tests;
