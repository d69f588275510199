//! Log pages, asynchronous events, Abort and Keep Alive as hosts see them. The tests check bytes at
//! the standard's offsets, pages in pieces, the statuses of refused commands, and the commands of
//! real clients.

mod common;

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use common::commands::{
    CAPABILITIES, CURRENT, drive_with_namespace, enable_event, events, get_feature, get_piece, request_event, u16_at,
    u32_at, u64_at, u128_at, write_until_collected,
};
use common::{Drive, PAGE_BYTES, admin, get_log, io, set_feature};
use nvme::{ControllerKind, HostTransport};
use nvme_spec::command::SubmissionEntry;
use nvme_spec::log::SmartLog;
use nvme_spec::ocp::SmartExtendedLog;
use nvme_spec::{AdminOpcode, IoOpcode, Status};
use rand::{RngExt, SeedableRng};
use zerocopy::FromBytes;

/// Every log page with its other parameters.
const PAGES: [(u8, u16, u32); 20] = [
    (0x00, 0, 1024),
    (0x01, 0, 4096),
    (0x02, 0, 512),
    (0x03, 0, 512),
    (0x04, 0, 4096),
    (0x05, 0, 4096),
    (0x06, 0, 564),
    (0x09, 1, 512),
    (0x0f, 0, 8),
    (0x12, 0, 1024),
    (0x13, 0, 4096),
    (0x20, 1, 176),
    (0x21, 1, 40),
    (0x22, 1, 64),
    (0x23, 1, 4096),
    (0x81, 0, 512),
    (0xc0, 0, 512),
    (0xc1, 0, 512),
    (0xc3, 0, 512),
    (0xc4, 0, 4096),
];

/// SMART / Health Information Extended. Data center tools compute the same write amplification as
/// the device.
#[test]
fn tools_of_data_centers_find_the_counters_of_the_media() {
    let (mut drive, id) = drive_with_namespace();
    write_until_collected(&mut drive, id);
    let mut asked = get_log(0xc0, 0, 512);
    asked.cdw14 = 1.into();
    let page = drive.succeeds(id, &asked, &[]).1;
    let log = SmartExtendedLog::read_from_bytes(&page).expect("512 bytes");
    let stats = drive.subsystem.device().stats().clone();
    assert_eq!(log.pmuw.get(), u128::from(stats.media_bytes_written()));
    let smart = drive.succeeds(id, &get_log(0x02, 0, 512), &[]).1;
    let units = SmartLog::read_from_bytes(&smart).expect("512 bytes").duw.get();
    let found = log.pmuw.get() as f64 / (units as f64 * 512_000.0);
    let own = stats.write_amplification().expect("it was written");
    assert!(own > 1.0 && (found / own - 1.0).abs() < 0.05, "{found} and {own}");
    assert!(log.pmur.get() > 0, "collections read");
    assert!(log.mxudec.get() >= log.mnudec.get() && log.mxudec.get() > 0);
    assert!(log.pfb < 100);
    assert_eq!((log.lpv.get(), log.uio.get()), (3, 0));
    assert_eq!(page[496..500], [0xc5, 0xaf, 0x10, 0x28], "the page's GUID");
    asked.cdw14 = 2.into();
    drive.refuses(id, &asked, &[], Status::INVALID_FIELD);
}

#[test]
fn a_page_in_pieces_is_the_page() {
    let (mut drive, id) = drive_with_namespace();
    enable_event(&mut drive, id, 0, 0x80);
    write_until_collected(&mut drive, id);
    drive.refuses(id, &get_feature(0xc0, 0, CURRENT, 0), &[], Status::INVALID_FIELD);
    for (lid, specific, size_bytes) in PAGES {
        let (_, whole) = drive.succeeds(id, &get_piece(lid, specific, 0, size_bytes), &[]);
        assert_eq!(whole.len(), size_bytes as usize);
        for piece_bytes in [4, 16, 64, 508, 4096] {
            let mut pieces = Vec::new();
            for offset in (0..size_bytes).step_by(piece_bytes as usize) {
                let (_, piece) = drive.succeeds(id, &get_piece(lid, specific, offset.into(), piece_bytes), &[]);
                assert_eq!(piece.len(), piece_bytes as usize);
                pieces.extend(piece);
            }
            assert_eq!(
                pieces[..whole.len()],
                whole[..],
                "log page {lid:#x} in pieces of {piece_bytes}"
            );
            assert!(
                pieces[whole.len()..].iter().all(|&byte| byte == 0),
                "log page {lid:#x} goes on after its end"
            );
        }
    }
}

