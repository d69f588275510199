//! Identify, namespaces, Format, Sanitize, self-tests, directives and the switching of Flexible
//! Data Placement, as hosts see them.

mod common;

use common::{CAPACITY_BYTES, Drive, PAGE_BYTES, admin, config, get_log, identify, io, set_fdp};
use nvme::{ControllerKind, HostTransport};
use nvme_spec::command::{
    DeviceSelfTestCdw10, DirectiveCdw11, EnableDirectiveCdw12, FormatNvmCdw10, SanitizeCdw10, SubmissionEntry,
};
use nvme_spec::identify::{
    Cns, ControllerList, Flbas, IdentifyNamespaceIndependent, IoCommandSets, NamespaceCreate, NamespaceList, Nmic,
};
use nvme_spec::log::{DeviceSelfTestLog, ErrorInformationEntry, SanitizeStatusLog};
use nvme_spec::{AdminOpcode, IdentifyController, IdentifyNamespace, IoOpcode, NSID_ALL, Status};
use ssd::config::{HandlesConfig, Isolation};
use zerocopy::{FromBytes, IntoBytes};

/// A data structure that Identify or Get Log Page sent.
fn read<T: FromBytes + zerocopy::KnownLayout + zerocopy::Immutable>(bytes: &[u8]) -> T {
    T::read_from_bytes(bytes).expect("the whole structure")
}

fn identify_controller(drive: &mut Drive, id: u16) -> IdentifyController {
    read(&drive.succeeds(id, &identify(0x01, 0), &[]).1)
}

fn identify_namespace(drive: &mut Drive, id: u16, nsid: u32) -> IdentifyNamespace {
    read(&drive.succeeds(id, &identify(0x00, nsid), &[]).1)
}

/// The identifiers of a namespace list.
fn namespaces(drive: &mut Drive, id: u16, cns: Cns, after: u32) -> Vec<u32> {
    let list: NamespaceList = read(&drive.succeeds(id, &identify(cns.code(), after), &[]).1);
    list.nsid
        .iter()
        .map(|nsid| nsid.get())
        .take_while(|&nsid| nsid != 0)
        .collect()
}

/// The identifiers of a controller list.
fn controllers(drive: &mut Drive, id: u16, cns: Cns, nsid: u32, from: u16) -> Vec<u16> {
    let mut entry = identify(cns.code(), nsid);
    entry.cdw10 = (u32::from(cns.code()) | u32::from(from) << 16).into();
    let list: ControllerList = read(&drive.succeeds(id, &entry, &[]).1);
    list.cntlid[..usize::from(list.numids.get())]
        .iter()
        .map(|id| id.get())
        .collect()
}

/// Fields of a private namespace with a page for each block and these reclaim unit handles.
fn fields(blocks: u64, handles: &[u16]) -> NamespaceCreate {
    let mut fields = NamespaceCreate {
        nsze: blocks.into(),
        ncap: blocks.into(),
        nphndls: (handles.len() as u16).into(),
        ..NamespaceCreate::default()
    };
    for (place, &handle) in fields.phndl.iter_mut().zip(handles) {
        *place = handle.into();
    }
    fields
}

fn create_entry() -> SubmissionEntry {
    admin(AdminOpcode::NamespaceManagement, 0)
}

#[track_caller]
fn create(drive: &mut Drive, id: u16, fields: &NamespaceCreate) -> u32 {
    drive.succeeds(id, &create_entry(), fields.as_bytes()).0 as u32
}

fn delete_entry(nsid: u32) -> SubmissionEntry {
    SubmissionEntry {
        cdw10: 1.into(),
        ..admin(AdminOpcode::NamespaceManagement, nsid)
    }
}

#[track_caller]
fn delete(drive: &mut Drive, id: u16, nsid: u32) {
    drive.succeeds(id, &delete_entry(nsid), &[]);
}

/// Attach (0) or detach (1) command with its list.
fn attachment(nsid: u32, select: u32, controllers: &[u16]) -> (SubmissionEntry, ControllerList) {
    let entry = SubmissionEntry {
        cdw10: select.into(),
        ..admin(AdminOpcode::NamespaceAttachment, nsid)
    };
    let mut list = ControllerList {
        numids: (controllers.len() as u16).into(),
        ..ControllerList::default()
    };
    for (place, &id) in list.cntlid.iter_mut().zip(controllers) {
        *place = id.into();
    }
    (entry, list)
}

#[track_caller]
fn attach(drive: &mut Drive, id: u16, nsid: u32, controllers: &[u16]) {
    let (entry, list) = attachment(nsid, 0, controllers);
    drive.succeeds(id, &entry, list.as_bytes());
}

/// A namespace of 4 KiB blocks, attached to the controller that makes it.
#[track_caller]
fn make_namespace(drive: &mut Drive, id: u16, blocks: u64, handles: &[u16]) -> u32 {
    let nsid = create(drive, id, &fields(blocks, handles));
    attach(drive, id, nsid, &[id]);
    nsid
}

