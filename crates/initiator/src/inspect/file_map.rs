//! Maps the files of a mounted file system to byte ranges of an NVMe namespace.
//!
//! ```text
//! directory -> block device (sysfs): namespace, offset of the partition
//!           -> every regular file  -> FIEMAP -> extents -> owners (first path components)
//! ```
//!
//! The map is read without a flush. Data that the file system has not placed yet is omitted and
//! counted. The map is a snapshot, so callers must read it again after files grow or move.

use std::collections::{BTreeMap, HashSet};
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::ioctl::{Updater, ioctl, opcode};

/// `struct fiemap` of the kernel's `linux/fiemap.h`, without its extents.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
struct FiemapHeader {
    start: u64,
    length: u64,
    flags: u32,
    /// Number of extents filled in by the kernel.
    mapped_extents: u32,
    /// Capacity of the extent array.
    extent_count: u32,
    reserved: u32,
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
struct FiemapExtent {
    /// First byte in the file.
    logical: u64,
    /// First byte on the block device.
    physical: u64,
    length: u64,
    reserved64: [u64; 2],
    flags: u32,
    reserved: [u32; 3],
}

const EXTENTS: usize = 128;

#[repr(C)]
#[derive(Clone, Copy, Debug)]
struct Fiemap {
    header: FiemapHeader,
    extents: [FiemapExtent; EXTENTS],
}

const _: () = assert!(size_of::<FiemapHeader>() == 32 && size_of::<FiemapExtent>() == 56);
const _: () = assert!(size_of::<Fiemap>() == 32 + EXTENTS * 56);

/// `FS_IOC_FIEMAP`. Its size is the size of the header.
const FIEMAP: u32 = opcode::read_write::<FiemapHeader>(b'f', 11);

/// Extent flags (`FIEMAP_EXTENT_*`).
const LAST: u32 = 0x1;
/// The location is unknown or undecided (delayed allocation), or the bytes there are not the file's
/// data (compressed, encrypted, inline in metadata, tail in another block).
const UNLOCATED: u32 = 0x2 | 0x4 | 0x8 | 0x100 | 0x200 | 0x400;
const SHARED: u32 = 0x2000;

/// Range of a block device, first byte and first byte after it.
pub type ByteExtent = (u64, u64);

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UnownedCounts {
    /// Files and directories that cannot be read.
    pub unreadable: u64,
    /// Files and directories of other file systems mounted below the directory.
    pub elsewhere: u64,
    /// Extents with an unknown or undecided location, or with compressed, encrypted or inline data.
    pub without_place: u64,
    /// Extents shared by several files.
    pub shared: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileExtents {
    /// Extents on the block device of the file system, with adjacent extents joined.
    pub extents: Vec<ByteExtent>,
    pub omissions: UnownedCounts,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DirectoryMap {
    pub device: BlockDevice,
    /// Owners with their extents, byte offsets in the namespace.
    pub owners: Vec<(String, Vec<ByteExtent>)>,
    pub omissions: UnownedCounts,
}

/// Block device of an NVMe namespace or of a partition of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockDevice {
    /// Name of the namespace, such as `nvme0n1`.
    pub namespace: String,
    /// First byte of the partition, 0 for the whole namespace.
    pub offset_bytes: u64,
    pub bytes: u64,
    pub nguid: Option<[u8; 16]>,
}

#[derive(Debug, thiserror::Error)]
pub enum FileMapError {
    #[error("cannot map the file {} ({source})", path.display())]
    Io { path: PathBuf, source: io::Error },
    #[error(
        "the file system of {} cannot report where files are stored (no FIEMAP). Give the ranges in a file instead",
        .0.display()
    )]
    NoFiemap(PathBuf),
    #[error(
        "the file system of {} is on {found} instead of an NVMe namespace or its partition, so file offsets have no \
         logical blocks. Give the ranges in a file instead",
        path.display()
    )]
    NotOnNamespace { path: PathBuf, found: String },
}

