//! The answer: drives needed by each policy, and the factors behind the numbers.

use std::collections::BTreeMap;

use analysis::interval::MATTERS;
use base::HumanBytes;
use report::rows::{CellValue, ReportTable};
use serde::Serialize;

use super::question::{KvCachePlan, LMCACHE_TOKENS, PromptReuse};

/// Policies that differ only in the placement.
pub(super) const LRU: &str = "least recently used";
pub(super) const LRU_FDP: &str = "least recently used, FDP";

/// Results of a policy on one of a number of drives.
#[derive(Clone, Debug, Serialize)]
pub struct KvCacheRow {
    pub policy: String,
    pub drives: u32,
    /// Tokens of all prompts, of all drives.
    pub prompt_tokens_per_second: f64,
    /// Share of the requested chunks that the tier has.
    pub hit_ratio: f64,
    /// Of one drive.
    pub bytes_read_per_second: f64,
    /// Of one drive.
    pub bytes_written_per_second: f64,
    pub drive_writes_per_day: f64,
    pub write_amplification: f64,
    /// Interval of the write amplification over the device's ensemble: low, high.
    pub interval: Option<[f64; 2]>,
    /// Years until the flash reaches its rated erases.
    pub years: f64,
    /// `years` at the ends of `interval`.
    pub years_interval: Option<[f64; 2]>,
    pub is_steady: bool,
}

/// Drives that a policy needs.
#[derive(Clone, Debug, Serialize)]
pub struct KvCacheNeed {
    pub policy: String,
    pub drives: u32,
    /// Bottleneck with fewer drives: `reads`, `writes` or `life`, or `none` for one drive. Of a given
    /// number of drives it is what they do not suffice for.
    pub limit: &'static str,
}

/// An assumption of the plan.
#[derive(Clone, Debug, Serialize)]
pub struct KvCacheFactor {
    pub name: String,
    pub value: String,
    pub source: String,
}

/// Answer to a [`super::KvCacheQuestion`].
#[derive(Clone, Debug, Serialize)]
pub struct KvCacheAnswer {
    pub headline: String,
    pub needs: Vec<KvCacheNeed>,
    /// All runs, by the number of drives.
    pub rows: Vec<KvCacheRow>,
    pub factors: Vec<KvCacheFactor>,
    pub notes: Vec<String>,
    /// Index of the best policy in `needs`.
    #[serde(skip)]
    best: usize,
}

impl KvCacheAnswer {
    pub(super) fn new(plan: &KvCachePlan, needs: Vec<KvCacheNeed>, rows: BTreeMap<u32, Vec<KvCacheRow>>) -> Self {
        let rows: Vec<KvCacheRow> = rows.into_values().flatten().collect();
        let mut answer =
            KvCacheAnswer { headline: String::new(), needs, rows, factors: factors(plan), notes: notes(plan), best: 0 };
        answer.best = answer.find_best(plan.question.drives.is_some());
        answer.headline = answer.sentence(plan);
        answer.notes.extend(answer.fdp_sentence());
        if answer.needs.iter().any(|need| !answer.row(need).is_steady) {
            answer.notes.push("A run was not steady after 20 drive writes, so its WAF is uncertain.".to_string());
        }
        answer
    }

    /// The policy with the fewest drives, and among them that with the highest hit ratio. With a given
    /// number of drives, the policy whose drives last longest.
    pub fn best(&self) -> &KvCacheNeed {
        &self.needs[self.best]
    }

    fn find_best(&self, is_given: bool) -> usize {
        let merit = |need: &KvCacheNeed| if is_given { self.row(need).years } else { self.row(need).hit_ratio };
        let order = |one: &usize, other: &usize| {
            let [one, other] = [one, other].map(|index| &self.needs[*index]);
            one.drives.cmp(&other.drives).then(merit(other).total_cmp(&merit(one)))
        };
        (0..self.needs.len()).min_by(order).expect("there is a policy")
    }

    pub(super) fn best_row_mut(&mut self) -> &mut KvCacheRow {
        let best = self.best().clone();
        let mut rows = self.rows.iter_mut();
        rows.find(|row| (&row.policy, row.drives) == (&best.policy, best.drives)).expect("each need has a row")
    }

    /// Row of the drives that a policy needs.
    pub fn row(&self, need: &KvCacheNeed) -> &KvCacheRow {
        let mut rows = self.rows.iter();
        rows.find(|row| (&row.policy, row.drives) == (&need.policy, need.drives)).expect("each need has a row")
    }

    fn sentence(&self, plan: &KvCachePlan) -> String {
        let question = &plan.question;
        let (model, rate, years) = (&question.model.name, question.requests_per_second, question.years);
        let best = self.row(self.best());
        if let Some(drives) = question.drives {
            let place = format!("{model} at {rate} requests/s on {drives} {}", question.device);
            return match self.best().limit {
                limit @ ("reads" | "writes") => format!("{place}: too few for the {limit}."),
                _ => format!("{place}: at most {:.1} years, with slots overwritten {}.", best.years, best.policy),
            };
        }
        let most = self.needs.iter().max_by_key(|need| need.drives).expect("there is a policy");
        let other = match most.drives > best.drives {
            true => format!(" With slots overwritten {} it needs {}.", most.policy, most.drives),
            false => String::new(),
        };
        format!(
            "{model} at {rate} requests/s needs {} x {} for {years} years, with slots overwritten {}.{other}",
            best.drives, question.device, best.policy
        )
    }