fn sanitize_entry(dword: SanitizeCdw10) -> SubmissionEntry {
    SubmissionEntry {
        cdw10: dword.into_bits().into(),
        ..admin(AdminOpcode::Sanitize, 0)
    }
}

fn sanitize_log(drive: &mut Drive, id: u16) -> SanitizeStatusLog {
    read(&drive.succeeds(id, &get_log(0x81, 0, 512), &[]).1)
}

// -------------------------------------------------------------------------------- Identify --

#[test]
fn a_pcie_controller_says_what_it_can_do() {
    let mut drive = Drive::new();
    let id = drive.host();
    let bytes = drive.succeeds(id, &identify(0x01, 0), &[]).1;
    let controller: IdentifyController = read(&bytes);
    assert_eq!(&controller.sn, b"WARP0001            ");
    assert_eq!(&controller.fr, b"1.0     ");
    assert!(controller.subnqn.starts_with(config().identity.nqn.as_bytes()));
    // 1 MiB, version 2.1, I/O controller.
    assert_eq!(
        (controller.mdts, controller.ver.get(), controller.cntrltype),
        (8, 0x0002_0100, 1)
    );
    assert_eq!(controller.cntlid.get(), id);
    // Endurance groups (bit 4) and Flexible Data Placement (bit 19).
    let ctratt = u32::from_le_bytes(bytes[96..100].try_into().unwrap());
    assert_eq!(ctratt & (1 << 4 | 1 << 19), 1 << 4 | 1 << 19);
    assert_eq!(controller.endgidmax.get(), 1);
    // Format, namespace management, self-test, directives, doorbell buffers.
    assert_eq!(
        controller.oacs.into_bits().get(),
        1 << 1 | 1 << 3 | 1 << 4 | 1 << 5 | 1 << 8
    );
    // Compare, Write Uncorrectable, DSM, Write Zeroes, save, timestamp, Verify, Copy.
    assert_eq!(controller.oncs.into_bits().get(), 0b1_1101_1111);
    assert_eq!((bytes[512], bytes[513], controller.nn.get()), (0x66, 0x44, 32));
    // A volatile write cache, and Flush of all namespaces.
    assert_eq!(bytes[525], 0b111);
    assert_eq!(controller.tnvmcap.get(), u128::from(CAPACITY_BYTES));
    assert_eq!((controller.ioccsz.get(), controller.maxcmd.get()), (0, 0));
    // SGLs without alignment, with bit buckets, and longer than the data.
    assert_eq!(controller.sgls.into_bits().get(), 1 | 1 << 16 | 1 << 18 | 1 << 19);
    // PCI Express has no connection to keep alive. Neither support nor the traffic based kind (bit
    // 6) is reported.
    assert_eq!((controller.kas.get(), ctratt & 1 << 6), (0, 0));

    let mut uncached = Drive::on(config(), false);
    let id = uncached.host();
    assert_eq!(uncached.succeeds(id, &identify(0x01, 0), &[]).1[525] & 1, 0);
}

#[test]
fn a_fabrics_controller_has_capsules_and_no_doorbells() {
    let mut drive = Drive::new();
    let id = drive.connect(HostTransport::Fabrics, ControllerKind::Io);
    let controller = identify_controller(&mut drive, id);
    // A command with 128 KiB of data, and a completion, in units of 16 bytes.
    assert_eq!(
        (
            controller.ioccsz.get(),
            controller.iorcsz.get(),
            controller.icdoff.get()
        ),
        (8196, 1, 0)
    );
    assert!(controller.maxcmd.get() > 0 && controller.kas.get() > 0 && controller.ctratt.tbkas());
    assert!(!controller.oacs.dbcs());
    // SGLs longer than the data, with offsets, and in data blocks of the transport.
    assert_eq!(controller.sgls.into_bits().get(), 1 | 1 << 18 | 1 << 20 | 1 << 21);
    assert_eq!(controller.vid.get(), 0);
}

#[test]
fn a_discovery_controller_has_little_else_than_itself() {
    let mut drive = Drive::new();
    let host = drive.host();
    make_namespace(&mut drive, host, 16, &[0]);
    let id = drive.connect(HostTransport::Fabrics, ControllerKind::Discovery);
    let controller = identify_controller(&mut drive, id);
    assert_eq!((controller.cntrltype, controller.nn.get()), (2, 0));
    assert!(controller.subnqn.starts_with(b"nqn.2014-08.org.nvmexpress.discovery\0"));
    for cns in [0x00, 0x02, 0x08, 0x13, 0x1c] {
        drive.refuses(id, &identify(cns, 1), &[], Status::INVALID_FIELD);
    }
    for opcode in [
        AdminOpcode::FormatNvm,
        AdminOpcode::Sanitize,
        AdminOpcode::NamespaceManagement,
    ] {
        // Block erase for Sanitize, another valid value for the others.
        let entry = SubmissionEntry {
            cdw10: if opcode == AdminOpcode::Sanitize { 2 } else { 0 }.into(),
            ..admin(opcode, 1)
        };
        drive.refuses(id, &entry, &[], Status::INVALID_COMMAND_OPCODE);
    }
    drive.succeeds(id, &admin(AdminOpcode::KeepAlive, 0), &[]);
    // Lists of controllers for namespaces do not include it.
    assert_eq!(controllers(&mut drive, host, Cns::ControllerList, 0, 0), [host]);
}

