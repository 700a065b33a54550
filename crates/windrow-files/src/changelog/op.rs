//! Decodes the operation of a change-log row from the text, number or flag in its operation column.

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, ArrayRef};
use arrow_cast::cast;
use arrow_schema::{DataType, Field};

use crate::error::{Error, Result};
use crate::preset::{Meaning, OpMap};
use crate::settings::{Preset, Setting};

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

const UPSERT: Option<Change> = Some(Change::Upsert);
const SNAPSHOT: Option<Change> = Some(Change::Snapshot);
const DELETE: Option<Change> = Some(Change::Delete);
const IGNORE: Option<Change> = Some(Change::Ignore);
const TRUNCATE: Option<Change> = None;

/// The words of no single format: with Flink's words in full, and Debezium's `__deleted`, which its
/// ExtractNewRecordState writes as text.
const GENERIC: &[(Option<Change>, &str)] = &[
    (UPSERT, "i u c r insert update upsert update_postimage update_after +i +u false"),
    (UPSERT, "load refresh replace"),
    (DELETE, "d delete -d true remove"),
    (IGNORE, "update_preimage update_before -u"),
    (TRUNCATE, "t truncate"),
];

/// Returns the words of a format, in groups by effect.
fn vocabulary(preset: Preset) -> &'static [(Option<Change>, &'static str)] {
    match preset {
        Preset::Generic | Preset::Auto => GENERIC,
        // With `__deleted`, too.
        Preset::Debezium | Preset::Cockroach => &[
            (UPSERT, "c u false"),
            (DELETE, "d true"),
            (SNAPSHOT, "r"),
            (IGNORE, "m"),
            (TRUNCATE, "t"),
        ],
        Preset::DeltaCdf => {
            &[(UPSERT, "insert update_postimage"), (IGNORE, "update_preimage"), (DELETE, "delete")]
        }
        // Format 2 has a letter in `action`; format 1 has a word in `kind`.
        Preset::Wal2json => &[
            (UPSERT, "i u insert update"),
            (DELETE, "d delete"),
            (IGNORE, "b c m message"),
            (TRUNCATE, "t truncate"),
        ],
        // Dropping a table or its database deletes rows without listing them.
        Preset::Maxwell => &[
            (UPSERT, "insert update bootstrap-insert"),
            (DELETE, "delete"),
            (TRUNCATE, "table-drop database-drop"),
        ],
        Preset::Canal => {
            &[(UPSERT, "insert update"), (DELETE, "delete"), (TRUNCATE, "truncate erase")]
        }
        Preset::Dms => &[(UPSERT, "i u insert update"), (DELETE, "d delete"), (SNAPSHOT, "load")],
        // The deletes and inserts of an Iceberg snapshot form a set; the old side of an update is a
        // delete.
        Preset::Iceberg => &[(UPSERT, "insert update_after"), (DELETE, "delete update_before")],
        Preset::Snowflake => &[(UPSERT, "insert"), (DELETE, "delete")],
        Preset::Hudi => &[(UPSERT, "i u false"), (IGNORE, "-u"), (DELETE, "d true")],
        Preset::Qlik => &[
            (UPSERT, "i u insert update"),
            (DELETE, "d delete"),
            (IGNORE, "b beforeimage"),
            (SNAPSHOT, "refresh"),
            (TRUNCATE, "truncate"),
        ],
        Preset::GoldenGate => {
            &[(UPSERT, "i u insert update"), (DELETE, "d delete"), (TRUNCATE, "t truncate")]
        }
        // 5 is used in net changes, which do not distinguish inserts from updates.
        Preset::SqlServer => &[(DELETE, "1"), (UPSERT, "2 4 5"), (IGNORE, "3")],
        // In the order of the numbers by which Paimon and Flink store the row kinds.
        Preset::Paimon => &[(UPSERT, "+i"), (IGNORE, "-u"), (UPSERT, "+u"), (DELETE, "-d")],
        // Every value has the same meaning.
        Preset::Airbyte => &[],
    }
}

/// Returns the words of a format, one by one.
fn words(preset: Preset) -> Vec<Word> {
    let groups = vocabulary(preset).iter();
    let words = groups.flat_map(|(effect, words)| words.split(' ').map(|word| (word, *effect)));
    // CSV of AWS DMS writes null as empty text.
    words.chain((preset == Preset::Dms).then_some(("", SNAPSHOT))).collect()
}

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
    pub(super) column: String,
    form: Form,
    pub(super) preset: Preset,
    words: Vec<Word>,
    /// Meanings given by the caller, which take precedence.
    pub(super) mapped: OpMap,
    /// The effect of any value, if the text is not examined.
    present: Change,
    /// The effect of a null.
    null: Change,
}

impl Operations {
    pub(super) fn bind(preset: Preset, field: &Field, map: Option<&OpMap>) -> Result<Self> {
        let words = words(preset);
        let mapped = map.cloned().unwrap_or_default();
        let form = match (preset, form(field.data_type())) {
            (Preset::Airbyte, _) => Some(Form::Presence),
            // For a type without words, only the presence of a value counts.
            (_, None) if mapped.any().is_some() => Some(Form::Presence),
            (_, form) => form,
        };
        let readable = match form {
            Some(Form::Text | Form::Presence) => true,
            Some(_) if !mapped.0.is_empty() => true,
            Some(Form::Number) => matches!(preset, Preset::Paimon | Preset::SqlServer),
            Some(Form::Flag) => {
                matches!(preset, Preset::Generic | Preset::Debezium | Preset::Hudi)
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
                Ok(Self { column, form, preset, words, mapped, present, null })
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
        let nulls = column.nulls();
        let change = |i| match nulls {
            Some(nulls) if nulls.is_null(i) => Ok(self.null),
            _ => read(i),
        };
        (0..column.len()).map(change).collect()
    }

    fn presence(&self, is_there: bool) -> Change {
        if is_there { self.present } else { self.null }
    }

    fn word(&self, text: &str, row: u64) -> Result<Change> {
        if let Some(meaning) = self.mapped.meaning(text) {
            return Ok(meaning.into());
        }
        match self.words.iter().find(|(word, _)| word.eq_ignore_ascii_case(text)) {
            Some((_, Some(change))) => Ok(*change),
            Some((_, None)) => Err(Error::of_value(
                row,
                &self.column,
                format!(
                    "holds {text:?}, a truncate: it deletes rows that the log does not list; \
                     compact only what follows it"
                ),
            )),
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
        let what = format!(
            "holds {value}, which is no operation of `op_preset` {} ({}, in any case); say what it \
             means with {}",
            self.preset.name(),
            known.join(" "),
            Setting::OpMap
        );
        Error::of_value(row, &self.column, what)
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
