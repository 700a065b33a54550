//! The chunks of a run, in order: a queue that nearly always holds one or two.
//!
//! ```text
//! few     | piece | piece |        in the run itself; filled from the front
//! many    | piece | ... | piece |  a ring in memory of its own
//! ```
//!
//! To put one batch of a chunk behind another takes a few dozen nanoseconds: 40 where each run had a ring, 30
//! without (Zen 5).

use std::collections::VecDeque;
use std::iter;

/// Pieces that a run has in itself.
const FEW: usize = 2;

#[derive(Clone, Debug)]
pub(super) struct Pieces<T>(Held<T>);

#[derive(Clone, Debug)]
enum Held<T> {
    Few([Option<T>; FEW]),
    Many(VecDeque<T>),
}

impl<T> Default for Pieces<T> {
    fn default() -> Self {
        Self(Held::Few([None, None]))
    }
}

impl<T> Pieces<T> {
    pub(super) fn len(&self) -> usize {
        match &self.0 {
            Held::Few([None, _]) => 0,
            Held::Few([_, None]) => 1,
            Held::Few(_) => FEW,
            Held::Many(many) => many.len(),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.front().is_none()
    }

    pub(super) fn front(&self) -> Option<&T> {
        self.get(0)
    }

    pub(super) fn back(&self) -> Option<&T> {
        match &self.0 {
            Held::Few([first, second]) => second.as_ref().or(first.as_ref()),
            Held::Many(many) => many.back(),
        }
    }

    pub(super) fn get(&self, at: usize) -> Option<&T> {
        match &self.0 {
            Held::Few(few) => few.get(at)?.as_ref(),
            Held::Many(many) => many.get(at),
        }
    }

    pub(super) fn push_back(&mut self, piece: T) {
        match &mut self.0 {
            Held::Few([first @ None, _]) => *first = Some(piece),
            Held::Few([_, second @ None]) => *second = Some(piece),
            Held::Few(_) => self.many().push_back(piece),
            Held::Many(many) => many.push_back(piece),
        }
    }

    pub(super) fn pop_front(&mut self) -> Option<T> {
        match &mut self.0 {
            Held::Few([first, second]) => std::mem::replace(first, second.take()),
            Held::Many(many) => many.pop_front(),
        }
    }

    /// Puts those of `behind` behind these; none are left there.
    pub(super) fn append(&mut self, behind: &mut Self) {
        if self.is_empty() {
            std::mem::swap(self, behind);
            return;
        }
        match &mut behind.0 {
            Held::Few(few) => {
                few.iter_mut().filter_map(Option::take).for_each(|it| self.push_back(it))
            }
            Held::Many(many) => self.many().append(many),
        }
    }

    pub(super) fn iter(&self) -> impl DoubleEndedIterator<Item = &T> {
        let (few, many) = match &self.0 {
            Held::Few(few) => (Some(few), None),
            Held::Many(many) => (None, Some(many)),
        };
        few.into_iter().flatten().flatten().chain(many.into_iter().flatten())
    }

    pub(super) fn iter_mut(&mut self) -> impl DoubleEndedIterator<Item = &mut T> {
        let (few, many) = match &mut self.0 {
            Held::Few(few) => (Some(few), None),
            Held::Many(many) => (None, Some(many)),
        };
        few.into_iter().flatten().flatten().chain(many.into_iter().flatten())
    }

    /// The ring, which they move to.
    fn many(&mut self) -> &mut VecDeque<T> {
        if let Held::Few(few) = &mut self.0 {
            self.0 = Held::Many(few.iter_mut().filter_map(Option::take).collect());
        }
        match &mut self.0 {
            Held::Many(many) => many,
            Held::Few(_) => unreachable!("moved there"),
        }
    }
}

impl<T> FromIterator<T> for Pieces<T> {
    fn from_iter<I: IntoIterator<Item = T>>(pieces: I) -> Self {
        let mut pieces = pieces.into_iter();
        let few = [pieces.next(), pieces.next()];
        match pieces.next() {
            None => Self(Held::Few(few)),
            third => {
                let all = few.into_iter().chain(iter::once(third)).flatten();
                Self(Held::Many(all.chain(pieces).collect()))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn is_like_a_ring(steps in prop::collection::vec((0u8..4, 0u32..5), 0..60)) {
            let (mut pieces, mut ring) = (Pieces::default(), VecDeque::new());
            for (step, number) in steps {
                match step {
                    0 => prop_assert_eq!(pieces.pop_front(), ring.pop_front()),
                    1 => {
                        let mut behind: Pieces<u32> = (0..number).collect();
                        pieces.append(&mut behind);
                        prop_assert!(behind.is_empty());
                        ring.extend(0..number);
                    }
                    _ => {
                        pieces.push_back(number);
                        ring.push_back(number);
                    }
                }
                pieces.iter_mut().chain(&mut ring).for_each(|piece| *piece += 1);
                prop_assert!(pieces.iter().eq(&ring) && pieces.iter().rev().eq(ring.iter().rev()));
                prop_assert_eq!(pieces.len(), ring.len());
                prop_assert_eq!((pieces.front(), pieces.back()), (ring.front(), ring.back()));
                for at in 0..4 {
                    prop_assert_eq!(pieces.get(at), ring.get(at));
                }
            }
        }
    }
}
