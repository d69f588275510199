//! Expected content of log pages and Identify structures.

use super::apply::{Check, equal, same_bytes};
use super::model::{
    ALL, BLOCK_BYTES, COMPLETED_OR_RESET, Configuration, ERRORS_MAX, EVENT_TYPES, EVENTS_MAX, FIVE_MINUTES_NS,
    METADATA_BYTES, Model, Namespace, RunningTest, Sanitize,
};
use super::operation::{Command, GetLog, Kind};
use super::wire::{u16_at, u32_at, u64_at, u128_at};

impl Model {
    /// Bytes of a log page, or `None` if the controller does not support it.
    pub fn log_bytes(&self, controller: u16, log: u8) -> Option<u64> {
        let its = &self.controllers[&controller];
        if its.kind == Kind::Discovery && !matches!(log, 0x00 | 0x01 | 0x05 | 0x12) {
            return None;
        }
        Some(match log {
            0x00 | 0x12 => 1024,
            0x01 | 0x04 | 0x05 | 0x13 | 0xc4 => 4096,
            0x02 | 0x03 | 0x09 | 0x81 | 0xc0 | 0xc1 | 0xc3 => 512,
            0x06 => 564,
            0x0f => 8 + 2 * u64::from(its.group_event),
            0x20 => 16 + self.drive.configurations.iter().map(descriptor_bytes).sum::<u64>(),
            0x21 => 8 + 8 * u64::from(self.configuration().handles),
            0x22 => 64,
            0x23 => 64 + 64 * EVENTS_MAX as u64,
            _ => return None,
        })
    }

    /// A Get Log Page command that succeeded.
    pub fn read_log(&mut self, controller: u16, command: &GetLog, data: &[u8]) -> Check {
        let bytes = self.log_bytes(controller, command.log).expect("checked");
        let rest = (bytes - command.offset) as usize;
        if let Some(beyond) = data.get(rest..).filter(|beyond| beyond.iter().any(|&byte| byte != 0)) {
            return Err(format!("beyond the end of log page {:#x}: {beyond:02x?}", command.log));
        }
        // Another check compares pieces with the whole page. This one checks the whole page.
        if command.offset == 0 && data.len() >= rest {
            self.check_log(controller, command.log, command.parameter, &data[..rest])?;
        }
        if !command.retain {
            self.controllers.get_mut(&controller).expect("connected").read_log(command.log);
        }
        Ok(())
    }

    fn check_log(&mut self, controller: u16, log: u8, parameter: u8, page: &[u8]) -> Check {
        let its = &self.controllers[&controller];
        match log {
            0x00 => {
                for code in 0..=255u8 {
                    let supported = u32_at(page, usize::from(code) * 4) & 1 == 1;
                    let has =
                        self.log_bytes(controller, code).is_some() || (its.kind == Kind::Discovery && code == 0x70);
                    equal(&format!("log page {code:#x} supported"), supported, has)?;
                }
                Ok(())
            }
            0x01 => self.check_errors(controller, page),
            0x02 => self.check_smart(controller, page),
            0x03 => {
                equal("active firmware", page[0], 1)?;
                equal("firmware revision", &page[8..16], b"sim     ".as_slice())
            }
            0x04 => {
                let expected = list_of(its.changed_namespaces.iter().copied());
                same_bytes("changed namespaces", page, &expected)
            }
            0x05 => self.check_effects(controller, page),
            0x06 => self.check_self_tests(page),
            0x09 => self.check_group(page),
            0x0f => {
                let count = u64::from(its.group_event);
                equal("endurance groups with events", u64_at(page, 0), count)?;
                equal("their identifiers", &page[8..], [1u8, 0].get(..2 * count as usize).expect("one at most"))
            }
            0x12 => {
                for code in 0..=255u8 {
                    let supported = u32_at(page, usize::from(code) * 4) & 1 == 1;
                    equal(
                        &format!("feature {code:#x} supported"),
                        supported,
                        self.feature(controller, code).is_some(),
                    )?;
                }
                Ok(())
            }
            0x13 => same_bytes("NVMe-MI commands", page, &[0; 4096]),
            0x20 => self.check_configurations(page),
            0x21 => self.check_usage(page),
            0x22 => self.check_placement_statistics(page),
            0x23 if parameter & 1 == 1 => self.check_host_events(page),
            0x23 => self.check_controller_events(page),
            0x81 => self.check_sanitize(page),
            0xc0 => self.check_smart_extended(page),
            0xc1 => check_error_recovery(page),
            0xc3 => self.check_latencies(page),
            0xc4 => check_capabilities(page, its.kind),
            _ => unreachable!("log_bytes knows no other"),
        }
    }

