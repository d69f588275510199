//! Connection of a host to the drive over either transport, with batches of commands and their
//! results.

use std::path::Path;
use std::time::{Duration, Instant};

use ::initiator::command::{admin_entry, block_command};
use ::initiator::pcie::{DriverOptions, NvmeDriver};
use ::initiator::tcp::{CommandData, HostOptions, RemoteController, TcpQueue};
use nvme_spec::command::AbortCdw10;
use nvme_spec::{AdminOpcode, IoOpcode, Status, SubmissionEntry};
use target::storage::backend::pattern;

use crate::BLOCK_BYTES;
use crate::server::{NQN, Place};

/// Commands of a batch.
pub const BATCH: usize = 8;
/// Maximum blocks of a command.
pub const BLOCKS_MAX: u32 = 16;
/// Time after which a host reacts to an incomplete command.
const PATIENCE: Duration = Duration::from_secs(2);
/// Interval at which a host on PCI Express looks for the device.
const LOOK_EVERY: Duration = Duration::from_millis(50);
const QUEUE: u16 = 1;
const ENTRIES: u16 = 32;

/// Command of a host.
#[derive(Clone, Copy, Debug)]
pub enum Work {
    Write { first: u64, count: u32, generation: u32, through: bool },
    Read { first: u64, count: u32 },
    Flush,
}

/// Result of a command, with the data of a read.
pub struct Done {
    pub status: Status,
    pub data: Vec<u8>,
}

/// Error of a drive that did not complete a command or is not reachable.
#[derive(Debug)]
pub struct Gone(String);

impl<E: std::error::Error> From<E> for Gone {
    fn from(error: E) -> Gone {
        Gone(error.to_string())
    }
}

impl std::fmt::Display for Gone {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(&self.0)
    }
}

pub enum Connection {
    Tcp(Box<Tcp>),
    Pcie(Box<Pcie>),
}

/// Queue for I/O, and the admin queue that holds the association.
pub struct Tcp {
    _controller: RemoteController,
    queue: TcpQueue,
}

impl Connection {
    pub fn open(place: &Place, number: usize) -> Result<Connection, Gone> {
        match place {
            Place::Tcp(address) => {
                let mut options = HostOptions::new(*address, NQN);
                options.host_nqn = format!("nqn.2026-01.io.warp:soak-host-{number}");
                options.host_id = [number as u8 + 1; 16];
                options.timeout = PATIENCE;
                let mut controller = RemoteController::connect(&options)?;
                controller.set_queue_count(1)?;
                let queue = controller.io_queue(QUEUE, ENTRIES)?;
                Ok(Connection::Tcp(Box::new(Tcp { _controller: controller, queue })))
            }
            Place::Pcie(socket) => Ok(Connection::Pcie(Box::new(Pcie::open(socket)?))),
        }
    }

    /// Runs commands in parallel.
    pub fn run(&mut self, batch: &[Work]) -> Result<Vec<Done>, Gone> {
        match self {
            Connection::Tcp(tcp) => over_tcp(&mut tcp.queue, batch),
            Connection::Pcie(pcie) => pcie.run(batch),
        }
    }
}

fn entry(work: Work) -> SubmissionEntry {
    match work {
        Work::Write { first, count, through, .. } => {
            let mut entry = block_command(IoOpcode::Write, 1, first, count);
            entry.cdw12 = (entry.cdw12.get() | u32::from(through) << 30).into();
            entry
        }
        Work::Read { first, count } => block_command(IoOpcode::Read, 1, first, count),
        Work::Flush => SubmissionEntry { opcode: IoOpcode::Flush.code(), nsid: 1.into(), ..SubmissionEntry::default() },
    }
}

/// Returns the pattern of a write, or a buffer for a read.
fn buffer(work: Work) -> Vec<u8> {
    match work {
        Work::Write { first, count, generation, .. } => {
            let mut data = vec![0; (u64::from(count) * BLOCK_BYTES) as usize];
            pattern::fill(first * BLOCK_BYTES, generation, &mut data);
            data
        }
        Work::Read { count, .. } => vec![0; (u64::from(count) * BLOCK_BYTES) as usize],
        Work::Flush => Vec::new(),
    }
}

