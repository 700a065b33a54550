//! Counts, for each of many words, how many of a few sorted words are at or below it.
//!
//! Few splitters are compared one by one, each with all rows of a block: additions without a
//! branch. Many splitters are searched: the same number of steps for every row, each a conditional
//! move.

/// Most splitters that are compared one by one.
const FEW: usize = 24;

/// Writes for every word the number of ascending `splitters` that are not above the word, plus
/// `base`. `words` and `counts` have one length.
pub fn count_not_above(splitters: &[u64], words: &[u64], base: u32, counts: &mut [u32]) {
    let words = &words[..counts.len()];
    if splitters.len() <= FEW {
        for (words, counts) in words.chunks(256).zip(counts.chunks_mut(256)) {
            counts.fill(base);
            for splitter in splitters {
                for (count, word) in counts.iter_mut().zip(words) {
                    *count += u32::from(splitter <= word);
                }
            }
        }
        return;
    }
    for (count, word) in counts.iter_mut().zip(words) {
        let mut low = 0;
        let mut len = splitters.len();
        while len > 1 {
            let half = len / 2;
            low += if splitters[low + half - 1] <= *word { half } else { 0 };
            len -= half;
        }
        *count = base + low as u32 + u32::from(splitters[low] <= *word);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_and_many_count_as_a_filter_does() {
        let words: Vec<u64> = (0..1000).map(|i| i * 7919 % 211).chain([0, u64::MAX]).collect();
        for len in [0, 1, 2, 3, FEW, FEW + 1, 31, 32, 33, 100] {
            let mut splitters: Vec<u64> = (0..len as u64).map(|i| i * 31 % 200).collect();
            splitters.sort_unstable();
            let mut counts = vec![0; words.len()];
            count_not_above(&splitters, &words, 5, &mut counts);
            for (word, count) in words.iter().zip(&counts) {
                let expected = splitters.iter().filter(|splitter| *splitter <= word).count();
                assert_eq!(*count as usize, 5 + expected);
            }
        }
    }
}
