//! Cuts sorted rows into parts, and at the ends of files.
//!
//! ```text
//! slabs     [ 8192 rows ][ 8192 rows ][ 8192 rows ]...
//! files     [ file a ][ b ][ c                         ]...    by what tells partitions apart
//! parts     [        ][   ][             ][             ]...   of a file, and of so many rows or bytes
//! pieces    [slice   ][sl.][slice][slab  ][...                 see [`super::piece`]
//! ```
//!
//! Files of limited size are not opened here, since the length of a part is known after its
//! encoding (see [`super::sized`]). Their parts end between two keys where possible, since a file
//! may end only there.
//!
//! Invariant: cuts depend only on the rows and the settings. Only the columns that distinguish
//! files are decoded here, since one thread at a time cuts. The thread with a file's first part
//! opens the file ([`super::opening`]).

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_ord::partition::partition;
use windrow::Slab;

use super::opening::{File, First, Opening};
use super::piece::{Decoders, Piece, Whole};
use super::plan::{BATCH_BYTES, BATCH_ROWS};
use super::rows::{Rows, Taken};
use super::sized::{self, Edges};
use crate::error::{Error, Result, failed};
use crate::output::{Directory, Encoder, OutputOptions};
use crate::partition::{Name, Partitioning};

/// Sorted rows, and the rules for cutting them.
pub(super) struct Cutter<'a> {
    pub(super) rows: Rows,
    part_rows: usize,
    /// Maximum bytes of a part's rows.
    pub(super) part_bytes: usize,
    files: CutFiles<'a>,
    /// Runs taken from slabs, for later parts.
    ready: VecDeque<Run>,
    /// Number of the next part.
    part: usize,
}

/// Size of the current part so far.
#[derive(Clone, Copy, Default)]
pub(super) struct Extent {
    rows: usize,
    bytes: usize,
}

/// A new part; its pieces are to be taken next.
pub(super) struct NewPart<'a> {
    pub(super) ordinal: usize,
    pub(super) file: File<'a>,
    /// Whether the first row is the first of its key, as far as checked.
    pub(super) starts_key: bool,
}

struct Run {
    /// Name of the file; `None` if there is only one.
    name: Option<Name>,
    piece: Piece,
    rows: usize,
    bytes: usize,
    /// The first row that starts a key, as far as checked.
    edge: Option<usize>,
}

/// The files of an output.
pub(super) enum CutFiles<'a> {
    One(Arc<dyn Encoder>),
    /// A number of files determined by their sizes.
    Sized(Arc<dyn Encoder>, Edges),
    ByName(ByName<'a>),
}

/// Files by partition.
pub(super) struct ByName<'a> {
    pub(super) partitioning: &'a Partitioning,
    pub(super) options: &'a OutputOptions,
    pub(super) folder: &'a Directory,
    pub(super) current: Option<Arc<Opening<'a>>>,
}

impl<'a> Cutter<'a> {
    pub(super) fn new(
        rows: Rows,
        (part_rows, part_bytes): (usize, usize),
        files: CutFiles<'a>,
    ) -> Self {
        Self { rows, part_rows, part_bytes, files, ready: VecDeque::new(), part: 0 }
    }

    /// Returns the columns that distinguish files.
    pub(super) fn keys(&self) -> Option<&[usize]> {
        match &self.files {
            CutFiles::One(_) => None,
            CutFiles::Sized(_, edges) => edges.keys.as_deref(),
            CutFiles::ByName(many) => Some(&many.partitioning.keys),
        }
    }

