//! Bytes of an input, read as choices.

/// The part of an input that is not used up. Past its end every choice is the first.
pub struct Choices<'a>(pub &'a [u8]);

impl<'a> Choices<'a> {
    /// A number below `n`, which is at most 256.
    pub fn below(&mut self, n: usize) -> usize {
        let Some((&first, rest)) = self.0.split_first() else {
            return 0;
        };
        self.0 = rest;
        usize::from(first) % n
    }

    /// Yes or no.
    pub fn flag(&mut self) -> bool {
        self.below(2) == 1
    }

    /// One of `all`.
    pub fn one_of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())]
    }

    /// None to `most` of what `make` makes.
    pub fn up_to<T>(&mut self, most: usize, mut make: impl FnMut(&mut Self) -> T) -> Vec<T> {
        (0..self.below(most + 1)).map(|_| make(self)).collect()
    }

    /// The bytes that are left.
    pub fn rest(self) -> &'a [u8] {
        self.0
    }
}
