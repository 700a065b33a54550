//! CSV: the columns of a file, from its header, a sample of its rows and `schema`.
//!
//! The types of the first file stand for all; of the others only the header is looked at. An empty
//! field is null. Inference is that of arrow, but for types that would lose data:
//!
//! 1. A column without a value in the sample would be `Null`, whose later values vanish: it is text. Of a
//!    file that is a header and no more, it is `Null`, and the next file tells the type.
//! 2. Timestamps would get the coarsest unit that the sample allows, so that finer ones were refused
//!    later: they are of microseconds, or of nanoseconds. If they have offsets from UTC they are in
//!    UTC; if some have them and others do not, they are text.
//! 3. Integers beyond 64 bits would be text, which has another order: they are decimals, or integers
//!    without a sign.
//! 4. Fractions of more digits than a float keeps would be rounded: they are decimals, or, with exponents, an error.
//! 5. Numbers with leading zeros (postal codes) would come out without them: they are text.
//!
//! Columns that nothing compares are text as it stands, if that is what is written of them
//! ([`ReadOptions::carried_as_text`]).
//!
//! A value behind the sample that is none of its column's type by these rules is an error (see
//! [`exact`](super::exact)).

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

use arrow_csv::reader::Format as Reader;
use arrow_schema::ArrowError;
use arrow_schema::{DataType, Field, Schema, TimeUnit};

use memchr::memchr_iter;

use crate::error::{Error, Result};
use crate::names::Places;
use crate::paths::Paths;
use crate::setting::Setting;

use super::blocks::newlines;
use super::dialect::{Columns, Dialect};
use super::exact::{all_named, has_offset, is_a_float, is_padded};
use super::filter::Filter;
use super::origin::Origin;
use super::text::{TextFile, line_bytes, longest_line, rest_of_line};
use super::{CsvOptions, Opened, ReadOptions, SAMPLE_BYTES, sniff};

/// Rows of the sample that are looked at.
const SAMPLE_ROWS: usize = 10_000;
/// What a column takes while its type is looked for, and in a job.
const COLUMN_BYTES: u64 = 2 << 10;
const JOB_BYTES: u64 = 6 << 10;
/// Values of them that are there at a time: the parser has eight bytes for each.
const SAMPLE_CELLS: usize = 1 << 18;

