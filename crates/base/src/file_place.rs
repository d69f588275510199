//! File locations that stay valid if their folder is renamed, and atomic replacement of files
//! there.
//!
//! ```text
//! path -> FilePlace::new: opens the folder and keeps it
//!      -> open, metadata, remove, with_suffix: relative to the folder (openat)
//!      -> replace: .NAME-RANDOM.part beside the file, made durable, renamed (renameat)
//! ```
//!
//! A place may have a guard ([`FilePlace::with_guard`]). The guard runs before a file is written,
//! and again just before an existing file is replaced. It can refuse, for example
//! because another process has replaced the file that these files belong to.
//!
//! Files that belong together are in one folder, which is opened once. A folder created later at
//! the old path is another folder, and stays untouched. Links to files are followed. `replace` also
//! keeps the link.

use std::ffi::{OsStr, OsString};
use std::fs::{File, Metadata};
use std::io::{BufWriter, Error, ErrorKind, Result, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::fs::{AtFlags, Dir, Mode, OFlags, openat, readlinkat, renameat, unlinkat};
use rustix::io::Errno;

/// Suffix of an incomplete file. Its name begins with a dot, the destination's name and a hyphen.
pub const PART_SUFFIX: &str = ".part";
/// Permissions of an ordinary file, before the user's umask.
const MODE_ANYONE: u32 = 0o666;
/// Permissions of a file that only its owner may read.
const MODE_OWNER: u32 = 0o600;
/// Maximum number of links followed in a row, as in Linux.
const LINKS_MAX: usize = 40;

/// Returns an error if a file may not be replaced.
type Guard = Arc<dyn Fn() -> Result<()> + Send + Sync>;

/// A file name in an open folder.
#[derive(Clone)]
pub struct FilePlace {
    /// Kept open, so that it stays the same folder under any name.
    folder: Arc<File>,
    name: OsString,
    path: PathBuf,
    /// Permissions of files created here.
    mode: u32,
    guard: Option<Guard>,
}

/// An incomplete file, removed when it is dropped unless it was renamed to its final name.
struct TemporaryFile<'a> {
    folder: &'a File,
    name: OsString,
    is_renamed: bool,
}

impl Drop for TemporaryFile<'_> {
    fn drop(&mut self) {
        if !self.is_renamed {
            // A failure only wastes space.
            let _ = unlinkat(self.folder, &self.name, AtFlags::empty());
        }
    }
}

impl std::fmt::Debug for FilePlace {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{:?}", self.path)
    }
}

fn folder_of(path: &Path) -> &Path {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    parent.unwrap_or(Path::new("."))
}

fn open_folder(at: impl std::os::fd::AsFd, path: &Path) -> Result<File> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    Ok(File::from(openat(at, path, flags, Mode::empty())?))
}

impl FilePlace {
    /// The place that a path names. The file need not exist.
    ///
    /// # Errors
    /// The folder cannot be opened, or the path does not end with a name.
    pub fn new(path: &Path) -> Result<FilePlace> {
        FilePlace::within(rustix::fs::CWD, path, path.to_path_buf())
    }

    fn within(folder: impl std::os::fd::AsFd, path: &Path, shown: PathBuf) -> Result<FilePlace> {
        let no_name = || Error::new(ErrorKind::InvalidInput, "the path does not end with the name of a file");
        Ok(FilePlace {
            name: path.file_name().ok_or_else(no_name)?.to_os_string(),
            folder: Arc::new(open_folder(folder, folder_of(path))?),
            path: shown,
            mode: MODE_ANYONE,
            guard: None,
        })
    }

    /// The same place, with permissions for the owner only on created files.
    pub fn owner_only(self) -> FilePlace {
        FilePlace { mode: MODE_OWNER, ..self }
    }

    /// The same place, with a guard that must succeed before a file is written or replaced.
    pub fn with_guard(self, guard: impl Fn() -> Result<()> + Send + Sync + 'static) -> FilePlace {
        FilePlace { guard: Some(Arc::new(guard)), ..self }
    }

    fn check_guard(&self) -> Result<()> {
        self.guard.as_ref().map_or(Ok(()), |guard| guard())
    }

    /// The place in the same folder with `extension` appended to the name.
    pub fn with_suffix(&self, extension: &str) -> FilePlace {
        let longer = |name: &OsStr| {
            let mut name = name.to_os_string();
            name.push(extension);
            name
        };
        FilePlace {
            folder: Arc::clone(&self.folder),
            name: longer(&self.name),
            path: longer(self.path.as_os_str()).into(),
            mode: self.mode,
            guard: self.guard.clone(),
        }
    }