/// Maps all regular files below a directory. The owner of a file is its path below the directory,
/// or the first `depth` components of the path.
///
/// # Errors
/// The file system is not directly on an NVMe namespace or lacks FIEMAP, or the directory cannot be
/// read.
pub fn directory(path: &Path, depth: Option<usize>) -> Result<DirectoryMap, FileMapError> {
    let device = BlockDevice::from_path(path)?;
    let (mut owners, omissions) = walk(path, depth)?;
    for extent in owners.values_mut().flatten() {
        extent.0 += device.offset_bytes;
        extent.1 += device.offset_bytes;
    }
    Ok(DirectoryMap { device, owners: owners.into_iter().collect(), omissions })
}

impl BlockDevice {
    /// Block device of the file system with this path.
    pub fn from_path(path: &Path) -> Result<BlockDevice, FileMapError> {
        let number = std::fs::metadata(path).map_err(failed(path))?.dev();
        let (major, minor) = (rustix::fs::major(number), rustix::fs::minor(number));
        let elsewhere = |found: String| FileMapError::NotOnNamespace { path: path.to_path_buf(), found };
        // File systems on several devices or without a device have a number without a block device.
        let link = PathBuf::from(format!("/sys/dev/block/{major}:{minor}"));
        let Ok(device) = link.canonicalize() else {
            return Err(elsewhere("no block device of its own".to_string()));
        };
        let (namespace, offset_bytes) = match number_in(&device.join("partition")) {
            Some(_) => {
                let namespace = device.parent().unwrap_or(&device).to_path_buf();
                (namespace, number_in(&device.join("start")).unwrap_or(0) * SECTOR_BYTES)
            }
            None => (device, 0),
        };
        let name = namespace.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if !name.starts_with("nvme") {
            return Err(elsewhere(name));
        }
        Ok(BlockDevice {
            bytes: number_in(&namespace.join("size")).unwrap_or(0) * SECTOR_BYTES,
            nguid: std::fs::read_to_string(namespace.join("nguid")).ok().and_then(|text| parse_nguid(&text)),
            namespace: name,
            offset_bytes,
        })
    }
}

/// Unit of sizes and offsets in sysfs, independent of the logical block size, bytes.
const SECTOR_BYTES: u64 = 512;

fn number_in(file: &Path) -> Option<u64> {
    std::fs::read_to_string(file).ok()?.trim().parse().ok()
}

/// Parses 32 hexadecimal digits with optional dashes.
fn parse_nguid(text: &str) -> Option<[u8; 16]> {
    let digits: String = text.trim().chars().filter(|digit| *digit != '-').collect();
    let value = u128::from_str_radix(&digits, 16).ok().filter(|_| digits.len() == 32)?;
    Some(value.to_be_bytes())
}

/// Regular files below a directory by owner, as byte ranges of the file system's block device.
fn walk(root: &Path, depth: Option<usize>) -> Result<(BTreeMap<String, Vec<ByteExtent>>, UnownedCounts), FileMapError> {
    let device = std::fs::metadata(root).map_err(failed(root))?.dev();
    let mut owners: BTreeMap<String, Vec<ByteExtent>> = BTreeMap::new();
    let mut omissions = UnownedCounts::default();
    let mut seen = HashSet::new();
    let mut folders = vec![root.to_path_buf()];
    while let Some(folder) = folders.pop() {
        let entries = match std::fs::read_dir(&folder) {
            Ok(entries) => entries,
            Err(error) if folder == root => return Err(failed(root)(error)),
            Err(_) => {
                omissions.unreadable += 1;
                continue;
            }
        };
        // Names are sorted, so that the first of several hard links is the owner on every machine.
        let mut paths: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
        paths.sort();
        for path in paths {
            match std::fs::symlink_metadata(&path) {
                // The file vanished after the listing.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(_) => omissions.unreadable += 1,
                Ok(entry) if entry.is_dir() && entry.dev() == device => folders.push(path),
                Ok(entry) if entry.is_file() && entry.dev() == device => {
                    if seen.insert(entry.ino()) {
                        let extents = owners.entry(owner(&path, root, depth)).or_default();
                        omissions.add(add_file(&path, extents)?);
                    }
                }
                Ok(entry) if entry.is_dir() || entry.is_file() => omissions.elsewhere += 1,
                Ok(_) => {}
            }
        }
    }
    owners.retain(|_, extents| !extents.is_empty());
    Ok((owners, omissions))
}

