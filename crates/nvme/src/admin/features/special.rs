//! Features that are more than a number, or whose value lives elsewhere: timestamp, keep alive timer, host behavior, host
//! identifier, namespace write protection.

use nvme_spec::command::SubmissionEntry;
use nvme_spec::feature::{
    HostBehaviorSupport, HostIdentifier, NamespaceWriteProtection, TimestampAttributes, WriteProtectionState,
};
use nvme_spec::{FeatureId, Status};
use ssd::Nanos;
use zerocopy::{FromBytes, IntoBytes};

use crate::controller::Transport;
use crate::error::{Failure, Parameter};
use crate::subsystem::Subsystem;

/// Keep alive timeouts are rounded up to a multiple of this (KAS, which counts it in units of 100 ms).
pub const KEEP_ALIVE_GRANULARITY_MS: u32 = 100;

/// Nanoseconds of a millisecond.
const MS_NS: u64 = 1_000_000;
/// The milliseconds of a timestamp are a number of 48 bits.
const TIMESTAMP_BITS: u32 = 48;
/// Timestamp Origin: it counts from the drive's start.
const ORIGIN_RESET: u8 = 0b000;
/// Timestamp Origin: it counts from what a host set.
const ORIGIN_HOST: u8 = 0b001;

/// The drive's clock: the Timestamp feature, and how much of the time that passes has been counted as powered on.
#[derive(Clone, Debug, Default)]
pub struct Clock {
    /// Until when the time since the start is in the counter of powered on time.
    pub counted_ns: Nanos,
    /// What the timestamp was when `now` was 0, in milliseconds, modulo 2^64.
    start_ms: u64,
    /// Whether a host has set it.
    set_by_host: bool,
}

impl Clock {
    fn set(&mut self, now: Nanos, timestamp_ms: u64) {
        self.start_ms = timestamp_ms.wrapping_sub(now / MS_NS);
        self.set_by_host = true;
    }

    /// The 8 bytes of the Timestamp data structure as a little-endian number.
    fn timestamp(&self, now: Nanos) -> u64 {
        let ms = self.start_ms.wrapping_add(now / MS_NS) & ((1 << TIMESTAMP_BITS) - 1);
        let origin = if self.set_by_host { ORIGIN_HOST } else { ORIGIN_RESET };
        let attributes = TimestampAttributes::new().with_timestamp_origin(origin);
        u64::from(attributes.into_bits()) << TIMESTAMP_BITS | ms
    }
}

/// Data that goes with a feature's value, either way.
pub(super) fn data_bytes(feature: FeatureId, entry: &SubmissionEntry) -> u64 {
    match feature {
        FeatureId::Timestamp => size_of::<u64>() as u64,
        FeatureId::HostBehaviorSupport => size_of::<HostBehaviorSupport>() as u64,
        FeatureId::HostIdentifier => match HostIdentifier::from_bits(entry.cdw11.get()).exhid() {
            true => 16,
            false => 8,
        },
        _ => 0,
    }
}

impl Subsystem {
    /// The 8 bytes of the Timestamp data structure, now, as a little-endian number.
    pub(crate) fn timestamp(&self) -> u64 {
        self.clock.timestamp(self.now)
    }

    pub(super) fn set_timestamp(&mut self, data: &[u8]) {
        let mut ms = [0; 8];
        ms[..6].copy_from_slice(&data[..6]);
        self.clock.set(self.now, u64::from_le_bytes(ms));
    }

    pub(super) fn get_host_behavior(&self, id: u16, default: bool, data: &mut Vec<u8>) {
        let value = match default {
            true => HostBehaviorSupport::default(),
            false => self.controller(id).features.host_behavior,
        };
        data.extend_from_slice(value.as_bytes());
    }

    pub(super) fn set_host_behavior(&mut self, id: u16, data: &[u8]) -> Result<(), Failure> {
        let value = HostBehaviorSupport::read_from_bytes(data).expect("the length was checked");
        let switches = [value.acre, value.etdas, value.lbafee, value.hdisns];
        if switches.iter().any(|&switch| switch > 1) {
            let cause = format!("{switches:?} are not switches, which are 0 or 1");
            return Err(Failure::invalid_field(Parameter::DATA_POINTER, cause));
        }
        if value.hdisns != 0 || value.cdfe.get() != 0 {
            let cause = "neither dispersed namespaces nor copy descriptor formats 2 to 4 are supported";
            return Err(Failure::invalid_field(Parameter::DATA_POINTER, cause));
        }
        self.controller_mut(id).features.host_behavior = value;
        Ok(())
    }

    pub(super) fn get_host_identifier(
        &self,
        id: u16,
        entry: &SubmissionEntry,
        data: &mut Vec<u8>,
    ) -> Result<(), Failure> {
        let controller = self.controller(id);
        let bytes = data_bytes(FeatureId::HostIdentifier, entry) as usize;
        if controller.transport == Transport::Fabrics && bytes < 16 {
            let cause = "on Fabrics a host identifier has 16 bytes (EXHID)";
            return Err(Failure::invalid_field(Parameter::dword(11, 0), cause));
        }
        data.extend_from_slice(&controller.host.id[..bytes]);
        Ok(())
    }

    /// On Fabrics the Connect command has set it, for good.
    pub(super) fn set_host_identifier(&mut self, id: u16, data: &[u8]) -> Result<(), Failure> {
        let controller = self.controller_mut(id);
        if controller.transport == Transport::Fabrics {
            let cause = "on Fabrics the host identifier is set by the Connect command alone";
            return Err(Failure::new(Status::COMMAND_SEQUENCE_ERROR, cause));
        }
        controller.host.id = [0; 16];
        controller.host.id[..data.len()].copy_from_slice(data);
        Ok(())
    }

    pub(super) fn get_write_protection(&self, nsid: u32, default: bool) -> u32 {
        let state = match self.namespace(nsid).write_protected && !default {
            true => WriteProtectionState::WriteProtect,
            false => WriteProtectionState::NoWriteProtect,
        };
        NamespaceWriteProtection::new().with_wps(state.code()).into_bits()
    }

    /// Returns whether what was written before must be made durable first: protected data that is lost could not be
    /// written again.
    pub(super) fn set_write_protection(&mut self, nsids: &[u32], entry: &SubmissionEntry) -> Result<bool, Failure> {
        let wanted = NamespaceWriteProtection::from_bits(entry.cdw11.get()).wps();
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
            let protected = &mut self.namespace_mut(nsid).write_protected;
            before.push((nsid, std::mem::replace(protected, protect)));
        }
        self.store_state_or(|subsystem| {
            for (nsid, protected) in before {
                subsystem.namespace_mut(nsid).write_protected = protected;
            }
        })?;
        Ok(protect)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_timestamp_goes_on_from_what_was_set() {
        let mut clock = Clock::default();
        assert_eq!(clock.timestamp(5 * MS_NS), 5);
        clock.set(5 * MS_NS, 0x0190_0000_0000);
        assert_eq!(clock.timestamp(7 * MS_NS), 0x0002_0190_0000_0002);
        // Earlier than the time since the start, and over the end of 48 bits.
        clock.set(100 * MS_NS, 3);
        assert_eq!(clock.timestamp(101 * MS_NS), 0x0002_0000_0000_0004);
        clock.set(0, (1 << 48) - 1);
        assert_eq!(clock.timestamp(MS_NS), 0x0002_0000_0000_0000);
    }
}
