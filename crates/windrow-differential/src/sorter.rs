//! Windrow's batcher for differential's batches: sorts updates within the budget until their time
//! is complete, then builds one of differential's own batches in memory.
//!
//! ```text
//! updates --> RowBatcher --extract: chunks, decoded--> stock builder --> stock batch, trace
//! ```

use differential_dataflow::batcher::{Batcher, Extract};
use differential_dataflow::logging::Logger;
use differential_dataflow::trace::Builder;
use timely::progress::frontier::AntichainRef;

use crate::of::Of;
use crate::{Context, DiffCode, Row, RowBatcher, TimeCode};

/// Updates per call of the builder.
const PIECE: usize = 1024;

/// A [`RowBatcher`] that emits batches of one of differential's builders. For programs whose traces
/// fit in memory, but whose unarranged updates do not.
///
/// ```
/// use differential_dataflow::input::Input;
/// use differential_dataflow::operators::arrange::arrangement::arrange_core;
/// use differential_dataflow::trace::implementations::{ValBuilder, ValSpine};
/// use timely::dataflow::channels::pact::Pipeline;
/// use windrow::Pool;
/// use windrow_differential::{Context, RowSorter};
///
/// type Sorter = RowSorter<u64, String, u64, isize, ValBuilder<u64, String, u64, isize>>;
///
/// let context = Context::new(Pool::unlimited());
/// timely::execute_directly(move |worker| {
///     let mut input = worker.dataflow::<u64, _, _>(|scope| {
///         let (input, names) = scope.new_collection::<(u64, String), isize>();
///         let sorter = move |_, _| Sorter::new(&context);
///         let names = arrange_core::<_, _, _, ValSpine<_, _, _, _>>(names.inner, Pipeline, "Names", sorter);
///         names.as_vecs().inspect(|(name, _, _)| assert_eq!(name, &(7, "ada".to_owned())));
///         input
///     });
///     input.insert((7, "ada".to_owned()));
/// });
/// ```
pub struct RowSorter<K, V, T: TimeCode, R, B> {
    batcher: RowBatcher<K, V, T, R>,
    of: Of<B>,
}

impl<K: Row, V: Row, T: TimeCode, R: DiffCode, B> RowSorter<K, V, T, R, B> {
    /// Creates a batcher without updates.
    pub fn new(context: &Context) -> Self {
        Self::logging(context, None, 0)
    }

    /// Creates a batcher with a logger, as [`RowBatcher::logging`].
    pub fn logging(context: &Context, logger: Option<Logger>, operator: usize) -> Self {
        Self { batcher: RowBatcher::logging(context, logger, operator), of: Of::default() }
    }
}

impl<K: Row, V: Row, T: TimeCode, R: DiffCode, B> Extract for RowSorter<K, V, T, R, B>
where
    B: Builder<Input = Vec<((K, V), T, R)>, Time = T>,
{
    type Time = T;
    type Output = B::Output;

    fn extract<'a>(
        &'a mut self,
        upper: AntichainRef<'_, T>,
    ) -> (Option<B::Output>, AntichainRef<'a, T>) {
        let (batch, frontier) = self.batcher.extract(upper);
        let Some(batch) = batch else { return (None, frontier) };
        let (mut builder, mut piece) = (B::default(), Vec::with_capacity(PIECE));
        batch.for_each(|update| {
            piece.push(update);
            if piece.len() == PIECE {
                builder.push(&mut piece);
                piece.clear();
            }
        });
        if !piece.is_empty() {
            builder.push(&mut piece);
        }
        (builder.done(), frontier)
    }
}

impl<C, K, V, T: TimeCode, R, B> Batcher<C> for RowSorter<K, V, T, R, B>
where
    RowBatcher<K, V, T, R>: Batcher<C>,
    Self: Extract,
{
    fn insert(&mut self, container: &mut C) {
        self.batcher.insert(container);
    }
}
