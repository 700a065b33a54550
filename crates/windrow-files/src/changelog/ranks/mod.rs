//! What the text in `order_by` stands for, where bytes have another order: `1000000` is behind `999999`, and
//! `0/10000000` behind `0/FFFFFFF`.
//!
//! A column that is read as numbers gets one of our own beside it with these, and the order is by that. Of text
//! that nobody said anything about, what all values look like is looked at while rows pass: where that has another
//! order than its bytes, the job is refused.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use arrow_array::builder::{Decimal256Builder, UInt64Builder};
use arrow_array::cast::AsArray;
use arrow_array::types::Decimal256Type;
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_buffer::i256;
use arrow_cast::cast;
use arrow_cast::parse::parse_decimal;
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use windrow::SortColumn as Column;

use super::misfit;
use crate::columns::TextAs;
use crate::derived::OWN;
use crate::error::{Error, Result};
use crate::preset::Preset;
use crate::setting::Setting;

/// Digits of numbers, and those of them behind the point.
const DIGITS: u8 = 76;
const FRACTION: i8 = 20;

/// The columns of an order whose text stands for something else.
pub(crate) struct Ranks {
    schema: SchemaRef,
    read: Vec<Read>,
    plain: Vec<Plain>,
}

/// A column of text, the numbers of which are the column behind all others.
struct Read {
    column: usize,
    name: String,
    text: TextAs,
}

/// A column of text that is ordered by its bytes.
struct Plain {
    column: usize,
    name: String,
    /// What its values are, of [`Looks`], so far.
    seen: AtomicU8,
}

impl Ranks {
    /// Puts columns of numbers in the place of those of text in `order_by`, where `said` or the format tells so.
    /// `as_of`, a value of the first of them, becomes one of its numbers.
    pub(crate) fn bind(
        schema: &SchemaRef,
        preset: Option<Preset>,
        order_by: &mut [Column],
        said: &[(String, TextAs)],
        as_of: Option<&mut String>,
    ) -> Result<Self> {
        let mut fields: Vec<Arc<Field>> = schema.fields().iter().cloned().collect();
        let (mut read, mut plain) = (Vec::new(), Vec::new());
        let mut first = None;
        for (place, column) in order_by.iter_mut().enumerate() {
            let Ok(index) = schema.index_of(&column.name) else { continue };
            let name = column.name.clone();
            let kind = schema.field(index).data_type();
            let said = said.iter().find(|(other, _)| *other == name).map(|(_, text)| *text);
            if !is_text(kind) {
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
                    plain.push(Plain { column: index, name, seen: AtomicU8::new(0) });
                    continue;
                }
                Some(TextAs::Text) => continue,
                Some(text) => text,
            };
            column.name = format!("{OWN}{}_{name}", read.len());
            let kind = match text {
                TextAs::Lsn => DataType::UInt64,
                _ => DataType::Decimal256(DIGITS, FRACTION),
            };
            fields.push(Arc::new(Field::new(&column.name, kind, true)));
            if place == 0 {
                first = Some(text);
            }
            read.push(Read { column: index, name, text });
        }
        if let (Some(as_of), Some(text)) = (as_of, first) {
            let number = match text {
                TextAs::Lsn => lsn(as_of).map(|number| number.to_string()),
                _ => number(as_of).map(|_| as_of.trim().to_owned()),
            };
            *as_of = number.ok_or_else(|| {
                Error::usage(format!("{}: {as_of:?} is no {}", Setting::AsOf, text.example()))
            })?;
        }
        let schema = Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()));
        Ok(Self { schema, read, plain })
    }

    /// The schema of what [`apply`](Self::apply) returns: numbers stand behind all other columns.
    pub(crate) fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Whether there is text of which nobody said what it stands for.
    pub(crate) fn are_unsure(&self) -> bool {
        !self.plain.is_empty()
    }

    /// Whether anything is to be done with rows.
    pub(crate) fn do_anything(&self) -> bool {
        self.are_unsure() || !self.read.is_empty()
    }

    /// Adds the numbers. `row` says which row of the input one of the record batch is.
    pub(crate) fn apply(
        &self,
        batch: RecordBatch,
        row: impl Fn(usize) -> u64,
    ) -> Result<RecordBatch> {
        for plain in &self.plain {
            plain.look(batch.column(plain.column))?;
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

    /// Refuses text that looked like something that has another order, in all rows that passed.
    pub(crate) fn check(&self) -> Result<()> {
        self.plain.iter().try_for_each(Plain::check)
    }
}

impl Read {
    fn numbers(&self, column: &ArrayRef, row: impl Fn(usize) -> u64) -> Result<ArrayRef> {
        let text = cast(column, &DataType::Utf8).map_err(misfit)?;
        let values = || text.as_string::<i32>().iter().enumerate();
        let fault = |i: usize, text: &str| {
            let (row, name) = (row(i), &self.name);
            Error::data(format!(
                "row {row}: column {name:?} holds {text:?}, which is no {}",
                self.text.example()
            ))
            .at_row(row)
            .in_column(name)
        };
        // CSV has nothing where it has a null.
        let given = |text: Option<&'_ str>| text.is_some_and(|text| !text.trim().is_empty());
        if self.text == TextAs::Lsn {
            let mut numbers = UInt64Builder::with_capacity(text.len());
            for (i, text) in values() {
                let text = text.filter(|text| given(Some(*text)));
                let parsed = text.map(|text| lsn(text).ok_or_else(|| fault(i, text)));
                numbers.append_option(parsed.transpose()?);
            }
            return Ok(Arc::new(numbers.finish()));
        }
        let mut numbers = Decimal256Builder::with_capacity(text.len());
        for (i, text) in values() {
            let text = text.filter(|text| given(Some(*text)));
            let parsed = text.map(|text| number(text).ok_or_else(|| fault(i, text)));
            numbers.append_option(parsed.transpose()?);
        }
        let numbers = numbers.finish().with_precision_and_scale(DIGITS, FRACTION);
        Ok(Arc::new(numbers.map_err(misfit)?))
    }
}

/// What a value looks like.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Looks {
    Text = 1,
    Number = 2,
    Lsn = 4,
    Gtids = 8,
    Position = 16,
}

