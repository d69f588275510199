//! Registers, and creation and deletion of queues.

use base::table;
use nvme_spec::command::SubmissionEntry;
use nvme_spec::register::{self, Cap};
use nvme_spec::{AdminOpcode, Status};

use crate::common::{admin, identify};
use crate::{DATA, Machine, PAGE, RAM_BYTES, VECTORS, prps, write};

#[test]
fn registers_read_at_any_size_and_write_as_dwords_and_qwords() {
    let mut machine = Machine::new();
    let cap = Cap::from_bits(u64::from_le_bytes(machine.read_register(register::CAP)));
    assert_eq!((cap.mqes(), cap.cqr(), cap.dstrd()), (4095, true, 0));
    assert_eq!(u32::from_le_bytes(machine.read_register(register::VS)), 0x0002_0100);
    assert_eq!(machine.read_register(register::VS + 1), [1], "one byte of it");
    assert_eq!(machine.read_register(register::ASQ), PAGE.to_le_bytes());
    assert_eq!(machine.read_register(register::DOORBELLS), [0; 8]);
    assert_eq!(machine.read_register(0xffc), [0; 8]);

    machine.write_register(register::ASQ, &(8 * PAGE).to_le_bytes());
    assert_eq!(machine.read_register(register::ASQ), PAGE.to_le_bytes(), "fixed while enabled");
    machine.disable();
    machine.write_register(register::ASQ, &0x5000u32.to_le_bytes());
    machine.write_register(register::ASQ + 4, &7u32.to_le_bytes());
    assert_eq!(machine.read_register(register::ASQ), 0x7_0000_5000u64.to_le_bytes());
    machine.write_register(register::ASQ, &[0xff; 2]);
    machine.write_register(register::ASQ + 2, &[0xff; 4]);
    assert_eq!(machine.read_register(register::ASQ), 0x7_0000_5000u64.to_le_bytes(), "odd accesses do nothing");

    machine.write_register(register::INTMS, &5u32.to_le_bytes());
    machine.write_register(register::INTMC, &4u32.to_le_bytes());
    assert_eq!(u32::from_le_bytes(machine.read_register(register::INTMS)), 1);
}

#[test]
fn admin_queues_that_cannot_be_are_a_fatal_status() {
    let cases: [(u32, u64, u64); 5] = [
        (0x000f_0000, PAGE, 2 * PAGE), // a submission queue of one entry
        (0x0000_000f, PAGE, 2 * PAGE), // a completion queue of one entry
        (0x000f_000f, PAGE + 8, 2 * PAGE),
        (0x000f_000f, PAGE, 2 * PAGE + 8),
        (0x000f_000f, 0, 2 * PAGE),
    ];
    for (attributes, submission, completion) in cases {
        let mut machine = Machine::new();
        machine.disable();
        machine.write_register(register::AQA, &attributes.to_le_bytes());
        machine.write_register(register::ASQ, &submission.to_le_bytes());
        machine.write_register(register::ACQ, &completion.to_le_bytes());
        machine.write_register(register::CC, &0x0046_0001u32.to_le_bytes());
        let csts = machine.csts();
        assert!(csts.cfs() && !csts.rdy(), "{attributes:#x} {submission:#x} {completion:#x}: {csts:?}");
        machine.disable();
        assert!(!machine.csts().cfs(), "a reset helps");
        machine.enable();
    }
}

#[test]
fn a_queue_whose_memory_is_gone_is_a_fatal_status() {
    let mut machine = Machine::new();
    machine.create_pair(1, 64, None);
    let mut entry = Machine::create_submission(2, 64, 1);
    entry.set_prps(RAM_BYTES, 0);
    machine.succeeds(0, entry);
    machine.doorbell(4, 1);
    machine.run();
    assert!(machine.csts().cfs());
    machine.disable();
    machine.enable();
    machine.succeeds(0, prps(identify(1, 0), DATA, 0));
}

// --------------------------------------------------------------------------- queue management --

#[test]
fn completion_queues_are_created_only_as_the_standard_allows() {
    let mut machine = Machine::new();
    let good = || Machine::create_completion(1, 64, Some(1));
    let with_cdw11 = |dword11: u32| SubmissionEntry { cdw11: dword11.into(), ..good() };
    let refused = table! {
        "no identifier": Machine::create_completion(0, 64, None) => Status::INVALID_QUEUE_IDENTIFIER,
        "more than there are": Machine::create_completion(5, 64, None) => Status::INVALID_QUEUE_IDENTIFIER,
        "the largest identifier": Machine::create_completion(0xffff, 64, None) => Status::INVALID_QUEUE_IDENTIFIER,
        "one entry": Machine::create_completion(1, 1, None) => Status::INVALID_QUEUE_SIZE,
        "more entries than MQES": Machine::create_completion(1, 4097, None) => Status::INVALID_QUEUE_SIZE,
        "as many as the field can say": Machine::create_completion(1, 65536, None) => Status::INVALID_QUEUE_SIZE,
        "no such vector": Machine::create_completion(1, 64, Some(VECTORS)) => Status::INVALID_INTERRUPT_VECTOR,
        "in pieces": with_cdw11(1 << 16 | 2) => Status::INVALID_FIELD,
        "an offset in a page": prps(good(), 0x5008, 0) => Status::PRP_OFFSET_INVALID,
        "no address": prps(good(), 0, 0) => Status::INVALID_FIELD,
    };
    machine.refuses_each(0, &refused);
    machine.succeeds(0, good());
    machine.refuses(0, good(), Status::INVALID_QUEUE_IDENTIFIER);
    machine.succeeds(0, Machine::create_completion(2, 4096, Some(VECTORS - 1)));
}

