//! Drives of an array: devices, queues, failures, and counts by cause.

use array::{Array, ArraySettings, MemberIo};
use rayon::prelude::*;
use ssd::{CompletionTime, Device, DeviceStats, Nanos, Occupancy};
use workload::{IoRequest, RequestOperation};

use super::super::array_member::drive_seed;
use super::super::array_result::{ArrayDriveResult, CauseCounts};
use super::super::drive::RunDrive;
use super::super::plan::RunPlan;
use super::super::series::SampledDrive;
use crate::run_recorder::RunRecorder;
use experiment::error::LabError;

/// Queued I/O of a drive after which the queues are executed.
const QUEUE_LENGTH: usize = 4096;

/// Drives of an array. See the module.
pub(super) struct ArrayDrives<'a> {
    plan: &'a RunPlan,
    pub(super) array: Array,
    /// Working drives by place.
    slots: Vec<Option<RunDrive>>,
    /// I/O of each place that is not executed yet.
    queues: Vec<Vec<IoRequest>>,
    /// Drives that the array had before.
    retired: Vec<ArrayDriveResult>,
    pub(super) causes: Vec<CauseCounts>,
    spares_left: u16,
    drives_made: u64,
    /// Drives have no clock while the array is filled.
    has_clock: bool,
    /// Pages read, then the unwritten ones among them, of retired drives.
    retired_unmapped: u64,
    pages_read: u64,
}

