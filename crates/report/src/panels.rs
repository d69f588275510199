//! Groups results into plots.
//!
//! A plot compares variants: one panel for each device and grid point, one line for each variant.
//! An experiment with one variant compares the values of its first axis, and one without axes its
//! devices.

use crate::rows::{axis_name, variant_name};
use base::distinct;
use simulate::run::RunResult;

/// The coordinate that distinguishes the lines of a plot, by its number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum LineCoordinate {
    Devices = 0,
    Variants = 1,
    /// Values of the first grid axis.
    FirstAxis = 2,
}

pub struct Panels<'a> {
    pub lines: LineCoordinate,
    /// Names of the lines, the same in every panel.
    pub names: Vec<String>,
    pub panels: Vec<Panel<'a>>,
}

/// Results in one plot.
pub struct Panel<'a> {
    /// Coordinates of the results, without those that all panels share.
    pub caption: String,
    /// Device of the results. Empty if the lines are devices.
    pub device: String,
    pub lines: Vec<PanelLine<'a>>,
}

/// Results that differ by seed only.
pub struct PanelLine<'a> {
    /// Index of its name.
    pub name: usize,
    /// Results, one for each seed. Never empty.
    pub seeds: Vec<&'a RunResult>,
}

impl<'a> PanelLine<'a> {
    /// Representative result: the first that ran to its end.
    pub fn representative(&self) -> &'a RunResult {
        self.seeds.iter().find(|seed| seed.complete).unwrap_or(&self.seeds[0])
    }
}

impl<'a> Panels<'a> {
    pub fn new(results: &'a [RunResult], axes: &[String]) -> Panels<'a> {
        let lines = LineCoordinate::from_results(results);
        let names = distinct(results.iter().map(|result| lines.name(result)));
        let keys = distinct(results.iter().map(|result| lines.common(result)));
        let same = |part: &(usize, String)| keys.len() > 1 && keys.iter().all(|key| key.contains(part));
        let panel = |key: &Vec<(usize, String)>| {
            let shared: Vec<&RunResult> = results.iter().filter(|result| lines.common(result) == *key).collect();
            let parts: Vec<(usize, String)> = key.iter().filter(|part| !same(part)).cloned().collect();
            Panel { caption: caption(&parts, axes), device: device(key), lines: by_name(lines, &names, &shared) }
        };
        Panels { lines, panels: keys.iter().map(panel).collect(), names }
    }

    /// All cells as pairs of panel and line.
    pub fn cells(&self) -> impl Iterator<Item = (&Panel<'a>, &PanelLine<'a>)> {
        self.panels.iter().flat_map(|panel| panel.lines.iter().map(move |line| (panel, line)))
    }

    pub fn name(&self, line: &PanelLine<'_>) -> &str {
        variant_name(&self.names[line.name])
    }

    pub fn representatives(&self) -> impl Iterator<Item = &'a RunResult> {
        self.cells().map(|(_, line)| line.representative())
    }
}

/// Coordinates are numbered: 0 the device, 1 the variant, 2 the first axis, and so on.
impl LineCoordinate {
    fn from_results(results: &[RunResult]) -> LineCoordinate {
        let several = |name: fn(&RunResult) -> Option<&String>| distinct(results.iter().map(name)).len() > 1;
        if several(|result| Some(&result.key.variant)) {
            LineCoordinate::Variants
        } else if several(|result| result.key.grid.first()) {
            LineCoordinate::FirstAxis
        } else {
            LineCoordinate::Devices
        }
    }

    fn name(self, result: &RunResult) -> String {
        coordinates(result).nth(self as usize).map(|(_, value)| value).unwrap_or_default()
    }

    /// Coordinates that a result shares with the other lines of its panel.
    fn common(self, result: &RunResult) -> Vec<(usize, String)> {
        coordinates(result).filter(|(index, _)| *index != self as usize).collect()
    }
}

