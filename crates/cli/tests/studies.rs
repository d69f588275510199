//! Users' own studies: the list of studies, a new folder, any device, and a continued scaled model.

mod common;

use common::{ServerProcess, files, folder, json, prints, refused, warp, write};

#[test]
fn without_anything_to_run_there_are_three_doors() {
    let folder = folder();
    let doors = prints(&folder, &["run"]);
    assert!(doors.lines().count() <= 14, "{doors}");
    assert!(doors.lines().all(|line| line.chars().count() <= 80), "{doors}");
    for door in ["To evaluate a workload", "warp new experiment", "warp serve"] {
        assert!(doors.contains(door), "{doors}");
    }
    refused(&folder, &["run", "--json"], &["the target is missing", "warp list"]);
}

#[test]
fn everything_is_listed_by_one_road() {
    let folder = folder();
    let all = prints(&folder, &["list"]);
    for kind in ["experiments", "devices", "jobs", "workloads"] {
        let listed = prints(&folder, &["list", kind]);
        assert!(all.contains(&listed), "{listed}");
    }
    for (kind, name) in [("workload", "rocksdb"), ("experiment", "three_stream")] {
        let file = prints(&folder, &["show", kind, name]);
        assert!(file.parse::<toml::Table>().is_ok(), "{file}");
    }
    refused(&folder, &["runs"], &["`warp runs` was renamed. Use `warp results list`"]);
    refused(&folder, &["run", "three_stream", "--write", "2"], &["--write was renamed. Use --drive-writes"]);
    let experiments = json(&prints(&folder, &["list", "experiments", "--json"]));
    let of = |name: &str| {
        let entries = experiments.as_array().expect("a list").iter();
        entries.clone().find(|entry| entry["name"] == name).expect("it is there").clone()
    };
    assert!(of("three_stream")["seconds"].as_f64() > Some(0.0), "it was measured");
    let all = json(&prints(&folder, &["list", "--json"]));
    assert_eq!(all["experiments"], experiments);
    assert!(all["workloads"].as_array().map(Vec::len) > Some(5));
    refused(&folder, &["list", "drives"], &["drives", "devices"]);
}

#[test]
fn a_new_experiment_runs_at_once_and_is_never_overwritten() {
    let folder = folder();
    let said = prints(&folder, &["new", "experiment", "my_study"]);
    assert!(said.contains("warp run my_study"), "{said}");
    let text = std::fs::read_to_string(folder.path().join("my_study/experiment.toml")).expect("it was written");
    assert!(text.contains("warp run my_study"), "{text}");
    let spaced = prints(&folder, &["new", "experiment", "it's a study"]);
    assert!(spaced.contains(r"warp run 'it'\''s a study'"), "{spaced}");
    refused(&folder, &["new", "experiment", "a\nb"], &["not the name of a folder"]);
    refused(&folder, &["new", "experiment", "my_study"], &["my_study", "not overwritten"]);
    refused(&folder, &["new", "experiment", "one_stream"], &["a built-in experiment has this name"]);
    refused(&folder, &["new", "experiment", "/"], &["not the name of a folder"]);
    let list = prints(&folder, &["list", "experiments"]);
    assert!(list.contains(" my_study "), "{list}");
    // The study is unchanged except for its size.
    let small = ["--scale", "1/512", "--drive-writes", "1.5", "--seed", "1", "--json"];
    let of = |name: &str| json(&prints(&folder, &[&["run", name], &small[..]].concat()));
    let by_name = of("my_study");
    assert_eq!(by_name["experiment"], "my_study");
    assert_eq!(by_name["cells"].as_array().map(Vec::len), Some(4));
    let absolute = folder.path().join("my_study").display().to_string();
    for path in ["./my_study", "my_study/", "my_study/experiment.toml", &absolute] {
        assert_eq!(of(path), by_name, "{path}");
    }
    prints(&folder, &["reproduce", "my_study", "--scale", "1/512", "--seed", "1"]);
    let steady = json(&prints(&folder, &["run", "my_study", "--json"]));
    for cell in steady["cells"].as_array().expect("a list") {
        assert_eq!(cell["warnings"].as_array().map(Vec::len), Some(0), "{cell}");
    }
}

