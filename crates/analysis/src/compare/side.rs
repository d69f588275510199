//! Reads a side of a comparison from any of the supported formats.

use std::collections::{BTreeSet, HashMap, HashSet};

use serde_json::{Value, json};

use super::answer;
use super::documents;
use super::run::{Metrics, ModelRange, SeedRun, TOTALS, WAF};
use super::statistics;
use crate::store::StoredRun;
use experiment::LabError;

/// Write amplification at the end of a run, over its last full drive writes.
const WAF_AT_THE_END: &str = "WAF at the end";

/// A cell with the values of its seeds.
#[derive(Clone, Debug)]
pub(super) struct SideCell {
    pub(super) name: String,
    pub(super) device: String,
    /// Options of `warp run` that run this cell alone.
    pub(super) only: String,
    pub(super) metrics: Vec<(String, Vec<f64>)>,
    /// Model range of its write amplification, if it has one.
    pub(super) range: Option<ModelRange>,
    /// True if its write amplification is marked as doubtful.
    pub(super) is_doubtful: bool,
}

/// Program or command that produced a side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SideKind {
    /// Output of `warp run`.
    Results,
    /// Output of `warp whatif`.
    Answer,
    Fio,
    /// Output of `nvme fdp stats` or `warp drive inspect`.
    Statistics,
}

impl SideKind {
    fn name(self) -> &'static str {
        match self {
            SideKind::Results => "a result of `warp run`",
            SideKind::Answer => "an answer of `warp whatif`",
            SideKind::Fio => "a result of fio",
            SideKind::Statistics => "FDP statistics",
        }
    }

    /// True for a single measurement of a real or served drive, which has no cells.
    pub(super) fn is_measurement(self) -> bool {
        matches!(self, SideKind::Fio | SideKind::Statistics)
    }

    /// Reason why this side lacks a metric of the other.
    pub(super) fn lacks(self) -> &'static str {
        match self {
            SideKind::Results => {
                "It ran without virtual time (a device with [timing] has it), or with other jobs, owners or handles"
            }
            SideKind::Answer => "An answer of `warp whatif` has one write amplification for each placement",
            SideKind::Fio => "A result of fio has requests and their times, not the flash",
            SideKind::Statistics => "FDP statistics are counters of the whole drive, without handles and times",
        }
    }
}

#[derive(Clone, Debug)]
pub struct Side {
    /// Path of the file, or short name of a run.
    pub name: String,
    /// Time, command and input of the result, as far as they are known.
    pub origin: Value,
    /// Notes on how the file was read.
    pub notes: Vec<String>,
    pub(super) kind: SideKind,
    runs: Vec<SeedRun>,
}

impl Side {
    /// True for a single measurement of a real or served drive, which has one value of each metric.
    pub fn is_measurement(&self) -> bool {
        self.kind.is_measurement()
    }

    /// Reads a result of `warp run --json`, answers of `warp whatif --json`, a stored run, fio's
    /// JSON, or the output of `nvme fdp stats`.
    ///
    /// Of several JSON documents, the last one is read. Text around them is skipped, with an entry
    /// in [`Side::notes`].
    ///
    /// # Errors
    /// The text has another format, a counter is not a decimal number, or a document is not
    /// terminated. The message lists the formats or names the position.
    pub fn read(name: &str, text: &str) -> Result<Side, LabError> {
        let invalid = |problem| LabError::invalid(name, problem);
        if let Some(answers) = answer::of_folder(text) {
            return Side::from_answers(name, &answers, json!({}));
        }
        let Some(document) = documents::find_last(text).map_err(invalid)? else {
            let (run, earlier) = statistics::parse_text(text).map_err(invalid)?.unzip();
            let mut side = Side::new(name, SideKind::Statistics, json!({}), run.map(|run| vec![run]))?;
            earlier.flatten().iter().for_each(|note| side.add_note(note));
            side.note_impossible();
            return Ok(side);
        };
        let mut side = Side::from_json(name, &document.json)?;
        side.add_last_note(document.count, "JSON documents");
        match document.skipped_lines {
            0 => {}
            1 => side.add_note("1 line around the JSON was skipped"),
            lines => side.add_note(&format!("{lines} lines around the JSON were skipped")),
        }
        Ok(side)
    }

