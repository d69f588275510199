//! Features with more than one number or with a value outside of the common table. These are
//! timestamp, host behavior, host identifier, namespace write protection and latency monitor.

use nvme_spec::feature::{HostBehaviorSupport, HostIdentifier, NamespaceWriteProtection, WriteProtectionState};
use nvme_spec::ocp::LatencyMonitorFeature;
use nvme_spec::{FeatureId, Status};
use ssd::Nanos;
use zerocopy::{FromBytes, IntoBytes};

use crate::controller::HostTransport;
use crate::error::{Failure, Parameter};
use crate::latency_monitor::{LatencyConfiguration, LatencyStamp};
use crate::subsystem::Subsystem;

/// Discard Debug Log of feature C5h. Keeps the debug log.
const KEEP: u8 = 0;
/// Discards the debug log and applies the rest of the configuration.
const DISCARD: u8 = 1;
/// Discards only the debug log.
const DISCARD_ALONE: u8 = 2;

pub(super) fn data_bytes(feature: FeatureId, dword11: u32) -> u64 {
    match feature {
        FeatureId::Timestamp => size_of::<u64>() as u64,
        FeatureId::HostBehaviorSupport => size_of::<HostBehaviorSupport>() as u64,
        FeatureId::HostIdentifier if HostIdentifier::from_bits(dword11).exhid() => 16,
        FeatureId::HostIdentifier => 8,
        _ => 0,
    }
}

impl Subsystem {
    /// Stamp of a time for the latency monitor. It is the timestamp that a host has set, or else
    /// the power-on time (LMLLOG-8).
    pub(crate) fn latency_stamp(&self, at: Nanos) -> LatencyStamp {
        let timestamp_ms = self.clock.set_ms(at);
        LatencyStamp {
            ms: timestamp_ms.unwrap_or_else(|| self.powered_on_ns_at(at) / 1_000_000),
            is_timestamp: timestamp_ms.is_some(),
        }
    }

    /// Feature C5h (Datacenter NVMe SSD Specification 2.0, section 4.12.10). The configuration
    /// persists even without the Save bit (LMLLOG-1).
    pub(super) fn set_latency_monitor(&mut self, data: &[u8]) -> Result<(), Failure> {
        let wanted = LatencyMonitorFeature::read_from_bytes(data).expect("the length was checked");
        let refuse = |cause: &'static str| Err(Failure::invalid_field(Parameter::DATA_POINTER, cause));
        let configuration = LatencyConfiguration {
            timer_threshold: wanted.active_bucket_timer_threshold.get(),
            thresholds: wanted.active_thresholds,
            longest: wanted.active_latency_configuration.get(),
            minimum_window: wanted.active_latency_minimum_window,
            debug_triggers: wanted.debug_log_trigger_enable.get(),
            enabled: wanted.enable == 1,
        };
        let before = self.state.latency_monitor.clone();
        match wanted.discard_debug_log {
            DISCARD_ALONE => self.state.latency_monitor.discard_debug_log(),
            _ if !configuration.is_rising() => {
                return refuse("the thresholds A to D of the latency monitor are not in ascending order");
            }
            _ if wanted.enable > 1 => return refuse("the enable field of the latency monitor must be 0 or 1"),
            KEEP => self.state.latency_monitor.configure(configuration, false, self.clock.now()),
            DISCARD => self.state.latency_monitor.configure(configuration, true, self.clock.now()),
            _ => return refuse("the discard field of the latency monitor's debug log must be 0, 1 or 2"),
        }
        self.store_state_or(|subsystem| subsystem.state.latency_monitor = before)
    }

    pub(super) fn set_timestamp(&mut self, data: &[u8]) {
        let mut ms = [0; 8];
        ms[..6].copy_from_slice(&data[..6]);
        self.clock.set(u64::from_le_bytes(ms));
    }

    pub(super) fn get_host_behavior(&self, id: u16, default: bool, data: &mut Vec<u8>) {
        let value = if default { HostBehaviorSupport::default() } else { self.controller(id).features.host_behavior };
        data.extend_from_slice(value.as_bytes());
    }

    pub(super) fn set_host_behavior(&mut self, id: u16, data: &[u8]) -> Result<(), Failure> {
        let value = HostBehaviorSupport::read_from_bytes(data).expect("the length was checked");
        let switches = [value.acre, value.etdas, value.lbafee, value.hdisns];
        if switches.iter().any(|&switch| switch > 1) {
            let cause = format!("the Host Behavior Support fields are {switches:?}, but must be 0 or 1");
            return Err(Failure::invalid_field(Parameter::DATA_POINTER, cause));
        }
        if value.hdisns != 0 || value.cdfe.get() != 0 {
            let cause = "the controller supports neither dispersed namespaces nor copy descriptor formats 2 to 4";
            return Err(Failure::invalid_field(Parameter::DATA_POINTER, cause));
        }
        self.controllers.get_mut(id).features.host_behavior = value;
        Ok(())
    }

    pub(super) fn get_host_identifier(&self, id: u16, dword11: u32, data: &mut Vec<u8>) -> Result<(), Failure> {
        let controller = self.controller(id);
        let bytes = data_bytes(FeatureId::HostIdentifier, dword11) as usize;
        if controller.transport == HostTransport::Fabrics && bytes < 16 {
            let cause = "a host identifier over fabrics has 16 bytes (EXHID must be 1)";
            return Err(Failure::invalid_field(Parameter::dword(11, 0), cause));
        }
        data.extend_from_slice(&controller.host.id[..bytes]);
        Ok(())
    }

    /// On Fabrics only the Connect command sets the host identifier.
    pub(super) fn set_host_identifier(&mut self, id: u16, data: &[u8]) -> Result<(), Failure> {
        let controller = self.controllers.get_mut(id);
        if controller.transport == HostTransport::Fabrics {
            let cause = "over fabrics only the Connect command sets the host identifier";
            return Err(Failure::new(Status::COMMAND_SEQUENCE_ERROR, cause));
        }
        controller.host.id = [0; 16];
        controller.host.id[..data.len()].copy_from_slice(data);
        Ok(())
    }

    pub(super) fn get_write_protection(&self, nsid: u32, default: bool) -> u32 {
        let state = if self.state.namespaces.get(nsid).write_protected && !default {
            WriteProtectionState::WriteProtect
        } else {
            WriteProtectionState::NoWriteProtect
        };
        NamespaceWriteProtection::new().with_wps(state.code()).into_bits()
    }

    /// Returns true if earlier writes must become durable first. Lost data of a protected namespace
    /// could not be written again.
    pub(super) fn set_write_protection(&mut self, nsids: &[u32], dword11: u32) -> Result<bool, Failure> {
        let wanted = NamespaceWriteProtection::from_bits(dword11).wps();
        let protect = match WriteProtectionState::from_u8(wanted) {
            Some(WriteProtectionState::NoWriteProtect) => false,
            Some(WriteProtectionState::WriteProtect) => true,
            _ => {
                let cause = format!("write protection state {wanted} is not supported");
                return Err(Failure::invalid_field(Parameter::dword(11, 0), cause));
            }
        };
        let mut before = Vec::with_capacity(nsids.len());
        for &nsid in nsids {
            let protected = &mut self.state.namespaces.get_mut(nsid).write_protected;
            before.push((nsid, std::mem::replace(protected, protect)));
        }
        self.store_state_or(|subsystem| {
            for (nsid, protected) in before {
                subsystem.state.namespaces.get_mut(nsid).write_protected = protected;
            }
        })?;
        Ok(protect)
    }
}
