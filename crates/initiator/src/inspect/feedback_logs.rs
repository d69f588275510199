//! Reads the inputs of placement feedback: the properties of a namespace once, and its changing log
//! pages repeatedly.
//!
//! ```text
//! MonitoredNamespace::find -> sample, repeatedly       events, statistics, reclaim unit handles
//!                          -> handles_without_event    handles that report no events
//! ```
//!
//! This module draws no conclusions and never waits.

use nvme_spec::fdp::{FdpEventType, FdpEventsFeatureCdw11, FdpFeature, FdpFeatureCdw11, LSP_CONTROLLER_EVENTS};
use nvme_spec::identify::Cns;
use nvme_spec::{FeatureId, IdentifyController, IdentifyNamespace, LogId, Status};
use zerocopy::FromBytes;

use super::decode::{self, FdpByteCounts, FdpConfiguration, FdpEventRecord, HandleStatus, HandleUse};
use super::{CommandPort, InspectError, get_feature, get_log, handle_status, identify, usage, whole_configurations};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MonitoredNamespace {
    pub nsid: u32,
    pub endurance_group: u16,
    pub block_bytes: u64,
    pub blocks: u64,
    /// NGUID, all zeroes if the namespace has none.
    pub nguid: [u8; 16],
    /// Mask of the placement handle in a placement identifier. The remaining high bits are the
    /// reclaim group.
    pub handle_mask: u16,
    pub placement_handles: u16,
}

/// Logs of a drive at one point in time.
#[derive(Clone, Debug, PartialEq)]
pub struct LogSample {
    /// Controller events of the endurance group, oldest first.
    pub events: Vec<FdpEventRecord>,
    pub statistics: FdpByteCounts,
    /// Placement identifiers of the namespace, with the free space of their reclaim units.
    pub handles: Vec<HandleStatus>,
    pub usage: Vec<HandleUse>,
}

#[derive(Debug, thiserror::Error)]
pub enum WatchError {
    #[error(transparent)]
    Inspect(#[from] InspectError),
    #[error("the controller does not support Flexible Data Placement, so it reports no events")]
    NotSupported,
    #[error(
        "Flexible Data Placement is disabled in endurance group {endurance_group}, so there are no events. Enable it \
         while the drive has no namespace, with `nvme fdp feature DEVICE --endgrp-id={endurance_group} \
         --enable-conf-idx=0`"
    )]
    Disabled { endurance_group: u16 },
    #[error("namespace {nsid} does not exist. {}", attached(.others))]
    NoNamespace { nsid: u32, others: Vec<u32> },
    #[error("the values of namespace {nsid} are impossible, because {problem}")]
    Implausible { nsid: u32, problem: String },
    #[error("namespace {0} was replaced while the connection was lost. Start again")]
    Changed(u32),
}

fn attached(others: &[u32]) -> String {
    match others {
        [] => "No namespace is attached to the controller".to_string(),
        others => {
            let listed: Vec<String> = others.iter().map(u32::to_string).collect();
            format!("The controller has the namespaces {}", listed.join(", "))
        }
    }
}

impl MonitoredNamespace {
    /// Reads the properties of a namespace. The default `endurance_group` is the namespace's own.
    pub fn find(
        port: &mut impl CommandPort,
        nsid: u32,
        endurance_group: Option<u16>,
    ) -> Result<MonitoredNamespace, WatchError> {
        let controller = identify(port, Cns::Controller, 0)?;
        let controller = IdentifyController::read_from_bytes(&controller).expect("the request was for 4096 bytes");
        if !controller.ctratt.fdps() {
            return Err(WatchError::NotSupported);
        }
        let structure = structure(port, nsid)?;
        let endurance_group = endurance_group.unwrap_or_else(|| structure.endgid.get().max(1));
        let handle_mask = handle_mask(port, endurance_group)?;
        let handles = decode::handle_status(&handle_status(port, nsid)?).map_err(InspectError::from)?;
        let mut placement_handles: Vec<u16> =
            handles.iter().map(|handle| handle.placement_identifier & handle_mask).collect();
        placement_handles.sort_unstable();
        placement_handles.dedup();
        Ok(MonitoredNamespace {
            nsid,
            endurance_group,
            block_bytes: block_bytes(nsid, &structure)?,
            blocks: structure.nsze.get(),
            nguid: structure.nguid,
            handle_mask,
            placement_handles: placement_handles.len() as u16,
        })
    }

