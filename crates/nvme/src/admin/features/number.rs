//! Features whose value is one number (command dword 11), with their bits, checks and defaults.

use nvme_spec::FeatureId;
use nvme_spec::feature::{
    AsyncEventConfiguration, EnduranceGroupEventConfiguration, ErrorRecovery, InterruptVectorConfiguration,
    NumberOfQueues, PowerManagement, TemperatureThreshold, VolatileWriteCache,
};

use super::{GetFeatureRequest, WARNING_TEMPERATURE_K};
use crate::controller::ControllerKind;
use crate::error::{Failure, Parameter};
use crate::setup::{ENDURANCE_GROUP, check_endurance_group};
use crate::subsystem::Subsystem;

/// Instances of values that are not namespaces lie above every namespace identifier, so that they
/// outlive namespaces.
const NOT_A_NAMESPACE: u32 = 1 << 31;
/// Instance of feature 04h for the upper threshold of the composite temperature.
pub(in crate::admin) const OVER_TEMPERATURE: u32 = NOT_A_NAMESPACE;
/// Instance of feature 04h for the lower threshold of the composite temperature.
pub(in crate::admin) const UNDER_TEMPERATURE: u32 = NOT_A_NAMESPACE | 1;
/// Threshold Temperature Select of feature 04h for all temperatures.
const ALL_TEMPERATURES: u8 = 0xf;

/// Bits of command dword 11 that form the value. The other bits are reserved or have only one valid
/// value.
fn bits(feature: FeatureId) -> u32 {
    match feature {
        // All bits except those between burst and weights.
        FeatureId::Arbitration => 0xffff_ff07,
        // Only the workload hint, because the drive has one power state.
        FeatureId::PowerManagement => 0x0000_00e0,
        // The temperature and the threshold type.
        FeatureId::TemperatureThreshold => 0x0010_ffff,
        // Only the time limit, because deallocated blocks cause no error.
        FeatureId::ErrorRecovery => 0x0000_ffff,
        FeatureId::VolatileWriteCache | FeatureId::WriteAtomicityNormal | FeatureId::SanitizeConfig => 1,
        FeatureId::InterruptCoalescing => 0x0000_ffff,
        FeatureId::InterruptVectorConfiguration => 0x0001_ffff,
        FeatureId::EnduranceGroupEventConfiguration => 0x00ff_ffff,
        FeatureId::SoftwareProgressMarker => 0x0000_00ff,
        _ => u32::MAX,
    }
}

/// Selects one of the values of a feature that is not namespace specific, from command dword 11.
pub(super) fn instance(feature: FeatureId, dword: u32) -> u32 {
    match feature {
        FeatureId::TemperatureThreshold => match TemperatureThreshold::from_bits(dword).thsel() {
            0 => OVER_TEMPERATURE,
            _ => UNDER_TEMPERATURE,
        },
        FeatureId::InterruptVectorConfiguration => {
            NOT_A_NAMESPACE | u32::from(InterruptVectorConfiguration::from_bits(dword).iv())
        }
        _ => 0,
    }
}

fn threshold(kind: u8, temperature_k: u16) -> u32 {
    TemperatureThreshold::new().with_thsel(kind).with_tmpth(temperature_k).into_bits()
}

fn refuse(bit: u8, cause: String) -> Result<(), Failure> {
    Err(Failure::invalid_field(Parameter::dword(11, bit), cause))
}

impl Subsystem {
    pub(super) fn value_to_set(&self, id: u16, feature: FeatureId, dword: u32) -> Result<u32, Failure> {
        match feature {
            FeatureId::PowerManagement => check_power_state(PowerManagement::from_bits(dword))?,
            FeatureId::TemperatureThreshold => check_threshold(TemperatureThreshold::from_bits(dword))?,
            FeatureId::InterruptVectorConfiguration => self.check_vector(dword)?,
            FeatureId::ErrorRecovery if ErrorRecovery::from_bits(dword).dulbe() => {
                refuse(16, "the drive cannot report an error for reads of deallocated blocks (DULBE)".to_string())?;
            }
            FeatureId::EnduranceGroupEventConfiguration => check_group(dword)?,
            FeatureId::NumberOfQueues => return self.queues_to_grant(id, NumberOfQueues::from_bits(dword)),
            FeatureId::AsynchronousEventConfiguration => return Ok(dword & self.events_offered(id).into_bits()),
            _ => {}
        }
        Ok(dword & bits(feature))
    }

