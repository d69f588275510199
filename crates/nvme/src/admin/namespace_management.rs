//! Namespace Management and Namespace Attachment, which create, delete, attach and detach
//! namespaces.
//!
//! A namespace gets whole pages of the drive's logical capacity. Its placement handles are reclaim
//! unit handles of the FDP configuration. Attachment determines the controllers that see it.
//! Deletion deallocates its pages and discards its bytes.
//!
//! Thin provisioning, NVM sets, ANA groups, protection information and zoned namespaces are not
//! supported.

use std::borrow::Cow;

use nvme_spec::command::{
    CONTROLLER_ATTACH, CONTROLLER_DETACH, NAMESPACE_CREATE, NAMESPACE_DELETE, NamespaceAttachmentCdw10,
    NamespaceManagementCdw10, NamespaceManagementCdw11, SubmissionEntry,
};
use nvme_spec::identify::{CommandSet, ControllerList, NamespaceCreate};
use nvme_spec::{NSID_ALL, Status};
use ssd::{Lpn, RuhId};
use uuid::Uuid;
use zerocopy::FromBytes;

use super::format::{check_format, has_metadata};
use super::self_test::SelfTestEnd;
use crate::completion::{CommandResult, Execution};
use crate::controller::ControllerKind;
use crate::error::{Failure, Parameter};
use crate::fdp;
use crate::io::context::discard;
use crate::media::{ByteRange, metadata_of};
use crate::namespace::{self, EventMask, FORMATS, Namespace, PageExtent};
use crate::setup::{ENDURANCE_GROUP, NAMESPACES_MAX};
use crate::subsystem::Subsystem;
use crate::transfer::Transfer;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum NamespaceOperation {
    /// Creation. The data has the parameters.
    Create,
    /// Deletion of one namespace, or of all.
    Delete { nsid: u32 },
}

/// Request of a Namespace Attachment command. The data has the controllers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Attachment {
    nsid: u32,
    attach: bool,
}

pub(super) fn parse(entry: &SubmissionEntry) -> Result<NamespaceOperation, Failure> {
    match NamespaceManagementCdw10::from_bits(entry.cdw10.get()).sel() {
        NAMESPACE_CREATE => {
            let csi = NamespaceManagementCdw11::from_bits(entry.cdw11.get()).csi();
            if csi != CommandSet::Nvm.code() {
                let cause = format!("I/O command set {csi} is not supported. The only one is the NVM command set (0)");
                return Err(Failure::new(Status::IOCS_NOT_SUPPORTED, cause).at(Parameter::dword(11, 24)));
            }
            Ok(NamespaceOperation::Create)
        }
        NAMESPACE_DELETE => Ok(NamespaceOperation::Delete { nsid: entry.nsid.get() }),
        selected => {
            let cause = format!("namespace management operation {selected} is not supported");
            Err(Failure::invalid_field(Parameter::dword(10, 0), cause))
        }
    }
}

pub(super) fn parse_attachment(entry: &SubmissionEntry) -> Result<Attachment, Failure> {
    let selected = NamespaceAttachmentCdw10::from_bits(entry.cdw10.get()).sel();
    if !matches!(selected, CONTROLLER_ATTACH | CONTROLLER_DETACH) {
        let cause = format!("namespace attachment operation {selected} is not supported");
        return Err(Failure::invalid_field(Parameter::dword(10, 0), cause));
    }
    Ok(Attachment { nsid: entry.nsid.get(), attach: selected == CONTROLLER_ATTACH })
}

impl NamespaceOperation {
    pub(super) fn transfer(&self) -> Transfer {
        match self {
            NamespaceOperation::Create => Transfer::to_controller(size_of::<NamespaceCreate>() as u64),
            NamespaceOperation::Delete { .. } => Transfer::NONE,
        }
    }
}

fn structure<T: FromBytes + zerocopy::KnownLayout + zerocopy::Immutable + zerocopy::Unaligned>(data: &[u8]) -> &T {
    T::ref_from_bytes(data).expect("the length was checked")
}

