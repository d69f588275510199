//! Effects of a command on the drive, and its expected completion (result, data, durability).

use super::judge::{Objection, Submission, blocks_of};
use super::model::{
    ALL, AsyncEvent, BLOCK_BYTES, Completion, EVENT_TYPES, LATENCY_DEFAULTS, Model, NN, Namespace, RunningTest,
    Sanitize,
};
use super::model::{METADATA_BYTES, TRANSFER_MAX, UNREADABLE, Unit, ZEROES, status};
use super::operation::{
    Command, Create, Directive, DirectiveReceive, Format, GetFeature, GetLog, Kind, Range, SetFeature,
};
use super::wire::u64_at;

/// A successful completion as the drive gave it.
#[derive(Clone, Debug)]
pub struct Success {
    /// Dwords 0 and 1.
    pub result: u64,
    /// Data for the host.
    pub data: Vec<u8>,
    /// The completion waits for durability.
    pub durable: bool,
}

/// Result of a check. The error describes the difference.
pub type Check = Result<(), String>;

/// Checks that two values are equal.
pub fn equal<T: PartialEq + std::fmt::Debug>(what: &str, found: T, expected: T) -> Check {
    if found == expected {
        return Ok(());
    }
    Err(format!("{what} is {found:?}, must be {expected:?}"))
}

/// Checks that two byte strings are equal.
pub fn same_bytes(what: &str, found: &[u8], expected: &[u8]) -> Check {
    // The common case, and much faster than a byte-wise comparison.
    if found == expected {
        return Ok(());
    }
    equal(&format!("{what}: length"), found.len(), expected.len())?;
    match found.iter().zip(expected).position(|(a, b)| a != b) {
        None => Ok(()),
        Some(at) => {
            let end = (at + 16).min(found.len());
            Err(format!(
                "{what}: from byte {at} on {:02x?}, must be {:02x?}",
                &found[at..end],
                &expected[at..end]
            ))
        }
    }
}

/// Direction of a command's data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    None,
    ToDrive,
    ToHost,
}

impl Model {
    /// Data transfer of a valid command, as the bytes of data and of metadata in a separate buffer.
    pub fn transfer(&self, controller: u16, submission: &Submission) -> (Way, u64, u64) {
        let to_host = |bytes: u64| {
            if bytes == 0 {
                (Way::None, 0, 0)
            } else {
                (Way::ToHost, bytes, 0)
            }
        };
        let of_blocks = |way: Way, nsid: u32, range: Range| {
            let namespace = self.active(controller, nsid);
            let fits = |its: &&Namespace| u64::from(range.count) * its.block_bytes() <= TRANSFER_MAX;
            namespace.filter(fits).map_or((Way::None, 0, 0), |namespace| {
                let (data, metadata) = namespace.transfer_bytes(range.count.into());
                (way, data, metadata)
            })
        };
        match &submission.command {
            Command::Read { nsid, range } => of_blocks(Way::ToHost, *nsid, *range),
            Command::Write { nsid, range, .. } | Command::Compare { nsid, range, .. } => {
                of_blocks(Way::ToDrive, *nsid, *range)
            }
            Command::HandleStatus {
                nsid,
                operation: 1,
                dwords,
            } => {
                let handles = self
                    .active(controller, *nsid)
                    .map_or(0, |namespace| namespace.handles.len());
                let descriptors = handles as u64 * u64::from(self.configuration().groups);
                to_host((16 + 32 * descriptors).min(u64::from(*dwords) * 4))
            }
            Command::Identify { .. } => to_host(4096),
            Command::GetLog(GetLog { dwords, .. }) if u64::from(*dwords) * 4 > TRANSFER_MAX => (Way::None, 0, 0),
            Command::GetLog(GetLog { dwords, .. }) => to_host(u64::from(*dwords) * 4),
            Command::DirectiveReceive(DirectiveReceive { dwords, .. }) => to_host((u64::from(*dwords) * 4).min(4096)),
            Command::GetFeature(GetFeature { select: 3, .. }) => (Way::None, 0, 0),
            Command::GetFeature(GetFeature { feature, dword11, .. }) => to_host(match feature {
                0x0e => 8,
                0x16 => 512,
                0x1e => u64::from(dword11 >> 16 & 0xff).min(EVENT_TYPES.len() as u64) * 2,
                0x81 if dword11 & 1 == 1 => 16,
                0x81 => 8,
                _ => 0,
            }),
            _ if submission.data.is_empty() => (Way::None, 0, 0),
            _ => (Way::ToDrive, submission.data.len() as u64, 0),
        }
    }

