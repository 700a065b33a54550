//! Lists of columns as people write them: `country,amount:desc:nulls-first,"odd, name":asc`.

use std::ops::Deref;
use std::str::FromStr;

use windrow::Column;

/// Columns of an order, most significant first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Columns(pub(crate) Vec<Column>);

impl FromStr for Columns {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let columns: Result<Vec<_>, _> =
            split(text, ',')?.iter().map(|part| column(part)).collect();
        let columns = columns?;
        if columns.is_empty() { Err("no column is named".to_owned()) } else { Ok(Self(columns)) }
    }
}

fn column(text: &str) -> Result<Column, String> {
    let parts = split(text, ':')?;
    let (name, options) = parts.split_first().ok_or("an empty column name")?;
    let name = unquote(name);
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
pub(crate) struct Names(Vec<String>);

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

impl Deref for Names {
    type Target = [String];

    fn deref(&self) -> &[String] {
        &self.0
    }
}

/// The parts of `text` between commas, without the quotes around them.
pub(crate) fn fields(text: &str) -> Result<Vec<String>, String> {
    Ok(split(text, ',')?.iter().map(|part| unquote(part).to_owned()).collect())
}

/// The parts of `text` between separators that are outside of double quotes.
fn split(text: &str, separator: char) -> Result<Vec<String>, String> {
    let mut parts = vec![String::new()];
    let mut quoted = false;
    for c in text.chars() {
        if c == '"' {
            quoted = !quoted;
        }
        match parts.last_mut() {
            Some(part) if c != separator || quoted => part.push(c),
            _ => parts.push(String::new()),
        }
    }
    if quoted { Err(format!("a quote without its end in {text:?}")) } else { Ok(parts) }
}

fn unquote(name: &str) -> &str {
    name.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or(name)
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
        for text in ["", "a,,b", "a:down", "\"a", ":desc"] {
            assert!(columns(text).is_err(), "{text}");
        }
        let names = |text: &str| text.parse::<Names>().map(|names| names.to_vec());
        assert_eq!(names("b,\"a,b\",c:d"), Ok(["b", "a,b", "c:d"].map(String::from).to_vec()));
        for text in ["", "a,,b", "\"a", "\"\""] {
            assert!(names(text).is_err(), "{text}");
        }
    }
}
