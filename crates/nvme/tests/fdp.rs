//! Flexible Data Placement as hosts see it, with its log pages, features and events.

mod common;

use common::commands::{
    CAPABILITIES, CURRENT, DEFAULT, SAVED, drive_with_namespace, enable_event, fdp_events, get_fdp_events, get_feature,
    u16_at, u32_at, u64_at, u128_at, write_placed, write_until_collected,
};
use common::{Drive, PAGE_BYTES, RECLAIM_UNIT_BYTES, admin, config, get_log, io, set_fdp};
use nvme_spec::command::SubmissionEntry;
use nvme_spec::{AdminOpcode, IoOpcode, NSID_ALL, Status};

#[test]
fn fdp_configurations_are_as_the_standard_lays_them_out() {
    let (mut drive, id) = drive_with_namespace();
    // Reads the header, and then the size in the header, like Linux.
    let (_, header) = drive.succeeds(id, &get_log(0x20, 1, 16), &[]);
    assert_eq!(u16_at(&header, 0), 1, "two configurations, zeroes based");
    assert_eq!(header[2], 0);
    let descriptor_bytes = 64 + 4 * 4;
    assert_eq!(u32_at(&header, 4), 16 + 2 * descriptor_bytes);
    let (_, page) = drive.succeeds(id, &get_log(0x20, 1, u32_at(&header, 4)), &[]);
    assert_eq!(page[..16], header[..]);
    for (index, kind) in [(0, 1u8), (1, 2)] {
        let descriptor = &page[16 + index * descriptor_bytes as usize..][..descriptor_bytes as usize];
        assert_eq!(u32::from(u16_at(descriptor, 0)), descriptor_bytes);
        // Valid, a volatile write cache, no bits for the one reclaim group.
        assert_eq!(descriptor[2], 0x90);
        assert_eq!(descriptor[3], 0, "no vendor specific bytes");
        assert_eq!(u32_at(descriptor, 4), 1, "reclaim groups");
        assert_eq!(u16_at(descriptor, 8), 4, "handles");
        assert_eq!(u16_at(descriptor, 10), 3, "placement identifiers, zeroes based");
        assert_eq!(u32_at(descriptor, 12), 32, "namespaces");
        assert_eq!(u64_at(descriptor, 16), RECLAIM_UNIT_BYTES);
        assert_eq!(u32_at(descriptor, 24), 0, "no time limit");
        assert_eq!(descriptor[28..64], [0; 36]);
        assert_eq!(descriptor[64..], [kind, 0, 0, 0].repeat(4));
    }
}

#[test]
fn reclaim_groups_and_the_time_limit_are_told() {
    let mut config = config();
    config.device.geometry.reclaim_groups = 2;
    config.reclaim_unit_time_limit_s = 77;
    let mut drive = Drive::on(config, false);
    let id = drive.host();
    let (_, page) = drive.succeeds(id, &get_log(0x20, 1, 80), &[]);
    let descriptor = &page[16..];
    assert_eq!(descriptor[2], 0x81, "valid, no write cache, one bit for the reclaim group");
    assert_eq!(u32_at(descriptor, 4), 2);
    assert_eq!(u16_at(descriptor, 10), 2 * 4 - 1);
    assert_eq!(u32_at(descriptor, 24), 77);
}

