//! Batches: the sorted updates that operators of a dataflow pass on.
//!
//! ```text
//! RowBatch  --> shared: the engine's batch, with chunks in memory or stored
//!           \-> pins: the chunks whose keys and values this reader lends
//! ```
//! A clone shares the chunks and starts without pins. A reader drops its clones when it is done,
//! and the chunks that the reader loaded may leave memory again.
//!
//! Invariant: a batch has at least one row, and a borrowed row lies in a pinned chunk.

mod cursor;
mod merger;
mod scoped;

use std::cell::OnceCell;
use std::rc::Rc;

use differential_dataflow::trace::Navigable;
use differential_dataflow::trace::implementations::spine_fueled::SpineBatch;
use windrow::{Batch, ChunkReader, ChunkRows, key_len};

pub use cursor::RowCursor;
pub use merger::RowMerger;
pub use scoped::ScopedBatch;

use crate::context::done;
use crate::format::tail_of;
use crate::of::Of;
use crate::row::Form;
use crate::{Context, DiffCode, Row, RowCode, TimeCode};

/// Sorted updates `((K, V), T, R)`, in memory or on disk.
pub struct RowBatch<K, V, T: TimeCode, R> {
    shared: Rc<Shared<T>>,
    pins: OnceCell<Box<[OnceCell<ChunkRows>]>>,
    of: Of<(K, V, R)>,
}

struct Shared<T: TimeCode> {
    context: Context,
    batch: Batch<T::Code>,
    rows: usize,
    chunks: ChunkReader,
}

impl<K, V, T: TimeCode, R> Clone for RowBatch<K, V, T, R> {
    fn clone(&self) -> Self {
        Self { shared: Rc::clone(&self.shared), pins: OnceCell::new(), of: Of::default() }
    }
}

impl<K, V, T: TimeCode, R> RowBatch<K, V, T, R> {
    /// Wraps a compacted `batch`; returns `None` if the batch is empty.
    pub(crate) fn new(context: &Context, batch: Batch<T::Code>) -> Option<Self> {
        let chunks = done(ChunkReader::new(&batch));
        let rows = batch.rows().unwrap_or(0) as usize;
        let shared = Shared { context: context.clone(), batch, rows, chunks };
        (shared.chunks.chunks() > 0).then(|| Self {
            shared: Rc::new(shared),
            pins: OnceCell::new(),
            of: Of::default(),
        })
    }

    /// Returns the engine's batch.
    pub(crate) fn batch(&self) -> &Batch<T::Code> {
        &self.shared.batch
    }

    /// Returns the context of the batch.
    pub(crate) fn context(&self) -> &Context {
        &self.shared.context
    }

    /// Returns the rows of a chunk, pinned in memory by this handle.
    #[inline]
    fn chunk(&self, chunk: usize) -> &ChunkRows {
        let chunks = &self.shared.chunks;
        let pins =
            self.pins.get_or_init(|| (0..chunks.chunks()).map(|_| OnceCell::new()).collect());
        pins[chunk].get_or_init(|| self.read(chunk))
    }

    /// Returns the rows of a chunk, in memory until the result is dropped.
    pub(crate) fn read(&self, chunk: usize) -> ChunkRows {
        done(self.shared.chunks.read(chunk))
    }

    /// Returns the number of chunks.
    #[inline]
    pub(crate) fn chunks(&self) -> usize {
        self.shared.chunks.chunks()
    }

    /// Returns the last row of a chunk, with or without time and diff. Loads the chunk only if the
    /// row is long.
    fn last_row(&self, chunk: usize) -> &[u8] {
        self.shared.chunks.last_row(chunk).unwrap_or_else(|| {
            let rows = self.chunk(chunk);
            rows.body(rows.len() - 1)
        })
    }
}

impl<K: RowCode, V, T: TimeCode, R> RowBatch<K, V, T, R> {
    /// Returns the key of a row.
    #[inline]
    pub(crate) fn key_of<'a>(&self, row: &'a [u8]) -> &'a [u8] {
        &row[..K::WIDTH.unwrap_or_else(|| key_len(self.shared.batch.layout(), row))]
    }
}

impl<K: Row, V: Row, T: TimeCode, R: DiffCode> RowBatch<K, V, T, R> {
    /// Calls `each` with every update, by key, value and time. Loads one chunk at a time.
    pub fn for_each(&self, mut each: impl FnMut(((K, V), T, R))) {
        for chunk in 0..self.chunks() {
            let rows = self.read(chunk);
            for row in 0..rows.len() {
                let (mut body, (time, diff)) = (rows.body(row), tail_of::<T, R>(rows.end(row)));
                let key = K::decode(Form::Column, &mut body);
                each(((key, V::decode(Form::Column, &mut body)), time, diff));
            }
        }
    }
}

impl<K: RowCode, V: RowCode, T: TimeCode, R: DiffCode> SpineBatch for RowBatch<K, V, T, R> {
    type Time = T;
    type Merger = RowMerger<K, V, T, R>;

    fn len(&self) -> usize {
        self.shared.rows
    }
}

impl<K: Row, V: Row, T: TimeCode, R: DiffCode> Navigable for RowBatch<K, V, T, R> {
    type Cursor = RowCursor<K, V, T, R>;

    fn cursor(&self) -> Self::Cursor {
        RowCursor::new()
    }
}
