//! Creation, attachment and deletion of namespaces, and their state over a restart.

use nvme::{ControllerKind, HostTransport};
use nvme_spec::command::{FormatNvmCdw10, SanitizeCdw10, SubmissionEntry};
use nvme_spec::identify::{Cns, Flbas, NamespaceCreate, Nmic};
use nvme_spec::log::ErrorInformationEntry;
use nvme_spec::{AdminOpcode, IoOpcode, NSID_ALL, Status};
use zerocopy::IntoBytes;

use crate::common::{CAPACITY_BYTES, Drive, PAGE_BYTES, admin, config, get_log, io};
use crate::{
    attach, attachment, create, create_entry, delete, delete_entry, fields, format_entry, identify_controller,
    identify_namespace, make_namespace, namespaces, read, sanitize_entry,
};

/// Change that makes fields invalid.
type Change = fn(&mut NamespaceCreate);

#[test]
fn what_cannot_be_created_is_refused_with_its_status() {
    let mut drive = Drive::new();
    let id = drive.host();
    let cases: [(&str, Change, Status); 9] = [
        ("no blocks", |fields| *fields = self::fields(0, &[0]), Status::INVALID_FIELD),
        ("thin", |fields| fields.ncap = 15.into(), Status::THIN_PROVISIONING_NOT_SUPPORTED),
        ("more capacity than size", |fields| fields.ncap = 17.into(), Status::INVALID_FIELD),
        ("format 4", |fields| fields.flbas.set_fidxl(4), Status::INVALID_FORMAT),
        ("format 16", |fields| fields.flbas.set_fidxu(1), Status::INVALID_FORMAT),
        ("protection information", |fields| fields.dps.set_pit(1), Status::INVALID_FORMAT),
        ("an ANA group", |fields| fields.anagrpid = 1.into(), Status::ANA_GROUP_IDENTIFIER_INVALID),
        ("endurance group 2", |fields| fields.endgid = 2.into(), Status::INVALID_FIELD),
        ("dispersed", |fields| fields.nmic = Nmic::new().with_disns(true), Status::INVALID_FIELD),
    ];
    for (what, change, status) in cases {
        let mut fields = fields(16, &[0]);
        change(&mut fields);
        let reply = drive.admin(id, &create_entry(), fields.as_bytes()).reply;
        assert_eq!(reply.status, status, "{what}");
        assert!(reply.do_not_retry, "{what}");
    }
    let mut zoned = create_entry();
    zoned.cdw11 = (2 << 24).into();
    drive.refuses(id, &zoned, fields(16, &[0]).as_bytes(), Status::IOCS_NOT_SUPPORTED);
    let mut unknown = create_entry();
    unknown.cdw10 = 3.into();
    drive.refuses(id, &unknown, &[], Status::INVALID_FIELD);
    assert_eq!(namespaces(&mut drive, id, Cns::AllocatedNamespaceList, 0), []);
}

#[test]
fn capacity_is_handed_out_to_the_last_page_and_comes_back() {
    let mut drive = Drive::new();
    let id = drive.host();
    let pages = CAPACITY_BYTES / PAGE_BYTES;
    let unallocated = |drive: &mut Drive| identify_controller(drive, id).unvmcap.get() as u64;
    create(&mut drive, id, &fields(pages - 10, &[0]));
    assert_eq!(unallocated(&mut drive), 10 * PAGE_BYTES);
    // With blocks of 512 bytes, the last page is allocated as a whole.
    let mut small = fields(9 * 8 + 1, &[1]);
    small.flbas = Flbas::new().with_fidxl(1);
    create(&mut drive, id, &small);
    assert_eq!(unallocated(&mut drive), 0);

    let too_large = fields(5, &[0]);
    let reply = drive.refuses(id, &create_entry(), too_large.as_bytes(), Status::NAMESPACE_INSUFFICIENT_CAPACITY);
    assert!(reply.more);
    // The error log has the required capacity.
    let entry: ErrorInformationEntry = read(&drive.succeeds(id, &get_log(0x01, 0, 64), &[]).1);
    assert_eq!(entry.csinfo.get(), 5 * PAGE_BYTES);
    let absurd = fields(u64::MAX, &[0]);
    drive.refuses(id, &create_entry(), absurd.as_bytes(), Status::NAMESPACE_INSUFFICIENT_CAPACITY);

    delete(&mut drive, id, NSID_ALL);
    assert_eq!(unallocated(&mut drive), CAPACITY_BYTES);
    for _ in 0..32 {
        create(&mut drive, id, &fields(1, &[0]));
    }
    let reason = Status::NAMESPACE_IDENTIFIER_UNAVAILABLE;
    drive.refuses(id, &create_entry(), fields(1, &[0]).as_bytes(), reason);
    delete(&mut drive, id, 17);
    assert_eq!(create(&mut drive, id, &fields(1, &[0])), 17);
}

