//! A checkpoint equals the device at the start of the checkpoint, regardless of later changes.
//!
//! The devices have four parts of 65536 pages and a little more, and all kinds of changes to their
//! maps: single pages and extents through handles of every isolation, deallocations, handle
//! updates, collections, remapped blocks. Such work happens between any two steps of a checkpoint.
//! The expected result is [`Device::to_bytes`] of a clone made at the start.
//!
//! `crates/target/tests/drive/` covers locking of the drive and the disk.

mod common;

use std::path::Path;

use base::FilePlace;
use common::*;
use ssd::checkpoint::CheckpointBuffer;
use ssd::config::{DeviceConfig, ReclaimUnitSize};
use ssd::{Checkpoint, CheckpointAbort, Device, Lpn, SnapshotError};

/// Reason why a checkpoint in these tests fails.
#[derive(Debug, thiserror::Error)]
enum Stopped {
    #[error(transparent)]
    Snapshot(#[from] SnapshotError),
    #[error(transparent)]
    Ended(#[from] CheckpointAbort),
    #[error("the test has stopped it")]
    ByTest,
}

fn place(path: &Path) -> FilePlace {
    FilePlace::new(path).expect("its folder is there")
}

/// [`everything`] with this many reclaim units of 1 MiB over 64 dies, so that the blocks need more
/// than one copy step.
fn everything_of(superblocks: u64) -> DeviceConfig {
    let mut config = everything();
    (config.geometry.channels, config.geometry.dies_per_channel) = (8, 8);
    config.handles.overrides[0].reclaim_unit = Some(ReclaimUnitSize::Fraction(4));
    config.geometry.physical_bytes = Some(superblocks * MIB);
    config.gc.wear_levelling_erases = 2;
    config
}

/// A device of four parts and a little, mapped in extents of a reclaim unit and then overwritten.
fn filled(seed: u64) -> (Device, Uniform) {
    let mut device = silent(&everything_of(1400));
    let pages = device.layout().logical_pages;
    assert!((4 * 65536 + 1..5 * 65536).contains(&pages), "{pages} pages");
    let mut uniform = Uniform::new(seed);
    let groups = u32::from(device.layout().groups);
    for first in (0..pages - UNIT_PAGES).step_by(UNIT_PAGES as usize) {
        // One drive in four has gaps.
        if seed.is_multiple_of(4) && uniform.below(3) == 0 {
            continue;
        }
        let placement = placement(uniform.below(groups) as u16, uniform.below(3) as u16);
        let _ = device.write(0, &extent(first, UNIT_PAGES, placement)).expect("the extent and the placement exist");
    }
    work(&mut device, &mut uniform, 5000 * (seed % 3) as u32);
    (device, uniform)
}

fn begin(device: &mut Device) -> Checkpoint {
    let room = CheckpointBuffer::new(device.layout()).expect("there is memory");
    device.begin_checkpoint(room)
}

/// Some commands. Occasionally deallocates large parts of the drive or writes them in order.
fn some_work(device: &mut Device, uniform: &mut Uniform) {
    let commands = uniform.below(3000);
    work(device, uniform, commands);
    let pages = device.layout().logical_pages;
    let first = uniform.below(pages - 1);
    let length = 1 + uniform.below((pages - first).min(100_000));
    match uniform.below(4) {
        0 => drop(device.deallocate(0, Lpn(first), length).expect("the extent exists")),
        1 => drop(device.write(0, &extent(first, length, placement(0, 1))).expect("the extent exists")),
        _ => {}
    }
}

#[test]
fn a_checkpoint_is_the_device_as_it_was_when_it_began() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("device.warp");
    for seed in 0..12 {
        let (mut device, mut uniform) = filled(seed);
        let then = device.clone();
        let mut checkpoint = begin(&mut device);
        let saved = checkpoint.save(&place(&path), |checkpoint| -> Result<(), Stopped> {
            some_work(&mut device, &mut uniform);
            device.copy_part(checkpoint)?;
            some_work(&mut device, &mut uniform);
            Ok(())
        });
        saved.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        let bytes = std::fs::read(&path).expect("the snapshot is there");
        assert!(bytes == then.to_bytes(), "seed {seed}: another device is stored");
        let mut loaded = Device::load(&path).expect("the snapshot is loaded");
        assert_same(&then, &loaded);
        // From this point on both behave the same.
        let mut then = then;
        work(&mut then, &mut Uniform::new(seed), 3000);
        work(&mut loaded, &mut Uniform::new(seed), 3000);
        assert_same(&then, &loaded);
        device.check().unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        assert!(device.to_bytes() != bytes, "seed {seed}: the device went on while it was stored");
    }
}

/// Makes several checkpoints of one device, each at its own moment. An incomplete checkpoint leaves
/// the previous file.
#[test]
fn what_is_not_completed_leaves_the_checkpoint_before() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("device.warp");
    let (mut device, mut uniform) = filled(5);
    for round in 0..6 {
        let then = device.to_bytes();
        let before = std::fs::read(&path).ok();
        let mut checkpoint = begin(&mut device);
        let mut parts = 0;
        let saved = checkpoint.save(&place(&path), |checkpoint| {
            some_work(&mut device, &mut uniform);
            if round % 2 == 1 && parts == round / 2 {
                return Err(Stopped::ByTest);
            }
            parts += 1;
            Ok(device.copy_part(checkpoint)?)
        });
        if round % 2 == 1 {
            assert!(matches!(saved, Err(Stopped::ByTest)), "{saved:?}");
            // A second call has no effect. The last checkpoint replaces this one.
            if round < 5 {
                device.end_checkpoint(&mut checkpoint);
                device.end_checkpoint(&mut checkpoint);
            }
            assert_eq!(std::fs::read(&path).ok(), before);
        } else {
            saved.expect("the checkpoint is made");
            assert!(std::fs::read(&path).expect("it is there") == then, "round {round}");
        }
        assert_eq!(folder.path().read_dir().expect("a folder").count(), 1, "nothing is left over");
    }
    let then = device.to_bytes();
    let mut checkpoint = begin(&mut device);
    save_at_once(&mut checkpoint, &mut device, &path).expect("the checkpoint is made");
    assert!(std::fs::read(&path).expect("it is there") == then);
}