    /// Effect of handles on the policy in the order of use.
    fn fdp_sentence(&self) -> Option<String> {
        let [without, with] = [LRU, LRU_FDP].map(|name| {
            let need = self.needs.iter().find(|need| need.policy == name);
            need.map(|need| self.row(need))
        });
        let (without, with) = (without?, with?);
        let saved = 1.0 - with.write_amplification / without.write_amplification;
        Some(match saved.abs() < MATTERS {
            true => format!("FDP changes nothing: WAF is {:.3} without it.", without.write_amplification),
            false => format!("FDP changes the bytes of flash by {:+.0} %.", -100.0 * saved),
        })
    }

    /// Drives and results of each policy as a table.
    pub fn table(&self) -> ReportTable {
        let rows = ReportTable::default().labels(["slots overwritten"]);
        let rows = rows.numbers("", ["drives", "hits", "read/s", "written/s", "DWPD", "WAF", "years"]);
        let mut rows = rows.texts(["limit"]);
        for need in &self.needs {
            let row = self.row(need);
            let waf = row.interval.map(|interval| CellValue::Interval(row.write_amplification, interval));
            let years = row.years_interval.map(|[low, high]| format!(" ({low:.1}-{high:.1})")).unwrap_or_default();
            rows.add([
                CellValue::Text(row.policy.clone()),
                CellValue::Count(row.drives.into()),
                CellValue::Share(row.hit_ratio),
                CellValue::Bytes(row.bytes_read_per_second as u64),
                CellValue::Bytes(row.bytes_written_per_second as u64),
                CellValue::Text(format!("{:.2}", row.drive_writes_per_day)),
                waf.unwrap_or(CellValue::Amplification(row.write_amplification)),
                CellValue::Text(if row.years > 100.0 {
                    "over 100".to_string()
                } else {
                    format!("{:.1}{years}", row.years)
                }),
                CellValue::Text(need.limit.to_string()),
            ]);
        }
        rows
    }
}

fn factors(plan: &KvCachePlan) -> Vec<KvCacheFactor> {
    let question = &plan.question;
    let factor = |name: &str, value: String, source: &str| KvCacheFactor {
        name: name.to_string(),
        value,
        source: source.to_string(),
    };
    let bytes = |bytes: f64| HumanBytes(bytes as u64).to_string();
    let reuse = match (&question.reuse, &plan.trace) {
        (PromptReuse::Trace(file), Some(trace)) => {
            let value = format!("{} requests in {:.0} s", trace.requests, trace.seconds);
            factor("reuse", value, &file.display().to_string())
        }
        (reuse, _) => {
            let source = format!("assumed: `{}` of kvcache_tier (docs/reference/workloads.md)", reuse.kind());
            let [turn, prompt] = reuse.tokens();
            let seconds = reuse.think_seconds();
            let value = format!("{turn} new tokens each {seconds} s, after a first prompt of {prompt} tokens");
            factor("reuse, a session", value, &source)
        }
    };
    let chunk = match plan.trace {
        Some(_) => "Mooncake's traces",
        None if question.chunk_tokens == LMCACHE_TOKENS => "LMCache's default (--chunk-tokens)",
        None => "--chunk-tokens",
    };
    let admission = match question.admit_second_request {
        true => "at the second request".to_string(),
        false => format!("{} %", question.admit_percent),
    };
    let rated = plan.config.endurance.as_ref().map_or(0, |endurance| endurance.rated_erases);
    let mut factors = vec![
        factor("keys and values of a token", bytes(question.model.token_bytes as f64), &question.model.source),
        factor("chunk", format!("{} tokens, {}", question.chunk_tokens(), bytes(plan.chunk_bytes())), chunk),
        reuse,
        factor("missed chunks that are written", admission, "--admit, --admit-second-request"),
        factor("servers that share a drive", question.servers.to_string(), "--servers"),
        factor("hits in memory above the tier", format!("{} %", question.memory_hits * 100.0), "--memory-hits"),
        factor("part of the drive for the tier", format!("{} %", question.used_percent), "--used"),
        factor("erases that a block lasts", rated.to_string(), &format!("profile {}", question.device)),
        factor("flash of a drive", bytes(plan.wear.physical_bytes as f64), &format!("profile {}", question.device)),
    ];
    if let Some(speed) = plan.speed {
        let source = |part: &str| format!("{part} of profile {}", question.device);
        factors.push(factor("bytes per second over the link at most", bytes(speed.link), &source("link")));
        factors.push(factor("bytes per second to the flash at most", bytes(speed.programs), &source("dies")));
    }
    factors
}

fn notes(plan: &KvCachePlan) -> Vec<String> {
    let mut notes = vec![
        format!(
            "One drive was simulated, as a scaled model of {} (`--scale`). Sessions are divided over the drives.",
            plan.scale
        ),
        "Hits and bytes are those of one drive with a full tier. WAF is that of the steady state.".to_string(),
    ];
    if plan.question.servers > 1 {
        notes.push("FDP: each server that shares a drive writes through a handle of its own.".to_string());
    } else {
        notes.push("One server writes to a drive, so there is nothing for FDP to separate (`--servers`).".to_string());
    }
    if plan.speed.is_none() {
        notes.push("The profile has no timing, so the speed of reads and writes is not checked.".to_string());
    }
    notes
}