#[test]
fn offsets_that_make_no_sense_are_refused() {
    let (mut drive, id) = drive_with_namespace();
    for (lid, specific, size_bytes) in PAGES {
        let size_bytes = u64::from(size_bytes);
        let (_, nothing) = drive.succeeds(id, &get_piece(lid, specific, size_bytes, 8), &[]);
        assert_eq!(nothing, [0; 8]);
        for offset in [size_bytes + 4, 1 << 32, u64::MAX - 3, 2] {
            let reply = drive.refuses(id, &get_piece(lid, specific, offset, 8), &[], Status::INVALID_FIELD);
            assert!(reply.do_not_retry && reply.more);
        }
        let by_index = SubmissionEntry {
            cdw14: (1 << 23).into(),
            ..get_log(lid, specific, 8)
        };
        drive.refuses(id, &by_index, &[], Status::INVALID_FIELD);
        drive.refuses(id, &get_log(lid, specific, 4 << 20), &[], Status::INVALID_FIELD);
        let (_, longest) = drive.succeeds(id, &get_piece(lid, specific, 0, 1 << 20), &[]);
        assert_eq!(longest.len(), 1 << 20);
    }
}

#[test]
fn what_is_listed_is_there_and_nothing_else() {
    for transport in [HostTransport::Pcie, HostTransport::Fabrics] {
        for kind in [ControllerKind::Io, ControllerKind::Discovery] {
            let mut drive = Drive::new();
            let id = drive.connect(transport, kind);
            let (_, logs) = drive.succeeds(id, &get_log(0x00, 0, 1024), &[]);
            let (_, features) = drive.succeeds(id, &get_log(0x12, 0, 1024), &[]);
            for code in 0..=255u8 {
                let listed = logs[usize::from(code) * 4] & 1 == 1;
                // The transport provides the discovery log page.
                if code != 0x70 {
                    let reply = drive.admin(id, &get_log(code, 1, 4), &[]).reply;
                    let expected = if listed {
                        Status::SUCCESS
                    } else {
                        Status::INVALID_LOG_PAGE
                    };
                    assert_eq!(
                        reply.status, expected,
                        "log page {code:#x} of {kind:?} over {transport:?}"
                    );
                }
                let listed = features[usize::from(code) * 4] & 1 == 1;
                let reply = drive.admin(id, &get_feature(code, 0, CAPABILITIES, 0), &[]).reply;
                assert_eq!(
                    reply.status.is_success(),
                    listed,
                    "feature {code:#x} of {kind:?} over {transport:?}"
                );
            }
        }
    }
}

#[test]
fn commands_that_are_listed_are_known() {
    let (mut drive, _) = drive_with_namespace();
    let fabrics = drive.connect(HostTransport::Fabrics, ControllerKind::Io);
    let (_, page) = drive.succeeds(fabrics, &get_log(0x05, 0, 4096), &[]);
    for opcode in 0..=255u8 {
        let entry = SubmissionEntry {
            opcode,
            nsid: 1.into(),
            cid: 7.into(),
            ..SubmissionEntry::default()
        };
        for (queue, table) in [(0, 0), (1, 1024)] {
            let listed = page[table + usize::from(opcode) * 4] & 1 == 1;
            let data = [0; 4096];
            let done = drive.try_command(fabrics, queue, &entry, &data);
            let known = done.is_none_or(|done| done.reply.status != Status::INVALID_COMMAND_OPCODE);
            assert_eq!(known, listed, "opcode {opcode:#x} in queue {queue}");
        }
    }
}

#[test]
fn effects_differ_by_transport_and_command_set() {
    let (mut drive, pcie) = drive_with_namespace();
    let fabrics = drive.connect(HostTransport::Fabrics, ControllerKind::Io);
    let (_, over_pcie) = drive.succeeds(pcie, &get_log(0x05, 0, 4096), &[]);
    let (_, over_fabrics) = drive.succeeds(fabrics, &get_log(0x05, 0, 4096), &[]);
    for opcode in [0x00, 0x01, 0x04, 0x05, 0x7c] {
        assert_eq!(
            (u32_at(&over_pcie, opcode * 4), u32_at(&over_fabrics, opcode * 4)),
            (1, 0),
            "{opcode:#x}"
        );
    }
    assert_eq!(over_pcie[1024..], over_fabrics[1024..], "I/O commands are the same");
    assert_eq!(
        u32_at(&over_pcie, 0x0d * 4),
        1 | 1 << 3,
        "Namespace Management changes the inventory"
    );
    assert_eq!(u32_at(&over_pcie, 0x80 * 4), 1 | 1 << 1 | 1 << 2 | 1 << 16, "Format");
    assert_eq!(
        u32_at(&over_pcie, 1024 + 4),
        0b11,
        "Write changes content, and nothing that Linux would warn of"
    );
    assert_eq!(u32_at(&over_pcie, 1024 + 0x12 * 4), 1, "I/O Management Receive");
    let zoned = SubmissionEntry {
        cdw14: (2 << 24).into(),
        ..get_log(0x05, 0, 4096)
    };
    let (_, page) = drive.succeeds(pcie, &zoned, &[]);
    assert_eq!(page[..1024], over_pcie[..1024]);
    assert_eq!(page[1024..], [0; 3072], "no zoned commands");
}

