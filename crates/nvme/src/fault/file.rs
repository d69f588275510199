//! Parser for fault plans in TOML. Each error is one sentence with line and remedy.

use nvme_spec::{IoOpcode, Status};
use serde::Deserialize;
use thiserror::Error;
use toml::Spanned;

use super::{DelayDistribution, FAULTS_MAX, FaultAction, FaultFilter, FaultPlan, FaultRule, FaultTrigger, STUCK_MAX};
use crate::setup::NAMESPACES_MAX;

const PLAN_BYTES_MAX: usize = 64 << 10;
/// Default for the unflushed bytes that a power loss can destroy.
const WRITE_CACHE_BYTES: u64 = 16 << 20;
/// Upper bound of that value, because the old data is kept in memory.
const WRITE_CACHE_BYTES_MAX: u64 = 1 << 30;
const SURVIVORS: f64 = 0.5;
/// Longest delay, and longest other time.
const DELAY_MS_MAX: f64 = 3_600_000.0;
const SECONDS_MAX: f64 = 31_536_000.0;
/// Default bound of an exponential delay, in multiples of the mean.
const MEANS_MAX: f64 = 100.0;
const NAME_CHARACTERS_MAX: usize = 64;

/// Error of an invalid plan.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("line {line}: {problem}")]
pub struct PlanError {
    /// Line number, from 1.
    pub line: usize,
    /// Problem and remedy.
    pub problem: String,
}

const COMMANDS: [(&str, IoOpcode); 11] = [
    ("flush", IoOpcode::Flush),
    ("write", IoOpcode::Write),
    ("read", IoOpcode::Read),
    ("write_uncorrectable", IoOpcode::WriteUncorrectable),
    ("compare", IoOpcode::Compare),
    ("write_zeroes", IoOpcode::WriteZeroes),
    ("dataset_management", IoOpcode::DatasetManagement),
    ("verify", IoOpcode::Verify),
    ("copy", IoOpcode::Copy),
    ("io_management_receive", IoOpcode::IoManagementReceive),
    ("io_management_send", IoOpcode::IoManagementSend),
];

/// Kinds that strike single commands, and kinds that are states of the drive.
const STRIKES: [&str; 4] = ["error", "delay", "stuck", "power_loss"];
const STATES: [&str; 6] = ["read_only", "degraded", "spare", "temperature", "lost_namespace", "event_overflow"];

