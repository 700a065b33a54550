//! Conversion of keyword arguments to the library's settings, by the kind of each setting.

use std::path::PathBuf;
use std::sync::Arc;

use arrow_schema::{Field, Schema, SchemaRef};
use pyo3::conversion::FromPyObjectOwned;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyList, PyString, PyTuple};
use pyo3_arrow::PySchema;
use windrow_files::{
    Columns, Kind, Names, Result, Setting, Settings, SortColumn, Verb, parse_schema,
};

use crate::errors::{exception, mistyped, name, place, usage};

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

impl From<&Column> for SortColumn {
    fn from(column: &Column) -> Self {
        let nulls_first = column.nulls == "first";
        Self { name: column.name.clone(), descending: column.desc, nulls_first }
    }
}

/// Arguments of calls that are no settings.
const OTHERS: [&str; 4] = ["inputs", "old", "new", "progress"];
/// Arguments of `sort` that change the columns of its order.
const DIRECTIONS: [&str; 2] = ["descending", "nulls_last"];

/// Says what excludes each other.
const BOTH: &str = "into= and ranges= exclude each other; give one of them";

/// Returns the settings of a call. `None` means not given.
pub(crate) fn settings(call: &str, verb: Verb, given: &Bound<'_, PyDict>) -> PyResult<Settings> {
    let mut settings = Settings::new(verb);
    for (argument, value) in given {
        let argument: String = argument.extract()?;
        if OTHERS.contains(&&*argument) || verb == Verb::Sort && DIRECTIONS.contains(&&*argument) {
            continue;
        }
        if verb.settings().any(|setting| place(setting).0 == Some(argument.as_str())) {
            if value.is_none() {
                continue;
            }
            let group = value.cast::<PyDict>();
            let group = group.map_err(|_| mistyped(&argument, "a dict, or its class", &value))?;
            for (key, value) in group {
                let key: String = key.extract()?;
                one(&mut settings, call, verb, (Some(&argument), &key), &value)?;
            }
        } else {
            one(&mut settings, call, verb, (None, argument.as_str()), &value)?;
        }
    }
    if verb == Verb::Sort {
        directions(&mut settings, given)?;
    }
    if verb == Verb::Merge && settings.has(Setting::Diff) {
        // An option of its own on the command line alone.
        ok(given.py(), settings.put(Setting::Consolidate, true))?;
    }
    Ok(settings)
}

/// Sets the setting at `at`: the group, if any, and the name.
fn one(
    settings: &mut Settings,
    call: &str,
    verb: Verb,
    at: (Option<&str>, &str),
    value: &Bound<'_, PyAny>,
) -> PyResult<()> {
    // Others say so.
    let at = if at == (None, "columns") { (None, "select") } else { at };
    let found = verb.settings().find(|of| *of != Setting::Range && place(*of) == at);
    let Some(setting) = found else {
        let arguments = value.py().import("windrow._arguments")?;
        let message: String = arguments.call_method1("refused", (call, at.0, at.1))?.extract()?;
        return Err(PyTypeError::new_err(message));
    };
    match (setting, whole(value)) {
        _ if is_empty(value)? => Ok(()),
        (Setting::Into, _) if settings.has(Setting::Range) => Err(usage(value.py(), BOTH)),
        (Setting::RangeAt, Some(_)) if settings.has(Setting::Into) => Err(usage(value.py(), BOTH)),
        (Setting::RangeAt, Some(ranges)) => {
            let set = settings
                .put(Setting::Range, true)
                .and_then(|with| with.set(Setting::Into, &ranges.to_string()));
            ok(value.py(), set.map(drop))
        }
        _ => put(settings, setting, value),
    }
}

/// Applies `descending` and `nulls_last` to the columns of an order: one for all, or one for each.
fn directions(settings: &mut Settings, given: &Bound<'_, PyDict>) -> PyResult<()> {
    let Some(mut columns) = settings.get::<Columns>(Setting::By) else { return Ok(()) };
    for name in DIRECTIONS {
        let Some(value) = given.get_item(name)?.filter(|value| !value.is_none()) else { continue };
        let flags = list(&value)?;
        if flags.len() != 1 && flags.len() != columns.0.len() {
            let message =
                format!("{name}= has {} values, and by= {} columns", flags.len(), columns.0.len());
            return Err(usage(given.py(), &message));
        }
        for (column, flag) in columns.0.iter_mut().zip(flags.iter().cycle()) {
            let flag: bool = extracted(name, "True or False, or a list of them", flag)?;
            match name {
                "descending" => column.descending = flag,
                _ => column.nulls_first = !flag,
            }
        }
        ok(given.py(), settings.put(Setting::By, columns.clone()))?;
    }
    Ok(())
}

