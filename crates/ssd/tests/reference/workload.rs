//! Adversarial workloads. A case consists of a few phases, each with a pattern of addresses,
//! extents, placements and other commands. Between phases it has a few invalid commands, which must
//! change no state.

use ssd::{DeviceLayout, Lpn, Placement, RgId, RuhId, WriteRequest};

use super::{Entropy, Seeded};

/// A host command.
#[derive(Clone, Debug, PartialEq)]
pub enum Operation {
    Write(WriteRequest),
    Batch(Vec<WriteRequest>),
    Deallocate {
        first: u32,
        pages: u32,
    },
    Zeroes {
        write: WriteRequest,
        deallocate: bool,
    },
    Update(Placement),
    /// Replaces the device by a clone.
    Fork,
}

impl Operation {
    /// Pages that the host sends.
    fn host_pages(&self) -> u64 {
        match self {
            Operation::Write(write) => write.pages.into(),
            Operation::Zeroes { write, deallocate } if !deallocate => write.pages.into(),
            Operation::Batch(writes) => writes.iter().map(|write| u64::from(write.pages)).sum(),
            _ => 0,
        }
    }
}

/// Address pattern of a phase within its region.
#[derive(Clone, Copy, Debug)]
enum Addresses {
    Uniform,
    Sequential,
    /// Nine in ten to the first tenth.
    HotCold,
    /// Always the same page.
    Hammer,
    /// Steps of this many pages.
    Stride(u32),
    /// Descending addresses.
    Backwards,
}

/// Choice among several handles or groups.
#[derive(Clone, Copy, Debug)]
enum Choice {
    One(u16),
    InTurn,
    Any,
    /// The same part of the region always uses the same one.
    ByAddress,
}

/// A series of similar commands.
#[derive(Clone, Copy, Debug)]
struct Phase {
    first: u32,
    pages: u32,
    addresses: Addresses,
    extent_pages_max: u32,
    handles: Choice,
    groups: Choice,
    deallocate_percent: u64,
    zeroes_percent: u64,
    update_percent: u64,
    batch_percent: u64,
    pages_to_write: u64,
    seed: u64,
}

/// Commands for several phases, until the entropy or the budget of pages is used up.
pub fn operations(entropy: &mut impl Entropy, layout: &DeviceLayout, pages_budget: u64) -> Vec<Operation> {
    let mut operations = Vec::new();
    let mut budget = pages_budget;
    if entropy.percent(70) {
        let fill = fill(entropy, layout);
        budget = budget.saturating_sub(fill.pages_to_write);
        fill.run(layout, &mut operations);
    }
    while budget > 0 && !entropy.exhausted() {
        let before = operations.len();
        match entropy.below(10) {
            0 => checkerboard(entropy, layout, &mut operations),
            1 => moods(entropy, layout, &mut operations),
            _ => Phase::draw(entropy, layout, budget).run(layout, &mut operations),
        }
        let pages: u64 = operations[before..].iter().map(Operation::host_pages).sum();
        // Phases that only free pages still use up some budget.
        budget = budget.saturating_sub(pages.max(u64::from(layout.logical_pages) / 4 + 1));
        if entropy.percent(30) {
            operations.push(Operation::Fork);
        }
    }
    operations
}

/// Writes the whole capacity once, so that the next phases have only the spare of the device.
fn fill(entropy: &mut impl Entropy, layout: &DeviceLayout) -> Phase {
    Phase {
        first: 0,
        pages: layout.logical_pages,
        addresses: Addresses::Sequential,
        extent_pages_max: entropy.pick(&[1, 8, 64]),
        handles: choice(entropy, layout.handles.len() as u16),
        groups: choice(entropy, layout.groups),
        deallocate_percent: 0,
        zeroes_percent: 0,
        update_percent: 0,
        batch_percent: 0,
        pages_to_write: u64::from(layout.logical_pages),
        seed: entropy.below(1 << 16),
    }
}

/// A write of whole pages through one handle.
pub fn whole(layout: &DeviceLayout, first: u32, pages: u32, group: u16, handle: u16) -> Operation {
    Operation::Write(WriteRequest {
        first: Lpn(first),
        pages,
        host_bytes: u64::from(pages) * layout.page_bytes,
        placement: Placement { group: RgId(group), handle: RuhId(handle) },
    })
}

