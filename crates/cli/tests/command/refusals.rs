//! Wrong names, files, options and destinations, each refused with one sentence.

use crate::common::{folder, prints, refused, write};

#[test]
fn names_that_do_not_exist() {
    let folder = folder();
    let known = "Known names are";
    refused(&folder, &["run", "one_strem"], &["one_strem", "did you mean one_stream?", known]);
    refused(&folder, &["reproduce", "one_strem"], &["did you mean one_stream?"]);
    refused(&folder, &["run", "qqq"], &["there is no experiment or workload qqq.", known]);
    refused(&folder, &["show", "device", "ssd_aa"], &["there is no device ssd_aa", "did you mean ssd_a?", known]);
    refused(&folder, &["show", "device", "warp_defalt"], &["did you mean warp_default?"]);
    refused(&folder, &["run", "one_stream", "--device", "ssd_z"], &["--device", "ssd_z", "ssd_a, ssd_b"]);
    refused(&folder, &["run", "three_stream_paper_shares", "--device", "ssd_z"], &["there is no device ssd_z"]);
    refused(&folder, &["show", "job", "three_strem"], &["did you mean three_stream?"]);
    refused(&folder, &["show", "job", "three_stream", "--device", "ssd_z"], &["there is no device ssd_z"]);
    refused(&folder, &["show", "device", "nowhere/ssd.toml"], &["nowhere/ssd.toml"]);
    refused(&folder, &["run", "nowhere/jobs.fio", "--device", "ssd_a"], &["nowhere/jobs.fio"]);
}

#[test]
fn calibration_without_its_package() {
    use std::os::unix::fs::PermissionsExt;
    // An interpreter without the package is visible only from outside.
    let folder = folder();
    write(&folder, "bare_python", "#!/bin/sh\nexit 69\n");
    let bare = folder.path().join("bare_python");
    std::fs::set_permissions(&bare, std::fs::Permissions::from_mode(0o755)).expect("it is ours");
    let bare = bare.to_str().expect("a path of text");
    let calibrate = |interpreter: &str| {
        let mut warp = std::process::Command::new(env!("CARGO_BIN_EXE_warp"));
        warp.env("WARP_PYTHON", interpreter).args(["calibrate", "--help"]);
        let output = warp.output().expect("warp runs");
        let message = String::from_utf8(output.stderr).expect("text");
        assert_eq!(output.status.code(), Some(2), "{message}");
        assert_eq!(message.lines().count(), 1, "{message}");
        assert!(message.contains("pip install ."), "{message}");
        message
    };
    assert!(calibrate("nowhere/python3").contains("needs Python, but nowhere/python3 cannot be started ("));
    assert!(calibrate(bare).contains(&format!("needs the Python package, which {bare} does not have")));
}

#[test]
fn job_files() {
    let folder = folder();
    write(&folder, "bad.fio", "[global]\nbs=4k\n\n[job]\nrw=randwrite\nrandom_distributoin=zipf:1.2\nsize=10%\n");
    let says = ["bad.fio", "6", "random_distributoin", "random_distribution"];
    refused(&folder, &["run", "bad.fio", "--device", "ssd_a"], &says);
    refused(&folder, &["show", "job", "./bad.fio"], &says);
    write(&folder, "good.fio", "[job]\nrw=randwrite\nbs=4k\nsize=10%\n");
    refused(&folder, &["run", "good.fio"], &["good.fio", "--device NAME", "warp list devices"]);
    refused(&folder, &["run", "three_stream_paper_shares"], &["--device NAME"]);
    write(&folder, "empty.fio", "");
    refused(&folder, &["run", "empty.fio", "--device", "ssd_a"], &["empty.fio"]);
    write(&folder, "binary.fio", [0xff, 0xfe, 0x00, 0x01]);
    refused(&folder, &["run", "binary.fio", "--device", "ssd_a"], &["binary.fio"]);
}

#[test]
fn device_profiles() {
    let folder = folder();
    let path = |name: &str| folder.path().join(name).display().to_string();
    write(&folder, "malformed.toml", "title = \"x\"\n[geometry\n");
    refused(&folder, &["show", "device", &path("malformed.toml")], &[&path("malformed.toml"), "line 2"]);
    refused(&folder, &["show", "device", "./malformed.toml"], &["./malformed.toml", "line 2"]);

    let geometry = "[geometry]\nphysical_bytes = { value = \"1GiB\", source = \"s\" }\n\
        over_provisioning = { value = 0.1, source = \"s\" }\nreclaim_unit_bytes = { value = \"16MiB\", source = \"s\" }\n";
    write(&folder, "good.toml", geometry);
    prints(&folder, &["show", "device", "good.toml"]);

    write(&folder, "key.toml", format!("{geometry}chanels = {{ value = 8, source = \"s\" }}\n"));
    refused(&folder, &["show", "device", "key.toml"], &["key.toml", "geometry.chanels", "`channels`"]);
    write(&folder, "table.toml", format!("{geometry}[handels]\ncount = {{ value = 8, source = \"s\" }}\n"));
    refused(&folder, &["show", "device", "table.toml"], &["table.toml", "handels", "did you mean handles?"]);
    write(&folder, "source.toml", format!("{geometry}channels = 8\n"));
    refused(&folder, &["show", "device", "source.toml"], &["source.toml", "geometry.channels", "has no source"]);
    write(&folder, "empty.toml", format!("{geometry}channels = {{ value = 8, source = \" \" }}\n"));
    refused(&folder, &["show", "device", "empty.toml"], &["empty.toml", "geometry.channels", "has no source"]);
    write(&folder, "kind.toml", format!("{geometry}channels = {{ value = \"many\", source = \"s\" }}\n"));
    refused(&folder, &["show", "device", "kind.toml"], &["kind.toml", "geometry.channels"]);
}

