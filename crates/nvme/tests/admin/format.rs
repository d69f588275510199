//! Format NVM and device self-tests.

use nvme_spec::command::{DeviceSelfTestCdw10, FormatNvmCdw10, SubmissionEntry};
use nvme_spec::log::DeviceSelfTestLog;
use nvme_spec::{AdminOpcode, IdentifyController, IoOpcode, NSID_ALL, Status};

use crate::common::{Drive, admin, get_log, identify, io};
use crate::{format_entry, identify_namespace, make_namespace, read};

#[test]
fn formatting_erases_and_divides_anew() {
    let mut drive = Drive::new();
    let id = drive.host();
    let formatted = make_namespace(&mut drive, id, 64, &[0]);
    let other = make_namespace(&mut drive, id, 64, &[1]);
    drive.write(id, formatted, 0, &[1; 4096 * 64]);
    drive.write(id, other, 0, &[2; 4096 * 64]);
    let bad_block = io(IoOpcode::WriteUncorrectable, formatted, 3, 1);
    assert!(drive.command(id, 1, &bad_block, &[]).reply.status.is_success());

    for (dword, status) in [
        (FormatNvmCdw10::new().with_lbafl(4), Status::INVALID_FORMAT),
        (FormatNvmCdw10::new().with_lbafu(1), Status::INVALID_FORMAT),
        (FormatNvmCdw10::new().with_pi(1), Status::INVALID_FORMAT),
        (FormatNvmCdw10::new().with_ses(3), Status::INVALID_FIELD),
    ] {
        drive.refuses(id, &format_entry(formatted, dword), &[], status);
    }
    drive.refuses(id, &format_entry(9, FormatNvmCdw10::new()), &[], Status::INVALID_FIELD);

    drive.succeeds(id, &format_entry(formatted, FormatNvmCdw10::new().with_lbafl(1)), &[]);
    let described = identify_namespace(&mut drive, id, formatted);
    assert_eq!((described.nsze.get(), described.flbas.fidxl()), (512, 1));
    assert_eq!(drive.read(id, formatted, 0, 512), vec![0; 512 * 512]);
    assert_eq!(drive.read(id, other, 0, 64), vec![2; 64 * 4096]);
    assert_eq!(drive.subsystem.device().live_pages(), 64);
    assert_eq!(drive.memory.state().namespaces.find(formatted).unwrap().format, 1);

    drive.succeeds(id, &format_entry(NSID_ALL, FormatNvmCdw10::new().with_ses(2)), &[]);
    assert_eq!(identify_namespace(&mut drive, id, formatted).nsze.get(), 64);
    assert_eq!(drive.subsystem.device().live_pages(), 0);
    assert!(drive.memory.is_zero());
}

#[test]
fn namespaces_that_share_a_handle_are_formatted_together() {
    let mut drive = Drive::new();
    let id = drive.host();
    make_namespace(&mut drive, id, 8, &[0, 1]);
    make_namespace(&mut drive, id, 8, &[1]);
    let small = FormatNvmCdw10::new().with_lbafl(1);
    drive.refuses(id, &format_entry(1, small), &[], Status::INVALID_FORMAT);
    drive.succeeds(id, &format_entry(1, FormatNvmCdw10::new()), &[]);
    drive.succeeds(id, &format_entry(NSID_ALL, small), &[]);
    assert_eq!(identify_namespace(&mut drive, id, 2).nsze.get(), 64);
}

