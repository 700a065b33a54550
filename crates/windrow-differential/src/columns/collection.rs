//! Collections of record batches.

use std::rc::Rc;
use std::sync::Arc;

use differential_dataflow::Collection;
use differential_dataflow::difference::Abelian;
use differential_dataflow::operators::iterate::Variable;
use timely::container::CapacityContainerBuilder;
use timely::dataflow::channels::pact::Pipeline;
use timely::dataflow::operators::generic::operator::Operator;
use timely::dataflow::scope::Iterative;
use timely::dataflow::{ProbeHandle, Scope, Stream};
use timely::order::Product;
use timely::progress::Timestamp;
use timely::progress::timestamp::Refines;
use windrow::arrow_array::RecordBatch;
use windrow::arrow_schema::{Schema, SchemaRef};
use windrow::{Error, IntoColumns, Result};

use super::shape::{Shape, check_schema};
use super::{Changes, ColumnArranged, Columns};
use crate::context::done;
use crate::operators::arrange_updates;
use crate::{Context, DiffCode, TimeCode, Updates};

/// Rows encoded at once: some hundred KiB.
const ROWS: usize = 8192;

/// A collection of rows in record batches of one schema.
///
/// Calls with column names fail while the dataflow is built. At run time, a record batch of another
/// schema, or with a null in a column that is not nullable, ends the dataflow.
pub struct ColumnCollection<'scope, T: Timestamp, R: 'static> {
    schema: SchemaRef,
    inner: Collection<'scope, T, Changes<T, R>>,
}

impl<T: Timestamp, R: Clone + 'static> Clone for ColumnCollection<'_, T, R> {
    fn clone(&self) -> Self {
        Self { schema: Arc::clone(&self.schema), inner: self.inner.clone() }
    }
}

impl<'scope, T: Timestamp, R: Clone + 'static> ColumnCollection<'scope, T, R> {
    /// Wraps a stream of changes of `schema`.
    pub fn new(inner: Collection<'scope, T, Changes<T, R>>, schema: &SchemaRef) -> Self {
        Self { schema: Arc::clone(schema), inner }
    }

    pub(super) fn of_schema(stream: Stream<'scope, T, Changes<T, R>>, schema: SchemaRef) -> Self {
        Self { schema, inner: Collection::new(stream) }
    }

    /// Returns the schema of the rows.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Returns the stream of changes.
    pub fn into_inner(self) -> Collection<'scope, T, Changes<T, R>> {
        self.inner
    }

    /// Concatenates two collections.
    ///
    /// # Errors
    /// [`Error::SchemaMismatch`] if the columns differ in name or type.
    pub fn concat(self, other: Self) -> Result<Self> {
        check_schema(&self.schema, &other.schema)?;
        let schema = nullable(&self.schema, |at| other.schema.field(at).is_nullable());
        Ok(Self { schema, inner: self.inner.concat(other.inner) })
    }

    /// Negates all differences.
    #[must_use]
    pub fn negate(self) -> Self
    where
        R: Abelian,
    {
        Self { inner: self.inner.negate(), ..self }
    }

    /// Brings the collection into a nested scope, with the same rows in every round.
    pub fn enter<'inner, TInner: Refines<T>>(
        self,
        child: Scope<'inner, TInner>,
    ) -> ColumnCollection<'inner, TInner, R> {
        ColumnCollection { schema: self.schema, inner: self.inner.enter(child) }
    }

    /// Brings the collection back into the outer scope, with its final rows.
    pub fn leave<'outer, TOuter: Timestamp>(
        self,
        outer: Scope<'outer, TOuter>,
    ) -> ColumnCollection<'outer, TOuter, R>
    where
        T: Refines<TOuter>,
    {
        ColumnCollection { schema: self.schema, inner: self.inner.leave(outer) }
    }

    /// Makes `columns` nullable.
    ///
    /// # Errors
    /// [`Error::MissingColumn`].
    pub fn nullable<S: AsRef<str>>(mut self, columns: impl IntoIterator<Item = S>) -> Result<Self> {
        let places = places_of(&self.schema, columns)?;
        self.schema = nullable(&self.schema, |at| places.contains(&at));
        Ok(self)
    }

    /// Selects columns, in the given order.
    ///
    /// # Errors
    /// [`Error::MissingColumn`].
    pub fn project<S: AsRef<str>>(self, columns: impl IntoIterator<Item = S>) -> Result<Self> {
        let places = places_of(&self.schema, columns)?;
        let schema = Arc::new(self.schema.project(&places)?);
        Ok(self.map_batches(&schema, move |batch| Ok(batch.project(&places)?)))
    }

    /// Applies `logic` to each record batch, for example Arrow kernels. The result has `schema` and
    /// as many rows as the input. `logic` must map equal rows to equal rows, whatever the rest of
    /// the batch. Its errors end the dataflow.
    pub fn map_batches(
        self,
        schema: &SchemaRef,
        mut logic: impl FnMut(RecordBatch) -> Result<RecordBatch> + 'static,
    ) -> Self {
        let expected = Arc::clone(schema);
        let mapped = self.inner.inner.unary::<CapacityContainerBuilder<_>, _, _, _>(
            Pipeline,
            "MapBatches",
            |_, _| {
                move |input, output| {
                    input.for_each(|capability, changes| {
                        let (batch, times, diffs) = std::mem::take(changes).into_parts();
                        let batch = done(logic(batch));
                        done(check_schema(&expected, batch.schema_ref()));
                        let mut changes = done(Changes::new(batch, times, diffs));
                        output.session(&capability).give_container(&mut changes);
                    });
                }
            },
        );
        Self::of_schema(mapped, Arc::clone(schema))
    }

    /// Calls `logic` with all changes.
    #[must_use]
    pub fn inspect_changes(self, mut logic: impl FnMut(&Changes<T, R>) + 'static) -> Self {
        let inner = self.inner.inspect_core(move |event| {
            if let Ok((_, changes)) = event {
                logic(changes);
            }
        });
        Self { inner, ..self }
    }

    /// Attaches `handle` as a probe of the progress.
    #[must_use]
    pub fn probe_with(self, handle: &ProbeHandle<T>) -> Self {
        Self { inner: self.inner.probe_with(handle), ..self }
    }
}