fn wrong(status: Status, cause: impl Into<Cow<'static, str>>) -> Failure {
    Failure::new(status, cause).at(Parameter::DATA_POINTER)
}

impl Subsystem {
    pub(super) fn manage_namespace(&mut self, id: u16, operation: &NamespaceOperation, data: &[u8]) -> CommandResult {
        match *operation {
            NamespaceOperation::Create => self.create_namespace(id, structure(data)),
            NamespaceOperation::Delete { nsid } => self.delete_namespaces(nsid),
        }
    }

    // --------------------------------------------------------------------------- creation --

    fn create_namespace(&mut self, id: u16, fields: &NamespaceCreate) -> CommandResult {
        let format = fields.flbas.fidxu() << 4 | fields.flbas.fidxl();
        check_fields(fields, format)?;
        let extended_metadata = fields.flbas.mdtype() && has_metadata(format);
        self.check_metadata_location(id, format, extended_metadata, Parameter::DATA_POINTER)?;
        let free = self.state.namespaces.free_identifier();
        let handles = match fields.nphndls.get() {
            _ if !self.state.fdp.enabled => fdp::default_handles(),
            0 => vec![self.controller_chosen_handle()?],
            count => self.listed_handles(fields, count)?,
        };
        if self.state.fdp.enabled {
            self.state.namespaces.check_shared_format(&handles, format, &[], Parameter::DATA_POINTER)?;
        }
        let Some(nsid) = free else {
            let cause = format!("all {NAMESPACES_MAX} namespace identifiers are in use");
            return Err(Failure::new(Status::NAMESPACE_IDENTIFIER_UNAVAILABLE, cause));
        };
        let mut namespace = self.new_namespace(fields.nsze.get(), format, handles)?;
        namespace.extended_metadata = extended_metadata;
        namespace.shared = fields.nmic.shrns();
        namespace.host_specified_handles = self.state.fdp.enabled && fields.nphndls.get() > 0;
        self.state.namespaces.add(nsid, namespace);
        self.assert_namespaces();
        self.store_state_or(|subsystem| {
            subsystem.state.namespaces.remove(nsid);
        })?;
        Ok(Execution::with_result(u64::from(nsid)))
    }

    /// Reclaim unit handle of namespaces without a handle list. They all share one handle, which no
    /// host may list (NVM Command Set, "Namespace Management command").
    fn controller_chosen_handle(&self) -> Result<RuhId, Failure> {
        let chosen_before = self.namespaces().find(|(_, namespace)| !namespace.host_specified_handles);
        if let Some((_, namespace)) = chosen_before {
            return Ok(namespace.placement_handles[0]);
        }
        let used = |handle: &RuhId| self.state.namespaces.iter().any(|(_, its)| its.placement_handles.contains(handle));
        let mut all = (0..self.device.config().handles.count).map(RuhId);
        all.find(|handle| !used(handle)).ok_or_else(|| {
            let cause = "no reclaim unit handle is free for a namespace without a list. List a handle to share it";
            wrong(Status::INVALID_PLACEMENT_HANDLE_LIST, cause)
        })
    }

    /// Reclaim unit handles from the host's list. Entry i belongs to placement handle i.
    fn listed_handles(&self, fields: &NamespaceCreate, count: u16) -> Result<Vec<RuhId>, Failure> {
        let invalid = |cause| Err(wrong(Status::INVALID_PLACEMENT_HANDLE_LIST, cause));
        let there = self.device.config().handles.count;
        let most = usize::from(there).min(fields.phndl.len());
        if usize::from(count) > most {
            return invalid(format!(
                "the namespace has {count} placement handles, but the configuration allows {most}"
            ));
        }
        let mut handles = Vec::with_capacity(usize::from(count));
        for (index, handle) in fields.phndl[..usize::from(count)].iter().enumerate() {
            let handle = RuhId(handle.get());
            if handle.0 >= there {
                return invalid(format!(
                    "placement handle {index} lists reclaim unit handle {}, but only {there} exist",
                    handle.0
                ));
            }
            if handles.contains(&handle) {
                return invalid(format!("reclaim unit handle {} is listed twice", handle.0));
            }
            let restricted = |namespace: &Namespace| {
                !namespace.host_specified_handles && namespace.placement_handles.contains(&handle)
            };
            if let Some((nsid, _)) = self.state.namespaces.iter().find(|(_, namespace)| restricted(namespace)) {
                return invalid(format!("the controller chose reclaim unit handle {} for namespace {nsid}", handle.0));
            }
            handles.push(handle);
        }
        assert_eq!(handles.len(), usize::from(count), "each placement handle has a reclaim unit handle");
        Ok(handles)
    }

