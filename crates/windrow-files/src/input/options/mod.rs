//! How inputs are read: what the caller says of them.

pub(crate) mod csv;
pub(crate) mod filter;
pub(crate) mod schema;

use std::path::PathBuf;

use arrow_schema::SchemaRef;

use crate::error::Result;
use crate::format::Format;
use crate::input::charset::Charset;
use crate::limits::{Ceiling, Limits};
use crate::preset::Preset;
use crate::raw::Asked;
use crate::store::Stores;
use crate::watch::Cancel;

use csv::CsvOptions;
use filter::Filter;

/// How to read inputs.
///
/// ```
/// use windrow_files::{Format, ReadOptions, parse_schema};
///
/// let read = ReadOptions::default().format(Format::Csv).schema(parse_schema("id:int64,at:date32")?);
/// # Ok::<(), windrow_files::Error>(())
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ReadOptions {
    /// The format of all inputs; otherwise each file's extension or first bytes decide.
    pub format: Option<Format>,
    /// The types of columns of text; those not named are inferred. See [`parse_schema`](crate::parse_schema).
    pub schema: Option<SchemaRef>,
    /// How CSV is written down.
    pub csv: CsvOptions,
    /// The encoding of text; UTF-8, or UTF-16 where a byte order mark says so, unless given.
    pub charset: Option<Charset>,
    /// The format of change logs, whose rows may have to be looked for in the text. See
    /// [`CompactSpec::reading`](crate::CompactSpec::reading).
    pub op_preset: Option<Preset>,
    /// What else the caller says of change logs.
    pub(crate) asked: Asked,
    /// The types of columns in names of directories; see [`Source::Found`](crate::Source::Found).
    pub hive_types: Option<SchemaRef>,
    /// Whether inputs may have other columns, and numbers and times of other widths, than the first.
    pub union_by_name: bool,
    /// Which rows count; all unless given.
    pub filter: Option<Filter>,
    /// Columns of CSV that have types, if the others are carried as the text that they are.
    pub(crate) compared: Option<Vec<String>>,
    /// The columns that count, if not all do.
    pub(crate) wanted: Option<Vec<String>>,
    /// How addresses are reached.
    pub(crate) stores: Stores,
    /// The most rows of a batch.
    pub(crate) batch_rows: usize,
    /// Where streams go that must be read at random; the system's temporary directory if none.
    pub(crate) temp_dir: Option<PathBuf>,
    /// Bytes that they may take there together.
    pub(crate) temp_bytes: u64,
    /// What opening them may take.
    pub(crate) ceiling: Ceiling,
    /// Ends the copying of streams.
    pub(crate) cancel: Cancel,
}

impl ReadOptions {
    /// Sets the format of all inputs.
    pub fn format(mut self, format: Format) -> Self {
        self.format = Some(format);
        self
    }

    /// Sets the types of columns of text.
    pub fn schema(mut self, schema: SchemaRef) -> Self {
        self.schema = Some(schema);
        self
    }

    /// Sets how CSV is written down.
    pub fn csv(mut self, csv: CsvOptions) -> Self {
        self.csv = csv;
        self
    }

    /// Sets the encoding of text.
    pub fn charset(mut self, charset: Charset) -> Self {
        self.charset = Some(charset);
        self
    }

    /// Sets the types of columns in names of directories, `day=2026-01-31`: integers, dates or text unless given.
    pub fn hive_types(mut self, types: SchemaRef) -> Self {
        self.hive_types = Some(types);
        self
    }

    /// Sets whether columns of inputs are united by their names: those that one lacks are null there, and numbers,
    /// decimals, times and structs get types that hold the values of all. Otherwise the first input says what all
    /// have.
    pub fn union_by_name(mut self, unite: bool) -> Self {
        self.union_by_name = unite;
        self
    }

    /// Sets which rows count. Row groups of Parquet whose statistics rule them out are not read.
    pub fn filter(mut self, filter: Filter) -> Self {
        self.filter = Some(filter);
        self
    }

    /// Has columns of CSV that are neither among `compared` nor in the condition of [`filter`](Self::filter) be text as it
    /// stands - `1.10`, `007`, `True` - where `output` is CSV, too, and all inputs are. Columns that
    /// [`schema`](Self::schema) names have the types that it gives them. Other outputs have types, and so all columns.
    ///
    /// What a verb compares its specification tells, as [`SortSpec::compared`](crate::SortSpec::compared); where
    /// it compares all columns, all have types. [`WriteOptions::format_of`](crate::WriteOptions::format_of) tells the
    /// format.
    pub fn carried_as_text(
        mut self,
        compared: Option<Vec<String>>,
        output: Option<Format>,
    ) -> Self {
        self.compared = compared.filter(|_| output == Some(Format::Csv));
        self
    }

    /// Has inputs be read as rows of the columns that count, if `select` names those that are written: they may differ
    /// in all others. What a verb compares is told as for [`carried_as_text`](Self::carried_as_text); where it
    /// compares all columns, all count. Of raw change logs all columns are read.
    pub fn selecting(mut self, compared: Option<Vec<String>>, select: Option<&[String]>) -> Self {
        self.wanted = compared.zip(select).map(|(mut names, select)| {
            names.extend_from_slice(select);
            names
        });
        self
    }

    /// Sets how addresses are reached, of inputs and of the output.
    pub fn stores(mut self, stores: &Stores) -> Self {
        self.stores = stores.clone();
        self
    }

    /// Copies streams that must be read at random - Parquet and Arrow files on standard input - to a
    /// temporary file within `limits`. If the job is [alone](Limits::alone) in the process, inputs
    /// with schemas and footers beyond the memory limit are refused before they are read.
    ///
    /// # Errors
    /// `Usage` if a directory for temporary files is not there.
    pub fn within(mut self, limits: &Limits) -> Result<Self> {
        limits.check()?;
        self.temp_dir = limits.temp_dirs.first().cloned();
        self.temp_bytes = limits.max_temp_bytes.unwrap_or(u64::MAX);
        self.ceiling = limits.ceiling()?;
        Ok(self)
    }

    /// Ends that copying when `cancel` is requested.
    pub fn cancelled_by(mut self, cancel: &Cancel) -> Self {
        self.cancel = cancel.clone();
        self
    }
}

impl Default for ReadOptions {
    fn default() -> Self {
        Self {
            format: None,
            schema: None,
            batch_rows: 8192,
            csv: CsvOptions::default(),
            charset: None,
            op_preset: None,
            asked: Asked::default(),
            hive_types: None,
            union_by_name: false,
            filter: None,
            compared: None,
            wanted: None,
            stores: Stores::default(),
            temp_dir: None,
            temp_bytes: u64::MAX,
            ceiling: Ceiling::default(),
            cancel: Cancel::new(),
        }
    }
}
