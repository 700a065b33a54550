//! Replay of the history of one key: the times at which its reduction may change, and its input and
//! output at each of them.
//!
//! ```text
//! times      due: of new changes, and those kept for later             known: of all changes
//!              | t, the least                                              |
//!              +-- input and output as of t --> logic --> changes at t     |
//!              +-- join of t with every known time and every earlier one --+--> due, or later
//! ```
//! A reduction can change at a time without any change of input: at the join of two incomparable
//! times of changes. Totally ordered times have no such joins.
//!
//! Invariant: due times are taken in a linear extension of their partial order, so output produced
//! earlier is final.

use differential_dataflow::consolidation::consolidate;
use timely::progress::Antichain;
use windrow::Time;

use super::changes::Changes;
use crate::{DiffCode, Enc, RowCode, TimeCode};

/// Buffered changes from which on consolidation pays.
const COLLAPSE_FROM: usize = 16;

/// State of the replay of one key; reused for the next key.
pub(super) struct Replay<V, V2: RowCode, T, R, R2> {
    /// Old input, new input, and old output.
    pub(super) source: Changes<V, T, R>,
    pub(super) fresh: Changes<V, T, R>,
    pub(super) output: Changes<V2, T, R2>,
    produced: Vec<((V2::Owned, T), R2)>,
    /// Descending, each time once.
    due: Vec<T>,
    known: Vec<T>,
    earlier: Vec<T>,
    /// Number of buffered changes that triggers the next consolidation.
    collapsed: usize,
}

impl<V: RowCode, V2: RowCode, T: TimeCode, R: DiffCode, R2: DiffCode> Replay<V, V2, T, R, R2> {
    pub(super) fn new() -> Self {
        Self {
            source: Changes::new(),
            fresh: Changes::new(),
            output: Changes::new(),
            produced: Vec::new(),
            due: Vec::new(),
            known: Vec::new(),
            earlier: Vec::new(),
            collapsed: 0,
        }
    }

    /// Collects the due times, the times of new input and `kept`, and returns their meet.
    pub(super) fn begin(&mut self, kept: Vec<T>) -> Option<T> {
        self.due.clear();
        self.due.extend(self.fresh.times().cloned());
        self.due.extend(kept);
        self.due.sort_unstable_by(|a, b| b.cmp(a));
        self.due.dedup();
        let mut due = self.due.iter().rev();
        let first = due.next()?.clone();
        // In a total order, the meet is the least time.
        Some(if T::Code::TOTAL { first } else { due.fold(first, |meet, time| meet.meet(time)) })
    }

    /// Visits all due times before `upper`, and returns those not before `upper`. `logic` computes
    /// the output at each time, and `put` receives its difference to the present output as values,
    /// times and diffs.
    pub(super) fn run(
        &mut self,
        upper: &Antichain<T>,
        mut logic: impl FnMut(&[(Enc<'_, V>, R)], &[(V2::Owned, R2)], &mut Vec<(V2::Owned, R2)>),
        mut put: impl FnMut(&V2::Owned, &T, &R2),
    ) -> Vec<T> {
        self.load();
        let (mut later, mut changes) = (Vec::new(), Vec::new());
        while let Some(time) = self.due.pop() {
            if upper.less_equal(&time) {
                later.push(time);
                continue;
            }
            self.source.history.step_through(&time);
            self.fresh.history.step_through(&time);
            self.output.history.step_through(&time);
            self.collapse(&time);
            let input = self.input_at(&time);
            let output = self.output_at(&time);
            if !input.is_empty() || !output.is_empty() {
                logic(&input, &output, &mut changes);
                consolidate(&mut changes);
            }
            for (value, diff) in changes.drain(..) {
                put(&value, &time, &diff);
                self.produced.push(((value, time.clone()), diff));
            }
            self.spread(time);
        }
        later
    }

    /// Loads the changes into histories.
    fn load(&mut self) {
        self.source.begin_replay();
        self.fresh.begin_replay();
        self.output.begin_replay();
        self.produced.clear();
        self.earlier.clear();
        self.known.clear();
        self.collapsed = COLLAPSE_FROM;
        if !T::Code::TOTAL {
            let known = self.source.times().chain(self.fresh.times()).chain(self.output.times());
            self.known.extend(known.cloned());
            tidy(&mut self.known);
        }
    }

    /// Returns the input as of `time`.
    fn input_at<'a>(&'a self, time: &'a T) -> Vec<(Enc<'a, V>, R)> {
        let mut input: Vec<_> = self.source.as_of(time).chain(self.fresh.as_of(time)).collect();
        consolidate(&mut input);
        input
    }

    /// Returns the output as of `time`.
    fn output_at(&self, time: &T) -> Vec<(V2::Owned, R2)> {
        let before = self.output.as_of(time);
        let before = before.map(|(value, diff)| (V2::take(value.bytes()), diff));
        let produced = self.produced.iter().filter(|((_, at), _)| at.less_equal(time));
        let produced = produced.map(|((value, _), diff)| (value.clone(), diff.clone()));
        let mut output: Vec<_> = before.chain(produced).collect();
        consolidate(&mut output);
        output
    }

    /// If many changes are buffered, advances their times to the meet of `time` and all due times,
    /// and consolidates them.
    fn collapse(&mut self, time: &T) {
        let held = |replay: &Self| {
            replay.source.history.buffer().len()
                + replay.fresh.history.buffer().len()
                + replay.output.history.buffer().len()
                + replay.produced.len()
                + replay.earlier.len()
        };
        if held(self) <= self.collapsed {
            return;
        }
        let meet = match T::Code::TOTAL {
            true => time.clone(),
            false => self.due.iter().fold(time.clone(), |meet, time| meet.meet(time)),
        };
        self.source.history.advance_buffer_by(&meet);
        self.fresh.history.advance_buffer_by(&meet);
        self.output.history.advance_buffer_by(&meet);
        self.produced.iter_mut().for_each(|((_, time), _)| time.join_assign(&meet));
        consolidate(&mut self.produced);
        for times in [&mut self.known, &mut self.earlier] {
            times.iter_mut().for_each(|time| time.join_assign(&meet));
            tidy(times);
        }
        self.collapsed = COLLAPSE_FROM.max(2 * held(self));
    }

    /// Adds the joins of `time` with the times of all changes to the due times.
    fn spread(&mut self, time: T) {
        if T::Code::TOTAL {
            return;
        }
        for other in self.known.iter().chain(&self.earlier) {
            if !other.less_equal(&time) {
                let time = other.join(&time);
                if let Err(at) = self.due.binary_search_by(|due| time.cmp(due)) {
                    self.due.insert(at, time);
                }
            }
        }
        self.earlier.push(time);
    }
}

/// Sorts and deduplicates times.
fn tidy<T: Ord>(times: &mut Vec<T>) {
    times.sort();
    times.dedup();
}