/// Fills the drive through one handle in parts of a reclaim unit's size. Deallocates every second
/// to fourth part and writes these through another handle, once or several times. This leaves
/// superblocks partly free without invalid pages.
fn checkerboard(entropy: &mut impl Entropy, layout: &DeviceLayout, operations: &mut Vec<Operation>) {
    let handles = layout.handles.len() as u64;
    let (before, after) = (entropy.below(handles) as u16, entropy.below(handles) as u16);
    let group = entropy.below(u64::from(layout.groups)) as u16;
    let class = entropy.below(layout.classes.len() as u64) as usize;
    let part = layout.classes[class].pages;
    let every = entropy.between(2, 4) as usize;
    let parts: Vec<(u32, u32)> = (0..layout.logical_pages)
        .step_by(part as usize)
        .map(|first| (first, part.min(layout.logical_pages - first)))
        .collect();
    for &(first, pages) in &parts {
        operations.push(whole(layout, first, pages, group, before));
    }
    for freed in 0..entropy.between(1, every as u64) as usize {
        for &(first, pages) in parts.iter().skip(freed).step_by(every) {
            operations.push(Operation::Deallocate { first, pages });
        }
        for &(first, pages) in parts.iter().skip(freed).step_by(every) {
            operations.push(whole(layout, first, pages, group, after));
        }
    }
}

/// Makes each handle noisy, lets it take a reclaim unit, and makes it quiet again. Handles with
/// adaptive sizes then leave parts of different owners in one superblock.
fn moods(entropy: &mut impl Entropy, layout: &DeviceLayout, operations: &mut Vec<Operation>) {
    let group = entropy.below(u64::from(layout.groups)) as u16;
    let unit = layout.superblock_pages.min(layout.logical_pages);
    let scattered = entropy.between(1, u64::from(unit)) as u32;
    for handle in 0..layout.handles.len() as u16 {
        let first = (u32::from(handle) * unit) % (layout.logical_pages - unit + 1);
        operations.push(whole(layout, first, unit, group, handle));
        let pages = scattered;
        operations.push(Operation::Deallocate { first, pages });
        operations.push(whole(layout, first, 1, group, handle));
        let Operation::Write(write) = whole(layout, first, 1, group, handle) else {
            continue;
        };
        operations.push(Operation::Update(write.placement));
        if unit > 1 {
            let (first, pages) = (first + 1, unit - 1);
            operations.push(Operation::Deallocate { first, pages });
        }
    }
}

fn choice(entropy: &mut impl Entropy, count: u16) -> Choice {
    match entropy.below(4) {
        0 => Choice::One(entropy.below(u64::from(count)) as u16),
        1 => Choice::InTurn,
        2 => Choice::Any,
        _ => Choice::ByAddress,
    }
}

impl Phase {
    fn draw(entropy: &mut impl Entropy, layout: &DeviceLayout, budget: u64) -> Phase {
        let capacity = layout.logical_pages;
        let first = if entropy.percent(60) { 0 } else { entropy.below(u64::from(capacity)) as u32 };
        let pages =
            if entropy.percent(60) { capacity - first } else { entropy.between(1, u64::from(capacity - first)) as u32 };
        let stride = entropy.pick(&[
            layout.program_unit_pages,
            layout.block_pages,
            layout.superblock_pages,
            layout.superblock_pages + 1,
            7,
        ]);
        Phase {
            first,
            pages,
            addresses: entropy.pick(&[
                Addresses::Uniform,
                Addresses::Uniform,
                Addresses::Sequential,
                Addresses::HotCold,
                Addresses::Hammer,
                Addresses::Stride(stride),
                Addresses::Backwards,
            ]),
            extent_pages_max: entropy.pick(&[1, 1, 1, 4, 17, 100, capacity]),
            handles: choice(entropy, layout.handles.len() as u16),
            groups: choice(entropy, layout.groups),
            deallocate_percent: entropy.pick(&[0, 0, 0, 2, 10, 50, 90]),
            zeroes_percent: entropy.pick(&[0, 0, 1, 10]),
            update_percent: entropy.pick(&[0, 0, 0, 1, 10, 100]),
            batch_percent: entropy.pick(&[0, 0, 5]),
            pages_to_write: budget
                .min(u64::from(capacity) * entropy.pick(&[1, 1, 2, 4]) / entropy.pick(&[1, 2, 16]))
                .max(1),
            seed: entropy.below(1 << 16),
        }
    }

