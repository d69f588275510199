//! Metadata of logical blocks. The tests cover both formats with metadata, extended blocks and
//! separate buffers, every command that accesses blocks, and formatting, deletion, sanitizing and
//! storing.

mod common;

use common::{CAPACITY_BYTES, CommandResult, Drive, PAGE_BYTES, admin, config, get_log, identify, io};
use nvme::{ControllerKind, HostTransport, SubsystemConfig};
use nvme_spec::command::{FormatNvmCdw10, Range, SanitizeCdw10, SourceRange0, SubmissionEntry};
use nvme_spec::identify::{Flbas, NamespaceCreate, NvmIdentifyNamespace};
use nvme_spec::{AdminOpcode, IdentifyController, IdentifyNamespace, IoOpcode, NSID_ALL, Status};
use rand::{Rng, RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use zerocopy::{FromBytes, IntoBytes};

/// Format of a namespace and the transfer form of its metadata.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Form {
    format: u8,
    extended: bool,
    block_bytes: usize,
    metadata_bytes: usize,
}

const LARGE: Form = Form { format: 2, extended: false, block_bytes: 4096, metadata_bytes: 64 };
const SMALL: Form = Form { format: 3, extended: false, block_bytes: 512, metadata_bytes: 8 };

impl Form {
    const fn extended(self) -> Form {
        Form { extended: true, ..self }
    }

    fn flbas(self) -> Flbas {
        Flbas::new().with_fidxl(self.format).with_mdtype(self.extended)
    }

    fn dword(self) -> FormatNvmCdw10 {
        FormatNvmCdw10::new().with_lbafl(self.format).with_mset(self.extended)
    }

    fn blocks_per_page(self) -> u64 {
        PAGE_BYTES / self.block_bytes as u64
    }

    /// Bytes that a host transfers for blocks, block by block as in the standard's figures.
    fn bytes(self, blocks: &[Block]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for block in blocks {
            bytes.extend_from_slice(&block.data);
            if self.extended {
                bytes.extend_from_slice(&block.metadata);
            }
        }
        if !self.extended {
            blocks.iter().for_each(|block| bytes.extend_from_slice(&block.metadata));
        }
        bytes
    }

    fn zero(self) -> Block {
        Block { data: vec![0; self.block_bytes], metadata: vec![0; self.metadata_bytes] }
    }

    fn random(self, random: &mut Xoshiro256PlusPlus) -> Block {
        let mut block = self.zero();
        random.fill_bytes(&mut block.data);
        random.fill_bytes(&mut block.metadata);
        block
    }

    fn randoms(self, count: u64, seed: u64) -> Vec<Block> {
        let mut random = seeded(seed);
        (0..count).map(|_| self.random(&mut random)).collect()
    }
}

const FORMS: [Form; 4] = [LARGE, LARGE.extended(), SMALL, SMALL.extended()];

#[derive(Clone, Debug, PartialEq, Eq)]
struct Block {
    data: Vec<u8>,
    metadata: Vec<u8>,
}

fn seeded(seed: u64) -> Xoshiro256PlusPlus {
    Xoshiro256PlusPlus::seed_from_u64(seed)
}

fn create_entry(form: Form, blocks: u64) -> (SubmissionEntry, NamespaceCreate) {
    let mut fields =
        NamespaceCreate { nsze: blocks.into(), ncap: blocks.into(), flbas: form.flbas(), ..NamespaceCreate::default() };
    fields.nmic.set_shrns(true);
    (admin(AdminOpcode::NamespaceManagement, 0), fields)
}

/// A namespace that is attached to the given controllers.
#[track_caller]
fn create(drive: &mut Drive, ids: &[u16], form: Form, blocks: u64) -> u32 {
    let (entry, fields) = create_entry(form, blocks);
    let nsid = drive.succeeds(ids[0], &entry, fields.as_bytes()).0 as u32;
    let mut list = vec![0; 4096];
    list[0] = ids.len() as u8;
    for (place, id) in list[2..].chunks_exact_mut(2).zip(ids) {
        place.copy_from_slice(&id.to_le_bytes());
    }
    drive.succeeds(ids[0], &admin(AdminOpcode::NamespaceAttachment, nsid), &list);
    nsid
}

