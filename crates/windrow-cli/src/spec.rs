//! Converts parsed options to the specifications and options of the library.

use windrow_files::{
    ApplySpec, CheckSpec, Codec, Columns, CompactSpec, CsvOptions, DedupeSpec, DiffSpec, Encodings,
    FloatOrder, HeadSpec, Kept, Limits, MergeSpec, Mode, PartitionSpec, Partitions, Shown,
    SortColumn, SortSpec, Stores, Unchanged, WriteOptions,
};

use crate::advice::{Failure, Result};
use crate::args;

impl From<&args::Sort> for SortSpec {
    fn from(args: &args::Sort) -> Self {
        let mut spec = Self::by(args.by.clone()).float_order(args.float_order.into());
        spec.limit = args.limit;
        spec.select = selected(&args.output);
        spec
    }
}

impl From<&args::Check> for CheckSpec {
    fn from(args: &args::Check) -> Self {
        Self::by(args.by.clone()).unique(args.unique).float_order(args.float_order.into())
    }
}

impl From<args::FloatOrder> for FloatOrder {
    fn from(order: args::FloatOrder) -> Self {
        match order {
            args::FloatOrder::Total => Self::Total,
            args::FloatOrder::Sql => Self::Sql,
        }
    }
}

impl From<&args::Dedupe> for DedupeSpec {
    fn from(args: &args::Dedupe) -> Self {
        let mut spec = Self::whole_rows().kept(match args.keep {
            args::Kept::First => Kept::First,
            args::Kept::Last => Kept::Last,
            args::Kept::None => Kept::None,
            args::Kept::LastKnown => Kept::LastKnown,
        });
        spec.key = args.key.clone().map(|Columns(key)| key);
        spec.select = selected(&args.output);
        spec
    }
}

impl From<&args::Diff> for DiffSpec {
    fn from(args: &args::Diff) -> Self {
        let mut spec = Self::by_key(args.key.clone()).op_column(&args.op_column);
        spec.shown = match args.format {
            args::Shown::Changes => Shown::Changes,
            args::Shown::Summary => Shown::Summary,
        };
        spec.select = selected(&args.output);
        spec
    }
}

impl From<&args::Head> for HeadSpec {
    fn from(args: &args::Head) -> Self {
        let mut spec = Self::rows(args.rows);
        spec.select = selected(&args.output);
        spec
    }
}

impl From<&args::Compact> for CompactSpec {
    fn from(args: &args::Compact) -> Self {
        let mut spec = Self::default();
        spec.key = columns(args.key.as_ref());
        spec = spec.latest_by(args.order_by.clone().unwrap_or_default());
        args.changes.set(&mut spec);
        spec.time = args.time.clone();
        spec.diff = args.diff.clone();
        spec.as_of = args.as_of.clone();
        spec.mode = match args.mode {
            args::Mode::Snapshot => Mode::Snapshot,
            args::Mode::Log => Mode::Log,
        };
        spec.keep_bookkeeping = args.keep_bookkeeping;
        spec.select = selected(&args.output);
        spec
    }
}

impl args::Changes {
    /// Sets the format of the log.
    fn set(&self, spec: &mut CompactSpec) {
        spec.op_column = self.op_column.clone();
        spec.op_preset = self.op_preset;
        spec.op_map = self.op_map.clone();
        spec.tables.clone_from(&self.table);
        spec.unchanged = match self.unchanged {
            args::Unchanged::Last => Unchanged::Last,
            args::Unchanged::Error => Unchanged::Error,
            args::Unchanged::Keep => Unchanged::Keep,
        };
    }
}

impl From<&args::Apply> for ApplySpec {
    fn from(args: &args::Apply) -> Self {
        let mut changes = CompactSpec::by_key(args.key.clone());
        changes = changes.latest_by(args.order_by.clone().unwrap_or_default());
        args.changes.set(&mut changes);
        changes.as_of = args.as_of.clone();
        changes.select = selected(&args.output);
        Self::of(changes).lacking_is_null(args.input.union_by_name).waits(!args.no_wait)
    }
}

