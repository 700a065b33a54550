//! The Arrow IPC streaming format.
//!
//! Lengths on the wire are not trusted with memory: a [frame](super::frame) is read as its bytes arrive.
//!
//! The file format is such a stream behind a magic number, with a footer behind it. Where the footer's list of blocks
//! is of no use, since each look at one would be a request, it is read as that stream.

use std::io::{BufRead, BufReader, Read};
use std::ops::Range;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_buffer::Buffer;
use arrow_ipc::convert;
use arrow_ipc::reader::StreamDecoder;
use arrow_schema::SchemaRef;

use crate::error::{Error, Result};
use crate::format::Format;
use crate::watch::Watch;

use super::content::{Pieces, decoded};
use super::frame::{Frame, plain_bytes};
use super::origin::{Faults, Origin, Stream};
use super::random::RandomFile;
use super::{Content, Opened, Span};

/// What a record batch of a stream that cannot be looked through is taken to need at the least. All are
/// taken to be no larger than the first.
const PASSING_BATCH: u64 = 16 << 20;

/// Heads hold a few dozen bytes per column; more than this is a damaged length.
const LARGEST_HEAD: u64 = 256 << 20;

struct StreamFile {
    origin: Origin,
    format: Format,
    /// A stream that passes once is already open behind its schema.
    passing: std::sync::Mutex<Option<Frames>>,
}

/// Reads the schema, and looks through a file for its rows.
pub(super) fn open(origin: Origin, format: Format) -> Result<Opened> {
    let mut frames = Frames::of(&origin, format)?;
    let schema = frames.schema().map_err(|what| origin.error(what))?;
    let bytes = origin.len();
    let (rows, reader_bytes, row_bytes, passing) = if origin.passes_once() || origin.is_far() {
        let Ahead { needed, read, row_bytes } =
            frames.look_ahead().map_err(|what| origin.error(what))?;
        let held = PASSING_BATCH.max(needed);
        match origin.passes_once() {
            // What was read is resident before anything is planned.
            true => (None, held.saturating_sub(read), row_bytes, Some(frames)),
            false => (None, held + origin.stream_bytes() as u64, row_bytes, None),
        }
    } else {
        let file = origin.random()?;
        let Surveyed { rows, held, plain } = survey(&file).map_err(|what| origin.error(what))?;
        (Some(rows), held, plain / rows.max(1), None)
    };
    Ok(Opened {
        format,
        schema,
        bytes,
        rows,
        spans: vec![Span { part: 0..1, first_row: 0, rows }],
        reader_bytes: usize::try_from(reader_bytes).unwrap_or(usize::MAX),
        row_bytes: usize::try_from(row_bytes).unwrap_or(usize::MAX),
        longest_row: usize::try_from(row_bytes).unwrap_or(usize::MAX),
        copies: 0,
        content: Box::new(StreamFile { origin, format, passing: passing.into() }),
    })
}

/// What the frames of a file tell.
struct Surveyed {
    rows: u64,
    /// The heap that the dictionaries and the largest record batch need.
    held: u64,
    /// Bytes of all record batches once they are decompressed.
    plain: u64,
}

fn survey(file: &RandomFile) -> Result<Surveyed, String> {
    let cut = |_| cut_short(file.len());
    let (mut at, mut rows, mut dictionaries, mut largest) = (0, 0, 0_u64, 0_u64);
    let mut all = 0_u64;
    while at < file.len() {
        let mut start = file.read_exact(at, 4).map_err(cut)?;
        at += 4;
        if start == [0xFF; 4] {
            start = file.read_exact(at, 4).map_err(cut)?;
            at += 4;
        }
        let length = u32::from_le_bytes([start[0], start[1], start[2], start[3]]);
        if length == 0 {
            if at < file.len() {
                return Err(more_behind(at));
            }
            break;
        }
        let bytes = file.read_exact(at, length as usize).map_err(cut)?;
        at += u64::from(length);
        let frame = Frame { bytes, message: 0 };
        let message = frame.message()?;
        let body = u64::try_from(message.bodyLength()).map_err(|_| cut_short(file.len()))?;
        if at.checked_add(body).is_none_or(|end| end > file.len()) {
            return Err(cut_short(file.len()));
        }
        let plain = plain_bytes(&frame, &|offset| {
            file.read_exact(at.checked_add(offset)?, 8).ok()?.try_into().ok()
        })?;
        match frame.rows()? {
            Some(in_batch) => {
                rows += in_batch;
                largest = largest.max(body.saturating_add(plain));
                all = all.saturating_add(body.max(plain));
            }
            None => dictionaries = dictionaries.saturating_add(body).saturating_add(plain),
        }
        at += body;
    }
    Ok(Surveyed { rows, held: dictionaries.saturating_add(largest), plain: all })
}

fn cut_short(len: u64) -> String {
    format!(
        "the Arrow stream is cut short, at {len} bytes; copy it again, or let its writer finish"
    )
}