/// A full reclaim group redirects data to another one. The time limit of the receiving reclaim unit
/// starts then.
#[test]
fn the_time_limit_counts_for_the_reclaim_unit_that_data_was_passed_on_to() {
    const GROUPS: u16 = 2;
    const WRITE_PAGES: u64 = 256;
    let mut config = config();
    config.namespace = true;
    config.device.geometry.reclaim_groups = GROUPS;
    config.reclaim_unit_time_limit_s = 77;
    let mut drive = Drive::on(config, false);
    let id = drive.host();
    let receive = SubmissionEntry { cdw10: 1.into(), cdw11: 1023.into(), ..io(IoOpcode::IoManagementReceive, 1, 0, 1) };
    // EARUTR and RUAMW of the first handle in the second group.
    let status = |drive: &mut Drive| {
        let data = drive.command(id, 1, &receive, &[]).data;
        let descriptor = &data[16 + 32..];
        assert_eq!((u16_at(descriptor, 0), u16_at(descriptor, 2)), (1 << 15, 0));
        (u32_at(descriptor, 4), u64_at(descriptor, 8))
    };
    assert_eq!(status(&mut drive), (77, RECLAIM_UNIT_BYTES / PAGE_BYTES));
    let pages = drive.subsystem.capacity_bytes() / PAGE_BYTES;
    for first in (0..pages).step_by(WRITE_PAGES as usize) {
        drive.now += 100_000_000;
        write_placed(&mut drive, id, first, WRITE_PAGES.min(pages - first), 0);
    }
    assert!(drive.subsystem.device().stats().pages_redirected > 0);
    // The last pages are in the second group, and so are their overwrites.
    let full = RECLAIM_UNIT_BYTES / PAGE_BYTES;
    let mut begun = None;
    let (_, mut before) = status(&mut drive);
    for turn in 0..3 * full {
        drive.now += 250_000_000;
        write_placed(&mut drive, id, pages - 1 - turn % 8, 1, 0);
        let (seconds, left) = status(&mut drive);
        if before == full {
            begun = Some(drive.now);
        }
        if let Some(begun) = begun.filter(|_| left < full) {
            let passed = ((drive.now - begun) / 1_000_000_000) as u32;
            assert_eq!(seconds, 77 - passed, "turn {turn}, {left} pages left");
        }
        before = left;
    }
    assert!(begun.is_some(), "no reclaim unit was begun");
}

#[test]
fn the_nominal_size_is_that_of_every_handle_or_of_a_superblock() {
    use ssd::config::{HandleOverride, ReclaimUnitSize};
    let nominal_bytes = |size: ReclaimUnitSize, first: Option<ReclaimUnitSize>| {
        let mut config = config();
        config.device.handles.reclaim_unit = size;
        config.device.handles.overrides.extend(first.map(|_| HandleOverride {
            index: 0,
            isolation: None,
            reclaim_unit: first,
            open_reclaim_units: None,
        }));
        let mut drive = Drive::of(config);
        let id = drive.host();
        let (_, page) = drive.succeeds(id, &get_log(0x20, 1, 80), &[]);
        u64_at(&page, 16 + 16)
    };
    assert_eq!(nominal_bytes(ReclaimUnitSize::Superblock, None), RECLAIM_UNIT_BYTES);
    assert_eq!(nominal_bytes(ReclaimUnitSize::Channel, None), RECLAIM_UNIT_BYTES / 2);
    assert_eq!(nominal_bytes(ReclaimUnitSize::Die, None), RECLAIM_UNIT_BYTES / 4);
    assert_eq!(nominal_bytes(ReclaimUnitSize::Fraction(1), None), RECLAIM_UNIT_BYTES);
    assert_eq!(nominal_bytes(ReclaimUnitSize::Die, Some(ReclaimUnitSize::Channel)), RECLAIM_UNIT_BYTES);
}

#[test]
fn without_fdp_only_the_configurations_are_answered() {
    let mut drive = Drive::new();
    let id = drive.host();
    drive.succeeds(id, &set_fdp(false, 0), &[]);
    for lid in [0x21, 0x22, 0x23] {
        let reply = drive.refuses(id, &get_log(lid, 1, 64), &[], Status::FDP_DISABLED);
        assert_eq!((reply.status.sct(), reply.status.sc(), reply.do_not_retry), (0, 0x29, true));
    }
    drive.succeeds(id, &get_log(0x20, 1, 16), &[]);
    for group in [0, 2, 0xffff] {
        for lid in [0x09, 0x20, 0x21, 0x22, 0x23] {
            drive.refuses(id, &get_log(lid, group, 16), &[], Status::INVALID_FIELD);
        }
    }
}

