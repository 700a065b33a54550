//! Sorting of words that are unique: key bits above an index.
//!
//! ```text
//! 1. runs     a few at the most, up or down: a merge sort that finds runs
//! 2. split    more words than a cache holds: by their top bits, into parts of about 4,096
//! 3. radix    least significant digit first, over as many of the top bits that vary as tell most words
//!             apart; both digits counted in one sweep
//! 4. groups   that agree in those bits: by insertion, if few words have to move far; else
//!             small ones by comparison, large ones by 2. and 3. over the rest
//! ```
//!
//! Who makes the words can have their digits counted while they are at hand: [`Tally`].
//!
//! The words carry a row index in their low bits, so that the order of equal keys is that of the rows: the
//! sort is stable without having to be. Words of 32 bits take three quarters of the time of those of 64, if
//! what tells most rows apart fits into them.

use super::prefetch::Ahead;

/// What is sorted: a number of 32 or 64 bits.
pub(crate) trait Word: Copy + Default + Ord + Into<u64> {}

impl Word for u32 {}
impl Word for u64 {}

/// Bits of one digit: 2,048 counters of four bytes are a quarter of a first-level cache.
const DIGIT: u32 = 11;
const DIGITS: usize = 1 << DIGIT;
/// Bits of what words are split by: as many streams as are written without missing the TLB.
const SPLIT: u32 = 8;
/// Words of a part, as the logarithm: with their scratch they stay in the caches of a core.
const PART: u32 = 12;
/// Words that are not split: with their scratch half of a second-level cache.
const NEAR: usize = 1 << 15;
/// Bits above the logarithm of the number of words that tell most of them apart, where half of the bits are
/// always the same: text.
const SPARE: u32 = 9;
/// Words of a group that are sorted by insertion without a call: 341 records of 12 columns, 40 % of them equal,
/// were sealed with a tenth of all instructions in such calls.
const TINY: usize = 12;
/// Below this many words a comparison sort wins over clearing the counters.
const SMALL: usize = 512;
/// The same for words whose digits are counted while they are made.
const FEW: usize = 96;
/// Words that are looked at before all of them are.
const SAMPLE: usize = 128;
/// Runs that are merged: each level of their merge takes as long as a radix pass. Of sixteen runs of 8,192
/// words in all the merge takes three times as long as the passes.
const FEW_RUNS: usize = 4;

/// Words that are put in their places before memory ahead is asked for.
const SOME: usize = 32;

/// Sorts `words`, which differ in the bits from `low` to `high` or below `low`, where they ascend
/// with their place. `scratch` is overwritten.
pub(crate) fn sort<W: Word>(words: &mut Vec<W>, scratch: &mut Vec<W>, low: u32, high: u32) {
    let count = |words: &[W]| words.windows(2).filter(|pair| pair[0] > pair[1]).count();
    let mut is_spread = false;
    if words.len() > SMALL {
        // Enough turns at the beginning, in both directions: no few runs.
        let start = count(&words[..SAMPLE]);
        is_spread = start > SAMPLE / 4 && SAMPLE - start > SAMPLE / 4;
    }
    if !is_spread {
        let descents = count(words);
        if descents == 0 {
            return;
        }
        if descents + 1 == words.len() {
            words.reverse();
            return;
        }
        if descents < FEW_RUNS || words.len() - descents <= FEW_RUNS {
            // The standard library's stable sort is built on runs, up or down.
            words.sort();
            return;
        }
    }
    // Whatever is in it is overwritten.
    scratch.resize(words.len(), W::default());
    if sort_spread(words, scratch, low, high) {
        std::mem::swap(words, scratch);
    }
}

