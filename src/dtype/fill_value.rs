//! Fill values.
/// stub
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FillValue { bytes: Vec<u8>, defined: bool }
impl FillValue {
    /// Decoded bytes of one element.
    pub fn bytes(&self) -> &[u8] { &self.bytes }
    /// Whether the document gives one.
    pub fn is_defined(&self) -> bool { self.defined }
    /// A fill value of given decoded bytes (for tests and for codecs).
    pub fn new(bytes: Vec<u8>, defined: bool) -> Self { Self { bytes, defined } }
    /// Fills `out`, which begins `offset_bytes` into a run of elements.
    pub fn fill(&self, offset_bytes: u64, out: &mut [u8]) {
        let n = self.bytes.len().max(1) as u64;
        for (i, b) in out.iter_mut().enumerate() { *b = self.bytes[((offset_bytes + i as u64) % n) as usize]; }
    }
}
