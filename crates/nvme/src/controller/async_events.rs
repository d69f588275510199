//! Asynchronous events of a controller, which hosts receive through Asynchronous Event Requests.
//!
//! ```text
//! event -> enabled (feature 0Bh)? -> waiting -> request present and type unmasked? -> completion
//! the host reads the log page (RAE = 0)      -> type unmasked, next event may be delivered
//! ```
//!
//! Events belong to one controller and end with its reset. An equal event is not queued twice, so
//! the number of kinds bounds the queue.

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

/// Most outstanding Asynchronous Event Requests of a controller (AERL + 1).
pub const ASYNC_EVENT_REQUESTS_MAX: usize = 4;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ControllerEvent {
    kind: AsyncEventType,
    information: u8,
    /// Log page with the details. Reading the page allows the next event of this type.
    log: LogId,
}

impl ControllerEvent {
    const NAMESPACE_CHANGED: ControllerEvent = ControllerEvent {
        kind: AsyncEventType::Notice,
        information: AEI_NOTICE_NAMESPACE_ATTRIBUTE_CHANGED,
        log: LogId::ChangedAttachedNamespaceList,
    };
    const ENDURANCE_GROUP_CHANGED: ControllerEvent = ControllerEvent {
        kind: AsyncEventType::Notice,
        information: AEI_NOTICE_ENDURANCE_GROUP_CHANGE,
        log: LogId::EnduranceGroupEventAggregate,
    };
    const TEMPERATURE: ControllerEvent = ControllerEvent::of_health(AEI_SMART_TEMPERATURE_THRESHOLD);
    const RELIABILITY: ControllerEvent = ControllerEvent::of_health(AEI_SMART_RELIABILITY);
    const SPARE: ControllerEvent = ControllerEvent::of_health(AEI_SMART_SPARE_BELOW_THRESHOLD);

    const fn of_health(information: u8) -> ControllerEvent {
        ControllerEvent { kind: AsyncEventType::SmartHealth, information, log: LogId::SmartHealth }
    }

    fn reply(self) -> Reply {
        let dword0 =
            AsyncEventDw0::new().with_aet(self.kind.code()).with_aei(self.information).with_lid(self.log.code());
        Reply::success(u64::from(dword0.into_bits()))
    }
}

/// Completion of an Asynchronous Event Request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AsyncCompletion {
    /// Command identifier of the request.
    pub cid: u16,
    /// Completion as the host sees it.
    pub reply: Reply,
}

/// Error of a doorbell write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DoorbellError {
    /// The queue does not exist.
    Register,
    /// The value is out of range for the queue, or unchanged.
    Value,
}

/// Requests and events of one controller. See the module documentation.
#[derive(Clone, Debug, Default)]
pub struct AsyncEvents {
    /// Command identifiers of the outstanding requests, oldest first.
    requests: VecDeque<u16>,
    /// Undelivered events, oldest first, each once.
    waiting: VecDeque<ControllerEvent>,
    /// Delivered events with an unread log page, one for each type.
    masked: Vec<ControllerEvent>,
    completions: VecDeque<AsyncCompletion>,
    /// Namespaces that changed since the host last read the list.
    changed_namespaces: BTreeSet<u32>,
    /// Reported critical warnings that still hold.
    announced: u8,
    group_announced: u8,
    /// The endurance group had an event since the host last read its log page.
    group_event: bool,
}

impl AsyncEvents {
    /// Takes the completions to deliver, oldest first.
    pub fn take_completions(&mut self) -> Vec<AsyncCompletion> {
        self.completions.drain(..).collect()
    }

    pub(crate) fn changed_namespaces(&self) -> impl Iterator<Item = u32> {
        self.changed_namespaces.iter().copied()
    }

    pub(crate) fn has_group_event(&self) -> bool {
        self.group_event
    }

    /// Adds a request. Returns the reply if an event is waiting, or `None` if the request has to
    /// wait.
    pub(crate) fn request(&mut self, cid: u16) -> Result<Option<Reply>, Failure> {
        if self.requests.len() == ASYNC_EVENT_REQUESTS_MAX {
            let cause = format!(
                "{ASYNC_EVENT_REQUESTS_MAX} asynchronous event requests are already outstanding, which is the limit \
                 (AERL)"
            );
            return Err(Failure::new(Status::ASYNC_EVENT_REQUEST_LIMIT_EXCEEDED, cause));
        }
        if self.requests.contains(&cid) {
            let cause = format!("an asynchronous event request with command identifier {cid} is already outstanding");
            return Err(Failure::new(Status::COMMAND_ID_CONFLICT, cause).at(Parameter::dword(0, 16)));
        }
        if let Some(event) = self.next_event() {
            return Ok(Some(event.reply()));
        }
        self.requests.push_back(cid);
        assert!(self.requests.len() <= ASYNC_EVENT_REQUESTS_MAX, "requests are limited");
        Ok(None)
    }

    pub(crate) fn forget(&mut self, log: LogId) {
        self.waiting.retain(|event| event.log != log);
    }

    /// Adds an event. Returns true if a completion can be delivered.
    fn raise(&mut self, event: ControllerEvent) -> bool {
        if !self.waiting.contains(&event) {
            self.waiting.push_back(event);
        }
        self.deliver()
    }