fn delete_entry(nsid: u32) -> SubmissionEntry {
    SubmissionEntry { cdw10: 1.into(), ..admin(AdminOpcode::NamespaceManagement, nsid) }
}

fn format_entry(nsid: u32, dword: FormatNvmCdw10) -> SubmissionEntry {
    SubmissionEntry { cdw10: dword.into_bits().into(), ..admin(AdminOpcode::FormatNvm, nsid) }
}

fn described(drive: &mut Drive, id: u16, nsid: u32) -> IdentifyNamespace {
    IdentifyNamespace::read_from_bytes(&drive.succeeds(id, &identify(0, nsid), &[]).1).unwrap()
}

/// Drive without Flexible Data Placement, so that namespaces of several formats share no handle.
fn without_placement() -> Drive {
    Drive::of(SubsystemConfig { fdp: false, ..config() })
}

/// A namespace on two pieces of the drive, the first of 8 pages.
fn in_two_pieces(form: Form) -> (Drive, u16, u32) {
    let mut drive = Drive::new();
    let id = drive.host();
    let per_page = form.blocks_per_page();
    let (first, between) =
        (create(&mut drive, &[id], form, 8 * per_page), create(&mut drive, &[id], form, 8 * per_page));
    let rest = create(&mut drive, &[id], form, (CAPACITY_BYTES / PAGE_BYTES - 16) * per_page);
    assert_eq!((first, between, rest), (1, 2, 3));
    drive.succeeds(id, &delete_entry(first), &[]);
    drive.succeeds(id, &delete_entry(rest), &[]);
    let nsid = create(&mut drive, &[id], form, (CAPACITY_BYTES / PAGE_BYTES - 8) * per_page);
    let (_, namespace) = drive.subsystem.namespaces().find(|&(its, _)| its == nsid).unwrap();
    assert_eq!(namespace.extents.len(), 2);
    (drive, id, nsid)
}

#[track_caller]
fn carry_out(drive: &mut Drive, id: u16, entry: &SubmissionEntry, sent: &[u8]) -> CommandResult {
    let done = drive.command(id, 1, entry, sent);
    assert!(done.reply.status.is_success(), "{}", done.reply.status);
    done
}

fn status(drive: &mut Drive, id: u16, entry: &SubmissionEntry, sent: &[u8]) -> Status {
    drive.command(id, 1, entry, sent).reply.status
}

/// A Copy of one range.
fn copy(nsid: u32, from: u64, to: u64, count: u64) -> (SubmissionEntry, SourceRange0) {
    let source = SourceRange0 { slba: from.into(), nlb: (count as u16 - 1).into(), ..SourceRange0::default() };
    (io(IoOpcode::Copy, nsid, to, 1), source)
}

/// A deallocation of one range.
fn deallocate(nsid: u32, first: u64, count: u64) -> (SubmissionEntry, Range) {
    let mut entry = io(IoOpcode::DatasetManagement, nsid, 0, 1);
    entry.cdw11 = (1 << 2).into();
    let range = Range { slba: first.into(), nlb: (count as u32).into(), ..Range::default() };
    (entry, range)
}

// ---------------------------------------------------------------------------------- the blocks --

/// A namespace in two pieces, and what its blocks must be.
struct Mirrored {
    drive: Drive,
    id: u16,
    nsid: u32,
    form: Form,
    model: Vec<Block>,
}

