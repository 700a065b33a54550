//! Rows of which some take a byte more than most to columns: what `grow` writes, four columns at a
//! time.
//!
//! ```text
//! four codes       | aaaaaaaa | 11111111 0 | cccccccc | dddddddd |   b is longer: ones or zeros
//! permuted         | aaaaaaaa | 1111111  0 | cccccccc | dddddddd |   by which ones are longer
//! eight rows       transposed, as `take` has them
//! ```
//!
//! Which codes are longer is looked up by the bits that say where eight bytes of zeros or ones begin.

use std::arch::x86_64::*;
use std::ops::Range;

use super::shrink_few::shrink_few;
use super::{Code, Codes, GROUP, gather, transpose_4};

/// Columns that are read at once.
const COLUMNS: usize = 4;
/// Bytes of a register.
const STEP: usize = 64;
/// Rows of a word of validity.
pub(super) const WORD: usize = 64;

/// Where the bytes of codes of eight bytes come from, by which of them take a byte more: its last
/// one is that byte. The second ones turn the bytes of each code around.
static ORDERS: [[Order; 1 << COLUMNS]; 2] = [orders(false), orders(true)];

const fn orders(turned: bool) -> [Order; 1 << COLUMNS] {
    let mut orders = [Order([0; STEP / 2]); 1 << COLUMNS];
    let mut longer = 0;
    while longer < orders.len() {
        let (mut column, mut at) = (0, 0);
        while column < COLUMNS {
            let is_longer = longer >> column & 1 == 1;
            let mut byte = 0;
            while byte < 8 {
                let skipped = if is_longer && byte == 7 { 1 } else { 0 };
                let to = if turned { 7 - byte } else { byte };
                orders[longer].0[column * 8 + to] = (at + byte + skipped) as u8;
                byte += 1;
            }
            at += if is_longer { 9 } else { 8 };
            column += 1;
        }
        longer += 1;
    }
    orders
}

/// Where a code of a row may begin: the second one at 8 or 9, the third at 16 to 18, the fourth at 24 to 27.
const STARTS: u64 = 0b1 | 0b11 << 8 | 0b111 << 16 | 0b1111 << 24;

/// Which codes are longer, by which columns may have such codes and at which of the starts there are eight bytes of zeros,
/// or ones: the start of a code tells that of the next.
static LONGER: [[u8; 1 << 10]; 1 << COLUMNS] = {
    let mut longer = [[0; 1 << 10]; 1 << COLUMNS];
    let mut escapes = 0;
    while escapes < longer.len() {
        let mut found = 0;
        while found < longer[escapes].len() {
            let (mut column, mut starts, mut more) = (0, 0, 0);
            while column < COLUMNS {
                let is_longer = found >> (starts + more) & escapes >> column & 1;
                longer[escapes][found] |= (is_longer << column) as u8;
                more += is_longer;
                column += 1;
                starts += column;
            }
            found += 1;
        }
        escapes += 1;
    }
    longer
};

#[derive(Clone, Copy)]
#[repr(align(32))]
struct Order([u8; STEP / 2]);

/// Reads whole words of the first of the rows of `bytes` that begin at `start` and end at `ends`,
/// as `take_growing` of the module: values to `targets`, and validity behind that in `valid`.
/// Returns their number, which is as many as may be read with what is behind them; nothing if one
/// of them is wrong.
///
/// Benefit: 35 us for 8,192 rows of four columns, in place of 54 with a chain of shifts that found where codes begin, which
/// was 1.3x the portable twin; 32 where codes are sums.
///
/// # Safety
/// The CPU has AVX-512 F, BW, VL and VBMI, and BMI2; each of `targets`, one for each code, has room
/// for a value of each row.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,bmi2,popcnt")]
pub(in crate::kernel::rows) unsafe fn shrink(
    codes: &[Code],
    start: usize,
    ends: &[u32],
    bytes: &[u8],
    targets: &[*mut u64],
    valid: &mut [Vec<u64>],
) -> Option<usize> {
    let blocks = cut(codes);
    if blocks.len() == 1 {
        // SAFETY: as this function's; codes of one block are longer in the same way.
        unsafe {
            match (codes, targets) {
                (&[a], &[to]) => return shrink_few(&[a], start, ends, bytes, &[to], valid),
                (&[a, b], &[to, too]) => {
                    return shrink_few(&[a, b], start, ends, bytes, &[to, too], valid);
                }
                _ => {}
            }
        }
    }
    let blocks = blocks.into_iter().map(|columns| Block::new(codes, columns)).collect();
    // SAFETY: as this function's.
    unsafe {
        match codes.iter().all(Code::is_sum) {
            true => by_blocks::<true>(codes.len(), blocks, start, ends, bytes, targets, valid),
            false => by_blocks::<false>(codes.len(), blocks, start, ends, bytes, targets, valid),
        }
    }
}

