//! Answers how much data placement (FDP) would help a workload on a drive.
//!
//! ```text
//! WhatIfQuestion (workload, drive) -> Survey (touched and written bytes, directives) -> WhatIfStudy
//! WhatIfStudy -> Experiment::select -> run -> WhatIfAnswer: a sentence, a row for each placement, a report
//! ```
//!
//! A [`WhatIfStudy`] is an experiment with a variant for each placement. A trace that touches a small
//! part of the drive runs on a smaller drive that its data fills. This crate chooses the
//! experiment. The lab runs it, reads the results and shows them. The answer's notes list each
//! choice: another capacity, a scaled model, the length of the run, the measured window.
//! `docs/how-to/whatif.md` is the manual.

mod answer;
mod array;
mod economics;
mod kvcache;
mod placement_answer;
mod placements;
mod sentence;
mod survey;

use serde::Serialize;
use toml::Value;

use analysis::interval::Intervals;
use base::HumanBytes;
use experiment::{
    Experiment, LabError, Profile, RunChange, RunOptions, RunOverrides, RunSpec, Scale, ScaleChoice, SettingOverrides,
    WorkloadChanges, scaled_model, workloads,
};
use simulate::run::{self, ProgressObserver, RunResult};
use simulate::steady;
use ssd::{DeviceConfig, DeviceLayout};
use workload::trace::MappedTraces;

pub use answer::WhatIfAnswer;
pub use array::{ArrayAnswer, ArrayQuestion, ArrayRow};
use economics::within;
pub use economics::{DriveLife, Factors};
pub use kvcache::{KvCacheAnswer, KvCacheFactor, KvCachePlan, KvCacheQuestion, LanguageModel, PromptReuse};
pub use placement_answer::PlacementAnswer;
pub use placements::{Knowledge, PlacementOption};
use survey::Survey;

/// Minimum warm-up of a trace before the measured window, full drive writes. The drive begins full,
/// and during the warm-up the effect of its initial fill fades. The warm-up is as long as the
/// window if that is longer.
const WARM_UP_CAPACITIES_MIN: f64 = 3.0;
/// Upper bound of the measured window of a trace, full drive writes. The window is one pass of the
/// trace, and at least one full drive write.
const WINDOW_CAPACITIES_MAX: f64 = 50.0;
/// Full drive writes after which a workload that is not a trace ends, unless it is steady before.
const DRIVE_WRITES_MAX: f64 = 20.0;
/// Share of overwrites among a trace's writes. Below this share the trace's repetition dominates
/// the result.
const OVERWRITTEN_MIN: f64 = 0.5;
/// Default share of the drive that the data fills.
const FILL: f64 = 0.85;
/// Minimum share of the drive that a trace touches to run on a drive of this size. Below this share
/// it runs on a smaller drive that it fills.
const FILLED: f64 = 0.5;

/// A workload and a drive. Serialization skips the fields that [`WhatIfAnswer`] contains.
#[derive(Clone, Debug, Serialize)]
pub struct WhatIfQuestion {
    /// A job file, a model, a block trace, or a folder of block traces.
    #[serde(skip)]
    pub workload: String,
    #[serde(skip)]
    pub device: String,
    /// Capacity of the drive, bytes. `None` takes the profile's.
    #[serde(skip)]
    pub drive_bytes: Option<u64>,
    /// Over-provisioning, as a share of the capacity. `None` takes the profile's.
    pub over_provisioning: Option<f64>,
    /// Share of the drive that a trace's data fills. The capacity of the simulated drive follows
    /// from it. `None` takes 0.85 if the trace touches less than half of the drive, and the drive
    /// itself if it touches more.
    pub fill: Option<f64>,
    /// Drive writes per day (DWPD): multiples of the capacity that the host writes each day. `None`
    /// derives it from the trace's times, or takes 1.
    #[serde(skip)]
    pub drive_writes_per_day: Option<f64>,
    /// Size of the scaled model. `None` takes the smallest that behaves like the drive.
    pub scale: Option<Scale>,
    /// Limit of the bytes that the host writes, in multiples of the capacity. `None` takes two
    /// passes of a trace, or 20.
    pub drive_writes: Option<f64>,
    /// Settings of the device by dotted path. Settings of the workload begin with `workload.`.
    pub overrides: SettingOverrides,
    pub seed: u64,
    #[serde(skip)]
    pub factors: Factors,
}

