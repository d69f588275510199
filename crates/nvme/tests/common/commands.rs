//! Commands for tests of log pages, features and Flexible Data Placement, and fields of their
//! results.

use nvme_spec::command::SubmissionEntry;
use nvme_spec::{AdminOpcode, IoOpcode};
use rand::{RngExt, SeedableRng};

use super::{CommandResult, Drive, PAGE_BYTES, admin, config, get_log, io, set_feature};

pub fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes(bytes[at..at + 2].try_into().unwrap())
}

pub fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap())
}

pub fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap())
}

pub fn u128_at(bytes: &[u8], at: usize) -> u128 {
    u128::from_le_bytes(bytes[at..at + 16].try_into().unwrap())
}

/// A drive with one namespace over its capacity and a host on PCI Express.
pub fn drive_with_namespace() -> (Drive, u16) {
    let mut drive = Drive::of(nvme::SubsystemConfig { namespace: true, ..config() });
    let id = drive.host();
    (drive, id)
}

/// Set Features of a number, with the Save bit.
pub fn save_feature(fid: u8, nsid: u32, value: u32) -> SubmissionEntry {
    SubmissionEntry { cdw10: (1 << 31 | u32::from(fid)).into(), ..set_feature(fid, nsid, value) }
}

pub const CURRENT: u32 = 0;
pub const DEFAULT: u32 = 1;
pub const SAVED: u32 = 2;
pub const CAPABILITIES: u32 = 3;

pub fn get_feature(fid: u8, nsid: u32, select: u32, dword11: u32) -> SubmissionEntry {
    SubmissionEntry {
        cdw10: (u32::from(fid) | select << 8).into(),
        cdw11: dword11.into(),
        ..admin(AdminOpcode::GetFeatures, nsid)
    }
}

/// Feature 1Eh for one placement handle. `types` is the number of event types in the list.
pub fn fdp_events(opcode: AdminOpcode, nsid: u32, handle: u16, types: u8, enable: bool) -> SubmissionEntry {
    SubmissionEntry {
        cdw10: 0x1e.into(),
        cdw11: (u32::from(types) << 16 | u32::from(handle)).into(),
        cdw12: u32::from(enable).into(),
        ..admin(opcode, nsid)
    }
}

pub fn enable_event(drive: &mut Drive, id: u16, handle: u16, kind: u8) {
    drive.succeeds(id, &fdp_events(AdminOpcode::SetFeatures, 1, handle, 1, true), &[kind]);
}

/// Get Log Page with an offset that leaves events as they are (RAE).
pub fn get_piece(lid: u8, specific: u16, offset: u64, bytes: u32) -> SubmissionEntry {
    let entry = get_log(lid, specific, bytes);
    SubmissionEntry {
        cdw10: (entry.cdw10.get() | 1 << 15).into(),
        cdw12: (offset as u32).into(),
        cdw13: ((offset >> 32) as u32).into(),
        ..entry
    }
}

/// Get Log Page 23h.
pub fn get_fdp_events(host_events: bool, bytes: u32) -> SubmissionEntry {
    let entry = get_log(0x23, 1, bytes);
    SubmissionEntry { cdw10: (entry.cdw10.get() | u32::from(host_events) << 8).into(), ..entry }
}

/// A write with the data placement directive.
pub fn placed_write(nsid: u32, first: u64, count: u64, pid: u16) -> SubmissionEntry {
    let entry = io(IoOpcode::Write, nsid, first, count);
    SubmissionEntry { cdw12: (entry.cdw12.get() | 2 << 20).into(), cdw13: (u32::from(pid) << 16).into(), ..entry }
}

pub fn write_placed(drive: &mut Drive, id: u16, first: u64, count: u64, pid: u16) {
    let data = vec![0x5a; (count * PAGE_BYTES) as usize];
    let done = drive.command(id, 1, &placed_write(1, first, count, pid), &data);
    assert!(done.reply.status.is_success(), "{}", done.reply.status);
}

/// Overwrites pages at random through all handles until collection has copied.
pub fn write_until_collected(drive: &mut Drive, id: u16) {
    const SEED: u64 = 11;
    let mut random = rand_xoshiro::Xoshiro256PlusPlus::seed_from_u64(SEED);
    let pages = drive.subsystem.capacity_bytes() / PAGE_BYTES;
    for step in 0..pages * 4 {
        let first = random.random_range(0..pages);
        write_placed(drive, id, first, 1, random.random_range(0..4));
        let stats = drive.subsystem.device().stats();
        if step > pages && stats.total().gc_pages_copied > 0 {
            return;
        }
    }
    panic!("four drive writes and no collection that copied (seed {SEED})");
}

pub fn request_event(drive: &mut Drive, id: u16, cid: u16) -> Option<CommandResult> {
    let entry = SubmissionEntry { cid: cid.into(), ..admin(AdminOpcode::AsynchronousEventRequest, 0) };
    drive.try_command(id, 0, &entry, &[])
}

/// Completed event requests, each with command identifier and completion dword 0.
pub fn events(drive: &mut Drive, id: u16) -> Vec<(u16, u64)> {
    let completions = drive.subsystem.async_completions(id);
    completions.iter().map(|completion| (completion.cid, completion.reply.result)).collect()
}
