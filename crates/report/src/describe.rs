//! Tables of profiles, layouts and other data that are not results of a run.

use base::HumanBytes;
use ssd::config::WatermarkBase;
use ssd::{DeviceConfig, DeviceLayout};
use workload::fio::StreamSummary;

use crate::rows::{CellValue, ReportTable};
use base::distinct;
use experiment::Profile;
use experiment::ensemble::EnsembleMember;
use experiment::workloads::plain;
use simulate::bench::BenchResult;

pub fn sources(profile: &Profile) -> ReportTable {
    let mut rows = ReportTable::default().labels(["setting"]).texts(["value", "", "source"]);
    for (path, entry) in &profile.sources {
        let fitted = if entry.fitted { "fitted" } else { "" };
        rows.add([path, &entry.value, fitted, &entry.source].map(CellValue::from));
    }
    rows
}

/// Streams of a job file, a row for each.
pub fn streams(streams: &[StreamSummary]) -> ReportTable {
    let rows = ReportTable::default().numbers("", ["group"]).labels(["stream"]).texts(["rw"]);
    let rows = rows.numbers("", ["requests", "from", "to"]).texts(["addresses"]);
    let mut rows = rows.numbers("", ["of bytes"]).texts(["placement"]);
    for stream in streams {
        let [smallest, largest] = [stream.min_request_bytes, stream.max_request_bytes].map(HumanBytes);
        rows.add([
            CellValue::Index(stream.group.into()),
            stream.name.as_str().into(),
            stream.rw.into(),
            match stream.min_request_bytes == stream.max_request_bytes {
                true => CellValue::Bytes(stream.max_request_bytes),
                false => format!("{smallest} to {largest}").into(),
            },
            CellValue::Bytes(stream.start_bytes),
            CellValue::Bytes(stream.end_bytes),
            stream.addresses.as_str().into(),
            CellValue::optional(stream.share_percent, |percent| CellValue::Share(percent / 100.0)),
            stream.placement.as_str().into(),
        ]);
    }
    rows
}

/// Settings in which the members of a profile's ensemble differ, with their values. Empty without
/// an ensemble.
pub fn ensemble(profile: &Profile) -> ReportTable {
    let rows = ReportTable::default().labels(["setting"]).texts(["value", "ensemble"]);
    let Some(ensemble) = &profile.ensemble else { return rows };
    let losses: Vec<f64> = ensemble.members.iter().map(|member| member.loss).collect();
    let mut rows = rows.note(format!(
        "an ensemble of {} members, with a loss of {}. Intervals of write amplification are widened by {}",
        losses.len(),
        span(&losses),
        CellValue::Share(ensemble.residual)
    ));
    for path in ensemble.paths() {
        let own = profile.value(path);
        let of_member = |member: &EnsembleMember| member.settings.get(path).or(own).cloned();
        let values: Vec<toml::Value> = ensemble.members.iter().filter_map(of_member).collect();
        let own = own.map(plain).unwrap_or_default();
        rows.add([path.into(), own.into(), CellValue::Text(values_in_words(&values))]);
    }
    rows
}

/// Numbers as minimum and maximum, names with their frequency.
fn values_in_words(values: &[toml::Value]) -> String {
    let number = |value: &toml::Value| value.as_float().or(value.as_integer().map(|value| value as f64));
    let numbers: Vec<f64> = values.iter().filter_map(number).collect();
    if numbers.len() == values.len() {
        return span(&numbers);
    }
    let names = values.iter().map(plain);
    let counted = distinct(names.clone()).into_iter().map(|name| {
        let count = names.clone().filter(|other| *other == name).count();
        format!("{name} ({count})")
    });
    counted.collect::<Vec<_>>().join(", ")
}

/// Minimum and maximum in words.
fn span(numbers: &[f64]) -> String {
    let least = numbers.iter().copied().fold(f64::INFINITY, f64::min);
    let greatest = numbers.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if least == greatest {
        return least.to_string();
    }
    format!("{least} to {greatest}")
}

/// Derived quantities of a configuration.
pub fn layout(config: &DeviceConfig, layout: &DeviceLayout) -> ReportTable {
    ReportTable::pairs([capacity(config, layout), units(config, layout), collection(config, layout)].concat())
}

