//! A position in one run.
//!
//! ```text
//! run   | chunk | chunk | chunk | ...      first and last rows are always in memory
//!                   ^ chunk, row           only the current chunk is pinned,
//!                  |-|                     or, after a look-up in a store, a part of it
//! ```
//!
//! Invariant: there is a row at the position, and its chunk or a part with the row is held; or the
//! position is after the last row. Only a reader without the probe key may violate this until its
//! next move.

use std::sync::Arc;

use super::hash::{FilterTests, Hash};
use crate::chunk::{Found, Kept, PartRows, Sought, View, begins, end_width, gallop};
use crate::merge::FencedRun;
use windrow_rows::{Layout, Result};

/// The position of a row in its run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) chunk: usize,
    pub(super) row: usize,
}

/// The rows of a chunk, or of a part of it.
#[derive(Clone, Debug)]
struct Held {
    rows: Kept,
    /// Index of the first held row in the chunk.
    first: usize,
    /// Number of the part, if the rows are one.
    part: Option<usize>,
}

impl Held {
    /// Returns true if the held rows decide on `key`: its first row is among them, or the key is
    /// absent.
    fn is_around(&self, key: &[u8]) -> bool {
        let rows = self.rows.rows();
        rows.row(0) < key && rows.last() >= key
    }

    /// Returns true if row `row` of the chunk is held.
    #[inline]
    fn has(&self, row: usize) -> bool {
        self.part.is_none() || (self.first..self.first + self.rows.len()).contains(&row)
    }
}

/// Reads a run from any position.
#[derive(Clone, Debug)]
pub(super) struct Reader {
    pub(super) run: Arc<FencedRun>,
    pub(super) place: Place,
    held: Option<Held>,
    /// Bytes of a row's time and diffs.
    behind: usize,
}

impl Reader {
    /// Returns a reader without a position in `run`, whose rows are of `layout`. Reads no chunk.
    pub(super) fn new(layout: &Layout, run: Arc<FencedRun>) -> Self {
        run.make_fences(layout);
        Self { run, place: Place::default(), held: None, behind: end_width(layout) }
    }

    /// Returns the current row, with or without its time and diffs; `None` after the last row.
    #[inline]
    pub(super) fn row(&self) -> Option<&[u8]> {
        let held = self.held.as_ref()?;
        Some(held.rows.rows().row(self.place.row - held.first))
    }

    /// Returns true if the current row starts with `prefix`.
    #[inline]
    pub(super) fn is_at(&self, prefix: &[u8]) -> bool {
        self.row().is_some_and(|row| begins(row, prefix))
    }

