//! Where the rows of a batch come from.
//!
//! ```text
//! first    | run |                        in the batch itself
//! others   | run | run | stream | ...     memory only where there is more than one
//! ```
//!
//! Nearly every batch is one run. To make one, to hand it over and to put another one behind it takes a few
//! dozen nanoseconds, of which requests to the allocator would be the greater part.

use std::sync::Arc;

use crate::chunk::{Chunk, FEW_SMALL};
use crate::error::{Error, Result};
use crate::merge::{ChunkSource, Run, Source};
use crate::order::Layout;
use crate::pool::Pool;

/// A source of nothing but the reason why.
pub(super) struct Refused(pub(super) Option<Error>);

impl ChunkSource for Refused {
    fn next_chunk(&mut self) -> Result<Option<Arc<Chunk>>> {
        self.0.take().map_or(Ok(None), Err)
    }
}

/// The sources of a batch. There are others only behind a first one.
#[derive(Default)]
pub(crate) struct Sources {
    first: Option<Source>,
    others: Vec<Source>,
}

impl Sources {
    pub(super) fn push(&mut self, source: Source) {
        match &self.first {
            None => self.first = Some(source),
            Some(_) => self.others.push(source),
        }
    }

    /// Puts those of another batch behind these.
    fn append(&mut self, behind: &mut Self) {
        behind.first.take().into_iter().for_each(|source| self.push(source));
        self.others.append(&mut behind.others);
    }

    /// Puts those of another batch behind these; in the same run, if both are one of a few chunks together and that is
    /// what their merge comes to.
    pub(super) fn join(&mut self, layout: &Layout, behind: &mut Self) {
        if let (Some(Source::Run(whole)), Some(Source::Run(run))) =
            (&mut self.first, &mut behind.first)
            && self.others.is_empty()
            && behind.others.is_empty()
            && whole.chunks() + run.chunks() <= FEW_SMALL
            && whole.stands_before(layout, run)
        {
            whole.chain([run]);
            return;
        }
        self.append(behind);
    }

    pub(super) fn len(&self) -> usize {
        usize::from(self.first.is_some()) + self.others.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Source> {
        self.first.iter().chain(&self.others)
    }

    /// Bytes of their chunks that are in memory.
    pub(super) fn resident_bytes(&self) -> usize {
        self.iter().map(Source::resident_bytes).sum()
    }

    /// True if there is nothing to merge: one run, or nothing.
    pub(super) fn are_settled(&self) -> bool {
        self.others.is_empty() && !matches!(self.first, Some(Source::Stream(_)))
    }

    /// The run that is all there is, if it is.
    pub(super) fn run(&self) -> Option<&Run> {
        if self.others.is_empty() { self.first.as_ref()?.run() } else { None }
    }

    /// The two runs that are all there is, if they are.
    pub(super) fn pair(&mut self) -> Option<[&mut Run; 2]> {
        match (&mut self.first, &mut self.others[..]) {
            (Some(Source::Run(first)), [Source::Run(other)]) => Some([first, other]),
            _ => None,
        }
    }

    /// Puts all of them one behind the other, if that is what their merge is: they do not overlap, no rule has
    /// a say in it, and few of their chunks are small. Costs a look at every chunk; nothing is read or copied.
    /// False if there is something to merge; they may stand in another order then.
    pub(super) fn chain(&mut self, layout: &Layout, pool: &Pool) -> bool {
        let mut small = 0;
        for source in self.iter() {
            match source.run() {
                Some(run) => small += run.small_chunks(layout, pool),
                None => return false,
            }
        }
        if small > FEW_SMALL {
            return false;
        }
        self.sort();
        if !self.follow(layout) {
            return false;
        }
        let Some(Source::Run(whole)) = &mut self.first else { return false };
        whole.chain(self.others.iter_mut().filter_map(|source| match source {
            Source::Run(run) => Some(run),
            Source::Stream(_) => None,
        }));
        self.others.clear();
        true
    }

    /// True if each is a run that stands before the next one.
    fn follow(&self, layout: &Layout) -> bool {
        self.iter().is_sorted_by(|a, b| match (a.run(), b.run()) {
            (Some(a), Some(b)) => a.stands_before(layout, b),
            _ => false,
        })
    }

    /// Puts them in the order of their first rows; those whose are equal stay in theirs.
    fn sort(&mut self) {
        fn first_row(source: &Source) -> Option<&[u8]> {
            source.run().and_then(Run::first_row)
        }
        if let (Some(first), [other]) = (&mut self.first, &mut self.others[..]) {
            if first_row(other) < first_row(first) {
                std::mem::swap(first, other);
            }
            return;
        }
        self.others.extend(self.first.take());
        self.others.sort_by(|a, b| first_row(a).cmp(&first_row(b)));
        if !self.others.is_empty() {
            self.first = Some(self.others.remove(0));
        }
    }

    /// A run to take what comes out of a merge of them.
    pub(super) fn after(&self) -> Run {
        Run::after(self.iter().filter_map(Source::run))
    }
}

impl FromIterator<Source> for Sources {
    fn from_iter<I: IntoIterator<Item = Source>>(sources: I) -> Self {
        let mut all = Self::default();
        // Not collected: an empty list would keep the memory that the sources came in.
        sources.into_iter().for_each(|source| all.push(source));
        all
    }
}

impl From<Source> for Sources {
    fn from(source: Source) -> Self {
        Self { first: Some(source), others: Vec::new() }
    }
}

impl From<Run> for Sources {
    fn from(run: Run) -> Self {
        Self::from(Source::Run(run))
    }
}

impl IntoIterator for Sources {
    type Item = Source;
    type IntoIter = std::iter::Chain<std::option::IntoIter<Source>, std::vec::IntoIter<Source>>;

    fn into_iter(self) -> Self::IntoIter {
        self.first.into_iter().chain(self.others)
    }
}
