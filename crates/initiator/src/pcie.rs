//! Small NVMe driver over vfio-user that replaces QEMU and a guest kernel in tests and benchmarks.
//!
//! ```text
//! NvmeDriver -> guest RAM (a memfd, shared with the server): queues, data, shadow doorbells
//!            -> doorbell page (mapped) or messages
//!            <- completions: polled by their phase, or signaled by an eventfd per vector
//! ```
//!
//! As a host, the driver can make every mistake of a host. It submits entries unchanged and writes
//! RAM at any address. It checks the obligations of a device (phases, ready in time) and returns
//! errors instead of panics.
//!
//! It has one queue pair per I/O queue identifier. It has no reset recovery and knows no
//! namespaces.

use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering, fence};
use std::time::{Duration, Instant};

use nvme_spec::command::{
    CompletionEntry, CreateIoCompletionQueueCdw11, CreateIoSubmissionQueueCdw11, CreateQueueCdw10, SubmissionEntry,
};
use nvme_spec::pci::{ConfigHeader, PciCommand};
use nvme_spec::register::{self, Aqa, Cc, Csts};
use nvme_spec::{AdminOpcode, Status};
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use thiserror::Error;
use vfio_user::Client;
use vm_memory::{FileOffset, MmapRegion, VolatileMemory};
use zerocopy::{FromBytes, IntoBytes};

use crate::command::admin_entry;

const BAR0: u32 = 0;
const CONFIG: u32 = 7;
const MSIX: u32 = 2;
/// VFIO_IRQ_SET_DATA_EVENTFD and VFIO_IRQ_SET_ACTION_TRIGGER.
const SET_EVENTFDS: u32 = 4 | 32;
/// Address of RAM, above 0 so that a missing translation is noticed.
pub const RAM_BASE: u64 = 0x10_0000;
const PAGE_BYTES: u64 = 4096;
const PATIENCE: Duration = Duration::from_secs(20);
const ADMIN_ENTRIES: u16 = 32;