    /// Begins the next part; `None` when all rows are taken.
    pub(super) fn begin(&mut self, decoders: &mut Decoders) -> Result<Option<NewPart<'a>>> {
        if self.ready.is_empty() {
            self.fill(Extent::default(), decoders)?;
        }
        let Some(run) = self.ready.front() else { return Ok(None) };
        let starts_key = run.edge == Some(0);
        let file = match &mut self.files {
            CutFiles::One(encoder) => File::Open(Arc::clone(encoder)),
            CutFiles::Sized(encoder, edges) => {
                edges.within_key = !starts_key;
                File::Open(Arc::clone(encoder))
            }
            CutFiles::ByName(many) => match (&many.current, &run.name) {
                (Some(current), Some(name)) if current.name == *name => {
                    File::Later(Arc::clone(current))
                }
                (_, name) => {
                    let name = name.clone().ok_or_else(nameless)?;
                    let opening = Opening::new(name, many.folder, many.options);
                    many.current = Some(Arc::clone(&opening));
                    File::First(First(opening))
                }
            },
        };
        let ordinal = self.part;
        self.part += 1;
        Ok(Some(NewPart { ordinal, file, starts_key }))
    }

    /// Returns the next piece of a part of size `extent`; `None` at the part's end.
    pub(super) fn next(
        &mut self,
        extent: &mut Extent,
        decoders: &mut Decoders,
    ) -> Result<Option<Piece>> {
        if extent.rows >= self.part_rows || extent.bytes >= self.part_bytes {
            return Ok(None);
        }
        if self.ready.is_empty() {
            self.fill(*extent, decoders)?;
        }
        let same = match (&self.files, self.ready.front()) {
            (_, None) => false,
            (CutFiles::One(_), Some(_)) => true,
            (CutFiles::Sized(_, edges), Some(run)) => match run.edge {
                Some(edge) if edges.ends_at_edge((extent.rows, extent.bytes)) => {
                    if edge > 0 {
                        self.cut_ready(edge);
                    }
                    edge > 0
                }
                _ => true,
            },
            (CutFiles::ByName(many), Some(run)) => {
                many.current.as_ref().map(|current| &current.name) == run.name.as_ref()
            }
        };
        let next = if same { self.ready.pop_front() } else { None };
        Ok(next.map(|run| {
            extent.rows += run.rows;
            extent.bytes += run.bytes;
            run.piece
        }))
    }

    /// Takes a slab for a part of size `extent`.
    fn fill(&mut self, extent: Extent, decoders: &mut Decoders) -> Result<()> {
        let (most, most_bytes) = match &self.files {
            CutFiles::Sized(..) => sized::slab((self.part_rows, self.part_bytes)),
            _ => (BATCH_ROWS, BATCH_BYTES),
        };
        let most = most.min(self.part_rows - extent.rows);
        let Some(taken) = self.rows.next(most, most_bytes)? else { return Ok(()) };
        let taken = match (&self.files, taken) {
            (CutFiles::ByName(many), Taken::Slab(slab)) => {
                return many.split(slab, &mut self.ready, decoders);
            }
            (_, taken) => taken,
        };
        let (rows, bytes) = taken.size();
        let mut edge = None;
        if let CutFiles::Sized(_, edges) = &mut self.files {
            let columns = edges.keys.clone();
            let keys = || match &taken {
                Taken::Batch { keys, .. } => Ok(keys.clone()),
                Taken::Picks(picks) => {
                    Ok(columns.as_deref().map(|columns| picks.gather(columns)).transpose()?)
                }
                Taken::Slab(slab) => {
                    Ok(decoders.keys.as_mut().map(|keys| keys.decode(slab)).transpose()?)
                }
            };
            edge = edges.first((extent.rows + rows, extent.bytes + bytes), keys)?;
        }
        let piece = match taken {
            Taken::Slab(slab) => decoders.piece(slab)?,
            Taken::Picks(picks) => Piece::Picks(picks),
            Taken::Batch { batch, .. } => Piece::Decoded(batch),
        };
        self.ready.push_back(Run { name: None, piece, rows, bytes, edge });
        Ok(())
    }

    /// Splits the first ready run before the row `edge`.
    fn cut_ready(&mut self, edge: usize) {
        let Some(run) = self.ready.pop_front() else { return };
        let whole = Whole::of(run.piece);
        let bytes = run.bytes * edge / run.rows.max(1);
        let piece = |rows: Range<usize>| Piece::Within(Arc::clone(&whole), rows);
        let (head, tail) = (piece(0..edge), piece(edge..run.rows));
        let (rows, rest) = (run.rows - edge, run.bytes - bytes);
        self.ready.push_front(Run { name: None, piece: tail, rows, bytes: rest, edge: Some(0) });
        self.ready.push_front(Run { name: None, piece: head, rows: edge, bytes, edge: None });
    }
}

impl ByName<'_> {
    /// Appends the runs of `slab` to `ready`.
    fn split(&self, slab: Slab, ready: &mut VecDeque<Run>, decoders: &mut Decoders) -> Result<()> {
        let extension = &self.options.extension();
        let (rows, bytes) = (slab.rows(), slab.bytes());
        let mut decode = |slab: &Slab| {
            decoders.keys.as_mut().ok_or_else(nameless)?.decode(slab).map_err(Error::from)
        };
        // Rows are sorted: if the first and the last row belong to one file, all rows do.
        let ends = decode(&slab.ends())?;
        if let [_whole] = files(&ends)?.as_slice() {
            let name = Some(self.partitioning.names.of(&ends, 0, extension)?);
            let piece = decoders.piece(slab)?;
            ready.push_back(Run { name, piece, rows, bytes, edge: None });
            return Ok(());
        }
        let keys = decode(&slab)?;
        let whole = Whole::of(decoders.piece(slab)?);
        for range in files(&keys)? {
            let name = self.partitioning.names.of(&keys, range.start, extension)?;
            ready.push_back(Run {
                name: Some(name),
                rows: range.len(),
                bytes: bytes * range.len() / rows,
                piece: Piece::Within(Arc::clone(&whole), range),
                edge: None,
            });
        }
        Ok(())
    }
}

/// Splits the rows by file; `keys` are the columns that distinguish files.
fn files(keys: &RecordBatch) -> Result<Vec<Range<usize>>> {
    partition(keys.columns()).map(|files| files.ranges()).map_err(failed)
}

fn nameless() -> Error {
    Error::data("internal error: rows that no file is known of")
}
