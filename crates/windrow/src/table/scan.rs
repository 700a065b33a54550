//! Scans of a table: rows are collected one by one and decoded many at a time.

use arrow_array::RecordBatch;

use super::Table;
use crate::batch::Decoder;
use crate::cursor::{Cursor, TakenRows};
use windrow_rows::Result;

/// Bytes of rows at which a record batch ends: far below the range of string offsets.
const MOST_BYTES: usize = 256 << 20;

/// The definition of a scan of a [`Table`].
#[derive(Clone, Debug)]
#[must_use = "nothing is read before `batches`"]
pub struct Scan<'a> {
    table: &'a Table,
    from: Option<RecordBatch>,
    to: Option<RecordBatch>,
    time: Option<u64>,
}

impl<'a> Scan<'a> {
    pub(super) fn new(table: &'a Table) -> Self {
        Self { table, from: None, to: None, time: None }
    }

    /// Begins at `key`: a record batch of one row with the key columns.
    pub fn from(mut self, key: &RecordBatch) -> Self {
        self.from = Some(key.clone());
        self
    }

    /// Ends before `key`: a record batch of one row with the key columns.
    pub fn to(mut self, key: &RecordBatch) -> Self {
        self.to = Some(key.clone());
        self
    }

    /// Reads the table as of `time`.
    pub fn at(mut self, time: u64) -> Self {
        self.time = Some(time);
        self
    }

    /// Returns an iterator over the rows, `rows` at a time; fewer if they take 256 MiB.
    ///
    /// # Errors
    /// [`Error::SchemaMismatch`](crate::Error::SchemaMismatch) if a bound does not have the key
    /// columns, [`Error::InvalidOrder`](crate::Error::InvalidOrder) if a bound is not one row, or
    /// the time is forgotten; errors of reading a chunk, here and from the iterator.
    pub fn batches(self, rows: usize) -> Result<Scanned> {
        let Self { table, from, to, time } = self;
        let time = time.unwrap_or(table.now());
        table.check_time(time)?;
        let key = |key: RecordBatch| match key.num_rows() {
            1 => Ok(table.keys.encode(&key)?.row(0).to_vec()),
            rows => Err(windrow_rows::Error::InvalidOrder(format!("a key of {rows} rows"))),
        };
        let (from, to) = (from.map(key).transpose()?, to.map(key).transpose()?);
        let mut cursor = table.spine.idle_cursor()?;
        match from {
            Some(from) => cursor.seek_key(&from)?,
            None => cursor.rewind_keys()?,
        }
        let decoder = table.decoder()?;
        Ok(Scanned { cursor, decoder, to, time, rows: rows.max(1), failed: false })
    }
}

/// Record batches of a [`Table`], read on demand. The scan does not see later changes of the table.
/// Ends with the first error.
#[must_use = "rows are read as they are asked for"]
pub struct Scanned {
    cursor: Cursor,
    decoder: Decoder,
    to: Option<Vec<u8>>,
    time: u64,
    rows: usize,
    failed: bool,
}

impl Scanned {
    fn read(&mut self) -> Result<Option<RecordBatch>> {
        let mut found = TakenRows::new();
        while found.len() < self.rows && found.bytes() < MOST_BYTES {
            let to = self.to.as_deref();
            if self.cursor.key().is_none_or(|key| to.is_some_and(|to| key >= to)) {
                break;
            }
            self.cursor.take_newest(self.time, &mut found)?;
            self.cursor.step_key()?;
        }
        if found.is_empty() { Ok(None) } else { found.decode(&mut self.decoder).map(Some) }
    }
}

impl Iterator for Scanned {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed {
            return None;
        }
        let read = self.read().transpose();
        self.failed = !matches!(read, Some(Ok(_)));
        read
    }
}

shown!(Scanned, it => cursor: it.cursor, time: it.time);
