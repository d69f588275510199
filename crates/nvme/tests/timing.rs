//! Commands of a drive with timing, with the due times of completions and the reported life of the
//! device model.

mod common;
#[path = "common/timing.rs"]
mod times;

use common::{Drive, PAGE_BYTES, config, get_log, io, set_feature};
use nvme::NonVolatileState;
use nvme_spec::ocp::LatencyMonitorLog;
use nvme_spec::{IoOpcode, Status, SubmissionEntry};
use ssd::EnduranceConfig;
use zerocopy::FromBytes;

const READ_NS: u64 = 100_000;
const WRITE_NS: u64 = 50_000;

/// A drive with a namespace whose commands take time.
fn timed() -> (Drive, u16) {
    let mut config = config();
    config.device.timing = Some(times::controller_alone(READ_NS, WRITE_NS));
    config.namespace = true;
    let mut drive = Drive::of(config);
    drive.now = 1_000_000;
    let id = drive.host();
    (drive, id)
}

/// Nanoseconds until the completion of a command is due.
fn latency(drive: &mut Drive, id: u16, opcode: IoOpcode, first: u64, count: u64) -> u64 {
    let entry = io(opcode, 1, first, count);
    let mut data = match opcode {
        IoOpcode::Read | IoOpcode::Flush => Vec::new(),
        _ => vec![7; (count * PAGE_BYTES) as usize],
    };
    let outcome = drive.execute(id, 1, &entry, &mut data);
    assert!(outcome.reply.expect("it is complete").status.is_success());
    outcome.due - drive.now
}

#[test]
fn a_completion_is_due_when_the_device_is_done() {
    let (mut drive, id) = timed();
    let write = latency(&mut drive, id, IoOpcode::Write, 0, 1);
    assert!((WRITE_NS..WRITE_NS + 2000).contains(&write), "{write}");
    drive.now += 1_000_000;
    let read = latency(&mut drive, id, IoOpcode::Read, 0, 1);
    assert!((READ_NS..READ_NS + 2000).contains(&read), "{read}");
    drive.now += 1_000_000;
    assert_eq!(latency(&mut drive, id, IoOpcode::Flush, 0, 1), WRITE_NS);
    // Two concurrent commands on one core.
    drive.now += 1_000_000;
    let (first, second) =
        (latency(&mut drive, id, IoOpcode::Read, 0, 1), latency(&mut drive, id, IoOpcode::Read, 0, 1));
    assert!(second >= first + READ_NS - 2000, "{first}, {second}");
}

#[test]
fn without_timing_everything_is_due_at_once() {
    let mut config = config();
    config.namespace = true;
    let mut drive = Drive::of(config);
    let id = drive.host();
    for opcode in [IoOpcode::Write, IoOpcode::Read, IoOpcode::Flush] {
        assert_eq!(latency(&mut drive, id, opcode, 0, 1), 0);
    }
}

#[test]
fn the_clock_of_the_device_does_not_go_back() {
    let (mut drive, id) = timed();
    let _ = latency(&mut drive, id, IoOpcode::Write, 0, 1);
    drive.now = 0;
    let entry = io(IoOpcode::Read, 1, 0, 1);
    let outcome = drive.execute(id, 1, &entry, &mut Vec::new());
    assert!(outcome.due > 1_000_000 + READ_NS, "a transport that is late does not get its time back");
}

#[test]
fn the_logs_say_how_much_of_the_drive_is_used() {
    let mut config = config();
    config.namespace = true;
    config.device.endurance = Some(EnduranceConfig { rated_erases: 2, spread: 0.0, warranty_years: 5.0 });
    let mut drive = Drive::of(config);
    let id = drive.host();
    let used = |drive: &mut Drive| drive.succeeds(id, &get_log(0x02, 0, 512), &[]).1[5];
    assert_eq!(used(&mut drive), 0);
    let pages = u64::from(drive.subsystem.device().layout().logical_pages);
    for _ in 0..4 {
        for first in (0..pages).step_by(64) {
            drive.write(id, 1, first, &vec![1; (64.min(pages - first) * PAGE_BYTES) as usize]);
        }
    }
    let endurance = drive.subsystem.device().endurance().expect("it has a limit");
    assert!(endurance.life_used > 0.5, "{endurance:?}");
    assert_eq!(used(&mut drive), (100.0 * endurance.life_used) as u8);
}

/// Set Features C5h, with thresholds in units of 5 ms. A threshold of 0 means 5 ms.
fn configure_latency_monitor(thresholds: [u8; 4], discard: u8) -> (SubmissionEntry, Vec<u8>) {
    let mut data = vec![0; 4096];
    data[2..6].copy_from_slice(&thresholds);
    (data[6], data[7]) = (0xff, 0x0f);
    (data[11], data[12]) = (discard, 1);
    (set_feature(0xc5, 0, 0), data)
}

#[test]
fn the_latency_monitor_counts_what_takes_long() {
    let mut config = config();
    config.device.timing = Some(times::controller_alone(50_000_000, 12_000_000));
    config.namespace = true;
    let mut drive = Drive::of(config);
    let id = drive.host();
    let monitor = |drive: &mut Drive| {
        let page = drive.succeeds(id, &get_log(0xc3, 0, 512), &[]).1;
        LatencyMonitorLog::read_from_bytes(&page).expect("512 bytes")
    };
    for opcode in [IoOpcode::Write, IoOpcode::Read, IoOpcode::Read, IoOpcode::Verify] {
        let _ = latency(&mut drive, id, opcode, 0, 1);
        drive.now += 1_000_000_000;
    }
    let page = monitor(&mut drive);
    let counted =
        |page: &LatencyMonitorLog, bucket: usize| page.active.counters[bucket].commands.map(|count| count.get());
    assert_eq!(counted(&page, 0), [0, 0, 2], "of 30 ms and more; Verify is not counted");
    assert_eq!((page.active.measured[3][2].get(), page.active.stamp_units.get()), (50, 0));
    let stamp_ms = page.active.stamps[3][2].get();
    assert!((1050..=2050).contains(&stamp_ms), "since the drive was powered on: {stamp_ms}");
    // Thresholds of 5, 10, 15 and 20 ms, and a clock.
    let (entry, data) = configure_latency_monitor([0, 1, 2, 3], 0);
    drive.succeeds(id, &entry, &data);
    drive.succeeds(id, &set_feature(0x0e, 0, 0), &0x0190_0000_0000_u64.to_le_bytes());
    for opcode in [IoOpcode::Write, IoOpcode::Read] {
        let _ = latency(&mut drive, id, opcode, 0, 1);
        drive.now += 1_000_000_000;
    }
    let page = monitor(&mut drive);
    assert_eq!(counted(&page, 1), [0, 1, 0]);
    assert_eq!(counted(&page, 3), [0, 0, 1]);
    assert_eq!((page.active.stamp_units.get(), page.active.stamps[2][1].get() >> 32), (1 << 9 | 1 << 4, 0x190));
    let stored = NonVolatileState::from_bytes(&drive.subsystem.state().to_bytes()).expect("it was written");
    assert_eq!(stored.latency_monitor.configuration().thresholds, [0, 1, 2, 3]);
    let (mut entry, data) = configure_latency_monitor([0, 2, 2, 3], 0);
    drive.refuses(id, &entry, &data, Status::INVALID_FIELD);
    entry.cdw14 = 2.into();
    drive.refuses(id, &entry, &configure_latency_monitor([0, 1, 2, 3], 1).1, Status::INVALID_FIELD);
    assert_eq!(counted(&monitor(&mut drive), 3), [0, 0, 1], "what is refused changes nothing");
}