impl Mirrored {
    /// A random command.
    fn step(&mut self, random: &mut Xoshiro256PlusPlus, context: &str) {
        let Mirrored { drive, id, nsid, form, model } = self;
        let per_page = form.blocks_per_page();
        let count = random.random_range(1..=3 * per_page);
        let first = random.random_range(0..=model.len() as u64 - count);
        let range = first as usize..(first + count) as usize;
        match random.random_range(0..8) {
            0 | 1 => {
                let blocks: Vec<Block> = range.clone().map(|_| form.random(random)).collect();
                carry_out(drive, *id, &io(IoOpcode::Write, *nsid, first, count), &form.bytes(&blocks));
                model[range].clone_from_slice(&blocks);
            }
            2 | 3 => {
                let read = carry_out(drive, *id, &io(IoOpcode::Read, *nsid, first, count), &[]).data;
                assert!(read == form.bytes(&model[range]), "{context}: read");
            }
            4 => {
                let entry = io(IoOpcode::Compare, *nsid, first, count);
                let mut sent = form.bytes(&model[range]);
                carry_out(drive, *id, &entry, &sent);
                let at = random.random_range(0..sent.len());
                sent[at] ^= 0x10;
                assert_eq!(status(drive, *id, &entry, &sent), Status::COMPARE_FAILURE, "{context}: byte {at}");
            }
            5 => {
                let mut entry = io(IoOpcode::WriteZeroes, *nsid, first, count);
                let deallocates = u32::from(random.random::<bool>()) << 25;
                entry.cdw12 = (entry.cdw12.get() | deallocates).into();
                carry_out(drive, *id, &entry, &[]);
                model[range].fill(form.zero());
            }
            6 => {
                let (entry, range) = deallocate(*nsid, first, count);
                carry_out(drive, *id, &entry, range.as_bytes());
                // Whole pages only.
                let whole = first.next_multiple_of(per_page)..(first + count) / per_page * per_page;
                if !whole.is_empty() {
                    model[whole.start as usize..whole.end as usize].fill(form.zero());
                }
            }
            _ => {
                let to = random.random_range(0..=model.len() as u64 - count);
                let (entry, source) = copy(*nsid, first, to, count);
                let overlaps = to < first + count && first < to + count;
                let expected = if overlaps { Status::OVERLAPPING_IO_RANGE } else { Status::SUCCESS };
                assert_eq!(status(drive, *id, &entry, source.as_bytes()), expected, "{context}: copy");
                if !overlaps {
                    let blocks = model[range].to_vec();
                    model[to as usize..(to + count) as usize].clone_from_slice(&blocks);
                }
            }
        }
    }
}

/// Random commands on a namespace in two pieces, against a vector of blocks.
#[test]
fn every_command_treats_metadata_as_a_part_of_the_block() {
    for (form, seed) in FORMS.into_iter().zip(1..) {
        let (drive, id, nsid) = in_two_pieces(form);
        let mut random = seeded(seed);
        let size = 24 * form.blocks_per_page();
        let model = vec![form.zero(); size as usize];
        let mut mirrored = Mirrored { drive, id, nsid, form, model };
        for step in 0..400 {
            mirrored.step(&mut random, &format!("{form:?}, seed {seed}, step {step}"));
        }
        let Mirrored { mut drive, model, .. } = mirrored;
        let verify = io(IoOpcode::Verify, nsid, 0, size);
        carry_out(&mut drive, id, &verify, &[]);
        let read = carry_out(&mut drive, id, &io(IoOpcode::Read, nsid, 0, size), &[]).data;
        assert!(read == form.bytes(&model), "{form:?}, seed {seed}: everything, at the end");
    }
}

/// The bytes of a block in both forms, written out.
#[test]
fn extended_blocks_are_interleaved_and_separate_metadata_follows() {
    let mut drive = Drive::new();
    let id = drive.host();
    let nsid = create(&mut drive, &[id], SMALL.extended(), 64);
    let mut sent = vec![0; 3 * 520];
    for (number, block) in (1..).zip(sent.chunks_exact_mut(520)) {
        block[..512].fill(number);
        block[512..].fill(0xf0 | number);
    }
    carry_out(&mut drive, id, &io(IoOpcode::Write, nsid, 5, 3), &sent);
    assert_eq!(carry_out(&mut drive, id, &io(IoOpcode::Read, nsid, 6, 1), &[]).data, sent[520..1040]);
    let transfer = drive.transfer(id, 1, &io(IoOpcode::Read, nsid, 5, 3));
    assert_eq!((transfer.bytes, transfer.metadata_bytes), (3 * 520, 0));

    let nsid = create(&mut drive, &[id], SMALL, 64);
    let mut sent = vec![1; 3 * 512 + 3 * 8];
    sent[3 * 512..].copy_from_slice(&[[0xf1; 8], [0xf2; 8], [0xf3; 8]].concat());
    let entry = io(IoOpcode::Write, nsid, 5, 3);
    let transfer = drive.transfer(id, 1, &entry);
    assert_eq!((transfer.bytes, transfer.metadata_bytes, transfer.total_bytes()), (3 * 512, 24, 1560));
    carry_out(&mut drive, id, &entry, &sent);
    let read = carry_out(&mut drive, id, &io(IoOpcode::Read, nsid, 6, 1), &[]).data;
    assert_eq!((&read[..512], &read[512..]), ([1; 512].as_slice(), [0xf2; 8].as_slice()));
}

