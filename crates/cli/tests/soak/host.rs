//! Host with its commands on its part of the drive, and the content that must be there.

use std::fmt::Write;
use std::time::Duration;

use nvme_spec::Status;
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use target::storage::backend::pattern;

use crate::connection::{BATCH, BLOCKS_MAX, Connection, Done, Gone, Work};
use crate::server::Supervisor;
use crate::{BLOCK_BYTES, CAPACITY_BYTES, Ending, HOSTS};

/// Blocks of each host.
const BLOCKS: u64 = CAPACITY_BYTES / BLOCK_BYTES / HOSTS as u64;
/// Blocks of each command of a batch, which must not overlap.
const LANE: u64 = BLOCKS / BATCH as u64;
/// Average number of batches between two flushes.
const BATCHES_PER_FLUSH: u32 = 8;
/// Number of retries of a failed read.
const READ_TRIES: usize = 200;

/// Generations that a block may have, oldest first. Generation 0 of the pattern is zeroes.
struct Block {
    /// Possible generations after a power loss: the flushed one, then those written since.
    after_loss: Vec<u32>,
    /// Possible generations without a power loss: the last successful write, then those that failed
    /// since.
    now: Vec<u32>,
}

/// Counts of a host's actions.
#[derive(Default)]
pub struct Tally {
    pub commands: u64,
    pub bytes_written: u64,
    pub flushes: u64,
    pub blocks_verified: u64,
    pub failures: u64,
    pub reconnects: u64,
}

pub struct Host {
    number: usize,
    random: Xoshiro256PlusPlus,
    blocks: Vec<Block>,
    generation: u32,
    /// Number of the server start after which all blocks were verified.
    seen: u64,
    pub done: Tally,
}

impl Host {
    pub fn new(number: usize, seed: u64) -> Host {
        let zero = || Block { after_loss: vec![0], now: vec![0] };
        Host {
            number,
            random: Xoshiro256PlusPlus::seed_from_u64(seed ^ (number as u64 + 1) << 32),
            blocks: (0..BLOCKS).map(|_| zero()).collect(),
            generation: 0,
            seen: 0,
            done: Tally::default(),
        }
    }

