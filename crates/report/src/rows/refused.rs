//! Table of cells that could not be run.

use super::{ReportTable, TableColumn};
use base::distinct;
use simulate::run::RefusedCell;

/// A row for each cell with the reason, independently of its seeds. No rows if all cells ran.
pub fn refused(cells: &[RefusedCell]) -> ReportTable {
    let mut rows = ReportTable::new([TableColumn::label("refused"), TableColumn::text("why")]);
    for (key, error) in distinct(cells.iter().map(|cell| (cell.key.to_string(), cell.error.clone()))) {
        rows.add([key.into(), error.into()]);
    }
    rows
}
