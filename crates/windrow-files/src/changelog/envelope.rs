//! Events in Debezium's form: the row is a struct, surrounded by data about the event. Records of
//! other producers are converted to this form first ([`raw`](crate::raw)).
//!
//! ```text
//!  { before: {id, name}, after: {id, name}, source: {lsn, ..}, op, ts_ms, .. }
//!        \_______ ______/                      |               |     |
//!                v                             v               v     v
//!          id | name                      source.lsn | .. |    op | ts_ms | ..
//!          the row's columns              the rest of the envelope
//! ```
//!
//! The row of a delete is `before`, otherwise `after`. The row has the columns of `after`, then the
//! columns found only in `before`; all may be null. The rest of the envelope keeps its order.
//! Structs in the envelope are flattened by one level, so that `source.lsn` is a column. An
//! envelope column whose name occurs in the row gets the suffix `_envelope`.
//!
//! An update may change the key if the key differs from Debezium's own. The update then becomes a
//! delete of the key in `before`, followed by the row in `after`.
//!
//! Kafka Connect's JSON converter wraps an event once more, as `{schema, payload}`; `payload` is
//! then unwrapped and `schema` dropped.

use std::collections::HashSet;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, BooleanArray, RecordBatch, new_null_array};
use arrow_buffer::BooleanBuffer;
use arrow_cast::can_cast_types;
use arrow_ord::ord::make_comparator;
use arrow_schema::{DataType, Field, Fields, Schema, SortOptions};
use arrow_select::zip::zip;

use super::op::Change;
use super::said::{misfit, missing_op};
use crate::error::{Error, Result};
use crate::input::widen::wider;
use crate::input::widened;
use crate::names::Places;
use crate::paths::{self, Steps};
use crate::settings::Preset;

/// The positions of an envelope's parts.
pub(super) struct Envelope {
    pub(super) op: Steps,
    after: Option<Steps>,
    before: Option<Steps>,
    pub(super) row: Vec<RowColumn>,
    rest: Vec<Steps>,
}

/// A column of the row, and its place in either image.
pub(super) struct RowColumn {
    name: String,
    data_type: DataType,
    after: Option<Steps>,
    before: Option<Steps>,
    key: bool,
}