fn save_at_once(checkpoint: &mut Checkpoint, device: &mut Device, path: &Path) -> Result<(), Stopped> {
    checkpoint.save(&place(path), |checkpoint| Ok(device.copy_part(checkpoint)?))
}

#[test]
fn a_checkpoint_that_would_take_too_much_memory_comes_to_nothing() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("device.warp");
    let (mut device, mut uniform) = filled(1);
    let pages = device.layout().logical_pages;
    let mut checkpoint = begin(&mut device);
    let mut parts = 0;
    let saved = checkpoint.save(&place(&path), |checkpoint| -> Result<(), Stopped> {
        // Twelve bytes for each change, in the last part. More than 32 MiB after three.
        for _ in 0..if parts > 0 { 1_000_000 } else { 1000 } {
            write(&mut device, pages - 1 - uniform.below(1000), 1, 0);
        }
        parts += 1;
        Ok(device.copy_part(checkpoint)?)
    });
    assert!(matches!(saved, Err(Stopped::Ended(CheckpointAbort::TooManyChanges))), "{saved:?} after {parts} parts");
    assert_eq!(parts, 4);
    assert!(!path.exists());
    let then = device.to_bytes();
    let mut checkpoint = begin(&mut device);
    save_at_once(&mut checkpoint, &mut device, &path).expect("the next one is made");
    assert!(std::fs::read(&path).expect("it is there") == then);
}

/// Neither checkpoint takes the changes of the other, and ending the first does not end the second.
#[test]
fn a_checkpoint_that_is_begun_over_another_is_the_only_one() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let [one, other] = ["one.warp", "other.warp"].map(|name| folder.path().join(name));
    let (mut device, mut uniform) = filled(3);
    for parts_before in [0, 1, 4] {
        let mut first = begin(&mut device);
        let mut second = None;
        let mut parts = 0;
        let saved = first.save(&place(&one), |checkpoint| -> Result<(), Stopped> {
            some_work(&mut device, &mut uniform);
            if parts == parts_before {
                let then = device.to_bytes();
                second = Some((begin(&mut device), then));
                some_work(&mut device, &mut uniform);
            }
            parts += 1;
            Ok(device.copy_part(checkpoint)?)
        });
        assert!(matches!(saved, Err(Stopped::Ended(CheckpointAbort::Replaced))), "{saved:?} after {parts} parts");
        device.end_checkpoint(&mut first);
        assert!(!one.exists());
        let (mut second, then) = second.expect("it was begun");
        some_work(&mut device, &mut uniform);
        save_at_once(&mut second, &mut device, &other).expect("the second one is made");
        assert!(std::fs::read(&other).expect("it is there") == then);
    }
}

/// Memory of another layout also works, but may be too small to avoid allocations.
#[test]
fn a_state_is_copied_whole_wherever_there_is_room() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("device.warp");
    let (mut device, _) = filled(1);
    for superblocks in [600, 3000] {
        let other = silent(&everything_of(superblocks));
        let room = CheckpointBuffer::new(other.layout()).expect("there is memory");
        let mut checkpoint = device.begin_checkpoint(room);
        save_at_once(&mut checkpoint, &mut device, &path).expect("the checkpoint is made");
        assert!(std::fs::read(&path).expect("it is there") == device.to_bytes());
    }
}

#[test]
fn a_checkpoint_of_a_device_that_is_gone_comes_to_nothing() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("device.warp");
    let (mut device, _) = filled(2);
    let mut checkpoint = begin(&mut device);
    // The checkpoint belongs to the original, not to a clone.
    device = device.clone();
    let saved = save_at_once(&mut checkpoint, &mut device, &path);
    assert!(matches!(saved, Err(Stopped::Ended(CheckpointAbort::Replaced))), "{saved:?}");
    device.end_checkpoint(&mut checkpoint);
    assert!(!path.exists());
}
