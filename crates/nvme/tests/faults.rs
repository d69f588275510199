//! Fault plans at the controller. The tests cover each kind, the reports and the repeatability.

mod common;

use common::{Drive, PAGE_BYTES, config, get_log, identify, io};
use nvme::SubsystemConfig;
use nvme::fault::{FaultPlan, FaultsReport, NEVER, UnsupportedFault};
use nvme_spec::{AdminOpcode, IoOpcode, Status, SubmissionEntry};

const NS_PER_MS: u64 = 1_000_000;

/// A drive with a namespace, and a host.
fn drive() -> (Drive, u16) {
    let mut drive = Drive::of(SubsystemConfig { namespace: true, ..config() });
    let id = drive.host();
    (drive, id)
}

/// The same drive with a fault plan.
fn failing(plan: &str) -> (Drive, u16) {
    let (mut drive, id) = drive();
    plan_of(&mut drive, plan);
    (drive, id)
}

#[track_caller]
fn plan_of(drive: &mut Drive, plan: &str) {
    let plan = FaultPlan::parse(plan).expect("a plan");
    drive.subsystem.set_faults(drive.now, Some(plan)).expect("it can fail so");
}

fn report(drive: &Drive) -> FaultsReport {
    drive.subsystem.faults().expect("a plan")
}

fn status(drive: &mut Drive, id: u16, entry: &SubmissionEntry) -> Status {
    drive.command(id, 1, entry, &[]).reply.status
}

fn read(first: u64, count: u64) -> SubmissionEntry {
    io(IoOpcode::Read, 1, first, count)
}

fn write(first: u64) -> SubmissionEntry {
    io(IoOpcode::Write, 1, first, 1)
}

/// Critical warning, temperature in kelvins, spare in percent and media errors, from the SMART log.
fn health(drive: &mut Drive, id: u16) -> (u8, u16, u8, u64) {
    let (_, page) = drive.succeeds(id, &get_log(2, 0, 512), &[]);
    let errors = u64::from_le_bytes(page[160..168].try_into().unwrap());
    (page[0], u16::from_le_bytes([page[1], page[2]]), page[3], errors)
}

/// Dwords 0 of the pending asynchronous events.
fn events(drive: &mut Drive, id: u16) -> Vec<u64> {
    let told = drive.subsystem.async_completions(id);
    told.iter().map(|event| event.reply.result).collect()
}

fn request_events(drive: &mut Drive, id: u16) {
    // Every critical warning, and namespace attribute notices.
    let configure =
        SubmissionEntry { cdw10: 0x0b.into(), cdw11: 0x1ff.into(), ..common::admin(AdminOpcode::SetFeatures, 0) };
    drive.succeeds(id, &configure, &[]);
    for cid in 100..104 {
        let request = SubmissionEntry { cid: cid.into(), ..common::admin(AdminOpcode::AsynchronousEventRequest, 0) };
        assert!(drive.try_command(id, 0, &request, &[]).is_none());
    }
}

#[test]
fn blocks_that_are_bad_fail_reads_and_writes_and_say_which() {
    let (mut drive, id) = failing(
        "[[fault]]\nname = \"bad blocks\"\nkind = \"error\"\ncommands = [\"read\", \"write\", \"verify\"]\n\
         namespace = 1\nblocks = { first = 100, count = 8 }\n",
    );
    assert_eq!(status(&mut drive, id, &read(0, 64)), Status::SUCCESS);
    assert_eq!(status(&mut drive, id, &read(108, 1)), Status::SUCCESS);
    assert_eq!(status(&mut drive, id, &read(96, 8)), Status::UNRECOVERED_READ_ERROR);
    assert_eq!(status(&mut drive, id, &write(107)), Status::WRITE_FAULT);
    let verify = io(IoOpcode::Verify, 1, 0, 4096);
    assert_eq!(status(&mut drive, id, &verify), Status::UNRECOVERED_READ_ERROR);
    assert_eq!(status(&mut drive, id, &io(IoOpcode::Compare, 1, 100, 1)), Status::SUCCESS);
    assert_eq!(health(&mut drive, id), (1 << 2, 313, 100, 3), "media errors degrade the drive");
    let (_, log) = drive.succeeds(id, &get_log(1, 0, 192), &[]);
    let lba = |entry: usize| u64::from_le_bytes(log[entry * 64 + 16..entry * 64 + 24].try_into().unwrap());
    assert_eq!([lba(2), lba(1), lba(0)], [100, 107, 100], "the first bad block of each command");
    let FaultsReport { commands, faults, .. } = report(&drive);
    assert_eq!((commands, faults[0].struck, faults[0].name.as_str()), (6, 3, "bad blocks"));
    assert!(faults[0].active);
}

