//! One run, and a place in it.
//!
//! ```text
//! run   | chunk | chunk | chunk | ...      their first and last rows stay in memory, wherever they are
//!                   ^ chunk, row           the chunk that is looked at is held, no other
//!                  |-|                     or, where a key was looked up in a store, a part of it
//! ```
//!
//! Invariant: there is a row at the place, and its chunk is held, or a part that has it; or the place is behind the last
//! row. A reader that did not find a key may be at neither: it is moved before it is read.

use std::ops::Range;
use std::sync::Arc;

use super::probe::Hash;
use crate::chunk::{Found, Kept, PartRows, Sought, View, end_width, word_at};
use crate::error::Result;
use crate::merge::FencedRun;
use crate::order::Layout;

/// Where a row stands in its run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) chunk: usize,
    pub(super) row: usize,
}

/// Rows of a chunk, all of them or a part.
#[derive(Clone, Debug)]
struct Held {
    rows: Kept,
    /// Which row of the chunk the first of them is.
    first: usize,
    /// The part that they are.
    part: Option<usize>,
}

impl Held {
    fn whole(rows: Kept) -> Self {
        Self { rows, first: 0, part: None }
    }

    /// True if the first row of all with `key` is among them, or none is.
    fn is_around(&self, key: &[u8]) -> bool {
        let rows = self.rows.rows();
        rows.row(0) < key && rows.last() >= key
    }

    /// True if a row of the chunk is among them.
    #[inline]
    fn has(&self, row: usize) -> bool {
        self.part.is_none() || (self.first..self.first + self.rows.len()).contains(&row)
    }
}

/// A run that is read from anywhere.
#[derive(Clone, Debug)]
pub(super) struct Reader {
    run: Arc<FencedRun>,
    place: Place,
    held: Option<Held>,
    /// Bytes of the time and the diffs behind a row.
    behind: usize,
}

impl Reader {
    /// Nowhere in `run`, whose rows are of `layout` and of which nothing is read.
    pub(super) fn new(layout: &Layout, run: Arc<FencedRun>) -> Self {
        run.make_fences(layout);
        Self { run, place: Place::default(), held: None, behind: end_width(layout) }
    }

    /// The row at the place, with or without its time and diffs; none behind the last one.
    #[inline]
    pub(super) fn row(&self) -> Option<&[u8]> {
        let held = self.held.as_ref()?;
        Some(held.rows.rows().row(self.place.row - held.first))
    }

