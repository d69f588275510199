//! The memory that sessions share: what a run takes, its workload included, is set aside before any of it is built.

use std::sync::{Arc, Mutex};

use base::Bytes;
use experiment::LabError;

/// Bytes that may be taken. Clones are the same memory.
#[derive(Clone)]
pub struct Memory(Arc<Mutex<u64>>);

/// A part of it; given back when dropped.
pub struct Share {
    of: Memory,
    bytes: u64,
}

impl Memory {
    /// So much in all.
    pub fn new(bytes: u64) -> Memory {
        Memory(Arc::new(Mutex::new(bytes)))
    }

    /// What is left.
    pub fn left(&self) -> u64 {
        *self.0.lock().expect("nobody panics with it")
    }

    /// Takes a part.
    ///
    /// # Errors
    /// There is not so much left: says what to do.
    pub fn take(&self, bytes: u64) -> Result<Share, LabError> {
        let mut left = self.0.lock().expect("nobody panics with it");
        let Some(rest) = left.checked_sub(bytes) else {
            let problem = format!(
                "the run needs {}, and {} of the sessions' memory are left; run a smaller twin (scale 1/512) or a smaller workload, or end \
                 another session",
                Bytes(bytes),
                Bytes(*left)
            );
            return Err(LabError::invalid("memory", problem));
        };
        *left = rest;
        Ok(Share {
            of: self.clone(),
            bytes,
        })
    }
}

impl Share {
    /// How much it is.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        if let Ok(mut left) = self.of.0.lock() {
            *left += self.bytes;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_taken_comes_back() {
        let memory = Memory::new(100);
        let share = memory.take(60).expect("there is enough");
        assert_eq!(memory.left(), 40);
        let error = memory.take(41).err().expect("there is not").to_string();
        assert!(error.contains("smaller twin"), "{error}");
        drop(share);
        assert_eq!(memory.left(), 100);
    }
}
