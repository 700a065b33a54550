//! Cells to columns, eight rows at a time.
//!
//! ```text
//! row          | 01 v v v v v v v v | 01 w w w w | 01 b |            one load of 64 bytes; of 32 or 16 two or four
//! permuted     | v, the machine's order | w, at the top | - | tags |  of them in a register
//! ```

use std::arch::x86_64::*;

use super::super::cells::VALUE;
use super::super::lane::Places;
use super::super::take_cells::{Cell, Held};
use super::{GROUP, reached, transpose_4, transpose_8};

/// Numbers that a row in a register has room for: a word is for the tags.
const MOST: usize = 7;
/// Rows of a word of bits.
const WORD: usize = 64;

/// Bytes of a row in a register, one that has so many numbers.
const fn reach(numbers: usize) -> usize {
    match numbers {
        0 | 1 => 16,
        2 | 3 => 32,
        _ => 64,
    }
}

/// A byte of a row that is read as a bit, or as it is.
#[derive(Clone, Copy, Debug)]
enum Tag {
    /// The marker of a column.
    Marker(usize),
    /// The Boolean of a column.
    Bit(usize),
    /// The byte of a column.
    Byte(usize),
}

/// A number of a row.
#[derive(Clone, Copy, Debug)]
struct Number {
    cell: usize,
    width: usize,
    /// The bit that its marker's begin at.
    marker: u32,
    flip: u64,
    float: u64,
}

/// Where a row has its columns, and what these are.
#[derive(Clone, Debug)]
pub(in crate::kernel::rows) struct CellOrder {
    numbers: Vec<Number>,
    tags: Vec<Tag>,
    /// Where the bytes of a register come from.
    order: [u8; 64],
    present: u64,
    /// Of each tag, eight times: the byte that sets its bit, and the one that does not.
    set: [u8; 64],
    unset: [u8; 64],
    /// What turns its bits around.
    flips: [u8; 64],
    /// Which tags are markers, Booleans and bytes, eight bits of each.
    markers: u64,
    bits: u64,
    bytes: u64,
}

impl CellOrder {
    /// That of the first few of `cells`, and how many these are: as many as are worth it.
    pub(in crate::kernel::rows) fn of_first(cells: &[Cell]) -> (usize, Option<Self>) {
        // Shuffles of eight rows, and what each row takes: see decision 019.
        const COSTS: [(usize, usize); 3] = [(16, 10), (32, 22), (64, 38)];
        let mut best: Option<(usize, usize)> = None;
        for (bytes, cost) in COSTS {
            let count = fitting(cells, bytes);
            if count > 0 && best.is_none_or(|(own, least)| cost * own < least * count) {
                best = Some((count, cost));
            }
        }
        match best {
            Some((count, _)) => (count, Some(Self::of(&cells[..count]))),
            None => (1, None),
        }
    }

    fn of(cells: &[Cell]) -> Self {
        let count = cells.iter().filter(|cell| matches!(cell.held, Held::Number(..))).count();
        let lane = reach(count);
        let mut own = Self {
            numbers: Vec::new(),
            tags: Vec::new(),
            order: [0; 64],
            present: 0,
            set: [VALUE; 64],
            unset: [0; 64],
            flips: [0; 64],
            markers: 0,
            bits: 0,
            bytes: 0,
        };
        let mut at = 0;
        for (index, cell) in cells.iter().enumerate() {
            let null = cell.null.expect("a marker");
            let marker = own.tag(Tag::Marker(index), lane, at, null, VALUE);
            match cell.held {
                Held::Nothing => {}
                Held::Bit(flip) => {
                    own.tag(Tag::Bit(index), lane, at + 1, flip, 1 ^ flip);
                }
                Held::Byte(flip) => {
                    let tag = own.tag(Tag::Byte(index), lane, at + 1, 0, 0);
                    own.flips[tag * 8..][..8].fill(flip);
                }
                Held::Number(width, code) => {
                    let word = own.numbers.len() * 8;
                    for byte in 0..width {
                        // At the top, so that the sign is that of 64 bits.
                        let to = if code.big { 7 - byte } else { 8 - width + byte };
                        own.place(lane, word + to, at + 1 + byte);
                    }
                    let up = 64 - 8 * width as u32;
                    own.numbers.push(Number {
                        cell: index,
                        width,
                        marker: 8 * marker as u32,
                        flip: code.flip << up,
                        float: code.float << up,
                    });
                }
            }
            at += cell.bytes();
        }
        own
    }

    /// Adds a tag, the byte at `from` of a row; returns its number.
    fn tag(&mut self, tag: Tag, lane: usize, from: usize, unset: u8, set: u8) -> usize {
        let at = self.tags.len();
        self.place(lane, lane - 8 + at, from);
        self.set[at * 8..][..8].fill(set);
        self.unset[at * 8..][..8].fill(unset);
        let all = 0xff << (8 * at);
        match tag {
            Tag::Marker(_) => self.markers |= all,
            Tag::Bit(_) => self.bits |= all,
            Tag::Byte(_) => self.bytes |= all,
        }
        self.tags.push(tag);
        at
    }

