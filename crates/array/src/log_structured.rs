//! Log-structured layer above the stripes: writes only full stripes, and collects garbage itself.
//!
//! ```text
//! page write -> open stripe of its placement index (in memory) -> full: data and parity, one write
//! few free stripes -> stripe with the least valid data -> valid pages -> open stripe of the layer's
//!                     copies with the same placement index -> stripe deallocated and free
//! ```
//!
//! Pages of an open stripe are in memory that survives a power failure. A stripe thus has data of
//! one placement index, and its parity has the same lifetime.

use std::collections::BTreeMap;
use std::ops::Range;

use workload::PlacementIndex;

use crate::PAGE_BYTES;
use crate::geometry::ArrayGeometry;
use crate::member_io::{IoCause, IoList};
use crate::members::Members;

/// Page without a place, and place without a page.
const NONE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StripeState {
    Free,
    /// Takes pages, in memory.
    Open,
    Written,
}

/// A stripe of the layer.
#[derive(Clone, Copy, Debug)]
struct Stripe {
    state: StripeState,
    placement: Option<PlacementIndex>,
    valid_pages: u32,
    /// Index among the written stripes with as many valid pages.
    position: u32,
}

/// Kind of data of a stripe: its placement index, and whether the layer moved the data.
type StripeKind = (Option<PlacementIndex>, bool);

/// Log-structured layer. See the module.
#[derive(Clone, Debug)]
pub(crate) struct LogLayer {
    stripe_pages: u32,
    places: Vec<u32>,
    /// Page of the host at each place.
    pages: Vec<u32>,
    stripes: Vec<Stripe>,
    free: Vec<u32>,
    /// Written stripes by valid pages.
    by_valid: Vec<Vec<u32>>,
    /// Open stripes and their filled pages.
    open: BTreeMap<StripeKind, (u32, u32)>,
    /// Free stripes at which collection begins.
    reserve: usize,
}

impl LogLayer {
    /// Pages that the host sees.
    ///
    /// # Errors
    /// The spare stripes are too few for a workload with this many placement indices.
    pub(crate) fn host_pages(geometry: &ArrayGeometry, over_provisioning: f64, placements: u16) -> Result<u64, String> {
        let stripe_pages = u64::from(geometry.data) * geometry.chunk_pages();
        let pages = geometry.rows * stripe_pages;
        let host_pages = (pages as f64 / (1.0 + over_provisioning)) as u64;
        let spare = (pages - host_pages) / stripe_pages;
        let needed = 2 * LogLayer::kinds(placements) + 3;
        if spare < needed {
            return Err(format!(
                "over_provisioning = {over_provisioning} of the array leaves {spare} spare stripes, and {placements} \
                 placement indices need {needed}. Give more over_provisioning, a smaller chunk or larger drives"
            ));
        }
        Ok(host_pages)
    }

    /// Open stripes at most. Every placement index can have one, and another one for moved data.
    fn kinds(placements: u16) -> u64 {
        2 * (u64::from(placements) + 1)
    }

    /// Creates an empty layer for a workload with this many placement indices.
    ///
    /// # Errors
    /// The array is too large for the layer's map, or its spare stripes are too few.
    pub(crate) fn new(geometry: &ArrayGeometry, over_provisioning: f64, placements: u16) -> Result<LogLayer, String> {
        let host_pages = LogLayer::host_pages(geometry, over_provisioning, placements)?;
        let stripe_pages = u64::from(geometry.data) * geometry.chunk_pages();
        let pages = geometry.rows * stripe_pages;
        if pages >= u64::from(NONE) {
            return Err("a log-structured array has at most 16 TiB. Use smaller drives or a scaled model".to_string());
        }
        let stripe = Stripe { state: StripeState::Free, placement: None, valid_pages: 0, position: 0 };
        Ok(LogLayer {
            stripe_pages: stripe_pages as u32,
            places: vec![NONE; host_pages as usize],
            pages: vec![NONE; pages as usize],
            stripes: vec![stripe; geometry.rows as usize],
            // The last one is taken first.
            free: (0..geometry.rows as u32).rev().collect(),
            by_valid: vec![Vec::new(); stripe_pages as usize + 1],
            open: BTreeMap::new(),
            reserve: LogLayer::kinds(placements) as usize + 2,
        })
    }

    pub(crate) fn capacity_bytes(&self) -> u64 {
        self.places.len() as u64 * PAGE_BYTES
    }

    /// Pages of the host that wait in open stripes.
    pub(crate) fn buffered_pages(&self) -> u64 {
        self.open.values().map(|(_, filled)| u64::from(*filled)).sum()
    }

