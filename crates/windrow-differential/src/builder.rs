//! The builder: collects the output of a reduction, in any order, into a batch.

use differential_dataflow::trace::Builder;
use timely::container::SizableContainer;
use windrow::Layout;

use crate::context::done;
use crate::format::{Format, put_tail};
use crate::{Context, DiffCode, Row, RowBatch, RowCode, TimeCode, Updates};

/// The context of a batch, and the layout of its rows.
type Home = (Context, Layout);

/// Updates of some keys, and the context of their batch.
pub struct RowBuffer<K, V, T, R> {
    home: Option<Home>,
    rows: Updates<K, V, T, R>,
}

impl<K, V, T, R> Default for RowBuffer<K, V, T, R> {
    fn default() -> Self {
        Self { home: None, rows: Updates::default() }
    }
}

impl<K: Row, V: Row, T: TimeCode, R: DiffCode> RowBuffer<K, V, T, R> {
    /// Removes all updates and sets the context.
    pub fn restart(&mut self, context: &Context) {
        self.rows.clear();
        self.home.get_or_insert_with(|| (context.clone(), Format::<K, V, T, R>::layout()));
    }
}

impl<K: RowCode, V: RowCode, T: TimeCode, R: DiffCode> RowBuffer<K, V, T, R> {
    /// Creates an empty buffer of rows of `layout`.
    pub(crate) fn of_layout(context: &Context, layout: &Layout) -> Self {
        Self { home: Some((context.clone(), layout.clone())), rows: Updates::default() }
    }

    /// Returns true if the buffer is large enough to be pushed into the engine.
    pub(crate) fn is_full(&self) -> bool {
        self.rows.at_capacity()
    }

    /// Adds an update; `key` is already encoded.
    pub fn push(&mut self, key: &[u8], value: &V::Owned, time: &T, diff: &R) {
        self.rows.push_with(|out| {
            out.extend_from_slice(key);
            V::put(value, out);
            put_tail(time, diff, out);
        });
    }
}

/// Builds one batch of all pushed updates.
pub struct RowBuilder<K, V, T: TimeCode, R> {
    buffer: RowBuffer<K, V, T, R>,
    batcher: Option<windrow::Batcher<T::Code>>,
}

impl<K, V, T: TimeCode, R> Default for RowBuilder<K, V, T, R> {
    fn default() -> Self {
        Self { buffer: RowBuffer::default(), batcher: None }
    }
}

impl<K: RowCode, V: RowCode, T: TimeCode, R: DiffCode> RowBuilder<K, V, T, R> {
    /// Pushes the rows of the buffer into the engine.
    fn push_rows(&mut self, (context, layout): &Home) {
        let rows = &mut self.buffer.rows;
        if !rows.is_empty() {
            let batcher =
                self.batcher.get_or_insert_with(|| windrow::Batcher::timed(layout, context.pool()));
            done(batcher.push_rows(rows.bytes(), &rows.ends));
            rows.clear();
        }
    }
}

impl<K: RowCode, V: RowCode, T: TimeCode, R: DiffCode> Builder for RowBuilder<K, V, T, R> {
    type Input = RowBuffer<K, V, T, R>;
    type Time = T;
    type Output = RowBatch<K, V, T, R>;

    fn push(&mut self, chunk: &mut Self::Input) {
        let Some(home) = &chunk.home else { return };
        let home = self.buffer.home.get_or_insert_with(|| home.clone()).clone();
        if self.buffer.rows.is_empty() {
            std::mem::swap(&mut self.buffer.rows, &mut chunk.rows);
        } else {
            chunk.rows.iter().for_each(|row| self.buffer.rows.push_row(row));
        }
        chunk.rows.clear();
        if self.buffer.is_full() {
            self.push_rows(&home);
        }
    }

    fn done(mut self) -> Option<Self::Output> {
        let home = self.buffer.home.clone()?;
        self.push_rows(&home);
        let batch = done(done(self.batcher?.finish()).settle());
        RowBatch::new(&home.0, done(batch.shortened()))
    }
}