/// Data is not moved by a command that was made for another format.
#[test]
fn data_of_another_length_is_refused() {
    let mut drive = without_placement();
    let id = drive.host();
    for form in FORMS {
        let nsid = create(&mut drive, &[id], form, 64);
        let entry = io(IoOpcode::Write, nsid, 0, 2);
        for bytes in [2 * form.block_bytes, 2 * (form.block_bytes + form.metadata_bytes) - 1] {
            let reply = drive.execute(id, 1, &entry, &mut vec![1; bytes]).reply.unwrap();
            assert_eq!((reply.status, reply.do_not_retry), (Status::DATA_TRANSFER_ERROR, false));
        }
        assert!(drive.memory.is_zero());
    }
    let attach = admin(AdminOpcode::NamespaceAttachment, 1);
    let reply = drive.execute(id, 0, &attach, &mut vec![0; 4095]).reply.unwrap();
    assert_eq!((reply.status, reply.do_not_retry), (Status::DATA_TRANSFER_ERROR, false));
}

/// The host's data stays in its buffer, so that the buffer can be reused without filling it.
#[test]
fn data_of_the_host_stays_in_its_buffer() {
    let mut drive = without_placement();
    let id = drive.host();
    let nsid = create(&mut drive, &[id], FORMS[0], 64);
    let sent = vec![5; 2 * (FORMS[0].block_bytes + FORMS[0].metadata_bytes)];
    let mut buffer = sent.clone();
    for opcode in [IoOpcode::Write, IoOpcode::Compare] {
        let entry = io(opcode, nsid, 0, 2);
        let outcome = drive.execute(id, 1, &entry, &mut buffer);
        assert_eq!(outcome.reply.unwrap().status, Status::SUCCESS);
        assert_eq!(buffer, sent);
    }
}

#[test]
fn the_largest_command_is_measured_without_metadata() {
    let mut drive = without_placement();
    let id = drive.host();
    let controller = IdentifyController::read_from_bytes(&drive.succeeds(id, &identify(1, 0), &[]).1).unwrap();
    assert_eq!((controller.mdts, controller.ctratt.mem()), (8, true));
    for form in FORMS {
        let most = (1 << 20) / form.block_bytes as u64;
        let nsid = create(&mut drive, &[id], form, 2 * most);
        let blocks = form.randoms(most, 7);
        carry_out(&mut drive, id, &io(IoOpcode::Write, nsid, 1, most), &form.bytes(&blocks));
        let read = carry_out(&mut drive, id, &io(IoOpcode::Read, nsid, 1, most), &[]).data;
        assert!(read == form.bytes(&blocks));
        let beyond = io(IoOpcode::Read, nsid, 0, most + 1);
        assert_eq!(status(&mut drive, id, &beyond, &[]), Status::INVALID_FIELD);
    }
}

