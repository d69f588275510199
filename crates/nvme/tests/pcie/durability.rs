//! Commands that wait for durability, aborts, resets and shutdown.

use std::sync::atomic::Ordering;

use nvme_spec::register::{self, NSSR_RESET};
use nvme_spec::{AdminOpcode, Status};

use crate::common::{Drive, admin, identify};
use crate::{ADMIN_ENTRIES, DATA, Machine, flush, prps, read, with_namespace, write};

fn with_cache() -> Machine {
    let mut machine = Machine::on(Drive::on(with_namespace(), true));
    machine.create_pair(1, 64, Some(1));
    machine
}

/// An aborted request completes before its Abort, unless only the batch's commands have room.
#[test]
fn what_is_aborted_completes_before_its_abort() {
    let mut machine = Machine::new();
    let request = machine.submit(0, admin(AdminOpcode::AsynchronousEventRequest, 0));
    machine.ring(0);
    machine.run();
    let mut abort = admin(AdminOpcode::Abort, 0);
    abort.cdw10.set(u32::from(request) << 16);
    let mut expected = vec![(request, Status::ABORT_REQUESTED)];
    expected.push((machine.submit(0, abort), Status::SUCCESS));
    machine.ring(0);
    machine.run();
    let found = |machine: &mut Machine| -> Vec<(u16, Status)> {
        let completions = machine.take_all(0).into_iter();
        completions.map(|entry| (entry.cid.get(), entry.status.status())).collect()
    };
    assert_eq!(found(&mut machine), expected);
    machine.ring_head(0);

    // The queue is full of commands. The aborted one waits until the host consumes
    // some.
    let request = machine.submit(0, admin(AdminOpcode::AsynchronousEventRequest, 0));
    machine.ring(0);
    machine.run();
    abort.cdw10.set(u32::from(request) << 16);
    let mut expected = vec![(machine.submit(0, abort), Status::SUCCESS)];
    for _ in 2..ADMIN_ENTRIES {
        let identify = prps(identify(1, 0), DATA, 0);
        expected.push((machine.submit(0, identify), Status::SUCCESS));
    }
    machine.ring(0);
    machine.run();
    assert_eq!(found(&mut machine), expected);
    machine.ring_head(0);
    machine.run();
    assert_eq!(found(&mut machine), [(request, Status::ABORT_REQUESTED)]);
}

/// Stuck commands keep their places until they are aborted, or their queue is deleted.
#[test]
fn a_stuck_command_ends_when_it_is_aborted() {
    let mut machine = Machine::with_queue();
    let plan = "[[fault]]\nkind = \"stuck\"\ncommands = [\"flush\"]\ntimes = 3\n";
    let plan = nvme::fault::FaultPlan::parse(plan).expect("a plan");
    machine.drive.subsystem.set_faults(0, Some(plan)).expect("it can fail so");
    let stuck: Vec<u16> = (0..3).map(|_| machine.submit(1, flush())).collect();
    let well = machine.submit(1, flush());
    machine.ring(1);
    machine.run();
    let completed = |machine: &mut Machine| -> Vec<(u16, Status)> {
        let taken = machine.take_all(1).into_iter();
        let told = taken.map(|entry| (entry.cid.get(), entry.status.status())).collect();
        machine.ring_head(1);
        told
    };
    assert_eq!(completed(&mut machine), [(well, Status::SUCCESS)]);
    let abort = |machine: &mut Machine, cid: u16| {
        let mut abort = admin(AdminOpcode::Abort, 0);
        abort.cdw10.set(u32::from(cid) << 16 | 1);
        let completion = machine.command(0, abort);
        assert_eq!(completion.status.status(), Status::SUCCESS);
        completion.dw0.get()
    };
    assert_eq!(abort(&mut machine, stuck[1]), 0, "it was aborted");
    assert_eq!(completed(&mut machine), [(stuck[1], Status::ABORT_REQUESTED)]);
    assert_eq!(abort(&mut machine, stuck[1]), 1, "there is none any more");
    assert_eq!(abort(&mut machine, well), 1, "it is complete");
    assert!(completed(&mut machine).is_empty());
    let mut delete = admin(AdminOpcode::DeleteIoSubmissionQueue, 0);
    delete.cdw10.set(1);
    assert_eq!(machine.command(0, delete).status.status(), Status::SUCCESS);
    let ended = completed(&mut machine).into_iter().collect::<std::collections::BTreeSet<_>>();
    assert_eq!(ended, [stuck[0], stuck[2]].map(|cid| (cid, Status::ABORTED_SQ_DELETION)).into());
}

#[test]
fn commands_complete_when_they_are_durable_and_share_the_wait() {
    let mut machine = with_cache();
    let flushed = machine.submit(1, flush());
    let written = machine.submit(1, write(1, DATA, 0));
    machine.ring(1);
    machine.run();
    let done: Vec<u16> = machine.take_all(1).iter().map(|entry| entry.cid.get()).collect();
    assert_eq!(done, [written], "a write with a volatile cache need not wait");
    let durable = machine.controller.start_sync().expect("the flush is to be made durable");
    assert!(machine.controller.start_sync().is_none(), "one at a time");
    let late = [machine.submit(1, flush()), machine.submit(1, flush())];
    machine.ring(1);
    machine.run();
    let result = durable.flush();
    machine.raised.0.borrow_mut().clear();
    machine.with(|controller, subsystem, bus| controller.finish_sync(subsystem, bus, 2, &result));
    assert_eq!(*machine.raised.0.borrow(), [1]);
    let done: Vec<u16> = machine.take_all(1).iter().map(|entry| entry.cid.get()).collect();
    assert_eq!(done, [flushed], "what came during the sync is not covered by it");
    assert!(machine.sync());
    let done: Vec<u16> = machine.take_all(1).iter().map(|entry| entry.cid.get()).collect();
    assert_eq!(done, late);
    assert!(!machine.sync());
}

