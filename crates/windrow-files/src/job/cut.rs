//! Where the sorted rows are cut: into parts, and where there are many files, at their ends.
//!
//! ```text
//! slabs     [ 8192 rows ][ 8192 rows ][ 8192 rows ]...
//! files     [ file a ][ b ][ c                         ]...    by what tells partitions apart
//! parts     [        ][   ][             ][             ]...   of a file, and of so many rows or bytes
//! pieces    [slice   ][sl.][slice][slab  ][...                 a slab that files share is decoded here
//! ```
//!
//! Files of limited size are not opened here: how long a part is, is known when it is encoded (see [`super::sized`]).
//! A part of theirs ends, where it can, between two keys, since a file may end only there.
//!
//! Invariant: cuts follow from the rows and the settings. A file is opened with its first part, in the
//! order of the output; what its writer knows of it beforehand is a sample of its own rows.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use arrow::compute::{concat_batches, partition};
use arrow::record_batch::RecordBatch;
use windrow::{Decoder, Slab};

use super::decode::RowDecoder;
use super::plan::{BATCH_BYTES, BATCH_ROWS};
use super::rows::{Rows, Taken};
use super::sized::{self, Edges, Keys};
use crate::error::{Error, Result};
use crate::output::{self, Appender, Encoder, Folder, OutputOptions, SAMPLE_ROWS};
use crate::partition::{Name, Partitioning};
use crate::verbs::Arrangement;

/// Bytes of a row, on average, that is long: a chunk of the smallest size has a few of them.
const LONG_ROW: usize = 8 << 10;

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
pub(super) struct Begun {
    pub(super) ordinal: usize,
    pub(super) encoder: Arc<dyn Encoder>,
    /// If it is the first of its file.
    pub(super) opened: Option<Opened>,
    /// Whether its first row is the first of its key, where that was looked for.
    pub(super) starts_key: bool,
}

/// A file that begins.
pub(super) struct Opened {
    pub(super) name: Name,
    pub(super) appender: Box<dyn Appender>,
}

/// Rows of one file, neighbours in one slab.
pub(super) enum Piece {
    Rows(Slab),
    Decoded(RecordBatch),
    /// Rows that are cut out when they are taken: many short runs of many columns are more than the rows.
    Within(Arc<RecordBatch>, Range<usize>),
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

/// A thread's way from rows to columns.
pub(super) struct Decoders {
    rows: RowDecoder,
    /// Of what tells partitions apart, if anything does.
    keys: Option<Decoder>,
}

impl Decoders {
    pub(super) fn new(arrangement: &Arrangement, keys: Option<&[usize]>) -> Result<Self> {
        let layout = &arrangement.layout;
        let keys = keys.map(|keys| Decoder::new(layout, keys));
        Ok(Self { rows: RowDecoder::new(arrangement)?, keys: keys.transpose()? })
    }