    /// Applies a successful command without objections.
    pub fn apply(&mut self, controller: u16, submission: &Submission, success: &Success) -> Check {
        let (way, data, metadata) = self.transfer(controller, submission);
        let expected_bytes = if way == Way::ToHost { data + metadata } else { 0 };
        equal("bytes for the host", success.data.len() as u64, expected_bytes)?;
        let durable = self.must_be_durable(&submission.command);
        equal("waits for durability", success.durable, durable)?;
        if !has_result(&submission.command) {
            equal("result", success.result, 0)?;
        }
        if submission.command.is_admin() {
            self.apply_admin(controller, submission, success)
        } else {
            self.apply_io(submission, success)
        }
    }

    /// True if a command's completion promises durability.
    pub fn must_be_durable(&self, command: &Command) -> bool {
        let through = match command {
            Command::Flush { .. } => true,
            Command::Write { fua, .. } | Command::WriteZeroes { fua, .. } | Command::Copy { fua, .. } => {
                *fua || !self.cache_is_on()
            }
            // Erased data must not come back.
            Command::Manage { .. } | Command::Format(_) => true,
            // The cache is flushed before it is disabled. Lost data of a protected namespace could
            // not be written again.
            Command::SetFeature(SetFeature {
                feature: 0x06, dword11, ..
            }) => dword11 & 1 == 0,
            Command::SetFeature(SetFeature {
                feature: 0x84, dword11, ..
            }) => dword11 & 7 == 1,
            _ => false,
        };
        through && self.drive.cached
    }

    // ---------------------------------------------------------------------------------- I/O --

