//! Encodes a chunk.
//!
//! ```text
//! decoded --array-to-array--> elements --array-to-bytes--> array bytes --bytes-to-bytes--> encoded
//! ```
//!
//! With a codec that can lose something of the elements, the encoded chunk is decoded again and,
//! unless losses are allowed, compared, so that nothing is lost unseen.

use std::borrow::Cow;

use super::{ChunkSpec, CodecChain, intermediate_arrays};
use crate::{
    buffers::zeroed,
    codec::{ArrayToArray, ArrayToBytes, BytesToBytes, decoded::owned},
    error::FormatError,
    grid,
};

/// Whether an encoded chunk may decode to other elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Losses {
    /// One bit of difference is an error.
    Refused,
    /// Elements may be rounded.
    Allowed,
}

impl CodecChain {
    /// Checks that chunks can be encoded. Some chunks can only be decoded.
    ///
    /// # Errors
    /// [`FormatError::Unsupported`] with the name of the first codec that cannot be encoded, and
    /// why.
    pub fn check_encodes(&self) -> Result<(), FormatError> {
        self.array_to_bytes.check_encodes()?;
        let mut codecs = self.bytes_to_bytes.iter();
        codecs.try_for_each(BytesToBytes::check_encodes)
    }

    /// Whether some chunks decode to other elements than were encoded.
    pub fn can_lose(&self) -> bool {
        self.array_to_array.iter().any(ArrayToArray::can_lose) || self.array_to_bytes.can_lose()
    }

    /// Encodes `decoded`, which is a full chunk in C order, little-endian, as
    /// [`decode`](Self::decode) gives it.
    ///
    /// # Errors
    /// A codec that cannot be encoded ([`check_encodes`](Self::check_encodes)), an element that has
    /// no encoded value or decodes to another one where losses are refused, a chunk that is too
    /// large for a codec, or no memory.
    pub fn encode(
        &self,
        spec: &ChunkSpec<'_>,
        decoded: &[u8],
        losses: Losses,
    ) -> Result<Vec<u8>, FormatError> {
        self.check_encodes()?;
        if spec.decoded_len() != Some(decoded.len() as u64) || spec.dtype.item_size == 0 {
            let problem = format!("{} bytes for {:?}", decoded.len(), spec.shape);
            return Err(FormatError::encoded("chunk", problem));
        }
        let (stages, last) = intermediate_arrays(&self.array_to_array, spec.shape, spec.dtype);
        let mut elements = Cow::Borrowed(decoded);
        for (i, codec) in self.array_to_array.iter().enumerate() {
            let (Some(stage), next) = (stages.get(i), stages.get(i + 1).unwrap_or(&last)) else {
                break;
            };
            match codec {
                ArrayToArray::Reshape(_) => {}
                ArrayToArray::Transpose(transpose) if transpose.is_identity() => {}
                _ => {
                    let mut out = next.buffer()?;
                    codec.encode(stage, &elements, &mut out)?;
                    elements = Cow::Owned(out);
                }
            }
        }
        let fill = match self.array_to_bytes {
            ArrayToBytes::Sharding(_) => Cow::Owned(self.encode_fill(spec.fill)?),
            _ => Cow::Borrowed(spec.fill),
        };
        let last = ChunkSpec {
            shape: &last.shape,
            dtype: &last.dtype,
            fill: &fill,
        };
        let array_bytes = self.array_to_bytes.encode(&last, elements)?;
        let encoded = self.encode_bytes(array_bytes)?;
        if self.can_lose() {
            self.check_losses(spec, decoded, &encoded, losses)?;
        }
        Ok(encoded)
    }

    /// Applies the bytes-to-bytes codecs.
    ///
    /// # Errors
    /// A codec that cannot be encoded, bytes that are too many for one, or no memory.
    pub fn encode_bytes(&self, array_bytes: Cow<'_, [u8]>) -> Result<Vec<u8>, FormatError> {
        let mut codecs = self.bytes_to_bytes.iter();
        let encoded = codecs.try_fold(array_bytes, |bytes, codec| {
            codec.encode(bytes).map(Cow::Owned)
        })?;
        let mut encoded = owned(encoded)?;
        // The room was for bytes that cannot be compressed.
        encoded.shrink_to_fit();
        Ok(encoded)
    }

    /// Decodes `encoded` again, which must succeed. If losses are refused, the elements must be the
    /// same.
    fn check_losses(
        &self,
        spec: &ChunkSpec<'_>,
        decoded: &[u8],
        encoded: &[u8],
        losses: Losses,
    ) -> Result<(), FormatError> {
        let mut again = zeroed(decoded.len())?;
        self.decode(spec, encoded, &mut again)?;
        if losses == Losses::Allowed {
            return Ok(());
        }
        let Some(at) = decoded
            .iter()
            .zip(&again)
            .position(|(one, other)| one != other)
        else {
            return Ok(());
        };
        let element = at as u64 / spec.dtype.item_size;
        let place = grid::indices_of(element, spec.shape);
        let place = place.map_or_else(|| element.to_string(), |indices| format!("{indices:?}"));
        let by_arrays = self.array_to_array.iter().filter(|codec| codec.can_lose());
        let mut names: Vec<&'static str> = by_arrays.map(ArrayToArray::name).collect();
        if self.array_to_bytes.can_lose() {
            names.push(self.array_to_bytes.name());
        }
        let by = match names.first() {
            Some(first) if names.len() == 1 => first,
            _ => "codecs",
        };
        let problem = format!(
            "the element at {place} of the chunk would be stored as another value ({})",
            names.join(", ")
        );
        Err(FormatError::encoded(by, problem))
    }

    /// Upper bound of the memory that encoding a chunk of `decoded_len` bytes allocates, the result
    /// included.
    pub fn encode_scratch_bytes(&self, decoded_len: u64) -> u64 {
        // A step takes its input, its output and its state; the input of the first is the caller's.
        let (mut kept, mut most) = (0, 0_u64);
        let mut step = |output: u64, state: u64| {
            most = most.max(output.saturating_add(state).saturating_add(kept));
            kept = output;
        };
        let mut length = decoded_len;
        for codec in &self.array_to_array {
            length = codec.encoded_len(length);
            step(length, 0);
        }
        let state = self.array_to_bytes.encode_state_bytes(length);
        length = self.array_to_bytes.encoded_limit(length, 1);
        step(length, state);
        for codec in &self.bytes_to_bytes {
            let output = codec.encoded_limit(length);
            step(output, codec.encoder_state_bytes(length));
            length = output;
        }
        if self.can_lose() {
            step(decoded_len, self.scratch_bytes(decoded_len));
        }
        most
    }
}
