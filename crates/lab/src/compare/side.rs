//! One side of a comparison, out of whatever it was written in.

use serde_json::{Value, json};

use crate::error::LabError;
use crate::store::KeptRun;

/// What a run measured by name, in the order in which it is shown.
type Metrics = Vec<(String, f64)>;

/// A cell by what distinguishes it, with the values of its seeds by metric.
pub(super) type NamedCell = (String, Vec<(String, Vec<f64>)>);

/// A result.
#[derive(Clone, Debug)]
pub struct Side {
    /// The file, or the short name of a run.
    pub name: String,
    /// When, by what and out of what it came, as far as it says so.
    pub origin: Value,
    kind: &'static str,
    runs: Vec<Run>,
}

/// One seed of a cell.
#[derive(Clone, Debug)]
struct Run {
    device: String,
    /// Variant and values of the grid.
    place: String,
    metrics: Metrics,
}

impl Side {
    /// Reads a result of `warp run --json`, a run that was kept, fio's JSON, or what `nvme fdp stats` printed.
    ///
    /// # Errors
    /// It is none of them: says what can be read.
    pub fn read(name: &str, text: &str) -> Result<Side, LabError> {
        let Ok(json) = serde_json::from_str::<Value>(text) else {
            return Side::new(
                name,
                "FDP statistics",
                json!({}),
                fdp_statistics_text(text).map(|run| vec![run]),
            );
        };
        match json["format"].as_str() {
            Some("warp-run") => return Side::of_results(name, &json["result"], origin_of(&json)),
            Some("warp-results") => return Side::of_results(name, &json, json!({})),
            _ => {}
        }
        if json["jobs"].is_array() && json.get("fio version").is_some() {
            let origin = json!({ "fio": json["fio version"], "at": json["time"] });
            return Side::new(name, "fio's results", origin, Some(vec![Run::alone(of_fio(&json))]));
        }
        // nvme-cli's keys; those of `warp inspect --json`.
        let [short, long] = [["hbmw", "mbmw"], ["host_bytes_written", "media_bytes_written"]];
        let ours = json.pointer("/enabled/statistics").unwrap_or(&json);
        let run = of_statistics(&json, short).or_else(|| of_statistics(ours, long));
        Side::new(name, "FDP statistics", json!({}), run.map(|run| vec![run]))
    }

    /// A run that was kept.
    ///
    /// # Errors
    /// It measured nothing.
    pub fn of_run(run: &KeptRun) -> Result<Side, LabError> {
        Side::of_results(&run.id, &run.document["result"], origin_of(&run.document))
    }

    fn of_results(name: &str, results: &Value, origin: Value) -> Result<Side, LabError> {
        let cells = results["cells"].as_array();
        let run = |cell: &Value| {
            let grid = cell["grid"].as_object().into_iter().flatten();
            let grid = grid.map(|(axis, value)| format!("{axis} {}", value.as_str().unwrap_or_default()));
            let variant = cell["variant"].as_str().unwrap_or_default().to_string();
            let parts: Vec<String> = [variant]
                .into_iter()
                .chain(grid)
                .filter(|part| !part.is_empty())
                .collect();
            Run {
                device: cell["device"].as_str().unwrap_or_default().to_string(),
                place: parts.join(" | "),
                metrics: of_cell(cell),
            }
        };
        Side::new(
            name,
            "results of WARP",
            origin,
            cells.map(|cells| cells.iter().map(run).collect()),
        )
    }

    fn new(name: &str, kind: &'static str, origin: Value, runs: Option<Vec<Run>>) -> Result<Side, LabError> {
        let runs = runs.unwrap_or_default();
        if runs.iter().all(|run| run.metrics.is_empty()) {
            let problem = "is no result: give a run of `warp runs`, the JSON of `warp run --json` or of fio \
                           (--output-format=json), or what `nvme fdp stats` prints";
            return Err(LabError::invalid(name, problem));
        }
        Ok(Side {
            name: name.to_string(),
            origin,
            kind,
            runs,
        })
    }

    /// What it is, in a line.
    pub fn about(&self) -> String {
        let mut parts = vec![format!("{} ({})", self.name, self.kind)];
        parts.extend(self.origin["title"].as_str().map(str::to_string));
        let devices = self.devices();
        if devices.iter().any(|device| !device.is_empty()) {
            parts.push(devices.join(", "));
        }
        parts.extend(self.origin["at"].as_str().map(str::to_string));
        parts.join(" · ")
    }

    /// Its devices, each once.
    pub(super) fn devices(&self) -> Vec<String> {
        let mut devices: Vec<String> = Vec::new();
        for run in &self.runs {
            if !devices.contains(&run.device) {
                devices.push(run.device.clone());
            }
        }
        devices
    }

    /// Its cells with the values of their seeds.
    pub(super) fn by_cell(&self, by_device: bool) -> Vec<NamedCell> {
        let mut cells: Vec<NamedCell> = Vec::new();
        for run in &self.runs {
            let parts = [if by_device { run.device.as_str() } else { "" }, run.place.as_str()];
            let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
            let metrics = &mut entry(&mut cells, &parts.join(" | ")).1;
            for (name, value) in &run.metrics {
                entry(metrics, name).1.push(*value);
            }
        }
        cells
    }
}

impl Run {
    /// The one run of something that knows no cells.
    fn alone(metrics: Metrics) -> Run {
        Run {
            device: String::new(),
            place: String::new(),
            metrics,
        }
    }
}

