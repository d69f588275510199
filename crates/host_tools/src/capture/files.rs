//! Maps byte ranges of a disk to files at the present time.

use std::fs::File;
use std::path::{Path, PathBuf};

use initiator::inspect::file_map::{self, ByteExtent, FileMapError};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Mount {
    /// Major and minor number of its block device.
    pub(super) number: (u32, u32),
    folder: PathBuf,
}

impl Mount {
    /// Flushes the file system. A failure is ignored.
    pub(super) fn synchronise(&self) {
        if let Ok(folder) = File::open(&self.folder) {
            let _ = rustix::fs::syncfs(&folder);
        }
    }
}

/// Mounts of this process, with each file system once.
pub(super) fn mounts() -> Vec<Mount> {
    parse_mounts(&std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default())
}

/// Parses lines of mountinfo (proc(5)): number, parent, device, root, mount point, ...
fn parse_mounts(text: &str) -> Vec<Mount> {
    let mut mounts: Vec<Mount> = Vec::new();
    for line in text.lines() {
        let mut words = line.split(' ').skip(2);
        let (Some(number), Some(root), Some(folder)) = (words.next(), words.next(), words.next()) else {
            continue;
        };
        // A bind mount of a part of a file system would list its files twice.
        if let Some(number) = parse_number(number)
            && root == "/"
            && mounts.iter().all(|mount| mount.number != number)
        {
            let folder = PathBuf::from(unescaped(folder));
            mounts.push(Mount { number, folder });
        }
    }
    mounts
}

/// Parses `major:minor`.
pub(super) fn parse_number(text: &str) -> Option<(u32, u32)> {
    let (major, minor) = text.split_once(':')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

/// Decodes the octal escapes of mountinfo, such as `\040` for a space.
fn unescaped(text: &str) -> String {
    let codes = [("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")];
    codes.iter().fold(text.to_string(), |text, (code, byte)| text.replace(code, byte))
}

/// Percent-encodes commas, control characters and percent signs of a name for a column.
pub(super) fn escaped(name: &str) -> String {
    let is_plain = |letter: char| !letter.is_control() && letter != ',' && letter != '%';
    let mut text = String::with_capacity(name.len());
    for letter in name.chars() {
        if is_plain(letter) {
            text.push(letter);
        } else {
            text += &format!("%{:02X}", u32::from(letter));
        }
    }
    // Columns have no leading or trailing spaces.
    text.trim().to_string()
}

/// Files by location, byte ranges of the whole disk.
#[derive(Clone, Debug, Default)]
pub(super) struct FileMap {
    names: Vec<String>,
    /// First byte, first byte after it, and name index, in ascending order.
    extents: Vec<(u64, u64, u32)>,
}

impl FileMap {
    pub(super) fn new(files: impl IntoIterator<Item = (String, Vec<ByteExtent>)>) -> FileMap {
        let mut map = FileMap::default();
        for (name, extents) in files {
            let number = map.names.len() as u32;
            map.names.push(escaped(&name));
            map.extents.extend(extents.iter().map(|(from, to)| (*from, *to, number)));
        }
        map.extents.sort_unstable();
        map
    }

    /// Maps the files of these file systems. With several, names start with the mount point.
    pub(super) fn from_mounts(mounts: &[Mount], are_several: bool) -> Result<FileMap, FileMapError> {
        let mut files = Vec::new();
        for mount in mounts {
            let found = file_map::directory(&mount.folder, None)?.owners;
            let prefix = if are_several { mount.folder.as_path() } else { Path::new("") };
            let named = |(name, extents): (String, Vec<ByteExtent>)| (prefix.join(name).display().to_string(), extents);
            files.extend(found.into_iter().map(named));
        }
        Ok(FileMap::new(files))
    }

    pub(super) fn find(&self, at: u64) -> Option<&str> {
        let after = self.extents.partition_point(|(from, ..)| *from <= at);
        let (_, to, number) = self.extents[..after].last()?;
        (at < *to).then(|| self.names[*number as usize].as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_file_system_is_mounted_once() {
        let text = "22 1 259:1 / / rw - ext4 /dev/nvme0n1p1 rw\n\
                    23 22 259:2 /inside /part rw - ext4 /dev/nvme0n1p2 rw\n\
                    24 22 259:2 / /my\\040data rw - ext4 /dev/nvme0n1p2 rw\n25 22 259:1 / /again rw - ext4 x rw\nx\n";
        let wanted = [((259, 1), "/"), ((259, 2), "/my data")];
        let wanted = wanted.map(|(number, folder)| Mount { number, folder: folder.into() });
        assert_eq!(parse_mounts(text), wanted);
    }

    #[test]
    fn names_stay_one_column_and_different() {
        assert_eq!(escaped("db/a b.sst"), "db/a b.sst");
        assert_eq!(escaped("a,b\n%"), "a%2Cb%0A%25");
    }

    #[test]
    fn a_byte_is_of_the_file_around_it() {
        let files = [("b", vec![(10, 20), (40, 50)]), ("a", vec![(20, 30)])];
        let map = FileMap::new(files.map(|(name, extents)| (name.to_string(), extents)));
        let found = [9, 10, 19, 20, 30, 45, 50].map(|at| map.find(at));
        assert_eq!(found, [None, Some("b"), Some("b"), Some("a"), None, Some("b"), None]);
    }
}
