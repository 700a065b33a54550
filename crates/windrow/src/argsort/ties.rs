//! Groups of rows that agree in all that their words hold, and what decides within small ones.
//!
//! ```text
//! words   pear.. 0 | pear.. 5 | plum.. 1 | quin.. 2 | quin.. 3    the key's first bits, the index
//! groups  \___________________/            \___________________/
//! tails   s, 5, 70 | s, 5, 20              ce, 6, 9 | ce, 6, 9    next bytes, length, next number
//! ```
//!
//! To compare whole keys of two rows is to wait for one column after the other, and most guesses at
//! the outcome are wrong. The tails of many groups are read in one go, and a few of them ordered
//! without a branch: a sixth of a sort of 8,192 rows of which half are in pairs of equal strings.

use super::key::Key;
use super::plan::Place;

/// More bytes than a tail has.
const MORE: usize = 9;
/// Tails of a group that are compared each with each: up to here there are less compares than a
/// sort costs in guesses that go wrong.
const FEW: usize = 6;

/// What decides among the rows of a group, most significant first: in the end their order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Tail {
    word: u64,
    /// How long a string is: a zero is not the end of one.
    len: usize,
    number: u64,
    row: u32,
}

impl Tail {
    #[inline(always)]
    fn new((word, len): (u64, usize), number: u64, row: u32) -> Self {
        Self { word, len, number, row }
    }

    /// Whether it comes before the other one, whose row is in front.
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

/// Groups of rows by how they are sorted. Which of them are pairs is not to be predicted, and is asked once.
#[derive(Debug, Default)]
pub(super) struct Groups {
    /// Where the pairs start.
    pub(super) pairs: Vec<u32>,
    pub(super) others: Vec<[u32; 2]>,
}

impl Groups {
    /// Takes these in place of what was there.
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

/// How tails are made for rows that agree in all that lies before a place.
pub(super) struct Tails<'a> {
    from: Place,
    first: &'a Key,
    /// Strings are looked at up to this length: of those that are longer the tails do not decide.
    most: usize,
    /// What a tail has as the length of these.
    open: Option<usize>,
    /// The key behind it, if it is a number that is never null.
    second: Option<&'a Key>,
    /// Where the keys go on that are not in a tail, if there are any.
    rest: Option<Place>,
}

impl<'a> Tails<'a> {
    /// Tails for the keys from `from` on; nothing if the first of them may be null.
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

    /// The tails of the rows of `groups`, one behind the other; `picked` gets these rows.
    pub(super) fn read<'g>(
        &self,
        rows: &[u32],
        groups: impl Iterator<Item = &'g [u32; 2]>,
        picked: &mut Vec<u32>,
        tails: &mut Vec<Tail>,
    ) {
        // Of groups of a few rows more are copied than they have: how many is not to be predicted.
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

    /// The same of pairs of rows, given where these start.
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

    /// Puts pairs of rows in order without a branch, given where they start and their tails. `starts` keeps those
    /// that are equal so far, which stand in their own order by all that a tail has.
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

    /// True if two tails do not decide, or the numbers of two that are the same do not and other keys are left.
    #[inline(always)]
    fn leaves_open(&self, tail: &Tail, other: &Tail) -> bool {
        let is_same = (tail.word, tail.len) == (other.word, other.len);
        let is_open = Some(tail.len) == self.open;
        is_same & (is_open | (self.rest.is_some() & (tail.number == other.number)))
    }

    /// Puts the rows of a group in order, given their tails. Calls `undecided` for those that are
    /// equal so far, which stand in their own order, with what is to decide.
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

    /// Puts the rows of a group in order without a branch: each pair of tails is compared, and the
    /// later one of it moves up by one. False, with all as it was, if the tails do not decide.
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
