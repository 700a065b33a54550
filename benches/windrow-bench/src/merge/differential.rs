//! The mergers and batchers of differential-dataflow, driven as in its own code.
//!
//! Inputs of a batcher are created before the clock starts, and its output is dropped after the
//! clock has stopped.

use std::collections::VecDeque;
use std::ops::RangeInclusive;

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
use differential_026::columnar::trace::ColChunk;
use differential_026::consolidation::Consolidate;
use differential_026::trace::chunk::vec::VecChunk;
use differential_026::trace::chunk::{Chunk, ChunkBatcher, merge_chains};
use timely_028::container::{ContainerBuilder as _, PushInto as _};
use timely_032::Container;
use timely_032::container::{ContainerBuilder, PushInto, SizableContainer};
use timely_032::progress::Antichain;

use super::column::columns;
use super::data::{Change, WIDE, text};
use super::{Inputs, Rival, Work};
use crate::harness::Stopwatch;

/// A key or value that both versions take.
trait Part: Columnation + Ord + Clone + 'static {}
impl<T: Columnation + Ord + Clone + 'static> Part for T {}

/// A chunk of 0.26.
trait Chunks: Chunk<Time = u64> + Default + SizableContainer + Consolidate + Container {}
impl<C: Chunk<Time = u64> + Default + SizableContainer + Consolidate + Container> Chunks for C {}

/// Returns the rivals of each shape: 0.22's columnation stacks, 0.26's vectors and tries, columns.
pub(super) fn rivals() -> [Vec<Rival>; 3] {
    /// Converts changes before the work, which measures its own seconds.
    type Changes<K, V> = Vec<Vec<Change<K, V>>>;
    fn rival<K: 'static, V: 'static>(
        name: &'static str,
        of: fn(u64, u64) -> (K, V),
        work: fn(Work, Changes<K, V>) -> (f64, u64),
    ) -> Rival {
        let convert = move |inputs: &Inputs| {
            let change = |&((key, val), time, diff): &_| (of(key, val), time, diff);
            inputs.iter().map(|input| input.iter().map(change).collect()).collect()
        };
        (name, Box::new(move |which, inputs| work(which, convert(inputs))))
    }
    type Half = (u64, u64, u64, u64, u64);
    let halves = |key: u64, val: u64| -> (Half, Half) {
        let [a, b, c, d, e, f, g, h, i, j] = WIDE.map(|number| number(key, val));
        ((a, b, c, d, e), (f, g, h, i, j))
    };
    macro_rules! of_shape {
        ($key:ty, $value:ty, $of:expr, $($trie:literal)?) => {
            vec![
                rival("columnation 0.22", $of, stacks),
                rival("Vec 0.26", $of, chunks::<VecChunk<$key, $value, u64, i64>, _>),
                rival("columns", $of, columns::<($key, $value)>),
                $(rival($trie, $of, chunks::<ColChunk<($key, $value, u64, i64)>, _>),)?
            ]
        };
    }
    [
        of_shape!(u64, u64, |key, val| (key, val), "trie 0.26"),
        of_shape!(u64, String, |key, val| (key, text(val)), "trie 0.26"),
        of_shape!(Half, Half, halves,),
    ]
}

type Stack<K, V> = TimelyStack<Change<K, V>>;

/// Runs 0.22's merger over columnation stacks, or its batcher, and returns the seconds and the
/// number of records.
fn stacks<K: Part, V: Part>(work: Work, mut inputs: Vec<Vec<Change<K, V>>>) -> (f64, u64) {
    let (seconds, out) = if work == Work::Merge {
        let chains = inputs.iter_mut().map(|side| {
            let mut chunker = ColumnationChunker::<Change<K, V>>::default();
            let mut chain = Vec::new();
            chunker.push_into(side);
            while let Some(chunk) = chunker.extract() {
                chain.push(std::mem::take(chunk));
            }
            while let Some(chunk) = chunker.finish() {
                chain.push(std::mem::take(chunk));
            }
            chain
        });
        let mut chains: Vec<Vec<Stack<K, V>>> = chains.collect();
        let (b, a) = (chains.pop().unwrap_or_default(), chains.pop().unwrap_or_default());
        let mut merger = ColInternalMerger::<(K, V), u64, i64>::default();
        let (mut out, mut stash) = (Vec::new(), Vec::new());
        let watch = Stopwatch::start();
        merger.merge(a, b, &mut out, &mut stash);
        (watch.seconds(), out)
    } else {
        let watch = Stopwatch::start();
        let mut batcher = MergeBatcher022::<
            Vec<Change<K, V>>,
            ColumnationChunker<Change<K, V>>,
            ColInternalMerger<(K, V), u64, i64>,
        >::new(None, 0);
        inputs.iter_mut().for_each(|push| batcher.push_container(push));
        let out = batcher.seal::<Taken<Stack<K, V>>>(timely_028::progress::Antichain::new());
        (watch.seconds(), out)
    };
    (seconds, out.iter().map(|stack| stack.len() as u64).sum())
}

/// Runs 0.26's merger over chunks, or its batcher.
fn chunks<C: Chunks + PushInto<T>, T: Clone + 'static>(
    work: Work,
    mut inputs: Vec<Vec<T>>,
) -> (f64, u64) {
    let (seconds, out) = if work == Work::Merge {
        let mut chains = inputs.iter_mut().map(|side| {
            let mut chunker = ContainerChunker::<C>::default();
            let mut chain = Vec::new();
            PushInto::push_into(&mut chunker, side);
            while let Some(chunk) = ContainerBuilder::finish(&mut chunker) {
                chain.push(std::mem::take(chunk));
            }
            chain
        });
        let (a, b) = (chains.next().unwrap_or_default(), chains.next().unwrap_or_default());
        let mut out = VecDeque::new();
        let watch = Stopwatch::start();
        merge_chains(a, b, &mut out);
        (watch.seconds(), out)
    } else {
        let watch = Stopwatch::start();
        let mut batcher = ChunkBatcher::<ContainerChunker<C>, C>::new(None, 0);
        inputs.iter_mut().for_each(|push| batcher.insert(push));
        let (sealed, _) = batcher.extract(Antichain::new().borrow());
        (watch.seconds(), sealed.into_iter().flat_map(|batch| batch.chunks).collect())
    };
    (seconds, out.iter().map(|chunk| <C as Chunk>::len(chunk) as u64).sum())
}

/// Seals 0.26's batcher up to each of `uppers`, and returns the seconds and the number of records.
pub(super) fn sealed(changes: Vec<Change<u64, u64>>, uppers: &RangeInclusive<u64>) -> (f64, u64) {
    type Chunked = VecChunk<u64, u64, u64, i64>;
    let mut inputs: Vec<Vec<_>> = changes.chunks(8192).map(<[_]>::to_vec).collect();
    let watch = Stopwatch::start();
    let mut batcher = ChunkBatcher::<ContainerChunker<Chunked>, Chunked>::new(None, 0);
    inputs.iter_mut().for_each(|push| batcher.insert(push));
    let mut records = 0;
    for upper in uppers.clone() {
        let (sealed, _) = batcher.extract(Antichain::from_elem(upper).borrow());
        let chunks = sealed.into_iter().flat_map(|batch| batch.chunks);
        records += chunks.map(|chunk| Chunk::len(&chunk) as u64).sum::<u64>();
    }
    (watch.seconds(), records)
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
