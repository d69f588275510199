//! Doorbells, shadow doorbells and interrupts.

use nvme::pcie::HostMemory;
use nvme_spec::{AdminOpcode, Status};

use crate::common::{admin, get_log, identify};
use crate::{DATA, Machine, PAGE, prps, read};

#[test]
fn a_batch_raises_a_vector_once() {
    let mut machine = Machine::with_queue();
    machine.create_pair(2, 64, None);
    machine.raised.0.borrow_mut().clear();
    for queue in [1, 2] {
        for _ in 0..10 {
            machine.submit(queue, read(1, DATA, 0));
        }
        machine.ring(queue);
    }
    assert_eq!(machine.run(), [20]);
    assert_eq!(*machine.raised.0.borrow(), [1], "queue 1 only: queue 2 is polled");
    assert_eq!((machine.take_all(1).len(), machine.take_all(2).len()), (10, 10));
}

#[test]
fn a_busy_queue_does_not_hold_up_the_others() {
    let mut machine = Machine::new();
    for queue in 1..=3 {
        machine.create_pair(queue, 256, None);
    }
    for queue in 1..=3 {
        for _ in 0..100 {
            machine.submit(queue, read(1, DATA, 0));
        }
        machine.ring(queue);
    }
    machine.with(|controller, subsystem, bus| controller.process(subsystem, bus, 1));
    let first: Vec<usize> = (1..=3).map(|queue| machine.take_all(queue).len()).collect();
    machine.with(|controller, subsystem, bus| controller.process(subsystem, bus, 1));
    let second: Vec<usize> = (1..=3).map(|queue| machine.take_all(queue).len()).collect();
    assert_eq!((first, second), (vec![32, 32, 0], vec![32, 0, 32]));
    machine.run();
    let rest: usize = (1..=3).map(|queue| machine.take_all(queue).len()).sum();
    assert_eq!(rest, 300 - 128);
}

#[test]
fn a_full_completion_queue_stops_its_submission_queues_until_the_host_takes_some() {
    let mut machine = Machine::new();
    machine.create_pair(1, 64, None);
    // Queue 2 gets a small completion queue.
    machine.create_pair(2, 8, None);
    machine.succeeds(0, Machine::delete(AdminOpcode::DeleteIoSubmissionQueue, 2));
    machine.succeeds(0, Machine::create_submission(2, 64, 2));
    machine.pairs[2].entries = 64;
    let cids: Vec<u16> = (0..30).map(|_| machine.submit(2, read(1, DATA, 0))).collect();
    machine.ring(2);
    machine.pairs[2].entries = 8; // of the completion queue from here on
    let mut seen = Vec::new();
    let mut rounds = 0;
    while seen.len() < 30 {
        machine.run();
        let taken = machine.take_all(2);
        assert!(taken.len() <= 7, "one entry of a ring stays empty");
        seen.extend(taken.iter().map(|entry| entry.cid.get()));
        machine.succeeds(1, read(1, DATA, 0));
        machine.ring_head(2);
        rounds += 1;
    }
    assert_eq!((seen, rounds), (cids, 5));
}

#[test]
fn wrong_doorbells_are_events_and_nothing_else() {
    let mut machine = Machine::with_queue();
    let request = || admin(AdminOpcode::AsynchronousEventRequest, 0);
    let read_error_log = || prps(get_log(1, 0, 64), DATA, 0);
    let event_of = |machine: &mut Machine, mistake: &dyn Fn(&mut Machine)| -> u32 {
        let cid = machine.submit(0, request());
        machine.ring(0);
        machine.run();
        assert!(machine.take(0).is_none(), "it waits for an event");
        mistake(machine);
        machine.run();
        // One more poll, because the next batch reports mistakes found while polling for work.
        machine.with(|controller, subsystem, bus| controller.process(subsystem, bus, 1));
        let completion = machine.take(0).expect("an event");
        machine.ring_head(0);
        assert_eq!(completion.cid.get(), cid);
        machine.succeeds(0, read_error_log());
        completion.dw0.get()
    };
    // Error events have type 0 and log page 1.
    let tail = event_of(&mut machine, &|machine| machine.doorbell(2, 64));
    assert_eq!(tail, 0x0001_0100, "an entry that the queue does not have");
    machine.doorbell(2, 0);
    let head = event_of(&mut machine, &|machine| {
        machine.doorbell(3, 64);
        // The controller reads the head when room is short. 63 commands fill the queue.
        for _ in 0..63 {
            machine.submit(1, read(1, DATA, 0));
        }
        machine.ring(1);
        machine.run();
        machine.submit(1, read(1, DATA, 0));
        machine.ring(1);
    });
    assert_eq!(head, 0x0001_0100, "an entry that the completion queue does not have");
    let register = event_of(&mut machine, &|machine| machine.write_register(0x1000 + 4 * 2 * 3, &[1, 0, 0, 0]));
    assert_eq!(register, 0x0001_0000, "queue 3 does not exist");
    assert_eq!(machine.take_all(1).len(), 63);
    machine.ring_head(1);
    machine.run();
    assert_eq!(machine.take_all(1).len(), 1, "with a right head it goes on");
}

