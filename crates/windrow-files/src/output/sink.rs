//! Where bytes go: a file or an object that appears at the end, or a pipe or device that takes them as they come.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use super::atomic::{AtomicFile, LINKS};
use super::{Destination, OutputOptions};
use crate::error::{Error, Result};
use crate::store::{Upload, is_far};
use crate::watch::Cancel;

/// An unbuffered, counted sequence of bytes.
pub(super) struct Sink {
    /// None once finished.
    end: Option<End>,
    label: PathBuf,
    bytes: u64,
    /// The bytes before this offset are on their way to the disk.
    behind: u64,
}

enum End {
    Atomic(AtomicFile),
    /// A file of a directory, which is synced and appears with it.
    Within(File),
    /// An object, which appears when it is complete, or with those that it is written with.
    Upload(Box<Upload>),
    /// A device, a FIFO or the standard output: what is written cannot be taken back.
    Direct(File),
}

/// The descriptor of this process that `path` names, as `/dev/stdout` and `/dev/fd/3` do.
pub(super) fn descriptor(path: &Path) -> Option<u32> {
    let mut path = path.to_owned();
    for _ in 0..LINKS {
        let directory = match path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => fs::canonicalize(parent).ok()?,
            _ => fs::canonicalize(".").ok()?,
        };
        if directory.starts_with("/proc") && directory.ends_with("fd") {
            return path.file_name()?.to_str()?.parse().ok();
        }
        path = directory.join(fs::read_link(&path).ok()?);
    }
    None
}

/// Write-back starts in steps of this many bytes: a few milliseconds of a disk each.
const WRITE_BEHIND: u64 = 8 << 20;

/// What is left at the end of a file of many is written back with the others if it is less: they lie together then.
const LEFT_BEHIND: u64 = 256 << 10;

impl Sink {
    pub(super) fn open(target: &Destination, options: &OutputOptions) -> Result<Self> {
        let cancel = &options.watch.cancel;
        let (end, label) = match target {
            Destination::Stdout => {
                let label = PathBuf::from("<stdout>");
                // Not `Stdout` itself, which looks for line ends in what it buffers.
                let owned = io::stdout().as_fd().try_clone_to_owned();
                let owned = owned.map_err(|error| Error::output(&label, &error))?;
                (End::Direct(File::from(owned)), label)
            }
            Destination::Path(path) if is_far(path) => {
                let (stores, part) = (&options.stores, options.upload.map_or(0, |all| all.part));
                let upload = Upload::to(stores, path, part, cancel)?;
                (End::Upload(Box::new(upload)), path.clone())
            }
            Destination::Path(path) => (Self::open_file(path, cancel)?, path.clone()),
            Destination::Below(prefix, name) => {
                (End::Upload(Box::new(prefix.upload(name)?)), name.clone())
            }
            Destination::Within(path) => {
                let file = File::create_new(path).map_err(|error| Error::within(path, &error))?;
                (End::Within(file), path.clone())
            }
        };
        Ok(Self { end: Some(end), label, bytes: 0, behind: 0 })
    }

    fn open_file(path: &Path, cancel: &Cancel) -> Result<End> {
        // A file that is open already is added to: another in its place would not reach who opened it.
        let is_open = descriptor(path).is_some();
        match fs::metadata(path) {
            Ok(existing) if existing.is_dir() => {
                Err(Error::usage(format!("{}: is a directory; name a file in it", path.display())))
            }
            Ok(existing) if is_open || !existing.is_file() => OpenOptions::new()
                .write(true)
                .append(is_open)
                .open(path)
                .map(End::Direct)
                .map_err(|error| Error::output(path, &error)),
            _ => AtomicFile::create(path, cancel).map(End::Atomic),
        }
    }

    /// The output's name in messages.
    pub(super) fn label(&self) -> &Path {
        &self.label
    }

    /// Starts the disk on what has been written, so that the sync at the end has little left to wait for.
    pub(super) fn write_behind(&mut self) {
        self.start_disk(WRITE_BEHIND);
    }

    /// Starts the disk on what it has not begun with, if that is so many bytes or more.
    fn start_disk(&mut self, least: u64) {
        let file = match &self.end {
            Some(End::Atomic(atomic)) => atomic.file(),
            Some(End::Within(file)) => file,
            Some(End::Upload(_) | End::Direct(_)) | None => return,
        };
        if self.bytes - self.behind < least {
            return;
        }
        #[cfg(target_os = "linux")]
        {
            // Linux answers DONTNEED on dirty pages by starting to write them, and does not wait.
            let length = std::num::NonZeroU64::new(self.bytes - self.behind);
            let advice = rustix::fs::Advice::DontNeed;
            // Advice that is not taken costs time and nothing else.
            let _ = rustix::fs::fadvise(file, self.behind, length, advice);
        }
        self.behind = self.bytes;
    }

    /// Completes the output; returns its bytes.
    pub(super) fn finish(&mut self) -> Result<u64> {
        if let Some(End::Within(_)) = self.end {
            self.start_disk(LEFT_BEHIND);
        }
        match self.end.take() {
            Some(End::Atomic(atomic)) => atomic.commit()?,
            Some(End::Upload(upload)) => upload.finish()?,
            Some(End::Within(_) | End::Direct(_)) | None => {}
        }
        Ok(self.bytes)
    }
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = match &mut self.end {
            Some(End::Atomic(atomic)) => atomic.file().write(bytes)?,
            Some(End::Within(file) | End::Direct(file)) => file.write(bytes)?,
            Some(End::Upload(upload)) => upload.write(bytes).map(|()| bytes.len())?,
            None => return Err(io::Error::other("the output is finished")),
        };
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
