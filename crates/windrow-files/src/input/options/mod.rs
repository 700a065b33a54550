//! Options for reading inputs.

pub(crate) mod csv;
pub(crate) mod filter;
pub(crate) mod schema;

use std::path::PathBuf;

use arrow_schema::SchemaRef;

use crate::error::Result;
use crate::input::charset::Charset;
use crate::limits::{Ceiling, Limits};
use crate::packing::Decompressors;
use crate::raw::Asked;
use crate::settings::{Format, Preset, setters};
use crate::store::Stores;
use crate::watch::Cancel;

use csv::CsvOptions;
use filter::Filter;

/// Maximum rows of a batch by default.
const BATCH_ROWS: usize = 8192;

/// How to read inputs.
///
/// ```
/// use windrow_files::{Format, ReadOptions, parse_schema};
///
/// let read = ReadOptions::default().format(Format::Csv).schema(parse_schema("id:int64,at:date32")?);
/// # Ok::<(), windrow_files::Error>(())
/// ```
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct ReadOptions {
    /// The format of all inputs. By default, each file's extension or first bytes decide.
    pub format: Option<Format>,
    /// Types of text columns; all other types are inferred. See
    /// [`parse_schema`](crate::parse_schema).
    pub schema: Option<SchemaRef>,
    /// The dialect of CSV.
    pub csv: CsvOptions,
    /// The encoding of text. By default UTF-8, or UTF-16 with a byte order mark.
    pub charset: Option<Charset>,
    /// The format of change logs, whose text may need a conversion to rows. See
    /// [`CompactSpec::reading`](crate::CompactSpec::reading).
    pub op_preset: Option<Preset>,
    /// Further settings for change logs.
    pub(crate) asked: Asked,
    /// Types of columns in directory names; see [`Source::Found`](crate::Source::Found).
    pub hive_types: Option<SchemaRef>,
    /// Whether columns, and the widths of numbers and times, may differ from the first input.
    pub union_by_name: bool,
    /// Whether dictionary keys are as wide as for the values of several inputs.
    pub(crate) wide_keys: bool,
    /// Whether a row group of which a reader left rows is read once more, right afterwards.
    pub(crate) reads_again: bool,
    /// The condition on rows; by default, all rows are read.
    pub filter: Option<Filter>,
    /// Typed columns of CSV, if all others are carried as unchanged text.
    pub(crate) compared: Option<Vec<String>>,
    /// The needed columns, if not all.
    pub(crate) wanted: Option<Vec<String>>,
    /// Access to object stores.
    pub(crate) stores: Stores,
    /// Maximum rows of a batch, if not [`BATCH_ROWS`].
    pub(crate) batch_rows: Option<usize>,
    /// Directory for copies of streams that need random access; by default, the system's directory
    /// for temporary files.
    pub(crate) temp_dir: Option<PathBuf>,
    /// Maximum bytes of all copies together.
    pub(crate) temp_bytes: Option<u64>,
    /// Memory limit for opening inputs.
    pub(crate) ceiling: Ceiling,
    /// Resources for decompressing inputs.
    pub(crate) decompressors: Decompressors,
    /// Cancels the copying of streams.
    pub(crate) cancel: Cancel,
}

impl ReadOptions {
    setters! {
        /// Sets the format of all inputs.
        format: Format => Some(format);
        /// Sets the types of text columns.
        schema: SchemaRef => Some(schema);
        /// Sets the dialect of CSV.
        csv: CsvOptions;
        /// Sets the encoding of text.
        charset: Charset => Some(charset);
        /// Sets the types of columns in directory names, `day=2026-01-31`. By default, integers,
        /// dates or text.
        hive_types: SchemaRef => Some(hive_types);
        /// Sets whether the columns of inputs are united by name. If so, a column missing from an
        /// input is null in its rows, and numbers, decimals, times and structs are widened to hold
        /// the values of all inputs. Otherwise, all inputs must have the columns of the first.
        union_by_name: bool;
        /// Sets the condition on rows. Row groups of Parquet are not read if their statistics
        /// exclude all rows.
        filter: Filter => Some(filter);
    }

    /// Carries columns of CSV as unchanged text (`1.10`, `007`, `True`), if neither `compared` nor
    /// the condition of [`filter`](Self::filter) contains the column. This applies only if all
    /// inputs and `output` are CSV. A column in [`schema`](Self::schema) has its type from the
    /// schema. For other outputs, all columns have types.
    ///
    /// The specification of a verb returns the compared columns, for example
    /// [`SortSpec::compared`](crate::SortSpec::compared). If the verb compares all columns, all
    /// columns have types. [`WriteOptions::format_of`](crate::WriteOptions::format_of) returns the
    /// format of the output.
    pub fn carried_as_text(
        mut self,
        compared: Option<Vec<String>>,
        output: Option<Format>,
    ) -> Self {
        self.compared = compared.filter(|_| output == Some(Format::Csv));
        self
    }

    /// Reads only the needed columns, if `select` names the columns of the output: `compared` and
    /// `select`. Inputs may differ in all other columns. `compared` is the same as for
    /// [`carried_as_text`](Self::carried_as_text); if a verb compares all columns, all are needed.
    /// Raw change logs are read with all columns.
    pub fn selecting(mut self, compared: Option<Vec<String>>, select: Option<&[String]>) -> Self {
        self.wanted = compared.zip(select).map(|(mut names, select)| {
            names.extend_from_slice(select);
            names
        });
        self
    }

    /// Sets the access to object stores, for inputs and the output.
    pub fn stores(mut self, stores: &Stores) -> Self {
        self.stores = stores.clone();
        self
    }

    /// Copies streams that need random access (Parquet and Arrow files on standard input) to a
    /// temporary file within `limits`. If the job is [alone](Limits::alone) in the process, inputs
    /// with schemas and footers beyond the memory limit are refused before reading.
    ///
    /// # Errors
    /// `Usage` if a directory for temporary files does not exist.
    pub fn within(mut self, limits: &Limits) -> Result<Self> {
        limits.check()?;
        self.temp_dir = limits.temp_dirs.first().cloned();
        self.temp_bytes = limits.max_temp_bytes;
        self.ceiling = limits.ceiling()?;
        self.decompressors = Decompressors::within(limits.memory_bytes()?, limits.cores());
        Ok(self)
    }

    /// Cancels the copying of streams when `cancel` is requested.
    pub fn cancelled_by(mut self, cancel: &Cancel) -> Self {
        self.cancel = cancel.clone();
        self
    }

    pub(crate) fn batch_rows(&self) -> usize {
        self.batch_rows.unwrap_or(BATCH_ROWS).max(1)
    }
}