    /// As [`MonitoredNamespace::find`], for a drive that may lack FDP. The inner error says why.
    pub fn find_if_enabled(
        port: &mut impl CommandPort,
        nsid: u32,
    ) -> Result<Result<MonitoredNamespace, WatchError>, WatchError> {
        match MonitoredNamespace::find(port, nsid, None) {
            found @ (Ok(_) | Err(WatchError::NotSupported | WatchError::Disabled { .. })) => Ok(found),
            Err(error) => Err(error),
        }
    }

    pub fn bytes(&self) -> u64 {
        self.blocks * self.block_bytes
    }

    /// Reads the logs.
    pub fn sample(&self, port: &mut impl CommandPort) -> Result<LogSample, WatchError> {
        self.read(port).map_err(|error| match error {
            InspectError::Refused { status, .. } if status == Status::FDP_DISABLED => {
                WatchError::Disabled { endurance_group: self.endurance_group }
            }
            // Drives answer these commands differently for a deleted namespace. Identify Namespace
            // is consistent.
            InspectError::Refused { .. } => match structure(port, self.nsid) {
                Err(gone @ WatchError::NoNamespace { .. }) => gone,
                _ => error.into(),
            },
            error => error.into(),
        })
    }

    fn read(&self, port: &mut impl CommandPort) -> Result<LogSample, InspectError> {
        let statistics = get_log(port, LogId::FdpStatistics, 0, self.endurance_group, 64)?;
        Ok(LogSample {
            events: super::events(port, self.endurance_group, LSP_CONTROLLER_EVENTS)?,
            statistics: decode::statistics(&statistics)?,
            handles: decode::handle_status(&handle_status(port, self.nsid)?)?,
            usage: decode::usage(&usage(port, self.endurance_group)?)?,
        })
    }

    /// Placement handles for which an event is not enabled (feature 1Eh).
    pub fn handles_without_event(
        &self,
        port: &mut impl CommandPort,
        event: FdpEventType,
    ) -> Result<Vec<u16>, InspectError> {
        /// Size of the data, bytes: the maximum number of event types with two bytes each, rounded
        /// up to dwords.
        const DATA_BYTES: usize = 512;
        let mut without = Vec::new();
        for handle in 0..self.placement_handles {
            let mut data = [0; DATA_BYTES];
            let dword11 = FdpEventsFeatureCdw11::new().with_phndl(handle).with_noet(u8::MAX);
            let feature = FeatureId::FlexibleDataPlacementEvents;
            let listed = get_feature(port, feature, self.nsid, dword11.into_bits(), &mut data)? as usize;
            let enabled =
                data.chunks_exact(2).take(listed).any(|listed| listed[0] == event.code() && listed[1] & 1 == 1);
            if !enabled {
                without.push(handle);
            }
        }
        Ok(without)
    }
}

pub(crate) fn structure(port: &mut impl CommandPort, nsid: u32) -> Result<IdentifyNamespace, WatchError> {
    let structure = match identify(port, Cns::Namespace, nsid) {
        Ok(bytes) => IdentifyNamespace::read_from_bytes(&bytes).expect("the request was for 4096 bytes"),
        // Drives reject an impossible NSID, and return zeroes for one that is unused.
        Err(InspectError::Refused { status, .. }) if status == Status::INVALID_NAMESPACE_OR_FORMAT => {
            IdentifyNamespace::default()
        }
        Err(error) => return Err(error.into()),
    };
    if structure.nsze.get() > 0 {
        return Ok(structure);
    }
    let list = identify(port, Cns::ActiveNamespaceList, 0)?;
    let others = list.chunks_exact(4).map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]]));
    Err(WatchError::NoNamespace { nsid, others: others.take_while(|&other| other != 0).collect() })
}

/// Logical block size (LBADS), bytes. It must be at most 64 KiB, and the capacity must be below
/// 2^64 bytes.
pub(crate) fn block_bytes(nsid: u32, structure: &IdentifyNamespace) -> Result<u64, WatchError> {
    let index = usize::from(structure.flbas.fidxl()) | usize::from(structure.flbas.fidxu()) << 4;
    let bits = structure.lbaf[index].lbads;
    let blocks = structure.nsze.get();
    if !(9..=16).contains(&bits) || blocks.checked_mul(1 << bits).is_none() {
        let problem = format!("the drive reports {blocks} logical blocks of 2^{bits} bytes");
        return Err(WatchError::Implausible { nsid, problem });
    }
    Ok(1 << bits)
}

