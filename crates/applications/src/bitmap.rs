//! Bitmap with a fast search for the next set bit.

/// A bitmap of fixed size.
pub struct Bitmap {
    words: Vec<u64>,
    bits: usize,
    /// Set bits.
    pub count: usize,
}

impl Bitmap {
    /// Creates a bitmap with all bits clear.
    pub fn new(bits: usize) -> Bitmap {
        Bitmap { words: vec![0; bits.div_ceil(64)], bits, count: 0 }
    }

    pub fn full(bits: usize) -> Bitmap {
        let mut bitmap = Bitmap::new(bits);
        for bit in 0..bits {
            bitmap.set(bit);
        }
        bitmap
    }

    /// True if a bit is set.
    #[inline]
    pub fn get(&self, bit: usize) -> bool {
        self.words[bit / 64] >> (bit % 64) & 1 == 1
    }

    /// Sets a bit. Returns true if it was clear.
    #[inline]
    pub fn set(&mut self, bit: usize) -> bool {
        assert!(bit < self.bits);
        let word = &mut self.words[bit / 64];
        let was_clear = *word >> (bit % 64) & 1 == 0;
        *word |= 1 << (bit % 64);
        self.count += usize::from(was_clear);
        was_clear
    }

    /// Clears a bit. Returns true if it was set.
    #[inline]
    pub fn clear(&mut self, bit: usize) -> bool {
        assert!(bit < self.bits);
        let word = &mut self.words[bit / 64];
        let was_set = *word >> (bit % 64) & 1 == 1;
        *word &= !(1 << (bit % 64));
        self.count -= usize::from(was_set);
        was_set
    }

    /// First set bit at or after `from`.
    pub fn next(&self, from: usize) -> Option<usize> {
        if from >= self.bits {
            return None;
        }
        let mut index = from / 64;
        let mut word = self.words[index] & (u64::MAX << (from % 64));
        while word == 0 {
            index += 1;
            word = *self.words.get(index)?;
        }
        Some(index * 64 + word.trailing_zeros() as usize)
    }

    /// First set bit at or after `from`, with one wrap around the end.
    pub fn next_around(&self, from: usize) -> Option<usize> {
        self.next(from).or_else(|| self.next(0))
    }

    /// The 64 bits of a word.
    pub fn word(&self, index: usize) -> u64 {
        self.words[index]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_are_found_in_turn() {
        let mut bitmap = Bitmap::new(200);
        for bit in [3, 63, 64, 130, 199] {
            assert!(bitmap.set(bit) && !bitmap.set(bit));
        }
        assert_eq!(bitmap.count, 5);
        assert_eq!([0, 4, 64, 65].map(|from| bitmap.next(from)), [3, 63, 64, 130].map(Some));
        assert_eq!((bitmap.next(131), bitmap.next(200), bitmap.next_around(200)), (Some(199), None, Some(3)));
    }
}