/// As [`shrink`], of so many columns in blocks; `SUMS` where all codes are sums.
///
/// # Safety
/// As [`shrink`].
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,bmi2,popcnt")]
unsafe fn by_blocks<const SUMS: bool>(
    columns: usize,
    mut blocks: Vec<Block>,
    mut start: usize,
    ends: &[u32],
    bytes: &[u8],
    targets: &[*mut u64],
    valid: &mut [Vec<u64>],
) -> Option<usize> {
    let mut last_two = blocks.pop_if(|block| block.is_last_two());
    // Of a row, and of what is read with its last code.
    let most = columns * 9 + STEP;
    let Some(last) = bytes.len().checked_sub(most) else { return Some(0) };
    let (mut wrong, mut done) = (false, 0);
    for tile in ends.chunks_exact(WORD) {
        // No way out in the middle: several at a time.
        let furthest = tile[..WORD - 1].iter().fold(0, |furthest, &start| start.max(furthest));
        if start.max(furthest as usize) > last {
            break;
        }
        for (group, ends) in tile.as_chunks::<GROUP>().0.iter().enumerate() {
            let mut cursors = _mm512_cvtepu32_epi64(starts_of(start, ends));
            // SAFETY: the array has 32 bytes.
            let behind = unsafe { _mm256_loadu_si256(ends.as_ptr().cast()) };
            let behind = _mm512_cvtepu32_epi64(behind);
            let at = done + group * GROUP;
            for (index, block) in blocks.iter_mut().enumerate() {
                // SAFETY: a cursor is at most nine bytes a code behind the start of its row, and so
                // a register before the end of `bytes`; there is room for these rows.
                let (moved, is_wrong) = unsafe {
                    match index {
                        // Where rows begin has not to wait for a register.
                        0 => block.take_any::<SUMS>(bytes.as_ptr(), group, targets, at, |row| {
                            match row {
                                0 => start,
                                _ => ends[row - 1] as usize,
                            }
                        }),
                        _ => {
                            let mut places = [0; GROUP];
                            _mm512_storeu_si512(places.as_mut_ptr().cast(), cursors);
                            block.take_any::<SUMS>(bytes.as_ptr(), group, targets, at, |row| {
                                places[row]
                            })
                        }
                    }
                };
                cursors = _mm512_add_epi64(cursors, moved);
                wrong |= is_wrong;
            }
            wrong |= match &mut last_two {
                // SAFETY: as above.
                Some(block) => unsafe {
                    block.take_last::<SUMS>(bytes.as_ptr(), group, targets, at, cursors, behind)
                },
                None => _mm512_cmpneq_epi64_mask(cursors, behind) != 0,
            };
            start = ends[GROUP - 1] as usize;
        }
        for block in blocks.iter().chain(&last_two) {
            let valid = &mut valid[block.columns.clone()];
            valid.iter_mut().zip(block.valid()).for_each(|(valid, word)| valid.push(word));
        }
        done += WORD;
    }
    (!wrong).then_some(done)
}

/// Up to four columns at a time, whose longer codes are of one kind: all zeros and a byte, or all
/// ones.
fn cut(codes: &[Code]) -> Vec<Range<usize>> {
    let mut blocks: Vec<Range<usize>> = Vec::new();
    for (at, code) in codes.iter().enumerate() {
        let joins = |block: &&mut Range<usize>| {
            let mut own = codes[block.start..block.end].iter().filter(|own| own.escapes);
            block.len() < COLUMNS && (!code.escapes || own.all(|own| own.null == code.null))
        };
        match blocks.last_mut().filter(joins) {
            Some(block) => block.end = at + 1,
            None => blocks.push(at..at + 1),
        }
    }
    blocks
}

/// Where eight rows begin that end at `ends`, the first of them at `start`.
#[inline]
#[target_feature(enable = "avx512f,avx512vl")]
pub(super) fn starts_of(start: usize, ends: &[u32; GROUP]) -> __m256i {
    // SAFETY: the array has 32 bytes.
    let ends = unsafe { _mm256_loadu_si256(ends.as_ptr().cast()) };
    let starts = _mm256_permutevar8x32_epi32(ends, _mm256_setr_epi32(0, 0, 1, 2, 3, 4, 5, 6));
    _mm256_mask_set1_epi32(starts, 1, start as i32)
}

/// Where eight bits that are set begin.
#[inline(always)]
pub(super) fn eights(bits: u64) -> u64 {
    let twos = bits & bits >> 1;
    let fours = twos & twos >> 2;
    fours & fours >> 4
}