    /// Builds a namespace from free pages. It is private, unattached and not yet in the list of
    /// namespaces.
    pub(crate) fn new_namespace(&mut self, blocks: u64, format: u8, handles: Vec<RuhId>) -> Result<Namespace, Failure> {
        let page_bytes = self.page_bytes();
        if blocks == 0 {
            return Err(wrong(Status::INVALID_FIELD, "a namespace must have at least one logical block"));
        }
        let bytes = u128::from(blocks) << FORMATS[usize::from(format)].data_bytes_log2;
        let capacity_pages = self.device.layout().logical_pages;
        let pages = u32::try_from(bytes.div_ceil(u128::from(page_bytes))).ok();
        let there = self.state.namespaces.iter().map(|(_, namespace)| namespace);
        let Some(extents) = pages.and_then(|pages| namespace::allocate(there, capacity_pages, pages)) else {
            let cause = format!("the namespace needs {bytes} bytes, but only {} are free", self.unallocated_bytes());
            // The error log gets the required capacity.
            let needed = u64::try_from(bytes).unwrap_or(u64::MAX);
            return Err(wrong(Status::NAMESPACE_INSUFFICIENT_CAPACITY, cause).specific(needed));
        };
        let found: u64 = extents.iter().map(|extent| u64::from(extent.pages)).sum();
        assert!(u128::from(found * page_bytes) >= bytes, "the blocks fit into the pages");
        self.state.namespaces.created += 1;
        Ok(Namespace {
            format,
            blocks,
            extents,
            events_enabled: vec![EventMask::default(); handles.len()],
            placement_handles: handles,
            nguid: self.unique_identifier(self.state.namespaces.created),
            ..Namespace::default()
        })
    }

    /// Identifier that no other namespace ever had. It follows from the names of the drive and a
    /// unique number.
    fn unique_identifier(&self, number: u64) -> [u8; 16] {
        let identity = &self.config.identity;
        let drive = Uuid::new_v5(&Uuid::NAMESPACE_URL, identity.nqn.as_bytes());
        let name = format!("{} namespace {number}", identity.serial);
        let mut bytes = Uuid::new_v5(&drive, name.as_bytes()).into_bytes();
        // Byte 8 starts the OUI of the NGUID. The bits mark it as locally administered and
        // individual.
        bytes[8] = bytes[8] & !1 | 2;
        bytes
    }

    pub(crate) fn unallocated_bytes(&self) -> u64 {
        let taken_bytes = self.state.namespaces.pages() * self.page_bytes();
        assert!(taken_bytes <= self.capacity_bytes(), "namespaces lie inside the drive");
        self.capacity_bytes() - taken_bytes
    }

    pub(super) fn assert_namespaces(&self) {
        let checked = self.state.namespaces.check(self.device.layout());
        assert_eq!(checked, Ok(()), "namespaces are changed so that they fit");
    }

    // --------------------------------------------------------------------------- deletion --

    fn delete_namespaces(&mut self, nsid: u32) -> CommandResult {
        let nsids: Vec<u32> = match nsid {
            NSID_ALL => self.state.namespaces.iter().map(|(nsid, _)| nsid).collect(),
            nsid => self.state.namespaces.allocated(nsid).map(|_| vec![nsid])?,
        };
        self.state.namespaces.check_unprotected(nsids.iter().copied())?;
        for &nsid in &nsids {
            self.delete_namespace(nsid)?;
        }
        self.end_self_test_of(SelfTestEnd::NamespaceRemoved, &nsids);
        // Makes the deletion durable first. A power loss must not bring deleted data back in a
        // later namespace.
        Ok(Execution::after(true))
    }

