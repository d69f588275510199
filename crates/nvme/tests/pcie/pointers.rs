//! PRPs, SGLs and metadata pointers, correct and malformed.

use base::table;
use nvme::pcie::HostMemory;
use nvme_spec::command::{SGL_SUBTYPE_ADDRESS, SGL_SUBTYPE_OFFSET, SglDescriptor, SglType, SubmissionEntry};
use nvme_spec::{AdminOpcode, IoOpcode, Status};
use zerocopy::IntoBytes;

use crate::common::{CAPACITY_BYTES, MIB, admin, identify, io};
use crate::{DATA, Machine, PAGE, RAM_BYTES, descriptor, prps, read, write};

#[test]
fn prps_describe_data_in_pages() {
    let mut machine = Machine::with_queue();
    // In one page with an offset, and over a page boundary with a second entry.
    let data = machine.fill(DATA + 0x10, 3 * PAGE, 3);
    machine.write_numbers(DATA - PAGE, &[DATA + PAGE, DATA + 2 * PAGE, DATA + 3 * PAGE]);
    machine.succeeds(1, write(3, DATA + 0x10, DATA - PAGE));
    machine.succeeds(1, read(1, DATA + 0x10_0000, 0));
    assert_eq!(machine.ram(DATA + 0x10_0000, PAGE), data[..PAGE as usize]);
    machine.succeeds(1, read(2, DATA + 0x10_0ffc, DATA - PAGE + 8));
    assert_eq!(machine.ram(DATA + 0x10_0ffc, 4), data[..4]);
    assert_eq!(machine.ram(DATA + 2 * PAGE, PAGE), data[4..4 + PAGE as usize]);
    // Two whole pages that are not neighbours.
    machine.succeeds(1, read(2, DATA + 0x11_0000, DATA + 0x12_0000));
    assert_eq!(machine.ram(DATA + 0x11_0000, PAGE), data[..PAGE as usize]);
    assert_eq!(machine.ram(DATA + 0x12_0000, PAGE), data[PAGE as usize..2 * PAGE as usize]);
}

#[test]
fn a_prp_list_goes_on_in_other_pages() {
    let mut machine = Machine::with_queue();
    // 1 MiB from the middle of a page needs 256 list entries. The first list page has room for 2,
    // the next one for all.
    let data = machine.fill(DATA, MIB, 9);
    let (first_list, second_list) = (DATA - 3 * PAGE + PAGE - 24, DATA - PAGE);
    let start = DATA + 2048;
    let aligned: Vec<u64> = (1..=256).map(|page| DATA + page * PAGE).collect();
    machine.write_numbers(first_list, &[aligned[0], aligned[1], second_list]);
    machine.write_numbers(second_list, &aligned[2..]);
    machine.fill(DATA + MIB, 2048, 9);
    let expected = [&data[2048..], &machine.ram(DATA + MIB, 2048)[..]].concat();
    machine.succeeds(1, write(256, start, first_list));

    // A list at the last entry of its page, which can only point to the next page.
    let target = DATA + 2 * MIB;
    let back: Vec<u64> = (1..256).map(|page| target + page * PAGE).collect();
    machine.write_numbers(DATA - PAGE - 8, &[second_list]);
    machine.write_numbers(second_list, &back);
    machine.succeeds(1, read(256, target, DATA - PAGE - 8));
    assert!(machine.ram(target, MIB) == expected, "the data came back");
}

