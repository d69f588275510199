//! Kept runs are found again and compared with each other, with fio and with the counters of a
//! drive.

mod common;

use common::{folder, json, kept_in, prints, refused, warp, write};
use tempfile::TempDir;

/// Arguments of a run of a second or less, on a drive that collects.
fn run<'a>(more: &[&'a str]) -> Vec<&'a str> {
    let small = ["run", "random.fio", "--device", "warp_default", "--scale", "1/64", "--drive-writes", "3"];
    let set = ["--set", "geometry.physical_bytes=8GiB", "--set", "geometry.reclaim_unit_bytes=64MiB"];
    [&small[..], &set, more].concat()
}

fn with_job() -> TempDir {
    let folder = folder();
    write(&folder, "random.fio", "[job]\nrw=randwrite\nbs=4k\nnorandommap=1\nsize=100%\n");
    folder
}

/// Returns the short names of the kept runs, newest first.
fn kept(folder: &TempDir) -> Vec<String> {
    let runs = json(&prints(folder, &["results", "list", "--json"]));
    let ids = runs.as_array().expect("a list").iter();
    ids.map(|run| run["id"].as_str().expect("a name").to_string()).collect()
}

#[test]
fn a_run_is_kept_and_nothing_is_overwritten() {
    let folder = with_job();
    assert!(prints(&folder, &["results", "list"]).contains("has no stored runs yet"));
    let printed = prints(&folder, &run(&[]));
    let result = prints(&folder, &run(&["--seed", "2", "--json"]));
    prints(&folder, &run(&["--no-keep"]));
    prints(&folder, &run(&[]));
    let ids = kept(&folder);
    assert_eq!(ids.len(), 3, "one of four was not to be kept");
    assert_eq!(ids[0], ids[2], "the same run with the same result has the same name");
    assert!(printed.contains(&format!("stored as {}", ids[0])), "{printed}");
    let list = prints(&folder, &["results", "list", "--limit", "2"]);
    assert!(list.contains("random.fio") && list.contains("and 1 older"), "{list}");
    let shown = prints(&folder, &["results", "show", &ids[1][..5]]);
    assert!(shown.contains("warp_default") && shown.contains("engine"), "{shown}");
    assert_eq!(prints(&folder, &["results", "show", &ids[1][..5]]), shown, "the name alone shows it too");
    let csv = prints(&folder, &["results", "show", &ids[1], "--format", "csv"]);
    let head = csv.lines().find(|line| line.starts_with("device,")).expect("a head");
    assert_eq!(head, "device,variant,at,seed,WAF,at the end");
    let document = json(&prints(&folder, &["results", "show", &ids[1], "--json"]));
    assert_eq!(json(&prints(&folder, &["results", "show", &ids[1], "--format", "json"])), document);
    assert_eq!(document["result"], json(&result), "what was printed is what is kept");
    assert_eq!(document["inputs"][0]["input"]["seed"], 2);
    assert_eq!(document["inputs"][0]["input"]["engine"], document["engine"]);
    assert_eq!(std::fs::read_dir(kept_in(&folder).join("runs")).expect("a folder").count(), 3);
    refused(&folder, &["results", "show", "zzz"], &["run zzz", "warp results list"]);
    refused(&folder, &["results", "show", "zzz"], &["run zzz", "warp results list"]);
}

#[test]
fn a_torn_file_among_the_kept_runs_is_named_and_the_others_are_listed() {
    let folder = with_job();
    prints(&folder, &run(&[]));
    let torn = kept_in(&folder).join("runs/20990101T000000000000Z-00000000.json");
    std::fs::write(&torn, "{\"format\": \"warp-run\", \"ver").expect("it is written");
    let output = warp(&folder, &["results", "list"]);
    let [printed, said] = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).expect("text"));
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(printed.contains("random.fio") && !printed.contains("older"), "{printed}");
    let name = torn.display().to_string();
    assert!(said.starts_with(&format!("warp: left out: {name}: this is not a stored run")), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
    refused(&folder, &["results", "show", "00000000"], &["00000000.json", "is not a stored run"]);
}

#[test]
fn a_run_that_cannot_be_kept_is_a_result_all_the_same() {
    let folder = with_job();
    let store = kept_in(&folder);
    std::fs::create_dir_all(store.parent().expect("it has one")).expect("a folder");
    std::fs::write(&store, "a file is in the way").expect("it is written");
    let output = warp(&folder, &run(&["--json"]));
    assert_eq!(output.status.code(), Some(0));
    json(&String::from_utf8(output.stdout).expect("text"));
    let error = String::from_utf8(output.stderr).expect("text");
    assert!(error.starts_with("warp: the run is not stored (") && error.contains("--no-keep"), "{error}");
    prints(&folder, &run(&["--no-keep"]));
}

