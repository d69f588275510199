//! Sanitize: its progress, restart and failures, and refused actions.

use nvme::{ControllerKind, HostTransport};
use nvme_spec::command::{FormatNvmCdw10, SanitizeCdw10, SubmissionEntry};
use nvme_spec::log::SanitizeStatusLog;
use nvme_spec::{AdminOpcode, IoOpcode, Status};

use crate::common::{Drive, PAGE_BYTES, admin, get_log, io};
use crate::{delete_entry, format_entry, identify_namespace, large, make_namespace, read, sanitize_entry};

fn sanitize_log(drive: &mut Drive, id: u16) -> SanitizeStatusLog {
    read(&drive.succeeds(id, &get_log(0x81, 0, 512), &[]).1)
}

// ------------------------------------------------------------------------------- Sanitize --

#[test]
fn sanitizing_goes_on_in_the_background_and_keeps_others_out() {
    let mut drive = Drive::of(large());
    let id = drive.host();
    let pages = (384 << 20) / PAGE_BYTES;
    let nsid = make_namespace(&mut drive, id, pages, &[0]);
    drive.write(id, nsid, 0, &[1; 4096]);
    drive.write(id, nsid, pages - 1, &[2; 4096]);
    assert_eq!(sanitize_log(&mut drive, id).sstat.sos(), 0);

    let block_erase = SanitizeCdw10::new().with_sanact(2);
    drive.succeeds(id, &sanitize_entry(block_erase), &[]);
    let reply = drive.command(id, 1, &io(IoOpcode::Read, nsid, 0, 1), &[]).reply;
    assert_eq!((reply.status, reply.do_not_retry), (Status::SANITIZE_IN_PROGRESS, false));
    for entry in [
        sanitize_entry(block_erase),
        format_entry(nsid, FormatNvmCdw10::new()),
        delete_entry(nsid),
        get_log(0x06, 0, 512),
    ] {
        let reply = drive.refuses(id, &entry, &[], Status::SANITIZE_IN_PROGRESS);
        assert!(!reply.do_not_retry);
    }
    identify_namespace(&mut drive, id, nsid);
    drive.succeeds(id, &get_log(0x02, 0, 512), &[]);
    let fabrics = drive.connect(HostTransport::Fabrics, ControllerKind::Io);
    drive.succeeds(fabrics, &admin(AdminOpcode::KeepAlive, 0), &[]);
    let log = sanitize_log(&mut drive, id);
    assert_eq!((log.sprog.get(), log.sstat.sos(), log.scdw10.get()), (0, 2, 2));

    drive.tick();
    let log = sanitize_log(&mut drive, id);
    assert_eq!((log.sprog.get(), log.sstat.sos()), ((65536 * 256 / 384) as u16, 2));
    let synced = drive.memory.syncs.load(std::sync::atomic::Ordering::Relaxed);
    drive.tick();
    let log = sanitize_log(&mut drive, id);
    assert_eq!((log.sprog.get(), log.sstat.sos(), log.sstat.gde()), (0xffff, 1, true));
    assert_eq!(drive.memory.syncs.load(std::sync::atomic::Ordering::Relaxed), synced + 1);
    assert!(drive.memory.is_zero());
    assert_eq!(drive.subsystem.device().live_pages(), 0);
    drive.write(id, nsid, 0, &[3; 4096]);
    assert!(!sanitize_log(&mut drive, id).sstat.gde());
}

#[test]
fn sanitizing_begins_again_after_a_restart() {
    let mut drive = Drive::of(large());
    let id = drive.host();
    let nsid = make_namespace(&mut drive, id, (384 << 20) / PAGE_BYTES, &[0]);
    drive.write(id, nsid, 1, &[1; 4096]);
    drive.succeeds(id, &sanitize_entry(SanitizeCdw10::new().with_sanact(4).with_ause(true)), &[]);
    let mut drive = drive.restart();
    let id = drive.host();
    assert!(!drive.memory.is_zero());
    let log = sanitize_log(&mut drive, id);
    assert_eq!((log.sprog.get(), log.sstat.sos(), log.scdw10.get()), (0, 2, 4 | 1 << 3));
    drive.tick();
    drive.tick();
    assert_eq!(sanitize_log(&mut drive, id).sstat.sos(), 1);
    assert!(drive.memory.is_zero());
    let mut drive = drive.restart();
    let id = drive.host();
    assert_eq!(sanitize_log(&mut drive, id).sstat.sos(), 1);
}

#[test]
fn a_failed_sanitize_is_left_as_it_was_agreed() {
    use std::sync::atomic::Ordering;
    let exit = sanitize_entry(SanitizeCdw10::new().with_sanact(1));
    for unrestricted in [false, true] {
        let mut drive = Drive::new();
        let id = drive.host();
        let nsid = make_namespace(&mut drive, id, 16, &[0]);
        drive.succeeds(id, &exit, &[]);
        let erase = |ause| sanitize_entry(SanitizeCdw10::new().with_sanact(2).with_ause(ause));
        drive.succeeds(id, &erase(unrestricted), &[]);
        drive.memory.broken.store(true, Ordering::Relaxed);
        drive.tick();
        drive.memory.broken.store(false, Ordering::Relaxed);
        assert_eq!(sanitize_log(&mut drive, id).sstat.sos(), 3);
        let read = io(IoOpcode::Read, nsid, 0, 1);
        assert_eq!(drive.command(id, 1, &read, &[]).reply.status, Status::SANITIZE_FAILED);
        drive.refuses(id, &delete_entry(nsid), &[], Status::SANITIZE_FAILED);
        if unrestricted {
            drive.succeeds(id, &exit, &[]);
            assert!(drive.command(id, 1, &read, &[]).reply.status.is_success());
            assert_eq!(sanitize_log(&mut drive, id).sstat.sos(), 3, "it failed all the same");
        } else {
            drive.refuses(id, &exit, &[], Status::SANITIZE_FAILED);
            drive.refuses(id, &erase(true), &[], Status::SANITIZE_FAILED);
            drive.succeeds(id, &erase(false), &[]);
            drive.tick();
            assert_eq!(sanitize_log(&mut drive, id).sstat.sos(), 1);
            assert!(drive.command(id, 1, &read, &[]).reply.status.is_success());
        }
    }
}

#[test]
fn what_sanitize_cannot_do_is_refused() {
    let mut drive = Drive::new();
    let id = drive.host();
    for dword in [
        SanitizeCdw10::new(),
        SanitizeCdw10::new().with_sanact(3),
        SanitizeCdw10::new().with_sanact(5),
        SanitizeCdw10::new().with_sanact(2).with_ndas(true),
        SanitizeCdw10::new().with_sanact(2).with_emvs(true),
    ] {
        drive.refuses(id, &sanitize_entry(dword), &[], Status::INVALID_FIELD);
    }
    // No-Deallocate Response Mode, which deallocates anyway with a warning.
    let warn = SubmissionEntry { cdw10: 0x17.into(), cdw11: 1.into(), ..admin(AdminOpcode::SetFeatures, 0) };
    drive.succeeds(id, &warn, &[]);
    drive.succeeds(id, &sanitize_entry(SanitizeCdw10::new().with_sanact(2).with_ndas(true)), &[]);
    drive.tick();
    assert_eq!(sanitize_log(&mut drive, id).sstat.sos(), 4, "deallocated although the host set No-Deallocate");
}