#[test]
fn experiment_files() {
    let folder = folder();
    write(&folder, "experiment.toml", "title = \"x\"\nsourse = \"y\"\n");
    refused(&folder, &["run", "./experiment.toml"], &["./experiment.toml", "sourse", "source"]);
}

#[test]
fn settings() {
    let folder = folder();
    let set = |value| ["show", "device", "ssd_a", "--set", value];
    let impossible = ["device ssd_a", "geometry.over_provisioning is 0,"];
    refused(&folder, &set("geometry.over_provisioning=0"), &impossible);
    refused(&folder, &set("geometry.reclaim_unit_bytes=3"), &["geometry.reclaim_unit_bytes is 3"]);
    refused(&folder, &set("geometry.channels=0"), &["geometry.channels"]);
    refused(&folder, &set("gc.unit_selektion=greedy"), &["gc.unit_selektion", "`victim_policy`"]);
    refused(&folder, &set("gc.victim_policy=greedi"), &["gc.victim_policy", "greedi", "`greedy`"]);
    refused(&folder, &set("geometry"), &["--set", "\"geometry\"", "PATH=VALUE"]);
    refused(&folder, &set("seed.x=1"), &["seed"]);
    refused(&folder, &set("=1"), &["--set"]);
    refused(&folder, &["run", "one_stream", "--set", "geometry.channels=0"], &["geometry.channels"]);

    refused(&folder, &["show", "device", "ssd_a", "--scale", "half"], &["--scale", "half", "1/64"]);
    refused(&folder, &["show", "device", "ssd_a", "--scale", "1/0"], &["--scale", "1/0"]);
    refused(&folder, &["show", "device", "ssd_a", "--scale", "1/3"], &["1/3", "1/2"]);
    refused(&folder, &["run", "one_stream", "--scale", "1/100000000"], &["1/100000000"]);
    refused(
        &folder,
        &["run", "one_stream", "--scale", "automatic"],
        &["--scale", "automatic", "1/64, auto or auto:1/4"],
    );
    refused(&folder, &["run", "one_stream", "--scale", "auto:1/65536"], &["auto:1/65536", "the smallest scaled model"]);
    refused(&folder, &["run", "latency", "--scale", "auto"], &["virtual time", "Give a scale"]);
    refused(&folder, &["run", "one_stream", "--drive-writes", "0"], &["--drive-writes"]);
    refused(&folder, &["run", "one_stream", "--drive-writes", "NaN"], &["--drive-writes"]);
    refused(&folder, &["run", "one_stream", "--wriet", "1"], &["--wriet", "--drive-writes"]);
    refused(&folder, &["rum"], &["rum", "run"]);
    refused(&folder, &["bench", "--rounds", "0"], &["--rounds"]);
}

#[test]
fn destinations() {
    let folder = folder();
    write(&folder, "file", "in the way");
    let run = |more: &[&'static str]| {
        let mut arguments =
            vec!["run", "one_stream", "--device", "ssd_a", "--scale", "1/2048", "--drive-writes", "0.01"];
        arguments.extend(more);
        arguments
    };
    refused(&folder, &run(&["--out", "file"]), &["file"]);
    refused(&folder, &run(&["--out", "file/below"]), &["file/below"]);
    refused(&folder, &run(&["--events", "missing/gc.parquet"]), &["missing/gc.parquet"]);
    refused(&folder, &run(&["--series", "missing/s.parquet"]), &["missing/s.parquet"]);
    refused(&folder, &run(&["--series", "."]), &["."]);
    let several = ["run", "one_stream", "--scale", "1/1024", "--save-snapshot", "device.warp"];
    refused(&folder, &several, &["--save-snapshot", "2 runs"]);
    let searched = ["--scale", "auto", "--save-snapshot", "device.warp"];
    let one = ["run", "one_stream", "--device", "ssd_a"];
    refused(&folder, &[one, searched].concat(), &["--save-snapshot", "several scaled models", "Give the scale"]);
}

#[test]
fn snapshots() {
    let folder = folder();
    write(&folder, "job.fio", "[job]\nrw=randwrite\nbs=4k\nsize=10%\n");
    write(&folder, "text.warp", "this is not a snapshot at all");
    let header = [&b"WARPSSD\0"[..], &ssd::snapshot::VERSION.to_le_bytes(), b"\x10\0\0"].concat();
    write(&folder, "short.warp", &header);
    refused(&folder, &["run", "job.fio", "--load-snapshot", "text.warp"], &["text.warp", "is not a WARP snapshot"]);
    refused(&folder, &["run", "job.fio", "--load-snapshot", "short.warp"], &["short.warp", "ends in the middle"]);
    refused(&folder, &["run", "job.fio", "--load-snapshot", "missing.warp"], &["missing.warp"]);
    for option in [["--device", "ssd_a"], ["--scale", "1/4"], ["--seed", "2"], ["--set", "a=1"]] {
        let arguments = ["run", "job.fio", "--load-snapshot", "text.warp", option[0], option[1]];
        refused(&folder, &arguments, &["--load-snapshot", option[0]]);
    }
}
