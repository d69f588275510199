//! Features as hosts see them, with values, scopes, saving, and the statuses of refused commands.

mod common;

use std::sync::atomic::Ordering;

use common::commands::{
    CAPABILITIES, CURRENT, DEFAULT, SAVED, drive_with_namespace, fdp_events, get_feature, save_feature,
};
use common::{Drive, PAGE_BYTES, config, io, set_feature};
use nvme::{ControllerKind, HostIdentity, HostTransport};
use nvme_spec::command::SubmissionEntry;
use nvme_spec::register::Property;
use nvme_spec::{AdminOpcode, IoOpcode, NSID_ALL, Status};

#[test]
fn a_saved_value_is_the_current_one_after_a_reset() {
    let (mut drive, id) = drive_with_namespace();
    let over = |select| get_feature(0x04, 0, select, 0);
    let under = |select| get_feature(0x04, 0, select, 1 << 20);
    assert_eq!(drive.succeeds(id, &over(CURRENT), &[]).0, 343);
    assert_eq!(drive.succeeds(id, &under(CURRENT), &[]).0, 1 << 20);
    drive.succeeds(id, &set_feature(0x04, 0, 350), &[]);
    drive.succeeds(id, &save_feature(0x04, NSID_ALL, 1 << 20 | 280), &[]);
    assert_eq!(drive.succeeds(id, &over(CURRENT), &[]).0, 350);
    assert_eq!(drive.succeeds(id, &over(SAVED), &[]).0, 343, "not saved");
    assert_eq!(drive.succeeds(id, &under(SAVED), &[]).0, 1 << 20 | 280);
    assert_eq!(drive.succeeds(id, &under(DEFAULT), &[]).0, 1 << 20);

    // An existing host keeps its values, and a new one gets the saved values.
    let before = drive.host();
    drive.succeeds(id, &save_feature(0x01, 0, 3), &[]);
    assert_eq!(drive.succeeds(before, &get_feature(0x01, 0, CURRENT, 0), &[]).0, 0);
    assert_eq!(drive.succeeds(before, &get_feature(0x01, 0, SAVED, 0), &[]).0, 3);
    let after = drive.host();
    assert_eq!(drive.succeeds(after, &get_feature(0x01, 0, CURRENT, 0), &[]).0, 3);

    drive.subsystem.reset_controller(id);
    drive.enable(id);
    assert_eq!(drive.succeeds(id, &over(CURRENT), &[]).0, 343);
    assert_eq!(drive.succeeds(id, &under(CURRENT), &[]).0, 1 << 20 | 280);
    let mut drive = drive.restart();
    let id = drive.host();
    assert_eq!(drive.succeeds(id, &under(CURRENT), &[]).0, 1 << 20 | 280);
    assert_eq!(drive.succeeds(id, &get_feature(0x01, 0, CURRENT, 0), &[]).0, 3);
}

