//! A cursor over one batch, whose keys and values are borrowed from the batch.
//!
//! ```text
//! rows  | a 1 t0 | a 1 t2 | a 2 t1 | c 1 t0 |
//!          ^ first: of the key         ^ at: of the value
//! ```
//! Visited chunks stay in memory as long as the batch handle, so a full scan loads the whole batch.
//! Joins and reductions of larger arrangements use the engine's cursor instead.
//!
//! Invariant: `first` is the first row of a key, or the end of the batch. If `has_value`, `at` is
//! the first row of a value of the same key.

use differential_dataflow::trace::Cursor;

use super::RowBatch;
use crate::format::tail_of;
use crate::of::Of;
use crate::{DiffCode, Enc, EncVec, Row, TimeCode};

/// The position of a row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Place {
    chunk: usize,
    row: usize,
}

/// Iterates over the keys, values and times of a [`RowBatch`].
pub struct RowCursor<K, V, T, R> {
    first: Place,
    at: Place,
    has_value: bool,
    of: Of<(K, V, T, R)>,
}

impl<K: Row, V: Row, T: TimeCode, R: DiffCode> RowCursor<K, V, T, R> {
    /// Creates a cursor at the first key. A batch is never empty.
    pub(super) fn new() -> Self {
        Self { first: Place::default(), at: Place::default(), has_value: true, of: Of::default() }
    }

    fn has_row(place: Place, batch: &RowBatch<K, V, T, R>) -> bool {
        place.chunk < batch.chunks()
    }

    /// Returns the key and the value at `place`.
    #[inline]
    fn body(place: Place, batch: &RowBatch<K, V, T, R>) -> &[u8] {
        batch.chunk(place.chunk).body(place.row)
    }

    fn first_key<'a>(&self, batch: &'a RowBatch<K, V, T, R>) -> &'a [u8] {
        batch.key_of(Self::body(self.first, batch))
    }

    /// Returns the first row at or after `from` for which `below` is false. `below` must be true
    /// for some rows in front and false for the rest. A binary search over last rows finds the
    /// chunk, galloping finds the row.
    fn seek(batch: &RowBatch<K, V, T, R>, from: Place, below: impl Fn(&[u8]) -> bool) -> Place {
        if !Self::has_row(from, batch) {
            return from;
        }
        let (mut chunk, mut low) = (from.chunk, from.row);
        if below(batch.last_row(chunk)) {
            let (mut least, mut most) = (chunk + 1, batch.chunks());
            while least < most {
                let middle = least + (most - least) / 2;
                if below(batch.last_row(middle)) { least = middle + 1 } else { most = middle }
            }
            (chunk, low) = (least, 0);
            if chunk == batch.chunks() {
                return Place { chunk, row: 0 };
            }
        }
        let rows = batch.chunk(chunk);
        // Exponential search: the target is mostly near. Takes about 2 log2(distance) comparisons.
        let mut step = 1;
        if !below(rows.body(low)) {
            return Place { chunk, row: low };
        }
        while low + step < rows.len() && below(rows.body(low + step)) {
            low += step;
            step *= 2;
        }
        let (mut least, mut most) = (low + 1, (low + step).min(rows.len() - 1));
        while least < most {
            let middle = least + (most - least) / 2;
            if below(rows.body(middle)) { least = middle + 1 } else { most = middle }
        }
        Place { chunk, row: least }
    }

    /// Returns true if `place` is the first row, or `below` holds for the row before.
    fn is_least(batch: &RowBatch<K, V, T, R>, place: Place, below: impl Fn(&[u8]) -> bool) -> bool {
        match place {
            Place { chunk: 0, row: 0 } => true,
            Place { chunk, row: 0 } => below(batch.last_row(chunk - 1)),
            Place { chunk, row } => below(batch.chunk(chunk).body(row - 1)),
        }
    }

    /// Moves to the first value of the key at `place`.
    fn begin_key(&mut self, batch: &RowBatch<K, V, T, R>, place: Place) {
        (self.first, self.at) = (place, place);
        self.has_value = Self::has_row(place, batch);
    }

    /// Moves on to the first row of the key for which `below` is false.
    fn go_on(&mut self, batch: &RowBatch<K, V, T, R>, below: impl Fn(&[u8]) -> bool) {
        if self.has_value {
            let key = self.first_key(batch);
            self.at = Self::seek(batch, self.at, |row| row.starts_with(key) && below(row));
            self.has_value =
                Self::has_row(self.at, batch) && Self::body(self.at, batch).starts_with(key);
        }
    }
}