#[test]
fn handle_usage_says_whose_handles_are() {
    let mut drive = Drive::new();
    let id = drive.host();
    let (_, page) = drive.succeeds(id, &get_log(0x21, 1, 8 + 4 * 8), &[]);
    assert_eq!(u16_at(&page, 0), 4);
    assert_eq!(page[2..], [0; 38], "nobody's");
    // A namespace without a handle list gets a handle from the controller.
    let mut structure = vec![0; 4096];
    structure[..8].copy_from_slice(&100u64.to_le_bytes());
    structure[8..16].copy_from_slice(&100u64.to_le_bytes());
    structure[102] = 1;
    drive.succeeds(id, &admin(AdminOpcode::NamespaceManagement, 0), &structure);
    let (_, page) = drive.succeeds(id, &get_log(0x21, 1, 8 + 4 * 8), &[]);
    assert_eq!(page[8..].iter().step_by(8).collect::<Vec<_>>(), [&2, &0, &0, &0]);
    // The list names handles 3 and 1.
    structure[392] = 2;
    structure[512] = 3;
    structure[514] = 1;
    drive.succeeds(id, &admin(AdminOpcode::NamespaceManagement, 0), &structure);
    let (_, page) = drive.succeeds(id, &get_log(0x21, 1, 8 + 4 * 8), &[]);
    assert_eq!(page[8..].iter().step_by(8).collect::<Vec<_>>(), [&2, &1, &0, &1]);
    assert!(page[8..].chunks(8).all(|descriptor| descriptor[1..] == [0; 7]));
}

#[test]
fn statistics_are_the_devices() {
    let (mut drive, id) = drive_with_namespace();
    write_until_collected(&mut drive, id);
    let (_, page) = drive.succeeds(id, &get_log(0x22, 1, 64), &[]);
    let stats = drive.subsystem.device().stats();
    assert_eq!(u128_at(&page, 0), u128::from(stats.host_bytes_written()));
    assert_eq!(u128_at(&page, 16), u128::from(stats.media_bytes_written()));
    assert_eq!(u128_at(&page, 32), u128::from(stats.media_bytes_erased()));
    assert!(u128_at(&page, 16) > u128_at(&page, 0), "collection copied");
    assert_eq!(page[48..], [0; 16]);
}

#[test]
fn an_invalid_placement_identifier_is_a_host_event() {
    let (mut drive, id) = drive_with_namespace();
    write_placed(&mut drive, id, 0, 1, 9);
    let (_, page) = drive.succeeds(id, &get_fdp_events(true, 64), &[]);
    assert_eq!(u32_at(&page, 0), 0, "not enabled");

    enable_event(&mut drive, id, 0, 3);
    drive.now = 5_000_000;
    write_placed(&mut drive, id, 0, 1, 9);
    let (_, page) = drive.succeeds(id, &get_fdp_events(true, 4096), &[]);
    assert_eq!(u32_at(&page, 0), 1);
    assert_eq!(page[4..64], [0; 60]);
    let event = &page[64..128];
    assert_eq!(event[..2], [0x03, 0b011], "identifier and namespace are valid, the location is not");
    assert_eq!(u16_at(event, 2), 9);
    assert_eq!(event[4..12], [5, 0, 0, 0, 0, 0, 0, 0], "5 ms after the start");
    assert_eq!(u32_at(event, 12), 1);
    assert_eq!(event[16..], [0; 48]);
    assert_eq!(page[128..], [0; 4096 - 128]);
    let (_, page) = drive.succeeds(id, &get_fdp_events(false, 64), &[]);
    assert_eq!(u32_at(&page, 0), 0, "no controller event");
    // Reading does not remove events.
    let (_, page) = drive.succeeds(id, &get_fdp_events(true, 64), &[]);
    assert_eq!(u32_at(&page, 0), 1);
}

#[test]
fn media_reallocated_has_its_block_where_the_standard_puts_it() {
    let (mut drive, id) = drive_with_namespace();
    for handle in 0..4 {
        enable_event(&mut drive, id, handle, 0x80);
    }
    write_until_collected(&mut drive, id);
    let (_, page) = drive.succeeds(id, &get_fdp_events(false, 4096), &[]);
    let count = u32_at(&page, 0) as usize;
    assert!((1..=63).contains(&count), "{count} events");
    let blocks = drive.subsystem.capacity_bytes() / PAGE_BYTES;
    for event in page[64..].chunks(64).take(count) {
        assert_eq!(event[0], 0x80);
        assert_eq!(u32_at(event, 12), 1);
        assert_eq!(event[16], 1, "the block is valid");
        let moved = u64::from(u16_at(event, 18));
        assert!((1..RECLAIM_UNIT_BYTES / PAGE_BYTES).contains(&moved), "{moved} blocks");
        let lba = u64_at(event, 20);
        assert!(lba < blocks, "block {lba} of {blocks}");
        assert_eq!(event[28..32], [0; 4]);
        assert_eq!(event[35], 0, "SPDK reads the handle as two bytes");
        assert!(event[34] < 4);
    }
    let copied: u64 = page[64..].chunks(64).take(count).map(|event| u64::from(u16_at(event, 18))).sum();
    assert_eq!(copied, drive.subsystem.device().stats().total().gc_pages_copied);
}

