//! Choices from a fuzzer's bytes.

use crate::simulation::entropy::Entropy;

/// Choices from bytes. An exhausted source gives zeroes.
pub struct Bytes<'a>(pub &'a [u8]);

impl<'a> Bytes<'a> {
    /// True if no bytes are left.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Next bytes, fewer at the end.
    pub fn take(&mut self, count: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(count.min(self.0.len()));
        self.0 = rest;
        taken
    }

    /// Next bytes, with zeroes beyond the end.
    pub fn array<const N: usize>(&mut self) -> [u8; N] {
        let mut array = [0; N];
        let taken = self.take(N);
        array[..taken.len()].copy_from_slice(taken);
        array
    }

    /// Next byte.
    pub fn byte(&mut self) -> u8 {
        self.array::<1>()[0]
    }
}

impl Entropy for Bytes<'_> {
    fn below(&mut self, limit: u64) -> u64 {
        let mut number = 0;
        let mut covered = 1;
        while covered < limit {
            number = number << 8 | u64::from(self.byte());
            covered <<= 8;
        }
        number % limit
    }

    fn exhausted(&self) -> bool {
        self.is_empty()
    }
}
