//! What the kernels of rows work on: where rows are, and the values and constants of one column.

use std::borrow::Cow;
use std::ops::Range;

use arrow_buffer::ArrowNativeType;

#[cfg(target_arch = "x86_64")]
use super::avx512;
use super::{PLAIN, blocks_put, is_wide};
use crate::kernel::values::Values;

/// Where each row of a block of rows has its columns.
pub(crate) trait Places: Copy {
    /// The first byte of the columns of row `row`.
    fn place(self, row: usize) -> usize;
    /// The greatest place of the first `rows` rows, which are not none.
    fn furthest(self, rows: usize) -> usize;
    /// The same rows, `bytes` further on.
    fn shifted(self, bytes: usize) -> Self;
    /// The rows from row `rows` on.
    fn behind(self, rows: usize) -> Self;
    /// Bytes from one row to the next, if that is the same for all.
    fn stride(self) -> Option<usize>;
}

/// Rows of one length, one behind the other.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Strided {
    pub(crate) first: usize,
    pub(crate) stride: usize,
}

impl Places for Strided {
    #[inline(always)]
    fn place(self, row: usize) -> usize {
        self.first + row * self.stride
    }

    fn furthest(self, rows: usize) -> usize {
        let last = (rows - 1).checked_mul(self.stride).expect("rows fit the address space");
        self.first.checked_add(last).expect("rows fit the address space")
    }

    #[inline(always)]
    fn shifted(self, bytes: usize) -> Self {
        Self { first: self.first + bytes, ..self }
    }

    fn behind(self, rows: usize) -> Self {
        self.shifted(rows * self.stride)
    }

    #[inline(always)]
    fn stride(self) -> Option<usize> {
        Some(self.stride)
    }
}

/// Rows anywhere.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scattered<'a> {
    pub(crate) cursors: &'a [usize],
    /// From the cursor to the columns.
    pub(crate) distance: usize,
}

impl Places for Scattered<'_> {
    #[inline(always)]
    fn place(self, row: usize) -> usize {
        self.cursors[row] + self.distance
    }

    fn furthest(self, rows: usize) -> usize {
        furthest(&self.cursors[..rows]) + self.distance
    }

    #[inline(always)]
    fn shifted(self, bytes: usize) -> Self {
        Self { distance: self.distance + bytes, ..self }
    }

    fn behind(self, rows: usize) -> Self {
        Self { cursors: &self.cursors[rows..], ..self }
    }

    #[inline(always)]
    fn stride(self) -> Option<usize> {
        None
    }
}

/// Where rows are read next, which moves on; the furthest is looked for once each time.
///
/// Benefit: a tenth of the time that 4 columns of rows that vary are read in.
#[derive(Debug, Default)]
pub(crate) struct Cursors {
    all: Vec<usize>,
    /// The greatest, if it is known.
    furthest: Option<usize>,
}

impl Cursors {
    /// None, and room for `rows` of them.
    pub(crate) fn with_capacity(rows: usize) -> Self {
        Self { all: Vec::with_capacity(rows), furthest: None }
    }

    /// Those of other rows.
    pub(crate) fn set(&mut self, cursors: impl Iterator<Item = usize>) {
        self.furthest = None;
        self.all.clear();
        self.all.extend(cursors);
    }

    pub(crate) fn all(&self) -> &[usize] {
        &self.all
    }

    /// All of them, to be moved.
    pub(crate) fn all_mut(&mut self) -> &mut [usize] {
        self.furthest = None;
        &mut self.all
    }

    /// The greatest of them; 0 if there are none.
    pub(crate) fn furthest(&mut self) -> usize {
        let all = &self.all;
        let find = || if all.is_empty() { 0 } else { furthest(all) };
        *self.furthest.get_or_insert_with(find)
    }

    /// Columns `distance` behind them.
    pub(crate) fn places(&mut self, distance: usize) -> Reached<'_> {
        let furthest = self.furthest();
        Reached { cursors: &self.all, furthest, distance }
    }
}

/// Rows anywhere, of which it is known how far they are.
///
/// Invariant: no cursor is greater than `furthest`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reached<'a> {
    cursors: &'a [usize],
    furthest: usize,
    distance: usize,
}

impl Places for Reached<'_> {
    #[inline(always)]
    fn place(self, row: usize) -> usize {
        self.cursors[row] + self.distance
    }

    fn furthest(self, rows: usize) -> usize {
        assert!(rows <= self.cursors.len(), "a cursor for each row");
        self.furthest.checked_add(self.distance).expect("rows fit the address space")
    }

    #[inline(always)]
    fn shifted(self, bytes: usize) -> Self {
        Self { distance: self.distance + bytes, ..self }
    }

    fn behind(self, rows: usize) -> Self {
        Self { cursors: &self.cursors[rows..], ..self }
    }

    #[inline(always)]
    fn stride(self) -> Option<usize> {
        None
    }
}

