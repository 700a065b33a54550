//! Frontiers: sets of times, none at or beyond another.

use super::Time;

/// A frontier: times in ascending order, none at or beyond another. Nothing is beyond an empty
/// frontier. A frontier of one element, the common case, allocates no memory.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Antichain<T> {
    elements: Elements<T>,
}

#[derive(Clone, PartialEq, Eq, Hash)]
enum Elements<T> {
    None,
    One(T),
    /// Two or more.
    Many(Vec<T>),
}

impl<T: Time> Antichain<T> {
    /// Returns the empty frontier: nothing is beyond it.
    pub fn new() -> Self {
        Self { elements: Elements::None }
    }

    /// Returns the least frontier: every time is at or beyond it.
    pub fn least() -> Self {
        Self::at(T::least())
    }

    /// Returns the frontier of one time.
    pub fn at(time: T) -> Self {
        Self { elements: Elements::One(time) }
    }

    /// Returns the elements, in ascending order.
    pub fn elements(&self) -> &[T] {
        match &self.elements {
            Elements::None => &[],
            Elements::One(time) => std::slice::from_ref(time),
            Elements::Many(times) => times,
        }
    }

    /// Returns true if nothing is beyond the frontier.
    pub fn is_empty(&self) -> bool {
        self.elements().is_empty()
    }

    /// Adds `time` unless it is at or beyond an element, and removes elements at or beyond `time`.
    /// Returns true if `time` was added.
    pub fn insert(&mut self, time: T) -> bool {
        if self.less_equal(time) {
            return false;
        }
        let stays = |element: &T| !time.less_equal(*element);
        if !self.elements().iter().any(stays) {
            self.elements = Elements::One(time);
            return true;
        }
        let mut times: Vec<T> = self.elements().iter().copied().filter(stays).collect();
        let at = times.partition_point(|&element| element < time);
        times.insert(at, time);
        self.elements = Elements::Many(times);
        true
    }

    /// Returns true if `time` is at or beyond the frontier.
    #[inline]
    pub fn less_equal(&self, time: T) -> bool {
        self.elements().iter().any(|element| element.less_equal(time))
    }

    /// Returns true if every element of `other` is at or beyond this frontier.
    pub fn before(&self, other: &Self) -> bool {
        other.elements().iter().all(|&time| self.less_equal(time))
    }

    /// Advances `time` to an equivalent time for readers at or beyond this frontier: the meet of
    /// the joins of `time` with each element. Returns `None` if the frontier is empty, since
    /// nothing can be read.
    pub fn advance(&self, time: T) -> Option<T> {
        self.elements().iter().map(|&element| time.join(element)).reduce(T::meet)
    }

    /// Returns the frontier of the times at or beyond both frontiers.
    #[must_use]
    pub fn join(&self, other: &Self) -> Self {
        let pairs =
            self.elements().iter().flat_map(|&a| other.elements().iter().map(move |&b| a.join(b)));
        pairs.collect()
    }

    /// Returns the frontier of the times at or beyond either frontier.
    #[must_use]
    pub fn meet(&self, other: &Self) -> Self {
        self.elements().iter().chain(other.elements()).copied().collect()
    }
}

impl<T: Time> std::fmt::Debug for Antichain<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Antichain").field("elements", &self.elements()).finish()
    }
}

impl<T: Time> Default for Antichain<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: Time> FromIterator<T> for Antichain<T> {
    fn from_iter<I: IntoIterator<Item = T>>(times: I) -> Self {
        let mut out = Self::new();
        for time in times {
            out.insert(time);
        }
        out
    }
}

impl<T: Time> From<T> for Antichain<T> {
    fn from(time: T) -> Self {
        Self::at(time)
    }
}
