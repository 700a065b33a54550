//! A job whose rows the caller reads at its own pace: decoded on demand, or ahead by as many
//! threads as the plan allows.

use std::sync::Arc;

use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_schema::{ArrowError, SchemaRef};

use super::ahead::Ahead;
use super::decode::RowDecoder;
use super::plan::{BATCH_BYTES, BATCH_ROWS, Output, Planned};
use super::rows::Rows;
use super::running::{Job, Running};
use crate::error::{Error, Result};
use crate::limits::Limits;
use crate::output::Written;
use crate::progress::Phase;
use crate::stats::Stats;

/// The rows of a [`Job`], in order.
///
/// The iterator ends after an error.
pub struct Batches {
    job: Job,
    running: Running,
    schema: SchemaRef,
    /// `None` at the end.
    rows: Option<Decoded>,
    written: Written,
}

/// The decoder of rows.
enum Decoded {
    Here(Box<(Rows, RowDecoder)>),
    Ahead(Ahead),
}

impl Batches {
    pub(super) fn open(job: Job, limits: &Limits) -> Result<Self> {
        if job.partitioning.is_some() {
            return Err(Error::usage("partitions are many files, and no one stream of rows"));
        }
        limits.check()?;
        let decoder = || RowDecoder::new(&job.arrangement);
        let schema = Arc::clone(&decoder()?.schema);
        let output = Output::Taken { schema: &schema };
        let mut planned = Planned::of(&job.inputs, &job.arrangement, &output, limits)?;
        let (arranged, plan, running) = loop {
            // Rows already returned to the caller cannot be withdrawn.
            let repeats = !planned.plan.direct;
            let running = Running::start(&job, &planned, limits, repeats)?;
            match job.arrange(&planned.plan, &running) {
                Ok((arranged, plan)) => break (arranged, plan, running),
                Err(error) => planned = running.met.again().ok_or(error)?,
            }
        };
        running.tally.enter(Phase::Write);
        let ahead = (BATCH_ROWS, BATCH_BYTES);
        let rows = Rows::open(arranged, &job.arrangement, ahead, None, plan.writers)?;
        let rows = match plan.writers {
            1 => Decoded::Here(Box::new((rows, decoder()?))),
            threads => {
                let decoders = (0..threads).map(|_| decoder()).collect::<Result<Vec<_>>>()?;
                Decoded::Ahead(Ahead::start(rows, decoders, &running.watch, &running.tally)?)
            }
        };
        Ok(Self { job, running, schema, rows: Some(rows), written: Written::default() })
    }

    /// Returns the figures of the job so far. The bytes written are always 0.
    pub fn stats(&self) -> Stats {
        self.running.tally.outcome().written = self.written;
        self.running.tally.finish()
    }

    fn advance(&mut self) -> Result<Option<RecordBatch>> {
        let Some(rows) = &mut self.rows else { return Ok(None) };
        self.running.watch.pause()?;
        let batch = match rows {
            Decoded::Ahead(ahead) => ahead.next()?,
            Decoded::Here(here) => {
                let (rows, decoder) = &mut **here;
                let taken = rows.next(BATCH_ROWS, BATCH_BYTES)?;
                if taken.is_none() {
                    self.running.tally.outcome().keys = rows.keys();
                }
                taken.map(|taken| taken.decode(decoder)).transpose()?
            }
        };
        let Some(batch) = batch else {
            self.rows = None;
            return Ok(None);
        };
        self.written.rows += batch.num_rows() as u64;
        self.running.tally.wrote(batch.num_rows() as u64);
        Ok(Some(batch))
    }
}

impl Iterator for Batches {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = self.advance();
        if next.is_err() {
            self.rows = None;
        }
        next.map_err(|error| self.job.named(error).into()).transpose()
    }
}

impl RecordBatchReader for Batches {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}