#[test]
fn ranges_of_a_deallocation_are_looked_at() {
    let (mut drive, id) = failing("[[fault]]\nkind = \"error\"\nblocks = { first = 100, count = 8 }\n");
    let deallocate = |first: u64| {
        let mut entry = io(IoOpcode::DatasetManagement, 1, 0, 1);
        entry.cdw10 = 0.into();
        entry.cdw11 = 4.into();
        let mut range = vec![0; 4];
        range.extend(8u32.to_le_bytes());
        range.extend(first.to_le_bytes());
        (entry, range)
    };
    for (first, expected) in [(0, Status::SUCCESS), (96, Status::WRITE_FAULT)] {
        let (entry, range) = deallocate(first);
        assert_eq!(drive.command(id, 1, &entry, &range).reply.status, expected);
    }
}

#[test]
fn windows_every_and_times_select_commands() {
    let strikes = |plan: &str, commands: usize| -> Vec<usize> {
        let (mut drive, id) = failing(plan);
        let failed = |number: &usize| {
            assert!(*number > 0);
            status(&mut drive, id, &read(0, 1)) != Status::SUCCESS
        };
        (1..=commands).filter(failed).collect()
    };
    let error = |more: &str| format!("[[fault]]\nkind = \"error\"\n{more}\n");
    assert_eq!(strikes(&error("from_command = 3\nfor_commands = 2"), 9), [3, 4]);
    assert_eq!(strikes(&error("every = 3"), 9), [3, 6, 9]);
    assert_eq!(strikes(&error("every = 2\nfrom_command = 4\ntimes = 2"), 12), [5, 7]);
    assert_eq!(strikes(&error("commands = [\"write\"]"), 9), [0; 0]);
    let some = strikes(&error("probability = 0.3"), 1000);
    assert!((250..350).contains(&some.len()), "{}", some.len());
    assert_eq!(some, strikes(&error("probability = 0.3"), 1000), "the same commands, the same faults");
    let other = strikes(&format!("seed = 2\n{}", error("probability = 0.3")), 1000);
    assert_ne!(some, other, "another seed, others");
    let beside =
        format!("{}\n{}", error("probability = 0.3"), "[[fault]]\nkind = \"delay\"\ndelay_ms = 1\nprobability = 0.5\n");
    assert_eq!(some, strikes(&beside, 1000), "a fault more changes nothing in the others");
}

#[test]
fn seconds_are_those_of_the_drives_clock() {
    let (mut drive, id) = failing("[[fault]]\nkind = \"error\"\nfrom_seconds = 1\nfor_seconds = 0.5\n");
    let mut at = |ms: u64| {
        drive.now = ms * NS_PER_MS;
        status(&mut drive, id, &read(0, 1))
    };
    assert_eq!(at(999), Status::SUCCESS);
    assert_eq!(at(1000), Status::UNRECOVERED_READ_ERROR);
    assert_eq!(at(1499), Status::UNRECOVERED_READ_ERROR);
    assert_eq!(at(1500), Status::SUCCESS);
}

#[test]
fn a_delay_is_as_long_as_it_says() {
    let due = |plan: &str| {
        let (mut drive, id) = failing(&format!("[[fault]]\nkind = \"delay\"\ncommands = [\"read\"]\n{plan}\n"));
        let mut one = |entry: &SubmissionEntry| drive.execute(id, 1, entry, &mut vec![0; 4096]).due / 1000;
        let written = one(&write(0));
        assert!(written < 1000, "only reads are slow");
        (0..200).map(|_| one(&read(0, 1))).collect::<Vec<u64>>()
    };
    assert_eq!(due("delay_ms = 20"), [20_000; 200]);
    let uniform = due("delay_ms = 1\ndelay_ms_max = 3");
    assert!(uniform.iter().all(|us| (1000..=3000).contains(us)), "{uniform:?}");
    let exponential = due("delay_ms = 2\ndelay_ms_max = 5\ndistribution = \"exponential\"");
    let (most, mean) = (exponential.iter().max().unwrap(), exponential.iter().sum::<u64>() / 200);
    assert!(*most == 5000 && (1400..2000).contains(&mean), "at most {most} us, on average {mean}");
}