impl WhatIfQuestion {
    /// A question about a workload, with defaults for all other fields.
    pub fn new(workload: &str) -> WhatIfQuestion {
        WhatIfQuestion {
            workload: workload.to_string(),
            device: "ssd_a".to_string(),
            drive_bytes: None,
            over_provisioning: None,
            fill: None,
            drive_writes_per_day: None,
            scale: None,
            drive_writes: None,
            overrides: SettingOverrides::new(),
            seed: 1,
            factors: Factors::default(),
        }
    }

    /// Refuses values out of range.
    fn check(&self) -> Result<(), LabError> {
        within("fill (--fill)", self.fill_share(), 0.05, 1.0)?;
        within("op (--op)", self.over_provisioning.unwrap_or(0.1), 0.0, 10.0)?;
        within("drive_writes (--drive-writes)", self.drive_writes.unwrap_or(1.0), 0.1, 1000.0)?;
        within("rate (--rate)", self.drive_writes_per_day.unwrap_or(1.0), 1e-6, 1e4)?;
        self.factors.check()
    }

    /// Refuses a workload that is neither a file nor a known name.
    fn check_name(&self) -> Result<(), LabError> {
        let known = workloads::names();
        if workloads::is_workload_file(&self.workload) || known.contains(&self.workload) {
            return Ok(());
        }
        workloads::check_kind(&self.workload)?;
        Err(LabError::unknown("file or workload", &self.workload, known.iter().map(String::as_str)))
    }

    /// Prepares the runs that answer the question.
    ///
    /// # Errors
    /// The workload or device is unknown, a setting is impossible, or the workload does not fit the
    /// drive. The message names the remedy.
    pub fn study(self) -> Result<WhatIfStudy, LabError> {
        self.check()?;
        let drive = self.drive()?;
        self.check_name()?;
        let table = workloads::table_of(&self.workload, &self.workload_changes())?;
        let kept = MappedTraces::keep();
        let survey = Survey::new(&self, &table, &drive)?;
        let simulated = SimulatedDrive::new(&self, &survey, &drive)?;
        let placements = placements::list_placements(&self, &table, &survey, &simulated, drive.handles)?;
        let mut experiment = Experiment::from_workload(&self.workload, &self.device);
        experiment.title = format!("{} on {}: placements", experiment.slug, self.device);
        experiment.source = String::new();
        experiment.variants = placements.iter().map(|(placement, change)| placement.variant(change)).collect();
        experiment.run = RunOptions {
            timed: Some(false),
            drive_writes: Some(simulated.window.drive_writes),
            steady_state: Some(simulated.window.steady_state),
            precondition_drive_writes: Some(simulated.window.precondition_drive_writes),
            tail_drive_writes: Some(simulated.window.window_capacities),
            seeds: Some(vec![self.seed]),
            scale: Some(simulated.scale.map_or(ScaleChoice::FULL, ScaleChoice::Fixed)),
            ..RunOptions::default()
        };
        let placements = placements.into_iter().map(|(placement, _)| placement).collect();
        let selection = RunOverrides {
            change: RunChange::from_settings(&self.settings_on(&drive)),
            capacity_bytes: simulated.resized_bytes,
            scales_reclaim_units: true,
            ..RunOverrides::default()
        };
        Ok(WhatIfStudy { question: self, drive, survey, simulated, experiment, selection, placements, _kept: kept })
    }

    /// The question's settings that apply to the workload.
    fn workload_changes(&self) -> WorkloadChanges {
        let settings = RunChange::from_settings(&self.overrides).settings;
        WorkloadChanges { settings, ..WorkloadChanges::default() }
    }

    /// The drive of the question, resized if it gives a capacity.
    fn drive(&self) -> Result<ModelledDrive, LabError> {
        let profile = Profile::find(&self.device)?;
        let of_device = RunChange::from_settings(&self.settings()).device;
        let own = profile.config(&of_device)?;
        let Some(bytes) = self.drive_bytes else {
            let layout = self.layout(&own)?;
            return Ok(ModelledDrive::new(own, &layout, None));
        };
        let sized = scaled_model::with_capacity(&self.device, &own, bytes, &of_device)?;
        let layout = self.layout(&sized.config)?;
        let drive = ModelledDrive::new(sized.config, &layout, sized.is_resized.then_some(bytes));
        let is_other = drive.config.geometry.reclaim_unit_bytes != own.geometry.reclaim_unit_bytes;
        Ok(ModelledDrive { note: is_other.then_some(sized.note), ..drive })
    }

