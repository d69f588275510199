//! Tables of an array: bytes by cause, drives, rebuilds.

use array::IoCause;
use simulate::run::{ArrayDriveResult, ArrayResult, RunResult};

use super::{CellValue, ReportTable};

/// Title of an array: its level and its drives.
pub fn array_name(array: &ArrayResult) -> String {
    format!("{} of {} drives", array.settings.level, array.settings.drives)
}

/// Bytes of the drives by cause. Its notes are both write amplifications and their product.
pub fn array_causes(result: &RunResult, array: &ArrayResult) -> ReportTable {
    let rows = ReportTable::default().labels(["cause"]).numbers("", ["read", "written", "of all writes", "I/Os"]);
    let [one, other] = [array.host_write_amplification(), result.write_amplification()].map(CellValue::Amplification);
    let product = CellValue::Amplification(array.total_write_amplification(&result.stats));
    let mut rows = rows
        .note(format!("{}: the array writes {one} times what the host writes", array_name(array)))
        .note(format!("the drives write {other} times what they receive"))
        .note(format!("the flash writes {product} times what the host writes"));
    for cause in IoCause::ALL {
        let counts = array.cause(cause);
        let [read, written, _] = counts.bytes;
        if counts.ios.iter().sum::<u64>() > 0 {
            rows.add([
                CellValue::Text(cause.name().replace('_', " ")),
                CellValue::Bytes(read),
                CellValue::Bytes(written),
                CellValue::Share(array.share(cause)),
                CellValue::Count(counts.ios.iter().sum()),
            ]);
        }
    }
    rows
}

/// Drives of an array, also those that failed.
pub fn array_drives(array: &ArrayResult) -> ReportTable {
    let rows = ReportTable::default().labels(["drive", ""]);
    let mut rows = rows.numbers("", ["received", "WAF", "erases avg", "erases max", "life used"]);
    for ArrayDriveResult { drive, state, stats, wear, life_used } in &array.drives {
        rows.add([
            CellValue::Text(drive.to_string()),
            CellValue::Text((*state).to_string()),
            CellValue::Bytes(stats.host_bytes_written()),
            CellValue::optional(stats.write_amplification(), CellValue::Amplification),
            CellValue::Significant(wear.mean_erases()),
            CellValue::Count(wear.most_erases.into()),
            CellValue::optional(*life_used, CellValue::Share),
        ]);
    }
    rows
}

/// Rebuilds and scrubs of an array. Empty without any.
pub fn array_rebuilds(array: &ArrayResult) -> ReportTable {
    let headings = ["host wrote before", "read", "written", "seconds"];
    let mut rows = ReportTable::default().labels(["event"]).numbers("", headings);
    for rebuild in &array.rebuilds {
        let seconds = rebuild.duration_ns.map(|duration_ns| duration_ns as f64 / 1e9);
        rows.add([
            CellValue::Text(rebuild.event.clone()),
            CellValue::Bytes(rebuild.host_bytes),
            CellValue::Bytes(rebuild.bytes_read),
            CellValue::Bytes(rebuild.bytes_written),
            CellValue::optional(seconds, CellValue::Significant),
        ]);
    }
    rows
}

/// A row of all figures of an array beside those of other cells. Empty without an array.
pub fn array_figures(result: &RunResult) -> ReportTable {
    let headings = ["array WAF", "drive WAF", "total WAF", "parity share", "wear spread"];
    let mut rows = ReportTable::default().texts(["array"]).numbers("", headings);
    if let Some(array) = &result.array {
        rows.add([
            CellValue::Text(array_name(array)),
            CellValue::Amplification(array.host_write_amplification()),
            CellValue::Amplification(result.write_amplification()),
            CellValue::Amplification(array.total_write_amplification(&result.stats)),
            CellValue::Share(array.share(IoCause::Parity)),
            CellValue::Share(array.wear_spread()),
        ]);
    }
    rows
}
