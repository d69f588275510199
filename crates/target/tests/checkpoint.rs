//! Checkpoints of a served drive. Commands continue during a checkpoint, the stored state is that
//! of its moment, and an aborted checkpoint leaves the previous one.
//!
//! The drive has four parts of 65536 pages, and one part for its tables of blocks. Hosts send their
//! commands between two parts, when the drive must be unlocked. The device's tests
//! (`crates/ssd/tests/checkpoint.rs`) cover changes of the maps, including those between the moment
//! and the first part.

mod crash;
mod small_drive;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crash::crash;
use nvme::SubsystemConfig;
use nvme::fault::FaultPlan;
use nvme_spec::{AdminOpcode, Status};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use small_drive::{Client, MIB, PAGE_BYTES, admin, beside, config, folder, generation, open, set_fdp, write_pages};
use ssd::{CheckpointAbort, Device};
use target::storage::{CheckpointMonitor, DriveError, ServedDrive, stored};
use target::{SharedSubsystem, lock};
use tempfile::TempDir;

const PAGES: u64 = 4 * 65536;
const SEED: u64 = 0x5EED_0009;

/// The small drive with four parts.
fn larger() -> SubsystemConfig {
    let mut larger = config(0);
    larger.device.geometry.capacity_bytes = Some(PAGES * PAGE_BYTES);
    larger.device.geometry.reclaim_unit_bytes = 8 * MIB;
    larger
}

/// A host and its writes: the generation of each page with data.
struct Host {
    client: Client,
    random: Xoshiro256PlusPlus,
    written: BTreeMap<u64, u32>,
    commands: u32,
}

impl Host {
    fn new(shared: &SharedSubsystem) -> Host {
        Host {
            client: Client::connect(shared),
            random: Xoshiro256PlusPlus::seed_from_u64(SEED),
            written: BTreeMap::new(),
            commands: 0,
        }
    }

    /// Commands anywhere on the drive, half of them on pages with data.
    fn work(&mut self, commands: u32) {
        for _ in 0..commands {
            self.commands += 1;
            let pages = self.random.random_range(1..9);
            let some = self.random.random_range(0..PAGES - pages);
            let known = self.written.range(some..).next().map_or(some, |(page, _)| *page);
            let first = if self.random.random_bool(0.5) { some } else { known }.min(PAGES - pages);
            let touched = first..first + pages;
            if self.random.random_bool(0.2) {
                assert_eq!(self.client.deallocate(first, pages), Status::SUCCESS);
                self.written.retain(|page, _| !touched.contains(page));
            } else {
                write_pages(&self.client, first, pages, self.commands);
                self.written.extend(touched.map(|page| (page, self.commands)));
            }
        }
    }

    /// Checks that all written data exists, and that no other page is mapped.
    fn verify(&self, shared: &SharedSubsystem) {
        let client = Client::connect(shared);
        for (page, generation_then) in &self.written {
            assert_eq!(generation(&client, *page), *generation_then, "page {page}");
        }
        let subsystem = lock(shared);
        subsystem.device().check().expect("the device is in order");
        assert_eq!(subsystem.device().live_pages(), self.written.len() as u64);
    }
}

fn snapshot(data: &Path) -> Vec<u8> {
    std::fs::read(beside(data, ".ftl")).expect("there is a snapshot")
}

#[test]
fn commands_go_on_and_what_is_stored_is_of_the_moment() {
    let (_folder, data) = folder();
    let (shared, mut drive, _) = open(&data, larger()).expect("a drive");
    let mut host = Host::new(&shared);
    for round in 1..4 {
        host.work(400);
        let then = lock(&shared).device().to_bytes();
        let commands_then = lock(&shared).state().smart.write_commands;
        let (mut pauses, before) = (0, host.commands);
        let stored_any = drive.checkpoint(|| {
            pauses += 1;
            host.work(100);
        });
        assert!(stored_any.expect("the checkpoint is made"));
        assert_eq!((pauses, host.commands - before), (4, 400), "hosts were served between any two parts");
        assert!(snapshot(&data) == then, "round {round}: the snapshot is not of the moment");
        let state = stored(&data).expect("a stored drive").state.expect("a state");
        assert_eq!(state.state.smart.write_commands, commands_then, "round {round}");
        let status = drive.checkpoints().status();
        assert_eq!((status.made, status.failed, status.under_way), (round, 0, None));
        assert!(!status.lock_time_max.is_zero() && status.last >= status.lock_time_max);
    }
    // After a crash, changes after the moment are recovered from the data.
    let copy = crash(&data, "copy.img");
    let (again, mut again_drive, opened) = open(&copy, larger()).expect("the drive of the crash");
    assert!(opened.snapshot && !opened.clean, "{opened}");
    assert!(opened.pages_mapped_again > 0 && opened.pages_deallocated > 0, "{opened}");
    host.verify(&again);
    again_drive.close().expect("it is closed");
    // After a shutdown the state is complete.
    let then = lock(&shared).device().to_bytes();
    drive.close().expect("it is closed");
    assert!(snapshot(&data) == then);
    let (shared, _drive, opened) = open(&data, larger()).expect("the same drive");
    assert!(opened.clean, "{opened}");
    host.verify(&shared);
}