    /// Works until the time is over, then verifies all blocks.
    pub fn run(&mut self, supervisor: &Supervisor, ending: &Ending) {
        while !ending.has_come() {
            // A lost connection ends the visit.
            let _ = self.visit(supervisor, ending);
        }
        for _ in 0..100 {
            if supervisor.has_failed() {
                return;
            }
            if let Ok(mut connection) = self.connect(supervisor)
                && self.look(&mut connection, supervisor).is_ok()
            {
                return;
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        panic!("host {}: the drive did not come back at the end", self.number);
    }

    fn connect(&mut self, supervisor: &Supervisor) -> Result<Connection, Gone> {
        Connection::open(&supervisor.place(self.number), self.number)
    }

    fn visit(&mut self, supervisor: &Supervisor, ending: &Ending) -> Result<(), Gone> {
        let connected = self.connect(supervisor);
        let Ok(mut connection) = connected else {
            std::thread::sleep(Duration::from_millis(20));
            return connected.map(|_| ());
        };
        self.look(&mut connection, supervisor)?;
        self.done.reconnects += 1;
        while !ending.has_come() {
            let batch = self.next_batch();
            let result = connection.run(&batch);
            self.note(&batch, result.as_deref().ok());
            supervisor.commands.fetch_add(batch.len() as u64, std::sync::atomic::Ordering::Relaxed);
            result?;
        }
        Ok(())
    }

    fn next_batch(&mut self) -> Vec<Work> {
        if self.random.random_range(0..BATCHES_PER_FLUSH) == 0 {
            return vec![Work::Flush];
        }
        let base = self.number as u64 * BLOCKS;
        let mut command = |lane: u64| {
            let count = self.random.random_range(1..=BLOCKS_MAX);
            let first = base + lane * LANE + self.random.random_range(0..=LANE - u64::from(count));
            if self.random.random_range(0..3) == 0 {
                return Work::Read { first, count };
            }
            self.generation += 1;
            Work::Write { first, count, generation: self.generation, through: self.random.random_range(0..16) == 0 }
        };
        (0..BATCH as u64).map(&mut command).collect()
    }

    fn of(&mut self, first: u64, count: u32) -> &mut [Block] {
        let index = (first - self.number as u64 * BLOCKS) as usize;
        &mut self.blocks[index..index + count as usize]
    }

    /// Records the changes of a batch. `None` means that its result is unknown.
    fn note(&mut self, batch: &[Work], done: Option<&[Done]>) {
        for (index, work) in batch.iter().enumerate() {
            let done = done.map(|done| &done[index]);
            let succeeded = done.is_some_and(|done| done.status == Status::SUCCESS);
            self.done.commands += 1;
            self.done.failures += u64::from(done.is_some() && !succeeded);
            match *work {
                Work::Flush if succeeded => {
                    self.done.flushes += 1;
                    for block in &mut self.blocks {
                        block.after_loss.clone_from(&block.now);
                    }
                }
                Work::Flush => {}
                Work::Read { first, count } if succeeded => {
                    let data = &done.expect("it succeeded").data;
                    self.verify(first, count, data, |block| &block.now);
                }
                Work::Read { .. } => {}
                Work::Write { first, count, generation, through } => {
                    self.done.bytes_written += u64::from(count) * BLOCK_BYTES;
                    for block in self.of(first, count) {
                        block.after_loss.push(generation);
                        block.now.push(generation);
                        if succeeded {
                            block.now = vec![generation];
                        }
                        if succeeded && through {
                            block.after_loss = vec![generation];
                        }
                    }
                }
            }
        }
    }

    /// Checks that each block has one of its possible generations. Returns the generations.
    fn verify(&mut self, first: u64, count: u32, data: &[u8], allowed: impl Fn(&Block) -> &Vec<u32>) -> Vec<u32> {
        let number = self.number;
        self.done.blocks_verified += u64::from(count);
        let blocks = self.of(first, count).iter();
        let pieces = data.chunks_exact(BLOCK_BYTES as usize);
        let found = (first..).zip(blocks.zip(pieces)).map(|(lba, (block, piece))| {
            let found = pattern::verify(lba * BLOCK_BYTES, piece);
            let found = found.unwrap_or_else(|| panic!("host {number}, block {lba} is torn: {:x?}", &piece[..24]));
            let allowed = allowed(block);
            assert!(
                allowed.contains(&found),
                "host {number}, block {lba}: generation {found}; allowed {allowed:?}, flushed and written since {:?}",
                block.after_loss
            );
            found
        });
        found.collect()
    }

    /// Verifies all blocks after a lost connection. If the drive was restarted since, the content
    /// is durable.
    fn look(&mut self, connection: &mut Connection, supervisor: &Supervisor) -> Result<(), Gone> {
        // The number is read after connecting. An older server ends before a newer one starts.
        let start = supervisor.start();
        let base = self.number as u64 * BLOCKS;
        let mut found = Vec::new();
        let reads: Vec<Work> = (0..BLOCKS / u64::from(BLOCKS_MAX))
            .map(|piece| Work::Read { first: base + piece * u64::from(BLOCKS_MAX), count: BLOCKS_MAX })
            .collect();
        for batch in reads.chunks(BATCH) {
            for work in batch.iter().zip(read_whole(connection, batch)?) {
                let (&Work::Read { first, count }, data) = work else {
                    unreachable!("only reads are there");
                };
                found.extend(self.verify(first, count, &data, |block| &block.after_loss));
            }
        }
        for (block, found) in self.blocks.iter_mut().zip(found) {
            block.now = vec![found];
            if start != self.seen {
                block.after_loss = vec![found];
            }
        }
        self.seen = start;
        Ok(())
    }
}

/// Reads a batch and retries reads that fail because of a fault plan.
fn read_whole(connection: &mut Connection, batch: &[Work]) -> Result<Vec<Vec<u8>>, Gone> {
    let mut data: Vec<Option<Vec<u8>>> = batch.iter().map(|_| None).collect();
    for attempt in 0..READ_TRIES {
        let left: Vec<usize> = (0..batch.len()).filter(|&index| data[index].is_none()).collect();
        if left.is_empty() {
            break;
        }
        if attempt > 0 {
            std::thread::sleep(Duration::from_millis(10));
        }
        let works: Vec<Work> = left.iter().map(|&index| batch[index]).collect();
        for (index, done) in left.into_iter().zip(connection.run(&works)?) {
            data[index] = (done.status == Status::SUCCESS).then_some(done.data);
        }
    }
    let whole: Option<Vec<Vec<u8>>> = data.into_iter().collect();
    whole.ok_or_else(|| std::io::Error::other("reads go on failing").into())
}

/// Returns a table of the hosts' actions.
pub fn table(hosts: &[Host]) -> String {
    let mut table =
        "host  transport  commands   MiB written  flushes  blocks verified  failed  connected\n".to_string();
    for host in hosts {
        let done = &host.done;
        let _ = writeln!(
            table,
            "{:4}  {:9}  {:8}  {:12}  {:7}  {:15}  {:6}  {:9}",
            host.number,
            if host.number % 2 == 0 { "TCP" } else { "vfio-user" },
            done.commands,
            done.bytes_written >> 20,
            done.flushes,
            done.blocks_verified,
            done.failures,
            done.reconnects
        );
    }
    table
}