    fn check_errors(&self, controller: u16, page: &[u8]) -> Check {
        let errors = &self.controllers[&controller].errors;
        for (index, entry) in page.chunks_exact(64).enumerate() {
            let Some(error) = errors.get(index) else {
                equal("unused error log entry", entry, [0; 64].as_slice())?;
                continue;
            };
            let what = |field: &str| format!("error log entry {index} ({error:?}): {field}");
            equal(&what("count"), u64_at(entry, 0), error.count)?;
            equal(&what("queue"), u16_at(entry, 8), error.queue)?;
            equal(&what("command identifier"), u16_at(entry, 10), error.cid)?;
            // Phase in bit 0, status code and type in 11:1, more in 14, do not retry in 15.
            let field = u16_at(entry, 12);
            equal(&what("status"), field >> 1 & 0x7ff, error.status)?;
            equal(&what("do not retry"), field >> 15 == 1, error.do_not_retry)?;
            equal(&what("namespace"), u32_at(entry, 24), error.nsid)?;
            equal(&what("opcode"), entry[31], error.opcode)?;
            let place = u16_at(entry, 14);
            if place != 0xffff && (place & 0xff > 63 || place >> 8 > 7) {
                return Err(what(&format!("place {place:#x}")));
            }
        }
        equal("error log entries", page.len(), ERRORS_MAX * 64)
    }

    fn check_smart(&self, controller: u16, page: &[u8]) -> Check {
        let counters = &self.counters;
        equal("critical warning", page[0], self.warnings(controller))?;
        equal("temperature", u16_at(page, 1), self.drive.temperature_k)?;
        let units = |bytes: u64| u128::from(bytes.div_ceil(512_000));
        equal("data units read", u128_at(page, 32), units(counters.bytes_read))?;
        equal("data units written", u128_at(page, 48), units(counters.bytes_written))?;
        equal("host read commands", u128_at(page, 64), counters.read_commands.into())?;
        equal("host write commands", u128_at(page, 80), counters.write_commands.into())?;
        equal("power cycles", u128_at(page, 112), 1)?;
        equal("power on hours", u128_at(page, 128), (self.now / 3_600_000_000_000).into())?;
        equal("unexpected power losses", u128_at(page, 144), 0)?;
        equal("media errors", u128_at(page, 160), counters.media_errors.into())?;
        equal("error log entries", u128_at(page, 176), counters.errors.into())
    }

    /// Checks the fields that follow from host actions. The media's counters are those of the FDP
    /// statistics.
    fn check_smart_extended(&self, page: &[u8]) -> Check {
        let counters = &self.counters;
        equal("media errors", u64_at(page, 56), counters.media_errors)?;
        equal("unaligned writes", u64_at(page, 136), counters.unaligned_writes)?;
        if u128_at(page, 16) < counters.bytes_read.into() {
            return Err("less was read from the media than by hosts".to_string());
        }
        let blocks = self.namespaces.values().map(|namespace| namespace.blocks.len() as u64);
        equal("use of all namespaces", u64_at(page, 152), blocks.sum::<u64>())?;
        equal("version of the page", u16_at(page, 494), 3)
    }

