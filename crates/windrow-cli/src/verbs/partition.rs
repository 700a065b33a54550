//! `windrow partition`: rows to files by hash, range or value, equal keys to the same file.
//!
//! ```text
//! --into N              hash of --by, N files        --range-at V ...   ranges of --by, given
//! --range --into N      ranges of --by, sampled      --hive             a directory per value of --by
//! ```

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch};
use arrow::compute::concat;
use arrow::datatypes::Schema;
use windrow::{Column, Finish, Layout, Order, Partitioner, asc};

use super::compact::parse;
use super::project::{check_names, projection};
use crate::args;
use crate::columns::fields;
use crate::error::{CliError, Result};
use crate::format::Format;
use crate::input::Inputs;
use crate::job::{self, Arrangement, Transform, Way};
use crate::output::Target;
use crate::partition::{Ids, Names, Partitioning, hive_values};

/// Partitions.
pub(crate) fn partition(args: &args::Partition) -> Result<()> {
    if Target::of(&args.output.output) == Target::Stdout {
        return Err(CliError::Usage(
            "partitions are many files: -o names a directory, and not standard output".to_owned(),
        ));
    }
    let format = args.output.output_format.unwrap_or(Format::Parquet);
    let inputs = job::open_inputs(&args.input, Some(&args.limits))?;
    let (arrangement, partitioning) = if args.hive {
        by_value(args, &inputs, format)?
    } else {
        by_number(args, &inputs, format)?
    };
    job::partition(
        inputs,
        &arrangement,
        &partitioning,
        format,
        &args.output,
        &args.limits,
        &args.report,
    )
}

/// Numbered partitions: their number is a column that the order starts with.
fn by_number(
    args: &args::Partition,
    inputs: &Inputs,
    format: Format,
) -> Result<(Arrangement, Partitioning)> {
    let layout = Order::by(args.by.0.clone()).bind(inputs.schema())?;
    let into = args.into.map_or(0, |into| into.get() as usize);
    let (ids, partitions) = if !args.range_at.is_empty() {
        let ranges = ranges(&layout, &args.range_at)?;
        let partitions = ranges.partitions();
        (Ids::new(&layout, ranges), partitions)
    } else if args.range {
        (Ids::of_ranges(&layout, into), into)
    } else {
        (Ids::new(&layout, Partitioner::hash(&layout, into)), into)
    };
    let ids = Arc::new(ids);
    let schema = ids.schema();
    let key = schema.fields().len() - 1;
    let sorting = args.sort.as_ref().map(|columns| columns.0.clone()).unwrap_or_default();
    check_names(inputs.schema(), sorting.iter().map(|column| column.name.as_str()))?;
    let number = asc(schema.field(key).name().as_str());
    let numbering = Arc::clone(&ids);
    let transform: Transform = Box::new(move |batch, _| numbering.append(batch));
    let arrangement = Arrangement {
        way: Way::Unordered,
        layout: Order::by([number]).then(sorting.clone()).bind(schema)?,
        transform: Some(transform),
        finish: Finish::Log,
        required: Vec::new(),
        // A column of --select is one of the input's.
        projection: projection(inputs.schema(), args.output.select.as_deref(), &[])?,
    };
    let partitions = u32::try_from(partitions).unwrap_or(u32::MAX);
    let names = Names::Numbered { partitions, extension: format.extension() };
    let by = describe(&args.by.0);
    let how = match (args.range, args.range_at.is_empty()) {
        (true, _) => format!("{partitions} ranges of {by}, by a sample"),
        (_, false) => format!("{partitions} ranges of {by}"),
        _ => format!("{partitions} by a hash of {by}, version {}", Partitioner::HASH_VERSION),
    };
    Ok((arrangement, Partitioning { keys: vec![key], names, ids: Some(ids), sorting, how }))
}

