//! Monitoring of a served drive for people and programs: reclaim units, hosts, counters, status
//! lines.

pub mod drive_monitor;
pub mod metrics;
pub mod status;
pub mod unit_scanner;