    /// The drive has no timing, and the storage responds immediately. No command is slow.
    fn check_latencies(&self, page: &[u8]) -> Check {
        let set = &self.latency;
        equal("latency monitor status", page[0], 6 | set[12])?;
        let minutes = (self.latency_ns / FIVE_MINUTES_NS).min(0xffff);
        equal("latency timer", u64::from(u16_at(page, 2)), minutes)?;
        same_bytes("latency thresholds", &page[4..10], &set[..6])?;
        let masked = |at| u16_at(set, at) & 0xfff;
        equal("latency modes", u16_at(page, 10), masked(6))?;
        equal("latency window", page[12], set[8])?;
        for (what, buckets) in [("active", &page[32..218]), ("static", &page[240..426])] {
            let counters = [[0; 64].as_slice(), &[0xff; 96], &[0; 26]].concat();
            same_bytes(&format!("{what} latency buckets"), buckets, &counters)?;
        }
        equal("debug log triggers", u16_at(page, 448), masked(9))?;
        equal("debug log", (u16_at(page, 450), u64_at(page, 452), u64_at(page, 460)), (0, u64::MAX, 0))?;
        equal("version of the page", u16_at(page, 494), 1)?;
        equal("identity of the page", page[496], 0x92)
    }

    fn check_group(&self, page: &[u8]) -> Check {
        let counters = &self.counters;
        let warning = if counters.media_errors > 0 { 4 } else { 0 };
        equal("critical warning", page[0], warning)?;
        let billions = |bytes: u64| u128::from(bytes.div_ceil(1_000_000_000));
        equal("data units read", u128_at(page, 48), billions(counters.bytes_read))?;
        equal("data units written", u128_at(page, 64), billions(counters.bytes_written))?;
        equal("host read commands", u128_at(page, 96), counters.read_commands.into())?;
        equal("host write commands", u128_at(page, 112), counters.write_commands.into())?;
        equal("media errors", u128_at(page, 128), counters.media_errors.into())?;
        equal("error log entries", u128_at(page, 144), counters.errors.into())?;
        equal("capacity", u128_at(page, 160), (self.drive.pages * self.drive.page_bytes).into())?;
        equal("unallocated capacity", u128_at(page, 176), (self.pages_free() * self.drive.page_bytes).into())
    }

    fn check_effects(&self, controller: u16, page: &[u8]) -> Check {
        const ANY: [u8; 6] = [0x02, 0x06, 0x08, 0x09, 0x0a, 0x0c];
        const DRIVE: [u8; 7] = [0x0d, 0x14, 0x15, 0x19, 0x1a, 0x80, 0x84];
        const PCIE: [u8; 5] = [0x00, 0x01, 0x04, 0x05, 0x7c];
        const IO: [u8; 11] = [0x00, 0x01, 0x02, 0x04, 0x05, 0x08, 0x09, 0x0c, 0x12, 0x19, 0x1d];
        let its = &self.controllers[&controller];
        for opcode in 0..=255u8 {
            let admin = ANY.contains(&opcode)
                || its.is_io() && DRIVE.contains(&opcode)
                || its.kind == Kind::Pcie && PCIE.contains(&opcode)
                || its.kind != Kind::Pcie && opcode == 0x18;
            let supported = |at: usize| u32_at(page, at + usize::from(opcode) * 4) & 1 == 1;
            equal(&format!("admin opcode {opcode:#x} supported"), supported(0), admin)?;
            equal(&format!("I/O opcode {opcode:#x} supported"), supported(1024), its.is_io() && IO.contains(&opcode))?;
        }
        Ok(())
    }

