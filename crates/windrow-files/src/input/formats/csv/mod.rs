//! CSV: the columns of a file, from its header, a sample of its rows and `schema`.
//!
//! The types of the first file apply to all. Planning reads only the header of later files, unless
//! columns are united by name: then the types of additional columns are inferred. An empty field is
//! null. Types are inferred by arrow, with exceptions for types that would lose data:
//!
//! 1. A column without a value in the sample would be `Null`, and later values would vanish: the
//!    column is text. In a file with only a header, the column is `Null`, and the next file
//!    determines the type.
//! 2. Timestamps would get the coarsest unit of the sample, and finer timestamps would be refused
//!    later: the unit is microseconds, or nanoseconds. Timestamps with offsets from UTC are in UTC;
//!    a column with and without offsets is text.
//! 3. Integers beyond 64 bits would be text, with another order: the type is decimal, or unsigned.
//! 4. Fractions with more digits than a float keeps would be rounded: the type is decimal; with
//!    exponents, an error.
//! 5. Numbers with leading zeros (postal codes) would lose the zeros: the type is text.
//! 6. Numbers with blanks around would be text: the type is a number.
//!
//! A few words that turn a column of numbers into text, and column names among the rows, are
//! [noted](Noted).
//!
//! If the output is CSV, columns that nothing compares are carried as unchanged text
//! ([`ReadOptions::carried_as_text`]).
//!
//! A value after the sample that does not fit the type of its column is an error (see
//! [`exact`](crate::input::text::exact)).

pub(crate) mod sniff;
pub(crate) mod values;

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

use arrow_csv::reader::Format as Reader;
use arrow_schema::{ArrowError, DataType, Field, Schema, TimeUnit};
use memchr::{memchr_iter, memrchr};

use crate::error::{Error, Result};
use crate::input::charset::newlines;
use crate::input::formats::opening::{InputFormat, Opening};
use crate::input::opened::{About, Opened};
use crate::input::options::ReadOptions;
use crate::input::options::csv::CsvOptions;
use crate::input::options::filter::Filter;
use crate::input::source::head::Head;
use crate::input::source::origin::{Origin, SAMPLE_BYTES};
use crate::input::text::dialect::{Columns, Dialect};
use crate::input::text::file::{TextFile, line_lengths, rest_of_line};
use crate::input::text::named::NamedTypes;
use crate::limits::Ceiling;
use crate::names::{Places, types_of};
use crate::nested::with_type;
use crate::paths::Paths;
use crate::settings::Setting;

use values::{Seen, look_at_values};

/// Maximum number of inspected rows of the sample.
const SAMPLE_ROWS: usize = 10_000;

/// Bytes per column during inference, and in a job.
const COLUMN_BYTES: u64 = 2 << 10;
const JOB_BYTES: u64 = 6 << 10;

/// The format.
pub(crate) struct Csv;

impl InputFormat for Csv {
    fn is_text(&self) -> bool {
        true
    }

    fn open(&self, origin: Origin, opening: &mut Opening<'_>) -> Result<Opened> {
        open(origin, opening.path, opening.options, opening.like.reference)
    }
}