    fn from_json(name: &str, json: &Value) -> Result<Side, LabError> {
        match json["format"].as_str() {
            Some("warp-run") => return Side::from_results(name, &json["result"], origin_of(json)),
            Some("warp-results") => return Side::from_results(name, json, json!({ "target": json["experiment"] })),
            _ if answer::is_answer(json) => return Side::from_answers(name, std::slice::from_ref(json), json!({})),
            _ => {}
        }
        if json["jobs"].is_array() && json.get("fio version").is_some() {
            let origin = json!({ "fio": json["fio version"], "at": json["time"] });
            let runs = vec![SeedRun::single(fio_metrics(json))];
            let mut side = Side::new(name, SideKind::Fio, origin, Some(runs))?;
            for job in repeated_names(json) {
                side.add_note(&format!("several jobs are named {job}. fio adds them up with --group_reporting"));
            }
            return Ok(side);
        }
        // Keys of nvme-cli, and of `warp drive inspect --json`.
        let [short, long] = [["hbmw", "mbmw"], ["host_bytes_written", "media_bytes_written"]];
        let ours = json.pointer("/enabled/statistics").unwrap_or(json);
        let invalid = |problem| LabError::invalid(name, problem);
        let mut run = statistics::parse_json(json, short).map_err(invalid)?;
        if run.is_none() {
            run = statistics::parse_json(ours, long).map_err(invalid)?;
        }
        let mut side = Side::new(name, SideKind::Statistics, json!({}), run.map(|run| vec![run]))?;
        side.note_impossible();
        Ok(side)
    }

    fn add_note(&mut self, text: &str) {
        self.notes.push(format!("{}: {text}", self.name));
    }

    fn add_last_note(&mut self, count: usize, things: &str) {
        if count > 1 {
            self.add_note(&format!("the last of {count} {things} was read"));
        }
    }

    /// Adds a note on a write amplification below 1, which few drives can have.
    fn note_impossible(&mut self) {
        let is_low = |run: &SeedRun| run.metrics.iter().any(|(name, value)| name == WAF && *value < 1.0);
        if self.kind == SideKind::Statistics && self.runs.iter().any(is_low) {
            self.add_note(
                "media bytes (MBMW) are fewer than host bytes (HBMW), which needs a drive that compresses or absorbs overwrites. Check \
                 that both are of one reading",
            );
        }
    }

    #[cfg(test)]
    pub(super) fn metrics_of_first(&self) -> Metrics {
        self.runs[0].metrics.clone()
    }

    /// Reads a stored run.
    ///
    /// # Errors
    /// The run measured no metric.
    pub fn from_run(run: &StoredRun) -> Result<Side, LabError> {
        Side::from_results(&run.id, &run.document["result"], origin_of(&run.document))
    }

    fn from_results(name: &str, results: &Value, origin: Value) -> Result<Side, LabError> {
        if answer::is_answer(&results["answer"]) {
            return Side::from_answers(name, std::slice::from_ref(&results["answer"]), origin);
        }
        let cells = results["cells"].as_array();
        let run = |cell: &Value| {
            let text = |value: &Value| value.as_str().unwrap_or_default().to_string();
            let grid = || cell["grid"].as_object().into_iter().flatten();
            let variant = Some(text(&cell["variant"])).filter(|name| !name.is_empty());
            let places = grid().map(|(axis, value)| format!("{axis} {}", text(value)));
            let place: Vec<String> = variant.clone().into_iter().chain(places).collect();
            let values = grid().map(|(_, value)| text(value));
            SeedRun {
                device: text(&cell["device"]),
                place: place.join(" | "),
                only: variant.into_iter().chain(values).collect(),
                metrics: cell_metrics(cell),
                ..SeedRun::default()
            }
        };
        Side::new(name, SideKind::Results, origin, cells.map(|cells| cells.iter().map(run).collect()))
    }

