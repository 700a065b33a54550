//! Numeric sort keys for text: `1000000` sorts after `999999`, and `0/10000000` after `0/FFFFFFF`.
//!
//! ```text
//!  seq:number   "999999", "1000000"  --forms-->  a column of numbers behind all others, which the order is by
//!  at           "10:00:00.5", ...    --looks-->  nothing, or the job is refused once all rows have passed
//! ```

mod forms;
mod looks;

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Decimal256Type, DecimalType};
use arrow_array::{ArrayRef, BinaryArray, Decimal256Array, RecordBatch, StringArray, UInt64Array};
use arrow_cast::cast;
use arrow_schema::{DataType, Field, SchemaRef};
use windrow::SortColumn as Column;

use self::forms::{DIGITS, FRACTION, hex, lsn, number, time, uuid_time};
use self::looks::Plain;
use super::said::misfit;
use crate::columns::TextAs;
use crate::derived::OWN;
use crate::equality::plain_type;
use crate::error::{Error, Result};
use crate::names::{Places, extended};
use crate::settings::{Preset, Setting};

/// The text columns of an order that need another order than text.
pub(crate) struct Ranks {
    /// The schema of the record batches returned by [`apply`](Self::apply): columns of numbers
    /// follow all other columns.
    pub(crate) schema: SchemaRef,
    read: Vec<Read>,
    plain: Vec<Plain>,
}

/// A text column whose numbers are appended as a column of their own.
struct Read {
    column: usize,
    name: String,
    text: TextAs,
}

impl Ranks {
    /// Replaces text columns in `order_by` by columns of numbers, where `said` or the format
    /// declares a text's meaning. Converts `as_of`, a value of the first column, accordingly.
    pub(crate) fn bind(
        schema: &SchemaRef,
        preset: Option<Preset>,
        order_by: &mut [Column],
        said: &[(String, TextAs)],
        as_of: Option<&mut String>,
    ) -> Result<Self> {
        let (mut fields, mut read, mut plain) = (Vec::new(), Vec::new(), Vec::new());
        let mut first = None;
        let places = Places::of(schema.fields());
        for (place, column) in order_by.iter_mut().enumerate() {
            let Some(index) = places.first(&column.name) else { continue };
            let name = column.name.clone();
            let kind = schema.field(index).data_type();
            let said = said.iter().find(|(other, _)| *other == name).map(|(_, text)| *text);
            if !plain_type(kind).is_string() {
                if let Some(text) = said.filter(|text| !text.takes(kind)) {
                    return Err(Error::usage(format!(
                        "column {name:?} is {kind}, which is not ordered as {text}; leave that out"
                    ))
                    .of(Setting::OrderBy));
                }
                continue;
            }
            let text = match said.or_else(|| known(preset, &name)) {
                None if is_gtid_column(&name) => return Err(gtids(&name)),
                None => {
                    let column = Plain::new(index, name);
                    if let Some(as_of) = as_of.as_deref().filter(|_| place == 0) {
                        column.look_at(as_of);
                    }
                    plain.push(column);
                    continue;
                }
                Some(TextAs::Text) => continue,
                Some(text) => text,
            };
            column.name = format!("{OWN}{}_{name}", read.len());
            let kind = match text {
                TextAs::Lsn => DataType::UInt64,
                TextAs::Hex | TextAs::UuidTime => DataType::Binary,
                TextAs::Number | TextAs::Time | TextAs::Text => {
                    DataType::Decimal256(DIGITS, FRACTION)
                }
            };
            fields.push(Field::new(&column.name, kind, true));
            if place == 0 {
                first = Some(text);
            }
            read.push(Read { column: index, name, text });
        }
        if let (Some(as_of), Some(text)) = (as_of, first) {
            let fault = |what| Error::usage(format!("{}: {as_of:?} {what}", Setting::AsOf));
            let number = match text {
                TextAs::Lsn => lsn(as_of).map(|number| number.to_string()),
                TextAs::Time => time(as_of)
                    .map(|time| Decimal256Type::format_decimal(time.seconds(), DIGITS, FRACTION)),
                TextAs::Hex | TextAs::UuidTime => {
                    return Err(fault(format!(
                        "cannot be compared to a column that is ordered as {text}"
                    )));
                }
                TextAs::Number | TextAs::Text => number(as_of).map(|_| as_of.trim().to_owned()),
            };
            *as_of = number.ok_or_else(|| fault(format!("is no {}", text.example())))?;
        }
        Ok(Self { schema: extended(schema, fields), read, plain })
    }

    /// Returns true if the order has text columns without a declared meaning.
    pub(crate) fn are_unsure(&self) -> bool {
        !self.plain.is_empty()
    }

    /// Returns true if `apply` has anything to do.
    pub(crate) fn do_anything(&self) -> bool {
        self.are_unsure() || !self.read.is_empty()
    }

    /// Appends the columns of numbers. `row` maps a row of the batch to its number in the input.
    pub(crate) fn apply(
        &self,
        batch: RecordBatch,
        row: impl Fn(usize) -> u64,
    ) -> Result<RecordBatch> {
        for plain in &self.plain {
            plain.look(batch.column(plain.column), &row)?;
        }
        if self.read.is_empty() {
            return Ok(batch);
        }
        let mut columns = batch.columns().to_vec();
        for read in &self.read {
            columns.push(read.numbers(batch.column(read.column), &row)?);
        }
        RecordBatch::try_new(self.schema.clone(), columns).map_err(misfit)
    }