    fn check_self_tests(&mut self, page: &[u8]) -> Check {
        self.end_test(0, |_| false);
        let progress = |test: RunningTest| (test.code, ((self.now - test.since) * 100 / test.duration()) as u8);
        let expected = self.running_test.map_or((0, 0), progress);
        equal("self-test under way", (page[0], page[1]), expected)?;
        for (index, entry) in page[4..].chunks_exact(28).enumerate() {
            match self.self_tests.get(index) {
                None => equal("unused self-test result", entry[0], 0xf)?,
                Some(&(code, result, nsid)) => {
                    let result = match result {
                        COMPLETED_OR_RESET => entry[0] & 2,
                        result => result,
                    };
                    equal("self-test result", entry[0], code << 4 | result)?;
                    equal("self-test namespace", u32_at(entry, 12), nsid)?;
                }
            }
        }
        Ok(())
    }

    fn check_sanitize(&self, page: &[u8]) -> Check {
        let (outcome, dword10) = match self.sanitize {
            Sanitize::Never => (0, 0),
            // 4 means deallocated against the host's request.
            Sanitize::Succeeded { dword10 } => (if dword10 >> 9 & 1 == 1 { 4 } else { 1 }, dword10),
            Sanitize::Running { dword10 } => (2, dword10),
            Sanitize::Failed { dword10, .. } => (3, dword10),
        };
        let running = outcome == 2;
        equal("sanitize under way", u16_at(page, 0) != 0xffff, running)?;
        equal("sanitize status", u16_at(page, 2) & 7, outcome)?;
        equal("sanitize dword 10", u32_at(page, 4), dword10)?;
        let erased = u16_at(page, 2) >> 8 & 1 == 1;
        let may_be_erased = matches!(outcome, 0 | 1 | 4) && !self.written_since;
        if erased && !may_be_erased || !erased && may_be_erased && !self.perhaps_written_since {
            return Err(format!("global data erased is {erased}; written since: {}", self.written_since));
        }
        Ok(())
    }

    // ---------------------------------------------------------------------------- placement --

    fn check_configurations(&self, page: &[u8]) -> Check {
        equal("configurations", parse_configurations(page)?, self.drive.configurations.clone())
    }

    fn check_usage(&self, page: &[u8]) -> Check {
        let handles = self.configuration().handles;
        equal("reclaim unit handles", u16_at(page, 0), handles)?;
        for handle in 0..handles {
            let users = || self.namespaces.values().filter(|namespace| namespace.handles.contains(&handle));
            let expected = match () {
                () if users().any(|namespace| namespace.host_specified) => 1,
                () if users().next().is_some() => 2,
                () => 0,
            };
            equal(&format!("usage of handle {handle}"), page[8 + 8 * usize::from(handle)], expected)?;
        }
        Ok(())
    }

    fn check_placement_statistics(&mut self, page: &[u8]) -> Check {
        let (host, written, erased) = (u128_at(page, 0), u128_at(page, 16), u128_at(page, 32));
        equal("HBMW", host, self.counters.host_bytes_with_metadata.into())?;
        let (written_before, erased_before) = self.media_bytes;
        if written < host || written < written_before || erased < erased_before {
            return Err(format!("MBMW {written}, MBE {erased} after {:?} with HBMW {host}", self.media_bytes));
        }
        self.media_bytes = (written, erased);
        Ok(())
    }

    fn check_host_events(&self, page: &[u8]) -> Check {
        let found: Vec<&[u8]> = page[64..].chunks_exact(64).take(u32_at(page, 0) as usize).collect();
        if !self.drive.exact_units {
            return self.check_some_host_events(&found);
        }
        equal("host events", found.len(), self.host_events.len())?;
        for (index, (entry, event)) in found.iter().zip(&self.host_events).enumerate() {
            let what = |field: &str| format!("host event {index} ({event:?}): {field}");
            equal(&what("type"), entry[0], event.kind)?;
            let location = u8::from(event.location.is_some()) << 2;
            equal(&what("flags"), entry[1], 0b011 | location)?;
            equal(&what("identifier"), u16_at(entry, 2), event.pid)?;
            equal(&what("timestamp"), u64_at(entry, 4), event.timestamp)?;
            equal(&what("namespace"), u32_at(entry, 12), event.nsid)?;
            if let Some((group, handle)) = event.location {
                equal(&what("group"), u16_at(entry, 32), group)?;
                equal(&what("handle"), u16_at(entry, 34), handle)?;
            }
        }
        Ok(())
    }

