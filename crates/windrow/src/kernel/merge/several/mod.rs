//! The merge of several runs at once, of rows of one length or of any.
//!
//! ```text
//! words    bits of a row that tell it from the others, and its run
//! stream   a run's rows, one by one
//! game     the tree of losers over words
//! play     the loop: the winner's row goes to the output
//! rounds   so many rows at a time, again if words do not decide
//! ```
//!
//! Rows are read in the order in which they stand, and copied once, whatever the number of runs: the merge
//! is nearly as fast as the copy where rows are long and memory is far.
//!
//! What is merged is closed under equality: all rows of a sum are there.

mod game;
mod play;
mod rounds;
mod stream;
mod words;

use std::marker::PhantomData;

use super::Wrapped;
use super::input::{Sorted, Strided, Target, Varying, common};
use super::level::by_level;
use super::rows::{Fixed, Rows, Vary, by_stride};
use game::Game;
use rounds::Saved;
use stream::Stream;
use words::{Seen, Words};

/// Runs that are merged at once at the most.
pub(crate) const MOST_SEVERAL: usize = game::MOST;

/// Rows that are looked at to choose bits, in all.
const SAMPLE: usize = 128;

/// What the rows merged before were like.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Hints {
    /// Rows whose words agreed were not all equal.
    exact: bool,
    /// Many rows were equal.
    ties: bool,
    /// The bits that told them apart.
    seen: Option<Seen>,
}

/// Rows of several runs, being merged.
#[derive(Debug)]
pub(crate) struct Several<'a> {
    game: Game,
    /// The length of all rows, if they have one.
    stride: Option<usize>,
    /// Rows in all, rows that are left, and rows written.
    rows: usize,
    left: usize,
    written: usize,
    hints: Hints,
    /// Whether rows are looked at where words agree.
    exact: bool,
    /// Whether the tree was made with that look.
    started: Option<bool>,
    saved: Saved,
    lifetime: PhantomData<&'a [u8]>,
}

impl<'a> Several<'a> {
    /// Rows of one length of runs that all have some, each in two stretches of which the second may be
    /// empty. `None` if they are too many, or bodies too short.
    pub(crate) fn strided(runs: &[[Strided<'a>; 2]], hints: Hints) -> Option<Self> {
        Self::new(runs, hints)
    }

    /// The same of rows that vary.
    pub(crate) fn varying(runs: &[[Varying<'a>; 2]], hints: Hints) -> Option<Self> {
        Self::new(runs, hints)
    }

    fn new<V: Sorted<'a>>(runs: &[[V; 2]], hints: Hints) -> Option<Self> {
        let some = || runs.iter().flatten().filter(|rows| rows.len() > 0);
        let (stride, tail) = some().next().map(|rows| (rows.stride(), rows.tail()))?;
        assert!(some().all(|rows| (rows.stride(), rows.tail()) == (stride, tail)), "one layout");
        let body = some().map(|rows| rows.lengths().0).min()?.checked_sub(tail)?;
        if body < 8 || runs.len() > MOST_SEVERAL {
            return None;
        }
        // The least of first rows and the greatest of last rows: all others lie between them.
        let ends = some().map(Sorted::ends).reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)))?;
        let sample = some()
            .flat_map(|rows| looked_at(rows.len(), runs.len()).map(move |index| rows.body(index)));
        let words = words_of(sample, ends, body, runs.len(), hints.seen);
        let rows = some().map(Sorted::len).sum();
        let stretches = runs.iter().map(|run| run.each_ref().map(Sorted::stretch));
        let (streams, more): (Vec<Stream>, Vec<_>) =
            stretches.map(|[first, second]| (Stream::new(first), second)).unzip();
        assert!(streams.iter().all(|stream| !stream.head.is_null()), "runs with rows");
        Some(Self {
            game: Game::new(streams, more, words, tail),
            stride,
            rows,
            left: rows,
            written: 0,
            hints,
            exact: hints.exact,
            started: None,
            saved: Saved::new(),
            lifetime: PhantomData,
        })
    }