/// The stream ends at `at`, and its bytes do not: another one is often there.
fn more_behind(at: u64) -> String {
    format!(
        "there are more bytes behind the end of the Arrow stream, at {at}; if they are another stream, \
         name each as an input of its own"
    )
}

impl Content for StreamFile {
    fn name(&self) -> &Arc<str> {
        self.origin.name()
    }

    fn faults(&self) -> Faults {
        self.origin.faults()
    }

    fn read(&self, _: Range<usize>, _: usize, _: &Watch) -> Result<Pieces> {
        let passing = self.passing.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take();
        let mut frames = match passing {
            Some(frames) => frames,
            None => Frames::of(&self.origin, self.format)?,
        };
        let name = self.name().clone();
        Ok(decoded(std::iter::from_fn(move || {
            frames.next_batch().map_err(|what| Error::data(format!("{name}: {what}"))).transpose()
        })))
    }
}

/// No bytes, and nothing that they would be a slice of.
fn nothing() -> Buffer {
    Buffer::from_vec(Vec::<u8>::new())
}

/// What ends a stream.
const END: [u8; 8] = [0xFF, 0xFF, 0xFF, 0xFF, 0, 0, 0, 0];

/// A frame whose body is read as far as needed.
enum Loaded {
    Head(Frame),
    Whole(Buffer),
}

/// What looking at the head of a stream tells.
#[derive(Default)]
struct Ahead {
    /// Bytes that the first record batch needs in memory.
    needed: u64,
    /// Bytes of those that are there by now.
    read: u64,
    /// Bytes of a row of it, on average.
    row_bytes: u64,
}

/// A stream, frame by frame.
struct Frames {
    stream: BufReader<Stream>,
    decoder: StreamDecoder,
    /// The next frame, where it was looked at: its body is still to be read, or was.
    ahead: Option<Loaded>,
    /// What the decoder has not taken yet of the frame read last.
    pending: Buffer,
    ended: bool,
    read: u64,
    /// Whether a footer may stand behind the end.
    in_file: bool,
}

impl Frames {
    /// Those of `origin`.
    fn of(origin: &Origin, format: Format) -> Result<Self> {
        let mut frames = Self::new(origin.stream()?);
        if format == Format::ArrowFile {
            let mut magic = Vec::new();
            let read = frames.append(&mut magic, 8).map_err(|what| origin.error(what))?;
            if read < 8 || !magic.starts_with(b"ARROW1") {
                return Err(
                    origin.error("not an Arrow IPC file; name its format with `input_format`")
                );
            }
            frames.in_file = true;
            frames.skip_padding().map_err(|cause| origin.unreadable(&cause))?;
        }
        Ok(frames)
    }

    /// Skips the zeros that writers align the first frame by.
    fn skip_padding(&mut self) -> std::io::Result<()> {
        while self.stream.fill_buf()?.starts_with(&[0; 8]) {
            self.stream.consume(8);
            self.read += 8;
        }
        Ok(())
    }

    fn new(stream: Stream) -> Self {
        Self {
            stream: BufReader::with_capacity(64 << 10, stream),
            decoder: StreamDecoder::new(),
            ahead: None,
            pending: nothing(),
            ended: false,
            read: 0,
            in_file: false,
        }
    }

    /// The schema, from the first frame.
    fn schema(&mut self) -> Result<SchemaRef, String> {
        let no_schema = || "not an Arrow stream: it does not start with a schema".to_string();
        self.pending = self.next_frame()?.ok_or_else(no_schema)?;
        let head = Frame::of_block(self.pending.to_vec())?;
        let message = head.message()?;
        let schema = message.header_as_schema().ok_or_else(no_schema)?;
        if !schema.endianness().equals_to_target_endianness() {
            return Err("the stream is of the other byte order, which is not read".into());
        }
        Ok(Arc::new(convert::fb_to_schema(schema)))
    }

    fn next_batch(&mut self) -> Result<Option<RecordBatch>, String> {
        loop {
            while !self.pending.is_empty() {
                let batch = self.decoder.decode(&mut self.pending);
                if let Some(batch) = batch.map_err(|cause| cause.to_string())? {
                    self.let_go();
                    return Ok(Some(batch));
                }
            }
            self.let_go();
            if self.ended {
                return Ok(None);
            }
            // The decoder looks at a head without a body only when more bytes come, so it is told the
            // end even where the stream was just closed.
            self.pending = self.next_frame()?.unwrap_or_else(|| {
                self.ended = true;
                Buffer::from(END)
            });
        }
    }

    /// Forgets the frame that was decoded: a slice of it, however short, would keep all of it while the
    /// next one is read.
    fn let_go(&mut self) {
        if self.pending.is_empty() {
            self.pending = nothing();
        }
    }

