//! A small NVMe driver over vfio-user: what the tests and the benchmark use in place of QEMU and a guest kernel.
//!
//! ```text
//! Driver -> guest RAM (a memfd, shared with the server): queues, data, shadow doorbells
//!        -> doorbell page (mapped) or messages
//!        <- completions: polled by their phase, or announced by an eventfd for each vector
//! ```
//!
//! It is a host, so it can make every mistake that a host can: entries are submitted as they are given, and RAM can be
//! written anywhere. It checks what a device owes it (phases, ready within a time) and panics at nothing.
//!
//! It has one queue pair for each I/O queue identifier, no reset recovery, and no idea of namespaces.

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

/// Region of BAR0.
const BAR0: u32 = 0;
/// Region of configuration space.
const CONFIG: u32 = 7;
/// Interrupts of the MSI-X kind.
const MSIX: u32 = 2;
/// VFIO_IRQ_SET_DATA_EVENTFD and VFIO_IRQ_SET_ACTION_TRIGGER.
const SET_EVENTFDS: u32 = 4 | 32;
/// Where RAM begins; not at 0, so that a missing translation shows.
pub const RAM_BASE: u64 = 0x10_0000;
const PAGE_BYTES: u64 = 4096;
/// How long the device may take for anything.
const PATIENCE: Duration = Duration::from_secs(20);
/// Entries of the admin queues.
const ADMIN_ENTRIES: u16 = 32;

