//! Conversion of keyword arguments to the library's options.

use std::cell::RefCell;
use std::collections::HashSet;
use std::fmt::Display;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;

use arrow_schema::{Field, Schema, SchemaRef};
use pyo3::conversion::FromPyObjectOwned;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyList, PyString, PyTuple};
use pyo3_arrow::PySchema;
use windrow_files::{
    CheckSpec, Codec, Columns, CsvOptions, Encodings, FloatOrder, Limit, Limits, Names, OrderBy,
    ReadOptions, Result, Size, SpillTo, Stores, WriteOptions, parse_schema,
};

use crate::errors::{exception, mistyped, usage};

/// A column of an order.
#[pyclass(frozen, eq, hash, module = "windrow", get_all)]
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Column {
    name: String,
    desc: bool,
    nulls: String,
}

#[pymethods]
impl Column {
    fn __repr__(&self) -> String {
        let desc = if self.desc { ", desc=True" } else { "" };
        let nulls = if self.nulls == "first" { ", nulls=\"first\"" } else { "" };
        format!("col({:?}{desc}{nulls})", self.name)
    }
}

/// A column of an order by its name, whatever characters that has.
#[pyfunction]
#[pyo3(signature = (name, *, desc = false, nulls = "last"))]
pub(crate) fn col(py: Python<'_>, name: String, desc: bool, nulls: &str) -> PyResult<Column> {
    match nulls {
        "first" | "last" => Ok(Column { name, desc, nulls: nulls.to_owned() }),
        _ => Err(usage(py, &format!("nulls= takes \"first\" or \"last\", not {nulls:?}"))),
    }
}

impl From<&Column> for windrow_files::SortColumn {
    fn from(column: &Column) -> Self {
        let nulls_first = column.nulls == "first";
        Self { name: column.name.clone(), descending: column.desc, nulls_first }
    }
}

/// Keyword arguments; `None` means not given.
pub(crate) struct Arguments<'py> {
    given: Bound<'py, PyDict>,
    known: RefCell<HashSet<&'static str>>,
}

impl<'py> Arguments<'py> {
    pub(crate) fn new(given: &Bound<'py, PyDict>) -> Self {
        let known = RefCell::new(HashSet::from(["inputs", "old", "new", "progress"]));
        Self { given: given.clone(), known }
    }