    /// True if all rows are merged.
    pub(crate) fn is_done(&self) -> bool {
        self.left == 0
    }

    /// What all rows were like, for those that come behind them.
    pub(crate) fn hints(&self) -> Hints {
        // Every other time it is tried again.
        let exact = self.exact && !self.hints.exact;
        let ties = (self.rows - self.written) * 8 > self.rows;
        Hints { exact, ties, seen: Some(self.game.words.seen()) }
    }

    /// The length of the next row, of which there is one.
    pub(crate) fn next_len(&mut self) -> usize {
        self.stride.unwrap_or_else(|| {
            let exact = self.exact;
            by_level!(L => self.ready::<L, Vary>(Vary, exact));
            let stream = &self.game.streams[self.game.next()];
            // SAFETY: the winner has a head.
            unsafe { Vary.len(stream.head) }
        })
    }

    /// Merges into `out`, which has room for a row, until all is merged or the next row has no room;
    /// returns the rows written. With `wrapped` equal rows become one, as in [`super::merge`]; without,
    /// those of the first run come first.
    pub(crate) fn merge(&mut self, out: &mut [u8], wrapped: Wrapped<'_>) -> usize {
        let Some(stride) = self.stride else { return 0 };
        let mut none = Vec::new();
        let mut target = Target { bytes: out, used: 0, ends: &mut none, spare: 0 };
        match wrapped {
            Some(wrapped) => self.sums(stride, &mut target, wrapped),
            None => {
                let rows = Fixed::<0>(stride);
                by_level!(L => self.rounds::<L, _, false>(rows, &mut target, &mut |_, _| {}));
            }
        }
        target.used / stride
    }

    /// Equal rows of `stride` bytes become one.
    fn sums(&mut self, stride: usize, out: &mut Target<'_>, wrapped: &mut dyn FnMut(&[u8], i64)) {
        assert!(self.game.tail == 8, "a diff");
        by_level!(L => by_stride!(rows = (stride, 8) => {
            self.rounds::<L, _, true>(rows, out, wrapped)
        }));
    }

    /// The same as [`Several::merge`] of rows that vary, behind those that are in `out`.
    pub(crate) fn merge_varying(&mut self, out: &mut Target<'_>, wrapped: Wrapped<'_>) {
        match wrapped {
            _ if self.stride.is_some() => {}
            Some(wrapped) => {
                assert!(self.game.tail == 8, "a diff");
                by_level!(L => self.rounds::<L, _, true>(Vary, out, wrapped));
            }
            None => by_level!(L => self.rounds::<L, _, false>(Vary, out, &mut |_, _| {})),
        }
    }
}

/// Which rows of a stretch of `len` rows are looked at, where there are so many `runs`.
fn looked_at(len: usize, runs: usize) -> impl Iterator<Item = usize> {
    let step = len.div_ceil((SAMPLE / runs).max(2));
    (0..len).step_by(step.max(1)).chain([len - 1])
}

/// Words of rows whose bodies have `body` bytes or more and lie between `ends`. Which bits are taken is known
/// from rows that came before, if they were `seen`, or else from `sample`, each of which memory is waited for.
fn words_of<'a>(
    sample: impl Iterator<Item = &'a [u8]>,
    (least, greatest): (&'a [u8], &'a [u8]),
    body: usize,
    runs: usize,
    seen: Option<Seen>,
) -> Words {
    assert!(body >= 8 && least.len() >= body && greatest.len() >= body, "rows");
    let at = common(least, greatest);
    let shift = runs.next_power_of_two().ilog2();
    // SAFETY: `body` bytes, as asserted.
    let mut words = unsafe { Words::new(least.as_ptr(), at, body, shift) };
    // SAFETY: as above.
    let known = unsafe { words.expect(seen, greatest.as_ptr()) };
    if !known {
        for row in sample {
            assert!(row.len() >= body);
            // SAFETY: as above.
            unsafe { words.see(row.as_ptr()) };
        }
    }
    words.choose();
    words
}

#[cfg(test)]
mod tests;