#[test]
fn doorbells_can_be_written_like_registers() {
    let mut machine = Machine::with_queue();
    let cid = machine.submit(1, read(1, DATA, 0));
    machine.write_register(0x1000 + 8, &1u32.to_le_bytes());
    machine.run();
    assert_eq!(machine.take(1).unwrap().cid.get(), cid);
    machine.write_register(0x1000 + 12, &1u32.to_le_bytes());
    machine.write_register(0x1000 + 0x1000, &[1; 4]);
    machine.write_register(u32::MAX - 3, &[1; 8]);
    assert_eq!(machine.run(), []);
}

// ---------------------------------------------------------------------------- shadow doorbells --

#[test]
fn shadow_doorbells_stand_in_for_those_of_io_queues() {
    let mut machine = Machine::with_queue();
    let (values, indexes) = (DATA - PAGE, DATA - 2 * PAGE);
    let configure = |prp1, prp2| prps(admin(AdminOpcode::DoorbellBufferConfig, 0), prp1, prp2);
    for (prp1, prp2) in [(values + 4, indexes), (values, indexes + 8), (0, indexes), (values, 0), (1 << 60, indexes)] {
        machine.refuses(0, configure(prp1, prp2), Status::INVALID_FIELD);
    }
    assert!(!machine.controller.has_shadow_doorbells());
    machine.succeeds(0, configure(values, indexes));
    assert!(machine.controller.has_shadow_doorbells());

    // For queue 1 the shadow counts instead of the real doorbell. The admin queue uses the real
    // one.
    machine.submit(1, read(1, DATA, 0));
    machine.ring(1);
    assert_eq!(machine.run(), []);
    machine.ram.store(values + 8, 1).unwrap();
    assert_eq!(machine.run(), [1]);
    assert_eq!(machine.take_all(1).len(), 1);
    machine.succeeds(0, prps(identify(1, 0), DATA, 0));

    // While awake, the controller requests no doorbell. Before sleeping it requests one at the next
    // change.
    assert_eq!(machine.ram.load(indexes + 8).unwrap(), 0);
    assert!(!machine.with(|controller, _, bus| controller.prepare_sleep(bus)));
    assert_eq!(machine.ram.load(indexes + 8).unwrap(), 1);
    assert_eq!(machine.ram.load(indexes).unwrap(), 0, "not the admin queue's");
    // Commands that came before the announcement are work.
    machine.submit(1, read(1, DATA, 0));
    machine.ram.store(values + 8, 2).unwrap();
    assert!(machine.with(|controller, _, bus| controller.prepare_sleep(bus)));
    assert_eq!(machine.ram.load(indexes + 8).unwrap(), 1, "the tail that was known");

    // A reset ends the use of shadow doorbells.
    machine.disable();
    machine.enable();
    assert!(!machine.controller.has_shadow_doorbells());
    machine.create_pair(1, 64, None);
    machine.succeeds(1, read(1, DATA, 0));
}

#[test]
fn a_full_completion_queue_asks_for_its_shadow_head() {
    let mut machine = Machine::new();
    machine.create_pair(1, 4, None);
    let (values, indexes) = (DATA - PAGE, DATA - 2 * PAGE);
    machine.succeeds(0, prps(admin(AdminOpcode::DoorbellBufferConfig, 0), values, indexes));
    for tail in 1..=3 {
        machine.submit(1, read(1, DATA, 0));
        machine.ram.store(values + 8, tail).unwrap();
    }
    machine.run();
    machine.ram.store(indexes + 12, 0xffff).unwrap();
    assert!(!machine.with(|controller, _, bus| controller.prepare_sleep(bus)));
    assert_eq!(machine.ram.load(indexes + 12).unwrap(), 0);
    machine.submit(1, read(1, DATA, 0));
    machine.ram.store(values + 8, 0).unwrap();
    assert_eq!(machine.run(), [], "no room");
    machine.ram.store(values + 12, 2).unwrap();
    assert_eq!(machine.run(), [1]);
}

#[test]
fn completions_that_were_not_taken_are_announced_again() {
    let mut machine = Machine::with_queue();
    machine.create_pair(2, 64, Some(2));
    machine.submit(1, read(1, DATA, 0));
    machine.ring(1);
    machine.run();
    machine.raised.0.borrow_mut().clear();
    machine.with(|controller, _, bus| controller.raise_pending(bus));
    assert_eq!(*machine.raised.0.borrow(), [1], "and not queue 2, which has none");
    machine.take(1).unwrap();
    machine.ring_head(1);
    machine.with(|controller, _, bus| controller.raise_pending(bus));
    assert_eq!(*machine.raised.0.borrow(), [1], "taken by now");
}
