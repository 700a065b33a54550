//! Destinations of bytes: files and objects appear at the end, pipes and devices take bytes at
//! once.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use arrow_schema::ArrowError;

use super::atomic::AtomicFile;
use super::options::OutputOptions;
use super::part::Written;
use super::target::{Destination, descriptor};
use crate::error::{Error, Result};
use crate::store::{Upload, is_far};
use crate::watch::Cancel;

/// An unbuffered sequence of bytes, and the counts of its bytes and rows.
pub(super) struct Sink {
    /// `None` once finished.
    end: Option<End>,
    /// The output's name in messages.
    pub(super) label: PathBuf,
    written: Written,
    /// The disk is writing the bytes before this offset.
    behind: u64,
}

enum End {
    Atomic(AtomicFile),
    /// A file of an output directory. The directory syncs its files, and makes them visible.
    Within(File),
    /// An object. Objects appear when complete, or together with all objects of their prefix.
    Upload(Box<Upload>),
    /// A device, a FIFO or the standard output: written bytes are final.
    Direct(File),
}

/// Bytes of a write-back step: a few milliseconds of a disk.
const WRITE_BEHIND: u64 = 8 << 20;

/// Minimum size of a separate write-back at the end of a directory's file. Smaller rests are
/// written with other files' rests, side by side on the disk.
const LEFT_BEHIND: u64 = 256 << 10;

impl Sink {
    pub(super) fn open(target: &Destination, options: &OutputOptions) -> Result<Self> {
        let cancel = &options.watch.cancel;
        let (end, label) = match target {
            Destination::Stdout => {
                let label = PathBuf::from("<stdout>");
                // `Stdout` itself would search its buffer for line ends.
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
        Ok(Self { end: Some(end), label, written: Written::default(), behind: 0 })
    }

    fn open_file(path: &Path, cancel: &Cancel) -> Result<End> {
        // An open file is extended in place: the process with the open file would not see a
        // replacement.
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

    /// Returns the error of a writer of Arrow's.
    pub(super) fn failed(&self, error: ArrowError) -> Error {
        match error {
            ArrowError::IoError(_, error) => Error::output(&self.label, &error),
            error => Error::data(format!("{}: {error}", self.label.display())),
        }
    }

    /// Counts the rows of a part, and starts writing to the disk, so that the sync at the end has
    /// little left to wait for.
    pub(super) fn appended(&mut self, rows: u64) {
        self.written.rows += rows;
        self.start_disk(WRITE_BEHIND);
    }

    /// Starts writing pending bytes to the disk, if there are at least `least`.
    fn start_disk(&mut self, least: u64) {
        let file = match &self.end {
            Some(End::Atomic(atomic)) => atomic.file(),
            Some(End::Within(file)) => file,
            Some(End::Upload(_) | End::Direct(_)) | None => return,
        };
        if self.written.bytes - self.behind < least {
            return;
        }
        #[cfg(target_os = "linux")]
        {
            // For dirty pages, Linux answers DONTNEED by starting to write them, without waiting.
            let length = std::num::NonZeroU64::new(self.written.bytes - self.behind);
            let advice = rustix::fs::Advice::DontNeed;
            // Ignored advice costs time and nothing else.
            let _ = rustix::fs::fadvise(file, self.behind, length, advice);
        }
        self.behind = self.written.bytes;
    }

    /// Completes the output. Returns its size.
    pub(super) fn finish(&mut self) -> Result<Written> {
        if let Some(End::Within(_)) = self.end {
            self.start_disk(LEFT_BEHIND);
        }
        match self.end.take() {
            Some(End::Atomic(atomic)) => atomic.commit()?,
            Some(End::Upload(upload)) => upload.finish()?,
            Some(End::Within(_) | End::Direct(_)) | None => {}
        }
        Ok(self.written)
    }
}

/// Writes all `bytes`, through the buffer.
pub(super) fn write(sink: &mut BufWriter<Sink>, bytes: &[u8]) -> Result<()> {
    sink.write_all(bytes).map_err(|error| Error::output(&sink.get_ref().label, &error))
}

/// Completes a buffered output. Returns its size.
pub(super) fn finish(sink: &mut BufWriter<Sink>) -> Result<Written> {
    sink.flush().map_err(|error| Error::output(&sink.get_ref().label, &error))?;
    sink.get_mut().finish()
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = match &mut self.end {
            Some(End::Atomic(atomic)) => atomic.file().write(bytes)?,
            Some(End::Within(file) | End::Direct(file)) => file.write(bytes)?,
            Some(End::Upload(upload)) => upload.write(bytes).map(|()| bytes.len())?,
            None => return Err(io::Error::other("the output is finished")),
        };
        self.written.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
