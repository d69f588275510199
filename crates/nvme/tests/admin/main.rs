//! Identify, namespaces, Format, Sanitize, self-tests, directives and the switching of Flexible
//! Data Placement, as hosts see them.

#[path = "../common/mod.rs"]
mod common;
mod fdp;
mod format;
mod identify;
mod namespaces;
mod sanitize;

use common::{Drive, admin, config, identify};
use nvme_spec::command::{FormatNvmCdw10, SanitizeCdw10, SubmissionEntry};
use nvme_spec::identify::{Cns, ControllerList, NamespaceCreate, NamespaceList};
use nvme_spec::{AdminOpcode, IdentifyController, IdentifyNamespace};
use ssd::config::HandlesConfig;
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
    list.nsid.iter().map(|nsid| nsid.get()).take_while(|&nsid| nsid != 0).collect()
}

/// The identifiers of a controller list.
fn controllers(drive: &mut Drive, id: u16, cns: Cns, nsid: u32, from: u16) -> Vec<u16> {
    let mut entry = identify(cns.code(), nsid);
    entry.cdw10 = (u32::from(cns.code()) | u32::from(from) << 16).into();
    let list: ControllerList = read(&drive.succeeds(id, &entry, &[]).1);
    list.cntlid[..usize::from(list.numids.get())].iter().map(|id| id.get()).collect()
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
    SubmissionEntry { cdw10: 1.into(), ..admin(AdminOpcode::NamespaceManagement, nsid) }
}

#[track_caller]
fn delete(drive: &mut Drive, id: u16, nsid: u32) {
    drive.succeeds(id, &delete_entry(nsid), &[]);
}

/// Attach (0) or detach (1) command with its list.
fn attachment(nsid: u32, select: u32, controllers: &[u16]) -> (SubmissionEntry, ControllerList) {
    let entry = SubmissionEntry { cdw10: select.into(), ..admin(AdminOpcode::NamespaceAttachment, nsid) };
    let mut list = ControllerList { numids: (controllers.len() as u16).into(), ..ControllerList::default() };
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
    SubmissionEntry { cdw10: dword.into_bits().into(), ..admin(AdminOpcode::Sanitize, 0) }
}

fn format_entry(nsid: u32, dword: FormatNvmCdw10) -> SubmissionEntry {
    SubmissionEntry { cdw10: dword.into_bits().into(), ..admin(AdminOpcode::FormatNvm, nsid) }
}

/// Drive that is erased in two pieces.
fn large() -> nvme::SubsystemConfig {
    let mut large = config();
    large.device.geometry.capacity_bytes = Some(384 << 20);
    large.device.handles = HandlesConfig { count: 2, ..large.device.handles };
    large
}