/// The greatest of some cursors.
fn furthest(cursors: &[usize]) -> usize {
    // Four at a time: none waits for the one before.
    let (fours, rest) = cursors.as_chunks::<4>();
    let most =
        fours.iter().fold([0; 4], |most, four| std::array::from_fn(|at| most[at].max(four[at])));
    *most.iter().chain(rest).max().expect("a cursor")
}

/// Where a string begins and ends.
pub(crate) type Span = (usize, usize);

/// Bits of a buffer from any bit on, least significant first.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bits<'a> {
    pub(crate) bytes: &'a [u8],
    /// The bit of row 0.
    pub(crate) first: usize,
}

impl Bits<'_> {
    pub(super) fn holds(self, rows: usize) -> bool {
        self.bytes.len() * 8 >= self.first + rows
    }

    #[inline(always)]
    pub(crate) fn get(self, row: usize) -> bool {
        let at = self.first + row;
        self.bytes[at / 8] >> (at % 8) & 1 == 1
    }

    /// The bits of up to 64 rows from `row` on; zeros behind the end of the buffer.
    #[inline]
    pub(crate) fn word(self, row: usize) -> u64 {
        let at = self.first + row;
        let bytes = self.bytes.get(at / 8..).unwrap_or(&[]);
        if let Some((word, rest)) = bytes.split_first_chunk::<8>() {
            let low = u64::from_le_bytes(*word) >> (at % 8);
            let high = rest.first().map_or(0, |&byte| u64::from(byte));
            return if at.is_multiple_of(8) { low } else { low | high << (64 - at % 8) };
        }
        let mut word = [0; 8];
        word[..bytes.len()].copy_from_slice(bytes);
        u64::from_le_bytes(word) >> (at % 8)
    }
}

/// How the values of a column become codes. With `v` the value as an unsigned number:
///
/// ```text
/// c = v ^ (float if v is negative) ^ flip
/// code = null, if the row is null
///        c + delta, or no code of this width if that is 0 or all ones and `escapes`
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Code {
    /// The sign bit of signed types; all its bits complemented when descending.
    pub(crate) flip: u64,
    /// All bits but the sign for floats, else 0.
    pub(crate) float: u64,
    /// 1 if nulls are lowest, all ones (-1) if they are highest, 0 if there are none.
    pub(crate) delta: u64,
    /// The code of a null.
    pub(crate) null: u64,
    /// Big-endian; the payload keeps the machine's order.
    pub(crate) big: bool,
    /// Whether the column may have nulls and their code is taken from those of the values.
    pub(crate) escapes: bool,
}

/// A column to be written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lane<'a> {
    /// The values as Arrow holds them.
    pub(crate) values: &'a [u8],
    /// Nothing if all values are valid.
    pub(crate) valid: Option<Bits<'a>>,
    pub(crate) code: Code,
}

/// Lanes that are written at once, or several blocks of them that are plain.
#[derive(Clone, Debug)]
#[cfg_attr(not(target_arch = "x86_64"), expect(dead_code, reason = "what the widest kernel asks"))]
pub(super) struct LaneBlock {
    pub(super) lanes: Range<usize>,
    /// True if these are [`PLAIN`] or more, for the widest kernel, which have no nulls and no codes that grow.
    pub(super) plain: bool,
    /// True if some of them are floats.
    pub(super) floats: bool,
}

/// How lanes are written: what there is to know of their codes, and of which of them have nulls.
///
/// Benefit of making it once for many record batches without nulls (Zen 5): one of 50 columns costs 480 instead of 990 ns
/// whatever its rows, one of 4 columns 98 instead of 184.
#[derive(Clone, Debug)]
pub(crate) struct Blocks {
    blocks: Vec<LaneBlock>,
    /// The codes of blocks that the widest kernel writes, as its registers hold them. Made once: rows are written
    /// a few hundred at a time, and to make them took as long as a tenth of that.
    #[cfg(target_arch = "x86_64")]
    codes: Vec<avx512::Codes>,
    lanes: usize,
    width: usize,
    /// True if some lane has nulls.
    nulls: bool,
}

impl Blocks {
    /// Those of adjacent columns of `width` bytes that have no nulls.
    pub(crate) fn without_nulls(codes: impl Iterator<Item = Code>, width: usize) -> Self {
        let lane = |code| Lane { values: &[], valid: None, code };
        Self::of(&codes.map(lane).collect::<Vec<_>>(), width)
    }