/// A row of the layout table: name and value.
type Line = (&'static str, String);

fn of_pages(layout: &DeviceLayout, pages: impl Into<u64>) -> HumanBytes {
    HumanBytes(pages.into() * layout.page_bytes)
}

fn capacity(config: &DeviceConfig, layout: &DeviceLayout) -> Vec<Line> {
    let logical = of_pages(layout, layout.logical_pages);
    let units = CellValue::Count(layout.logical_pages.into());
    let over_provisioning = format!(
        "{:.2} % of the capacity after rounding ({:.2} % requested)",
        layout.effective_over_provisioning() * 100.0,
        config.geometry.over_provisioning * 100.0
    );
    vec![
        ("logical capacity", format!("{logical} ({units} mapping units of {})", HumanBytes(layout.page_bytes))),
        ("flash", of_pages(layout, layout.physical_pages).to_string()),
        ("over-provisioning", over_provisioning),
        ("memory for a run", HumanBytes(layout.memory_bytes()).to_string()),
    ]
}

fn units(config: &DeviceConfig, layout: &DeviceLayout) -> Vec<Line> {
    let geometry = &config.geometry;
    let dies = format!(
        "{} channels x {} dies x {} planes",
        geometry.channels, geometry.dies_per_channel, geometry.planes_per_die
    );
    let superblocks = format!(
        "{} in each reclaim group, each {} ({} blocks of {})",
        layout.superblocks_per_group,
        of_pages(layout, layout.superblock_pages),
        layout.blocks_per_superblock,
        of_pages(layout, layout.block_pages)
    );
    let smaller = layout.classes.iter().skip(1);
    let smaller = smaller.map(|class| format!("1/{} ({})", class.divisor, of_pages(layout, class.pages)));
    let smaller = smaller.collect::<Vec<_>>().join(", ");
    let spare = format!(
        "{} superblocks in each reclaim group, {} more in reserve",
        layout.spare_superblocks, layout.reserve_superblocks
    );
    let handles = format!("{} ({} unless overridden)", layout.handles.len(), setting(config.handles.isolation));
    vec![
        ("dies", dies),
        ("reclaim groups", layout.groups.to_string()),
        ("superblocks", superblocks),
        ("smaller reclaim units", if smaller.is_empty() { "none".to_string() } else { smaller }),
        ("spare", spare),
        ("reclaim unit handles", handles),
    ]
}

fn collection(config: &DeviceConfig, layout: &DeviceLayout) -> Vec<Line> {
    let gc = &config.gc;
    let at = |slices_free: u64, watermark: f64| {
        let superblocks = slices_free as f64 / f64::from(layout.slices_per_superblock);
        let whole = match gc.watermark_base {
            WatermarkBase::Spare => "the spare",
            WatermarkBase::All => "all reclaim units",
        };
        format!("at {superblocks:.1} superblocks free in a reclaim group ({} % of {whole})", percent(watermark))
    };
    let policy = format!("source {}, victim {}", setting(gc.source_policy), setting(gc.victim_policy));
    let background = if layout.background_free_slices == 0 {
        "off".to_string()
    } else {
        let at = at(layout.background_free_slices, gc.background_watermark);
        format!("{at}, reclaim units at most {} % valid", percent(gc.lazy_valid_share))
    };
    vec![
        ("garbage collection", policy),
        ("foreground collection", at(layout.foreground_free_slices, gc.foreground_watermark)),
        ("background collection", background),
    ]
}

/// A setting as a user writes it, such as `greedy` or `{ d_choices = 8 }`.
fn setting(value: impl serde::Serialize) -> String {
    plain(&toml::Value::try_from(value).expect("a setting is a TOML value"))
}

/// A share in percent, without the spurious digits of binary fractions.
fn percent(share: f64) -> f64 {
    (share * 1e6).round() / 1e4
}

pub fn bench(bench: &BenchResult) -> ReportTable {
    let rows = ReportTable::default().labels(["workload"]).numbers("ns", ["media page", "host page"]);
    let mut rows = rows.numbers("", ["WAF"]).numbers("x yardstick", ["ratio"]);
    for row in &bench.rows {
        rows.add([
            row.workload.as_str().into(),
            CellValue::Fixed(row.media_page_ns, 2),
            CellValue::Fixed(row.host_page_ns, 2),
            CellValue::Amplification(row.write_amplification),
            CellValue::Fixed(row.ratio, 2),
        ]);
    }
    let device = format!(
        "{}, {} device, reclaim units of {}, over-provisioning {:.0} %",
        bench.processor,
        HumanBytes(bench.capacity_bytes),
        HumanBytes(bench.reclaim_unit_bytes),
        bench.over_provisioning * 100.0
    );
    let yardstick = format!(
        "the yardstick is {:.2} ns for a batched random read-modify-write over an array of the L2P's size",
        bench.yardstick_ns
    );
    rows.note(device).note(yardstick)
}

#[cfg(test)]
mod tests {
    use super::setting;
    use ssd::config::{Isolation, SourcePolicy, VictimRule};

    #[test]
    fn settings_are_printed_as_a_user_writes_them() {
        assert_eq!(setting(Isolation::InitiallyIsolated), "initially_isolated");
        assert_eq!(setting(SourcePolicy::Global), "global");
        assert_eq!(setting(VictimRule::Greedy), "greedy");
        assert_eq!(setting(VictimRule::DChoices(8)), "{ d_choices = 8 }");
    }
}