    /// Checks the invalid identifiers when reclaim units are not predicted, as long as neither log
    /// is full.
    fn check_some_host_events(&self, found: &[&[u8]]) -> Check {
        if found.len() == EVENTS_MAX || self.host_events.len() == EVENTS_MAX {
            return Ok(());
        }
        let found = found.iter().filter(|entry| entry[0] == 3).map(|entry| (u16_at(entry, 2), u32_at(entry, 12)));
        let expected = self.host_events.iter().filter(|event| event.kind == 3).map(|event| (event.pid, event.nsid));
        equal("invalid identifiers", found.collect::<Vec<_>>(), expected.collect())
    }

    /// The drive's own actions are not predicted, but must be possible.
    fn check_controller_events(&self, page: &[u8]) -> Check {
        for entry in page[64..].chunks_exact(64).take(u32_at(page, 0) as usize) {
            let wrong = |what: &str| Err(format!("controller event {what}: {entry:02x?}"));
            let kind = entry[0];
            if !EVENT_TYPES.contains(&kind) || kind < 0x80 || entry[1] & 2 == 0 {
                return wrong("of no such type");
            }
            let configuration = self.configuration();
            if entry[1] & 4 != 0
                && (u16_at(entry, 32) >= configuration.groups || u16_at(entry, 34) >= configuration.handles)
            {
                return wrong("at no such place");
            }
            // The namespace may have been deleted or replaced since.
            let nsid = u32_at(entry, 12);
            if kind == 0x80
                && (u16_at(entry, 18) == 0 || entry[16] & 1 == 0 || u64_at(entry, 20) >= self.drive.pages * 8 * 16)
            {
                return wrong("of no blocks");
            }
            if nsid == 0 || nsid > super::model::NN {
                return wrong("of no such namespace");
            }
        }
        Ok(())
    }

    // ----------------------------------------------------------------------------- identify --

    /// An Identify command that succeeded.
    pub fn check_identify(&mut self, controller: u16, command: &Command, page: &[u8]) -> Check {
        let &Command::Identify { cns, nsid, controller: asked, specific, .. } = command else {
            unreachable!("an Identify command");
        };
        let active = self.namespaces.iter().filter(|(_, namespace)| namespace.is_attached(controller));
        let active: Vec<u32> = active.map(|(&nsid, _)| nsid).filter(|&its| its > nsid).collect();
        let allocated: Vec<u32> = self.namespaces.keys().copied().filter(|&its| its > nsid).collect();
        let io = self.controllers.iter().filter(|(id, its)| its.is_io() && **id >= asked).map(|(&id, _)| id);
        match cns {
            0x00 if nsid == ALL => equal("formats", page[25], 3),
            0x00 => self.check_namespace(self.active(controller, nsid), nsid, page),
            0x11 => self.check_namespace(self.namespaces.get(&nsid), nsid, page),
            0x01 => self.check_controller(controller, page),
            0x02 | 0x07 => same_bytes("active namespaces", page, &list_of(active.into_iter())),
            0x10 | 0x1a => same_bytes("allocated namespaces", page, &list_of(allocated.into_iter())),
            0x03 => self.check_descriptors(nsid, page),
            0x08 => self.check_independent(self.active(controller, nsid), page),
            0x1f => self.check_independent(self.namespaces.get(&nsid), page),
            0x12 => {
                let attached = io.filter(|&id| self.namespaces[&nsid].is_attached(id)).collect();
                same_bytes("attached controllers", page, &controllers_of(attached))
            }
            0x13 => same_bytes("controllers", page, &controllers_of(io.collect())),
            0x19 => {
                let expected = if specific <= 1 { vec![1] } else { Vec::new() };
                same_bytes("endurance groups", page, &controllers_of(expected))
            }
            0x1c => equal("command sets", u64_at(page, 0), 1),
            _ => Ok(()),
        }
    }

