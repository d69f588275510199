//! Tests of `warp whatif` from a trace to a sentence, on traces with known answers.

use std::fmt::Write as _;
use std::path::Path;

use whatif::{WhatIfAnswer, WhatIfQuestion};

/// Writes a trace in the format of MSR Cambridge with a second between requests: (disk, offset in
/// pages, pages).
fn write_trace(path: &Path, requests: impl Iterator<Item = (u32, u64, u64)>) {
    let mut text = String::new();
    for (index, (disk, page, pages)) in requests.enumerate() {
        let ticks = 128_166_372_003_061_629 + index as u64 * 10_000_000;
        writeln!(text, "{ticks},host,{disk},Write,{},{},1", page * 4096, pages * 4096).expect("it is text");
    }
    std::fs::write(path, text).expect("a folder to write to");
}

/// Sequential writes that wrap around over 4096 pages, mixed with random writes to 4096 other
/// pages, from one generator.
fn mixed() -> impl Iterator<Item = (u32, u64, u64)> {
    let mut state = 1_u64;
    (0..24_000_u64).map(move |index| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        if index.is_multiple_of(2) { (0, index / 2 * 4 % 4096, 4) } else { (1, (state >> 33) % 4096, 1) }
    })
}

fn asked(path: &Path) -> WhatIfQuestion {
    let mut question = WhatIfQuestion::new(&path.display().to_string());
    // Few and small reclaim units, because the traces are small.
    let settings = [("reclaim_unit_bytes", "16GiB".into()), ("channels", 1.into()), ("dies_per_channel", 1.into())];
    for (setting, value) in settings {
        question.overrides.insert(format!("geometry.{setting}"), value);
    }
    question
}

fn answer(question: WhatIfQuestion) -> WhatIfAnswer {
    let study = question.study().expect("it fits");
    study.run(false, &()).expect("it runs").expect("nobody stops it")
}

fn amplification(answer: &WhatIfAnswer, name: &str) -> f64 {
    let row = answer.placements.iter().find(|row| row.name == name);
    row.expect("it was run").write_amplification
}

#[test]
fn separating_two_volumes_helps_and_the_sentence_says_so() {
    let folder = tempfile::tempdir().expect("a folder");
    let trace = folder.path().join("two_disks.csv");
    write_trace(&trace, mixed());
    let answer =
        answer(WhatIfQuestion { drive_bytes: Some(3_840_000_000_000), over_provisioning: Some(0.07), ..asked(&trace) });
    let none = amplification(&answer, "none");
    assert!(none > 1.2, "a sequence among random pages is copied: {none}");
    assert!(amplification(&answer, "by volume") < 0.95 * none, "{}", answer.headline);
    assert!(amplification(&answer, "oracle") < amplification(&answer, "by volume"));
    assert!(answer.headline.starts_with("Separating by volume would cut flash writes by"), "{}", answer.headline);
    assert!(answer.headline.contains("oracle") && answer.headline.contains("at your rate"), "{}", answer.headline);
    assert_eq!((answer.best.as_deref(), answer.advised()), (Some("by volume"), Some("by volume")));
    // 60,000 pages in 24,000 seconds, on 3.84 TB.
    let rate = 60_000.0 * 4096.0 / 23_999.0 * 86_400.0 / 3.84e12;
    assert!((answer.drive_writes_per_day / rate - 1.0).abs() < 0.01, "{}", answer.drive_writes_per_day);
    assert!(answer.notes.iter().any(|note| note.contains("it fills to 85 %")), "{:?}", answer.notes);
    let report = folder.path().join("report.html");
    answer.write_report(report::PlotLibrary::Embedded, &report).expect("it can be written");
    assert!(std::fs::read_to_string(report).expect("a page").contains("would cut flash writes"));
}

