//! Commands of a drive with timing: when their completions are due, and what the device model says of its life.

mod common;

use common::{Drive, PAGE_BYTES, config, get_log, io};
use nvme_spec::IoOpcode;
use ssd::EnduranceConfig;
use ssd::timing::{ChannelTiming, ControllerTiming, LinkTiming, NandTiming, TimingConfig};

const READ_NS: u64 = 100_000;
const WRITE_NS: u64 = 50_000;

/// Commands take their controller time, and flash and link next to nothing.
fn timing() -> TimingConfig {
    TimingConfig {
        nand: NandTiming {
            page_bytes: PAGE_BYTES,
            bits_per_cell: 1,
            read_ns: vec![1000],
            program_ns: 1000,
            erase_ns: 0,
            suspend_ns: None,
        },
        channel: ChannelTiming {
            bytes_per_second: 1_000_000_000_000,
            command_ns: 0,
        },
        controller: ControllerTiming {
            cores: 1,
            read_ns: READ_NS,
            write_ns: WRITE_NS,
            page_ns: 0,
            read_pipeline_ns: 0,
            write_pipeline_ns: 0,
        },
        link: LinkTiming {
            generation: 6,
            lanes: 16,
            payload_share: 1.0,
        },
        write_buffer_bytes: 1 << 20,
        read_cache_bytes: 0,
        tails: Vec::new(),
    }
}

/// A drive with a namespace whose commands take time.
fn timed() -> (Drive, u16) {
    let mut config = config();
    config.device.timing = Some(timing());
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
    // Two at once on one core.
    drive.now += 1_000_000;
    let (first, second) = (
        latency(&mut drive, id, IoOpcode::Read, 0, 1),
        latency(&mut drive, id, IoOpcode::Read, 0, 1),
    );
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
    assert!(
        outcome.due > 1_000_000 + READ_NS,
        "a transport that is late does not get its time back"
    );
}

#[test]
fn the_logs_say_how_much_of_the_drive_is_used() {
    let mut config = config();
    config.namespace = true;
    config.device.endurance = Some(EnduranceConfig {
        rated_erases: 2,
        spread: 0.0,
        warranty_years: 5.0,
    });
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