/// Reads the header and a sample of `origin`. `reference` is the schema of the first input, if this
/// is not it.
pub(super) fn open(
    origin: Origin,
    path: Option<&Path>,
    options: &ReadOptions,
    reference: Option<&Schema>,
) -> Result<Opened> {
    let mut sample = origin.head(SAMPLE_BYTES)?;
    let known = options.csv.clone().known_of(path);
    if sample.len() == SAMPLE_BYTES && newlines(&sample) < 2 + known.skip_lines as u64 {
        // A header and a part of a row tell no types.
        sample = origin.head(SAMPLE_BYTES + rest_of_line(&origin, &sample))?;
    }
    let cut = sample.len() >= SAMPLE_BYTES;
    let csv = sniff::told(known, &sample, !cut);
    let text = sniff::behind_lines(whole_lines(&sample, cut), csv.skip_lines);
    let first = sample.len() - sniff::behind_lines(&sample, csv.skip_lines).len();
    if cut && first == sample.len() {
        return Err(origin.error(format!(
            "the lines that {} leaves out are more than {SAMPLE_BYTES} bytes",
            Setting::CsvSkipLines
        )));
    }
    nested(options.schema.as_deref())?;
    let first_line = text.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let columns = 1 + memchr_iter(csv.separator(), first_line).count() as u64;
    let (bytes, later) = (columns * COLUMN_BYTES, columns * JOB_BYTES);
    options.ceiling.admit(bytes, later, origin.name(), "the names of its columns")?;
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
    let schema = match reference {
        // Without a header there are no columns, and no rows.
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
            let own = |inferred: Schema| match seen {
                0 => header_only(&origin, &inferred, named.as_ref()),
                _ => first_file(&origin, &csv, text, inferred, named.as_ref())
                    .map(|schema| carried(schema, named.as_ref(), options)),
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
    let line_bytes = line_bytes(&origin, &sample, first + header);
    let longest = longest_line(&origin, &sample);
    let file = TextFile {
        origin: Arc::new(origin),
        dialect: Dialect::Csv(csv),
        columns: Columns { schema: Arc::new(schema), named: options.schema.clone() },
        line_bytes,
        longest,
        lacks: lacks.then_some("the file is empty; CSV starts with a line that names the columns"),
    };
    Ok(file.opened(options.batch_rows.max(1)))
}

/// The columns of a file of which those are text that nothing compares, where they are carried.
fn carried(schema: Schema, named: Option<&Schema>, options: &ReadOptions) -> Schema {
    let Some(compared) = &options.compared else { return schema };
    let filtered = options.filter.iter().flat_map(Filter::columns);
    let compared = compared.iter().map(String::as_str).chain(filtered);
    let (paths, named) = (Paths::of(&schema), all_named(named));
    let typed: HashSet<usize> =
        compared.filter_map(|name| paths.find(name)?.first().copied()).collect();
    let of_log = |name: &str| options.op_preset.is_some_and(|preset| preset.reads(name));
    let fields = schema.fields().iter().enumerate().map(|(place, field)| {
        let keeps = typed.contains(&place) || named.has(field.name()) || of_log(field.name());
        if keeps {
            Arc::clone(field)
        } else {
            Arc::new(Field::new(field.name(), DataType::Utf8, true))
        }
    });
    Schema::new(fields.collect::<Vec<_>>())
}

fn reader(csv: &CsvOptions) -> Result<Reader, ArrowError> {
    // Rows of another length are told with their line when they are read.
    Ok(csv.format(true)?.with_truncated_rows(true))
}

/// `sample` without the line that was cut off, if it was.
fn whole_lines(sample: &[u8], cut: bool) -> &[u8] {
    match sample.iter().rposition(|byte| *byte == b'\n') {
        Some(end) if cut => &sample[..=end],
        _ => sample,
    }
}

/// The columns of a later file, with the types of the first where it has them.
fn like(names: &Schema, first: &Schema) -> Schema {
    let known = Places::of(first.fields());
    let fields = names.fields().iter().map(|field| {
        let kind = known.first(field.name()).map(|place| first.field(place).data_type());
        let kind = kind.filter(|kind| !kind.is_null()).unwrap_or(&DataType::Utf8);
        Field::new(field.name(), kind.clone(), true)
    });
    Schema::new(fields.collect::<Vec<_>>())
}

/// The columns of a later file that may have others than the first, with the types of the first where it has them.
fn with_types_of(first: &Schema, own: &Schema) -> Schema {
    let known = Places::of(first.fields());
    let fields = own.fields().iter().map(|field| {
        let known = known.first(field.name()).map(|place| first.field(place).data_type());
        match known.filter(|kind| !kind.is_null()) {
            Some(kind) => Field::clone(field).with_data_type(kind.clone()),
            None => Field::clone(field),
        }
    });
    Schema::new(fields.collect::<Vec<_>>())
}

/// Those of `named` that a file has.
fn only_of(named: &Schema, columns: &Schema) -> Schema {
    let columns = Places::of(columns.fields());
    let kept = named.fields().iter().filter(|field| columns.has(field.name()));
    Schema::new(kept.cloned().collect::<Vec<_>>())
}

/// The columns of a file without rows: those that `schema` names have types.
fn header_only(origin: &Origin, names: &Schema, named: Option<&Schema>) -> Result<Schema> {
    named.map_or(Ok(()), |named| are_in_header(origin, names, named))?;
    let types = types_of(named);
    let fields = names.fields().iter().map(|field| {
        let kind = types(field).unwrap_or(&DataType::Null);
        Field::new(field.name(), kind.clone(), true)
    });
    Ok(Schema::new(fields.collect::<Vec<_>>()))
}

/// The types that `schema` gives to columns.
fn types_of<'a>(named: Option<&'a Schema>) -> impl Fn(&Field) -> Option<&'a DataType> {
    let places = all_named(named);
    move |field| {
        named.zip(places.first(field.name())).map(|(named, at)| named.field(at).data_type())
    }
}

/// Refuses types that CSV has no text for.
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

/// The columns of the first file: inferred, unless `schema` names them.
fn first_file(
    origin: &Origin,
    csv: &CsvOptions,
    text: &[u8],
    inferred: Schema,
    named: Option<&Schema>,
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
    let (seen, types) = (look_at_values(csv, text, &inferred), types_of(named));
    let fields = inferred.fields().iter().enumerate().map(|(column, field)| {
        let kind = match (types(field), field.data_type()) {
            (Some(named), _) => named.clone(),
            (None, DataType::Null) => DataType::Utf8,
            (None, DataType::Int64 | DataType::Float64) if seen[column].padded => DataType::Utf8,
            // A point is no part of a number.
            (None, DataType::Float64) if csv.decimal_comma => DataType::Utf8,
            (None, DataType::Float64) => seen[column].fractions(),
            (None, DataType::Utf8) if csv.decimal_comma && seen[column].has_commas() => {
                seen[column].fractions()
            }
            (None, DataType::Utf8) => seen[column].large_integers().unwrap_or(DataType::Utf8),
            (None, DataType::Timestamp(unit, _)) => match seen[column] {
                Seen { offsets: true, local: true, .. } => DataType::Utf8,
                Seen { offsets, .. } => {
                    let unit = match unit {
                        TimeUnit::Nanosecond => TimeUnit::Nanosecond,
                        _ => TimeUnit::Microsecond,
                    };
                    DataType::Timestamp(unit, offsets.then(|| "UTC".into()))
                }
            },
            (None, inferred) => inferred.clone(),
        };
        Field::new(field.name(), kind, true)
    });
    Ok(Schema::new(fields.collect::<Vec<_>>()))
}