/// The counters of the device, the SMART log and log page 22h include only data.
#[test]
fn counters_count_data() {
    for form in FORMS {
        let mut drive = Drive::new();
        let id = drive.host();
        let nsid = create(&mut drive, &[id], form, 128);
        let count = 100;
        let bytes = form.bytes(&form.randoms(count, 3));
        carry_out(&mut drive, id, &io(IoOpcode::Write, nsid, 0, count), &bytes);
        carry_out(&mut drive, id, &io(IoOpcode::Read, nsid, 0, count), &[]);
        carry_out(&mut drive, id, &io(IoOpcode::Compare, nsid, 0, count), &bytes);
        let data_bytes = count * form.block_bytes as u64;
        let smart = &drive.subsystem.state().smart;
        assert_eq!((smart.host_bytes_written, smart.host_bytes_read), (data_bytes, 2 * data_bytes));
        let statistics = drive.succeeds(id, &get_log(0x22, 1, 64), &[]).1;
        assert_eq!(u64::from_le_bytes(statistics[..8].try_into().unwrap()), data_bytes, "HBMW");
    }
}

/// The drive has no protection information, so the PRACT bit of a command removes no metadata.
#[test]
fn metadata_is_not_protection_information() {
    let mut drive = Drive::new();
    let id = drive.host();
    let nsid = create(&mut drive, &[id], LARGE.extended(), 64);
    let sent = LARGE.extended().bytes(&[LARGE.random(&mut seeded(4))]);
    carry_out(&mut drive, id, &io(IoOpcode::Write, nsid, 0, 1), &sent);
    let mut entry = io(IoOpcode::Read, nsid, 0, 1);
    entry.cdw12 = (entry.cdw12.get() | 1 << 29).into();
    assert_eq!(carry_out(&mut drive, id, &entry, &[]).data, sent);
    let with_protection = LARGE.extended().dword().with_pi(1);
    drive.refuses(id, &format_entry(nsid, with_protection), &[], Status::INVALID_FORMAT);
    let structure = described(&mut drive, id, nsid);
    assert_eq!((structure.dpc, structure.dps.into_bits()), (0, 0));
    let nvm = drive.succeeds(id, &identify(5, nsid), &[]).1;
    assert_eq!(nvm, NvmIdentifyNamespace::default().as_bytes());
}

// -------------------------------------------------------------------------------- the namespace --

#[test]
fn a_namespace_says_how_its_metadata_is_moved() {
    let mut drive = without_placement();
    let id = drive.host();
    for form in FORMS {
        let nsid = create(&mut drive, &[id], form, 64);
        let structure = described(&mut drive, id, nsid);
        assert_eq!((structure.flbas, structure.mc), (form.flbas(), 0b11));
        let used = structure.lbaf[usize::from(form.format)];
        assert_eq!((1 << used.lbads, usize::from(used.ms.get())), (form.block_bytes, form.metadata_bytes));
        assert_eq!(structure.nvmcap.get(), (64 * form.block_bytes as u128).next_multiple_of(4096));
        // Data and metadata are not written as one over a power failure.
        assert_eq!((structure.nawupf.get(), structure.nabspf.get()), (0, 0));
        let allocated = drive.succeeds(id, &identify(0x11, nsid), &[]).1;
        assert_eq!(allocated, structure.as_bytes());
    }
    // Blocks without metadata ignore the form.
    let plain = Form { format: 1, extended: true, ..SMALL };
    let nsid = create(&mut drive, &[id], plain, 64);
    assert_eq!(described(&mut drive, id, nsid).flbas, Flbas::new().with_fidxl(1));
}

