//! Sources of a batch's rows: mostly one run, stored inline.

use std::sync::Arc;

use smallvec::SmallVec;

use crate::chunk::{Chunk, FEW_SMALL};
use crate::merge::{ChunkSource, Run, Source};
use windrow_pool::Pool;
use windrow_rows::{Error, Layout, Result};

/// A source that yields only an error.
pub(super) struct Refused(pub(super) Option<Error>);

impl ChunkSource for Refused {
    fn next_chunk(&mut self) -> Result<Option<Arc<Chunk>>> {
        self.0.take().map_or(Ok(None), Err)
    }
}

/// The sources of a batch.
#[derive(Default)]
pub(crate) struct Sources(SmallVec<[Source; 1]>);

impl Sources {
    /// Appends the sources of another batch. Two single runs of few chunks are chained if this
    /// equals their merge.
    pub(super) fn join(&mut self, layout: &Layout, behind: &mut Self) {
        if let ([Source::Run(whole)], [Source::Run(run)]) = (&mut self.0[..], &mut behind.0[..])
            && whole.chunks() + run.chunks() <= FEW_SMALL
            && whole.stands_before(layout, run)
        {
            whole.chain([run]);
            return;
        }
        self.0.append(&mut behind.0);
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Source> {
        self.0.iter()
    }

    /// Returns the bytes of chunks in memory.
    pub(super) fn resident_bytes(&self) -> usize {
        self.iter().map(Source::resident_bytes).sum()
    }

    /// Returns true if there is nothing to merge: one run, or no source.
    pub(super) fn are_settled(&self) -> bool {
        matches!(self.0[..], [] | [Source::Run(_)])
    }

    /// Returns the run, if it is the only source.
    pub(super) fn run(&self) -> Option<&Run> {
        match &self.0[..] {
            [source] => source.run(),
            _ => None,
        }
    }

    /// Returns the run, if it is the only source.
    pub(super) fn run_mut(&mut self) -> Option<&mut Run> {
        match &mut self.0[..] {
            [Source::Run(run)] => Some(run),
            _ => None,
        }
    }

    /// Returns the two runs, if there are exactly two sources.
    pub(super) fn pair(&self) -> Option<[&Run; 2]> {
        match &self.0[..] {
            [Source::Run(first), Source::Run(other)] => Some([first, other]),
            _ => None,
        }
    }

    /// Chains all runs, if this equals their merge: the runs do not overlap, the rule relates no
    /// rows of different runs, and few chunks are small. Reads the metadata of every chunk, and
    /// copies nothing. Returns false otherwise; the sources may then be reordered.
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
        // The sort is stable: runs with equal first rows keep their order.
        self.0.sort_by(|a, b| first_row(a).cmp(&first_row(b)));
        let follow = self.iter().is_sorted_by(|a, b| match (a.run(), b.run()) {
            (Some(a), Some(b)) => a.stands_before(layout, b),
            _ => false,
        });
        if let (true, Some((Source::Run(whole), others))) = (follow, self.0.split_first_mut()) {
            whole.chain(others.iter_mut().filter_map(|source| match source {
                Source::Run(run) => Some(run),
                Source::Stream(_) => None,
            }));
            self.0.truncate(1);
            return true;
        }
        false
    }

    /// Returns an empty run for the merge of the sources.
    pub(super) fn after(&self) -> Run {
        Run::after(self.iter().filter_map(Source::run))
    }
}

fn first_row(source: &Source) -> Option<&[u8]> {
    source.run().and_then(Run::first_row)
}

impl FromIterator<Source> for Sources {
    fn from_iter<I: IntoIterator<Item = Source>>(sources: I) -> Self {
        Self(sources.into_iter().collect())
    }
}

impl From<Run> for Sources {
    fn from(run: Run) -> Self {
        Self::from_iter([Source::Run(run)])
    }
}

impl IntoIterator for Sources {
    type Item = Source;
    type IntoIter = smallvec::IntoIter<[Source; 1]>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}
