//! What the values of CSV look like, in a sample of its rows.

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

/// Values of the sample that are parsed at a time: the parser has eight bytes for each.
const SAMPLE_CELLS: usize = 1 << 18;

/// The byte order mark.
const MARK: char = '\u{feff}';

/// What there is among the values of a column of the sample.
#[derive(Clone, Default)]
pub(super) struct Seen {
    /// A value such as `007` or `00.5`.
    pub(super) padded: bool,
    /// A time with an offset from UTC.
    pub(super) offsets: bool,
    /// A value without one.
    pub(super) local: bool,
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
    /// A number with a blank before or behind it; an integer that 64 bits with a sign do not hold.
    blank: bool,
    beyond_i64: bool,
    /// How many values are numbers, and how many are not; the record of the first of these, and its text.
    numbers_seen: usize,
    words_seen: usize,
    first_word: Option<(usize, String)>,
}

/// Words that a column of numbers has by mistake: so many, or one in so many values.
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

    /// Whether all values are numbers with commas.
    pub(super) fn has_commas(&self) -> bool {
        self.comma && !self.no_number && !self.padded
    }

    /// The type of a column of numbers, some of which have fractions.
    pub(super) fn fractions(&self) -> DataType {
        match *self {
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

    /// The type of a column of nothing but numbers that the inference of arrow takes for text.
    pub(super) fn numbers(&self) -> Option<DataType> {
        match self {
            Self { blank: true, word: true, .. } | Self { blank: true, padded: true, .. } => None,
            Self { blank: true, other: false, beyond_i64: false, .. } => Some(DataType::Int64),
            Self { blank: true, other: true, comma: false, .. } => Some(self.fractions()),
            _ => self.large_integers(),
        }
    }

    /// The first of few words among numbers.
    pub(super) fn odd_word(&self) -> Option<&(usize, String)> {
        let most = FEW_WORDS.max((self.numbers_seen + self.words_seen) / VALUES_A_WORD);
        let are_few = self.words_seen <= most && self.words_seen < self.numbers_seen;
        self.first_word.as_ref().filter(|_| are_few && !self.padded)
    }

    /// The type of a column of nothing but integers, some of which are beyond 64 bits with a sign.
    fn large_integers(&self) -> Option<DataType> {
        match *self {
            Self { other: true, .. } | Self { padded: true, .. } | Self { digits: 0, .. } => None,
            Self { negative: false, beyond_u64: false, .. } => Some(DataType::UInt64),
            Self { digits: ..=38, .. } => Some(DataType::Decimal128(38, 0)),
            _ => None,
        }
    }
}

/// What the values of each column of the sample look like, and the first record that has the names of the columns.
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
    // A fault in the sample is told when the file is read.
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