    /// Deletes an existing namespace. It stores the deletion first and then erases the data. A
    /// power loss in between leaves data outside all namespaces, which a restart frees.
    ///
    /// # Errors
    /// The storage failed. The namespace still exists, but some of its data may be erased.
    pub(crate) fn delete_namespace(&mut self, nsid: u32) -> Result<(), Failure> {
        let saved_features = self.state.saved_features.clone();
        let current_features = self.shared_features.clone();
        self.forget_namespace_features(nsid);
        let deleted = self.state.namespaces.remove(nsid);
        let erased = self.store_state().and_then(|()| self.erase_extents(&deleted.extents));
        if let Err(failure) = erased {
            self.state.namespaces.add(nsid, deleted);
            self.state.saved_features = saved_features;
            self.shared_features = current_features;
            // Pages that could not be erased stay allocated. If storing fails too, the next change
            // stores the state.
            let _ = self.store_state();
            return Err(failure);
        }
        self.assert_namespaces();
        self.state.inherited.retain(|(its, _)| *its != nsid);
        self.controllers.note_namespace_changed(nsid, &deleted.attached);
        Ok(())
    }

    /// Makes pages of the drive and their metadata read as zeroes, and deallocates them in the
    /// device.
    pub(super) fn erase_pages(&mut self, extent: PageExtent) -> Result<(), Failure> {
        let page_bytes = self.page_bytes();
        let piece =
            ByteRange { offset: u64::from(extent.first) * page_bytes, bytes: u64::from(extent.pages) * page_bytes };
        for piece in [piece, metadata_of(self.capacity_bytes(), piece)] {
            discard(&mut self.media, &mut self.state.smart.media_errors, piece)?;
        }
        let done = self.device.deallocate(self.clock.now(), Lpn(extent.first), extent.pages);
        let _ = done.expect("extents lie inside the device");
        for page in [extent.first, extent.first + (extent.pages - 1)] {
            assert!(self.device.lookup(Lpn(page)).is_none(), "page {page} was given back");
        }
        Ok(())
    }

    // ------------------------------------------------------------------------- attachment --

    pub(super) fn attach_namespace(&mut self, attachment: &Attachment, data: &[u8]) -> CommandResult {
        let nsid = attachment.nsid;
        self.state.namespaces.allocated(nsid)?;
        let controllers = self.listed_controllers(structure(data))?;
        let everyone = 1..=self.config.controllers_max;
        let namespace = self.state.namespaces.get(nsid);
        let mut attached = namespace.attached.clone();
        if attached.remove(&Namespace::EVERYONE) {
            // From now on the namespace is attached to each controller individually.
            attached.extend(everyone);
        }
        for &controller in &controllers {
            if attachment.attach {
                if !attached.insert(controller) {
                    let cause = format!("namespace {nsid} is already attached to controller {controller}");
                    return Err(wrong(Status::NAMESPACE_ALREADY_ATTACHED, cause));
                }
                if !namespace.shared && attached.len() > 1 {
                    let cause = format!("namespace {nsid} is private and cannot be attached to a second controller");
                    return Err(wrong(Status::NAMESPACE_IS_PRIVATE, cause));
                }
            } else if !attached.remove(&controller) {
                let cause = format!("namespace {nsid} is not attached to controller {controller}");
                return Err(wrong(Status::NAMESPACE_NOT_ATTACHED, cause));
            }
        }
        let before = std::mem::replace(&mut self.state.namespaces.get_mut(nsid).attached, attached);
        self.assert_namespaces();
        // An attachment that a host requested is no longer inherited.
        let inherited = self.state.inherited.clone();
        let asked_for = |its: u32, id: &u16| its == nsid && controllers.contains(id);
        self.state.inherited.retain(|(its, id)| !asked_for(*its, id));
        self.store_state_or(|subsystem| {
            subsystem.state.namespaces.get_mut(nsid).attached = before;
            subsystem.state.inherited = inherited;
        })?;
        self.controllers.note_namespace_changed(nsid, &controllers.into_iter().collect());
        Ok(Execution::DONE)
    }