    fn apply_io(&mut self, submission: &Submission, success: &Success) -> Check {
        match submission.command {
            Command::Read { nsid, range } => {
                let namespace = &self.namespaces[&nsid];
                let blocks = blocks_of(namespace, range).expect("nothing is wrong with the command");
                same_bytes("data", &success.data, &namespace.content(blocks))?;
                self.count_read(nsid, range);
            }
            Command::Compare { nsid, range, .. } => self.count_read(nsid, range),
            Command::Verify { nsid, range } => {
                // SMART, Data Units Read, counts Compare, Read and Verify.
                self.counters.bytes_read += u64::from(range.count) * self.namespaces[&nsid].block_bytes();
            }
            Command::Write {
                nsid, range, placement, ..
            } => {
                let page_blocks = self.drive.page_bytes / self.namespaces[&nsid].block_bytes();
                let is_aligned =
                    range.first.is_multiple_of(page_blocks) && u64::from(range.count).is_multiple_of(page_blocks);
                self.write(nsid, range, placement, |block| submission.first_tag + block);
                self.counters.write_commands += 1;
                self.counters.unaligned_writes += u64::from(!is_aligned);
            }
            Command::WriteZeroes {
                nsid,
                range,
                placement,
                deallocate,
                ..
            } => self.write_zeroes(nsid, range, placement, deallocate),
            Command::WriteUncorrectable { nsid, range } => self.blocks_mut(nsid, range).fill(UNREADABLE),
            Command::DatasetManagement {
                nsid,
                ref ranges,
                deallocate: true,
            } => {
                for &range in ranges {
                    self.deallocate(nsid, range);
                }
            }
            Command::Copy {
                nsid,
                to,
                ref ranges,
                placement,
                ..
            } => {
                let sources = ranges
                    .iter()
                    .flat_map(|&range| blocks_of(&self.namespaces[&nsid], range).expect("checked"));
                let tags: Vec<u64> = sources.copied().collect();
                let range = Range {
                    first: to,
                    count: tags.len() as u32,
                };
                self.write_parts(nsid, range, ranges, placement, |block| tags[block as usize]);
            }
            Command::HandleStatus { nsid, operation: 1, .. } => self.check_handle_status(nsid, &success.data)?,
            Command::HandleUpdate {
                nsid,
                operation: 1,
                ref identifiers,
            } => {
                for &pid in identifiers {
                    let placement = self.placement(nsid, pid).expect("nothing is wrong with the command");
                    if self.leave_unit(placement) {
                        let handle_bits = 16 - self.configuration().group_bits;
                        let index = u32::from(pid) & ((1 << handle_bits) - 1);
                        self.log_event(0, nsid, index as usize, pid, Some(placement));
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Counts a Read or Compare command. Metadata does not count.
    fn count_read(&mut self, nsid: u32, range: Range) {
        self.counters.read_commands += 1;
        self.counters.bytes_read += u64::from(range.count) * self.namespaces[&nsid].block_bytes();
    }

    pub fn blocks_mut(&mut self, nsid: u32, range: Range) -> &mut [u64] {
        let namespace = self.namespaces.get_mut(&nsid).expect("a namespace that exists");
        &mut namespace.blocks[range.first as usize..][..range.count as usize]
    }

    fn write(&mut self, nsid: u32, range: Range, directive: Directive, tag: impl Fn(u64) -> u64) {
        self.write_parts(
            nsid,
            range,
            &[Range {
                first: 0,
                count: range.count,
            }],
            directive,
            tag,
        );
    }

    /// Writes a range in parts of these lengths. Each part programs the pages that it covers.
    fn write_parts(
        &mut self,
        nsid: u32,
        range: Range,
        parts: &[Range],
        directive: Directive,
        tag: impl Fn(u64) -> u64,
    ) {
        let placement = self.choose_placement(nsid, directive);
        let block_bytes = self.namespaces[&nsid].block_bytes();
        for (index, block) in (0..).zip(self.blocks_mut(nsid, range)) {
            *block = tag(index);
        }
        let mut first = range.first;
        for part in parts {
            let end = first + u64::from(part.count);
            self.append(placement, self.pages_touched(first * block_bytes, end * block_bytes));
            first = end;
        }
        let bytes = u64::from(range.count) * block_bytes;
        self.counters.bytes_written += bytes;
        self.counters.host_bytes_with_metadata += bytes;
        (self.written_since, self.perhaps_written_since) = (true, true);
    }

    fn pages_touched(&self, from: u64, to: u64) -> u64 {
        to.div_ceil(self.drive.page_bytes) - from / self.drive.page_bytes
    }

    fn write_zeroes(&mut self, nsid: u32, range: Range, directive: Directive, deallocate: bool) {
        let placement = self.choose_placement(nsid, directive);
        let block_bytes = self.namespaces[&nsid].block_bytes();
        let page_bytes = self.drive.page_bytes;
        self.blocks_mut(nsid, range).fill(ZEROES);
        let (from, to) = (
            range.first * block_bytes,
            (range.first + u64::from(range.count)) * block_bytes,
        );
        let whole = (from.div_ceil(page_bytes) * page_bytes, to / page_bytes * page_bytes);
        let mut bytes = to - from;
        let mut pages = self.pages_touched(from, to);
        if deallocate && whole.1 > whole.0 {
            bytes -= whole.1 - whole.0;
            pages -= (whole.1 - whole.0) / page_bytes;
        }
        self.append(placement, pages);
        self.counters.host_bytes_with_metadata += bytes;
        self.perhaps_written_since = true;
    }

    fn deallocate(&mut self, nsid: u32, range: Range) {
        let whole = self.whole_pages(nsid, range);
        // The namespace may not fill its last page.
        if !whole.is_empty() {
            let namespace = self.namespaces.get_mut(&nsid).expect("a namespace that exists");
            namespace.blocks[whole.start as usize..whole.end as usize].fill(ZEROES);
        }
    }

    fn check_handle_status(&self, nsid: u32, data: &[u8]) -> Check {
        let configuration = self.configuration();
        let namespace = &self.namespaces[&nsid];
        let blocks_per_page = self.drive.page_bytes / namespace.block_bytes();
        let mut expected = vec![0; 16];
        let count = namespace.handles.len() as u16 * configuration.groups;
        expected[14..16].copy_from_slice(&count.to_le_bytes());
        for (index, &handle) in namespace.handles.iter().enumerate() {
            for group in 0..configuration.groups {
                let mut descriptor = [0; 32];
                descriptor[..2].copy_from_slice(&self.identifier(group, index).to_le_bytes());
                descriptor[2..4].copy_from_slice(&handle.to_le_bytes());
                let unit = self.units.get(&(group, handle)).copied().unwrap_or_default();
                descriptor[4..8].copy_from_slice(&self.seconds_left(unit).to_le_bytes());
                let available = self.available_pages((group, handle)) * blocks_per_page;
                descriptor[8..16].copy_from_slice(&available.to_le_bytes());
                expected.extend(descriptor);
            }
        }
        expected.truncate(data.len());
        if self.drive.exact_units {
            return same_bytes("reclaim unit handle status", data, &expected);
        }
        // Times and RUAMW depend on the device's policies. RUAMW is at most a unit.
        for (found, expected) in data[16.min(data.len())..]
            .chunks_exact(32)
            .zip(expected[16.min(data.len())..].chunks_exact(32))
        {
            equal("identifier and handle", &found[..4], &expected[..4])?;
            if u64_at(found, 8) > self.unit_pages() * blocks_per_page {
                return Err(format!("RUAMW is {}, more than a reclaim unit", u64_at(found, 8)));
            }
        }
        same_bytes("header", &data[..16.min(data.len())], &expected[..16.min(data.len())])
    }

    fn seconds_left(&self, unit: Unit) -> u32 {
        let limit = self.drive.time_limit_s;
        let passed = unit.since_ns.map_or(0, |since| (self.now - since) / 1_000_000_000);
        limit.saturating_sub(passed as u32)
    }

    // -------------------------------------------------------------------------------- admin --

    fn apply_admin(&mut self, controller: u16, submission: &Submission, success: &Success) -> Check {
        match &submission.command {
            Command::Identify { .. } => self.check_identify(controller, &submission.command, &success.data)?,
            Command::GetLog(command) => self.read_log(controller, command, &success.data)?,
            Command::GetFeature(command) => self.check_feature(controller, command, success)?,
            Command::SetFeature(command) => self.set_feature(controller, command, success)?,
            Command::AsyncEvent => {
                let event = self.controllers.get_mut(&controller).expect("connected").take_event();
                let event = event.ok_or("an Asynchronous Event Request completed without an event")?;
                equal("event", success.result, event.result())?;
            }
            Command::Abort { queue, cid } => self.abort(controller, *queue, *cid, success)?,
            Command::KeepAlive => self.controllers.get_mut(&controller).expect("connected").heard_ns = self.now,
            Command::Create(create) => self.create(create, success.result)?,
            Command::Manage { nsid, .. } => {
                let any = !self.namespaces.is_empty();
                self.end_test(3, |test| {
                    any && (*nsid == ALL && test.nsid != 0 || [*nsid, ALL].contains(&test.nsid))
                });
                self.delete(*nsid);
            }
            Command::Attach {
                nsid,
                operation,
                controllers,
                count,
            } => {
                self.attach(*nsid, *operation == 0, &controllers[..usize::from(*count)]);
            }
            Command::SelfTest { code: 0xf, .. } => self.end_test(1, |_| true),
            Command::SelfTest { nsid, code } => {
                self.end_test(0, |_| false);
                self.running_test = Some(RunningTest {
                    code: *code,
                    nsid: *nsid,
                    controller,
                    since: self.now,
                });
            }
            Command::DirectiveSend(_) => {}
            Command::DirectiveReceive(_) => {
                let mut expected = vec![0; 4096];
                let placement = if self.fdp.is_some() { 4 } else { 0 };
                (expected[0], expected[32], expected[64]) = (1 | placement, 1 | placement, placement);
                expected.truncate(success.data.len());
                same_bytes("directives", &success.data, &expected)?;
            }
            Command::Format(Format {
                nsid, format, extended, ..
            }) => {
                let formatted = self.formatted(controller, *nsid);
                let any = !formatted.is_empty();
                self.end_test(4, |test| formatted.contains(&test.nsid) || test.nsid == ALL && any);
                self.format(controller, *nsid, *format, *extended);
            }
            Command::Sanitize { action: 1, .. } => {
                if let Sanitize::Failed { exited, .. } = &mut self.sanitize {
                    *exited = true;
                }
            }
            Command::Sanitize { .. } => {
                self.end_test(9, |_| true);
                self.sanitize = Sanitize::Running {
                    dword10: submission.command.wire().cdw[0],
                };
                // A new sanitize operation clears outstanding events of the previous one (Base
                // Specification, "Sanitize Operations").
                for its in self.controllers.values_mut() {
                    its.waiting.retain(|event| event.log != 0x81);
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Records a waiting Asynchronous Event Request. Call it only for a request that may wait.
    pub fn hold_event_request(&mut self, controller: u16, cid: u16) -> Check {
        let its = self.controllers.get_mut(&controller).expect("connected");
        if let Some(event) = its.take_event() {
            return Err(format!(
                "an Asynchronous Event Request waits although there is {event:?}"
            ));
        }
        its.requests.push_back(cid);
        Ok(())
    }

    fn abort(&mut self, controller: u16, queue: u16, cid: u16, success: &Success) -> Check {
        let its = self.controllers.get_mut(&controller).expect("connected");
        let found = its.requests.iter().position(|&request| queue == 0 && request == cid);
        // Bit 0 means that the command was not aborted.
        equal("result", success.result, u64::from(found.is_none()))?;
        if let Some(index) = found {
            its.requests.remove(index);
            its.owed.push_back(Completion {
                cid,
                status: status::ABORT_REQUESTED,
                do_not_retry: false,
                result: 0,
            });
        }
        Ok(())
    }

    // --------------------------------------------------------------------------- namespaces --

    fn create(&mut self, create: &Create, result: u64) -> Check {
        let nsid = u32::try_from(result).map_err(|_| format!("namespace identifier {result:#x}"))?;
        if nsid == 0 || nsid > NN || self.namespaces.contains_key(&nsid) {
            return Err(format!(
                "the new namespace has identifier {nsid}, which cannot be or is another's"
            ));
        }
        let handles = match (self.fdp, create.handles) {
            (None, _) => vec![0],
            (Some(_), 0) => vec![self.controllers_handle()],
            (Some(_), count) => create.handle_list[..usize::from(count)].to_vec(),
        };
        self.put_namespace(nsid, create.format, create.blocks, handles);
        let host_specified = self.fdp.is_some() && create.handles > 0;
        let namespace = self.namespaces.get_mut(&nsid).expect("just put in");
        namespace.shared = create.shared;
        namespace.extended = create.extended && namespace.metadata_bytes() > 0;
        namespace.host_specified = host_specified;
        Ok(())
    }

    /// Handle of namespaces without a handle list. The drive documents it as the lowest unused one.
    fn controllers_handle(&self) -> u16 {
        let shared = self.namespaces.values().find(|namespace| !namespace.host_specified);
        let used = |handle: &u16| self.namespaces.values().any(|its| its.handles.contains(handle));
        match shared {
            Some(namespace) => namespace.handles[0],
            None => (0..self.configuration().handles)
                .find(|handle| !used(handle))
                .expect("checked"),
        }
    }

    /// Adds a private, unattached namespace.
    pub fn put_namespace(&mut self, nsid: u32, format: u8, blocks: u64, handles: Vec<u16>) {
        let bytes = blocks * BLOCK_BYTES[usize::from(format)];
        let namespace = Namespace {
            format,
            extended: false,
            pages: bytes.div_ceil(self.drive.page_bytes),
            blocks: vec![ZEROES; blocks as usize],
            events: vec![Default::default(); handles.len()],
            handles,
            host_specified: false,
            everyone: false,
            attached: Default::default(),
            inherited: Default::default(),
            shared: false,
            protected: false,
            identifier: None,
        };
        self.namespaces.insert(nsid, namespace);
    }

    fn delete(&mut self, nsid: u32) {
        let all: Vec<u32> = self.namespaces.keys().copied().collect();
        for nsid in all.into_iter().filter(|&its| nsid == ALL || its == nsid) {
            let viewers = self.viewers(nsid);
            self.namespaces.remove(&nsid);
            self.shared_features.remove(&(5, nsid));
            self.saved_features.remove(&(5, nsid));
            self.note_changed(nsid, &viewers);
        }
    }

    fn attach(&mut self, nsid: u32, attach: bool, listed: &[u16]) {
        let everyone = 1..=self.drive.controllers_max;
        let namespace = self.namespaces.get_mut(&nsid).expect("checked");
        if std::mem::take(&mut namespace.everyone) {
            namespace.attached.extend(everyone);
        }
        for id in listed {
            namespace.inherited.remove(id);
            if attach {
                namespace.attached.insert(*id)
            } else {
                namespace.attached.remove(id)
            };
        }
        self.note_changed(nsid, listed);
    }

    fn format(&mut self, controller: u16, nsid: u32, format: u8, extended: bool) {
        let page_bytes = self.drive.page_bytes;
        let extended = extended && METADATA_BYTES[usize::from(format)] > 0;
        for nsid in self.formatted(controller, nsid) {
            let namespace = self.namespaces.get_mut(&nsid).expect("listed");
            namespace.blocks.fill(ZEROES);
            if (namespace.format, namespace.extended) != (format, extended) {
                let other_blocks = namespace.format != format;
                (namespace.format, namespace.extended) = (format, extended);
                if other_blocks {
                    let blocks = namespace.pages * page_bytes / namespace.block_bytes();
                    namespace.blocks.resize(blocks as usize, ZEROES);
                }
                let viewers = self.viewers(nsid);
                self.note_changed(nsid, &viewers);
            }
        }
    }

    // ----------------------------------------------------------------------------- features --

    fn check_feature(&self, controller: u16, command: &GetFeature, success: &Success) -> Check {
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
            0x16 => {
                data = if command.select == 0 {
                    its.host_behavior.clone()
                } else {
                    vec![0; 512]
                }
            }
            0x1d => {
                let fdp = if command.select == 1 {
                    self.drive.initial_fdp.then_some(0)
                } else {
                    self.fdp
                };
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
                let set = if command.select == 0 || command.select == 2 {
                    &self.latency
                } else {
                    &LATENCY_DEFAULTS
                };
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

    fn set_feature(&mut self, controller: u16, command: &SetFeature, success: &Success) -> Check {
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
                let instances = if command.feature == 5 {
                    nsids
                } else {
                    vec![instance(command.feature, command.dword11, 0)]
                };
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

    // -------------------------------------------------------------------------- after failures --

    /// Applies the effects of a command that fails with one of its objections.
    pub fn apply_failure(&mut self, submission: &Submission, found: Objection) {
        let Objection { status, do_not_retry } = found;
        if let Command::Compare { nsid, range, .. } = submission.command
            && status == status::COMPARE_FAILURE
        {
            // The data was read, and the command is completed.
            self.count_read(nsid, range);
        }
        // Blocks marked by Write Uncorrectable stay unreadable, and are no media errors.
        let of_media = matches!(status, status::WRITE_FAULT | status::UNRECOVERED_READ) && !do_not_retry;
        if !of_media {
            return;
        }
        self.counters.media_errors += 1;
        // The storage failed when the data was about to be placed.
        match submission.command {
            Command::Write { nsid, placement, .. }
            | Command::WriteZeroes { nsid, placement, .. }
            | Command::Copy { nsid, placement, .. } => {
                self.choose_placement(nsid, placement);
            }
            _ => {}
        }
    }

    /// An event reports invalid doorbell writes.
    pub fn note_doorbell(&mut self, controller: u16, event: AsyncEvent) {
        self.controllers.get_mut(&controller).expect("connected").raise(event);
    }
}

/// Selects one of the values of a feature.
fn instance(feature: u8, dword11: u32, nsid: u32) -> u32 {
    match feature {
        0x04 => dword11 >> 20 & 3,
        0x05 => nsid,
        0x09 => dword11 & 0xffff,
        _ => 0,
    }
}

/// True if completion dword 0 or 1 has a result.
fn has_result(command: &Command) -> bool {
    matches!(
        command,
        Command::GetFeature(_)
            | Command::SetFeature(SetFeature { feature: 7, .. })
            | Command::AsyncEvent
            | Command::Abort { .. }
            | Command::Create(_)
    )
}
