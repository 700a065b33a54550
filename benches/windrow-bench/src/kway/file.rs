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
use std::io::{BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use windrow::{Batch, Budget, Codec, Layout, Pool, PoolOptions};

use super::Options;
use super::data::{Record, Words, Work, chain, runs};
use super::rivals::{Runs, heap, loser_tree};
use crate::Result;
use crate::cells::{Cells, least, seconds};

/// Memory limit of Windrow. Part of the output may still be unwritten when the clock stops.
const LIMIT: usize = 32 << 20;
/// Bytes per read and write of the rivals.
const BUFFER: usize = 256 << 10;
/// Bytes of a record.
const BYTES: usize = size_of::<Record<Words>>();

/// Measures merges of runs in files.
pub(super) fn cells(
    cells: &mut Cells,
    layout: &Layout,
    case: &str,
    count: usize,
    options: &Options,
) -> Result<()> {
    let place = tempfile::tempdir()?;
    let [raw, lz4, by_heap, by_tree, copy] = least(options.rounds, |round| {
        let seed = (round as u64 + 11) << 32 | count as u64;
        let runs = runs(Work::ManyKeys, count, options.records, 32, seed);
        let files = written(place.path(), &runs)?;
        let (raw, expected) = ours(layout, &runs, Codec::None)?;
        let (lz4, _) = ours(layout, &runs, Codec::Lz4)?;
        let out = place.path().join("out");
        let (by_heap, first) = seconds(|| rival(&files, &out, true))?;
        let (by_tree, second) = seconds(|| rival(&files, &out, false))?;
        if (first, second) != (expected, expected) {
            let found = format!("the heap {first}, the tree {second}");
            return Err(format!("{case}: {expected} records, {found}").into());
        }
        let (copy, ()) = seconds(|| {
            files.iter().try_for_each(|file| fs::copy(file, &out).map(drop)).map_err(Into::into)
        })?;
        let total = runs.iter().map(Vec::len).sum::<usize>() as f64;
        Ok([raw, lz4, by_heap, by_tree, copy].map(|elapsed| elapsed * 1e9 / total))
    })?;
    let rivals = [("binary heap", by_heap), ("loser tree", by_tree), ("copy of the files", copy)];
    cells.push(case, raw, rivals.into_iter().chain([("ours, lz4", lz4)]));
    Ok(())
}

/// Merges spilled chains into a spilled one; returns the seconds and the number of records.
fn ours(layout: &Layout, runs: &[Vec<Record<Words>>], codec: Codec) -> Result<(f64, usize)> {
    let pool = Pool::new(Budget::bytes(LIMIT), PoolOptions::new().codec(codec))?;
    let spilled = |run: &Vec<_>| Ok(chain(layout, &pool, Work::ManyKeys, run)?.spill()?);
    let chains = runs.iter().map(spilled).collect::<Result<Vec<_>>>()?;
    let (elapsed, merged) = seconds(|| Ok(Batch::union(layout, &pool, chains).spill()?))?;
    Ok((elapsed, merged.rows().unwrap_or(0) as usize))
}

/// Writes a file for each run.
fn written(place: &Path, runs: &[Vec<Record<Words>>]) -> Result<Vec<PathBuf>> {
    let write = |(index, run): (usize, &Vec<_>)| {
        let file = place.join(index.to_string());
        fs::write(&file, run.iter().flat_map(bytes).collect::<Vec<u8>>())?;
        Ok(file)
    };
    runs.iter().enumerate().map(write).collect()
}

/// Merges files, and returns the number of records in the output. A failed read ends a run, and a
/// failed write is not counted, so that an error shows as a wrong number.
fn rival(files: &[PathBuf], out: &Path, by_heap: bool) -> Result<usize> {
    let open = |file| Ok(BufReader::with_capacity(BUFFER, File::open(file)?));
    let readers = files.iter().map(open).collect::<Result<Vec<_>>>()?;
    let runs = Runs::new(readers.into_iter().map(|mut reader| {
        std::iter::from_fn(move || {
            let mut bytes = [0; BYTES];
            reader.read_exact(&mut bytes).ok()?;
            Some(record(&bytes))
        })
    }));
    let mut writer = BufWriter::with_capacity(BUFFER, File::create(out)?);
    let (mut last, mut count) = (None::<Record<Words>>, 0);
    let mut write = |record: Record<Words>| {
        count += usize::from(record.1 != 0 && writer.write_all(&bytes(&record)).is_ok());
    };
    let put = |record: &Record<Words>| match &mut last {
        Some(last) if last.0 == record.0 => last.1 += record.1,
        _ => last.replace(*record).into_iter().for_each(&mut write),
    };
    if by_heap {
        heap(runs, put)
    } else {
        loser_tree(runs, put)
    };
    last.into_iter().for_each(write);
    writer.flush()?;
    Ok(count)
}

#[inline(always)]
fn bytes(record: &Record<Words>) -> [u8; BYTES] {
    let mut out = [0; BYTES];
    let (words, diff) = (record.0.iter().copied(), [record.1 as u64]);
    for (bytes, word) in out.as_chunks_mut::<8>().0.iter_mut().zip(words.chain(diff)) {
        *bytes = word.to_le_bytes();
    }
    out
}

#[inline(always)]
fn record(bytes: &[u8; BYTES]) -> Record<Words> {
    let word = |at: usize| u64::from_le_bytes(bytes.as_chunks::<8>().0[at]);
    Record(std::array::from_fn(word), word(11) as i64)
}
