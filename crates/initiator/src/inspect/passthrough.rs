//! Sends commands to a drive of this machine through the kernel's NVMe passthrough (`/dev/nvme0`,
//! `/dev/ng0n1`).
//!
//! The module needs unsafe code for three ioctl calls without a safe interface. The other unsafe
//! code of this crate is in [`super::file_map`].

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use nvme_spec::Status;
use nvme_spec::command::SubmissionEntry;
use rustix::fs::OFlags;
use rustix::io::Errno;
use rustix::ioctl::{ioctl, opcode};

use super::{CommandPort, InspectError, QueueKind};
use crate::drive::{CommandSource, CompletionSink, DataPort, TransferCommand, TransferData};

pub struct Passthrough {
    device: File,
    name: String,
}

/// `struct nvme_passthru_cmd` of the kernel's `linux/nvme_ioctl.h`: a submission queue entry with
/// lengths and a result.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
struct PassthroughCommand {
    opcode: u8,
    flags: u8,
    reserved: u16,
    nsid: u32,
    cdw2: u32,
    cdw3: u32,
    metadata: u64,
    address: u64,
    metadata_bytes: u32,
    data_bytes: u32,
    cdw10_to_15: [u32; 6],
    timeout_ms: u32,
    result: u32,
}

const _: () = assert!(size_of::<PassthroughCommand>() == 72);

/// `NVME_IOCTL_ID`, `NVME_IOCTL_ADMIN_CMD` and `NVME_IOCTL_IO_CMD`.
const NAMESPACE: u32 = opcode::none(b'N', 0x40);
const ADMIN: u32 = opcode::read_write::<PassthroughCommand>(b'N', 0x41);
const IO: u32 = opcode::read_write::<PassthroughCommand>(b'N', 0x43);

/// Parts of the status that the kernel returns: the status field without the phase tag, its status
/// code type, and the type that the kernel sets when it ends a command itself.
const STATUS_FIELD: u16 = 0x7ff;
const STATUS_CODE_TYPE: u16 = 0x700;
const PATH_RELATED: u16 = 0x300;

/// Maximum transfer that the kernel's driver can always describe, bytes. The driver accepts 127
/// memory segments, and each page of 4 KiB may need its own segment.
const KERNEL_TRANSFER_BYTES_MAX: u64 = 256 << 10;

/// Maximum commands in flight.
const THREADS_MAX: usize = 128;

/// Maximum time that a device may be unsettled, 30 attempts with 100 ms between them (3 s).
const UNSETTLED_ATTEMPTS: u32 = 30;
const UNSETTLED_WAIT: Duration = Duration::from_millis(100);

fn not_opened(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::PermissionDenied => format!("{error}. Open NVMe devices as root"),
        io::ErrorKind::NotFound => {
            "the device does not exist. List the devices with `nvme list` or `ls /dev/nvme*`".to_string()
        }
        _ => error.to_string(),
    }
}

impl Passthrough {
    pub fn open(path: &Path) -> Result<Passthrough, InspectError> {
        let name = path.display().to_string();
        match File::open(path) {
            Ok(device) => Ok(Passthrough { device, name }),
            Err(error) => Err(InspectError::Unreachable { target: name, problem: not_opened(&error) }),
        }
    }

    /// Opens the block device of an unused namespace exclusively, which keeps file systems and
    /// other kernel users away.
    pub fn open_unused(path: &Path) -> Result<Passthrough, InspectError> {
        let name = path.display().to_string();
        let refused = |problem: String| InspectError::Unreachable { target: name.clone(), problem };
        let opened = File::options().read(true).write(true).custom_flags(OFlags::EXCL.bits() as i32).open(path);
        let device = opened.map_err(|error| {
            refused(match error.raw_os_error().map(Errno::from_raw_os_error) {
                Some(Errno::BUSY) => {
                    "the device is in use by a mounted file system or another part of the kernel. Unmount it first"
                        .to_string()
                }
                _ => not_opened(&error),
            })
        })?;
        // Exclusive opening works only for block devices.
        if !device.metadata().is_ok_and(|found| found.file_type().is_block_device()) {
            return Err(refused("this is not a block device. Give one such as /dev/nvme0n1".to_string()));
        }
        Ok(Passthrough { device, name })
    }

    /// Namespace of the device file, `None` for a controller (`/dev/nvme0`) or another file.
    pub fn namespace(&self) -> Option<u32> {
        // The kernel returns the identifier and ignores the command.
        let answer = submit::<NAMESPACE>(&self.device, &mut PassthroughCommand::default());
        answer.ok().and_then(|nsid| u32::try_from(nsid).ok())
    }
}

