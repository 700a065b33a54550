//! Properties of CSV values in a sample of rows.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, StringArray};
use arrow_schema::{DataType, Field, Schema};

use crate::input::options::csv::CsvOptions;
use crate::input::text::exact::csv::trimmed;
use crate::input::text::exact::guess::is_padded;
use crate::input::text::exact::numbers::is_a_float;
use crate::input::text::exact::times::has_offset;

use super::reader;

/// Number of sample values parsed at a time; the parser takes eight bytes per value.
const SAMPLE_CELLS: usize = 1 << 18;

/// The byte order mark.
const MARK: char = '\u{feff}';

/// Properties of the values of a column in the sample.
#[derive(Clone, Default)]
pub(super) struct Seen {
    /// A value such as `007` or `00.5`.
    pub(super) padded: bool,
    /// A time with an offset from UTC.
    pub(super) offsets: bool,
    /// A value without an offset.
    pub(super) local: bool,
    /// A value other than an integer.
    other: bool,
    /// An integer below zero; an integer beyond unsigned 64 bits.
    negative: bool,
    beyond_u64: bool,
    /// Digits of the longest integer.
    digits: usize,
    /// A number with a comma; a value that is no number, or has a point.
    comma: bool,
    no_number: bool,
    /// A number that a float would round; a value other than a number; a number with an exponent;
    /// maximum digits before and after the point.
    rounded: bool,
    word: bool,
    exponent: bool,
    whole: usize,
    places: usize,
    /// A number with blanks around; an integer beyond signed 64 bits.
    blank: bool,
    beyond_i64: bool,
    /// Count of numbers; count of words (other values); record and text of the first word.
    numbers_seen: usize,
    words_seen: usize,
    first_word: Option<(usize, String)>,
}

/// Maximum words in a numeric column by mistake: this number, or one in this many values.
const FEW_WORDS: usize = 2;
const VALUES_A_WORD: usize = 100;

impl Seen {
    fn note(&mut self, value: &str, record: usize) {
        let given = value;
        let value = trimmed(value);
        let digits = value.strip_prefix('-').unwrap_or(value).as_bytes();
        let integer = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
        self.padded |= is_padded(value);
        self.other |= !integer;
        if integer {
            self.negative |= value.starts_with('-');
            self.digits = self.digits.max(digits.len());
            self.beyond_u64 |= digits.len() > 19 && value.parse::<u64>().is_err();
            self.beyond_i64 |= digits.len() > 18 && value.parse::<i64>().is_err();
        }
        let of_numbers =
            |byte| matches!(byte, b'0'..=b'9' | b'.' | b',' | b'+' | b'-' | b'e' | b'E');
        let is_number =
            value.bytes().all(of_numbers) && value.replacen(',', ".", 1).parse::<f64>().is_ok();
        self.comma |= is_number && value.contains(',');
        self.no_number |= !is_number || value.contains('.');
        self.word |= !is_number;
        self.blank |= is_number && value.len() < given.len();
        if !is_number {
            self.words_seen += 1;
            self.first_word.get_or_insert_with(|| (record, given.to_owned()));
        } else {
            self.numbers_seen += 1;
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

    /// Returns whether all values are numbers with commas.
    pub(super) fn has_commas(&self) -> bool {
        self.comma && !self.no_number && !self.padded
    }

    /// Returns the type of a numeric column with fractions.
    pub(super) fn fractions(&self) -> DataType {
        match *self {
            Self { rounded: false, .. } => DataType::Float64,
            Self { exponent: false, word: false, whole, places, .. } if whole + places <= 38 => {
                DataType::Decimal128(38, places as i8)
            }
            Self { exponent: false, word: false, whole, places, .. } if whole + places <= 76 => {
                DataType::Decimal256(76, places as i8)
            }
            // Text has another order. Reading reports the first value that is no float.
            _ => DataType::Float64,
        }
    }

    /// Returns the type of a column of only numbers that arrow infers as text.
    pub(super) fn numbers(&self) -> Option<DataType> {
        match self {
            Self { blank: true, word: true, .. } | Self { blank: true, padded: true, .. } => None,
            Self { blank: true, other: false, beyond_i64: false, .. } => Some(DataType::Int64),
            Self { blank: true, other: true, comma: false, .. } => Some(self.fractions()),
            _ => self.large_integers(),
        }
    }

    /// Returns the first of a few words among numbers.
    pub(super) fn odd_word(&self) -> Option<&(usize, String)> {
        let most = FEW_WORDS.max((self.numbers_seen + self.words_seen) / VALUES_A_WORD);
        let are_few = self.words_seen <= most && self.words_seen < self.numbers_seen;
        self.first_word.as_ref().filter(|_| are_few && !self.padded)
    }

    /// Returns the type of a column of only integers, some of them beyond signed 64 bits.
    fn large_integers(&self) -> Option<DataType> {
        match *self {
            Self { other: true, .. } | Self { padded: true, .. } | Self { digits: 0, .. } => None,
            Self { negative: false, beyond_u64: false, .. } => Some(DataType::UInt64),
            Self { digits: ..=38, .. } => Some(DataType::Decimal128(38, 0)),
            _ => None,
        }
    }
}

/// Returns the properties of each column of the sample, and the first record that repeats the
/// column names.
pub(super) fn look_at_values(
    csv: &CsvOptions,
    text: &[u8],
    schema: &Schema,
) -> (Vec<Seen>, Option<usize>) {
    let mut columns = vec![Seen::default(); schema.fields().len()];
    let fields = schema.fields().iter();
    let as_text = fields.map(|field| Field::new(field.name(), DataType::Utf8, true));
    let schema = Arc::new(Schema::new(as_text.collect::<Vec<_>>()));
    let batches = reader(csv).and_then(|reader| {
        let schema = Arc::clone(&schema);
        let rows = (SAMPLE_CELLS / columns.len().max(1)).clamp(1, 1024);
        arrow_csv::ReaderBuilder::new(schema).with_format(reader).with_batch_size(rows).build(text)
    });
    let mut record = usize::from(csv.has_header);
    let mut repeated = None;
    // Reading the file reports faults in the sample.
    for batch in batches.into_iter().flatten().map_while(Result::ok) {
        let values: Vec<&StringArray> =
            batch.columns().iter().map(|column| column.as_string()).collect();
        for (seen, values) in columns.iter_mut().zip(&values) {
            for (row, value) in values.iter().enumerate() {
                value.into_iter().for_each(|value| seen.note(value, record + row));
            }
        }
        let is_name = |values: &StringArray, row: usize, field: &Field| {
            values.is_valid(row) && values.value(row).trim_start_matches(MARK) == field.name()
        };
        let has_names = |&row: &usize| {
            values.iter().zip(schema.fields()).all(|(v, field)| is_name(v, row, field))
        };
        if csv.has_header && repeated.is_none() {
            repeated = (0..batch.num_rows()).find(has_names).map(|row| record + row);
        }
        record += batch.num_rows();
    }
    (columns, repeated)
}
