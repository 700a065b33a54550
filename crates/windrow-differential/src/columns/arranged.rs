//! Arrangements of record batches by some of their columns.

use std::rc::Rc;

use differential_dataflow::difference::{Abelian, Multiply, Semigroup};
use differential_dataflow::operators::arrange::Arranged;
use differential_dataflow::operators::join::join_with_tactic;
use differential_dataflow::operators::reduce::reduce_with_tactic;
use differential_dataflow::trace::TraceReader;
use differential_dataflow::trace::wrappers::enter::TraceEnter;
use timely::dataflow::Scope;
use timely::progress::frontier::AntichainRef;
use timely::progress::timestamp::Refines;
use windrow::arrow_schema::SchemaRef;
use windrow::{Error, Result};

use super::aggregate::{Aggregate, Aggregates};
use super::build::{ChangesBuilder, Plan};
use super::pick::{self, Pick};
use super::shape::Shape;
use super::{ColumnCollection, Columns};
use crate::context::done;
use crate::of::Of;
use crate::scan::scan;
use crate::{Context, DiffCode, Enc, RowJoin, RowReduce, RowTrace, ScopedBatch, TimeCode};

/// A collection of record batches, arranged by the columns of a key. Derived arrangements use the
/// same context.
pub struct ColumnArranged<'scope, T: TimeCode, R: DiffCode, Tr = RowTrace<Columns, Columns, T, R>>
where
    Tr: TraceReader<Time = T>,
{
    pub(super) arranged: Arranged<'scope, Tr>,
    pub(super) shape: Rc<Shape>,
    context: Context,
    of: Of<R>,
}

impl<T: TimeCode, R: DiffCode, Tr: TraceReader<Time = T> + Clone> Clone
    for ColumnArranged<'_, T, R, Tr>
{
    fn clone(&self) -> Self {
        Self::new(self.arranged.clone(), Rc::clone(&self.shape), &self.context)
    }
}

impl<'scope, T: TimeCode, R: DiffCode> ColumnArranged<'scope, T, R> {
    /// Returns a handle of the trace, for other dataflows. While the handle lives, the trace
    /// distinguishes times from the frontier of [`ColumnTrace::compact`] on.
    pub fn trace(&self) -> ColumnTrace<T, R> {
        ColumnTrace {
            trace: self.arranged.trace.clone(),
            shape: Rc::clone(&self.shape),
            context: self.context.clone(),
        }
    }
}

impl<'scope, T: TimeCode, R: DiffCode, Tr: TraceReader<Time = T>> ColumnArranged<'scope, T, R, Tr> {
    pub(super) fn new(arranged: Arranged<'scope, Tr>, shape: Rc<Shape>, context: &Context) -> Self {
        Self { arranged, shape, context: context.clone(), of: Of::default() }
    }
}

