//! Generated files: the same seed writes the same bytes.
//!
//! [`log`] writes the large synthetic change log of the benches and of `scripts/check-memory`; [`orders`] writes the small
//! change log of a shop in `examples/data`. Both are change logs: a key's first event is an
//! insert, updates follow, a delete may end it and a second insert may bring it back.

#![forbid(unsafe_code)]

pub mod log;
pub mod orders;
pub mod rng;

use std::fmt;
use std::path::PathBuf;

/// Errors of a generator are for display only.
pub type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// Totals for the last line of the command's output.
#[derive(Default)]
pub struct Summary {
    file: PathBuf,
    rows: u64,
    inserts: u64,
    updates: u64,
    deletes: u64,
    /// Keys alive after the last event by sequence number: the rows of a snapshot.
    live: u64,
    bytes: u64,
}

impl Summary {
    fn count(&mut self, op: Op) {
        match op {
            Op::Insert => self.inserts += 1,
            Op::Update => self.updates += 1,
            Op::Delete => self.deletes += 1,
        }
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}: {} rows ({} inserts, {} updates, {} deletes), {} keys live at the end, {} bytes",
            self.file.display(),
            self.rows,
            self.inserts,
            self.updates,
            self.deletes,
            self.live,
            self.bytes
        )
    }
}

/// The effect of an event on its key.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Op {
    Insert,
    Update,
    Delete,
}

impl Op {
    fn as_str(self) -> &'static str {
        match self {
            Self::Insert => "I",
            Self::Update => "U",
            Self::Delete => "D",
        }
    }
}
