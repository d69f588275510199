//! Arrays against a reference model: every page of every drive is kept in memory, and each member
//! I/O is carried out on it.
//!
//! A data page holds the version of the host's write. A parity page holds the versions of all data
//! pages that it covers, which is the knowledge of a code that decodes from any k pages. The model
//! has its own layout, after the formulas of Linux md. It fails if a parity is written from pages
//! that nobody read, if a read returns an old version, or if a failed drive is used.

use std::collections::BTreeMap;

use array::{Array, ArrayLevel, ArraySettings, IoCause, MemberIo, ParityRotation, ResyncExtent, WritePolicy};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use workload::{IoRequest, PlacementIndex, RequestOperation};

const PAGE: u64 = 4096;
const CHUNK_PAGES: u64 = 4;
const ROWS: u64 = 12;

#[derive(Clone, Debug, PartialEq)]
enum Block {
    Data(u64),
    /// Versions of the data pages of the row.
    Parity(Vec<u64>),
}

struct Model {
    array: Array,
    drives: u64,
    data: u64,
    parity: u64,
    copies: u64,
    rotation: ParityRotation,
    failed: Option<u64>,
    blocks: Vec<BTreeMap<u64, Block>>,
    /// Version of each page of the host. 0: never written, or deallocated.
    truth: Vec<u64>,
    version: u64,
}

impl Model {
    fn new(settings: &ArraySettings, (data, parity, copies): (u64, u64, u64)) -> Model {
        let array = Array::new(settings, ROWS * CHUNK_PAGES * PAGE, 1).expect("it is possible");
        let pages = array.capacity_bytes() / PAGE;
        assert_eq!(pages, ROWS * data * CHUNK_PAGES, "capacity is that of the data chunks");
        let drives = u64::from(settings.drives);
        let blocks = vec![BTreeMap::new(); drives as usize];
        let truth = vec![0; pages as usize];
        let rotation = settings.parity_rotation;
        Model { array, drives, data, parity, copies, rotation, failed: None, blocks, truth, version: 0 }
    }

    /// Row and column of a page of the host, and the page of each of its drives.
    fn place(&self, page: u64) -> (u64, u64, u64) {
        let (chunk, within) = (page / CHUNK_PAGES, page % CHUNK_PAGES);
        let (row, column) = (chunk / self.data, chunk % self.data);
        (row, column, row * CHUNK_PAGES + within)
    }

    /// Column of a drive in a row: `pd_idx = n - 1 - stripe % n` for RAID-5 and RAID-6 of md.
    fn column(&self, row: u64, drive: u64) -> u64 {
        if self.parity == 0 {
            return drive / self.copies;
        }
        if self.rotation == ParityRotation::Dedicated {
            return drive;
        }
        let pd_idx = self.drives - 1 - row % self.drives;
        match (drive + self.drives - pd_idx) % self.drives {
            after if after < self.parity => self.data + after,
            after => after - self.parity,
        }
    }

    fn block(&self, drive: u64, page: u64) -> Block {
        let empty = match self.column(page / CHUNK_PAGES, drive) >= self.data {
            true => Block::Parity(vec![0; self.data as usize]),
            false => Block::Data(0),
        };
        self.blocks[drive as usize].get(&page).cloned().unwrap_or(empty)
    }

    /// Carries out the reads of a list. Returns the blocks by drive page and column.
    fn read(&self, ios: &[MemberIo], operation: RequestOperation) -> BTreeMap<(u64, u64), Block> {
        let mut blocks = BTreeMap::new();
        for io in ios.iter().filter(|io| io.operation == operation) {
            assert_ne!(Some(u64::from(io.drive)), self.failed, "a failed drive is used: {io:?}");
            for page in io.offset_bytes / PAGE..(io.offset_bytes + io.bytes).div_ceil(PAGE) {
                let drive = u64::from(io.drive);
                blocks.insert((page, self.column(page / CHUNK_PAGES, drive)), self.block(drive, page));
            }
        }
        blocks
    }

    /// Versions of the data pages of a row, as far as these blocks of it tell.
    fn known(&self, blocks: &BTreeMap<(u64, u64), Block>, page: u64) -> Vec<Option<u64>> {
        let of_row: Vec<_> = blocks.iter().filter(|((other, _), _)| *other == page).collect();
        let mut known = vec![None; self.data as usize];
        for ((_, column), block) in &of_row {
            match block {
                Block::Data(version) => known[*column as usize] = Some(*version),
                Block::Parity(versions) => assert!(versions.len() == known.len()),
            }
        }
        for (_, block) in &of_row {
            let Block::Parity(versions) = block else { continue };
            for (known, covered) in known.iter_mut().zip(versions) {
                assert!(known.is_none_or(|version| version == *covered), "parity of page {page} is stale");
                if of_row.len() as u64 >= self.data {
                    *known = Some(*covered);
                }
            }
        }
        known
    }

