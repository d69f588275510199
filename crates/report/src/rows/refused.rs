//! Table of cells that could not be run.

use super::{Column, Rows};
use base::distinct;
use simulate::run::RefusedCell;

/// A row for each cell with the reason, independently of its seeds. No rows if all cells ran.
pub fn refused(cells: &[RefusedCell]) -> Rows {
    let mut rows = Rows::new([Column::label("refused"), Column::text("why")]);
    for (key, error) in distinct(cells.iter().map(|cell| (cell.key.to_string(), cell.error.clone()))) {
        rows.add([key.into(), error.into()]);
    }
    rows
}
