//! Checks README and the pages of `docs/`.
//!
//! - Scores and errors in README and in the page of accuracy equal those of `docs/fidelity.md` and
//!   `docs/reference/claims.md`, which `warp reproduce` writes.
//! - Every command line of the pages runs to its end, or runs for a while and stops as with Ctrl-C.

mod common;

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use common::{ServerProcess, folder, kept_in, prints, write, write_secret};
use tempfile::TempDir;

const README: &str = include_str!("../../../README.md");
const ACCURACY: &str = include_str!("../../../docs/explanation/accuracy.md");
const FIDELITY: &str = include_str!("../../../docs/fidelity.md");
const CLAIMS: &str = include_str!("../../../docs/reference/claims.md");

/// Returns the part of a page below a heading, up to the next heading of its level.
fn section<'a>(page: &'a str, heading: &str) -> &'a str {
    let mut sections = page.split("\n## ");
    let found = sections.find(|section| section.lines().next() == Some(heading));
    found.unwrap_or_else(|| panic!("there is no section {heading:?}"))
}

/// Returns the cells of a row of the table of scores.
fn score(name: &str) -> Vec<&'static str> {
    let rows = section(FIDELITY, "Score").lines();
    let mut rows = rows.map(|row| row.trim_matches('|').split('|').map(str::trim).collect::<Vec<_>>());
    rows.find(|cells| cells[0] == name).unwrap_or_else(|| panic!("docs/fidelity.md has no row {name:?}"))
}

#[test]
fn readme_prints_the_score_that_was_found() {
    for name in ["predicted", "predicted, in `predictions`", "fitted"] {
        let cells = score(name);
        let expected = match cells[1] {
            "0" => "no numbers yet".to_string(),
            numbers => format!("{} of {numbers} hit ({}), mean error {}", cells[2], cells[3], cells[4]),
        };
        for (page, text) in [("README", README), ("docs/explanation/accuracy.md", ACCURACY)] {
            assert!(
                text.contains(&expected),
                "{page} does not say {expected:?} of the numbers {name}. Write docs/fidelity.md again, then correct it"
            );
        }
    }
}

#[test]
fn the_errors_of_the_nine_cells_are_those_that_were_found() {
    for (experiment, pages) in [
        ("three_stream", vec![README, ACCURACY]),
        ("three_stream_published_shares", vec![README, ACCURACY]),
        ("three_stream_emulator", vec![ACCURACY]),
    ] {
        let words: Vec<_> = section(CLAIMS, experiment).split_whitespace().collect();
        let before_over = words.windows(2).filter(|pair| pair[1] == "over");
        let found: Vec<_> = before_over.map(|pair| pair[0]).collect();
        assert!(found.len() >= 2, "docs/reference/claims.md has no mean errors of {experiment}");
        for (number, page) in found.iter().flat_map(|number| pages.iter().map(move |page| (number, page))) {
            let title = page.lines().next().unwrap_or_default();
            assert!(page.contains(number), "{title}: {number} of {experiment} is missing");
        }
    }
}

/// Beginnings of command lines in the pages.
const NAMES: [&str; 2] = ["warp ", "cargo run --release -- "];

/// Running time before a command is stopped. Refusals come earlier, and short commands have ended
/// by then.
const WORKS: Duration = Duration::from_millis(1500);
/// Time limit for the end of a stopped command.
const ENDS: Duration = Duration::from_secs(60);
/// Device that does not exist, in place of devices in the pages.
const NO_DEVICE: &str = "/dev/no-such-drive";

/// Cache that cannot be created.
const NO_CACHE: &str = "/dev/null/guest";

/// Adds the pages of a folder of `docs/` and of the folders below it. Command lines of benchmarks
/// need machines and programs that a test does not have.
fn find_pages(folder: &Path, pages: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("a folder of pages") {
        let path = entry.expect("an entry").path();
        if path.is_dir() && !path.ends_with("benchmarks") {
            find_pages(&path, pages);
        } else if path.extension().is_some_and(|ending| ending == "md") {
            pages.push(path);
        }
    }
}