impl Envelope {
    /// Finds the envelope's parts. Returns also the fields that [`unwrap`](Self::unwrap) produces,
    /// and the field of the operation.
    pub(super) fn bind<'a>(
        schema: &'a Schema,
        preset: Preset,
        op_column: Option<&str>,
    ) -> Result<(Self, Vec<Arc<Field>>, &'a Field)> {
        let known =
            || preset.op_columns().iter().copied().find(|name| schema.index_of(name).is_ok());
        let op_column = op_column.or_else(known).unwrap_or(preset.op_columns()[0]);
        let (prefix, event) = event(schema, op_column);
        let op = event.find(op_column);
        let (op, op_field) = op.ok_or_else(|| missing_op(&[op_column], preset, event.iter()))?;
        let op = [prefix.as_slice(), &[op]].concat();
        let (after, before) = (image(event, &prefix, "after")?, image(event, &prefix, "before")?);
        if after.is_none() && before.is_none() {
            return Err(Error::usage(
                "a Debezium event has its row in `after` and `before`, and this input has neither \
                 as a struct; rows that are unwrapped already are told by `__op` or `__deleted`, or by \
                 `op_column`",
            ));
        }
        let row = row_columns([&after, &before])?;
        let mut fields: Vec<Arc<Field>> = row
            .iter()
            .map(|column| Arc::new(Field::new(&column.name, column.data_type.clone(), true)))
            .collect();

        let mut rest = Vec::new();
        let mut names: HashSet<String> = row.iter().map(|column| column.name.clone()).collect();
        let mut add = |path: Steps, name: String, field: &Field| {
            let mut name = name;
            while !names.insert(name.clone()) {
                name.push_str("_envelope");
            }
            fields.push(Arc::new(field.clone().with_name(name).with_nullable(true)));
            rest.push(path);
        };
        let outside = schema.fields().iter().enumerate().filter(|(_, field)| {
            // An unwrapped event has no columns outside the envelope.
            !prefix.is_empty() && !["payload", "schema"].contains(&field.name().as_str())
        });
        for (i, field) in outside {
            flatten(vec![i], field, &mut add);
        }
        for (i, field) in event.iter().enumerate() {
            if !["after", "before"].contains(&field.name().as_str()) {
                flatten([prefix.as_slice(), &[i]].concat(), field, &mut add);
            }
        }
        let [after, before] = [after, before].map(|image| image.map(|(steps, _)| steps));
        Ok((Self { op, after, before, row, rest }, fields, op_field))
    }

    pub(super) fn keyed_by(&mut self, keys: &[String]) {
        let keys: HashSet<&String> = keys.iter().collect();
        for column in &mut self.row {
            column.key = keys.contains(&column.name);
        }
    }

    /// Returns the row's columns, then the rest of the envelope. Turns a record without an
    /// operation and without a row (Kafka's tombstone, which repeats the preceding delete) into an
    /// ignored one. Fails for a change without a row.
    pub(super) fn unwrap(
        &self,
        batch: &RecordBatch,
        changes: &mut [Change],
        first_row: u64,
    ) -> Result<Vec<ArrayRef>> {
        let image =
            |steps: &Option<Steps>| steps.as_ref().map(|steps| column(batch, steps)).transpose();
        let after = image(&self.after)?;
        let before = image(&self.before)?;
        let has = |image: &Option<ArrayRef>, i| image.as_ref().is_some_and(|rows| rows.is_valid(i));
        for (i, change) in changes.iter_mut().enumerate() {
            let lacking = match change {
                Change::Ignore => None,
                Change::Unsaid if has(&after, i) || has(&before, i) => Some("an operation"),
                Change::Unsaid => {
                    *change = Change::Ignore;
                    None
                }
                Change::Delete => (!has(&before, i)).then_some(
                    "its old row in `before` (on PostgreSQL: the table needs a primary key or \
                     REPLICA IDENTITY FULL)",
                ),
                Change::Upsert | Change::Snapshot => {
                    (!has(&after, i)).then_some("its row in `after`")
                }
            };
            if let Some(lacking) = lacking {
                return Err(lacks(lacking, first_row, i));
            }
        }

        let deletes = BooleanBuffer::collect_bool(changes.len(), |i| changes[i] == Change::Delete);
        let any_delete = deletes.count_set_bits() > 0;
        let deletes = BooleanArray::new(deletes, None);
        let mut columns = Vec::with_capacity(self.row.len() + self.rest.len() + 2);
        for part in &self.row {
            let new = part.of(batch, &part.after)?;
            let values = if any_delete {
                let old = part.of(batch, &part.before)?;
                if let Some(i) =
                    (0..old.len()).find(|&i| part.key && deletes.value(i) && !old.is_valid(i))
                {
                    let lacking = format!("the key column {:?} in `before`", part.name);
                    return Err(lacks(&lacking, first_row, i));
                }
                zip(&deletes, &old, &new).map_err(misfit)?
            } else {
                new
            };
            columns.push(values);
        }
        for steps in &self.rest {
            columns.push(column(batch, steps)?);
        }
        Ok(columns)
    }

    /// Finds the updates that changed the key. An update without an old key is not recognized.
    pub(super) fn moved(&self, batch: &RecordBatch, changes: &[Change]) -> Result<Option<Moved>> {
        let (Some(_), Some(before)) = (&self.after, &self.before) else { return Ok(None) };
        let before = column(batch, before)?;
        let mut rows: Vec<usize> = (0..changes.len())
            .filter(|&i| changes[i] == Change::Upsert && before.is_valid(i))
            .collect();
        if rows.is_empty() {
            return Ok(None);
        }
        let mut differs = vec![false; changes.len()];
        for part in self.row.iter().filter(|part| part.key) {
            let new = part.of(batch, &part.after)?;
            let old = part.of(batch, &part.before)?;
            rows.retain(|&i| old.is_valid(i));
            let order = make_comparator(&old, &new, SortOptions::default()).map_err(misfit)?;
            rows.iter().for_each(|&i| differs[i] |= order(i, i).is_ne());
        }
        rows.retain(|&i| differs[i]);
        if rows.is_empty() {
            return Ok(None);
        }
        let columns = self.row.iter().map(|part| part.of(batch, &part.before));
        Ok(Some(Moved { rows, columns: columns.collect::<Result<_>>()? }))
    }
}

/// The old rows of updates that changed the key. The rows are to be deleted.
pub(super) struct Moved {
    /// The indices of the updates.
    pub(super) rows: Vec<usize>,
    /// The row's columns of all events, from `before`.
    pub(super) columns: Vec<ArrayRef>,
}

