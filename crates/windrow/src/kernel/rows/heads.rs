//! The first bytes of strings as the words that a sort moves.
//!
//! ```text
//! bytes   p e a r l y p l u m ...         eight are read from each string, whatever its length
//! head    70 65 61 72 6c 79 00 00         most significant first; zeros behind the end
//! word  = | bits of other columns | head without its lowest bits | place |
//! ```

/// Strings with offsets of 32 bits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Strings<'a> {
    /// Where each begins, and the last one ends.
    pub(crate) offsets: &'a [i32],
    pub(crate) data: &'a [u8],
}

impl Strings<'_> {
    /// Eight bytes of string `row` from `at` on, zeros behind its end; and how long it is.
    #[inline(always)]
    pub(crate) fn head(self, row: usize, at: usize) -> (u64, usize) {
        let (start, end) = (self.offsets[row] as usize, self.offsets[row + 1] as usize);
        let (from, len) = ((start + at).min(end), end - start);
        // What follows in the buffer is read along and masked: lengths are hard to predict.
        let Some(bytes) = self.data.get(from..from + HEAD) else {
            return (short_head(&self.data[from..end]), len);
        };
        let word = u64::from_be_bytes(bytes.try_into().expect("eight bytes"));
        // Twice, since no shift is by 64 bits.
        let behind = 4 * (end - from).min(HEAD);
        (word & !(u64::MAX >> behind >> behind), len)
    }
}

/// Bytes of a head.
const HEAD: usize = 8;

/// The head of a string at the end of the buffer.
#[cold]
fn short_head(bytes: &[u8]) -> u64 {
    let mut word = [0; HEAD];
    word[..bytes.len()].copy_from_slice(bytes);
    u64::from_be_bytes(word)
}

/// How the heads of a column become words.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PackHeads {
    /// Bytes in front of the head.
    pub(crate) depth: usize,
    /// All ones if the column descends.
    pub(crate) flip: u64,
    /// Bits that are left out of a head, below 64.
    pub(crate) dropped: u32,
    /// Bits that what is in a word moves up by; 64 if nothing of it stays.
    pub(crate) width: u32,
    /// Bits of a place, below 64; nothing if that comes later.
    pub(crate) place: Option<u32>,
    /// The place of the first word.
    pub(crate) first: usize,
}

/// Adds the head of each string to its word.
///
/// # Panics
/// If there are fewer strings than words.
pub(crate) fn pack_heads(strings: Strings<'_>, with: PackHeads, words: &mut [u64]) {
    assert!(strings.offsets.len() > words.len(), "a string for each word");
    let mut done = 0;
    #[cfg(target_arch = "x86_64")]
    if super::avx512::detected() {
        // SAFETY: the features were detected; strings were counted above.
        done = unsafe { super::avx512::pack_heads(strings, with, words) };
    }
    pack_each(strings, with, done, words);
}

/// The portable twin, and the last few: those from `from` on.
fn pack_each(strings: Strings<'_>, with: PackHeads, from: usize, words: &mut [u64]) {
    let (shift, places) = with.place.map_or((0, 0), |shift| (shift, u64::MAX));
    for (at, word) in words.iter_mut().enumerate().skip(from) {
        let own = (strings.head(at, with.depth).0 ^ with.flip) >> with.dropped;
        let own = word.checked_shl(with.width).unwrap_or(0) | own;
        *word = own << shift | (with.first + at) as u64 & places;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn both_pack_the_same(
            strings in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..20), 0..60),
            depth in 0usize..22,
            descending: bool,
            dropped in 0u32..64,
            width in 0u32..=64,
            place in prop::option::of(6u32..64),
            first in 0usize..1 << 20,
            before: u64,
            behind in 0usize..20,
        ) {
            let data = [&strings.concat()[..], &vec![7; behind]].concat();
            let mut offsets = vec![0];
            offsets.extend(strings.iter().scan(0, |end, string| {
                *end += string.len() as i32;
                Some(*end)
            }));
            let flip = if descending { u64::MAX } else { 0 };
            let with = PackHeads { depth, flip, dropped, width, place, first };
            let own = Strings { offsets: &offsets, data: &data };
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