/// Mask of the placement handle in a placement identifier of the enabled configuration.
fn handle_mask(port: &mut impl CommandPort, endurance_group: u16) -> Result<u16, WatchError> {
    let bits = enabled_configuration(port, endurance_group)?.map_or(0, |enabled| enabled.reclaim_group_bits);
    Ok(u16::MAX >> bits.min(15))
}

/// Reads the enabled FDP configuration. `None` if the drive does not list it.
pub fn enabled_configuration(
    port: &mut impl CommandPort,
    endurance_group: u16,
) -> Result<Option<FdpConfiguration>, WatchError> {
    let dword11 = FdpFeatureCdw11::new().with_endgid(endurance_group).into_bits();
    let feature = get_feature(port, FeatureId::FlexibleDataPlacement, 0, dword11, &mut [])?;
    let feature = FdpFeature::from_bits(feature);
    if !feature.fdpe() {
        return Err(WatchError::Disabled { endurance_group });
    }
    let page = whole_configurations(port, endurance_group)?;
    let mut configurations = decode::configurations(&page).map_err(InspectError::from)?;
    let index = usize::from(feature.fdpci());
    Ok((index < configurations.len()).then(|| configurations.swap_remove(index)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inspect::QueueKind;
    use nvme_spec::SubmissionEntry;

    /// Port that answers each opcode with the same bytes and result.
    struct CannedPort(Vec<(u8, u32, Vec<u8>)>);

    impl CommandPort for CannedPort {
        fn receive(&mut self, _queue: QueueKind, entry: SubmissionEntry, data: &mut [u8]) -> Result<u32, InspectError> {
            let answer = self.0.iter().find(|(opcode, ..)| *opcode == entry.opcode);
            let (_, result, bytes) = answer.expect("an answer");
            let bytes = &bytes[..bytes.len().min(data.len())];
            data[..bytes.len()].copy_from_slice(bytes);
            Ok(*result)
        }
    }

    fn namespace(placement_handles: u16) -> MonitoredNamespace {
        MonitoredNamespace {
            nsid: 1,
            endurance_group: 1,
            block_bytes: 4096,
            blocks: 10,
            nguid: [0; 16],
            handle_mask: u16::MAX,
            placement_handles,
        }
    }

    /// Get Features 1Eh with two valid descriptors. Bytes after them are ignored.
    #[test]
    fn only_descriptors_that_are_counted_say_what_is_enabled() {
        let without = |list: &[u8]| {
            let mut port = CannedPort(vec![(0x0a, 2, list.to_vec())]);
            namespace(2).handles_without_event(&mut port, FdpEventType::MediaReallocated)
        };
        assert_eq!(without(&[0, 1, 0x80, 1]).unwrap(), Vec::<u16>::new());
        assert_eq!(without(&[0, 1, 0x80, 0]).unwrap(), [0, 1]);
        assert_eq!(without(&[0, 1, 1, 1, 0x80, 1]).unwrap(), [0, 1]);
    }

    #[test]
    fn blocks_that_cannot_be_are_refused() {
        let of = |bits: u8, blocks: u64| {
            let mut structure = IdentifyNamespace::default();
            structure.lbaf[0].lbads = bits;
            structure.nsze = blocks.into();
            block_bytes(1, &structure).map_err(|error| error.to_string())
        };
        assert_eq!(of(12, 100), Ok(4096));
        for (bits, blocks) in [(0, 100), (63, 100), (17, 1), (12, u64::MAX)] {
            let error = of(bits, blocks).unwrap_err();
            assert!(error.contains("are impossible"), "{error}");
        }
    }

    #[test]
    fn a_controller_without_placement_is_told_apart_from_a_missing_namespace() {
        let mut controller = vec![0; 4096];
        let found = |controller: &[u8]| {
            MonitoredNamespace::find(&mut CannedPort(vec![(0x06, 0, controller.to_vec())]), 1, None)
                .unwrap_err()
                .to_string()
        };
        assert!(found(&controller).contains("does not support Flexible Data Placement"));
        // CTRATT bit 19. The other bytes are zero and also serve as the namespace data.
        controller[98] = 1 << 3;
        assert!(found(&controller).starts_with("namespace 1 does not exist"));
    }
}
