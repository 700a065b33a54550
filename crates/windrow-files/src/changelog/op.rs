//! Decodes the operation of a change-log row from the text, number or flag in its operation column.

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, ArrayRef};
use arrow_cast::cast;
use arrow_schema::{DataType, Field};

use crate::error::{Error, Result};
use crate::preset::{Meaning, OpMap, Preset};
use crate::setting::Setting;

/// The effect of a row on its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    /// The current row: an insert or the new side of an update.
    Upsert,
    /// The row from before the stream began.
    Snapshot,
    Delete,
    /// The old side of an update, a marker, a message.
    Ignore,
    /// The operation is null. The meaning depends on the format.
    Unsaid,
}

/// An operation word of a format. `None` is a truncate, which compaction does not support.
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
    // Flink's words in full.
    ("update_before", Some(Change::Ignore)),
    ("update_after", Some(Change::Upsert)),
    ("+i", Some(Change::Upsert)),
    ("-u", Some(Change::Ignore)),
    ("+u", Some(Change::Upsert)),
    ("-d", Some(Change::Delete)),
    // Debezium's `__deleted`, which its ExtractNewRecordState writes as text.
    ("false", Some(Change::Upsert)),
    ("true", Some(Change::Delete)),
    ("load", Some(Change::Upsert)),
    ("refresh", Some(Change::Upsert)),
    ("replace", Some(Change::Upsert)),
    ("remove", Some(Change::Delete)),
    ("truncate", None),
];

const DEBEZIUM: &[Word] = &[
    ("c", Some(Change::Upsert)),
    ("u", Some(Change::Upsert)),
    ("d", Some(Change::Delete)),
    ("r", Some(Change::Snapshot)),
    ("m", Some(Change::Ignore)),
    ("t", None),
    // `__deleted`, which ExtractNewRecordState writes as text.
    ("false", Some(Change::Upsert)),
    ("true", Some(Change::Delete)),
];

const DELTA_CDF: &[Word] = &[
    ("insert", Some(Change::Upsert)),
    ("update_preimage", Some(Change::Ignore)),
    ("update_postimage", Some(Change::Upsert)),
    ("delete", Some(Change::Delete)),
];

/// Format 2 has a letter in `action`; format 1 has a word in `kind`.
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

/// Dropping a table or its database deletes rows without listing them.
const MAXWELL: &[Word] = &[
    ("insert", Some(Change::Upsert)),
    ("update", Some(Change::Upsert)),
    ("delete", Some(Change::Delete)),
    ("bootstrap-insert", Some(Change::Upsert)),
    ("table-drop", None),
    ("database-drop", None),
];

const CANAL: &[Word] = &[
    ("insert", Some(Change::Upsert)),
    ("update", Some(Change::Upsert)),
    ("delete", Some(Change::Delete)),
    ("truncate", None),
    ("erase", None),
];

const DMS: &[Word] = &[
    ("i", Some(Change::Upsert)),
    ("u", Some(Change::Upsert)),
    ("d", Some(Change::Delete)),
    ("insert", Some(Change::Upsert)),
    ("update", Some(Change::Upsert)),
    ("delete", Some(Change::Delete)),
    ("load", Some(Change::Snapshot)),
    // CSV writes null as empty text.
    ("", Some(Change::Snapshot)),
];

/// The deletes and inserts of an Iceberg snapshot form a set; the old side of an update is a
/// delete.
const ICEBERG: &[Word] = &[
    ("insert", Some(Change::Upsert)),
    ("delete", Some(Change::Delete)),
    ("update_before", Some(Change::Delete)),
    ("update_after", Some(Change::Upsert)),
];

const SNOWFLAKE: &[Word] = &[("insert", Some(Change::Upsert)), ("delete", Some(Change::Delete))];

const HUDI: &[Word] = &[
    ("i", Some(Change::Upsert)),
    ("u", Some(Change::Upsert)),
    ("-u", Some(Change::Ignore)),
    ("d", Some(Change::Delete)),
    ("false", Some(Change::Upsert)),
    ("true", Some(Change::Delete)),
];

const QLIK: &[Word] = &[
    ("i", Some(Change::Upsert)),
    ("u", Some(Change::Upsert)),
    ("d", Some(Change::Delete)),
    ("b", Some(Change::Ignore)),
    ("insert", Some(Change::Upsert)),
    ("update", Some(Change::Upsert)),
    ("delete", Some(Change::Delete)),
    ("beforeimage", Some(Change::Ignore)),
    ("refresh", Some(Change::Snapshot)),
    ("truncate", None),
];