/// Boot firmware asks for every identifier up to NN, attached or not.
#[test]
fn identify_answers_for_every_namespace_identifier() {
    let mut drive = Drive::new();
    let id = drive.host();
    let nsid = make_namespace(&mut drive, id, 1000, &[1, 2]);
    let unattached = create(&mut drive, id, &fields(16, &[3]));
    for number in 1..=identify_controller(&mut drive, id).nn.get() {
        for cns in [0x00, 0x08] {
            let bytes = drive.succeeds(id, &identify(cns, number), &[]).1;
            assert_eq!(bytes.len(), 4096);
            assert_eq!(
                bytes.iter().any(|&byte| byte != 0),
                number == nsid,
                "CNS {cns:#x} of namespace {number}"
            );
        }
    }
    for asked in [0, 33, NSID_ALL - 1] {
        drive.refuses(id, &identify(0x00, asked), &[], Status::INVALID_NAMESPACE_OR_FORMAT);
    }
    let allocated: IdentifyNamespace = read(&drive.succeeds(id, &identify(0x11, unattached), &[]).1);
    assert_eq!(allocated.nsze.get(), 16);
    let common = identify_namespace(&mut drive, id, NSID_ALL);
    assert_eq!((common.nsze.get(), common.nlbaf), (0, 3));
    let formats = common.lbaf[..5]
        .iter()
        .map(|format| (format.lbads, format.ms.get(), format.rp));
    let expected = [(12, 0, 0), (9, 0, 2), (12, 64, 1), (9, 8, 3), (0, 0, 0)];
    assert_eq!(formats.collect::<Vec<_>>(), expected);
}

#[test]
fn a_namespace_says_how_it_is_best_used() {
    let mut drive = Drive::new();
    let id = drive.host();
    let nsid = make_namespace(&mut drive, id, 1000, &[1, 2]);
    let large = identify_namespace(&mut drive, id, nsid);
    assert_eq!(
        (large.nsze.get(), large.ncap.get(), large.nuse.get()),
        (1000, 1000, 1000)
    );
    assert_eq!(large.nvmcap.get(), 1000 * u128::from(PAGE_BYTES));
    assert_eq!((large.endgid.get(), large.nvmsetid.get()), (1, 0));
    assert!(!large.nsfeat.thinp() && large.dlfeat.wzds());
    assert_eq!(
        (
            large.dlfeat.dlrb(),
            large.npwg.get(),
            large.npdg.get(),
            large.nawupf.get()
        ),
        (1, 0, 0, 0)
    );
    assert_eq!((large.mssrl.get(), large.mcl.get(), large.msrc), (256, 256, 127));
    assert!(large.nguid.iter().any(|&byte| byte != 0));
    let independent: IdentifyNamespaceIndependent = read(&drive.succeeds(id, &identify(0x08, nsid), &[]).1);
    assert_eq!(independent.endgid.get(), 1, "Linux takes the endurance group from here");
    assert!(independent.nstat.nrdy());

    let mut small_blocks = fields(1000, &[3]);
    small_blocks.flbas = Flbas::new().with_fidxl(1);
    let nsid = create(&mut drive, id, &small_blocks);
    attach(&mut drive, id, nsid, &[id]);
    let small = identify_namespace(&mut drive, id, nsid);
    // A page has 8 blocks. It survives a power failure as a whole, and is the deallocation
    // granularity.
    assert_eq!(
        (
            small.npwg.get(),
            small.npda.get(),
            small.nawupf.get(),
            small.nabspf.get()
        ),
        (7, 7, 7, 7)
    );
    assert_eq!((small.mssrl.get(), small.flbas.fidxl()), (2048, 1));
    assert_ne!(small.nguid, large.nguid);
}

