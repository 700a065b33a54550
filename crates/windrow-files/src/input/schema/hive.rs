//! Columns in directory names: `lake/country=nl/day=2026-01-31/part-0.parquet`.
//!
//! ```text
//!  lake/country=nl/part-0.parquet: id, v   -->  id, v, country     country is "nl" in every row
//! ```
//! The names below an input directory count, and all names in a path matched by a pattern. The path
//! of a file that the user names gives no columns. A column in the file itself has precedence.
//! Types follow from all values: integers, dates, or else text. Names are percent-decoded; one name
//! stands for null.

use std::borrow::Cow;
use std::path::{Component, Path};
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, RecordBatch, UInt32Array, new_null_array};
use arrow_schema::{DataType, Field, FieldRef, Schema, SchemaRef};
use arrow_select::take::take;
use percent_encoding::percent_decode_str;

use crate::error::{Error, Result, failed};
use crate::input::opened::Opened;
use crate::input::options::ReadOptions;
use crate::input::source::expand::Source;
use crate::input::text::exact::one_value;
use crate::nested::with_rows;
use crate::settings::{Format, Setting};

/// The directory name for null, as Hive writes it.
pub(crate) const NULL: &str = "__HIVE_DEFAULT_PARTITION__";

/// The directory columns of all inputs.
pub(crate) struct Hive {
    fields: Vec<FieldRef>,
    /// Columns that were appended to an earlier input, and are not expected in later files.
    appended: Vec<FieldRef>,
}

impl Hive {
    /// Collects the directory columns of `sources`, with the given `types` or with types inferred
    /// from the values.
    ///
    /// # Errors
    /// `Usage` for a column of `types` without a directory name.
    pub(crate) fn of(sources: &[Source], types: Option<&Schema>) -> Result<Self> {
        let mut columns: Vec<(String, Vec<String>)> = Vec::new();
        for (name, value) in sources.iter().flat_map(levels) {
            let place = columns.iter().position(|(known, _)| *known == name).unwrap_or_else(|| {
                columns.push((name, Vec::new()));
                columns.len() - 1
            });
            columns[place].1.extend(value);
        }
        let given = types.into_iter().flat_map(|types| types.fields().iter());
        for field in given.clone() {
            if !columns.iter().any(|(name, _)| name == field.name()) {
                return Err(Error::usage(format!(
                    "{}: no directory that is read is called {}=...",
                    Setting::HiveTypes,
                    field.name()
                )));
            }
        }
        let fields = columns.iter().map(|(name, values)| {
            let given = given.clone().find(|field| field.name() == name);
            let kind = given.map_or_else(|| kind_of(values), |field| field.data_type().clone());
            Arc::new(Field::new(name, kind, true))
        });
        Ok(Self { fields: fields.collect(), appended: Vec::new() })
    }

    /// Iterates over the names of the directory columns. A file may have a column of the same name.
    pub(super) fn names(&self) -> impl Iterator<Item = &String> {
        self.fields.iter().map(|field| field.name())
    }

