//! The mergers and batchers of differential-dataflow, driven as in its own code.
//!
//! Inputs of a batcher are created before the clock starts, and its output is dropped after the
//! clock has stopped.

use std::collections::VecDeque;

use columnation::Columnation;
use differential_022::containers::TimelyStack;
use differential_022::trace::Batcher as _;
use differential_022::trace::implementations::chunker::ColumnationChunker;
use differential_022::trace::implementations::merge_batcher::container::ColInternalMerger;
use differential_022::trace::implementations::merge_batcher::{
    MergeBatcher as MergeBatcher022, Merger,
};
use differential_022::trace::{Builder, Description};
use differential_026::batcher::merge::chunker::ContainerChunker;
use differential_026::batcher::{Batcher as _, Extract as _};
use differential_026::columnar::layout::ColumnarUpdate;
use differential_026::columnar::trace::ColChunk;
use differential_026::consolidation::Consolidate;
use differential_026::trace::chunk::vec::VecChunk;
use differential_026::trace::chunk::{Chunk, ChunkBatcher, merge_chains};
use timely_028::container::{ContainerBuilder as _, PushInto as _};
use timely_032::Container;
use timely_032::container::{ContainerBuilder, PushInto, SizableContainer};
use timely_032::progress::Antichain;

use super::Outcome;
use super::data::Change;
use crate::cells::Stopwatch;

type Stack<K, V> = TimelyStack<Change<K, V>>;

fn stacks<K, V>(changes: &[Change<K, V>]) -> Vec<Stack<K, V>>
where
    K: Columnation + Ord + Clone + 'static,
    V: Columnation + Ord + Clone + 'static,
{
    let mut chunker = ColumnationChunker::<Change<K, V>>::default();
    let mut out = Vec::new();
    chunker.push_into(&mut changes.to_vec());
    while let Some(chunk) = chunker.extract() {
        out.push(std::mem::take(chunk));
    }
    while let Some(chunk) = chunker.finish() {
        out.push(std::mem::take(chunk));
    }
    out
}

/// Merges with 0.22's merger over columnation stacks.
pub(crate) fn columnation<K, V>(a: &[Change<K, V>], b: &[Change<K, V>]) -> Outcome
where
    K: Columnation + Ord + Clone + 'static,
    V: Columnation + Ord + Clone + 'static,
{
    let (a, b) = (stacks(a), stacks(b));
    let mut merger = ColInternalMerger::<(K, V), u64, i64>::default();
    let (mut out, mut stash) = (Vec::new(), Vec::new());
    let watch = Stopwatch::start();
    merger.merge(a, b, &mut out, &mut stash);
    let elapsed = watch.seconds();
    (elapsed, out.iter().map(|stack| stack.len()).sum())
}

fn chunks<C, K, V>(changes: &[Change<K, V>]) -> Vec<C>
where
    C: Default + SizableContainer + Consolidate + Container + PushInto<Change<K, V>>,
    K: Clone + 'static,
    V: Clone + 'static,
{
    let mut chunker = ContainerChunker::<C>::default();
    let mut out = Vec::new();
    PushInto::push_into(&mut chunker, &mut changes.to_vec());
    while let Some(chunk) = ContainerBuilder::finish(&mut chunker) {
        out.push(std::mem::take(chunk));
    }
    out
}

fn merge_chunks<C, K, V>(a: &[Change<K, V>], b: &[Change<K, V>]) -> Outcome
where
    C: Chunk + Default + SizableContainer + Consolidate + Container + PushInto<Change<K, V>>,
    K: Clone + 'static,
    V: Clone + 'static,
{
    let (a, b) = (chunks::<C, K, V>(a), chunks::<C, K, V>(b));
    let mut out = VecDeque::new();
    let watch = Stopwatch::start();
    merge_chains(a, b, &mut out);
    let elapsed = watch.seconds();
    (elapsed, out.iter().map(<C as Chunk>::len).sum())
}

/// Merges with 0.26's chunks over vectors.
pub(crate) fn vec<K, V>(a: &[Change<K, V>], b: &[Change<K, V>]) -> Outcome
where
    K: Ord + Clone + 'static,
    V: Ord + Clone + 'static,
{
    merge_chunks::<VecChunk<K, V, u64, i64>, K, V>(a, b)
}