    /// Looks at the first record batch, and takes in what stands before it.
    fn look_ahead(&mut self) -> Result<Ahead, String> {
        let mut ahead = Ahead::default();
        loop {
            let Some(head) = self.next_head()? else {
                self.ended = true;
                return Ok(ahead);
            };
            let message = head.message()?;
            let body = u64::try_from(message.bodyLength()).unwrap_or(0);
            let batch = message.header_as_record_batch();
            let packed = batch.is_some_and(|batch| batch.compression().is_some());
            let rows = head.rows()?;
            if rows.is_some() && !packed {
                ahead.needed = body;
                ahead.row_bytes = body / rows.unwrap_or(0).max(1);
                self.ahead = Some(Loaded::Head(head));
                return Ok(ahead);
            }
            // What buffers become stands before each, so the body has to be there to tell.
            let (bytes, plain) = self.body_of(head)?;
            if let Some(rows) = rows {
                ahead.needed = body.saturating_add(plain);
                ahead.read = body;
                ahead.row_bytes = body.max(plain) / rows.max(1);
                self.ahead = Some(Loaded::Whole(bytes));
                return Ok(ahead);
            }
            // A dictionary, behind the schema: it is there for as long as the stream.
            for bytes in [std::mem::replace(&mut self.pending, nothing()), bytes] {
                self.pending = bytes;
                while !self.pending.is_empty() {
                    self.decoder.decode(&mut self.pending).map_err(|cause| cause.to_string())?;
                }
            }
            self.let_go();
        }
    }

    /// The head of the next frame; `None` at the end of the stream.
    fn next_head(&mut self) -> Result<Option<Frame>, String> {
        let mut bytes = Vec::new();
        if self.append(&mut bytes, 4)? == 0 {
            // The format lets a writer end a stream by closing it.
            return Ok(None);
        }
        let length_at = if bytes == [0xFF; 4] {
            self.append_all(&mut bytes, 4)?;
            4
        } else {
            0
        };
        let length = bytes
            .get(length_at..length_at + 4)
            .and_then(|length| length.try_into().ok())
            .map(u32::from_le_bytes)
            .ok_or_else(|| cut_short(self.read))?;
        if length == 0 {
            let at = self.read;
            if self.in_file {
                return Ok(None);
            }
            return match self.append(&mut bytes, 1)? {
                0 => Ok(None),
                _ => Err(more_behind(at)),
            };
        }
        if u64::from(length) > LARGEST_HEAD {
            return Err(
                "not an Arrow stream, or a damaged one: the length of a head is impossible".into(),
            );
        }
        let message = bytes.len();
        self.append_all(&mut bytes, length.into())?;
        Ok(Some(Frame { bytes, message }))
    }

    /// The bytes of the next frame with a head, checked; `None` at the end of the stream.
    fn next_frame(&mut self) -> Result<Option<Buffer>, String> {
        let head = match self.ahead.take() {
            Some(Loaded::Whole(bytes)) => return Ok(Some(bytes)),
            Some(Loaded::Head(head)) => Some(head),
            None if self.ended => None,
            None => self.next_head()?,
        };
        head.map(|head| self.body_of(head).map(|(bytes, _)| bytes)).transpose()
    }

    /// The frame of a head with its body, checked, and what its compressed buffers become.
    fn body_of(&mut self, frame: Frame) -> Result<(Buffer, u64), String> {
        let message = frame.message;
        let body = u64::try_from(frame.message()?.bodyLength())
            .map_err(|_| "the stream is damaged: a negative length".to_string())?;
        let start = frame.bytes.len();
        let mut bytes = frame.bytes;
        // Memory counts where it is written to, so a damaged length costs nothing. Growing as bytes arrive,
        // where all of them do not fit, would move them.
        let _ = bytes.try_reserve_exact(usize::try_from(body).unwrap_or(usize::MAX));
        self.append_all(&mut bytes, body)?;
        let head = Frame { bytes: bytes[message..start].to_vec(), message: 0 };
        let plain = plain_bytes(&head, &|at| {
            let at = start.checked_add(usize::try_from(at).ok()?)?;
            bytes.get(at..at.checked_add(8)?)?.try_into().ok()
        })?;
        Ok((Buffer::from_vec(bytes), plain))
    }

    /// Appends up to `length` bytes and returns how many there were.
    fn append(&mut self, bytes: &mut Vec<u8>, length: u64) -> Result<u64, String> {
        // Grown as bytes arrive: `length` may be a damaged one.
        let read = self
            .stream
            .by_ref()
            .take(length)
            .read_to_end(bytes)
            .map_err(|cause| format!("cannot be read: {cause}"))? as u64;
        self.read += read;
        Ok(read)
    }

    fn append_all(&mut self, bytes: &mut Vec<u8>, length: u64) -> Result<(), String> {
        if self.append(bytes, length)? < length {
            return Err(cut_short(self.read));
        }
        Ok(())
    }
}