    /// Returns an error if all rows of a text column looked like values with another order.
    pub(crate) fn check(&self) -> Result<()> {
        self.plain.iter().try_for_each(Plain::check)
    }
}

impl Read {
    fn numbers(&self, column: &ArrayRef, row: impl Fn(usize) -> u64) -> Result<ArrayRef> {
        let text = cast(column, &DataType::Utf8).map_err(misfit)?;
        let fault = |i: usize, text: &str| {
            let what = format!("holds {text:?}, which is no {}", self.text.example());
            Error::of_value(row(i), &self.name, what)
        };
        let text = text.as_string::<i32>();
        Ok(match self.text {
            TextAs::Lsn => Arc::new(read::<UInt64Array, _>(text, lsn, fault)?),
            TextAs::Hex => Arc::new(read::<BinaryArray, _>(text, hex, fault)?),
            TextAs::UuidTime => Arc::new(read::<BinaryArray, _>(text, uuid_time, fault)?),
            TextAs::Time | TextAs::Number | TextAs::Text => {
                let numbers: Decimal256Array = match self.text {
                    TextAs::Time => read(text, |text| Some(time(text)?.seconds()), fault)?,
                    _ => read(text, number, fault)?,
                };
                Arc::new(numbers.with_precision_and_scale(DIGITS, FRACTION).map_err(misfit)?)
            }
        })
    }
}

/// Reads the values of a column of text; CSV writes null as empty text.
fn read<A: FromIterator<Option<T>>, T>(
    column: &StringArray,
    parse: impl Fn(&str) -> Option<T>,
    fault: impl Fn(usize, &str) -> Error,
) -> Result<A> {
    let mut first = None;
    // An iterator of known length, so that the values are allocated once.
    let values = column.iter().enumerate().map(|(i, text)| {
        let text = text.filter(|text| !text.trim().is_empty())?;
        let value = parse(text);
        if value.is_none() {
            first.get_or_insert_with(|| fault(i, text));
        }
        value
    });
    let values = values.collect();
    first.map_or(Ok(values), Err)
}

/// Returns the meaning of a text column as documented by the format.
fn known(preset: Option<Preset>, name: &str) -> Option<TextAs> {
    // BigQuery's storage API defines this column, whatever the producer.
    if name.eq_ignore_ascii_case("_CHANGE_SEQUENCE_NUMBER") {
        return Some(TextAs::Hex);
    }
    let known = match preset? {
        Preset::Wal2json => return matches!(name, "lsn" | "nextlsn").then_some(TextAs::Lsn),
        Preset::Debezium => {
            let of_source = name.strip_prefix("source.").or_else(|| name.strip_prefix("__source_"));
            matches!(of_source.or_else(|| name.strip_prefix("__")), Some("scn" | "commit_scn"))
        }
        Preset::Dms => name.eq_ignore_ascii_case("AR_H_CHANGE_SEQ"),
        Preset::Qlik => matches!(name, "header__change_seq" | "header__changeSequence"),
        Preset::Hudi => name == "_hoodie_commit_time",
        Preset::GoldenGate => name == "pos",
        Preset::Cockroach => matches!(name, "updated" | "mvcc_timestamp"),
        _ => false,
    };
    known.then_some(TextAs::Number)
}

fn is_gtid_column(name: &str) -> bool {
    let last = name.rsplit(['.', '_']).next().unwrap_or(name);
    matches!(last.to_ascii_lowercase().as_str(), "gtid" | "gtids")
}

fn gtids(name: &str) -> Error {
    Error::usage(format!(
        "column {name:?} holds GTIDs, which are sets and have no order; order by the position in the \
         binlog (source.file and source.pos), or by the input's order alone"
    ))
    .of(Setting::OrderBy)
    .in_column(name)
}

impl TextAs {
    /// Returns true if a column of `kind`, which is no text, has that order anyway.
    fn takes(self, kind: &DataType) -> bool {
        match self {
            Self::Number => kind.is_numeric() || kind.is_null(),
            Self::Lsn => kind.is_integer() || kind.is_null(),
            Self::Time => kind.is_temporal() || kind.is_null(),
            Self::Hex | Self::UuidTime => kind.is_null(),
            Self::Text => kind.is_null(),
        }
    }

    fn example(self) -> String {
        let example = match self {
            Self::Lsn => "log sequence number such as 16/B374D848",
            Self::Time => "time such as 2026-01-31T12:00:00.5Z, 2026-01-31 12:00 or 2026-01-31",
            Self::Hex => {
                "hexadecimal number such as 1B374D84800/10, of at most 4 sections of 32 digits"
            }
            Self::UuidTime => "UUID of version 1",
            Self::Number | Self::Text => {
                let whole = i16::from(DIGITS) - i16::from(FRACTION);
                return format!(
                    "number such as 1000000 or 1.5, of at most {whole} digits, and {FRACTION} behind the point"
                );
            }
        };
        example.to_owned()
    }
}