/// What makes values of codes, in each place of a register.
#[derive(Clone, Copy)]
pub(super) struct Back {
    /// What makes all zeros, or all ones, of the first byte of a longer code and its last.
    longer_by: __m512i,
    null: __m512i,
    delta: __m512i,
    flip: __m512i,
    float: __m512i,
    /// By how much a code is more than its value, where it is a sum.
    sum: __m512i,
    /// Which places are those of lanes whose codes may be longer.
    pub(super) escapes: __mmask8,
    floats: bool,
}

impl Back {
    /// From codes to values, where [`Codes`] are from values to codes.
    #[target_feature(enable = "avx512f")]
    pub(super) fn of(with: &Codes) -> Self {
        let Codes { null, delta, flip, float, escapes, floats, .. } = *with;
        let sum = _mm512_add_epi64(flip, delta);
        Self { longer_by: with.longer(), null, delta, flip, float, sum, escapes, floats }
    }

    /// The values of codes in the order of the machine, some of which are `longer`, and which are null; `wrong` collects
    /// bits of longer ones that are none. `SUMS` where all codes are.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw")]
    pub(super) fn values<const SUMS: bool>(
        &self,
        code: __m512i,
        longer: __mmask8,
        wrong: &mut __m512i,
    ) -> (__m512i, __mmask8) {
        let code = _mm512_mask_sub_epi64(code, longer, code, self.longer_by);
        // Zero, or one less.
        let more = _mm512_add_epi64(code, _mm512_set1_epi64(1));
        *wrong = _mm512_or_si512(*wrong, _mm512_maskz_srli_epi64(longer, more, 1));
        let nulls = _mm512_mask_cmpeq_epi64_mask(self.escapes & !longer, code, self.null);
        if SUMS {
            return (_mm512_maskz_sub_epi64(!nulls, code, self.sum), nulls);
        }
        let mut value = _mm512_xor_si512(_mm512_sub_epi64(code, self.delta), self.flip);
        if self.floats {
            let negative = _mm512_cmplt_epi64_mask(value, _mm512_setzero_si512());
            value = _mm512_mask_xor_epi64(value, negative, value, self.float);
        }
        (_mm512_maskz_mov_epi64(!nulls, value), nulls)
    }
}

/// The constants of a column: in each place the same, and not kept as registers, which those of 50 columns would fill
/// the first-level cache with.
#[derive(Clone, Copy)]
struct With {
    longer_by: u64,
    null: u64,
    delta: u64,
    flip: u64,
    float: u64,
    sum: u64,
    escapes: __mmask8,
}

impl With {
    fn of(code: Code) -> Self {
        let Code { null, delta, flip, float, escapes, .. } = code;
        Self {
            longer_by: (!null & !0xff).wrapping_add(1),
            null,
            delta,
            flip,
            float,
            sum: flip.wrapping_add(delta),
            escapes: if escapes { 0xff } else { 0 },
        }
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    fn back(&self, floats: bool) -> Back {
        let every = |word: u64| _mm512_set1_epi64(word as i64);
        Back {
            longer_by: every(self.longer_by),
            null: every(self.null),
            delta: every(self.delta),
            flip: every(self.flip),
            float: every(self.float),
            sum: every(self.sum),
            escapes: self.escapes,
            floats,
        }
    }
}

/// The constants of up to four columns; behind them the last one again, which is not read.
pub(super) struct Block {
    pub(super) columns: Range<usize>,
    with: Codes,
    each: [With; COLUMNS],
    /// All bytes of a longer code but the last.
    pub(super) edge: __m512i,
    /// Which codes of a row are longer, by where they may be.
    longer: &'static [u8; 1 << 10],
    /// Whether all codes are turned around.
    pub(super) turned: bool,
    /// The nulls of a word of rows: of each group, a byte for each column.
    pub(super) nulls: [u64; WORD / GROUP],
}

impl Block {
    #[target_feature(enable = "avx512f,avx512bw")]
    fn new(codes: &[Code], columns: Range<usize>) -> Self {
        let all: [Code; COLUMNS] =
            std::array::from_fn(|at| codes[(columns.start + at).min(columns.end - 1)]);
        let with = Codes::of(&all);
        // Those of the columns that are read.
        let escapes = with.escapes & (0xf >> (COLUMNS - columns.len()));
        let escaping = all.iter().find(|code| code.escapes);
        Self {
            columns,
            each: all.map(With::of),
            with,
            edge: _mm512_set1_epi64(escaping.map_or(0, |code| !code.null) as i64),
            longer: &LONGER[usize::from(escapes)],
            turned: all.iter().all(|code| code.big),
            nulls: [0; WORD / GROUP],
        }
    }

    /// What makes values of the codes of a column.
    #[inline]
    #[target_feature(enable = "avx512f")]
    pub(super) fn back(&self, column: usize) -> Back {
        self.each[column].back(self.with.floats)
    }

