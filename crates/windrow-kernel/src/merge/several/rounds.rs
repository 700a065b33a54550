//! Rounds: a number of rows at a time, repeated if words do not decide.
//!
//! ```text
//! round    BATCH rows, or as many as surely fit, in the order of words
//! mixed    equal words of different rows: all is reset to the first of these rows, and repeated
//!          with comparisons of rows
//! full     the last row of fixed length that fits: rows equal to it are searched, and added
//! ```

use super::super::input::Target;
use super::super::level::Level;
use super::super::rows::{Rows, Stretch};
use super::Several;
use super::play::{NO_WORD, Place, Stop, play};
use super::stream::Stream;

/// Rows of a round: few enough to be merged twice, and enough to make saving the start cheap.
const BATCH: usize = 1024;

/// The state before a row whose word differs from all words before it: the point to go back to.
#[derive(Debug)]
pub(super) struct Saved {
    streams: Vec<Stream>,
    more: Vec<Stretch>,
    left: usize,
    place: Place,
    /// Number of written ends.
    ends: usize,
}

impl Saved {
    pub(super) fn new() -> Self {
        Self { streams: Vec::new(), more: Vec::new(), left: 0, place: Place::NONE, ends: 0 }
    }
}

impl Several<'_> {
    /// Merges into `out` until all rows are merged or the next row does not fit. With `SUMS`, all
    /// rows end in a diff and equal rows become one.
    pub(super) fn rounds<L: Level, R: Rows, const SUMS: bool>(
        &mut self,
        rows: R,
        out: &mut Target<'_>,
        wrapped: &mut dyn FnMut(&[u8], i64),
    ) {
        let before = out.ends.len();
        let mut place = first_place(out);
        let mut full = false;
        while self.left > 0 && !full {
            let mut count = self.left.min(BATCH);
            let mut exact = self.exact;
            if !R::VARY && !exact {
                match room(&place, rows.step()) {
                    0 => exact = true,
                    room => count = count.min(room),
                }
            }
            self.ready::<L, R>(rows, exact);
            if place.word != NO_WORD {
                // SAFETY: `from` is a merged row. `by_level` chose a level of this CPU.
                place.word = unsafe { self.game.words.of::<L>(place.from, 0).0 };
            } else {
                let stream = &self.game.streams[self.game.next()];
                // SAFETY: rows are left, so the winner has a head.
                place.from = unsafe { stream.row(rows) };
            }
            if R::VARY {
                out.ends.reserve(count);
                let written = out.ends.len() - usize::from(place.sum != 0);
                // SAFETY: `written` is within the reserved capacity.
                place.end = unsafe { out.ends.as_mut_ptr().add(written) };
            }
            if !exact && !self.game.ties(place.word) {
                self.saved.streams.clone_from(&self.game.streams);
                self.saved.more.clone_from(&self.game.more);
                (self.saved.left, self.saved.place) = (self.left, place);
                self.saved.ends = out.ends.len();
            }
            // SAFETY: `ready` started the game with this `exact`, and `count` rows are left.
            // `place` lies in `out` up to its limit, with `count` ends reserved if lengths vary.
            // Otherwise `count` rows fit, unless `exact`. Rows of sums end in diffs. `by_level`
            // chose a level of this CPU.
            let stop = unsafe {
                let (game, place) = (&mut self.game, &mut place);
                match (exact, self.hints.ties) {
                    (true, _) => L::run(|| {
                        play::<R, L, SUMS, true, false>(rows, game, place, count, wrapped)
                    }),
                    (false, true) if SUMS => L::run(|| {
                        play::<R, L, SUMS, false, true>(rows, game, place, count, wrapped)
                    }),
                    _ => L::run(|| {
                        play::<R, L, SUMS, false, false>(rows, game, place, count, wrapped)
                    }),
                }
            };
            let in_order = self.exact || !self.game.ties(place.word);
            match stop {
                Stop::Done => self.left -= count,
                Stop::Full(done) if in_order => {
                    self.left -= done;
                    full = true;
                }
                // Rows with this word may sort before the last row, as may the row that did not
                // fit.
                Stop::Full(_) | Stop::Mixed => {
                    place = self.go_back::<R, SUMS>(rows, out.ends);
                    continue;
                }
            }
            if R::VARY {
                // SAFETY: the ends up to the last row's are written.
                unsafe {
                    let written = place.end.offset_from(out.ends.as_ptr()) as usize;
                    out.ends.set_len(written + usize::from(place.sum != 0));
                }
            }
        }
        let last = if place.sum != 0 { place.len } else { 0 };
        let used = place.to as usize - out.bytes.as_ptr() as usize + last;
        self.written +=
            if R::VARY { out.ends.len() - before } else { (used - out.used) / rows.step() };
        out.used = used;
    }

    /// Builds words and the tree, unless done before with this `exact`.
    pub(super) fn ready<L: Level, R: Rows>(&mut self, rows: R, exact: bool) {
        if self.started == Some(exact) {
            return;
        }
        // SAFETY: the streams' rows live as long as this merge. `by_level` chose a level of this
        // CPU.
        unsafe {
            if exact {
                L::run(|| self.game.start::<R, L, true>(rows));
            } else {
                L::run(|| self.game.start::<R, L, false>(rows));
            }
        }
        self.started = Some(exact);
    }

    /// Restores the saved state and switches to exact comparison. Returns the place.
    fn go_back<R: Rows, const SUMS: bool>(&mut self, rows: R, ends: &mut Vec<u32>) -> Place {
        let Saved { streams, more, left, place: was, ends: written } = &mut self.saved;
        std::mem::swap(streams, &mut self.game.streams);
        std::mem::swap(more, &mut self.game.more);
        self.left = *left;
        (self.exact, self.started) = (true, None);
        ends.truncate(*written);
        if was.sum != 0 {
            // A later row may have changed or overwritten the last row.
            // SAFETY: `was.from` is a live row of `was.len` bytes, and `was.to` has space for it:
            // the row was written there before. With `SUMS`, it ends in a diff.
            unsafe {
                rows.copy(was.from, was.to, was.len);
                if SUMS {
                    was.to.add(was.len - 8).cast::<[u8; 8]>().write(was.sum.to_le_bytes());
                }
            }
            if R::VARY
                && let Some(end) = ends.last_mut()
            {
                *end = was.offset + was.len as u32;
            }
        }
        *was
    }
}

/// Returns the place after the rows of `out`.
fn first_place(out: &mut Target<'_>) -> Place {
    let most = out.bytes.len().min(u32::MAX as usize);
    let limit = most.saturating_sub(out.ends.len() * out.spare);
    assert!(out.used <= out.bytes.len());
    let bytes = out.bytes.as_mut_ptr();
    let (to, limit) = (bytes.wrapping_add(out.used), bytes.wrapping_add(limit));
    Place { to, limit, spare: out.spare, offset: out.used as u32, ..Place::NONE }
}

/// Returns how many rows of `len` bytes fit after the last row.
fn room(place: &Place, len: usize) -> usize {
    let last = if place.sum != 0 { len } else { 0 };
    (place.limit as usize - place.to as usize - last) / len
}