    /// Byte `to` of each row in a register is byte `from` of that.
    fn place(&mut self, lane: usize, to: usize, from: usize) {
        for first in (0..64).step_by(lane) {
            self.order[first + to] = (first + from) as u8;
            self.present |= 1 << (first + to);
        }
    }
}

/// How many of `cells`, which have markers, fit into `bytes` of a register.
fn fitting(cells: &[Cell], bytes: usize) -> usize {
    let (mut numbers, mut tags, mut end) = (0, 0, 0);
    let fits = |cell: &&Cell| {
        numbers += usize::from(matches!(cell.held, Held::Number(..)));
        tags += 1 + usize::from(matches!(cell.held, Held::Bit(_) | Held::Byte(_)));
        end += cell.bytes();
        cell.has_marker() && numbers <= MOST && reach(numbers) <= bytes && tags <= 8 && end <= bytes
    };
    let count = cells.iter().take_while(fits).count();
    // Fewer numbers take shorter registers, into which all of it has to fit.
    let first = &cells[..count];
    let numbers = first.iter().filter(|cell| matches!(cell.held, Held::Number(..))).count();
    let end: usize = first.iter().map(Cell::bytes).sum();
    if end <= reach(numbers) { count } else { 0 }
}

/// As `take_cells` of the module, for whole words of rows of which a register may be read; returns how many, and
/// whether they are rows of cells.
///
/// # Safety
/// The CPU has AVX-512 F, BW, VL and VBMI; the order is that of `cells`, which lie within `bytes` at the places of all
/// rows, of which there are some.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi")]
pub(in crate::kernel::rows) unsafe fn take_cells<P: Places>(
    order: &CellOrder,
    cells: &mut [Cell],
    rows: usize,
    places: P,
    bytes: &[u8],
) -> (usize, bool) {
    let done = reached(rows, places, reach(order.numbers.len()), bytes.len());
    macro_rules! counts {
        ($($count:literal)*) => {
            match order.numbers.len() {
                // SAFETY: as this function's; the registers of the first `done` rows lie within `bytes`.
                $($count => unsafe { take_of::<P, $count>(order, cells, done, places, bytes) },)*
                count => panic!("{count} numbers"),
            }
        };
    }
    (done, counts!(0 1 2 3 4 5 6 7))
}