impl<'scope, T: TimeCode, R: DiffCode> ColumnCollection<'scope, T, R> {
    /// Arranges the collection by the columns of `key`, as rows in the memory of `context`. Key
    /// columns keep their directions and null placement; all others are sorted ascending with nulls
    /// last. This is the sort order of the batches.
    ///
    /// # Errors
    /// [`Error::MissingColumn`], [`Error::InvalidOrder`] for a repeated name, and
    /// [`Error::UnsupportedColumn`] for a type without an order.
    pub fn arrange_by(
        self,
        context: &Context,
        key: impl IntoColumns,
    ) -> Result<ColumnArranged<'scope, T, R>> {
        let shape = Rc::new(Shape::new::<T, R>(&self.schema, key)?);
        let rows = encoded(self.inner.inner, Rc::clone(&shape));
        let arranged = arrange_updates(rows, &shape.layout, context, "ArrangeColumns");
        Ok(ColumnArranged::new(arranged, shape, context))
    }

    /// Consolidates the collection: equal rows of one time become one.
    ///
    /// # Errors
    /// As [`ColumnCollection::arrange_by`].
    pub fn consolidate(self, context: &Context) -> Result<Self> {
        Ok(self.arrange_by_all(context)?.changes())
    }

    /// Returns each row once, whatever its multiplicity.
    ///
    /// # Errors
    /// As [`ColumnCollection::arrange_by`].
    pub fn distinct(self, context: &Context) -> Result<Self>
    where
        R: DiffCode<Lanes = i64> + Abelian + From<i8>,
    {
        Ok(self.arrange_by_all(context)?.reduce_columns([])?.changes())
    }

    fn arrange_by_all(self, context: &Context) -> Result<ColumnArranged<'scope, T, R>> {
        let names: Vec<_> = self.schema.fields().iter().map(|field| field.name().clone()).collect();
        self.arrange_by(context, names)
    }

    /// Applies `logic` repeatedly until nothing changes any more, as `iterate` of
    /// differential-dataflow. `logic` has to consolidate its output, or the loop may not end.
    ///
    /// # Errors
    /// The errors of `logic`, and [`Error::SchemaMismatch`] if `logic` changes the columns or makes
    /// a column nullable. The dataflow is unusable after an error.
    pub fn iterate<F>(self, logic: F) -> Result<Self>
    where
        R: Abelian,
        for<'inner> F: FnOnce(
            Iterative<'inner, T, u64>,
            ColumnCollection<'inner, Product<T, u64>, R>,
        ) -> Result<ColumnCollection<'inner, Product<T, u64>, R>>,
    {
        let outer = self.inner.scope();
        outer.scoped("Iterate", |scope| {
            let schema = Arc::clone(&self.schema);
            let step = Product::new(T::Summary::default(), 1);
            let (variable, inner) = Variable::new_from(self.inner.enter(scope), step);
            let rounds = ColumnCollection { schema, inner };
            let made = logic(scope, rounds.clone()).and_then(|made| {
                check_schema(&rounds.schema, &made.schema)?;
                check_nulls(&rounds.schema, &made.schema)?;
                Ok(made)
            });
            // The loop has to be closed even after an error.
            variable.set(made.as_ref().unwrap_or(&rounds).inner.clone());
            Ok(made?.leave(outer))
        })
    }
}

