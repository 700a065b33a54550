//! The Arrow IPC streaming format.
//!
//! Lengths in the data allocate no memory in advance: the buffer of a [frame](super::frame) grows
//! as bytes arrive.
//!
//! The file format is such a stream after a magic number, with a footer at its end. Where each
//! access by the footer's list of blocks would be a request, a file is read as a stream.

use std::io::{BufRead, BufReader, Read};
use std::ops::Range;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_buffer::Buffer;
use arrow_ipc::convert;
use arrow_ipc::reader::StreamDecoder;
use arrow_schema::SchemaRef;

use crate::error::{Error, Result};
use crate::input::opened::{About, Content, Opened, Pieces, Span, decoded};
use crate::input::source::origin::{Origin, Stream};
use crate::input::source::random::RandomFile;
use crate::settings::Format;
use crate::watch::Watch;

use super::frame::{Frame, plain_bytes};

/// Assumed minimum of memory for a record batch of a stream without random access. The plan assumes
/// that no batch is larger than the first.
const PASSING_BATCH: u64 = 16 << 20;

/// Maximum bytes of a head. Real heads have a few dozen bytes per column; a longer one has a
/// damaged length.
const LARGEST_HEAD: u64 = 256 << 20;

struct StreamFile {
    origin: Origin,
    format: Format,
    /// Frames after the schema, for a stream that can be read only once.
    passing: std::sync::Mutex<Option<Frames>>,
}

/// Reads the schema, and surveys the frames of a file.
pub(crate) fn open(origin: Origin, format: Format) -> Result<Opened> {
    let mut frames = Frames::of(&origin, format)?;
    let schema = frames.schema().map_err(|what| origin.error(what))?;
    let bytes = origin.len();
    let (rows, reader_bytes, row_bytes, passing) = if origin.passes_once() || origin.is_far() {
        let Ahead { needed, read, row_bytes } =
            frames.look_ahead().map_err(|what| origin.error(what))?;
        let held = PASSING_BATCH.max(needed);
        match origin.passes_once() {
            // The bytes read so far are in memory before planning.
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
        about: About::default(),
        content: Box::new(StreamFile { origin, format, passing: passing.into() }),
    })
}

/// Results of the survey of a file's frames.
struct Surveyed {
    rows: u64,
    /// Bytes of heap for the dictionaries and the largest record batch.
    held: u64,
    /// Decompressed bytes of all record batches.
    plain: u64,
}

