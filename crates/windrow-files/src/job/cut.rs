//! Where the sorted rows are cut: into parts, and where there are many files, at their ends.
//!
//! ```text
//! slabs     [ 8192 rows ][ 8192 rows ][ 8192 rows ]...
//! files     [ file a ][ b ][ c                         ]...    by what tells partitions apart
//! parts     [        ][   ][             ][             ]...   of a file, and of so many rows or bytes
//! pieces    [slice   ][sl.][slice][slab  ][...                 see [`super::piece`]
//! ```
//!
//! Files of limited size are not opened here: how long a part is, is known when it is encoded (see [`super::sized`]).
//! A part of theirs ends, where it can, between two keys, since a file may end only there.
//!
//! Invariant: cuts follow from the rows and the settings. Nothing is decoded here but what tells files apart, since
//! one thread at a time cuts; a file is opened by who takes its first part ([`super::opening`]).

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
use super::sized::{self, Edges, Keys};
use crate::error::{Error, Result};
use crate::output::{Encoder, Folder, OutputOptions};
use crate::partition::{Name, Partitioning};

/// Rows to take, and where they are cut.
pub(super) struct Cutter<'a> {
    pub(super) rows: Rows,
    part_rows: usize,
    part_bytes: usize,
    files: Files<'a>,
    /// Taken from the slabs, but of a later part.
    ready: VecDeque<Run>,
    /// The number of the next part.
    part: usize,
}

/// How far the current part has come.
#[derive(Clone, Copy, Default)]
pub(super) struct Extent {
    rows: usize,
    bytes: usize,
}

/// A part that begins: its pieces are to be taken next.
pub(super) struct Begun<'a> {
    pub(super) ordinal: usize,
    pub(super) file: File<'a>,
    /// Whether its first row is the first of its key, where that was looked for.
    pub(super) starts_key: bool,
}

struct Run {
    /// Of the file; none if there is but one.
    name: Option<Name>,
    piece: Piece,
    rows: usize,
    bytes: usize,
    /// The first row that is the first of its key, where that was looked for.
    edge: Option<usize>,
}

/// Which files there are.
enum Files<'a> {
    One(Arc<dyn Encoder>),
    /// As many as their sizes make.
    Sized(Arc<dyn Encoder>, Edges),
    Many(Many<'a>),
}

/// Files by partition.
struct Many<'a> {
    partitioning: &'a Partitioning,
    options: &'a OutputOptions,
    folder: Folder,
    current: Option<Arc<Opening<'a>>>,
}

impl<'a> Cutter<'a> {
    /// Cuts into parts of one file.
    pub(super) fn one(rows: Rows, limits: (usize, usize), encoder: Arc<dyn Encoder>) -> Self {
        Self::new(rows, limits, Files::One(encoder))
    }

    /// Cuts into parts of files that may end between two keys.
    pub(super) fn sized(
        rows: Rows,
        limits: (usize, usize),
        encoder: Arc<dyn Encoder>,
        keys: Keys,
    ) -> Self {
        Self::new(rows, limits, Files::Sized(encoder, Edges::new(keys, limits)))
    }

    /// Cuts into files in `folder`, and these into parts.
    pub(super) fn many(
        rows: Rows,
        limits: (usize, usize),
        partitioning: &'a Partitioning,
        options: &'a OutputOptions,
        folder: Folder,
    ) -> Self {
        let many = Many { partitioning, options, folder, current: None };
        Self::new(rows, limits, Files::Many(many))
    }

    fn new(rows: Rows, (part_rows, part_bytes): (usize, usize), files: Files<'a>) -> Self {
        Self { rows, part_rows, part_bytes, files, ready: VecDeque::new(), part: 0 }
    }

    /// Bytes of the rows of a part at the most.
    pub(super) fn part_bytes(&self) -> usize {
        self.part_bytes
    }

    /// Columns that tell apart what goes to different files.
    pub(super) fn keys(&self) -> Option<&[usize]> {
        match &self.files {
            Files::One(_) => None,
            Files::Sized(_, edges) => edges.columns(),
            Files::Many(many) => Some(&many.partitioning.keys),
        }
    }

