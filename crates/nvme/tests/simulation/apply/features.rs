//! Effects and values of features.

use super::{Check, Success, equal, same_bytes};
use crate::simulation::model::{EVENT_TYPES, LATENCY_DEFAULTS, Model};
use crate::simulation::operation::{GetFeature, Kind, SetFeature};
use crate::simulation::wire::u64_at;

/// Selects one of the values of a feature.
fn instance(feature: u8, dword11: u32, nsid: u32) -> u32 {
    match feature {
        0x04 => dword11 >> 20 & 3,
        0x05 => nsid,
        0x09 => dword11 & 0xffff,
        _ => 0,
    }
}

impl Model {
    pub(super) fn check_feature(&self, controller: u16, command: &GetFeature, success: &Success) -> Check {
        let known = self.feature(controller, command.feature).expect("checked");
        if command.select == 3 {
            let bits = u64::from(known.saveable) | u64::from(known.namespace) << 1 | u64::from(known.changeable) << 2;
            return equal("capabilities", success.result, bits);
        }
        let its = &self.controllers[&controller];
        let (mut result, mut data) = (0, Vec::new());
        match command.feature {
            0x0e => {
                let timestamp = if command.select == 0 { self.timestamp() } else { 0 };
                data = timestamp.to_le_bytes().to_vec();
            }
            0x0f => result = if command.select == 0 { its.keep_alive_ms } else { 0 },
            0x16 => data = if command.select == 0 { its.host_behavior.clone() } else { vec![0; 512] },
            0x1d => {
                let fdp = if command.select == 1 { self.drive.initial_fdp.then_some(0) } else { self.fdp };
                result = fdp.map_or(0, |index| 1 | u32::from(index) << 8);
            }
            0x1e => {
                let enabled = &self.namespaces[&command.nsid].events[(command.dword11 & 0xffff) as usize];
                let on = |kind: u8| u8::from(command.select != 1 && enabled.contains(&kind));
                data = EVENT_TYPES.into_iter().flat_map(|kind| [kind, on(kind)]).collect();
                data.truncate(success.data.len());
                result = data.len() as u32 / 2;
            }
            0xc5 => {
                let set = if command.select == 0 || command.select == 2 { &self.latency } else { &LATENCY_DEFAULTS };
                result = u32::from(set[12]);
            }
            0x81 => data = its.host[..success.data.len()].to_vec(),
            0x84 => result = u32::from(command.select != 1 && self.namespaces[&command.nsid].protected),
            _ => {
                let instance = instance(command.feature, command.dword11, command.nsid);
                let key = (command.feature, instance);
                let wide = matches!(command.feature, 0x05 | 0x17 | 0x18 | 0x80);
                let default = self.default_value(command.feature, instance);
                result = match command.select {
                    0 if wide => self.shared_value(command.feature, instance),
                    0 => its.features.get(&key).copied().unwrap_or(default),
                    2 => self.saved_features.get(&key).copied().unwrap_or(default),
                    _ => default,
                };
            }
        }
        equal("value", success.result, result.into())?;
        same_bytes("data", &success.data, &data)
    }

    pub(super) fn set_feature(&mut self, controller: u16, command: &SetFeature, success: &Success) -> Check {
        let nsids = self.formatted(controller, command.nsid);
        let now_ms = self.now / 1_000_000;
        let its = self.controllers.get_mut(&controller).expect("connected");
        match command.feature {
            0x0e => {
                let set_ms = u64_at(&command.data, 0) & ((1 << 48) - 1);
                self.clock = (set_ms.wrapping_sub(now_ms), true);
            }
            0x0f => its.keep_alive_ms = command.dword11.checked_next_multiple_of(100).unwrap_or(command.dword11),
            0x16 => its.host_behavior.clone_from(&command.data),
            0x1d => self.configure_placement(command.dword12),
            0x1e => {
                for nsid in nsids {
                    let namespace = self.namespaces.get_mut(&nsid).expect("listed");
                    let events = &mut namespace.events[(command.dword11 & 0xffff) as usize];
                    for kind in command.data.iter().filter(|kind| EVENT_TYPES.contains(kind)) {
                        match command.dword12 & 1 {
                            1 => events.insert(*kind),
                            _ => events.remove(kind),
                        };
                    }
                }
            }
            0xc5 if command.data[11] == 2 => {}
            0xc5 => {
                self.latency.copy_from_slice(&command.data[..13]);
                (self.latency_counted, self.latency_ns) = (self.now, 0);
            }
            0x81 => {
                its.host = [0; 16];
                its.host[..command.data.len()].copy_from_slice(&command.data);
            }
            0x84 => {
                for nsid in nsids {
                    self.namespaces.get_mut(&nsid).expect("listed").protected = command.dword11 & 7 == 1;
                }
            }
            _ => {
                let value = self.kept_value(controller, command.feature, command.dword11);
                let instances =
                    if command.feature == 5 { nsids } else { vec![instance(command.feature, command.dword11, 0)] };
                self.set_number(
                    controller,
                    command.feature,
                    &instances,
                    value,
                    command.save || command.feature == 0x80,
                );
                if command.feature == 7 {
                    equal("queues granted", success.result, value.into())?;
                }
                self.note_health();
            }
        }
        Ok(())
    }

    /// Bits of dword 11 that the feature stores, without the reserved ones.
    fn kept_value(&self, controller: u16, feature: u8, dword: u32) -> u32 {
        match feature {
            0x01 => dword & 0xffff_ff07,
            0x02 => dword & 0xe0,
            0x04 => dword & 0x0030_ffff,
            0x05 | 0x08 => dword & 0xffff,
            0x06 | 0x0a | 0x17 => dword & 1,
            0x07 => {
                let most = u32::from(self.drive.io_queues_max) - 1;
                (dword >> 16).min(most) << 16 | (dword & 0xffff).min(most)
            }
            0x09 => dword & 0x1_ffff,
            // Critical warnings, namespace attributes and endurance group. A discovery controller
            // has only the discovery log.
            0x0b if self.controllers[&controller].kind == Kind::Discovery => dword & 1 << 31,
            0x0b => dword & 0x41ff,
            0x18 => dword & 0x00ff_ffff,
            0x80 => dword & 0xff,
            _ => unreachable!("feature {feature:#x} is not a number"),
        }
    }

    fn set_number(&mut self, controller: u16, feature: u8, instances: &[u32], value: u32, save: bool) {
        let wide = matches!(feature, 0x05 | 0x17 | 0x18 | 0x80);
        let its = self.controllers.get_mut(&controller).expect("connected");
        for &instance in instances {
            let key = (feature, instance);
            if wide {
                self.shared_features.insert(key, value)
            } else {
                its.features.insert(key, value)
            };
            if save {
                self.saved_features.insert(key, value);
            }
        }
    }

    fn configure_placement(&mut self, dword12: u32) {
        let wanted = (dword12 & 1 == 1).then_some((dword12 >> 8) as u8);
        if wanted == self.fdp {
            return;
        }
        self.fdp = wanted;
        self.units.clear();
        self.next_group = 0;
        self.host_events.clear();
        self.host_events_total = 0;
    }
}