const GOLDENGATE: &[Word] = &[
    ("i", Some(Change::Upsert)),
    ("u", Some(Change::Upsert)),
    ("d", Some(Change::Delete)),
    ("insert", Some(Change::Upsert)),
    ("update", Some(Change::Upsert)),
    ("delete", Some(Change::Delete)),
    ("t", None),
    ("truncate", None),
];

/// 5 is used in net changes, which do not distinguish inserts from updates.
const SQL_SERVER: &[Word] = &[
    ("1", Some(Change::Delete)),
    ("2", Some(Change::Upsert)),
    ("3", Some(Change::Ignore)),
    ("4", Some(Change::Upsert)),
    ("5", Some(Change::Upsert)),
];

/// In the order of the numbers by which Paimon and Flink store the row kinds.
const PAIMON: &[Word] = &[
    ("+i", Some(Change::Upsert)),
    ("-u", Some(Change::Ignore)),
    ("+u", Some(Change::Upsert)),
    ("-d", Some(Change::Delete)),
];

/// The encoding of the operation column.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Text,
    Number,
    Flag,
    /// Any value marks a deleted row.
    Presence,
}

/// The operation column of an input: its name, its encoding and its vocabulary.
pub(super) struct Operations {
    column: String,
    form: Form,
    preset: Preset,
    words: &'static [Word],
    /// Meanings given by the caller, which take precedence.
    mapped: OpMap,
    /// The effect of any value, if the text is not examined.
    present: Change,
    /// The one-letter words by their letter; nearly all logs use these.
    letters: [Option<Word>; 256],
    /// The effect of a null.
    null: Change,
}

impl Operations {
    pub(super) fn bind(preset: Preset, field: &Field, map: Option<&OpMap>) -> Result<Self> {
        let words = match preset {
            Preset::Generic | Preset::Auto => GENERIC,
            Preset::Debezium | Preset::Cockroach => DEBEZIUM,
            Preset::GoldenGate => GOLDENGATE,
            Preset::SqlServer => SQL_SERVER,
            Preset::DeltaCdf => DELTA_CDF,
            Preset::Iceberg => ICEBERG,
            Preset::Wal2json => WAL2JSON,
            Preset::Paimon => PAIMON,
            Preset::Maxwell => MAXWELL,
            Preset::Canal => CANAL,
            Preset::Dms => DMS,
            Preset::Snowflake => SNOWFLAKE,
            Preset::Hudi => HUDI,
            // Every value has the same meaning.
            Preset::Airbyte => &[],
            Preset::Qlik => QLIK,
        };
        let mut letters = [None; 256];
        for word in words {
            if let &[letter] = word.0.as_bytes() {
                letters[usize::from(letter.to_ascii_lowercase())] = Some(*word);
                letters[usize::from(letter.to_ascii_uppercase())] = Some(*word);
            }
        }
        let mapped = map.cloned().unwrap_or_default();
        let form = match (preset, form(field.data_type())) {
            (Preset::Airbyte, _) => Some(Form::Presence),
            // For a type without words, only the presence of a value counts.
            (_, None) if mapped.any().is_some() => Some(Form::Presence),
            (_, form) => form,
        };
        let readable = match form {
            Some(Form::Text | Form::Presence) => true,
            Some(Form::Number) => {
                matches!(preset, Preset::Paimon | Preset::SqlServer) || !mapped.0.is_empty()
            }
            Some(Form::Flag) => {
                matches!(preset, Preset::Generic | Preset::Debezium | Preset::Hudi)
                    || !mapped.0.is_empty()
            }
            None => false,
        };
        let present = mapped.any().map_or(Change::Delete, Change::from);
        let null = mapped.meaning("").map(Change::from).unwrap_or(match preset {
            Preset::Dms => Change::Snapshot,
            Preset::Hudi | Preset::Airbyte => Change::Upsert,
            _ => Change::Unsaid,
        });
        match form {
            Some(form) if readable => {
                let column = field.name().clone();
                Ok(Self { column, form, preset, words, mapped, present, letters, null })
            }
            _ => Err(Error::usage(unreadable(preset, field, form))),
        }
    }

    /// Returns true if any row may come from a snapshot.
    pub(super) fn tell_snapshots(&self) -> bool {
        let mut known = self.words.iter().filter_map(|(_, change)| *change);
        let mut mapped = self.mapped.0.iter().map(|(_, meaning)| Change::from(*meaning));
        let is_snapshot = |change| change == Change::Snapshot;
        is_snapshot(self.null) || known.any(is_snapshot) || mapped.any(is_snapshot)
    }