    fn translate(&mut self, operation: RequestOperation, offset_bytes: u64, bytes: u64) -> Vec<MemberIo> {
        let placement = (operation == RequestOperation::Write).then_some(PlacementIndex(0));
        let request = IoRequest { stream: 0, operation, offset_bytes, bytes: bytes as u32, placement };
        let mut ios = Vec::new();
        self.array.translate(&request, &mut ios);
        ios
    }

    fn write(&mut self, offset_bytes: u64, bytes: u64) -> Vec<MemberIo> {
        let ios = self.translate(RequestOperation::Write, offset_bytes, bytes);
        let reads = self.read(&ios, RequestOperation::Read);
        self.version += 1;
        let pages = offset_bytes / PAGE..(offset_bytes + bytes).div_ceil(PAGE);
        let is_whole = |page: u64| offset_bytes <= page * PAGE && (page + 1) * PAGE <= offset_bytes + bytes;
        // What the array knows of each row page after its reads and with the host's data.
        let mut rows: BTreeMap<u64, Vec<(u64, u64)>> = BTreeMap::new();
        for page in pages.clone() {
            let (_, column, drive_page) = self.place(page);
            rows.entry(drive_page).or_default().push((column, page));
        }
        let mut parities: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
        for (drive_page, touched) in &rows {
            let mut known = self.known(&reads, *drive_page);
            let old_parity = reads.iter().find_map(|((page, _), block)| match block {
                Block::Parity(versions) if page == drive_page => Some(versions.clone()),
                _ => None,
            });
            let is_parity_alive = (0..self.drives)
                .any(|drive| Some(drive) != self.failed && self.column(drive_page / CHUNK_PAGES, drive) >= self.data);
            if self.parity == 0 || !is_parity_alive {
                continue;
            }
            let is_delta = touched.iter().all(|(column, _)| known[*column as usize].is_some());
            for (column, page) in touched {
                assert!(
                    is_whole(*page) || known[*column as usize].is_some(),
                    "page {page} is written partly and not read"
                );
                known[*column as usize] = Some(self.version);
            }
            let whole: Option<Vec<u64>> = known.iter().copied().collect();
            let delta = old_parity.filter(|_| is_delta).map(|mut versions| {
                touched.iter().for_each(|(column, _)| versions[*column as usize] = self.version);
                versions
            });
            let parity = whole.or(delta).expect("the new parity follows from what was read");
            parities.insert(*drive_page, parity);
        }
        for io in ios.iter().filter(|io| io.operation == RequestOperation::Write) {
            assert_ne!(Some(u64::from(io.drive)), self.failed, "a failed drive is written: {io:?}");
            for page in io.offset_bytes / PAGE..(io.offset_bytes + io.bytes).div_ceil(PAGE) {
                let column = self.column(page / CHUNK_PAGES, io.drive.into());
                let block = match io.cause {
                    IoCause::Data | IoCause::Mirror => Block::Data(self.version),
                    IoCause::Parity => Block::Parity(parities[&page].clone()),
                    other => panic!("a write of the host has no {other:?}"),
                };
                assert_eq!(column >= self.data, io.cause == IoCause::Parity, "{io:?}");
                if column < self.data {
                    assert!(rows[&page].iter().any(|(touched, _)| *touched == column), "{io:?} was not asked for");
                }
                self.blocks[usize::from(io.drive)].insert(page, block);
            }
        }
        for page in pages {
            self.truth[page as usize] = self.version;
        }
        ios
    }

    fn check_read(&mut self, offset_bytes: u64, bytes: u64) {
        let ios = self.translate(RequestOperation::Read, offset_bytes, bytes);
        let blocks = self.read(&ios, RequestOperation::Read);
        for page in offset_bytes / PAGE..(offset_bytes + bytes).div_ceil(PAGE) {
            let (_, column, drive_page) = self.place(page);
            let version = self.known(&blocks, drive_page)[column as usize];
            assert_eq!(version, Some(self.truth[page as usize]), "page {page} is read");
        }
    }

    fn trim(&mut self, offset_bytes: u64, bytes: u64) {
        let ios = self.translate(RequestOperation::Trim, offset_bytes, bytes);
        assert!(ios.iter().all(|io| io.operation == RequestOperation::Trim));
        for io in &ios {
            for page in io.offset_bytes.div_ceil(PAGE)..(io.offset_bytes + io.bytes) / PAGE {
                self.blocks[usize::from(io.drive)].remove(&page);
            }
        }
        let unit = if self.parity == 0 { PAGE } else { self.data * CHUNK_PAGES * PAGE };
        let units = offset_bytes.div_ceil(unit)..(offset_bytes + bytes) / unit;
        if !units.is_empty() {
            self.truth[(units.start * unit / PAGE) as usize..(units.end * unit / PAGE) as usize].fill(0);
        }
    }

