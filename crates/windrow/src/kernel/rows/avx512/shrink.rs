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

use super::{Code, Codes, GROUP, PAIR, gather, transpose_4};

/// Columns that are read at once.
const COLUMNS: usize = 4;
/// Bytes of a register.
const STEP: usize = 64;
/// Rows of a word of validity.
const WORD: usize = 64;
/// The bits of rows 0 and 4, four columns each, in eight bytes of a row each.
const FIRST_PAIR: u64 = 0x0000_000f_0000_000f;

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
/// Benefit: 31 us for 8,192 rows of four columns, in place of 54 with a chain of shifts that found where codes begin, which
/// was 1.3x the portable twin.
///
/// # Safety
/// The CPU has AVX-512 F, BW, VL and VBMI, and BMI2; each of `targets`, one for each code, has room
/// for a value of each row.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,bmi2,popcnt")]
pub(in crate::kernel::rows) unsafe fn shrink(
    codes: &[Code],
    mut start: usize,
    ends: &[u32],
    bytes: &[u8],
    targets: &[*mut u64],
    valid: &mut [Vec<u64>],
) -> Option<usize> {
    let mut blocks: Vec<Block> =
        cut(codes).into_iter().map(|columns| Block::new(codes, columns)).collect();
    // Of a row, and of what is read with its last code.
    let most = codes.len() * 9 + STEP;
    let Some(last) = bytes.len().checked_sub(most) else { return Some(0) };
    let (mut wrong, mut done) = (false, 0);
    for tile in ends.chunks_exact(WORD) {
        // No way out in the middle: several at a time.
        let furthest = tile[..WORD - 1].iter().fold(0, |furthest, &start| start.max(furthest));
        if start.max(furthest as usize) > last {
            break;
        }
        for (group, ends) in tile.as_chunks::<GROUP>().0.iter().enumerate() {
            let mut cursors = [start; GROUP];
            cursors[1..].iter_mut().zip(ends).for_each(|(cursor, end)| *cursor = *end as usize);
            for block in &mut blocks {
                // SAFETY: a cursor is at most nine bytes a code behind the start of its row, and so
                // a register before the end of `bytes`; there is room for these rows.
                unsafe {
                    let (bytes, at) = (bytes.as_ptr(), done + group * GROUP);
                    wrong |= match targets[block.columns.clone()] {
                        [a] => block.take(bytes, &mut cursors, group, &[a], at),
                        [a, b] => block.take(bytes, &mut cursors, group, &[a, b], at),
                        [a, b, c] => block.take(bytes, &mut cursors, group, &[a, b, c], at),
                        [a, b, c, d] => block.take(bytes, &mut cursors, group, &[a, b, c, d], at),
                        _ => true,
                    };
                }
            }
            wrong |= cursors.iter().zip(ends).any(|(cursor, end)| *cursor != *end as usize);
            start = ends[GROUP - 1] as usize;
        }
        for block in &mut blocks {
            let words = std::mem::take(&mut block.valid);
            let valid = &mut valid[block.columns.clone()];
            valid.iter_mut().zip(words).for_each(|(valid, word)| valid.push(word));
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

/// Where eight bits that are set begin.
#[inline(always)]
fn eights(bits: u64) -> u64 {
    let twos = bits & bits >> 1;
    let fours = twos & twos >> 2;
    fours & fours >> 4
}

/// The constants of up to four columns; behind them the last one again, which is not read.
struct Block {
    columns: Range<usize>,
    with: Codes,
    /// What makes all zeros, or all ones, of the first byte of a longer code and its last.
    longer_by: __m512i,
    /// All bytes of a longer code but the last; 1 if there is such a code.
    edge: __m512i,
    /// Which codes of a row are longer, by where they may be.
    longer: &'static [u8; 1 << 10],
    /// Whether all codes are turned around.
    turned: bool,
    /// The validity of 64 rows.
    valid: [u64; COLUMNS],
}

impl Block {
    #[target_feature(enable = "avx512f,avx512bw")]
    fn new(codes: &[Code], columns: Range<usize>) -> Self {
        let all: [Code; COLUMNS] =
            std::array::from_fn(|at| codes[(columns.start + at).min(columns.end - 1)]);
        let mut with = Codes::of(&all);
        // Those of the columns that are read.
        with.escapes &= (0xf >> (COLUMNS - columns.len())) * 0x11;
        let escapes = with.escapes & 0xf;
        let escaping = all.iter().find(|code| code.escapes);
        Self {
            columns,
            longer_by: with.longer(),
            with,
            edge: _mm512_set1_epi64(escaping.map_or(0, |code| !code.null) as i64),
            longer: &LONGER[usize::from(escapes)],
            turned: all.iter().all(|code| code.big),
            valid: [0; COLUMNS],
        }
    }

    /// Reads eight rows, which are rows `row` to `row + 8` of the targets and group `group` of a
    /// word of validity; moves the cursors behind the codes. True if one of them is none.
    ///
    /// # Safety
    /// The CPU has the features of [`shrink`]; `bytes` may be read for a register behind the last
    /// code of each cursor; `targets` have room for the rows.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,bmi2,popcnt")]
    unsafe fn take<const N: usize>(
        &mut self,
        bytes: *const u8,
        cursors: &mut [usize; GROUP],
        group: usize,
        targets: &[*mut u64; N],
        row: usize,
    ) -> bool {
        let mut rows = [_mm256_setzero_si256(); GROUP];
        // A byte for each row.
        let mut longer = 0u64;
        let orders = &ORDERS[usize::from(self.turned)];
        for (index, (row, cursor)) in rows.iter_mut().zip(&mut *cursors).enumerate() {
            // SAFETY: as this function's.
            let codes = unsafe { _mm512_loadu_si512(bytes.add(*cursor).cast()) };
            let found = eights(_mm512_cmpeq_epi8_mask(codes, self.edge));
            let own = self.longer[_pext_u64(found, STARTS) as usize];
            *cursor += 8 * N + own.count_ones() as usize;
            longer |= u64::from(own) << (8 * index);
            // SAFETY: an order has 32 bytes.
            let order =
                unsafe { _mm256_load_si256(orders[usize::from(own) % 16].0.as_ptr().cast()) };
            let codes = _mm512_permutexvar_epi8(_mm512_castsi256_si512(order), codes);
            *row = _mm512_castsi512_si256(codes);
        }
        // Two rows in each byte, those of a pair.
        let longer = longer | longer >> PAIR;
        let (mut wrong, mut nulls) = (_mm512_setzero_si512(), 0u64);
        let mut v = [_mm512_setzero_si512(); 4];
        for (first, v) in v.iter_mut().enumerate() {
            let pair = _mm512_castsi256_si512(rows[first]);
            let pair = _mm512_inserti64x4(pair, rows[first + 4], 1);
            let longer = (longer >> (8 * first)) as __mmask8;
            let code = match self.turned {
                true => pair,
                false => _mm512_shuffle_epi8(pair, self.with.order),
            };
            let code = _mm512_mask_sub_epi64(code, longer, code, self.longer_by);
            // Zero, or one less.
            let more = _mm512_add_epi64(code, _mm512_set1_epi64(1));
            wrong = _mm512_or_si512(wrong, _mm512_maskz_srli_epi64(longer, more, 1));
            let null = _mm512_cmpeq_epi64_mask(code, self.with.null) & self.with.escapes & !longer;
            nulls |= ((u64::from(null) | u64::from(null) << PAIR) & FIRST_PAIR) << (8 * first);
            let value = _mm512_sub_epi64(code, self.with.delta);
            let value = _mm512_xor_si512(value, self.with.flip);
            let value = match self.with.floats {
                true => {
                    let negative = _mm512_cmplt_epi64_mask(value, _mm512_setzero_si512());
                    _mm512_mask_xor_epi64(value, negative, value, self.with.float)
                }
                false => value,
            };
            *v = _mm512_maskz_mov_epi64(!null, value);
        }
        let columns = transpose_4(v);
        for column in 0..N {
            // SAFETY: as this function's.
            unsafe { _mm512_storeu_si512(targets[column].add(row).cast(), columns[column]) };
            self.valid[column] |= gather(!nulls, column) << (group * GROUP);
        }
        _mm512_test_epi64_mask(wrong, wrong) != 0
    }
}
