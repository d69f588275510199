//! The Identify command, with the data structures of the drive, its controllers and its namespaces.
//!
//! Each request builds its structure from the configuration and the state, so the data is never
//! stale. Limits come from the constants of the code that enforces them.
//!
//! NVM sets, domains, secondary controllers, namespace granularities, user data formats and other
//! command sets are not supported.

use nvme_spec::command::{IdentifyCdw10, IdentifyCdw11, SubmissionEntry};
use nvme_spec::identify::{
    Cmic, CommandSet, ControllerList, ControllerType, Ctratt, Dlfeat, EnduranceGroupList, EntrySize, Flbas, Fna, Fpi,
    Frmw, IdentifyNamespaceIndependent, IndependentNsfeat, IoCommandSetVector, IoCommandSets, LbaFormat, Lpa,
    NamespaceIdentificationDescriptor, NamespaceIdentifierType, NamespaceList, Nmic, Nsattr, Nsfeat, Nstat,
    NvmIdentifyController, NvmIdentifyNamespace, Oacs, Oaes, Oncs, PowerState, Sanicap, Sgls, UuidList, UuidListEntry,
    Vwc,
};
use nvme_spec::register::Vs;
use nvme_spec::{Cns, IDENTIFY_SIZE, IdentifyController, IdentifyNamespace, NSID_ALL, Status};
use uuid::Uuid;
use zerocopy::IntoBytes;

use super::features::WARNING_TEMPERATURE_K;
use super::log_page::UUIDS;
use super::self_test::EXTENDED_MINUTES;
use crate::completion::{CommandResult, Execution};
use crate::controller::{
    ASYNC_EVENT_REQUESTS_MAX, ControllerKind, ERROR_LOG_ENTRIES_MAX, HostTransport, KEEP_ALIVE_GRANULARITY_MS,
    QUEUE_ENTRIES_MAX,
};
use crate::error::{Failure, Parameter};
use crate::io::ranges::{COPY_RANGES_MAX, copy_blocks_max};
use crate::namespace::{FORMATS, Namespace};
use crate::setup::{ENDURANCE_GROUP, NAMESPACES_MAX, VENDOR_ID};
use crate::subsystem::Subsystem;
use crate::transfer::{MAX_DATA_TRANSFER_SIZE, TRANSFER_BYTES_MAX};

/// Most data in a command capsule of an I/O queue, in bytes (IOCCSZ without the command). The size
/// lets most writes carry their data. Capsules arrive one after the other, so in-capsule data needs
/// no more memory than requested data.
pub const IN_CAPSULE_DATA_BYTES: u32 = 128 << 10;
/// Critical composite temperature in kelvins (CCTEMP), 80 degrees Celsius.
pub const CRITICAL_TEMPERATURE_K: u16 = 353;
/// Metadata may be in extended logical blocks (MC).
const METADATA_EXTENDED: u8 = 1 << 0;
/// Metadata may be in a separate buffer (MC).
const METADATA_SEPARATE: u8 = 1 << 1;
/// Maximum Power of the one power state, in units of 10 mW.
pub(super) const POWER_MAX_CW: u16 = 2500;
/// Bytes that a write keeps whole over a power failure. The value follows from
/// [`crate::media::Media::write`].
const POWER_FAIL_ATOMIC_BYTES: u64 = 4096;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct IdentifyRequest {
    cns: Cns,
    nsid: u32,
    /// First controller of a list, or the controller to describe.
    controller: u16,
    /// First endurance group of a list.
    specific: u16,
    command_set: u8,
}

pub(super) fn parse(entry: &SubmissionEntry) -> Result<IdentifyRequest, Failure> {
    let dword10 = IdentifyCdw10::from_bits(entry.cdw10.get());
    let dword11 = IdentifyCdw11::from_bits(entry.cdw11.get());
    let cns = Cns::from_u8(dword10.cns()).ok_or_else(|| unsupported(dword10.cns()))?;
    Ok(IdentifyRequest {
        cns,
        nsid: entry.nsid.get(),
        controller: dword10.cntid(),
        specific: dword11.cnssid(),
        command_set: dword11.csi(),
    })
}

fn unsupported(cns: u8) -> Failure {
    Failure::invalid_field(Parameter::dword(10, 0), format!("Identify structure {cns:#04x} is not supported here"))
}