    /// A row of the chunk that is held: its key and value, then its time and diffs.
    #[inline(always)]
    fn split<'a>(&'a self, row: &'a [u8]) -> (&'a [u8], &'a [u8]) {
        self.held.as_ref().map_or((row, &[]), |held| held.rows.split(row, self.behind))
    }

    /// The key and the value at the place; nothing behind the last row.
    #[inline]
    pub(super) fn body(&self) -> &[u8] {
        self.row().map_or(&[], |row| self.split(row).0)
    }

    /// The time and the diffs at the place; nothing behind the last row.
    #[inline]
    pub(super) fn end(&self) -> &[u8] {
        self.row().map_or(&[], |row| self.split(row).1)
    }

    pub(super) fn place(&self) -> Place {
        self.place
    }

    pub(super) fn run(&self) -> &FencedRun {
        &self.run
    }

    /// The rows that are held, all with their times and diffs or all without, and which of them is at the place.
    #[inline]
    fn here(&self) -> Option<(View<'_>, usize)> {
        let held = self.held.as_ref()?;
        Some((held.rows.rows(), self.place.row - held.first))
    }

    /// The rows of a chunk, if they are in memory to stay, or held.
    #[inline]
    pub(super) fn rows_at_hand(&self, chunk: usize) -> Option<View<'_>> {
        match &self.held {
            Some(held) if self.place.chunk == chunk && held.part.is_none() => {
                Some(held.rows.rows())
            }
            _ => self.run.resident_at(chunk).map(Kept::rows),
        }
    }

    /// Goes to a place that there is, or behind the last row.
    pub(super) fn go_to(&mut self, place: Place) -> Result<()> {
        let is_held = |held: &Held| place.chunk == self.place.chunk && held.has(place.row);
        if !self.held.as_ref().is_some_and(is_held) {
            self.held = None;
            if place.chunk < self.run.chunks() {
                self.held = Some(Held::whole(self.run.read(place.chunk)?));
            }
        }
        self.place = place;
        Ok(())
    }

    /// Has all of the chunk at the place.
    fn hold_whole(&mut self) -> Result<()> {
        if self.held.as_ref().is_some_and(|held| held.part.is_some()) {
            self.held = None;
            self.go_to(self.place)?;
        }
        Ok(())
    }

    /// Where the rows go on behind those that are held.
    fn behind_held(&self) -> Place {
        let Place { chunk, row } = self.place;
        let end = self.held.as_ref().map_or(row, |held| held.first + held.rows.len());
        match end < self.run.rows_of(chunk) {
            true => Place { chunk, row: end },
            false => Place { chunk: chunk + 1, row: 0 },
        }
    }

    /// Goes to the next row.
    pub(super) fn step(&mut self) -> Result<()> {
        let Some((rows, row)) = self.here() else { return Ok(()) };
        if row + 1 < rows.len() {
            self.place.row += 1;
            return Ok(());
        }
        self.go_to(self.behind_held())
    }

    /// Goes to the first row of all for which `below`, true for the rows up to some one, is false. Costs a few
    /// comparisons if that is the place or close behind it, else as many as the number of rows has binary digits; one
    /// chunk is read at the most, but for those with a last row that is not kept.
    pub(super) fn seek(&mut self, below: impl Fn(&[u8]) -> bool) -> Result<()> {
        self.hold_whole()?;
        let Some((rows, _)) = self.here() else { return self.seek_chunk(0, below) };
        let Place { chunk, row } = self.place;
        if !below(rows.row(row)) {
            let before = match row.checked_sub(1) {
                Some(before) => Some(rows.row(before)),
                None => chunk.checked_sub(1).and_then(|before| self.run.last_row_of(before)),
            };
            return if before.is_some_and(&below) { Ok(()) } else { self.seek_chunk(0, below) };
        }
        if below(rows.last()) {
            return self.seek_chunk(chunk + 1, below);
        }
        self.place.row = gallop(rows, row..rows.len(), below);
        Ok(())
    }

    /// Goes on to the first row for which `below` is false, from the place on.
    pub(super) fn skip(&mut self, below: impl Fn(&[u8]) -> bool) -> Result<()> {
        let Some((rows, row)) = self.here() else { return Ok(()) };
        if !below(rows.row(row)) {
            return Ok(());
        }
        // It is the next one, mostly; the last one is far away.
        if row + 1 < rows.len() && !below(rows.row(row + 1)) {
            self.place.row += 1;
            return Ok(());
        }
        self.seek(below)
    }

    /// Goes to the first row with `key`, of which `hash` is the hash; false if there is none, and then it may be anywhere.
    /// A key that is not there is nearly always told from what is in memory of the chunks.
    pub(super) fn find(&mut self, key: &[u8], hash: &mut Hash) -> Result<bool> {
        let Some(fences) = self.run.fences() else { return self.find_unfenced(key) };
        let sought = fences.sought(key);
        let chunk = match self.place.chunk {
            at_hand if fences.holds(at_hand, &sought) => at_hand,
            _ => fences.chunk_of(&self.run, &sought),
        };
        if chunk == self.run.chunks()
            || fences.begins_behind(chunk, &sought)
            || fences.has_filter(chunk) && !fences.may_have(chunk, hash.of(key))
        {
            return Ok(false);
        }
        let (row, words) = (fences.guess(chunk, &sought), fences.words(chunk));
        self.find_near(Place { chunk, row }, &sought, words)
    }

    /// Goes to the first row with the key, which is near `place` or not at all, in a chunk whose ends have these words.
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

    /// Holds the chunk, or the part of it that has the first row which does not stand before the key; false if that is known
    /// not to have it.
    #[inline]
    fn hold_for(&mut self, chunk: usize, sought: &Sought<'_>) -> Result<bool> {
        if self.place.chunk == chunk
            && let Some(held) = &self.held
            && (held.part.is_none() || held.is_around(sought.key()))
        {
            return Ok(true);
        }
        match self.run.resident_at(chunk) {
            Some(_) => self.go_to(Place { chunk, row: 0 }).map(|()| true),
            None => self.hold_of_page(chunk, sought.key()),
        }
    }

    /// The same, of a chunk that is not in memory to stay, and of which a part is held at the most.
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

    /// As [`Reader::find_near`], in a run that has fences.
    pub(super) fn find_near_guess(&mut self, place: Place, key: &[u8]) -> Result<bool> {
        let Some(fences) = self.run.fences() else { return self.find_unfenced(key) };
        let (sought, words) = (fences.sought(key), fences.words(place.chunk));
        self.find_near(place, &sought, words)
    }

    /// Calls `each` with the times and diffs of the rows from the place on that start with `body`, as that at the place does;
    /// where there may be more of them, if that is beyond what is held.
    #[inline]
    pub(super) fn each_in_held(&self, body: &[u8], mut each: impl FnMut(&[u8])) -> Option<Place> {
        let (rows, mut at) = self.here()?;
        let last = body.len().saturating_sub(size_of::<u64>());
        let end = word_at(body, last);
        loop {
            each(self.split(rows.row(at)).1);
            at += 1;
            if at == rows.len() {
                let next = self.behind_held();
                let first = if next.row == 0 { self.run.first_row_of(next.chunk) } else { None };
                let ends = match first {
                    Some(first) => !first.starts_with(body),
                    None => next.chunk == self.run.chunks(),
                };
                return (!ends).then_some(next);
            }
            // The ends of values that follow each other differ, mostly.
            let row = rows.row(at);
            if body.len() >= size_of::<u64>() && word_at(row, last) != end || !row.starts_with(body)
            {
                return None;
            }
        }
    }

    /// Calls `each` with the key and value and the time and diffs of the rows from the place on that start with `key`, and
    /// goes behind them.
    pub(super) fn pass(&mut self, key: &[u8], mut each: impl FnMut(&[u8], &[u8])) -> Result<()> {
        const WORD: usize = size_of::<u64>();
        // What a row's first word says of its key: all, if that is short.
        let word = word_at(key, 0);
        let mask = match key.len() {
            0 => 0,
            len => u64::MAX << (8 * (WORD - len.min(WORD))),
        };
        let is_of_key = |row: &[u8]| {
            (word_at(row, 0) ^ word) & mask == 0 && (key.len() <= WORD || row.starts_with(key))
        };
        while let Some((rows, row)) = self.here() {
            let behind = (row..rows.len()).find(|&at| {
                let row = rows.row(at);
                let is_behind = !is_of_key(row);
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

    /// Where many readers hold more than the budget has, one that does not find its key lets go of its chunk.
    fn let_go(&mut self) {
        if self.held.as_ref().is_some_and(|held| held.rows.is_beyond_limit()) {
            self.held = None;
        }
    }

    /// As [`Reader::find`], in a run with rows so long that it has no fences.
    #[cold]
    fn find_unfenced(&mut self, key: &[u8]) -> Result<bool> {
        self.seek(|row| row < key)?;
        let found = self.row().is_some_and(|row| row.starts_with(key));
        if !found {
            self.let_go();
        }
        Ok(found)
    }

    /// As [`Reader::seek`], in the chunks from `first` on.
    fn seek_chunk(&mut self, first: usize, below: impl Fn(&[u8]) -> bool) -> Result<()> {
        let chunk = self.chunk_of(first, &below)?;
        self.go_to(Place { chunk, row: 0 })?;
        self.hold_whole()?;
        if let Some((rows, _)) = self.here() {
            self.place.row = rows.partition_point(0..rows.len(), below);
        }
        Ok(())
    }

    /// The first chunk from `first` on whose last row is not `below`; their number if there is none.
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

/// The first row of `range`, which starts with one that is `below`, for which that is false: found in as many
/// comparisons as twice the distance has binary digits.
fn gallop(rows: View<'_>, range: Range<usize>, below: impl Fn(&[u8]) -> bool) -> usize {
    let (mut low, mut step) = (range.start, 1);
    while low + step < range.end && below(rows.row(low + step)) {
        low += step;
        step *= 2;
    }
    rows.partition_point(low + 1..(low + step).min(range.end), below)
}