/// Returns the files that a page tells its reader to save. Such a file is a paragraph that ends
/// with "as `NAME`:", followed by a block of code.
fn files_of(page: &Path) -> Vec<(String, String)> {
    let text = std::fs::read_to_string(page).expect("a page");
    let mut files = Vec::new();
    let mut lines = text.lines().peekable();
    let mut paragraph = String::new();
    while let Some(line) = lines.next() {
        if line.starts_with("```") {
            let block = lines.by_ref().take_while(|line| !line.starts_with("```"));
            let block: String = block.map(|line| format!("{line}\n")).collect();
            let name = paragraph.strip_suffix("`:").and_then(|text| text.rsplit_once("as `"));
            files.extend(name.map(|(_, name)| (name.to_string(), block)));
            paragraph.clear();
        } else if !line.is_empty() {
            if !paragraph.is_empty() {
                paragraph.push(' ');
            }
            paragraph.push_str(line);
        } else if lines.peek().is_some_and(|next| !next.starts_with("```")) {
            paragraph.clear();
        }
    }
    files
}

/// Returns the command lines in a page's blocks of code.
fn command_lines(page: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(page).expect("a page");
    let mut lines = Vec::new();
    let mut in_shell = false;
    // A backslash at the end continues a line.
    for line in text.replace("\\\n", " ").lines() {
        if let Some(language) = line.trim_start().strip_prefix("```") {
            in_shell = !in_shell && language == "sh";
        } else if in_shell || line.starts_with("    ") {
            let bare = NAMES.iter().find_map(|name| line.trim().strip_prefix(name));
            lines.extend(bare.map(str::to_string));
        }
    }
    lines
}