impl PassthroughCommand {
    fn new(entry: &SubmissionEntry, address: u64, data_bytes: usize) -> PassthroughCommand {
        PassthroughCommand {
            opcode: entry.opcode,
            nsid: entry.nsid.get(),
            address,
            data_bytes: u32::try_from(data_bytes).expect("a transfer has a megabyte at most"),
            cdw10_to_15: [
                entry.cdw10.get(),
                entry.cdw11.get(),
                entry.cdw12.get(),
                entry.cdw13.get(),
                entry.cdw14.get(),
                entry.cdw15.get(),
            ],
            ..PassthroughCommand::default()
        }
    }
}

impl Passthrough {
    fn judged(&self, opcode: u8, answer: Result<i32, Errno>) -> Result<(), InspectError> {
        let status = answer.map_err(|error| InspectError::Unreachable {
            target: self.name.clone(),
            problem: match error {
                Errno::NOTTY => "this is not an NVMe device".to_string(),
                Errno::NODEV | Errno::NXIO => "the device was removed".to_string(),
                error => error.to_string(),
            },
        })?;
        match Status::from_u16(status as u16 & STATUS_FIELD) {
            Status::SUCCESS => Ok(()),
            status => {
                Err(InspectError::Refused { command: format!("{} rejected command {opcode:#04x}", self.name), status })
            }
        }
    }
}

impl CommandPort for Passthrough {
    fn receive(&mut self, queue: QueueKind, entry: SubmissionEntry, data: &mut [u8]) -> Result<u32, InspectError> {
        let mut command = PassthroughCommand::new(&entry, data.as_mut_ptr() as u64, data.len());
        assert_eq!(entry.opcode & 0b11, 0b10, "only commands from controller to host");
        let answer = submit_until_answered(thread::sleep, || match queue {
            QueueKind::Admin => submit::<ADMIN>(&self.device, &mut command),
            QueueKind::Io => submit::<IO>(&self.device, &mut command),
        });
        self.judged(entry.opcode, answer).map(|()| command.result)
    }
}

impl DataPort for Passthrough {
    /// A thread for each command in flight, because the call waits for the completion.
    fn transfer(
        &mut self,
        depth: usize,
        write_data: &[u8],
        next: &mut CommandSource<'_>,
        completed: &mut CompletionSink<'_>,
    ) -> Result<(), InspectError> {
        let queue = Mutex::new((next, completed, None));
        let lock = || queue.lock().expect("no thread panics with the lock");
        let this: &Passthrough = self;
        thread::scope(|scope| {
            for _ in 0..depth.min(THREADS_MAX) {
                scope.spawn(|| {
                    let mut read_data = Vec::new();
                    loop {
                        let command = {
                            let mut queue = lock();
                            if queue.2.is_some() {
                                return;
                            }
                            let Some(command) = (queue.0)() else { return };
                            command
                        };
                        let sent = Instant::now();
                        let answer = this.send(&command, write_data, &mut read_data);
                        let latency = sent.elapsed();
                        let mut queue = lock();
                        match answer {
                            Ok(()) => (queue.1)(&command, latency),
                            Err(error) => queue.2 = Some(error),
                        }
                    }
                });
            }
        });
        let (_, _, error) = queue.into_inner().expect("all threads have ended");
        error.map_or(Ok(()), Err)
    }

    fn transfer_bytes_max(&self) -> u64 {
        KERNEL_TRANSFER_BYTES_MAX
    }
}

impl Passthrough {
    /// Sends an I/O command once, because the drive may have executed a command that the kernel
    /// ended.
    fn send(&self, command: &TransferCommand, write_data: &[u8], read_data: &mut Vec<u8>) -> Result<(), InspectError> {
        let entry = &command.entry;
        let (address, bytes) = match &command.data {
            TransferData::Write { bytes } => (write_data[..*bytes].as_ptr() as u64, *bytes),
            TransferData::Read { bytes } => {
                read_data.resize(*bytes, 0);
                (read_data.as_mut_ptr() as u64, *bytes)
            }
            TransferData::Ranges(ranges) => (ranges.as_ptr() as u64, ranges.len()),
        };
        let to_host = matches!(command.data, TransferData::Read { .. });
        assert_eq!(
            entry.opcode & 0b11,
            if to_host { 0b10 } else { 0b01 },
            "the opcode gives the direction of the data"
        );
        self.judged(entry.opcode, submit::<IO>(&self.device, &mut PassthroughCommand::new(entry, address, bytes)))
    }
}

