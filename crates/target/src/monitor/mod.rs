//! Monitoring of a served drive for people and programs: reclaim units, hosts, counters, status
//! lines.

pub mod hosts;
pub mod metrics;
pub mod status;
pub mod units;
