//! Files of partitions, each opened by who takes its first part.
//!
//! ```text
//! thread A   [take part 0: a][sample, open a][encode 0 .....][append 0]
//! thread B       [take part 1: a][wait for a][encode 1 .....]          [append 1]
//! thread C           [take part 2: b][sample, open b][encode 2 ...]              [append 2]
//! ```
//!
//! Invariant: what a file's writer knows of it beforehand is a sample of its own first rows. Who waits for a file hears of it,
//! or that it was not opened, however who opens it fares.

use std::sync::{Arc, OnceLock};

use arrow_array::RecordBatch;
use arrow_select::concat::concat_batches;

use super::piece::{Decoders, Piece};
use crate::error::{Error, Result};
use crate::output::{self, Appender, Encoder, Folder, OutputOptions, SAMPLE_ROWS};
use crate::partition::Name;

/// Pieces that are looked at before a file is opened: the first may be the end of a slab, and of a few rows.
const SAMPLE_PIECES: usize = 2;

/// The file of a part.
pub(super) enum File<'a> {
    Open(Arc<dyn Encoder>),
    /// It begins with this part.
    First(First<'a>),
    /// It is opened by who has its first part.
    Later(Arc<Opening<'a>>),
}

/// A file that was opened.
pub(super) struct Opened {
    pub(super) name: Name,
    pub(super) appender: Box<dyn Appender>,
}

/// What encodes a part, and its file if that begins with it.
type Encoding = (Arc<dyn Encoder>, Option<Opened>);

/// A file that is to be opened, or was.
pub(super) struct Opening<'a> {
    pub(super) name: Name,
    folder: Folder,
    options: &'a OutputOptions,
    /// None in it if that failed, which who tried reports.
    encoder: OnceLock<Option<Arc<dyn Encoder>>>,
}

/// The duty to open a file. Whoever drops it undone has failed.
pub(super) struct First<'a>(Arc<Opening<'a>>);

impl<'a> Opening<'a> {
    pub(super) fn new(name: Name, folder: Folder, options: &'a OutputOptions) -> Arc<Self> {
        Arc::new(Self { name, folder, options, encoder: OnceLock::new() })
    }
}

impl<'a> First<'a> {
    pub(super) fn new(opening: Arc<Opening<'a>>) -> Self {
        Self(opening)
    }

    /// Opens the file, whose first pieces these are.
    fn open(
        &self,
        pieces: &mut [Piece],
        decoders: &mut Decoders,
    ) -> Result<(Arc<dyn Encoder>, Opened)> {
        let Opening { name, folder, options, encoder } = &*self.0;
        let sample = sample(pieces, decoders)?;
        let target = folder.file(&name.path)?;
        let (opened, appender) = output::open(&target, decoders.rows.schema(), &sample, options)?;
        // Nobody else sets it.
        let _ = encoder.set(Some(Arc::clone(&opened)));
        Ok((opened, Opened { name: name.clone(), appender }))
    }
}

impl Drop for First<'_> {
    fn drop(&mut self) {
        // Stays what it is, where the file was opened.
        let _ = self.0.encoder.set(None);
    }
}

impl File<'_> {
    /// Whether these first pieces of the part are enough to open it.
    pub(super) fn is_sampled(&self, head: &[Piece]) -> bool {
        match self {
            Self::Open(_) | Self::Later(_) => true,
            Self::First(_) => {
                head.len() == SAMPLE_PIECES
                    || head.iter().map(Piece::rows).sum::<usize>() >= SAMPLE_ROWS
            }
        }
    }

    /// What encodes the part, whose first pieces these are, and the file if that begins with it; waits for who opens it. None if
    /// who had to open it has failed.
    pub(super) fn open(
        self,
        pieces: &mut [Piece],
        decoders: &mut Decoders,
    ) -> Result<Option<Encoding>> {
        Ok(match self {
            Self::Open(encoder) => Some((encoder, None)),
            Self::First(first) => {
                let (encoder, opened) = first.open(pieces, decoders)?;
                Some((encoder, Some(opened)))
            }
            Self::Later(opening) => opening.encoder.wait().clone().map(|encoder| (encoder, None)),
        })
    }
}

/// The first rows, which decide how a file is encoded; they are decoded once.
fn sample(pieces: &mut [Piece], decoders: &mut Decoders) -> Result<RecordBatch> {
    let (mut sample, mut rows) = (Vec::new(), 0);
    for piece in pieces.iter_mut().take(SAMPLE_PIECES) {
        if rows < SAMPLE_ROWS {
            rows += piece.rows();
            sample.push(decoders.decode_in_place(piece)?);
        }
    }
    match concat_batches(decoders.rows.schema(), &sample) {
        Ok(sample) => Ok(sample),
        // Dictionaries with too many values between them.
        Err(_) if !sample.is_empty() => Ok(sample.swap_remove(0)),
        Err(error) => Err(Error::data(error.to_string())),
    }
}
