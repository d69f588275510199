//! Warnings that the write amplification of a run may be misleading.
//!
//! ```text
//! RunResult -> detect -> RunWarning -> sentences (a line for each kind), report, JSON, tables of
//! cells
//! ```
//!
//! A warning means that a number may differ from a reader's expectation. It concerns the run, not
//! the drive, and leaves the result unchanged. `analysis::claim_checker` compares results with a
//! paper.
//! `docs/reference/warnings.md` explains every kind.

mod detect;
mod kind;
mod sentences;

pub use detect::{OPEN_UNIT_SHARE_MAX, USED_SHARE_MIN, WAF_TOLERANCE};
pub use kind::{RunWarning, WarningCommand};
pub use sentences::{is_empty_of_meaning, lines};

#[cfg(test)]
mod tests {
    use super::kind::KINDS;
    use super::sentences::extent;
    use super::*;
    use crate::run::{RunResult, RunSample, ScaleComparison, ScaleSearch};
    use crate::steady::SteadyState;
    use crate::testing as sample;
    use experiment::scaled_model::Scale;

    fn converged() -> RunResult {
        let mut result = sample::results().remove(2);
        let last = result.samples.len() as u64;
        let (host, media) = (result.capacity_bytes / 20, result.capacity_bytes / 10);
        for (index, sample) in (1..=last).zip(&mut result.samples) {
            (sample.host_bytes, sample.media_bytes) = (index * host, index * media);
        }
        assert_eq!(result.warnings(), []);
        result
    }

    fn said(results: &[RunResult]) -> Vec<String> {
        lines(results, WarningCommand::Run)
    }

    fn compared(result: &mut RunResult, difference: Option<f64>) {
        let compared = difference.map(|difference| ScaleComparison { smaller: Scale(result.scale.0 * 4), difference });
        result.search = Some(ScaleSearch { compared });
    }

    #[test]
    fn a_drive_that_is_only_read_has_no_write_amplification() {
        let mut result = converged();
        result.stats = ssd::DeviceStats::new(4096, 1);
        result.samples.clear();
        assert_eq!(result.warnings()[0], RunWarning::NothingWritten);
        assert!(!result.warnings().contains(&RunWarning::NeverCollected), "which says: write more");
        assert!(is_empty_of_meaning(&[result]));
    }

    #[test]
    fn what_was_never_collected_says_nothing() {
        let mut result = converged();
        for owner in result.stats.handles.iter_mut().chain([&mut result.stats.shared]) {
            owner.units_reclaimed = 0;
        }
        result.samples.truncate(20);
        assert_eq!(
            result.warnings(),
            [RunWarning::NeverCollected],
            "a run without collections is not judged by its end"
        );
        assert_eq!(
            said(&[result]),
            ["never collected: no reclaim unit was collected, so WAF does not include garbage collection. Write \
                 more (--steady-state)"]
        );
    }

    #[test]
    fn requests_smaller_than_the_mapping_unit_are_named_as_the_cause() {
        let mut result = converged();
        result.stats = ssd::DeviceStats::new(4096, 1);
        result.stats.handles[0].host_bytes_written = 512_000;
        result.stats.handles[0].host_pages_written = 1000;
        result.samples.truncate(20);
        let waf = RunWarning::PartialWrites { waf: 8.0, unit_bytes: 4096 };
        assert_eq!(result.warnings(), [waf.clone(), RunWarning::NeverCollected]);
        assert_eq!(waf.to_string(), "partial writes (WAF 8.000 without garbage collection)");
        assert_eq!(
            said(std::slice::from_ref(&result)),
            [
                "partial writes: writes smaller than the mapping unit of 4096 bytes, or not aligned to it, program \
                 whole units. This alone makes WAF 8.000. Write whole units (bs, blockalign)",
                "never collected: no reclaim unit was collected, so WAF does not include garbage collection. Write \
                 more (--steady-state)"
            ]
        );
        // A small number of them, which changes no compared digit.
        result.stats.handles[0].host_bytes_written = 4_096_000 - 40_000;
        assert_eq!(result.warnings(), [RunWarning::NeverCollected]);
    }