/// Splits a command line into words like a shell. Quotes join words, and a comment or a pipe ends
/// the line.
fn words(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quote = None;
    for letter in line.chars() {
        let word = words.last_mut().expect("there is always one");
        match (letter, quote) {
            ('\'' | '"', None) => quote = Some(letter),
            (letter, Some(open)) if letter == open => quote = None,
            ('#', None) if word.is_empty() => break,
            ('|' | '>' | '&' | ';', None) => break,
            (' ', None) if word.is_empty() => {}
            (' ', None) => words.push(String::new()),
            (letter, _) => word.push(letter),
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

/// Returns the file that receives the output of a command line.
fn output_file(line: &str) -> Option<&str> {
    let (_, file) = line.split_once(" > ")?;
    file.split_whitespace().next()
}

/// Creates a folder with small versions of the files that the pages name.
fn with_files() -> TempDir {
    let folder = folder();
    let line = |index: u64| format!("{},host,0,Write,{},16384,0\n", index * 10_000, index * 7919 % 40_000 * 16384);
    let trace: String = (0..60_000).map(line).collect();
    let compressed = zstd::encode_all(trace.as_bytes(), 1).expect("it is compressed");
    for name in ["msr.csv", "trace.csv"] {
        write(&folder, name, &trace);
    }
    // The format is unknown, as that of `--columns` in the pages.
    let odd = |index: u64| format!("{},W,{},16\n", index * 1000, index * 7919 % 40_000 * 32);
    write(&folder, "odd.csv", (0..20_000).map(odd).collect::<String>());
    let numbered = |index: u64| format!("{index},{},1,{},16\n", index * 1000, index * 7919 % 40_000 * 32);
    write(&folder, "numbered.csv", (0..20_000).map(numbered).collect::<String>());
    write(&folder, "volume7.csv.zst", &compressed);
    write(&folder, "capture.csv.zst", &compressed);
    write(&folder, "owners.csv", "wal,0,1048576,1\ntables,1048576,67108864\n");
    write(&folder, "my.fio", "[job]\nrw=randwrite\nbs=64k\nsize=25%\nio_size=64m\n");
    write(&folder, "plan.toml", include_str!("../../../docs/faults/failing_media.toml"));
    write_secret(&folder, "token", "a token of more than 16 bytes\n");
    write(&folder, "my_workload.toml", "kind = \"fio\"\nfile = \"my.fio\"\n");
    folder
}

/// Waits for a process with a time limit. Returns its exit code.
fn wait(process: &mut Child, most: Duration) -> Option<i32> {
    let begun = Instant::now();
    while begun.elapsed() < most {
        if let Some(status) = process.try_wait().expect("it can be waited for") {
            return status.code();
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    None
}

/// Runs a command. Returns its problem, if any.
fn problem(folder: &TempDir, arguments: &[String], output: Option<&str>) -> Option<String> {
    let output = output.map(|name| std::fs::File::create(folder.path().join(name)).expect("a file for the output"));
    let mut command = Command::new(env!("CARGO_BIN_EXE_warp"));
    command
        .args(arguments)
        .current_dir(folder)
        .env("WARP_RUNS", kept_in(folder))
        // This test boots no guest. `warp guest` fails after it has checked its arguments.
        .env("WARP_GUEST_CACHE", NO_CACHE);
    let mut process = command
        .stdin(Stdio::null())
        .stdout(output.map_or_else(Stdio::null, Stdio::from))
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program runs");
    let code = wait(&mut process, WORKS).or_else(|| {
        let id = rustix::process::Pid::from_child(&process);
        rustix::process::kill_process(id, rustix::process::Signal::INT).expect("it runs");
        // A stopped command may also have ended by itself.
        wait(&mut process, ENDS).filter(|code| ![130, 0].contains(code)).or(Some(0))
    });
    let _ = process.kill();
    let said = common::errors(&mut process);
    let is_missing =
        [NO_DEVICE, "the guest is not available, because "].map(|words| said.starts_with(&format!("warp: {words}")));
    (code != Some(0) && !is_missing.contains(&true)).then(|| format!("ended with {code:?}: {said}"))
}

#[test]
fn every_command_line_of_the_pages_works() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut pages = Vec::new();
    find_pages(&root.join("docs"), &mut pages);
    pages.push(root.join("README.md"));
    let folder = with_files();
    for (name, content) in pages.iter().flat_map(|page| files_of(page)) {
        write(&folder, &name, content);
    }
    let ended = ["--capacity", "128M", "--data", "ci.img", "--tcp", "127.0.0.1:0"];
    let ended = ServerProcess::start(&folder, &ended);
    prints(&folder, &["run", "my.fio", "--target", &format!("tcp:{}", ended.address())]);
    ended.stop();
    let drive =
        ServerProcess::start(&folder, &["--device", "warp_default", "--capacity", "1G", "--tcp", "127.0.0.1:0"]);
    let address = drive.address().to_string();
    // Lines of one page may depend on earlier lines. Pages are independent of each other.
    let counts = std::thread::scope(|scope| {
        let (folder, address) = (&folder, &address);
        let works = |page| scope.spawn(move || lines_that_work(page, folder, address));
        let pages: Vec<_> = pages.iter().map(|page| works(page)).collect();
        pages.into_iter().map(|page| page.join().expect("its lines work")).collect::<Vec<_>>()
    });
    let count: usize = counts.iter().sum();
    assert!(count >= 18, "only {count} command lines were found");
    drive.stop();
}

/// Runs the command lines of a page against the drive at `address`. Returns their number.
fn lines_that_work(page: &Path, folder: &TempDir, address: &str) -> usize {
    let lines = command_lines(page);
    for line in &lines {
        let given = line.replace("/dev/nvme0n1", NO_DEVICE).replace("/dev/ng0n1", NO_DEVICE);
        // Each server has a separate port, and its clients get that port.
        let given = match given.starts_with("serve") {
            true => given
                .replace("127.0.0.1:4420", "127.0.0.1:0")
                .replace("127.0.0.1:8090", "127.0.0.1:0")
                .replace("/tmp/", ""),
            false => given.replace("127.0.0.1:4420", address),
        };
        let mut words = words(&given);
        if words[0] == "studio" {
            words.extend(["--listen", "127.0.0.1:0", "--no-open"].map(str::to_string));
        }
        let problem = problem(folder, &words, output_file(line));
        assert_eq!(problem, None, "{}: warp {line}", page.display());
    }
    lines.len()
}