/// Sends a command until the drive answers or the device is gone.
///
/// While a device is removed or its controller reset, the kernel ends commands itself. It returns a
/// generic error (EIO, EINTR, EAGAIN) or a path related status. Soon afterwards the device is gone
/// (ENODEV) or answers again. The commands of a [`CommandPort`] only read, so sending them twice is
/// safe.
fn submit_until_answered(
    wait: impl Fn(Duration),
    mut attempt: impl FnMut() -> Result<i32, Errno>,
) -> Result<i32, Errno> {
    let unsettled = |answer: &Result<i32, Errno>| match answer {
        Ok(status) => *status as u16 & STATUS_CODE_TYPE == PATH_RELATED,
        Err(error) => matches!(*error, Errno::IO | Errno::INTR | Errno::AGAIN),
    };
    let mut answer = attempt();
    for _ in 0..UNSETTLED_ATTEMPTS {
        if !unsettled(&answer) {
            break;
        }
        wait(UNSETTLED_WAIT);
        answer = attempt();
    }
    answer
}

/// Sends a command. Returns the NVMe status, or another return value of the ioctl.
#[expect(unsafe_code, reason = "NVMe passthrough has no safe interface")]
fn submit<const OPCODE: u32>(device: &File, command: &mut PassthroughCommand) -> Result<i32, Errno> {
    /// Ioctl whose output is the kernel's return value.
    struct Submit<'a, const OPCODE: u32>(&'a mut PassthroughCommand);

    // SAFETY: the opcodes are those of NVMe passthrough. Their argument is a PassthroughCommand
    // that the kernel reads and writes, or is unused. `address` and `data_bytes` describe a slice
    // that outlives the call. The slice is mutable if the opcode makes the kernel write to it,
    // which the caller checks. For other opcodes the kernel only reads it.
    unsafe impl<const OPCODE: u32> rustix::ioctl::Ioctl for Submit<'_, OPCODE> {
        type Output = i32;
        const IS_MUTATING: bool = true;

        fn opcode(&self) -> rustix::ioctl::Opcode {
            OPCODE
        }

        fn as_ptr(&mut self) -> *mut rustix::ffi::c_void {
            std::ptr::from_mut(self.0).cast()
        }

        unsafe fn output_from_ptr(
            output: rustix::ioctl::IoctlOutput,
            _pointer: *mut rustix::ffi::c_void,
        ) -> rustix::io::Result<i32> {
            Ok(output)
        }
    }

    // SAFETY: see above.
    unsafe { ioctl(device.as_fd(), Submit::<OPCODE>(command)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    /// Result of `settled` for these answers in order, with the number of waits.
    fn settle(answers: &[Result<i32, Errno>]) -> (Result<i32, Errno>, u32) {
        let (mut answers, waits) = (answers.iter().copied(), Cell::new(0));
        let answer =
            submit_until_answered(|_| waits.set(waits.get() + 1), || answers.next().expect("no further attempt"));
        assert_eq!(answers.next(), None, "every answer was asked for");
        (answer, waits.get())
    }

    #[test]
    fn what_the_kernel_ends_itself_is_tried_until_the_device_is_gone_or_answers() {
        const HOST_PATH_ERROR: i32 = 0x370;
        const INVALID_FIELD_DO_NOT_RETRY: i32 = 0x4002;
        assert_eq!(settle(&[Ok(0)]), (Ok(0), 0));
        assert_eq!(settle(&[Err(Errno::NODEV)]), (Err(Errno::NODEV), 0));
        let removed = [Err(Errno::IO), Ok(HOST_PATH_ERROR), Err(Errno::INTR), Err(Errno::NODEV)];
        assert_eq!(settle(&removed), (Err(Errno::NODEV), 3));
        let reset = [Ok(HOST_PATH_ERROR), Err(Errno::AGAIN), Ok(INVALID_FIELD_DO_NOT_RETRY)];
        assert_eq!(settle(&reset), (Ok(INVALID_FIELD_DO_NOT_RETRY), 2));
        let lasting = [Err(Errno::IO); 1 + UNSETTLED_ATTEMPTS as usize];
        assert_eq!(settle(&lasting), (Err(Errno::IO), UNSETTLED_ATTEMPTS));
    }
}