    #[test]
    fn a_run_is_steady_when_two_drive_writes_agree() {
        let media_of_the_last = |share: f64| {
            let mut result = converged();
            let capacity = result.capacity_bytes;
            let end = result.samples.last().expect("samples").host_bytes;
            let more = |sample: &RunSample| sample.host_bytes.saturating_sub(end - capacity) as f64 * 2.0 * share;
            for sample in &mut result.samples {
                sample.media_bytes += more(sample) as u64;
            }
            result
        };
        assert_eq!(media_of_the_last(0.019).warnings(), []);
        let result = media_of_the_last(0.05);
        let [RunWarning::NotSteady { last, before: Some(before), whole }] = result.warnings()[..] else {
            panic!("{:?}", result.warnings());
        };
        assert!((last - 2.1).abs() < 1e-6 && (before - 2.0).abs() < 1e-6, "{before}, {last}");
        assert_eq!(result.warnings()[0].to_string(), "not steady (2.000, then 2.100)");
        assert_eq!(
            said(std::slice::from_ref(&result)),
            [format!(
                "not steady: WAF is {whole:.3} over the run, and 2.000 and 2.100 in the last two drive writes. It \
                 still changes, so the last value is nearest to the answer. Write more (--steady-state)"
            )]
        );

        let mut short = converged();
        short.samples.truncate(39);
        let warnings = short.warnings();
        assert!(matches!(warnings[..], [RunWarning::NotSteady { before: None, .. }]), "{warnings:?}");
        assert_eq!(
            said(std::slice::from_ref(&short)),
            ["not steady: there are fewer than two drive writes. Write more (--steady-state)"]
        );
        short.samples.push(converged().samples[39].clone());
        assert_eq!(short.warnings(), [], "two drive-writes are enough");

        let mut other = media_of_the_last(0.08);
        other.key.variant = "other".to_string();
        let mut third = converged();
        third.key.variant = "third".to_string();
        let all = [result, other, third];
        let line = "not steady (2 of 3 cells): the last two drive writes are up to 8.0 % apart, so WAF still \
                    changes. ";
        assert_eq!(said(&all), [format!("{line}Write more (--steady-state)")]);
        assert_eq!(lines(&all, WarningCommand::WhatIf), [format!("{line}Write more (--drive-writes)")]);
    }

    #[test]
    fn a_search_without_agreement_has_not_converged() {
        let mut result = converged();
        compared(&mut result, Some(0.0099));
        assert_eq!(result.warnings(), []);
        compared(&mut result, Some(0.032));
        let not_converged =
            RunWarning::NotConverged { scale: Scale(64), other: Some(Scale(256)), difference: Some(0.032) };
        assert_eq!(result.warnings(), std::slice::from_ref(&not_converged));
        assert_eq!(not_converged.to_string(), "not converged (3.2 % from 1/256)");
        assert_eq!(
            said(std::slice::from_ref(&result)),
            ["not converged: WAF differs by 3.2 % from that of the next smaller scaled model"]
        );
        compared(&mut result, None);
        assert_eq!(
            said(std::slice::from_ref(&result)),
            ["not converged: there is no other scaled model to compare with"]
        );
        result.scale = Scale::FULL;
        assert_eq!(result.warnings(), [], "the drive itself needs no other");
    }

    #[test]
    fn scaled_models_with_small_reclaim_units_have_too_few_pages() {
        let mut result = converged();
        result.unit_pages = 1023;
        assert_eq!(result.warnings(), [RunWarning::TooFewPages { pages: 1023 }]);
        assert_eq!(
            said(std::slice::from_ref(&result)),
            ["too few pages: a reclaim unit has 1023 pages, and a scaled model needs at least 1024. Use a larger \
                 model (--scale)"]
        );
        result.scale = Scale::FULL;
        assert_eq!(result.warnings(), [], "a drive may have what it has");
    }

    #[test]
    fn a_cache_with_fewer_slots_than_on_the_drive_is_named() {
        let mut result = converged();
        result.measures = [("chat", 64.0), ("code", 1024.0)]
            .map(|(class, merged)| workload::WorkloadMeasure::new(format!("{class}.merged_slots"), merged))
            .to_vec();
        assert_eq!(result.warnings(), [RunWarning::FewerSlots { merged: 1024 }]);
        assert!(result.is_doubtful());
        let said = said(&[result]);
        assert!(said[0].starts_with("fewer slots: a slot of the cache stands for 1024 of the drive's"), "{said:?}");
    }

    #[test]
    fn the_page_of_warnings_has_a_row_for_every_kind() {
        let page = include_str!("../../../../docs/reference/warnings.md");
        for name in KINDS {
            assert!(page.contains(&format!("| `{name}` |")), "docs/reference/warnings.md lacks {name}");
        }
    }

