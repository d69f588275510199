//! Drivers that turn operations into the pages they touch.

use serde::{Deserialize, Serialize};

use super::BTreeSettings;
use super::page_access::Touch;
use super::tpcc::Tpcc;
use crate::ycsb::{Mix, YcsbKeys, YcsbOperation};
use workload::WorkloadError;
use workload::random::mix;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DriverKind {
    /// YCSB operations on a record or a few neighbouring records.
    Ycsb,
    /// Transactions like TPC-C's: tables by warehouse, updates in each of them, and appended
    /// orders.
    Tpcc,
}

pub(super) enum BTreeDriver {
    Ycsb(Ycsb),
    Tpcc(Box<Tpcc>),
}

impl BTreeDriver {
    /// Creates a driver for a tree of `pages` pages. Each stands for `merged` pages of the full
    /// drive.
    ///
    /// # Errors
    /// The tree has too few pages for one warehouse.
    pub(super) fn new(settings: &BTreeSettings, pages: u32, merged: u64, seed: u64) -> Result<Self, WorkloadError> {
        if settings.driver == DriverKind::Ycsb {
            return Ok(BTreeDriver::Ycsb(Ycsb::new(settings, pages, merged, seed)));
        }
        let tpcc = Tpcc::new(settings.page_bytes, pages, mix(seed));
        let tpcc = tpcc.map_err(|needed| {
            let problem = format!(
                "gives {pages} pages, but a warehouse needs {needed}. Use more data, or a larger \
                                   scaled model"
            );
            WorkloadError::setting(format!("data_percent = {}", settings.data_percent), problem)
        })?;
        Ok(BTreeDriver::Tpcc(Box::new(tpcc)))
    }

    /// Returns the pages of the next operation in `touches`. Returns false at the end.
    pub(super) fn next(&mut self, endless: bool, touches: &mut Vec<Touch>) -> bool {
        touches.clear();
        match self {
            BTreeDriver::Ycsb(ycsb) => ycsb.next(endless, touches),
            BTreeDriver::Tpcc(tpcc) => {
                tpcc.next(touches);
                true
            }
        }
    }
}

/// YCSB on pages that hold the records in key order.
pub(super) struct Ycsb {
    keys: YcsbKeys,
    mix: Mix,
    record_bytes: u64,
    records_per_page: u32,
}

impl Ycsb {
    fn new(settings: &BTreeSettings, pages: u32, merged: u64, seed: u64) -> Ycsb {
        let records_per_page = (settings.filled_page_bytes() / settings.record_bytes).max(1) as u32;
        let most = pages.saturating_mul(records_per_page);
        let popularity = settings.popularity.unwrap_or(settings.mix.popularity());
        let mut keys = YcsbKeys::new(most, merged, popularity, settings.zipf_exponent, seed);
        // Mixes d and e may insert a tenth of the records. The other mixes load all records.
        let inserts = matches!(settings.mix, Mix::D | Mix::E);
        let loaded = if inserts { most - most / 10 } else { most };
        for _ in 0..loaded {
            keys.insert().expect("the loaded data fits");
        }
        Ycsb { keys, mix: settings.mix, record_bytes: settings.record_bytes, records_per_page }
    }

    fn next(&mut self, endless: bool, touches: &mut Vec<Touch>) -> bool {
        if self.mix == Mix::Load && !endless {
            return false;
        }
        let (key, records, changed_bytes) = match self.mix.next(&mut self.keys) {
            YcsbOperation::Read(key) => (key, 1, 0),
            YcsbOperation::Scan(key, records) => (key, records, 0),
            YcsbOperation::Put(key) | YcsbOperation::ReadAndPut(key) => (key, 1, self.record_bytes),
        };
        let first = key / self.records_per_page;
        let last = key.saturating_add(records - 1).min(self.keys.records_max() - 1) / self.records_per_page;
        touches.extend((first..=last).map(|page| Touch { page, changed_bytes }));
        true
    }
}