    fn queues_to_grant(&self, id: u16, requested: NumberOfQueues) -> Result<u32, Failure> {
        if requested.nsq() == u16::MAX || requested.ncq() == u16::MAX {
            refuse(0, "the host requests 65536 queues, but 65535 is the maximum".to_string())?;
        }
        let most = self.config.io_queues_max.min(self.controller(id).io_queues_max);
        assert!(most > 0, "a controller has an I/O queue");
        let most = most - 1;
        let granted = NumberOfQueues::new().with_nsq(requested.nsq().min(most)).with_ncq(requested.ncq().min(most));
        Ok(granted.into_bits())
    }

    /// Refuses unknown vectors. Each I/O queue pair and the admin queue have one vector.
    fn check_vector(&self, dword: u32) -> Result<(), Failure> {
        let vector = InterruptVectorConfiguration::from_bits(dword).iv();
        if vector > self.config.io_queues_max {
            return refuse(0, format!("interrupt vector {vector} does not exist"));
        }
        Ok(())
    }

    /// Configurable asynchronous events, which are those of OAES and critical warnings.
    fn events_offered(&self, id: u16) -> AsyncEventConfiguration {
        match self.controller(id).kind {
            ControllerKind::Io => AsyncEventConfiguration::new().with_shcw(0xff).with_nan(true).with_egealcn(true),
            ControllerKind::Discovery => AsyncEventConfiguration::new().with_dlpcn(true),
        }
    }

    pub(super) fn instance_to_get(&self, question: &GetFeatureRequest) -> Result<u32, Failure> {
        let &GetFeatureRequest { feature, dword11: dword, .. } = question;
        match feature.id {
            FeatureId::TemperatureThreshold => {
                let requested = TemperatureThreshold::from_bits(dword);
                if requested.tmpsel() != 0 || requested.thsel() > 1 {
                    refuse(
                        16,
                        "the composite temperature has only an over and an under temperature threshold".to_string(),
                    )?;
                }
            }
            FeatureId::InterruptVectorConfiguration => self.check_vector(dword)?,
            FeatureId::EnduranceGroupEventConfiguration => check_group(dword)?,
            _ if feature.is_namespace_specific() => return Ok(question.nsid),
            _ => {}
        }
        Ok(instance(feature.id, dword))
    }

    pub(in crate::admin) fn default_value(&self, feature: FeatureId, instance: u32) -> u32 {
        match feature {
            FeatureId::TemperatureThreshold => match instance {
                UNDER_TEMPERATURE => threshold(1, 0),
                _ => threshold(0, WARNING_TEMPERATURE_K),
            },
            FeatureId::VolatileWriteCache => VolatileWriteCache::new().with_wce(true).into_bits(),
            FeatureId::NumberOfQueues => {
                let most = self.config.io_queues_max - 1;
                NumberOfQueues::new().with_nsq(most).with_ncq(most).into_bits()
            }
            FeatureId::InterruptVectorConfiguration => instance & !NOT_A_NAMESPACE,
            FeatureId::EnduranceGroupEventConfiguration => {
                EnduranceGroupEventConfiguration::new().with_endgid(ENDURANCE_GROUP).into_bits()
            }
            _ => 0,
        }
    }
}

fn check_power_state(value: PowerManagement) -> Result<(), Failure> {
    match value.ps() {
        0 => Ok(()),
        state => refuse(0, format!("power state {state} does not exist. The only power state is 0")),
    }
}

fn check_threshold(value: TemperatureThreshold) -> Result<(), Failure> {
    if value.tmpsel() != 0 && value.tmpsel() != ALL_TEMPERATURES {
        return refuse(16, format!("temperature sensor {} does not exist", value.tmpsel()));
    }
    if value.thsel() > 1 {
        return refuse(20, format!("threshold type {} does not exist", value.thsel()));
    }
    if value.tmpthh() > 0 {
        return refuse(22, "temperature hysteresis is not supported".to_string());
    }
    Ok(())
}

fn check_group(dword: u32) -> Result<(), Failure> {
    check_endurance_group(EnduranceGroupEventConfiguration::from_bits(dword).endgid(), Parameter::dword(11, 0))
}