#[test]
fn fdp_is_switched_on_and_off() {
    let mut drive = Drive::new();
    let id = drive.host();
    let get = |select| get_feature(0x1d, NSID_ALL, select, 1);
    assert_eq!(drive.succeeds(id, &get(CURRENT), &[]).0, 1);
    drive.succeeds(id, &set_fdp(false, 0), &[]);
    assert_eq!(drive.succeeds(id, &get(CURRENT), &[]).0, 0);
    assert_eq!(drive.succeeds(id, &get(SAVED), &[]).0, 0);
    assert_eq!(drive.succeeds(id, &get(DEFAULT), &[]).0, 1, "as the drive was made");
    drive.succeeds(id, &set_fdp(true, 1), &[]);
    assert_eq!(drive.succeeds(id, &get(CURRENT), &[]).0, 0x0101);
    assert!(drive.memory.state().fdp.enabled, "stored before the command completed");
    drive.refuses(id, &set_fdp(true, 9), &[], Status::INVALID_FIELD);
    drive.refuses(id, &get_feature(0x1d, 0, CURRENT, 2), &[], Status::INVALID_FIELD);
    let other_group = SubmissionEntry { cdw11: 2.into(), ..set_fdp(false, 0) };
    drive.refuses(id, &other_group, &[], Status::INVALID_FIELD);
    // CacheLib's instructions, `nvme set-feature -f 0x1D -c 0 -s`, without endurance group and with
    // namespace 0.
    let by_hand = SubmissionEntry { cdw11: 0.into(), ..set_fdp(false, 0) };
    drive.succeeds(id, &SubmissionEntry { nsid: 0.into(), ..by_hand }, &[]);
    assert_eq!(drive.succeeds(id, &get_feature(0x1d, 0, CURRENT, 0), &[]).0, 0);
    // The capabilities are saveable and changeable, without a namespace.
    assert_eq!(drive.succeeds(id, &get(CAPABILITIES), &[]).0, 0b101);
}

/// Open but unused reclaim units of a handle are not erased (FDP statistics, media bytes erased).
#[test]
fn switching_fdp_erases_what_was_written_only() {
    let mut eager = config();
    eager.device.handles.opening = ssd::config::UnitOpenPolicy::Eager;
    eager.namespace = true;
    let mut drive = Drive::of(eager);
    let id = drive.host();
    let erased = |drive: &mut Drive| {
        let (_, page) = drive.succeeds(id, &get_log(0x22, 1, 64), &[]);
        u64::from_le_bytes(page[32..40].try_into().unwrap())
    };
    drive.write(id, 1, 0, &[1; 4096]);
    let delete = SubmissionEntry { cdw10: 1.into(), ..admin(AdminOpcode::NamespaceManagement, 1) };
    drive.succeeds(id, &delete, &[]);
    assert_eq!(erased(&mut drive), 0);
    drive.succeeds(id, &set_fdp(true, 1), &[]);
    assert_eq!(erased(&mut drive), RECLAIM_UNIT_BYTES, "one of the open reclaim units was written to");
    drive.succeeds(id, &set_fdp(true, 0), &[]);
    assert_eq!(erased(&mut drive), RECLAIM_UNIT_BYTES, "and none since");
    drive.subsystem.device().check().expect("the counters agree");
}

#[test]
fn fdp_does_not_change_under_namespaces() {
    let (mut drive, id) = drive_with_namespace();
    let reply = drive.refuses(id, &set_fdp(false, 0), &[], Status::COMMAND_SEQUENCE_ERROR);
    assert_eq!(reply.status.sc(), 0x0c);
    assert_eq!(drive.succeeds(id, &get_feature(0x1d, 0, CURRENT, 1), &[]).0, 1);
}

