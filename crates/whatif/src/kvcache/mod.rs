//! Plans the drives of a flash tier for keys and values of a language model.
//!
//! ```text
//! model (bytes per token), requests per second, reuse -> KvCacheQuestion
//!   -> kvcache_tier of one drive of N, for several N -> KvCacheRow (hit ratio, bytes, WAF, years)
//!   -> smallest N whose drives last and read fast enough -> KvCacheAnswer
//! ```
//!
//! Sessions are divided over the drives, and each drive is a tier of its own. All drives are equal,
//! so one is simulated. Each row is a run until the write amplification is steady. Hit ratio and
//! bytes count from the moment at which the tier is full.

mod answer;
mod models;
mod question;

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use analysis::interval::Intervals;
use experiment::{Experiment, LabError, RunChange, RunOptions, RunOverrides, ScaleChoice, Variant, WorkloadChoice};
use simulate::run::{self, ProgressObserver, RunResult};
use simulate::steady;
use toml::Table;

use self::answer::{KvCacheNeed, KvCacheRow, LRU, LRU_FDP};
use self::question::DRIVES_MAX;
use crate::DRIVE_WRITES_MAX;
use crate::economics::WearModel;

pub use answer::{KvCacheAnswer, KvCacheFactor};
pub use models::LanguageModel;
pub use question::{KvCachePlan, KvCacheQuestion, PromptReuse};

const SECONDS_OF_DAY: f64 = 86_400.0;

/// Order in which slots are overwritten, and placement of the writes.
struct KvCachePolicy {
    name: &'static str,
    eviction: &'static str,
    placement: &'static str,
}

const POLICIES: [KvCachePolicy; 4] = [
    KvCachePolicy { name: LRU, eviction: "lru", placement: "none" },
    KvCachePolicy { name: LRU_FDP, eviction: "lru", placement: "class" },
    KvCachePolicy { name: "in write order", eviction: "fifo", placement: "none" },
    KvCachePolicy { name: "in write order, FDP", eviction: "fifo", placement: "class" },
];

