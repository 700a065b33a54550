//! Rows of a table on their way out: found one by one, decoded many at a time.

use arrow_array::RecordBatch;

use super::Table;
use crate::batch::Decoder;
use crate::cursor::Cursor;
use crate::error::Result;

/// Bytes of rows beyond which a record batch ends: far below what offsets of strings reach.
const MOST_BYTES: usize = 256 << 20;

/// Rows as bytes, one behind the other.
#[derive(Default)]
pub(super) struct Found {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Found {
    /// Takes the rows with the key at which `cursor` is that are there at `time`, and moves it behind them.
    pub(super) fn take_rows(&mut self, cursor: &mut Cursor, time: u64) -> Result<()> {
        while cursor.has_value() {
            let mut count = 0;
            cursor.map_times(|at, diff| count += if at <= time { diff } else { 0 })?;
            if count > 0
                && let Some(row) = cursor.row()
            {
                self.bytes.extend_from_slice(row);
                self.ends.push(self.bytes.len());
            }
            cursor.step_value()?;
        }
        Ok(())
    }

    /// The rows as columns.
    pub(super) fn decode(&self, decoder: &mut Decoder) -> Result<RecordBatch> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        decoder.decode_rows(starts.zip(&self.ends).map(|(start, &end)| &self.bytes[start..end]))
    }
}

/// What is to be read of a [`Table`].
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

    /// Begins at this key: a record batch of one row with the columns of the key.
    pub fn from(mut self, key: &RecordBatch) -> Self {
        self.from = Some(key.clone());
        self
    }

    /// Ends before this key: a record batch of one row with the columns of the key.
    pub fn to(mut self, key: &RecordBatch) -> Self {
        self.to = Some(key.clone());
        self
    }

    /// As the table was at this time.
    pub fn at(mut self, time: u64) -> Self {
        self.time = Some(time);
        self
    }

    /// The rows, `rows` at a time; less where they take 256 MiB.
    ///
    /// # Errors
    /// [`Error::SchemaMismatch`](crate::Error::SchemaMismatch) if an end is not of the columns of the key,
    /// [`Error::InvalidOrder`](crate::Error::InvalidOrder) if it is not one row, or the time is forgotten; what reading
    /// a chunk reports, here and from the iterator.
    pub fn batches(self, rows: usize) -> Result<Scanned> {
        let Self { table, from, to, time } = self;
        let time = time.unwrap_or(table.now());
        table.check_time(time)?;
        let key = |key: RecordBatch| match key.num_rows() {
            1 => Ok(table.keys.encode(&key)?.row(0).to_vec()),
            rows => Err(crate::error::Error::InvalidOrder(format!("a key of {rows} rows"))),
        };
        let (from, to) = (from.map(key).transpose()?, to.map(key).transpose()?);
        let mut cursor = table.cursor()?;
        match from {
            Some(from) => cursor.seek_key(&from)?,
            None => cursor.rewind_keys()?,
        }
        let decoder = table.decoder()?;
        Ok(Scanned { cursor, decoder, to, time, rows: rows.max(1), failed: false })
    }
}

/// Record batches of a [`Table`], read as they are asked for. They do not see what becomes of it. Ends with the first error.
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
        let mut found = Found::default();
        while found.ends.len() < self.rows && found.bytes.len() < MOST_BYTES {
            let to = self.to.as_deref();
            if self.cursor.key().is_none_or(|key| to.is_some_and(|to| key >= to)) {
                break;
            }
            found.take_rows(&mut self.cursor, self.time)?;
            self.cursor.step_key()?;
        }
        if found.ends.is_empty() { Ok(None) } else { found.decode(&mut self.decoder).map(Some) }
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

impl std::fmt::Debug for Scanned {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut out = f.debug_struct("Scanned");
        out.field("cursor", &self.cursor).field("time", &self.time).finish_non_exhaustive()
    }
}
