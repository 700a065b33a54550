//! Where the rows of a batch come from: nearly always one run, which stands in the batch itself.

use std::sync::Arc;

use smallvec::SmallVec;

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

/// The sources of a batch.
#[derive(Default)]
pub(crate) struct Sources(SmallVec<[Source; 1]>);

impl Sources {
    /// Puts those of another batch behind these; in the same run, if both are one of a few chunks together and that is
    /// what their merge comes to.
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

    /// Bytes of their chunks that are in memory.
    pub(super) fn resident_bytes(&self) -> usize {
        self.iter().map(Source::resident_bytes).sum()
    }

    /// True if there is nothing to merge: one run, or nothing.
    pub(super) fn are_settled(&self) -> bool {
        matches!(self.0[..], [] | [Source::Run(_)])
    }

    /// The run that is all there is, if it is.
    pub(super) fn run(&self) -> Option<&Run> {
        match &self.0[..] {
            [source] => source.run(),
            _ => None,
        }
    }

    /// The two runs that are all there is, if they are.
    pub(super) fn pair(&self) -> Option<[&Run; 2]> {
        match &self.0[..] {
            [Source::Run(first), Source::Run(other)] => Some([first, other]),
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
        // Those whose first rows are equal stay in their order.
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

    /// A run to take what comes out of a merge of them.
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

impl From<Source> for Sources {
    fn from(source: Source) -> Self {
        std::iter::once(source).collect()
    }
}

impl From<Run> for Sources {
    fn from(run: Run) -> Self {
        Self::from(Source::Run(run))
    }
}

impl IntoIterator for Sources {
    type Item = Source;
    type IntoIter = smallvec::IntoIter<[Source; 1]>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}
