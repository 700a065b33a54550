//! How inputs are read: what the caller says of them.

use std::path::{Path, PathBuf};

use arrow::datatypes::SchemaRef;

use crate::error::{Error, Result};
use crate::format::Format;
use crate::limits::Limits;
use crate::packing::Packing;
use crate::preset::Preset;
use crate::setting::Setting;
use crate::store::Stores;
use crate::watch::Cancel;

use super::filter::Filter;

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
    /// The format of change logs, whose rows may have to be looked for in the text. See
    /// [`CompactSpec::reading`](crate::CompactSpec::reading).
    pub op_preset: Option<Preset>,
    /// The table that is wanted of change logs of several: `NAME`, `SCHEMA.NAME`, or `*` for all.
    pub table: Option<String>,
    /// The types of columns in names of directories; see [`Source::Found`](crate::Source::Found).
    pub hive_types: Option<SchemaRef>,
    /// Whether inputs may have other columns, and numbers and times of other widths, than the first.
    pub union_by_name: bool,
    /// Which rows count; all unless given.
    pub filter: Option<Filter>,
    /// How addresses are reached.
    pub(crate) stores: Stores,
    /// The most rows of a batch.
    pub(crate) batch_rows: usize,
    /// Where streams go that must be read at random; the system's temporary directory if none.
    pub(crate) temp_dir: Option<PathBuf>,
    /// Bytes that they may take there together.
    pub(crate) temp_bytes: u64,
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

    /// Sets how addresses are reached, of inputs and of the output.
    pub fn stores(mut self, stores: &Stores) -> Self {
        self.stores = stores.clone();
        self
    }

    /// Copies streams that must be read at random - Parquet and Arrow files on standard input - to a
    /// temporary file within `limits`.
    ///
    /// # Errors
    /// `Usage` if a directory for temporary files is not there.
    pub fn within(mut self, limits: &Limits) -> Result<Self> {
        limits.check()?;
        self.temp_dir = limits.temp_dirs.first().cloned();
        self.temp_bytes = limits.max_temp_bytes.unwrap_or(u64::MAX);
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
            op_preset: None,
            table: None,
            hive_types: None,
            union_by_name: false,
            filter: None,
            stores: Stores::default(),
            temp_dir: None,
            temp_bytes: u64::MAX,
            cancel: Cancel::new(),
        }
    }
}

/// How CSV is written down.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct CsvOptions {
    /// The byte between fields. A `.tsv` file has a tab when this is the comma.
    pub delimiter: u8,
    /// Whether the first line names the columns.
    pub has_header: bool,
}

impl CsvOptions {
    /// Sets the character between fields.
    ///
    /// # Errors
    /// `Usage` if it is no ASCII character, a quote, or ends a line.
    pub fn delimiter(mut self, delimiter: char) -> Result<Self> {
        let byte = u8::try_from(delimiter).ok();
        self.delimiter =
            byte.filter(|byte| byte.is_ascii() && !b"\"\r\n".contains(byte)).ok_or_else(|| {
                Error::usage(format!(
                    "{} takes one ASCII character that is no quote and ends no line",
                    Setting::CsvDelimiter
                ))
            })?;
        Ok(self)
    }

    /// Sets whether the first line names the columns.
    pub fn has_header(mut self, has_header: bool) -> Self {
        self.has_header = has_header;
        self
    }

    /// The byte between the fields of `path`.
    pub(crate) fn delimiter_of(self, path: &Path) -> u8 {
        let unpacked = Packing::of_path(path).map(|(_, path)| path);
        let tabs = unpacked
            .as_deref()
            .unwrap_or(path)
            .extension()
            .is_some_and(|e| e.eq_ignore_ascii_case("tsv"));
        if tabs && self.delimiter == b',' { b'\t' } else { self.delimiter }
    }
}

impl Default for CsvOptions {
    fn default() -> Self {
        Self { delimiter: b',', has_header: true }
    }
}