#[test]
fn placement_handle_lists_are_checked() {
    let mut drive = Drive::new();
    let id = drive.host();
    let invalid = Status::INVALID_PLACEMENT_HANDLE_LIST;
    // The drive has handles 0 to 3.
    for wrong in [&[4][..], &[0, 1, 2, 3, 0], &[1, 2, 1]] {
        drive.refuses(id, &create_entry(), fields(16, wrong).as_bytes(), invalid);
    }
    let mut many = fields(16, &[0]);
    many.nphndls = u16::MAX.into();
    drive.refuses(id, &create_entry(), many.as_bytes(), invalid);

    let listed = create(&mut drive, id, &fields(16, &[3, 0]));
    // The controller chooses an unlisted handle for all namespaces without a list. Hosts can then
    // not list it.
    let chosen = create(&mut drive, id, &fields(16, &[]));
    let chosen_too = create(&mut drive, id, &fields(16, &[]));
    let handles = |drive: &Drive, nsid: u32| -> Vec<u16> {
        let (_, namespace) = drive.subsystem.namespaces().find(|&(its, _)| its == nsid).unwrap();
        namespace.placement_handles.iter().map(|handle| handle.0).collect()
    };
    assert_eq!(handles(&drive, listed), [3, 0]);
    assert_eq!((handles(&drive, chosen), handles(&drive, chosen_too)), (vec![1], vec![1]));
    drive.refuses(id, &create_entry(), fields(16, &[2, 1]).as_bytes(), invalid);

    // Namespaces that share a reclaim unit handle have the same format.
    let mut other_format = fields(16, &[2, 3]);
    other_format.flbas = Flbas::new().with_fidxl(1);
    drive.refuses(id, &create_entry(), other_format.as_bytes(), Status::INVALID_FORMAT);
    other_format.phndl[1] = 2.into();
    other_format.nphndls = 1.into();
    create(&mut drive, id, &other_format);

    // No handle is left to choose.
    delete(&mut drive, id, chosen);
    delete(&mut drive, id, chosen_too);
    create(&mut drive, id, &fields(16, &[1]));
    drive.refuses(id, &create_entry(), fields(16, &[]).as_bytes(), invalid);
}

#[test]
fn attaching_says_who_sees_a_namespace() {
    let mut drive = Drive::new();
    let (first, second) = (drive.host(), drive.host());
    let private = create(&mut drive, first, &fields(16, &[0]));
    let mut shared = fields(16, &[0]);
    shared.nmic = Nmic::new().with_shrns(true);
    let shared = create(&mut drive, first, &shared);

    let mut tries = |nsid: u32, select: u32, ids: &[u16], expected: Result<(), Status>| {
        let (entry, list) = attachment(nsid, select, ids);
        let status = drive.admin(first, &entry, list.as_bytes()).reply.status;
        assert_eq!(status, expected.err().unwrap_or(Status::SUCCESS), "namespace {nsid}, {select}, {ids:?}");
    };
    let (attach, detach) = (0, 1);
    tries(private, detach, &[first], Err(Status::NAMESPACE_NOT_ATTACHED));
    tries(private, attach, &[first, second], Err(Status::NAMESPACE_IS_PRIVATE));
    tries(private, attach, &[first], Ok(()));
    tries(private, attach, &[second], Err(Status::NAMESPACE_IS_PRIVATE));
    tries(private, attach, &[first], Err(Status::NAMESPACE_ALREADY_ATTACHED));
    tries(private, detach, &[first], Ok(()));
    tries(private, attach, &[second], Ok(()));
    tries(shared, attach, &[first, second], Ok(()));
    tries(shared, detach, &[first], Ok(()));
    for list in [&[][..], &[second, first], &[second, second], &[3], &[0], &[u16::MAX]] {
        tries(shared, attach, list, Err(Status::CONTROLLER_LIST_INVALID));
    }
    tries(5, attach, &[first], Err(Status::INVALID_FIELD));
    tries(NSID_ALL, attach, &[first], Err(Status::INVALID_NAMESPACE_OR_FORMAT));
    tries(shared, 2, &[first], Err(Status::INVALID_FIELD));

    assert_eq!(namespaces(&mut drive, first, Cns::ActiveNamespaceList, 0), []);
    assert_eq!(namespaces(&mut drive, second, Cns::ActiveNamespaceList, 0), [private, shared]);
    let refused = drive.command(first, 1, &io(IoOpcode::Read, private, 0, 1), &[]);
    assert_eq!(refused.reply.status, Status::INVALID_FIELD);
    let (entry, mut list) = attachment(shared, attach, &[first]);
    list.numids = 2048.into();
    drive.refuses(first, &entry, list.as_bytes(), Status::CONTROLLER_LIST_INVALID);
}