    fn of(lanes: &[Lane<'_>], width: usize) -> Self {
        let nulls = lanes.iter().any(|lane| lane.valid.is_some());
        let mut blocks: Vec<LaneBlock> = Vec::new();
        for block in blocks_put(lanes.len(), width, nulls) {
            let is_plain = |lane: &Lane<'_>| lane.valid.is_none() && !lane.code.escapes;
            let long = is_wide(width) && block.len() >= PLAIN;
            let plain = long && lanes[block.clone()].iter().all(is_plain);
            let floats = lanes[block.clone()].iter().any(|lane| lane.code.float != 0);
            match blocks.last_mut() {
                Some(last) if plain && last.plain => {
                    last.lanes.end = block.end;
                    last.floats |= floats;
                }
                _ => blocks.push(LaneBlock { lanes: block, plain, floats }),
            }
        }
        Self {
            #[cfg(target_arch = "x86_64")]
            codes: if width == 8 { avx512::codes_of_blocks(lanes, &blocks) } else { Vec::new() },
            blocks,
            lanes: lanes.len(),
            width,
            nulls,
        }
    }
}

/// Adjacent columns of one width, for some number of rows.
///
/// Invariant: each lane holds a value, and a validity bit if it has any, for each row.
#[derive(Debug)]
pub(crate) struct Lanes<'a> {
    lanes: Vec<Lane<'a>>,
    /// The values of all lanes if some block is plain: close together, for little else is to be looked up there.
    #[cfg_attr(not(target_arch = "x86_64"), expect(dead_code, reason = "for the widest kernel"))]
    values: Vec<&'a [u8]>,
    blocks: Cow<'a, Blocks>,
    rows: usize,
    width: usize,
}

impl<'a> Lanes<'a> {
    /// Columns of `width` bytes: 4, 8, or 16, where a code for 64 bits is that of the upper half.
    ///
    /// # Panics
    /// If a lane does not hold `rows` values.
    pub(crate) fn new(lanes: Vec<Lane<'a>>, width: usize, rows: usize) -> Self {
        let blocks = Cow::Owned(Blocks::of(&lanes, width));
        Self::in_blocks(lanes, blocks, rows)
    }

    /// Columns without nulls, of which is known how they are written.
    ///
    /// # Panics
    /// If a lane does not hold `rows` values, or these are not the lanes of `blocks`.
    pub(crate) fn without_nulls(lanes: Vec<Lane<'a>>, blocks: &'a Blocks, rows: usize) -> Self {
        let nulls = lanes.iter().any(|lane| lane.valid.is_some());
        assert!(
            !nulls && !blocks.nulls && lanes.len() == blocks.lanes,
            "the lanes of these blocks"
        );
        Self::in_blocks(lanes, Cow::Borrowed(blocks), rows)
    }

    fn in_blocks(lanes: Vec<Lane<'a>>, blocks: Cow<'a, Blocks>, rows: usize) -> Self {
        let width = blocks.width;
        assert!(matches!(width, 4 | 8 | 16), "numbers of 4, 8 or 16 bytes");
        let bytes = rows.checked_mul(width).expect("rows fit the address space");
        for lane in &lanes {
            assert!(lane.values.len() >= bytes, "a lane holds a value for each row");
            assert!(lane.valid.is_none_or(|bits| bits.holds(rows)), "a bit for each row");
        }
        let values = match blocks.blocks.iter().any(|block| block.plain) {
            true => lanes.iter().map(|lane| lane.values).collect(),
            false => Vec::new(),
        };
        Self { lanes, values, blocks, rows, width }
    }

    /// True if all of them are written at once.
    pub(crate) fn is_one_block(&self) -> bool {
        self.blocks.blocks.len() <= 1
    }

    pub(crate) fn width(&self) -> usize {
        self.width
    }

    /// Bytes that they take in a row.
    pub(crate) fn bytes(&self) -> usize {
        self.lanes.len() * self.width
    }

    pub(super) fn rows(&self) -> usize {
        self.rows
    }

    pub(super) fn blocks(&self) -> &[LaneBlock] {
        &self.blocks.blocks
    }

    /// The values of all lanes, if some block is plain.
    #[cfg(target_arch = "x86_64")]
    pub(super) fn values(&self) -> &[&'a [u8]] {
        &self.values
    }

    /// The codes of the blocks that [`avx512::put`] is to write, of each eight columns of them.
    #[cfg(target_arch = "x86_64")]
    pub(super) fn codes(&self) -> &[avx512::Codes] {
        &self.blocks.codes
    }

    pub(super) fn all(&self) -> &[Lane<'a>] {
        &self.lanes
    }
}

/// A number that columns are read to.
pub(crate) trait Word: ArrowNativeType {
    /// The low bits of `value`.
    fn of(value: u64) -> Self;
}

impl Word for u16 {
    fn of(value: u64) -> Self {
        value as Self
    }
}

impl Word for u32 {
    fn of(value: u64) -> Self {
        value as Self
    }
}

impl Word for u64 {
    fn of(value: u64) -> Self {
        value
    }
}

/// A column to be read.
#[derive(Debug)]
pub(crate) struct LaneOut<'a, T> {
    /// The values, appended; nulls are zero.
    pub(crate) values: &'a mut Values<T>,
    /// Validity of the rows of one call, 64 rows a word; overwritten. Bits behind them are zero.
    pub(crate) valid: &'a mut Vec<u64>,
    pub(crate) code: Code,
}

/// Says of the first `rows` rows that they are valid.
pub(super) fn all_valid(valid: &mut [u64], rows: usize) {
    valid[..rows / 64].fill(u64::MAX);
    if !rows.is_multiple_of(64) {
        valid[rows / 64] = (1 << (rows % 64)) - 1;
    }
}
