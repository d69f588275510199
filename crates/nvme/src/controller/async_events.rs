//! Asynchronous events: what happens without the host's asking, told through Asynchronous Event Requests.
//!
//! ```text
//! something happens -> enabled (feature 0Bh)? -> waiting -> a request is there and the type not masked? -> completion
//! the host reads the log page (RAE = 0)       -> unmasked, the next one may be told
//! ```
//!
//! Events are of one controller and do not outlive its reset. An event that waits already is not put in a second time,
//! so there are never more of them than kinds.

use std::collections::{BTreeSet, VecDeque};

use nvme_spec::command::{
    AEI_ERROR_INVALID_DOORBELL_REGISTER, AEI_ERROR_INVALID_DOORBELL_VALUE, AEI_IO_SANITIZE_COMPLETED,
    AEI_IO_SANITIZE_UNEXPECTED_DEALLOCATION, AEI_NOTICE_ENDURANCE_GROUP_CHANGE, AEI_NOTICE_NAMESPACE_ATTRIBUTE_CHANGED,
    AEI_SMART_RELIABILITY, AEI_SMART_SPARE_BELOW_THRESHOLD, AEI_SMART_TEMPERATURE_THRESHOLD, AsyncEventDw0,
    AsyncEventType,
};
use nvme_spec::feature::AsyncEventConfiguration;
use nvme_spec::log::CriticalWarning;
use nvme_spec::{FeatureId, LogId, Status};

use super::Controller;
use crate::completion::Reply;
use crate::error::{Failure, Parameter};

/// Asynchronous Event Requests that a controller holds at the same time (AERL + 1).
pub const ASYNC_EVENT_REQUESTS_MAX: usize = 4;

/// Something that a host is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Event {
    kind: AsyncEventType,
    /// Asynchronous Event Information.
    information: u8,
    /// The log page that says more; reading it allows the next event of this type.
    log: LogId,
}

impl Event {
    const NAMESPACE_CHANGED: Event = Event {
        kind: AsyncEventType::Notice,
        information: AEI_NOTICE_NAMESPACE_ATTRIBUTE_CHANGED,
        log: LogId::ChangedAttachedNamespaceList,
    };
    const ENDURANCE_GROUP_CHANGED: Event = Event {
        kind: AsyncEventType::Notice,
        information: AEI_NOTICE_ENDURANCE_GROUP_CHANGE,
        log: LogId::EnduranceGroupEventAggregate,
    };
    const TEMPERATURE: Event = Event {
        kind: AsyncEventType::SmartHealth,
        information: AEI_SMART_TEMPERATURE_THRESHOLD,
        log: LogId::SmartHealth,
    };
    const RELIABILITY: Event = Event {
        kind: AsyncEventType::SmartHealth,
        information: AEI_SMART_RELIABILITY,
        log: LogId::SmartHealth,
    };

    const SPARE: Event = Event {
        kind: AsyncEventType::SmartHealth,
        information: AEI_SMART_SPARE_BELOW_THRESHOLD,
        log: LogId::SmartHealth,
    };

    fn reply(self) -> Reply {
        let dword0 = AsyncEventDw0::new()
            .with_aet(self.kind.code())
            .with_aei(self.information)
            .with_lid(self.log.code());
        Reply::success(u64::from(dword0.into_bits()))
    }
}

/// A completion of an Asynchronous Event Request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AsyncCompletion {
    /// The command that it completes.
    pub cid: u16,
    /// What the host is told.
    pub reply: Reply,
}

/// A doorbell that was written wrongly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DoorbellError {
    /// Of a queue that does not exist.
    Register,
    /// With a value that the queue does not have, or that it has already.
    Value,
}

/// Requests and events of one controller. See the module.
#[derive(Clone, Debug, Default)]
pub struct AsyncEvents {
    /// Command identifiers of the outstanding requests, oldest first.
    requests: VecDeque<u16>,
    /// Events that were not told yet, oldest first, each once.
    waiting: VecDeque<Event>,
    /// Events told whose log page was not read since: one for each type.
    masked: Vec<Event>,
    completions: VecDeque<AsyncCompletion>,
    /// Namespaces that changed since the host read the list.
    changed_namespaces: BTreeSet<u32>,
    /// Critical warnings that the host was told of and that still hold.
    announced: u8,
    /// Critical warnings of the endurance group, likewise.
    group_announced: u8,
    /// The endurance group has had an event since the host read its log page.
    group_event: bool,
}