    /// Adds the I/O of a write. A page that is written partly is read first.
    pub(crate) fn write(
        &mut self,
        members: &mut Members,
        list: &mut IoList<'_>,
        bytes: Range<u64>,
        placement: Option<PlacementIndex>,
    ) {
        for page in bytes.start / PAGE_BYTES..bytes.end.div_ceil(PAGE_BYTES) {
            let is_whole = bytes.start <= page * PAGE_BYTES && (page + 1) * PAGE_BYTES <= bytes.end;
            if !is_whole {
                self.read_page(members, list, page, &(0..PAGE_BYTES), IoCause::ReadModifyWrite);
            }
            self.invalidate(members, list, page);
            self.append(members, list, page as u32, (placement, false));
        }
    }

    /// Adds the I/O of a read. Pages in memory and unwritten pages need none.
    pub(crate) fn read(&self, members: &mut Members, list: &mut IoList<'_>, bytes: Range<u64>) {
        for page in bytes.start / PAGE_BYTES..bytes.end.div_ceil(PAGE_BYTES) {
            let start = page * PAGE_BYTES;
            let within = bytes.start.max(start) - start..bytes.end.min(start + PAGE_BYTES) - start;
            self.read_page(members, list, page, &within, IoCause::Data);
        }
    }

    /// Adds the I/O of a deallocation of whole pages.
    pub(crate) fn trim(&mut self, members: &mut Members, list: &mut IoList<'_>, bytes: Range<u64>) {
        for page in bytes.start.div_ceil(PAGE_BYTES)..bytes.end / PAGE_BYTES {
            self.invalidate(members, list, page);
        }
    }

    fn read_page(&self, members: &mut Members, list: &mut IoList<'_>, page: u64, within: &Range<u64>, cause: IoCause) {
        let place = self.places[page as usize];
        if place == NONE || self.stripes[(place / self.stripe_pages) as usize].state == StripeState::Open {
            return;
        }
        let chunk_pages = members.geometry.chunk_pages() as u32;
        let in_stripe = place % self.stripe_pages;
        let start = u64::from(in_stripe % chunk_pages) * PAGE_BYTES;
        let bytes = start + within.start..start + within.end;
        let row = u64::from(place / self.stripe_pages);
        members.read(list, (row, (in_stripe / chunk_pages) as u16, &bytes), cause);
    }

    /// Removes a page of the host from its place. Frees a written stripe without valid data.
    fn invalidate(&mut self, members: &mut Members, list: &mut IoList<'_>, page: u64) {
        let place = std::mem::replace(&mut self.places[page as usize], NONE);
        if place == NONE {
            return;
        }
        self.pages[place as usize] = NONE;
        let row = place / self.stripe_pages;
        let is_written = self.stripes[row as usize].state == StripeState::Written;
        if is_written {
            self.unlist(row);
        }
        self.stripes[row as usize].valid_pages -= 1;
        if is_written {
            match self.stripes[row as usize].valid_pages {
                0 => self.release(members, list, row),
                _ => self.list(row),
            }
        }
    }

    /// Adds a written stripe to those with as many valid pages.
    fn list(&mut self, row: u32) {
        let stripe = &mut self.stripes[row as usize];
        let bucket = &mut self.by_valid[stripe.valid_pages as usize];
        stripe.position = bucket.len() as u32;
        bucket.push(row);
    }

    fn unlist(&mut self, row: u32) {
        let Stripe { valid_pages, position, .. } = self.stripes[row as usize];
        let bucket = &mut self.by_valid[valid_pages as usize];
        assert_eq!(bucket[position as usize], row, "a written stripe is listed once");
        bucket.swap_remove(position as usize);
        if let Some(moved) = bucket.get(position as usize) {
            self.stripes[*moved as usize].position = position;
        }
    }

    /// Deallocates and frees a stripe without valid data.
    fn release(&mut self, members: &mut Members, list: &mut IoList<'_>, row: u32) {
        assert_eq!(self.stripes[row as usize].valid_pages, 0, "stripe {row} is freed with valid data");
        self.stripes[row as usize].state = StripeState::Free;
        self.free.push(row);
        members.trim_row(list, row.into(), IoCause::Relocation);
    }

