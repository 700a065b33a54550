//! A change log of files, kept joined and added up: `change_log ORDERS PEOPLE OUT_DIRECTORY`.
//!
//! ```text
//! orders.csv --sorted by `at`--> at, op, user, amount --+--> join --> by country: count, sum, min,
//! people.csv ---------------------------- user, country -+             max --> OUT/<at>.parquet
//! ```
//! No row becomes a Rust value. The log may exceed memory: the sort and the arrangements each have
//! a limit.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use timely::dataflow::ProbeHandle;
use windrow::arrow_array::RecordBatchReader;
use windrow::arrow_array::cast::AsArray;
use windrow::arrow_array::types::Int64Type;
use windrow::arrow_array::{Int64Array, RecordBatch, RecordBatchIterator};
use windrow::arrow_schema::{DataType, Field, SchemaBuilder};
use windrow::{Budget, Pool};
use windrow_differential::{Changes, ChangesOf, ColumnInput, Context, count, max, min, right, sum};
use windrow_files::{
    Inputs, Job, Limit, Limits, ReadOptions, SortSpec, Source, Target, WriteOptions, expand,
};

type Outcome<X = ()> = Result<X, Box<dyn Error>>;

/// Bytes of memory for arrangements.
const MEMORY: usize = 64 << 20;

fn main() -> Outcome {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [orders, people, out] = arguments.as_slice() else {
        return Err("usage: change_log ORDERS PEOPLE OUT_DIRECTORY".into());
    };
    std::fs::create_dir_all(out)?;
    let context = Context::new(Pool::in_dir(std::env::temp_dir(), Budget::bytes(MEMORY))?);
    let (orders, people, out) = (orders.clone(), people.clone(), PathBuf::from(out));
    let done = timely::execute_directly(move |worker| -> Result<(), String> {
        run(worker, &context, &orders, &people, &out).map_err(|error| error.to_string())
    });
    Ok(done?)
}

fn run(
    worker: &mut timely::worker::Worker,
    context: &Context,
    orders: &str,
    people: &str,
    out: &Path,
) -> Outcome {
    let mut log = sorted(orders, "at")?;
    let people = sorted(people, "user")?;
    let schema = log.schema();
    let columns = [schema.index_of("user")?, schema.index_of("amount")?];
    let rows = schema.project(&columns)?;
    let (mut orders_in, mut people_in, written) = worker.dataflow(|scope| -> Outcome<_> {
        let (orders_in, orders) = ColumnInput::<i64, i64>::new(scope, &Arc::new(rows));
        let (people_in, people) = ColumnInput::<i64, i64>::new(scope, &people.schema());
        let totals = orders
            .arrange_by(context, "user")?
            .join_rows(people.arrange_by(context, "user")?, [right("country"), "amount".into()])?
            .arrange_by(context, "country")?
            .reduce_columns([count(), sum("amount"), min("amount"), max("amount")])?;
        let out = out.to_owned();
        let written = totals.for_each_frontier(move |_, changes| write(&out, changes));
        Ok((orders_in, people_in, written))
    })?;
    for batch in people {
        people_in.push(batch?)?;
    }
    // The people are complete before the first order: closing their input lets the dataflow
    // advance.
    drop(people_in);
    // Advances to each new time, and waits until the results of earlier times are written.
    while let Some(batch) = log.next().transpose()? {
        let times = batch.column(schema.index_of("at")?).as_primitive::<Int64Type>();
        let ops = batch.column(schema.index_of("op")?).as_string::<i32>();
        let mut start = 0;
        while start < batch.num_rows() {
            let now = times.value(start);
            let end = (start..batch.num_rows()).find(|&row| times.value(row) != now);
            let end = end.unwrap_or(batch.num_rows());
            if *orders_in.time() < now {
                orders_in.advance_to(now);
                step(worker, &written, now);
            }
            let diff = |row| if ops.value(row) == "-" { -1 } else { 1 };
            let diffs = (start..end).map(diff).collect();
            let rows = batch.project(&columns)?;
            orders_in.push_changes(rows.slice(start, end - start), diffs)?;
            start = end;
        }
    }
    let end = *orders_in.time() + 1;
    orders_in.advance_to(end);
    step(worker, &written, end);
    Ok(())
}

/// Runs the worker until all results before `now` are written.
fn step(worker: &mut timely::worker::Worker, written: &ProbeHandle<i64>, now: i64) {
    while written.less_than(&now) {
        worker.step();
    }
}

/// Sorts the rows of a file by a column.
fn sorted(file: &str, column: &str) -> Outcome<windrow_files::Batches> {
    let inputs = Inputs::open(&expand([file])?, &ReadOptions::default())?;
    let job = Job::sort(inputs, &SortSpec::by(column))?;
    Ok(job.batches(&Limits::default().memory(Limit::Bytes(256 << 20)))?)
}

/// Writes the changes of one frontier step to a file: the totals, with a diff of 1 for an added and
/// -1 for a removed row.
fn write(out: &Path, changes: ChangesOf<'_, i64, i64>) -> Outcome {
    let mut all = Vec::new();
    let mut last = None;
    for changes in changes {
        last = changes.times().iter().copied().max().max(last);
        all.push(with_diffs(changes)?);
    }
    let (Some(at), Some(first)) = (last, all.first()) else { return Ok(()) };
    let schema = first.schema();
    let batches = RecordBatchIterator::new(all.into_iter().map(Ok), schema);
    let inputs = Inputs::open(&[Source::reader("totals", batches)], &ReadOptions::default())?;
    let job = Job::sort(inputs, &SortSpec::by("country"))?;
    let file = out.join(format!("{at}.parquet"));
    job.write(&Target::of(file), &WriteOptions::default(), &Limits::default())?;
    Ok(())
}

/// Appends the diffs to the rows as a column.
fn with_diffs(changes: Changes<i64, i64>) -> Outcome<RecordBatch> {
    let (batch, _, diffs) = changes.into_parts();
    let (schema, mut columns, _) = batch.into_parts();
    let mut schema = SchemaBuilder::from(schema.as_ref());
    schema.push(Field::new("diff", DataType::Int64, false));
    columns.push(Arc::new(Int64Array::from(diffs)));
    Ok(RecordBatch::try_new(Arc::new(schema.finish()), columns)?)
}
