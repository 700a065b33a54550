//! wal2json, PostgreSQL's output plugin: one record per change (format 2), one record per
//! transaction (format 1), or changes flattened by a pipeline to one member per column.

use super::event::{Members, Row, What, flattened, images, without};
use super::json::{find, list, members, object, string, text, unquoted};
use super::log::Raw;
use crate::preset::Meaning;

pub(super) fn events(record: &Members<'_>, raw: &Raw, out: &mut Vec<u8>) -> Result<(), String> {
    if let Some(changes) = list(record, "change") {
        let about = without(record, "change");
        for change in changes {
            let change = members(change).ok_or("`change` holds what is no object")?;
            let what = what(&text(&change, "kind").unwrap_or_default(), raw);
            if what == Some(Meaning::Ignore) || !is_wanted(&change, raw)? {
                continue;
            }
            let old = object(&change, "oldkeys").unwrap_or_default();
            let before = named(&old, ["keynames", "keytypes", "keyvalues"], raw)?;
            let after = named(&change, ["columnnames", "columntypes", "columnvalues"], raw)?;
            let of_row = "columnnames columntypes columntypeoids columnvalues columnoptionals \
                          columndefaults columnpositions oldkeys pk";
            images(out, &[&about[..], &without(&change, of_row)].concat(), after, before, what);
        }
        return Ok(());
    }
    let Some(action) = find(record, "action").or_else(|| find(record, "kind")) else {
        return Err("holds no change: it has none of `action`, `kind` and `change`".to_owned());
    };
    let what = what(&string(action).unwrap_or_default(), raw);
    if what == Some(Meaning::Ignore) || !is_wanted(record, raw)? {
        return Ok(());
    }
    let (columns, identity) = (list(record, "columns"), list(record, "identity"));
    if columns.is_none() && identity.is_none() && what.is_some() {
        flattened(record, what, out);
        return Ok(());
    }
    let before = identity.map(|columns| row(&columns, raw)).transpose()?;
    let after = columns.map(|columns| row(&columns, raw)).transpose()?;
    let about = without(record, "columns identity pk");
    images(out, &about, after, before, what);
    Ok(())
}

/// Returns the effect of an action. An unknown word is reported when its row is read.
fn what(action: &str, raw: &Raw) -> What {
    match (raw.said(action), action.to_ascii_lowercase().as_str()) {
        (Some(meaning), _) => Some(meaning),
        // Begin, commit and messages; a flattened log may have no other member.
        (None, "b" | "c" | "m" | "message") => Some(Meaning::Ignore),
        (None, "u" | "update") => Some(Meaning::Update),
        (None, "d" | "delete") => Some(Meaning::Delete),
        (None, "t" | "truncate") => None,
        (None, _) => Some(Meaning::Insert),
    }
}

fn is_wanted(record: &Members<'_>, raw: &Raw) -> Result<bool, String> {
    raw.tables.wants(text(record, "schema").as_deref(), text(record, "table").as_deref())
}

/// Returns the columns of `[{"name":"id","type":"integer","value":1}, ..]`.
fn row<'a>(columns: &[&'a [u8]], raw: &Raw) -> Result<Row<'a>, String> {
    let column = |text: &&'a [u8]| {
        let column = members(text)?;
        let name = unquoted(find(&column, "name")?)?;
        let value = find(&column, "value").unwrap_or(b"null");
        if raw.declared.is_open() {
            raw.declared.as_sql(name, find(&column, "type"), value);
        }
        Some((name, value))
    };
    let row: Option<Vec<_>> = columns.iter().map(column).collect();
    row.ok_or_else(|| "a column of the change is no object with a `name`".to_owned())
}

/// Returns the row whose names, types and values are in three arrays.
fn named<'a>(
    of: &Members<'a>,
    [names, types, values]: [&str; 3],
    raw: &Raw,
) -> Result<Option<Row<'a>>, String> {
    let (Some(keys), Some(found)) = (list(of, names), list(of, values)) else { return Ok(None) };
    if keys.len() != found.len() {
        return Err(format!("`{names}` has {} elements, `{values}` {}", keys.len(), found.len()));
    }
    let pair = |(name, value): (&&'a [u8], &'a [u8])| Some((unquoted(name)?, value));
    let row: Option<Vec<_>> = keys.iter().zip(found).map(pair).collect();
    let row = row.ok_or_else(|| format!("`{names}` holds what is no name"))?;
    if raw.declared.is_open()
        && let Some(types) = list(of, types)
    {
        for ((name, value), kind) in row.iter().zip(types) {
            raw.declared.as_sql(name, Some(kind), value);
        }
    }
    Ok(Some(row))
}
