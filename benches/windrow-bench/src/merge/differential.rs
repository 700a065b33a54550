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

use super::data::Change;
use super::{Rival, Work};
use crate::cells::Stopwatch;

/// A key or value that both versions take.
pub(super) trait Part: Columnation + Ord + Clone + 'static {}
impl<T: Columnation + Ord + Clone + 'static> Part for T {}

/// A chunk of 0.26.
trait Chunks<K, V>:
    Chunk<Time = u64> + Default + SizableContainer + Consolidate + Container + PushInto<Change<K, V>>
{
}
impl<K, V, C> Chunks<K, V> for C where
    C: Chunk<Time = u64>
        + Default
        + SizableContainer
        + Consolidate
        + Container
        + PushInto<Change<K, V>>
{
}

/// Returns 0.22's columnation stacks and 0.26's vectors.
pub(super) fn rivals<K: Part, V: Part>(work: Work) -> Vec<Rival<K, V>> {
    type Vecs<K, V> = VecChunk<K, V, u64, i64>;
    match work {
        Work::Merge => {
            vec![("columnation 0.22", merge_stacks), ("Vec 0.26", merge_chunks::<Vecs<K, V>, K, V>)]
        }
        Work::Batcher => {
            vec![("columnation 0.22", batch_stacks), ("Vec 0.26", batch_chunks::<Vecs<K, V>, K, V>)]
        }
    }
}

/// Returns 0.26's columnar tries.
pub(super) fn trie<K: Part, V: Part>(work: Work) -> Vec<Rival<K, V>>
where
    (K, V, u64, i64): ColumnarUpdate<Key = K, Val = V, Time = u64, Diff = i64>,
{
    type Tries<K, V> = ColChunk<(K, V, u64, i64)>;
    match work {
        Work::Merge => vec![("trie 0.26", merge_chunks::<Tries<K, V>, K, V>)],
        Work::Batcher => vec![("trie 0.26", batch_chunks::<Tries<K, V>, K, V>)],
    }
}

type Stack<K, V> = TimelyStack<Change<K, V>>;

fn stacks<K: Part, V: Part>(changes: &[Change<K, V>]) -> Vec<Stack<K, V>> {
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
fn merge_stacks<K: Part, V: Part>(sides: &[Vec<Change<K, V>>]) -> (f64, usize) {
    let [a, b] = [0, 1].map(|side| stacks(&sides[side]));
    let mut merger = ColInternalMerger::<(K, V), u64, i64>::default();
    let (mut out, mut stash) = (Vec::new(), Vec::new());
    let watch = Stopwatch::start();
    merger.merge(a, b, &mut out, &mut stash);
    let elapsed = watch.seconds();
    (elapsed, out.iter().map(|stack| stack.len()).sum())
}

fn chunks<C: Chunks<K, V>, K: Part, V: Part>(changes: &[Change<K, V>]) -> Vec<C> {
    let mut chunker = ContainerChunker::<C>::default();
    let mut out = Vec::new();
    PushInto::push_into(&mut chunker, &mut changes.to_vec());
    while let Some(chunk) = ContainerBuilder::finish(&mut chunker) {
        out.push(std::mem::take(chunk));
    }
    out
}

/// Merges with 0.26's merger over chunks.
fn merge_chunks<C: Chunks<K, V>, K: Part, V: Part>(sides: &[Vec<Change<K, V>>]) -> (f64, usize) {
    let [a, b] = [0, 1].map(|side| chunks::<C, K, V>(&sides[side]));
    let mut out = VecDeque::new();
    let watch = Stopwatch::start();
    merge_chains(a, b, &mut out);
    let elapsed = watch.seconds();
    (elapsed, out.iter().map(<C as Chunk>::len).sum())
}

/// A builder that returns the sealed chain of 0.22's batcher.
struct Taken<C>(Vec<C>);

impl<K: Part, V: Part> Builder for Taken<Stack<K, V>> {
    type Input = Stack<K, V>;
    type Time = u64;
    type Output = Vec<Stack<K, V>>;

    fn with_capacity(_: usize, _: usize, _: usize) -> Self {
        Self(Vec::new())
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
fn batch_stacks<K: Part, V: Part>(pushes: &[Vec<Change<K, V>>]) -> (f64, usize) {
    let mut pushes = pushes.to_vec();
    let watch = Stopwatch::start();
    let mut batcher = MergeBatcher022::<
        Vec<Change<K, V>>,
        ColumnationChunker<Change<K, V>>,
        ColInternalMerger<(K, V), u64, i64>,
    >::new(None, 0);
    for push in &mut pushes {
        batcher.push_container(push);
    }
    let sealed = batcher.seal::<Taken<Stack<K, V>>>(timely_028::progress::Antichain::new());
    let elapsed = watch.seconds();
    (elapsed, sealed.iter().map(|stack| stack.len()).sum())
}

/// Runs 0.26's batcher over chunks.
fn batch_chunks<C: Chunks<K, V>, K: Part, V: Part>(pushes: &[Vec<Change<K, V>>]) -> (f64, usize) {
    let mut pushes = pushes.to_vec();
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