/// Reads the header and a sample of `origin`. `reference` is the schema of the first input; `None`
/// for the first input itself.
fn open(
    origin: Origin,
    path: Option<&Path>,
    options: &ReadOptions,
    reference: Option<&Schema>,
) -> Result<Opened> {
    let known = options.csv.clone().known_of(path);
    let sample = sampled(&origin, known.skip_lines)?;
    let cut = sample.len() >= SAMPLE_BYTES;
    let known_lines = known.skip_lines;
    let csv = sniff::told(known, &sample, !cut);
    // Without an incomplete last line.
    let end = memrchr(b'\n', &sample).filter(|_| cut).map_or(sample.len(), |end| end + 1);
    let text = sniff::behind_lines(&sample[..end], csv.skip_lines);
    let first = sample.len() - sniff::behind_lines(&sample, csv.skip_lines).len();
    if cut && first == sample.len() {
        return Err(origin.error(format!(
            "the lines that {} leaves out are more than {SAMPLE_BYTES} bytes",
            Setting::CsvSkipLines
        )));
    }
    nested(options.schema.as_deref())?;
    admit_columns(&origin, &csv, text, options.ceiling)?;
    let is_empty = text.trim_ascii().is_empty();
    if let Err(fault) = std::str::from_utf8(text) {
        let valid = first + fault.valid_up_to();
        return Err(not_utf8(&origin, &csv, &sample[..valid], first));
    }
    let faulty = |cause| origin.error(format!("the sample of its first rows: {cause}"));
    let is_null = |field: &Arc<Field>| field.data_type().is_null();
    let reference = reference.filter(|first| !first.fields().iter().all(is_null));
    let lacks = is_empty && reference.is_none();
    let unite = options.union_by_name;
    let rows = if reference.is_some() && !unite { 0 } else { SAMPLE_ROWS };
    let named = options.schema.as_deref();
    let mut noted = Noted::default();
    let schema = match reference {
        // Without a header, the file has no columns and no rows.
        Some(first) if is_empty => like(first, first),
        None if is_empty => Schema::empty(),
        _ => {
            let (inferred, seen) = reader(&csv)
                .and_then(|reader| reader.infer_schema(text, Some(rows)))
                .map_err(faulty)?;
            let named = match unite {
                true => named.map(|named| only_of(named, &inferred)),
                false => named.cloned(),
            };
            let mut own = |inferred: Schema| match seen {
                0 => header_only(&origin, &inferred, named.as_ref()),
                _ => of_rows(&origin, &csv, text, inferred, named.as_ref(), options, &mut noted),
            };
            match reference {
                Some(first) if unite => with_types_of(first, &own(inferred)?),
                Some(first) => like(&inferred, first),
                None => own(inferred)?,
            }
        }
    };
    let header = usize::from(csv.has_header);
    let header = sample[first..].len() - sniff::behind_lines(&sample[first..], header).len();
    let line = |record| newlines(&sample[..first]) + sniff::line_of(text, record, &csv);
    let notes = noted.notes(origin.name(), &schema, line);
    let preamble = sniff::preamble(text, &csv, !cut).filter(|_| csv.has_header);
    let preamble = preamble.map(|lines| known_lines + lines);
    let (line_bytes, longest) = line_lengths(&origin, &sample, first + header);
    let lacks = lacks.then_some("the file is empty; CSV starts with a line that names the columns");
    let file = TextFile {
        origin: Arc::new(origin),
        dialect: Dialect::Csv(csv),
        columns: Columns {
            named: NamedTypes::of(options.schema.as_ref(), &schema, false),
            schema: Arc::new(schema),
        },
        line_bytes,
        longest,
        about: About { notes, preamble, lacks, ..About::default() },
    };
    Ok(file.opened(options.batch_rows()))
}

/// Reads the first bytes of `origin`, including at least one row, if any.
fn sampled(origin: &Origin, skip_lines: usize) -> Result<Head> {
    let sample = origin.head(SAMPLE_BYTES)?;
    if sample.len() == SAMPLE_BYTES && newlines(&sample) < 2 + skip_lines as u64 {
        // Types cannot be inferred from a header and a part of a row.
        return origin.head(SAMPLE_BYTES + rest_of_line(origin, &sample));
    }
    Ok(sample)
}

/// Refuses a file whose columns exceed the memory.
fn admit_columns(origin: &Origin, csv: &CsvOptions, text: &[u8], ceiling: Ceiling) -> Result<()> {
    let first_line = text.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let columns = 1 + memchr_iter(csv.separator(), first_line).count() as u64;
    let (bytes, later) = (columns * COLUMN_BYTES, columns * JOB_BYTES);
    ceiling.admit(bytes, later, origin.name(), "the names of its columns")
}

