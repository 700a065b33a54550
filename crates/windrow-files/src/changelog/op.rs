//! What a row of a change log does, by the text, number or flag in its operation column.

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, Int64Type};

use super::Preset;
use crate::error::{Error, Result};

/// What one row does to its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    /// The row as of now: an insert or the new side of an update.
    Upsert,
    /// The row as of before the stream began.
    Snapshot,
    Delete,
    /// The old side of an update, a marker, a message.
    Ignore,
    /// The operation is null. What that means depends on the format.
    Unsaid,
}

/// A word of a format. `None` is a truncate, which no compaction can follow.
type Word = (&'static str, Option<Change>);

const GENERIC: &[Word] = &[
    ("i", Some(Change::Upsert)),
    ("u", Some(Change::Upsert)),
    ("d", Some(Change::Delete)),
    ("c", Some(Change::Upsert)),
    ("r", Some(Change::Upsert)),
    ("t", None),
    ("insert", Some(Change::Upsert)),
    ("update", Some(Change::Upsert)),
    ("upsert", Some(Change::Upsert)),
    ("delete", Some(Change::Delete)),
    ("update_preimage", Some(Change::Ignore)),
    ("update_postimage", Some(Change::Upsert)),
    ("+i", Some(Change::Upsert)),
    ("-u", Some(Change::Ignore)),
    ("+u", Some(Change::Upsert)),
    ("-d", Some(Change::Delete)),
    // Debezium's `__deleted`, which its ExtractNewRecordState writes as text.
    ("false", Some(Change::Upsert)),
    ("true", Some(Change::Delete)),
    ("truncate", None),
];

const DEBEZIUM: &[Word] = &[
    ("c", Some(Change::Upsert)),
    ("u", Some(Change::Upsert)),
    ("d", Some(Change::Delete)),
    ("r", Some(Change::Snapshot)),
    ("m", Some(Change::Ignore)),
    ("t", None),
];

const DELTA_CDF: &[Word] = &[
    ("insert", Some(Change::Upsert)),
    ("update_preimage", Some(Change::Ignore)),
    ("update_postimage", Some(Change::Upsert)),
    ("delete", Some(Change::Delete)),
];

/// Format version 2 says `action` and a letter; version 1 said `kind` and a word.
const WAL2JSON: &[Word] = &[
    ("i", Some(Change::Upsert)),
    ("u", Some(Change::Upsert)),
    ("d", Some(Change::Delete)),
    ("b", Some(Change::Ignore)),
    ("c", Some(Change::Ignore)),
    ("m", Some(Change::Ignore)),
    ("t", None),
    ("insert", Some(Change::Upsert)),
    ("update", Some(Change::Upsert)),
    ("delete", Some(Change::Delete)),
    ("message", Some(Change::Ignore)),
    ("truncate", None),
];

/// In the order of the numbers by which Paimon and Flink store them.
const PAIMON: &[Word] = &[
    ("+i", Some(Change::Upsert)),
    ("-u", Some(Change::Ignore)),
    ("+u", Some(Change::Upsert)),
    ("-d", Some(Change::Delete)),
];

/// How the column is read once it is in its plain form.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Text,
    Number,
    Flag,
}

/// The operation column of an input: its name, its form and the words it may hold.
pub(super) struct Operations {
    column: String,
    form: Form,
    preset: Preset,
    words: &'static [Word],
    /// The words of one letter by that letter, since nearly all logs use them.
    letters: [Option<Word>; 256],
}

impl Operations {
    pub(super) fn bind(preset: Preset, field: &Field) -> Result<Self> {
        let words = match preset {
            Preset::Generic => GENERIC,
            Preset::Debezium => DEBEZIUM,
            Preset::DeltaCdf => DELTA_CDF,
            Preset::Wal2json => WAL2JSON,
            Preset::Paimon => PAIMON,
        };
        let mut letters = [None; 256];
        for word in words {
            if let &[letter] = word.0.as_bytes() {
                letters[usize::from(letter.to_ascii_lowercase())] = Some(*word);
                letters[usize::from(letter.to_ascii_uppercase())] = Some(*word);
            }
        }
        let form = form(field.data_type());
        let readable = match form {
            Some(Form::Text) => true,
            Some(Form::Number) => preset == Preset::Paimon,
            Some(Form::Flag) => preset == Preset::Generic,
            None => false,
        };
        match form {
            Some(form) if readable => {
                Ok(Self { column: field.name().clone(), form, preset, words, letters })
            }
            _ => Err(Error::usage(unreadable(preset, field, form))),
        }
    }