    /// Completes requests with waiting events. Returns true if a completion can be delivered.
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
            "a request waits only without a pending event"
        );
        !self.completions.is_empty()
    }

    fn next_index(&self) -> Option<usize> {
        let masked = |event: &ControllerEvent| self.masked.iter().any(|reported| reported.kind == event.kind);
        self.waiting.iter().position(|event| !masked(event))
    }

    fn next_event(&mut self) -> Option<ControllerEvent> {
        let index = self.next_index()?;
        let event = self.waiting.remove(index).expect("the index was just found");
        self.masked.push(event);
        assert!(!self.waiting.contains(&event), "an event waits once");
        Some(event)
    }

    /// Handles a read of a log page, which unmasks its events. Returns true if a previously masked
    /// event can now be delivered.
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
    fn event_configuration(&self) -> AsyncEventConfiguration {
        AsyncEventConfiguration::from_bits(
            self.features.value(FeatureId::AsynchronousEventConfiguration, 0).unwrap_or(0),
        )
    }

    fn raise(&mut self, event: ControllerEvent) {
        if self.async_events.raise(event) {
            self.wake();
        }
    }

    /// Reports a change of a namespace that the controller has or had. Changes are deletion,
    /// attachment, detachment, formatting and new attributes.
    pub(crate) fn note_namespace_changed(&mut self, nsid: u32) {
        self.async_events.changed_namespaces.insert(nsid);
        if self.event_configuration().nan() {
            self.raise(ControllerEvent::NAMESPACE_CHANGED);
        }
    }

    /// Reports the end of a sanitize operation. `deallocated` is true if blocks were deallocated
    /// against the host's request.
    pub(crate) fn note_sanitize_completed(&mut self, deallocated: bool) {
        self.raise(ControllerEvent {
            kind: AsyncEventType::IoCommandSpecific,
            information: if deallocated { AEI_IO_SANITIZE_UNEXPECTED_DEALLOCATION } else { AEI_IO_SANITIZE_COMPLETED },
            log: LogId::SanitizeStatus,
        });
    }

    pub(crate) fn note_doorbell_error(&mut self, error: DoorbellError) {
        self.raise(ControllerEvent {
            kind: AsyncEventType::Error,
            information: match error {
                DoorbellError::Register => AEI_ERROR_INVALID_DOORBELL_REGISTER,
                DoorbellError::Value => AEI_ERROR_INVALID_DOORBELL_VALUE,
            },
            log: LogId::ErrorInformation,
        });
    }

    pub(crate) fn abort_event_request(&mut self, cid: u16) -> bool {
        let requests = &mut self.async_events.requests;
        let Some(index) = requests.iter().position(|&outstanding| outstanding == cid) else {
            return false;
        };
        requests.remove(index);
        assert!(!requests.contains(&cid), "command identifiers are unique");
        let reply = Reply::from_status(Status::ABORT_REQUESTED);
        self.async_events.completions.push_back(AsyncCompletion { cid, reply });
        self.wake();
        true
    }

    /// Handles a read of a log page with RAE = 0.
    pub(crate) fn note_log_read(&mut self, log: LogId) {
        if self.async_events.read(log) {
            self.wake();
        }
    }

    pub(crate) fn note_warnings(&mut self, warnings: CriticalWarning, group_enabled: u8, group_warnings: u8) {
        let configuration = self.event_configuration();
        let wanted = warnings.into_bits() & configuration.shcw();
        let new = CriticalWarning::from_bits(wanted & !self.async_events.announced);
        self.async_events.announced = wanted;
        if new.ttc() {
            self.raise(ControllerEvent::TEMPERATURE);
        }
        // The standard has no separate event for read-only media, so the reliability event is used.
        if new.ndr() || new.amro() {
            self.raise(ControllerEvent::RELIABILITY);
        }
        if new.ascbt() {
            self.raise(ControllerEvent::SPARE);
        }
        let group_wanted = group_warnings & group_enabled;
        let group_new = group_wanted & !self.async_events.group_announced;
        self.async_events.group_announced = group_wanted;
        if group_new != 0 {
            self.async_events.group_event = true;
            if configuration.egealcn() {
                self.raise(ControllerEvent::ENDURANCE_GROUP_CHANGED);
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
        assert!(!events.raise(ControllerEvent::TEMPERATURE));
        events.requests.extend([7, 8]);
        assert!(events.deliver());
        let completions = events.take_completions();
        // SMART / Health status, temperature threshold, log page 02h.
        assert_eq!((completions.len(), completions[0].cid, completions[0].reply.result), (1, 7, 0x0002_0101));

        assert!(!events.raise(ControllerEvent::RELIABILITY), "the type is masked");
        assert!(events.raise(ControllerEvent::NAMESPACE_CHANGED), "another type is not");
        assert_eq!(events.take_completions()[0].reply.result, 0x0004_0002);

        events.requests.push_back(9);
        assert!(!events.read(LogId::SmartHealth), "reading clears what waited too");
        assert!(events.raise(ControllerEvent::RELIABILITY));
        let completions = events.take_completions();
        assert_eq!((completions[0].cid, completions[0].reply.result), (9, 0x0002_0001));
    }

    #[test]
    fn reading_one_log_lets_another_event_of_the_type_out() {
        let mut events = AsyncEvents::default();
        events.requests.extend([1, 2]);
        assert!(events.raise(ControllerEvent::NAMESPACE_CHANGED));
        assert_eq!(events.take_completions().len(), 1);
        assert!(!events.raise(ControllerEvent::ENDURANCE_GROUP_CHANGED));
        assert!(!events.raise(ControllerEvent::ENDURANCE_GROUP_CHANGED));
        assert!(events.read(LogId::ChangedAttachedNamespaceList));
        assert_eq!(events.take_completions()[0].reply.result, 0x000f_0602);
        assert!(events.waiting.is_empty());
    }
}
