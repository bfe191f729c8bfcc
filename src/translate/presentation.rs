//! How a view shows arrays: the content of their chunk files, and the documents that describe these files.

use crate::error::FormatError;
use crate::load::{ChunkLayout, Shards};
use crate::metadata::render::{self, ArrayForm};
use crate::metadata::write::ChunkContent;
use crate::metadata::{ArrayMetadata, Target};

/// How a view shows arrays.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Presentation {
    /// Whether the files of chunks have elements, and not encoded bytes.
    pub(crate) is_decoded: bool,
    /// Whether shards are shown as their inner chunks, or whole.
    pub(crate) shards: Shards,
    /// Whether chunks that the store lacks are files of fill values.
    pub(crate) fills_absent: bool,
    /// The Zarr version in which all nodes are shown; `None` shows each node in its own version.
    pub(crate) shown_as: Option<Target>,
    /// The longest decoded chunk, in bytes.
    pub(crate) max_chunk_bytes: u64,
}

/// The content of the chunk files of an array.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FileForm {
    /// The stored objects, under their own names.
    Stored,
    /// Encoded chunks: inner chunks of shards, or stored objects under the names of another
    /// version.
    Encoded,
    /// Decoded chunks.
    Decoded,
}

impl Presentation {
    /// How the chunks of an array are shown. The array may be `foreign`, which is an array that is shown in another
    /// version than its own.
    pub(crate) fn form_of_chunks(
        &self,
        metadata: &ArrayMetadata,
        foreign: Option<Target>,
    ) -> (FileForm, Shards) {
        let decoding = metadata.decoding.as_ref();
        let is_sharded = decoding.is_ok_and(|decoding| decoding.codecs.sharding().is_some());
        match self.shards {
            shards if self.is_decoded => (FileForm::Decoded, shards),
            Shards::Expand if is_sharded => (FileForm::Encoded, Shards::Expand),
            _ if foreign.is_some() => (FileForm::Encoded, Shards::Keep),
            _ => (FileForm::Stored, Shards::Keep),
        }
    }

    /// The content of the chunk files of a new array.
    pub(crate) fn content_of_new(&self) -> ChunkContent {
        match (self.is_decoded, self.fills_absent) {
            (true, true) => ChunkContent::Complete(self.shards),
            (true, false) => ChunkContent::Decoded(self.shards),
            (false, _) => ChunkContent::Encoded(self.shards),
        }
    }

    /// Fails if the view cannot show the chunks of an array that has this document, because there are too many, or they
    /// are too long.
    pub(crate) fn check_can_show(
        &self,
        metadata: &ArrayMetadata,
        foreign: Option<Target>,
    ) -> Result<(), FormatError> {
        if metadata.decoding.is_err() && !self.is_decoded {
            // Encoded chunks are shown in any case.
            return Ok(());
        }
        let (form, shards) = self.form_of_chunks(metadata, foreign);
        self.check_decoded_len(&ChunkLayout::new(metadata, shards)?, form)
    }

    /// Fails if chunks in this form are too long to be decoded.
    pub(crate) fn check_decoded_len(
        &self,
        layout: &ChunkLayout,
        form: FileForm,
    ) -> Result<(), FormatError> {
        match layout.longest_decoded_len() {
            Some(len) if form == FileForm::Decoded => {
                let what = "the size of a decoded chunk (see --max-chunk)";
                FormatError::check_limit(what, len, self.max_chunk_bytes)
            }
            // The length of chunks of variable length is checked when they are decoded.
            _ => Ok(()),
        }
    }

    /// The document `stored` of an array with this metadata, edited to describe chunk files of this `form`. If the view
    /// shows one Zarr version, strict readers of that version accept all of its documents.
    pub(crate) fn render(
        &self,
        stored: &[u8],
        metadata: &ArrayMetadata,
        form: FileForm,
    ) -> Result<Vec<u8>, FormatError> {
        let shown = match (form, self.shown_as) {
            (FileForm::Stored, Some(_)) => ArrayForm::Canonical,
            (FileForm::Stored, None) => ArrayForm::Stored,
            (FileForm::Encoded, _) => ArrayForm::Expanded,
            (FileForm::Decoded, _) => ArrayForm::Decoded(self.shards),
        };
        render::array(stored, metadata, shown)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::translate::testing::{BYTES, document, parse, presentation};

    #[test]
    fn the_form_of_chunk_files_follows_from_the_view_and_the_document() {
        let sharding = format!(
            r#"{{"name": "sharding_indexed", "configuration": {{"chunk_shape": [1],
            "codecs": [{BYTES}], "index_codecs": [{BYTES}]}}}}"#
        );
        let of = |codec: &str| parse(document("int32", "0", &[codec]).as_bytes());
        let (plain, sharded) = (of(BYTES), of(&sharding));
        let (own, foreign) = (None, Some(Target::V2));
        let cases = [
            (
                true,
                Shards::Expand,
                &plain,
                own,
                FileForm::Decoded,
                Shards::Expand,
            ),
            (
                true,
                Shards::Keep,
                &sharded,
                foreign,
                FileForm::Decoded,
                Shards::Keep,
            ),
            (
                false,
                Shards::Expand,
                &plain,
                own,
                FileForm::Stored,
                Shards::Keep,
            ),
            (
                false,
                Shards::Expand,
                &plain,
                foreign,
                FileForm::Encoded,
                Shards::Keep,
            ),
            (
                false,
                Shards::Expand,
                &sharded,
                own,
                FileForm::Encoded,
                Shards::Expand,
            ),
            (
                false,
                Shards::Keep,
                &sharded,
                own,
                FileForm::Stored,
                Shards::Keep,
            ),
        ];
        for (is_decoded, shards, metadata, foreign, form, inner) in cases {
            let presentation = Presentation {
                shards,
                ..presentation(is_decoded)
            };
            let found = presentation.form_of_chunks(metadata, foreign);
            assert_eq!(found, (form, inner), "{is_decoded} {shards:?} {foreign:?}");
        }
    }

    #[test]
    fn chunks_that_are_too_long_to_be_decoded_are_not_shown_decoded() {
        let metadata = parse(document("int32", "0", &[BYTES]).as_bytes());
        for (is_decoded, max_chunk_bytes, expected) in
            [(true, 8, true), (true, 7, false), (false, 7, true)]
        {
            let presentation = Presentation {
                max_chunk_bytes,
                ..presentation(is_decoded)
            };
            let found = presentation.check_can_show(&metadata, None).is_ok();
            assert_eq!(found, expected, "{is_decoded} {max_chunk_bytes}");
        }
    }
}
