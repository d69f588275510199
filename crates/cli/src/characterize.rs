//! `warp characterize`: measures a drive with the crate `characterize` and has the Python package
//! fit a profile to it.

use std::io::{BufRead, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use base::HumanBytes;
use characterize::folder::ResultFolder;
use characterize::identity::DriveIdentity;
use characterize::journal::{Journal, JournalRecord, ProbeResult};
use characterize::plan::{FILL_RATE_ASSUMED, Plan, Probe};
use characterize::run::{Characterization, HALF_WIDTH_PER_SIGMA, ProbeObserver, ProbePhase, ProbeProgress};
use characterize::{CharacterizeError, file_systems};
use indicatif::{ProgressBar, ProgressStyle};
use report::rows::{CellValue, ReportTable};
use simulate::run::{ProgressObserver as _, RunProgress};

use crate::arguments::CharacterizeArgs;
use crate::target::{AnyDrive, named, open_for_writing};
use crate::watch::span;
use crate::{AnyError, ExitOutcome, bad_option, calibrate, execute, print};

/// Share of the drive's life above which the command asks.
const LIFE_SHARE_MAX: f64 = 0.01;
/// Smallest capacity of a drive. The model needs as much.
const CAPACITY_MIN: u64 = 16 << 20;
/// Steps of the progress bar.
const STEPS: f64 = 1000.0;
/// Module of the Python package that fits the profile.
const FIT: &str = "warp_ssd.characterize";

pub fn characterize(command: &CharacterizeArgs) -> Result<ExitOutcome, AnyError> {
    let earlier = Path::new(&command.target);
    if earlier.is_dir() {
        if command.dry_run {
            let problem = "a folder is only fitted, and a fit writes to no drive. Remove the option";
            return Err(bad_option("--dry-run", problem).into());
        }
        return fit(command, earlier);
    }
    let mut drive = open(command)?;
    if command.without_counters {
        drive.ignore_counter();
    }
    let identity = DriveIdentity::read(&mut drive, &command.target).map_err(|error| named(&command.target, &error))?;
    let mut plan = Plan::new(&identity, command.drive_writes, command.load_seconds);
    let folder = command.out.clone().unwrap_or_else(|| default_folder(&identity));
    // A new folder is created only after the confirmation.
    let is_earlier = ResultFolder::journal_in(&folder).exists();
    let earlier = if is_earlier { Some(open_journal(&folder, &identity)?) } else { None };
    let fill_rate = earlier.as_ref().and_then(|(_, journal)| journal.fill_rate()).unwrap_or(FILL_RATE_ASSUMED);
    if let Some((folder, journal)) = &earlier {
        folder.restore(&plan, journal)?;
        plan.skip_completed(journal);
    }
    if let Some(budget) = command.budget {
        plan.shorten(identity.capacity_bytes, fill_rate, budget.as_secs_f64());
    }
    let text = plan_text(command, &identity, &plan, fill_rate);
    if command.dry_run {
        print(&text);
        return Ok(ExitOutcome::Done);
    }
    confirm(command, &plan, &text)?;
    let (folder, mut journal) = match earlier {
        Some(earlier) => earlier,
        None => open_journal(&folder, &identity)?,
    };
    // A characterization that continues keeps its day.
    let identity = journal.drive().cloned().unwrap_or(identity);
    if journal.drive().is_none() {
        journal.append(JournalRecord::Drive { drive: Box::new(identity.clone()) })?;
    }
    let progress = execute::stoppable();
    let observer = BarObserver::new(progress, identity.counter.is_some());
    let mut run = Characterization {
        drive: &mut drive,
        identity: &identity,
        folder: &folder,
        journal: &mut journal,
        observer: &observer,
        deadline: command.budget.map(|budget| Instant::now() + budget),
    };
    let is_complete = run.run(&plan);
    observer.bar.finish_and_clear();
    let is_complete = is_complete.map_err(|error| match &error {
        CharacterizeError::Drive(_) => format!(
            "{}. {} keeps the finished probes, and the same command continues",
            named(&command.target, &error),
            folder.path().display()
        ),
        _ => error.to_string(),
    })?;
    if observer.progress.should_stop() {
        let path = folder.path().display();
        print(&format!("stopped. {path} keeps the finished probes, and the same command continues\n"));
        return Ok(ExitOutcome::Stopped);
    }
    if !is_complete {
        print("The time is over, so the last probes are missing.\n");
    }
    if command.no_fit {
        print(&format!("measured. `warp characterize {}` fits the profile\n", folder.path().display()));
        return Ok(ExitOutcome::Done);
    }
    fit(command, folder.path())
}

/// Has the Python package fit a profile to a folder.
fn fit(command: &CharacterizeArgs, folder: &Path) -> Result<ExitOutcome, AnyError> {
    if !folder.join("measurements.csv").is_file() {
        let problem = "the folder has no measurements.csv, so it is no characterization. Give a drive to measure";
        return Err(bad_option(&folder.display().to_string(), problem).into());
    }
    let arguments = ["fit".into(), folder.into()].into_iter().chain(command.fit_arguments.iter().map(Into::into));
    calibrate::run_module(FIT, "warp characterize", arguments)
}

fn open(command: &CharacterizeArgs) -> Result<AnyDrive, AnyError> {
    let target = command.target.as_str();
    let mut drive = open_for_writing("TARGET", target, &command.host, command.overwrite || command.dry_run)?;
    if drive.bytes() < CAPACITY_MIN {
        let problem = format!(
            "{target} has {}. A drive needs {} for the probes",
            HumanBytes(drive.bytes()),
            HumanBytes(CAPACITY_MIN)
        );
        return Err(bad_option("TARGET", problem).into());
    }
    // A drive that was measured begins with the data of a probe.
    let head = drive.read_start(file_systems::HEAD_BYTES).map_err(|error| named(target, &error))?;
    if let Some(found) = file_systems::signature(&head).filter(|_| !command.dry_run) {
        let remedy = "Remove it with `wipefs --all` or `nvme format` if you do not need it";
        return Err(bad_option("TARGET", format!("{target} contains {found}. {remedy}")).into());
    }
    Ok(drive)
}

fn default_folder(identity: &DriveIdentity) -> PathBuf {
    let name: String = format!("{}-{}", identity.model, identity.serial)
        .chars()
        .map(|letter| if letter.is_ascii_alphanumeric() { letter.to_ascii_lowercase() } else { '-' })
        .collect();
    Path::new("out").join(format!("characterize-{name}"))
}

fn open_journal(path: &Path, identity: &DriveIdentity) -> Result<(ResultFolder, Journal), AnyError> {
    // An existing journal is read before the folder changes.
    let journal_path = ResultFolder::journal_in(path);
    let earlier = if journal_path.exists() { Some(Journal::open(&journal_path)?) } else { None };
    let folder = ResultFolder::create(path)?;
    let journal = earlier.map_or_else(|| Journal::open(&journal_path), Ok)?;
    if let Some(earlier) = journal.drive()
        && !earlier.is_same_drive(identity)
    {
        let text = |identity: &DriveIdentity| {
            let counter = identity.counter.as_deref().unwrap_or("no");
            let fdp = if identity.fdp.is_some() { "with FDP" } else { "without FDP" };
            let (model, serial, firmware) = (&identity.model, &identity.serial, &identity.firmware);
            let capacity = HumanBytes(identity.capacity_bytes);
            format!("{model} {serial} (firmware {firmware}, {capacity}, {fdp}, {counter} counter)")
        };
        let problem = format!(
            "{} belongs to {} and not to {}. Choose another folder",
            path.display(),
            text(earlier),
            text(identity)
        );
        return Err(bad_option("--out", problem).into());
    }
    Ok((folder, journal))
}

fn plan_text(command: &CharacterizeArgs, identity: &DriveIdentity, plan: &Plan, fill_rate: f64) -> String {
    let capacity = identity.capacity_bytes;
    let mut table = ReportTable::default().labels(["probe"]).texts(["shows"]);
    table = table.numbers("", ["drive writes"]).numbers("min", ["time"]);
    for probe in &plan.probes {
        table.add([
            probe.name.into(),
            probe.shows.into(),
            CellValue::Fixed(plan.drive_writes(probe), 1),
            CellValue::Fixed(plan.seconds(probe, capacity, fill_rate) / 60.0, 1),
        ]);
    }
    let handles = identity.fdp.as_ref().map_or("no FDP".to_string(), |fdp| {
        format!("{} handles of {}", fdp.handles, HumanBytes(fdp.reclaim_unit_bytes))
    });
    let format = command.output.tables(&std::io::stdout());
    let drive_writes = plan.drive_writes_total();
    let words = format!(
        "At most {drive_writes:.0} drive writes ({}) and {}, at {}/s for a fill.\nThat is {:.2} % of a life of {} drive writes.\n",
        HumanBytes((drive_writes * capacity as f64) as u64),
        span(plan.seconds_total(capacity, fill_rate)),
        HumanBytes(fill_rate as u64),
        100.0 * drive_writes / command.rated_drive_writes,
        command.rated_drive_writes,
    );
    let missing: String = identity.missing.iter().map(|sentence| format!("{sentence}\n")).collect();
    let head = format!("{} {}, {}, {handles}\n", identity.model, identity.serial, HumanBytes(capacity));
    format!("{}{}{}", format.words(&head), table.render(format), format.words(&(words + &missing)))
}

/// Prints the plan, and asks on the terminal if the plan uses much of the drive's life.
fn confirm(command: &CharacterizeArgs, plan: &Plan, text: &str) -> Result<(), AnyError> {
    let share = plan.drive_writes_total() / command.rated_drive_writes;
    if share <= LIFE_SHARE_MAX || command.yes {
        print(text);
        return Ok(());
    }
    let problem = format!("the plan uses {:.1} % of the drive's life", 100.0 * share);
    if !std::io::stdin().is_terminal() {
        return Err(
            bad_option("--yes", format!("{problem}. Confirm this with --yes, or give a shorter --budget")).into()
        );
    }
    print(text);
    eprint!("warp: {problem}. Continue? [y/N] ");
    std::io::stderr().flush()?;
    let mut answer = String::new();
    std::io::stdin().lock().read_line(&mut answer)?;
    match answer.trim() {
        "y" | "Y" | "yes" => Ok(()),
        _ => Err("nothing was written".into()),
    }
}

/// Shows the progress in a bar on standard error. Without a terminal, the probes are lines of the
/// output.
struct BarObserver {
    progress: Arc<RunProgress>,
    /// True if the drive counts media bytes.
    has_counter: bool,
    bar: ProgressBar,
}

impl BarObserver {
    fn new(progress: Arc<RunProgress>, has_counter: bool) -> BarObserver {
        let template = "{bar:20} {percent:>3} %  {msg}";
        let style = ProgressStyle::with_template(template).expect("the template is valid").progress_chars("=> ");
        let is_shown = std::io::stderr().is_terminal();
        let bar = if is_shown { ProgressBar::new(STEPS as u64) } else { ProgressBar::hidden() };
        BarObserver { progress, has_counter, bar: bar.with_style(style) }
    }

    fn say(&self, line: &str) {
        if self.bar.is_hidden() {
            print(&format!("{line}\n"));
        } else {
            self.bar.println(line);
        }
    }
}

impl ProbeObserver for BarObserver {
    fn begin_probe(&self, index: usize, plan: &Plan, seconds_left: f64) {
        let (name, count) = (plan.probes[index].name, plan.probes.len());
        self.bar.set_prefix(format!("{name} ({} of {count})", index + 1));
        self.say(&format!("probe {} of {count}, {name}, at most {} left", index + 1, span(seconds_left)));
    }

    fn report(&self, progress: ProbeProgress) {
        let phase = match progress.phase {
            ProbePhase::Filling => "fill".to_string(),
            ProbePhase::Loading => "loads".to_string(),
            ProbePhase::Writing => {
                let waf = progress.waf.map_or(String::new(), |waf| format!(", WAF {waf:.3}"));
                format!("{:.2} drive writes{waf}", progress.drive_writes)
            }
        };
        self.bar.set_position((progress.share.min(1.0) * STEPS) as u64);
        self.bar.set_message(format!("{}: {phase}", self.bar.prefix()));
    }

    fn end_probe(&self, probe: &Probe, outcome: &ProbeResult) {
        let text = match outcome {
            ProbeResult::Waf(waf) if !self.has_counter => format!("{:.1} MB/s", 1e-6 / waf.value),
            ProbeResult::Waf(waf) => format!("WAF {:.3} +- {:.3}", waf.value, HALF_WIDTH_PER_SIGMA * waf.sigma),
            ProbeResult::Times { rows } => format!("{} rates and latencies", rows.len()),
            ProbeResult::ReclaimUnit { bytes: Some(bytes) } => HumanBytes(*bytes).to_string(),
            ProbeResult::ReclaimUnit { bytes: None } => "not visible to the host".to_string(),
        };
        let not_steady = matches!(outcome, ProbeResult::Waf(waf) if !waf.is_steady);
        let doubt = if not_steady { " (not steady)" } else { "" };
        self.say(&format!("  {}: {text}{doubt}", probe.name));
    }

    fn should_stop(&self) -> bool {
        self.progress.stop.load(Ordering::Relaxed)
    }
}