    /// Appends the commands of the phase.
    fn run(&self, layout: &DeviceLayout, operations: &mut Vec<Operation>) {
        let mut random = Seeded::new(self.seed);
        let (mut written, mut commands) = (0, 0);
        // Deallocations write no pages, so the number of commands is limited as well.
        let commands_max = 2 * self.pages_to_write + 10;
        while written < self.pages_to_write && commands < commands_max {
            commands += 1;
            if random.below(1000) < 2 {
                operations.push(invalid(&mut random, layout));
            }
            let write = self.next_write(&mut random, layout, commands);
            if random.percent(self.deallocate_percent) {
                let WriteRequest { first, pages, .. } = write;
                operations.push(Operation::Deallocate { first: first.0, pages });
                continue;
            }
            written += u64::from(write.pages);
            let placement = write.placement;
            if random.percent(self.zeroes_percent) {
                let deallocate = random.percent(50);
                operations.push(Operation::Zeroes { write, deallocate });
            } else if random.percent(self.batch_percent) {
                let more = random.between(1, 70);
                let writes = (0..more).map(|_| self.next_write(&mut random, layout, commands));
                let writes: Vec<WriteRequest> = writes.chain([write]).collect();
                written += writes.iter().map(|write| u64::from(write.pages)).sum::<u64>();
                operations.push(Operation::Batch(writes));
            } else {
                operations.push(Operation::Write(write));
            }
            if random.percent(self.update_percent) {
                operations.push(Operation::Update(placement));
            }
        }
    }

    fn next_write(&self, random: &mut impl Entropy, layout: &DeviceLayout, count: u64) -> WriteRequest {
        let pages = u64::from(self.pages);
        let longest = u64::from(self.extent_pages_max);
        let offset = match self.addresses {
            Addresses::Uniform => random.below(pages),
            Addresses::Sequential => count * longest % pages,
            Addresses::HotCold if random.percent(90) => random.below(pages.div_ceil(10)),
            Addresses::HotCold => random.below(pages),
            Addresses::Hammer => 0,
            Addresses::Stride(step) => count * u64::from(step) % pages,
            Addresses::Backwards => pages - 1 - count * longest % pages,
        };
        let left = pages - offset;
        let extent = match self.addresses {
            Addresses::Sequential => longest.min(left),
            _ => random.between(1, longest.min(left)),
        };
        let first = self.first + offset as u32;
        let handle = self.handles.choose(random, layout.handles.len() as u16, first, count);
        let group = self.groups.choose(random, layout.groups, first / 3, count / 2);
        let whole = extent * layout.page_bytes;
        WriteRequest {
            first: Lpn(first),
            pages: extent as u32,
            host_bytes: if random.percent(80) { whole } else { whole - random.below(layout.page_bytes) },
            placement: Placement { group: RgId(group), handle: RuhId(handle) },
        }
    }
}

impl Choice {
    fn choose(self, random: &mut impl Entropy, count: u16, address: u32, command: u64) -> u16 {
        match self {
            Choice::One(index) => index,
            Choice::InTurn => (command % u64::from(count)) as u16,
            Choice::Any => random.below(u64::from(count)) as u16,
            Choice::ByAddress => (address / 5 % u32::from(count)) as u16,
        }
    }
}

/// A command that the device must reject without changing state.
fn invalid(random: &mut impl Entropy, layout: &DeviceLayout) -> Operation {
    let capacity = layout.logical_pages;
    let beyond = random.pick(&[capacity, u32::MAX]);
    let (first, pages) = random.pick(&[(0, 0), (beyond, 1), (0, capacity + 1), (capacity - 1, 2), (1, u32::MAX)]);
    let nowhere = WriteRequest { first: Lpn(first), pages, host_bytes: 1, placement: Placement::handle(0) };
    let placement = random.pick(&[
        Placement { group: RgId(layout.groups), handle: RuhId(0) },
        Placement::handle(layout.handles.len() as u16),
        Placement::handle(u16::MAX),
    ]);
    let misplaced = WriteRequest { first: Lpn(0), pages: 1, host_bytes: 1, placement };
    let fine = WriteRequest { placement: Placement::handle(0), ..misplaced };
    match random.below(7) {
        0 => Operation::Write(nowhere),
        1 => Operation::Write(misplaced),
        2 => Operation::Deallocate { first, pages },
        3 => Operation::Update(placement),
        4 => Operation::Batch(vec![fine, misplaced]),
        5 => Operation::Batch(Vec::new()),
        _ => Operation::Zeroes { write: misplaced, deallocate: true },
    }
}