    /// The columns of a piece that are written.
    pub(super) fn decode(&mut self, piece: Piece) -> Result<RecordBatch> {
        match piece {
            Piece::Rows(slab) => self.rows.decode(&slab),
            Piece::Decoded(batch) => Ok(batch),
            Piece::Within(batch, rows) => Ok(batch.slice(rows.start, rows.len())),
        }
    }
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
    current: Option<(Name, Arc<dyn Encoder>)>,
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
    pub(super) fn begin(&mut self, decoders: &mut Decoders) -> Result<Option<Begun>> {
        if self.ready.is_empty() {
            self.fill(Extent::default(), decoders)?;
        }
        let Some(run) = self.ready.front() else { return Ok(None) };
        let starts_key = run.edge == Some(0);
        let (encoder, opened) = match &mut self.files {
            Files::One(encoder) => (Arc::clone(encoder), None),
            Files::Sized(encoder, edges) => {
                edges.begin(starts_key);
                (Arc::clone(encoder), None)
            }
            Files::Many(many) => match &many.current {
                Some((name, encoder)) if Some(name) == run.name.as_ref() => {
                    (Arc::clone(encoder), None)
                }
                _ => {
                    let (encoder, opened) = self.open(decoders)?;
                    (encoder, Some(opened))
                }
            },
        };
        let ordinal = self.part;
        self.part += 1;
        Ok(Some(Begun { ordinal, encoder, opened, starts_key }))
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
                        self.cut_ready(edge, decoders)?;
                    }
                    edge > 0
                }
                _ => true,
            },
            (Files::Many(many), Some(run)) => {
                many.current.as_ref().map(|(name, _)| name) == run.name.as_ref()
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
                // A slab holds on to the whole chunks that its rows lie in. Short rows are many in
                // each; a few long ones would keep the memory of all runs, and are soon copied.
                let piece = match bytes >= rows * LONG_ROW {
                    true => Piece::Decoded(decoders.rows.decode(&slab)?),
                    false => Piece::Rows(slab),
                };
                self.ready.push_back(Run { name: None, piece, rows, bytes, edge });
            }
            Files::Many(many) => many.split(slab, &mut self.ready, decoders)?,
        }
        Ok(())
    }

    /// Cuts the run that is ready in two, before the row `edge`.
    fn cut_ready(&mut self, edge: usize, decoders: &mut Decoders) -> Result<()> {
        let Some(run) = self.ready.pop_front() else { return Ok(()) };
        let whole = Arc::new(decoders.decode(run.piece)?);
        let bytes = run.bytes * edge / run.rows.max(1);
        let piece = |rows: Range<usize>| Piece::Within(Arc::clone(&whole), rows);
        let (head, tail) = (piece(0..edge), piece(edge..run.rows));
        let (rows, rest) = (run.rows - edge, run.bytes - bytes);
        self.ready.push_front(Run { name: None, piece: tail, rows, bytes: rest, edge: Some(0) });
        self.ready.push_front(Run { name: None, piece: head, rows: edge, bytes, edge: None });
        Ok(())
    }

    /// Opens the file of the run that is ready.
    fn open(&mut self, decoders: &mut Decoders) -> Result<(Arc<dyn Encoder>, Opened)> {
        let mut sample = vec![self.decode_ready(0, decoders)?];
        let run = self.ready.front().ok_or_else(nothing_ready)?;
        let (rows, bytes) = (run.rows, run.bytes);
        // A file that begins at the end of a slab would be judged by a few rows.
        if self.ready.len() == 1 && rows < SAMPLE_ROWS && bytes < self.part_bytes {
            self.fill(Extent { rows, bytes }, decoders)?;
            if let (Some(first), Some(second)) = (self.ready.front(), self.ready.get(1))
                && first.name == second.name
            {
                sample.push(self.decode_ready(1, decoders)?);
            }
        }
        let Files::Many(many) = &mut self.files else { return Err(nothing_ready()) };
        let name = self.ready.front().and_then(|run| run.name.clone()).ok_or_else(nothing_ready)?;
        let schema = decoders.rows.schema();
        let sample = match concat_batches(schema, &sample) {
            Ok(sample) => sample,
            // Dictionaries with too many values between them.
            Err(_) => sample.swap_remove(0),
        };
        let target = many.folder.file(&name.path)?;
        let (encoder, appender) = output::open(&target, schema, &sample, many.options)?;
        many.current = Some((name.clone(), Arc::clone(&encoder)));
        Ok((encoder, Opened { name, appender }))
    }

    /// The rows of a run that is ready; it is decoded once.
    fn decode_ready(&mut self, index: usize, decoders: &mut Decoders) -> Result<RecordBatch> {
        let run = self.ready.get_mut(index).ok_or_else(nothing_ready)?;
        let decoded = match &run.piece {
            Piece::Rows(slab) => decoders.rows.decode(slab)?,
            Piece::Decoded(decoded) => decoded.clone(),
            Piece::Within(batch, rows) => batch.slice(rows.start, rows.len()),
        };
        run.piece = Piece::Decoded(decoded.clone());
        Ok(decoded)
    }
}

impl Many<'_> {
    /// Appends the runs of `slab` to `ready`.
    fn split(&self, slab: Slab, ready: &mut VecDeque<Run>, decoders: &mut Decoders) -> Result<()> {
        let extension = &self.options.extension();
        let keys = decoders.keys.as_mut().ok_or_else(nothing_ready)?.decode(&slab)?;
        let failed = |error: arrow::error::ArrowError| Error::data(error.to_string());
        let ranges = partition(keys.columns()).map_err(failed)?.ranges();
        let (rows, bytes) = (slab.rows(), slab.bytes());
        if let [_whole] = ranges.as_slice() {
            let name = Some(self.partitioning.names.of(&keys, 0, extension)?);
            ready.push_back(Run { name, piece: Piece::Rows(slab), rows, bytes, edge: None });
            return Ok(());
        }
        let decoded = Arc::new(decoders.rows.decode(&slab)?);
        for range in ranges {
            let name = self.partitioning.names.of(&keys, range.start, extension)?;
            ready.push_back(Run {
                name: Some(name),
                rows: range.len(),
                bytes: bytes * range.len() / rows,
                piece: Piece::Within(Arc::clone(&decoded), range),
                edge: None,
            });
        }
        Ok(())
    }
}

fn nothing_ready() -> Error {
    Error::data("internal error: a file was opened without rows")
}