/// A namespace goes through all formats. Each format erases its own content, and none of its
/// neighbour's.
#[test]
fn formatting_changes_the_form_and_erases_metadata() {
    let mut drive = Drive::new();
    let id = drive.host();
    let neighbour = create(&mut drive, &[id], SMALL.extended(), 64);
    let kept = SMALL.randoms(64, 5);
    carry_out(&mut drive, id, &io(IoOpcode::Write, neighbour, 0, 64), &SMALL.extended().bytes(&kept));
    drive.succeeds(id, &delete_entry(neighbour), &[]);
    assert!(drive.memory.is_zero(), "deleted with its metadata");

    let formatted = create(&mut drive, &[id], LARGE, 16);
    let neighbour = create(&mut drive, &[id], LARGE, 16);
    // Both use the handle that the controller chose, so they are formatted together.
    let others = [SMALL.extended(), SMALL, LARGE, LARGE.extended(), LARGE];
    for (form, next) in [LARGE, SMALL.extended(), SMALL, LARGE, LARGE.extended()].into_iter().zip(others) {
        let size = 16 * form.blocks_per_page();
        for nsid in [formatted, neighbour] {
            assert_eq!(described(&mut drive, id, nsid).nsze.get(), size);
            let read = carry_out(&mut drive, id, &io(IoOpcode::Read, nsid, 0, size), &[]).data;
            assert!(read == form.bytes(&vec![form.zero(); size as usize]), "{form:?}: not erased");
            let blocks = form.randoms(size, 6);
            carry_out(&mut drive, id, &io(IoOpcode::Write, nsid, 0, size), &form.bytes(&blocks));
        }
        drive.succeeds(id, &get_log(0x04, 0, 4096), &[]);
        drive.succeeds(id, &format_entry(NSID_ALL, next.dword()), &[]);
        assert!(drive.memory.is_zero(), "{form:?} to {next:?}");
        assert_eq!(described(&mut drive, id, formatted).flbas, next.flbas());
        let changed = drive.succeeds(id, &get_log(0x04, 0, 4096), &[]).1;
        assert_eq!(changed[..8], [formatted.to_le_bytes(), neighbour.to_le_bytes()].concat(), "{form:?} to {next:?}");
    }
}

#[test]
fn sanitizing_erases_metadata() {
    let mut drive = Drive::new();
    let id = drive.host();
    let nsid = create(&mut drive, &[id], LARGE, 16);
    let blocks = LARGE.randoms(16, 8);
    carry_out(&mut drive, id, &io(IoOpcode::Write, nsid, 0, 16), &LARGE.bytes(&blocks));
    let entry = SubmissionEntry {
        cdw10: SanitizeCdw10::new().with_sanact(2).into_bits().into(),
        ..admin(AdminOpcode::Sanitize, 0)
    };
    drive.succeeds(id, &entry, &[]);
    while status(&mut drive, id, &io(IoOpcode::Verify, nsid, 0, 1), &[]) == Status::SANITIZE_IN_PROGRESS {
        drive.tick();
    }
    assert!(drive.memory.is_zero());
}

#[test]
fn a_restart_keeps_the_form_and_the_metadata() {
    for form in FORMS {
        let mut drive = Drive::new();
        let id = drive.host();
        let nsid = create(&mut drive, &[id], form, 64);
        let blocks = form.randoms(64, 9);
        carry_out(&mut drive, id, &io(IoOpcode::Write, nsid, 0, 64), &form.bytes(&blocks));
        let mut drive = drive.restart();
        let id = drive.host();
        assert_eq!(described(&mut drive, id, nsid).flbas, form.flbas());
        let read = carry_out(&mut drive, id, &io(IoOpcode::Read, nsid, 0, 64), &[]).data;
        assert!(read == form.bytes(&blocks), "{form:?}");
    }
}

#[test]
fn failing_storage_fails_metadata_too() {
    let mut drive = Drive::new();
    let id = drive.host();
    let nsid = create(&mut drive, &[id], SMALL, 64);
    drive.memory.broken.store(true, std::sync::atomic::Ordering::Relaxed);
    let sent = SMALL.bytes(&[SMALL.zero()]);
    assert_eq!(status(&mut drive, id, &io(IoOpcode::Write, nsid, 0, 1), &sent), Status::WRITE_FAULT);
    assert_eq!(status(&mut drive, id, &io(IoOpcode::Read, nsid, 0, 1), &[]), Status::UNRECOVERED_READ_ERROR);
    assert_eq!(drive.subsystem.state().smart.media_errors, 2);
}

// ----------------------------------------------------------------------------------- fabrics --