#[test]
fn malformed_prps_are_refused() {
    let mut machine = Machine::with_queue();
    let list = DATA - PAGE;
    machine.write_numbers(list, &[DATA + 8, DATA + PAGE]);
    machine.write_numbers(list + 0x100, &[DATA, DATA + PAGE + 4]);
    machine.write_numbers(list + 0x200, &[DATA, RAM_BYTES]);
    machine.write_numbers(list + PAGE - 8, &[list + 0x200]);
    let far = 1 << 60;
    let refused = table! {
        "not dword aligned": write(1, DATA + 2, 0) => Status::PRP_OFFSET_INVALID,
        "second entry with an offset": write(2, DATA, DATA + 16) => Status::PRP_OFFSET_INVALID,
        "second entry missing": write(2, DATA, 0) => Status::INVALID_FIELD,
        "list missing": write(3, DATA, 0) => Status::INVALID_FIELD,
        "list not qword aligned": write(3, DATA, list + 4) => Status::PRP_OFFSET_INVALID,
        "first list entry with an offset": write(3, DATA, list) => Status::PRP_OFFSET_INVALID,
        "second list entry with an offset": write(3, DATA, list + 0x100) => Status::PRP_OFFSET_INVALID,
        "next list with an offset": write(3, DATA, list + PAGE - 8) => Status::PRP_OFFSET_INVALID,
        "list entry without memory": write(3, DATA, list + 0x200) => Status::DATA_TRANSFER_ERROR,
        "no memory": write(1, far, 0) => Status::DATA_TRANSFER_ERROR,
        "no memory, at the end of addresses": write(1, u64::MAX - 3, 0) => Status::INVALID_FIELD,
        "no memory for the list": write(3, DATA, far) => Status::DATA_TRANSFER_ERROR,
        "no memory to read to": read(1, far, 0) => Status::DATA_TRANSFER_ERROR,
        "no memory behind the first page": read(2, RAM_BYTES - PAGE, RAM_BYTES) => Status::DATA_TRANSFER_ERROR,
    };
    machine.refuses_each(1, &refused);
    machine.refuses(0, prps(identify(1, 0), DATA + 2, 0), Status::PRP_OFFSET_INVALID);
    machine.succeeds(1, read(1, DATA, 0));
    assert_eq!(machine.ram(DATA, PAGE), vec![0; PAGE as usize], "nothing was written");
}

// ---------------------------------------------------------------------------------------- SGLs --

fn block(address: u64, bytes: u32) -> SglDescriptor {
    descriptor(SglType::DataBlock, SGL_SUBTYPE_ADDRESS, address, bytes)
}

fn bucket(bytes: u32) -> SglDescriptor {
    descriptor(SglType::BitBucket, SGL_SUBTYPE_ADDRESS, 0, bytes)
}

fn segment(address: u64, descriptors: u32) -> SglDescriptor {
    descriptor(SglType::Segment, SGL_SUBTYPE_ADDRESS, address, descriptors * 16)
}

fn last_segment(address: u64, descriptors: u32) -> SglDescriptor {
    descriptor(SglType::LastSegment, SGL_SUBTYPE_ADDRESS, address, descriptors * 16)
}

fn sgl(mut entry: SubmissionEntry, sgl1: SglDescriptor) -> SubmissionEntry {
    entry.flags.set_psdt(1);
    entry.set_sgl1(sgl1);
    entry
}

impl Machine {
    fn put(&self, address: u64, descriptors: &[SglDescriptor]) {
        self.ram.write(address, descriptors.as_bytes()).unwrap();
    }
}