/// Structures of one I/O command set, which the host names.
const OF_COMMAND_SET: [Cns; 5] = [
    Cns::IocsNamespace,
    Cns::IocsController,
    Cns::IocsActiveNamespaceList,
    Cns::IocsAllocatedNamespaceList,
    Cns::IocsAllocatedNamespace,
];

/// ASCII field, padded with spaces or cut.
fn padded<const N: usize>(text: &str) -> [u8; N] {
    let mut field = [b' '; N];
    for (byte, character) in field.iter_mut().zip(text.bytes()) {
        *byte = character;
    }
    field
}

/// UTF-8 field, padded with zeroes.
fn name_field(text: &str) -> [u8; 256] {
    let mut field = [0; 256];
    // The last byte stays zero.
    let length = text.len().min(field.len() - 1);
    field[..length].copy_from_slice(&text.as_bytes()[..length]);
    field
}

impl Subsystem {
    pub(super) fn identify(&mut self, id: u16, request: &IdentifyRequest, data: &mut Vec<u8>) -> CommandResult {
        data.clear();
        let mut put = |structure: &[u8]| data.extend_from_slice(structure);
        if self.controller(id).kind == ControllerKind::Discovery {
            match request.cns {
                Cns::Controller => put(self.discovery_controller(id).as_bytes()),
                _ => return Err(unsupported(request.cns.code())),
            }
            return Ok(Execution::DONE);
        }
        if OF_COMMAND_SET.contains(&request.cns) && request.command_set != CommandSet::Nvm.code() {
            let cause = format!("I/O command set {} is not supported", request.command_set);
            return Err(Failure::invalid_field(Parameter::dword(11, 24), cause));
        }
        match request.cns {
            Cns::Namespace if request.nsid == NSID_ALL => put(self.common_namespace_structure(id, None).as_bytes()),
            Cns::Namespace => put(self.namespace_structure(id, request.nsid, Some(id))?.as_bytes()),
            Cns::Controller => put(self.io_controller(id).as_bytes()),
            Cns::ActiveNamespaceList | Cns::IocsActiveNamespaceList => {
                put(namespace_list(request.nsid, self.namespaces_of(id).map(|(nsid, _)| nsid))?.as_bytes());
            }
            Cns::NamespaceIdentificationDescriptors => put(&self.identification_descriptors(id, request.nsid)?),
            Cns::IocsNamespace => put(self.nvm_namespace(request, Some(id))?.as_bytes()),
            Cns::IocsController => put(nvm_controller().as_bytes()),
            Cns::NamespaceIndependent => put(self.independent_namespace(request.nsid, Some(id))?.as_bytes()),
            Cns::AllocatedNamespaceList | Cns::IocsAllocatedNamespaceList => {
                put(namespace_list(request.nsid, self.namespaces().map(|(nsid, _)| nsid))?.as_bytes());
            }
            Cns::AllocatedNamespace => put(self.namespace_structure(id, request.nsid, None)?.as_bytes()),
            Cns::NamespaceAttachedControllerList => put(self.attached_controllers(request)?.as_bytes()),
            Cns::ControllerList => put(self.controller_list(request.controller, |_| true).as_bytes()),
            Cns::UuidList => put(uuids().as_bytes()),
            Cns::EnduranceGroupList => put(endurance_groups(request.specific).as_bytes()),
            Cns::IocsAllocatedNamespace => put(self.nvm_namespace(request, None)?.as_bytes()),
            Cns::IoCommandSets => put(self.io_command_sets(id, request.controller)?.as_bytes()),
            Cns::AllocatedNamespaceIndependent => put(self.independent_namespace(request.nsid, None)?.as_bytes()),
            _ => return Err(unsupported(request.cns.code())),
        }
        assert_eq!(data.len(), IDENTIFY_SIZE, "every structure has one size");
        Ok(Execution::DONE)
    }

    // ----------------------------------------------------------------------- controllers --