#[test]
fn smart_counts_what_hosts_did() {
    let (mut drive, id) = drive_with_namespace();
    let blocks = 130;
    drive.write(id, 1, 0, &vec![1; blocks * PAGE_BYTES as usize]);
    drive.read(id, 1, 0, 3);
    drive.now = 2 * 3_600_000_000_000 + 1;
    let (_, page) = drive.succeeds(id, &get_log(0x02, 0, 512), &[]);
    assert_eq!(page[0], 0, "no critical warning");
    assert_eq!(u16_at(&page, 1), 313);
    assert_eq!(page[3..6], [100, 10, 0]);
    assert_eq!(
        u128_at(&page, 32),
        1,
        "3 blocks read are less than one unit of 512000 bytes"
    );
    assert_eq!(u128_at(&page, 48), 2, "130 blocks are 532480 bytes");
    assert_eq!((u128_at(&page, 64), u128_at(&page, 80)), (1, 1));
    assert_eq!(u128_at(&page, 112), 1, "power cycles");
    assert_eq!(u128_at(&page, 128), 2, "hours");
    assert_eq!(u128_at(&page, 176), 0, "no errors");
    let of_all = SubmissionEntry {
        nsid: 0.into(),
        ..get_log(0x02, 0, 512)
    };
    drive.succeeds(id, &of_all, &[]);
    let of_one = SubmissionEntry {
        nsid: 1.into(),
        ..get_log(0x02, 0, 512)
    };
    drive.refuses(id, &of_one, &[], Status::INVALID_FIELD);
    let (_, page) = drive.succeeds(id, &get_log(0x02, 0, 512), &[]);
    assert_eq!(u128_at(&page, 176), 1, "one error");
}

#[test]
fn the_endurance_group_has_capacity_and_media_writes() {
    let (mut drive, id) = drive_with_namespace();
    write_until_collected(&mut drive, id);
    let (_, page) = drive.succeeds(id, &get_log(0x09, 1, 512), &[]);
    assert_eq!((page[0], page[3], page[4], page[5]), (0, 100, 10, 0));
    assert_eq!(u128_at(&page, 32), 0, "no endurance estimate");
    let stats = drive.subsystem.device().stats();
    assert_eq!(
        u128_at(&page, 64),
        u128::from(stats.host_bytes_written().div_ceil(1_000_000_000))
    );
    assert_eq!(
        u128_at(&page, 80),
        u128::from(stats.media_bytes_written().div_ceil(1_000_000_000))
    );
    assert_eq!(
        u128_at(&page, 112),
        u128::from(stats.host_bytes_written() / PAGE_BYTES),
        "writes of one block each"
    );
    assert_eq!(u128_at(&page, 160), u128::from(drive.subsystem.capacity_bytes()));
    assert_eq!(u128_at(&page, 176), 0, "one namespace has it all");
    let mut empty = Drive::new();
    let id = empty.host();
    let (_, page) = empty.succeeds(id, &get_log(0x09, 1, 512), &[]);
    assert_eq!(u128_at(&page, 176), u128_at(&page, 160), "no namespace has any");
}

#[test]
fn the_error_log_says_which_command_and_where() {
    let (mut drive, id) = drive_with_namespace();
    let beyond = drive.subsystem.capacity_bytes() / PAGE_BYTES;
    let entry = SubmissionEntry {
        cid: 0x1234.into(),
        ..io(IoOpcode::Read, 1, beyond, 1)
    };
    let reply = drive.command(id, 3, &entry, &[]).reply;
    assert_eq!(
        (reply.status, reply.do_not_retry, reply.more),
        (Status::LBA_OUT_OF_RANGE, true, true)
    );
    drive.refuses(id, &get_feature(0x03, 0, CURRENT, 0), &[], Status::INVALID_FIELD);
    let (_, page) = drive.succeeds(id, &get_log(0x01, 0, 4096), &[]);
    let (newest, oldest) = (&page[..64], &page[64..128]);
    assert_eq!((u64_at(newest, 0), u64_at(oldest, 0)), (2, 1));
    assert_eq!(u16_at(oldest, 8), 3, "queue");
    assert_eq!(u16_at(oldest, 10), 0x1234);
    // Status with More and Do Not Retry, over the phase tag.
    assert_eq!(u16_at(oldest, 12), (0x80 | 0b11 << 13) << 1);
    assert_eq!(u16_at(oldest, 14), 40, "command dword 10");
    assert_eq!(u64_at(oldest, 16), beyond);
    assert_eq!(u32_at(oldest, 24), 1);
    assert_eq!((oldest[31], oldest[63]), (IoOpcode::Read.code(), 1));
    assert_eq!((newest[31], u16_at(newest, 8)), (AdminOpcode::GetFeatures.code(), 0));
    assert_eq!(page[128..], [0; 4096 - 128]);
    let logged: Vec<&str> = drive
        .subsystem
        .controller(id)
        .errors
        .iter()
        .map(|(_, cause)| cause)
        .collect();
    assert_eq!(logged[0], "the controller does not support feature 0x03");
    assert!(logged[1].contains("exceed the namespace"), "{}", logged[1]);
    // Another host has other errors, the count goes on.
    let other = drive.host();
    let (_, page) = drive.succeeds(other, &get_log(0x01, 0, 64), &[]);
    assert_eq!(page, [0; 64]);
    drive.refuses(other, &get_feature(0x03, 0, CURRENT, 0), &[], Status::INVALID_FIELD);
    let (_, page) = drive.succeeds(other, &get_log(0x01, 0, 64), &[]);
    assert_eq!(u64_at(&page, 0), 3);
}