#[test]
fn events_are_enabled_by_handle_and_type() {
    let (mut drive, id) = drive_with_namespace();
    let get = |handle, types| fdp_events(AdminOpcode::GetFeatures, 1, handle, types, false);
    let none = [0x00, 0, 0x01, 0, 0x02, 0, 0x03, 0, 0x80, 0, 0x81, 0];
    // nvme-cli requests 255 types, SPDK 6.
    for types in [255, 6] {
        assert_eq!(drive.succeeds(id, &get(0, types), &[]), (6, none.to_vec()));
    }
    assert_eq!(drive.succeeds(id, &get(0, 2), &[]), (2, none[..4].to_vec()));
    assert_eq!(drive.succeeds(id, &get(0, 0), &[]), (0, Vec::new()));

    // SPDK lists the existing types. The nvme-cli tool sends a count and 255 bytes.
    drive.succeeds(id, &fdp_events(AdminOpcode::SetFeatures, 1, 2, 6, true), &[0, 1, 2, 3, 0x80, 0x81]);
    let mut list = [0; 255];
    list[..2].copy_from_slice(&[0x80, 3]);
    drive.succeeds(id, &fdp_events(AdminOpcode::SetFeatures, 1, 2, 2, false), &list);
    let rest = [0x00, 1, 0x01, 1, 0x02, 1, 0x03, 0, 0x80, 0, 0x81, 1];
    assert_eq!(drive.succeeds(id, &get(2, 255), &[]), (6, rest.to_vec()));
    assert_eq!(drive.succeeds(id, &get(1, 255), &[]).1, none, "another handle");

    // xNVMe sends 255 types, all zero.
    drive.succeeds(id, &fdp_events(AdminOpcode::SetFeatures, 1, 1, 255, true), &[0; 255]);
    assert_eq!(drive.succeeds(id, &get(1, 255), &[]).1[..4], [0x00, 1, 0x01, 0]);
    // Types that this drive does not log stay out of its list.
    drive.succeeds(id, &fdp_events(AdminOpcode::SetFeatures, 1, 1, 2, true), &[0x7f, 0xf0]);
    assert_eq!(drive.succeeds(id, &get(1, 255), &[]).0, 6);

    let state = drive.memory.state();
    let (_, kept) = state.namespaces.iter().next().unwrap();
    assert!(kept.events_enabled[2].contains(0x81) && !kept.events_enabled[2].contains(0x80));
}

#[test]
fn events_need_fdp_a_namespace_and_a_handle() {
    let (mut drive, id) = drive_with_namespace();
    for opcode in [AdminOpcode::SetFeatures, AdminOpcode::GetFeatures] {
        drive.refuses(id, &fdp_events(opcode, 1, 4, 1, true), &[0], Status::INVALID_FIELD);
        drive.refuses(id, &fdp_events(opcode, 2, 0, 1, true), &[0], Status::INVALID_FIELD);
        drive.refuses(id, &fdp_events(opcode, 33, 0, 1, true), &[0], Status::INVALID_NAMESPACE_OR_FORMAT);
        drive.refuses(id, &fdp_events(opcode, 0, 0, 1, true), &[0], Status::INVALID_NAMESPACE_OR_FORMAT);
    }
    let of_all = |opcode| fdp_events(opcode, NSID_ALL, 0, 1, true);
    drive.refuses(id, &of_all(AdminOpcode::GetFeatures), &[], Status::INVALID_NAMESPACE_OR_FORMAT);
    drive.succeeds(id, &of_all(AdminOpcode::SetFeatures), &[1]);
    assert_eq!(drive.succeeds(id, &fdp_events(AdminOpcode::GetFeatures, 1, 0, 6, false), &[]).1[..4], [0, 0, 1, 1]);

    let mut plain = Drive::of(nvme::SubsystemConfig { fdp: false, namespace: true, ..config() });
    let id = plain.host();
    for opcode in [AdminOpcode::SetFeatures, AdminOpcode::GetFeatures] {
        plain.refuses(id, &fdp_events(opcode, 1, 0, 1, true), &[0], Status::FDP_DISABLED);
    }
}