    /// Options for `sources`: text is carried from CSV alone. A column that some files have and others have in the names
    /// of their directories is of one type.
    pub(crate) fn carried<'a>(
        &self,
        sources: &[Source],
        options: &'a ReadOptions,
    ) -> Cow<'a, ReadOptions> {
        let Some(compared) = &options.compared else { return Cow::Borrowed(options) };
        let compared = are_csv(sources, options.format)
            .then(|| compared.iter().chain(self.names()).cloned().collect());
        Cow::Owned(ReadOptions { compared, ..options.clone() })
    }

    /// Returns `schema` without the appended columns.
    pub(crate) fn without(&self, schema: &SchemaRef) -> SchemaRef {
        let fields = schema
            .fields()
            .iter()
            .filter(|field| !self.appended.iter().any(|appended| appended.name() == field.name()));
        let fields: Vec<_> = fields.cloned().collect();
        Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()))
    }

    /// Adds the columns in the names of its directories to an input. Returns their values, which are to be appended to
    /// its rows.
    ///
    /// # Errors
    /// `Data` for a value that is none of its type.
    pub(crate) fn append(
        &mut self,
        source: &Source,
        opened: &mut Opened,
        batch_rows: usize,
    ) -> Result<Option<Appendix>> {
        let mut fields = opened.schema.fields().to_vec();
        let mut values = Vec::new();
        for (name, value) in levels(source) {
            let known = self.fields.iter().find(|field| *field.name() == name);
            let Some(field) = known.filter(|_| fields.iter().all(|field| *field.name() != name))
            else {
                continue;
            };
            let kind = field.data_type();
            let array = match &value {
                None => Ok(new_null_array(kind, 1)),
                Some(text) => one_value(text, kind),
            };
            let array = array.ok().filter(|array| value.is_none() || array.null_count() == 0);
            let array = array.ok_or_else(|| {
                let (text, file) = (value.unwrap_or_default(), &opened.about.name);
                Error::data(format!(
                    "{file}: {name}={text} is no {kind}; see {}",
                    Setting::HiveTypes
                ))
                .in_file(Arc::clone(file))
            })?;
            fields.push(Arc::clone(field));
            values.push(array);
            if !self.appended.contains(field) {
                self.appended.push(Arc::clone(field));
            }
        }
        if values.is_empty() {
            return Ok(None);
        }
        let bytes = values.iter().map(|value| value.get_buffer_memory_size()).sum::<usize>();
        opened.row_bytes += bytes;
        opened.longest_row += bytes;
        opened.reader_bytes += batch_rows * (bytes + 8);
        let metadata = opened.schema.metadata().clone();
        opened.schema = Arc::new(Schema::new_with_metadata(fields, metadata));
        let schema = Arc::clone(&opened.schema);
        Ok(Some(Appendix { schema, values }))
    }
}

/// Returns the names and values in the directory names of a file.
fn levels(source: &Source) -> Vec<(String, Option<String>)> {
    let (path, by) = match source {
        Source::Found { path, by } => (path, by),
        Source::Partition { values, .. } => return values.to_vec(),
        _ => return Vec::new(),
    };
    let directory = path.parent().unwrap_or(Path::new(""));
    let within = directory.strip_prefix(&**by).unwrap_or(directory);
    let mut levels: Vec<(String, Option<String>)> = Vec::new();
    for component in within.components() {
        let Component::Normal(name) = component else { continue };
        let Some((name, value)) = name.to_str().and_then(|name| name.split_once('=')) else {
            continue;
        };
        let name = decoded(name);
        if !name.is_empty() && levels.iter().all(|(known, _)| *known != name) {
            levels.push((name, (value != NULL).then(|| decoded(value))));
        }
    }
    levels
}

/// Decodes percent escapes. Returns `text` unchanged if the result is not UTF-8.
fn decoded(text: &str) -> String {
    let bytes = percent_decode_str(text);
    bytes.decode_utf8().map_or_else(|_| text.to_owned(), Cow::into_owned)
}

/// Returns the common type of all values.
fn kind_of(values: &[String]) -> DataType {
    let all = |is: fn(&str) -> bool| !values.is_empty() && values.iter().all(|value| is(value));
    let is_date = |value: &str| {
        let shape = value.len() == 10 && value.as_bytes()[4] == b'-';
        shape && one_value(value, &DataType::Date32).is_ok_and(|date| date.null_count() == 0)
    };
    // Numbers must keep their spelling: 007 would come back as 7.
    if all(|value| value.parse::<i64>().is_ok_and(|number| number.to_string() == value)) {
        DataType::Int64
    } else if all(is_date) {
        DataType::Date32
    } else {
        DataType::Utf8
    }
}

/// The columns appended to all rows of a file.
pub(crate) struct Appendix {
    /// Schema of the rows with the appended columns.
    schema: SchemaRef,
    values: Vec<ArrayRef>,
}