/// All log pages (by code) and admin and I/O commands (by opcode) that Identify Controller reports
/// must work, and no others.
#[test]
fn what_identify_says_is_supported_answers_and_nothing_else_does() {
    for transport in [HostTransport::Pcie, HostTransport::Fabrics] {
        let mut drive = Drive::new();
        let id = drive.connect(transport, ControllerKind::Io);
        let (_, identify) = drive.succeeds(id, &common::identify(1, 0), &[]);
        let bit = |field: u32, bit: u32| field >> bit & 1 == 1;
        let (_, effects) = drive.succeeds(id, &get_log(0x05, 0, 4096), &[]);
        let (_, features) = drive.succeeds(id, &get_log(0x12, 0, 1024), &[]);
        let has_admin = |opcode: usize| effects[opcode * 4] & 1 == 1;
        let has_io = |opcode: usize| effects[1024 + opcode * 4] & 1 == 1;
        let has_feature = |code: usize| features[code * 4] & 1 == 1;
        let mut has_log = |code: u8| drive.admin(id, &get_log(code, 1, 4), &[]).reply.status == Status::SUCCESS;
        let lpa = u32::from(identify[261]);
        for (number, pages) in [
            (1, &[0x05][..]),
            (3, &[0x07, 0x08]),
            (4, &[0x0d]),
            (5, &[0x00, 0x12, 0x13]),
        ] {
            for &page in pages {
                assert_eq!(bit(lpa, number), has_log(page), "LPA bit {number}, page {page:#x}");
            }
        }
        assert!(!bit(lpa, 6), "data area 4 of telemetry, which there is not");
        let ctratt = u32_at(&identify, 96);
        assert_eq!(bit(ctratt, 5), has_log(0x0a), "predictable latency");
        assert_eq!(bit(ctratt, 4), has_log(0x09), "endurance groups");
        assert_eq!(bit(ctratt, 19), has_log(0x20) && has_feature(0x1d), "placement");
        assert_eq!(bit(ctratt, 3), has_feature(0x12), "read recovery levels");
        assert_eq!(bit(ctratt, 1), has_feature(0x11), "permissive mode");
        for (number, cns) in [(2, 0x04), (4, 0x19), (7, 0x16), (9, 0x17), (10, 0x18)] {
            let reply = drive.admin(id, &common::identify(cns, 0), &[]).reply;
            assert_eq!(
                bit(ctratt, number),
                reply.status == Status::SUCCESS,
                "CTRATT bit {number}"
            );
        }
        for number in 11..=14 {
            assert_eq!(
                bit(ctratt, number),
                has_admin(0x20),
                "Capacity Management, CTRATT bit {number}"
            );
        }
        // A 128-bit host identifier is that of Connect on Fabrics, and can be set on PCI Express.
        assert!(bit(ctratt, 0) && has_feature(0x81));
        let offset = SubmissionEntry {
            cdw12: 4.into(),
            ..get_log(0x02, 0, 8)
        };
        let reply = drive.admin(id, &offset, &[]).reply;
        assert_eq!(bit(lpa, 2), reply.status == Status::SUCCESS, "offsets");
        let of_namespace = SubmissionEntry {
            nsid: 1.into(),
            ..get_log(0x02, 0, 8)
        };
        let reply = drive.admin(id, &of_namespace, &[]).reply;
        assert_eq!(bit(lpa, 0), reply.status == Status::SUCCESS, "health of namespaces");
        let oacs = u32::from(u16_at(&identify, 256));
        for (number, opcodes) in [
            (0, &[0x81, 0x82][..]),
            (1, &[0x80]),
            (2, &[0x10, 0x11]),
            (3, &[0x0d, 0x15]),
            (4, &[0x14]),
            (5, &[0x19, 0x1a]),
            (6, &[0x1d, 0x1e]),
            (7, &[0x1c]),
            (8, &[0x7c]),
            (9, &[0x86]),
            (10, &[0x24]),
            (11, &[0x41, 0x42, 0x45, 0x46]),
        ] {
            for &opcode in opcodes {
                assert_eq!(bit(oacs, number), has_admin(opcode), "OACS bit {number}, {opcode:#x}");
            }
        }
        assert_eq!(oacs >> 12, 0);
        let oncs = u32::from(u16_at(&identify, 520));
        for (number, opcodes) in [
            (0, &[0x05][..]),
            (1, &[0x04]),
            (2, &[0x09]),
            (3, &[0x08]),
            (5, &[0x0d, 0x0e, 0x11, 0x15]),
            (7, &[0x0c]),
            (8, &[0x19]),
        ] {
            for &opcode in opcodes {
                assert_eq!(bit(oncs, number), has_io(opcode), "ONCS bit {number}, {opcode:#x}");
            }
        }
        assert_eq!(bit(oncs, 6), has_feature(0x0e), "timestamp");
        let saved = SubmissionEntry {
            cdw10: (2 << 8 | 0x04).into(),
            ..admin(AdminOpcode::GetFeatures, 0)
        };
        let reply = drive.admin(id, &saved, &[]).reply;
        assert_eq!(bit(oncs, 4), reply.status == Status::SUCCESS, "select and save");
        assert_eq!(
            bit(u32::from(identify[525]), 0),
            has_feature(0x06),
            "volatile write cache"
        );
    }
}