    /// Whether `field`, of a column of log sequence numbers, has them as text.
    pub(super) fn has_lsns(&self, field: &Field) -> bool {
        self.preset == Preset::Wal2json
            && field.data_type() != &DataType::Null
            && form(field.data_type()) == Some(Form::Text)
    }

    pub(super) fn preset(&self) -> Preset {
        self.preset
    }

    pub(super) fn column(&self) -> &str {
        &self.column
    }

    /// What each row does. An unknown operation or a truncate is an error that names the row,
    /// counted from `first_row`.
    pub(super) fn read(&self, column: &ArrayRef, first_row: u64) -> Result<Vec<Change>> {
        let plain = match self.form {
            Form::Text => cast(column, &DataType::Utf8),
            Form::Number => cast(column, &DataType::Int64),
            Form::Flag => cast(column, &DataType::Boolean),
        }
        .map_err(|error| Error::data(format!("column {:?}: {error}", self.column)))?;
        let row = |i: usize| first_row + i as u64;
        match self.form {
            Form::Text => {
                let text = plain.as_string::<i32>();
                each(&plain, |i| self.word(text.value(i), row(i)))
            }
            Form::Number => {
                let numbers = plain.as_primitive::<Int64Type>();
                each(&plain, |i| self.number(numbers.value(i), row(i)))
            }
            Form::Flag => {
                let flags = plain.as_boolean();
                each(&plain, |i| Ok(if flags.value(i) { Change::Delete } else { Change::Upsert }))
            }
        }
    }

    fn word(&self, text: &str, row: u64) -> Result<Change> {
        let word = match text.as_bytes() {
            &[letter] => self.letters[usize::from(letter)],
            _ => self.words.iter().find(|(word, _)| word.eq_ignore_ascii_case(text)).copied(),
        };
        match word {
            Some((_, Some(change))) => Ok(change),
            Some((_, None)) => Err(Error::data(format!(
                "row {row}: column {:?} holds {text:?}, a truncate: it deletes rows that the log \
                 does not list; compact only what follows it",
                self.column
            ))
            .at_row(row)
            .in_column(self.column.as_str())),
            None => Err(self.unknown(&format!("{text:?}"), row)),
        }
    }

    fn number(&self, number: i64, row: u64) -> Result<Change> {
        usize::try_from(number)
            .ok()
            .and_then(|number| self.words.get(number))
            .and_then(|word| word.1)
            .ok_or_else(|| self.unknown(&number.to_string(), row))
    }

    fn unknown(&self, value: &str, row: u64) -> Error {
        let known: Vec<&str> = self.words.iter().map(|word| word.0).collect();
        Error::data(format!(
            "row {row}: column {:?} holds {value}, which is no operation of `op_preset` {} \
             ({}, in any case)",
            self.column,
            self.preset.name(),
            known.join(" ")
        ))
        .at_row(row)
        .in_column(self.column.as_str())
    }
}

fn each(column: &ArrayRef, read: impl Fn(usize) -> Result<Change>) -> Result<Vec<Change>> {
    match column.nulls().filter(|nulls| nulls.null_count() > 0) {
        None => (0..column.len()).map(read).collect(),
        Some(nulls) => (0..column.len())
            .map(|i| if nulls.is_valid(i) { read(i) } else { Ok(Change::Unsaid) })
            .collect(),
    }
}

fn form(data_type: &DataType) -> Option<Form> {
    match data_type {
        DataType::Dictionary(_, value) => form(value),
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => Some(Form::Text),
        // A text format with no value in the column; every row of it is null.
        DataType::Null => Some(Form::Text),
        DataType::Boolean => Some(Form::Flag),
        other if other.is_integer() => Some(Form::Number),
        _ => None,
    }
}

fn unreadable(preset: Preset, field: &Field, form: Option<Form>) -> String {
    let advice = match (preset, form) {
        (Preset::Generic, Some(Form::Number)) => {
            "; numbers have no one meaning: `op_preset` paimon reads row kinds 0 to 3, and a \
             Boolean column is read as true = deleted"
        }
        (_, Some(Form::Flag)) => "; `op_preset` generic reads a Boolean as true = deleted",
        _ => "",
    };
    format!(
        "column {:?} of type {} cannot be the operation of `op_preset` {}{advice}",
        field.name(),
        field.data_type(),
        preset.name()
    )
}