/// Merges with 0.26's chunks over columnar tries.
pub(crate) fn trie<K, V>(a: &[Change<K, V>], b: &[Change<K, V>]) -> Outcome
where
    (K, V, u64, i64): ColumnarUpdate<Key = K, Val = V, Time = u64, Diff = i64>,
    K: Clone + 'static,
    V: Clone + 'static,
{
    merge_chunks::<ColChunk<(K, V, u64, i64)>, K, V>(a, b)
}

/// A builder that returns the sealed chain of 0.22's batcher.
struct Taken<C, D, T, R>(Vec<C>, std::marker::PhantomData<(D, T, R)>);

impl<K, V> Builder for Taken<Stack<K, V>, (K, V), u64, i64>
where
    K: Columnation + 'static,
    V: Columnation + 'static,
{
    type Input = Stack<K, V>;
    type Time = u64;
    type Output = Vec<Stack<K, V>>;

    fn with_capacity(_: usize, _: usize, _: usize) -> Self {
        Self(Vec::new(), std::marker::PhantomData)
    }

    fn push(&mut self, chunk: &mut Self::Input) {
        self.0.push(std::mem::take(chunk));
    }

    fn done(self, _: Description<u64>) -> Self::Output {
        self.0
    }

    fn seal(chain: &mut Vec<Self::Input>, _: Description<u64>) -> Self::Output {
        std::mem::take(chain)
    }
}

/// Runs 0.22's batcher: columnation chunker and merger.
pub(crate) fn batcher_columnation<K, V>(pushes: Vec<Vec<Change<K, V>>>) -> Outcome
where
    K: Columnation + Ord + Clone + 'static,
    V: Columnation + Ord + Clone + 'static,
{
    let mut pushes = pushes;
    let watch = Stopwatch::start();
    let mut batcher = MergeBatcher022::<
        Vec<Change<K, V>>,
        ColumnationChunker<Change<K, V>>,
        ColInternalMerger<(K, V), u64, i64>,
    >::new(None, 0);
    for push in &mut pushes {
        batcher.push_container(push);
    }
    let upper = timely_028::progress::Antichain::new();
    let sealed = batcher.seal::<Taken<Stack<K, V>, (K, V), u64, i64>>(upper);
    let elapsed = watch.seconds();
    (elapsed, sealed.iter().map(|stack| stack.len()).sum())
}

fn batcher_chunks<C, K, V>(pushes: Vec<Vec<Change<K, V>>>) -> Outcome
where
    C: Chunk<Time = u64>
        + Default
        + SizableContainer
        + Consolidate
        + Container
        + PushInto<Change<K, V>>,
    K: Clone + 'static,
    V: Clone + 'static,
{
    let mut pushes = pushes;
    let watch = Stopwatch::start();
    let mut batcher = ChunkBatcher::<ContainerChunker<C>, C>::new(None, 0);
    for push in &mut pushes {
        batcher.insert(push);
    }
    let (sealed, _) = batcher.extract(Antichain::new().borrow());
    let elapsed = watch.seconds();
    let chunks = sealed.iter().flat_map(|batch| &batch.chunks);
    (elapsed, chunks.map(<C as Chunk>::len).sum())
}

/// Runs 0.26's batcher over vectors.
pub(crate) fn batcher_vec<K, V>(pushes: Vec<Vec<Change<K, V>>>) -> Outcome
where
    K: Ord + Clone + 'static,
    V: Ord + Clone + 'static,
{
    batcher_chunks::<VecChunk<K, V, u64, i64>, K, V>(pushes)
}

/// Runs 0.26's batcher over columnar tries.
pub(crate) fn batcher_trie<K, V>(pushes: Vec<Vec<Change<K, V>>>) -> Outcome
where
    (K, V, u64, i64): ColumnarUpdate<Key = K, Val = V, Time = u64, Diff = i64>,
    K: Clone + 'static,
    V: Clone + 'static,
{
    batcher_chunks::<ColChunk<(K, V, u64, i64)>, K, V>(pushes)
}