#[test]
fn firmware_and_self_tests() {
    let (mut drive, id) = drive_with_namespace();
    let (_, page) = drive.succeeds(id, &get_log(0x03, 0, 512), &[]);
    assert_eq!(page[0], 1);
    assert_eq!(page[8..16], *b"1.0     ");
    assert_eq!(page[16..], [0; 496]);
    let (_, page) = drive.succeeds(id, &get_log(0x06, 0, 564), &[]);
    assert_eq!(page[..4], [0; 4]);
    assert!(page[4..].chunks(28).all(|result| result[0] == 0x0f), "no test was run");
    let short = SubmissionEntry {
        cdw10: 1.into(),
        ..admin(AdminOpcode::DeviceSelfTest, 1)
    };
    drive.succeeds(id, &short, &[]);
    drive.now += 2_000_000_000;
    let (_, page) = drive.succeeds(id, &get_log(0x06, 0, 564), &[]);
    assert_eq!(page[4], 0x10, "a short test that found nothing");
    assert_eq!((page[6], u32_at(&page, 4 + 12)), (1, 1), "of namespace 1");
    assert_eq!(page[32], 0x0f);
}

#[test]
fn sanitize_is_followed_to_its_end() {
    let (mut drive, id) = drive_with_namespace();
    let (_, page) = drive.succeeds(id, &get_log(0x81, 0, 512), &[]);
    assert_eq!(
        (u16_at(&page, 0), u16_at(&page, 2)),
        (0xffff, 0x100),
        "never sanitized, never written"
    );
    drive.write(id, 1, 0, &[1; PAGE_BYTES as usize]);
    let (_, page) = drive.succeeds(id, &get_log(0x81, 0, 512), &[]);
    assert_eq!(u16_at(&page, 2), 0);
    assert!(request_event(&mut drive, id, 40).is_none());
    let block_erase = SubmissionEntry {
        cdw10: 2.into(),
        ..admin(AdminOpcode::Sanitize, 0)
    };
    drive.succeeds(id, &block_erase, &[]);
    let (_, page) = drive.succeeds(id, &get_log(0x81, 0, 512), &[]);
    assert_eq!(
        (u16_at(&page, 0), u16_at(&page, 2), u32_at(&page, 4), page[36]),
        (0, 2, 2, 1)
    );
    assert_eq!(u32_at(&page, 12), 0xffff_ffff, "no estimate");
    drive.tick();
    let (_, page) = drive.succeeds(id, &get_piece(0x81, 0, 0, 512), &[]);
    assert_eq!(
        (u16_at(&page, 0), u16_at(&page, 2), page[36]),
        (0xffff, 0x101, 0),
        "all data erased"
    );
    // I/O command specific status, Sanitize Operation Completed, log page 81h.
    assert_eq!(events(&mut drive, id), [(40, 0x0081_0106)]);
    drive.write(id, 1, 0, &[1; PAGE_BYTES as usize]);
    let (_, page) = drive.succeeds(id, &get_log(0x81, 0, 512), &[]);
    assert_eq!(u16_at(&page, 2), 1, "written since");
}