    fn check_namespace(&self, namespace: Option<&Namespace>, nsid: u32, page: &[u8]) -> Check {
        let Some(namespace) = namespace else {
            return same_bytes("inactive namespace", page, &[0; 4096]);
        };
        let what = |field: &str| format!("namespace {nsid}: {field}");
        let blocks = namespace.blocks.len() as u64;
        for (name, at) in [("size", 0), ("capacity", 8), ("use", 16)] {
            equal(&what(name), u64_at(page, at), blocks)?;
        }
        equal(&what("formats"), page[25], 3)?;
        equal(&what("format"), page[26], namespace.format | u8::from(namespace.extended) << 4)?;
        equal(&what("sharing"), page[30], u8::from(namespace.shared))?;
        let per_page = (self.drive.page_bytes / namespace.block_bytes()) as u16;
        for at in [64, 66, 68, 70, 72] {
            equal(&what(&format!("granularity at {at}")), u16_at(page, at) + 1, per_page)?;
        }
        equal(&what("NVM capacity"), u128_at(page, 48), u128::from(namespace.pages * self.drive.page_bytes))?;
        equal(&what("write protection"), page[99] & 1, u8::from(namespace.protected))?;
        equal(&what("endurance group"), u16_at(page, 102), 1)?;
        for (index, metadata) in METADATA_BYTES.into_iter().enumerate() {
            let log2 = BLOCK_BYTES[index].trailing_zeros() as u8;
            equal(&what("format"), &page[128 + 4 * index..][..3], [metadata as u8, 0, log2].as_slice())?;
        }
        match namespace.identifier {
            Some(identifier) => equal(&what("NGUID"), &page[104..120], identifier.as_slice()),
            None => Ok(()),
        }
    }

    fn check_independent(&self, namespace: Option<&Namespace>, page: &[u8]) -> Check {
        let Some(namespace) = namespace else {
            return same_bytes("inactive namespace", page, &[0; 4096]);
        };
        equal("sharing", page[1], u8::from(namespace.shared))?;
        equal("write protection", page[8] & 1, u8::from(namespace.protected))?;
        equal("endurance group", u16_at(page, 12), 1)?;
        equal("ready", page[14] & 1, 1)
    }

    fn check_descriptors(&mut self, nsid: u32, page: &[u8]) -> Check {
        equal("first identifier's type and length", &page[..2], [2, 16].as_slice())?;
        let identifier: [u8; 16] = page[4..20].try_into().expect("16 bytes");
        let namespace = self.namespaces.get_mut(&nsid).expect("active");
        match namespace.identifier.replace(identifier) {
            Some(before) => equal("NGUID", identifier, before),
            None if self.identifiers.insert(identifier) => Ok(()),
            None => Err(format!("namespace {nsid} has the NGUID of another one: {identifier:02x?}")),
        }
    }

    fn check_controller(&self, controller: u16, page: &[u8]) -> Check {
        let its = &self.controllers[&controller];
        equal("controller identifier", u16_at(page, 78), controller)?;
        equal("MDTS", page[77], 8)?;
        equal("version", u32_at(page, 80), 0x0002_0100)?;
        equal("AERL", page[259], 3)?;
        equal("ELPE", page[262], (ERRORS_MAX - 1) as u8)?;
        if !its.is_io() {
            return equal("controller type", page[111], 2);
        }
        equal("controller type", page[111], 1)?;
        equal("flexible data placement and endurance groups", u32_at(page, 96) & (1 << 19 | 1 << 4), 1 << 19 | 1 << 4)?;
        equal("total capacity", u128_at(page, 280), (self.drive.pages * self.drive.page_bytes).into())?;
        equal("unallocated capacity", u128_at(page, 296), (self.pages_free() * self.drive.page_bytes).into())?;
        equal("endurance groups", u16_at(page, 340), 1)?;
        equal("NN", u32_at(page, 516), super::model::NN)?;
        equal("volatile write cache", page[525] & 1, u8::from(self.drive.cached))
    }
}