    /// Controllers of a host's list. The list must be ascending and not empty, and each entry must
    /// be an existing I/O controller.
    fn listed_controllers(&self, list: &ControllerList) -> Result<Vec<u16>, Failure> {
        let count = usize::from(list.numids.get());
        if count == 0 || count > list.cntlid.len() {
            let cause = format!("the controller list has {count} entries, which is not allowed");
            return Err(wrong(Status::CONTROLLER_LIST_INVALID, cause));
        }
        let listed: Vec<u16> = list.cntlid[..count].iter().map(|id| id.get()).collect();
        if !listed.is_sorted_by(|a, b| a < b) {
            return Err(wrong(Status::CONTROLLER_LIST_INVALID, "the controller list is not in ascending order"));
        }
        for &id in &listed {
            if !self.is_connected(id) || self.controller(id).kind != ControllerKind::Io {
                let cause = format!("controller {id} does not exist or cannot have namespaces");
                return Err(wrong(Status::CONTROLLER_LIST_INVALID, cause));
            }
        }
        Ok(listed)
    }

    // ------------------------------------------------------------------------------ views --

    pub(super) fn namespaces_of(&self, id: u16) -> impl Iterator<Item = (u32, &Namespace)> {
        let kind = self.controller(id).kind;
        self.state
            .namespaces
            .iter()
            .filter(move |(_, namespace)| kind == ControllerKind::Io && namespace.is_attached(id))
    }
}

fn check_fields(fields: &NamespaceCreate, format: u8) -> Result<(), Failure> {
    let (blocks, capacity) = (fields.nsze.get(), fields.ncap.get());
    check_format(format, Parameter::DATA_POINTER)?;
    if fields.dps.pit() != 0 {
        return Err(wrong(Status::INVALID_FORMAT, "protection information is not supported (DPC)"));
    }
    if capacity > blocks || capacity == 0 {
        let cause = format!("the namespace size is {blocks} logical blocks, but the capacity is {capacity}");
        return Err(wrong(Status::INVALID_FIELD, cause));
    }
    if capacity < blocks {
        let cause = format!(
            "the namespace size of {blocks} logical blocks exceeds the capacity of {capacity}, but thin provisioning \
             is not supported"
        );
        return Err(wrong(Status::THIN_PROVISIONING_NOT_SUPPORTED, cause));
    }
    if fields.nmic.disns() {
        return Err(wrong(Status::INVALID_FIELD, "dispersed namespaces are not supported"));
    }
    if fields.anagrpid.get() != 0 {
        let cause = format!("ANA group {} does not exist", fields.anagrpid.get());
        return Err(wrong(Status::ANA_GROUP_IDENTIFIER_INVALID, cause));
    }
    if fields.nvmsetid.get() != 0 {
        return Err(wrong(Status::INVALID_FIELD, format!("NVM set {} does not exist", fields.nvmsetid.get())));
    }
    if !matches!(fields.endgid.get(), 0 | ENDURANCE_GROUP) {
        return Err(wrong(Status::INVALID_FIELD, format!("endurance group {} does not exist", fields.endgid.get())));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use nvme_spec::identify::Nmic;

    use super::*;

    #[test]
    fn fields_are_checked_one_by_one() {
        let fields = NamespaceCreate {
            nsze: 8.into(),
            ncap: 8.into(),
            nmic: Nmic::new().with_shrns(true),
            endgid: 1.into(),
            ..NamespaceCreate::default()
        };
        let status = |fields: &NamespaceCreate, format| check_fields(fields, format).map_err(|failure| failure.status);
        assert_eq!(status(&fields, 1), Ok(()));
        assert_eq!(status(&fields, FORMATS.len() as u8), Err(Status::INVALID_FORMAT));
        let thin = NamespaceCreate { ncap: 7.into(), ..fields };
        assert_eq!(status(&thin, 0), Err(Status::THIN_PROVISIONING_NOT_SUPPORTED));
        let in_set = NamespaceCreate { nvmsetid: 1.into(), ..fields };
        assert_eq!(status(&in_set, 0), Err(Status::INVALID_FIELD));
    }
}
