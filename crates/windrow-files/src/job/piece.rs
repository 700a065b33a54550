//! Sorted rows between cutting and encoding: as rows, as columns, or as a range of either.
//!
//! ```text
//! slab  [ file a ][ b ][ file c ]      one lock  ->  each file's thread asks for its part; the first of them decodes all
//! ```
//!
//! Invariant: the decoded columns depend on the rows alone, not on the decoding thread.

use std::ops::Range;
use std::sync::{Arc, Mutex};

use arrow_array::RecordBatch;
use windrow::{Decoder, Picks, Slab};

use super::decode::RowDecoder;
use crate::error::Result;
use crate::lock::lock;
use crate::verbs::Arrangement;

/// Average bytes of a long row: a chunk of the smallest size has a few of them.
const LONG_ROW: usize = 8 << 10;

/// Neighbouring rows of one slab, for one file.
pub(super) enum Piece {
    Rows(Slab),
    Picks(Picks),
    Decoded(RecordBatch),
    /// Rows to slice at encoding: many short slices of many columns take more memory than the rows.
    Within(Arc<Whole>, Range<usize>),
}

impl Piece {
    /// Returns the number of rows.
    pub(super) fn rows(&self) -> usize {
        match self {
            Self::Rows(slab) => slab.rows(),
            Self::Picks(picks) => picks.rows(),
            Self::Decoded(batch) => batch.num_rows(),
            Self::Within(_, rows) => rows.len(),
        }
    }
}

/// Rows shared by several pieces, decoded by the first user.
pub(super) struct Whole(Mutex<Piece>);

impl Whole {
    pub(super) fn of(piece: Piece) -> Arc<Self> {
        Arc::new(Self(Mutex::new(piece)))
    }
}

/// A thread's decoders.
pub(super) struct Decoders {
    pub(super) rows: RowDecoder,
    /// Decoder of the columns that distinguish files, if any do.
    pub(super) keys: Option<Decoder>,
}

impl Decoders {
    pub(super) fn new(arrangement: &Arrangement, keys: Option<&[usize]>) -> Result<Self> {
        let layout = &arrangement.layout;
        let keys = keys.map(|keys| Decoder::new(layout, keys));
        Ok(Self { rows: RowDecoder::new(arrangement)?, keys: keys.transpose()? })
    }

    /// Makes a piece of a slab. A slab pins the whole chunks of its rows. A chunk has many short
    /// rows, but only a few long ones; long rows would pin the memory of all runs, so they are
    /// decoded at once.
    pub(super) fn piece(&mut self, slab: Slab) -> Result<Piece> {
        match slab.bytes() >= slab.rows() * LONG_ROW {
            true => self.rows.decode(&slab).map(Piece::Decoded),
            false => Ok(Piece::Rows(slab)),
        }
    }

    /// Decodes the output columns of a piece.
    pub(super) fn decode(&mut self, mut piece: Piece) -> Result<RecordBatch> {
        self.decode_in_place(&mut piece)
    }

    /// Decodes the output columns of a piece, and keeps the result in the piece.
    pub(super) fn decode_in_place(&mut self, piece: &mut Piece) -> Result<RecordBatch> {
        let batch = match piece {
            Piece::Rows(slab) => self.rows.decode(slab)?,
            Piece::Picks(picks) => self.rows.gather(picks)?,
            Piece::Decoded(batch) => return Ok(batch.clone()),
            Piece::Within(whole, rows) => {
                let mut whole = lock(&whole.0);
                self.decode_in_place(&mut whole)?.slice(rows.start, rows.len())
            }
        };
        *piece = Piece::Decoded(batch.clone());
        Ok(batch)
    }
}