/// What went wrong between driver and device.
#[derive(Debug, Error)]
pub enum DriverError {
    #[error("vfio-user: {0}")]
    Client(#[from] vfio_user::Error),
    #[error("{action}: {source}")]
    System {
        /// What was attempted, as a present participle.
        action: &'static str,
        /// The system's answer.
        source: std::io::Error,
    },
    /// The device did not do something in time.
    #[error("the device did not {0} within {PATIENCE:?}")]
    Timeout(&'static str),
    /// The device says that it is broken (CSTS.CFS).
    #[error("controller fatal status")]
    Fatal,
    /// A command that the driver needs failed.
    #[error("{opcode}: {status}")]
    Command { opcode: AdminOpcode, status: Status },
}

/// How the driver behaves.
#[derive(Clone, Copy, Debug)]
pub struct DriverOptions {
    /// Guest RAM.
    pub ram_bytes: u64,
    /// Whether to ring doorbells in the mapped page, if the server offers it.
    pub map_doorbells: bool,
    /// Vectors to receive interrupts for, from 0 on.
    pub vectors: u16,
}

impl Default for DriverOptions {
    fn default() -> DriverOptions {
        DriverOptions {
            ram_bytes: 64 << 20,
            map_doorbells: true,
            vectors: 4,
        }
    }
}

/// A pair of queues as the host sees it.
#[derive(Debug)]
struct QueuePair {
    entries: u16,
    submission: u64,
    completion: u64,
    /// Next entry to fill.
    tail: u16,
    /// Next completion to look at, and the phase it will have.
    head: u16,
    phase: bool,
}

/// Buffers of Doorbell Buffer Config.
#[derive(Clone, Copy, Debug)]
struct Shadow {
    values: u64,
    event_indexes: u64,
}

/// The driver. See the module.
pub struct Driver {
    client: Client,
    ram: MmapRegion,
    ram_file: OwnedFd,
    /// First byte of RAM that is not given out.
    unused: u64,
    doorbells: Option<MmapRegion>,
    shadow: Option<Shadow>,
    /// By queue identifier.
    queues: Vec<Option<QueuePair>>,
    events: Vec<File>,
    next_cid: u16,
}

fn system(action: &'static str) -> impl FnOnce(std::io::Error) -> DriverError {
    move |source| DriverError::System { action, source }
}

impl Driver {
    /// Connects to a server, gives it RAM and event file descriptors. The controller stays as it is.
    ///
    /// # Errors
    /// There is no server, or the system has no memory.
    pub fn connect(path: &Path, options: DriverOptions) -> Result<Driver, DriverError> {
        let mut client = Client::new(path)?;
        let (ram, ram_file) = shared_memory(options.ram_bytes).map_err(system("making guest RAM"))?;
        client.dma_map(0, RAM_BASE, options.ram_bytes, ram_file.as_raw_fd())?;
        let doorbells = if options.map_doorbells {
            map_doorbells(&client).map_err(system("mapping the doorbells"))?
        } else {
            None
        };
        let mut driver = Driver {
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

    /// Connects, resets and enables the controller.
    ///
    /// # Errors
    /// There is no server, or the controller does not become ready.
    pub fn start(path: &Path, options: DriverOptions) -> Result<Driver, DriverError> {
        let mut driver = Driver::connect(path, options)?;
        driver.enable()?;
        Ok(driver)
    }

    fn set_vectors(&mut self, vectors: u16) -> Result<(), DriverError> {
        let events: Result<Vec<File>, _> = (0..vectors)
            .map(|_| Ok(File::from(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?)))
            .collect();
        self.events = events.map_err(system("making event file descriptors"))?;
        for (vector, event) in (0..).zip(&self.events) {
            self.client
                .set_irqs(MSIX, SET_EVENTFDS, vector, 1, &[event.as_raw_fd()])?;
        }
        Ok(())
    }

    /// The protocol's client, for what this driver has no function for.
    pub fn client(&mut self) -> &mut Client {
        &mut self.client
    }

    /// Whether doorbells are rung without messages.
    pub fn has_mapped_doorbells(&self) -> bool {
        self.doorbells.is_some()
    }

    // ------------------------------------------------------------------------------------------------------ RAM --

    /// Takes pages of RAM; they are never given back, only all together by [`Driver::enable`].
    ///
    /// # Panics
    /// RAM is used up: the test should ask for more.
    pub fn allocate(&mut self, bytes: u64) -> u64 {
        let address = self.unused;
        self.unused += bytes.next_multiple_of(PAGE_BYTES);
        assert!(
            self.unused <= RAM_BASE + self.ram.size() as u64,
            "the driver needs more RAM"
        );
        address
    }

    /// Writes RAM.
    ///
    /// # Panics
    /// There is no RAM at the address.
    pub fn write_ram(&self, address: u64, data: &[u8]) {
        self.ram
            .get_slice((address - RAM_BASE) as usize, data.len())
            .expect("RAM")
            .copy_from(data);
    }

    /// Reads RAM.
    ///
    /// # Panics
    /// There is no RAM at the address.
    pub fn read_ram(&self, address: u64, data: &mut [u8]) {
        self.ram
            .get_slice((address - RAM_BASE) as usize, data.len())
            .expect("RAM")
            .copy_to(data);
    }

    /// Takes RAM and fills it.
    pub fn allocate_with(&mut self, data: &[u8]) -> u64 {
        let address = self.allocate(data.len() as u64);
        self.write_ram(address, data);
        address
    }

    fn number(&self, address: u64) -> &AtomicU32 {
        self.ram
            .get_atomic_ref((address - RAM_BASE) as usize)
            .expect("a number in RAM")
    }

    /// The file behind RAM, which begins at [`RAM_BASE`].
    pub fn ram_file(&self) -> &OwnedFd {
        &self.ram_file
    }

    // ------------------------------------------------------------------------------------------------ registers --

    /// Reads a register of 4 bytes.
    ///
    /// # Errors
    /// The server is gone.
    pub fn read_register(&mut self, offset: u32) -> Result<u32, DriverError> {
        let mut data = [0; 4];
        self.client.region_read(BAR0, u64::from(offset), &mut data)?;
        Ok(u32::from_le_bytes(data))
    }

    /// Writes a register of 4 bytes.
    ///
    /// # Errors
    /// The server is gone.
    pub fn write_register(&mut self, offset: u32, value: u32) -> Result<(), DriverError> {
        Ok(self
            .client
            .region_write(BAR0, u64::from(offset), &value.to_le_bytes())?)
    }

    fn write_address(&mut self, offset: u32, value: u64) -> Result<(), DriverError> {
        Ok(self
            .client
            .region_write(BAR0, u64::from(offset), &value.to_le_bytes())?)
    }

    /// Controller Status.
    ///
    /// # Errors
    /// The server is gone.
    pub fn status(&mut self) -> Result<Csts, DriverError> {
        Ok(Csts::from_bits(self.read_register(register::CSTS)?))
    }

    /// Waits for Controller Status to be something.
    ///
    /// # Errors
    /// It takes too long, or the controller fails.
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

    /// Reads configuration space.
    ///
    /// # Errors
    /// The server is gone.
    pub fn read_config(&mut self, offset: u64, data: &mut [u8]) -> Result<(), DriverError> {
        Ok(self.client.region_read(CONFIG, offset, data)?)
    }

    /// Writes configuration space.
    ///
    /// # Errors
    /// The server is gone.
    pub fn write_config(&mut self, offset: u64, data: &[u8]) -> Result<(), DriverError> {
        Ok(self.client.region_write(CONFIG, offset, data)?)
    }

    /// Lets the function access RAM, or not.
    ///
    /// # Errors
    /// The server is gone.
    pub fn set_bus_master(&mut self, enabled: bool) -> Result<(), DriverError> {
        let command = PciCommand::new().with_memory_space(true).with_bus_master(enabled);
        let offset = std::mem::offset_of!(ConfigHeader, command) as u64;
        self.write_config(offset, command.as_bytes())
    }

    // ------------------------------------------------------------------------------------------------ lifecycle --

    /// Resets the controller, forgets queues and RAM, makes the admin queues and enables the controller.
    ///
    /// # Errors
    /// The controller does not become ready.
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
        let configuration = Cc::new().with_en(true).with_iosqes(6).with_iocqes(4);
        self.write_register(register::CC, configuration.into_bits())?;
        self.wait_for("become ready", |status| status.rdy())
    }

    /// Disables the controller.
    ///
    /// # Errors
    /// It stays ready.
    pub fn disable(&mut self) -> Result<(), DriverError> {
        self.write_register(register::CC, 0)?;
        self.wait_for("become not ready", |status| !status.rdy())
    }

    fn new_pair(&mut self, entries: u16) -> QueuePair {
        let submission = self.allocate(u64::from(entries) * 64);
        let completion = self.allocate(u64::from(entries) * 16);
        // RAM is used again after a reset, and old phases would be mistaken for completions.
        self.write_ram(completion, &vec![0; usize::from(entries) * 16]);
        QueuePair {
            entries,
            submission,
            completion,
            tail: 0,
            head: 0,
            phase: true,
        }
    }

    /// Makes I/O queues with this identifier; interrupts on `vector` unless it is `None`.
    ///
    /// # Errors
    /// The controller refuses.
    pub fn create_queues(&mut self, queue: u16, entries: u16, vector: Option<u16>) -> Result<(), DriverError> {
        let pair = self.new_pair(entries);
        let identity = CreateQueueCdw10::new().with_qid(queue).with_qsize(entries - 1);
        let completion = CreateIoCompletionQueueCdw11::new()
            .with_pc(true)
            .with_ien(vector.is_some())
            .with_iv(vector.unwrap_or(0));
        let mut entry = admin_entry(AdminOpcode::CreateIoCompletionQueue);
        entry.set_prps(pair.completion, 0);
        entry.cdw10.set(identity.into_bits());
        entry.cdw11.set(completion.into_bits());
        self.must(AdminOpcode::CreateIoCompletionQueue, entry)?;

        let mut entry = admin_entry(AdminOpcode::CreateIoSubmissionQueue);
        entry.set_prps(pair.submission, 0);
        entry.cdw10.set(identity.into_bits());
        entry.cdw11.set(
            CreateIoSubmissionQueueCdw11::new()
                .with_pc(true)
                .with_cqid(queue)
                .into_bits(),
        );
        self.must(AdminOpcode::CreateIoSubmissionQueue, entry)?;

        let slot = usize::from(queue);
        if self.queues.len() <= slot {
            self.queues.resize_with(slot + 1, || None);
        }
        self.queues[slot] = Some(pair);
        Ok(())
    }

    /// Gives the controller shadow doorbells.
    ///
    /// # Errors
    /// It refuses.
    pub fn use_shadow_doorbells(&mut self) -> Result<(), DriverError> {
        let shadow = Shadow {
            values: self.allocate_with(&[0; PAGE_BYTES as usize]),
            event_indexes: self.allocate_with(&[0; PAGE_BYTES as usize]),
        };
        let mut entry = admin_entry(AdminOpcode::DoorbellBufferConfig);
        entry.set_prps(shadow.values, shadow.event_indexes);
        self.must(AdminOpcode::DoorbellBufferConfig, entry)?;
        self.shadow = Some(shadow);
        Ok(())
    }

    fn must(&mut self, opcode: AdminOpcode, entry: SubmissionEntry) -> Result<CompletionEntry, DriverError> {
        let completion = self.command(0, entry)?;
        match completion.status.status() {
            Status::SUCCESS => Ok(completion),
            status => Err(DriverError::Command { opcode, status }),
        }
    }

    // ------------------------------------------------------------------------------------------------- commands --

    fn pair(&mut self, queue: u16) -> &mut QueuePair {
        self.queues[usize::from(queue)]
            .as_mut()
            .expect("a queue that was created")
    }

    /// Puts an entry into a submission queue with a command identifier of its own, which is returned. The caller sees
    /// to it that there is room, and rings.
    pub fn submit(&mut self, queue: u16, mut entry: SubmissionEntry) -> u16 {
        let cid = self.next_cid;
        self.next_cid = self.next_cid.wrapping_add(1);
        entry.cid.set(cid);
        self.submit_raw(queue, &entry);
        cid
    }

    /// Puts an entry into a submission queue as it is.
    pub fn submit_raw(&mut self, queue: u16, entry: &SubmissionEntry) {
        let pair = self.pair(queue);
        let address = pair.submission + u64::from(pair.tail) * 64;
        pair.tail = (pair.tail + 1) % pair.entries;
        self.write_ram(address, entry.as_bytes());
    }

    /// Rings the doorbell of a submission queue.
    ///
    /// # Errors
    /// The server is gone.
    pub fn ring(&mut self, queue: u16) -> Result<(), DriverError> {
        let tail = self.pair(queue).tail;
        self.set_doorbell(u32::from(queue) * 2, tail)
    }

    /// Sets a doorbell: 2y for the tail of queue y, 2y + 1 for the head.
    ///
    /// # Errors
    /// The server is gone.
    pub fn set_doorbell(&mut self, index: u32, value: u16) -> Result<(), DriverError> {
        if let Some(shadow) = self.shadow
            && index >= 2
        {
            let place = self.number(shadow.values + u64::from(index) * 4);
            let old = place.swap(u32::from(value), Ordering::Release) as u16;
            fence(Ordering::SeqCst);
            let event = self
                .number(shadow.event_indexes + u64::from(index) * 4)
                .load(Ordering::Acquire) as u16;
            // The real doorbell is wanted if the event index is among the values passed over.
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

    /// Takes the next completion, if there is one. The head doorbell is the caller's ([`Driver::ring_head`]).
    pub fn take_completion(&mut self, queue: u16) -> Option<CompletionEntry> {
        let pair = self.pair(queue);
        let (address, phase) = (pair.completion + u64::from(pair.head) * 16, pair.phase);
        // The phase is bit 16 of the last dword; what the device wrote before it is visible after this load.
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

    /// Tells the device which completions were taken.
    ///
    /// # Errors
    /// The server is gone.
    pub fn ring_head(&mut self, queue: u16) -> Result<(), DriverError> {
        let head = self.pair(queue).head;
        self.set_doorbell(u32::from(queue) * 2 + 1, head)
    }

    /// Waits for the next completion of a queue.
    ///
    /// # Errors
    /// None comes in time.
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

    /// Submits a command and waits for it; nothing else may be outstanding on the queue.
    ///
    /// # Errors
    /// No completion comes in time. That the command fails is no error here.
    pub fn command(&mut self, queue: u16, entry: SubmissionEntry) -> Result<CompletionEntry, DriverError> {
        let cid = self.submit(queue, entry);
        self.ring(queue)?;
        let completion = self.wait_completion(queue)?;
        assert_eq!(completion.cid.get(), cid, "the device completes what was submitted");
        Ok(completion)
    }

    /// Waits for an interrupt, and returns how often the vector was raised since the last one.
    ///
    /// # Errors
    /// None comes in time.
    pub fn wait_interrupt(&mut self, vector: u16) -> Result<u64, DriverError> {
        let event = &mut self.events[usize::from(vector)];
        let timeout = Timespec {
            tv_sec: PATIENCE.as_secs() as i64,
            tv_nsec: 0,
        };
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

    /// Fills the data pointer for contiguous RAM, with a PRP list where one is needed.
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

/// Maps the part of BAR0 that the server offers, if it is the doorbells.
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
