//! The tree of losers: who is next of all runs.
//!
//! ```text
//!              winner            a word goes up from its leaf: the less of two goes on, the greater
//!             /      \           stays
//!         loser      loser
//!         /   \      /   \
//!      run 0  run 1  run 2  run 3
//! ```
//!
//! Words are compared, and where they agree the rows, unless somebody else sees to that.
//!
//! Knuth, The Art of Computer Programming, volume 3, 5.4.1.

use std::cmp::Ordering;

use super::super::level::Level;
use super::super::rows::{Rows, Stretch};
use super::stream::Stream;
use super::words::{Words, none};

/// Runs at the most.
pub(super) const MOST: usize = 64;

/// The runs and who won.
#[derive(Debug)]
pub(super) struct Game {
    pub(super) streams: Vec<Stream>,
    /// What comes behind the stretch of each.
    pub(super) more: Vec<Stretch>,
    pub(super) words: Words,
    /// Losers; the first entry is not used.
    pub(super) tree: [u64; MOST],
    pub(super) leaves: usize,
    /// The word that won.
    pub(super) winner: u64,
    /// Bytes at the end of rows that are not compared.
    pub(super) tail: usize,
}

impl Game {
    /// A game of `streams`, at least one and at most [`MOST`], whose heads have words in `words`.
    pub(super) fn new(streams: Vec<Stream>, more: Vec<Stretch>, words: Words, tail: usize) -> Self {
        let leaves = streams.len().next_power_of_two();
        let tree = [0; MOST];
        Self { streams, more, words, tree, leaves, winner: 0, tail }
    }

    /// The number of the run whose head comes next.
    pub(super) fn next(&self) -> usize {
        self.winner as usize & (self.leaves - 1)
    }

    /// True if the next row's word agrees with `word`.
    pub(super) fn ties(&self, word: u64) -> bool {
        self.winner ^ word < self.leaves as u64
    }

    /// Makes all words, and plays all games.
    ///
    /// # Safety
    /// The streams' rows are there, and the CPU has the level's instructions.
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
                // SAFETY: rows that are there.
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
                    // SAFETY: the words of heads.
                    let (less, greater) = unsafe { self.play::<R, EXACT>(rows, a, b) };
                    (winners[node], self.tree[node]) = (less, greater);
                }
                self.winner = winners[1];
                return;
            };
            // SAFETY: a row.
            unsafe { self.words.see(astray) };
            self.words.choose();
        }
    }

    /// The lesser one of two words, and the other.
    ///
    /// # Safety
    /// They are the words of heads, whose rows are there, or of runs that are used up.
    #[inline(always)]
    pub(super) unsafe fn play<R: Rows, const EXACT: bool>(
        &self,
        rows: R,
        a: u64,
        b: u64,
    ) -> (u64, u64) {
        if EXACT && a ^ b < self.leaves as u64 {
            // SAFETY: as the function's.
            return unsafe { self.decide(rows, a, b) };
        }
        (a.min(b), a.max(b))
    }

    /// Plays the word of `run` up from its leaf, and returns the one that wins.
    ///
    /// Two games at a time, as far as words decide: with the less of both losers the winner is known after one comparison
    /// instead of two, and everything waits for who wins.
    ///
    /// # Safety
    /// As [`Game::play`]'s, and the run is one of the game's.
    #[inline(always)]
    pub(super) unsafe fn climb<R: Rows, const EXACT: bool>(
        &mut self,
        rows: R,
        run: usize,
        mut word: u64,
    ) -> u64 {
        let mut node = (self.leaves + run) / 2;
        while !EXACT && node > 1 {
            // SAFETY: nodes on the way to the root are below the number of leaves.
            let [first, second] = unsafe { self.tree.get_disjoint_unchecked_mut([node, node / 2]) };
            let less = word.min(*first);
            let won = word.min((*first).min(*second));
            (*first, *second) = (word.max(*first), less.max(*second));
            word = won;
            node /= 4;
        }
        while node > 0 {
            // SAFETY: as above; words are as the function's.
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

    /// Of two words that agree, the one whose row is less, or else whose run, and the other.
    ///
    /// # Safety
    /// As [`Game::play`]'s.
    #[cold]
    #[inline(never)]
    unsafe fn decide<R: Rows>(&self, rows: R, a: u64, b: u64) -> (u64, u64) {
        let mask = self.leaves as u64 - 1;
        let body = |word: u64| {
            let stream = &self.streams[(word & mask) as usize];
            // SAFETY: heads that are there, longer than their tail.
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

    /// Goes on in a run whose head is one of the last two of its stretch. Returns the bits in which the
    /// row behind the new head strays.
    ///
    /// # Safety
    /// As [`Game::start`]'s.
    #[cold]
    #[inline(never)]
    pub(super) unsafe fn turn<R: Rows, L: Level>(&mut self, rows: R, run: usize) -> u64 {
        let (stream, more) = (&mut self.streams[run], &mut self.more[run]);
        stream.turn(rows, more);
        // SAFETY: as the function's.
        let next = unsafe { stream.next(rows, more).map(|next| self.words.of::<L>(next, run)) };
        let (word, stray) = next.unwrap_or((none(run), 0));
        stream.word = word;
        stray
    }
}