/// Sets a setting to a Python value.
fn put(settings: &mut Settings, setting: Setting, value: &Bound<'_, PyAny>) -> PyResult<()> {
    let (named, kind) = (name(setting), setting.kind());
    let name = named.as_str();
    let texts = match kind {
        Kind::Off | Kind::On => vec![extracted::<bool>(name, "True or False", value)?.to_string()],
        Kind::Number(..) | Kind::Size | Kind::Limit => match (whole(value), kind) {
            (Some(number), _) => vec![number.to_string()],
            (None, Kind::Number(..)) => {
                return Err(usage(value.py(), &format!("{name}= takes a number")));
            }
            _ => vec![extracted(name, "bytes, or text as \"256MiB\"", value)?],
        },
        Kind::Columns | Kind::Order => {
            let columns = parts(value)?;
            let columns = columns.iter().map(|part| column(name, part));
            vec![columns.collect::<PyResult<Vec<_>>>()?.join(",")]
        }
        Kind::Names if !value.is_instance_of::<PyString>() => {
            let names: Vec<String> = extracted(name, "names of columns", value)?;
            return ok(value.py(), settings.put(setting, Names::from(names)).map(drop));
        }
        Kind::Schema if !value.is_instance_of::<PyString>() => {
            return ok(value.py(), settings.put(setting, types(name, value)?).map(drop));
        }
        Kind::Pairs => {
            for pair in pairs(name, value)? {
                ok(value.py(), settings.put(setting, pair))?;
            }
            return Ok(());
        }
        Kind::Path | Kind::Paths => {
            for path in list(value)? {
                ok(value.py(), settings.put(setting, path_of(name, "a path", &path)?))?;
            }
            return Ok(());
        }
        Kind::Words if value.is_instance_of::<PyDict>() => {
            let words =
                pairs(name, value)?.into_iter().map(|(word, meaning)| format!("{word}={meaning}"));
            vec![words.collect::<Vec<_>>().join(",")]
        }
        Kind::Value => vec![shown(value)?],
        Kind::Values => list(value)?.iter().map(values).collect::<PyResult<_>>()?,
        Kind::Texts => {
            let text =
                |text: &Bound<'_, PyAny>| extracted(name, "a string, or a list of them", text);
            list(value)?.iter().map(text).collect::<PyResult<_>>()?
        }
        _ => vec![extracted(name, "a string", value)?],
    };
    texts.iter().try_for_each(|text| ok(value.py(), settings.set(setting, text).map(drop)))
}

/// Returns true for a value that means not given: `None`, and a list without elements.
fn is_empty(value: &Bound<'_, PyAny>) -> PyResult<bool> {
    Ok(value.is_none() || value.is_instance_of::<PyList>() && value.len()? == 0)
}

/// Returns a single value or the elements of a list.
fn list<'py>(value: &Bound<'py, PyAny>) -> PyResult<Vec<Bound<'py, PyAny>>> {
    match value.is_instance_of::<PyList>() || value.is_instance_of::<PyTuple>() {
        true => value.try_iter()?.collect(),
        false => Ok(vec![value.clone()]),
    }
}

/// Returns a column and its direction, as pyarrow has them: `("id", "descending")`.
fn pair(value: &Bound<'_, PyAny>) -> Option<(String, bool)> {
    let (name, way): (String, String) = value.cast::<PyTuple>().ok()?.extract().ok()?;
    let descending = matches!(&*way, "descending" | "desc");
    (descending || matches!(&*way, "ascending" | "asc")).then_some((name, descending))
}

/// Returns the parts of an order.
fn parts<'py>(value: &Bound<'py, PyAny>) -> PyResult<Vec<Bound<'py, PyAny>>> {
    if pair(value).is_some() { Ok(vec![value.clone()]) } else { list(value) }
}