    fn from_answers(name: &str, answers: &[Value], mut origin: Value) -> Result<Side, LabError> {
        if let [answer] = answers {
            for (key, of_answer) in [("target", "workload"), ("title", "headline")] {
                if origin[key].is_null() {
                    origin[key] = answer[of_answer].clone();
                }
            }
        }
        origin["answers"] = answers.iter().map(answer::question).collect();
        let of_answer = |answer| answer::runs(answer, answers.len() > 1);
        let mut side = Side::new(name, SideKind::Answer, origin, Some(answers.iter().flat_map(of_answer).collect()))?;
        for answer in answers {
            let notes = [answer::not_comparable(answer), answer::warning_note(answer)];
            notes.iter().flatten().for_each(|note| side.add_note(note));
        }
        Ok(side)
    }

    fn new(name: &str, kind: SideKind, origin: Value, runs: Option<Vec<SeedRun>>) -> Result<Side, LabError> {
        let runs = runs.unwrap_or_default();
        if runs.iter().all(|run| run.metrics.is_empty()) {
            let problem = "this is not a result. Give a run of `warp results list`, the JSON of `warp run --json`, `warp \
                           whatif --json` or fio (--output-format=json), or the output of `nvme fdp stats`";
            return Err(LabError::invalid(name, problem));
        }
        Ok(Side { name: name.to_string(), origin, notes: Vec::new(), kind, runs })
    }

    pub(super) fn short_description(&self) -> String {
        let target = self.origin["target"].as_str().map(|target| format!(" about {target}"));
        format!("{}{}", self.kind.name(), target.unwrap_or_default())
    }

    pub fn description(&self) -> String {
        let mut parts = vec![format!("{} ({})", self.name, self.kind.name())];
        parts.extend(self.origin["title"].as_str().map(str::to_string));
        let options = self.origin["options"].as_str().filter(|options| !options.is_empty());
        parts.extend(options.map(str::to_string));
        let devices = self.devices();
        if devices.iter().any(|device| !device.is_empty()) {
            parts.push(devices.join(", "));
        }
        parts.extend(self.origin["at"].as_str().map(str::to_string));
        parts.join(" · ")
    }

    pub(super) fn devices(&self) -> Vec<String> {
        base::distinct(self.runs.iter().map(|run| run.device.clone()))
    }

    /// Its cells with the values of their seeds. Metrics get the names that the other side uses.
    pub(super) fn by_cell(&self, by_device: bool, other: SideKind) -> Vec<SideCell> {
        // An answer is read at the end of its runs. Only results of `warp run` distinguish that end
        // from the whole run.
        let is_end = self.kind == SideKind::Answer && other == SideKind::Results;
        let has_totals = [self.kind, other].contains(&SideKind::Statistics);
        let mut cells: Vec<SideCell> = Vec::new();
        for run in &self.runs {
            let parts = [if by_device { run.device.as_str() } else { "" }, run.place.as_str()];
            let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
            let name = parts.join(" | ");
            let known = cells.iter().position(|cell| cell.name == name);
            let index = known.unwrap_or_else(|| {
                cells.push(SideCell {
                    name,
                    device: run.device.clone(),
                    only: run.selection_options(by_device),
                    metrics: Vec::new(),
                    range: run.range.clone(),
                    is_doubtful: run.is_doubtful,
                });
                cells.len() - 1
            });
            for (name, value) in &run.metrics {
                if has_totals || !TOTALS.contains(&name.as_str()) {
                    let name = if is_end { WAF_AT_THE_END } else { name };
                    entry(&mut cells[index].metrics, name).1.push(*value);
                }
            }
        }
        cells
    }
}

/// The entry of a name, appended if it is new.
fn entry<'a, T: Default>(entries: &'a mut Vec<(String, T)>, name: &str) -> &'a mut (String, T) {
    let known = entries.iter().position(|(known, _)| known == name);
    let index = known.unwrap_or_else(|| {
        entries.push((name.to_string(), T::default()));
        entries.len() - 1
    });
    &mut entries[index]
}

fn origin_of(document: &Value) -> Value {
    let keys = ["id", "at", "target", "title", "options", "warp", "engine", "seconds"];
    let known = keys.iter().filter_map(|key| Some((key.to_string(), document.get(*key)?.clone())));
    Value::Object(known.collect())
}