    /// Share of the drive that the data fills.
    fn fill_share(&self) -> f64 {
        self.fill.unwrap_or(FILL)
    }

    /// Capacity of the drive that a trace's data fills, bytes.
    fn filled_bytes(&self, survey: &Survey) -> u64 {
        (survey.touched_bytes as f64 / self.fill_share()) as u64
    }

    fn layout(&self, config: &DeviceConfig) -> Result<DeviceLayout, LabError> {
        let device = self.device.clone();
        DeviceLayout::new(config).map_err(|error| LabError::Device { device, error })
    }

    /// All settings, with the over-provisioning.
    fn settings(&self) -> SettingOverrides {
        let share = self.over_provisioning.map(Value::Float);
        let share = share.map(|share| ("geometry.over_provisioning".to_string(), share));
        self.overrides.clone().into_iter().chain(share).collect()
    }

    /// All settings, with the over-provisioning and the capacity of the drive if the question gives
    /// one.
    fn settings_on(&self, drive: &ModelledDrive) -> SettingOverrides {
        let mut overrides = self.settings();
        if self.drive_bytes.is_some() && drive.resized_bytes.is_none() {
            let bytes = drive.config.geometry.capacity_bytes.expect("it was given");
            overrides.insert("geometry.capacity_bytes".to_string(), Value::Integer(bytes as i64));
        }
        overrides
    }
}

#[derive(Clone, Debug)]
struct ModelledDrive {
    config: DeviceConfig,
    capacity_bytes: u64,
    physical_bytes: u64,
    /// Reclaim unit handles that a host can name.
    handles: u64,
    /// Number of superblocks: reclaim units that span all dies.
    units: u32,
    /// Capacity of the drive, if the size of its reclaim units is scaled to that capacity and not
    /// the profile's.
    resized_bytes: Option<u64>,
    /// Difference of its reclaim units from the profile's, if their size is scaled to the capacity.
    note: Option<String>,
}

impl ModelledDrive {
    fn new(config: DeviceConfig, layout: &DeviceLayout, resized_bytes: Option<u64>) -> ModelledDrive {
        ModelledDrive {
            config,
            capacity_bytes: layout.capacity_bytes(),
            physical_bytes: u64::from(layout.physical_pages) * layout.page_bytes,
            handles: layout.handles.len() as u64,
            units: layout.superblocks(),
            resized_bytes,
            note: None,
        }
    }
}

/// The simulated drive, the length of the run, and the measured window.
#[derive(Clone, Debug)]
struct SimulatedDrive {
    /// Capacity, if the drive is resized with `scaled_model::resized`.
    resized_bytes: Option<u64>,
    /// Size of its reclaim units at full scale, bytes.
    unit_bytes: u64,
    /// Spare flash as a share of the capacity.
    spare_share: f64,
    scale: Option<Scale>,
    window: MeasuredWindow,
    /// Notes on the choices, one sentence each.
    notes: Vec<String>,
}

impl SimulatedDrive {
    fn new(question: &WhatIfQuestion, survey: &Survey, drive: &ModelledDrive) -> Result<SimulatedDrive, LabError> {
        let share = survey.touched_bytes as f64 / drive.capacity_bytes as f64;
        let is_filled = survey.is_trace && (share < FILLED || question.fill.is_some());
        SimulatedDrive::check(question, survey, drive, is_filled)?;
        let mut notes: Vec<String> = drive.note.clone().into_iter().collect();
        let (config, resized_bytes) = if is_filled {
            let (config, filled_bytes, note) = filled(question, survey, drive)?;
            notes.push(note);
            (config, Some(filled_bytes))
        } else {
            notes.extend(spare_note(survey, share));
            (drive.config.clone(), drive.resized_bytes)
        };
        let capacity_bytes = question.layout(&config)?.capacity_bytes();
        let scale = match question.scale {
            // A drive that the trace fills is not scaled down again. Its size is already the chosen
            // one.
            _ if is_filled => None,
            Some(scale) => Some(scale),
            None => Some(scaled_model::sizes(&question.device, &config, None)?[0]),
        };
        if let Some(scale) = scale.filter(|scale| *scale != Scale::FULL) {
            notes.push(format!(
                "The run used a scaled model of {scale} of the drive. Set another scale with `--scale`."
            ));
        }
        notes.extend(repetition_note(survey));
        let window = MeasuredWindow::new(question, survey, capacity_bytes);
        notes.push(window.note());
        Ok(SimulatedDrive {
            resized_bytes,
            unit_bytes: config.geometry.reclaim_unit_bytes,
            spare_share: drive.spare_share(),
            scale,
            window,
            notes,
        })
    }