#[test]
fn lists_hold_what_there_is_in_order() {
    let mut drive = Drive::new();
    let (first, second) = (drive.host(), drive.host());
    let nsids: Vec<u32> = (0..3).map(|_| create(&mut drive, first, &fields(16, &[0]))).collect();
    assert_eq!(nsids, [1, 2, 3]);
    attach(&mut drive, first, 1, &[first]);
    attach(&mut drive, first, 3, &[second]);
    assert_eq!(namespaces(&mut drive, first, Cns::AllocatedNamespaceList, 0), [1, 2, 3]);
    assert_eq!(namespaces(&mut drive, first, Cns::AllocatedNamespaceList, 2), [3]);
    assert_eq!(namespaces(&mut drive, first, Cns::ActiveNamespaceList, 0), [1]);
    assert_eq!(namespaces(&mut drive, second, Cns::ActiveNamespaceList, 0), [3]);
    assert_eq!(namespaces(&mut drive, first, Cns::IocsActiveNamespaceList, 1), []);
    drive.refuses(
        first,
        &identify(0x02, NSID_ALL),
        &[],
        Status::INVALID_NAMESPACE_OR_FORMAT,
    );
    assert_eq!(
        controllers(&mut drive, first, Cns::ControllerList, 0, 0),
        [first, second]
    );
    assert_eq!(controllers(&mut drive, first, Cns::ControllerList, 0, second), [second]);
    assert_eq!(
        controllers(&mut drive, first, Cns::NamespaceAttachedControllerList, 3, 0),
        [second]
    );
    assert_eq!(
        controllers(&mut drive, first, Cns::NamespaceAttachedControllerList, 2, 0),
        []
    );
    drive.refuses(first, &identify(0x12, NSID_ALL), &[], Status::INVALID_FIELD);

    let bytes = drive.succeeds(first, &identify(0x19, 0), &[]).1;
    assert_eq!(bytes[..4], [1, 0, 1, 0], "one endurance group, number 1");
    let mut sets = identify(0x1c, 0);
    sets.cdw10 = (0x1c | 0xffff << 16).into();
    let sets: IoCommandSets = read(&drive.succeeds(first, &sets, &[]).1);
    assert!(sets.iocsc[0].nvm() && sets.iocsc[1].into_bits().get() == 0);
    let uuids = drive.succeeds(first, &identify(0x17, 0), &[]).1;
    assert_eq!(
        uuids[48..52],
        [0xc1, 0x94, 0xd5, 0x5b],
        "the Open Compute Project's, at index 1"
    );
    assert!(uuids[64..].iter().all(|byte| *byte == 0), "and no other");
    let mut nvm = identify(0x06, 0);
    assert_eq!(drive.succeeds(first, &nvm, &[]).1.len(), 4096);
    nvm.cdw11 = (2 << 24).into();
    drive.refuses(first, &nvm, &[], Status::INVALID_FIELD);
    for cns in [0x04, 0x14, 0x16, 0x18, 0x7f] {
        drive.refuses(first, &identify(cns, 0), &[], Status::INVALID_FIELD);
    }
}

#[test]
fn descriptors_identify_a_namespace_for_good() {
    let mut drive = Drive::new();
    let id = drive.host();
    make_namespace(&mut drive, id, 16, &[0]);
    let descriptors = drive.succeeds(id, &identify(0x03, 1), &[]).1;
    let nguid = identify_namespace(&mut drive, id, 1).nguid;
    // NGUID, UUID, command set.
    assert_eq!(descriptors[..4], [2, 16, 0, 0]);
    assert_eq!(descriptors[4..20], nguid);
    assert_eq!(descriptors[20..24], [3, 16, 0, 0]);
    assert_eq!(descriptors[40..45], [4, 1, 0, 0, 0]);
    assert!(descriptors[45..].iter().all(|&byte| byte == 0));
    drive.refuses(id, &identify(0x03, 2), &[], Status::INVALID_FIELD);

    // The same number, another namespace.
    delete(&mut drive, id, 1);
    make_namespace(&mut drive, id, 16, &[0]);
    assert_ne!(identify_namespace(&mut drive, id, 1).nguid, nguid);
    // Another drive of the same name makes the same identifiers.
    let mut other = Drive::new();
    let id = other.host();
    make_namespace(&mut other, id, 16, &[0]);
    assert_eq!(identify_namespace(&mut other, id, 1).nguid, nguid);
}

// ----------------------------------------------------------------------------- namespaces --

/// Change that makes fields invalid.
type Change = fn(&mut NamespaceCreate);