impl<'a> ArrayDrives<'a> {
    pub(super) fn new(plan: &'a RunPlan, settings: &ArraySettings) -> Result<ArrayDrives<'a>, LabError> {
        let placements = ssd::PlacementList::new(&plan.handles, plan.layout.groups).count();
        let array = Array::new(settings, plan.layout.capacity_bytes(), placements)
            .map_err(|problem| LabError::invalid(&format!("{}, array", plan.cell().key), problem))?;
        let mut drives = ArrayDrives {
            plan,
            array,
            slots: Vec::new(),
            queues: vec![Vec::new(); settings.drives.into()],
            retired: Vec::new(),
            causes: vec![CauseCounts::default(); array::IoCause::ALL.len()],
            spares_left: settings.spares,
            drives_made: 0,
            has_clock: false,
            retired_unmapped: 0,
            pages_read: 0,
        };
        for _ in 0..settings.drives {
            let drive = drives.make_drive();
            drives.slots.push(Some(drive));
        }
        Ok(drives)
    }

    /// Creates a new drive.
    fn make_drive(&mut self) -> RunDrive {
        let mut config = self.plan.config.clone();
        config.seed = drive_seed(config.seed, self.drives_made);
        self.drives_made += 1;
        if !self.has_clock {
            config.timing = None;
        }
        let device = Device::new(&config).expect("the layout was made before");
        let recorder = RunRecorder::new(false, self.plan.is_timed());
        RunDrive::new(device.replace_sink(recorder).0, self.plan)
    }

    fn working(&self) -> impl Iterator<Item = &RunDrive> {
        self.slots.iter().flatten()
    }

    /// Adds executed or queued I/O to the counts of its causes.
    fn count(&mut self, ios: &[MemberIo]) {
        for io in ios {
            let counts = &mut self.causes[io.cause as usize];
            counts.ios[io.operation as usize] += 1;
            counts.bytes[io.operation as usize] += io.bytes;
        }
    }

    /// Counts and queues I/O. Reads change nothing without time.
    pub(super) fn queue(&mut self, ios: &[MemberIo]) {
        self.count(ios);
        for io in ios.iter().filter(|io| io.operation != RequestOperation::Read) {
            assert!(self.slots[usize::from(io.drive)].is_some(), "drive {} works", io.drive);
            self.queues[usize::from(io.drive)].push(io.request());
        }
        if self.queues.iter().any(|queue| queue.len() >= QUEUE_LENGTH) {
            self.execute_queues();
        }
    }

    /// Executes the queues, each drive on a thread.
    pub(super) fn execute_queues(&mut self) {
        self.slots.par_iter_mut().zip(&mut self.queues).for_each(|(slot, queue)| {
            let Some(drive) = slot else {
                assert!(queue.is_empty(), "a drive without a device has no I/O");
                return;
            };
            for request in queue.drain(..) {
                let _ = drive.execute(&request);
            }
            drive.write_out();
        });
    }

    /// Executes an I/O in virtual time. A later phase of a request in flight when its drive failed
    /// ends at once.
    pub(super) fn execute_at(&mut self, now: Nanos, io: &MemberIo) -> CompletionTime {
        let Some(drive) = self.slots[usize::from(io.drive)].as_mut() else {
            assert_ne!(io.operation, RequestOperation::Read, "reads are for working drives");
            return CompletionTime { at: now, waited_for_collection_ns: 0 };
        };
        let done = drive.execute_at(now, &io.request());
        if io.operation == RequestOperation::Read {
            self.pages_read += io.bytes.div_ceil(self.plan.layout.page_bytes);
        }
        self.count(std::slice::from_ref(io));
        done
    }

    /// Takes the collections since the last call, each with its time and copied pages.
    pub(super) fn take_collections(&mut self) -> Vec<(Nanos, u32)> {
        let recent = |drive: &mut RunDrive| std::mem::take(&mut drive.device.sink_mut().recent);
        let mut collections: Vec<_> = self.slots.iter_mut().flatten().flat_map(recent).collect();
        collections.sort_unstable();
        collections
    }

    /// Starts the counters after the array is filled. Drives with timing get their clock.
    pub(super) fn begin_workload(&mut self) {
        self.has_clock = true;
        for drive in self.slots.iter_mut().flatten() {
            if self.plan.is_timed() {
                drive.device.set_timing(self.plan.config.timing.clone()).expect("the plan checked the timing");
            }
            drive.start = drive.device.stats().clone();
            drive.device.sink_mut().recent.clear();
        }
        self.causes.fill(CauseCounts::default());
    }

    /// Takes a spare drive if one is left.
    pub(super) fn take_spare(&mut self) -> bool {
        let is_left = self.spares_left > 0;
        self.spares_left -= u16::from(is_left);
        is_left
    }

    /// Removes a drive. A drive that has failed before stays so.
    pub(super) fn fail(&mut self, place: u16, state: &'static str) {
        let Some(drive) = self.slots[usize::from(place)].take() else { return };
        self.array.fail(place);
        self.retired_unmapped += drive.device.unmapped_pages_read();
        self.retired.push(result_of(&drive, place, state));
    }

    /// Puts a new drive in the place of a failed one.
    pub(super) fn insert(&mut self, place: u16) {
        let drive = self.make_drive();
        let before = self.slots[usize::from(place)].replace(drive);
        assert!(before.is_none(), "place {place} is free");
        self.array.begin_rebuild(place);
    }

    /// Appends the I/O of a row of a rebuild, or of a scrub without a drive.
    pub(super) fn resync_row(&mut self, rebuilt: Option<u16>, row: u64, ios: &mut Vec<MemberIo>) {
        match rebuilt {
            Some(drive) => self.array.rebuild_row(drive, row, ios),
            None => self.array.scrub_row(row, ios),
        }
    }

    /// Bytes that the drives received since the workload began.
    pub(super) fn written(&self) -> u64 {
        self.causes.iter().map(|counts| counts.bytes[RequestOperation::Write as usize]).sum()
    }

    /// Compares the bytes of all causes with the counters of the devices.
    ///
    /// # Panics
    /// The values differ, which means an accounting error of the run.
    pub(super) fn assert_conserved(&self) {
        assert_eq!(self.stats().host_bytes_written(), self.written(), "the devices count what the causes wrote");
    }

    /// Pages read, then the unwritten ones among them.
    pub(super) fn pages_read(&self) -> [u64; 2] {
        let unmapped: u64 = self.working().map(|drive| drive.device.unmapped_pages_read()).sum();
        [self.pages_read, unmapped + self.retired_unmapped]
    }

    /// Largest share of open reclaim units of a drive.
    pub(super) fn open_unit_share(&self) -> f64 {
        self.working().map(RunDrive::open_unit_share).fold(0.0, f64::max)
    }

    /// Drives in their order, then those that the array had before.
    pub(super) fn results(&self) -> Vec<ArrayDriveResult> {
        let slots = (0..).zip(&self.slots);
        let working = slots.filter_map(|(place, drive)| Some(result_of(drive.as_ref()?, place, "works")));
        working.chain(self.retired.iter().cloned()).collect()
    }
}

fn result_of(drive: &RunDrive, place: u16, state: &'static str) -> ArrayDriveResult {
    let life_used = drive.device.life_used();
    ArrayDriveResult { drive: place, state, stats: drive.stats(), wear: drive.device.wear(), life_used }
}

impl SampledDrive for ArrayDrives<'_> {
    fn stats(&self) -> DeviceStats {
        let retired = self.retired.iter().map(|drive| drive.stats.clone());
        let all = self.working().map(RunDrive::stats).chain(retired);
        all.reduce(|one, other| one.plus(&other)).expect("an array has drives")
    }

    fn occupancy(&self) -> Vec<Occupancy> {
        let add = |one: Vec<Occupancy>, other: Vec<Occupancy>| {
            let both = one.into_iter().zip(other);
            let sum = |(one, other): (Occupancy, Occupancy)| Occupancy {
                owner: one.owner,
                units: one.units + other.units,
                pages: one.pages + other.pages,
                valid_pages: one.valid_pages + other.valid_pages,
            };
            both.map(sum).collect()
        };
        self.working().map(|drive| drive.device.occupancy()).reduce(add).expect("an array has a working drive")
    }
}