#[test]
fn a_changed_namespace_is_told_and_listed_until_it_is_read() {
    let mut drive = Drive::new();
    let (first, second) = (drive.host(), drive.host());
    let woken = Arc::new(AtomicU64::new(0));
    let count = woken.clone();
    drive
        .subsystem
        .set_waker(first, Arc::new(move || _ = count.fetch_add(1, Ordering::Relaxed)));
    drive.succeeds(first, &set_feature(0x0b, 0, 0x100), &[]);
    assert!(request_event(&mut drive, first, 11).is_none());
    assert!(request_event(&mut drive, second, 12).is_none());
    assert_eq!(woken.load(Ordering::Relaxed), 0);
    let mut structure = vec![0; 4096];
    structure[..8].copy_from_slice(&100u64.to_le_bytes());
    structure[8..16].copy_from_slice(&100u64.to_le_bytes());
    structure[102] = 1;
    let (nsid, _) = drive.succeeds(second, &admin(AdminOpcode::NamespaceManagement, 0), &structure);
    let mut controllers = vec![0; 4096];
    controllers[0] = 1;
    controllers[2] = first as u8;
    drive.succeeds(
        second,
        &admin(AdminOpcode::NamespaceAttachment, nsid as u32),
        &controllers,
    );
    assert!(woken.load(Ordering::Relaxed) > 0);
    // Notice, namespace attribute changed, log page 04h.
    assert_eq!(events(&mut drive, first), [(11, 0x0004_0002)]);
    assert_eq!(events(&mut drive, second), [], "not configured");
    assert!(request_event(&mut drive, first, 13).is_none());

    let (_, list) = drive.succeeds(first, &get_piece(0x04, 0, 0, 4096), &[]);
    assert_eq!(u32_at(&list, 0), nsid as u32);
    assert_eq!(list[4..], [0; 4092]);
    let (_, list) = drive.succeeds(first, &get_log(0x04, 0, 4096), &[]);
    assert_eq!(u32_at(&list, 0), nsid as u32, "retained by the first read");
    let (_, list) = drive.succeeds(first, &get_log(0x04, 0, 4096), &[]);
    assert_eq!(list, [0; 4096], "cleared by the second");
    assert_eq!(events(&mut drive, first), []);

    controllers[2] = first as u8;
    let detach = SubmissionEntry {
        cdw10: 1.into(),
        ..admin(AdminOpcode::NamespaceAttachment, nsid as u32)
    };
    drive.succeeds(second, &detach, &controllers);
    assert_eq!(events(&mut drive, first), [(13, 0x0004_0002)]);
}

#[test]
fn temperature_events_are_masked_until_the_health_log_is_read() {
    let (mut drive, id) = drive_with_namespace();
    drive.succeeds(id, &set_feature(0x04, 0, 300), &[]);
    assert!(request_event(&mut drive, id, 1).is_none());
    let (_, page) = drive.succeeds(id, &get_piece(0x02, 0, 0, 512), &[]);
    assert_eq!(page[0], 0b10, "over the threshold");
    assert_eq!(events(&mut drive, id), [], "not configured");
    drive.succeeds(id, &set_feature(0x0b, 0, 0xff), &[]);
    // SMART / Health status, temperature threshold, log page 02h.
    assert_eq!(events(&mut drive, id), [(1, 0x0002_0101)]);

    assert!(request_event(&mut drive, id, 2).is_none());
    drive.succeeds(id, &set_feature(0x04, 0, 343), &[]);
    drive.succeeds(id, &set_feature(0x04, 0, 1 << 20 | 320), &[]);
    assert_eq!(events(&mut drive, id), [], "masked");
    drive.succeeds(id, &get_piece(0x02, 0, 0, 512), &[]);
    assert_eq!(events(&mut drive, id), [], "retained");
    drive.succeeds(id, &get_log(0x02, 0, 512), &[]);
    assert_eq!(events(&mut drive, id), [], "cleared by reading");
    drive.succeeds(id, &set_feature(0x04, 0, 1 << 20), &[]);
    drive.succeeds(id, &set_feature(0x04, 0, 313), &[]);
    assert_eq!(events(&mut drive, id), [(2, 0x0002_0101)], "told again");
}

