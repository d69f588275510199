//! A host on PCI Express as the controller sees it, with memory, interrupt vectors and doorbells.

use std::cell::RefCell;
use std::sync::atomic::{AtomicU32, Ordering};

use nvme::pcie::{Bus, Doorbells, HostMemory, Interrupts, MemoryFault, QUEUES_MAX};

/// Memory from address 0 on.
pub struct Ram(RefCell<Vec<u8>>);

impl Ram {
    /// Memory of zeroes.
    pub fn new(bytes: usize) -> Ram {
        Ram(RefCell::new(vec![0; bytes]))
    }

    /// Bytes at an address, which must be memory.
    pub fn get(&self, address: u64, bytes: usize) -> Vec<u8> {
        self.0.borrow()[address as usize..][..bytes].to_vec()
    }

    /// Writes bytes to an address, which must be memory.
    pub fn put(&self, address: u64, bytes: &[u8]) {
        self.0.borrow_mut()[address as usize..][..bytes.len()].copy_from_slice(bytes);
    }

    /// The bytes of the range, if all of it is memory.
    fn range(&self, address: u64, bytes: usize) -> Result<std::ops::Range<usize>, MemoryFault> {
        let start = usize::try_from(address).ok();
        let range = start.and_then(|start| Some(start..start.checked_add(bytes)?));
        range.filter(|range| range.end <= self.0.borrow().len()).ok_or(MemoryFault { address })
    }

    fn aligned(&self, address: u64) -> Result<std::ops::Range<usize>, MemoryFault> {
        match address % 4 {
            0 => self.range(address, 4),
            _ => Err(MemoryFault { address }),
        }
    }
}

impl HostMemory for Ram {
    fn read(&self, address: u64, data: &mut [u8]) -> Result<(), MemoryFault> {
        let range = self.range(address, data.len())?;
        data.copy_from_slice(&self.0.borrow()[range]);
        Ok(())
    }

    fn check_readable(&self, address: u64, bytes: usize) -> Result<(), MemoryFault> {
        self.range(address, bytes).map(|_| ())
    }

    fn write(&self, address: u64, data: &[u8]) -> Result<(), MemoryFault> {
        let range = self.range(address, data.len())?;
        self.0.borrow_mut()[range].copy_from_slice(data);
        Ok(())
    }

    fn load(&self, address: u64) -> Result<u32, MemoryFault> {
        let range = self.aligned(address)?;
        Ok(super::wire::u32_at(&self.0.borrow(), range.start))
    }

    fn store(&self, address: u64, value: u32) -> Result<(), MemoryFault> {
        let range = self.aligned(address)?;
        self.0.borrow_mut()[range].copy_from_slice(&value.to_le_bytes());
        Ok(())
    }
}

/// Vectors that were raised, in order.
#[derive(Default)]
pub struct Vectors(RefCell<Vec<u16>>);

impl Vectors {
    /// Takes the raised vectors.
    pub fn take(&self) -> Vec<u16> {
        self.0.take()
    }
}

impl Interrupts for Vectors {
    fn raise(&self, vector: u16) {
        self.0.borrow_mut().push(vector);
    }
}

/// Memory, vectors and doorbells of a host.
pub struct PciHost {
    pub ram: Ram,
    pub vectors: Vectors,
    doorbells: Vec<AtomicU32>,
}

impl PciHost {
    /// A host with `ram_bytes` of memory.
    pub fn new(ram_bytes: usize) -> PciHost {
        PciHost {
            ram: Ram::new(ram_bytes),
            vectors: Vectors::default(),
            doorbells: (0..usize::from(QUEUES_MAX) * 2).map(|_| AtomicU32::new(0)).collect(),
        }
    }

    /// Bus for the controller.
    pub fn bus(&self) -> Bus<'_> {
        Bus { memory: &self.ram, interrupts: &self.vectors, doorbells: self }
    }
}

impl Doorbells for PciHost {
    fn load(&self, index: usize) -> u32 {
        self.doorbells[index].load(Ordering::Acquire)
    }

    fn store(&self, index: usize, value: u32) {
        self.doorbells[index].store(value, Ordering::Release);
    }
}
