//! Device of a run. It executes requests and counts from the beginning of the workload.

use ssd::unit::UnitState;
use ssd::{CompletionTime, Device, DeviceStats, Endurance, EventSink, Lpn, Nanos, Occupancy, WriteRequest};
use workload::{IoRequest, RequestOperation, RequestSource, WorkloadMeasure};

use super::plan::RunPlan;
use super::series::SampledDrive;
use crate::request_mapper::RequestMapper;
use crate::run_recorder::RunRecorder;

/// A device with its queued writes.
pub(super) struct RunDrive {
    pub(super) device: Device<RunRecorder>,
    mapper: RequestMapper,
    /// Writes queued for a batch.
    writes: Vec<WriteRequest>,
    page_bytes: u64,
    /// Counters at the beginning of the workload.
    pub(super) start: DeviceStats,
}

impl RunDrive {
    pub(super) fn new(device: Device<RunRecorder>, plan: &RunPlan) -> RunDrive {
        RunDrive {
            start: device.stats().clone(),
            device,
            mapper: plan.mapper(),
            writes: Vec::new(),
            page_bytes: plan.layout.page_bytes,
        }
    }

    /// Counters since the workload began.
    pub(super) fn stats(&self) -> DeviceStats {
        self.device.stats().since(&self.start)
    }

    /// Replaces the device and the counters at which its workload began, for a checkpoint.
    pub(super) fn replace(&mut self, device: Device, recorder: RunRecorder, start: &DeviceStats) {
        assert_eq!(device.layout().page_bytes, self.page_bytes, "the drive of another moment has the same pages");
        self.device = device.replace_sink(recorder).0;
        self.writes.clear();
        self.start = start.clone();
    }

    /// A write of whole pages without a directive.
    pub(super) fn fill_write(&mut self, first: Lpn, pages: u32) -> WriteRequest {
        WriteRequest {
            first,
            pages,
            host_bytes: u64::from(pages) * self.page_bytes,
            placement: self.mapper.default_placement(&mut self.device),
        }
    }

    /// Queues a write, executes a trim, ignores a read. Returns the bytes written.
    #[inline]
    pub(super) fn execute(&mut self, request: &IoRequest) -> u64 {
        match request.operation {
            RequestOperation::Read => 0,
            RequestOperation::Write => {
                let write = self.mapper.write(&mut self.device, request);
                self.queue(write);
                u64::from(request.bytes)
            }
            RequestOperation::Trim => {
                self.write_out();
                if let Some((first, pages)) = self.mapper.whole_pages(request) {
                    let deallocated = self.device.deallocate(0, first, pages);
                    let _ = deallocated.expect("requests are within the device");
                }
                0
            }
        }
    }

    /// Executes a request in virtual time.
    pub(super) fn execute_at(&mut self, now: Nanos, request: &IoRequest) -> CompletionTime {
        assert!(self.writes.is_empty(), "a drive runs with or without virtual time");
        let done = match request.operation {
            RequestOperation::Read => {
                let (first, pages) = self.mapper.extent(request);
                self.device.read(now, first, pages)
            }
            RequestOperation::Write => {
                let write = self.mapper.write(&mut self.device, request);
                self.device.write(now, &write)
            }
            RequestOperation::Trim => match self.mapper.whole_pages(request) {
                Some((first, pages)) => self.device.deallocate(now, first, pages),
                None => Ok(self.device.command(now)),
            },
        };
        done.expect("requests are within the device")
    }

    #[inline]
    pub(super) fn queue(&mut self, write: WriteRequest) {
        self.writes.push(write);
    }

    pub(super) fn write_out(&mut self) {
        write_batch(&mut self.device, &mut self.writes);
    }

    /// Executes the queued writes while another thread does other work.
    pub(super) fn write_out_beside<T: Send>(&mut self, other: impl FnOnce() -> T + Send) -> T {
        let (device, writes) = (&mut self.device, &mut self.writes);
        let ((), result) = rayon::join(|| write_batch(device, writes), other);
        result
    }