/// A state stored by a command during a checkpoint is later than the checkpoint, and stays.
#[test]
fn a_later_state_is_not_replaced_by_that_of_the_moment() {
    let (_folder, data) = folder();
    let (shared, mut drive, _) = open(&data, larger()).expect("a drive");
    let mut host = Host::new(&shared);
    host.work(50);
    let then = lock(&shared).device().to_bytes();
    let stored_any = drive.checkpoint(|| {
        if lock(&shared).namespaces().count() > 0 {
            admin(&host.client, AdminOpcode::NamespaceManagement, 1, 1, 0, 0);
        }
    });
    assert!(stored_any.expect("the checkpoint is made"));
    assert!(snapshot(&data) == then);
    let seen = stored(&data).expect("a stored drive").state.expect("a state");
    assert!(seen.namespaces.is_empty(), "the namespace is deleted");
    let (again, _drive, opened) = open(&crash(&data, "copy.img"), larger()).expect("the drive of the crash");
    assert_eq!((opened.snapshot, opened.pages_mapped_again), (true, 0), "{opened}");
    assert_eq!(lock(&again).device().live_pages(), 0, "its pages are deallocated");
}

/// Calls `end` on a drive whose checkpoint has copied one part. The checkpoint fails, the previous
/// one is intact, and the drive continues.
fn ends(mut end: impl FnMut(&Host, &SharedSubsystem, &CheckpointMonitor)) -> (DriveError, EndedDrive) {
    let (folder, data) = folder();
    let (shared, mut drive, _) = open(&data, larger()).expect("a drive");
    drive.on_power_loss(None);
    let mut host = Host::new(&shared);
    host.work(100);
    assert!(drive.checkpoint(|| {}).expect("the first one is made"));
    let before = snapshot(&data);
    host.work(100);
    let checkpoints = drive.checkpoints();
    let mut pauses = 0;
    let error = drive.checkpoint(|| {
        pauses += 1;
        if pauses == 2 {
            end(&host, &shared, &checkpoints);
        }
    });
    let error = error.expect_err("something ended it");
    assert_eq!(pauses, 2, "it ends at the next part");
    assert!(snapshot(&data) == before, "the one before is whole");
    let names = folder.path().read_dir().expect("a folder").flatten();
    let parts = names.filter(|entry| entry.file_name().to_string_lossy().ends_with(base::file_place::PART_SUFFIX));
    assert_eq!(parts.count(), 0, "nothing is left over");
    let status = drive.checkpoints().status();
    assert_eq!((status.made, status.failed, status.under_way), (1, 1, None));
    let ended = EndedDrive { folder, data, shared, drive, host };
    (error, ended)
}

/// The drive after a failed checkpoint.
struct EndedDrive {
    #[allow(dead_code, reason = "it is there as long as the drive is")]
    folder: TempDir,
    data: PathBuf,
    shared: SharedSubsystem,
    drive: ServedDrive,
    host: Host,
}

#[test]
fn a_drive_that_is_stopped_does_not_wait_for_its_checkpoint() {
    let (error, mut ended) = ends(|_, _, checkpoints| checkpoints.stop());
    assert!(matches!(error, DriveError::Stopping), "{error}");
    ended.host.work(10);
    let then = lock(&ended.shared).device().to_bytes();
    ended.drive.close().expect("it is closed");
    assert!(snapshot(&ended.data) == then);
    let (shared, _drive, opened) = open(&ended.data, larger()).expect("the same drive");
    assert!(opened.clean, "{opened}");
    ended.host.verify(&shared);
}

#[test]
fn a_drive_that_is_divided_anew_ends_its_checkpoint() {
    let (error, mut ended) = ends(|host, _, _| {
        admin(&host.client, AdminOpcode::NamespaceManagement, 1, 1, 0, 0);
        set_fdp(&host.client, false);
    });
    assert!(matches!(error, DriveError::Checkpoint(CheckpointAbort::Replaced)), "{error}");
    // The next checkpoint has the current state.
    let then = lock(&ended.shared).device().to_bytes();
    assert!(ended.drive.checkpoint(|| {}).expect("the next one is made"));
    assert!(snapshot(&ended.data) == then);
    Device::load(&beside(&ended.data, ".ftl")).expect("it can be loaded");
}

#[test]
fn a_power_loss_ends_a_checkpoint_and_nothing_is_stored_after_it() {
    let (error, mut ended) = ends(|host, shared, _| {
        let plan = FaultPlan::parse("[[fault]]\nkind = \"power_loss\"\n").expect("a plan");
        let planned = lock(shared).set_faults(host.client.clock.now(), Some(plan));
        planned.expect("the drive can fail so");
        assert!(!host.client.is_answered(0), "its power is gone");
    });
    assert!(matches!(error, DriveError::PowerLost), "{error}");
    assert!(!ended.drive.checkpoint(|| {}).expect("there is nothing to store to"));
}

/// A drive with more than a gibibyte of mapping is stored in the same parts as a small one. Hosts
/// write between the parts.
#[test]
fn a_large_drive_is_stored_while_it_is_served() {
    let (_folder, data) = folder();
    let mut large = config(0);
    large.device.geometry.capacity_bytes = Some(600 << 30);
    large.device.geometry.reclaim_unit_bytes = 1 << 30;
    let (shared, mut drive, _) = open(&data, large.clone()).expect("a drive");
    let client = Client::connect(&shared);
    let last = (600 << 30) / PAGE_BYTES - 1;
    write_pages(&client, 5, 3, 1);
    write_pages(&client, last, 1, 1);
    let mut pauses = 0;
    let stored_any = drive.checkpoint(|| {
        pauses += 1;
        if pauses % 500 == 0 {
            write_pages(&client, last - pauses, 1, 2);
        }
    });
    assert!(stored_any.expect("the checkpoint is made"));
    assert_eq!(pauses, 600 * 4);
    let device = stored(&data).expect("a stored drive").device.expect("a snapshot");
    assert_eq!((device.live_pages, device.stats.host_bytes_written()), (4, 4 * PAGE_BYTES));
}