/// As [`sort`], without a look for runs; `scratch` is as long as the words. True if the sorted words are in
/// the scratch.
#[must_use]
fn sort_spread<W: Word>(words: &mut [W], scratch: &mut [W], low: u32, high: u32) -> bool {
    if words.len() <= SMALL || high <= low {
        words.sort_unstable();
        return false;
    }
    // Skewed keys leave the top bits of most groups alike.
    let first: u64 = words[0].into();
    let differ = words.iter().fold(0, |bits, &word| bits | (word.into() ^ first));
    let high = high.min(u64::BITS - differ.leading_zeros());
    if high <= low {
        words.sort_unstable();
        return false;
    }
    if words.len() > NEAR && high - low > DIGIT {
        return split(words, scratch, low, high);
    }
    let digits = Digits::of(words.len(), low, high);
    let moved = if digits.many == 1 {
        let mut counts = Counts::<1>::new();
        counts.add(digits, words);
        counts.spread(digits, words, scratch, &mut Ahead::default())
    } else {
        let mut counts = Counts::<2>::new();
        counts.add(digits, words);
        counts.spread(digits, words, scratch, &mut Ahead::default())
    };
    let (words, scratch) = if moved { (scratch, words) } else { (words, scratch) };
    sort_rest(words, scratch, low, digits.from);
    moved
}

/// Sorts words that are in the order of their bits from `from` on by those above `low` too.
fn sort_rest<W: Word>(words: &mut [W], scratch: &mut [W], low: u32, from: u32) {
    if from > low && !sort_neighbours(words) {
        sort_groups(words, scratch, low, from);
    }
}

/// Sorts words by their top bits, and then each part by the rest. True if they are in the scratch.
fn split<W: Word>(words: &mut [W], scratch: &mut [W], low: u32, high: u32) -> bool {
    let width = (words.len().ilog2() - PART).min(SPLIT).min(high - low);
    let from = high - width;
    let mask = (1usize << width) - 1;
    let digit = |word: W| (word.into() >> from) as usize & mask & ((1 << SPLIT) - 1);
    let mut ends = [0usize; 1 << SPLIT];
    words.iter().for_each(|&word| ends[digit(word)] += 1);
    let mut start = 0;
    for end in &mut ends {
        start += std::mem::replace(end, start);
    }
    for &word in &*words {
        let at = &mut ends[digit(word)];
        scratch[*at] = word;
        *at += 1;
    }
    let mut start = 0;
    for end in &ends[..=mask] {
        let (part, other) = (&mut scratch[start..*end], &mut words[start..*end]);
        if !sort_spread(part, other, low, from) {
            other.copy_from_slice(part);
        }
        start = *end;
    }
    false
}

/// Sorts words of which few are far from their place, by insertion. False if too many are: some are then
/// nearer to it.
fn sort_neighbours<W: Word>(words: &mut [W]) -> bool {
    let mut moves = words.len();
    for at in 1..words.len() {
        let word = words[at];
        if words[at - 1] <= word {
            continue;
        }
        let mut to = at;
        while to > 0 && words[to - 1] > word {
            words[to] = words[to - 1];
            to -= 1;
        }
        words[to] = word;
        match moves.checked_sub(at - to) {
            Some(left) => moves = left,
            None => return false,
        }
    }
    true
}

/// The digits that words are sorted by.
#[derive(Clone, Copy, Debug, Default)]
struct Digits {
    /// How many there are.
    many: u32,
    /// The lowest bit.
    from: u32,
    /// Bits of each.
    width: u32,
}

impl Digits {
    /// Those that tell most of `count` words apart, which differ between the bits `low` and `high`.
    fn of(count: usize, low: u32, high: u32) -> Self {
        let bits = (high - low).min(count.ilog2() + SPARE).min(2 * DIGIT);
        let many = bits.div_ceil(DIGIT);
        // Digits of equal width: no pass is for a bit or two.
        let width = bits.div_ceil(many);
        Self { many, from: high.saturating_sub(many * width).max(low), width }
    }

    /// The same, if they are two, or one that can be halved.
    fn two_of(count: usize, low: u32, high: u32) -> Option<Self> {
        let digits = Self::of(count, low, high);
        match digits.many {
            2 => Some(digits),
            _ if digits.width < 2 => None,
            _ => Some(Self { many: 2, width: digits.width.div_ceil(2), ..digits }),
        }
    }

    /// The value of digit number `at`.
    #[inline(always)]
    fn digit<W: Word>(self, word: W, at: usize) -> usize {
        (word.into() >> (self.from + at as u32 * self.width)) as usize & self.mask()
    }

    #[inline(always)]
    fn mask(self) -> usize {
        ((1 << self.width) - 1) & (DIGITS - 1)
    }
}