impl Looks {
    fn of(value: &str) -> Option<Self> {
        let value = value.trim();
        if value.is_empty() {
            return None;
        }
        let digits =
            |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        Some(if number(value).is_some() {
            Self::Number
        } else if lsn(value).is_some() {
            Self::Lsn
        } else if value.split(',').all(is_gtid) {
            Self::Gtids
        } else if value.rsplit_once(':').is_some_and(|(file, place)| {
            digits(place) && file.rsplit_once('.').is_some_and(|(_, number)| digits(number))
        }) {
            Self::Position
        } else {
            Self::Text
        })
    }
}

impl Plain {
    fn look(&self, column: &ArrayRef) -> Result<()> {
        let mut seen = self.seen.load(Ordering::Relaxed);
        if seen & Looks::Text as u8 != 0 {
            return Ok(());
        }
        let text = cast(column, &DataType::Utf8).map_err(misfit)?;
        for value in text.as_string::<i32>().iter().flatten() {
            seen |= Looks::of(value).map_or(0, |looks| looks as u8);
            if seen & Looks::Text as u8 != 0 {
                break;
            }
        }
        self.seen.fetch_or(seen, Ordering::Relaxed);
        Ok(())
    }

    fn check(&self) -> Result<()> {
        let name = &self.name;
        let seen = self.seen.load(Ordering::Relaxed);
        let what = if seen == Looks::Number as u8 {
            format!(
                "holds numbers as text; say {name}:number, or {name}:text for the order of bytes"
            )
        } else if seen == Looks::Lsn as u8 {
            format!(
                "holds log sequence numbers as text; say {name}:lsn, or {name}:text for the order of bytes"
            )
        } else if seen == Looks::Gtids as u8 {
            return Err(gtids(name));
        } else if seen == Looks::Position as u8 {
            format!(
                "holds files and positions as text, where position 1000 is before 999; order by \
                 columns of their own, or say {name}:text for the order of bytes"
            )
        } else {
            return Ok(());
        };
        Err(Error::usage(format!("column {name:?} {what}")).of(Setting::OrderBy).in_column(name))
    }
}

/// The columns of which a format's documentation says what their text is.
fn known(preset: Option<Preset>, name: &str) -> Option<TextAs> {
    let known = match preset? {
        Preset::Wal2json => return matches!(name, "lsn" | "nextlsn").then_some(TextAs::Lsn),
        Preset::Debezium => {
            let of_source = name.strip_prefix("source.").or_else(|| name.strip_prefix("__source_"));
            matches!(of_source.or_else(|| name.strip_prefix("__")), Some("scn" | "commit_scn"))
        }
        Preset::Dms => name.eq_ignore_ascii_case("AR_H_CHANGE_SEQ"),
        Preset::Qlik => matches!(name, "header__change_seq" | "header__changeSequence"),
        Preset::Hudi => name == "_hoodie_commit_time",
        _ => false,
    };
    known.then_some(TextAs::Number)
}

fn is_gtid_column(name: &str) -> bool {
    let last = name.rsplit(['.', '_']).next().unwrap_or(name);
    matches!(last.to_ascii_lowercase().as_str(), "gtid" | "gtids")
}