#[test]
fn sgls_describe_data_in_pieces() {
    let mut machine = Machine::with_queue();
    let page = PAGE as u32;
    let data = machine.fill(DATA, 2 * PAGE, 5);
    let (list, more) = (DATA - PAGE, DATA - 2 * PAGE);

    // One block at any address, longer than needed.
    machine.succeeds(1, sgl(write(2, 0, 0), block(DATA, 2 * page)));
    machine.succeeds(1, sgl(read(2, 0, 0), block(DATA + 0x10_0001, 3 * page)));
    assert_eq!(machine.ram(DATA + 0x10_0001, 2 * PAGE), data);

    // Pieces of odd sizes in two segments. A bit bucket has no length in data for the controller.
    machine.put(list, &[block(DATA, 1), block(DATA + 1, 0), bucket(77), segment(more, 2)]);
    machine.put(more, &[block(DATA + 1, page), last_segment(list + 0x800, 1)]);
    machine.put(list + 0x800, &[block(DATA + 1 + PAGE, page - 1)]);
    let write_other = |sgl1| sgl(io(IoOpcode::Write, 1, 10, 2), sgl1);
    machine.succeeds(1, write_other(segment(list, 4)));

    // Data for the host goes past a bit bucket.
    machine.put(list, &[block(DATA + 0x20_0000, 100), bucket(page), block(DATA + 0x20_0064, page - 100)]);
    let mut read_other = sgl(io(IoOpcode::Read, 1, 10, 2), last_segment(list, 3));
    read_other.flags.set_psdt(2);
    machine.succeeds(1, read_other);
    assert_eq!(machine.ram(DATA + 0x20_0000, 100), data[..100]);
    assert_eq!(machine.ram(DATA + 0x20_0064, PAGE - 100), data[100 + PAGE as usize..]);
}

#[test]
fn malformed_sgls_are_refused() {
    let mut machine = Machine::with_queue();
    let page = PAGE as u32;
    let at = |number: u64| DATA - PAGE + number * 0x100;
    machine.put(at(0), &[block(DATA, page / 2), block(DATA, page / 2 - 1)]);
    machine.put(at(1), &[segment(at(2), 1), block(DATA, page)]);
    machine.put(at(2), &[block(DATA, page)]);
    machine.put(at(3), &[last_segment(at(2), 1)]);
    machine.put(at(4), &[descriptor(SglType::DataBlock, SGL_SUBTYPE_OFFSET, DATA, page)]);
    machine.put(at(5), &[segment(at(5), 1)]); // a chain without an end
    machine.put(at(6), &[block(DATA, 0), segment(at(6), 2)]);
    let odd = |kind, address, bytes| descriptor(kind, SGL_SUBTYPE_ADDRESS, address, bytes);
    let refused = table! {
        "too short": block(DATA, page - 1) => Status::DATA_SGL_LENGTH_INVALID,
        "too short in a segment": last_segment(at(0), 2) => Status::DATA_SGL_LENGTH_INVALID,
        "nothing but a bucket": bucket(page) => Status::DATA_SGL_LENGTH_INVALID,
        "keyed": odd(SglType::KeyedDataBlock, DATA, page) => Status::SGL_DESCRIPTOR_TYPE_INVALID,
        "of a transport": odd(SglType::TransportDataBlock, DATA, page) => Status::SGL_DESCRIPTOR_TYPE_INVALID,
        "of a vendor": odd(SglType::VendorSpecific, DATA, page) => Status::SGL_DESCRIPTOR_TYPE_INVALID,
        "an offset": descriptor(SglType::DataBlock, SGL_SUBTYPE_OFFSET, 0, page) => Status::SGL_DESCRIPTOR_TYPE_INVALID,
        "an offset in a segment": last_segment(at(4), 1) => Status::SGL_DESCRIPTOR_TYPE_INVALID,
        "an empty segment": segment(at(2), 0) => Status::INVALID_SGL_SEGMENT_DESCRIPTOR,
        "half a descriptor": odd(SglType::LastSegment, at(2), 24) => Status::INVALID_SGL_SEGMENT_DESCRIPTOR,
        "a segment that is not aligned": last_segment(at(2) + 4, 1) => Status::INVALID_SGL_SEGMENT_DESCRIPTOR,
        "a segment that leads nowhere": segment(at(2), 1) => Status::INVALID_SGL_SEGMENT_DESCRIPTOR,
        "a last segment that leads on": last_segment(at(3), 1) => Status::INVALID_SGL_SEGMENT_DESCRIPTOR,
        "a segment in the middle": segment(at(1), 2) => Status::INVALID_NUMBER_OF_SGL_DESCRIPTORS,
        "a chain without an end": segment(at(5), 1) => Status::INVALID_NUMBER_OF_SGL_DESCRIPTORS,
        "the same with data in it": segment(at(6), 2) => Status::INVALID_NUMBER_OF_SGL_DESCRIPTORS,
        "a segment of 4 GiB": odd(SglType::LastSegment, at(2), 0xffff_fff0)
            => Status::INVALID_NUMBER_OF_SGL_DESCRIPTORS,
        "no memory for a segment": last_segment(1 << 60, 1) => Status::DATA_TRANSFER_ERROR,
        "a segment at the end of addresses": last_segment(u64::MAX - 7, 100) => Status::DATA_TRANSFER_ERROR,
        "no memory for data": block(u64::MAX - 100, page) => Status::DATA_TRANSFER_ERROR,
    };
    let refused = refused.map(|(what, sgl1, status)| (what, sgl(write(1, 0, 0), sgl1), status));
    machine.refuses_each(1, &refused);
    let mut reserved = write(1, DATA, 0);
    reserved.flags.set_psdt(3);
    machine.refuses(1, reserved, Status::INVALID_FIELD);
    machine.refuses(0, sgl(identify(1, 0), block(DATA, page)), Status::INVALID_FIELD);
}