#[derive(Debug, Error)]
pub enum DriverError {
    #[error("the vfio-user connection failed with {0}")]
    Client(#[from] vfio_user::Error),
    #[error("{action} failed with {source}")]
    System { action: &'static str, source: std::io::Error },
    #[error("the device did not {0} within {PATIENCE:?}")]
    Timeout(&'static str),
    #[error("the controller reports a fatal error (CSTS.CFS)")]
    Fatal,
    #[error("{opcode} failed with {status}")]
    Command { opcode: AdminOpcode, status: Status },
}

#[derive(Clone, Copy, Debug)]
pub struct DriverOptions {
    pub ram_bytes: u64,
    /// Ring doorbells in the mapped page, if the server offers it.
    pub map_doorbells: bool,
    pub vectors: u16,
}

impl Default for DriverOptions {
    fn default() -> DriverOptions {
        DriverOptions { ram_bytes: 64 << 20, map_doorbells: true, vectors: 4 }
    }
}

#[derive(Debug)]
struct QueuePair {
    entries: u16,
    submission: u64,
    completion: u64,
    tail: u16,
    /// Index of the next completion, and its expected phase.
    head: u16,
    phase: bool,
}

/// Buffers of Doorbell Buffer Config.
#[derive(Clone, Copy, Debug)]
struct Shadow {
    values: u64,
    event_indexes: u64,
}

pub struct NvmeDriver {
    client: Client,
    ram: MmapRegion,
    ram_file: OwnedFd,
    unused: u64,
    doorbells: Option<MmapRegion>,
    shadow: Option<Shadow>,
    queues: Vec<Option<QueuePair>>,
    events: Vec<File>,
    next_cid: u16,
}

fn system(action: &'static str) -> impl FnOnce(std::io::Error) -> DriverError {
    move |source| DriverError::System { action, source }
}

impl NvmeDriver {
    /// Connects to a server and registers RAM and event file descriptors. The controller keeps its
    /// state.
    pub fn connect(path: &Path, options: DriverOptions) -> Result<NvmeDriver, DriverError> {
        let mut client = Client::new(path)?;
        let (ram, ram_file) = shared_memory(options.ram_bytes).map_err(system("creating guest RAM"))?;
        client.dma_map(0, RAM_BASE, options.ram_bytes, ram_file.as_raw_fd())?;
        let doorbells =
            if options.map_doorbells { map_doorbells(&client).map_err(system("mapping the doorbells"))? } else { None };
        let mut driver = NvmeDriver {
            client,
            ram,
            ram_file,
            unused: RAM_BASE,
            doorbells,
            shadow: None,
            queues: Vec::new(),
            events: Vec::new(),
            next_cid: 0,
        };
        driver.set_vectors(options.vectors)?;
        Ok(driver)
    }

    /// Connects to a server, then resets and enables the controller.
    pub fn start(path: &Path, options: DriverOptions) -> Result<NvmeDriver, DriverError> {
        let mut driver = NvmeDriver::connect(path, options)?;
        driver.enable()?;
        Ok(driver)
    }

    fn set_vectors(&mut self, vectors: u16) -> Result<(), DriverError> {
        let events: Result<Vec<File>, _> =
            (0..vectors).map(|_| Ok(File::from(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?))).collect();
        self.events = events.map_err(system("creating event file descriptors"))?;
        for (vector, event) in (0..).zip(&self.events) {
            self.client.set_irqs(MSIX, SET_EVENTFDS, vector, 1, &[event.as_raw_fd()])?;
        }
        Ok(())
    }

    /// Client of the protocol, for functions missing in this driver.
    pub fn client(&mut self) -> &mut Client {
        &mut self.client
    }

    pub fn has_mapped_doorbells(&self) -> bool {
        self.doorbells.is_some()
    }

    // ------------------------------------------------------------------------------------------------------ RAM --

    /// Allocates pages of RAM. Only [`NvmeDriver::enable`] frees them, all at the same time.
    ///
    /// # Panics
    /// RAM is exhausted. The test should configure more.
    pub fn allocate(&mut self, bytes: u64) -> u64 {
        let address = self.unused;
        self.unused += bytes.next_multiple_of(PAGE_BYTES);
        assert!(self.unused <= RAM_BASE + self.ram.size() as u64, "the driver needs more RAM");
        address
    }

    /// Writes RAM.
    ///
    /// # Panics
    /// The address is outside RAM.
    pub fn write_ram(&self, address: u64, data: &[u8]) {
        self.ram.get_slice((address - RAM_BASE) as usize, data.len()).expect("RAM").copy_from(data);
    }

    /// Reads RAM.
    ///
    /// # Panics
    /// The address is outside RAM.
    pub fn read_ram(&self, address: u64, data: &mut [u8]) {
        self.ram.get_slice((address - RAM_BASE) as usize, data.len()).expect("RAM").copy_to(data);
    }

    pub fn allocate_with(&mut self, data: &[u8]) -> u64 {
        let address = self.allocate(data.len() as u64);
        self.write_ram(address, data);
        address
    }

    fn number(&self, address: u64) -> &AtomicU32 {
        self.ram.get_atomic_ref((address - RAM_BASE) as usize).expect("a number in RAM")
    }

    /// File of the RAM, which starts at [`RAM_BASE`].
    pub fn ram_file(&self) -> &OwnedFd {
        &self.ram_file
    }

    // ------------------------------------------------------------------------------------------------ registers --

    /// Reads a register of 4 bytes.
    pub fn read_register(&mut self, offset: u32) -> Result<u32, DriverError> {
        let mut data = [0; 4];
        self.client.region_read(BAR0, u64::from(offset), &mut data)?;
        Ok(u32::from_le_bytes(data))
    }

    /// Writes a register of 4 bytes.
    pub fn write_register(&mut self, offset: u32, value: u32) -> Result<(), DriverError> {
        Ok(self.client.region_write(BAR0, u64::from(offset), &value.to_le_bytes())?)
    }

    fn write_address(&mut self, offset: u32, value: u64) -> Result<(), DriverError> {
        Ok(self.client.region_write(BAR0, u64::from(offset), &value.to_le_bytes())?)
    }

    /// Reads Controller Status.
    pub fn status(&mut self) -> Result<Csts, DriverError> {
        Ok(Csts::from_bits(self.read_register(register::CSTS)?))
    }

    /// Waits until Controller Status fulfills a condition.
    pub fn wait_for(&mut self, what: &'static str, wanted: impl Fn(Csts) -> bool) -> Result<(), DriverError> {
        let start = Instant::now();
        loop {
            let status = self.status()?;
            if wanted(status) {
                return Ok(());
            }
            if status.cfs() {
                return Err(DriverError::Fatal);
            }
            if start.elapsed() > PATIENCE {
                return Err(DriverError::Timeout(what));
            }
            std::thread::yield_now();
        }
    }

    pub fn read_config(&mut self, offset: u64, data: &mut [u8]) -> Result<(), DriverError> {
        Ok(self.client.region_read(CONFIG, offset, data)?)
    }

    /// Writes configuration space.
    pub fn write_config(&mut self, offset: u64, data: &[u8]) -> Result<(), DriverError> {
        Ok(self.client.region_write(CONFIG, offset, data)?)
    }

    /// Enables or disables access of the function to RAM.
    pub fn set_bus_master(&mut self, enabled: bool) -> Result<(), DriverError> {
        let command = PciCommand::new().with_memory_space(true).with_bus_master(enabled);
        let offset = std::mem::offset_of!(ConfigHeader, command) as u64;
        self.write_config(offset, command.as_bytes())
    }

    // ------------------------------------------------------------------------------------------------ lifecycle --

    /// Resets the controller, drops queues and RAM, creates the admin queues and enables the
    /// controller.
    pub fn enable(&mut self) -> Result<(), DriverError> {
        self.set_bus_master(true)?;
        self.disable()?;
        self.unused = RAM_BASE;
        self.shadow = None;
        self.queues.clear();
        let admin = self.new_pair(ADMIN_ENTRIES);
        let size = ADMIN_ENTRIES - 1;
        self.write_register(register::AQA, Aqa::new().with_asqs(size).with_acqs(size).into_bits())?;
        self.write_address(register::ASQ, admin.submission)?;
        self.write_address(register::ACQ, admin.completion)?;
        self.queues.push(Some(admin));
        self.write_register(register::CC, Cc::new().with_en(true).with_iosqes(6).with_iocqes(4).into_bits())?;
        self.wait_for("become ready", |status| status.rdy())
    }

    /// Disables the controller.
    pub fn disable(&mut self) -> Result<(), DriverError> {
        self.write_register(register::CC, 0)?;
        self.wait_for("become not ready", |status| !status.rdy())
    }

    fn new_pair(&mut self, entries: u16) -> QueuePair {
        let submission = self.allocate(u64::from(entries) * 64);
        let completion = self.allocate(u64::from(entries) * 16);
        // RAM is reused after a reset, so old phases would look like completions.
        self.write_ram(completion, &vec![0; usize::from(entries) * 16]);
        QueuePair { entries, submission, completion, tail: 0, head: 0, phase: true }
    }

    /// Creates I/O queues with this identifier, with interrupts on `vector` if given.
    pub fn create_queues(&mut self, queue: u16, entries: u16, vector: Option<u16>) -> Result<(), DriverError> {
        let pair = self.new_pair(entries);
        let identity = CreateQueueCdw10::new().with_qid(queue).with_qsize(entries - 1);
        let completion =
            CreateIoCompletionQueueCdw11::new().with_pc(true).with_ien(vector.is_some()).with_iv(vector.unwrap_or(0));
        let mut entry = admin_entry(AdminOpcode::CreateIoCompletionQueue);
        entry.set_prps(pair.completion, 0);
        entry.cdw10.set(identity.into_bits());
        entry.cdw11.set(completion.into_bits());
        self.submit_admin(AdminOpcode::CreateIoCompletionQueue, entry)?;

        let mut entry = admin_entry(AdminOpcode::CreateIoSubmissionQueue);
        entry.set_prps(pair.submission, 0);
        entry.cdw10.set(identity.into_bits());
        entry.cdw11.set(CreateIoSubmissionQueueCdw11::new().with_pc(true).with_cqid(queue).into_bits());
        self.submit_admin(AdminOpcode::CreateIoSubmissionQueue, entry)?;

        let slot = usize::from(queue);
        if self.queues.len() <= slot {
            self.queues.resize_with(slot + 1, || None);
        }
        self.queues[slot] = Some(pair);
        Ok(())
    }

    pub fn use_shadow_doorbells(&mut self) -> Result<(), DriverError> {
        let shadow = Shadow {
            values: self.allocate_with(&[0; PAGE_BYTES as usize]),
            event_indexes: self.allocate_with(&[0; PAGE_BYTES as usize]),
        };
        let mut entry = admin_entry(AdminOpcode::DoorbellBufferConfig);
        entry.set_prps(shadow.values, shadow.event_indexes);
        self.submit_admin(AdminOpcode::DoorbellBufferConfig, entry)?;
        self.shadow = Some(shadow);
        Ok(())
    }

    fn submit_admin(&mut self, opcode: AdminOpcode, entry: SubmissionEntry) -> Result<CompletionEntry, DriverError> {
        let completion = self.command(0, entry)?;
        match completion.status.status() {
            Status::SUCCESS => Ok(completion),
            status => Err(DriverError::Command { opcode, status }),
        }
    }

    // ------------------------------------------------------------------------------------------------- commands --

    fn pair(&mut self, queue: u16) -> &mut QueuePair {
        self.queues[usize::from(queue)].as_mut().expect("a queue that was created")
    }

    /// Adds an entry to a submission queue with a new command identifier, and returns the
    /// identifier. The caller ensures that an entry is free, and rings the doorbell.
    pub fn submit(&mut self, queue: u16, mut entry: SubmissionEntry) -> u16 {
        let cid = self.next_cid;
        self.next_cid = self.next_cid.wrapping_add(1);
        entry.cid.set(cid);
        self.submit_raw(queue, &entry);
        cid
    }

    /// Adds an unchanged entry to a submission queue.
    pub fn submit_raw(&mut self, queue: u16, entry: &SubmissionEntry) {
        let pair = self.pair(queue);
        let address = pair.submission + u64::from(pair.tail) * 64;
        pair.tail = (pair.tail + 1) % pair.entries;
        self.write_ram(address, entry.as_bytes());
    }

    pub fn ring(&mut self, queue: u16) -> Result<(), DriverError> {
        let tail = self.pair(queue).tail;
        self.set_doorbell(u32::from(queue) * 2, tail)
    }

    /// Sets a doorbell. The index is 2y for the tail of queue y and 2y + 1 for its head.
    pub fn set_doorbell(&mut self, index: u32, value: u16) -> Result<(), DriverError> {
        if let Some(shadow) = self.shadow
            && index >= 2
        {
            let place = self.number(shadow.values + u64::from(index) * 4);
            let old = place.swap(u32::from(value), Ordering::Release) as u16;
            fence(Ordering::SeqCst);
            let event = self.number(shadow.event_indexes + u64::from(index) * 4).load(Ordering::Acquire) as u16;
            // The controller needs the real doorbell if the tail passed the event index.
            if value.wrapping_sub(event).wrapping_sub(1) >= value.wrapping_sub(old) {
                return Ok(());
            }
        }
        match &self.doorbells {
            Some(page) => {
                let doorbell: &AtomicU32 = page.get_atomic_ref(index as usize * 4).expect("a doorbell");
                doorbell.store(u32::from(value), Ordering::Release);
                Ok(())
            }
            None => self.write_register(register::DOORBELLS + index * 4, u32::from(value)),
        }
    }

    /// Takes the next completion, if any. The caller rings the head doorbell
    /// ([`NvmeDriver::ring_head`]).
    pub fn take_completion(&mut self, queue: u16) -> Option<CompletionEntry> {
        let pair = self.pair(queue);
        let (address, phase) = (pair.completion + u64::from(pair.head) * 16, pair.phase);
        // The phase is bit 16 of the last dword. Earlier writes of the device are visible after
        // this load.
        let last = self.number(address + 12).load(Ordering::Acquire);
        if (last >> 16 & 1 == 1) != phase {
            return None;
        }
        let mut bytes = [0; 16];
        self.read_ram(address, &mut bytes);
        let pair = self.pair(queue);
        pair.head += 1;
        if pair.head == pair.entries {
            pair.head = 0;
            pair.phase = !pair.phase;
        }
        Some(CompletionEntry::read_from_bytes(&bytes).expect("16 bytes"))
    }

    /// Reports the consumed completions to the device.
    pub fn ring_head(&mut self, queue: u16) -> Result<(), DriverError> {
        let head = self.pair(queue).head;
        self.set_doorbell(u32::from(queue) * 2 + 1, head)
    }

    /// Waits for the next completion of a queue.
    pub fn wait_completion(&mut self, queue: u16) -> Result<CompletionEntry, DriverError> {
        let start = Instant::now();
        loop {
            if let Some(completion) = self.take_completion(queue) {
                self.ring_head(queue)?;
                return Ok(completion);
            }
            if start.elapsed() > PATIENCE {
                return Err(DriverError::Timeout("complete a command"));
            }
            std::thread::yield_now();
        }
    }

    /// Submits a command and waits for its completion. The queue must have no other outstanding
    /// command.
    ///
    /// # Errors
    /// The time limit expires. A failed command is not an error here.
    pub fn command(&mut self, queue: u16, entry: SubmissionEntry) -> Result<CompletionEntry, DriverError> {
        let cid = self.submit(queue, entry);
        self.ring(queue)?;
        let completion = self.wait_completion(queue)?;
        assert_eq!(completion.cid.get(), cid, "the completion belongs to a submitted command");
        Ok(completion)
    }

    /// Waits for an interrupt. Returns the number of interrupts of the vector since the last call.
    pub fn wait_interrupt(&mut self, vector: u16) -> Result<u64, DriverError> {
        let event = &mut self.events[usize::from(vector)];
        let timeout = Timespec { tv_sec: PATIENCE.as_secs() as i64, tv_nsec: 0 };
        let mut waiting = [PollFd::from_borrowed_fd(event.as_fd(), PollFlags::IN)];
        let ready =
            poll(&mut waiting, Some(&timeout)).map_err(|errno| system("waiting for an interrupt")(errno.into()))?;
        if ready == 0 {
            return Err(DriverError::Timeout("raise an interrupt"));
        }
        let mut count = [0; 8];
        event.read_exact(&mut count).map_err(system("reading an interrupt"))?;
        Ok(u64::from_ne_bytes(count))
    }

    /// Sets the data pointer to contiguous RAM, with a PRP list if needed.
    pub fn set_prps(&mut self, entry: &mut SubmissionEntry, address: u64, bytes: u64) {
        let first_bytes = PAGE_BYTES - address % PAGE_BYTES;
        if bytes <= first_bytes {
            return entry.set_prps(address, 0);
        }
        let pages: Vec<u64> = (0..(bytes - first_bytes).div_ceil(PAGE_BYTES))
            .map(|page| address + first_bytes + page * PAGE_BYTES)
            .collect();
        match pages[..] {
            [page] => entry.set_prps(address, page),
            _ => {
                assert!(pages.len() <= 512, "one page of list");
                let list: Vec<u8> = pages.iter().flat_map(|page| page.to_le_bytes()).collect();
                let list = self.allocate_with(&list);
                entry.set_prps(address, list);
            }
        }
    }
}

fn shared_memory(bytes: u64) -> std::io::Result<(MmapRegion, OwnedFd)> {
    let file = memfd_create("warp-driver-ram", MemfdFlags::CLOEXEC)?;
    ftruncate(&file, bytes)?;
    let place = FileOffset::new(File::from(file.try_clone()?), 0);
    let map = MmapRegion::from_file(place, bytes as usize).map_err(std::io::Error::other)?;
    Ok((map, file))
}

/// Maps the part of BAR0 that the server offers, if this part is the doorbells.
fn map_doorbells(client: &Client) -> std::io::Result<Option<MmapRegion>> {
    let Some(region) = client.region(BAR0) else {
        return Ok(None);
    };
    let (Some(file), [area]) = (&region.file_offset, &region.sparse_areas[..]) else {
        return Ok(None);
    };
    if area.offset != u64::from(register::DOORBELLS) {
        return Ok(None);
    }
    let place = FileOffset::new(file.file().try_clone()?, file.start() + area.offset);
    let map = MmapRegion::from_file(place, area.size as usize).map_err(std::io::Error::other)?;
    Ok(Some(map))
}