fn coordinates(result: &RunResult) -> impl Iterator<Item = (usize, String)> {
    let key = &result.key;
    [&key.device, &key.variant].into_iter().chain(&key.grid).cloned().enumerate()
}

/// A caption of coordinates. Numbers are preceded by the name of their axis.
fn caption(key: &[(usize, String)], axes: &[String]) -> String {
    let part = |(index, value): &(usize, String)| match index {
        0 | 1 => value.clone(),
        _ if value.parse::<f64>().is_ok() => format!("{} {value}", axis_name(axes, index - 2)),
        _ => value.clone(),
    };
    let parts: Vec<String> = key.iter().map(part).filter(|part| !part.is_empty()).collect();
    parts.join(" · ")
}

fn device(key: &[(usize, String)]) -> String {
    key.iter().find(|(index, _)| *index == 0).map(|(_, device)| device.clone()).unwrap_or_default()
}

fn by_name<'a>(lines: LineCoordinate, names: &[String], results: &[&'a RunResult]) -> Vec<PanelLine<'a>> {
    let line = |(name, text): (usize, &String)| {
        let seeds: Vec<&RunResult> = results.iter().filter(|result| lines.name(result) == *text).copied().collect();
        (!seeds.is_empty()).then_some(PanelLine { name, seeds })
    };
    names.iter().enumerate().filter_map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use simulate::testing as sample;

    #[test]
    fn variants_are_lines_of_one_panel_for_each_device_and_value() {
        let results = sample::results();
        let panels = Panels::new(&results, &sample::axes());
        assert_eq!(panels.names, ["FDP", "Mixed", "NoFDP"]);
        let captions: Vec<&str> = panels.panels.iter().map(|panel| panel.caption.as_str()).collect();
        assert_eq!(captions[..2], ["ssd_a · zipf 2.2", "ssd_a · zipf 1.2"]);
        assert_eq!(captions[2], "ssd_a · 80/20");
        assert!(panels.panels.iter().all(|panel| panel.lines.len() == 3));
        let key = [(0, "ssd_a".to_string()), (2, "0.07".to_string())];
        assert_eq!(caption(&key, &["OP".to_string()]), "ssd_a · OP 0.07");
    }

    #[test]
    fn without_variants_the_first_axis_makes_the_lines() {
        let mut results = sample::results();
        results.retain(|result| result.key.variant == "FDP");
        let panels = Panels::new(&results, &sample::axes());
        assert_eq!((panels.lines, panels.panels.len()), (LineCoordinate::FirstAxis, 2));
        results.retain(|result| result.key.grid[0] == "80/20");
        let panels = Panels::new(&results, &sample::axes());
        assert_eq!((panels.lines, panels.panels.len()), (LineCoordinate::Devices, 1));
        assert_eq!(panels.names, ["ssd_a", "ssd_b"]);
    }

    #[test]
    fn captions_leave_out_what_all_panels_share() {
        let mut results = sample::results();
        results.retain(|result| result.key.device == "ssd_a");
        let panels = Panels::new(&results, &sample::axes());
        let captions: Vec<&str> = panels.panels.iter().map(|panel| panel.caption.as_str()).collect();
        assert_eq!(captions, ["zipf 2.2", "zipf 1.2", "80/20"]);
        let panels = Panels::new(&results[..1], &sample::axes());
        assert_eq!(panels.panels[0].caption, "FDP · zipf 2.2");
    }

    #[test]
    fn seeds_share_a_line_and_the_first_that_ended_stands_for_them() {
        let mut results: Vec<RunResult> = sample::results().into_iter().take(1).collect();
        results.push(RunResult { seed: 2, ..results[0].clone() });
        results[0].complete = false;
        let panels = Panels::new(&results, &[]);
        assert_eq!(panels.panels[0].lines[0].seeds.len(), 2);
        assert_eq!(panels.panels[0].lines[0].representative().seed, 2);
    }
}
