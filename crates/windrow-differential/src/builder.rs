//! The builder: collects the output of a reduction, in any order, into a batch.

use differential_dataflow::trace::Builder;
use timely::container::SizableContainer;
use windrow::Layout;

use crate::context::done;
use crate::format::{Format, put_tail};
use crate::of::Of;
use crate::{Context, DiffCode, Row, RowBatch, RowCode, TimeCode, Updates};

/// Updates of some keys, and the context of their batch.
pub struct RowBuffer<K, V, T, R> {
    /// The context of the batch, and the layout of its rows.
    home: Option<(Context, Layout)>,
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
    /// From the first update on.
    batcher: Option<(Context, windrow::Batcher<T::Code>)>,
    of: Of<(K, V, R)>,
}

impl<K, V, T: TimeCode, R> Default for RowBuilder<K, V, T, R> {
    fn default() -> Self {
        Self { batcher: None, of: Of::default() }
    }
}

impl<K: RowCode, V: RowCode, T: TimeCode, R: DiffCode> Builder for RowBuilder<K, V, T, R> {
    type Input = RowBuffer<K, V, T, R>;
    type Time = T;
    type Output = RowBatch<K, V, T, R>;

    fn push(&mut self, RowBuffer { home, rows }: &mut Self::Input) {
        if let Some((context, layout)) = home
            && !rows.is_empty()
        {
            let begin = || (context.clone(), windrow::Batcher::timed(layout, context.pool()));
            let (_, batcher) = self.batcher.get_or_insert_with(begin);
            done(batcher.push_rows(rows.bytes(), &rows.ends));
            rows.clear();
        }
    }

    fn done(self) -> Option<Self::Output> {
        let (context, batcher) = self.batcher?;
        let batch = done(done(batcher.finish()).settle());
        RowBatch::new(&context, done(batch.shortened()))
    }
}