#[test]
fn an_impossible_grid_point_is_refused_by_its_name_and_the_study_goes_on() {
    let folder = folder();
    std::fs::create_dir(folder.path().join("spare")).expect("a folder");
    let study = |shares: &str| {
        format!(
            "title = \"t\"\nsource = \"s\"\ndevices = [\"warp_default\"]\nworkload = \"one_stream\"\n\
             [run]\nscale = \"1/1024\"\ndrive_writes = 1.0\n\
             [[grid]]\naxis = \"spare\"\nsweep = \"geometry.over_provisioning\"\nover = {shares}\n"
        )
    };
    write(&folder, "spare/experiment.toml", study("[0.1, 0.0001, 0.2]"));
    let run = |arguments: &[&str]| {
        let output = warp(&folder, arguments);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: a part of the answer is missing");
        String::from_utf8(output.stdout).expect("text")
    };
    let why = "geometry.over_provisioning";
    for command in ["run", "reproduce"] {
        let printed = run(&[command, "spare"]);
        assert!(printed.contains("warp_default | 0.0001") && printed.contains(why), "{printed}");
        let result = json(&run(&[command, "spare", "--json"]));
        let measured: Vec<_> =
            result["cells"].as_array().expect("a list").iter().map(|cell| &cell["grid"]["spare"]).collect();
        assert_eq!(measured, ["0.1", "0.2"]);
        assert_eq!(result["refused"].as_array().map(Vec::len), Some(1));
        let refused = &result["refused"][0];
        assert_eq!((&refused["grid"]["spare"], &refused["seed"]), (&"0.0001".into(), &1.into()));
        assert!(refused["error"].as_str().is_some_and(|error| error.contains(why)), "{refused}");
    }
    let report = std::fs::read_to_string(folder.path().join("out/spare/report.html")).expect("it was written");
    assert!(report.contains("Refused") && report.contains(why));
    // No cell is left to run.
    write(&folder, "spare/experiment.toml", study("[0.0001, 0.0002]"));
    refused(&folder, &["run", "spare"], &[why]);
}

#[test]
fn only_what_an_experiment_needs_is_mandatory() {
    let folder = folder();
    std::fs::create_dir(folder.path().join("least")).expect("a folder");
    let drive = "[geometry]\nphysical_bytes = { value = \"1GiB\", source = \"s\" }\n\
        over_provisioning = { value = 0.1, source = \"s\" }\nreclaim_unit_bytes = { value = \"16MiB\", source = \"s\" }\n";
    write(&folder, "least/small.toml", drive);
    write(&folder, "least/random.fio", "[job]\nrw=randwrite\nbs=4k\nsize=100%\nloops=2\n");
    write(&folder, "least/experiment.toml", "devices = [\"small.toml\"]\nworkload = \"random.fio\"\n");
    let run = json(&prints(&folder, &["run", "least", "--json"]));
    assert_eq!(run["cells"][0]["device"], "small.toml");
    assert!(run["cells"][0]["scale_search"].is_object(), "the scale is searched for: {run}");
    let printed = prints(&folder, &["run", "least"]);
    assert!(printed.starts_with("least\n"), "its title is its name: {printed}");

    // The command accepts any device file, also for an experiment of the project.
    write(&folder, "mine.toml", drive);
    let other = ["run", "three_stream", "--device", "mine.toml", "--scale", "1/1", "--drive-writes", "0.5", "--json"];
    let other = json(&prints(&folder, &other));
    assert_eq!(other["cells"].as_array().map(Vec::len), Some(9));
    assert_eq!(other["cells"][0]["device"], "mine.toml");
    assert_eq!(other["verdicts"].as_array().map(Vec::len), Some(0), "they are about ssd_a and ssd_b");

    write(&folder, "least/experiment.toml", "workload = \"random.fio\"\n");
    refused(&folder, &["run", "least"], &["least/experiment.toml", "devices"]);
    write(&folder, "least/experiment.toml", "devices = [\"small.toml\"]\n");
    refused(&folder, &["run", "./least"], &["least/experiment.toml", "no workload"]);
    refused(&folder, &["run", "./nowhere"], &["./nowhere", "there is no such file"]);
}

