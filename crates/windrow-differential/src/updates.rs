//! Updates in transit: rows one after the other, as a container of timely.
//!
//! ```text
//! in a process   | row | row | row |                      moved from worker to worker as they are
//! on a wire      records 8 | ends 8 | end 4 each | row | row | row |    numbers little-endian
//! ```
//! Rows received over a wire are read in place.
//!
//! Invariant: `ends` holds the end of each row, or nothing if all rows of the format have the same
//! length.

use timely::bytes::arc::Bytes;
use timely::container::{Accountable, PushInto, SizableContainer};
use timely::dataflow::channels::ContainerBytes;

use crate::format::{Format, put_tail};
use crate::of::{Of, Update};
use crate::{DiffCode, Row, RowCode, TimeCode};

/// Bytes of rows sent, or pushed into the engine, at once.
pub(crate) const PIECE: usize = 64 << 10;
/// Bytes of a number in the header.
const NUMBER: usize = 8;
/// Bytes of an end offset.
const END: usize = 4;

/// Updates `((K, V), T, R)` as rows.
pub struct Updates<K, V, T, R> {
    rows: Rows,
    /// The end offsets of the rows, empty if all rows have the same length.
    pub(crate) ends: Vec<u32>,
    /// The record count for timely.
    pub(crate) records: u64,
    of: Of<(K, V, T, R)>,
}

#[derive(Clone)]
enum Rows {
    Own(Vec<u8>),
    Wire(Bytes),
}

impl<K, V, T, R> Default for Updates<K, V, T, R> {
    fn default() -> Self {
        Self { rows: Rows::Own(Vec::new()), ends: Vec::new(), records: 0, of: Of::default() }
    }
}

impl<K, V, T, R> Clone for Updates<K, V, T, R> {
    fn clone(&self) -> Self {
        let Self { rows, ends, records, .. } = self;
        Self { rows: rows.clone(), ends: ends.clone(), records: *records, of: Of::default() }
    }
}

impl<K, V, T, R> Updates<K, V, T, R> {
    /// Returns the bytes of all rows.
    pub(crate) fn bytes(&self) -> &[u8] {
        match &self.rows {
            Rows::Own(rows) => rows,
            Rows::Wire(rows) => rows,
        }
    }

    /// Returns true if no rows are left. The record count may still be above zero.
    pub(crate) fn is_empty(&self) -> bool {
        self.bytes().is_empty()
    }

    /// Removes the rows, and keeps owned memory.
    pub(crate) fn clear(&mut self) {
        self.own().clear();
        self.ends.clear();
        self.records = 0;
    }

    /// Returns the bytes of all rows, to change.
    pub(crate) fn own(&mut self) -> &mut Vec<u8> {
        if let Rows::Wire(_) = self.rows {
            self.rows = Rows::Own(self.bytes().to_vec());
        }
        match &mut self.rows {
            Rows::Own(rows) => rows,
            Rows::Wire(_) => unreachable!("made its own a moment ago"),
        }
    }
}

impl<K: RowCode, V: RowCode, T: TimeCode, R: DiffCode> Updates<K, V, T, R> {
    /// Adds a row written by `put`.
    #[inline]
    pub(crate) fn push_with(&mut self, put: impl FnOnce(&mut Vec<u8>)) {
        let rows = self.own();
        put(rows);
        let end = rows.len();
        if Format::<K, V, T, R>::STRIDE.is_none() {
            self.ends.push(u32::try_from(end).expect("pieces are sent long before they are 4 GiB"));
        }
        self.records += 1;
    }

    /// Adds a copy of a row.
    #[inline]
    pub(crate) fn push_row(&mut self, row: &[u8]) {
        self.push_with(|out| out.extend_from_slice(row));
    }

    /// Removes the rows for which `is_kept` returns false. The record count is unchanged.
    pub(crate) fn retain(&mut self, is_kept: impl Fn(&[u8]) -> bool) {
        let mut kept = Self::default();
        self.iter().filter(|row| is_kept(row)).for_each(|row| kept.push_row(row));
        kept.records = self.records;
        *self = kept;
    }

    /// Iterates over the rows, in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let bytes = self.bytes();
        let count = match Format::<K, V, T, R>::STRIDE {
            Some(stride) => bytes.len() / stride,
            None => self.ends.len(),
        };
        let mut start = 0;
        (0..count).map(move |at| {
            let end = match Format::<K, V, T, R>::STRIDE {
                Some(stride) => start + stride,
                None => self.ends[at] as usize,
            };
            &bytes[std::mem::replace(&mut start, end)..end]
        })
    }
}

impl<K: Row, V: Row, T: TimeCode, R: DiffCode> PushInto<Update<K, V, T, R>>
    for Updates<K, V, T, R>
{
    #[inline]
    fn push_into(&mut self, update: Update<K, V, T, R>) {
        self.push_with(|out| Format::put(&update, out));
    }
}

/// An encoded key and value, with time and diff.
impl<K: RowCode, V: RowCode, T: TimeCode, R: DiffCode> PushInto<(&[u8], &T, &R)>
    for Updates<K, V, T, R>
{
    #[inline]
    fn push_into(&mut self, (body, time, diff): (&[u8], &T, &R)) {
        self.push_with(|out| {
            out.extend_from_slice(body);
            put_tail(time, diff, out);
        });
    }
}

/// Sent as soon as the rows fill a piece.
impl<K, V, T, R> SizableContainer for Updates<K, V, T, R> {
    fn at_capacity(&self) -> bool {
        self.bytes().len() >= PIECE
    }

    fn ensure_capacity(&mut self, _stash: &mut Option<Self>) {}
}

impl<K, V, T, R> Accountable for Updates<K, V, T, R> {
    fn record_count(&self) -> i64 {
        self.records as i64
    }
}

impl<K: 'static, V: 'static, T: 'static, R: 'static> ContainerBytes for Updates<K, V, T, R> {
    fn from_bytes(mut bytes: Bytes) -> Self {
        let mut number = || {
            let number = bytes.extract_to(NUMBER);
            u64::from_le_bytes(*number.first_chunk().expect("a head is whole"))
        };
        let (records, count) = (number(), number() as usize);
        let ends = bytes.extract_to(count * END);
        let end = |end: &[u8]| u32::from_le_bytes(*end.first_chunk().expect("an end is whole"));
        let ends = ends.chunks_exact(END).map(end).collect();
        Self { rows: Rows::Wire(bytes), ends, records, of: Of::default() }
    }

    fn length_in_bytes(&self) -> usize {
        2 * NUMBER + self.ends.len() * END + self.bytes().len()
    }

    fn into_bytes<W: std::io::Write>(&self, writer: &mut W) {
        let mut write = || -> std::io::Result<()> {
            let ends: Vec<u8> = self.ends.iter().flat_map(|end| end.to_le_bytes()).collect();
            writer.write_all(&self.records.to_le_bytes())?;
            writer.write_all(&(self.ends.len() as u64).to_le_bytes())?;
            writer.write_all(&ends)?;
            writer.write_all(self.bytes())
        };
        write().expect("timely makes room for as many bytes as it was told");
    }
}
