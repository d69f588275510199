//! Who asks: operations as the pages that they touch.

use serde::{Deserialize, Serialize};

use super::Settings;
use super::touch::Touch;
use super::tpcc::Tpcc;
use crate::ycsb::{Keys, Mix, Operation};
use workload::WorkloadError;
use workload::random::mix;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DriverKind {
    /// YCSB: operations on one record, or on a few neighbours.
    Ycsb,
    /// Transactions like TPC-C's: tables by warehouse, some updates in each, orders that are appended.
    Tpcc,
}

/// Makes operations.
#[derive(Debug)]
pub(super) enum Driver {
    Ycsb(Ycsb),
    Tpcc(Box<Tpcc>),
}

impl Driver {
    /// On a tree of so many pages, each standing for `merged` of the drive at full size.
    ///
    /// # Errors
    /// The pages do not hold a warehouse.
    pub(super) fn new(settings: &Settings, pages: u32, merged: u64, seed: u64) -> Result<Driver, WorkloadError> {
        if settings.driver == DriverKind::Ycsb {
            return Ok(Driver::Ycsb(Ycsb::new(settings, pages, merged, seed)));
        }
        let tpcc = Tpcc::new(settings.page_bytes, pages, mix(seed));
        let tpcc = tpcc.map_err(|needed| {
            let problem = format!("is {pages} pages, a warehouse needs {needed}; use more, or a larger scale");
            WorkloadError::setting(format!("data_percent = {}", settings.data_percent), problem)
        })?;
        Ok(Driver::Tpcc(Box::new(tpcc)))
    }

    /// The pages of the next operation; whether there is one.
    pub(super) fn next(&mut self, endless: bool, touches: &mut Vec<Touch>) -> bool {
        touches.clear();
        match self {
            Driver::Ycsb(ycsb) => ycsb.next(endless, touches),
            Driver::Tpcc(tpcc) => {
                tpcc.next(touches);
                true
            }
        }
    }
}

/// YCSB over pages that hold the records in the order of their keys.
#[derive(Debug)]
pub(super) struct Ycsb {
    keys: Keys,
    mix: Mix,
    record_bytes: u64,
    records_per_page: u32,
}

impl Ycsb {
    fn new(settings: &Settings, pages: u32, merged: u64, seed: u64) -> Ycsb {
        let records_per_page = (settings.filled_page_bytes() / settings.record_bytes).max(1) as u32;
        let most = pages.saturating_mul(records_per_page);
        let popularity = settings.popularity.unwrap_or(settings.mix.popularity());
        let mut keys = Keys::new(most, merged, popularity, settings.zipf_exponent, seed);
        // A tenth may be inserted by mixes d and e; the others have all from the start.
        let inserts = matches!(settings.mix, Mix::D | Mix::E);
        let loaded = if inserts { most - most / 10 } else { most };
        for _ in 0..loaded {
            keys.insert().expect("there is room for what is loaded");
        }
        Ycsb {
            keys,
            mix: settings.mix,
            record_bytes: settings.record_bytes,
            records_per_page,
        }
    }

    fn next(&mut self, endless: bool, touches: &mut Vec<Touch>) -> bool {
        if self.mix == Mix::Load && !endless {
            return false;
        }
        let (key, records, changed_bytes) = match self.mix.next(&mut self.keys) {
            Operation::Read(key) => (key, 1, 0),
            Operation::Scan(key, records) => (key, records, 0),
            Operation::Put(key) | Operation::ReadAndPut(key) => (key, 1, self.record_bytes),
        };
        let first = key / self.records_per_page;
        let last = key.saturating_add(records - 1).min(self.keys.most() - 1) / self.records_per_page;
        touches.extend((first..=last).map(|page| Touch { page, changed_bytes }));
        true
    }
}