impl KvCachePlan {
    /// Policies that differ. One server has one handle, which changes nothing.
    fn policies(&self) -> impl Iterator<Item = &'static KvCachePolicy> {
        let has_servers = self.question.servers > 1;
        POLICIES.iter().filter(move |policy| has_servers || policy.placement == "none")
    }

    /// Runs the policies, or one of them with the ensemble, on one of `drives` drives. `None` if the
    /// run was stopped.
    fn run(
        &self,
        drives: u32,
        with_ensemble: Option<&str>,
        watch: &dyn ProgressObserver,
    ) -> Result<Option<(Vec<RunResult>, Intervals)>, LabError> {
        let mut experiment = Experiment::from_workload("kvcache", &self.question.device);
        experiment.workload = Some(WorkloadChoice::Table(self.workload(drives)));
        let variant = |policy: &KvCachePolicy| {
            let settings = [("workload.eviction", policy.eviction), ("workload.placement", policy.placement)];
            let settings: Table = settings.map(|(path, value)| (path.to_string(), value.into())).into_iter().collect();
            Variant { name: policy.name.to_string(), change: RunChange::from_settings(&settings) }
        };
        let is_chosen = |policy: &&KvCachePolicy| with_ensemble.is_none_or(|name| name == policy.name);
        experiment.variants = self.policies().filter(is_chosen).map(variant).collect();
        experiment.run = RunOptions {
            timed: Some(false),
            drive_writes: Some(DRIVE_WRITES_MAX),
            steady_state: Some(true),
            precondition_drive_writes: Some(0.0),
            seeds: Some(vec![self.question.seed]),
            scale: Some(ScaleChoice::Fixed(self.scale)),
            ..RunOptions::default()
        };
        let selection = RunOverrides {
            change: RunChange::from_settings(&self.question.overrides),
            uncertainty: with_ensemble.is_some(),
            ..RunOverrides::default()
        };
        let plans = run::prepare(experiment.select(&selection)?.cells)?;
        let results = run::run_all(&plans, false, run::memory_available(), watch)?;
        Ok((!watch.should_stop()).then(|| Intervals::split(results)))
    }

    /// Reads the row of a policy from its result.
    fn row(&self, drives: u32, result: &RunResult) -> KvCacheRow {
        let measure = |name: &str| {
            let name = format!("full.{name}");
            result.measures.iter().find(|measure| measure.name == name).expect("the tier measures it").value
        };
        let requests = self.question.requests_per_second / f64::from(drives);
        let chunks = |of: f64| of / measure("prompts").max(1.0) * requests * self.chunk_bytes();
        let written = chunks(measure("chunks_written"));
        let hits = measure("hit_ratio") * measure("chunks_requested");
        let drive_writes_per_day = written * SECONDS_OF_DAY / self.wear.capacity_bytes as f64;
        let write_amplification = result.tail_write_amplification(steady::ROUNDS as f64);
        let wear = WearModel { drive_writes_per_day: drive_writes_per_day.max(1e-9), ..self.wear };
        KvCacheRow {
            policy: result.key.variant.clone(),
            drives,
            prompt_tokens_per_second: measure("chunks_requested") / measure("prompts").max(1.0)
                * self.question.requests_per_second
                * f64::from(self.question.chunk_tokens()),
            hit_ratio: measure("hit_ratio"),
            bytes_read_per_second: chunks(hits) * (1.0 - self.question.memory_hits),
            bytes_written_per_second: written,
            drive_writes_per_day,
            write_amplification,
            interval: None,
            years: wear.life(write_amplification, &crate::Factors::default()).years,
            years_interval: None,
            is_steady: result.is_steady(),
        }
    }

    /// Bottleneck of a row, and the factor by which its drives are too few. At most 1 if they suffice.
    fn shortage(&self, row: &KvCacheRow) -> (&'static str, f64) {
        let life = ("life", self.question.years / row.years);
        let Some(speed) = self.speed else { return life };
        let written = row.bytes_written_per_second;
        let reads = ("reads", row.bytes_read_per_second / speed.link);
        let writes = ("writes", (written / speed.link).max(written * row.write_amplification / speed.programs));
        let slowest = if reads.1 > writes.1 { reads } else { writes };
        // The years of given drives are an answer, so their speed comes first.
        let is_given = self.question.drives.is_some();
        if slowest.1 > life.1 || is_given && slowest.1 > 1.0 { slowest } else { life }
    }

    /// Runs the plan. With `uncertainty` it also runs the members of the device's ensemble, for the
    /// policy with the fewest drives. Returns `None` if the run was stopped early.
    ///
    /// # Errors
    /// A run fails, or too many drives are needed.
    pub fn answer(&self, uncertainty: bool, watch: &dyn ProgressObserver) -> Result<Option<KvCacheAnswer>, LabError> {
        let mut rows: BTreeMap<u32, Vec<KvCacheRow>> = BTreeMap::new();
        let names: Vec<&str> = self.policies().map(|policy| policy.name).collect();
        let mut needs = Vec::new();
        for (index, name) in names.iter().enumerate() {
            let mut next = self.question.drives.unwrap_or_else(|| self.first_drives());
            loop {
                if let Entry::Vacant(entry) = rows.entry(next) {
                    let Some((results, _)) = self.run(next, None, watch)? else { return Ok(None) };
                    entry.insert(results.iter().map(|result| self.row(next, result)).collect());
                }
                match self.next_drives(&rows, index)? {
                    Some(drives) if self.question.drives.is_none() => next = drives,
                    _ => break,
                }
            }
            let enough = |(drives, rows): (&u32, &Vec<KvCacheRow>)| {
                (self.question.drives.is_some() || self.shortage(&rows[index]).1 <= 1.0).then_some(*drives)
            };
            let drives = rows.iter().find_map(enough).expect("the search ends with enough drives");
            needs.push(KvCacheNeed { policy: (*name).to_string(), drives, limit: self.limit(&rows, index, drives) });
        }
        let mut answer = KvCacheAnswer::new(self, needs, rows);
        let best = answer.best().clone();
        if uncertainty && self.has_ensemble {
            let Some((results, intervals)) = self.run(best.drives, Some(&best.policy), watch)? else { return Ok(None) };
            self.add_interval(&mut answer, &results[0], &intervals);
        }
        Ok(Some(answer))
    }

    /// Number of drives to run next for a policy. `None` if the smallest that suffices is known.
    fn next_drives(&self, rows: &BTreeMap<u32, Vec<KvCacheRow>>, index: usize) -> Result<Option<u32>, LabError> {
        let shortage = |drives: &u32| self.shortage(&rows[drives][index]).1;
        let high = rows.keys().find(|drives| shortage(drives) <= 1.0).copied();
        let below = rows.range(..high.unwrap_or(u32::MAX)).next_back();
        let low = below.map_or(0, |(drives, _)| *drives);
        let Some(high) = high else {
            if low == DRIVES_MAX {
                let problem = format!("even {DRIVES_MAX} drives are not enough. Lower the requests or the years");
                return Err(LabError::invalid("requests (--requests)", problem));
            }
            let expected = (f64::from(low) * shortage(&low)).ceil().min(f64::from(DRIVES_MAX));
            return Ok(Some((expected as u32).max(low + 1)));
        };
        if high <= low + 1 {
            return Ok(None);
        }
        // The shortage falls a little faster than with the number of drives, as tiers also grow.
        let expected = (f64::from(high) * shortage(&high)).ceil() as u32;
        Ok(Some(expected.clamp(low + 1, high - 1)))
    }

    /// Bottleneck with fewer drives, or with the given number of drives.
    fn limit(&self, rows: &BTreeMap<u32, Vec<KvCacheRow>>, index: usize, drives: u32) -> &'static str {
        let judged = match self.question.drives {
            Some(given) => rows.get(&given),
            None => rows.range(..drives).next_back().map(|(_, row)| row),
        };
        let shortage = judged.map(|rows| self.shortage(&rows[index])).filter(|(_, factor)| *factor > 1.0);
        shortage.map_or("none", |(name, _)| name)
    }

    fn add_interval(&self, answer: &mut KvCacheAnswer, result: &RunResult, intervals: &Intervals) {
        let tail = |result: &RunResult| result.tail_write_amplification(steady::ROUNDS as f64);
        let Some(found) = intervals.of_write_amplification(&result.key, tail(result), tail) else { return };
        let row = answer.best_row_mut();
        row.interval = Some([found.low, found.high]);
        let years = |waf: f64| row.years * row.write_amplification / waf;
        row.years_interval = Some([years(found.high), years(found.low)]);
    }
}

