//! Saves spines to a directory and opens saved spines, so a program restarts without its input.
//!
//! ```text
//! directory   batch-G-0.arrows   batch-G-1.arrows   ...    Arrow IPC streams, rows in their order
//!             MANIFEST           G, the layout, frontiers; each batch's frontiers, bytes, checksum
//! save        write and sync the new batches -> write and sync the manifest -> rename it over the last
//!             manifest -> remove all files that it does not name
//! ```
//! Invariant: the directory holds the complete state of one save; an interrupted save leaves the
//! previous state. Opening returns the saved state, or an error.
//!
//! A batch is written by one save. Later saves to the directory name its file again, until a merge
//! has replaced the batch.
//!
//! Known limit: a directory belongs to one spine at a time.

mod manifest;

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use arrow_ipc::reader::StreamReader;
use arrow_ipc::writer::StreamWriter;
use arrow_schema::ArrowError;

use super::{Entry, Spine};
use crate::batch::{Batch, Merging};
use manifest::{Manifest, Saved};
use windrow_pool::{Pool, lock};
use windrow_rows::{Error, Layout, Result, Time};

const MANIFEST: &str = "MANIFEST";
/// The manifest while it is being written.
const UNFINISHED: &str = ".MANIFEST.tmp";
const PREFIX: &str = "batch-";

/// Limits of a record batch, which is written and read at once: rows, and approximate bytes.
const MOST_ROWS: u64 = 8192;
const MOST_BYTES: u64 = 1 << 20;

/// The batches of the last save, or of the opened one, by id.
#[derive(Debug, Default)]
pub(super) struct LastSave {
    directory: PathBuf,
    batches: HashMap<u64, Saved>,
}

impl<T: Time> Spine<T> {
    /// Writes the changes to `directory`, created if missing, and replaces the previous save.
    /// Batches of the spine's last save to the directory are not written again. Does not wait for
    /// running merges. On return, the state is on disk.
    ///
    /// # Errors
    /// [`Error::Io`] if a file cannot be written; errors of reading chunks; [`Error::DiffOverflow`]
    /// and [`Error::Value`] for sums that a diff column cannot hold; [`Error::InvalidOrder`] if
    /// diffs are [folded](crate::Order::fold). After an error, the previous save is intact.
    pub fn save(&self, directory: impl AsRef<Path>) -> Result<()> {
        let layout = self.layout.to_bytes();
        Layout::from_bytes(&layout)?;
        let directory = directory.as_ref();
        fs::create_dir_all(directory).map_err(|source| io_error(directory, source))?;
        // A save that failed may have left files of a generation that no manifest names, and an
        // unreadable manifest is replaced.
        let found = Manifest::read(&directory.join(MANIFEST)).ok();
        let last = found.as_ref().map_or(0, |last| last.generation);
        let newest = files(directory)?.into_iter().map(|((generation, _), _)| generation).max();
        let last = last.max(newest.unwrap_or(0));
        let generation = last.wrapping_add(1);
        let mut last_save = lock(&self.last_save);
        let named = |saved: &Saved| found.iter().flat_map(|last| &last.batches).any(|b| b == saved);
        if last_save.directory != directory || !last_save.batches.values().all(named) {
            *last_save = LastSave::default();
        }
        let entries = self.entries.iter();
        let all = entries.flat_map(|entry| entry.ids.iter().zip(&entry.batches));
        let mut batches = Vec::new();
        for (number, (id, batch)) in all.enumerate() {
            batches.push(match last_save.batches.get(id) {
                Some(saved) => saved.clone(),
                None => write_batch(directory, (generation, number), batch)?,
            });
        }
        // An empty batch may have extended the one before it.
        let mut upper = manifest::codes(&self.upper);
        for saved in batches.iter_mut().rev() {
            saved.upper = std::mem::replace(&mut upper, saved.lower.clone());
        }
        let manifest = Manifest {
            generation,
            layout,
            since: manifest::codes(&self.since),
            upper: manifest::codes(&self.upper),
            batches,
        };
        let unfinished = directory.join(UNFINISHED);
        let written = File::create(&unfinished).and_then(|mut file| {
            file.write_all(manifest.to_text().as_bytes())?;
            file.sync_all()
        });
        written.map_err(|source| io_error(&unfinished, source))?;
        let target = directory.join(MANIFEST);
        let renamed =
            fs::rename(&unfinished, &target).and_then(|()| File::open(directory)?.sync_all());
        renamed.map_err(|source| io_error(&target, source))?;
        *last_save = self.saved_as(directory, &manifest);
        remove_others(directory, &manifest)
    }

    /// Returns the batches of `manifest`, which are those of the spine.
    fn saved_as(&self, directory: &Path, manifest: &Manifest) -> LastSave {
        let ids = self.entries.iter().flat_map(|entry| &entry.ids).copied();
        let batches = ids.zip(manifest.batches.iter().cloned()).collect();
        LastSave { directory: directory.into(), batches }
    }

    /// Returns true if the last save has all of `ids`.
    pub(super) fn are_saved(&self, ids: &[u64]) -> bool {
        let last_save = lock(&self.last_save);
        ids.iter().all(|id| last_save.batches.contains_key(id))
    }

