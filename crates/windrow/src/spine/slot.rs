//! The hand-over of a piece of work between the one who waits for it and the threads that do it.
//!
//! ```text
//!            take            put
//! waiting --------> working -----> waiting        whoever takes it does some of it
//!                           -----> ended --outcome--> empty
//!                            end
//! ```
//! Invariant: the work is in one place; who finds it working may wait until it is not. Tested in
//! `tests/merges_under_every_interleaving.rs`.

use super::sync::{Condvar, Mutex, MutexGuard};

/// A piece of work, and in the end what it came to.
pub(super) struct Slot<W, R> {
    state: Mutex<State<W, R>>,
    changed: Condvar,
}

enum State<W, R> {
    Waiting(W),
    Working,
    Ended(R),
    Empty,
}

impl<W, R> Slot<W, R> {
    /// Work that nobody does yet.
    pub(super) fn new(work: W) -> Self {
        Self { state: Mutex::new(State::Waiting(work)), changed: Condvar::new() }
    }

    fn state(&self) -> MutexGuard<'_, State<W, R>> {
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// The work, if nobody is at it. Who takes it has to [`Slot::put`] it back or [`Slot::end`] it.
    pub(super) fn take(&self) -> Option<W> {
        let mut state = self.state();
        match std::mem::replace(&mut *state, State::Working) {
            State::Waiting(work) => Some(work),
            other => {
                *state = other;
                None
            }
        }
    }

    /// Puts work back that was taken, some of it done.
    pub(super) fn put(&self, work: W) {
        self.become_not_working(State::Waiting(work));
    }

    /// Says what work came to that was taken.
    pub(super) fn end(&self, outcome: R) {
        self.become_not_working(State::Ended(outcome));
    }

    fn become_not_working(&self, state: State<W, R>) {
        *self.state() = state;
        self.changed.notify_all();
    }

    /// What the work came to, once.
    pub(super) fn outcome(&self) -> Option<R> {
        let mut state = self.state();
        match std::mem::replace(&mut *state, State::Empty) {
            State::Ended(outcome) => Some(outcome),
            other => {
                *state = other;
                None
            }
        }
    }

    /// True once it has ended.
    pub(super) fn is_over(&self) -> bool {
        matches!(*self.state(), State::Ended(_) | State::Empty)
    }

    /// Waits while somebody is at it.
    pub(super) fn wait(&self) {
        let mut state = self.state();
        while let State::Working = *state {
            state = self.changed.wait(state).unwrap_or_else(|poisoned| poisoned.into_inner());
        }
    }
}