#[test]
fn failing_storage_degrades_the_drive_and_its_endurance_group() {
    let (mut drive, id) = drive_with_namespace();
    drive.succeeds(id, &set_feature(0x0b, 0, 0x40ff), &[]);
    drive.succeeds(id, &set_feature(0x18, 0, 0x0004_0001), &[]);
    for cid in [1, 2] {
        assert!(request_event(&mut drive, id, cid).is_none());
    }
    drive.memory.broken.store(true, Ordering::Relaxed);
    let reply = drive.command(id, 1, &io(IoOpcode::Read, 1, 0, 1), &[]).reply;
    assert_eq!(
        (reply.status, reply.do_not_retry),
        (Status::UNRECOVERED_READ_ERROR, false)
    );
    drive.memory.broken.store(false, Ordering::Relaxed);
    // Reliability (SMART / Health), and endurance group event aggregate log change (Notice, log
    // page 0Fh).
    assert_eq!(events(&mut drive, id), [(1, 0x0002_0001), (2, 0x000f_0602)]);
    let (_, page) = drive.succeeds(id, &get_log(0x02, 0, 512), &[]);
    assert_eq!((page[0], page[6], u128_at(&page, 160)), (0b100, 0b100, 1));
    let (_, aggregate) = drive.succeeds(id, &get_log(0x0f, 0, 12), &[]);
    assert_eq!((u64_at(&aggregate, 0), u16_at(&aggregate, 8)), (1, 1));
    let (_, group) = drive.succeeds(id, &get_log(0x09, 1, 512), &[]);
    assert_eq!(group[0], 0b100);
    let (_, aggregate) = drive.succeeds(id, &get_log(0x0f, 0, 12), &[]);
    assert_eq!(aggregate, [0; 12], "read, so over");
}

#[test]
fn requests_are_limited_and_can_be_aborted() {
    let (mut drive, id) = drive_with_namespace();
    for cid in 1..=4 {
        assert!(request_event(&mut drive, id, cid).is_none());
    }
    let reply = request_event(&mut drive, id, 5).expect("a completion").reply;
    assert_eq!(reply.status, Status::ASYNC_EVENT_REQUEST_LIMIT_EXCEEDED);
    assert_eq!((reply.status.sct(), reply.status.sc()), (1, 0x05));
    let abort = |queue: u32, cid: u32| SubmissionEntry {
        cdw10: (cid << 16 | queue).into(),
        ..admin(AdminOpcode::Abort, 0)
    };
    assert_eq!(drive.succeeds(id, &abort(0, 3), &[]).0, 0, "aborted");
    let completions = drive.subsystem.async_completions(id);
    assert_eq!(completions.len(), 1);
    assert_eq!(
        (completions[0].cid, completions[0].reply.status),
        (3, Status::ABORT_REQUESTED)
    );
    assert_eq!(drive.succeeds(id, &abort(0, 3), &[]).0, 1, "not there any more");
    assert_eq!(drive.succeeds(id, &abort(1, 2), &[]).0, 1, "another queue");
    assert_eq!(drive.succeeds(id, &abort(77, 2), &[]).0, 1);
    let reply = request_event(&mut drive, id, 4).expect("a completion").reply;
    assert_eq!(reply.status, Status::COMMAND_ID_CONFLICT);
    assert!(request_event(&mut drive, id, 5).is_none());
    // A reset drops the requests.
    drive.subsystem.reset_controller(id);
    drive.enable(id);
    assert_eq!(drive.subsystem.async_completions(id), []);
    assert!(request_event(&mut drive, id, 1).is_none());
}

#[test]
fn an_event_that_waits_completes_the_next_request() {
    let (mut drive, id) = drive_with_namespace();
    drive.succeeds(id, &set_feature(0x0b, 0, 0xff), &[]);
    drive.succeeds(id, &set_feature(0x04, 0, 300), &[]);
    let done = request_event(&mut drive, id, 1).expect("at once");
    assert_eq!(done.reply.result, 0x0002_0101);
    assert!(request_event(&mut drive, id, 2).is_none());
}

#[test]
fn keep_alive_holds_the_connection() {
    let (mut drive, _) = drive_with_namespace();
    let id = drive.connect(HostTransport::Fabrics, ControllerKind::Io);
    let get = get_feature(0x0f, 0, CURRENT, 0);
    assert_eq!(drive.succeeds(id, &get, &[]).0, 0);
    drive.succeeds(id, &set_feature(0x0f, 0, 5001), &[]);
    assert_eq!(drive.succeeds(id, &get, &[]).0, 5100, "rounded up to the granularity");
    drive.succeeds(id, &set_feature(0x0f, 0, u32::MAX), &[]);
    assert_eq!(drive.succeeds(id, &get, &[]).0, u64::from(u32::MAX));
    drive.succeeds(id, &set_feature(0x0f, 0, 1000), &[]);
    for _ in 0..5 {
        drive.now += 900_000_000;
        assert!(drive.subsystem.tick(drive.now).is_empty());
        drive.succeeds(id, &admin(AdminOpcode::KeepAlive, 0), &[]);
    }
    drive.now += 1_000_000_001;
    assert_eq!(drive.subsystem.tick(drive.now), [id]);
    drive.succeeds(id, &set_feature(0x0f, 0, 0), &[]);
    assert!(drive.subsystem.tick(drive.now).is_empty());
}