fn over_tcp(queue: &mut TcpQueue, batch: &[Work]) -> Result<Vec<Done>, Gone> {
    let submit = |work: &Work| {
        let data = match work {
            Work::Write { .. } => CommandData::ToController(buffer(*work)),
            Work::Read { .. } => CommandData::ToHost(buffer(*work)),
            Work::Flush => CommandData::None,
        };
        queue.submit(entry(*work), data)
    };
    let cids: Vec<u16> = batch.iter().map(submit).collect();
    let mut done: Vec<Option<Done>> = batch.iter().map(|_| None).collect();
    for _ in batch {
        let completion = queue.wait()?;
        let index = cids.iter().position(|cid| *cid == completion.cid);
        done[index.expect("a command that was sent")] =
            Some(Done { status: completion.status(), data: completion.data });
    }
    Ok(done.into_iter().flatten().collect())
}

/// Driver with buffers for a batch.
pub struct Pcie {
    driver: NvmeDriver,
    /// Data, and the list of its pages from the second page on.
    buffers: Vec<(u64, u64)>,
}

impl Pcie {
    fn open(socket: &Path) -> Result<Pcie, Gone> {
        let options = DriverOptions { ram_bytes: 4 << 20, ..DriverOptions::default() };
        let mut driver = NvmeDriver::start(socket, options)?;
        driver.create_queues(QUEUE, ENTRIES, None)?;
        let bytes = u64::from(BLOCKS_MAX) * BLOCK_BYTES;
        let buffers = (0..BATCH)
            .map(|_| {
                let data = driver.allocate(bytes);
                let pages = (1..u64::from(BLOCKS_MAX)).flat_map(|page| (data + page * BLOCK_BYTES).to_le_bytes());
                let list = driver.allocate_with(&pages.collect::<Vec<u8>>());
                (data, list)
            })
            .collect();
        Ok(Pcie { driver, buffers })
    }

    fn run(&mut self, batch: &[Work]) -> Result<Vec<Done>, Gone> {
        let mut cids = Vec::new();
        for (work, &(data, list)) in batch.iter().zip(&self.buffers) {
            let mut entry = entry(*work);
            let bytes = buffer(*work);
            self.driver.write_ram(data, &bytes);
            match bytes.len() as u64 / BLOCK_BYTES {
                0 => {}
                1 => entry.set_prps(data, 0),
                2 => entry.set_prps(data, data + BLOCK_BYTES),
                _ => entry.set_prps(data, list),
            }
            cids.push(self.driver.submit(QUEUE, entry));
        }
        self.driver.ring(QUEUE)?;
        let mut statuses: Vec<Option<Status>> = batch.iter().map(|_| None).collect();
        while statuses.iter().any(Option::is_none) {
            let Some((cid, status)) = self.next_completion(PATIENCE)? else {
                // Like Linux, the host first aborts the command.
                let stuck = statuses.iter().position(Option::is_none).expect("one is left");
                self.abort(cids[stuck])?;
                continue;
            };
            let index = cids.iter().position(|known| *known == cid);
            statuses[index.expect("a command that was sent")] = Some(status);
        }
        let done = batch.iter().zip(statuses).zip(&self.buffers).map(|((work, status), &(address, _))| {
            let mut data = match work {
                Work::Read { .. } => buffer(*work),
                _ => Vec::new(),
            };
            self.driver.read_ram(address, &mut data);
            Done { status: status.expect("all are there"), data }
        });
        Ok(done.collect())
    }

    fn next_completion(&mut self, patience: Duration) -> Result<Option<(u16, Status)>, Gone> {
        let (begun, mut looked_at) = (Instant::now(), Instant::now());
        loop {
            if let Some(completion) = self.driver.take_completion(QUEUE) {
                self.driver.ring_head(QUEUE)?;
                return Ok(Some((completion.cid.get(), completion.status.status())));
            }
            if begun.elapsed() > patience {
                return Ok(None);
            }
            if looked_at.elapsed() > LOOK_EVERY {
                looked_at = Instant::now();
                let status = self.driver.status()?;
                if status.cfs() || !status.rdy() {
                    return Err(Gone("the controller is not ready".to_string()));
                }
            }
            std::thread::sleep(Duration::from_micros(20));
        }
    }

    fn abort(&mut self, cid: u16) -> Result<(), Gone> {
        let mut abort = admin_entry(AdminOpcode::Abort);
        abort.cdw10 = AbortCdw10::new().with_sqid(QUEUE).with_cid(cid).into_bits().into();
        let completion = self.driver.command(0, abort)?;
        assert_eq!(completion.status.status(), Status::SUCCESS, "an Abort succeeds whatever it finds");
        Ok(())
    }
}