impl AsyncEvents {
    /// Takes the completions that are to be delivered, oldest first.
    pub fn take_completions(&mut self) -> Vec<AsyncCompletion> {
        self.completions.drain(..).collect()
    }

    /// Namespaces that changed since the host read the list, ascending.
    pub(crate) fn changed_namespaces(&self) -> impl Iterator<Item = u32> {
        self.changed_namespaces.iter().copied()
    }

    /// Whether the endurance group has had an event since the host read its log page.
    pub(crate) fn has_group_event(&self) -> bool {
        self.group_event
    }

    /// Takes a request: it is answered at once with an event that waits, or held until there is one (`None`).
    ///
    /// # Errors
    /// Too many are held, or one with this identifier is.
    pub(crate) fn request(&mut self, cid: u16) -> Result<Option<Reply>, Failure> {
        if self.requests.len() == ASYNC_EVENT_REQUESTS_MAX {
            let cause =
                format!("{ASYNC_EVENT_REQUESTS_MAX} asynchronous event requests are outstanding, the limit (AERL)");
            return Err(Failure::new(Status::ASYNC_EVENT_REQUEST_LIMIT_EXCEEDED, cause));
        }
        if self.requests.contains(&cid) {
            let cause = format!("an asynchronous event request with command identifier {cid} is outstanding");
            return Err(Failure::new(Status::COMMAND_ID_CONFLICT, cause).at(Parameter::dword(0, 16)));
        }
        if let Some(event) = self.next_event() {
            return Ok(Some(event.reply()));
        }
        self.requests.push_back(cid);
        assert!(self.requests.len() <= ASYNC_EVENT_REQUESTS_MAX, "requests are limited");
        Ok(None)
    }

    /// Forgets events that wait and that a log page says more of.
    pub(crate) fn forget(&mut self, log: LogId) {
        self.waiting.retain(|event| event.log != log);
    }

    /// Puts an event in. Returns whether there is something to deliver.
    fn raise(&mut self, event: Event) -> bool {
        if !self.waiting.contains(&event) {
            self.waiting.push_back(event);
        }
        self.deliver()
    }

    /// Completes requests with events while there are both. Returns whether there is something to deliver.
    fn deliver(&mut self) -> bool {
        while let Some(&cid) = self.requests.front() {
            let Some(event) = self.next_event() else {
                break;
            };
            self.requests.pop_front();
            let reply = event.reply();
            self.completions.push_back(AsyncCompletion { cid, reply });
        }
        assert!(
            self.requests.is_empty() || self.next_index().is_none(),
            "a request waits only while there is nothing to tell"
        );
        !self.completions.is_empty()
    }

    /// Place of the oldest event whose type is not masked.
    fn next_index(&self) -> Option<usize> {
        let masked = |event: &Event| self.masked.iter().any(|told| told.kind == event.kind);
        self.waiting.iter().position(|event| !masked(event))
    }

    /// Takes the oldest event whose type is not masked, and masks the type.
    fn next_event(&mut self) -> Option<Event> {
        let index = self.next_index()?;
        let event = self.waiting.remove(index).expect("the index was just found");
        self.masked.push(event);
        assert!(!self.waiting.contains(&event), "an event waits once");
        Some(event)
    }

    /// The host read a log page and wants to hear of what happens from now on. Returns whether there is something to
    /// deliver: another event that the one told had masked.
    fn read(&mut self, log: LogId) -> bool {
        self.forget(log);
        self.masked.retain(|event| event.log != log);
        match log {
            LogId::ChangedAttachedNamespaceList => self.changed_namespaces.clear(),
            LogId::EnduranceGroupInformation => self.group_event = false,
            _ => {}
        }
        self.deliver()
    }
}

impl Controller {
    /// What the host wants to hear of (feature 0Bh).
    fn event_configuration(&self) -> AsyncEventConfiguration {
        AsyncEventConfiguration::from_bits(
            self.features
                .value(FeatureId::AsynchronousEventConfiguration, 0)
                .unwrap_or(0),
        )
    }

    fn raise(&mut self, event: Event) {
        if self.async_events.raise(event) {
            self.wake();
        }
    }

    /// A namespace that it has, or had, was deleted, attached, detached or formatted, or its attributes changed.
    pub(crate) fn note_namespace_changed(&mut self, nsid: u32) {
        self.async_events.changed_namespaces.insert(nsid);
        if self.event_configuration().nan() {
            self.raise(Event::NAMESPACE_CHANGED);
        }
    }

