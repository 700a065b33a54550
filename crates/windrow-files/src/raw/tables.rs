//! Selects the wanted tables in a stream of several tables.
//!
//! ```text
//!  wanted            taken                                  refused
//!  nothing           the one that there is                  a second
//!  users             users of any schema                    users of a second schema
//!  public.users      that                                   unless any
//!  ev_*, public.*    all that are like it, as one           unless any
//! ```
//! A missing table is reported at the end of the log.

use std::collections::BTreeSet;
use std::sync::Mutex;

use regex::Regex;

use crate::error::{Error, Result as Done};
use crate::lock::lock;
use crate::settings::Setting;

/// Tables listed in an error message at most.
const NAMED: usize = 20;

/// The wanted tables and the tables found so far.
pub(crate) struct Tables {
    /// `NAME` or `SCHEMA.NAME`, with the wildcards `*` and `?`. If empty, the log may have only one
    /// table.
    wanted: Vec<String>,
    /// The expressions of those in `wanted` with wildcards.
    patterns: Vec<Option<Regex>>,
    seen: Mutex<Seen>,
}

struct Seen {
    /// The first match of each wanted table; a single entry for the only table if `wanted` is
    /// empty.
    found: Vec<Option<String>>,
    others: BTreeSet<String>,
}

impl Tables {
    pub(crate) fn new(wanted: Vec<String>) -> Self {
        let found = vec![None; wanted.len().max(1)];
        let patterns = wanted.iter().map(|wanted| {
            let is_pattern = wanted.contains(['*', '?']);
            is_pattern.then(|| expression(wanted)).flatten()
        });
        let patterns = patterns.collect();
        Self { wanted, patterns, seen: Mutex::new(Seen { found, others: BTreeSet::new() }) }
    }

    /// Returns true if changes of this table are wanted; `within` is its schema or database. A
    /// record without a table is wanted if no table, or `*`, was named.
    ///
    /// # Errors
    /// Fails if the table differs from an earlier one that the same name accepted, or if the record
    /// names no table although the caller names some.
    pub(crate) fn wants(&self, within: Option<&str>, table: Option<&str>) -> Result<bool, String> {
        let Some(table) = table.filter(|table| !table.is_empty()) else {
            return match self.wanted.is_empty() || self.wanted.iter().any(|wanted| wanted == "*") {
                true => Ok(true),
                false => Err(format!(
                    "the record does not say its table, and {} names one",
                    Setting::Table
                )),
            };
        };
        let whole = match within.filter(|within| !within.is_empty()) {
            Some(within) => format!("{within}.{table}"),
            None => table.to_owned(),
        };
        let accepts = |(wanted, pattern): (&String, &Option<Regex>)| match pattern {
            Some(pattern) => pattern.is_match(table) || pattern.is_match(&whole),
            None => wanted == table || *wanted == whole,
        };
        let accepted = self.wanted.iter().zip(&self.patterns).position(accepts);
        let mut seen = lock(&self.seen);
        let place = match accepted {
            None if self.wanted.is_empty() => 0,
            None => {
                if seen.others.len() <= NAMED {
                    seen.others.insert(whole);
                }
                return Ok(false);
            }
            Some(place) => place,
        };
        let is_pattern = self.wanted.get(place).is_some_and(|wanted| wanted.contains(['*', '?']));
        let first = seen.found[place].get_or_insert_with(|| whole.clone());
        if is_pattern || *first == whole {
            return Ok(true);
        }
        Err(format!(
            "a change of table {whole} among those of {first}; say which is wanted with {} {whole}",
            Setting::Table
        ))
    }

    /// Returns an error if a wanted table had no record. To be called after the last record.
    pub(super) fn check(&self) -> Done<()> {
        let seen = lock(&self.seen);
        let found = seen.found.iter().flatten().cloned();
        let mut missing = self.wanted.iter().zip(&seen.found).filter(|(_, found)| found.is_none());
        let Some((wanted, _)) = missing.find(|(wanted, _)| *wanted != "*") else { return Ok(()) };
        let all: BTreeSet<String> = found.chain(seen.others.iter().cloned()).collect();
        let names: Vec<&str> = all.iter().take(NAMED).map(String::as_str).collect();
        let more = if all.len() > NAMED { ", and more" } else { "" };
        Err(Error::usage(match names.is_empty() {
            true => format!("{} {wanted}: the log has no change of any table", Setting::Table),
            false => format!(
                "{} {wanted}: the log has no change of such a table; its tables are {}{more}",
                Setting::Table,
                names.join(", ")
            ),
        }))
    }
}

/// Returns the expression of a pattern, in which `?` is any character and `*` any number of
/// characters.
fn expression(pattern: &str) -> Option<Regex> {
    let pattern = regex::escape(pattern).replace("\\*", ".*").replace("\\?", ".");
    Regex::new(&format!("(?s)^{pattern}$")).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_like_patterns() {
        for (name, pattern, expected) in [
            ("events_2026_01", "events_*", true),
            ("events", "events_*", false),
            ("public.events", "*.events", true),
            ("a1", "a?", true),
            ("a", "a?", false),
            ("ä1", "?1", true),
            ("abcbd", "a*b?", true),
            ("", "*", true),
            ("A", "a", false),
            ("a.b", "a.b", true),
            ("axb", "a.b", false),
            ("a\nb", "a*b", true),
        ] {
            let found = expression(pattern).is_some_and(|pattern| pattern.is_match(name));
            assert_eq!(found, expected, "{name} {pattern}");
        }
    }

    #[test]
    fn tables_that_were_not_there_are_told() {
        let tables = Tables::new(vec!["t".to_owned(), "e_*".to_owned(), "*".to_owned()]);
        assert!(tables.wants(Some("s"), Some("e_1")).unwrap());
        let error = tables.check().unwrap_err().to_string();
        assert!(error.contains(" t: ") && error.ends_with("are s.e_1"), "{error}");
        let tables = Tables::new(vec!["t".to_owned()]);
        assert!(tables.check().unwrap_err().to_string().contains("no change of any"));
        for number in 0..30 {
            assert!(!tables.wants(None, Some(&format!("u{number:02}"))).unwrap());
        }
        let error = tables.check().unwrap_err().to_string();
        assert!(error.ends_with("u18, u19, and more"), "{error}");
        assert!(tables.wants(None, Some("t")).unwrap());
        assert!(tables.check().is_ok() && Tables::new(Vec::new()).check().is_ok());
    }
}
