//! stub
use crate::error::FormatError;
/// stub
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transpose { order: Vec<usize> }
impl Transpose {
    /// stub
    pub fn new(order: &[u64], _rank: usize) -> Result<Self, FormatError> { Ok(Self { order: order.iter().map(|&o| o as usize).collect() }) }
    /// stub
    pub fn reversal(rank: usize) -> Self { Self { order: (0..rank).rev().collect() } }
    /// stub
    pub fn order(&self) -> &[usize] { &self.order }
}