    /// Adds a page to the open stripe of its kind. Writes the stripe if it is full.
    fn append(&mut self, members: &mut Members, list: &mut IoList<'_>, page: u32, kind: StripeKind) {
        let (row, filled) = match self.open.get(&kind) {
            Some(open) => *open,
            None => (self.open_stripe(members, list, kind), 0),
        };
        let place = row * self.stripe_pages + filled;
        self.places[page as usize] = place;
        self.pages[place as usize] = page;
        self.stripes[row as usize].valid_pages += 1;
        if filled + 1 < self.stripe_pages {
            self.open.insert(kind, (row, filled + 1));
            return;
        }
        self.open.remove(&kind);
        let chunk = 0..members.geometry.chunk_bytes;
        let data = members.geometry.data;
        for column in 0..data + members.geometry.parity {
            let cause = match kind.1 {
                _ if column >= data => IoCause::Parity,
                true => IoCause::Relocation,
                false => IoCause::Data,
            };
            members.write(list, (row.into(), column, &chunk), (cause, 1), kind.0);
        }
        self.stripes[row as usize].state = StripeState::Written;
        match self.stripes[row as usize].valid_pages {
            0 => self.release(members, list, row),
            _ => self.list(row),
        }
    }

    /// Takes a free stripe. For the host's data, first collects garbage if few are left.
    fn open_stripe(&mut self, members: &mut Members, list: &mut IoList<'_>, kind: StripeKind) -> u32 {
        while !kind.1 && self.free.len() <= self.reserve {
            self.collect(members, list);
        }
        let row = self.free.pop().expect("moved data takes fewer stripes than the reserve");
        let stripe = &mut self.stripes[row as usize];
        assert_eq!(stripe.state, StripeState::Free, "stripe {row} is opened once");
        (stripe.state, stripe.placement) = (StripeState::Open, kind.0);
        row
    }

    /// Moves the valid pages of the stripe with the fewest.
    fn collect(&mut self, members: &mut Members, list: &mut IoList<'_>) {
        let least = self.by_valid[..self.stripe_pages as usize].iter().position(|rows| !rows.is_empty());
        let victim = self.by_valid[least.expect("spare stripes hold garbage")][0];
        self.unlist(victim);
        let first = victim * self.stripe_pages;
        let valid: Vec<u32> = (first..first + self.stripe_pages)
            .map(|place| self.pages[place as usize])
            .filter(|page| *page != NONE)
            .collect();
        for page in &valid {
            self.read_page(members, list, (*page).into(), &(0..PAGE_BYTES), IoCause::Relocation);
        }
        for page in valid {
            let place = std::mem::replace(&mut self.places[page as usize], NONE);
            self.pages[place as usize] = NONE;
            self.stripes[victim as usize].valid_pages -= 1;
            self.append(members, list, page, (self.stripes[victim as usize].placement, true));
        }
        self.release(members, list, victim);
    }
}

#[cfg(test)]
mod tests {
    use rand::{RngExt, SeedableRng};
    use rand_xoshiro::Xoshiro256PlusPlus;
    use workload::RequestOperation;

    use super::*;
    use crate::member_io::MemberIo;
    use crate::settings::{ArrayLevel, ArraySettings, WritePolicy};

    const CHUNK: u64 = 4 * PAGE_BYTES;
    const ROWS: u64 = 100;

    fn array(placements: u16) -> (Members, LogLayer) {
        let mut settings = ArraySettings::new(ArrayLevel::Raid5, 4);
        (settings.chunk, settings.write_policy) = (CHUNK, WritePolicy::FullStripe);
        let geometry = ArrayGeometry::new(&settings, ROWS * CHUNK);
        let log = LogLayer::new(&geometry, 0.25, placements).expect("it is possible");
        (Members::new(geometry, None, false), log)
    }

    /// Checks that pages and places refer to each other, and that counts and lists agree.
    fn check(log: &LogLayer) {
        for (page, place) in log.places.iter().enumerate().filter(|(_, place)| **place != NONE) {
            assert_eq!(log.pages[*place as usize] as usize, page);
        }
        let placed = log.pages.iter().filter(|page| **page != NONE).count();
        assert_eq!(placed, log.places.iter().filter(|place| **place != NONE).count());
        for (row, stripe) in log.stripes.iter().enumerate() {
            let first = row * log.stripe_pages as usize;
            let pages = &log.pages[first..first + log.stripe_pages as usize];
            assert_eq!(stripe.valid_pages as usize, pages.iter().filter(|page| **page != NONE).count());
            let listed = log.by_valid.iter().flatten().filter(|listed| **listed as usize == row).count();
            let free = log.free.iter().filter(|free| **free as usize == row).count();
            let open = log.open.values().filter(|(open, _)| *open as usize == row).count();
            let expected = match stripe.state {
                StripeState::Free => (0, 1, 0),
                StripeState::Open => (0, 0, 1),
                StripeState::Written => (1, 0, 0),
            };
            assert_eq!((listed, free, open), expected, "stripe {row} is {stripe:?}");
        }
    }

