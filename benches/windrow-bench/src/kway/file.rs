//! Merges of K sorted run files into one file, with a warm page cache.
//!
//! ```text
//! ours     chunks read when reached, within 32 MiB     -> merged -> chunks written, checksummed
//! rivals   256 KiB of each run at a time, plain records -> merged -> written 256 KiB at a time
//! ```
//!
//! Windrow reads and writes on threads of its own, if there are cores for such threads. The rivals
//! do not verify checksums.

use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};

use windrow::{Batch, Budget, Codec, Layout, Pool, PoolOptions};

use super::rivals::{Merged, Record, Runs, Sink, heap, loser_tree};
use super::{Work, chain, runs};
use crate::Result;
use crate::cells::{Cells, seconds};
use crate::merge::least;

/// Memory limit of Windrow. Part of the output may still be unwritten when the clock stops.
const LIMIT: usize = 32 << 20;
/// Bytes per read and write of the rivals.
const BUFFER: usize = 256 << 10;
/// Bytes of a record.
const BYTES: usize = size_of::<Record>();

/// Measures merges of runs in files.
pub(super) fn cells(
    cells: &mut Cells,
    layout: &Layout,
    case: &str,
    (count, records, rounds): (usize, usize, usize),
) -> Result<()> {
    let place = tempfile::tempdir()?;
    let mut times: [Vec<f64>; 5] = Default::default();
    for round in 0..rounds {
        let runs = runs(Work::ManyKeys, count, records, (round as u64 + 11) << 32 | count as u64);
        let files = written(place.path(), &runs)?;
        let (raw, expected) = ours(layout, &runs, Codec::None)?;
        let (lz4, _) = ours(layout, &runs, Codec::Lz4)?;
        let out = place.path().join("out");
        let (by_heap, first) = seconds(|| rival(&files, &out, heap::<Record>))?;
        let (by_tree, second) = seconds(|| rival(&files, &out, loser_tree::<Record>))?;
        if (first, second) != (expected, expected) {
            let found = format!("the heap {first}, the tree {second}");
            return Err(format!("{case}: {expected} records, {found}").into());
        }
        let (copy, ()) = seconds(|| {
            files.iter().try_for_each(|file| fs::copy(file, &out).map(drop)).map_err(Into::into)
        })?;
        let total = runs.iter().map(Vec::len).sum::<usize>() as f64;
        for (times, elapsed) in times.iter_mut().zip([raw, lz4, by_heap, by_tree, copy]) {
            times.push(elapsed * 1e9 / total);
        }
    }
    let [raw, lz4, by_heap, by_tree, copy] = times.map(least);
    cells.push(case, raw, "binary heap", by_heap);
    cells.push(case, raw, "loser tree", by_tree);
    cells.push(case, raw, "copy of the files", copy);
    cells.push(case, raw, "ours, lz4", lz4);
    Ok(())
}

/// Merges spilled chains into a spilled one; returns the seconds and the number of records.
fn ours(layout: &Layout, runs: &[Vec<Record>], codec: Codec) -> Result<(f64, usize)> {
    let pool = Pool::new(Budget::bytes(LIMIT), PoolOptions::new().codec(codec))?;
    let spilled = |run: &Vec<Record>| Ok(chain(layout, &pool, Work::ManyKeys, run)?.spill()?);
    let chains = runs.iter().map(spilled).collect::<Result<Vec<_>>>()?;
    let (elapsed, merged) = seconds(|| Ok(Batch::union(layout, &pool, chains).spill()?))?;
    Ok((elapsed, merged.rows().unwrap_or(0) as usize))
}

/// Writes a file for each run.
fn written(place: &Path, runs: &[Vec<Record>]) -> Result<Vec<PathBuf>> {
    let write = |(index, run): (usize, &Vec<Record>)| {
        let file = place.join(index.to_string());
        fs::write(&file, run.iter().flat_map(bytes).collect::<Vec<u8>>())?;
        Ok(file)
    };
    runs.iter().enumerate().map(write).collect()
}

fn rival(files: &[PathBuf], out: &Path, merge: impl Fn(&mut Files, &mut Out)) -> Result<usize> {
    let mut files = Files::open(files)?;
    let writer = BufWriter::with_capacity(BUFFER, File::create(out)?);
    let mut out = Out { writer, last: None, count: 0, failed: None };
    merge(&mut files, &mut out);
    out.write_last();
    match files.failed.or(out.failed) {
        Some(error) => Err(error.into()),
        None => out.writer.flush().map(|()| out.count).map_err(Into::into),
    }
}

/// Runs in files.
struct Files {
    readers: Vec<BufReader<File>>,
    heads: Vec<Option<Record>>,
    failed: Option<io::Error>,
}

impl Files {
    fn open(files: &[PathBuf]) -> Result<Self> {
        let open = |file| Ok(BufReader::with_capacity(BUFFER, File::open(file)?));
        let readers = files.iter().map(open).collect::<Result<Vec<_>>>()?;
        let mut files = Self { heads: vec![None; readers.len()], readers, failed: None };
        (0..files.readers.len()).for_each(|run| files.advance(run));
        Ok(files)
    }
}

impl Runs<Record> for Files {
    fn count(&self) -> usize {
        self.readers.len()
    }

    #[inline(always)]
    fn head(&self, run: usize) -> Option<&Record> {
        self.heads.get(run)?.as_ref()
    }

    #[inline(always)]
    fn advance(&mut self, run: usize) {
        let mut bytes = [0; BYTES];
        self.heads[run] = match self.readers[run].read_exact(&mut bytes) {
            Ok(()) => Some(record(&bytes)),
            Err(error) => {
                let is_end = error.kind() == ErrorKind::UnexpectedEof;
                self.failed = self.failed.take().or((!is_end).then_some(error));
                None
            }
        };
    }
}

/// An output file of records.
struct Out {
    writer: BufWriter<File>,
    last: Option<Record>,
    count: usize,
    failed: Option<io::Error>,
}

impl Out {
    #[inline(always)]
    fn write_last(&mut self) {
        if let Some(last) = self.last.take().filter(|last| last.diff() != 0) {
            self.count += 1;
            let written = self.writer.write_all(&bytes(&last));
            self.failed = self.failed.take().or(written.err());
        }
    }
}

impl Sink<Record> for Out {
    #[inline(always)]
    fn put(&mut self, record: &Record) {
        match &mut self.last {
            Some(last) if last.same(record) => last.add(record.diff()),
            _ => {
                self.write_last();
                self.last = Some(*record);
            }
        }
    }
}

#[inline(always)]
fn bytes(record: &Record) -> [u8; BYTES] {
    let mut out = [0; BYTES];
    let words = out.as_chunks_mut::<8>().0;
    words.iter_mut().zip(&record.0).for_each(|(bytes, word)| *bytes = word.to_le_bytes());
    out
}

#[inline(always)]
fn record(bytes: &[u8; BYTES]) -> Record {
    let words = bytes.as_chunks::<8>().0;
    Record(std::array::from_fn(|at| u64::from_le_bytes(words[at])))
}