// ------------------------------------------------------------------------------------ metadata --

impl Machine {
    /// A machine whose namespace has 4 KiB blocks with 64 bytes of metadata in a separate buffer.
    fn with_metadata() -> Machine {
        let mut machine = Machine::with_queue();
        let mut format = admin(AdminOpcode::FormatNvm, 1);
        format.cdw10.set(2);
        machine.succeeds(0, format);
        machine
    }
}

fn metadata(mut entry: SubmissionEntry, psdt: u8, mptr: u64) -> SubmissionEntry {
    entry.flags.set_psdt(psdt);
    entry.mptr.set(mptr);
    entry
}

#[test]
fn the_metadata_pointer_is_an_address_or_an_sgl() {
    let mut machine = Machine::with_metadata();
    let (meta, list, more) = (DATA - PAGE, DATA - 2 * PAGE, DATA - 2 * PAGE + 0x100);
    let data = machine.fill(DATA, 2 * PAGE, 9);
    let sent = machine.fill(meta, 128, 0x55);
    let (to, to_meta) = (DATA + 0x10_0000, DATA + 0x20_0004);
    let check = |machine: &mut Machine, what: &str| {
        assert_eq!(machine.ram(to, 2 * PAGE), data, "{what}: data");
        assert_eq!(machine.ram(to_meta, 128), sent, "{what}: metadata");
        assert_eq!(machine.ram(to_meta - 4, 4), [0; 4], "{what}: before");
        assert_eq!(machine.ram(to_meta + 128, 64), [0; 64], "{what}: behind");
        machine.ram.write(to, &[0; 2 * PAGE as usize]).unwrap();
        machine.ram.write(to_meta, &[0; 128]).unwrap();
    };

    // PRPs, and a contiguous buffer at a multiple of 4.
    machine.succeeds(1, metadata(write(2, DATA, DATA + PAGE), 0, meta));
    machine.succeeds(1, metadata(read(2, to, to + PAGE), 0, to_meta));
    check(&mut machine, "PRPs");

    // An SGL, and a contiguous buffer that follows the data in memory.
    machine.ram.write(DATA + 2 * PAGE, &sent).unwrap();
    let block_of = |address| block(address, 2 * PAGE as u32);
    let write_other = |sgl1| sgl(io(IoOpcode::Write, 1, 10, 2), sgl1);
    let read_other = |sgl1| sgl(io(IoOpcode::Read, 1, 10, 2), sgl1);
    machine.succeeds(1, metadata(write_other(block_of(DATA)), 1, DATA + 2 * PAGE));
    machine.succeeds(1, metadata(read_other(block_of(to)), 1, to_meta));
    check(&mut machine, "an SGL and a buffer");

    // An SGL with an SGL descriptor at the metadata pointer. The descriptor is a block that is too
    // long, or a segment of pieces.
    machine.put(list, &[block(meta, 200)]);
    machine.succeeds(1, metadata(sgl(write(2, 0, 0), block_of(DATA)), 2, list));
    machine.put(list, &[last_segment(more, 3)]);
    machine.put(more, &[block(to_meta, 1), block(to_meta + 1, 100), block(to_meta + 101, 27)]);
    machine.succeeds(1, metadata(sgl(read(2, 0, 0), block_of(to)), 2, list));
    check(&mut machine, "SGLs for both");

    // Compare sees a difference in the metadata.
    let compare = metadata(prps(io(IoOpcode::Compare, 1, 10, 2), DATA, DATA + PAGE), 0, meta);
    machine.succeeds(1, compare);
    machine.ram.write(meta + 127, &[!sent[127]]).unwrap();
    machine.refuses(1, compare, Status::COMPARE_FAILURE);
}