#[test]
fn what_is_refused_and_with_which_status() {
    let (mut drive, id) = drive_with_namespace();
    drive.refuses(id, &set_feature(0xc0, 0, 0), &[], Status::INVALID_FIELD);
    drive.refuses(id, &get_feature(0x01, 0, 4, 0), &[], Status::INVALID_FIELD);
    let pcie = id;
    let fabrics = drive.connect(HostTransport::Fabrics, ControllerKind::Io);
    // Features that are never saved. They are number of queues, timestamp, keep alive, host
    // behavior, host identifier, write protection and marker.
    for fid in [0x07, 0x0e, 0x0f, 0x16, 0x81, 0x80, 0x84] {
        let nsid = if fid == 0x84 { 1 } else { 0 };
        let id = if fid == 0x0f { fabrics } else { pcie };
        let reply = drive.refuses(id, &save_feature(fid, nsid, 0), &[], Status::FEATURE_NOT_SAVEABLE);
        assert_eq!((reply.status.sct(), reply.status.sc(), reply.do_not_retry), (1, 0x0d, true));
        assert_eq!(drive.succeeds(id, &get_feature(fid, nsid, CAPABILITIES, 0), &[]).0 & 1, 0);
    }
    let reply = drive.refuses(id, &set_feature(0x01, 1, 0), &[], Status::FEATURE_NOT_NAMESPACE_SPECIFIC);
    assert_eq!((reply.status.sct(), reply.status.sc()), (1, 0x0f));
    drive.refuses(id, &set_feature(0x01, 99, 0), &[], Status::INVALID_NAMESPACE_OR_FORMAT);
    drive.refuses(id, &set_feature(0x05, 0, 0), &[], Status::INVALID_NAMESPACE_OR_FORMAT);
    drive.refuses(id, &set_feature(0x02, 0, 1), &[], Status::INVALID_FIELD);
    drive.refuses(id, &set_feature(0x04, 0, 1 << 16 | 300), &[], Status::INVALID_FIELD);
    drive.refuses(id, &set_feature(0x04, 0, 2 << 20 | 300), &[], Status::INVALID_FIELD);
    drive.refuses(id, &set_feature(0x05, 1, 1 << 16), &[], Status::INVALID_FIELD);
    drive.refuses(id, &set_feature(0x07, 0, 0xffff), &[], Status::INVALID_FIELD);
    drive.refuses(id, &set_feature(0x07, 0, 0xffff_0000), &[], Status::INVALID_FIELD);
    drive.refuses(id, &set_feature(0x09, 0, 5), &[], Status::INVALID_FIELD);
    drive.refuses(id, &set_feature(0x18, 0, 2), &[], Status::INVALID_FIELD);
    drive.refuses(id, &set_feature(0x84, 1, 2), &[], Status::INVALID_FIELD);
    drive.refuses(id, &set_feature(0x84, 1, 7), &[], Status::INVALID_FIELD);
}

#[test]
fn values_are_kept_by_controller_namespace_or_drive() {
    let (mut drive, first) = drive_with_namespace();
    let second = drive.host();
    let set_and_get = |drive: &mut Drive, set: SubmissionEntry, get: SubmissionEntry| {
        drive.succeeds(first, &set, &[]);
        (drive.succeeds(first, &get, &[]).0, drive.succeeds(second, &get, &[]).0)
    };
    let plain = |fid| get_feature(fid, 0, CURRENT, 0);
    assert_eq!(set_and_get(&mut drive, set_feature(0x01, 0, 0x0403_02ff), plain(0x01)), (0x0403_0207, 0));
    assert_eq!(set_and_get(&mut drive, set_feature(0x02, 0, 0x20), plain(0x02)), (0x20, 0));
    assert_eq!(set_and_get(&mut drive, set_feature(0x08, 0, 0x0a05), plain(0x08)), (0x0a05, 0));
    let vector = get_feature(0x09, 0, CURRENT, 3);
    assert_eq!(set_and_get(&mut drive, set_feature(0x09, 0, 0x0001_0003), vector), (0x0001_0003, 3));
    assert_eq!(set_and_get(&mut drive, set_feature(0x0a, 0, 1), plain(0x0a)), (1, 0));
    assert_eq!(set_and_get(&mut drive, set_feature(0x0b, 0, 0xffff_ffff), plain(0x0b)), (0x41ff, 0));
    let recovery = get_feature(0x05, 1, CURRENT, 0);
    assert_eq!(set_and_get(&mut drive, set_feature(0x05, 1, 25), recovery), (25, 25));
    assert_eq!(set_and_get(&mut drive, set_feature(0x17, 0, 1), plain(0x17)), (1, 1));
    let group = get_feature(0x18, 0, CURRENT, 1);
    assert_eq!(set_and_get(&mut drive, set_feature(0x18, 0, 0x0004_0001), group), (0x0004_0001, 0x0004_0001));
    assert_eq!(set_and_get(&mut drive, set_feature(0x80, 0, 9), plain(0x80)), (9, 9));
    let mut drive = drive.restart();
    let id = drive.host();
    assert_eq!(drive.succeeds(id, &plain(0x80), &[]).0, 9, "the marker is kept without being asked");
    assert_eq!(drive.succeeds(id, &recovery, &[]).0, 0, "this was not saved");
}