    #[test]
    fn remedies_name_only_options_of_their_command() {
        let kinds = [
            RunWarning::NothingWritten,
            RunWarning::PartialWrites { waf: 2.0, unit_bytes: 4096 },
            RunWarning::NeverCollected,
            RunWarning::SteadyStateNotReached { steady: None },
            RunWarning::NotSteady { last: 2.0, before: Some(1.0), whole: 1.5 },
            RunWarning::NotSteady { last: 2.0, before: None, whole: 1.5 },
            RunWarning::StartIncluded { last: 2.0, whole: 1.5 },
            RunWarning::LittleUsed { share: 0.1 },
            RunWarning::UnwrittenRead { share: 0.1 },
            RunWarning::WithoutEffect { options: vec!["ioengine".to_string()] },
            RunWarning::NotConverged { scale: Scale(64), other: None, difference: None },
            RunWarning::ReplayScaled { scale: Scale(64) },
            RunWarning::TooFewPages { pages: 1 },
            RunWarning::TooManyOpenUnits { share: 0.5 },
            RunWarning::FewerSlots { merged: 2 },
            RunWarning::EventsMissed { events: vec!["scrub at 2".to_string()] },
        ];
        for name in KINDS {
            assert!(kinds.iter().any(|warning| warning.name() == name), "{name}");
        }
        for command in [WarningCommand::Run, WarningCommand::WhatIf, WarningCommand::Python, WarningCommand::Studio] {
            for (warning, count) in kinds.iter().flat_map(|warning| [(warning, 1), (warning, 2)]) {
                // Runs of `whatif` have no timing, so they have no timed reads.
                let is_timed = matches!(warning, RunWarning::UnwrittenRead { .. } | RunWarning::ReplayScaled { .. });
                if command == WarningCommand::WhatIf && is_timed {
                    continue;
                }
                let lines =
                    [false, true].map(|is_until_steady| extent(&vec![warning; count], command, is_until_steady));
                let line = lines.into_iter().flatten().collect::<Vec<_>>().join(" ");
                let words = line.split(|letter: char| !(letter.is_ascii_lowercase() || letter == '-'));
                for option in words.filter(|word| word.starts_with("--")) {
                    assert!(command.options().contains(&option), "{command:?}: {line}");
                }
            }
        }
    }

    #[test]
    fn too_many_open_reclaim_units_are_named() {
        let mut result = converged();
        result.open_unit_share = OPEN_UNIT_SHARE_MAX;
        assert_eq!(result.warnings(), []);
        result.open_unit_share = 0.78;
        assert_eq!(result.warnings(), [RunWarning::TooManyOpenUnits { share: 0.78 }]);
        assert_eq!(
            result.warnings()[0].to_string(),
            "too many open units (78.0 % of the spare reclaim units are open)"
        );
        assert_eq!(
            said(std::slice::from_ref(&result)),
            [
                "too many open units: handles have 78.0 % of the spare reclaim units open. WAF shows a drive too small for \
                 its handles, not the effect of placement. Use fewer handles or smaller reclaim units (--set \
                 geometry.reclaim_unit_bytes=SIZE)"
            ]
        );
        for owner in result.stats.handles.iter_mut().chain([&mut result.stats.shared]) {
            owner.units_reclaimed = 0;
        }
        assert_eq!(result.warnings(), [RunWarning::NeverCollected], "garbage collection needed no space");
    }

    #[test]
    fn the_json_of_a_warning_is_its_name_and_its_numbers() {
        let warning = RunWarning::NotSteady { last: 1.5, before: None, whole: 1.25 };
        let json = serde_json::to_value(&warning).expect("it serializes");
        assert_eq!(json, serde_json::json!({ "name": "not_steady", "last": 1.5, "before": null, "whole": 1.25 }));
        for warning in [RunWarning::NeverCollected, warning, RunWarning::TooFewPages { pages: 1 }] {
            let json = serde_json::to_value(&warning).expect("it serializes");
            assert_eq!(json["name"], warning.name());
        }
    }