impl Appendix {
    /// Appends the values to all rows of `batch`.
    pub(crate) fn behind(&self, batch: &RecordBatch) -> Result<RecordBatch> {
        let rows = batch.num_rows();
        let first = UInt32Array::from(vec![0; rows]);
        let mut columns = batch.columns().to_vec();
        for value in &self.values {
            columns.push(take(value, &first, None).map_err(failed)?);
        }
        with_rows(&self.schema, columns, rows).map_err(failed)
    }

    /// Returns the appended columns.
    pub(crate) fn fields(&self) -> &[FieldRef] {
        &self.schema.fields()[self.schema.fields().len() - self.values.len()..]
    }

    /// Returns the value of a column that has it in all rows.
    pub(crate) fn value(&self, column: &str) -> Option<&ArrayRef> {
        self.values.get(self.fields().iter().position(|field| field.name() == column)?)
    }
}

/// Returns true if all `sources` are CSV by their names. Standard input alone counts too, since its
/// content decides later.
pub(crate) fn are_csv(sources: &[Source], format: Option<Format>) -> bool {
    let is_csv =
        |source: &Source| format.or(source.path().and_then(Format::of_path)) == Some(Format::Csv);
    matches!(sources, [Source::Stdin]) && format.is_none() || sources.iter().all(is_csv)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, by: &str) -> Source {
        Source::Found { path: path.into(), by: Arc::from(std::ffi::OsStr::new(by)) }
    }

    #[test]
    fn names_are_columns() {
        let some = |name: &str, value: &str| (name.to_owned(), Some(value.to_owned()));
        for (path, by, expected) in [
            ("lake/a=1/x.csv", "lake", vec![some("a", "1")]),
            ("lake/a=1/x.csv", "lake/", vec![some("a", "1")]),
            ("lake/a=1/b=2/x.csv", "lake", vec![some("a", "1"), some("b", "2")]),
            ("k=v/lake/a=1/x.csv", "k=v/lake", vec![some("a", "1")]),
            ("k=v/lake/a=1/x.csv", "k=v/*/*/x.csv", vec![some("k", "v"), some("a", "1")]),
            ("lake/a=/x.csv", "lake", vec![some("a", "")]),
            ("lake/=1/x.csv", "lake", vec![]),
            ("lake/a=b=c/x.csv", "lake", vec![some("a", "b=c")]),
            ("lake/a%20b=c%2Fd%25/x.csv", "lake", vec![some("a b", "c/d%")]),
            ("lake/a=%C3%A9/x.csv", "lake", vec![some("a", "é")]),
            ("lake/a=%E9%zz%4/x.csv", "lake", vec![some("a", "%E9%zz%4")]),
            ("lake/a=1/a=2/x.csv", "lake", vec![some("a", "1")]),
            ("lake/a=%5F_HIVE_DEFAULT_PARTITION__/x.csv", "lake", vec![some("a", NULL)]),
            ("lake/x/a=1.csv", "lake", vec![]),
        ] {
            assert_eq!(levels(&found(path, by)), expected, "{path}");
        }
        let null = format!("lake/a={NULL}/x.csv");
        assert_eq!(levels(&found(&null, "lake")), [("a".to_owned(), None)]);
        assert_eq!(levels(&Source::File("a=1/x.csv".into())), []);
    }

    #[test]
    fn types_follow_from_all_values() {
        for (values, expected) in [
            (vec!["1", "-20", "0"], DataType::Int64),
            (vec!["1", "x"], DataType::Utf8),
            (vec!["01", "2"], DataType::Utf8),
            (vec!["+1"], DataType::Utf8),
            (vec!["9223372036854775808"], DataType::Utf8),
            (vec!["2026-01-31", "1969-12-31"], DataType::Date32),
            (vec!["2026-02-30"], DataType::Utf8),
            (vec!["2026-01-31", "1"], DataType::Utf8),
            (vec![""], DataType::Utf8),
            (vec!["1.5"], DataType::Utf8),
            (vec![], DataType::Utf8),
        ] {
            let values: Vec<String> = values.into_iter().map(String::from).collect();
            assert_eq!(kind_of(&values), expected, "{values:?}");
        }
    }
}