const STATUSES: [(&str, Status); 8] = [
    ("unrecovered_read_error", Status::UNRECOVERED_READ_ERROR),
    ("write_fault", Status::WRITE_FAULT),
    ("internal_error", Status::INTERNAL_ERROR),
    ("data_transfer_error", Status::DATA_TRANSFER_ERROR),
    ("namespace_not_ready", Status::NAMESPACE_NOT_READY),
    ("capacity_exceeded", Status::CAPACITY_EXCEEDED),
    ("access_denied", Status::ACCESS_DENIED),
    ("command_interrupted", Status::COMMAND_INTERRUPTED),
];

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FaultPlanFile {
    #[serde(default)]
    seed: u64,
    write_cache_bytes: Option<Spanned<u64>>,
    survivors: Option<Spanned<f64>>,
    #[serde(default)]
    fault: Vec<Spanned<FaultText>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum DelayText {
    Constant,
    Uniform,
    Exponential,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct BlocksText {
    first: u64,
    count: u64,
}

/// All keys of a fault. Later checks reject invalid combinations.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FaultText {
    kind: String,
    name: Option<String>,
    from_command: Option<u64>,
    from_seconds: Option<f64>,
    for_commands: Option<u64>,
    for_seconds: Option<f64>,
    every: Option<u64>,
    probability: Option<f64>,
    times: Option<u64>,
    commands: Option<Vec<String>>,
    namespace: Option<u32>,
    blocks: Option<BlocksText>,
    status: Option<String>,
    delay_ms: Option<f64>,
    delay_ms_max: Option<f64>,
    distribution: Option<DelayText>,
    percent: Option<u8>,
    celsius: Option<i16>,
}

fn line_of(text: &str, at: usize) -> usize {
    1 + text.as_bytes()[..at.min(text.len())].iter().filter(|&&byte| byte == b'\n').count()
}

impl FaultPlan {
    /// Parses a plan.
    ///
    /// # Errors
    /// The text is not TOML, or a value is invalid. The error names the line, the value and the
    /// remedy.
    pub fn parse(text: &str) -> Result<FaultPlan, PlanError> {
        let at = |byte: usize| {
            let line = line_of(text, byte);
            move |problem: String| PlanError { line, problem }
        };
        if text.len() > PLAN_BYTES_MAX {
            let problem = format!("the plan has {} bytes, but the maximum is {PLAN_BYTES_MAX}. Shorten it", text.len());
            return Err(at(PLAN_BYTES_MAX)(problem));
        }
        let plan: FaultPlanFile = toml::from_str(text).map_err(|error| {
            let start = error.span().map_or(0, |span| span.start);
            at(start)(base::hinted(&error.message().replace('\n', ", ")))
        })?;
        if plan.fault.len() > FAULTS_MAX {
            let problem =
                format!("the plan has {} faults, but the maximum is {FAULTS_MAX}. Remove some", plan.fault.len());
            return Err(at(plan.fault[FAULTS_MAX].span().start)(problem));
        }
        let bounded = |value: Option<Spanned<u64>>| match value {
            None => Ok(WRITE_CACHE_BYTES),
            Some(value) if (4096..=WRITE_CACHE_BYTES_MAX).contains(value.get_ref()) => Ok(value.into_inner()),
            Some(value) => Err(at(value.span().start)(format!(
                "write_cache_bytes is {}. Give a value from 4096 to {WRITE_CACHE_BYTES_MAX}",
                value.get_ref()
            ))),
        };
        let survivors = match plan.survivors {
            None => SURVIVORS,
            Some(share) if (0.0..=1.0).contains(share.get_ref()) => share.into_inner(),
            Some(share) => {
                let problem = format!("survivors is {}. Give a probability from 0 to 1", share.get_ref());
                return Err(at(share.span().start)(problem));
            }
        };
        let faults: Vec<FaultRule> = (1..)
            .zip(plan.fault)
            .map(|(number, fault)| {
                let located = at(fault.span().start);
                let fault = fault.into_inner();
                let parsed = fault.parsed(number);
                parsed.map_err(|problem| located(format!("in fault {number} ({:?}), {problem}", fault.kind)))
            })
            .collect::<Result<_, PlanError>>()?;
        let stuck: u64 = faults
            .iter()
            .filter(|fault| fault.action == FaultAction::Stuck)
            .filter_map(|fault| fault.trigger.times)
            .fold(0, u64::saturating_add);
        if stuck > STUCK_MAX {
            let problem = format!(
                "the plan makes {stuck} commands stuck, but the maximum is {STUCK_MAX}. Reduce their \"times\""
            );
            return Err(at(0)(problem));
        }
        Ok(FaultPlan { seed: plan.seed, write_cache_bytes: bounded(plan.write_cache_bytes)?, survivors, faults })
    }
}

impl FaultText {
    fn parsed(&self, number: u64) -> Result<FaultRule, String> {
        self.check_keys()?;
        let name = self.name.clone().unwrap_or_else(|| format!("{} {number}", self.kind));
        let is_printable = name.chars().all(|character| !character.is_control());
        if name.is_empty() || name.chars().count() > NAME_CHARACTERS_MAX || !is_printable {
            return Err(format!("the name is not valid. Give 1 to {NAME_CHARACTERS_MAX} printable characters"));
        }
        let (trigger, filter, action) = (self.trigger()?, self.filter()?, self.action()?);
        Ok(FaultRule { name, kind: self.kind.clone(), trigger, filter, action })
    }

    fn check_keys(&self) -> Result<(), String> {
        let kind = self.kind.as_str();
        if !STRIKES.contains(&kind) && !STATES.contains(&kind) {
            let kinds = [&STRIKES[..], &STATES[..]].concat().join(", ");
            return Err(format!("the kind is unknown. Give one of {kinds}"));
        }
        let strikes = STRIKES.contains(&kind);
        let keys = [
            ("every", self.every.is_some(), strikes),
            ("probability", self.probability.is_some(), strikes),
            ("times", self.times.is_some(), strikes),
            ("commands", self.commands.is_some(), strikes),
            ("blocks", self.blocks.is_some(), strikes),
            ("namespace", self.namespace.is_some(), strikes || kind == "lost_namespace"),
            ("status", self.status.is_some(), kind == "error"),
            ("delay_ms", self.delay_ms.is_some(), kind == "delay"),
            ("delay_ms_max", self.delay_ms_max.is_some(), kind == "delay"),
            ("distribution", self.distribution.is_some(), kind == "delay"),
            ("percent", self.percent.is_some(), kind == "spare"),
            ("celsius", self.celsius.is_some(), kind == "temperature"),
        ];
        match keys.iter().find(|(_, given, has_meaning)| *given && !has_meaning) {
            None => Ok(()),
            Some((key, ..)) => Err(format!("{key:?} has no meaning for this kind. Remove it")),
        }
    }

    fn trigger(&self) -> Result<FaultTrigger, String> {
        let ns = |name: &str, seconds: Option<f64>| match seconds {
            None => Ok(None),
            Some(seconds) if (0.0..=SECONDS_MAX).contains(&seconds) => Ok(Some((seconds * 1e9) as u64)),
            Some(seconds) => Err(format!("{name} is {seconds}. Give 0 to {SECONDS_MAX} seconds")),
        };
        let at_least_one = |name: &str, count: Option<u64>| match count {
            Some(0) => Err(format!("{name} is 0. Give 1 or more")),
            count => Ok(count),
        };
        let probability = self.probability.unwrap_or(1.0);
        if !(0.0..=1.0).contains(&probability) {
            return Err(format!("probability is {probability}. Give a value from 0 to 1"));
        }
        let once = matches!(self.kind.as_str(), "stuck" | "power_loss").then_some(1);
        Ok(FaultTrigger {
            from_command: at_least_one("from_command", self.from_command)?.unwrap_or(0),
            from_ns: ns("from_seconds", self.from_seconds)?.unwrap_or(0),
            for_commands: at_least_one("for_commands", self.for_commands)?,
            for_ns: ns("for_seconds", self.for_seconds)?,
            every: at_least_one("every", self.every)?.unwrap_or(1),
            probability,
            times: at_least_one("times", self.times)?.or(once),
        })
    }

    fn filter(&self) -> Result<FaultFilter, String> {
        let opcodes = self.commands.iter().flatten();
        let opcodes = opcodes.map(|name| named("commands", name, &COMMANDS)).collect::<Result<_, _>>()?;
        if let Some(nsid) = self.namespace
            && !(1..=NAMESPACES_MAX).contains(&nsid)
        {
            return Err(format!("namespace is {nsid}. Give a value from 1 to {NAMESPACES_MAX}"));
        }
        let blocks = match &self.blocks {
            None => None,
            Some(BlocksText { count: 0, .. }) => return Err("blocks has count 0. Give 1 or more".to_string()),
            Some(BlocksText { first, count }) => Some(*first..=first.saturating_add(count - 1)),
        };
        Ok(FaultFilter { opcodes, nsid: self.namespace, blocks })
    }

    fn action(&self) -> Result<FaultAction, String> {
        Ok(match self.kind.as_str() {
            "error" => {
                FaultAction::Error(self.status.as_ref().map(|name| named("status", name, &STATUSES)).transpose()?)
            }
            "delay" => FaultAction::Delay(self.duration()?),
            "stuck" => FaultAction::Stuck,
            "power_loss" => FaultAction::PowerLoss,
            "read_only" => FaultAction::ReadOnly,
            "degraded" => FaultAction::Degraded,
            "spare" => match self.percent {
                Some(percent @ 0..=100) => FaultAction::Spare { percent },
                _ => {
                    let problem = "the remaining spare is missing or out of range. Give 0 to 100, such as percent = 5";
                    return Err(problem.to_string());
                }
            },
            "temperature" => match self.celsius {
                Some(celsius @ -60..=150) => FaultAction::Temperature { kelvins: (celsius + 273) as u16 },
                _ => {
                    let problem = "the temperature is missing or out of range. Give -60 to 150, such as celsius = 95";
                    return Err(problem.to_string());
                }
            },
            "lost_namespace" => FaultAction::LostNamespace {
                nsid: self.namespace.ok_or("the lost namespace is missing. Give it, for example namespace = 1")?,
            },
            "event_overflow" => FaultAction::EventOverflow,
            other => unreachable!("check_keys accepts only known kinds, not {other:?}"),
        })
    }

    fn duration(&self) -> Result<DelayDistribution, String> {
        let in_ns = |name: &str, ms: f64| {
            let is_possible = (0.0..=DELAY_MS_MAX).contains(&ms);
            is_possible
                .then_some((ms * 1e6) as u64)
                .ok_or_else(|| format!("{name} is {ms}. Give a value from 0 to {DELAY_MS_MAX}"))
        };
        let ms = self.delay_ms.ok_or("the delay is missing. Give it, for example delay_ms = 20")?;
        let ns = in_ns("delay_ms", ms)?;
        let max = self.delay_ms_max.map(|max| in_ns("delay_ms_max", max)).transpose()?;
        if max.is_some_and(|max| max < ns) {
            return Err(format!("delay_ms_max is less than delay_ms, which is {ms}. Increase it"));
        }
        Ok(match (self.distribution.as_ref(), max) {
            (None | Some(DelayText::Constant), None) => DelayDistribution::Constant(ns),
            (None | Some(DelayText::Uniform), Some(max)) => DelayDistribution::Uniform(ns, max),
            (Some(DelayText::Exponential), max) => DelayDistribution::Exponential {
                mean: ns,
                max: max.unwrap_or((ms.min(DELAY_MS_MAX / MEANS_MAX) * MEANS_MAX * 1e6) as u64),
            },
            (Some(DelayText::Uniform), None) => {
                return Err("the longest delay is missing. Give it, for example delay_ms_max = 50".to_string());
            }
            (Some(DelayText::Constant), Some(_)) => {
                return Err("a constant delay has no delay_ms_max. Remove it".to_string());
            }
        })
    }
}

fn named<T: Copy>(key: &str, name: &str, table: &[(&str, T)]) -> Result<T, String> {
    let found = table.iter().find(|(known, _)| *known == name);
    found.map(|(_, value)| *value).ok_or_else(|| {
        let names: Vec<&str> = table.iter().map(|(known, _)| *known).collect();
        format!("{key} has the unknown value {name:?}. Give one of {}", names.join(", "))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_is_one_sentence_with_line_and_remedy() {
        let fault = |line: &str| format!("seed = 1\n\n[[fault]]\n{line}\n");
        let cases = [
            ("seed = -1".to_string(), "line 1: "),
            (fault("kind = \"eror\""), "line 3: in fault 1 (\"eror\"), the kind is unknown. Give one of error, delay,"),
            (fault("kind = \"error\"\nrate = 1"), "line 5: unknown field `rate`"),
            (
                fault("kind = \"delay\""),
                "in fault 1 (\"delay\"), the delay is missing. Give it, for example delay_ms = 20",
            ),
            (
                fault("kind = \"delay\"\ndelay_ms = 9\ndelay_ms_max = 1"),
                "delay_ms_max is less than delay_ms, which is 9. Increase it",
            ),
            (
                fault("kind = \"error\"\ncommands = [\"raed\"]"),
                "commands has the unknown value \"raed\". Give one of flush, write, read,",
            ),
            (
                fault("kind = \"read_only\"\nprobability = 0.5"),
                "in fault 1 (\"read_only\"), \"probability\" has no meaning for this kind. Remove it",
            ),
            (fault("kind = \"error\"\nprobability = 2"), "probability is 2. Give a value from 0 to 1"),
            (fault("kind = \"error\"\nevery = 0"), "every is 0. Give 1 or more"),
            (fault("kind = \"stuck\"\ntimes = 5000"), "the plan makes 5000 commands stuck"),
            (fault("kind = \"spare\"\npercent = 200"), "Give 0 to 100, such as percent = 5"),
            (fault("kind = \"lost_namespace\""), "for example namespace = 1"),
            (fault("kind = \"error\"\nfrom_seconds = nan"), "from_seconds is NaN. Give 0 to"),
            ("write_cache_bytes = 1".to_string(), "write_cache_bytes is 1. Give a value from 4096 to"),
            ("survivors = 1.5".to_string(), "survivors is 1.5. Give a probability"),
            ("[[fault]]\nkind = \"error\"\n".repeat(65), "the plan has 65 faults"),
            ("#".repeat(PLAN_BYTES_MAX + 1), "the maximum is 65536"),
        ];
        for (text, expected) in cases {
            let said = FaultPlan::parse(&text).expect_err(expected).to_string();
            assert!(said.contains(expected) && said.starts_with("line "), "{said}");
            assert!(!said.contains('\n'), "{said}");
        }
    }

    #[test]
    fn a_fault_without_more_strikes_every_command() {
        let plan = FaultPlan::parse("[[fault]]\nkind = \"error\"\n").expect("a plan");
        let expected = FaultRule {
            name: "error 1".to_string(),
            kind: "error".to_string(),
            trigger: FaultTrigger {
                from_command: 0,
                from_ns: 0,
                for_commands: None,
                for_ns: None,
                every: 1,
                probability: 1.0,
                times: None,
            },
            filter: FaultFilter::default(),
            action: FaultAction::Error(None),
        };
        assert_eq!((plan.seed, plan.faults), (0, vec![expected]));
    }
}