    #[test]
    fn a_run_with_another_beginning_says_both() {
        let mut result = converged();
        // The first drive-write copied no pages.
        let capacity = result.capacity_bytes;
        for sample in &mut result.samples {
            sample.media_bytes -= sample.host_bytes.min(capacity);
        }
        let [RunWarning::StartIncluded { last, whole }] = result.warnings()[..] else {
            panic!("{:?}", result.warnings());
        };
        assert!((last - 2.0).abs() < 1e-6 && whole < 1.9, "{last}, {whole}");
        let line = format!(
            "start included: WAF is {whole:.3} over the run, and 2.000 at its end. The end is the answer for a \
             drive in use"
        );
        assert_eq!(said(std::slice::from_ref(&result)), [line]);
        let mut other = result.clone();
        other.key.variant = "other".to_string();
        let both = said(&[result, other]);
        assert!(both[0].starts_with("start included (2 of 2 cells): WAF over the run differs by up to"), "{both:?}");
    }

    #[test]
    fn a_drive_that_is_hardly_used_is_named() {
        let mut result = converged();
        let pages = result.capacity_bytes / result.stats.page_bytes;
        let last = result.samples.last_mut().expect("samples");
        last.valid_pages.fill(0);
        last.valid_pages[0] = pages / 2;
        assert_eq!(result.warnings(), []);
        result.samples.last_mut().expect("samples").valid_pages[0] = pages / 250;
        assert!(matches!(result.warnings()[..], [RunWarning::LittleUsed { share }] if (share - 0.004).abs() < 1e-4));
        assert!(said(&[result])[0].starts_with("little used: 0.4 % of the drive holds data"));
    }

    #[test]
    fn what_a_run_read_and_accepted_is_said() {
        let mut result = converged();
        result.pages_read = [1000, 0];
        assert_eq!(result.warnings(), []);
        result.pages_read = [1000, 250];
        assert_eq!(result.warnings(), [RunWarning::UnwrittenRead { share: 0.25 }]);
        result.without_effect = vec!["fsync".to_string()];
        let said = said(&[result]);
        assert_eq!(
            said,
            [
                "unwritten read: 25.0 % of the pages read were never written, and such reads take no time in the \
                 flash. Fill the drive first (--precondition)",
                "without effect: the model ignores fsync, which would have an effect on a drive"
            ]
        );
    }

    #[test]
    fn a_run_that_was_to_be_steady_and_is_not_says_so() {
        let mut result = converged();
        result.steady_state = true;
        assert_eq!(result.warnings(), [RunWarning::SteadyStateNotReached { steady: None }]);
        let steady =
            SteadyState { reached: false, waf: 2.0, half_width: 0.1, range: 0.08, slope: 0.01, after_capacities: 1.0 };
        result.steady = Some(steady);
        let said = said(std::slice::from_ref(&result));
        assert_eq!(
            said,
            ["steady state not reached: the last 5 drive writes are 8.0 % apart. Allow more with --drive-writes"]
        );
        result.steady = Some(SteadyState { reached: true, ..steady });
        assert_eq!(result.warnings(), []);
    }

    #[test]
    fn a_steady_run_has_one_write_amplification() {
        let mut result = converged();
        result.steady_state = true;
        result.steady = Some(SteadyState {
            reached: true,
            waf: 2.0,
            half_width: 0.01,
            range: 0.01,
            slope: 0.01,
            after_capacities: 1.0,
        });
        for sample in &mut result.samples {
            sample.media_bytes -= sample.host_bytes.min(result.capacity_bytes);
        }
        assert_eq!(result.warnings(), [], "the beginning is not in the number");
        assert!((result.headline_write_amplification() - 2.0).abs() < 1e-12);
        result.steady = result.steady.map(|state| SteadyState { reached: false, ..state });
        assert!((result.headline_write_amplification() - result.write_amplification()).abs() < 1e-12);
    }

    #[test]
    fn a_remedy_is_not_what_was_done_already() {
        let mut result = converged();
        for owner in result.stats.handles.iter_mut().chain([&mut result.stats.shared]) {
            owner.units_reclaimed = 0;
        }
        let remedy = |result: &RunResult, command| lines(std::slice::from_ref(result), command).concat();
        assert!(remedy(&result, WarningCommand::Python).ends_with("Write more (steady_state=True)"));
        result.steady_state = true;
        for (command, larger) in
            [(WarningCommand::Run, "a larger --drive-writes"), (WarningCommand::Python, "a larger drive_writes")]
        {
            let said = remedy(&result, command);
            assert!(said.contains(larger) && !said.contains("steady_state"), "{said}");
        }
    }
}