    /// Refuses combinations of options that exclude each other, and a trace larger than the drive.
    fn check(
        question: &WhatIfQuestion,
        survey: &Survey,
        drive: &ModelledDrive,
        is_filled: bool,
    ) -> Result<(), LabError> {
        if survey.is_trace && survey.touched_bytes > drive.capacity_bytes {
            let problem = format!(
                "the trace touches {}, more than the {} of the drive. Give a drive that holds it (--drive {})",
                HumanBytes(survey.touched_bytes),
                HumanBytes(drive.capacity_bytes),
                HumanBytes(question.filled_bytes(survey))
            );
            return Err(LabError::invalid(&question.workload, problem));
        }
        if question.fill.is_some() && !survey.is_trace {
            let problem = "only a trace can fill a drive to a share. The size of other workloads is their own setting. Remove --fill";
            return Err(LabError::invalid("fill (--fill)", problem));
        }
        if is_filled && question.scale.is_some() {
            let problem = "the trace already runs on a smaller drive that it fills. Remove --scale";
            return Err(LabError::invalid("scale (--scale)", problem));
        }
        Ok(())
    }
}

/// The drive that a trace's data fills: its settings, its capacity in bytes, and a note on it.
fn filled(
    question: &WhatIfQuestion,
    survey: &Survey,
    drive: &ModelledDrive,
) -> Result<(DeviceConfig, u64, String), LabError> {
    let filled_bytes = question.filled_bytes(survey);
    let config = scaled_model::resized(&question.device, &drive.config, filled_bytes);
    let config = config.map_err(|_| survey.too_small(question))?;
    let units = question.layout(&config)?.superblocks();
    let is_near = f64::from(units.abs_diff(drive.units)) <= 0.05 * f64::from(drive.units);
    let unit_count = if is_near { "the same number of".to_string() } else { format!("{units} (not {})", drive.units) };
    let note = format!(
        "The trace touches {}, which is {} of the drive's {}. It runs on a drive of {}, which it fills to {:.0} %. \
         That drive has {unit_count} reclaim units and the same share of spare flash. Set how full your drive is with \
         `--fill`.",
        HumanBytes(survey.touched_bytes),
        percent(survey.touched_bytes as f64 / drive.capacity_bytes as f64),
        HumanBytes(drive.capacity_bytes),
        HumanBytes(filled_bytes),
        question.fill_share() * 100.0
    );
    Ok((config, filled_bytes, note))
}

/// A note for workloads that leave a part of the drive unused.
fn spare_note(survey: &Survey, share: f64) -> Option<String> {
    let (what, remedy) = match survey.is_trace {
        true => ("trace", "`--fill` runs it on a drive that it fills"),
        false if share < FILLED => ("workload", "`--drive` sets another capacity"),
        false => return None,
    };
    Some(format!(
        "The {what} touches {} of the drive. The unwritten rest acts as spare flash. {remedy}.",
        percent(share)
    ))
}

/// A note for traces with few overwrites.
fn repetition_note(survey: &Survey) -> Option<String> {
    let overwritten = survey.overwritten_share();
    (survey.is_trace && overwritten < OVERWRITTEN_MIN).then(|| {
        format!(
            "The trace overwrites little. Of the bytes that it writes, {} were written before. Most overwrites here \
             come from repeating the trace in the same order, which needs no placement. A longer trace gives a \
             better answer.",
            percent(overwritten)
        )
    })
}

/// Length of a run and of its measured window, in multiples of the capacity.
#[derive(Clone, Debug)]
struct MeasuredWindow {
    precondition_drive_writes: f64,
    drive_writes: f64,
    window_capacities: f64,
    /// True for workloads other than traces, which run until write amplification is steady. A trace
    /// repeats up to `drive_writes`.
    steady_state: bool,
}