/// Metrics of a cell of `warp run --json`.
fn cell_metrics(cell: &Value) -> Metrics {
    let mut metrics = Metrics::new();
    let mut add = |name: String, value: &Value| metrics.extend(value.as_f64().map(|value| (name, value)));
    add(WAF.to_string(), &cell["waf"]);
    add(WAF_AT_THE_END.to_string(), &cell["tail_waf"]);
    let counters = ["host_bytes_written", "media_bytes_written"].map(|key| cell[key].as_f64());
    for (name, bytes) in TOTALS.iter().zip(counters).filter(|_| cell["waf"].is_number()) {
        add(name.to_string(), &json!(bytes.map(|bytes| bytes / 1e9)));
    }
    let capacity = cell["capacity_bytes"].as_f64().filter(|bytes| *bytes > 0.0);
    let capacities = |bytes: Option<f64>| bytes.zip(capacity).map_or(Value::Null, |(bytes, all)| (bytes / all).into());
    for owner in cell["owners"].as_array().into_iter().flatten() {
        let name = owner["owner"].as_str().unwrap_or_default();
        let pages = owner["gc_pages_copied"].as_f64().zip(cell["page_bytes"].as_f64());
        let copied = pages.map(|(pages, bytes)| pages * bytes);
        let host = owner["host_bytes_written"].as_f64();
        if [host, copied].iter().all(|bytes| bytes.unwrap_or(0.0) == 0.0) {
            continue;
        }
        add(format!("{name} WAF"), &owner["waf"]);
        if name != "shared" {
            add(format!("{name} host, x capacity"), &capacities(host));
        }
        add(format!("{name} copied, x capacity"), &capacities(copied));
    }
    for (name, value) in cell["measures"].as_object().into_iter().flatten() {
        add(name.clone(), value);
    }
    metrics.extend(fio_metrics(&cell["fio"]));
    metrics
}

/// The jobs of fio's JSON with their names.
fn fio_jobs(fio: &Value) -> impl Iterator<Item = (&str, &Value)> + Clone {
    let jobs = fio["jobs"].as_array().into_iter().flatten();
    jobs.map(|job| (job["jobname"].as_str().unwrap_or("job"), job))
}

/// Names that several jobs of fio's JSON share: instances of one job, without `--group_reporting`.
fn repeated_names(fio: &Value) -> BTreeSet<&str> {
    let mut seen = HashSet::new();
    let names = fio_jobs(fio).map(|(name, _)| name);
    names.filter(|name| !seen.insert(*name)).collect()
}