#[test]
fn a_scaled_model_that_was_saved_is_still_one() {
    let folder = folder();
    // Sizes are in bytes and scale with the model. The drive has 60 GiB, its scaled model less than
    // one.
    let first = "[first]\nrw=write\nbs=128k\nsize=48g\n";
    let second = "[second]\nrw=write\nbs=128k\noffset=8g\nsize=16g\nloops=3\n";
    write(&folder, "first.fio", first);
    write(&folder, "second.fio", second);
    write(&folder, "both.fio", format!("{first}{}", second.replace("]\n", "]\nstonewall\n")));
    let device = ["--device", "warp_default", "--set", "geometry.physical_bytes=64GiB", "--scale", "1/64", "--json"];
    let of = |arguments: &[&str]| json(&prints(&folder, arguments))["cells"][0].clone();
    let together = of(&[&["run", "both.fio"], &device[..]].concat());
    let first = of(&[&["run", "first.fio", "--save-snapshot", "a.warp"], &device[..]].concat());
    let second = of(&["run", "second.fio", "--load-snapshot", "a.warp", "--save-snapshot", "b.warp", "--json"]);
    assert_eq!(second["scale_denominator"], 64);
    assert_eq!(second["capacity_bytes"], together["capacity_bytes"]);
    for counter in ["host_bytes_written", "media_bytes_written", "media_bytes_erased"] {
        let sum = first[counter].as_u64().zip(second[counter].as_u64()).map(|(one, other)| one + other);
        assert_eq!(sum, together[counter].as_u64(), "{counter}");
    }
    // A second snapshot also keeps the history.
    let third = of(&["run", "second.fio", "--load-snapshot", "b.warp", "--json"]);
    assert_eq!(third["scale_denominator"], 64);
    assert_eq!(third["host_bytes_written"], second["host_bytes_written"]);
    assert!(files(folder.path()).iter().any(|file| file.ends_with("out/second/report.html")));
}

#[test]
fn a_job_runs_on_a_served_drive_as_in_the_lab() {
    let folder = folder();
    let drive = ["--device", "warp_default", "--capacity", "128M"];
    let set = ["--set", "geometry.over_provisioning=0.2"];
    let server = ServerProcess::start(&folder, &[&["--tcp", "127.0.0.1:0"], &drive[..], &set].concat());
    let on = format!("tcp:{}", server.address());
    let lab = [&["run", "three_paths", "--untimed", "--json"], &drive[..], &set].concat();
    let lab = json(&prints(&folder, &lab))["cells"][0].clone();
    let served = json(&prints(&folder, &["run", "three_paths", "--target", &on, "--json"]))["cells"][0].clone();
    for counter in ["host_bytes_written", "media_bytes_written", "media_bytes_erased", "waf"] {
        assert_eq!(served[counter], lab[counter], "{counter}");
    }
    for owner in served["owners"].as_array().expect("handles") {
        let same = lab["owners"].as_array().expect("handles").iter();
        let same = same.clone().find(|other| other["owner"] == owner["owner"]).expect("it is the lab's");
        assert_eq!(owner["host_bytes_written"], same["host_bytes_written"], "{owner}");
    }
    // The table has a part of another workload. Earlier counts of the drive are excluded.
    write(&folder, "more.fio", "[more]\nrw=randrw\nbs=64k\nsize=100%\n");
    let text = prints(&folder, &["run", "more.fio", "--target", &on, "--drive-writes", "0.25"]);
    assert!(text.contains("WAF") && text.contains("32 MiB") && text.contains("RUH 0"), "{text}");
    write(&folder, "bytes.fio", "[more]\nrw=randwrite\nbs=512\nsize=1%\n");
    refused(&folder, &["run", "bytes.fio", "--target", &on], &["512 bytes", "blocks of 4096"]);
    refused(&folder, &["run", "three_stream", "--target", &on], &["18 runs", "Name a job file"]);
    refused(&folder, &["run", "more.fio", "--target", &on, "--device", "ssd_a"], &["--target", "--device"]);
    let changed = ["run", "more.fio", "--target", &on, "--set", "gc.watermark_base=spare"];
    refused(&folder, &changed, &["gc.watermark_base", "only workload.PATH"]);
    server.stop();
    refused(&folder, &["run", "more.fio", "--target", &on], &[&on]);
    let local = ["run", "more.fio", "--target", "/dev/no-such-drive"];
    refused(&folder, &local, &["/dev/no-such-drive", "destroys", "--overwrite"]);
    let none = [&local[..], &["--overwrite"]].concat();
    refused(&folder, &none, &["/dev/no-such-drive", "the device does not exist"]);
    let other = ["run", "more.fio", "--target", "/dev/null", "--overwrite"];
    refused(&folder, &other, &["/dev/null", "not a block device"]);
    refused(&folder, &["run", "more.fio", "--target", "here"], &["tcp:ADDRESS:PORT"]);
}