#[cfg(test)]
mod tests {
    use experiment::{Profile, Scale, SettingOverrides};

    use super::*;

    fn question(requests_per_second: f64, reuse: PromptReuse, drives: Option<u32>) -> KvCacheQuestion {
        KvCacheQuestion {
            model: LanguageModel::find("llama3-70b", 16).expect("a known model"),
            requests_per_second,
            reuse,
            device: "pm9d3a".to_string(),
            drives,
            years: 5.0,
            chunk_tokens: 256,
            servers: 2,
            used_percent: 90.0,
            admit_percent: 100.0,
            admit_second_request: false,
            write_bytes: 128 << 10,
            memory_hits: 0.0,
            overrides: SettingOverrides::new(),
            // Smaller than the default, for speed. A slot keeps a mapping unit.
            scale: Some(Scale(6144)),
            seed: 1,
        }
    }

    fn answer(question: KvCacheQuestion) -> KvCacheAnswer {
        let plan = question.plan().unwrap_or_else(|error| panic!("{error}"));
        plan.answer(false, &()).expect("it runs").expect("nobody stops it")
    }

    /// One more drive than too few: the plan checks both sides.
    #[test]
    fn the_plan_is_the_smallest_number_of_drives_that_lasts() {
        let answer = answer(question(12.0, PromptReuse::Chat, None));
        for need in &answer.needs {
            let row = answer.row(need);
            assert!(row.years >= 5.0, "{row:?}");
            let fewer = answer.rows.iter().find(|row| row.policy == need.policy && row.drives + 1 == need.drives);
            assert!(fewer.expect("one drive less was run").years < 5.0, "{}: {need:?}", answer.headline);
            // Life: rated erases of all flash, by the bytes that reach it.
            let written = row.bytes_written_per_second * SECONDS_OF_DAY * 365.0 * row.years * row.write_amplification;
            let device = Profile::find("pm9d3a").expect("it is built in").config(&Table::new()).expect("a device");
            let layout = ssd::DeviceLayout::new(&device).expect("a layout");
            let flash = 7000.0 * f64::from(layout.physical_pages) * layout.page_bytes as f64;
            assert!((written / flash - 1.0).abs() < 1e-6, "{written} bytes wear out {flash}");
        }
        assert!(answer.headline.contains("pm9d3a for 5 years"), "{}", answer.headline);
    }