/// Only affected controllers are notified of a change.
#[test]
fn changes_of_namespaces_are_told_to_whom_they_concern() {
    let mut drive = Drive::new();
    let (first, second) = (drive.host(), drive.host());
    let nsid = create(&mut drive, first, &fields(16, &[0]));
    for id in [first, second] {
        // Attached Namespace Attribute Notices.
        let configure =
            SubmissionEntry { cdw10: 0x0b.into(), cdw11: (1 << 8).into(), ..admin(AdminOpcode::SetFeatures, 0) };
        drive.succeeds(id, &configure, &[]);
        let request = admin(AdminOpcode::AsynchronousEventRequest, 0);
        assert!(drive.try_command(id, 0, &request, &[]).is_none(), "nothing has happened");
    }
    attach(&mut drive, first, nsid, &[second]);
    assert!(drive.subsystem.async_completions(first).is_empty());
    let told = drive.subsystem.async_completions(second);
    // Notice, attached namespace attribute changed, log page 04h.
    assert_eq!((told.len(), told[0].cid, told[0].reply.result), (1, 7, 0x0004_0002));
    let changed = |drive: &mut Drive, id: u16| drive.succeeds(id, &get_log(0x04, 0, 4096), &[]).1[..8].to_vec();
    assert_eq!(changed(&mut drive, first), [0; 8]);
    assert_eq!(changed(&mut drive, second), [nsid as u8, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(changed(&mut drive, second), [0; 8], "reading clears it");

    let request = admin(AdminOpcode::AsynchronousEventRequest, 0);
    assert!(drive.try_command(second, 0, &request, &[]).is_none());
    delete(&mut drive, first, nsid);
    assert_eq!(drive.subsystem.async_completions(second)[0].reply.result, 0x0004_0002);
    // The end of a sanitize operation is reported to all controllers (I/O Command specific,
    // sanitize completed, log page 81h).
    drive.succeeds(first, &sanitize_entry(SanitizeCdw10::new().with_sanact(2)), &[]);
    drive.tick();
    assert_eq!(drive.subsystem.async_completions(first)[0].reply.result, 0x0081_0106);
}

/// The namespace of a new drive is attached to all controllers. Detaching one leaves the others
/// attached.
#[test]
fn detaching_from_a_namespace_of_everyone() {
    let mut whole = config();
    whole.namespace = true;
    let mut drive = Drive::of(whole);
    let first = drive.host();
    let (entry, list) = attachment(1, 1, &[first]);
    drive.succeeds(first, &entry, list.as_bytes());
    let second = drive.host();
    assert_eq!(namespaces(&mut drive, first, Cns::ActiveNamespaceList, 0), []);
    assert_eq!(namespaces(&mut drive, second, Cns::ActiveNamespaceList, 0), [1]);
    assert_eq!(identify_namespace(&mut drive, second, 1).nsze.get(), CAPACITY_BYTES / PAGE_BYTES);
}

#[test]
fn deleting_gives_pages_and_bytes_back() {
    let mut drive = Drive::new();
    let id = drive.host();
    let kept = make_namespace(&mut drive, id, 64, &[0]);
    let deleted = make_namespace(&mut drive, id, 64, &[1]);
    drive.write(id, kept, 0, &[1; 64 * 4096]);
    drive.write(id, deleted, 0, &[2; 64 * 4096]);
    assert_eq!(drive.subsystem.device().live_pages(), 128);
    delete(&mut drive, id, deleted);
    assert_eq!(drive.subsystem.device().live_pages(), 64);
    assert!(!drive.memory.bytes.lock().unwrap().contains(&2));
    assert_eq!(drive.read(id, kept, 63, 1), [1; 4096]);
    drive.refuses(id, &delete_entry(deleted), &[], Status::INVALID_FIELD);
    drive.refuses(id, &delete_entry(0), &[], Status::INVALID_NAMESPACE_OR_FORMAT);
    drive.subsystem.device().check().expect("the device is sound");

    // A new namespace in its place is empty.
    let again = make_namespace(&mut drive, id, 64, &[1]);
    assert_eq!((again, drive.read(id, again, 0, 64)), (deleted, vec![0; 64 * 4096]));
}

#[test]
fn what_the_storage_does_not_take_has_not_happened() {
    use std::sync::atomic::Ordering;
    let mut drive = Drive::new();
    let id = drive.host();
    let nsid = make_namespace(&mut drive, id, 16, &[0]);
    drive.memory.broken.store(true, Ordering::Relaxed);
    let reply = drive.refuses(id, &create_entry(), fields(16, &[0]).as_bytes(), Status::INTERNAL_ERROR);
    assert!(!reply.do_not_retry);
    let (entry, list) = attachment(nsid, 1, &[id]);
    drive.refuses(id, &entry, list.as_bytes(), Status::INTERNAL_ERROR);
    drive.refuses(id, &delete_entry(nsid), &[], Status::INTERNAL_ERROR);
    drive.memory.broken.store(false, Ordering::Relaxed);
    assert_eq!(namespaces(&mut drive, id, Cns::AllocatedNamespaceList, 0), [nsid]);
    assert_eq!(namespaces(&mut drive, id, Cns::ActiveNamespaceList, 0), [nsid]);
    assert!(drive.memory.state().namespaces.find(nsid).is_some());
}

#[test]
fn a_namespace_whose_deletion_cannot_be_stored_keeps_its_features() {
    use std::sync::atomic::Ordering;
    const ERROR_RECOVERY: u32 = 0x05;
    let mut drive = Drive::new();
    let id = drive.host();
    let nsid = make_namespace(&mut drive, id, 16, &[0]);
    let set =
        SubmissionEntry { cdw10: ERROR_RECOVERY.into(), cdw11: 2.into(), ..admin(AdminOpcode::SetFeatures, nsid) };
    let get = SubmissionEntry { cdw10: ERROR_RECOVERY.into(), ..admin(AdminOpcode::GetFeatures, nsid) };
    drive.succeeds(id, &set, &[]);
    drive.memory.forgetful.store(true, Ordering::Relaxed);
    drive.refuses(id, &delete_entry(nsid), &[], Status::INTERNAL_ERROR);
    drive.memory.forgetful.store(false, Ordering::Relaxed);
    assert_eq!(drive.succeeds(id, &get, &[]).0, 2);
    drive.succeeds(id, &delete_entry(nsid), &[]);
    assert_eq!(make_namespace(&mut drive, id, 16, &[0]), nsid);
    assert_eq!(drive.succeeds(id, &get, &[]).0, 0, "another namespace begins with the default");
}

/// A change that cannot be stored has no effect, least of all on the data.
#[test]
fn a_deletion_or_a_format_that_cannot_be_stored_destroys_nothing() {
    use std::sync::atomic::Ordering;
    let mut drive = Drive::new();
    let id = drive.host();
    let nsid = make_namespace(&mut drive, id, 64, &[0]);
    drive.write(id, nsid, 0, &[7; 4096 * 64]);
    let before = identify_namespace(&mut drive, id, nsid);
    let format = format_entry(nsid, FormatNvmCdw10::new().with_lbafl(1));
    drive.memory.forgetful.store(true, Ordering::Relaxed);
    for entry in [delete_entry(nsid), delete_entry(u32::MAX), format] {
        drive.refuses(id, &entry, &[], Status::INTERNAL_ERROR);
        assert_eq!(identify_namespace(&mut drive, id, nsid), before);
        let read = drive.command(id, 1, &io(IoOpcode::Read, nsid, 0, 64), &[]);
        assert!(read.data == [7; 4096 * 64], "all of it is there");
    }
    drive.memory.forgetful.store(false, Ordering::Relaxed);
    drive.succeeds(id, &format, &[]);
    let read = drive.command(id, 1, &io(IoOpcode::Read, nsid, 0, 64), &[]);
    assert_eq!(read.data, [0; 512 * 64]);
    delete(&mut drive, id, nsid);
    assert!(drive.memory.is_zero());
}

/// "The initial set of attached namespaces should be the same for all controllers that are
/// allocated to a specific host."
#[test]
fn controllers_of_a_host_have_the_same_namespaces() {
    let mut drive = Drive::new();
    let host =
        |name: &str| nvme::HostIdentity { nqn: format!("nqn.2026-01.io.warp:{name}"), id: [name.len() as u8; 16] };
    let connect = |drive: &mut Drive, name| {
        let connected = drive.subsystem.connect(0, HostTransport::Fabrics, ControllerKind::Io, host(name));
        let id = connected.unwrap();
        drive.enable(id);
        id
    };
    let unproved = connect;
    let connect = |drive: &mut Drive, name| {
        let id = unproved(drive, name);
        drive.subsystem.establish(id);
        id
    };
    let first = connect(&mut drive, "a");
    let shared = NamespaceCreate { nmic: Nmic::new().with_shrns(true), ..fields(16, &[0]) };
    let shared = create(&mut drive, first, &shared);
    attach(&mut drive, first, shared, &[first]);
    let private = make_namespace(&mut drive, first, 16, &[1]);
    let second = connect(&mut drive, "a");
    let stranger = connect(&mut drive, "other");
    let active = |drive: &mut Drive, id| namespaces(drive, id, Cns::ActiveNamespaceList, 0);
    assert_eq!(active(&mut drive, second), [shared], "the private one has its controller");
    assert_eq!(active(&mut drive, stranger), []);
    // The old connection was lost. Its private namespaces belong to the host, not to the
    // controller.
    drive.subsystem.disconnect(first);
    assert_eq!(active(&mut drive, second), [shared, private]);
    // A client that only claims the host's name gets no namespaces and leaves no traces.
    let before = format!("{:?}", drive.subsystem.state().namespaces);
    let impostor = unproved(&mut drive, "a");
    assert_eq!(format!("{:?}", drive.subsystem.state().namespaces), before);
    drive.subsystem.disconnect(second);
    assert!(!drive.subsystem.state().namespaces.find(2).unwrap().is_attached(impostor));
    drive.subsystem.disconnect(impostor);
    // Other hosts get controllers that the host did not have. The host finds all its namespaces
    // again.
    let next = connect(&mut drive, "next");
    assert_eq!(active(&mut drive, next), []);
    let back = connect(&mut drive, "a");
    assert_eq!((back, active(&mut drive, back)), (first, vec![shared, private]));
}

/// A private namespace is attached to a controller number of its host. After a restart the number
/// still belongs to that host.
#[test]
fn controllers_are_those_of_their_hosts_over_a_restart() {
    let connect = |drive: &mut Drive, name: &str| {
        let host = nvme::HostIdentity { nqn: format!("nqn.2014-08.com.example:{name}"), id: [name.len() as u8; 16] };
        let id = drive.subsystem.connect(0, HostTransport::Fabrics, ControllerKind::Io, host);
        let id = id.expect("room for a controller");
        drive.subsystem.establish(id);
        drive.enable(id);
        id
    };
    let active = |drive: &mut Drive, id| namespaces(drive, id, Cns::ActiveNamespaceList, 0);
    let mut drive = Drive::new();
    let first = connect(&mut drive, "a");
    let fields = NamespaceCreate { nmic: Nmic::new().with_shrns(true), ..fields(16, &[0]) };
    let shared = create(&mut drive, first, &fields);
    attach(&mut drive, first, shared, &[first]);
    let peer = connect(&mut drive, "a");
    assert_eq!(active(&mut drive, peer), [shared]);
    let private = make_namespace(&mut drive, first, 16, &[1]);
    let mut drive = drive.restart();
    let attached = &drive.subsystem.state().namespaces.iter().next().unwrap().1.attached;
    assert!(!attached.contains(&peer), "an inherited attachment ends with its controller");
    let other = connect(&mut drive, "other");
    assert_eq!(active(&mut drive, other), []);
    let back = connect(&mut drive, "a");
    assert_eq!((back, active(&mut drive, back)), (first, vec![shared, private]));
}

#[test]
fn namespaces_survive_a_restart() {
    let mut drive = Drive::new();
    let id = drive.host();
    make_namespace(&mut drive, id, 16, &[2]);
    make_namespace(&mut drive, id, 32, &[0, 3]);
    delete(&mut drive, id, 1);
    let before = identify_namespace(&mut drive, id, 2);
    let mut drive = drive.restart();
    let id = drive.host();
    assert_eq!(namespaces(&mut drive, id, Cns::ActiveNamespaceList, 0), [2]);
    assert_eq!(identify_namespace(&mut drive, id, 2), before);
}
