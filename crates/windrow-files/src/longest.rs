//! Handling of rows longer than planned, when readers meet them.
//!
//! ```text
//! reader --admit(bytes)--> as long as planned --> go on
//!                          longer ------------> the job decides: less memory for others, or the end
//! ```
//! A reader asks before it copies the row, if possible: a text reader by the length of the record
//! so far, a Parquet reader by the pages. The rows of each record batch are checked again after
//! decoding.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::Error;
use crate::size::Size;

/// Finds memory for a row of this many bytes. Returns the length up to which rows need no further
/// decision.
pub(crate) type Decide = Box<dyn Fn(u64) -> Result<u64, Need> + Send + Sync>;

/// The longest planned row of a job. Clones belong to the same job. By default any row is short
/// enough.
#[derive(Clone, Default)]
pub(crate) struct Longest(Option<Arc<Planned>>);

struct Planned {
    bytes: AtomicU64,
    decide: Decide,
}

/// Requirements for a job to go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Need {
    /// Bytes of the row.
    pub(crate) row: u64,
    /// A sufficient memory limit, and the current one.
    pub(crate) enough: Size,
    pub(crate) limit: u64,
}

impl Longest {
    pub(crate) fn new(bytes: usize, decide: Decide) -> Self {
        Self(Some(Arc::new(Planned { bytes: AtomicU64::new(bytes as u64), decide })))
    }

    /// Returns the maximum planned length of a row.
    pub(crate) fn planned(&self) -> u64 {
        self.0.as_ref().map_or(u64::MAX, |planned| planned.bytes.load(Ordering::Relaxed))
    }

    /// Finds memory for a row of `row` bytes. Returns true if this needed a decision: other threads
    /// must then release memory first.
    pub(crate) fn admit(&self, row: u64) -> Result<bool, Need> {
        match &self.0 {
            Some(planned) if row > planned.bytes.load(Ordering::Relaxed) => {
                let bytes = (planned.decide)(row)?;
                planned.bytes.fetch_max(bytes, Ordering::Relaxed);
                Ok(true)
            }
            _ => Ok(false),
        }
    }
}

impl Need {
    /// Returns the error of a job that cannot go on. `row` identifies the row in the file `name`.
    pub(crate) fn error(&self, name: &Arc<str>, row: &str) -> Error {
        let message = format!(
            "{name}: {row} takes {}, and with it the job needs a memory limit of {}; raise `memory_limit`, \
             which is {}",
            Size(self.row),
            self.enough,
            Size(self.limit).exactly(),
        );
        Error::memory_floor(message, self.enough.0, self.limit).in_file(Arc::clone(name))
    }
}

impl fmt::Debug for Longest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Longest").field(&self.planned()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn longer_rows_are_decided_about_once() {
        assert_eq!(Longest::default().admit(u64::MAX), Ok(false));
        let longest = Longest::new(
            100,
            Box::new(|row| match row {
                ..1000 => Ok(row + 10),
                _ => Err(Need { row, enough: Size(7 << 20), limit: 1 << 20 }),
            }),
        );
        assert_eq!(
            [100, 101, 111, 112].map(|row| longest.admit(row)),
            [false, true, false, true].map(Ok)
        );
        let need = longest.clone().admit(1000).unwrap_err();
        let error = need.error(&"a.csv".into(), "the row on line 5");
        let place = error.place();
        assert_eq!((place.floor, place.limit), (Some(7 << 20), Some(1 << 20)));
        assert!(error.to_string().contains("line 5 takes 1000 B"), "{error}");
    }
}
