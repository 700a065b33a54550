//! Adjacent columns of one width, and how the kernels write them.
//!
//! ```text
//! lanes     a b c d e f g h i j k l m n o p q r   s t u v w x y z ..
//! blocks  | plain: no nulls, no codes that grow | some of both | ..     a kernel for each
//! codes   | of a..h         | of i..p           | of s..z      | ..     as the registers of the widest one hold them
//! ```
//!
//! Invariant: blocks are of all lanes, one behind the other; each lane holds what is read of it.

use std::borrow::Cow;
use std::ops::Range;

#[cfg(target_arch = "x86_64")]
use super::avx512;
use super::lane::{Code, Lane};
use super::{PLAIN, blocks_put, is_wide};

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

/// How lanes are written: what there is to know of their codes, and of which of them have nulls. Others see only those
/// of lanes without.
///
/// Benefit of making it once for many record batches without nulls (Zen 5): one of 50 columns costs 480 instead of 990 ns
/// whatever its rows, one of 4 columns 98 instead of 184.
#[derive(Clone, Debug)]
pub(crate) struct LaneBlocks {
    all: Vec<LaneBlock>,
    /// The codes of blocks that the widest kernel writes, as its registers hold them. Made once: rows are written
    /// a few hundred at a time, and to make them took as long as a tenth of that.
    #[cfg(target_arch = "x86_64")]
    codes: Vec<avx512::Codes>,
    lanes: usize,
    width: usize,
}

impl LaneBlocks {
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
            all: blocks,
            lanes: lanes.len(),
            width,
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
    blocks: Cow<'a, LaneBlocks>,
    rows: usize,
}

impl<'a> Lanes<'a> {
    /// Columns of `width` bytes: 4, 8, or 16, where a code for 64 bits is that of the upper half.
    ///
    /// # Panics
    /// If a lane does not hold `rows` values.
    pub(crate) fn new(lanes: Vec<Lane<'a>>, width: usize, rows: usize) -> Self {
        let blocks = Cow::Owned(LaneBlocks::of(&lanes, width));
        Self::in_blocks(lanes, blocks, rows)
    }

    /// Columns without nulls, of which is known how they are written.
    ///
    /// # Panics
    /// If a lane does not hold `rows` values, or these are not the lanes of `blocks`.
    pub(crate) fn without_nulls(lanes: Vec<Lane<'a>>, blocks: &'a LaneBlocks, rows: usize) -> Self {
        let nulls = lanes.iter().any(|lane| lane.valid.is_some());
        assert!(!nulls && lanes.len() == blocks.lanes, "the lanes of these blocks");
        Self::in_blocks(lanes, Cow::Borrowed(blocks), rows)
    }

    fn in_blocks(lanes: Vec<Lane<'a>>, blocks: Cow<'a, LaneBlocks>, rows: usize) -> Self {
        let width = blocks.width;
        assert!(matches!(width, 4 | 8 | 16), "numbers of 4, 8 or 16 bytes");
        let bytes = rows.checked_mul(width).expect("rows fit the address space");
        for lane in &lanes {
            assert!(lane.values.len() >= bytes, "a lane holds a value for each row");
            assert!(lane.valid.is_none_or(|bits| bits.holds(rows)), "a bit for each row");
        }
        let values = match blocks.all.iter().any(|block| block.plain) {
            true => lanes.iter().map(|lane| lane.values).collect(),
            false => Vec::new(),
        };
        Self { lanes, values, blocks, rows }
    }

    /// True if all of them are written at once.
    pub(crate) fn is_one_block(&self) -> bool {
        self.blocks.all.len() <= 1
    }

    pub(crate) fn width(&self) -> usize {
        self.blocks.width
    }

    /// Bytes that they take in a row.
    pub(crate) fn bytes(&self) -> usize {
        self.lanes.len() * self.blocks.width
    }

    pub(super) fn rows(&self) -> usize {
        self.rows
    }

    pub(super) fn blocks(&self) -> &[LaneBlock] {
        &self.blocks.all
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