    /// Fields that both kinds of controllers share.
    fn any_controller(&self, id: u16) -> IdentifyController {
        let identity = &self.config.identity;
        let mut structure = IdentifyController {
            sn: padded(&identity.serial),
            mn: padded(&identity.model),
            fr: padded(&identity.firmware),
            mdts: MAX_DATA_TRANSFER_SIZE,
            cntlid: id.into(),
            ver: Vs::V2_1.into_bits().into(),
            aerl: (ASYNC_EVENT_REQUESTS_MAX - 1) as u8,
            elpe: (ERROR_LOG_ENTRIES_MAX - 1) as u8,
            subnqn: name_field(&identity.nqn),
            ..IdentifyController::default()
        };
        structure.sqes = EntrySize::new().with_min(6).with_max(6);
        structure.cqes = EntrySize::new().with_min(4).with_max(4);
        // An SGL may describe more data than the command moves.
        structure.sgls = Sgls::new().with_sgls(1).with_sgl_length_larger(true);
        structure.ctratt = Ctratt::new().with_hids(true);
        if self.controller(id).transport == HostTransport::Fabrics {
            structure.kas = ((KEEP_ALIVE_GRANULARITY_MS / 100) as u16).into();
            structure.ctratt = structure.ctratt.with_tbkas(true);
            structure.maxcmd = (QUEUE_ENTRIES_MAX as u16).into();
            structure.sgls = structure.sgls.with_offset(true).with_transport_data_block(true);
            // In units of 16 bytes. Data directly follows the command (ICDOFF 0) in one piece
            // (MSDBD 1).
            structure.ioccsz = ((64 + IN_CAPSULE_DATA_BYTES) / 16).into();
            structure.iorcsz = 1.into();
            structure.msdbd = 1;
        }
        structure
    }

    fn discovery_controller(&self, id: u16) -> IdentifyController {
        let mut structure = self.any_controller(id);
        structure.cntrltype = ControllerType::Discovery.code();
        structure.lpa = Lpa::new().with_lpeds(true);
        structure.subnqn = name_field(nvme_spec::fabrics::DISCOVERY_NQN);
        structure
    }

    fn io_controller(&self, id: u16) -> IdentifyController {
        let mut structure = self.any_controller(id);
        let over_pcie = self.controller(id).transport == HostTransport::Pcie;
        if over_pcie {
            structure.vid = VENDOR_ID.into();
            structure.ssvid = VENDOR_ID.into();
            structure.sgls = structure.sgls.with_sbbds(true).with_mptr_sgl(true);
        }
        structure.cntrltype = ControllerType::Io.code();
        structure.rab = 6;
        structure.cmic =
            Cmic::new().with_mports(self.config.controllers_max > 1).with_mctrs(self.config.controllers_max > 1);
        // Time for a shutdown, in microseconds. A shutdown makes the storage durable.
        structure.rtd3e = 10_000_000.into();
        structure.oaes = Oaes::new().with_nsan(true).with_egealpcn(true);
        // MDTS and the limits of commands exclude metadata.
        structure.ctratt = structure.ctratt.with_egs(true).with_ulist(true).with_fdps(true).with_mem(true);
        structure.fguid = Uuid::new_v5(&Uuid::NAMESPACE_URL, self.config.identity.nqn.as_bytes()).into_bytes();
        // An NVMe storage device.
        structure.nvmsr = 1;
        structure.oacs =
            Oacs::new().with_fnvms(true).with_nms(true).with_dsts(true).with_dirs(true).with_dbcs(over_pcie);
        structure.acl = 3;
        structure.frmw = Frmw::new().with_ffsro(true).with_nofs(1);
        structure.lpa = Lpa::new().with_cses(true).with_lpeds(true).with_mlps(true);
        structure.wctemp = WARNING_TEMPERATURE_K.into();
        structure.cctemp = CRITICAL_TEMPERATURE_K.into();
        structure.tnvmcap = u128::from(self.capacity_bytes()).into();
        structure.unvmcap = u128::from(self.unallocated_bytes()).into();
        structure.megcap = structure.tnvmcap;
        // The subsystem runs one self-test at a time.
        structure.edstt = EXTENDED_MINUTES.into();
        structure.dsto = 1;
        // No-Deallocate is refused. The media does not change after a sanitize operation.
        structure.sanicap = Sanicap::new().with_ces(true).with_bes(true).with_ndi(true).with_nodmmas(1);
        structure.endgidmax = ENDURANCE_GROUP.into();
        structure.nn = NAMESPACES_MAX.into();
        structure.mnan = NAMESPACES_MAX.into();
        structure.oncs = Oncs::new()
            .with_nvmcmps(true)
            .with_nvmwusv(true)
            .with_nvmdsmsv(true)
            .with_nvmwzsv(true)
            .with_ssfs(true)
            .with_tss(true)
            .with_nvmvfys(true)
            .with_nvmcpys(true);
        // A format affects one namespace, or on request all namespaces of the controller.
        structure.fna = Fna::new().with_cryes(true);
        // Flush accepts the broadcast namespace identifier.
        structure.vwc = Vwc::new().with_vwcp(self.media.has_write_cache()).with_fb(3);
        structure.awun = (atomic_blocks() - 1).into();
        // A power failure keeps whole blocks of each format (AWUPF 0).
        structure.nwpc = 1;
        structure.cdfs = 1.into();
        structure.psd[0] = PowerState { mp: POWER_MAX_CW.into(), ..PowerState::default() };
        structure
    }