    /// Opens the spine saved in `directory`, with its chunks in the memory of `pool`. Reads all of
    /// the files.
    ///
    /// # Errors
    /// [`Error::Io`] if a file cannot be read; [`Error::Corrupt`] if its contents changed; errors
    /// of [`Spine::new`] and of merging.
    pub fn open(directory: impl AsRef<Path>, pool: &Pool) -> Result<Self> {
        let directory = directory.as_ref();
        let path = directory.join(MANIFEST);
        let manifest = Manifest::read(&path)?;
        let mut spine = Self::new(&Layout::from_bytes(&manifest.layout)?, pool)?;
        let frontier = |codes: &_| manifest::frontier::<T>(&path, codes);
        for saved in &manifest.batches {
            let batch = read_batch(&batch_path(directory, saved.file), saved, &spine)?;
            let batch = batch.between(&frontier(&saved.lower)?, &frontier(&saved.upper)?);
            if batch.lower() != &spine.upper {
                return Err(corrupt(&path, "batches that do not follow each other"));
            }
            spine.upper = batch.upper().clone();
            spine.entries.push(Entry::of(batch.readable_from(&frontier(&saved.since)?)));
        }
        if spine.upper != frontier(&manifest.upper)? {
            return Err(corrupt(&path, "batches that do not reach the end"));
        }
        spine.since = frontier(&manifest.since)?;
        spine.last_save = Mutex::new(spine.saved_as(directory, &manifest));
        Ok(spine)
    }
}

/// Writes a batch to file `place` of `directory` and syncs the file.
fn write_batch<T: Time>(directory: &Path, place: (u64, usize), batch: &Batch<T>) -> Result<Saved> {
    let path = &batch_path(directory, place);
    let failed = |source| io_error(path, source);
    let file = BufWriter::new(File::create(path).map_err(failed)?);
    let checked = Checked { inner: file, bytes: 0, crc: 0 };
    let refused = |error| arrow_error(path, error);
    let mut writer = StreamWriter::try_new(checked, batch.layout().schema()).map_err(refused)?;
    let (rows, bytes) = (batch.rows().unwrap_or(0), batch.bytes().unwrap_or(0));
    let at_once = (MOST_BYTES * rows / bytes.max(1)).clamp(1, MOST_ROWS);
    // Every batch of a spine is one run.
    if let Some(batch) = batch.try_clone() {
        for record_batch in batch.record_batches(at_once as usize)? {
            writer.write(&record_batch?).map_err(refused)?;
        }
    }
    let Checked { inner, bytes: written, crc } = writer.into_inner().map_err(refused)?;
    let file = inner.into_inner().map_err(|error| failed(error.into_error()))?;
    file.sync_all().map_err(failed)?;
    Ok(Saved {
        lower: manifest::codes(batch.lower()),
        upper: manifest::codes(batch.upper()),
        since: manifest::codes(batch.since()),
        rows,
        bytes: written,
        crc,
        file: place,
    })
}

/// Reads the batch at `path` and verifies its contents.
fn read_batch<T: Time>(path: &Path, saved: &Saved, spine: &Spine<T>) -> Result<Batch<T>> {
    let failed = |source| io_error(path, source);
    let mut file = File::open(path).map_err(failed)?;
    let mut checked = Checked { inner: io::sink(), bytes: 0, crc: 0 };
    // Verified first: the stream reader trusts its input.
    io::copy(&mut file, &mut checked).map_err(failed)?;
    if (checked.bytes, checked.crc) != (saved.bytes, saved.crc) {
        let (bytes, crc) = (checked.bytes, checked.crc);
        let expected = format!("{} bytes with checksum {:08x}", saved.bytes, saved.crc);
        return Err(corrupt(path, &format!("expected {expected}, got {bytes} with {crc:08x}")));
    }
    let file = BufReader::new(File::open(path).map_err(failed)?);
    let reader = StreamReader::try_new(file, None).map_err(|error| arrow_error(path, error))?;
    let (layout, pool) = (&spine.layout, &spine.pool);
    let sorted = Batch::sorted(layout, pool, reader.map(|read| read.map_err(Error::from)));
    let batch = Merging::new(layout, pool, [sorted]).filtered().finish()?;
    match batch.rows() == Some(saved.rows) {
        true => Ok(batch),
        false => Err(corrupt(path, &format!("expected {} rows", saved.rows))),
    }
}

fn batch_path(directory: &Path, (generation, number): (u64, usize)) -> PathBuf {
    directory.join(format!("{PREFIX}{generation}-{number}.arrows"))
}

/// Returns the generation and the number in the name of a batch file, as `5-0`.
fn place_of(place: &str) -> Option<(u64, usize)> {
    let (generation, number) = place.split_once('-')?;
    Some((generation.parse().ok()?, number.parse().ok()?))
}

/// Returns the places and paths of all batch files.
fn files(directory: &Path) -> Result<Vec<((u64, usize), PathBuf)>> {
    let failed = |source| io_error(directory, source);
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let name = entry.file_name();
        let place = |name: &str| place_of(name.strip_prefix(PREFIX)?.strip_suffix(".arrows")?);
        if let Some(place) = name.to_str().and_then(place) {
            found.push((place, entry.path()));
        }
    }
    Ok(found)
}

/// Removes batch files that `manifest` does not name.
fn remove_others(directory: &Path, manifest: &Manifest) -> Result<()> {
    for (place, path) in files(directory)? {
        if !manifest.batches.iter().any(|saved| saved.file == place) {
            fs::remove_file(&path).map_err(|source| io_error(&path, source))?;
        }
    }
    Ok(())
}

/// A writer that counts bytes and computes their CRC-32C.
struct Checked<W> {
    inner: W,
    bytes: u64,
    crc: u32,
}

impl<W: Write> Write for Checked<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.inner.write(bytes)?;
        self.crc = crc32c::crc32c_append(self.crc, &bytes[..written]);
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

fn io_error(path: &Path, source: io::Error) -> Error {
    Error::Io { context: path.display().to_string(), source }
}

fn arrow_error(path: &Path, error: ArrowError) -> Error {
    match error {
        ArrowError::IoError(_, source) => io_error(path, source),
        other => Error::from(other),
    }
}

fn corrupt(path: &Path, message: &str) -> Error {
    Error::Corrupt { place: path.display().to_string(), message: message.into() }
}