/// Returns the text of a part of an order.
fn column(name: &str, part: &Bound<'_, PyAny>) -> PyResult<String> {
    if let Ok(column) = part.cast::<Column>() {
        return Ok(Columns(vec![column.get().into()]).to_string());
    }
    if let Some((name, descending)) = pair(part) {
        return Ok(Columns(vec![SortColumn { name, descending, nulls_first: false }]).to_string());
    }
    const TAKES: &str = "columns as \"id:desc\", (\"id\", \"descending\"), wr.col(\"id\", desc=True), or a list of these";
    if part.get_type().name()?.to_str()?.starts_with("Expr") {
        let columns = part.getattr("meta").and_then(|meta| meta.call_method0("root_names"));
        let columns: Vec<String> = columns.and_then(|names| names.extract()).unwrap_or_default();
        let column = columns.first().map_or("id", String::as_str);
        let message = format!("{name}= takes {TAKES}, not an expression; write {column:?}");
        return Err(PyTypeError::new_err(message));
    }
    extracted(name, TAKES, part)
}

/// Returns a path. `~` is the directory of the user, and `file://` begins the address of a file.
pub(crate) fn path_of(name: &str, takes: &str, value: &Bound<'_, PyAny>) -> PyResult<PathBuf> {
    let path: PathBuf = extracted(name, takes, value)?;
    let (module, function, text) = match path.to_str() {
        Some(text) if text.starts_with('~') => ("os.path", "expanduser", text),
        Some(text) => match text.strip_prefix("file://") {
            Some(rest) => ("urllib.parse", "unquote", rest.trim_start_matches("localhost")),
            None => return Ok(path),
        },
        None => return Ok(path),
    };
    value.py().import(module)?.call_method1(function, (text,))?.extract()
}

/// Returns the text of a value, or of a tuple with a value for each column.
fn values(value: &Bound<'_, PyAny>) -> PyResult<String> {
    let quoted = |text: String| match text.contains([',', '"']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text,
    };
    match value.cast::<PyTuple>() {
        Ok(values) => {
            let values = values.iter().map(|value| shown(&value).map(quoted));
            Ok(values.collect::<PyResult<Vec<_>>>()?.join(","))
        }
        Err(_) => shown(value),
    }
}

/// Returns the names and values of a dict as text. `None` is the empty name; Booleans are spelled as in environment
/// variables.
fn pairs(name: &str, value: &Bound<'_, PyAny>) -> PyResult<Vec<(String, String)>> {
    let dict =
        value.cast::<PyDict>().map_err(|_| mistyped(name, "a dict of names and text", value))?;
    let text = |value: &Bound<'_, PyAny>| match value.extract::<bool>() {
        Ok(flag) => Ok(flag.to_string()),
        Err(_) if value.is_none() => Ok(String::new()),
        Err(_) => shown(value),
    };
    dict.iter().map(|(key, value)| Ok((text(&key)?, text(&value)?))).collect()
}

/// Returns names and types of columns, given as a dict or an Arrow schema. All columns are nullable.
fn types(name: &str, value: &Bound<'_, PyAny>) -> PyResult<SchemaRef> {
    let fields: Vec<Field> = if value.hasattr("__arrow_c_schema__")? {
        let schema = value.extract::<PySchema>()?.into_inner();
        schema.fields().iter().map(|field| Field::clone(field).with_nullable(true)).collect()
    } else {
        const TAKES: &str = "text as \"id:int64\", a dict, or an Arrow schema";
        let types = value.cast::<PyDict>().map_err(|_| mistyped(name, TAKES, value))?;
        let field = |(name, kind): (Bound<'_, PyAny>, Bound<'_, PyAny>)| {
            let parsed = ok(value.py(), parse_schema(&format!("column:{}", shown(&kind)?)))?;
            Ok(parsed.field(0).clone().with_name(name.extract::<String>()?))
        };
        types.iter().map(field).collect::<PyResult<_>>()?
    };
    Ok(Arc::new(Schema::new(fields)))
}

/// Returns the columns of a table: an Arrow schema as is, or types given as text or a dict.
pub(crate) fn table_schema(value: &Bound<'_, PyAny>) -> PyResult<SchemaRef> {
    match value.extract::<String>() {
        Ok(text) => ok(value.py(), parse_schema(&text)),
        Err(_) if value.hasattr("__arrow_c_schema__")? => {
            Ok(value.extract::<PySchema>()?.into_inner())
        }
        Err(_) => types("schema", value),
    }
}

pub(crate) fn ok<T>(py: Python<'_>, result: Result<T>) -> PyResult<T> {
    result.map_err(|error| exception(py, &error, None))
}

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
