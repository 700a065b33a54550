//! The rows in order, as yielded by the last merge or by a sift.
//!
//! ```text
//! slabs --------------------------------> Taken::Slab      decoded by whoever encodes it
//!    \--decode--> Sift --record batch---> Taken::Batch     one thread: a sift sees rows in order
//! columns of sorted inputs --------------> Taken::Picks     gathered by whoever encodes them
//! ```
//! Other threads may merge ahead of the consumer (`helper`).

use arrow_array::RecordBatch;
use windrow::{ColumnarMerge, Decoder, MergeHelper, Picks, Slab, Slabs};

use super::arrange::Arranged;
use super::decode::RowDecoder;
use super::plan::SIFTED_BYTES;
use super::tally::Keys;
use crate::error::Result;
use crate::verbs::{Arrangement, Sift};

/// The sorted rows. The first block is read in advance.
pub(super) struct Rows {
    merged: Merged,
    /// The helper that merges ahead of the consumer; `None` if no merge can run ahead.
    pub(super) helper: Option<MergeHelper>,
    sift: Option<Sifted>,
    /// The first block until `next` takes it.
    pub(super) first: Option<Taken>,
}

enum Merged {
    Slabs(Slabs),
    Columns(ColumnarMerge),
}

/// A block of rows.
pub(super) enum Taken {
    Slab(Slab),
    Picks(Picks),
    /// The written columns, the batch's size in bytes as rows, and the key columns if requested.
    Batch {
        batch: RecordBatch,
        bytes: usize,
        keys: Option<RecordBatch>,
    },
}

struct Sifted {
    sift: Box<dyn Sift>,
    decoder: RowDecoder,
    /// Decoder of requested key columns, for a sift that passes the first rows unchanged.
    keys: Option<Decoder>,
    ended: bool,
}

impl Taken {
    /// Returns the number of rows, and their bytes as rows.
    pub(super) fn size(&self) -> (usize, usize) {
        match self {
            Self::Slab(slab) => (slab.rows(), slab.bytes()),
            Self::Picks(picks) => (picks.rows(), picks.bytes()),
            Self::Batch { batch, bytes, .. } => (batch.num_rows(), *bytes),
        }
    }

    /// Returns the columns of the block.
    pub(super) fn decode(&self, decoder: &mut RowDecoder) -> Result<RecordBatch> {
        match self {
            Self::Slab(slab) => decoder.decode(slab),
            Self::Picks(picks) => decoder.gather(picks),
            Self::Batch { batch, .. } => Ok(batch.clone()),
        }
    }
}

impl Rows {
    /// Returns the rows of `arranged` and reads the first block, of at most `rows` or `bytes`. All
    /// `threads` that have a helper take part in the merge. `keys` are columns to decode in
    /// addition to the written ones; a sift must then pass the first rows unchanged.
    pub(super) fn open(
        arranged: Arranged,
        arrangement: &Arrangement,
        (rows, bytes): (usize, usize),
        keys: Option<&[usize]>,
        threads: usize,
    ) -> Result<Self> {
        let (merged, helper) = match arranged {
            Arranged::Rows(batch) => {
                let mut slabs = batch.slabs(arrangement.finish);
                let helper = if threads > 1 { slabs.helper()? } else { None };
                (Merged::Slabs(slabs), helper)
            }
            Arranged::Columns(merge) => (Merged::Columns(merge), None),
        };
        let sift = arrangement.sifting.as_ref().map(|sifting| -> Result<Sifted> {
            let decoder = RowDecoder::new(arrangement)?;
            let keys = keys.map(|keys| Decoder::new(&arrangement.layout, keys)).transpose()?;
            Ok(Sifted { sift: (sifting.start)(), decoder, keys, ended: false })
        });
        let mut all = Self { merged, helper, sift: sift.transpose()?, first: None };
        all.first = all.read(rows, bytes)?;
        Ok(all)
    }

    /// Takes the next block, of at most `rows` or `bytes`.
    pub(super) fn next(&mut self, rows: usize, bytes: usize) -> Result<Option<Taken>> {
        match self.first.take() {
            Some(first) => Ok(Some(first)),
            None => self.read(rows, bytes),
        }
    }

    /// Returns the numbers of deleted keys and of keys taken from a late snapshot.
    pub(super) fn keys(&self) -> Keys {
        let deleted = match &self.merged {
            Merged::Slabs(slabs) => slabs.deleted(),
            Merged::Columns(_) => 0,
        };
        let sift = self.sift.as_ref().map(|sifted| &sifted.sift);
        Keys {
            deleted: deleted + sift.map_or(0, |sift| sift.deleted()),
            renewed: sift.map_or(0, |sift| sift.renewed()),
        }
    }

    fn read(&mut self, rows: usize, bytes: usize) -> Result<Option<Taken>> {
        let slabs = match &mut self.merged {
            Merged::Columns(merge) => return Ok(merge.next(rows, bytes)?.map(Taken::Picks)),
            Merged::Slabs(slabs) => slabs,
        };
        let Some(Sifted { sift, decoder, keys, ended }) = &mut self.sift else {
            return Ok(slabs.next(rows, bytes)?.map(Taken::Slab));
        };
        while !*ended && !sift.is_done() {
            let Some(slab) = slabs.next(rows, bytes.min(SIFTED_BYTES))? else {
                *ended = true;
                let last = sift.finish()?.filter(|batch| batch.num_rows() > 0);
                let length = last.as_ref().map_or(0, RecordBatch::get_array_memory_size);
                let last = last.map(|batch| decoder.written(batch)).transpose()?;
                return Ok(last.map(|batch| Taken::Batch { batch, bytes: length, keys: None }));
            };
            let (taken, length) = (slab.rows(), slab.bytes());
            let batch = decoder.decode(&slab)?;
            let keys = keys.as_mut().map(|keys| keys.decode(&slab)).transpose()?;
            drop(slab);
            let batch = decoder.written(sift.push(&batch)?)?;
            if batch.num_rows() > 0 {
                let bytes = length * batch.num_rows() / taken.max(1);
                let keys = keys.map(|keys| keys.slice(0, batch.num_rows()));
                return Ok(Some(Taken::Batch { batch, bytes, keys }));
            }
        }
        Ok(None)
    }
}
