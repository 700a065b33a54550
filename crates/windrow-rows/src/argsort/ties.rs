//! Tails: the keys that decide within small groups of rows with equal words.
//!
//! ```text
//! words   pear.. 0 | pear.. 5 | plum.. 1 | quin.. 2 | quin.. 3    the key's first bits, the index
//! groups  \___________________/            \___________________/
//! tails   s, 5, 70 | s, 5, 20              ce, 6, 9 | ce, 6, 9    next bytes, length, next number
//! ```
//!
//! A comparison of two whole keys waits for one column after the other, and branch prediction
//! mostly fails. So the tails of many groups are read in one go, and small groups are ordered
//! without a branch: this saves a sixth of a sort of 8,192 rows of which half are in pairs of equal
//! strings.

use super::key::Key;
use super::plan::Place;

/// A length beyond the bytes of a tail.
const MORE: usize = 9;
/// Maximum size of a group in which every pair of tails is compared: up to here, the comparisons
/// cost less than the mispredicted branches of a sort.
const FEW: usize = 6;

/// Undecided keys of a row in a group, most significant first, and finally the row's position.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Tail {
    word: u64,
    /// Length of the string: distinguishes a zero byte from the end.
    len: usize,
    number: u64,
    row: u32,
}

impl Tail {
    #[inline(always)]
    fn new((word, len): (u64, usize), number: u64, row: u32) -> Self {
        Self { word, len, number, row }
    }

    /// Returns true if this tail sorts before `other`, whose row comes first in the input.
    #[inline(always)]
    fn comes_before(&self, other: &Self) -> bool {
        let bytes = |tail: &Self| u128::from(tail.word) << 64 | tail.len as u128;
        let (own, others) = (bytes(self), bytes(other));
        (own < others) | ((own == others) & (self.number < other.number))
    }

    fn is_equal(&self, other: &Self) -> bool {
        (self.word, self.len, self.number) == (other.word, other.len, other.number)
    }
}

/// Groups of rows by their way of sorting. Whether a group is a pair is unpredictable, and is
/// tested once.
#[derive(Debug, Default)]
pub(super) struct Groups {
    /// Starts of the pairs.
    pub(super) pairs: Vec<u32>,
    pub(super) others: Vec<[u32; 2]>,
}

impl Groups {
    /// Replaces the contents by `groups`.
    pub(super) fn split(&mut self, groups: &[[u32; 2]]) {
        let Self { pairs, others } = self;
        pairs.resize(groups.len(), 0);
        others.resize(groups.len(), [0; 2]);
        let (mut own, mut rest) = (0, 0);
        for group in groups {
            let is_pair = group[1] - group[0] == 2;
            (pairs[own], others[rest]) = (group[0], *group);
            own += usize::from(is_pair);
            rest += usize::from(!is_pair);
        }
        pairs.truncate(own);
        others.truncate(rest);
    }
}

/// Reader of tails, for rows that agree in all keys before a position.
pub(super) struct Tails<'a> {
    from: Place,
    first: &'a Key,
    /// Maximum length of strings in tails: tails do not decide among longer strings.
    most: usize,
    /// Length in the tail of such a longer string.
    open: Option<usize>,
    /// The next key, if it is a number and never null.
    second: Option<&'a Key>,
    /// Position of the first key after the tail, if any.
    rest: Option<Place>,
}

impl<'a> Tails<'a> {
    /// Makes tails for the keys from `from` on. Returns `None` if the first of the keys may be
    /// null.
    pub(super) fn new(keys: &'a [Key], from: Place) -> Option<Self> {
        let first = keys.get(from.key).filter(|key| key.nulls.is_none())?;
        let second = keys.get(from.key + 1);
        let second = second.filter(|key| key.nulls.is_none() && !key.is_bytes());
        let most = from.depth + MORE;
        let open = first.is_bytes().then_some(if first.descending { !most } else { most });
        let key = from.key + 1 + usize::from(second.is_some());
        let rest = (key < keys.len()).then_some(Place { key, depth: 0 });
        Some(Self { from, first, most, open, second, rest })
    }

