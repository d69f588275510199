//! Sizes, offsets and lists of log pages, and the commands that Identify announces.

use nvme::{ControllerKind, HostTransport};
use nvme_spec::command::SubmissionEntry;
use nvme_spec::{AdminOpcode, Status};
use rand::{RngExt, SeedableRng};

use crate::common::commands::{
    CAPABILITIES, CURRENT, drive_with_namespace, enable_event, get_feature, get_piece, u16_at, u32_at,
    write_until_collected,
};
use crate::common::{self, Drive, admin, get_log};

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
            assert_eq!(pieces[..whole.len()], whole[..], "log page {lid:#x} in pieces of {piece_bytes}");
            assert!(pieces[whole.len()..].iter().all(|&byte| byte == 0), "log page {lid:#x} goes on after its end");
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
        let by_index = SubmissionEntry { cdw14: (1 << 23).into(), ..get_log(lid, specific, 8) };
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
                    let expected = if listed { Status::SUCCESS } else { Status::INVALID_LOG_PAGE };
                    assert_eq!(reply.status, expected, "log page {code:#x} of {kind:?} over {transport:?}");
                }
                let listed = features[usize::from(code) * 4] & 1 == 1;
                let reply = drive.admin(id, &get_feature(code, 0, CAPABILITIES, 0), &[]).reply;
                assert_eq!(reply.status.is_success(), listed, "feature {code:#x} of {kind:?} over {transport:?}");
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
        let entry = SubmissionEntry { opcode, nsid: 1.into(), cid: 7.into(), ..SubmissionEntry::default() };
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
        assert_eq!((u32_at(&over_pcie, opcode * 4), u32_at(&over_fabrics, opcode * 4)), (1, 0), "{opcode:#x}");
    }
    assert_eq!(over_pcie[1024..], over_fabrics[1024..], "I/O commands are the same");
    assert_eq!(u32_at(&over_pcie, 0x0d * 4), 1 | 1 << 3, "Namespace Management changes the inventory");
    assert_eq!(u32_at(&over_pcie, 0x80 * 4), 1 | 1 << 1 | 1 << 2 | 1 << 16, "Format");
    assert_eq!(u32_at(&over_pcie, 1024 + 4), 0b11, "Write changes content, and nothing that Linux would warn of");
    assert_eq!(u32_at(&over_pcie, 1024 + 0x12 * 4), 1, "I/O Management Receive");
    let zoned = SubmissionEntry { cdw14: (2 << 24).into(), ..get_log(0x05, 0, 4096) };
    let (_, page) = drive.succeeds(pcie, &zoned, &[]);
    assert_eq!(page[..1024], over_pcie[..1024]);
    assert_eq!(page[1024..], [0; 3072], "no zoned commands");
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
        for (number, pages) in [(1, &[0x05][..]), (3, &[0x07, 0x08]), (4, &[0x0d]), (5, &[0x00, 0x12, 0x13])] {
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
            assert_eq!(bit(ctratt, number), reply.status == Status::SUCCESS, "CTRATT bit {number}");
        }
        for number in 11..=14 {
            assert_eq!(bit(ctratt, number), has_admin(0x20), "Capacity Management, CTRATT bit {number}");
        }
        // A 128-bit host identifier is that of Connect on Fabrics, and can be set on PCI Express.
        assert!(bit(ctratt, 0) && has_feature(0x81));
        let offset = SubmissionEntry { cdw12: 4.into(), ..get_log(0x02, 0, 8) };
        let reply = drive.admin(id, &offset, &[]).reply;
        assert_eq!(bit(lpa, 2), reply.status == Status::SUCCESS, "offsets");
        let of_namespace = SubmissionEntry { nsid: 1.into(), ..get_log(0x02, 0, 8) };
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
        let saved = SubmissionEntry { cdw10: (2 << 8 | 0x04).into(), ..admin(AdminOpcode::GetFeatures, 0) };
        let reply = drive.admin(id, &saved, &[]).reply;
        assert_eq!(bit(oncs, 4), reply.status == Status::SUCCESS, "select and save");
        assert_eq!(bit(u32::from(identify[525]), 0), has_feature(0x06), "volatile write cache");
    }
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
        let transfer = drive.subsystem.accept(id, 0, &entry).map(|accepted| accepted.transfer());
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
    assert!(succeeded > 2_000, "only {succeeded} of 20000 commands succeeded: the test has become weak");
    assert!(drive.subsystem.async_completions(pcie).len() <= 4);
}
