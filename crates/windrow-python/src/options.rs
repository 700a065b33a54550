//! Conversion of keyword arguments to the library's options.

use std::cell::RefCell;
use std::collections::HashSet;
use std::fmt::Display;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;

use arrow_schema::{Field, Schema, SchemaRef};
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

    pub(crate) fn text(&self, name: &'static str) -> PyResult<Option<String>> {
        let text = |value: Bound<'py, PyAny>| {
            value.extract().map_err(|_| mistyped(name, "a string", &value))
        };
        self.any(name)?.map(text).transpose()
    }

    /// Returns strings, given as one or as a list.
    pub(crate) fn texts(&self, name: &'static str) -> PyResult<Vec<String>> {
        let text = |value: &Bound<'py, PyAny>| {
            value.extract().map_err(|_| mistyped(name, "a string, or a list of them", value))
        };
        self.list(name)?.iter().map(text).collect()
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
        let flag = |value: Bound<'py, PyAny>| {
            value.extract().map_err(|_| mistyped(name, "True or False", &value))
        };
        self.any(name)?.map(flag).transpose()
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

    /// Returns a number of bytes, given as an integer or text with a unit.
    fn size(&self, name: &'static str) -> PyResult<Option<u64>> {
        let Some(value) = self.any(name)? else { return Ok(None) };
        if let Some(bytes) = whole(&value) {
            return Ok(Some(bytes));
        }
        let text: String =
            value.extract().map_err(|_| mistyped(name, "bytes, or text as \"256MiB\"", &value))?;
        Ok(Some(self.parse::<Size>(name, &text)?.0))
    }

    /// Returns the argument `memory`.
    pub(crate) fn memory(&self) -> PyResult<Option<Limit>> {
        let Some(value) = self.any("memory")? else { return Ok(None) };
        if let Some(bytes) = whole(&value) {
            return Ok(Some(Limit::Bytes(bytes)));
        }
        const TAKES: &str = "bytes, or text as \"256MiB\", \"50%\" or \"unlimited\"";
        let text: String = value.extract().map_err(|_| mistyped("memory", TAKES, &value))?;
        self.parse("memory", &text).map(Some)
    }

    /// Returns a single value or the elements of a list.
    pub(crate) fn list(&self, name: &'static str) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let Some(value) = self.any(name)? else { return Ok(Vec::new()) };
        match value.is_instance_of::<PyList>() || value.is_instance_of::<PyTuple>() {
            true => value.try_iter()?.collect(),
            false => Ok(vec![value]),
        }
    }

    /// Returns the columns of an order, given as text, by [`col`], or as a list of these.
    pub(crate) fn columns(&self, name: &'static str) -> PyResult<Vec<windrow_files::SortColumn>> {
        let mut columns = Vec::new();
        for part in self.list(name)? {
            match part.cast::<Column>() {
                Ok(column) => columns.push(column.get().into()),
                Err(_) => {
                    const TAKES: &str = "columns as text, wr.col(..), or a list of these";
                    let text: String = part.extract().map_err(|_| mistyped(name, TAKES, &part))?;
                    columns.extend(self.parse::<Columns>(name, &text)?.0);
                }
            }
        }
        Ok(columns)
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
        for part in self.list("order_by")? {
            match part.cast::<Column>() {
                Ok(column) => order.columns.push(column.get().into()),
                Err(_) => {
                    const TAKES: &str = "columns as text, wr.col(..), or a list of these";
                    let text: String =
                        part.extract().map_err(|_| mistyped("order_by", TAKES, &part))?;
                    let said: OrderBy = self.parse("order_by", &text)?;
                    order.columns.extend(said.columns);
                    order.texts.extend(said.texts);
                }
            }
        }
        Ok(order)
    }

    /// Returns a number of rows.
    pub(crate) fn rows(&self, name: &'static str) -> PyResult<Option<u64>> {
        let rows = |value: Bound<'py, PyAny>| {
            whole(&value)
                .ok_or_else(|| usage(self.py(), &format!("{name}= takes a number of rows")))
        };
        self.any(name)?.map(rows).transpose()
    }

    /// Returns names of columns. A list has one name per element; text separates names with commas.
    pub(crate) fn select(&self) -> PyResult<Option<Vec<String>>> {
        let Some(value) = self.any("select")? else { return Ok(None) };
        if let Ok(text) = value.cast::<PyString>() {
            let names: Names = self.parse("select", text.to_str()?)?;
            return Ok(Some(names.into()));
        }
        let names = value.extract();
        Ok(Some(names.map_err(|_| mistyped("select", "names of columns", &value))?))
    }

    /// Returns the output path, if given.
    pub(crate) fn output(&self) -> PyResult<Option<PathBuf>> {
        let path = |value: Bound<'py, PyAny>| -> PyResult<PathBuf> {
            let path = value.extract::<PathBuf>();
            path.map_err(|_| mistyped("output", "a path", &value))
        };
        self.any("output")?.map(path).transpose()
    }

    /// Returns the options for reading inputs.
    pub(crate) fn read(&self) -> PyResult<ReadOptions> {
        let mut read = ReadOptions::default().csv(self.csv()?);
        read.charset = self.parsed("charset")?;
        read.format = self.parsed("input_format")?;
        read.schema =
            self.any("schema")?.map(|schema| self.schema("schema", &schema)).transpose()?;
        let types = self.any("hive_types")?;
        read.hive_types = types.map(|types| self.schema("hive_types", &types)).transpose()?;
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
        for null in self.list("csv_null")? {
            let text: String =
                null.extract().map_err(|_| mistyped("csv_null", "text, or a list of it", &null))?;
            csv = csv.null(text);
        }
        let signs = [("point", false), ("comma", true)];
        csv = csv.decimal_comma(self.one_of("csv_decimal", signs)?.unwrap_or(false));
        if let Some(lines) = self.any("csv_skip_lines")? {
            let lines = whole(&lines).and_then(|lines| usize::try_from(lines).ok());
            let lines =
                lines.ok_or_else(|| usage(self.py(), "csv_skip_lines= takes a number of lines"))?;
            csv = csv.skip_lines(lines);
        }
        Ok(csv.has_header(self.flag("csv_header")?.unwrap_or(true)))
    }

    /// Returns a character, or `None` for the word `none`.
    fn character(&self, name: &'static str, none: Option<&str>) -> PyResult<Option<char>> {
        let Some(text) = self.text(name)?.filter(|text| Some(&**text) != none) else {
            return Ok(None);
        };
        let mut letters = text.chars();
        match (letters.next(), letters.next()) {
            (Some(letter), None) => Ok(Some(letter)),
            _ => Err(usage(self.py(), &format!("{name}= takes one character"))),
        }
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
        let text: String = value.extract().map_err(|_| mistyped(name, TAKES, value))?;
        self.ok(parse_schema(&text))
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
        if let Some(value) = self.any("threads")? {
            let threads: usize = value
                .extract()
                .map_err(|_| usage(self.py(), "threads= takes a number from 1 on"))?;
            if !(1..=MOST_THREADS).contains(&threads) {
                let message = format!("threads= takes a number from 1 to {MOST_THREADS}");
                return Err(usage(self.py(), &message));
            }
            limits = limits.threads(threads);
        }
        for directory in self.list("temp_dir")? {
            let path = directory.extract::<PathBuf>();
            limits = limits.temp_dir(path.map_err(|_| mistyped("temp_dir", "paths", &directory))?);
        }
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

/// Returns a non-negative integer; rejects booleans.
fn whole(value: &Bound<'_, PyAny>) -> Option<u64> {
    if value.is_instance_of::<PyBool>() { None } else { value.extract().ok() }
}

/// Returns a column value as text.
pub(crate) fn shown(value: &Bound<'_, PyAny>) -> PyResult<String> {
    value.str()?.extract()
}