/// # Safety
/// As [`take_cells`], for `N` numbers and whole words of rows, whose registers lie within `bytes`.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi")]
unsafe fn take_of<P: Places, const N: usize>(
    order: &CellOrder,
    cells: &mut [Cell],
    rows: usize,
    places: P,
    bytes: &[u8],
) -> bool {
    let start = bytes.as_ptr();
    let numbers: &[Number; N] = order.numbers[..].try_into().expect("so many numbers");
    let flips: [__m512i; N] = numbers.each_ref().map(|n| _mm512_set1_epi64(n.flip as i64));
    let floats: [__m512i; N] = numbers.each_ref().map(|n| _mm512_set1_epi64(n.float as i64));
    let targets: [*mut u8; N] = numbers.each_ref().map(|n| cells[n.cell].room(rows));
    let mut byte_targets = [(0, std::ptr::null_mut()); GROUP];
    let mut byte_count = 0;
    for (at, tag) in order.tags.iter().enumerate() {
        if let Tag::Byte(cell) = *tag {
            byte_targets[byte_count] = (at, cells[cell].room(rows));
            byte_count += 1;
        }
    }
    let byte_targets = &byte_targets[..byte_count];
    let load = |bytes: &[u8; 64]| {
        // SAFETY: the array has 64 bytes.
        unsafe { _mm512_loadu_si512(bytes.as_ptr().cast()) }
    };
    let turn: [u8; 64] = std::array::from_fn(|at| (at % 8 * 8 + at / 8) as u8);
    let turn = load(&turn);
    let (from, present) = (load(&order.order), order.present);
    let (set, unset, byte_flips) = (load(&order.set), load(&order.unset), load(&order.flips));
    let upper = _mm512_setr_epi32(1, 3, 5, 7, 9, 11, 13, 15, 0, 0, 0, 0, 0, 0, 0, 0);
    let mut wrong = 0;
    for first in (0..rows).step_by(WORD) {
        let mut masks = [0u64; GROUP];
        for (group, mask) in masks.iter_mut().enumerate() {
            let row = first + group * GROUP;
            // SAFETY: the registers of these rows lie within `bytes`.
            let words = unsafe { load_rows::<P, N>(places.behind(row), from, present, start) };
            let tags = _mm512_permutexvar_epi8(turn, words[reach(N) / 8 - 1]);
            let is_set = _mm512_cmpeq_epi8_mask(tags, set);
            let is_unset = _mm512_cmpeq_epi8_mask(tags, unset);
            // What stands behind each marker is looked at if there is a value.
            let valid = is_set & order.markers;
            let values = valid << 8;
            let looked = order.markers | values & order.bits;
            wrong |= looked & !(is_set | is_unset);
            *mask = is_set & looked;
            for lane in 0..N {
                let v = _mm512_xor_si512(words[lane], flips[lane]);
                let sign = _mm512_srai_epi64::<63>(v);
                let some = (valid >> numbers[lane].marker) as __mmask8;
                // v ^ (sign & float)
                let v = _mm512_maskz_ternarylogic_epi64::<0x78>(some, v, sign, floats[lane]);
                // SAFETY: there is room for eight values from `row` on.
                unsafe {
                    let to = targets[lane].add(row * numbers[lane].width);
                    match numbers[lane].width {
                        8 => _mm512_storeu_si512(to.cast(), v),
                        4 => {
                            let v = _mm512_castsi512_si256(_mm512_permutexvar_epi32(upper, v));
                            _mm256_storeu_si256(to.cast(), v);
                        }
                        _ => {
                            let v = _mm512_cvtepi64_epi16(_mm512_srli_epi64::<48>(v));
                            _mm_storeu_si128(to.cast(), v);
                        }
                    }
                }
            }
            if !byte_targets.is_empty() {
                let v = _mm512_xor_si512(tags, byte_flips);
                let v = _mm512_maskz_mov_epi8(values & order.bytes, v);
                let mut eights = [0u64; GROUP];
                // SAFETY: the array has 64 bytes; there is room for eight values from `row` on.
                unsafe {
                    _mm512_storeu_si512(eights.as_mut_ptr().cast(), v);
                    for &(tag, target) in byte_targets {
                        target.add(row).cast::<u64>().write_unaligned(eights[tag]);
                    }
                }
            }
        }
        let mut words = [0u64; GROUP];
        // SAFETY: both arrays have 64 bytes.
        unsafe {
            let v = _mm512_permutexvar_epi8(turn, _mm512_loadu_si512(masks.as_ptr().cast()));
            _mm512_storeu_si512(words.as_mut_ptr().cast(), v);
        }
        for (&word, tag) in words.iter().zip(&order.tags) {
            match *tag {
                Tag::Marker(cell) => cells[cell].valid.push(word),
                Tag::Bit(cell) => cells[cell].bits.push(word),
                Tag::Byte(_) => {}
            }
        }
    }
    for cell in cells {
        // SAFETY: the first `rows` values of each column that has some were written where there is room for them.
        unsafe { cell.grow(rows) };
    }
    wrong == 0
}

/// The words of the first eight rows, permuted and transposed: each is of eight rows.
///
/// # Safety
/// A register, of so many bytes as `N` numbers take, lies within `bytes` at the places of these rows.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi")]
unsafe fn load_rows<P: Places, const N: usize>(
    places: P,
    from: __m512i,
    present: __mmask64,
    bytes: *const u8,
) -> [__m512i; 8] {
    let mut words = [_mm512_setzero_si512(); 8];
    let permuted = |v: __m512i| _mm512_maskz_permutexvar_epi8(present, from, v);
    // SAFETY: as this function's.
    let at = |row: usize| unsafe { bytes.add(places.place(row)) };
    match reach(N) {
        16 => {
            // SAFETY: as this function's.
            let row = |row: usize| unsafe { _mm_loadu_si128(at(row).cast()) };
            let [even, odd] = std::array::from_fn(|odd| {
                let mut four = _mm512_castsi128_si512(row(odd));
                four = _mm512_mask_broadcast_i32x4(four, 0x00f0, row(odd + 2));
                four = _mm512_mask_broadcast_i32x4(four, 0x0f00, row(odd + 4));
                permuted(_mm512_mask_broadcast_i32x4(four, 0xf000, row(odd + 6)))
            });
            words[0] = _mm512_unpacklo_epi64(even, odd);
            words[1] = _mm512_unpackhi_epi64(even, odd);
        }
        32 => {
            // SAFETY: as this function's.
            let row = |row: usize| unsafe { _mm256_loadu_si256(at(row).cast()) };
            let pairs = std::array::from_fn(|at| {
                permuted(_mm512_inserti64x4(_mm512_castsi256_si512(row(at)), row(at + 4), 1))
            });
            words[..4].copy_from_slice(&transpose_4(pairs));
        }
        _ => {
            // SAFETY: as this function's.
            let row = |row: usize| unsafe { _mm512_loadu_si512(at(row).cast()) };
            words = transpose_8(std::array::from_fn(|at| permuted(row(at))));
        }
    }
    words
}