#[test]
fn several_seeds_say_whether_a_difference_is_more_than_chance() {
    let folder = with_job();
    let study = |name: &str, over_provisioning: &str, seeds: &str| {
        std::fs::create_dir_all(folder.path().join(name)).expect("a folder");
        let text = format!(
            "devices = [\"warp_default\"]\nworkload = \"random.fio\"\n[run]\ndrive_writes = 3.0\nscale = \"1/64\"\nseeds = {seeds}\n\
             [change]\ndevice = {{ geometry = {{ physical_bytes = \"8GiB\", reclaim_unit_bytes = \"64MiB\", \
             over_provisioning = {over_provisioning} }} }}\n"
        );
        write(&folder, &format!("{name}/experiment.toml"), text);
        let result = prints(&folder, &["run", name, "--json"]);
        write(&folder, &format!("{name}.json"), result);
    };
    study("less", "0.1", "[1, 2, 3]");
    study("more", "0.2", "[1, 2, 3]");
    study("other", "0.1", "[4, 5, 6]");
    study("single", "0.2", "[1]");
    let rows = |a: &str, b: &str| json(&prints(&folder, &["results", "compare", a, b, "--json"]))["rows"].clone();
    let waf = |a: &str, b: &str| rows(a, b)[0].clone();
    let differs = waf("less.json", "more.json");
    assert_eq!((&differs["metric"], &differs["verdict"]), (&"WAF".into(), &"less".into()));
    let interval = differs["interval"].as_array().expect("both have seeds");
    let ends: Vec<f64> = interval.iter().filter_map(serde_json::Value::as_f64).collect();
    let difference = differs["difference"].as_f64().expect("a number");
    assert!(ends[0] < difference && difference < ends[1] && ends[1] < 0.0, "{differs}");
    assert_eq!(waf("less.json", "less.json")["verdict"], "same");
    assert_eq!(waf("less.json", "other.json")["verdict"], "no_difference");
    let one = waf("less.json", "single.json");
    assert_eq!((&one["verdict"], one["interval"].is_null()), (&"one_seed".into(), true));
    let names: Vec<String> =
        rows("less.json", "more.json").as_array().expect("rows").iter().map(|row| row["metric"].to_string()).collect();
    assert!(names.contains(&"\"RUH 0 copied, x capacity\"".to_string()), "by handle: {names:?}");

    // Kept runs give the same comparison, as a table and as a page.
    let ids = kept(&folder);
    let table = prints(&folder, &["results", "compare", &ids[3], &ids[2], "--out", "page"]);
    for part in ["A: ", "B: ", "95 %", "less", "wrote page/report.html"] {
        assert!(table.contains(part), "{part}: {table}");
    }
    let page = std::fs::read_to_string(folder.path().join("page/report.html")).expect("it was written");
    assert!(page.contains("Compared results") && page.contains("RUH 0 WAF"));
    let table = prints(&folder, &["results", "compare", "less.json", &ids[0]]);
    assert!(table.contains("one seed does not show chance"), "{table}");
}

#[test]
fn a_run_is_compared_with_fio_and_with_what_a_drive_counted() {
    let folder = with_job();
    write(&folder, "ours.json", prints(&folder, &run(&["--json"])));
    write(
        &folder,
        "stats.txt",
        "Host Bytes with Metadata Written (HBMW): 1000000\nMedia Bytes with Metadata Written (MBMW): 2500000\nMedia Bytes Erased (MBE): 0\n",
    );
    let counted = json(&prints(&folder, &["results", "compare", "stats.txt", "ours.json", "--json"]));
    assert_eq!(counted["rows"].as_array().map(Vec::len), Some(3), "WAF, host and media bytes");
    assert_eq!(counted["rows"][0]["a"], 2.5);

    write(&folder, "reader.fio", "[reader]\nrw=randread\nbs=4k\nsize=1g\ntime_based\nruntime=1\n");
    let timed = ["run", "reader.fio", "--device", "ssd_a", "--scale", "1/1024", "--seconds", "0.01", "--json"];
    write(&folder, "timed.json", prints(&folder, &timed));
    let fio = ["run", "reader.fio", "--device", "ssd_a", "--scale", "1/1024", "--seconds", "0.01", "--fio-json", "-"];
    write(&folder, "fio.json", prints(&folder, &fio));
    let both = json(&prints(&folder, &["results", "compare", "fio.json", "timed.json", "--json"]));
    let rows = both["rows"].as_array().expect("rows");
    assert!(rows.iter().any(|row| row["metric"] == "reader read p99.9, us"), "{both}");
    assert!(rows.iter().all(|row| row["difference"] == 0.0), "the same numbers in two forms: {both}");
    refused(&folder, &["results", "compare", "fio.json", "stats.txt"], &["nothing to compare", "stats.txt"]);
    write(&folder, "text.txt", "hello\n");
    refused(
        &folder,
        &["results", "compare", "text.txt", "ours.json"],
        &["text.txt", "this is not a result", "nvme fdp stats"],
    );
    refused(&folder, &["results", "compare", "nowhere.json", "ours.json"], &["nowhere.json"]);
    refused(&folder, &["results", "compare", "abcdef", "ours.json"], &["run abcdef", "there is no such run"]);
}