/// Descriptor size of a configuration, 64 bytes and 4 for each handle, padded to 8.
fn descriptor_bytes(configuration: &Configuration) -> u64 {
    (64 + 4 * u64::from(configuration.handles)).next_multiple_of(8)
}

/// Reads log page 20h.
pub fn parse_configurations(page: &[u8]) -> Result<Vec<Configuration>, String> {
    let count = usize::from(u16_at(page, 0)) + 1;
    equal("size of log page 20h", u32_at(page, 4) as usize, page.len())?;
    let mut at = 16;
    let mut all = Vec::new();
    for _ in 0..count {
        let descriptor = &page[at..at + usize::from(u16_at(page, at))];
        equal("valid", descriptor[2] >> 7, 1)?;
        let (groups, handles) = (u32_at(descriptor, 4) as u16, u16_at(descriptor, 8));
        equal("MAXPIDS", u32::from(u16_at(descriptor, 10)) + 1, u32::from(groups) * u32::from(handles))?;
        let configuration = Configuration {
            groups,
            handles,
            unit_bytes: u64_at(descriptor, 16),
            group_bits: u32::from(descriptor[2] & 0xf),
            types: (0..usize::from(handles)).map(|handle| descriptor[64 + 4 * handle]).collect(),
        };
        equal("size of the descriptor", descriptor.len() as u64, descriptor_bytes(&configuration))?;
        // The fewest bits that can number the groups.
        equal("RGIF", 1u32 << configuration.group_bits, u32::from(groups).next_power_of_two())?;
        at += descriptor.len();
        all.push(configuration);
    }
    equal("bytes in log page 20h", at, page.len())?;
    Ok(all)
}

/// A namespace list.
fn list_of(nsids: impl Iterator<Item = u32>) -> Vec<u8> {
    let mut list: Vec<u8> = nsids.flat_map(u32::to_le_bytes).collect();
    list.resize(4096, 0);
    list
}

/// A list of 16-bit identifiers behind their number.
fn controllers_of(ids: Vec<u16>) -> Vec<u8> {
    let mut list = (ids.len() as u16).to_le_bytes().to_vec();
    list.extend(ids.into_iter().flat_map(u16::to_le_bytes));
    list.resize(4096, 0);
    list
}

/// Expects a page without a panic and without a recovery action.
fn check_error_recovery(page: &[u8]) -> Check {
    let mut expected = vec![0; 512];
    expected[3] = 1;
    expected[12] = 2;
    expected[494] = 2;
    let guid = "44d93121fe3034aeab4dfd3dba83195a";
    for (place, digits) in expected[496..].iter_mut().zip(guid.as_bytes().chunks(2)) {
        let digits = std::str::from_utf8(digits).expect("digits");
        *place = u8::from_str_radix(digits, 16).expect("digits");
    }
    same_bytes("error recovery", page, &expected)
}

fn check_capabilities(page: &[u8], kind: Kind) -> Check {
    let words: Vec<u16> = (0..8).map(|word| u16_at(page, word * 2)).collect();
    let ports = u16::from(kind == Kind::Pcie);
    equal("capabilities", words, vec![ports, 0, 0x17, 0x17, 3, 0xf, 0, 25])?;
    same_bytes("power states that are too small", &page[16..41], &[0; 25])?;
    same_bytes("power states", &page[41..144], &[0x80; 103])?;
    equal("version of the page", u16_at(page, 4078), 1)?;
    equal("identity of the page", page[4080], 0x97)
}
