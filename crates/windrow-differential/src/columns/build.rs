//! Decoding of rows into record batches of the selected columns.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;

use timely::container::ContainerBuilder;
use windrow::arrow_array::{RecordBatch, RecordBatchOptions};
use windrow::arrow_schema::SchemaRef;
use windrow::{Decoder, Result};

use super::shape::Shape;
use super::{Changes, Columns};
use crate::context::done;
use crate::enc::EncVec;

/// Maximum number of rows of a record batch.
const ROWS: usize = 8192;
/// Bytes of rows from which on a record batch is complete.
const BYTES: usize = 512 << 10;

/// The columns of one or two arrangements that make up record batches.
pub(super) struct Plan {
    schema: SchemaRef,
    sides: Vec<Side>,
    /// For each column its side, and its index among the side's decoded columns.
    columns: Vec<(usize, usize)>,
}

/// The rows of one arrangement.
struct Side {
    decoder: RefCell<Decoder>,
    /// True if no column of the side is selected.
    is_idle: bool,
    /// Bytes of time and diffs, which the decoder skips.
    tail: usize,
}

impl Plan {
    /// Plans record batches of `schema`. `columns` holds for each column the side, and the position
    /// in the side's schema.
    pub(super) fn new(
        shapes: &[&Shape],
        schema: &SchemaRef,
        columns: &[(usize, usize)],
    ) -> Result<Rc<Self>> {
        let sides = shapes.iter().enumerate().map(|(side, shape)| {
            let wanted = columns.iter().filter(|(of, _)| *of == side);
            let wanted: Vec<usize> = wanted.map(|(_, column)| *column).collect();
            let decoder = RefCell::new(Decoder::new(&shape.layout, &wanted)?);
            Ok(Side { decoder, is_idle: wanted.is_empty(), tail: shape.tail })
        });
        let sides = sides.collect::<Result<Vec<_>>>()?;
        let mut counts = vec![0; sides.len()];
        let columns = columns.iter().map(|&(side, _)| {
            counts[side] += 1;
            (side, counts[side] - 1)
        });
        Ok(Rc::new(Self { schema: Arc::clone(schema), columns: columns.collect(), sides }))
    }

    /// Plans record batches of all columns of one arrangement.
    pub(super) fn whole(shape: &Shape) -> Rc<Self> {
        let columns: Vec<_> = (0..shape.schema.fields().len()).map(|column| (0, column)).collect();
        done(Self::new(&[shape], &shape.schema, &columns))
    }
}

/// Builds record batches from rows.
pub(super) struct ChangesBuilder<T, R> {
    /// Rows of each side, one per change.
    sides: Vec<EncVec<Columns>>,
    times: Vec<T>,
    diffs: Vec<R>,
    /// Complete record batches.
    ready: VecDeque<Changes<T, R>>,
    given: Changes<T, R>,
    /// The plan of the first change.
    plan: Option<Rc<Plan>>,
}

impl<T, R> Default for ChangesBuilder<T, R> {
    fn default() -> Self {
        Self {
            sides: Vec::new(),
            times: Vec::new(),
            diffs: Vec::new(),
            ready: VecDeque::new(),
            given: Changes::default(),
            plan: None,
        }
    }
}

impl<T, R> ChangesBuilder<T, R> {
    /// Adds a change: `rows` holds key and value of each side of the plan.
    pub(super) fn push<const N: usize>(
        &mut self,
        plan: &Rc<Plan>,
        rows: [(&[u8], &[u8]); N],
        time: T,
        diff: R,
    ) {
        if self.plan.is_none() {
            self.plan = Some(Rc::clone(plan));
            self.sides.resize_with(N, EncVec::default);
        }
        let mut bytes = 0;
        for ((rows, side), (key, value)) in self.sides.iter_mut().zip(&plan.sides).zip(rows) {
            if !side.is_idle {
                rows.push_with(|out| {
                    out.extend_from_slice(key);
                    out.extend_from_slice(value);
                    out.resize(out.len() + side.tail, 0);
                });
                bytes += rows.bytes();
            }
        }
        self.times.push(time);
        self.diffs.push(diff);
        if self.times.len() == ROWS || bytes >= BYTES {
            self.build();
        }
    }

    /// Builds a record batch of all collected rows.
    fn build(&mut self) {
        let Some(plan) = self.plan.as_ref().filter(|_| !self.times.is_empty()) else { return };
        let sides = plan.sides.iter().zip(&self.sides);
        let decode = |(side, rows): (&Side, &EncVec<_>)| {
            done(side.decoder.borrow_mut().decode_rows(rows.iter()))
        };
        let decoded: Vec<RecordBatch> = sides.map(decode).collect();
        let columns = plan.columns.iter();
        let columns = columns.map(|&(side, at)| Arc::clone(decoded[side].column(at))).collect();
        let options = RecordBatchOptions::new().with_row_count(Some(self.times.len()));
        let schema = Arc::clone(&plan.schema);
        let batch = RecordBatch::try_new_with_options(schema, columns, &options);
        let batch = done(batch.map_err(windrow::Error::from));
        let (times, diffs) = (std::mem::take(&mut self.times), std::mem::take(&mut self.diffs));
        self.sides.iter_mut().for_each(EncVec::<Columns>::clear);
        self.ready.push_back(done(Changes::new(batch, times, diffs)));
    }
}

impl<T: Clone + 'static, R: Clone + 'static> ContainerBuilder for ChangesBuilder<T, R> {
    type Container = Changes<T, R>;

    fn extract(&mut self) -> Option<&mut Changes<T, R>> {
        self.given = self.ready.pop_front()?;
        Some(&mut self.given)
    }

    fn finish(&mut self) -> Option<&mut Changes<T, R>> {
        self.build();
        self.extract()
    }
}