fn owner(path: &Path, root: &Path, depth: Option<usize>) -> String {
    let below = path.strip_prefix(root).unwrap_or(path);
    let components = below.components().take(depth.unwrap_or(usize::MAX));
    components.collect::<PathBuf>().to_string_lossy().into_owned()
}

fn add_file(path: &Path, owned: &mut Vec<ByteExtent>) -> Result<UnownedCounts, FileMapError> {
    let Ok(file) = File::open(path) else {
        return Ok(UnownedCounts { unreadable: 1, ..UnownedCounts::default() });
    };
    let located = extents(&file).map_err(|error| match error.raw_os_error() {
        Some(code)
            if [rustix::io::Errno::OPNOTSUPP, rustix::io::Errno::NOTTY]
                .map(|errno| errno.raw_os_error())
                .contains(&code) =>
        {
            FileMapError::NoFiemap(path.to_path_buf())
        }
        _ => failed(path)(error),
    })?;
    owned.extend(located.extents);
    Ok(located.omissions)
}

fn failed(path: &Path) -> impl Fn(io::Error) -> FileMapError {
    move |source| FileMapError::Io { path: path.to_path_buf(), source }
}

impl UnownedCounts {
    fn add(&mut self, other: UnownedCounts) {
        self.unreadable += other.unreadable;
        self.elsewhere += other.elsewhere;
        self.without_place += other.without_place;
        self.shared += other.shared;
    }

    /// Returns an extent, or counts it as omitted.
    fn keep(&mut self, extent: &FiemapExtent) -> Option<ByteExtent> {
        if extent.flags & UNLOCATED != 0 {
            self.without_place += 1;
            return None;
        }
        if extent.flags & SHARED != 0 {
            self.shared += 1;
            return None;
        }
        Some((extent.physical, extent.physical.checked_add(extent.length)?))
    }
}

/// Location of a file.
///
/// # Errors
/// The file system lacks FIEMAP (`EOPNOTSUPP`) or cannot read its maps.
pub fn extents(file: &File) -> io::Result<FileExtents> {
    let mut result = FileExtents::default();
    let mut start = 0;
    loop {
        let mut map = Fiemap {
            header: FiemapHeader {
                start,
                length: u64::MAX - start,
                extent_count: EXTENTS as u32,
                ..FiemapHeader::default()
            },
            extents: [FiemapExtent::default(); EXTENTS],
        };
        fiemap(file, &mut map)?;
        let mapped = &map.extents[..(map.header.mapped_extents as usize).min(EXTENTS)];
        for extent in mapped {
            match (result.omissions.keep(extent), result.extents.last_mut()) {
                (Some((first, after)), Some(last)) if last.1 == first => last.1 = after,
                (Some(located), _) => result.extents.push(located),
                (None, _) => {}
            }
        }
        let Some(last) = mapped.last().filter(|last| last.flags & LAST == 0 && last.length > 0) else {
            return Ok(result);
        };
        start = last.logical + last.length;
    }
}