#[test]
fn what_cannot_be_created_is_refused_with_its_status() {
    let mut drive = Drive::new();
    let id = drive.host();
    let cases: [(&str, Change, Status); 9] = [
        (
            "no blocks",
            |fields| *fields = self::fields(0, &[0]),
            Status::INVALID_FIELD,
        ),
        (
            "thin",
            |fields| fields.ncap = 15.into(),
            Status::THIN_PROVISIONING_NOT_SUPPORTED,
        ),
        (
            "more capacity than size",
            |fields| fields.ncap = 17.into(),
            Status::INVALID_FIELD,
        ),
        ("format 4", |fields| fields.flbas.set_fidxl(4), Status::INVALID_FORMAT),
        ("format 16", |fields| fields.flbas.set_fidxu(1), Status::INVALID_FORMAT),
        (
            "protection information",
            |fields| fields.dps.set_pit(1),
            Status::INVALID_FORMAT,
        ),
        (
            "an ANA group",
            |fields| fields.anagrpid = 1.into(),
            Status::ANA_GROUP_IDENTIFIER_INVALID,
        ),
        (
            "endurance group 2",
            |fields| fields.endgid = 2.into(),
            Status::INVALID_FIELD,
        ),
        (
            "dispersed",
            |fields| fields.nmic = Nmic::new().with_disns(true),
            Status::INVALID_FIELD,
        ),
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
    let reply = drive.refuses(
        id,
        &create_entry(),
        too_large.as_bytes(),
        Status::NAMESPACE_INSUFFICIENT_CAPACITY,
    );
    assert!(reply.more);
    // The error log has the required capacity.
    let entry: ErrorInformationEntry = read(&drive.succeeds(id, &get_log(0x01, 0, 64), &[]).1);
    assert_eq!(entry.csinfo.get(), 5 * PAGE_BYTES);
    let absurd = fields(u64::MAX, &[0]);
    drive.refuses(
        id,
        &create_entry(),
        absurd.as_bytes(),
        Status::NAMESPACE_INSUFFICIENT_CAPACITY,
    );

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
    assert_eq!(
        (handles(&drive, chosen), handles(&drive, chosen_too)),
        (vec![1], vec![1])
    );
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
        assert_eq!(
            status,
            expected.err().unwrap_or(Status::SUCCESS),
            "namespace {nsid}, {select}, {ids:?}"
        );
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
    assert_eq!(
        namespaces(&mut drive, second, Cns::ActiveNamespaceList, 0),
        [private, shared]
    );
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
        let configure = SubmissionEntry {
            cdw10: 0x0b.into(),
            cdw11: (1 << 8).into(),
            ..admin(AdminOpcode::SetFeatures, 0)
        };
        drive.succeeds(id, &configure, &[]);
        let request = admin(AdminOpcode::AsynchronousEventRequest, 0);
        assert!(
            drive.try_command(id, 0, &request, &[]).is_none(),
            "nothing has happened"
        );
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
    assert_eq!(
        identify_namespace(&mut drive, second, 1).nsze.get(),
        CAPACITY_BYTES / PAGE_BYTES
    );
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
    let set = SubmissionEntry {
        cdw10: ERROR_RECOVERY.into(),
        cdw11: 2.into(),
        ..admin(AdminOpcode::SetFeatures, nsid)
    };
    let get = SubmissionEntry {
        cdw10: ERROR_RECOVERY.into(),
        ..admin(AdminOpcode::GetFeatures, nsid)
    };
    drive.succeeds(id, &set, &[]);
    drive.memory.forgetful.store(true, Ordering::Relaxed);
    drive.refuses(id, &delete_entry(nsid), &[], Status::INTERNAL_ERROR);
    drive.memory.forgetful.store(false, Ordering::Relaxed);
    assert_eq!(drive.succeeds(id, &get, &[]).0, 2);
    drive.succeeds(id, &delete_entry(nsid), &[]);
    assert_eq!(make_namespace(&mut drive, id, 16, &[0]), nsid);
    assert_eq!(
        drive.succeeds(id, &get, &[]).0,
        0,
        "another namespace begins with the default"
    );
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
    let host = |name: &str| nvme::HostIdentity {
        nqn: format!("nqn.2026-01.io.warp:{name}"),
        id: [name.len() as u8; 16],
    };
    let connect = |drive: &mut Drive, name| {
        let connected = drive
            .subsystem
            .connect(0, HostTransport::Fabrics, ControllerKind::Io, host(name));
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
    let shared = NamespaceCreate {
        nmic: Nmic::new().with_shrns(true),
        ..fields(16, &[0])
    };
    let shared = create(&mut drive, first, &shared);
    attach(&mut drive, first, shared, &[first]);
    let private = make_namespace(&mut drive, first, 16, &[1]);
    let second = connect(&mut drive, "a");
    let stranger = connect(&mut drive, "other");
    let active = |drive: &mut Drive, id| namespaces(drive, id, Cns::ActiveNamespaceList, 0);
    assert_eq!(
        active(&mut drive, second),
        [shared],
        "the private one has its controller"
    );
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
    assert!(
        !drive
            .subsystem
            .state()
            .namespaces
            .find(2)
            .unwrap()
            .is_attached(impostor)
    );
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
        let host = nvme::HostIdentity {
            nqn: format!("nqn.2014-08.com.example:{name}"),
            id: [name.len() as u8; 16],
        };
        let id = drive
            .subsystem
            .connect(0, HostTransport::Fabrics, ControllerKind::Io, host);
        let id = id.expect("room for a controller");
        drive.subsystem.establish(id);
        drive.enable(id);
        id
    };
    let active = |drive: &mut Drive, id| namespaces(drive, id, Cns::ActiveNamespaceList, 0);
    let mut drive = Drive::new();
    let first = connect(&mut drive, "a");
    let fields = NamespaceCreate {
        nmic: Nmic::new().with_shrns(true),
        ..fields(16, &[0])
    };
    let shared = create(&mut drive, first, &fields);
    attach(&mut drive, first, shared, &[first]);
    let peer = connect(&mut drive, "a");
    assert_eq!(active(&mut drive, peer), [shared]);
    let private = make_namespace(&mut drive, first, 16, &[1]);
    let mut drive = drive.restart();
    let attached = &drive.subsystem.state().namespaces.iter().next().unwrap().1.attached;
    assert!(
        !attached.contains(&peer),
        "an inherited attachment ends with its controller"
    );
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

// ---------------------------------------------------------------- Flexible Data Placement --

#[test]
fn flexible_data_placement_is_switched_without_namespaces_only() {
    let mut isolated = config();
    isolated.namespace = true;
    let mut drive = Drive::of(isolated);
    let id = drive.host();
    drive.write(id, 1, 0, &[9; 4096]);
    let written = drive.subsystem.device().stats().host_bytes_written();
    drive.refuses(id, &set_fdp(false, 0), &[], Status::COMMAND_SEQUENCE_ERROR);
    delete(&mut drive, id, 1);
    drive.succeeds(id, &set_fdp(false, 0), &[]);
    assert!(!drive.subsystem.state().fdp.enabled && !drive.memory.state().fdp.enabled);

    // Without FDP, lists are ignored and namespaces have one handle.
    let nsid = make_namespace(&mut drive, id, 16, &[77, 77]);
    let (_, namespace) = drive.subsystem.namespaces().next().unwrap();
    assert_eq!(
        (namespace.placement_handles.len(), namespace.host_specified_handles),
        (1, false)
    );
    drive.write(id, nsid, 0, &[9; 4096]);
    drive.refuses(id, &set_fdp(true, 0), &[], Status::COMMAND_SEQUENCE_ERROR);
    delete(&mut drive, id, nsid);

    drive.refuses(id, &set_fdp(true, 2), &[], Status::INVALID_FIELD);
    drive.succeeds(id, &set_fdp(true, 1), &[]);
    let device = drive.subsystem.device();
    assert_eq!(
        device.config().handles.isolation,
        Isolation::PersistentlyIsolated,
        "configuration 1"
    );
    assert_eq!(
        device.stats().host_bytes_written(),
        written + 4096,
        "the counters go on"
    );
    assert_eq!(device.live_pages(), 0);
    make_namespace(&mut drive, id, 16, &[0, 1, 2, 3]);

    let drive = drive.restart();
    assert_eq!(drive.subsystem.state().fdp.configuration, 1);
}

#[test]
fn directives_show_data_placement_while_it_is_enabled() {
    let mut drive = Drive::new();
    let id = drive.host();
    let receive = |bytes: u32, doper: u8, dtype: u8| SubmissionEntry {
        cdw10: (bytes / 4 - 1).into(),
        cdw11: DirectiveCdw11::new()
            .with_doper(doper)
            .with_dtype(dtype)
            .into_bits()
            .into(),
        ..admin(AdminOpcode::DirectiveReceive, NSID_ALL)
    };
    let data = drive.succeeds(id, &receive(4096, 1, 0), &[]).1;
    // Supported, enabled and persistent directives. Bit 0 is Identify, bit 2 Data Placement.
    assert_eq!((data.len(), data[0], data[32], data[64]), (4096, 0b101, 0b101, 0b100));
    assert_eq!(drive.succeeds(id, &receive(64, 1, 0), &[]).1.len(), 64);
    for (doper, dtype) in [(2, 0), (1, 1), (1, 2), (0, 0)] {
        drive.refuses(id, &receive(4096, doper, dtype), &[], Status::INVALID_FIELD);
    }
    drive.refuses(id, &receive(2 << 20, 1, 0), &[], Status::INVALID_FIELD);

    let send = |enable: bool, directive: u8| SubmissionEntry {
        cdw11: DirectiveCdw11::new().with_doper(1).into_bits().into(),
        cdw12: EnableDirectiveCdw12::new()
            .with_endir(enable)
            .with_tdtype(directive)
            .into_bits()
            .into(),
        ..admin(AdminOpcode::DirectiveSend, NSID_ALL)
    };
    drive.succeeds(id, &send(true, 0), &[]);
    for (enable, directive) in [(false, 0), (true, 1), (true, 2), (false, 2)] {
        drive.refuses(id, &send(enable, directive), &[], Status::INVALID_FIELD);
    }

    drive.succeeds(id, &set_fdp(false, 0), &[]);
    let data = drive.succeeds(id, &receive(4096, 1, 0), &[]).1;
    assert_eq!((data[0], data[32], data[64]), (1, 1, 0));
}

// ---------------------------------------------------------------------- Format, self-test --

fn format_entry(nsid: u32, dword: FormatNvmCdw10) -> SubmissionEntry {
    SubmissionEntry {
        cdw10: dword.into_bits().into(),
        ..admin(AdminOpcode::FormatNvm, nsid)
    }
}

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
    assert_eq!(
        (results.cdsto, results.result[0].dsts, results.result[1].dsts),
        (0, 0x20, 0x10)
    );
    assert_eq!(
        (results.result[0].nsid.get(), results.result[1].nsid.get()),
        (1, NSID_ALL)
    );
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
    let delete = SubmissionEntry {
        cdw10: 1.into(),
        ..admin(AdminOpcode::NamespaceManagement, 2)
    };
    drive.succeeds(id, &delete, &[]);
    assert_eq!(look(&mut drive), (0, 0, 0x23));
}

// ------------------------------------------------------------------------------- Sanitize --

/// With four reclaim groups of one die each.
fn grouped() -> nvme::SubsystemConfig {
    let mut grouped = config();
    grouped.device.geometry.reclaim_groups = 4;
    grouped.device.geometry.reclaim_unit_bytes = 256 << 10;
    grouped.device.geometry.over_provisioning = 1.0;
    grouped
}

#[test]
fn without_placement_there_is_one_reclaim_group() {
    let mut drive = Drive::of(grouped());
    let id = drive.host();
    let with = drive.subsystem.device().layout().clone();
    make_namespace(&mut drive, id, 16, &[0]);
    drive.write(id, 1, 0, &[1; 4096 * 16]);
    delete(&mut drive, id, 1);
    drive.succeeds(id, &set_fdp(false, 0), &[]);
    let without = drive.subsystem.device().layout().clone();
    assert_eq!((with.groups, without.groups), (4, 1));
    // The same blocks, in superblocks over all dies.
    assert_eq!(
        (with.blocks(), with.block_pages),
        (without.blocks(), without.block_pages)
    );
    assert_eq!(
        (with.logical_pages, with.physical_pages),
        (without.logical_pages, without.physical_pages)
    );
    assert_eq!(without.superblock_pages, 4 * with.superblock_pages);
    assert_eq!(drive.subsystem.device().stats().host_bytes_written(), 4096 * 16);
}

/// Two pieces to erase.
fn large() -> nvme::SubsystemConfig {
    let mut large = config();
    large.device.geometry.capacity_bytes = Some(384 << 20);
    large.device.handles = HandlesConfig {
        count: 2,
        ..large.device.handles
    };
    large
}

#[test]
fn sanitizing_goes_on_in_the_background_and_keeps_others_out() {
    let mut drive = Drive::of(large());
    let id = drive.host();
    let pages = (384 << 20) / PAGE_BYTES;
    let nsid = make_namespace(&mut drive, id, pages, &[0]);
    drive.write(id, nsid, 0, &[1; 4096]);
    drive.write(id, nsid, pages - 1, &[2; 4096]);
    assert_eq!(sanitize_log(&mut drive, id).sstat.sos(), 0);

    let block_erase = SanitizeCdw10::new().with_sanact(2);
    drive.succeeds(id, &sanitize_entry(block_erase), &[]);
    let reply = drive.command(id, 1, &io(IoOpcode::Read, nsid, 0, 1), &[]).reply;
    assert_eq!(
        (reply.status, reply.do_not_retry),
        (Status::SANITIZE_IN_PROGRESS, false)
    );
    for entry in [
        sanitize_entry(block_erase),
        format_entry(nsid, FormatNvmCdw10::new()),
        delete_entry(nsid),
        get_log(0x06, 0, 512),
    ] {
        let reply = drive.refuses(id, &entry, &[], Status::SANITIZE_IN_PROGRESS);
        assert!(!reply.do_not_retry);
    }
    identify_namespace(&mut drive, id, nsid);
    drive.succeeds(id, &get_log(0x02, 0, 512), &[]);
    let fabrics = drive.connect(HostTransport::Fabrics, ControllerKind::Io);
    drive.succeeds(fabrics, &admin(AdminOpcode::KeepAlive, 0), &[]);
    let log = sanitize_log(&mut drive, id);
    assert_eq!((log.sprog.get(), log.sstat.sos(), log.scdw10.get()), (0, 2, 2));

    drive.tick();
    let log = sanitize_log(&mut drive, id);
    assert_eq!((log.sprog.get(), log.sstat.sos()), ((65536 * 256 / 384) as u16, 2));
    let synced = drive.memory.syncs.load(std::sync::atomic::Ordering::Relaxed);
    drive.tick();
    let log = sanitize_log(&mut drive, id);
    assert_eq!((log.sprog.get(), log.sstat.sos(), log.sstat.gde()), (0xffff, 1, true));
    assert_eq!(
        drive.memory.syncs.load(std::sync::atomic::Ordering::Relaxed),
        synced + 1
    );
    assert!(drive.memory.is_zero());
    assert_eq!(drive.subsystem.device().live_pages(), 0);
    drive.write(id, nsid, 0, &[3; 4096]);
    assert!(!sanitize_log(&mut drive, id).sstat.gde());
}

#[test]
fn sanitizing_begins_again_after_a_restart() {
    let mut drive = Drive::of(large());
    let id = drive.host();
    let nsid = make_namespace(&mut drive, id, (384 << 20) / PAGE_BYTES, &[0]);
    drive.write(id, nsid, 1, &[1; 4096]);
    drive.succeeds(
        id,
        &sanitize_entry(SanitizeCdw10::new().with_sanact(4).with_ause(true)),
        &[],
    );
    let mut drive = drive.restart();
    let id = drive.host();
    assert!(!drive.memory.is_zero());
    let log = sanitize_log(&mut drive, id);
    assert_eq!((log.sprog.get(), log.sstat.sos(), log.scdw10.get()), (0, 2, 4 | 1 << 3));
    drive.tick();
    drive.tick();
    assert_eq!(sanitize_log(&mut drive, id).sstat.sos(), 1);
    assert!(drive.memory.is_zero());
    let mut drive = drive.restart();
    let id = drive.host();
    assert_eq!(sanitize_log(&mut drive, id).sstat.sos(), 1);
}

#[test]
fn a_failed_sanitize_is_left_as_it_was_agreed() {
    use std::sync::atomic::Ordering;
    let exit = sanitize_entry(SanitizeCdw10::new().with_sanact(1));
    for unrestricted in [false, true] {
        let mut drive = Drive::new();
        let id = drive.host();
        let nsid = make_namespace(&mut drive, id, 16, &[0]);
        drive.succeeds(id, &exit, &[]);
        let erase = |ause| sanitize_entry(SanitizeCdw10::new().with_sanact(2).with_ause(ause));
        drive.succeeds(id, &erase(unrestricted), &[]);
        drive.memory.broken.store(true, Ordering::Relaxed);
        drive.tick();
        drive.memory.broken.store(false, Ordering::Relaxed);
        assert_eq!(sanitize_log(&mut drive, id).sstat.sos(), 3);
        let read = io(IoOpcode::Read, nsid, 0, 1);
        assert_eq!(drive.command(id, 1, &read, &[]).reply.status, Status::SANITIZE_FAILED);
        drive.refuses(id, &delete_entry(nsid), &[], Status::SANITIZE_FAILED);
        if unrestricted {
            drive.succeeds(id, &exit, &[]);
            assert!(drive.command(id, 1, &read, &[]).reply.status.is_success());
            assert_eq!(sanitize_log(&mut drive, id).sstat.sos(), 3, "it failed all the same");
        } else {
            drive.refuses(id, &exit, &[], Status::SANITIZE_FAILED);
            drive.refuses(id, &erase(true), &[], Status::SANITIZE_FAILED);
            drive.succeeds(id, &erase(false), &[]);
            drive.tick();
            assert_eq!(sanitize_log(&mut drive, id).sstat.sos(), 1);
            assert!(drive.command(id, 1, &read, &[]).reply.status.is_success());
        }
    }
}

#[test]
fn what_sanitize_cannot_do_is_refused() {
    let mut drive = Drive::new();
    let id = drive.host();
    for dword in [
        SanitizeCdw10::new(),
        SanitizeCdw10::new().with_sanact(3),
        SanitizeCdw10::new().with_sanact(5),
        SanitizeCdw10::new().with_sanact(2).with_ndas(true),
        SanitizeCdw10::new().with_sanact(2).with_emvs(true),
    ] {
        drive.refuses(id, &sanitize_entry(dword), &[], Status::INVALID_FIELD);
    }
    // No-Deallocate Response Mode, which deallocates anyway with a warning.
    let warn = SubmissionEntry {
        cdw10: 0x17.into(),
        cdw11: 1.into(),
        ..admin(AdminOpcode::SetFeatures, 0)
    };
    drive.succeeds(id, &warn, &[]);
    drive.succeeds(
        id,
        &sanitize_entry(SanitizeCdw10::new().with_sanact(2).with_ndas(true)),
        &[],
    );
    drive.tick();
    assert_eq!(
        sanitize_log(&mut drive, id).sstat.sos(),
        4,
        "deallocated although the host set No-Deallocate"
    );
}

// ---------------------------------------------------------------------------- other opcodes --

#[test]
fn commands_of_other_drives_are_no_opcodes_here() {
    let mut drive = Drive::new();
    let id = drive.connect(HostTransport::Fabrics, ControllerKind::Io);
    for opcode in [
        0x00, 0x01, 0x04, 0x05, 0x10, 0x11, 0x1c, 0x1d, 0x20, 0x7c, 0x7f, 0x81, 0x82, 0xc0, 0xff,
    ] {
        let entry = SubmissionEntry {
            opcode,
            ..admin(AdminOpcode::KeepAlive, 0)
        };
        let reply = drive.refuses(id, &entry, &[], Status::INVALID_COMMAND_OPCODE);
        assert!(reply.do_not_retry, "{opcode:#x}");
    }
}