impl<'scope, T: TimeCode, R: DiffCode, Tr> ColumnArranged<'scope, T, R, Tr>
where
    Tr: TraceReader<Time = T> + 'static,
    Tr::Batch: ScopedBatch<Key = Columns, Value = Columns, Time = T, Diff = R>,
{
    /// Brings the arrangement into a nested scope, such as a loop, without copying.
    pub fn enter<'inner, TInner>(
        self,
        child: Scope<'inner, TInner>,
    ) -> ColumnArranged<'inner, TInner, R, TraceEnter<Tr, TInner>>
    where
        TInner: TimeCode + Refines<T>,
    {
        ColumnArranged::new(self.arranged.enter(child), self.shape, &self.context)
    }

    /// Returns the columns of the rows.
    pub fn schema(&self) -> &SchemaRef {
        &self.shape.schema
    }

    /// Joins: returns the columns of `projection` for each pair of rows of one key. Null keys match
    /// null keys. Neither side must fit in memory, only the rows of one key.
    ///
    /// # Errors
    /// [`Error::SchemaMismatch`](windrow::Error::SchemaMismatch) with both keys, if their types,
    /// nullability or directions differ (names may differ): [`ColumnCollection::nullable`] adjusts
    /// one side. Errors of names as of [`Pick`].
    pub fn join_rows<R2, Tr2>(
        self,
        other: ColumnArranged<'scope, T, R2, Tr2>,
        projection: impl IntoIterator<Item = impl Into<Pick>>,
    ) -> Result<ColumnCollection<'scope, T, <R as Multiply<R2>>::Output>>
    where
        R2: DiffCode,
        Tr2: TraceReader<Time = T> + 'static,
        Tr2::Batch: ScopedBatch<Key = Columns, Value = Columns, Time = T, Diff = R2>,
        R: Multiply<R2, Output: Semigroup>,
    {
        self.shape.check_joins(&other.shape)?;
        let (plan, schema) = pick::plan([&self.shape, &other.shape], projection)?;
        let logic = move |key: Enc<'_, Columns>,
                          value: Enc<'_, Columns>,
                          other: Enc<'_, Columns>,
                          time: T,
                          diff: &R,
                          other_diff: &R2,
                          builder: &mut ChangesBuilder<T, R::Output>| {
            let diff = diff.clone().multiply(other_diff);
            let rows = [value, other].map(|value| (key.bytes(), value.bytes()));
            builder.push(&plan, rows, time, diff);
        };
        let tactic = RowJoin::new(logic);
        let joined = join_with_tactic(self.arranged, other.arranged, "JoinColumns", tactic);
        Ok(ColumnCollection::of_schema(joined, schema))
    }

    /// Returns for each present key its columns and the `aggregates` of its rows, arranged by the
    /// same key. Without aggregates, returns the distinct keys. Neither input nor output must fit
    /// in memory, only the rows of one key. A change of one row reads all rows of its key.
    ///
    /// Rows with a negative multiplicity count negatively, and take part in the least and greatest
    /// value like all rows.
    ///
    /// # Errors
    /// [`Error::MissingColumn`](windrow::Error::MissingColumn);
    /// [`Error::UnsupportedColumn`](windrow::Error::UnsupportedColumn) for a sum of values other
    /// than numbers; [`Error::InvalidOrder`](windrow::Error::InvalidOrder) for an aggregate of a
    /// key column, for two results of one name, and for aggregates if diffs have a
    /// [fold](DiffCode::FOLD).
    pub fn reduce_columns(
        self,
        aggregates: impl IntoIterator<Item = Aggregate>,
    ) -> Result<ColumnArranged<'scope, T, R>>
    where
        R: DiffCode<Lanes = i64> + Abelian + From<i8>,
    {
        let aggregates: Vec<Aggregate> = aggregates.into_iter().collect();
        if R::FOLD.is_some() && !aggregates.is_empty() {
            let message = "rows are counted by diffs that are numbers, not by those that fold";
            return Err(Error::InvalidOrder(message.into()));
        }
        let mut aggregates = Aggregates::new(&self.shape, aggregates)?;
        let shape = Rc::new(Shape::new::<T, R>(&aggregates.schema, self.shape.key.clone())?);
        let logic = move |_key: Enc<'_, Columns>,
                          input: &[(Enc<'_, Columns>, R)],
                          output: &[(Box<[u8]>, R)],
                          changes: &mut Vec<(Box<[u8]>, R)>| {
            if !input.is_empty() {
                changes.push((done(aggregates.of_rows(input)), R::from(1)));
            }
            changes.extend(output.iter().cloned().map(|(value, mut diff)| {
                diff.negate();
                (value, diff)
            }));
        };
        type Reduce<T, R, L> = RowReduce<Columns, Columns, Columns, T, R, R, L>;
        let tactic = Reduce::<T, R, _>::of_layout(&shape.layout, &self.context, logic);
        let arranged = reduce_with_tactic(self.arranged, "ReduceColumns", tactic);
        Ok(ColumnArranged::new(arranged, shape, &self.context))
    }

    /// Returns the rows as a collection, each row once per time. The arrangement need not fit in
    /// memory: one chunk is read at a time.
    pub fn changes(self) -> ColumnCollection<'scope, T, R> {
        let plan = Plan::whole(&self.shape);
        let batches = self.arranged.stream;
        let changes = scan::<_, ChangesBuilder<T, R>>(
            batches,
            "ReadColumns",
            move |key, value, time, diff, builder| {
                builder.push(&plan, [(key.bytes(), value.bytes())], time, diff);
            },
        );
        ColumnCollection::of_schema(changes, self.shape.schema.clone())
    }
}

/// A trace of record batches, to be imported by other dataflows.
pub struct ColumnTrace<T: TimeCode, R: DiffCode> {
    trace: RowTrace<Columns, Columns, T, R>,
    shape: Rc<Shape>,
    context: Context,
}

impl<T: TimeCode, R: DiffCode> ColumnTrace<T, R> {
    /// Imports the arrangement into another dataflow: all present and future changes.
    pub fn import<'scope>(&mut self, scope: Scope<'scope, T>) -> ColumnArranged<'scope, T, R> {
        let arranged = self.trace.import(scope);
        ColumnArranged::new(arranged, Rc::clone(&self.shape), &self.context)
    }

    /// Lets the trace treat times before `frontier` like `frontier`.
    pub fn compact(&mut self, frontier: AntichainRef<'_, T>) {
        self.trace.set_logical_compaction(frontier);
        self.trace.set_physical_compaction(frontier);
    }
}
