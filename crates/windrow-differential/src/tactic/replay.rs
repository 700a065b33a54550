//! The history of one key, replayed: at which times its reduction may change, and what there is at each of them.
//!
//! ```text
//! times      due: of new changes, and those kept for later             known: of all changes
//!              | t, the least                                              |
//!              +-- input and output as of t --> logic --> changes at t     |
//!              +-- join of t with every known time and every earlier one --+--> due, or later
//! ```
//! A reduction can change at a time at which nothing changed: that by which two changes, neither of which knows of the
//! other, have both been made. Where any two times are comparable there is no such time.
//!
//! Invariant: due times are taken in an order that goes on with theirs, so what was produced before is final.

use std::collections::BTreeSet;

use differential_dataflow::consolidation::consolidate;
use differential_dataflow::operators::history::ValueHistory;
use timely::progress::Antichain;
use windrow::Time;

use super::changes::{Changes, ValueId};
use crate::diff::DiffCode;
use crate::enc::Enc;
use crate::row::RowCode;
use crate::time::TimeCode;

/// Changes in buffers from which on it is worth while to put them together.
const COLLAPSE_FROM: usize = 16;

/// What is remembered of a key from one of its times to the next; used again for the next key.
pub(super) struct Replay<V, V2: RowCode, T, R, R2> {
    /// What was there before, what is new, and what was put out before.
    pub(super) source: Changes<V, T, R>,
    pub(super) fresh: Changes<V, T, R>,
    pub(super) output: Changes<V2, T, R2>,
    source_history: ValueHistory<ValueId, T, R>,
    fresh_history: ValueHistory<ValueId, T, R>,
    output_history: ValueHistory<ValueId, T, R2>,
    produced: Vec<((V2::Owned, T), R2)>,
    due: BTreeSet<T>,
    known: Vec<T>,
    earlier: Vec<T>,
    changes: Vec<(V2::Owned, R2)>,
    /// Changes in buffers when they were last put together.
    collapsed: usize,
}

impl<V: RowCode, V2: RowCode, T: TimeCode, R: DiffCode, R2: DiffCode> Replay<V, V2, T, R, R2> {
    pub(super) fn new() -> Self {
        Self {
            source: Changes::new(),
            fresh: Changes::new(),
            output: Changes::new(),
            source_history: ValueHistory::new(),
            fresh_history: ValueHistory::new(),
            output_history: ValueHistory::new(),
            produced: Vec::new(),
            due: BTreeSet::new(),
            known: Vec::new(),
            earlier: Vec::new(),
            changes: Vec::new(),
            collapsed: 0,
        }
    }

    /// The times at which the reduction is due: those of what is new, and of `kept`.
    pub(super) fn begin(&mut self, kept: impl IntoIterator<Item = T>) {
        self.due.clear();
        self.due.extend(self.fresh.times().cloned());
        self.due.extend(kept);
    }

    /// The greatest time that all due times are at or beyond.
    pub(super) fn meet(&self) -> Option<T> {
        let mut due = self.due.iter();
        let first = due.next()?.clone();
        // The least one, where any two are comparable.
        Some(if T::Code::TOTAL { first } else { due.fold(first, |meet, time| meet.meet(time)) })
    }

    /// Goes through all due times before `upper`: has `logic` say what is to be there, and `put` told how that differs
    /// from what is there, in values, times and diffs. Times that are not before `upper` come back in `later`.
    pub(super) fn run(
        &mut self,
        upper: &Antichain<T>,
        later: &mut Vec<T>,
        mut logic: impl FnMut(&[(Enc<'_, V>, R)], &[(V2::Owned, R2)], &mut Vec<(V2::Owned, R2)>),
        mut put: impl FnMut(&V2::Owned, &T, &R2),
    ) {
        self.load();
        while let Some(time) = self.due.pop_first() {
            if upper.less_equal(&time) {
                later.push(time);
                continue;
            }
            self.source_history.step_through(&time);
            self.fresh_history.step_through(&time);
            self.output_history.step_through(&time);
            self.collapse(&time);
            let mut changes = std::mem::take(&mut self.changes);
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
            self.changes = changes;
            self.spread(time);
        }
    }

    /// Loads the changes into histories.
    fn load(&mut self) {
        fn load<V, T: TimeCode, R: DiffCode>(
            history: &mut ValueHistory<ValueId, T, R>,
            changes: &Changes<V, T, R>,
        ) {
            let edit =
                |((value, time), diff): &((ValueId, T), R)| (*value, time.clone(), diff.clone());
            history.load_iter(changes.edits.iter().map(edit), None);
        }
        load(&mut self.source_history, &self.source);
        load(&mut self.fresh_history, &self.fresh);
        load(&mut self.output_history, &self.output);
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

    /// What there is at `time`.
    fn input_at(&self, time: &T) -> Vec<(Enc<'_, V>, R)> {
        let there = |((_, at), _): &&((ValueId, T), R)| at.less_equal(time);
        let source = self.source_history.buffer().iter().filter(there);
        let source = source.map(|((id, _), diff)| (self.source.value(*id), diff.clone()));
        let fresh = self.fresh_history.buffer().iter().filter(there);
        let fresh = fresh.map(|((id, _), diff)| (self.fresh.value(*id), diff.clone()));
        let mut input: Vec<_> = source.chain(fresh).collect();
        consolidate(&mut input);
        input
    }

    /// What was put out as of `time`.
    fn output_at(&self, time: &T) -> Vec<(V2::Owned, R2)> {
        let before = self.output_history.buffer().iter().filter(|((_, at), _)| at.less_equal(time));
        let before =
            before.map(|((id, _), diff)| (V2::take(self.output.value(*id).bytes()), diff.clone()));
        let produced = self.produced.iter().filter(|((_, at), _)| at.less_equal(time));
        let produced = produced.map(|((value, _), diff)| (value.clone(), diff.clone()));
        let mut output: Vec<_> = before.chain(produced).collect();
        consolidate(&mut output);
        output
    }

    /// Moves all times up to those that are still to come, if there are many, and puts together what that makes equal.
    fn collapse(&mut self, time: &T) {
        let held = |replay: &Self| {
            replay.source_history.buffer().len()
                + replay.fresh_history.buffer().len()
                + replay.output_history.buffer().len()
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
        self.source_history.advance_buffer_by(&meet);
        self.fresh_history.advance_buffer_by(&meet);
        self.output_history.advance_buffer_by(&meet);
        self.produced.iter_mut().for_each(|((_, time), _)| time.join_assign(&meet));
        consolidate(&mut self.produced);
        for times in [&mut self.known, &mut self.earlier] {
            times.iter_mut().for_each(|time| time.join_assign(&meet));
            tidy(times);
        }
        self.collapsed = COLLAPSE_FROM.max(2 * held(self));
    }

    /// Notes the times at which what changed at `time` meets other changes.
    fn spread(&mut self, time: T) {
        if T::Code::TOTAL {
            return;
        }
        for other in self.known.iter().chain(&self.earlier) {
            if !other.less_equal(&time) {
                self.due.insert(other.join(&time));
            }
        }
        self.earlier.push(time);
    }
}

/// Sorts times, each once.
fn tidy<T: Ord>(times: &mut Vec<T>) {
    times.sort();
    times.dedup();
}
