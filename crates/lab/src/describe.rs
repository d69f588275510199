//! Terminal text about things that are not results of a run: profiles, layouts, benchmarks. Results are in [`crate::table`].

use base::Bytes;
use comfy_table::{CellAlignment, ContentArrangement, Table, presets};
use ssd::config::MarksOf;
use ssd::{DeviceConfig, Layout};

use crate::bench::Bench;
use crate::profile::Profile;

/// A plain table: headings, rows, the columns from `numbers_from` on aligned to the right.
pub fn plain_table(headings: &[&str], rows: Vec<Vec<String>>, numbers_from: usize) -> String {
    let mut table = Table::new();
    table
        .load_style(presets::UTF8_HORIZONTAL_ONLY)
        .set_content_arrangement(ContentArrangement::Dynamic);
    if !headings.is_empty() {
        table.set_header(headings.to_vec());
    }
    for row in rows {
        table.add_row(row);
    }
    for column in table.column_iter_mut().skip(numbers_from) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    format!("{table}\n")
}

/// A name and a line about it, for each.
pub fn pairs(pairs: impl Iterator<Item = (String, String)>) -> String {
    plain_table(&[], pairs.map(|(name, text)| vec![name, text]).collect(), usize::MAX)
}

/// The values of a profile with their sources.
pub fn sources(profile: &Profile) -> String {
    let row = |(path, entry): (&String, &crate::profile::ValueSource)| {
        let fitted = if entry.fitted { "fitted" } else { "" };
        vec![
            path.clone(),
            entry.value.clone(),
            fitted.to_string(),
            entry.source.clone(),
        ]
    };
    plain_table(
        &["setting", "value", "", "source"],
        profile.sources.iter().map(row).collect(),
        usize::MAX,
    )
}

/// What a configuration comes to.
pub fn layout(config: &DeviceConfig, layout: &Layout) -> String {
    let bytes = |pages: u64| binary_bytes(pages * layout.page_bytes);
    let share_of = |marks: MarksOf| match marks {
        MarksOf::Spare => "the spare",
        MarksOf::All => "all reclaim units",
    };
    let slices = f64::from(layout.slices_per_superblock);
    let free = |slices_free: u64| format!("{:.1} superblocks free in a reclaim group", slices_free as f64 / slices);
    let geometry = &config.geometry;
    let classes = layout
        .classes
        .iter()
        .skip(1)
        .map(|class| format!("1/{} ({})", class.divisor, bytes(u64::from(class.pages))));
    let classes: Vec<String> = classes.collect();
    let mut rows = vec![
        (
            "logical capacity",
            format!(
                "{} ({} mapping units of {})",
                bytes(u64::from(layout.logical_pages)),
                layout.logical_pages,
                binary_bytes(layout.page_bytes)
            ),
        ),
        ("flash", bytes(u64::from(layout.physical_pages))),
        (
            "over-provisioning",
            format!(
                "{:.2} % of the capacity after rounding ({:.2} % asked for)",
                layout.effective_over_provisioning() * 100.0,
                geometry.over_provisioning * 100.0
            ),
        ),
        (
            "dies",
            format!(
                "{} channels x {} dies x {} planes",
                geometry.channels, geometry.dies_per_channel, geometry.planes_per_die
            ),
        ),
        ("reclaim groups", layout.groups.to_string()),
        (
            "superblocks",
            format!(
                "{} in each reclaim group, {} each: {} blocks of {}",
                layout.superblocks_per_group,
                bytes(u64::from(layout.superblock_pages)),
                layout.blocks_per_superblock,
                bytes(u64::from(layout.block_pages))
            ),
        ),
        (
            "smaller reclaim units",
            if classes.is_empty() {
                "none".to_string()
            } else {
                classes.join(", ")
            },
        ),
        (
            "spare",
            format!(
                "{} superblocks in each reclaim group, {} more in reserve",
                layout.spare_superblocks, layout.reserve_superblocks
            ),
        ),
        (
            "reclaim unit handles",
            format!(
                "{} ({:?} unless overridden)",
                layout.handles.len(),
                config.handles.isolation
            ),
        ),
        (
            "garbage collection",
            format!(
                "handle: {:?}, reclaim unit: {:?}",
                config.gc.handle_selection, config.gc.unit_selection
            ),
        ),
        (
            "foreground collection",
            format!(
                "at {} ({} % of {})",
                free(layout.foreground_free_slices),
                config.gc.foreground_mark * 100.0,
                share_of(config.gc.marks_of)
            ),
        ),
    ];
    rows.push((
        "background collection",
        if layout.background_free_slices == 0 {
            "off".to_string()
        } else {
            format!(
                "at {} ({} % of {}), reclaim units at most {} % valid",
                free(layout.background_free_slices),
                config.gc.background_mark * 100.0,
                share_of(config.gc.marks_of),
                config.gc.lazy_valid_share * 100.0
            )
        },
    ));
    rows.push(("memory for a run", binary_bytes(layout.memory_bytes())));
    pairs(rows.into_iter().map(|(name, text)| (name.to_string(), text)))
}

/// A benchmark.
pub fn bench(bench: &Bench) -> String {
    let row = |row: &crate::bench::Row| {
        vec![
            row.workload.clone(),
            format!("{:.2}", row.media_page_ns),
            format!("{:.2}", row.host_page_ns),
            format!("{:.3}", row.write_amplification),
            format!("{:.2}", row.ratio),
        ]
    };
    let headings = [
        "workload",
        "ns per media page",
        "ns per host page",
        "WAF",
        "x yardstick",
    ];
    format!(
        "{}, {} device, over-provisioning {:.0} %\nyardstick: {:.2} ns for a batched random read-modify-write over an array of \
         the L2P's size\n{}",
        bench.processor,
        binary_bytes(bench.capacity_bytes),
        bench.over_provisioning * 100.0,
        bench.yardstick_ns,
        plain_table(&headings, bench.rows.iter().map(row).collect(), 1)
    )
}

fn binary_bytes(bytes: u64) -> String {
    Bytes(bytes).to_string()
}