#[test]
fn a_sequence_needs_no_placement() {
    let folder = tempfile::tempdir().expect("a folder");
    let trace = folder.path().join("log.csv");
    write_trace(&trace, (0..8_000).map(|index| (0, index * 4 % 8192, 4)));
    let answer = answer(asked(&trace));
    assert_eq!(answer.best, None);
    assert!(
        answer.headline.starts_with("Placement cannot reduce flash writes here. The flash writes 1.0"),
        "{}",
        answer.headline
    );
    for row in &answer.placements {
        assert!(row.write_amplification < 1.02, "{}: {}", row.name, row.write_amplification);
    }
}

#[test]
fn what_cannot_be_answered_is_refused_with_a_remedy() {
    let folder = tempfile::tempdir().expect("a folder");
    let trace = folder.path().join("wide.csv");
    write_trace(&trace, (0..3000).map(|index| (0, index * 64, 64)));
    let refusal = |question: WhatIfQuestion| question.study().err().expect("it is refused").to_string();
    let small = refusal(WhatIfQuestion { drive_bytes: Some(300 << 20), ..asked(&trace) });
    assert!(small.contains("more than the 300 MiB of the drive") && small.contains("--drive"), "{small}");
    let reads = folder.path().join("reads.csv");
    std::fs::write(&reads, "128166372003061629,host,0,Read,0,4096,1\n").expect("a file");
    assert!(refusal(asked(&reads)).contains("writes nothing"));
    let nowhere = refusal(WhatIfQuestion::new("kvcache_202207"));
    assert!(nowhere.contains("did you mean kvcache_202210?"), "{nowhere}");
    for question in [
        WhatIfQuestion { fill: Some(1.5), ..asked(&trace) },
        WhatIfQuestion { drive_writes_per_day: Some(0.0), ..asked(&trace) },
        WhatIfQuestion { over_provisioning: Some(f64::NAN), ..asked(&trace) },
    ] {
        assert!(refusal(question).contains("Give a number between"));
    }
}

#[test]
fn a_cache_is_asked_for_its_groups() {
    let folder = tempfile::tempdir().expect("a folder");
    let cache = folder.path().join("objects.toml");
    let text = "kind = \"object_cache\"\npreset = \"twitter37\"\nused_percent = 95\nmax_object_bytes = \"160KiB\"\n\
                growth_factor = 4\ngroups = \"class\"\neviction = \"lru\"\n";
    std::fs::write(&cache, text).expect("a folder to write to");
    let answer = answer(WhatIfQuestion {
        device: "warp_default".to_string(),
        scale: Some("1/256".parse().expect("a scale")),
        drive_writes: Some(4.0),
        ..WhatIfQuestion::new(&cache.display().to_string())
    });
    let (none, own) = (amplification(&answer, "none"), amplification(&answer, "the workload's own"));
    assert!(own < none - 0.1, "{own} {none}");
    assert!(answer.how[0].contains("each group of objects"), "{:?}", answer.how);
}

#[test]
fn a_job_file_is_asked_for_what_it_asks_for() {
    let answer = answer(WhatIfQuestion { device: "ssd_b".to_string(), ..WhatIfQuestion::new("three_stream") });
    let own = amplification(&answer, "the workload's own");
    assert!(own < 0.5 * amplification(&answer, "none"), "{}", answer.headline);
    assert!(answer.best.is_some() && !answer.how.is_empty());
}