#[test]
fn submission_queues_are_created_only_as_the_standard_allows() {
    let mut machine = Machine::new();
    machine.succeeds(0, Machine::create_completion(1, 64, None));
    let good = || Machine::create_submission(1, 64, 1);
    let in_pieces = SubmissionEntry { cdw11: (1 << 16).into(), ..good() };
    let refused = table! {
        "no identifier": Machine::create_submission(0, 64, 1) => Status::INVALID_QUEUE_IDENTIFIER,
        "more than there are": Machine::create_submission(5, 64, 1) => Status::INVALID_QUEUE_IDENTIFIER,
        "the admin completion queue": Machine::create_submission(1, 64, 0) => Status::INVALID_QUEUE_IDENTIFIER,
        "a completion queue that cannot be": Machine::create_submission(1, 64, 5) => Status::INVALID_QUEUE_IDENTIFIER,
        "a completion queue that is not there": Machine::create_submission(1, 64, 2) => Status::COMPLETION_QUEUE_INVALID,
        "one entry": Machine::create_submission(1, 1, 1) => Status::INVALID_QUEUE_SIZE,
        "more entries than MQES": Machine::create_submission(1, 4097, 1) => Status::INVALID_QUEUE_SIZE,
        "in pieces": in_pieces => Status::INVALID_FIELD,
        "an offset in a page": prps(good(), 0x5008, 0) => Status::PRP_OFFSET_INVALID,
        "no address": prps(good(), 0, 0) => Status::INVALID_FIELD,
    };
    machine.refuses_each(0, &refused);
    machine.succeeds(0, good());
    machine.refuses(0, good(), Status::INVALID_QUEUE_IDENTIFIER);
}

#[test]
fn queues_are_deleted_in_order() {
    let mut machine = Machine::with_queue();
    machine.succeeds(0, Machine::create_submission(2, 64, 1));
    let (submission, completion) = (AdminOpcode::DeleteIoSubmissionQueue, AdminOpcode::DeleteIoCompletionQueue);
    for (opcode, queue) in [(submission, 0), (submission, 3), (submission, 0xffff), (completion, 0), (completion, 2)] {
        machine.refuses(0, Machine::delete(opcode, queue), Status::INVALID_QUEUE_IDENTIFIER);
    }
    machine.refuses(0, Machine::delete(completion, 1), Status::INVALID_QUEUE_DELETION);
    machine.succeeds(0, Machine::delete(submission, 2));
    machine.refuses(0, Machine::delete(completion, 1), Status::INVALID_QUEUE_DELETION);
    machine.succeeds(0, Machine::delete(submission, 1));
    machine.succeeds(0, Machine::delete(completion, 1));
    machine.create_pair(1, 8, Some(1));
    machine.succeeds(1, write(1, DATA, 0));
}

#[test]
fn the_number_of_queues_is_what_was_granted() {
    let mut machine = Machine::new();
    let set =
        |number: u32| SubmissionEntry { cdw10: 7.into(), cdw11: number.into(), ..admin(AdminOpcode::SetFeatures, 0) };
    // Two submission and three completion queues.
    assert_eq!(machine.succeeds(0, set(2 << 16 | 1)).dw0.get(), 2 << 16 | 1);
    machine.succeeds(0, Machine::create_completion(3, 64, None));
    let refused = table! {
        "a fourth completion queue": Machine::create_completion(4, 64, None) => Status::INVALID_QUEUE_IDENTIFIER,
        "a third submission queue": Machine::create_submission(3, 64, 3) => Status::INVALID_QUEUE_IDENTIFIER,
        "one for a fourth": Machine::create_submission(2, 64, 4) => Status::INVALID_QUEUE_IDENTIFIER,
    };
    machine.refuses_each(0, &refused);
    machine.succeeds(0, Machine::create_submission(2, 64, 3));
    machine.refuses(0, set(0), Status::COMMAND_SEQUENCE_ERROR);
    // Other features are unaffected.
    machine.succeeds(0, SubmissionEntry { cdw10: 1.into(), ..set(3) });
    machine.disable();
    machine.enable();
    machine.succeeds(0, set(0));
}

#[test]
fn entry_sizes_that_were_not_chosen_make_no_queues() {
    let mut machine = Machine::new();
    for (cc, entry) in
        [(0x0006_0001u32, Machine::create_completion(1, 64, None)), (0x0040_0001, Machine::create_submission(1, 64, 1))]
    {
        machine.disable();
        machine.enable();
        machine.succeeds(0, Machine::create_completion(1, 64, None));
        machine.succeeds(0, Machine::delete(AdminOpcode::DeleteIoCompletionQueue, 1));
        if entry.opcode == AdminOpcode::CreateIoSubmissionQueue.code() {
            machine.succeeds(0, Machine::create_completion(1, 64, None));
        }
        machine.write_register(register::CC, &cc.to_le_bytes());
        machine.refuses(0, entry, Status::INVALID_QUEUE_SIZE);
    }
}