#[test]
fn an_answer_for_an_array_says_its_doubts_and_the_rows_of_its_settings() {
    let folder = folder();
    write(&folder, "job.fio", "[job]\nrw=randwrite\nbs=64k\n");
    let answer = |array: &str, options: &[&str]| {
        let array = format!("raid5,drives=3{array}");
        let question = ["whatif", "job.fio", "--array", &array, "--device", "warp_default", "--scale", "1/1024"];
        prints(&folder, &[&question[..], &["--drive-writes", "0.02"], options].concat())
    };
    let printed = answer(",write_policy=full_stripe,parity_placement=own_handle", &[]).replace("\n  ", " ");
    for line in [
        "* doubtful for the reasons below",
        "never collected",
        "write_policy = full_stripe holds only for the row log-structured.",
        "parity_placement holds only for the row log-structured.",
    ] {
        assert!(printed.lines().any(|printed| printed.starts_with(line)), "{line}: {printed}");
    }
    let rows = |array: &str| {
        let printed = answer(array, &["--json"]);
        serde_json::from_str::<serde_json::Value>(&printed).expect("an answer is JSON")["rows"].clone()
    };
    let (plain, changed) = (rows(""), rows(",write_policy=full_stripe,over_provisioning=0.3"));
    assert_eq!(plain.as_array().map(Vec::len), Some(4), "{plain}");
    assert_eq!((&plain[0], &plain[1], &plain[2]), (&changed[0], &changed[1], &changed[2]));
    assert_ne!(plain[3], changed[3], "over-provisioning is that of the log-structured layer");
    assert_eq!((&plain[1]["is_doubtful"], &plain[1]["warnings"][0]), (&true.into(), &"never_collected".into()));
}

#[test]
fn answers_of_whatif_are_compared_with_each_other_and_with_runs() {
    let folder = folder();
    let mut trace = "time,process,file,operation,offset,length\n".to_string();
    for number in 0..20_000_u64 {
        let (file, unit) = match number % 2 {
            0 => ("wal", number / 2 % 1000),
            _ => ("data", 1000 + number * 7919 % 3000),
        };
        trace += &format!("{}.5,db,{file},W,{},4096\n", number / 100, unit * 4096);
    }
    write(&folder, "trace.csv", trace);
    let asked = |name: &str, spare: &str| {
        let question = ["whatif", "trace.csv", "--no-uncertainty", "--op", spare, "--json"];
        write(&folder, name, prints(&folder, &question));
    };
    asked("small.json", "7%");
    asked("large.json", "28%");
    let answers = json(&prints(&folder, &["results", "compare", "small.json", "large.json", "--json"]));
    let row = |placement: &str| {
        let rows = answers["rows"].as_array().expect("rows").iter();
        rows.clone().find(|row| row["cell"] == placement).unwrap_or_else(|| panic!("{placement}: {answers}"))
    };
    assert_eq!((&row("none")["metric"], &row("none")["verdict"]), (&"WAF".into(), &"less".into()));
    assert!(row("by file")["b"].is_number() && row("oracle")["b"].is_number(), "{answers}");
    assert_eq!(answers["notes"], serde_json::json!(["the questions differ in spare (0.07 in A, 0.28 in B)"]));

    // A kept answer equals the printed one.
    let ids = kept(&folder);
    let of_kept = json(&prints(&folder, &["results", "compare", &ids[1], &ids[0], "--json"]));
    assert_eq!((&of_kept["rows"], &of_kept["notes"]), (&answers["rows"], &answers["notes"]));
    let same = prints(&folder, &["results", "compare", "small.json", &ids[1]]);
    assert!(same.contains("the same") && !same.contains("differ in"), "{same}");

    // The drive's counters appear beside each placement.
    write(&folder, "stats.json", "{\"hbmw\":1000000000,\"mbmw\":1010000000}");
    let counted = prints(&folder, &["results", "compare", "stats.json", "small.json"]);
    assert!(
        counted.contains("A is one result, so it is compared with every cell of B. Nearest in WAF is"),
        "{counted}"
    );
}