    /// A sanitize operation ended; blocks may have been `deallocated` although the host asked for the opposite.
    pub(crate) fn note_sanitize_completed(&mut self, deallocated: bool) {
        self.raise(Event {
            kind: AsyncEventType::IoCommandSpecific,
            information: if deallocated {
                AEI_IO_SANITIZE_UNEXPECTED_DEALLOCATION
            } else {
                AEI_IO_SANITIZE_COMPLETED
            },
            log: LogId::SanitizeStatus,
        });
    }

    /// The host wrote a doorbell wrongly; there is no command that could fail for it.
    pub(crate) fn note_doorbell_error(&mut self, error: DoorbellError) {
        self.raise(Event {
            kind: AsyncEventType::Error,
            information: match error {
                DoorbellError::Register => AEI_ERROR_INVALID_DOORBELL_REGISTER,
                DoorbellError::Value => AEI_ERROR_INVALID_DOORBELL_VALUE,
            },
            log: LogId::ErrorInformation,
        });
    }

    /// Aborts an Asynchronous Event Request. Returns whether there was one.
    pub(crate) fn abort_event_request(&mut self, cid: u16) -> bool {
        let requests = &mut self.async_events.requests;
        let Some(index) = requests.iter().position(|&outstanding| outstanding == cid) else {
            return false;
        };
        requests.remove(index);
        assert!(!requests.contains(&cid), "command identifiers are unique");
        let reply = Reply::of(Status::ABORT_REQUESTED);
        self.async_events.completions.push_back(AsyncCompletion { cid, reply });
        self.wake();
        true
    }

    /// The host read a log page with RAE = 0.
    pub(crate) fn note_log_read(&mut self, log: LogId) {
        if self.async_events.read(log) {
            self.wake();
        }
    }

    /// Tells of critical warnings that hold now and did not before.
    pub(crate) fn note_warnings(&mut self, warnings: CriticalWarning, group_enabled: u8, group_warnings: u8) {
        let configuration = self.event_configuration();
        let wanted = warnings.into_bits() & configuration.shcw();
        let new = CriticalWarning::from_bits(wanted & !self.async_events.announced);
        self.async_events.announced = wanted;
        if new.ttc() {
            self.raise(Event::TEMPERATURE);
        }
        // The standard has no event of its own for read-only media: it is a matter of reliability.
        if new.ndr() || new.amro() {
            self.raise(Event::RELIABILITY);
        }
        if new.ascbt() {
            self.raise(Event::SPARE);
        }
        let group_wanted = group_warnings & group_enabled;
        let group_new = group_wanted & !self.async_events.group_announced;
        self.async_events.group_announced = group_wanted;
        if group_new != 0 {
            self.async_events.group_event = true;
            if configuration.egealcn() {
                self.raise(Event::ENDURANCE_GROUP_CHANGED);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_masks_its_type_until_the_log_is_read() {
        let mut events = AsyncEvents::default();
        assert!(!events.raise(Event::TEMPERATURE));
        events.requests.extend([7, 8]);
        assert!(events.deliver());
        let told = events.take_completions();
        // SMART / Health status, temperature threshold, log page 02h.
        assert_eq!((told.len(), told[0].cid, told[0].reply.result), (1, 7, 0x0002_0101));

        assert!(!events.raise(Event::RELIABILITY), "the type is masked");
        assert!(events.raise(Event::NAMESPACE_CHANGED), "another type is not");
        assert_eq!(events.take_completions()[0].reply.result, 0x0004_0002);

        events.requests.push_back(9);
        assert!(!events.read(LogId::SmartHealth), "reading clears what waited too");
        assert!(events.raise(Event::RELIABILITY));
        let told = events.take_completions();
        assert_eq!((told[0].cid, told[0].reply.result), (9, 0x0002_0001));
    }

    #[test]
    fn reading_one_log_lets_another_event_of_the_type_out() {
        let mut events = AsyncEvents::default();
        events.requests.extend([1, 2]);
        assert!(events.raise(Event::NAMESPACE_CHANGED));
        assert_eq!(events.take_completions().len(), 1);
        assert!(!events.raise(Event::ENDURANCE_GROUP_CHANGED));
        assert!(!events.raise(Event::ENDURANCE_GROUP_CHANGED));
        assert!(events.read(LogId::ChangedAttachedNamespaceList));
        assert_eq!(events.take_completions()[0].reply.result, 0x000f_0602);
        assert!(events.waiting.is_empty());
    }
}