#[test]
fn what_cannot_be_made_durable_is_a_write_fault() {
    let mut machine = with_cache();
    machine.submit(1, flush());
    machine.ring(1);
    machine.run();
    machine.drive.memory.broken.store(true, Ordering::Relaxed);
    assert!(machine.sync());
    let completion = machine.take(1).unwrap();
    assert_eq!(completion.status.status(), Status::WRITE_FAULT);
}

#[test]
fn deleting_a_queue_completes_what_is_outstanding() {
    let mut machine = with_cache();
    let cids = [machine.submit(1, flush()), machine.submit(1, flush())];
    machine.ring(1);
    machine.run();
    let durable = machine.controller.start_sync().unwrap();
    machine.succeeds(0, Machine::delete(AdminOpcode::DeleteIoSubmissionQueue, 1));
    let aborted = machine.take_all(1);
    assert_eq!(aborted.iter().map(|entry| entry.cid.get()).collect::<Vec<_>>(), cids);
    assert!(aborted.iter().all(|entry| entry.status.status() == Status::ABORTED_SQ_DELETION));
    machine.succeeds(0, Machine::delete(AdminOpcode::DeleteIoCompletionQueue, 1));
    let result = durable.flush();
    machine.with(|controller, subsystem, bus| controller.finish_sync(subsystem, bus, 2, &result));
    assert!(machine.take(1).is_none(), "each completes once");
}

#[test]
fn outstanding_commands_keep_their_place_in_the_completion_queue() {
    let mut machine = Machine::on(Drive::on(with_namespace(), true));
    machine.create_pair(1, 4, None);
    for _ in 0..3 {
        machine.submit(1, flush());
    }
    machine.ring(1);
    assert_eq!(machine.run(), [3]);
    machine.submit(1, read(1, DATA, 0));
    machine.ring(1);
    assert_eq!(machine.run(), [], "three places are taken by commands that nobody has seen completed");
    assert!(machine.sync());
    assert_eq!(machine.take_all(1).len(), 3);
    machine.ring_head(1);
    assert_eq!(machine.run(), [1]);
}

#[test]
fn a_reset_forgets_what_is_outstanding() {
    let mut machine = with_cache();
    machine.submit(1, flush());
    machine.ring(1);
    machine.run();
    let durable = machine.controller.start_sync().unwrap();
    machine.disable();
    assert!(machine.doorbells.iter().all(|doorbell| doorbell.load(Ordering::Relaxed) == 0));
    machine.enable();
    machine.create_pair(1, 64, None);
    let result = durable.flush();
    machine.with(|controller, subsystem, bus| controller.finish_sync(subsystem, bus, 2, &result));
    assert!(machine.take(1).is_none());
    machine.succeeds(1, read(1, DATA, 0));
}

#[test]
fn a_shutdown_is_complete_when_everything_is_durable() {
    let mut machine = with_cache();
    machine.succeeds(1, write(1, DATA, 0));
    machine.write_register(register::CC, &0x0046_4001u32.to_le_bytes());
    assert_eq!(machine.csts().shst(), 1, "it occurs");
    assert!(machine.sync());
    assert_eq!(machine.csts().shst(), 2, "it is complete");
    assert!(!machine.sync());
    machine.disable();
    machine.enable();

    // Without a cache the shutdown needs no sync.
    let mut machine = Machine::new();
    machine.write_register(register::CC, &0x0046_4001u32.to_le_bytes());
    assert_eq!(machine.csts().shst(), 2);
}

#[test]
fn a_subsystem_reset_reaches_every_controller() {
    let mut machine = Machine::with_queue();
    let other = machine.drive.host();
    machine.write_register(register::NSSR, &0x1234u32.to_le_bytes());
    assert!(machine.csts().rdy(), "only the signature resets");
    machine.write_register(register::NSSR, &NSSR_RESET.to_le_bytes());
    assert!(!machine.csts().rdy() && machine.csts().nssro());
    assert!(!machine.drive.subsystem.controller(other).is_ready());
    // The bit stays set until the host clears it, even over other resets.
    machine.enable();
    machine.disable();
    machine.with(|controller, subsystem, bus| controller.reset_function(subsystem, bus));
    assert!(machine.csts().nssro());
    machine.write_register(register::CSTS, &(1u32 << 4).to_le_bytes());
    assert!(!machine.csts().nssro());

    // The queues of this controller disappear when another controller's host resets the subsystem.
    machine.enable();
    machine.create_pair(1, 64, None);
    let id = machine.controller.id();
    machine.drive.subsystem.reset_controller(id);
    machine.submit(1, read(1, DATA, 0));
    machine.ring(1);
    machine.with(|controller, subsystem, bus| controller.process(subsystem, bus, 1));
    assert!(!machine.controller.is_running());
    assert!(machine.take(1).is_none());
}

#[test]
fn a_function_level_reset_clears_the_registers() {
    let mut machine = Machine::with_queue();
    machine.with(|controller, subsystem, bus| controller.reset_function(subsystem, bus));
    assert!(!machine.csts().rdy());
    assert_eq!(machine.read_register(register::AQA), [0; 4]);
    assert_eq!(machine.read_register(register::ASQ), [0; 8]);
    machine.enable();
    machine.succeeds(0, prps(identify(1, 0), DATA, 0));
}