    /// I/O controllers with an identifier of at least `from` that `fits` accepts.
    fn controller_list(&self, from: u16, fits: impl Fn(u16) -> bool) -> ControllerList {
        let mut list = ControllerList::default();
        let io = self.controllers().filter(|controller| controller.kind == ControllerKind::Io);
        let ids = io.map(|controller| controller.id).filter(|&id| id >= from && fits(id));
        let mut count = 0;
        for (entry, id) in list.cntlid.iter_mut().zip(ids) {
            *entry = id.into();
            count += 1;
        }
        list.numids = count.into();
        list
    }

    fn attached_controllers(&self, request: &IdentifyRequest) -> Result<ControllerList, Failure> {
        if request.nsid == NSID_ALL {
            let cause = "the command needs one namespace, but NSID is the broadcast value";
            return Err(Failure::invalid_field(Parameter::NSID, cause));
        }
        let namespace = self.state.namespaces.allocated(request.nsid)?;
        Ok(self.controller_list(request.controller, |id| namespace.is_attached(id)))
    }

    /// Command set combinations of a controller. The only one is the NVM command set.
    fn io_command_sets(&self, id: u16, requested: u16) -> Result<IoCommandSets, Failure> {
        const THIS_CONTROLLER: u16 = u16::MAX;
        let controller = if requested == THIS_CONTROLLER { id } else { requested };
        if !self.is_connected(controller) {
            let cause = format!("controller {controller} does not exist");
            return Err(Failure::invalid_field(Parameter::dword(10, 16), cause));
        }
        let mut sets = IoCommandSets::default();
        sets.iocsc[0] = IoCommandSetVector::new().with_nvm(true);
        Ok(sets)
    }

    // ------------------------------------------------------------------------ namespaces --

    /// Finds a namespace of a controller (`Some`), or of the drive (`None`). Without one the host
    /// gets zeroes. The broadcast identifier and impossible identifiers are errors.
    fn namespace_if_any(&self, nsid: u32, of: Option<u16>) -> Result<Option<&Namespace>, Failure> {
        if !(1..=NAMESPACES_MAX).contains(&nsid) {
            return self.state.namespaces.allocated(nsid).map(Some);
        }
        let namespace = self.state.namespaces.find(nsid);
        Ok(namespace.filter(|namespace| of.is_none_or(|id| namespace.is_attached(id))))
    }

    fn namespace_structure(&self, id: u16, nsid: u32, of: Option<u16>) -> Result<IdentifyNamespace, Failure> {
        let namespace = self.namespace_if_any(nsid, of)?;
        Ok(namespace.map_or_else(IdentifyNamespace::default, |namespace| self.describe(id, namespace)))
    }