/// How often each value of each of `N` digits comes.
#[derive(Debug)]
struct Counts<const N: usize>([[u32; DIGITS]; N]);

impl<const N: usize> Counts<N> {
    fn new() -> Self {
        Self([[0; DIGITS]; N])
    }

    #[inline(always)]
    fn add<W: Word>(&mut self, digits: Digits, words: &[W]) {
        for &word in words {
            for (at, counts) in self.0.iter_mut().enumerate() {
                counts[digits.digit(word, at)] += 1;
            }
        }
    }

    /// A stable pass over each digit, the lowest first, of the words that were counted. True if they are in
    /// the scratch then.
    ///
    /// Benefit of unchecked stores: 8 % of a sort of 8,192 numbers.
    ///
    /// # Panics
    /// If the scratch is shorter, or other words were counted.
    #[must_use]
    fn spread<W: Word>(
        &mut self,
        digits: Digits,
        words: &mut [W],
        scratch: &mut [W],
        ahead: &mut Ahead<'_>,
    ) -> bool {
        let count = words.len();
        assert!(scratch.len() >= count, "scratch for all words");
        let (mut source, mut target, mut is_home) = (words, scratch, true);
        for (digit, ends) in self.0.iter_mut().enumerate() {
            if ends[digits.digit(source[0], digit)] as usize == count {
                continue;
            }
            let mut start = 0;
            for end in &mut ends[..=digits.mask()] {
                start += std::mem::replace(end, start);
            }
            assert_eq!(start as usize, count, "the words that were counted");
            let (shift, mask) = (digits.from + digit as u32 * digits.width, digits.mask());
            for some in source[..count].chunks(SOME) {
                for &word in some {
                    let at = &mut ends[(word.into() >> shift) as usize & mask];
                    // SAFETY: each value's words have places of their own below the number of all words,
                    // which `target` has room for, as long as these are the words that were counted.
                    unsafe { *target.get_unchecked_mut(*at as usize) = word };
                    *at += 1;
                }
                ahead.ask(some.len() / 2);
            }
            (source, target, is_home) = (target, source, !is_home);
        }
        !is_home
    }
}

/// Words whose digits are counted while they are made, and that are sorted then.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    words: Vec<u64>,
    scratch: Vec<u64>,
    /// Words that are not counted yet.
    fresh: Vec<u64>,
    low: u32,
    high: u32,
    /// None if counting does not pay for so many words.
    digits: Option<Digits>,
    /// Not there before there are words to be counted: to clear them takes as long as to merge a hundred
    /// rows.
    counts: Option<Box<Counts<2>>>,
    /// Words that are less than the one before.
    descents: usize,
}

impl Tally {
    /// Starts again, for about `count` words as [`sort`] takes them, some of which differ in the bit below
    /// `high`.
    pub(crate) fn start(&mut self, count: usize, low: u32, high: u32) {
        self.words.clear();
        self.words.reserve(count);
        (self.low, self.high, self.descents) = (low, high, 0);
        let counted = (FEW..=NEAR).contains(&count) && high > low;
        self.digits = if counted { Digits::two_of(count, low, high) } else { None };
        if let Some(digits) = self.digits {
            let counts = self.counts.get_or_insert_with(|| Box::new(Counts::new()));
            counts.0.iter_mut().for_each(|counts| counts[..=digits.mask()].fill(0));
        }
    }

    /// Adds the words, some hundreds, that `make` appends to what it is given; returns what it does.
    #[inline(always)]
    pub(crate) fn add<R>(&mut self, make: impl FnOnce(&mut Vec<u64>) -> R) -> R {
        self.fresh.clear();
        let made = make(&mut self.fresh);
        if let (Some(digits), Some(counts)) = (self.digits, &mut self.counts) {
            counts.add(digits, &self.fresh);
        }
        let mut last = self.words.last().copied().unwrap_or(0);
        for &word in &self.fresh {
            self.descents += usize::from(word < last);
            last = word;
        }
        self.words.extend_from_slice(&self.fresh);
        made
    }

