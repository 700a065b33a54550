//! The merge of several runs at once, of rows of one length or of any.
//!
//! ```text
//! words    bits that distinguish a row from the others, and its run
//! stream   a run's rows, one by one
//! game     the loser tree over words
//! play     the loop: the winner's row goes to the output
//! rounds   blocks of rows, repeated if words do not decide
//! ```
//!
//! The merge reads rows sequentially and copies each once, whatever the number of runs. It is
//! nearly as fast as the copy where rows are long and memory is far.
//!
//! The inputs of a merge are closed under equality: they contain all rows of a sum.

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

/// Most runs of one merge.
pub const MOST_SEVERAL: usize = game::MOST;

/// Rows sampled to choose bits, in all.
const SAMPLE: usize = 128;

/// Properties of the rows merged before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hints {
    /// Whether rows with equal words were not all equal.
    exact: bool,
    /// Whether many rows were equal.
    ties: bool,
    /// The bits that distinguished the rows.
    seen: Option<Seen>,
}

/// A merge of several runs.
#[derive(Debug)]
pub struct Several<'a> {
    game: Game,
    /// The length of all rows, if they have one length.
    stride: Option<usize>,
    /// Rows in all, rows left, and rows written.
    rows: usize,
    left: usize,
    written: usize,
    hints: Hints,
    /// Whether rows are compared where words agree.
    exact: bool,
    /// The `exact` that the tree was built with, if it was built.
    started: Option<bool>,
    saved: Saved,
    lifetime: PhantomData<&'a [u8]>,
}

impl<'a> Several<'a> {
    /// Creates a merge of rows of one length. No run is empty, and each has two stretches, of which
    /// the second may be empty. Returns `None` if runs are too many, or bodies too short.
    pub fn strided(runs: &[[Strided<'a>; 2]], hints: Hints) -> Option<Self> {
        Self::new(runs, hints)
    }

    /// Creates a merge of rows of varying lengths as [`Several::strided`] does.
    pub fn varying(runs: &[[Varying<'a>; 2]], hints: Hints) -> Option<Self> {
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
        // The least first row and the greatest last row: all others lie between them.
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

    /// Returns whether all rows are merged.
    pub fn is_done(&self) -> bool {
        self.left == 0
    }

    /// Returns hints for the merge of the rows that follow.
    pub fn hints(&self) -> Hints {
        // An exact merge tries inexact again every other time.
        let exact = self.exact && !self.hints.exact;
        let ties = (self.rows - self.written) * 8 > self.rows;
        Hints { exact, ties, seen: Some(self.game.words.seen()) }
    }

    /// Returns the length of the next row. There must be one.
    pub fn next_len(&mut self) -> usize {
        self.stride.unwrap_or_else(|| {
            let exact = self.exact;
            by_level!(L => self.ready::<L, Vary>(Vary, exact));
            let stream = &self.game.streams[self.game.next()];
            // SAFETY: rows are left, so the winner has a head.
            unsafe { Vary.len(stream.head) }
        })
    }

    /// Merges into `out` until all rows are merged or the next row does not fit; `out` has space
    /// for one row at least. Returns the number of written rows. With `wrapped`, equal rows become
    /// one, as in [`super::merge`]; without, equal rows keep the order of their runs.
    pub fn merge(&mut self, out: &mut [u8], wrapped: Wrapped<'_>) -> usize {
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

    /// Merges rows of `stride` bytes and adds up equal rows.
    fn sums(&mut self, stride: usize, out: &mut Target<'_>, wrapped: &mut dyn FnMut(&[u8], i64)) {
        assert!(self.game.tail == 8, "a diff");
        by_level!(L => by_stride!(rows = (stride, 8) => {
            self.rounds::<L, _, true>(rows, out, wrapped)
        }));
    }

    /// Merges rows of varying lengths as [`Several::merge`] does, after the rows in `out`.
    pub fn merge_varying(&mut self, out: &mut Target<'_>, wrapped: Wrapped<'_>) {
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

/// Returns the sampled rows of a stretch of `len` rows, for `runs` runs.
fn looked_at(len: usize, runs: usize) -> impl Iterator<Item = usize> {
    let step = len.div_ceil((SAMPLE / runs).max(2));
    (0..len).step_by(step.max(1)).chain([len - 1])
}

/// Makes the words of rows whose bodies have at least `body` bytes and lie between `ends`. The bits
/// come from rows merged before, if `seen`, otherwise from `sample`, each row of which waits for
/// memory.
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
    // SAFETY: `least` has `body` bytes, at least 8, as asserted.
    let mut words = unsafe { Words::new(least.as_ptr(), at, body, shift) };
    // SAFETY: `greatest` has `body` bytes, as asserted.
    let known = unsafe { words.expect(seen, greatest.as_ptr()) };
    if !known {
        for row in sample {
            assert!(row.len() >= body);
            // SAFETY: the row has `body` bytes, as asserted.
            unsafe { words.see(row.as_ptr()) };
        }
    }
    words.choose();
    words
}

#[cfg(test)]
mod tests;