    fn fail(&mut self, drive: u64) {
        self.array.fail(drive as u16);
        self.blocks[drive as usize].clear();
        self.failed = Some(drive);
    }

    /// Rebuilds the failed drive and checks every page of it. Returns the bytes written.
    fn rebuild(&mut self) -> u64 {
        let drive = self.failed.expect("a drive has failed");
        self.array.begin_rebuild(drive as u16);
        let mut written = 0;
        for row in 0..ROWS {
            let mut ios = Vec::new();
            self.array.rebuild_row(drive as u16, row, &mut ios);
            let reads = self.read(&ios, RequestOperation::Read);
            for io in ios.iter().filter(|io| io.operation == RequestOperation::Write) {
                assert_eq!((u64::from(io.drive), io.cause, io.phase), (drive, IoCause::Rebuild, 1));
                written += io.bytes;
                for page in io.offset_bytes / PAGE..(io.offset_bytes + io.bytes) / PAGE {
                    let known = self.known(&reads, page);
                    let column = self.column(row, drive);
                    let block = match column >= self.data {
                        true => Block::Parity(known.into_iter().map(|one| one.expect("it was read")).collect()),
                        false => Block::Data(known[column as usize].expect("it was read")),
                    };
                    self.blocks[drive as usize].insert(page, block);
                }
            }
        }
        assert!(self.array.is_whole());
        self.failed = None;
        written
    }

    /// Bytes of a drive's pages that hold data: written ones, and parity over any.
    fn live_bytes(&self, drive: u64) -> u64 {
        let pages = (0..ROWS * CHUNK_PAGES).filter(|page| {
            let row = page / CHUNK_PAGES;
            let column = self.column(row, drive);
            let page_of = |column: u64| (row * self.data + column) * CHUNK_PAGES + page % CHUNK_PAGES;
            match column >= self.data {
                true => (0..self.data).any(|column| self.truth[page_of(column) as usize] > 0),
                false => self.truth[page_of(column) as usize] > 0,
            }
        });
        pages.count() as u64 * PAGE
    }
}

fn settings(level: &str, drives: u16) -> ArraySettings {
    let level = ArrayLevel::try_from(level.to_string()).expect("a level");
    ArraySettings { chunk: CHUNK_PAGES * PAGE, ..ArraySettings::new(level, drives) }
}

/// Adds an event, so that the array knows its live pages.
fn with_events(mut settings: ArraySettings) -> ArraySettings {
    settings.events = vec!["scrub at 1".to_string().try_into().expect("an event")];
    settings
}

type Shape = (u64, u64, u64);

fn redundant_arrays() -> Vec<(ArraySettings, Shape)> {
    let mut arrays = vec![(settings("raid1", 3), (1, 0, 3)), (settings("raid10", 6), (3, 0, 2))];
    for policy in [WritePolicy::ReadModifyWrite, WritePolicy::Reconstruct, WritePolicy::Cheaper] {
        for rotation in [ParityRotation::LeftSymmetric, ParityRotation::Dedicated] {
            for (level, drives, shape) in [("raid5", 4, (3, 1, 1)), ("raid6", 6, (4, 2, 1)), ("ec(5+3)", 8, (5, 3, 1))]
            {
                let array =
                    ArraySettings { write_policy: policy, parity_rotation: rotation, ..settings(level, drives) };
                arrays.push((array, shape));
            }
        }
    }
    arrays.into_iter().map(|(array, shape)| (with_events(array), shape)).collect()
}

/// Random requests, aligned to pages or to 512 bytes.
fn work(model: &mut Model, random: &mut Xoshiro256PlusPlus, requests: u32) {
    let capacity = model.array.capacity_bytes();
    for _ in 0..requests {
        let unit = if random.random_range(0..3) == 0 { 512 } else { PAGE };
        let most = if random.random_range(0..4) == 0 { 40 } else { 6 };
        let bytes = random.random_range(1..=most * PAGE / unit) * unit;
        let offset = random.random_range(0..=(capacity - bytes) / unit) * unit;
        match random.random_range(0..10) {
            0..5 => drop(model.write(offset, bytes)),
            5..9 => model.check_read(offset, bytes),
            _ => model.trim(offset, bytes),
        }
    }
}

#[test]
fn what_is_read_equals_what_was_written_also_without_a_drive_and_after_its_rebuild() {
    let mut partly_live = 0;
    for (number, (settings, shape)) in redundant_arrays().into_iter().enumerate() {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(number as u64);
        let mut model = Model::new(&settings, shape);
        work(&mut model, &mut random, 300);
        for _ in 0..3 {
            let drive = random.random_range(0..model.drives);
            model.fail(drive);
            work(&mut model, &mut random, 300);
            let live = model.live_bytes(drive);
            partly_live += u32::from(live > 0 && live < ROWS * CHUNK_PAGES * PAGE);
            assert_eq!(model.rebuild(), live, "a rebuild writes exactly the live data of {settings:?}");
            work(&mut model, &mut random, 100);
        }
    }
    assert!(partly_live > 20, "only {partly_live} drives had live and other pages");
}