    /// Fields that all namespaces share. With a format, also the fields that depend on the block
    /// size.
    fn common_namespace_structure(&self, id: u16, format: Option<u8>) -> IdentifyNamespace {
        let mut structure = IdentifyNamespace {
            nlbaf: (FORMATS.len() - 1) as u8,
            mc: match self.controller(id).transport {
                HostTransport::Pcie => METADATA_EXTENDED | METADATA_SEPARATE,
                HostTransport::Fabrics => METADATA_EXTENDED,
            },
            // Deallocated blocks read as zeroes, and Write Zeroes can deallocate.
            dlfeat: Dlfeat::new().with_dlrb(1).with_wzds(true),
            nsfeat: Nsfeat::new().with_uidreuse(true),
            // A format completes with its command.
            fpi: Fpi::new().with_fpis(true),
            msrc: (COPY_RANGES_MAX - 1) as u8,
            ..IdentifyNamespace::default()
        };
        for (entry, format) in structure.lbaf.iter_mut().zip(FORMATS) {
            *entry = LbaFormat {
                ms: format.metadata_bytes.into(),
                lbads: format.data_bytes_log2,
                rp: format.relative_performance,
            };
        }
        let Some(format) = format else {
            return structure;
        };
        let block_bytes_log2 = FORMATS[usize::from(format)].data_bytes_log2;
        let zero_based = |bytes: u64| ((bytes >> block_bytes_log2) as u16 - 1).into();
        structure.flbas = Flbas::new().with_fidxl(format & 0xf).with_fidxu(format >> 4);
        // The device maps pages. A partial page is read, modified and written, and cannot be
        // deallocated.
        structure.nsfeat = structure.nsfeat.with_optperf(1).with_nsabp(true);
        structure.npwg = zero_based(self.page_bytes());
        structure.npwa = structure.npwg;
        structure.npdg = structure.npwg;
        structure.npda = structure.npwg;
        structure.nows = structure.npwg;
        structure.nawun = (atomic_blocks() - 1).into();
        // An aligned piece stays whole over a power failure (NAWUPF, NABSPF). With metadata only
        // single blocks do, the smallest possible value.
        if FORMATS[usize::from(format)].metadata_bytes == 0 {
            structure.nawupf = zero_based(POWER_FAIL_ATOMIC_BYTES);
            structure.nabspf = structure.nawupf;
        }
        let copy_blocks = copy_blocks_max(1 << block_bytes_log2);
        structure.mssrl = u16::try_from(copy_blocks).unwrap_or(u16::MAX).into();
        structure.mcl = (copy_blocks as u32).into();
        structure
    }

    fn describe(&self, id: u16, namespace: &Namespace) -> IdentifyNamespace {
        let mut structure = self.common_namespace_structure(id, Some(namespace.format));
        structure.flbas.set_mdtype(namespace.extended_metadata);
        structure.nsze = namespace.blocks.into();
        structure.ncap = namespace.blocks.into();
        // Without thin provisioning every block counts as used.
        structure.nuse = namespace.blocks.into();
        structure.nvmcap = u128::from(namespace.pages() * self.page_bytes()).into();
        structure.nmic = Nmic::new().with_shrns(namespace.shared);
        structure.nsattr = Nsattr::new().with_cwp(namespace.write_protected);
        structure.endgid = ENDURANCE_GROUP.into();
        structure.nguid = namespace.nguid;
        structure
    }

    fn independent_namespace(&self, nsid: u32, of: Option<u16>) -> Result<IdentifyNamespaceIndependent, Failure> {
        let Some(namespace) = self.namespace_if_any(nsid, of)? else {
            return Ok(IdentifyNamespaceIndependent::default());
        };
        Ok(IdentifyNamespaceIndependent {
            nsfeat: IndependentNsfeat::new().with_uidreuse(true).with_vwcnp(!self.media.has_write_cache()),
            nmic: Nmic::new().with_shrns(namespace.shared),
            fpi: Fpi::new().with_fpis(true),
            nsattr: Nsattr::new().with_cwp(namespace.write_protected),
            endgid: ENDURANCE_GROUP.into(),
            nstat: Nstat::new().with_nrdy(true),
            ..IdentifyNamespaceIndependent::default()
        })
    }

    /// Fields of the NVM command set. All are zero, because no format has protection information.
    /// The namespace identifier must be valid.
    fn nvm_namespace(&self, request: &IdentifyRequest, of: Option<u16>) -> Result<NvmIdentifyNamespace, Failure> {
        if request.nsid != NSID_ALL {
            self.namespace_if_any(request.nsid, of)?;
        }
        Ok(NvmIdentifyNamespace::default())
    }

