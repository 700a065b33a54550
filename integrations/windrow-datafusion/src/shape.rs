//! Mapping from the columns of a plan to rows of the engine, and back.
//!
//! ```text
//! input batch --expressions--> columns 0, 1, 2, ... --layout--> rows --decode--> output, renamed
//!                              output columns | further sort keys
//! ```
//! Columns of a plan may share a name, and sort keys are expressions. The engine names columns by
//! number, and sorts by columns. Sort keys outside of the output become extra columns after the
//! output columns.

use std::sync::Arc;

use arrow_array::{RecordBatch, RecordBatchOptions};
use arrow_schema::{Field, Schema, SchemaRef};
use datafusion::common::not_impl_err;
use datafusion::error::Result;
use datafusion::physical_expr::{LexOrdering, PhysicalExpr};
use windrow::{Decoder, Layout, Order, SortColumn, asc};

use crate::error::datafusion_error;

/// The mapping from an operator's input to rows, and from rows to the output. Right by
/// construction.
#[derive(Debug)]
pub(crate) struct Shape {
    /// The columns of rows, as expressions over the input.
    columns: Vec<Arc<dyn PhysicalExpr>>,
    pub(crate) layout: Layout,
    /// The schema of the output: the first columns.
    pub(crate) output: SchemaRef,
}

impl Shape {
    /// Maps `columns` to rows, with `output` as the output schema, ordered by `order`. With `key`,
    /// only the first row of each value of the leading `key` expressions is kept.
    ///
    /// # Errors
    /// `NotImplemented` if a type has no order in the engine, or is decoded as another type.
    pub(crate) fn new(
        input: &Schema,
        mut columns: Vec<Arc<dyn PhysicalExpr>>,
        output: SchemaRef,
        order: &LexOrdering,
        key: Option<usize>,
    ) -> Result<Self> {
        let mut sorted: Vec<SortColumn> = Vec::with_capacity(order.len());
        for by in order.iter() {
            let known = columns.iter().position(|column| column == &by.expr);
            let place = known.unwrap_or_else(|| {
                columns.push(Arc::clone(&by.expr));
                columns.len() - 1
            });
            sorted.push(asc(place.to_string()).with_options(by.options));
        }
        let field = |(place, column): (usize, &Arc<dyn PhysicalExpr>)| {
            Ok(Field::new(place.to_string(), column.data_type(input)?, column.nullable(input)?))
        };
        let fields = columns.iter().enumerate().map(field).collect::<Result<Vec<_>>>()?;
        let order = match key {
            Some(key) => {
                let then = sorted.split_off(key.min(sorted.len()));
                Order::by(sorted).then(then).first()
            }
            None => Order::by(sorted),
        };
        let layout = order.bind(&Schema::new(fields)).map_err(datafusion_error)?;
        let shape = Self { columns, layout, output };
        let types = |schema: &Schema| -> Vec<_> {
            schema.fields().iter().map(|field| field.data_type().clone()).collect()
        };
        if shape.output.fields().is_empty()
            || types(shape.decoder()?.schema()) != types(&shape.output)
        {
            return not_impl_err!("rows of {}", shape.output);
        }
        Ok(shape)
    }

    /// Evaluates the engine's columns for a record batch of the input.
    pub(crate) fn rows(&self, batch: &RecordBatch) -> Result<RecordBatch> {
        let array = |column: &Arc<dyn PhysicalExpr>| {
            column.evaluate(batch).and_then(|value| value.into_array(batch.num_rows()))
        };
        let arrays = self.columns.iter().map(array).collect::<Result<Vec<_>>>()?;
        Ok(RecordBatch::try_new(Arc::clone(self.layout.schema()), arrays)?)
    }

    /// Creates a decoder of the output columns.
    pub(crate) fn decoder(&self) -> Result<Decoder> {
        let places: Vec<usize> = (0..self.output.fields().len()).collect();
        Decoder::new(&self.layout, &places).map_err(datafusion_error)
    }

    /// Renames the columns of a decoded record batch to the plan's.
    pub(crate) fn named(&self, decoded: &RecordBatch) -> Result<RecordBatch> {
        let options = RecordBatchOptions::new().with_row_count(Some(decoded.num_rows()));
        let (output, arrays) = (Arc::clone(&self.output), decoded.columns().to_vec());
        Ok(RecordBatch::try_new_with_options(output, arrays, &options)?)
    }
}
