//! Events of one form: what a record says of its row, as text.

use std::collections::HashSet;

use super::json::ObjectWriter;
use crate::preset::Meaning;
use crate::setting::Setting;

/// How many columns of its table an update has, and behind that, each after a NUL, the names of those that are null:
/// other columns that have no value are not carried. Empty for changes that carry all.
pub(crate) const CARRIED: &str = "__windrow_carried";

/// The members of an object: names and values as they stand.
pub(super) type Members<'a> = [(&'a [u8], &'a [u8])];

/// A row that was put together: the names of its columns and their values.
pub(super) type Row<'a> = Vec<(&'a [u8], &'a [u8])>;

/// What a record does to its row.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum What {
    /// The row is there, and has all columns.
    Insert,
    /// The row is there, and may lack columns that did not change.
    Update,
    Delete,
    /// Rows are gone that are not listed.
    Gone,
    /// It is about no row.
    Nothing,
}

impl What {
    fn carries(self) -> Carries {
        if self == Self::Update { Carries::Some } else { Carries::All }
    }
}

impl From<Meaning> for What {
    fn from(meaning: Meaning) -> Self {
        match meaning {
            Meaning::Insert | Meaning::Snapshot => Self::Insert,
            Meaning::Update => Self::Update,
            Meaning::Delete => Self::Delete,
            Meaning::Ignore => Self::Nothing,
        }
    }
}

/// A word that a producer does not write.
pub(super) fn unknown(word: &str, column: &str, producer: &str) -> String {
    format!(
        "`{column}` is {word:?}, which {producer} does not write; say what it means with {}",
        Setting::OpMap
    )
}

/// Which columns a change has, of those that its table has.
#[derive(Clone, Copy)]
pub(super) enum Carries {
    /// All of them, by the nature of the change: what is not there is null.
    All,
    /// As many as there are: an update may leave out what it does not change.
    Some,
}

/// Writes an event: what `about` says, and the row after and before the change as objects of JSON.
pub(super) fn event(
    out: &mut Vec<u8>,
    about: &Members<'_>,
    after: Option<&[(&[u8], &[u8])]>,
    before: Option<&[(&[u8], &[u8])]>,
    carries: Carries,
) {
    let mut event = ObjectWriter::begin(out);
    for (name, value) in about {
        event.put(name, value);
    }
    // Both are there in every event, so that the columns of one tell those of the other.
    for (name, row) in [("after", after), ("before", before)] {
        let out = event.member(name.as_bytes());
        match row {
            None => out.extend_from_slice(b"null"),
            Some(row) => {
                let mut object = ObjectWriter::begin(out);
                row.iter().for_each(|(name, value)| object.put(name, value));
                object.end();
            }
        }
    }
    put_carried(&mut event, carries, after);
    event.end();
    out.push(b' ');
}

/// Writes the event of a change with these rows. What only the row `before` has did not change.
pub(super) fn images(
    out: &mut Vec<u8>,
    about: &Members<'_>,
    after: Option<Row<'_>>,
    before: Option<Row<'_>>,
    what: What,
) {
    let (after, before) = match (after, before) {
        // A word that means a delete may be one of a change that has the row where others have theirs.
        (Some(row), None) if what == What::Delete => (None, Some(row)),
        (after, before) => (after.map(|after| filled(after, before.as_deref())), before),
    };
    event(out, about, after.as_deref(), before.as_deref(), what.carries());
}

/// The row after a change, with what only the row `before` has: a large value that did not change is left out of the
/// one, and is in the other if the table's replica identity is full.
pub(super) fn filled<'a>(mut after: Row<'a>, before: Option<&Members<'a>>) -> Row<'a> {
    if let Some(before) = before {
        let mut known: HashSet<&[u8]> = after.iter().map(|(name, _)| *name).collect();
        after.extend(before.iter().filter(|(name, _)| known.insert(*name)));
    }
    after
}

/// Writes a row that has its columns as members of the record.
pub(super) fn flattened(record: &Members<'_>, what: What, out: &mut Vec<u8>) {
    let mut object = ObjectWriter::begin(out);
    record.iter().for_each(|(name, value)| object.put(name, value));
    put_carried(&mut object, what.carries(), Some(record));
    object.end();
    out.push(b' ');
}

/// Says which columns of `row` a change carries.
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

/// Of the members those that are none of `names`.
pub(super) fn without<'a>(members: &Members<'a>, names: &[&str]) -> Vec<(&'a [u8], &'a [u8])> {
    let kept = |name: &[u8]| !names.iter().any(|other| other.as_bytes() == name);
    members.iter().filter(|(name, _)| kept(name)).copied().collect()
}