#[expect(unsafe_code, reason = "FIEMAP has no safe interface")]
fn fiemap(file: &File, map: &mut Fiemap) -> io::Result<()> {
    // SAFETY: the argument of FS_IOC_FIEMAP is a `struct fiemap`. Its header gives the capacity of
    // the extent array behind it. `Fiemap` has exactly this capacity, the kernel writes no more
    // extents than this, and every bit pattern is valid for its fields.
    unsafe { ioctl(file.as_fd(), Updater::<FIEMAP, Fiemap>::new(map)) }?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    const FILE_BYTES: u64 = 3 << 20;

    /// Creates a file and syncs its blocks to the disk.
    fn write(path: &Path) {
        let mut file = File::create(path).expect("a file");
        file.write_all(&vec![7; FILE_BYTES as usize]).expect("written");
        file.sync_all().expect("synchronised");
    }

    fn bytes_of(extents: &[ByteExtent]) -> u64 {
        extents.iter().map(|(first, after)| after - first).sum()
    }

    /// Returns true if the temporary folder's file system supports FIEMAP, and prints a note if
    /// not.
    fn fiemap_is_supported(folder: &Path) -> bool {
        let path = folder.join("probe");
        write(&path);
        let supported = extents(&File::open(&path).expect("a file")).is_ok();
        std::fs::remove_file(path).expect("removed");
        if !supported {
            eprintln!("SKIPPED: the temporary folder's file system does not support FIEMAP");
        }
        supported
    }

    #[test]
    fn the_extents_of_a_file_cover_it() {
        let folder = tempfile::tempdir().expect("a folder");
        if !fiemap_is_supported(folder.path()) {
            return;
        }
        let path = folder.path().join("data");
        write(&path);
        let found = extents(&File::open(&path).expect("a file")).expect("extents");
        assert_eq!(bytes_of(&found.extents) + found.omissions.shared, FILE_BYTES, "{found:?}");
        assert_eq!(found.omissions, UnownedCounts::default());
        assert!(found.extents.windows(2).all(|pair| pair[0].1 != pair[1].0), "{found:?}");
        let empty = extents(&File::create(folder.path().join("empty")).expect("a file")).expect("extents");
        assert_eq!(empty, FileExtents::default());
    }

    #[test]
    fn owners_are_the_first_components_of_a_path_and_links_count_once() {
        let folder = tempfile::tempdir().expect("a folder");
        if !fiemap_is_supported(folder.path()) {
            return;
        }
        let root = folder.path();
        std::fs::create_dir_all(root.join("db/tables")).expect("folders");
        for name in ["db/wal", "db/tables/one", "db/tables/two", "log"] {
            write(&root.join(name));
        }
        std::fs::hard_link(root.join("log"), root.join("log.link")).expect("a link");
        std::os::unix::fs::symlink(root.join("db"), root.join("other")).expect("a link");
        let names_and_bytes = |depth| {
            let (owners, omissions) = walk(root, depth).expect("a walk");
            assert_eq!(omissions, UnownedCounts::default());
            let sizes = owners.into_iter().map(|(name, extents)| (name, bytes_of(&extents) / FILE_BYTES));
            sizes.collect::<Vec<(String, u64)>>()
        };
        let owned =
            |list: &[(&str, u64)]| list.iter().map(|&(name, files)| (name.to_string(), files)).collect::<Vec<_>>();
        assert_eq!(names_and_bytes(Some(1)), owned(&[("db", 3), ("log", 1)]));
        assert_eq!(names_and_bytes(Some(2)), owned(&[("db/tables", 2), ("db/wal", 1), ("log", 1)]));
        assert_eq!(names_and_bytes(None).len(), 4);
    }

    #[test]
    fn extents_that_are_nobodys_are_passed_over() {
        let keep = |flags: u32| {
            let mut omissions = UnownedCounts::default();
            let extent = FiemapExtent { physical: 4096, length: 8192, flags, ..FiemapExtent::default() };
            (omissions.keep(&extent), omissions.without_place, omissions.shared)
        };
        assert_eq!(keep(0), (Some((4096, 12288)), 0, 0));
        // Flags for last, unwritten and merged.
        assert_eq!(keep(0x1 | 0x800 | 0x1000), (Some((4096, 12288)), 0, 0));
        // Flags for unknown, delayed allocation, encoded (with encrypted) and inline.
        for flags in [0x2, 0x6, 0x88, 0x300] {
            assert_eq!(keep(flags), (None, 1, 0), "{flags:#x}");
        }
        assert_eq!(keep(SHARED), (None, 0, 1));
    }

    #[test]
    fn file_systems_elsewhere_are_refused() {
        let error = BlockDevice::from_path(Path::new("/proc")).unwrap_err().to_string();
        assert!(error.starts_with("the file system of /proc is on no block device of its own instead of"));
        assert!(matches!(BlockDevice::from_path(Path::new("/nowhere")), Err(FileMapError::Io { .. })));
        assert_eq!(
            parse_nguid("00000000-0000-0000-0000-0000000001ff\n").map(|guid| guid[14..] == [1, 0xff]),
            Some(true)
        );
        assert_eq!(parse_nguid("eui.0123"), None);
    }
}
