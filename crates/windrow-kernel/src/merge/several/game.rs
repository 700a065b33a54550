//! The tree of losers, which finds the next row of all runs.
//!
//! ```text
//!              winner            a word goes up from its leaf: the lesser of two moves on,
//!             /      \           the greater stays
//!         loser      loser
//!         /   \      /   \
//!      run 0  run 1  run 2  run 3
//! ```
//!
//! The tree compares words. Where they agree it compares rows with `EXACT`, and otherwise the
//! caller does.
//!
//! Knuth, The Art of Computer Programming, volume 3, 5.4.1.

use std::cmp::Ordering;

use super::super::level::Level;
use super::super::rows::{Rows, Stretch};
use super::stream::Stream;
use super::words::{Words, none};

/// Most runs of a game.
pub(super) const MOST: usize = 64;

/// The runs and the current winner.
#[derive(Debug)]
pub(super) struct Game {
    pub(super) streams: Vec<Stream>,
    /// The stretch that follows each stream's.
    pub(super) more: Vec<Stretch>,
    pub(super) words: Words,
    /// Losers; the first entry is unused.
    pub(super) tree: [u64; MOST],
    pub(super) leaves: usize,
    /// The winner's word.
    pub(super) winner: u64,
    /// Bytes at the end of rows that are not compared.
    pub(super) tail: usize,
}

impl Game {
    /// Creates a game of `streams`, at least one and at most [`MOST`].
    pub(super) fn new(streams: Vec<Stream>, more: Vec<Stretch>, words: Words, tail: usize) -> Self {
        let leaves = streams.len().next_power_of_two();
        let tree = [0; MOST];
        Self { streams, more, words, tree, leaves, winner: 0, tail }
    }

    /// Returns the number of the run whose head comes next.
    pub(super) fn next(&self) -> usize {
        self.winner as usize & (self.leaves - 1)
    }

    /// Returns whether the next row's word agrees with `word`.
    pub(super) fn ties(&self, word: u64) -> bool {
        self.winner ^ word < self.leaves as u64
    }

    /// Makes all words and plays all games.
    ///
    /// # Safety
    /// The streams' rows live, and the CPU has the level's instructions.
    #[inline(always)]
    pub(super) unsafe fn start<R: Rows, L: Level, const EXACT: bool>(&mut self, rows: R) {
        loop {
            let mut winners = [0; 2 * MOST];
            let mut astray = None;
            for (run, winner) in winners[self.leaves..2 * self.leaves].iter_mut().enumerate() {
                *winner = none(run);
                let Some(stream) = self.streams.get_mut(run) else { continue };
                stream.word = none(run);
                if stream.head.is_null() {
                    continue;
                }
                // SAFETY: the head and the row after it live, by the caller's promise. The CPU has
                // the level's instructions.
                unsafe {
                    let head = stream.row(rows);
                    let (word, stray) = self.words.of::<L>(head, run);
                    *winner = word;
                    astray = if stray == 0 { astray } else { Some(head) };
                    if let Some(next) = stream.next(rows, &self.more[run]) {
                        let (word, stray) = self.words.of::<L>(next, run);
                        stream.word = word;
                        astray = if stray == 0 { astray } else { Some(next) };
                    }
                }
            }
            let Some(astray) = astray else {
                for node in (1..self.leaves).rev() {
                    let (a, b) = (winners[2 * node], winners[2 * node + 1]);
                    // SAFETY: both words belong to live heads or to exhausted runs.
                    let (less, greater) = unsafe { self.play::<R, EXACT>(rows, a, b) };
                    (winners[node], self.tree[node]) = (less, greater);
                }
                self.winner = winners[1];
                return;
            };
            // SAFETY: `astray` is a live row.
            unsafe { self.words.see(astray) };
            self.words.choose();
        }
    }

    /// Returns the lesser one of two words, and the other.
    ///
    /// # Safety
    /// Each word belongs to a live head or to an exhausted run.
    #[inline(always)]
    pub(super) unsafe fn play<R: Rows, const EXACT: bool>(
        &self,
        rows: R,
        a: u64,
        b: u64,
    ) -> (u64, u64) {
        if EXACT && a ^ b < self.leaves as u64 {
            // SAFETY: the caller provides words of live heads or of exhausted runs. Words that
            // agree belong to heads, since the word of an exhausted run agrees with no other.
            return unsafe { self.decide(rows, a, b) };
        }
        (a.min(b), a.max(b))
    }

    /// Plays the word of `run` up from its leaf, and returns the word that wins.
    ///
    /// Without `EXACT`, two games at a time: with the lesser of both losers the winner is known
    /// after one comparison instead of two. All else waits for the winner.
    ///
    /// # Safety
    /// `word` and the words of the tree belong to live heads or to exhausted runs, and `run` is a
    /// run of the game.
    #[inline(always)]
    pub(super) unsafe fn climb<R: Rows, const EXACT: bool>(
        &mut self,
        rows: R,
        run: usize,
        mut word: u64,
    ) -> u64 {
        let mut node = (self.leaves + run) / 2;
        while !EXACT && node > 1 {
            // SAFETY: nodes on the way to the root are below the number of leaves, and the two
            // nodes differ.
            let [first, second] = unsafe { self.tree.get_disjoint_unchecked_mut([node, node / 2]) };
            let less = word.min(*first);
            let won = word.min((*first).min(*second));
            (*first, *second) = (word.max(*first), less.max(*second));
            word = won;
            node /= 4;
        }
        while node > 0 {
            // SAFETY: nodes on the way to the root are below the number of leaves. The words are of
            // live heads or of exhausted runs.
            unsafe {
                let other = *self.tree.get_unchecked(node);
                let (less, greater) = self.play::<R, EXACT>(rows, word, other);
                *self.tree.get_unchecked_mut(node) = greater;
                word = less;
            }
            node /= 2;
        }
        word
    }

    /// Orders two words that agree by their rows, or by run number if the rows are equal.
    ///
    /// # Safety
    /// Both words belong to live heads.
    #[cold]
    #[inline(never)]
    unsafe fn decide<R: Rows>(&self, rows: R, a: u64, b: u64) -> (u64, u64) {
        let mask = self.leaves as u64 - 1;
        let body = |word: u64| {
            let stream = &self.streams[(word & mask) as usize];
            // SAFETY: the caller promises live heads, and rows are longer than their tail.
            unsafe {
                let len = rows.body(rows.len(stream.head), self.tail);
                std::slice::from_raw_parts(stream.row(rows), len)
            }
        };
        match body(a).cmp(body(b)) {
            Ordering::Less => (a, b),
            Ordering::Equal => (a.min(b), a.max(b)),
            Ordering::Greater => (b, a),
        }
    }

    /// Advances a run whose head is one of the last two rows of its stretch. Returns the bits in
    /// which the row after the new head strays.
    ///
    /// # Safety
    /// The streams' rows live, and the CPU has the level's instructions.
    #[cold]
    #[inline(never)]
    pub(super) unsafe fn turn<R: Rows, L: Level>(&mut self, rows: R, run: usize) -> u64 {
        let (stream, more) = (&mut self.streams[run], &mut self.more[run]);
        stream.turn(rows, more);
        // SAFETY: the caller promises live rows and a CPU of the level.
        let next = unsafe { stream.next(rows, more).map(|next| self.words.of::<L>(next, run)) };
        let (word, stray) = next.unwrap_or((none(run), 0));
        stream.word = word;
        stray
    }
}