/// Bandwidths, rates and latencies of fio's JSON. Jobs of the same name are numbered.
fn fio_metrics(fio: &Value) -> Metrics {
    let mut metrics = Metrics::new();
    let repeated = repeated_names(fio);
    let mut numbers: HashMap<&str, u32> = HashMap::new();
    for (name, job) in fio_jobs(fio) {
        let number = numbers.entry(name).or_default();
        *number += 1;
        let name = if repeated.contains(name) { format!("{name} ({number})") } else { name.to_string() };
        for direction in ["read", "write", "trim"] {
            let of = &job[direction];
            if of["total_ios"].as_f64().unwrap_or(0.0) == 0.0 {
                continue;
            }
            let mut add = |what: String, value: Option<f64>| {
                metrics.extend(value.map(|value| (format!("{name} {direction} {what}"), value)));
            };
            add("MB/s".to_string(), of["bw_bytes"].as_f64().map(|bytes| bytes / 1e6));
            add("IOPS".to_string(), of["iops"].as_f64());
            let latency = &of["clat_ns"];
            add("mean, us".to_string(), latency["mean"].as_f64().map(|ns| ns / 1e3));
            for (percentile, value) in latency["percentile"].as_object().into_iter().flatten() {
                let digits = percentile.trim_end_matches('0').trim_end_matches('.');
                // fio prints eighteen percentiles. These are the commonly quoted ones.
                if ["50", "90", "99", "99.9", "99.99"].contains(&digits) {
                    add(format!("p{digits}, us"), value.as_f64().map(|ns| ns / 1e3));
                }
            }
        }
    }
    metrics
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metrics(text: &str) -> Metrics {
        Side::read("a file", text).expect("a result").metrics_of_first()
    }

    #[test]
    fn fio_is_read_by_job_and_direction() {
        let idle = json!({ "total_ios": 0, "bw_bytes": 0 });
        let percentile = json!({ "1.000000": 9000, "99.000000": 90_000, "99.900000": 120_000 });
        let latency = json!({ "mean": 70_500.0, "percentile": percentile });
        let read = json!({ "total_ios": 5, "bw_bytes": 4_000_000, "iops": 1000.5, "clat_ns": latency });
        let fio = json!({ "fio version": "fio-3.42", "jobs": [{ "jobname": "r", "read": read, "write": idle }] });
        let expected = [("MB/s", 4.0), ("IOPS", 1000.5), ("mean, us", 70.5), ("p99, us", 90.0), ("p99.9, us", 120.0)];
        let expected: Metrics = expected.map(|(name, value)| (format!("r read {name}"), value)).to_vec();
        assert_eq!(metrics(&fio.to_string()), expected);
    }

    fn notes(text: &str) -> Vec<String> {
        Side::read("a file", text).expect("a result").notes
    }

    fn refusal(text: &str) -> String {
        Side::read("x", text).expect_err("no result").to_string()
    }

    /// The output of fio for a job with this rate, in requests per second.
    fn fio_document(iops: u32) -> String {
        let read = json!({ "total_ios": 5, "iops": iops });
        let document = json!({ "fio version": "fio-3.42", "jobs": [{ "jobname": "r", "read": read }] });
        serde_json::to_string_pretty(&document).expect("it is JSON")
    }

    #[test]
    fn notes_around_the_json_of_fio_are_skipped_and_said() {
        let expected = [("r read IOPS".to_string(), 7.0)];
        let text = format!(
            "fio: this platform does not support {{process shared}} mutexes, forcing use of threads.\n\n{}\nfio: file hash not empty on exit\n",
            fio_document(7)
        );
        assert_eq!(metrics(&text), expected);
        assert_eq!(notes(&text), ["a file: 2 lines around the JSON were skipped"]);
        let glued = format!("Jobs: 1 (f=1): [r(1)][100.0%][eta 00m:00s]\r{}", fio_document(7));
        assert_eq!(metrics(&glued), expected);
        assert_eq!(notes(&glued), ["a file: 1 line around the JSON was skipped"]);
        assert_eq!(notes(&fio_document(7)), [""; 0]);
        assert_eq!(metrics(&format!("\u{feff}{}", fio_document(7))), expected);
    }

    #[test]
    fn of_the_documents_of_status_interval_the_last_one_is_read() {
        let text = format!("{}\n{}{}\n", fio_document(1), fio_document(2), fio_document(3));
        assert_eq!(metrics(&text), [("r read IOPS".to_string(), 3.0)]);
        assert_eq!(notes(&text), ["a file: the last of 3 JSON documents was read"]);
        // A truncated document must not count as the last result.
        let whole = fio_document(1);
        let torn = format!("{whole}\n{}", &fio_document(2)[..40]);
        let line = whole.lines().count() + 1;
        assert_eq!(
            refusal(&torn),
            format!("x: line {line}: the JSON that begins here has no end. Give the whole output, or remove this part")
        );
    }

    #[test]
    fn jobs_of_one_name_are_not_seeds_of_one_job() {
        let read = |iops: u32| json!({ "jobname": "r", "read": { "total_ios": 5, "iops": iops } });
        let fio = json!({ "fio version": "fio-3.42", "jobs": [read(1), read(2)] }).to_string();
        let expected = [("r (1) read IOPS".to_string(), 1.0), ("r (2) read IOPS".to_string(), 2.0)];
        assert_eq!(metrics(&fio), expected);
        assert_eq!(notes(&fio), ["a file: several jobs are named r. fio adds them up with --group_reporting"]);
    }

    #[test]
    fn what_is_no_result_is_refused() {
        for text in ["", "hello", "{}", "[1]", "{\"format\":\"warp-results\",\"cells\":[]}"] {
            let error = Side::read("x.json", text).expect_err("no result").to_string();
            assert!(error.starts_with("x.json: this is not a result. Give"), "{error}");
        }
    }
}
