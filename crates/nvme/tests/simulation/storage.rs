//! Storage of a simulated drive. It is a vector, with or without a volatile write cache, and fails
//! on request.

use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use nvme::{FlushHandle, Media, MediaError};

/// Operation at which the storage fails once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The next read.
    Read,
    /// The next write.
    Write,
    /// The next discard.
    Discard,
    /// The next storing of the state.
    Keep,
    /// The next I/O command fails because of a fault plan, not because of the storage.
    Planned,
}

/// Test access to storage that a subsystem owns.
#[derive(Default)]
pub struct Control {
    fault: Mutex<Option<Fault>>,
    /// Number of syncs.
    pub syncs: AtomicU64,
}

impl Control {
    /// Arms or disarms a fault. Returns the previous fault if it did not happen.
    pub fn arm(&self, fault: Option<Fault>) -> Option<Fault> {
        std::mem::replace(&mut self.fault.lock().expect("nobody panicked"), fault)
    }

    fn fails(&self, fault: Fault) -> bool {
        let mut armed = self.fault.lock().expect("nobody panicked");
        if *armed == Some(fault) {
            *armed = None;
            return true;
        }
        false
    }
}

impl FlushHandle for Control {
    fn flush(&self) -> std::io::Result<()> {
        self.syncs.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }
}

/// Storage of a simulated drive. See the module documentation.
pub struct Storage {
    bytes: Vec<u8>,
    control: Arc<Control>,
    cached: bool,
}

impl Storage {
    /// Zeroed storage for a drive of this capacity. `cached` adds a volatile write cache.
    pub fn new(bytes: u64, cached: bool) -> (Storage, Arc<Control>) {
        let control = Arc::new(Control::default());
        let storage =
            Storage { bytes: vec![0; nvme::media::bytes_for(bytes) as usize], control: control.clone(), cached };
        (storage, control)
    }

    fn access(&self, fault: Fault, action: &'static str, offset: u64, bytes: u64) -> Result<(), MediaError> {
        assert!(bytes > 0, "{action} nothing at {offset}");
        assert!(offset + bytes <= self.bytes.len() as u64, "{action} {bytes} bytes at {offset}");
        if !self.control.fails(fault) {
            return Ok(());
        }
        Err(MediaError { action, offset, bytes, source: std::io::Error::other("the test wants it") })
    }
}

impl Media for Storage {
    fn read(&mut self, offset: u64, data: &mut [u8]) -> Result<(), MediaError> {
        self.access(Fault::Read, "reading", offset, data.len() as u64)?;
        data.copy_from_slice(&self.bytes[offset as usize..][..data.len()]);
        Ok(())
    }

    fn write(&mut self, offset: u64, data: &[u8]) -> Result<(), MediaError> {
        self.access(Fault::Write, "writing", offset, data.len() as u64)?;
        self.bytes[offset as usize..][..data.len()].copy_from_slice(data);
        Ok(())
    }

    fn discard(&mut self, offset: u64, bytes: u64) -> Result<(), MediaError> {
        self.access(Fault::Discard, "discarding", offset, bytes)?;
        self.bytes[offset as usize..][..bytes as usize].fill(0);
        Ok(())
    }

    fn store_state(&mut self, state: &[u8]) -> Result<(), MediaError> {
        if self.control.fails(Fault::Keep) {
            return Err(MediaError {
                action: "keeping",
                offset: 0,
                bytes: state.len() as u64,
                source: std::io::Error::other("the test wants it"),
            });
        }
        nvme::NonVolatileState::from_bytes(state).expect("what is kept can be read");
        Ok(())
    }

    fn flush_handle(&self) -> Option<Arc<dyn FlushHandle>> {
        self.cached.then(|| self.control.clone() as Arc<dyn FlushHandle>)
    }
}
