//! Switching Flexible Data Placement, and its directives.

use nvme_spec::command::{DirectiveCdw11, EnableDirectiveCdw12, SubmissionEntry};
use nvme_spec::{AdminOpcode, NSID_ALL, Status};
use ssd::config::Isolation;

use crate::common::{Drive, admin, config, set_fdp};
use crate::{delete, make_namespace};

#[test]
fn flexible_data_placement_is_switched_without_namespaces_only() {
    let mut isolated = config();
    isolated.namespace = true;
    let mut drive = Drive::of(isolated);
    let id = drive.host();
    drive.write(id, 1, 0, &[9; 4096]);
    let written = drive.subsystem.device().stats().host_bytes_written();
    drive.refuses(id, &set_fdp(false, 0), &[], Status::COMMAND_SEQUENCE_ERROR);
    delete(&mut drive, id, 1);
    drive.succeeds(id, &set_fdp(false, 0), &[]);
    assert!(!drive.subsystem.state().fdp.enabled && !drive.memory.state().fdp.enabled);

    // Without FDP, lists are ignored and namespaces have one handle.
    let nsid = make_namespace(&mut drive, id, 16, &[77, 77]);
    let (_, namespace) = drive.subsystem.namespaces().next().unwrap();
    assert_eq!((namespace.placement_handles.len(), namespace.host_specified_handles), (1, false));
    drive.write(id, nsid, 0, &[9; 4096]);
    drive.refuses(id, &set_fdp(true, 0), &[], Status::COMMAND_SEQUENCE_ERROR);
    delete(&mut drive, id, nsid);

    drive.refuses(id, &set_fdp(true, 2), &[], Status::INVALID_FIELD);
    drive.succeeds(id, &set_fdp(true, 1), &[]);
    let device = drive.subsystem.device();
    assert_eq!(device.config().handles.isolation, Isolation::PersistentlyIsolated, "configuration 1");
    assert_eq!(device.stats().host_bytes_written(), written + 4096, "the counters go on");
    assert_eq!(device.live_pages(), 0);
    make_namespace(&mut drive, id, 16, &[0, 1, 2, 3]);

    let drive = drive.restart();
    assert_eq!(drive.subsystem.state().fdp.configuration, 1);
}

#[test]
fn directives_show_data_placement_while_it_is_enabled() {
    let mut drive = Drive::new();
    let id = drive.host();
    let receive = |bytes: u32, doper: u8, dtype: u8| SubmissionEntry {
        cdw10: (bytes / 4 - 1).into(),
        cdw11: DirectiveCdw11::new().with_doper(doper).with_dtype(dtype).into_bits().into(),
        ..admin(AdminOpcode::DirectiveReceive, NSID_ALL)
    };
    let data = drive.succeeds(id, &receive(4096, 1, 0), &[]).1;
    // Supported, enabled and persistent directives. Bit 0 is Identify, bit 2 Data Placement.
    assert_eq!((data.len(), data[0], data[32], data[64]), (4096, 0b101, 0b101, 0b100));
    assert_eq!(drive.succeeds(id, &receive(64, 1, 0), &[]).1.len(), 64);
    for (doper, dtype) in [(2, 0), (1, 1), (1, 2), (0, 0)] {
        drive.refuses(id, &receive(4096, doper, dtype), &[], Status::INVALID_FIELD);
    }
    drive.refuses(id, &receive(2 << 20, 1, 0), &[], Status::INVALID_FIELD);

    let send = |enable: bool, directive: u8| SubmissionEntry {
        cdw11: DirectiveCdw11::new().with_doper(1).into_bits().into(),
        cdw12: EnableDirectiveCdw12::new().with_endir(enable).with_tdtype(directive).into_bits().into(),
        ..admin(AdminOpcode::DirectiveSend, NSID_ALL)
    };
    drive.succeeds(id, &send(true, 0), &[]);
    for (enable, directive) in [(false, 0), (true, 1), (true, 2), (false, 2)] {
        drive.refuses(id, &send(enable, directive), &[], Status::INVALID_FIELD);
    }

    drive.succeeds(id, &set_fdp(false, 0), &[]);
    let data = drive.succeeds(id, &receive(4096, 1, 0), &[]).1;
    assert_eq!((data[0], data[32], data[64]), (1, 1, 0));
}

/// Drive with four reclaim groups of one die each.
fn grouped() -> nvme::SubsystemConfig {
    let mut grouped = config();
    grouped.device.geometry.reclaim_groups = 4;
    grouped.device.geometry.reclaim_unit_bytes = 256 << 10;
    grouped.device.geometry.over_provisioning = 1.0;
    grouped
}

#[test]
fn without_placement_there_is_one_reclaim_group() {
    let mut drive = Drive::of(grouped());
    let id = drive.host();
    let with = drive.subsystem.device().layout().clone();
    make_namespace(&mut drive, id, 16, &[0]);
    drive.write(id, 1, 0, &[1; 4096 * 16]);
    delete(&mut drive, id, 1);
    drive.succeeds(id, &set_fdp(false, 0), &[]);
    let without = drive.subsystem.device().layout().clone();
    assert_eq!((with.groups, without.groups), (4, 1));
    // The same blocks, in superblocks over all dies.
    assert_eq!((with.blocks(), with.block_pages), (without.blocks(), without.block_pages));
    assert_eq!((with.logical_pages, with.physical_pages), (without.logical_pages, without.physical_pages));
    assert_eq!(without.superblock_pages, 4 * with.superblock_pages);
    assert_eq!(drive.subsystem.device().stats().host_bytes_written(), 4096 * 16);
}