    fn identification_descriptors(&self, id: u16, nsid: u32) -> Result<Vec<u8>, Failure> {
        let namespace = self.state.namespaces.active(id, nsid)?;
        let mut list = Vec::with_capacity(IDENTIFY_SIZE);
        let identifiers: [(NamespaceIdentifierType, &[u8]); 3] = [
            (NamespaceIdentifierType::Nguid, &namespace.nguid),
            (NamespaceIdentifierType::Uuid, &namespace.nguid),
            (NamespaceIdentifierType::Csi, &[CommandSet::Nvm.code()]),
        ];
        for (kind, identifier) in identifiers {
            let header = NamespaceIdentificationDescriptor {
                nidt: kind.code(),
                nidl: kind.length(),
                ..NamespaceIdentificationDescriptor::default()
            };
            list.extend_from_slice(header.as_bytes());
            list.extend_from_slice(identifier);
        }
        list.resize(IDENTIFY_SIZE, 0);
        Ok(list)
    }
}

fn uuids() -> UuidList {
    let mut list = UuidList::default();
    for (entry, uuid) in list.entries.iter_mut().zip(UUIDS) {
        *entry = UuidListEntry { uuid, ..UuidListEntry::default() };
    }
    list
}

/// Most blocks, in any format, that are written atomically with respect to other commands. Commands
/// run one after the other, so the limit is the largest command at the larger block size.
fn atomic_blocks() -> u16 {
    let largest = FORMATS.iter().map(|format| format.data_bytes_log2).max().expect("there are formats");
    (TRANSFER_BYTES_MAX >> largest) as u16
}

/// Limits of commands of the NVM command set beyond MDTS. Only the widths of the command fields
/// limit them.
fn nvm_controller() -> NvmIdentifyController {
    /// Version 1.1 of the NVM command set.
    const VERSION: Vs = Vs::from_bits(0x0001_0100);
    NvmIdentifyController { ver: VERSION.into_bits().into(), ..NvmIdentifyController::default() }
}

fn namespace_list(after: u32, nsids: impl Iterator<Item = u32>) -> Result<NamespaceList, Failure> {
    if after >= NSID_ALL - 1 {
        let cause = format!("no valid namespace identifier is greater than {after:#x}");
        return Err(Failure::new(Status::INVALID_NAMESPACE_OR_FORMAT, cause).at(Parameter::NSID));
    }
    let mut list = NamespaceList::default();
    for (entry, nsid) in list.nsid.iter_mut().zip(nsids.filter(|&nsid| nsid > after)) {
        *entry = nsid.into();
    }
    Ok(list)
}

fn endurance_groups(from: u16) -> EnduranceGroupList {
    let mut list = EnduranceGroupList::default();
    if from <= ENDURANCE_GROUP {
        list.numids = 1.into();
        list.endgid[0] = ENDURANCE_GROUP.into();
    }
    list
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_fill_their_fields() {
        assert_eq!(&padded::<8>("1.0"), b"1.0     ");
        assert_eq!(&padded::<4>("longer"), b"long");
        let field = name_field(&"n".repeat(300));
        assert_eq!((field[254], field[255]), (b'n', 0));
        assert_eq!(name_field("nqn")[..5], [b'n', b'q', b'n', 0, 0]);
    }

    #[test]
    fn namespace_lists_begin_after_an_identifier() {
        let nsids = |after| -> Result<Vec<u32>, Status> {
            let list = namespace_list(after, [1, 5, 9].into_iter()).map_err(|failure| failure.status)?;
            Ok(list.nsid.iter().map(|nsid| nsid.get()).take(4).collect())
        };
        assert_eq!(nsids(0), Ok(vec![1, 5, 9, 0]));
        assert_eq!(nsids(5), Ok(vec![9, 0, 0, 0]));
        assert_eq!(nsids(NSID_ALL - 2), Ok(vec![0; 4]));
        assert_eq!(nsids(NSID_ALL - 1), Err(Status::INVALID_NAMESPACE_OR_FORMAT));
    }

    #[test]
    fn the_endurance_group_is_listed_from_its_number_on() {
        let counts = [0, 1, 2].map(|from| endurance_groups(from).numids.get());
        assert_eq!(counts, [1, 1, 0]);
    }

    /// A command of the largest size is atomic for both block sizes.
    #[test]
    fn no_atomic_unit_is_larger_than_a_command() {
        let largest = u64::from(atomic_blocks()) << FORMATS[0].data_bytes_log2;
        assert_eq!(largest, TRANSFER_BYTES_MAX);
    }
}