    pub(crate) fn py(&self) -> Python<'py> {
        self.given.py()
    }

    /// Rejects unknown arguments.
    pub(crate) fn finish(&self, verb: &str) -> PyResult<()> {
        for name in self.given.keys() {
            let name: String = name.extract()?;
            if !self.known.borrow().contains(name.as_str()) {
                let message = format!("{verb}() got an unexpected keyword argument '{name}'");
                return Err(PyTypeError::new_err(message));
            }
        }
        Ok(())
    }

    pub(crate) fn any(&self, name: &'static str) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.known.borrow_mut().insert(name);
        Ok(self.given.get_item(name)?.filter(|value| !value.is_none()))
    }

    fn required(&self, name: &'static str) -> PyResult<Bound<'py, PyAny>> {
        self.any(name)?.ok_or_else(|| usage(self.py(), &format!("{name}= is missing")))
    }

    /// Returns a value of a type; `takes` describes the type in the error.
    fn extracted<T: FromPyObjectOwned<'py>>(
        &self,
        name: &'static str,
        takes: &str,
    ) -> PyResult<Option<T>> {
        self.any(name)?.map(|value| extracted(name, takes, &value)).transpose()
    }

    pub(crate) fn text(&self, name: &'static str) -> PyResult<Option<String>> {
        self.extracted(name, "a string")
    }

    /// Returns strings, given as one or as a list.
    pub(crate) fn texts(&self, name: &'static str) -> PyResult<Vec<String>> {
        self.extracted_list(name, "a string, or a list of them")
    }

    /// Returns a mapping of words as text, given as text or a dict.
    pub(crate) fn words(&self, name: &'static str) -> PyResult<Option<String>> {
        let Some(value) = self.any(name)? else { return Ok(None) };
        let Ok(pairs) = value.cast::<PyDict>() else { return self.text(name) };
        let pairs = pairs.iter().map(|(word, meaning)| {
            let word = if word.is_none() { String::new() } else { shown(&word)? };
            let meaning = shown(&meaning)?;
            Ok(format!("{word}={meaning}"))
        });
        Ok(Some(pairs.collect::<PyResult<Vec<_>>>()?.join(",")))
    }

    fn flag(&self, name: &'static str) -> PyResult<Option<bool>> {
        self.extracted(name, "True or False")
    }

    pub(crate) fn is_set(&self, name: &'static str) -> PyResult<bool> {
        Ok(self.flag(name)?.unwrap_or(false))
    }

    /// Parses a value with the library's parser.
    pub(crate) fn parsed<T: FromStr<Err: Display>>(
        &self,
        name: &'static str,
    ) -> PyResult<Option<T>> {
        self.text(name)?.map(|text| self.parse(name, &text)).transpose()
    }

    pub(crate) fn parse<T: FromStr<Err: Display>>(&self, name: &str, text: &str) -> PyResult<T> {
        text.parse().map_err(|error: T::Err| usage(self.py(), &format!("{name}= {error}")))
    }

    /// Returns a number of bytes, given as an integer or text, which may have a unit.
    fn bytes<T: FromStr<Err: Display>>(
        &self,
        name: &'static str,
        takes: &str,
        of_bytes: fn(u64) -> T,
    ) -> PyResult<Option<T>> {
        let Some(value) = self.any(name)? else { return Ok(None) };
        if let Some(bytes) = whole(&value) {
            return Ok(Some(of_bytes(bytes)));
        }
        let text: String = extracted(name, takes, &value)?;
        self.parse(name, &text).map(Some)
    }

    fn size(&self, name: &'static str) -> PyResult<Option<u64>> {
        let size = self.bytes(name, "bytes, or text as \"256MiB\"", Size)?;
        Ok(size.map(|size| size.0))
    }

    /// Returns the argument `memory`.
    pub(crate) fn memory(&self) -> PyResult<Option<Limit>> {
        const TAKES: &str = "bytes, or text as \"256MiB\", \"50%\" or \"unlimited\"";
        self.bytes("memory", TAKES, Limit::Bytes)
    }

    /// Returns a single value or the elements of a list.
    pub(crate) fn list(&self, name: &'static str) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let Some(value) = self.any(name)? else { return Ok(Vec::new()) };
        match value.is_instance_of::<PyList>() || value.is_instance_of::<PyTuple>() {
            true => value.try_iter()?.collect(),
            false => Ok(vec![value]),
        }
    }

    /// Returns the values of a type; `takes` describes one of them in the error.
    fn extracted_list<T: FromPyObjectOwned<'py>>(
        &self,
        name: &'static str,
        takes: &str,
    ) -> PyResult<Vec<T>> {
        self.list(name)?.iter().map(|value| extracted(name, takes, value)).collect()
    }

    /// Returns the parts of an order, given as text, by [`col`], or as a list of these.
    fn order<T: FromStr<Err: Display>>(
        &self,
        name: &'static str,
        of_column: fn(windrow_files::SortColumn) -> T,
    ) -> PyResult<Vec<T>> {
        let part = |part: &Bound<'py, PyAny>| match part.cast::<Column>() {
            Ok(column) => Ok(of_column(column.get().into())),
            Err(_) => {
                const TAKES: &str = "columns as text, wr.col(..), or a list of these";
                self.parse(name, &extracted::<String>(name, TAKES, part)?)
            }
        };
        self.list(name)?.iter().map(part).collect()
    }

    /// Returns the columns of an order.
    pub(crate) fn columns(&self, name: &'static str) -> PyResult<Vec<windrow_files::SortColumn>> {
        let parts = self.order(name, |column| Columns(vec![column]))?;
        Ok(parts.into_iter().flat_map(|columns| columns.0).collect())
    }

    pub(crate) fn by(&self) -> PyResult<Vec<windrow_files::SortColumn>> {
        self.required("by")?;
        let columns = self.columns("by")?;
        match columns.is_empty() {
            true => Err(usage(self.py(), "by= names no column")),
            false => Ok(columns),
        }
    }

    /// Returns the key of a table.
    pub(crate) fn key(&self) -> PyResult<Vec<windrow_files::SortColumn>> {
        self.required("key")?;
        self.columns("key")
    }

    /// Returns the arguments of `check`.
    pub(crate) fn checked(&self) -> PyResult<CheckSpec> {
        let spec = CheckSpec::by(self.by()?).unique(self.is_set("unique")?);
        Ok(spec.float_order(self.float_order()?))
    }

    /// Returns the equality and order of floats.
    pub(crate) fn float_order(&self) -> PyResult<FloatOrder> {
        let orders = [("total", FloatOrder::Total), ("sql", FloatOrder::Sql)];
        Ok(self.one_of("float_order", orders)?.unwrap_or_default())
    }

    /// Returns the columns that define the latest change, and the interpretation of text in these
    /// columns.
    pub(crate) fn order_by(&self) -> PyResult<OrderBy> {
        let mut order = OrderBy::default();
        let of_column = |column| OrderBy { columns: vec![column], ..OrderBy::default() };
        for part in self.order("order_by", of_column)? {
            order.columns.extend(part.columns);
            order.texts.extend(part.texts);
        }
        Ok(order)
    }

    /// Returns a number of rows.
    pub(crate) fn rows(&self, name: &'static str) -> PyResult<Option<u64>> {
        self.number(name, "a number of rows")
    }

    /// Returns a number that is not negative.
    fn number(&self, name: &'static str, takes: &str) -> PyResult<Option<u64>> {
        let wrong = || usage(self.py(), &format!("{name}= takes {takes}"));
        self.any(name)?.map(|value| whole(&value).ok_or_else(wrong)).transpose()
    }

    /// Returns names of columns. A list has one name per element; text separates names with commas.
    pub(crate) fn select(&self) -> PyResult<Option<Vec<String>>> {
        let Some(value) = self.any("select")? else { return Ok(None) };
        if let Ok(text) = value.cast::<PyString>() {
            let names: Names = self.parse("select", text.to_str()?)?;
            return Ok(Some(names.into()));
        }
        extracted("select", "names of columns", &value).map(Some)
    }

    /// Returns the output path, if given.
    pub(crate) fn output(&self) -> PyResult<Option<PathBuf>> {
        self.extracted("output", "a path")
    }

    /// Returns the options for reading inputs.
    pub(crate) fn read(&self) -> PyResult<ReadOptions> {
        let mut read = ReadOptions::default().csv(self.csv()?);
        read.charset = self.parsed("charset")?;
        read.format = self.parsed("input_format")?;
        let schema = |name| self.any(name)?.map(|types| self.schema(name, &types)).transpose();
        (read.schema, read.hive_types) = (schema("schema")?, schema("hive_types")?);
        read.filter = self.parsed("where")?;
        if let Some(stores) = self.any("store_options")? {
            read = read.stores(&self.stores(&stores)?);
        }
        Ok(read.union_by_name(self.is_set("union_by_name")?))
    }

    /// Returns the CSV dialect.
    fn csv(&self) -> PyResult<CsvOptions> {
        let mut csv = CsvOptions::default();
        if let Some(delimiter) = self.character("csv_delimiter", None)? {
            csv = self.ok(csv.delimiter(delimiter))?;
        }
        if let Some(escape) = self.character("csv_escape", None)? {
            csv = self.ok(csv.escape(escape))?;
        }
        if let Some(comment) = self.character("csv_comment", None)? {
            csv = self.ok(csv.comment(comment))?;
        }
        if self.any("csv_quote")?.is_some() {
            csv = self.ok(csv.quote(self.character("csv_quote", Some("none"))?))?;
        }
        let nulls: Vec<String> = self.extracted_list("csv_null", "text, or a list of it")?;
        csv = nulls.into_iter().fold(csv, CsvOptions::null);
        let signs = [("point", false), ("comma", true)];
        csv = csv.decimal_comma(self.one_of("csv_decimal", signs)?.unwrap_or(false));
        if let Some(lines) = self.number("csv_skip_lines", "a number of lines")? {
            csv = csv.skip_lines(lines as usize);
        }
        Ok(csv.has_header(self.flag("csv_header")?.unwrap_or(true)))
    }

    /// Returns a character, or `None` for the word `none`.
    fn character(&self, name: &'static str, none: Option<&str>) -> PyResult<Option<char>> {
        let text = self.text(name)?.filter(|text| Some(&**text) != none);
        let letter = text.map(|text| text.parse::<char>());
        letter.transpose().map_err(|_| usage(self.py(), &format!("{name}= takes one character")))
    }

    /// Returns the columns of a table: an Arrow schema as is, or types given as text or a dict.
    pub(crate) fn table_schema(&self, value: &Bound<'py, PyAny>) -> PyResult<SchemaRef> {
        match value.hasattr("__arrow_c_schema__")? {
            true => Ok(value.extract::<PySchema>()?.into_inner()),
            false => self.schema("schema", value),
        }
    }

    /// Returns the options of object stores.
    fn stores(&self, options: &Bound<'py, PyAny>) -> PyResult<Stores> {
        let pairs = options.cast::<PyDict>();
        let pairs =
            pairs.map_err(|_| mistyped("store_options", "a dict of names and text", options))?;
        let pairs = pairs.iter().map(|(key, value)| {
            // Booleans are spelled as in environment variables.
            let value = match value.extract::<bool>() {
                Ok(flag) => flag.to_string(),
                Err(_) => shown(&value)?,
            };
            Ok((shown(&key)?, value))
        });
        self.ok(Stores::with_options(pairs.collect::<PyResult<Vec<_>>>()?))
    }

    /// Returns column types for text formats, given as text, a dict, or an Arrow schema.
    fn schema(&self, name: &'static str, value: &Bound<'py, PyAny>) -> PyResult<SchemaRef> {
        if value.hasattr("__arrow_c_schema__")? {
            let schema = value.extract::<PySchema>()?.into_inner();
            let fields =
                schema.fields().iter().map(|field| Field::clone(field).with_nullable(true));
            return Ok(Arc::new(Schema::new(fields.collect::<Vec<_>>())));
        }
        if let Ok(types) = value.cast::<PyDict>() {
            let fields = types.iter().map(|(name, kind)| {
                let parsed = self.ok(parse_schema(&format!("column:{}", shown(&kind)?)))?;
                Ok(parsed.field(0).clone().with_name(name.extract::<String>()?))
            });
            return Ok(Arc::new(Schema::new(fields.collect::<PyResult<Vec<_>>>()?)));
        }
        const TAKES: &str = "text as \"id:int64\", a dict, or an Arrow schema";
        self.ok(parse_schema(&extracted::<String>(name, TAKES, value)?))
    }

    /// Returns the options for writing the output.
    pub(crate) fn write(&self) -> PyResult<WriteOptions> {
        let mut write = WriteOptions::default();
        write.format = self.parsed("output_format")?;
        write.compression = self.parsed("compression")?;
        if let Some(bytes) = self.size("row_group_size")? {
            write = write.row_group_bytes(bytes);
        }
        if let Some(bytes) = self.size("page_size")? {
            write = write.page_bytes(bytes);
        }
        write.max_file_bytes = self.size("max_file_size")?;
        write = write.statistics(self.flag("statistics")?.unwrap_or(true));
        let encodings = [("delta", Encodings::Delta), ("plain", Encodings::Plain)];
        write.encodings = self.one_of("encoding", encodings)?.unwrap_or_default();
        Ok(write.checksums(self.flag("checksums")?.unwrap_or(true)))
    }

    /// Returns the limits of the job, except for memory.
    pub(crate) fn limits(&self) -> PyResult<Limits> {
        let mut limits = Limits::default();
        if let Some(threads) = self.any("threads")? {
            let takes = |range| usage(self.py(), &format!("threads= takes a number from {range}"));
            let threads: usize = threads.extract().map_err(|_| takes("1 on".to_owned()))?;
            if !(1..=MOST_THREADS).contains(&threads) {
                return Err(takes(format!("1 to {MOST_THREADS}")));
            }
            limits = limits.threads(threads);
        }
        let directories: Vec<PathBuf> = self.extracted_list("temp_dir", "paths")?;
        limits = directories.into_iter().fold(limits, Limits::temp_dir);
        limits.max_temp_bytes = self.size("max_temp_size")?;
        let codecs = [("none", Codec::None), ("lz4", Codec::Lz4), ("zstd", Codec::Zstd)];
        if let Some(codec) = self.one_of("spill_compression", codecs)? {
            limits = limits.spill_codec(codec);
        }
        let places = [("disk", SpillTo::Disk), ("memory", SpillTo::Memory)];
        if let Some(place) = self.one_of("spill_to", places)? {
            limits = limits.spill_to(place);
        }
        Ok(limits.spill_direct(self.is_set("spill_direct")?))
    }

    pub(crate) fn one_of<T: Copy, const N: usize>(
        &self,
        name: &'static str,
        values: [(&str, T); N],
    ) -> PyResult<Option<T>> {
        let Some(text) = self.text(name)? else { return Ok(None) };
        let found = values.iter().find(|(value, _)| *value == text);
        let names = values.map(|(value, _)| format!("{value:?}")).join(", ");
        found
            .map(|(_, value)| Some(*value))
            .ok_or_else(|| usage(self.py(), &format!("{name}= takes one of {names}, not {text:?}")))
    }

    fn ok<T>(&self, result: Result<T>) -> PyResult<T> {
        result.map_err(|error| exception(self.py(), &error, None))
    }
}

/// Upper limit of threads; more than any machine has cores, so a larger number is a mistake.
const MOST_THREADS: usize = 4096;

/// Returns a value of a type; `takes` describes the type in the error.
pub(crate) fn extracted<'py, T: FromPyObjectOwned<'py>>(
    name: &str,
    takes: &str,
    value: &Bound<'py, PyAny>,
) -> PyResult<T> {
    value.extract().map_err(|_| mistyped(name, takes, value))
}

/// Returns a non-negative integer; rejects booleans.
fn whole(value: &Bound<'_, PyAny>) -> Option<u64> {
    if value.is_instance_of::<PyBool>() { None } else { value.extract().ok() }
}

/// Returns a column value as text.
pub(crate) fn shown(value: &Bound<'_, PyAny>) -> PyResult<String> {
    value.str()?.extract()
}