    /// The next part; `None` when all rows are taken.
    pub(super) fn begin(&mut self, decoders: &mut Decoders) -> Result<Option<Begun<'a>>> {
        if self.ready.is_empty() {
            self.fill(Extent::default(), decoders)?;
        }
        let Some(run) = self.ready.front() else { return Ok(None) };
        let starts_key = run.edge == Some(0);
        let file = match &mut self.files {
            Files::One(encoder) => File::Open(Arc::clone(encoder)),
            Files::Sized(encoder, edges) => {
                edges.begin(starts_key);
                File::Open(Arc::clone(encoder))
            }
            Files::Many(many) => match (&many.current, &run.name) {
                (Some(current), Some(name)) if current.name == *name => {
                    File::Later(Arc::clone(current))
                }
                (_, name) => {
                    let name = name.clone().ok_or_else(nameless)?;
                    let opening = Opening::new(name, many.folder.clone(), many.options);
                    many.current = Some(Arc::clone(&opening));
                    File::First(First::new(opening))
                }
            },
        };
        let ordinal = self.part;
        self.part += 1;
        Ok(Some(Begun { ordinal, file, starts_key }))
    }

    /// The next piece of a part that has come as far as `extent`; `None` at its end.
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
            (Files::One(_), Some(_)) => true,
            (Files::Sized(_, edges), Some(run)) => match run.edge {
                Some(edge) if edges.ends_at_edge((extent.rows, extent.bytes)) => {
                    if edge > 0 {
                        self.cut_ready(edge);
                    }
                    edge > 0
                }
                _ => true,
            },
            (Files::Many(many), Some(run)) => {
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

    /// Takes a slab for a part that has come as far as `extent`.
    fn fill(&mut self, extent: Extent, decoders: &mut Decoders) -> Result<()> {
        let (most, most_bytes) = match &self.files {
            Files::Sized(..) => sized::slab((self.part_rows, self.part_bytes)),
            _ => (BATCH_ROWS, BATCH_BYTES),
        };
        let most = most.min(self.part_rows - extent.rows);
        let slab = match self.rows.next(most, most_bytes)? {
            None => return Ok(()),
            Some(Taken::Slab(slab)) => slab,
            Some(Taken::Batch { batch, bytes, keys }) => {
                let rows = batch.num_rows();
                let edge = match &mut self.files {
                    Files::Sized(_, edges) => {
                        edges.first((extent.rows + rows, extent.bytes + bytes), || Ok(keys))?
                    }
                    _ => None,
                };
                let piece = Piece::Decoded(batch);
                self.ready.push_back(Run { name: None, piece, rows, bytes, edge });
                return Ok(());
            }
        };
        match &mut self.files {
            Files::One(_) | Files::Sized(..) => {
                let (rows, bytes) = (slab.rows(), slab.bytes());
                let edge = match &mut self.files {
                    Files::Sized(_, edges) => {
                        let mut keys =
                            || decoders.keys.as_mut().map(|keys| keys.decode(&slab)).transpose();
                        edges.first((extent.rows + rows, extent.bytes + bytes), || Ok(keys()?))?
                    }
                    _ => None,
                };
                let piece = decoders.piece(slab)?;
                self.ready.push_back(Run { name: None, piece, rows, bytes, edge });
            }
            Files::Many(many) => many.split(slab, &mut self.ready, decoders)?,
        }
        Ok(())
    }

    /// Cuts the run that is ready in two, before the row `edge`.
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

impl Many<'_> {
    /// Appends the runs of `slab` to `ready`.
    fn split(&self, slab: Slab, ready: &mut VecDeque<Run>, decoders: &mut Decoders) -> Result<()> {
        let extension = &self.options.extension();
        let (rows, bytes) = (slab.rows(), slab.bytes());
        let mut decode = |slab: &Slab| {
            decoders.keys.as_mut().ok_or_else(nameless)?.decode(slab).map_err(Error::from)
        };
        // Rows in order: where the last is of the same file as the first, all are.
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

/// Which rows go to the same file, by what tells files apart.
fn files(keys: &RecordBatch) -> Result<Vec<Range<usize>>> {
    let files = partition(keys.columns()).map_err(|error| Error::data(error.to_string()))?;
    Ok(files.ranges())
}

fn nameless() -> Error {
    Error::data("internal error: rows that no file is known of")
}