    /// Bytes of the reads that move data from a place, among these I/O.
    fn is_read(members: &Members, log: &LogLayer, ios: &[MemberIo], place: u32) -> bool {
        let chunk_pages = members.geometry.chunk_pages();
        let (row, within) = (u64::from(place / log.stripe_pages), u64::from(place % log.stripe_pages));
        let drive = members.geometry.drive(row, (within / chunk_pages) as u16, 0);
        let offset = row * CHUNK + within % chunk_pages * PAGE_BYTES;
        let covers = |io: &&MemberIo| {
            (io.drive, io.operation, io.cause) == (drive, RequestOperation::Read, IoCause::Relocation)
                && io.offset_bytes <= offset
                && offset + PAGE_BYTES <= io.offset_bytes + io.bytes
        };
        ios.iter().any(|io| covers(&io))
    }

    #[test]
    fn moved_pages_were_read_and_stripes_are_written_whole() {
        let (mut members, mut log) = array(2);
        let mut random = Xoshiro256PlusPlus::seed_from_u64(1);
        let pages = log.places.len() as u64;
        let (mut host, mut data, mut parity, mut moved, mut relocated) = (0, 0, 0, 0, 0);
        for _ in 0..20_000 {
            let (before, open) = (log.places.clone(), log.open.clone());
            let mut ios = Vec::new();
            let mut list = IoList::new(&mut ios);
            let start = random.random_range(0..pages);
            let end = (start + random.random_range(1..4)).min(pages);
            let bytes = start * PAGE_BYTES..end * PAGE_BYTES;
            if random.random_range(0..10) == 0 {
                log.trim(&mut members, &mut list, bytes);
            } else {
                let placement = Some(PlacementIndex(random.random_range(0..2)));
                log.write(&mut members, &mut list, bytes, placement);
                host += end - start;
            }
            for (page, (old, new)) in before.iter().zip(&log.places).enumerate() {
                if old != new && *old != NONE && !(start..end).contains(&(page as u64)) {
                    let was_open = open.values().any(|(row, _)| *row == old / log.stripe_pages);
                    assert!(was_open || is_read(&members, &log, &ios, *old), "page {page} moves unread");
                    relocated += 1;
                }
            }
            for io in ios.iter().filter(|io| io.operation == RequestOperation::Write) {
                assert!(io.bytes.is_multiple_of(CHUNK) && io.offset_bytes.is_multiple_of(CHUNK), "{io:?}");
                match io.cause {
                    IoCause::Data => data += io.bytes / PAGE_BYTES,
                    IoCause::Relocation => moved += io.bytes / PAGE_BYTES,
                    IoCause::Parity => parity += io.bytes / PAGE_BYTES,
                    other => panic!("the layer has no {other:?}"),
                }
            }
        }
        check(&log);
        assert!(relocated > 1000, "garbage was collected");
        // Each page is in a written stripe or in an open one.
        let buffered = |moves: bool| -> u64 {
            log.open.iter().filter(|(kind, _)| kind.1 == moves).map(|(_, (_, filled))| u64::from(*filled)).sum()
        };
        assert_eq!(host, data + buffered(false));
        assert_eq!((data + moved) / 3, parity);
        assert!(moved >= relocated - u64::from(log.stripe_pages) && moved > 0, "{moved} {relocated}");
    }

    #[test]
    fn a_partial_page_is_read_first_and_memory_needs_no_io() {
        let (mut members, mut log) = array(1);
        let mut ios = Vec::new();
        log.write(&mut members, &mut IoList::new(&mut ios), 0..12 * PAGE_BYTES, None);
        assert_eq!(ios.iter().map(|io| io.bytes).sum::<u64>(), 16 * PAGE_BYTES, "a stripe of 12 pages and parity");
        ios.clear();
        log.write(&mut members, &mut IoList::new(&mut ios), 512..1024, None);
        let reads: Vec<(RequestOperation, IoCause, u64)> =
            ios.iter().map(|io| (io.operation, io.cause, io.bytes)).collect();
        assert_eq!(reads, [(RequestOperation::Read, IoCause::ReadModifyWrite, PAGE_BYTES)]);
        ios.clear();
        log.read(&mut members, &mut IoList::new(&mut ios), 0..PAGE_BYTES);
        assert!(ios.is_empty(), "page 0 is in memory");
        log.read(&mut members, &mut IoList::new(&mut ios), PAGE_BYTES..2 * PAGE_BYTES);
        assert_eq!((ios.len(), log.buffered_pages()), (1, 1));
    }

    #[test]
    fn too_few_spare_stripes_are_refused() {
        let (members, _) = array(1);
        let problem = LogLayer::new(&members.geometry, 0.25, 8).expect_err("8 indices need 39 stripes");
        assert!(problem.contains("leaves 20 spare stripes") && problem.contains("need 39"), "{problem}");
    }
}
