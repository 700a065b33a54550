//! Events of one form: what a record says of its row, as text.

use std::collections::HashSet;

use super::json::ObjectWriter;
use crate::preset::Meaning;

/// The column that describes an update: the number of columns in the update's row, then, each after
/// a NUL, the names of the null columns. Columns without a value are not carried. Empty for changes
/// with all columns.
pub(crate) const CARRIED: &str = "__windrow_carried";

/// The members of an object: names and values as slices of the text.
pub(super) type Members<'a> = [(&'a [u8], &'a [u8])];

/// An assembled row: the names of its columns and their values.
pub(super) type Row<'a> = Vec<(&'a [u8], &'a [u8])>;

/// The effect of a record on its row. After an insert, or a row of a snapshot, the row exists, and
/// the record has all columns; the record of an update may lack unchanged columns. `None`: an
/// unlisted set of rows is gone.
pub(super) type What = Option<Meaning>;

/// The columns present in a change.
#[derive(Clone, Copy)]
pub(super) enum Carries {
    /// All of the table's columns: a missing column is null.
    All,
    /// Any number: an update may leave out unchanged columns.
    Some,
}

impl Carries {
    fn of(what: What) -> Self {
        if what == Some(Meaning::Update) { Self::Some } else { Self::All }
    }
}

/// Writes an event: the members in `about`, then the row after and before the change as JSON
/// objects.
pub(super) fn event(
    out: &mut Vec<u8>,
    about: &Members<'_>,
    after: Option<&Members<'_>>,
    before: Option<&Members<'_>>,
    carries: Carries,
) {
    let mut event = ObjectWriter::begin(out);
    event.put_all(about);
    // Every event has both, so that each one reveals the columns of the other.
    for (name, row) in [("after", after), ("before", before)] {
        let out = event.member(name.as_bytes());
        match row {
            None => out.extend_from_slice(b"null"),
            Some(row) => {
                let mut object = ObjectWriter::begin(out);
                object.put_all(row);
                object.end();
            }
        }
    }
    put_carried(&mut event, carries, after);
    event.end();
    out.push(b' ');
}

/// Writes the event of a change with these rows. Columns found only in `before` did not change.
pub(super) fn images(
    out: &mut Vec<u8>,
    about: &Members<'_>,
    after: Option<Row<'_>>,
    before: Option<Row<'_>>,
    what: What,
) {
    let (after, before) = match (after, before) {
        // The caller may map a word to "delete" whose changes carry the deleted row in `after`.
        (Some(row), None) if what == Some(Meaning::Delete) => (None, Some(row)),
        (after, before) => (after.map(|after| filled(after, before.as_deref())), before),
    };
    event(out, about, after.as_deref(), before.as_deref(), Carries::of(what));
}

/// Adds to the row after a change the columns found only in `before`: producers leave an unchanged
/// large value out of `after`, and with the replica identity "full" `before` has the value.
pub(super) fn filled<'a>(mut after: Row<'a>, before: Option<&Members<'a>>) -> Row<'a> {
    if let Some(before) = before {
        let mut known: HashSet<&[u8]> = after.iter().map(|(name, _)| *name).collect();
        after.extend(before.iter().filter(|(name, _)| known.insert(*name)));
    }
    after
}

/// Writes a row whose columns are members of the record.
pub(super) fn flattened(record: &Members<'_>, what: What, out: &mut Vec<u8>) {
    let mut object = ObjectWriter::begin(out);
    object.put_all(record);
    put_carried(&mut object, Carries::of(what), Some(record));
    object.end();
    out.push(b' ');
}

/// Writes the member `CARRIED` for the columns of `row`.
pub(super) fn put_carried(
    event: &mut ObjectWriter<'_>,
    carries: Carries,
    row: Option<&Members<'_>>,
) {
    let out = event.member(CARRIED.as_bytes());
    out.push(b'"');
    if let (Carries::Some, Some(row)) = (carries, row) {
        out.extend_from_slice(row.len().to_string().as_bytes());
        for (name, _) in row.iter().filter(|(_, value)| value.trim_ascii() == b"null") {
            out.extend_from_slice(b"\\u0000");
            out.extend_from_slice(name);
        }
    }
    out.push(b'"');
}

/// Returns the members not listed in `names`, which blanks separate.
pub(super) fn without<'a>(members: &Members<'a>, names: &str) -> Row<'a> {
    let kept = |name: &[u8]| !names.split(' ').any(|other| other.as_bytes() == name);
    members.iter().filter(|(name, _)| kept(name)).copied().collect()
}