impl RowColumn {
    /// Returns this column of an image, cast to the common type; nulls if the image lacks the
    /// column.
    fn of(&self, batch: &RecordBatch, place: &Option<Steps>) -> Result<ArrayRef> {
        let values = place.as_ref().map(|steps| column(batch, steps)).transpose()?;
        match values.filter(|values| !values.data_type().is_null()) {
            Some(values) if *values.data_type() == self.data_type => Ok(values),
            Some(values) => widened(&values, &self.data_type)
                .map_err(|fault| Error::data(format!("column {:?}: {fault}", self.name))),
            None => Ok(new_null_array(&self.data_type, batch.num_rows())),
        }
    }
}

/// Returns the path to the event, and the event's fields.
fn event<'a>(schema: &'a Schema, op_column: &str) -> (Steps, &'a Fields) {
    if schema.fields().find(op_column).is_none()
        && let Some((i, payload)) = schema.fields().find("payload")
        && let DataType::Struct(fields) = payload.data_type()
        && fields.find(op_column).is_some()
    {
        return (vec![i], fields);
    }
    (Steps::new(), schema.fields())
}

/// The place and the fields of `after` or `before`; `None` if it is missing or entirely null.
type Image<'a> = Option<(Steps, &'a Fields)>;

/// Finds an image of an event that is at `prefix`.
fn image<'a>(event: &'a Fields, prefix: &[usize], name: &str) -> Result<Image<'a>> {
    let Some((place, field)) = event.find(name) else { return Ok(None) };
    match field.data_type() {
        DataType::Null => Ok(None),
        DataType::Struct(fields) => Ok(Some(([prefix, &[place]].concat(), fields))),
        other => Err(Error::usage(format!(
            "column {name:?} of an event must be a struct and is {other}"
        ))),
    }
}

fn row_columns(images: [&Image<'_>; 2]) -> Result<Vec<RowColumn>> {
    let fields = images.map(|image| image.as_ref().map_or(&[][..], |(_, fields)| &**fields));
    let places = fields.map(Places::of);
    let mut row: Vec<RowColumn> = Vec::new();
    let mut seen = HashSet::new();
    for field in fields.concat().iter() {
        if !seen.insert(field.name().clone()) {
            continue;
        }
        let column = |image: usize| {
            let (steps, fields) = images[image].as_ref()?;
            let place = places[image].first(field.name())?;
            Some(([steps.as_slice(), &[place]].concat(), fields[place].data_type()))
        };
        let (new, old) = (column(0), column(1));
        let data_type = match (&new, &old) {
            (Some((_, new)), Some((_, old))) => common(new, old).ok_or_else(|| {
                Error::data(format!(
                    "column {:?} is {new} in `after` and {old} in `before`; give one `schema`",
                    field.name()
                ))
            })?,
            _ => field.data_type().clone(),
        };
        let [after, before] = [new, old].map(|column| column.map(|(steps, _)| steps));
        row.push(RowColumn { name: field.name().clone(), data_type, after, before, key: false });
    }
    Ok(row)
}

/// Returns the type that holds the values of both. The types differ if they were inferred from
/// JSON: an image may have no value of a column, or only whole numbers.
fn common(a: &DataType, b: &DataType) -> Option<DataType> {
    match (a, b) {
        (a, b) if a == b => Some(a.clone()),
        (DataType::Null, other) | (other, DataType::Null) => Some(other.clone()),
        // A column without a value in JSON is inferred as text. The cast fails for text with other
        // content.
        (DataType::Utf8, other) | (other, DataType::Utf8)
            if can_cast_types(&DataType::Utf8, other) =>
        {
            Some(other.clone())
        }
        (a, b) if a.is_numeric() && b.is_numeric() => wider(a, b),
        _ => None,
    }
}

/// Adds a column of the envelope; a struct adds its members as `name.member`.
fn flatten(path: Steps, field: &Field, add: &mut impl FnMut(Steps, String, &Field)) {
    match field.data_type() {
        DataType::Struct(members) => {
            for (i, member) in members.iter().enumerate() {
                let name = format!("{}.{}", field.name(), member.name());
                add([path.as_slice(), &[i]].concat(), name, member);
            }
        }
        _ => add(path, field.name().clone(), field),
    }
}

/// Returns the column at a place; null wherever a struct around it is null.
pub(super) fn column(batch: &RecordBatch, steps: &[usize]) -> Result<ArrayRef> {
    paths::values(batch, steps).map_err(misfit)
}

fn lacks(what: &str, first_row: u64, row: usize) -> Error {
    let row = first_row + row as u64;
    Error::data(format!("row {row}: the event lacks {what}")).at_row(row)
}