#[test]
fn queues_are_granted_up_to_the_limit() {
    let (mut drive, id) = drive_with_namespace();
    assert_eq!(drive.succeeds(id, &get_feature(0x07, 0, CURRENT, 0), &[]).0, 0x0003_0003);
    assert_eq!(drive.succeeds(id, &set_feature(0x07, 0, 0x0001_00fe), &[]).0, 0x0001_0003);
    assert_eq!(drive.succeeds(id, &get_feature(0x07, 0, CURRENT, 0), &[]).0, 0x0001_0003);
}

#[test]
fn interrupts_are_of_pcie_alone() {
    let (mut drive, _) = drive_with_namespace();
    let fabrics = drive.connect(HostTransport::Fabrics, ControllerKind::Io);
    for fid in [0x08, 0x09] {
        drive.refuses(fabrics, &set_feature(fid, 0, 0), &[], Status::INVALID_FIELD);
        drive.refuses(fabrics, &get_feature(fid, 0, CURRENT, 0), &[], Status::INVALID_FIELD);
    }
}

#[test]
fn without_the_write_cache_every_write_is_durable() {
    let (mut drive, first) = drive_with_namespace();
    let second = drive.host();
    let write = io(IoOpcode::Write, 1, 0, 1);
    let data = [3; PAGE_BYTES as usize];
    assert_eq!(drive.succeeds(first, &get_feature(0x06, 0, CURRENT, 0), &[]).0, 1);
    assert!(!drive.command(first, 1, &write, &data).synced);
    assert!(!drive.admin(first, &set_feature(0x06, 0, 1), &[]).synced);
    let done = drive.admin(first, &set_feature(0x06, 0, 0), &[]);
    assert!(done.reply.status.is_success() && done.synced, "what was cached is written out");
    assert!(drive.command(first, 1, &write, &data).synced);
    assert!(drive.command(second, 1, &write, &data).synced, "one host that turned it off is enough");
    drive.subsystem.reset_controller(first);
    assert!(!drive.command(second, 1, &write, &data).synced);

    let mut uncached = Drive::on(config(), false);
    let id = uncached.host();
    uncached.refuses(id, &set_feature(0x06, 0, 1), &[], Status::INVALID_FIELD);
    uncached.refuses(id, &get_feature(0x06, 0, CURRENT, 0), &[], Status::INVALID_FIELD);
}

#[test]
fn the_timestamp_counts_on() {
    let (mut drive, id) = drive_with_namespace();
    drive.now = 9_000_000;
    let get = get_feature(0x0e, 0, CURRENT, 0);
    assert_eq!(drive.succeeds(id, &get, &[]).1, [9, 0, 0, 0, 0, 0, 0, 0]);
    drive.succeeds(id, &set_feature(0x0e, 0, 0), &[0x10, 0x32, 0x54, 0x76, 0x98, 0x01, 0, 0]);
    drive.now += 4_999_999;
    assert_eq!(drive.succeeds(id, &get, &[]).1, [0x14, 0x32, 0x54, 0x76, 0x98, 0x01, 0b0010, 0]);
    let other = drive.host();
    assert_eq!(drive.succeeds(other, &get, &[]).1[..6], [0x14, 0x32, 0x54, 0x76, 0x98, 0x01]);
}