/// Returns the columns of a file with rows; text for columns that are carried, because nothing
/// compares them.
fn of_rows(
    origin: &Origin,
    csv: &CsvOptions,
    text: &[u8],
    inferred: Schema,
    named: Option<&Schema>,
    options: &ReadOptions,
    noted: &mut Noted,
) -> Result<Schema> {
    let schema = first_file(origin, csv, text, inferred, named, noted)?;
    let typed = options.compared.as_ref().map(|compared| {
        let (paths, types) = (Paths::of(&schema), types_of(named));
        let filtered = options.filter.iter().flat_map(Filter::columns);
        let compared = compared.iter().map(String::as_str).chain(filtered);
        let of_names = compared.filter_map(|name| paths.find(name)?.first().copied());
        let of_log = |name: &str| options.op_preset.is_some_and(|preset| preset.reads(name));
        let others = schema.fields().iter().enumerate();
        let others = others.filter(|(_, field)| types(field).is_some() || of_log(field.name()));
        of_names.chain(others.map(|(place, _)| place)).collect::<HashSet<usize>>()
    });
    let is_carried = |place| typed.as_ref().is_some_and(|typed| !typed.contains(&place));
    noted.words.retain(|(column, ..)| !is_carried(*column));
    let fields = schema.fields().iter().enumerate().map(|(place, field)| match is_carried(place) {
        false => Arc::clone(field),
        true => Arc::new(Field::new(field.name(), DataType::Utf8, true)),
    });
    Ok(Schema::new(fields.collect::<Vec<_>>()))
}

/// Notes about a readable file, for users.
#[derive(Default)]
struct Noted {
    /// Columns of text that would be numbers without a few words; the record of the first word; the
    /// word.
    words: Vec<(usize, usize, String)>,
    /// The first record that repeats the column names.
    names: Option<usize>,
}

impl Noted {
    /// Returns the notes in words. `line` returns the line of a record.
    fn notes(&self, name: &str, schema: &Schema, line: impl Fn(usize) -> u64) -> Vec<String> {
        let words = self.words.iter().map(|(column, record, word)| {
            format!(
                "{name}: column '{}' is text, and is compared as text, because of {word:?} on line {}: nearly all of \
                 its first values are numbers",
                schema.field(*column).name(),
                line(*record)
            )
        });
        let names = self.names.map(|record| {
            format!(
                "{name}: line {} has the names of the columns again, and is a row",
                line(record)
            )
        });
        words.chain(names).collect()
    }
}

pub(super) fn reader(csv: &CsvOptions) -> Result<Reader, ArrowError> {
    // Reading reports rows of another length later, with the line.
    Ok(csv.format(true)?.with_truncated_rows(true))
}

/// Returns the columns of a later file, with the types of the first file or text.
fn like(names: &Schema, first: &Schema) -> Schema {
    let known = types_of(Some(first));
    let fields = names.fields().iter().map(|field| {
        let kind = known(field).filter(|kind| !kind.is_null()).unwrap_or(&DataType::Utf8);
        Field::new(field.name(), kind.clone(), true)
    });
    Schema::new(fields.collect::<Vec<_>>())
}

/// Returns the columns of a later file in a union by name. Columns of the first file have the types
/// of the first file.
fn with_types_of(first: &Schema, own: &Schema) -> Schema {
    let known = types_of(Some(first));
    let fields = own.fields().iter().map(|field| {
        let kind = known(field).filter(|kind| !kind.is_null()).unwrap_or(field.data_type());
        with_type(field, kind.clone())
    });
    Schema::new(fields.collect::<Vec<_>>())
}

/// Returns the columns of `named` that a file has.
fn only_of(named: &Schema, columns: &Schema) -> Schema {
    let columns = Places::of(columns.fields());
    let kept = named.fields().iter().filter(|field| columns.has(field.name()));
    Schema::new(kept.cloned().collect::<Vec<_>>())
}

/// Returns the columns of a file without rows, with types for the columns in `schema`.
fn header_only(origin: &Origin, names: &Schema, named: Option<&Schema>) -> Result<Schema> {
    named.map_or(Ok(()), |named| are_in_header(origin, names, named))?;
    let types = types_of(named);
    let fields = names.fields().iter().map(|field| {
        let kind = types(field).unwrap_or(&DataType::Null);
        Field::new(field.name(), kind.clone(), true)
    });
    Ok(Schema::new(fields.collect::<Vec<_>>()))
}

/// Refuses types without a text form in CSV.
fn nested(named: Option<&Schema>) -> Result<()> {
    let mut fields = named.into_iter().flat_map(|named| named.fields());
    match fields.find(|field| field.data_type().is_nested()) {
        Some(field) => Err(Error::usage(format!(
            "{}: column '{}' is a list or a struct, which CSV does not have",
            Setting::Schema,
            field.name()
        ))),
        None => Ok(()),
    }
}