    /// Compares the bytes that a run gave to the device with the device's counters.
    ///
    /// # Panics
    /// The values differ, which means an accounting error of the run.
    pub(super) fn assert_written(&self, bytes: u64) {
        assert!(self.writes.is_empty(), "every write was carried out");
        let counted = self.stats().host_bytes_written();
        assert_eq!(counted, bytes, "the device counts what the run wrote");
    }

    /// Measures of a workload, and copies of the device for each owned range of the drive.
    pub(super) fn measures_of(&self, workload: &dyn RequestSource) -> Vec<WorkloadMeasure> {
        let mut measures = workload.measures();
        let copied_of_ranges: u64 = self.device.sink().copies().map(|(_, copied)| copied).sum();
        assert!(
            copied_of_ranges <= self.stats().total().gc_pages_copied,
            "parts of the drive count more copies than the drive"
        );
        for (range, copied) in self.device.sink().copies() {
            let name = |part: &str| format!("{}.{part}", range.name);
            let bytes_copied = copied as f64 * self.page_bytes as f64;
            measures.push(WorkloadMeasure::new(name("bytes_copied"), bytes_copied));
            let written = measures.iter().find(|measure| measure.name == name("bytes_written"));
            if let Some(written) = written.map(|measure| measure.value).filter(|written| *written > 0.0) {
                measures.push(WorkloadMeasure::new(name("write_amplification"), (written + bytes_copied) / written));
            }
        }
        measures
    }

    /// Open reclaim units of host handles, per over-provisioned unit.
    pub(super) fn open_unit_share(&self) -> f64 {
        open_unit_share(&self.device)
    }

    /// Endurance of the full-size drive that this device models.
    pub(super) fn endurance(&self, scale: f64) -> Option<Endurance> {
        assert!(scale >= 1.0, "a drive is {scale} times as large as its scaled model");
        self.device.endurance().map(|endurance| Endurance {
            host_bytes_total: endurance.host_bytes_total * scale,
            host_bytes_left: endurance.host_bytes_left * scale,
            ..endurance
        })
    }
}

impl SampledDrive for RunDrive {
    fn stats(&self) -> DeviceStats {
        self.stats()
    }

    fn occupancy(&self) -> Vec<Occupancy> {
        self.device.occupancy()
    }
}

/// Executes the writes and clears the list.
fn write_batch(device: &mut Device<RunRecorder>, writes: &mut Vec<WriteRequest>) {
    let _ = device.write_batch(0, writes).expect("requests are within the device");
    writes.clear();
}

/// Open reclaim units of host handles, per over-provisioned unit. A full drive's data and reserves
/// do not use the latter.
fn open_unit_share(device: &Device<impl EventSink>) -> f64 {
    let layout = device.layout();
    let open = device.units().filter(|unit| unit.state == UnitState::OpenForHost);
    let open_pages: u64 = open.map(|unit| u64::from(unit.pages)).sum();
    let spare_pages =
        u64::from(layout.spare_superblocks) * u64::from(layout.groups) * u64::from(layout.superblock_pages);
    open_pages as f64 / spare_pages.max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_open_is_counted_against_the_layout() {
        let config: ssd::DeviceConfig = toml::from_str(
            "seed = 1\n[geometry]\nphysical_bytes = \"64MiB\"\nreclaim_unit_bytes = \"512KiB\"\nover_provisioning = 0.28\n\
             channels = 2\ndies_per_channel = 2\n[handles]\ncount = 16\n",
        )
        .expect("a device");
        let mut device = Device::new(&config).expect("it is possible");
        assert!(open_unit_share(&device).abs() < f64::EPSILON, "nothing is open");
        let spare = f64::from(device.layout().spare_superblocks);
        for handle in 0..16 {
            let placement = ssd::Placement { group: ssd::RgId(0), handle: ssd::RuhId(handle) };
            let write = ssd::WriteRequest {
                first: ssd::Lpn(u32::from(handle)),
                pages: 1,
                host_bytes: device.layout().page_bytes,
                placement,
            };
            let _ = device.write(0, &write).expect("it is in the drive");
            let expected = f64::from(handle + 1) / spare;
            assert!((open_unit_share(&device) - expected).abs() < 1e-12, "{handle}");
        }
    }
}
