//! Contents of log pages.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use nvme::{ControllerKind, HostTransport};
use nvme_spec::command::SubmissionEntry;
use nvme_spec::log::SmartLog;
use nvme_spec::ocp::SmartExtendedLog;
use nvme_spec::{AdminOpcode, IoOpcode, Status};
use zerocopy::FromBytes;

use crate::common::commands::{
    CURRENT, drive_with_namespace, events, get_feature, get_piece, request_event, u16_at, u32_at, u64_at, u128_at,
    write_until_collected,
};
use crate::common::{Drive, PAGE_BYTES, admin, get_log, io, set_feature};

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
    assert_eq!(u128_at(&page, 32), 1, "3 blocks read are less than one unit of 512000 bytes");
    assert_eq!(u128_at(&page, 48), 2, "130 blocks are 532480 bytes");
    assert_eq!((u128_at(&page, 64), u128_at(&page, 80)), (1, 1));
    assert_eq!(u128_at(&page, 112), 1, "power cycles");
    assert_eq!(u128_at(&page, 128), 2, "hours");
    assert_eq!(u128_at(&page, 176), 0, "no errors");
    let of_all = SubmissionEntry { nsid: 0.into(), ..get_log(0x02, 0, 512) };
    drive.succeeds(id, &of_all, &[]);
    let of_one = SubmissionEntry { nsid: 1.into(), ..get_log(0x02, 0, 512) };
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
    assert_eq!(u128_at(&page, 64), u128::from(stats.host_bytes_written().div_ceil(1_000_000_000)));
    assert_eq!(u128_at(&page, 80), u128::from(stats.media_bytes_written().div_ceil(1_000_000_000)));
    assert_eq!(u128_at(&page, 112), u128::from(stats.host_bytes_written() / PAGE_BYTES), "writes of one block each");
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
    let entry = SubmissionEntry { cid: 0x1234.into(), ..io(IoOpcode::Read, 1, beyond, 1) };
    let reply = drive.command(id, 3, &entry, &[]).reply;
    assert_eq!((reply.status, reply.do_not_retry, reply.more), (Status::LBA_OUT_OF_RANGE, true, true));
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
    let logged: Vec<&str> = drive.subsystem.controller(id).errors.iter().map(|(_, cause)| cause).collect();
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
    let short = SubmissionEntry { cdw10: 1.into(), ..admin(AdminOpcode::DeviceSelfTest, 1) };
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
    assert_eq!((u16_at(&page, 0), u16_at(&page, 2)), (0xffff, 0x100), "never sanitized, never written");
    drive.write(id, 1, 0, &[1; PAGE_BYTES as usize]);
    let (_, page) = drive.succeeds(id, &get_log(0x81, 0, 512), &[]);
    assert_eq!(u16_at(&page, 2), 0);
    assert!(request_event(&mut drive, id, 40).is_none());
    let block_erase = SubmissionEntry { cdw10: 2.into(), ..admin(AdminOpcode::Sanitize, 0) };
    drive.succeeds(id, &block_erase, &[]);
    let (_, page) = drive.succeeds(id, &get_log(0x81, 0, 512), &[]);
    assert_eq!((u16_at(&page, 0), u16_at(&page, 2), u32_at(&page, 4), page[36]), (0, 2, 2, 1));
    assert_eq!(u32_at(&page, 12), 0xffff_ffff, "no estimate");
    drive.tick();
    let (_, page) = drive.succeeds(id, &get_piece(0x81, 0, 0, 512), &[]);
    assert_eq!((u16_at(&page, 0), u16_at(&page, 2), page[36]), (0xffff, 0x101, 0), "all data erased");
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
    drive.subsystem.set_waker(first, Arc::new(move || _ = count.fetch_add(1, Ordering::Relaxed)));
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
    drive.succeeds(second, &admin(AdminOpcode::NamespaceAttachment, nsid as u32), &controllers);
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
    let detach = SubmissionEntry { cdw10: 1.into(), ..admin(AdminOpcode::NamespaceAttachment, nsid as u32) };
    drive.succeeds(second, &detach, &controllers);
    assert_eq!(events(&mut drive, first), [(13, 0x0004_0002)]);
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
