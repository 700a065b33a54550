//! Parser of column lists: `country,amount:desc:nulls-first,"odd, name":asc`.
//!
//! A part with a double quote at its start is quoted, as a field of CSV: the next quote ends it,
//! and two quotes stand for one. Elsewhere a quote is an ordinary character.

use std::fmt;
use std::ops::Deref;
use std::str::FromStr;

use windrow::{IntoColumns, SortColumn as Column};

/// Columns of an order, most significant first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Columns(pub Vec<Column>);

impl IntoColumns for Columns {
    fn into_columns(self) -> Vec<Column> {
        self.0
    }
}

impl FromStr for Columns {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let columns: Result<Vec<_>, _> =
            split(text, ',')?.iter().map(|part| column(part)).collect();
        let columns = columns?;
        if columns.is_empty() { Err("no column is named".to_owned()) } else { Ok(Self(columns)) }
    }
}

/// Writes the columns in the syntax of the parser.
impl fmt::Display for Columns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, column) in self.0.iter().enumerate() {
            let comma = if place > 0 { "," } else { "" };
            let name = &column.name;
            match name.contains([',', ':']) || name.starts_with('"') {
                true => write!(f, "{comma}\"{}\"", name.replace('"', "\"\""))?,
                false => write!(f, "{comma}{name}")?,
            }
            f.write_str(if column.descending { ":desc" } else { "" })?;
            f.write_str(if column.nulls_first { ":nulls-first" } else { "" })?;
        }
        Ok(())
    }
}

/// The kind of values in a text column, if their order is not the order of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TextAs {
    /// Numbers, with all their digits: 1000000 comes after 999999
    Number,
    /// Log sequence numbers of PostgreSQL: 0/10000000 comes after 0/FFFFFFF
    Lsn,
    /// Times with or without fractions and offsets; without an offset in UTC
    Time,
    /// Hexadecimal numbers of one to four sections, as in BigQuery's `_CHANGE_SEQUENCE_NUMBER`:
    /// 10/0 comes after F/7
    Hex,
    /// UUIDs of version 1, by their time
    UuidTime,
    /// Plain text
    Text,
}

impl TextAs {
    /// The kinds by their names.
    const NAMES: [(&'static str, Self); 6] = [
        ("number", Self::Number),
        ("lsn", Self::Lsn),
        ("time", Self::Time),
        ("hex", Self::Hex),
        ("uuid-time", Self::UuidTime),
        ("text", Self::Text),
    ];
}

impl fmt::Display for TextAs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = Self::NAMES.iter().find(|(_, kind)| kind == self);
        f.write_str(name.map_or("", |(name, _)| name))
    }
}

/// Columns that determine the latest change, with the kinds of their text: `scn:number,pos:desc`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OrderBy {
    /// Columns, most significant first.
    pub columns: Vec<Column>,
    /// Columns with a declared kind of text.
    pub texts: Vec<(String, TextAs)>,
}

impl FromStr for OrderBy {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut order = Self::default();
        for part in split(text, ',')? {
            let mut kept = Vec::new();
            let mut said = None;
            for (place, option) in split(&part, ':')?.into_iter().enumerate() {
                match TextAs::NAMES.iter().find(|(name, _)| place > 0 && *name == option) {
                    Some((_, kind)) => said = Some(*kind),
                    None => kept.push(option),
                }
            }
            let column = column(&kept.join(":")).map_err(|what| {
                what.replace(
                    "nulls-first, nulls-last",
                    "nulls-first, nulls-last, number, lsn, time, hex, uuid-time, text",
                )
            })?;
            order.texts.extend(said.map(|said| (column.name.clone(), said)));
            order.columns.push(column);
        }
        Ok(order)
    }
}

impl IntoColumns for OrderBy {
    fn into_columns(self) -> Vec<Column> {
        self.columns
    }
}

/// Returns the names of columns.
pub(crate) fn names<'a>(columns: impl IntoIterator<Item = &'a Column>) -> Vec<String> {
    columns.into_iter().map(|column| column.name.clone()).collect()
}

/// Returns true if `name` is one of `columns`, or a struct that has one of them as a member.
pub(crate) fn are_of(columns: &[String], name: &str) -> bool {
    let mut rests = columns.iter().filter_map(|column| column.strip_prefix(name));
    rests.any(|rest| rest.is_empty() || rest.starts_with('.'))
}

