//! Identify data structures, and opcodes that the drive does not support.

use nvme::{ControllerKind, HostTransport};
use nvme_spec::command::SubmissionEntry;
use nvme_spec::identify::{Cns, Flbas, IdentifyNamespaceIndependent, IoCommandSets};
use nvme_spec::{AdminOpcode, IdentifyController, IdentifyNamespace, NSID_ALL, Status};

use crate::common::{CAPACITY_BYTES, Drive, PAGE_BYTES, admin, config, identify};
use crate::{
    attach, controllers, create, delete, fields, identify_controller, identify_namespace, make_namespace, namespaces,
    read,
};

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
    assert_eq!((controller.mdts, controller.ver.get(), controller.cntrltype), (8, 0x0002_0100, 1));
    assert_eq!(controller.cntlid.get(), id);
    // Endurance groups (bit 4) and Flexible Data Placement (bit 19).
    let ctratt = u32::from_le_bytes(bytes[96..100].try_into().unwrap());
    assert_eq!(ctratt & (1 << 4 | 1 << 19), 1 << 4 | 1 << 19);
    assert_eq!(controller.endgidmax.get(), 1);
    // Format, namespace management, self-test, directives, doorbell buffers.
    assert_eq!(controller.oacs.into_bits().get(), 1 << 1 | 1 << 3 | 1 << 4 | 1 << 5 | 1 << 8);
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
    assert_eq!((controller.ioccsz.get(), controller.iorcsz.get(), controller.icdoff.get()), (8196, 1, 0));
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
    for opcode in [AdminOpcode::FormatNvm, AdminOpcode::Sanitize, AdminOpcode::NamespaceManagement] {
        // Block erase for Sanitize, another valid value for the others.
        let entry =
            SubmissionEntry { cdw10: if opcode == AdminOpcode::Sanitize { 2 } else { 0 }.into(), ..admin(opcode, 1) };
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
            assert_eq!(bytes.iter().any(|&byte| byte != 0), number == nsid, "CNS {cns:#x} of namespace {number}");
        }
    }
    for asked in [0, 33, NSID_ALL - 1] {
        drive.refuses(id, &identify(0x00, asked), &[], Status::INVALID_NAMESPACE_OR_FORMAT);
    }
    let allocated: IdentifyNamespace = read(&drive.succeeds(id, &identify(0x11, unattached), &[]).1);
    assert_eq!(allocated.nsze.get(), 16);
    let common = identify_namespace(&mut drive, id, NSID_ALL);
    assert_eq!((common.nsze.get(), common.nlbaf), (0, 3));
    let formats = common.lbaf[..5].iter().map(|format| (format.lbads, format.ms.get(), format.rp));
    let expected = [(12, 0, 0), (9, 0, 2), (12, 64, 1), (9, 8, 3), (0, 0, 0)];
    assert_eq!(formats.collect::<Vec<_>>(), expected);
}

#[test]
fn a_namespace_says_how_it_is_best_used() {
    let mut drive = Drive::new();
    let id = drive.host();
    let nsid = make_namespace(&mut drive, id, 1000, &[1, 2]);
    let large = identify_namespace(&mut drive, id, nsid);
    assert_eq!((large.nsze.get(), large.ncap.get(), large.nuse.get()), (1000, 1000, 1000));
    assert_eq!(large.nvmcap.get(), 1000 * u128::from(PAGE_BYTES));
    assert_eq!((large.endgid.get(), large.nvmsetid.get()), (1, 0));
    assert!(!large.nsfeat.thinp() && large.dlfeat.wzds());
    assert_eq!((large.dlfeat.dlrb(), large.npwg.get(), large.npdg.get(), large.nawupf.get()), (1, 0, 0, 0));
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
    assert_eq!((small.npwg.get(), small.npda.get(), small.nawupf.get(), small.nabspf.get()), (7, 7, 7, 7));
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
    drive.refuses(first, &identify(0x02, NSID_ALL), &[], Status::INVALID_NAMESPACE_OR_FORMAT);
    assert_eq!(controllers(&mut drive, first, Cns::ControllerList, 0, 0), [first, second]);
    assert_eq!(controllers(&mut drive, first, Cns::ControllerList, 0, second), [second]);
    assert_eq!(controllers(&mut drive, first, Cns::NamespaceAttachedControllerList, 3, 0), [second]);
    assert_eq!(controllers(&mut drive, first, Cns::NamespaceAttachedControllerList, 2, 0), []);
    drive.refuses(first, &identify(0x12, NSID_ALL), &[], Status::INVALID_FIELD);

    let bytes = drive.succeeds(first, &identify(0x19, 0), &[]).1;
    assert_eq!(bytes[..4], [1, 0, 1, 0], "one endurance group, number 1");
    let mut sets = identify(0x1c, 0);
    sets.cdw10 = (0x1c | 0xffff << 16).into();
    let sets: IoCommandSets = read(&drive.succeeds(first, &sets, &[]).1);
    assert!(sets.iocsc[0].nvm() && sets.iocsc[1].into_bits().get() == 0);
    let uuids = drive.succeeds(first, &identify(0x17, 0), &[]).1;
    assert_eq!(uuids[48..52], [0xc1, 0x94, 0xd5, 0x5b], "the Open Compute Project's, at index 1");
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

// ---------------------------------------------------------------------------- other opcodes --

#[test]
fn commands_of_other_drives_are_no_opcodes_here() {
    let mut drive = Drive::new();
    let id = drive.connect(HostTransport::Fabrics, ControllerKind::Io);
    for opcode in [0x00, 0x01, 0x04, 0x05, 0x10, 0x11, 0x1c, 0x1d, 0x20, 0x7c, 0x7f, 0x81, 0x82, 0xc0, 0xff] {
        let entry = SubmissionEntry { opcode, ..admin(AdminOpcode::KeepAlive, 0) };
        let reply = drive.refuses(id, &entry, &[], Status::INVALID_COMMAND_OPCODE);
        assert!(reply.do_not_retry, "{opcode:#x}");
    }
}