#[test]
fn what_a_trace_overwrites_is_counted_in_bytes_that_it_writes() {
    let folder = tempfile::tempdir().expect("a folder");
    let trace = folder.path().join("reader.csv");
    // Half of the requests read pages, most of which are never written. A third of the written
    // bytes overwrite earlier data.
    let mut written = std::collections::HashSet::new();
    let (mut bytes, mut overwritten) = (0_u64, 0_u64);
    let mut text = String::new();
    for index in 0..6_000_u64 {
        let ticks = 128_166_372_003_061_629 + index * 10_000_000;
        let (operation, page) = match index % 2 {
            0 => ("Read", 100_000 + index * 3),
            _ if index % 6 == 1 => ("Write", index / 7),
            _ => ("Write", 10_000 + index),
        };
        writeln!(text, "{ticks},host,0,{operation},{},4096,1", page * 4096).expect("it is text");
        if operation == "Write" {
            bytes += 4096;
            overwritten += if written.insert(page) { 0 } else { 4096 };
        }
    }
    std::fs::write(&trace, text).expect("a folder to write to");
    let share = overwritten as f64 / bytes as f64;
    assert!((0.01..0.3).contains(&share), "{share}");
    let answer = answer(asked(&trace));
    let note = answer.notes.iter().find(|note| note.contains("overwrites little"));
    let said = format!("overwrites little. Of the bytes that it writes, {:.1} %", share * 100.0);
    assert!(note.is_some_and(|note| note.contains(&said)), "{said}: {:?}", answer.notes);
}

#[test]
fn a_drive_of_another_size_has_reclaim_units_of_such_a_drive() {
    let answer = answer(WhatIfQuestion { drive_bytes: Some(480_000_000_000), ..WhatIfQuestion::new("three_stream") });
    let note = answer.notes.iter().find(|note| note.starts_with("A drive of 0.480 TB has"));
    assert!(note.is_some_and(|note| note.contains("of 512 MiB instead of 8 GiB")), "{:?}", answer.notes);
    let oracle = amplification(&answer, "oracle");
    assert!(oracle < 1.2, "open units of 8 GiB took the spare of 480 GB: {oracle}");
    assert!(answer.placements.iter().all(|row| row.is_comparable), "{:?}", answer.placements);
}

#[test]
fn a_drive_too_large_for_small_mapping_units_has_larger_ones() {
    let answer = answer(WhatIfQuestion {
        drive_bytes: Some(30_720_000_000_000),
        drive_writes: Some(2.0),
        ..WhatIfQuestion::new("three_stream")
    });
    let says = |words: &str| answer.notes.iter().any(|note| note.contains(words));
    assert!(says("Its mapping units have 16 KiB instead of 4 KiB"), "{:?}", answer.notes);
    assert!(says("Partial writes of mapping units of 16 KiB cause"), "{:?}", answer.notes);
}

#[test]
fn notes_name_no_option_that_the_command_does_not_have() {
    let options = simulate::warning::WarningCommand::WhatIf.options();
    let traces = tempfile::tempdir().expect("a folder");
    let trace = traces.path().join("log.csv");
    write_trace(&trace, (0..3_000).map(|index| (0, index * 4, 4)));
    let small = WhatIfQuestion { drive_bytes: Some(8 << 20), ..asked(&trace) };
    let refusal = small.study().err().expect("it does not fit").to_string();
    for said in [answer(asked(&trace)).notes.join(" "), refusal] {
        let named = said.split(|letter: char| !(letter.is_ascii_lowercase() || letter == '-'));
        for option in named.filter(|word| word.starts_with("--")) {
            assert!(options.contains(&option), "{option}: {said}");
        }
    }
}

#[test]
fn tenants_without_placement_are_separated_by_tenant() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("two.toml");
    let tenant = |name: &str, rw: &str| {
        format!(
            "[tenants.{name}]\nshare_percent = 50\nworkload = {{ kind = \"fio\", text = \"[j]\\nrw={rw}\\nbs=128k\\nnorandommap\\n\" }}\n"
        )
    };
    let text = format!("kind = \"tenants\"\n{}{}", tenant("log", "write"), tenant("store", "randwrite"));
    std::fs::write(&file, text).expect("a folder to write to");
    let mut question = asked(&file);
    question.drive_writes = Some(1.0);
    let answer = answer(question);
    let row = answer.placements.iter().find(|row| row.name == "by tenant").expect("a handle each");
    assert!(answer.notes.iter().any(|note| note.starts_with("Life assumes that the flash survives")));
    assert_eq!(row.handles, 2);
    assert!(!answer.headline.starts_with("The workload does not tell"), "{}", answer.headline);
}