impl MeasuredWindow {
    fn new(question: &WhatIfQuestion, survey: &Survey, capacity_bytes: u64) -> MeasuredWindow {
        if !survey.is_trace {
            return MeasuredWindow {
                precondition_drive_writes: 0.0,
                drive_writes: question.drive_writes.unwrap_or(DRIVE_WRITES_MAX),
                window_capacities: steady::ROUNDS as f64,
                steady_state: true,
            };
        }
        let pass_capacities = survey.pass_bytes_written as f64 / capacity_bytes as f64;
        // Rounded to hundredths, as the note prints it.
        let window_capacities = (pass_capacities.clamp(1.0, WINDOW_CAPACITIES_MAX) * 100.0).round() / 100.0;
        let warm_up_and_window = window_capacities.max(WARM_UP_CAPACITIES_MIN) + window_capacities;
        let drive_writes = question.drive_writes.unwrap_or(warm_up_and_window);
        MeasuredWindow {
            precondition_drive_writes: survey.touched_bytes as f64 / capacity_bytes as f64,
            drive_writes,
            window_capacities: window_capacities.min(drive_writes),
            steady_state: false,
        }
    }

    fn note(&self) -> String {
        let window = self.window_capacities;
        match self.steady_state {
            true => {
                let limit = self.drive_writes;
                format!(
                    "The run ends when it is steady, or after {limit:.0} drive writes. Write amplification is that \
                     of the last {window:.0}."
                )
            }
            false => format!(
                "Write amplification is that of the last {window:.1} drive writes, after {:.1} others. The data \
                 fills the drive before the run, and the trace repeats when it ends.",
                self.drive_writes - window
            ),
        }
    }
}

/// A share in percent, with enough digits that a small share does not read 0.
fn percent(share: f64) -> String {
    match share * 100.0 {
        percent if percent < 0.1 => "less than 0.1 %".to_string(),
        percent if percent < 10.0 => format!("{percent:.1} %"),
        percent => format!("{percent:.0} %"),
    }
}

/// The runs that an answer needs.
pub struct WhatIfStudy {
    question: WhatIfQuestion,
    drive: ModelledDrive,
    survey: Survey,
    simulated: SimulatedDrive,
    /// An experiment with a variant for each placement.
    pub experiment: Experiment,
    selection: RunOverrides,
    placements: Vec<PlacementOption>,
    /// The survey and the runs read a trace once.
    _kept: MappedTraces,
}

impl WhatIfStudy {
    /// Runs all placements. With `uncertainty` it also runs the members of the device's ensemble, for
    /// no placement and for the best one. Returns `None` if the run was stopped early.
    ///
    /// # Errors
    /// A run needs more memory than the system has, or its workload cannot be read.
    pub fn run(&self, uncertainty: bool, observer: &dyn ProgressObserver) -> Result<Option<WhatIfAnswer>, LabError> {
        let Some((results, _)) = self.run_cells(&self.selection, observer)? else {
            return Ok(None);
        };
        let answer = self.evaluate(results, Intervals::default());
        let Some(selection) = self.interval_selection(&answer).filter(|_| uncertainty) else {
            return Ok(Some(answer));
        };
        let with_members = self.run_cells(&selection, observer)?;
        Ok(with_members.map(|(_, intervals)| self.evaluate(answer.results, intervals)))
    }

    /// The runs of its placements, without those of an ensemble.
    ///
    /// # Errors
    /// The errors of [`WhatIfStudy::run`].
    pub fn cells(&self) -> Result<Vec<RunSpec>, LabError> {
        Ok(self.experiment.select(&self.selection)?.cells)
    }

    fn run_cells(
        &self,
        selection: &RunOverrides,
        observer: &dyn ProgressObserver,
    ) -> Result<Option<(Vec<RunResult>, Intervals)>, LabError> {
        let plans = run::prepare(self.experiment.select(selection)?.cells)?;
        let results = run::run_all_with(&plans, run::ExecutionOptions::default(), observer)?;
        Ok((!observer.should_stop()).then(|| Intervals::split(results)))
    }

    /// The runs of the device's ensemble for no placement and for the best one. `None` if the
    /// device has no ensemble.
    fn interval_selection(&self, answer: &WhatIfAnswer) -> Option<RunOverrides> {
        let has_ensemble = Profile::find(&self.question.device).is_ok_and(|profile| profile.ensemble.is_some());
        let names = [placements::NONE.to_string()].into_iter();
        let names = names.chain(answer.best.clone()).chain(answer.classifier.clone());
        has_ensemble.then(|| RunOverrides {
            run: RunOptions { variants: Some(names.collect()), ..RunOptions::default() },
            uncertainty: true,
            ..self.selection.clone()
        })
    }
}