/// A directory for every value: the order starts with the columns that name it, and files lack them.
fn by_value(
    args: &args::Partition,
    inputs: &Inputs,
    format: Format,
) -> Result<(Arrangement, Partitioning)> {
    let schema = inputs.schema();
    let columns: Vec<String> = args.by.0.iter().map(|column| column.name.clone()).collect();
    if let Some(name) =
        args.output.select.iter().flat_map(|names| names.iter()).find(|name| columns.contains(name))
    {
        return Err(CliError::Usage(format!(
            "--select: {name:?} is in the names of the directories, and left out of the files"
        )));
    }
    let mut sorting = args.sort.as_ref().map(|columns| columns.0.clone()).unwrap_or_default();
    // Within a file they have one value.
    sorting.retain(|column| !columns.contains(&column.name));
    let layout = Order::by(args.by.0.clone()).then(sorting.clone()).bind(schema)?;
    let keys: Vec<usize> = layout.key().collect();
    let nested = keys.iter().map(|&key| schema.field(key));
    if let Some(field) = nested.into_iter().find(|field| field.data_type().is_nested()) {
        return Err(CliError::Usage(format!(
            "--hive: column {:?} is nested, and cannot be in the name of a directory",
            field.name()
        )));
    }
    let projection = projection(schema, args.output.select.as_deref(), &columns)?;
    if projection.is_empty() {
        return Err(CliError::Usage(
            "--hive: every column is in the names of the directories; none is left to write"
                .to_owned(),
        ));
    }
    let floats = |schema: &Schema| keys.iter().any(|&key| has_nan(schema, key));
    let transform: Option<Transform> = floats(schema).then(|| {
        let keys = keys.clone();
        Box::new(move |batch: &RecordBatch, _| {
            let mut values: Vec<ArrayRef> = batch.columns().to_vec();
            keys.iter().for_each(|&key| values[key] = hive_values(&values[key]));
            RecordBatch::try_new(batch.schema(), values)
                .map_err(|error| CliError::Data(error.to_string()))
        }) as Transform
    });
    let how = format!("a directory for each value of {}", describe(&args.by.0));
    let names = Names::Hive { columns, extension: format.extension() };
    let arrangement = Arrangement {
        way: Way::Unordered,
        layout,
        transform,
        finish: Finish::Log,
        projection,
        required: Vec::new(),
    };
    Ok((arrangement, Partitioning { keys, names, ids: None, sorting, how }))
}

fn has_nan(schema: &Schema, column: usize) -> bool {
    use arrow::datatypes::DataType as D;
    match schema.field(column).data_type() {
        D::Dictionary(_, values) => values.is_floating(),
        D::RunEndEncoded(_, values) => values.data_type().is_floating(),
        data_type => data_type.is_floating(),
    }
}

/// Ranges between splitters as people write them: values of the key's columns, separated by commas.
fn ranges(layout: &Layout, splitters: &[String]) -> Result<Partitioner> {
    let usage = |message: String| CliError::Usage(format!("--range-at: {message}"));
    let key: Vec<usize> = layout.key().collect();
    let mut columns: Vec<Vec<ArrayRef>> = vec![Vec::new(); key.len()];
    for text in splitters {
        let values = match key.len() {
            1 => vec![text.clone()],
            _ => fields(text).map_err(usage)?,
        };
        if values.len() != key.len() {
            return Err(usage(format!(
                "{text:?} has {} values, and --by has {} columns",
                values.len(),
                key.len()
            )));
        }
        for ((value, &column), parsed) in values.iter().zip(&key).zip(&mut columns) {
            let field = layout.schema().field(column);
            let (name, data_type) = (field.name(), field.data_type());
            parsed.push(parse(value, data_type).ok_or_else(|| {
                usage(format!("{value:?} is no value of column {name:?}, which is {data_type}"))
            })?);
        }
    }
    let columns = columns.iter().zip(&key).map(|(values, &column)| {
        let values: Vec<_> = values.iter().map(AsRef::as_ref).collect();
        Ok((layout.schema().field(column).name(), concat(&values)?))
    });
    let columns: Result<Vec<_>, arrow::error::ArrowError> = columns.collect();
    let batch = columns.and_then(RecordBatch::try_from_iter).map_err(|e| usage(e.to_string()))?;
    Partitioner::range(layout, &batch).map_err(|error| match error {
        windrow::Error::OutOfOrder { row, .. } => {
            let (this, before) = (row as usize, row as usize - 1);
            usage(format!(
                "{:?} comes before {:?} in the order of --by; give them in that order",
                splitters[this], splitters[before]
            ))
        }
        other => other.into(),
    })
}

fn describe(columns: &[Column]) -> String {
    let names: Vec<&str> = columns.iter().map(|column| column.name.as_str()).collect();
    names.join(", ")
}