#[test]
fn malformed_metadata_pointers_are_refused() {
    let mut machine = Machine::with_metadata();
    let list = DATA - PAGE;
    machine.put(list, &[block(DATA + PAGE, 63)]);
    machine.put(list + 0x10, &[descriptor(SglType::DataBlock, SGL_SUBTYPE_OFFSET, 0, 64)]);
    machine.put(list + 0x20, &[last_segment(DATA + 4, 1)]);
    machine.put(list + 0x30, &[block(u64::MAX - 10, 64)]);
    let writes = |psdt, mptr| match psdt {
        0 => metadata(write(1, DATA, 0), psdt, mptr),
        _ => metadata(sgl(write(1, 0, 0), block(DATA, PAGE as u32)), psdt, mptr),
    };
    let refused = table! {
        "an odd address": writes(0, DATA + 2) => Status::INVALID_FIELD,
        "an odd address beside an SGL": writes(1, DATA + 1) => Status::INVALID_FIELD,
        "no address, which is 0": writes(0, 0) => Status::INVALID_FIELD,
        "no address beside an SGL": writes(1, 0) => Status::INVALID_FIELD,
        "no memory": writes(0, u64::MAX - 63) => Status::DATA_TRANSFER_ERROR,
        "memory for a part": writes(1, RAM_BYTES - 60) => Status::DATA_TRANSFER_ERROR,
        "an SGL that is not aligned": writes(2, list + 4) => Status::INVALID_FIELD,
        "no memory for an SGL": writes(2, 1 << 60) => Status::DATA_TRANSFER_ERROR,
        "an SGL that is too short": writes(2, list) => Status::METADATA_SGL_LENGTH_INVALID,
        "an offset": writes(2, list + 0x10) => Status::SGL_DESCRIPTOR_TYPE_INVALID,
        "a segment that is not aligned": writes(2, list + 0x20) => Status::INVALID_SGL_SEGMENT_DESCRIPTOR,
        "an SGL without memory": writes(2, list + 0x30) => Status::DATA_TRANSFER_ERROR,
    };
    machine.refuses_each(1, &refused);
    assert_eq!(machine.drive.subsystem.state().smart.host_bytes_written, 0, "nothing was changed");
    // Without separate metadata the pointer is ignored.
    let mut format = admin(AdminOpcode::FormatNvm, 1);
    format.cdw10.set(0);
    machine.succeeds(0, format);
    machine.succeeds(1, metadata(write(1, DATA, 0), 0, 3));
}

#[test]
fn a_range_beyond_the_namespace_is_refused_before_its_data_pointer() {
    let mut machine = Machine::with_queue();
    let end = CAPACITY_BYTES / PAGE;
    for opcode in [IoOpcode::Read, IoOpcode::Write, IoOpcode::Compare] {
        for (prp1, prp2) in [(1, 0), (u64::MAX - 3, 0), (DATA, 0), (DATA, 3)] {
            let entry = prps(io(opcode, 1, end - 1, 2), prp1, prp2);
            machine.refuses(1, entry, Status::LBA_OUT_OF_RANGE);
        }
    }
}
