//! Opening of partition files by the threads with their first parts.
//!
//! ```text
//! thread A   [take part 0: a][sample, open a][encode 0 .....][append 0]
//! thread B       [take part 1: a][wait for a][encode 1 .....]          [append 1]
//! thread C           [take part 2: b][sample, open b][encode 2 ...]              [append 2]
//! ```
//!
//! Invariant: the sample for a file's writer consists of the file's own first rows. A thread that
//! waits for a file always gets an answer, even if opening the file fails.

use std::sync::{Arc, OnceLock};

use arrow_array::RecordBatch;
use arrow_select::concat::concat_batches;

use super::piece::{Decoders, Piece};
use crate::error::{Error, Result};
use crate::output::{self, Appender, Directory, Encoder, OutputOptions, SAMPLE_ROWS};
use crate::partition::Name;

/// Number of pieces to sample before a file is opened: the first may be the short end of a slab.
const SAMPLE_PIECES: usize = 2;

/// The file of a part.
pub(super) enum File<'a> {
    Open(Arc<dyn Encoder>),
    /// A new file, to be opened by the thread with this part.
    First(First<'a>),
    /// A file that another thread opens.
    Later(Arc<Opening<'a>>),
}

/// A newly opened file.
pub(super) struct Opened {
    pub(super) name: Name,
    pub(super) appender: Box<dyn Appender>,
}

/// The encoder of a part, and the file if the part is its first.
type Encoding = (Arc<dyn Encoder>, Option<Opened>);

/// A file, open or yet to be opened.
pub(super) struct Opening<'a> {
    pub(super) name: Name,
    folder: &'a Directory,
    options: &'a OutputOptions,
    /// `Some(None)` after a failure. The opening thread reports the error.
    encoder: OnceLock<Option<Arc<dyn Encoder>>>,
}

/// The duty to open a file. Dropping it without an open file marks a failure.
pub(super) struct First<'a>(pub(super) Arc<Opening<'a>>);

impl<'a> Opening<'a> {
    pub(super) fn new(name: Name, folder: &'a Directory, options: &'a OutputOptions) -> Arc<Self> {
        Arc::new(Self { name, folder, options, encoder: OnceLock::new() })
    }
}

impl First<'_> {
    /// Opens the file by its first pieces.
    fn open(&self, pieces: &mut [Piece], decoders: &mut Decoders) -> Result<Encoding> {
        let Opening { name, folder, options, encoder } = &*self.0;
        let sample = sample(pieces, decoders)?;
        let target = folder.file(&name.path)?;
        let (opened, appender) = output::open(&target, &decoders.rows.schema, &sample, options)?;
        // No other thread sets this cell.
        let _ = encoder.set(Some(Arc::clone(&opened)));
        Ok((opened, Some(Opened { name: name.clone(), appender })))
    }
}

impl Drop for First<'_> {
    fn drop(&mut self) {
        // Has no effect after a success.
        let _ = self.0.encoder.set(None);
    }
}

impl File<'_> {
    /// Returns true if the first pieces `head` of the part suffice to open the file.
    pub(super) fn is_sampled(&self, head: &[Piece]) -> bool {
        match self {
            Self::Open(_) | Self::Later(_) => true,
            Self::First(_) => {
                head.len() == SAMPLE_PIECES
                    || head.iter().map(Piece::rows).sum::<usize>() >= SAMPLE_ROWS
            }
        }
    }

    /// Returns the encoder of the part with the first pieces `pieces`, and the file if the part is
    /// its first. Waits while another thread opens the file; returns `None` if that thread fails.
    pub(super) fn open(
        self,
        pieces: &mut [Piece],
        decoders: &mut Decoders,
    ) -> Result<Option<Encoding>> {
        Ok(match self {
            Self::Open(encoder) => Some((encoder, None)),
            Self::First(first) => Some(first.open(pieces, decoders)?),
            Self::Later(opening) => opening.encoder.wait().clone().map(|encoder| (encoder, None)),
        })
    }
}

/// Decodes the first rows, which determine the file's encoding. The pieces keep the result.
fn sample(pieces: &mut [Piece], decoders: &mut Decoders) -> Result<RecordBatch> {
    let (mut sample, mut rows) = (Vec::new(), 0);
    for piece in pieces.iter_mut().take(SAMPLE_PIECES) {
        if rows < SAMPLE_ROWS {
            rows += piece.rows();
            sample.push(decoders.decode_in_place(piece)?);
        }
    }
    match concat_batches(&decoders.rows.schema, &sample) {
        Ok(sample) => Ok(sample),
        // The dictionaries together have too many values.
        Err(_) if !sample.is_empty() => Ok(sample.swap_remove(0)),
        Err(error) => Err(Error::data(error.to_string())),
    }
}
