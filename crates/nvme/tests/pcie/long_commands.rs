//! Commands that the controller divides, and the share of other commands.

use std::sync::atomic::Ordering;

use nvme::pcie::HostMemory;
use nvme_spec::{AdminOpcode, IoOpcode, Status};
use zerocopy::IntoBytes;

use crate::common::{CAPACITY_BYTES, admin, io};
use crate::{DATA, Machine, PAGE, prps, read};

/// A tenant whose commands take long gets a part of the drive's time, not all of it.
#[test]
fn between_the_parts_of_a_long_command_others_have_the_drive() {
    let mut machine = Machine::with_queue();
    machine.create_pair(2, 64, None);
    let blocks = CAPACITY_BYTES / PAGE;
    let whole = nvme_spec::command::Range { nlb: (blocks as u32).into(), ..nvme_spec::command::Range::default() };
    machine.ram.write(DATA, [whole; 256].as_bytes()).unwrap();
    let mut deallocate = prps(io(IoOpcode::DatasetManagement, 1, 0, 1), DATA, 0);
    deallocate.cdw10.set(255);
    deallocate.cdw11.set(4);
    let zeroes = io(IoOpcode::WriteZeroes, 1, 0, blocks);
    for (long, parts_min) in [(io(IoOpcode::Verify, 1, 0, blocks), 64), (deallocate, 256), (zeroes, 4)] {
        let cid = machine.submit(1, long);
        machine.ring(1);
        machine.with(|controller, subsystem, bus| controller.process(subsystem, bus, 1));
        let mut batches = 1;
        while machine.with(|controller, _, bus| controller.has_work(bus)) {
            let other = machine.submit(2, read(1, DATA + PAGE, 0));
            machine.ring(2);
            machine.with(|controller, subsystem, bus| controller.process(subsystem, bus, 1));
            let done = machine.take(2).expect("the other's is complete in its batch");
            assert_eq!((done.cid.get(), done.status.status()), (other, Status::SUCCESS));
            machine.ring_head(2);
            batches += 1;
        }
        assert!(batches >= parts_min, "{batches} batches");
        let done = machine.take(1).expect("complete at the end");
        assert_eq!((done.cid.get(), done.status.status()), (cid, Status::SUCCESS));
        machine.ring_head(1);
    }
    let verified = machine.drive.subsystem.state().smart.host_bytes_read;
    assert!(verified >= CAPACITY_BYTES);
}

/// Storing the state writes all of it, so a command does so once, not for each of its ranges.
#[test]
fn a_list_of_ranges_stores_the_state_once() {
    let mut machine = Machine::with_queue();
    let ranges = [0u64, 2, 4].map(|first| nvme_spec::command::Range {
        nlb: 1.into(),
        slba: first.into(),
        ..nvme_spec::command::Range::default()
    });
    for range in &ranges {
        machine.succeeds(1, io(IoOpcode::WriteUncorrectable, 1, range.slba.get(), 1));
    }
    machine.ram.write(DATA, ranges.as_bytes()).unwrap();
    let mut deallocate = prps(io(IoOpcode::DatasetManagement, 1, 0, 1), DATA, 0);
    deallocate.cdw10.set(2);
    deallocate.cdw11.set(4);
    let before = machine.drive.memory.keeps.load(Ordering::Relaxed);
    machine.succeeds(1, deallocate);
    assert_eq!(machine.drive.memory.keeps.load(Ordering::Relaxed), before + 1);
    machine.succeeds(1, io(IoOpcode::Verify, 1, 0, 8));
}

/// The controller starts a bounded number of long commands, each in a separate batch, and serves
/// the admin queue in between.
#[test]
fn long_commands_are_begun_one_a_batch_and_not_without_end() {
    const LONG: u16 = 80;
    let mut machine = Machine::new();
    machine.create_pair(1, 64, None);
    machine.create_pair(2, 64, None);
    for queue in [1, 2] {
        for _ in 0..LONG / 2 {
            machine.submit(queue, io(IoOpcode::Verify, 1, 0, CAPACITY_BYTES / PAGE));
        }
        machine.ring(queue);
    }
    let mut begun = 0;
    while begun < LONG {
        let batch = machine.with(|controller, subsystem, bus| controller.process(subsystem, bus, 1));
        if batch == 0 {
            break;
        }
        assert_eq!(batch, 1, "the subsystem is locked for one of them");
        begun += 1;
    }
    assert_eq!(begun, 64, "others wait in their queues");
    let mut queues = admin(AdminOpcode::GetFeatures, 0);
    queues.cdw10.set(7);
    machine.submit(0, queues);
    machine.ring(0);
    machine.with(|controller, subsystem, bus| controller.process(subsystem, bus, 1));
    assert_eq!(machine.take(0).expect("done at once").status.status(), Status::SUCCESS);
    machine.ring_head(0);
    for queue in [1, 2] {
        machine.submit(0, Machine::delete(AdminOpcode::DeleteIoSubmissionQueue, queue));
    }
    machine.ring(0);
    machine.run();
    assert_eq!(machine.take_all(0).len(), 2);
    let aborted = machine.take_all(1).len() + machine.take_all(2).len();
    assert!((64..=66).contains(&aborted), "{aborted} of them were begun");
}

#[test]
fn a_long_command_ends_with_its_queue_its_namespace_and_its_controller() {
    let mut machine = Machine::with_queue();
    let verify = io(IoOpcode::Verify, 1, 0, CAPACITY_BYTES / PAGE);
    let begin = |machine: &mut Machine| {
        machine.submit(1, verify);
        machine.ring(1);
        machine.with(|controller, subsystem, bus| controller.process(subsystem, bus, 1));
        assert!(machine.take(1).is_none(), "it goes on");
    };
    begin(&mut machine);
    let deleted = machine.submit(0, Machine::delete(AdminOpcode::DeleteIoSubmissionQueue, 1));
    machine.ring(0);
    machine.with(|controller, subsystem, bus| controller.process(subsystem, bus, 1));
    assert_eq!(machine.take(0).unwrap().cid.get(), deleted);
    machine.ring_head(0);
    assert_eq!(machine.take(1).unwrap().status.status(), Status::ABORTED_SQ_DELETION);

    let mut machine = Machine::with_queue();
    begin(&mut machine);
    let mut delete = admin(AdminOpcode::NamespaceManagement, 1);
    delete.cdw10.set(1);
    machine.submit(0, delete);
    machine.ring(0);
    machine.run();
    assert_eq!(machine.take(0).unwrap().status.status(), Status::SUCCESS);
    assert_eq!(machine.take(1).unwrap().status.status(), Status::INVALID_FIELD, "no such namespace");

    let mut machine = Machine::with_queue();
    begin(&mut machine);
    machine.disable();
    machine.enable();
    machine.create_pair(1, 64, None);
    assert_eq!(machine.run(), [], "nothing goes on");
}