/// Encodes the changes as rows of `shape`, before exchange and sort.
fn encoded<T: TimeCode, R: DiffCode>(
    stream: Stream<'_, T, Changes<T, R>>,
    shape: Rc<Shape>,
) -> Stream<'_, T, Updates<Columns, Columns, T, R>> {
    stream.unary::<CapacityContainerBuilder<_>, _, _, _>(Pipeline, "EncodeColumns", |_, _| {
        move |input, output| {
            input.for_each(|capability, changes| {
                let mut session = output.session(&capability);
                let (batch, times, diffs) = std::mem::take(changes).into_parts();
                for start in (0..times.len()).step_by(ROWS) {
                    let count = ROWS.min(times.len() - start);
                    let rows = done(shape.encode(&batch.slice(start, count)));
                    let tails = times[start..].iter().zip(&diffs[start..]);
                    for (row, (time, diff)) in rows.iter().zip(tails) {
                        session.give((row, time, diff));
                    }
                }
            });
        }
    })
}

/// Returns `schema` with more nullable columns: those at the positions for which `is_nullable`.
fn nullable(schema: &Schema, is_nullable: impl Fn(usize) -> bool) -> SchemaRef {
    let fields = schema.fields().iter().enumerate().map(|(at, field)| {
        field.as_ref().clone().with_nullable(field.is_nullable() || is_nullable(at))
    });
    let fields: Vec<_> = fields.collect();
    Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()))
}

/// Returns the positions of columns.
fn places_of<S: AsRef<str>>(
    schema: &Schema,
    columns: impl IntoIterator<Item = S>,
) -> Result<Vec<usize>> {
    columns.into_iter().map(|column| place_of(schema, column.as_ref())).collect()
}

/// Returns the position of a column.
pub(super) fn place_of(schema: &Schema, name: &str) -> Result<usize> {
    schema.fields().find(name).map(|(at, _)| at).ok_or_else(|| {
        let names: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
        Error::MissingColumn { column: name.into(), available: names.join(", ") }
    })
}

/// Fails if `got` has a nullable column that is not nullable in `expected`.
fn check_nulls(expected: &Schema, got: &Schema) -> Result<()> {
    let mut columns = expected.fields().iter().zip(got.fields());
    match columns.find(|(expected, got)| got.is_nullable() && !expected.is_nullable()) {
        None => Ok(()),
        Some((_, got)) => {
            let of = |nulls: &str| format!("{:?}: {}{nulls}", got.name(), got.data_type());
            Err(Error::SchemaMismatch { expected: of(" not null"), got: of("") })
        }
    }
}