#[test]
fn a_stuck_command_does_nothing_and_is_never_due() {
    let (mut drive, id) = failing("[[fault]]\nkind = \"stuck\"\ncommands = [\"write\"]\ntimes = 2\n");
    for _ in 0..2 {
        let outcome = drive.execute(id, 1, &write(5), &mut vec![7; 4096]);
        assert_eq!((outcome.due, outcome.reply.unwrap().status), (NEVER, Status::ABORT_REQUESTED));
    }
    assert_eq!(drive.read(id, 1, 5, 1), [0; 4096]);
    drive.write(id, 1, 5, &[7; 4096]);
}

#[test]
fn read_only_media_refuses_writes_for_as_long() {
    let (mut drive, id) = drive();
    request_events(&mut drive, id);
    plan_of(&mut drive, "[[fault]]\nkind = \"read_only\"\nfrom_command = 2\nfor_commands = 3\n");
    drive.write(id, 1, 0, &[1; 4096]);
    assert!(events(&mut drive, id).is_empty());
    for entry in [write(0), io(IoOpcode::WriteZeroes, 1, 0, 1)] {
        assert_eq!(status(&mut drive, id, &entry), Status::WRITE_TO_READ_ONLY_RANGE);
    }
    assert_eq!(drive.read(id, 1, 0, 1), [1; 4096]);
    // SMART / Health status, reliability, log page 02h, with critical warning bit 3.
    assert_eq!(events(&mut drive, id), [0x0002_0001]);
    assert_eq!(health(&mut drive, id).0, 1 << 3);
    drive.write(id, 1, 0, &[2; 4096]);
    assert_eq!(health(&mut drive, id).0, 0);
    assert_eq!(report(&drive).faults[0].struck, 1);
}

#[test]
fn health_is_what_the_plan_says() {
    let (mut drive, id) = drive();
    request_events(&mut drive, id);
    plan_of(
        &mut drive,
        "[[fault]]\nkind = \"spare\"\npercent = 5\nfrom_seconds = 1\n[[fault]]\nkind = \"temperature\"\ncelsius = 90\n\
         from_seconds = 2\n[[fault]]\nkind = \"degraded\"\nfrom_seconds = 3\n",
    );
    let mut after = |seconds: u64| {
        drive.now = seconds * 1000 * NS_PER_MS;
        drive.subsystem.tick(drive.now);
        let told = events(&mut drive, id);
        // Reading the log releases the next event of the type.
        let (warning, kelvins, spare, _) = health(&mut drive, id);
        (told, warning, kelvins, spare)
    };
    assert_eq!(after(0), (vec![], 0, 313, 100));
    assert_eq!(after(1), (vec![0x0002_0201], 1, 313, 5));
    assert_eq!(after(2), (vec![0x0002_0101], 0b11, 363, 5));
    assert_eq!(after(3), (vec![0x0002_0001], 0b111, 363, 5));
    drive.subsystem.set_faults(drive.now, None).expect("always possible");
    assert_eq!(health(&mut drive, id), (0, 313, 100, 0));
    assert!(drive.subsystem.faults().is_none());
}

#[test]
fn a_lost_namespace_comes_back() {
    let (mut drive, id) = drive();
    request_events(&mut drive, id);
    drive.write(id, 1, 9, &[3; 4096]);
    plan_of(&mut drive, "[[fault]]\nkind = \"lost_namespace\"\nnamespace = 1\nfor_seconds = 2\n");
    assert_eq!(events(&mut drive, id), [0x0004_0002], "the list of namespaces changed");
    assert_eq!(status(&mut drive, id, &read(9, 1)), Status::INVALID_FIELD);
    let active = |drive: &mut Drive| drive.succeeds(id, &identify(2, 0), &[]).1[0];
    assert_eq!(active(&mut drive), 0);
    assert_eq!(drive.succeeds(id, &get_log(4, 0, 4096), &[]).1[0], 1);
    drive.now += 2000 * NS_PER_MS;
    drive.subsystem.tick(drive.now);
    assert_eq!(events(&mut drive, id), [0x0004_0002]);
    assert_eq!((active(&mut drive), drive.read(id, 1, 9, 1)), (1, vec![3; 4096]));
}