    #[test]
    fn a_chunk_is_written_less_often_at_its_second_request() {
        let all = answer(question(6.0, PromptReuse::Chat, Some(1)));
        let second = KvCacheQuestion { admit_second_request: true, ..question(6.0, PromptReuse::Chat, Some(1)) };
        let second = answer(second);
        let written = |answer: &KvCacheAnswer| answer.row(answer.best()).bytes_written_per_second;
        assert!(written(&second) < 0.95 * written(&all), "{} of {}", written(&second), written(&all));
    }

    /// Sessions are independent: four times the requests on four drives are the same for each drive.
    #[test]
    fn a_trace_scales_with_the_requests() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("requests.jsonl");
        // Ten requests a second, of which each second one repeats the chunks of an earlier one.
        let line = |number: u64| {
            let first = if number % 2 == 1 { number.saturating_sub(41) / 2 * 100 } else { number / 2 * 100 };
            let ids: Vec<String> = (first..first + 20).map(|id| id.to_string()).collect();
            format!("{{\"timestamp\": {}, \"hash_ids\": [{}]}}\n", number * 100, ids.join(", "))
        };
        std::fs::write(&file, (0..4000).map(line).collect::<String>()).expect("a file");
        let row = |requests: f64, drives: u32| {
            let asked =
                KvCacheQuestion { servers: 1, ..question(requests, PromptReuse::Trace(file.clone()), Some(drives)) };
            let answer = answer(asked);
            answer.row(answer.best()).clone()
        };
        let (one, four) = (row(10.0, 1), row(40.0, 4));
        assert!((one.hit_ratio - 0.5).abs() < 0.02, "half of the requests repeat: {}", one.hit_ratio);
        assert_eq!((one.hit_ratio, one.years), (four.hit_ratio, four.years));
        assert!((4.0 * one.prompt_tokens_per_second / four.prompt_tokens_per_second - 1.0).abs() < 1e-9);
        // 10 requests of 20 chunks of 512 tokens, of which half is missed.
        let expected = 10.0 * 20.0 * 512.0 * 327_680.0 * (1.0 - one.hit_ratio);
        assert!((one.bytes_written_per_second / expected - 1.0).abs() < 0.02, "{}", one.bytes_written_per_second);
    }

    /// A chunk is a unit of storage, so its size does not change the tokens of a service.
    #[test]
    fn the_size_of_a_chunk_does_not_change_the_bytes() {
        let written = |chunk_tokens: u32| {
            let answer = answer(KvCacheQuestion { chunk_tokens, ..question(6.0, PromptReuse::Chat, Some(1)) });
            answer.row(answer.best()).bytes_written_per_second
        };
        let [small, usual, large] = [128, 256, 1024].map(written);
        assert!((small / usual - 1.0).abs() < 0.1 && (large / usual - 1.0).abs() < 0.1, "{small} {usual} {large}");
    }

    #[test]
    fn a_drive_that_is_too_slow_is_not_enough() {
        let fast = |memory_hits: f64, drives: Option<u32>| {
            answer(KvCacheQuestion { years: 0.01, memory_hits, ..question(60.0, PromptReuse::Chat, drives) })
        };
        let one = fast(0.0, Some(1));
        assert!(one.headline.contains("too few for the reads"), "{}", one.headline);
        let one = fast(0.999, Some(1));
        assert_eq!(one.best().limit, "writes", "{}", one.headline);
        let enough = fast(0.999, None);
        let need = enough.best();
        assert!(need.drives > 1 && need.limit == "writes", "{need:?}");
        // 64 dies program 48 KiB in 462 us each.
        let flash = 64.0 * 48.0 * 1024.0 / 462e-6;
        let row = enough.row(need);
        assert!(row.bytes_written_per_second * row.write_amplification <= flash, "{row:?}");
    }

    #[test]
    fn impossible_questions_are_refused_by_name() {
        let refusal = |change: fn(&mut KvCacheQuestion)| {
            let mut question = question(1.0, PromptReuse::Chat, None);
            change(&mut question);
            question.plan().err().expect("it is impossible").to_string()
        };
        assert!(refusal(|question| question.requests_per_second = 0.0).contains("--requests"));
        assert!(refusal(|question| question.device = "pm9".to_string()).contains("pm9"));
        assert!(refusal(|question| question.reuse = PromptReuse::Trace("none.jsonl".into())).contains("none.jsonl"));
    }
}
