//! Notices of `warp drive advise` about a reading: missing events and the remedy.

use std::fmt;
use std::time::Duration;

use base::HumanBytes;
use initiator::inspect::file_map::UnownedCounts;
use serde::ser::{Serialize, SerializeStruct, Serializer};

/// Notice about a reading, with a text for people and a name for programs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// Events between two readings are lost.
    LogWrapped {
        every: Duration,
    },
    LogCleared,
    /// Placement handles without the Media Reallocated event.
    EventNotEnabled {
        handles: Vec<u16>,
        of: u16,
        device: String,
        nsid: u32,
    },
    /// The drive copies data and reports no event, although the event is enabled.
    NothingReported {
        copied_bytes: u64,
    },
    WithoutBlock {
        events: usize,
        of: usize,
    },
    /// Events whose logical block has no owner.
    WithoutOwner {
        events: usize,
        of: usize,
    },
    /// The connection was lost and re-established.
    Reconnected {
        attempts: usize,
    },
    HookFailed {
        owner: String,
        problem: String,
    },
    /// Parts of a directory without an owner.
    Omissions(UnownedCounts),
    /// Files that appeared after the start.
    NewOwners {
        left_out: usize,
    },
    /// The namespace has a single placement identifier, so data cannot move.
    OneIdentifier,
}

impl Notice {
    fn kind(&self) -> &'static str {
        match self {
            Notice::LogWrapped { .. } => "log_wrapped",
            Notice::LogCleared => "log_cleared",
            Notice::EventNotEnabled { .. } => "event_not_enabled",
            Notice::NothingReported { .. } => "nothing_reported",
            Notice::WithoutBlock { .. } => "events_without_block",
            Notice::WithoutOwner { .. } => "events_without_owner",
            Notice::Reconnected { .. } => "reconnected",
            Notice::HookFailed { .. } => "hook_failed",
            Notice::Omissions(_) => "passed_over",
            Notice::NewOwners { .. } => "new_owners",
            Notice::OneIdentifier => "one_identifier",
        }
    }
}

impl fmt::Display for Notice {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Notice::LogWrapped { every } => write!(
                formatter,
                "events were lost, because the log wrapped since the last reading. Use an interval shorter than {} \
                 s (--every)",
                every.as_secs_f64()
            ),
            Notice::LogCleared => formatter.write_str("the log was cleared since the last reading"),
            Notice::EventNotEnabled { handles, of, device, nsid } => {
                not_enabled(formatter, handles, *of, device, *nsid)
            }
            Notice::NothingReported { copied_bytes } => write!(
                formatter,
                "the drive copied {} since the last reading and reported no event of this namespace",
                HumanBytes(*copied_bytes)
            ),
            Notice::WithoutBlock { events, of } => write!(
                formatter,
                "{events} of {of} new events do not name the logical block that was moved, so their owner is unknown"
            ),
            Notice::WithoutOwner { events, of } => write!(
                formatter,
                "{events} of {of} new events name logical blocks without an owner. Extend the owner map"
            ),
            Notice::Reconnected { attempts } => write!(
                formatter,
                "the connection was lost and reestablished after {attempts} attempt{}",
                if *attempts == 1 { "" } else { "s" }
            ),
            Notice::HookFailed { owner, problem } => {
                write!(formatter, "{owner} was not moved, because {problem}")
            }
            Notice::Omissions(parts) => omissions(formatter, *parts),
            Notice::NewOwners { left_out } => write!(
                formatter,
                "{left_out} new owners are ignored, because they appeared after the start. Restart the command, or \
                 use fewer owners (--depth)"
            ),
            Notice::OneIdentifier => formatter.write_str(
                "the namespace has only one placement identifier, so data cannot move. Create the namespace with \
                 more placement handles",
            ),
        }
    }
}

fn not_enabled(formatter: &mut fmt::Formatter<'_>, handles: &[u16], of: u16, device: &str, nsid: u32) -> fmt::Result {
    if handles.len() == usize::from(of) {
        formatter.write_str(
            "the drive reports no garbage collections, because the event Media Reallocated is not \
                             enabled. ",
        )?;
    } else {
        let listed: Vec<String> = handles.iter().map(u16::to_string).collect();
        write!(
            formatter,
            "the event Media Reallocated is not enabled for placement handle{} {}, so the drive never reports data \
             written with {}. ",
            if listed.len() == 1 { "" } else { "s" },
            listed.join(", "),
            if listed.len() == 1 { "it" } else { "them" }
        )?;
    }

    write!(
        formatter,
        "Enable it for each placement handle with nvme fdp set-events {device} --namespace-id={nsid} \
         --placement-handle={} --event-types=128 --enable",
        handles[0]
    )
}

fn omissions(formatter: &mut fmt::Formatter<'_>, parts: UnownedCounts) -> fmt::Result {
    let all = [
        (parts.unreadable, "files or directories without read permission"),
        (parts.elsewhere, "files or directories on other file systems"),
        (parts.without_place, "extents of unknown location (delayed, compressed, encrypted, inline)"),
        (parts.shared, "extents shared by several files"),
    ];
    let found: Vec<String> =
        all.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}")).collect();
    write!(formatter, "these have no owner: {}", found.join(", "))
}

impl Serialize for Notice {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = serializer.serialize_struct("Notice", 2)?;
        object.serialize_field("kind", self.kind())?;
        object.serialize_field("text", &self.to_string())?;
        object.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_name_what_to_do() {
        let notice = |handles: &[u16]| {
            Notice::EventNotEnabled { handles: handles.to_vec(), of: 2, device: "/dev/nvme0n1".to_string(), nsid: 1 }
                .to_string()
        };
        assert!(notice(&[0, 1]).starts_with("the drive reports no garbage collections"));
        assert!(notice(&[1]).starts_with("the event Media Reallocated is not enabled for placement handle 1,"));
        assert!(notice(&[1]).ends_with(
            "nvme fdp set-events /dev/nvme0n1 --namespace-id=1 --placement-handle=1 --event-types=128 --enable"
        ));
        let parts = UnownedCounts { shared: 2, unreadable: 1, ..UnownedCounts::default() };
        assert_eq!(
            Notice::Omissions(parts).to_string(),
            "these have no owner: 1 files or directories without read permission, 2 extents shared by several files"
        );
        let json = serde_json::to_string(&Notice::LogCleared).expect("JSON");
        assert_eq!(json, r#"{"kind":"log_cleared","text":"the log was cleared since the last reading"}"#);
    }
}