#[test]
fn a_rebuild_of_the_whole_drive_writes_its_capacity() {
    let array = ArraySettings { resync: ResyncExtent::All, ..settings("raid5", 4) };
    let mut model = Model::new(&array, (3, 1, 1));
    model.write(0, PAGE);
    model.fail(2);
    assert_eq!(model.rebuild(), ROWS * CHUNK_PAGES * PAGE);
}

/// Reads and writes of a request, as a block device counts them.
fn counts(ios: &[MemberIo]) -> (usize, usize) {
    let of = |operation| ios.iter().filter(|io| io.operation == operation).count();
    (of(RequestOperation::Read), of(RequestOperation::Write))
}

#[test]
fn a_small_write_costs_four_ios_of_which_two_are_writes() {
    let mut model = Model::new(&settings("raid5", 4), (3, 1, 1));
    // Of four drives reconstruction reads two pages as well, and is preferred as by md.
    for page in [0, 5, 17, 100] {
        let ios = model.write(page * PAGE, PAGE);
        assert_eq!(counts(&ios), (2, 2));
        assert!(ios.iter().all(|io| io.bytes == PAGE), "each is as large as the request");
    }
    for (drives, policy, expected) in [
        (8, WritePolicy::Cheaper, (2, 2)),
        (8, WritePolicy::ReadModifyWrite, (2, 2)),
        (8, WritePolicy::Reconstruct, (6, 2)),
        (3, WritePolicy::Cheaper, (1, 2)),
        (3, WritePolicy::ReadModifyWrite, (2, 2)),
    ] {
        let array = ArraySettings { write_policy: policy, ..settings("raid5", drives) };
        let mut model = Model::new(&array, (u64::from(drives) - 1, 1, 1));
        assert_eq!(counts(&model.write(0, PAGE)), expected, "{drives} drives, {policy:?}");
    }
    let mut raid6 = Model::new(&settings("raid6", 8), (6, 2, 1));
    assert_eq!(counts(&raid6.write(0, PAGE)), (3, 3), "two parities are read and written");
}

#[test]
fn a_full_stripe_needs_no_read_and_costs_n_by_n_minus_1() {
    for policy in [WritePolicy::ReadModifyWrite, WritePolicy::Reconstruct, WritePolicy::Cheaper] {
        for drives in [3, 4, 8] {
            let array = ArraySettings { write_policy: policy, ..settings("raid5", drives) };
            let mut model = Model::new(&array, (u64::from(drives) - 1, 1, 1));
            let bytes = u64::from(drives - 1) * CHUNK_PAGES * PAGE;
            let ios = model.write(bytes, bytes);
            let written: u64 = ios.iter().map(|io| io.bytes).sum();
            assert_eq!(counts(&ios), (0, usize::from(drives)));
            assert_eq!(written * u64::from(drives - 1), bytes * u64::from(drives));
        }
    }
}

#[test]
fn mirrors_write_every_copy_and_stripes_write_once() {
    let written = |level: &str, drives, shape| {
        let mut model = Model::new(&settings(level, drives), shape);
        let ios = model.write(0, 6 * CHUNK_PAGES * PAGE);
        ios.iter().map(|io| io.bytes).sum::<u64>() / (6 * CHUNK_PAGES * PAGE)
    };
    assert_eq!(written("raid0", 3, (3, 0, 1)), 1);
    assert_eq!(written("raid1", 2, (1, 0, 2)), 2);
    assert_eq!(written("raid10", 4, (2, 0, 2)), 2);
    assert_eq!(written("raid1", 3, (1, 0, 3)), 3);
}

#[test]
fn parity_pages_are_updated_k_times_as_often_as_data_pages() {
    let mut model = Model::new(&settings("raid5", 5), (4, 1, 1));
    let (mut data, mut parity) = (BTreeMap::new(), BTreeMap::new());
    for _ in 0..3 {
        for page in 0..model.truth.len() as u64 {
            for io in model.write(page * PAGE, PAGE) {
                let counts = match io.cause {
                    IoCause::Data => &mut data,
                    IoCause::Parity => &mut parity,
                    _ => continue,
                };
                *counts.entry((io.drive, io.offset_bytes)).or_insert(0) += 1;
            }
        }
    }
    assert!(data.values().all(|writes| *writes == 3), "each data page is written in each pass");
    assert!(parity.values().all(|writes| *writes == 3 * 4), "each parity page for each of its data pages");
    assert_eq!(data.len(), 4 * parity.len());
}