    /// Reads the tails of the rows of `groups` in sequence. `picked` receives the rows.
    pub(super) fn read<'g>(
        &self,
        rows: &[u32],
        groups: impl Iterator<Item = &'g [u32; 2]>,
        picked: &mut Vec<u32>,
        tails: &mut Vec<Tail>,
    ) {
        // Copies four rows for each smaller group, since the number is unpredictable.
        const AT_ONCE: usize = 4;
        picked.clear();
        for &[start, end] in groups {
            let own = &rows[start as usize..];
            let count = (end - start) as usize;
            match own.first_chunk::<AT_ONCE>() {
                Some(some) if count <= AT_ONCE => {
                    let len = picked.len();
                    picked.extend_from_slice(some);
                    picked.truncate(len + count);
                }
                _ => picked.extend_from_slice(&own[..count]),
            }
        }
        self.read_picked(picked, tails);
    }

    /// Reads tails like `read`, for pairs of rows given by their starts.
    pub(super) fn read_pairs(
        &self,
        rows: &[u32],
        starts: &[u32],
        picked: &mut Vec<u32>,
        tails: &mut Vec<Tail>,
    ) {
        picked.clear();
        picked.extend(
            starts.iter().flat_map(|&start| [rows[start as usize], rows[start as usize + 1]]),
        );
        self.read_picked(picked, tails);
    }

    fn read_picked(&self, picked: &[u32], tails: &mut Vec<Tail>) {
        let Self { first, second, most, from: Place { depth, .. }, .. } = *self;
        let flip = if first.descending { u64::MAX } else { 0 };
        let bytes = |(word, len): (u64, usize)| (word ^ flip, len.min(most) ^ flip as usize);
        tails.clear();
        match (first.strings(), second.map(Key::numbers)) {
            (Some(strings), Some(Some((values, code)))) => {
                tails.extend(picked.iter().map(|&row| {
                    let number = code.code(u64::from_ne_bytes(values[row as usize]));
                    Tail::new(bytes(strings.head(row as usize, depth)), number, row)
                }))
            }
            (Some(strings), None) => tails.extend(
                picked
                    .iter()
                    .map(|&row| Tail::new(bytes(strings.head(row as usize, depth)), 0, row)),
            ),
            _ => tails.extend(picked.iter().map(|&row| {
                let at = row as usize;
                let start = match first.is_bytes() {
                    true => bytes((first.word(at, depth), first.bytes_beyond(at).1)),
                    false => (first.number(at), 0),
                };
                Tail::new(start, second.map_or(0, |key| key.number(at)), row)
            })),
        }
    }

    /// Sorts pairs of rows without a branch, given their starts and tails. `starts` keeps the
    /// undecided pairs, whose rows stay in input order.
    pub(super) fn sort_pairs(&self, rows: &mut [u32], starts: &mut Vec<u32>, tails: &[Tail]) {
        let mut kept = 0;
        for (at, [a, b]) in tails.as_chunks::<2>().0.iter().enumerate() {
            let start = starts[at];
            let is_open = self.leaves_open(a, b);
            let is_swapped = b.comes_before(a) & !is_open;
            let pair = if is_swapped { [b.row, a.row] } else { [a.row, b.row] };
            rows[start as usize..][..2].copy_from_slice(&pair);
            starts[kept] = start;
            kept += usize::from(is_open);
        }
        starts.truncate(kept);
    }

    /// Returns true if the pair is undecided: the strings agree and are longer than the tails, or
    /// the tails are equal and keys are left.
    #[inline(always)]
    fn leaves_open(&self, tail: &Tail, other: &Tail) -> bool {
        let is_same = (tail.word, tail.len) == (other.word, other.len);
        let is_open = Some(tail.len) == self.open;
        is_same & (is_open | (self.rest.is_some() & (tail.number == other.number)))
    }

    /// Sorts the rows of a group by their tails. Calls `undecided` for rows with equal tails, which
    /// are in input order, with the position of the next key.
    #[inline]
    pub(super) fn sort(
        &self,
        rows: &mut [u32],
        tails: &mut [Tail],
        mut undecided: impl FnMut(&mut [u32], Place),
    ) {
        if tails.len() <= FEW && self.place_few(rows, tails) {
            return;
        }
        if tails.iter().any(|tail| Some(tail.len) == self.open) {
            return undecided(rows, self.from);
        }
        tails.sort_unstable();
        rows.iter_mut().zip(&*tails).for_each(|(row, tail)| *row = tail.row);
        let Some(rest) = self.rest else { return };
        let mut start = 0;
        while start < rows.len() {
            let same = tails[start..].iter().take_while(|tail| tail.is_equal(&tails[start]));
            let end = start + same.count();
            if end - start > 1 {
                undecided(&mut rows[start..end], rest);
            }
            start = end;
        }
    }

    /// Sorts the rows of a group without a branch: for each pair of tails, the position of the
    /// later tail grows by one. Returns false and changes nothing if the tails do not decide.
    #[inline(always)]
    fn place_few(&self, rows: &mut [u32], tails: &[Tail]) -> bool {
        let mut places = [0; FEW];
        let mut undecided = false;
        for (at, tail) in tails.iter().enumerate().skip(1) {
            for (before, other) in tails[..at].iter().enumerate() {
                let first = tail.comes_before(other);
                places[at] += usize::from(!first);
                places[before] += usize::from(first);
                undecided |= self.leaves_open(tail, other);
            }
        }
        if !undecided {
            tails.iter().zip(&places).for_each(|(tail, &place)| rows[place] = tail.row);
        }
        !undecided
    }
}