fn are_in_header(origin: &Origin, header: &Schema, named: &Schema) -> Result<()> {
    let header = Places::of(header.fields());
    match named.fields().iter().find(|field| !header.has(field.name())) {
        None => Ok(()),
        Some(field) => Err(Error::usage(format!(
            "`schema`: column '{}' is not in the header of {}",
            field.name(),
            origin.name()
        ))),
    }
}

/// Returns the columns of the first file, with the types in `schema` or inferred types.
fn first_file(
    origin: &Origin,
    csv: &CsvOptions,
    text: &[u8],
    inferred: Schema,
    named: Option<&Schema>,
    noted: &mut Noted,
) -> Result<Schema> {
    if let Some(named) = named {
        if !csv.has_header {
            if named.fields().len() != inferred.fields().len() {
                return Err(origin.error(format!(
                    "its rows have {} fields, but `schema` names {}; name them all, in order",
                    inferred.fields().len(),
                    named.fields().len()
                )));
            }
            return Ok(named.clone());
        }
        are_in_header(origin, &inferred, named)?;
    }
    let (seen, names) = look_at_values(csv, text, &inferred);
    noted.names = names;
    let types = types_of(named);
    let fields = inferred.fields().iter().enumerate().map(|(column, field)| {
        let named = types(field);
        let kind = match (named, field.data_type()) {
            (Some(named), _) => named.clone(),
            (None, DataType::Null) => DataType::Utf8,
            (None, DataType::Int64 | DataType::Float64) if seen[column].padded => DataType::Utf8,
            // A point is no part of a number with a decimal comma.
            (None, DataType::Float64) if csv.decimal_comma => DataType::Utf8,
            (None, DataType::Float64) => seen[column].fractions(),
            (None, DataType::Utf8) if csv.decimal_comma && seen[column].has_commas() => {
                seen[column].fractions()
            }
            (None, DataType::Utf8) => seen[column].numbers().unwrap_or(DataType::Utf8),
            (None, DataType::Timestamp(unit, _)) => match &seen[column] {
                Seen { offsets: true, local: true, .. } => DataType::Utf8,
                &Seen { offsets, .. } => {
                    let unit = match unit {
                        TimeUnit::Nanosecond => TimeUnit::Nanosecond,
                        _ => TimeUnit::Microsecond,
                    };
                    DataType::Timestamp(unit, offsets.then(|| "UTC".into()))
                }
            },
            (None, inferred) => inferred.clone(),
        };
        if let (None, DataType::Utf8, Some((record, word))) =
            (named, &kind, seen[column].odd_word())
        {
            noted.words.push((column, *record, word.clone()));
        }
        Field::new(field.name(), kind, true)
    });
    Ok(Schema::new(fields.collect::<Vec<_>>()))
}

/// Returns the error for a sample that is valid UTF-8 up to the end of `valid`. The header starts
/// at `first`.
fn not_utf8(origin: &Origin, csv: &CsvOptions, valid: &[u8], first: usize) -> Error {
    let (mut line, mut field, mut quoted) = (1 + newlines(&valid[..first]), 1, false);
    let header_line = line;
    for &byte in &valid[first..] {
        match byte {
            byte if csv.quote == Some(byte) => quoted = !quoted,
            b'\n' => (line, field) = (line + 1, if quoted { field } else { 1 }),
            byte if byte == csv.separator() && !quoted => field += 1,
            _ => {}
        }
    }
    let header = valid[first..].split(|byte| *byte == b'\n').next();
    let header = header.filter(|_| line > header_line && csv.has_header);
    let names = header.and_then(|header| {
        reader(csv).and_then(|reader| reader.infer_schema(header, Some(0))).ok()
    });
    let column = match names.as_ref().and_then(|(names, _)| names.fields().get(field - 1)) {
        Some(name) => format!("column '{}'", name.name()),
        None => format!("field {field}"),
    };
    origin.error(format!(
        "line {line}: {column} is not valid UTF-8; name its encoding with {}",
        Setting::Charset
    ))
}