    /// The validity of a word of rows, column by column.
    #[target_feature(enable = "avx512f,avx512vbmi")]
    fn valid(&self) -> [u64; GROUP] {
        const ORDER: [u8; STEP] = {
            let (mut order, mut at) = ([0; STEP], 0);
            while at < STEP {
                order[at] = (at % GROUP * GROUP + at / GROUP) as u8;
                at += 1;
            }
            order
        };
        let mut valid = [0; GROUP];
        // SAFETY: each array has 64 bytes.
        unsafe {
            let order = _mm512_loadu_si512(ORDER.as_ptr().cast());
            let nulls = _mm512_loadu_si512(self.nulls.as_ptr().cast());
            let nulls = _mm512_permutexvar_epi8(order, nulls);
            _mm512_storeu_si512(valid.as_mut_ptr().cast(), nulls);
        }
        valid.map(|nulls: u64| !nulls)
    }

    /// As [`Block::take`], with the targets of all blocks.
    ///
    /// # Safety
    /// As [`Block::take`].
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,bmi2,popcnt")]
    unsafe fn take_any<const SUMS: bool>(
        &mut self,
        bytes: *const u8,
        group: usize,
        targets: &[*mut u64],
        row: usize,
        place: impl Fn(usize) -> usize,
    ) -> (__m512i, bool) {
        // SAFETY: as the caller promised.
        unsafe {
            match targets[self.columns.clone()] {
                [a] => self.take::<1, SUMS>(bytes, group, [a], row, place),
                [a, b] => self.take::<2, SUMS>(bytes, group, [a, b], row, place),
                [a, b, c] => self.take::<3, SUMS>(bytes, group, [a, b, c], row, place),
                [a, b, c, d] => self.take::<4, SUMS>(bytes, group, [a, b, c, d], row, place),
                _ => (_mm512_setzero_si512(), true),
            }
        }
    }

    /// Reads eight rows whose codes begin at their `place`, which are rows `row` to `row + 8` of the targets and group `group`
    /// of a word of rows. Returns how many bytes the codes of each have, and whether one of them is none.
    ///
    /// # Safety
    /// The CPU has the features of [`shrink`]; `bytes` may be read for a register behind the last
    /// code of each place; `targets` have room for the rows.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,bmi2,popcnt")]
    unsafe fn take<const N: usize, const SUMS: bool>(
        &mut self,
        bytes: *const u8,
        group: usize,
        targets: [*mut u64; N],
        row: usize,
        place: impl Fn(usize) -> usize,
    ) -> (__m512i, bool) {
        let mut rows = [_mm256_setzero_si256(); GROUP];
        // A byte for each row.
        let mut longer = 0u64;
        let orders = &ORDERS[usize::from(self.turned)];
        for (index, row) in rows.iter_mut().enumerate() {
            // SAFETY: as this function's.
            let codes = unsafe { _mm512_loadu_si512(bytes.add(place(index)).cast()) };
            let found = eights(_mm512_cmpeq_epi8_mask(codes, self.edge));
            let own = self.longer[_pext_u64(found, STARTS) as usize % self.longer.len()];
            longer |= u64::from(own) << (8 * index);
            // SAFETY: an order has 32 bytes.
            let order =
                unsafe { _mm256_load_si256(orders[usize::from(own) % 16].0.as_ptr().cast()) };
            let codes = _mm512_permutexvar_epi8(_mm512_castsi256_si512(order), codes);
            *row = _mm512_castsi512_si256(codes);
        }
        let pairs = std::array::from_fn(|first| {
            let pair = _mm512_castsi256_si512(rows[first]);
            let pair = _mm512_inserti64x4(pair, rows[first + COLUMNS], 1);
            if self.turned { pair } else { _mm512_shuffle_epi8(pair, self.with.order) }
        });
        // By the codes of a row that are longer.
        let counts = _mm_setr_epi8(0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4);
        let counts = _mm_shuffle_epi8(counts, _mm_cvtsi64_si128(longer as i64));
        let moved = _mm512_add_epi64(_mm512_cvtepu8_epi64(counts), _mm512_set1_epi64(8 * N as i64));
        let (mut wrong, mut all_nulls) = (_mm512_setzero_si512(), 0);
        for (column, code) in transpose_4(pairs).into_iter().enumerate().take(N) {
            let longer = gather(longer, column) as __mmask8;
            let (value, nulls) = self.back(column).values::<SUMS>(code, longer, &mut wrong);
            // SAFETY: as this function's.
            unsafe { _mm512_storeu_si512(targets[column].add(row).cast(), value) };
            all_nulls |= u64::from(nulls) << (column * GROUP);
        }
        self.nulls[group] = all_nulls;
        (moved, _mm512_test_epi64_mask(wrong, wrong) != 0)
    }
}