    pub(super) fn preset(&self) -> Preset {
        self.preset
    }

    pub(super) fn column(&self) -> &str {
        &self.column
    }

    /// Returns the effect of each row. Fails on an unknown operation or a truncate; the error names
    /// the row, counted from `first_row`.
    pub(super) fn read(&self, column: &ArrayRef, first_row: u64) -> Result<Vec<Change>> {
        let is_mapped = !self.mapped.0.is_empty();
        let numbers = self.form == Form::Number && self.preset == Preset::Paimon && !is_mapped;
        let plain = match self.form {
            Form::Number if numbers => cast(column, &DataType::Int64),
            Form::Flag if !is_mapped => cast(column, &DataType::Boolean),
            Form::Presence if form(column.data_type()) != Some(Form::Text) => {
                let is_null = column.logical_nulls();
                let is_null = |i| is_null.as_ref().is_some_and(|nulls| nulls.is_null(i));
                return Ok((0..column.len()).map(|i| self.presence(!is_null(i))).collect());
            }
            _ => cast(column, &DataType::Utf8),
        }
        .map_err(|error| Error::data(format!("column {:?}: {error}", self.column)))?;
        let row = |i: usize| first_row + i as u64;
        match (self.form, plain.as_string_opt::<i32>()) {
            (Form::Presence, Some(text)) => {
                self.each(&plain, |i| Ok(self.presence(!text.value(i).is_empty())))
            }
            (_, Some(text)) => self.each(&plain, |i| self.word(text.value(i), row(i))),
            (Form::Number, None) => {
                let numbers = plain.as_primitive::<Int64Type>();
                self.each(&plain, |i| self.number(numbers.value(i), row(i)))
            }
            (_, None) => {
                let flags = plain.as_boolean();
                let change = |deleted| if deleted { Change::Delete } else { Change::Upsert };
                self.each(&plain, |i| Ok(change(flags.value(i))))
            }
        }
    }

    fn each(
        &self,
        column: &ArrayRef,
        read: impl Fn(usize) -> Result<Change>,
    ) -> Result<Vec<Change>> {
        match column.nulls().filter(|nulls| nulls.null_count() > 0) {
            None => (0..column.len()).map(read).collect(),
            Some(nulls) => (0..column.len())
                .map(|i| if nulls.is_valid(i) { read(i) } else { Ok(self.null) })
                .collect(),
        }
    }

    /// Returns true if only the presence of a value counts; the column then belongs to the row.
    pub(super) fn tell_by_presence(&self) -> bool {
        self.mapped.is_of_presence()
    }

    fn presence(&self, is_there: bool) -> Change {
        if is_there { self.present } else { self.null }
    }

    fn word(&self, text: &str, row: u64) -> Result<Change> {
        if let Some(meaning) = self.mapped.meaning(text) {
            return Ok(meaning.into());
        }
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
        let known = self.words.iter().map(|word| word.0);
        let known = known.chain(self.mapped.0.iter().map(|(word, _)| &**word));
        let known: Vec<&str> = known.filter(|word| !word.is_empty()).collect();
        Error::data(format!(
            "row {row}: column {:?} holds {value}, which is no operation of `op_preset` {} \
             ({}, in any case); say what it means with {}",
            self.column,
            self.preset.name(),
            known.join(" "),
            Setting::OpMap
        ))
        .at_row(row)
        .in_column(self.column.as_str())
    }
}

impl From<Meaning> for Change {
    fn from(meaning: Meaning) -> Self {
        match meaning {
            Meaning::Insert | Meaning::Update => Self::Upsert,
            Meaning::Delete => Self::Delete,
            Meaning::Snapshot => Self::Snapshot,
            Meaning::Ignore => Self::Ignore,
        }
    }
}

fn form(data_type: &DataType) -> Option<Form> {
    match data_type {
        DataType::Dictionary(_, value) => form(value),
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => Some(Form::Text),
        // A text format without a value in the column: every row is null.
        DataType::Null => Some(Form::Text),
        DataType::Boolean => Some(Form::Flag),
        other if other.is_integer() => Some(Form::Number),
        _ => None,
    }
}

fn unreadable(preset: Preset, field: &Field, form: Option<Form>) -> String {
    let advice = match (preset, form) {
        (Preset::Generic, Some(Form::Number)) => {
            "; numbers have no one meaning: say it with `op_map`; `op_preset` paimon reads row kinds \
             0 to 3, and a Boolean column is read as true = deleted"
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