#[test]
fn self_tests_pass_and_are_remembered() {
    let mut drive = Drive::new();
    let id = drive.host();
    make_namespace(&mut drive, id, 8, &[0]);
    let test = |code: u8, nsid: u32| SubmissionEntry {
        cdw10: DeviceSelfTestCdw10::new().with_stc(code).into_bits().into(),
        ..admin(AdminOpcode::DeviceSelfTest, nsid)
    };
    let log =
        |drive: &mut Drive, id: u16| -> DeviceSelfTestLog { read(&drive.succeeds(id, &get_log(0x06, 0, 564), &[]).1) };
    assert_eq!(log(&mut drive, id).result[0].dsts & 0xf, 0xf, "an unused entry");
    drive.succeeds(id, &test(1, NSID_ALL), &[]);
    drive.now += SHORT_TEST_NS;
    drive.succeeds(id, &test(2, 1), &[]);
    drive.now += EXTENDED_TEST_NS;
    drive.succeeds(id, &test(0xf, 0), &[]);
    for (code, nsid, status) in [
        (0, 0, Status::INVALID_FIELD),
        (3, 0, Status::INVALID_FIELD),
        (1, 2, Status::INVALID_FIELD),
        (1, 40, Status::INVALID_NAMESPACE_OR_FORMAT),
    ] {
        drive.refuses(id, &test(code, nsid), &[], status);
    }
    drive.tick();
    let mut drive = drive.restart();
    let id = drive.host();
    let results = log(&mut drive, id);
    // Newest first, with the code in the upper half and result 0.
    assert_eq!((results.cdsto, results.result[0].dsts, results.result[1].dsts), (0, 0x20, 0x10));
    assert_eq!((results.result[0].nsid.get(), results.result[1].nsid.get()), (1, NSID_ALL));
    for _ in 0..25 {
        drive.succeeds(id, &test(1, 0), &[]);
        drive.now += SHORT_TEST_NS;
        drive.tick();
    }
    assert_eq!(drive.memory.state().self_tests.len(), 20);
}

const SHORT_TEST_NS: u64 = 2_000_000_000;
const EXTENDED_TEST_NS: u64 = 10_000_000_000;

/// A waiting host polls every second. The percentage first grows, and then disappears.
#[test]
fn a_self_test_takes_its_time_and_can_be_aborted() {
    let mut drive = Drive::new();
    let id = drive.host();
    make_namespace(&mut drive, id, 8, &[0]);
    make_namespace(&mut drive, id, 8, &[1]);
    let identify: IdentifyController = read(&drive.succeeds(id, &identify(1, 0), &[]).1);
    assert!(u64::from(identify.edstt.get()) * 60_000_000_000 >= EXTENDED_TEST_NS);
    let test = |code: u8, nsid: u32| SubmissionEntry {
        cdw10: DeviceSelfTestCdw10::new().with_stc(code).into_bits().into(),
        ..admin(AdminOpcode::DeviceSelfTest, nsid)
    };
    // Operation, percent, and the newest result.
    let look = |drive: &mut Drive| {
        let log: DeviceSelfTestLog = read(&drive.succeeds(id, &get_log(0x06, 0, 564), &[]).1);
        (log.cdsto, log.cdstc, log.result[0].dsts)
    };
    for (code, duration_ns) in [(1, SHORT_TEST_NS), (2, EXTENDED_TEST_NS)] {
        let before = look(&mut drive).2;
        drive.succeeds(id, &test(code, 1), &[]);
        assert_eq!(look(&mut drive), (code, 0, before));
        drive.now += duration_ns / 2;
        assert_eq!(look(&mut drive), (code, 50, before));
        drive.refuses(id, &test(1, 1), &[], Status::DEVICE_SELF_TEST_IN_PROGRESS);
        drive.now += duration_ns / 2 - 1;
        assert_eq!(look(&mut drive), (code, 99, before));
        drive.now += 1;
        assert_eq!(look(&mut drive), (0, 0, code << 4));
    }
    // Ended by its host, by a format or deletion of the tested namespace, or by a sanitize
    // operation.
    drive.succeeds(id, &test(2, 0), &[]);
    drive.succeeds(id, &test(0xf, 0), &[]);
    assert_eq!(look(&mut drive), (0, 0, 0x21));
    drive.succeeds(id, &test(1, 1), &[]);
    drive.succeeds(id, &format_entry(2, FormatNvmCdw10::new()), &[]);
    assert_eq!(look(&mut drive).0, 1, "another namespace");
    drive.succeeds(id, &format_entry(1, FormatNvmCdw10::new()), &[]);
    assert_eq!(look(&mut drive), (0, 0, 0x14));
    // A reset ends a short test, and leaves an extended one.
    drive.succeeds(id, &test(1, 0), &[]);
    drive.subsystem.reset_controller(id);
    drive.enable(id);
    assert_eq!(look(&mut drive), (0, 0, 0x12));
    drive.succeeds(id, &test(2, NSID_ALL), &[]);
    drive.subsystem.reset_controller(id);
    drive.enable(id);
    assert_eq!(look(&mut drive).0, 2);
    let delete = SubmissionEntry { cdw10: 1.into(), ..admin(AdminOpcode::NamespaceManagement, 2) };
    drive.succeeds(id, &delete, &[]);
    assert_eq!(look(&mut drive), (0, 0, 0x23));
}