impl<K: Row, V: Row, T: TimeCode, R: DiffCode> Cursor for RowCursor<K, V, T, R> {
    type Storage = RowBatch<K, V, T, R>;
    type Key<'a> = Enc<'a, K>;
    type Val<'a> = Enc<'a, V>;
    type ValOwn = V;
    type Time = T;
    type TimeGat<'a> = &'a T;
    type Diff = R;
    type DiffGat<'a> = &'a R;
    type KeyContainer = EncVec<K>;
    type ValContainer = EncVec<V>;
    type TimeContainer = Vec<T>;
    type DiffContainer = Vec<R>;

    fn key_valid(&self, batch: &Self::Storage) -> bool {
        Self::has_row(self.first, batch)
    }

    fn val_valid(&self, _batch: &Self::Storage) -> bool {
        self.has_value
    }

    fn key<'a>(&self, batch: &'a Self::Storage) -> Enc<'a, K> {
        Enc::new(self.first_key(batch))
    }

    fn val<'a>(&self, batch: &'a Self::Storage) -> Enc<'a, V> {
        let body = Self::body(self.at, batch);
        Enc::new(&body[batch.key_of(body).len()..])
    }

    fn get_key<'a>(&self, batch: &'a Self::Storage) -> Option<Enc<'a, K>> {
        self.key_valid(batch).then(|| self.key(batch))
    }

    fn get_val<'a>(&self, batch: &'a Self::Storage) -> Option<Enc<'a, V>> {
        self.has_value.then(|| self.val(batch))
    }

    fn map_times<L: FnMut(&T, &R)>(&mut self, batch: &Self::Storage, mut logic: L) {
        if !self.has_value {
            return;
        }
        let body = Self::body(self.at, batch);
        let Place { mut chunk, mut row } = self.at;
        while chunk < batch.chunks() {
            let rows = batch.chunk(chunk);
            while row < rows.len() {
                if rows.body(row) != body {
                    return;
                }
                let (time, diff) = tail_of::<T, R>(rows.end(row));
                logic(&time, &diff);
                row += 1;
            }
            // A value may continue at the start of the next chunk.
            (chunk, row) = (chunk + 1, 0);
        }
    }

    fn step_key(&mut self, batch: &Self::Storage) {
        if self.key_valid(batch) {
            let key = self.first_key(batch);
            let place = Self::seek(batch, self.at, |row| row.starts_with(key));
            self.begin_key(batch, place);
        }
    }

    fn seek_key(&mut self, batch: &Self::Storage, key: Enc<'_, K>) {
        let below = |row: &[u8]| row < key.bytes();
        let is_before = self.key_valid(batch) && below(Self::body(self.first, batch));
        let from = if is_before || Self::is_least(batch, self.first, below) {
            self.first
        } else {
            Place::default()
        };
        let place = Self::seek(batch, from, below);
        self.begin_key(batch, place);
    }

    fn step_val(&mut self, batch: &Self::Storage) {
        if self.has_value {
            let body = Self::body(self.at, batch);
            self.go_on(batch, |row| row.starts_with(body));
        }
    }

    fn seek_val(&mut self, batch: &Self::Storage, val: Enc<'_, V>) {
        self.go_on(batch, |body| body[batch.key_of(body).len()..] < *val.bytes());
    }

    fn rewind_keys(&mut self, batch: &Self::Storage) {
        self.begin_key(batch, Place::default());
    }

    fn rewind_vals(&mut self, batch: &Self::Storage) {
        self.begin_key(batch, self.first);
    }
}