    /// All words, sorted. Memory `ahead` is asked for on the way.
    pub(crate) fn sort(&mut self, ahead: &mut Ahead<'_>) -> &[u64] {
        let (words, scratch) = (&mut self.words, &mut self.scratch);
        let few = |turns: usize| turns < FEW_RUNS;
        match (self.digits, &mut self.counts) {
            _ if self.descents == 0 => {}
            (Some(digits), Some(counts))
                if !few(self.descents) && !few(words.len() - self.descents) =>
            {
                // Whatever is in it is overwritten.
                scratch.resize(words.len(), 0);
                if counts.spread(digits, words, scratch, ahead) {
                    std::mem::swap(words, scratch);
                }
                sort_rest(words, scratch, self.low, digits.from);
            }
            _ => sort(words, scratch, self.low, self.high),
        }
        words
    }
}

/// Sorts a few words.
#[inline(always)]
fn insert_each<W: Word>(words: &mut [W]) {
    for at in 1..words.len() {
        let word = words[at];
        let mut to = at;
        while to > 0 && words[to - 1] > word {
            words[to] = words[to - 1];
            to -= 1;
        }
        words[to] = word;
    }
}

/// Sorts groups of words that agree in the bits from `from` on.
fn sort_groups<W: Word>(words: &mut [W], scratch: &mut [W], low: u32, from: u32) {
    let mut start = 0;
    while start + 1 < words.len() {
        let group = words[start].into() >> from;
        let mut end = start + 1;
        while end < words.len() && words[end].into() >> from == group {
            end += 1;
        }
        match end - start {
            1 => {}
            2 => {
                if words[start] > words[start + 1] {
                    words.swap(start, start + 1);
                }
            }
            3..=TINY => insert_each(&mut words[start..end]),
            count if count <= SMALL => words[start..end].sort_unstable(),
            _ => {
                let (group, other) = (&mut words[start..end], &mut scratch[start..end]);
                if sort_spread(group, other, low, from) {
                    group.copy_from_slice(other);
                }
            }
        }
        start = end;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn sorts_like_the_standard_library(
            mut keys in prop::collection::vec(0u64..1 << 44, 0..3000),
            shift in 0u32..44,
            shape in 0usize..5,
        ) {
            match shape {
                0 => keys.sort_unstable(),
                1 => keys.sort_unstable_by(|a, b| b.cmp(a)),
                2 => {
                    keys.sort_unstable();
                    let by = shift as usize % keys.len().max(1);
                    keys.rotate_left(by);
                }
                3 => keys.iter_mut().step_by(7).for_each(|key| *key >>= 40),
                _ => {}
            }
            let mut words: Vec<u64> =
                keys.iter().zip(0u64..).map(|(key, at)| key >> shift << 12 | at).collect();
            let mut expected = words.clone();
            expected.sort_unstable();
            let high = 64 - words.iter().fold(0, |a, b| a | b).leading_zeros();
            let mut tally = Tally::default();
            // It can be used again.
            for count in [1000, words.len()] {
                tally.start(count, 12, high.max(12));
                for some in words.chunks(100) {
                    tally.add(|fresh| fresh.extend(some));
                }
                prop_assert_eq!(tally.sort(&mut Ahead::default()), &expected[..]);
            }
            let mut narrow: Vec<u32> = words.iter().map(|&word| word as u32).collect();
            let mut expected_narrow = narrow.clone();
            expected_narrow.sort_unstable();
            sort(&mut narrow, &mut Vec::new(), 12, u32::BITS);
            prop_assert_eq!(narrow, expected_narrow);
            sort(&mut words, &mut Vec::new(), 12, high);
            prop_assert_eq!(words, expected);
        }
    }

    #[test]
    fn many_words_are_split() {
        let mut state = 1u64;
        for skew in [0, 30, 44] {
            let words: Vec<u64> = (0..3 * NEAR as u64)
                .map(|at| {
                    state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e);
                    // A tenth of them over all bits, the others fewer.
                    let key = if state >> 60 == 0 { state >> 20 } else { state >> 20 >> skew };
                    key << 20 | at
                })
                .collect();
            let mut expected = words.clone();
            expected.sort_unstable();
            let mut sorted = words;
            sort(&mut sorted, &mut Vec::new(), 20, 64);
            assert!(sorted == expected, "skewed by {skew} bits");
        }
    }
}
