//! A backend without data, for studies of drives that are larger than the machine. Every read
//! returns zeroes.

use std::sync::Arc;

use nvme::{FlushHandle, Media, MediaError};

use super::check_range;

/// Stores nothing and takes no memory.
pub struct NullBackend {
    pub(in crate::storage) capacity_bytes: u64,
}

impl Media for NullBackend {
    fn read(&mut self, offset: u64, data: &mut [u8]) -> Result<(), MediaError> {
        check_range(self.capacity_bytes, offset, data.len() as u64);
        data.fill(0);
        Ok(())
    }

    fn write(&mut self, offset: u64, data: &[u8]) -> Result<(), MediaError> {
        check_range(self.capacity_bytes, offset, data.len() as u64);
        Ok(())
    }

    fn discard(&mut self, offset: u64, bytes: u64) -> Result<(), MediaError> {
        check_range(self.capacity_bytes, offset, bytes);
        Ok(())
    }

    fn store_state(&mut self, _state: &[u8]) -> Result<(), MediaError> {
        Ok(())
    }

    fn flush_handle(&self) -> Option<Arc<dyn FlushHandle>> {
        None
    }
}