fn column(text: &str) -> Result<Column, String> {
    let parts = split(text, ':')?;
    let (name, options) = parts.split_first().ok_or("an empty column name")?;
    let name = unquoted(name);
    if name.is_empty() {
        return Err(format!("an empty column name in {text:?}"));
    }
    let mut column = windrow::asc(name);
    for option in options {
        match option.as_str() {
            "asc" => column.descending = false,
            "desc" => column.descending = true,
            "nulls-first" => column.nulls_first = true,
            "nulls-last" => column.nulls_first = false,
            other => {
                return Err(format!(
                    "{other:?} in {text:?} is none of asc, desc, nulls-first, nulls-last; \
                     put a name that holds a colon in double quotes"
                ));
            }
        }
    }
    Ok(column)
}

/// Names of columns, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Names(Vec<String>);

impl FromStr for Names {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let names = fields(text)?;
        match names.iter().any(String::is_empty) {
            true => Err(format!("an empty column name in {text:?}")),
            false => Ok(Self(names)),
        }
    }
}

impl From<Vec<String>> for Names {
    fn from(names: Vec<String>) -> Self {
        Self(names)
    }
}

impl From<Names> for Vec<String> {
    fn from(Names(names): Names) -> Self {
        names
    }
}

impl Deref for Names {
    type Target = [String];

    fn deref(&self) -> &[String] {
        &self.0
    }
}

/// Splits `text` at commas, and removes the quotes around its parts.
pub(crate) fn fields(text: &str) -> Result<Vec<String>, String> {
    Ok(split(text, ',')?.iter().map(|part| unquoted(part)).collect())
}

/// Splits `text` at separators outside of quotes.
fn split(text: &str, separator: char) -> Result<Vec<String>, String> {
    let mut parts = vec![String::new()];
    let mut quoted = false;
    for c in text.chars() {
        let begins = |part: &String| part.is_empty() || part.starts_with('"');
        if c == '"' && parts.last().is_some_and(begins) {
            quoted = !quoted;
        }
        match parts.last_mut() {
            Some(part) if c != separator || quoted => part.push(c),
            _ => parts.push(String::new()),
        }
    }
    if quoted { Err(format!("a quote without its end in {text:?}")) } else { Ok(parts) }
}

/// Removes the quotes around a whole name. Quotes within a path stay.
pub(crate) fn unquoted(part: &str) -> String {
    let inner = part.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    match inner.filter(|inner| !inner.replace("\"\"", "").contains('"')) {
        Some(inner) => inner.replace("\"\"", "\""),
        None => part.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use windrow::{asc, desc};

    use super::*;

    #[test]
    fn columns_read_as_people_write_them() {
        let columns = |text: &str| text.parse::<Columns>().map(|Columns(columns)| columns);
        assert_eq!(columns("a"), Ok(vec![asc("a")]));
        assert_eq!(
            columns("a:desc,b:asc:nulls-first,c:nulls-last"),
            Ok(vec![desc("a"), asc("b").nulls_first(), asc("c")])
        );
        assert_eq!(columns("\"a,b:c\":desc,d"), Ok(vec![desc("a,b:c"), asc("d")]));
        assert_eq!(
            columns(r#""say ""hi""":desc,5" disk,"""x""""#),
            Ok(vec![desc(r#"say "hi""#), asc(r#"5" disk"#), asc(r#""x""#)])
        );
        for text in ["a", "a:desc:nulls-first,b", r#""a,b:c":desc,"""x""""#, r#"5" disk"#] {
            let parsed: Columns = text.parse().unwrap();
            assert_eq!(parsed.to_string(), text);
        }
        assert_eq!(columns(r#""a.b"."c:d":desc"#), Ok(vec![desc(r#""a.b"."c:d""#)]));
        for text in ["", "a,,b", "a:down", "\"a", ":desc"] {
            assert!(columns(text).is_err(), "{text}");
        }
        let order = |text: &str| text.parse::<OrderBy>();
        assert_eq!(
            order("scn:number,\"a:lsn\":desc,l:desc:lsn:nulls-first,t:text"),
            Ok(OrderBy {
                columns: vec![asc("scn"), desc("a:lsn"), desc("l").nulls_first(), asc("t")],
                texts: vec![
                    ("scn".to_owned(), TextAs::Number),
                    ("l".to_owned(), TextAs::Lsn),
                    ("t".to_owned(), TextAs::Text)
                ],
            })
        );
        assert_eq!(order("number,lsn").map(|order| order.texts), Ok(vec![]));
        assert!(
            order("a:down")
                .unwrap_err()
                .contains("nulls-last, number, lsn, time, hex, uuid-time, text")
        );
        assert!(order("").is_err() && order("a,,b").is_err() && order(":lsn").is_err());
        let names = |text: &str| text.parse::<Names>().map(|names| names.to_vec());
        assert_eq!(names("b,\"a,b\",c:d"), Ok(["b", "a,b", "c:d"].map(String::from).to_vec()));
        for text in ["", "a,,b", "\"a", "\"\""] {
            assert!(names(text).is_err(), "{text}");
        }
    }
}