/// Without a connection, Keep Alive has no command, no timer and no reported support.
#[test]
fn keep_alive_is_not_for_pci_express() {
    let (mut drive, id) = drive_with_namespace();
    drive.refuses(
        id,
        &admin(AdminOpcode::KeepAlive, 0),
        &[],
        Status::INVALID_COMMAND_OPCODE,
    );
    drive.refuses(id, &set_feature(0x0f, 0, 1000), &[], Status::INVALID_FIELD);
    drive.refuses(id, &get_feature(0x0f, 0, CURRENT, 0), &[], Status::INVALID_FIELD);
    let fabrics = drive.connect(HostTransport::Fabrics, ControllerKind::Io);
    for (id, supported) in [(id, 0), (fabrics, 1)] {
        let (_, effects) = drive.succeeds(id, &get_log(0x05, 0, 4096), &[]);
        assert_eq!(effects[0x18 * 4] & 1, supported);
        let (_, effects) = drive.succeeds(id, &get_log(0x12, 0, 1024), &[]);
        assert_eq!(effects[0x0f * 4] & 1, supported);
    }
    drive.now += 1_000_000_000_000;
    assert!(drive.subsystem.tick(drive.now).is_empty());
}

#[test]
fn a_discovery_controller_has_little() {
    let (mut drive, _) = drive_with_namespace();
    let id = drive.connect(HostTransport::Fabrics, ControllerKind::Discovery);
    drive.succeeds(id, &set_feature(0x0f, 0, 1000), &[]);
    drive.succeeds(id, &set_feature(0x0b, 0, 0xffff_ffff), &[]);
    assert_eq!(drive.succeeds(id, &get_feature(0x0b, 0, CURRENT, 0), &[]).0, 1 << 31);
    drive.refuses(id, &set_feature(0x07, 0, 0), &[], Status::INVALID_FIELD);
    drive.refuses(id, &get_log(0x02, 0, 512), &[], Status::INVALID_LOG_PAGE);
    let (_, page) = drive.succeeds(id, &get_log(0x05, 0, 4096), &[]);
    let commands: HashSet<usize> = (0..256).filter(|opcode| page[opcode * 4] & 1 == 1).collect();
    assert_eq!(commands, HashSet::from([0x02, 0x06, 0x08, 0x09, 0x0a, 0x0c, 0x18]));
    assert!(page[1024..].iter().all(|&byte| byte == 0));
}

/// Random fields get an answer too, with the requested amount of data or with a status and an error
/// log entry.
#[test]
fn random_fields_are_answered() {
    const SEED: u64 = 23;
    let mut random = rand_xoshiro::Xoshiro256PlusPlus::seed_from_u64(SEED);
    let (mut drive, pcie) = drive_with_namespace();
    let fabrics = drive.connect(HostTransport::Fabrics, ControllerKind::Io);
    let opcodes = [
        AdminOpcode::GetLogPage,
        AdminOpcode::GetLogPage,
        AdminOpcode::GetFeatures,
        AdminOpcode::SetFeatures,
        AdminOpcode::Abort,
        AdminOpcode::AsynchronousEventRequest,
        AdminOpcode::KeepAlive,
    ];
    let mut succeeded = 0;
    for step in 0..20_000 {
        // Mostly small numbers, which are closest to valid ones.
        let mut number = || random.random::<u32>() >> random.random_range(0..32u32);
        let lid_or_fid = number() & 0xff;
        let mut entry = SubmissionEntry {
            cdw10: (lid_or_fid | number() << 8).into(),
            cdw11: (number() ^ number() << 16).into(),
            cdw12: number().into(),
            cdw13: if step % 4 == 0 { number() } else { 0 }.into(),
            cdw14: if step % 4 == 1 { number() } else { 0 }.into(),
            ..admin(opcodes[step % opcodes.len()], number())
        };
        if step % 3 == 0 {
            entry.nsid = 1.into();
        }
        entry.cid = (step as u16).into();
        let sent: Vec<u8> = (0..512).map(|_| random.random()).collect();
        let id = if step % 2 == 0 { pcie } else { fabrics };
        let transfer = drive
            .subsystem
            .accept(id, 0, &entry)
            .map(|accepted| accepted.transfer());
        let Some(done) = drive.try_command(id, 0, &entry, &sent) else {
            continue;
        };
        let context = format!("seed {SEED}, step {step}: {entry:?}");
        if !done.reply.status.is_success() {
            assert!(done.reply.more && done.data.is_empty(), "{context}");
            continue;
        }
        succeeded += 1;
        let transfer = transfer.expect(&context);
        if entry.opcode == AdminOpcode::GetLogPage.code() {
            let dwords = (entry.cdw11.get() & 0xffff) << 16 | entry.cdw10.get() >> 16;
            assert_eq!(done.data.len(), (dwords as usize + 1) * 4, "{context}");
            assert_eq!(done.data.len(), transfer.bytes, "{context}");
        }
    }
    assert!(
        succeeded > 2_000,
        "only {succeeded} of 20000 commands succeeded: the test has become weak"
    );
    assert!(drive.subsystem.async_completions(pcie).len() <= 4);
}