#[test]
fn host_behavior_and_host_identifier() {
    let (mut drive, id) = drive_with_namespace();
    let mut behavior = vec![0; 512];
    behavior[0] = 1;
    behavior[2] = 1;
    drive.succeeds(id, &set_feature(0x16, 0, 0), &behavior);
    assert_eq!(drive.succeeds(id, &get_feature(0x16, 0, CURRENT, 0), &[]).1, behavior);
    assert_eq!(drive.succeeds(id, &get_feature(0x16, 0, DEFAULT, 0), &[]).1, [0; 512]);
    for (byte, value) in [(0, 2), (3, 1), (4, 0x04)] {
        let mut wrong = behavior.clone();
        wrong[byte] = value;
        drive.refuses(id, &set_feature(0x16, 0, 0), &wrong, Status::INVALID_FIELD);
    }
    assert_eq!(drive.succeeds(id, &get_feature(0x16, 0, CURRENT, 0), &[]).1, behavior);

    let identifier: Vec<u8> = (1..=16).collect();
    drive.succeeds(id, &set_feature(0x81, 0, 1), &identifier);
    assert_eq!(drive.succeeds(id, &get_feature(0x81, 0, CURRENT, 1), &[]).1, identifier);
    assert_eq!(drive.subsystem.controller(id).host.id[..], identifier);
    drive.subsystem.property_set(drive.now, id, Property::Cc, 0);
    drive.enable(id);
    let get = get_feature(0x81, 0, CURRENT, 1);
    assert_eq!(drive.succeeds(id, &get, &[]).1, [0; 16], "a reset forgets it");
    drive.succeeds(id, &set_feature(0x81, 0, 0), &identifier[..8]);
    assert_eq!(drive.succeeds(id, &get_feature(0x81, 0, CURRENT, 0), &[]).1, identifier[..8]);

    let fabrics = drive.connect(HostTransport::Fabrics, ControllerKind::Io);
    drive.refuses(fabrics, &set_feature(0x81, 0, 1), &identifier, Status::COMMAND_SEQUENCE_ERROR);
    drive.refuses(fabrics, &get_feature(0x81, 0, CURRENT, 0), &[], Status::INVALID_FIELD);
    assert_eq!(drive.succeeds(fabrics, &get_feature(0x81, 0, CURRENT, 1), &[]).1, [0; 16]);
    assert_eq!(drive.succeeds(fabrics, &get_feature(0x81, 0, CAPABILITIES, 0), &[]).0, 0, "not changeable");
    let host = HostIdentity { nqn: "nqn.2014-08.org.nvmexpress:uuid:1".to_string(), id: [7; 16] };
    let connected = drive.subsystem.connect(drive.now, HostTransport::Fabrics, ControllerKind::Io, host);
    let known = connected.expect("room for a controller");
    drive.enable(known);
    drive.subsystem.property_set(drive.now, known, Property::Cc, 0);
    drive.enable(known);
    assert_eq!(drive.succeeds(known, &get, &[]).1, [7; 16], "Connect has set it for the whole association");
}

#[test]
fn a_write_protected_namespace_stays_as_it_is() {
    let (mut drive, id) = drive_with_namespace();
    drive.write(id, 1, 0, &[1; PAGE_BYTES as usize]);
    let done = drive.admin(id, &set_feature(0x84, 1, 1), &[]);
    assert!(done.reply.status.is_success());
    assert!(done.synced, "what was written before is made durable");
    assert_eq!(drive.succeeds(id, &get_feature(0x84, 1, CURRENT, 0), &[]).0, 1);
    let mut drive = drive.restart();
    let id = drive.host();
    let write = io(IoOpcode::Write, 1, 0, 1);
    let reply = drive.command(id, 1, &write, &[2; PAGE_BYTES as usize]).reply;
    assert_eq!(reply.status, Status::NAMESPACE_IS_WRITE_PROTECTED);
    assert_eq!(drive.read(id, 1, 0, 1), [1; PAGE_BYTES as usize]);
    drive.succeeds(id, &set_feature(0x84, 1, 0), &[]);
    drive.write(id, 1, 0, &[2; PAGE_BYTES as usize]);
}

#[test]
fn state_that_cannot_be_stored_fails_the_command() {
    let (mut drive, id) = drive_with_namespace();
    drive.memory.broken.store(true, Ordering::Relaxed);
    let reply = drive.refuses(id, &save_feature(0x01, 0, 3), &[], Status::INTERNAL_ERROR);
    assert!(!reply.do_not_retry);
    drive.refuses(id, &set_feature(0x84, 1, 1), &[], Status::INTERNAL_ERROR);
    let reply = drive.admin(id, &fdp_events(AdminOpcode::SetFeatures, 1, 0, 1, true), &[3]).reply;
    assert_eq!(reply.status, Status::INTERNAL_ERROR);
    drive.memory.broken.store(false, Ordering::Relaxed);
    for select in [CURRENT, SAVED] {
        assert_eq!(drive.succeeds(id, &get_feature(0x01, 0, select, 0), &[]).0, 0);
    }
    assert_eq!(drive.succeeds(id, &get_feature(0x84, 1, CURRENT, 0), &[]).0, 0);
    let (_, enabled) = drive.succeeds(id, &fdp_events(AdminOpcode::GetFeatures, 1, 0, 6, false), &[]);
    assert!(enabled.chunks(2).all(|event| event[1] == 0));
}
