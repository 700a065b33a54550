//! Rows between where they are cut and where they are encoded: as rows, as columns, or as a part of either.
//!
//! ```text
//! slab  [ file a ][ b ][ file c ]      one lock  ->  each file's thread asks for its part; the first of them decodes all
//! ```
//!
//! Invariant: what is decoded depends on the rows alone, not on who does it.

use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::RecordBatch;
use windrow::{Decoder, Slab};

use super::decode::RowDecoder;
use crate::error::Result;
use crate::verbs::Arrangement;

/// Bytes of a row, on average, that is long: a chunk of the smallest size has a few of them.
const LONG_ROW: usize = 8 << 10;

/// Rows of one file, neighbours in one slab.
pub(super) enum Piece {
    Rows(Slab),
    Decoded(RecordBatch),
    /// Rows that are cut out when they are encoded: many short runs of many columns are more than the rows.
    Within(Arc<Whole>, Range<usize>),
}

impl Piece {
    /// The number of rows.
    pub(super) fn rows(&self) -> usize {
        match self {
            Self::Rows(slab) => slab.rows(),
            Self::Decoded(batch) => batch.num_rows(),
            Self::Within(_, rows) => rows.len(),
        }
    }
}

/// What several pieces share, decoded by who is the first in need of it.
pub(super) struct Whole(Mutex<Piece>);

impl Whole {
    pub(super) fn of(piece: Piece) -> Arc<Self> {
        Arc::new(Self(Mutex::new(piece)))
    }
}

/// A thread's way from rows to columns.
pub(super) struct Decoders {
    pub(super) rows: RowDecoder,
    /// Of what tells files apart, if anything does.
    pub(super) keys: Option<Decoder>,
}

impl Decoders {
    pub(super) fn new(arrangement: &Arrangement, keys: Option<&[usize]>) -> Result<Self> {
        let layout = &arrangement.layout;
        let keys = keys.map(|keys| Decoder::new(layout, keys));
        Ok(Self { rows: RowDecoder::new(arrangement)?, keys: keys.transpose()? })
    }

    /// A slab as a piece. It holds on to the whole chunks that its rows lie in: short rows are many in each; a few long ones
    /// would keep the memory of all runs, and are soon copied.
    pub(super) fn piece(&mut self, slab: Slab) -> Result<Piece> {
        match slab.bytes() >= slab.rows() * LONG_ROW {
            true => self.rows.decode(&slab).map(Piece::Decoded),
            false => Ok(Piece::Rows(slab)),
        }
    }

    /// The columns of a piece that are written.
    pub(super) fn decode(&mut self, mut piece: Piece) -> Result<RecordBatch> {
        self.decode_in_place(&mut piece)
    }

    /// The same of a piece that has them from then on.
    pub(super) fn decode_in_place(&mut self, piece: &mut Piece) -> Result<RecordBatch> {
        let batch = match piece {
            Piece::Rows(slab) => self.rows.decode(slab)?,
            Piece::Decoded(batch) => return Ok(batch.clone()),
            Piece::Within(whole, rows) => {
                let mut whole = whole.0.lock().unwrap_or_else(PoisonError::into_inner);
                self.decode_in_place(&mut whole)?.slice(rows.start, rows.len())
            }
        };
        *piece = Piece::Decoded(batch.clone());
        Ok(batch)
    }
}
