//! Which table is wanted of a stream of several.

use std::sync::{Mutex, PoisonError};

use crate::setting::Setting;

/// The table that is wanted, and the one that there was.
#[derive(Default)]
pub(super) struct Tables {
    /// `NAME`, `SCHEMA.NAME`, or `*` for all; unless one is named there must be only one.
    wanted: Option<String>,
    seen: Mutex<Option<String>>,
}

impl Tables {
    pub(super) fn new(wanted: Option<String>) -> Self {
        Self { wanted, seen: Mutex::new(None) }
    }

    pub(super) fn is_named(&self) -> bool {
        self.wanted.is_some()
    }

    /// Whether changes of this table are wanted; `within` is its schema or database. A record that is about no
    /// table is about the one that there is.
    ///
    /// # Errors
    /// It is another table than that of the records before it.
    pub(super) fn wants(&self, within: Option<&str>, table: Option<&str>) -> Result<bool, String> {
        let Some(table) = table.filter(|table| !table.is_empty()) else {
            return match &self.wanted {
                Some(wanted) if wanted != "*" => Err(format!(
                    "the record does not say its table, and {} names one",
                    Setting::Table
                )),
                _ => Ok(true),
            };
        };
        let whole = match within.filter(|within| !within.is_empty()) {
            Some(within) => format!("{within}.{table}"),
            None => table.to_owned(),
        };
        match self.wanted.as_deref() {
            Some("*") => return Ok(true),
            Some(wanted) if wanted != table && wanted != whole => return Ok(false),
            _ => {}
        }
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let first = seen.get_or_insert_with(|| whole.clone());
        if *first == whole {
            return Ok(true);
        }
        Err(format!(
            "a change of table {whole} among those of {first}; say which is wanted with {} {whole}",
            Setting::Table
        ))
    }
}