    /// The path by which the place was named. The file may have moved since.
    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn name(&self) -> &OsStr {
        &self.name
    }

    fn open_with(&self, flags: OFlags, mode: u32) -> Result<File> {
        let flags = flags | OFlags::CLOEXEC | OFlags::NOCTTY;
        Ok(File::from(openat(&self.folder, &self.name, flags, Mode::from_raw_mode(mode))?))
    }

    /// Opens the file for reading. Refuses other kinds of files without waiting.
    ///
    /// # Errors
    /// A system call failed, or the file is not a regular one.
    pub fn open(&self) -> Result<File> {
        crate::input::regular(self.open_with(OFlags::RDONLY | OFlags::NONBLOCK, 0)?)
    }

    /// Opens the file for reading and writing, and creates it if it does not exist.
    ///
    /// # Errors
    /// A system call failed, the guard refused, or the file is not a regular one.
    pub fn open_or_make(&self) -> Result<File> {
        self.check_guard()?;
        crate::input::regular(self.open_with(OFlags::RDWR | OFlags::CREATE | OFlags::NONBLOCK, self.mode)?)
    }

    /// Metadata of the file.
    ///
    /// # Errors
    /// A system call failed, usually because the file does not exist.
    pub fn metadata(&self) -> Result<Metadata> {
        self.open_with(OFlags::PATH, 0)?.metadata()
    }

    /// Returns true if the file exists. An error counts as false.
    pub fn exists(&self) -> bool {
        self.metadata().is_ok()
    }

    /// Removes the file.
    pub fn remove(&self) -> Result<()> {
        Ok(unlinkat(&self.folder, &self.name, AtFlags::empty())?)
    }

    /// Follows all links from this place and returns the final one.
    fn resolve(&self) -> Result<FilePlace> {
        let mut place = self.clone();
        for _ in 0..LINKS_MAX {
            match readlinkat(&place.folder, &place.name, Vec::new()) {
                Ok(target) => {
                    let target = Path::new(OsStr::from_bytes(target.as_bytes()));
                    let target = FilePlace::within(&place.folder, target, self.path.clone())?;
                    place = FilePlace { mode: place.mode, guard: place.guard, ..target };
                }
                Err(Errno::INVAL | Errno::NOENT) => return Ok(place),
                Err(error) => return Err(error.into()),
            }
        }
        Err(Errno::LOOP.into())
    }

    /// Writes a file atomically and durably. It is written beside its place, then renamed.
    ///
    /// # Errors
    /// The file system, the guard or `fill` failed. The destination then does not change.
    pub fn replace(&self, fill: impl FnOnce(&mut BufWriter<&mut File>) -> Result<()>) -> Result<()> {
        self.check_guard()?;
        // A link stays a link. A pipe or a device cannot be replaced, so it is written to.
        let place = self.resolve()?;
        if place.metadata().is_ok_and(|metadata| !metadata.is_file() && !metadata.is_dir()) {
            let mut file = place.open_with(OFlags::WRONLY, 0)?;
            let mut out = BufWriter::with_capacity(1 << 20, &mut file);
            fill(&mut out)?;
            return out.flush();
        }
        let (mut file, mut part) = place.make_part()?;
        let mut out = BufWriter::with_capacity(1 << 20, &mut file);
        fill(&mut out)?;
        out.flush()?;
        drop(out);
        file.sync_all()?;
        self.check_guard()?;
        renameat(&place.folder, &part.name, &place.folder, &place.name)?;
        part.is_renamed = true;
        // The new name becomes durable with the folder.
        place.folder.sync_all()
    }

