//! Heads of a column's strings, as words to sort: the first bytes after their common prefix.
//!
//! ```text
//! bytes   p e a r l y p l u m ...         eight bytes are read of each string, whatever its length
//! head    70 65 61 72 6c 79 00 00         most significant first; zeros after the end
//! word  = | bits of other columns | head without its lowest bits | place |
//! ```

/// Strings with offsets of 32 bits.
#[derive(Clone, Copy, Debug)]
pub struct Strings<'a> {
    /// Starts of the strings, and the end of the last one.
    pub offsets: &'a [i32],
    pub data: &'a [u8],
}

impl<'a> Strings<'a> {
    /// Returns the bytes of string `row` from `at` on.
    fn rest(self, row: usize, at: usize) -> &'a [u8] {
        let (start, end) = (self.offsets[row] as usize, self.offsets[row + 1] as usize);
        &self.data[(start + at).min(end)..end]
    }

    /// Returns eight bytes of string `row` from `at` on, padded with zeros, and the length of the
    /// string.
    #[inline(always)]
    pub fn head(self, row: usize, at: usize) -> (u64, usize) {
        let (start, end) = (self.offsets[row] as usize, self.offsets[row + 1] as usize);
        let (from, len) = ((start + at).min(end), end - start);
        // Reads beyond the string and masks the surplus: lengths are hard to predict.
        let Some(bytes) = self.data.get(from..from + HEAD) else {
            return (short_head(&self.data[from..end]), len);
        };
        let word = u64::from_be_bytes(bytes.try_into().expect("eight bytes"));
        // Shifts twice, since a single shift by 64 bits would overflow.
        let behind = 4 * (end - from).min(HEAD);
        (word & !(u64::MAX >> behind >> behind), len)
    }
}

/// Bytes of a head.
const HEAD: usize = 8;

/// Returns how many bytes from `depth` on the first `count` strings share.
///
/// # Panics
/// If there are fewer strings.
pub fn shared(strings: Strings<'_>, depth: usize, count: usize) -> usize {
    assert!(strings.offsets.len() > count, "as many strings");
    shared_each((0..count).map(|row| strings.rest(row, depth)))
}

/// Returns the length of the common prefix of byte strings.
pub fn shared_each<'a>(mut strings: impl Iterator<Item = &'a [u8]>) -> usize {
    let mut shared = strings.next().unwrap_or(&[]);
    for string in strings {
        if shared.is_empty() {
            break;
        }
        let most = shared.len().min(string.len());
        // Mostly equal, which one call finds.
        if shared[..most] == string[..most] {
            shared = &shared[..most];
        } else {
            let same = shared.iter().zip(string).take_while(|(a, b)| a == b);
            shared = &shared[..same.count()];
        }
    }
    shared.len()
}

/// Returns the head of a string at the end of the buffer.
#[cold]
fn short_head(bytes: &[u8]) -> u64 {
    let mut word = [0; HEAD];
    word[..bytes.len()].copy_from_slice(bytes);
    u64::from_be_bytes(word)
}

/// The way from heads of a column to words.
#[derive(Clone, Copy, Debug)]
pub struct PackHeads {
    /// Bytes before the head.
    pub depth: usize,
    /// All ones if the column descends.
    pub flip: u64,
    /// Low bits omitted from a head, below 64.
    pub dropped: u32,
    /// Bits by which the previous word is shifted up; 64 to drop it.
    pub width: u32,
    /// Bits of a place, below 64; `None` if places are added later.
    pub place: Option<u32>,
}

/// Adds the head of each string to its word.
///
/// # Panics
/// If there are fewer strings than words.
pub fn pack_heads(strings: Strings<'_>, with: PackHeads, words: &mut [u64]) {
    assert!(strings.offsets.len() > words.len(), "a string for each word");
    let mut done = 0;
    #[cfg(target_arch = "x86_64")]
    if super::avx512::detected() {
        // SAFETY: the features were detected. `strings` has more offsets than words, as asserted.
        done = unsafe { super::avx512::heads::pack_heads(strings, with, words) };
    }
    pack_each(strings, with, done, words);
}

/// Adds the heads from number `from` on: the portable twin, and the last few.
fn pack_each(strings: Strings<'_>, with: PackHeads, from: usize, words: &mut [u64]) {
    let (shift, places) = with.place.map_or((0, 0), |shift| (shift, u64::MAX));
    for (at, word) in words.iter_mut().enumerate().skip(from) {
        let own = (strings.head(at, with.depth).0 ^ with.flip) >> with.dropped;
        let own = word.checked_shl(with.width).unwrap_or(0) | own;
        *word = own << shift | at as u64 & places;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_strings_share(
            prefix in prop::collection::vec(any::<u8>(), 0..150),
            ends in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..9), 1..200),
            depth in 0usize..10,
        ) {
            let strings: Vec<Vec<u8>> = ends.iter().map(|end| [&prefix[..], end].concat()).collect();
            let mut offsets = vec![0];
            offsets.extend(strings.iter().scan(0, |end, string| {
                *end += string.len() as i32;
                Some(*end)
            }));
            let own = Strings { offsets: &offsets, data: &strings.concat() };
            let rests = || strings.iter().map(|string| string.get(depth..).unwrap_or(&[]));
            let found = shared(own, depth, strings.len());
            let first = rests().next().unwrap_or(&[]);
            prop_assert!(rests().all(|rest| rest.starts_with(&first[..found])));
            prop_assert!(first.len() == found || !rests().all(|rest| rest.starts_with(&first[..=found])));
        }

        #[test]
        fn both_pack_the_same(
            strings in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..20), 0..60),
            kept: u8,
            depth in 0usize..22,
            descending: bool,
            dropped in 0u32..64,
            width in 0u32..=64,
            place in prop::option::of(6u32..64),
            before: u64,
            behind in 0usize..20,
        ) {
            let mut strings = strings;
            strings.iter_mut().flatten().for_each(|byte| *byte &= kept);
            let data = [&strings.concat()[..], &vec![7; behind]].concat();
            let mut offsets = vec![0];
            offsets.extend(strings.iter().scan(0, |end, string| {
                *end += string.len() as i32;
                Some(*end)
            }));
            let flip = if descending { u64::MAX } else { 0 };
            let own = Strings { offsets: &offsets, data: &data };
            let with = PackHeads { depth, flip, dropped, width, place };
            let (mut words, mut twin) = (vec![before; strings.len()], vec![before; strings.len()]);
            pack_heads(own, with, &mut words);
            pack_each(own, with, 0, &mut twin);
            prop_assert_eq!(words, twin);
            for (row, string) in strings.iter().enumerate() {
                let rest = string.get(depth..).unwrap_or(&[]);
                let mut head = [0; 8];
                head[..rest.len().min(8)].copy_from_slice(&rest[..rest.len().min(8)]);
                prop_assert_eq!(own.head(row, depth), (u64::from_be_bytes(head), string.len()));
            }
        }
    }
}