/// What there is among the values of a column of the sample.
#[derive(Clone, Copy, Default)]
struct Seen {
    /// A value such as `007` or `00.5`.
    padded: bool,
    /// A time with an offset from UTC.
    offsets: bool,
    /// A value without one.
    local: bool,
    /// A value that is no integer.
    other: bool,
    /// An integer below zero, and one that 64 bits without a sign do not hold.
    negative: bool,
    beyond_u64: bool,
    /// The digits of the longest integer.
    digits: usize,
    /// A number with a comma, and a value that is none with or without it.
    comma: bool,
    no_number: bool,
    /// A number that no float prints as; a value that is no number; a number with an exponent; the most digits before and behind
    /// the point.
    rounded: bool,
    word: bool,
    exponent: bool,
    whole: usize,
    places: usize,
}

impl Seen {
    fn note(&mut self, value: &str) {
        let digits = value.strip_prefix('-').unwrap_or(value).as_bytes();
        let integer = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
        self.padded |= is_padded(value);
        self.other |= !integer;
        if integer {
            self.negative |= value.starts_with('-');
            self.digits = self.digits.max(digits.len());
            self.beyond_u64 |= digits.len() > 19 && value.parse::<u64>().is_err();
        }
        let of_numbers =
            |byte| matches!(byte, b'0'..=b'9' | b'.' | b',' | b'+' | b'-' | b'e' | b'E');
        let is_number =
            value.bytes().all(of_numbers) && value.replacen(',', ".", 1).parse::<f64>().is_ok();
        self.comma |= is_number && value.contains(',');
        self.no_number |= !is_number || value.contains('.');
        self.word |= !is_number;
        if is_number {
            let number = value.replacen(',', ".", 1);
            self.rounded |= !is_a_float(&number);
            let (whole, fraction) = number.split_once('.').unwrap_or((&number, ""));
            self.exponent |= number.bytes().any(|byte| byte.is_ascii_alphabetic());
            self.whole = self.whole.max(whole.trim_start_matches(['+', '-']).len());
            self.places = self.places.max(fraction.len());
        }
        match has_offset(value) {
            true => self.offsets = true,
            false => self.local = true,
        }
    }

    /// Whether all values are numbers with commas.
    fn has_commas(self) -> bool {
        self.comma && !self.no_number && !self.padded
    }

    /// The type of a column of numbers, some of which have fractions.
    fn fractions(self) -> DataType {
        match self {
            Self { rounded: false, .. } => DataType::Float64,
            Self { exponent: false, word: false, whole, places, .. } if whole + places <= 38 => {
                DataType::Decimal128(38, places as i8)
            }
            Self { exponent: false, word: false, whole, places, .. } if whole + places <= 76 => {
                DataType::Decimal256(76, places as i8)
            }
            // Text has another order: the first value that is no float is told.
            _ => DataType::Float64,
        }
    }

    /// The type of a column of nothing but integers, some of which are beyond 64 bits with a sign.
    fn large_integers(self) -> Option<DataType> {
        match self {
            Self { other: true, .. } | Self { padded: true, .. } | Self { digits: 0, .. } => None,
            Self { negative: false, beyond_u64: false, .. } => Some(DataType::UInt64),
            Self { digits: ..=38, .. } => Some(DataType::Decimal128(38, 0)),
            _ => None,
        }
    }
}

/// What the values of each column of the sample look like.
fn look_at_values(csv: &CsvOptions, text: &[u8], schema: &Schema) -> Vec<Seen> {
    let mut columns = vec![Seen::default(); schema.fields().len()];
    let fields = schema.fields().iter();
    let as_text = fields.map(|field| Field::new(field.name(), DataType::Utf8, true));
    let schema = Arc::new(Schema::new(as_text.collect::<Vec<_>>()));
    let batches = reader(csv).and_then(|reader| {
        let rows = (SAMPLE_CELLS / columns.len().max(1)).clamp(1, 1024);
        arrow_csv::ReaderBuilder::new(schema).with_format(reader).with_batch_size(rows).build(text)
    });
    // A fault in the sample is told when the file is read.
    for batch in batches.into_iter().flatten().map_while(Result::ok) {
        for (column, seen) in columns.iter_mut().enumerate() {
            let values = arrow_array::cast::AsArray::as_string::<i32>(batch.column(column));
            values.iter().flatten().for_each(|value| seen.note(value));
        }
    }
    columns
}

/// The error for a sample that is text as far as `valid`, and whose header stands at `first`.
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