#[test]
fn events_that_overflow_lose_the_oldest() {
    let (mut drive, _) = failing("[[fault]]\nkind = \"event_overflow\"\nfrom_seconds = 1\n");
    let log = |drive: &Drive| {
        let events = drive.subsystem.state().fdp.events.host();
        (events.iter().len(), events.overwritten())
    };
    assert_eq!(log(&drive), (0, 0));
    drive.now = 1000 * NS_PER_MS;
    drive.subsystem.tick(drive.now);
    assert_eq!(log(&drive), (63, 0));
    plan_of(&mut drive, "[[fault]]\nkind = \"event_overflow\"\n");
    assert_eq!(log(&drive), (63, 63));
}

#[test]
fn a_power_loss_takes_only_what_was_not_flushed() {
    let plan = "seed = 3\n[[fault]]\nkind = \"power_loss\"\nfrom_command = 201\n";
    let after = |plan: &str| {
        let (mut drive, id) = drive();
        plan_of(&mut drive, plan);
        for lba in 0..100 {
            drive.write(id, 1, lba, &[1; 4096]);
        }
        assert_eq!(status(&mut drive, id, &io(IoOpcode::Flush, 1, 0, 1)), Status::SUCCESS);
        for lba in 50..149 {
            drive.write(id, 1, lba, &[2; 4096]);
        }
        assert!(drive.try_command(id, 1, &read(0, 1), &[]).is_none(), "nobody answers");
        assert!(drive.subsystem.has_lost_power());
        assert!(drive.try_command(id, 0, &get_log(2, 0, 512), &[]).is_none());
        let bytes = drive.memory.bytes.lock().unwrap();
        let pages = bytes.chunks(PAGE_BYTES as usize).take(150);
        pages.map(|page| page.iter().all(|byte| *byte == page[0]).then_some(page[0])).collect::<Vec<_>>()
    };
    let found = after(plan);
    assert_eq!(found[..50], [Some(1); 50], "flushed, and not written since");
    assert!(found[50..100].iter().all(|page| matches!(page, Some(1 | 2))));
    assert!(found[100..149].iter().all(|page| matches!(page, Some(0 | 2))));
    let survived = found.iter().filter(|page| **page == Some(2)).count();
    assert!((30..70).contains(&survived), "{survived} of 99");
    assert_eq!(found, after(plan), "the same seed, the same loss");
    assert_ne!(found, after(&plan.replace("seed = 3", "seed = 4")));
    let small = after(&format!("write_cache_bytes = 41600\nsurvivors = 0.0\n{}", &plan[9..]));
    let lost = small[139..149].iter().filter(|page| **page == Some(0)).count();
    let kept = small[100..139].iter().filter(|page| **page == Some(2)).count();
    assert_eq!((lost, kept), (10, 39), "no more than the cache holds");
}

#[test]
fn a_write_through_is_not_lost() {
    let (mut drive, id) = failing("survivors = 0.0\n[[fault]]\nkind = \"power_loss\"\nfrom_command = 3\n");
    let mut through = write(1);
    through.cdw12 = (1 << 30).into();
    assert!(drive.command(id, 1, &through, &[5; 4096]).synced);
    drive.write(id, 1, 2, &[6; 4096]);
    assert!(drive.try_command(id, 1, &write(3), &[7; 4096]).is_none());
    let bytes = drive.memory.bytes.lock().unwrap();
    assert_eq!((bytes[4096], bytes[8192], bytes[12288]), (5, 0, 0));
}

#[test]
fn a_drive_that_forgets_cannot_lose_power() {
    let mut drive = Drive::on(config(), false);
    let plan = FaultPlan::parse("[[fault]]\nkind = \"power_loss\"\n").unwrap();
    assert_eq!(drive.subsystem.set_faults(0, Some(plan)), Err(UnsupportedFault::NoCache));
    assert!(drive.subsystem.faults().is_none());
}

/// Runs the plans of docs/faults on a drive with reads and writes. Every fault in them must happen.
#[test]
fn plans_of_the_manual_do_what_they_say() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/faults");
    let mut plans = 0;
    for file in std::fs::read_dir(folder).expect("the manual's plans") {
        let path = file.expect("a file").path();
        plans += 1;
        let (mut drive, id) = failing(&std::fs::read_to_string(&path).expect("a plan"));
        for number in 0..31_000 {
            drive.now += 2 * NS_PER_MS;
            let lba = number * 7 % 2000;
            let _ = drive.try_command(id, 1, &[write(lba), read(lba, 1)][number as usize % 3 / 2], &[1; 4096]);
        }
        let never: Vec<_> = report(&drive).faults.into_iter().filter(|fault| fault.struck == 0).collect();
        assert!(never.is_empty(), "{}: {never:?}", path.display());
    }
    assert!(plans >= 3, "{plans} plans");
}