    /// Splits a row of the held chunk into key and value, and time and diffs.
    #[inline(always)]
    fn split<'a>(&'a self, row: &'a [u8]) -> (&'a [u8], &'a [u8]) {
        self.held.as_ref().map_or((row, &[]), |held| held.rows.split(row, self.behind))
    }

    /// Returns the current key and value; empty after the last row.
    #[inline]
    pub(super) fn body(&self) -> &[u8] {
        self.row().map_or(&[], |row| self.split(row).0)
    }

    /// Returns the current time and diffs; empty after the last row.
    #[inline]
    pub(super) fn end(&self) -> &[u8] {
        self.row().map_or(&[], |row| self.split(row).1)
    }

    /// Returns the held rows, all with or all without time and diffs, and the index of the current
    /// row.
    #[inline]
    fn here(&self) -> Option<(View<'_>, usize)> {
        let held = self.held.as_ref()?;
        Some((held.rows.rows(), self.place.row - held.first))
    }

    /// Returns the rows of a chunk that is held or pinned in memory.
    #[inline]
    pub(super) fn rows_at_hand(&self, chunk: usize) -> Option<View<'_>> {
        match &self.held {
            Some(held) if self.place.chunk == chunk && held.part.is_none() => {
                Some(held.rows.rows())
            }
            _ => self.run.resident_at(chunk).map(|chunk| chunk.rows()),
        }
    }

    /// Returns the rows of a chunk that is in memory, but not [at hand](Reader::rows_at_hand).
    pub(super) fn pin(&self, chunk: usize) -> Option<Kept> {
        match self.rows_at_hand(chunk) {
            Some(_) => None,
            None => self.run.evictable_at(chunk),
        }
    }

    /// Moves to a valid position, or after the last row.
    pub(super) fn go_to(&mut self, place: Place) -> Result<()> {
        let is_held = |held: &Held| place.chunk == self.place.chunk && held.has(place.row);
        if !self.held.as_ref().is_some_and(is_held) {
            self.held = None;
            if place.chunk < self.run.chunks() {
                self.held = Some(Held { rows: self.run.read(place.chunk)?, first: 0, part: None });
            }
        }
        self.place = place;
        Ok(())
    }

    /// Replaces a held part by the whole chunk.
    fn hold_whole(&mut self) -> Result<()> {
        if self.held.as_ref().is_some_and(|held| held.part.is_some()) {
            self.held = None;
            self.go_to(self.place)?;
        }
        Ok(())
    }

    /// Returns the position after the held rows.
    fn behind_held(&self) -> Place {
        let Place { chunk, row } = self.place;
        let end = self.held.as_ref().map_or(row, |held| held.first + held.rows.len());
        match end < self.run.rows_of(chunk) {
            true => Place { chunk, row: end },
            false => Place { chunk: chunk + 1, row: 0 },
        }
    }

    /// Moves to the next row.
    pub(super) fn step(&mut self) -> Result<()> {
        let Some((rows, row)) = self.here() else { return Ok(()) };
        if row + 1 < rows.len() {
            self.place.row += 1;
            return Ok(());
        }
        self.go_to(self.behind_held())
    }

    /// Calls `see` with the row before the position, if there is one, with or without its time and
    /// diffs. Reads a chunk only if its last row is too long to stay in memory.
    pub(super) fn before(&mut self, see: impl FnOnce(&[u8])) -> Result<()> {
        self.hold_whole()?;
        match (self.here(), self.place.chunk.checked_sub(1)) {
            (Some((rows, row)), _) if row > 0 => see(rows.row(row - 1)),
            (_, Some(before)) => match self.run.last_row_of(before) {
                Some(row) => see(row),
                None => see(self.run.read(before)?.ends()[1]),
            },
            _ => {}
        }
        Ok(())
    }

    /// Moves to the row before the position, which must exist.
    pub(super) fn step_back(&mut self) -> Result<()> {
        let Place { mut chunk, mut row } = self.place;
        if row == 0 {
            chunk -= 1;
            row = self.run.rows_of(chunk);
        }
        self.go_to(Place { chunk, row: row - 1 })
    }

    /// Moves to the first row of the run for which `below` is false; `below` must be true for a
    /// prefix of the rows only. Costs a few comparisons if the position is close, otherwise a
    /// binary search. Reads at most one chunk, apart from chunks whose last row is too long to stay
    /// in memory.
    pub(super) fn seek(&mut self, below: impl Fn(&[u8]) -> bool) -> Result<()> {
        self.hold_whole()?;
        let Some((rows, _)) = self.here() else { return self.seek_chunk(0, below) };
        let Place { chunk, row } = self.place;
        if !below(rows.row(row)) {
            let before = match row.checked_sub(1) {
                Some(before) => Some(rows.row(before)),
                None => chunk.checked_sub(1).and_then(|before| self.run.last_row_of(before)),
            };
            if before.is_some_and(&below) {
                return Ok(());
            }
            if row == 0 || !below(rows.row(0)) {
                return self.seek_chunk(0, below);
            }
            let back = gallop(0..row, |back| !below(rows.row(row - 1 - back)));
            self.place.row -= back;
            return Ok(());
        }
        if below(rows.last()) {
            return self.seek_chunk(chunk + 1, below);
        }
        self.place.row = gallop(row + 1..rows.len(), |row| below(rows.row(row)));
        Ok(())
    }

    /// Moves forward to the first row for which `below` is false.
    pub(super) fn skip(&mut self, below: impl Fn(&[u8]) -> bool) -> Result<()> {
        let Some((rows, row)) = self.here() else { return Ok(()) };
        if !below(rows.row(row)) {
            return Ok(());
        }
        // The next row is the common case; far targets are rare.
        if row + 1 < rows.len() && !below(rows.row(row + 1)) {
            self.place.row += 1;
            return Ok(());
        }
        self.seek(below)
    }

    /// Moves to the first row with `key`, whose hash is `hash`. Returns false if the key is absent;
    /// the position is then arbitrary. Most absent keys are detected from the metadata in memory.
    pub(super) fn find(
        &mut self,
        key: &[u8],
        hash: &mut Hash,
        tested: &mut FilterTests,
    ) -> Result<bool> {
        let Some(fences) = self.run.fences() else { return self.find_unfenced(key) };
        let sought = fences.sought(key);
        let chunk = match self.place.chunk {
            at_hand if fences.holds(at_hand, &sought) => at_hand,
            _ => fences.chunk_of(&self.run, &sought),
        };
        if chunk == self.run.chunks()
            || fences.begins_behind(chunk, &sought)
            || !tested.pass((fences, chunk), key, hash)
        {
            return Ok(false);
        }
        let (row, words) = (fences.guess(chunk, &sought), fences.words(chunk));
        self.find_near(Place { chunk, row }, &sought, words)
    }

    /// Moves to the first row with the key, if the key is in the chunk of `place`; `words` are the
    /// words of the chunk's ends.
    pub(super) fn find_near(
        &mut self,
        Place { chunk, row: guess }: Place,
        sought: &Sought<'_>,
        words: [u64; 2],
    ) -> Result<bool> {
        if !self.hold_for(chunk, sought)? {
            return Ok(false);
        }
        let Some(held) = &self.held else { return Ok(false) };
        let rows = held.rows.rows();
        let near = match held.part {
            None => sought.closer(rows, guess, words),
            Some(_) => rows.len() / 2,
        };
        let row = sought.find(rows, near);
        let found = row < rows.len() && sought.is(rows, row);
        if found {
            self.place.row = held.first + row;
        } else {
            self.let_go();
        }
        Ok(found)
    }

    /// Holds the chunk, or the part with the first row that does not sort before the key. Returns
    /// false if the chunk cannot have the key.
    #[inline]
    fn hold_for(&mut self, chunk: usize, sought: &Sought<'_>) -> Result<bool> {
        if self.place.chunk == chunk
            && let Some(held) = &self.held
            && (held.part.is_none() || held.is_around(sought.key))
        {
            return Ok(true);
        }
        match self.run.resident_at(chunk) {
            Some(_) => self.go_to(Place { chunk, row: 0 }).map(|()| true),
            None => self.hold_of_page(chunk, sought.key),
        }
    }

    /// Does the same as [`Reader::hold_for`] for a chunk that is not pinned in memory.
    #[cold]
    fn hold_of_page(&mut self, chunk: usize, key: &[u8]) -> Result<bool> {
        let held = self.held.as_ref().filter(|_| self.place.chunk == chunk);
        match self.run.find_in(chunk, key, held.and_then(|held| held.part))? {
            Found::Nowhere => return Ok(false),
            Found::Within(PartRows { rows, first, number }) => {
                self.place = Place { chunk, row: first };
                self.held = Some(Held { rows, first, part: Some(number) });
            }
            Found::Unread => {
                self.held = None;
                self.go_to(Place { chunk, row: 0 })?;
            }
        }
        Ok(true)
    }

    /// Does the same as [`Reader::find_near`] for a run with fence pointers.
    pub(super) fn find_near_guess(&mut self, place: Place, key: &[u8]) -> Result<bool> {
        let Some(fences) = self.run.fences() else { return self.find_unfenced(key) };
        let (sought, words) = (fences.sought(key), fences.words(place.chunk));
        self.find_near(place, &sought, words)
    }

    /// Calls `each` with the time and diffs of every held row with prefix `body`, starting at the
    /// current row. Returns the next position if more such rows may follow.
    #[inline]
    pub(super) fn each_in_held(&self, body: &[u8], mut each: impl FnMut(&[u8])) -> Option<Place> {
        let (rows, mut at) = self.here()?;
        loop {
            each(self.split(rows.row(at)).1);
            at += 1;
            if at == rows.len() {
                let next = self.behind_held();
                let first = if next.row == 0 { self.run.first_row_of(next.chunk) } else { None };
                let ends = match first {
                    Some(first) => !begins(first, body),
                    None => next.chunk == self.run.chunks(),
                };
                return (!ends).then_some(next);
            }
            if !begins(rows.row(at), body) {
                return None;
            }
        }
    }

    /// Calls `each` with the body and the end of every row with prefix `key`, starting at the
    /// current row, and moves after these rows.
    pub(super) fn pass(&mut self, key: &[u8], mut each: impl FnMut(&[u8], &[u8])) -> Result<()> {
        while let Some((rows, row)) = self.here() {
            let behind = (row..rows.len()).find(|&at| {
                let row = rows.row(at);
                let is_behind = !begins(row, key);
                if !is_behind {
                    let (body, end) = self.split(row);
                    each(body, end);
                }
                is_behind
            });
            if let Some(behind) = behind {
                self.place.row += behind - row;
                return Ok(());
            }
            self.go_to(self.behind_held())?;
        }
        Ok(())
    }

    /// Releases the chunk of a reader that did not find its key, if many readers hold more than the
    /// budget.
    fn let_go(&mut self) {
        if self.held.as_ref().is_some_and(|held| held.rows.is_beyond_limit()) {
            self.held = None;
        }
    }

    /// Does the same as [`Reader::find`] for a run whose rows are too long for fence pointers.
    #[cold]
    fn find_unfenced(&mut self, key: &[u8]) -> Result<bool> {
        self.seek(|row| row < key)?;
        let found = self.is_at(key);
        if !found {
            self.let_go();
        }
        Ok(found)
    }

    /// Does the same as [`Reader::seek`] for the chunks from `first` on.
    fn seek_chunk(&mut self, first: usize, below: impl Fn(&[u8]) -> bool) -> Result<()> {
        let chunk = self.chunk_of(first, &below)?;
        self.go_to(Place { chunk, row: 0 })?;
        self.hold_whole()?;
        if let Some((rows, _)) = self.here() {
            self.place.row = rows.partition_point(0..rows.len(), below);
        }
        Ok(())
    }

    /// Returns the first chunk from `first` on whose last row is not `below`, or the number of
    /// chunks.
    fn chunk_of(&self, first: usize, below: impl Fn(&[u8]) -> bool) -> Result<usize> {
        let (mut low, mut high) = (first, self.run.chunks());
        while low < high {
            let middle = low + (high - low) / 2;
            let is_below = match self.run.last_row_of(middle) {
                Some(last) => below(last),
                None => below(self.run.read(middle)?.ends()[1]),
            };
            if is_below {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        Ok(low)
    }
}
