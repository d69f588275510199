//! The FDP Statistics log page (22h), with the bytes that hosts wrote and that the media wrote and
//! erased.

use nvme_spec::fdp::FdpStatistics;
use ssd::DeviceStats;
use zerocopy::IntoBytes;
use zerocopy::little_endian::U128;

/// Builds the page from the counters of the device alone.
pub(super) fn page(stats: &DeviceStats) -> Vec<u8> {
    let (host_bytes, media_bytes) = (stats.host_bytes_written(), stats.media_bytes_written());
    let wide = |bytes: u64| U128::new(u128::from(bytes));
    FdpStatistics {
        hbmw: wide(host_bytes),
        mbmw: wide(media_bytes),
        mbe: wide(stats.media_bytes_erased()),
        ..FdpStatistics::default()
    }
    .as_bytes()
    .to_vec()
}