impl From<&args::Merge> for MergeSpec {
    fn from(args: &args::Merge) -> Self {
        let mut spec = Self::by(args.by.clone()).unique(args.unique);
        spec.float_order = args.float_order.into();
        spec.diff = args.diff.clone();
        spec.time = args.time.clone();
        spec.select = selected(&args.output);
        spec
    }
}

impl From<&args::Partition> for PartitionSpec {
    fn from(args: &args::Partition) -> Self {
        let partitions = match args.into {
            _ if args.hive => Partitions::Hive,
            Some(into) if args.range => Partitions::Ranges(into),
            Some(into) => Partitions::Hash(into),
            None => Partitions::RangesAt(args.range_at.clone()),
        };
        let mut spec = Self::by(args.by.clone(), partitions);
        spec.sort = columns(args.sort.as_ref());
        spec.select = selected(&args.output);
        spec
    }
}

impl From<&args::Output> for WriteOptions {
    fn from(args: &args::Output) -> Self {
        let mut write = Self::default()
            .row_group_bytes(args.row_group_size.0)
            .page_bytes(args.page_size.0)
            .statistics(!args.no_statistics)
            .checksums(!args.no_checksums);
        write.encodings = match args.encoding {
            args::Encoding::Delta => Encodings::Delta,
            args::Encoding::Plain => Encodings::Plain,
        };
        write.format = args.output_format;
        write.max_file_bytes = args.max_file_size.map(|size| size.0);
        write.compression = args.compression;
        write
    }
}

impl From<&args::Limits> for Limits {
    fn from(args: &args::Limits) -> Self {
        let mut limits = Self::default()
            .memory(args.memory_limit)
            .alone(true)
            .spill_codec(match args.spill_compression {
                args::SpillCompression::None => Codec::None,
                args::SpillCompression::Lz4 => Codec::Lz4,
                args::SpillCompression::Zstd => Codec::Zstd,
            })
            .spill_to(match args.spill_to {
                args::SpillTo::Disk => windrow_files::SpillTo::Disk,
                args::SpillTo::Memory => windrow_files::SpillTo::Memory,
            })
            .spill_direct(args.spill_direct);
        limits.temp_dirs = args.temp_dir.clone();
        limits.max_temp_bytes = args.max_temp_size.map(|size| size.0);
        limits.threads = args.threads;
        limits
    }
}

impl args::Input {
    /// Returns the dialect of CSV.
    pub(crate) fn csv(&self) -> windrow_files::Result<CsvOptions> {
        let args = &self.csv;
        let args::Quote(quote) = args.quote;
        let mut csv = CsvOptions::default()
            .quote(quote)?
            .has_header(!args.no_header)
            .skip_lines(args.skip_lines)
            .decimal_comma(args.decimal == args::Decimal::Comma);
        if let Some(delimiter) = args.delimiter {
            csv = csv.delimiter(delimiter)?;
        }
        if let Some(escape) = args.escape {
            csv = csv.escape(escape)?;
        }
        if let Some(comment) = args.comment {
            csv = csv.comment(comment)?;
        }
        Ok(args.nulls.iter().fold(csv, |csv, null| csv.null(null)))
    }

    /// Returns the access to stores.
    pub(crate) fn stores(&self) -> Result<Stores> {
        let options = self.store_options.iter().map(|option| {
            let pair = option.split_once('=').filter(|(key, _)| !key.is_empty());
            pair.ok_or_else(|| Failure::Usage(format!("--store-option {option}: takes KEY=VALUE")))
        });
        Ok(Stores::with_options(options.collect::<Result<Vec<_>>>()?)?)
    }
}

fn columns(columns: Option<&Columns>) -> Vec<SortColumn> {
    columns.map(|Columns(columns)| columns.clone()).unwrap_or_default()
}

fn selected(output: &args::Output) -> Option<Vec<String>> {
    output.select.clone().map(Into::into)
}