/// The entry of a name, added at the end if it is new.
fn entry<'a, T: Default>(entries: &'a mut Vec<(String, T)>, name: &str) -> &'a mut (String, T) {
    let known = entries.iter().position(|(known, _)| known == name);
    let index = known.unwrap_or_else(|| {
        entries.push((name.to_string(), T::default()));
        entries.len() - 1
    });
    &mut entries[index]
}

/// Where a run that was kept comes from.
fn origin_of(document: &Value) -> Value {
    let keys = ["id", "at", "target", "title", "warp", "engine", "seconds"];
    let known = keys
        .iter()
        .filter_map(|key| Some((key.to_string(), document.get(*key)?.clone())));
    Value::Object(known.collect())
}

/// What a cell of `warp run --json` measured.
fn of_cell(cell: &Value) -> Metrics {
    let mut metrics = Metrics::new();
    let mut add = |name: String, value: &Value| metrics.extend(value.as_f64().map(|value| (name, value)));
    add("WAF".to_string(), &cell["waf"]);
    add("WAF at the end".to_string(), &cell["tail_waf"]);
    let capacity = cell["capacity_bytes"].as_f64().filter(|bytes| *bytes > 0.0);
    let capacities = |bytes: Option<f64>| {
        bytes
            .zip(capacity)
            .map_or(Value::Null, |(bytes, all)| (bytes / all).into())
    };
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
    metrics.extend(of_fio(&cell["fio"]));
    metrics
}

/// Bandwidths, rates and latencies of fio's JSON.
fn of_fio(fio: &Value) -> Metrics {
    let mut metrics = Metrics::new();
    for job in fio["jobs"].as_array().into_iter().flatten() {
        let name = job["jobname"].as_str().unwrap_or("job");
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
                // fio prints eighteen; these are what anybody quotes.
                if ["50", "90", "99", "99.9", "99.99"].contains(&digits) {
                    add(format!("p{digits}, us"), value.as_f64().map(|ns| ns / 1e3));
                }
            }
        }
    }
    metrics
}

/// FDP statistics in JSON: host and media bytes under these keys, as numbers or in quotes.
fn of_statistics(json: &Value, [host, media]: [&str; 2]) -> Option<Run> {
    let bytes = |key: &str| json[key].as_f64().or_else(|| json[key].as_str()?.parse().ok());
    statistics(bytes(host)?, bytes(media)?)
}

/// What `nvme fdp stats` prints as text; numbers may have separators.
fn fdp_statistics_text(text: &str) -> Option<Run> {
    let bytes = |name: &str| -> Option<f64> {
        let after = text.lines().find_map(|line| line.split_once(name))?.1;
        let digits: String = after.chars().filter(char::is_ascii_digit).collect();
        digits.parse().ok()
    };
    statistics(bytes("(HBMW)")?, bytes("(MBMW)")?)
}

fn statistics(host_bytes: f64, media_bytes: f64) -> Option<Run> {
    (host_bytes > 0.0).then(|| Run::alone(vec![("WAF".to_string(), media_bytes / host_bytes)]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metrics(text: &str) -> Metrics {
        Side::read("a file", text).expect("a result").runs.remove(0).metrics
    }

    #[test]
    fn statistics_of_nvme_cli_are_read_as_text_and_as_json() {
        let waf = vec![("WAF".to_string(), 1.5)];
        let text = "Host Bytes with Metadata Written (HBMW): 2,000,000\nMedia Bytes with Metadata Written (MBMW): 3,000,000\n\
                    Media Bytes Erased (MBE): 0\n";
        assert_eq!(metrics(text), waf);
        assert_eq!(metrics("{\"hbmw\":2000000,\"mbmw\":3000000,\"mbe\":0}"), waf);
        assert_eq!(metrics("{\"hbmw\":\"2000000\",\"mbmw\":\"3000000\"}"), waf);
        let inspected = json!({ "enabled": { "statistics": { "host_bytes_written": 2, "media_bytes_written": 3 } } });
        assert_eq!(metrics(&inspected.to_string()), waf);
    }

    #[test]
    fn fio_is_read_by_job_and_direction() {
        let idle = json!({ "total_ios": 0, "bw_bytes": 0 });
        let percentile = json!({ "1.000000": 9000, "99.000000": 90_000, "99.900000": 120_000 });
        let latency = json!({ "mean": 70_500.0, "percentile": percentile });
        let read = json!({ "total_ios": 5, "bw_bytes": 4_000_000, "iops": 1000.5, "clat_ns": latency });
        let fio = json!({ "fio version": "fio-3.42", "jobs": [{ "jobname": "r", "read": read, "write": idle }] });
        let expected = [
            ("MB/s", 4.0),
            ("IOPS", 1000.5),
            ("mean, us", 70.5),
            ("p99, us", 90.0),
            ("p99.9, us", 120.0),
        ];
        let expected: Metrics = expected.map(|(name, value)| (format!("r read {name}"), value)).to_vec();
        assert_eq!(metrics(&fio.to_string()), expected);
    }

    #[test]
    fn what_is_no_result_is_refused() {
        for text in [
            "",
            "hello",
            "{}",
            "[1]",
            "{\"format\":\"warp-results\",\"cells\":[]}",
            "{\"hbmw\":0,\"mbmw\":0}",
        ] {
            let error = Side::read("x.json", text).expect_err("no result").to_string();
            assert!(error.starts_with("x.json: is no result: give"), "{error}");
        }
    }
}