fn survey(file: &RandomFile) -> Result<Surveyed, String> {
    let cut = |_| cut_short(file.len);
    let (mut at, mut rows, mut dictionaries, mut largest) = (0, 0, 0_u64, 0_u64);
    let mut all = 0_u64;
    while at < file.len {
        let mut start = file.read_exact(at, 4).map_err(cut)?;
        at += 4;
        if start == [0xFF; 4] {
            start = file.read_exact(at, 4).map_err(cut)?;
            at += 4;
        }
        let length = u32::from_le_bytes([start[0], start[1], start[2], start[3]]);
        if length == 0 {
            if at < file.len {
                return Err(more_behind(at));
            }
            break;
        }
        let bytes = file.read_exact(at, length as usize).map_err(cut)?;
        at += u64::from(length);
        let frame = Frame { bytes, message: 0 };
        let message = frame.message()?;
        let body = u64::try_from(message.bodyLength()).map_err(|_| cut_short(file.len))?;
        if at.checked_add(body).is_none_or(|end| end > file.len) {
            return Err(cut_short(file.len));
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

/// Returns the error for bytes after the stream's end at `at`, often another stream.
fn more_behind(at: u64) -> String {
    format!(
        "there are more bytes behind the end of the Arrow stream, at {at}; if they are another stream, \
         name each as an input of its own"
    )
}

impl Content for StreamFile {
    fn read(&self, _: Range<usize>, _: usize, _: &Watch) -> Result<Pieces> {
        let passing = self.passing.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take();
        let mut frames = match passing {
            Some(frames) => frames,
            None => Frames::of(&self.origin, self.format)?,
        };
        let name = self.origin.name().clone();
        Ok(decoded(std::iter::from_fn(move || {
            frames.next_batch().map_err(|what| Error::data(format!("{name}: {what}"))).transpose()
        })))
    }
}

/// Returns an empty buffer, which references no allocation.
fn nothing() -> Buffer {
    Buffer::from_vec(Vec::<u8>::new())
}

/// Bytes at the end of a stream.
const END: [u8; 8] = [0xFF, 0xFF, 0xFF, 0xFF, 0, 0, 0, 0];

/// A frame, with or without its body.
enum Loaded {
    Head(Frame),
    Whole(Buffer),
}

/// Facts from the head of a stream.
#[derive(Default)]
struct Ahead {
    /// Bytes of memory for the first record batch.
    needed: u64,
    /// Bytes of `needed` read so far.
    read: u64,
    /// Bytes of an average row of the first record batch.
    row_bytes: u64,
}

/// Reader of a stream, frame by frame.
struct Frames {
    stream: BufReader<Stream>,
    decoder: StreamDecoder,
    /// The next frame, if it was examined in advance.
    ahead: Option<Loaded>,
    /// The part of the last frame that the decoder has not consumed yet.
    pending: Buffer,
    ended: bool,
    read: u64,
    /// Whether a footer may follow the end of the stream.
    in_file: bool,
}

impl Frames {
    /// Opens the frames of `origin`.
    fn of(origin: &Origin, format: Format) -> Result<Self> {
        let mut frames = Self {
            stream: BufReader::with_capacity(64 << 10, origin.stream()?),
            decoder: StreamDecoder::new(),
            ahead: None,
            pending: nothing(),
            ended: false,
            read: 0,
            in_file: false,
        };
        if format == Format::ArrowFile {
            let mut magic = Vec::new();
            let read = frames.append(&mut magic, 8).map_err(|what| origin.error(what))?;
            if read < 8 || !magic.starts_with(b"ARROW1") {
                return Err(
                    origin.error("not an Arrow IPC file; name its format with `input_format`")
                );
            }
            frames.in_file = true;
            let unreadable = |cause| origin.unreadable(&cause);
            // The zeros with which writers align the first frame.
            while frames.stream.fill_buf().map_err(unreadable)?.starts_with(&[0; 8]) {
                frames.stream.consume(8);
                frames.read += 8;
            }
        }
        Ok(frames)
    }

    /// Returns the schema, from the first frame.
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
            // The decoder examines a head without a body only when more bytes arrive, so it gets
            // the end marker even if the stream was just closed.
            self.pending = self.next_frame()?.unwrap_or_else(|| {
                self.ended = true;
                Buffer::from(END)
            });
        }
    }

    /// Releases the decoded frame: even an empty slice would keep the whole frame in memory while
    /// the next one is read.
    fn let_go(&mut self) {
        if self.pending.is_empty() {
            self.pending = nothing();
        }
    }

    /// Examines the first record batch, and decodes the dictionaries before it.
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
            // Each buffer of the body starts with its decompressed length, so the whole body is
            // needed.
            let (bytes, plain) = self.body_of(head)?;
            if let Some(rows) = rows {
                ahead.needed = body.saturating_add(plain);
                ahead.read = body;
                ahead.row_bytes = body.max(plain) / rows.max(1);
                self.ahead = Some(Loaded::Whole(bytes));
                return Ok(ahead);
            }
            // A dictionary after the schema: it stays in memory as long as the stream.
            for bytes in [std::mem::replace(&mut self.pending, nothing()), bytes] {
                self.pending = bytes;
                while !self.pending.is_empty() {
                    self.decoder.decode(&mut self.pending).map_err(|cause| cause.to_string())?;
                }
            }
            self.let_go();
        }
    }

    /// Reads the head of the next frame; `None` at the end of the stream.
    fn next_head(&mut self) -> Result<Option<Frame>, String> {
        let mut bytes = Vec::new();
        if self.append(&mut bytes, 4)? == 0 {
            // The format lets a writer end a stream by closing it.
            return Ok(None);
        }
        if bytes == [0xFF; 4] {
            self.append_all(&mut bytes, 4)?;
        }
        let length = bytes.last_chunk().ok_or_else(|| cut_short(self.read))?;
        let length = u32::from_le_bytes(*length);
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

    /// Reads the next frame and checks it; `None` at the end of the stream.
    fn next_frame(&mut self) -> Result<Option<Buffer>, String> {
        let head = match self.ahead.take() {
            Some(Loaded::Whole(bytes)) => return Ok(Some(bytes)),
            Some(Loaded::Head(head)) => Some(head),
            None if self.ended => None,
            None => self.next_head()?,
        };
        head.map(|head| self.body_of(head).map(|(bytes, _)| bytes)).transpose()
    }

    /// Reads the body of a head, and checks it. Returns the frame, and the decompressed bytes of
    /// its compressed buffers.
    fn body_of(&mut self, frame: Frame) -> Result<(Buffer, u64), String> {
        let message = frame.message;
        let body = u64::try_from(frame.message()?.bodyLength())
            .map_err(|_| "the stream is damaged: a negative length".to_string())?;
        let start = frame.bytes.len();
        let mut bytes = frame.bytes;
        // Reserved memory is not resident before a write to it, so a damaged length costs nothing.
        // Without the reservation, a growing buffer would move its bytes.
        let _ = bytes.try_reserve_exact(usize::try_from(body).unwrap_or(usize::MAX));
        self.append_all(&mut bytes, body)?;
        let head = Frame { bytes: bytes[message..start].to_vec(), message: 0 };
        let plain = plain_bytes(&head, &|at| {
            let at = start.checked_add(usize::try_from(at).ok()?)?;
            bytes.get(at..at.checked_add(8)?)?.try_into().ok()
        })?;
        Ok((Buffer::from_vec(bytes), plain))
    }

    /// Appends up to `length` bytes. Returns the number of bytes read.
    fn append(&mut self, bytes: &mut Vec<u8>, length: u64) -> Result<u64, String> {
        // The buffer grows as bytes arrive, since `length` may be damaged.
        let read = self.stream.by_ref().take(length).read_to_end(bytes);
        let read = read.map_err(|cause| format!("cannot be read: {cause}"))? as u64;
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