    /// Creates a file beside the place. Its name contains the destination's name, so that the owner
    /// can remove leftovers of a crash.
    fn make_part(&self) -> Result<(File, TemporaryFile<'_>)> {
        static PARTS_CREATED: AtomicU32 = AtomicU32::new(0);
        loop {
            let number =
                std::process::id().wrapping_mul(4096).wrapping_add(PARTS_CREATED.fetch_add(1, Ordering::Relaxed));
            let mut name = self.part_prefix();
            name.push(format!("{:06x}{PART_SUFFIX}", number & 0xff_ffff));
            let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
            match openat(&self.folder, &name, flags, Mode::from_raw_mode(self.mode)) {
                Ok(file) => {
                    let folder = &*self.folder;
                    let part = TemporaryFile { folder, name, is_renamed: false };
                    return Ok((File::from(file), part));
                }
                Err(Errno::EXIST) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn part_prefix(&self) -> OsString {
        let mut prefix = OsString::from(".");
        prefix.push(&self.name);
        prefix.push("-");
        prefix
    }

    /// Removes incomplete files that a crash left beside this place. The owner calls it while it
    /// writes no file there. Remaining files are harmless.
    pub fn remove_parts(&self) {
        let Ok(entries) = Dir::read_from(&self.folder) else {
            return;
        };
        let prefix = self.part_prefix();
        for entry in entries.flatten() {
            let name = entry.file_name().to_bytes();
            let random =
                name.strip_prefix(prefix.as_bytes()).and_then(|name| name.strip_suffix(PART_SUFFIX.as_bytes()));
            // A hyphen would indicate a part of another file whose name begins like ours.
            if random.is_some_and(|random| !random.contains(&b'-')) {
                let _ = unlinkat(&self.folder, entry.file_name(), AtFlags::empty());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(place: &FilePlace, text: &str) -> Result<()> {
        place.replace(|out| out.write_all(text.as_bytes()))
    }

    fn names(folder: &Path) -> Vec<String> {
        let entries = std::fs::read_dir(folder).expect("a folder").flatten();
        let mut names: Vec<_> = entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_place_stays_in_its_folder_after_a_rename() {
        let folder = tempfile::tempdir().expect("a folder");
        let (old, new) = (folder.path().join("old"), folder.path().join("new"));
        std::fs::create_dir(&old).expect("a folder");
        let place = FilePlace::new(&old.join("file")).expect("a place");
        write(&place, "one").expect("it is written");
        std::fs::rename(&old, &new).expect("it is renamed");
        std::fs::create_dir(&old).expect("another folder");
        write(&place, "two").expect("it is written");
        write(&place.with_suffix(".more"), "three").expect("it is written");
        assert_eq!((names(&old).len(), names(&new)), (0, vec!["file".into(), "file.more".into()]));
        assert_eq!(std::fs::read_to_string(new.join("file")).expect("it is there"), "two");
        place.remove().expect("it is removed");
        assert_eq!(names(&new), ["file.more"]);
    }

    #[test]
    fn a_failed_replacement_changes_nothing_and_leaves_no_part() {
        let folder = tempfile::tempdir().expect("a folder");
        let place = FilePlace::new(&folder.path().join("file")).expect("a place");
        write(&place, "before").expect("it is written");
        let failed = place.replace(|out| out.write_all(b"after").and(Err(Error::other("no"))));
        assert!(failed.is_err() && names(folder.path()) == ["file"]);
        assert_eq!(std::fs::read_to_string(place.path()).expect("it is there"), "before");
        for name in [".file-00ff00.part", ".file-x-1.part", "file-1.part"] {
            std::fs::write(folder.path().join(name), "").expect("it is written");
        }
        place.remove_parts();
        assert_eq!(names(folder.path()), [".file-x-1.part", "file", "file-1.part"]);
    }

    #[test]
    fn a_guard_runs_before_and_after_the_file_is_written() {
        let folder = tempfile::tempdir().expect("a folder");
        let place = FilePlace::new(&folder.path().join("file")).expect("a place").owner_only();
        write(&place, "before").expect("it is written");
        let mode = std::os::unix::fs::PermissionsExt::mode(&place.metadata().expect("it is there").permissions());
        assert_eq!(mode & 0o777, 0o600);
        for answers in 0..2 {
            let calls = AtomicU32::new(0);
            let guarded = place.clone().with_guard(move || {
                let is_allowed = calls.fetch_add(1, Ordering::Relaxed) < answers;
                is_allowed.then_some(()).ok_or_else(|| Error::other("not any more"))
            });
            let error = write(&guarded, "after").expect_err("it is refused").to_string();
            assert_eq!((error.as_str(), names(folder.path())), ("not any more", vec!["file".to_string()]));
            assert_eq!(std::fs::read_to_string(place.path()).expect("it is there"), "before");
        }
    }

    #[test]
    fn a_link_stays_a_link() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name);
        std::fs::create_dir(at("there")).expect("a folder");
        std::os::unix::fs::symlink("there/file", at("link")).expect("a link");
        std::os::unix::fs::symlink(at("link"), at("link to it")).expect("a link");
        std::os::unix::fs::symlink("around", at("around")).expect("a link");
        for text in ["one", "two"] {
            write(&FilePlace::new(&at("link to it")).expect("a place"), text).expect("it is written");
            assert_eq!(std::fs::read_to_string(at("there/file")).expect("it is there"), text);
        }
        assert!(at("link").is_symlink() && names(&at("there")) == ["file"]);
        assert!(write(&FilePlace::new(&at("around")).expect("a place"), "").is_err());
        assert!(FilePlace::new(Path::new("..")).is_err());
    }
}
