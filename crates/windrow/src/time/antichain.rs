//! Sets of times of which none is at or beyond another: frontiers.

use super::Time;

/// A frontier: its elements in ascending order, none at or beyond another. Empty, nothing is beyond
/// it. Of one element, as nearly all are, it takes no memory from the allocator.
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
    /// The frontier that nothing is beyond.
    pub fn new() -> Self {
        Self { elements: Elements::None }
    }

    /// The frontier at which everything is, or beyond.
    pub fn least() -> Self {
        Self::at(T::least())
    }

    /// The frontier of one time.
    pub fn at(time: T) -> Self {
        Self { elements: Elements::One(time) }
    }

    /// The elements, in ascending order.
    pub fn elements(&self) -> &[T] {
        match &self.elements {
            Elements::None => &[],
            Elements::One(time) => std::slice::from_ref(time),
            Elements::Many(times) => times,
        }
    }

    /// True if nothing is beyond it.
    pub fn is_empty(&self) -> bool {
        self.elements().is_empty()
    }

    /// Adds a time, unless it is beyond an element; elements beyond it go. True if it was added.
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

    /// True if `time` is at or beyond the frontier.
    #[inline]
    pub fn less_equal(&self, time: T) -> bool {
        self.elements().iter().any(|element| element.less_equal(time))
    }

    /// True if all of `other` is at or beyond this frontier.
    pub fn before(&self, other: &Self) -> bool {
        other.elements().iter().all(|&time| self.less_equal(time))
    }

    /// What a reader who looks only at times beyond this frontier can take `time` for: the meet over
    /// the elements of its joins with them. `None` if the frontier is empty and nobody looks.
    pub fn advance(&self, time: T) -> Option<T> {
        self.elements().iter().map(|&element| time.join(element)).reduce(T::meet)
    }

    /// The frontier of the times that are at or beyond both.
    #[must_use]
    pub fn join(&self, other: &Self) -> Self {
        let pairs =
            self.elements().iter().flat_map(|&a| other.elements().iter().map(move |&b| a.join(b)));
        pairs.collect()
    }

    /// The frontier of the times that are at or beyond either.
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