/// `UUID:1-5:7`, one of a set.
fn is_gtid(text: &str) -> bool {
    let Some((uuid, intervals)) = text.trim().split_once(':') else { return false };
    uuid.len() == 36
        && uuid.bytes().all(|byte| byte == b'-' || byte.is_ascii_hexdigit())
        && intervals.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'-' | b':'))
}

fn gtids(name: &str) -> Error {
    Error::usage(format!(
        "column {name:?} holds GTIDs, which are sets and have no order; order by the position in the \
         binlog (source.file and source.pos), or by the input's order alone"
    ))
    .of(Setting::OrderBy)
    .in_column(name)
}

fn is_text(kind: &DataType) -> bool {
    match kind {
        DataType::Dictionary(_, values) => is_text(values),
        DataType::RunEndEncoded(_, values) => is_text(values.data_type()),
        kind => kind.is_string(),
    }
}

impl TextAs {
    /// Whether a column of `kind`, which is no text, has that order anyway.
    fn takes(self, kind: &DataType) -> bool {
        match self {
            Self::Number => kind.is_numeric() || kind.is_null(),
            Self::Lsn => kind.is_integer() || kind.is_null(),
            Self::Text => kind.is_null(),
        }
    }

    fn example(self) -> String {
        match self {
            Self::Lsn => "log sequence number such as 16/B374D848".to_owned(),
            _ => {
                let whole = i16::from(DIGITS) - i16::from(FRACTION);
                format!(
                    "number such as 1000000 or 1.5, of at most {whole} digits, and {FRACTION} behind the point"
                )
            }
        }
    }
}

/// The number that the text stands for, exactly.
fn number(text: &str) -> Option<i256> {
    let text = text.trim();
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, "0"));
    let are_digits =
        |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !are_digits(whole) || !are_digits(fraction) {
        return None;
    }
    let whole = whole.trim_start_matches('0');
    let fraction = fraction.trim_end_matches('0');
    if whole.len() + FRACTION as usize > usize::from(DIGITS) || fraction.len() > FRACTION as usize {
        return None;
    }
    let sign = if text.starts_with('-') { "-" } else { "" };
    let plain = format!("{sign}{}.{fraction:0<1}", if whole.is_empty() { "0" } else { whole });
    parse_decimal::<Decimal256Type>(&plain, DIGITS, FRACTION).ok()
}

/// PostgreSQL's log sequence number that the text stands for: two hexadecimal halves of 32 bits.
fn lsn(text: &str) -> Option<u64> {
    let half = |text: &str| {
        let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        if digits { u32::from_str_radix(text, 16).ok() } else { None }
    };
    let (high, low) = text.trim().split_once('/')?;
    Some(u64::from(half(high)?) << 32 | u64::from(half(low)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn log_sequence_numbers_read_as_postgresql_writes_them() {
        assert_eq!(lsn("16/B374D848"), Some(0x16_B374_D848));
        assert_eq!(lsn("0/0"), Some(0));
        assert_eq!(lsn("ffffffff/FFFFFFFF"), Some(u64::MAX));
        for text in ["", "/", "1", "1/", "/1", "1/2/3", "g/1", "+1/1", "100000000/0"] {
            assert_eq!(lsn(text), None, "{text}");
        }
    }

    #[test]
    fn numbers_keep_all_their_digits() {
        let ascending = ["-1000000", "-9.5", "-0.5", "0", "0.00000000000000000001", "007", "9.75"];
        let large = ["999999", "1000000", "20120505165304080000000000000000065", &"9".repeat(56)];
        let numbers: Vec<_> =
            ascending.iter().chain(&large).map(|text| number(text).expect(text)).collect();
        assert!(numbers.is_sorted());
        assert_eq!(number("+1.50"), number("1.5"));
        let long = "9".repeat(57);
        for text in ["", "-", ".", "1.", ".5", "1e5", "1_000", "0x1", "NaN", "1,5", &long] {
            assert_eq!(number(text), None, "{text}");
        }
        assert_eq!(number("0.000000000000000000001"), None, "a digit would be lost");
    }

    #[test]
    fn text_looks_like_what_it_is() {
        let uuid = "3e11fa47-71ca-11e1-9e33-c80aa9429562";
        for (text, looks) in [
            ("12", Some(Looks::Number)),
            ("1.5", Some(Looks::Number)),
            ("0/16B2D80", Some(Looks::Lsn)),
            (&format!("{uuid}:1-5,\n{uuid}:7"), Some(Looks::Gtids)),
            ("master.000006:800911", Some(Looks::Position)),
            ("2026-01-31", Some(Looks::Text)),
            ("12:30", Some(Looks::Text)),
            ("0000002b:000003f8:0003", Some(Looks::Text)),
            (" ", None),
        ] {
            assert!(Looks::of(text) == looks, "{text}");
        }
    }
}
