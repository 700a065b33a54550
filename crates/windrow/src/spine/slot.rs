//! A slot for work shared by a waiting caller and worker threads.
//!
//! ```text
//!            take            put
//! waiting --------> working -----> waiting        the taker does some of the work
//!                           -----> ended --outcome--> empty
//!                            end
//! ```
//! Invariant: the work is in one place. Callers can wait while the state is `Working`. Tested in
//! `tests/merges_under_every_interleaving.rs`.

use super::sync::{Condvar, Mutex, MutexGuard};

/// A piece of work, and finally its outcome.
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
    /// Returns a slot with unclaimed work.
    pub(super) fn new(work: W) -> Self {
        Self { state: Mutex::new(State::Waiting(work)), changed: Condvar::new() }
    }

    fn state(&self) -> MutexGuard<'_, State<W, R>> {
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Takes unclaimed work. The caller must call [`Slot::put`] or [`Slot::end`] afterwards.
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

    /// Puts partly finished work back.
    pub(super) fn put(&self, work: W) {
        self.become_not_working(State::Waiting(work));
    }

    /// Stores the outcome of taken work.
    pub(super) fn end(&self, outcome: R) {
        self.become_not_working(State::Ended(outcome));
    }

    fn become_not_working(&self, state: State<W, R>) {
        *self.state() = state;
        self.changed.notify_all();
    }

    /// Takes the outcome, if the work has ended.
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

    /// Returns true once the work has ended.
    pub(super) fn is_over(&self) -> bool {
        matches!(*self.state(), State::Ended(_) | State::Empty)
    }

    /// While the state is `Working`, waits for the next change of the state: whoever puts work back
    /// may take it again at once, and the caller has something to do between. May return earlier.
    pub(super) fn wait(&self) {
        let state = self.state();
        if let State::Working = *state {
            drop(self.changed.wait(state));
        }
    }
}