#[test]
fn over_fabrics_metadata_is_in_extended_blocks_only() {
    let mut drive = Drive::new();
    let fabrics = drive.connect(HostTransport::Fabrics, ControllerKind::Io);
    for form in [LARGE, SMALL] {
        let (entry, fields) = create_entry(form, 64);
        drive.refuses(fabrics, &entry, fields.as_bytes(), Status::INVALID_FORMAT);
    }
    let nsid = create(&mut drive, &[fabrics], LARGE.extended(), 64);
    assert_eq!(described(&mut drive, fabrics, NSID_ALL).mc, 0b01);
    assert_eq!(described(&mut drive, fabrics, nsid).mc, 0b01);
    let controller = IdentifyController::read_from_bytes(&drive.succeeds(fabrics, &identify(1, 0), &[]).1).unwrap();
    assert!(controller.ctratt.mem() && !controller.sgls.mptr_sgl());
    drive.refuses(fabrics, &format_entry(nsid, LARGE.dword()), &[], Status::INVALID_FORMAT);
    drive.refuses(fabrics, &format_entry(NSID_ALL, SMALL.dword()), &[], Status::INVALID_FORMAT);
    drive.succeeds(fabrics, &format_entry(nsid, SMALL.extended().dword()), &[]);
    let blocks = SMALL.randoms(8, 10);
    carry_out(&mut drive, fabrics, &io(IoOpcode::Write, nsid, 0, 8), &SMALL.extended().bytes(&blocks));
    let read = carry_out(&mut drive, fabrics, &io(IoOpcode::Read, nsid, 0, 8), &[]).data;
    assert!(read == SMALL.extended().bytes(&blocks));
}

/// Only PCI Express hosts can use a namespace with a separate buffer. Commands without metadata
/// work everywhere.
#[test]
fn a_separate_buffer_cannot_be_used_over_fabrics() {
    let mut drive = Drive::new();
    let pcie = drive.host();
    let fabrics = drive.connect(HostTransport::Fabrics, ControllerKind::Io);
    let nsid = create(&mut drive, &[pcie, fabrics], LARGE, 64);
    assert_eq!(described(&mut drive, fabrics, nsid).flbas, LARGE.flbas());
    let block = LARGE.random(&mut seeded(11));
    carry_out(&mut drive, pcie, &io(IoOpcode::Write, nsid, 3, 1), &LARGE.bytes(std::slice::from_ref(&block)));
    for opcode in [IoOpcode::Read, IoOpcode::Write, IoOpcode::Compare] {
        let entry = io(opcode, nsid, 3, 1);
        assert_eq!(status(&mut drive, fabrics, &entry, &[]), Status::INVALID_NAMESPACE_OR_FORMAT, "{opcode:?}");
    }
    carry_out(&mut drive, fabrics, &io(IoOpcode::Verify, nsid, 3, 1), &[]);
    let (entry, source) = copy(nsid, 3, 9, 1);
    carry_out(&mut drive, fabrics, &entry, source.as_bytes());
    let read = carry_out(&mut drive, pcie, &io(IoOpcode::Read, nsid, 9, 1), &[]).data;
    assert!(read == LARGE.bytes(&[block]));
    carry_out(&mut drive, fabrics, &io(IoOpcode::WriteZeroes, nsid, 9, 1), &[]);
    let read = carry_out(&mut drive, pcie, &io(IoOpcode::Read, nsid, 9, 1), &[]).data;
    assert!(read == LARGE.bytes(&[LARGE.zero()]));
}

/// A new drive with a format that has metadata can be used by all its hosts.
#[test]
fn a_new_drive_has_extended_blocks() {
    let mut drive = Drive::of(SubsystemConfig { namespace: true, format: 2, ..config() });
    let fabrics = drive.connect(HostTransport::Fabrics, ControllerKind::Io);
    assert_eq!(described(&mut drive, fabrics, 1).flbas, LARGE.extended().flbas());
    let last = CAPACITY_BYTES / PAGE_BYTES - 1;
    let block = LARGE.random(&mut seeded(12));
    let sent = LARGE.extended().bytes(&[block]);
    carry_out(&mut drive, fabrics, &io(IoOpcode::Write, 1, last, 1), &sent);
    assert_eq!(carry_out(&mut drive, fabrics, &io(IoOpcode::Read, 1, last, 1), &[]).data, sent);
}
