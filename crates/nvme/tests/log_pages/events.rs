//! Asynchronous events and keep alive.

use std::sync::atomic::Ordering;

use nvme::{ControllerKind, HostTransport};
use nvme_spec::command::SubmissionEntry;
use nvme_spec::{AdminOpcode, IoOpcode, Status};

use crate::common::commands::{
    CURRENT, drive_with_namespace, events, get_feature, get_piece, request_event, u16_at, u64_at, u128_at,
};
use crate::common::{admin, get_log, io, set_feature};

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
    assert_eq!((reply.status, reply.do_not_retry), (Status::UNRECOVERED_READ_ERROR, false));
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
    let abort =
        |queue: u32, cid: u32| SubmissionEntry { cdw10: (cid << 16 | queue).into(), ..admin(AdminOpcode::Abort, 0) };
    assert_eq!(drive.succeeds(id, &abort(0, 3), &[]).0, 0, "aborted");
    let completions = drive.subsystem.async_completions(id);
    assert_eq!(completions.len(), 1);
    assert_eq!((completions[0].cid, completions[0].reply.status), (3, Status::ABORT_REQUESTED));
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
    drive.refuses(id, &admin(AdminOpcode::KeepAlive, 0), &[], Status::INVALID_COMMAND_OPCODE);
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
