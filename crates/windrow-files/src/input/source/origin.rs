//! Sources of an input's bytes: a file that is opened anew for every unit, an object in a store, a
//! spooled copy of a stream, or a stream that can be read only once.
//!
//! No file descriptor is held between reads, so any number of inputs fits under `ulimit -n`. Reads
//! are positioned: threads that share a descriptor do not share an offset.

use std::fs::File;
use std::io::{Cursor, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use crate::error::{Error, ErrorKind, Result};
use crate::input::charset::{CHARSET_BYTES, Charset};
use crate::input::options::ReadOptions;
use crate::lock::lock;
use crate::packing::{Decompressors, HEAD, Packing};
use crate::raw::{Elements, Fault, FullLoad, Raw};
use crate::rewrite::Rewritten;
use crate::settings::{Format, Setting};
use crate::store::{Look, Object, RANGE, is_far};
use crate::watch::Cancel;

use super::copied::Copying;
use super::head::Head;
use super::random::RandomFile;

/// Bytes of a stream or text for detection of the format and inference of the schema.
pub(crate) const SAMPLE_BYTES: usize = 1 << 20;

/// First range requested of a Parquet object, at its end. Most footers are smaller.
pub(crate) const TAIL: u64 = 64 << 10;

/// First range requested of any other object: the sample, and 64 KiB for the rest of its last line.
const HEAD_OF_TEXT: u64 = SAMPLE_BYTES as u64 + (64 << 10);

/// A stream of bytes.
pub(crate) type Stream = Box<dyn Read + Send>;

/// An input, as the formats see the input.
pub(crate) struct Origin {
    name: Arc<str>,
    place: Storage,
    /// Conversions of the text. In a stream that can be read only once, the conversions are already
    /// part of the stream.
    turned: Vec<Turn>,
    /// Character set of the bytes, if not UTF-8.
    charset: Option<Charset>,
    /// Memory for decompressing and decoding the bytes.
    pub(crate) unpacking: usize,
    /// The last look at the first bytes, until it is forgotten.
    look: Arc<Mutex<Head>>,
}

/// A conversion of text, for example of a change log to rows.
#[derive(Clone)]
pub(crate) enum Turn {
    Events(Arc<Raw>),
    /// Rows of a full load without operations, with this delimiter.
    FullLoad(u8),
    /// Objects in JSON arrays, converted to consecutive objects.
    Elements,
    /// Records in MongoDB's extended JSON, converted to plain JSON.
    Extended,
}

impl Turn {
    fn of(&self, text: Stream) -> Stream {
        match self {
            Self::Events(raw) => raw.events(text),
            Self::FullLoad(delimiter) => Box::new(Rewritten::new(text, FullLoad::new(*delimiter))),
            Self::Extended => Arc::new(Raw::extended()).events(text),
            Self::Elements => Box::new(Rewritten::new(text, Elements::new())),
        }
    }
}

enum Storage {
    /// A file or an object.
    There(There),
    /// Compressed text.
    Packed(Packed),
    /// A stream, copied to an unnamed file.
    Spooled(RandomFile),
    /// A stream; its only reader takes the stream.
    Passing(Mutex<Option<Stream>>),
}

/// A source that can be opened any number of times.
enum There {
    /// A regular file, and its length when the job began.
    File(PathBuf, u64),
    Object(Arc<Object>),
}

impl There {
    fn len(&self) -> u64 {
        match self {
            Self::File(_, len) => *len,
            Self::Object(object) => object.len(),
        }
    }

    fn random(&self) -> Result<RandomFile> {
        match self {
            Self::File(path, _) => {
                RandomFile::new(open_file(path)?).map_err(|cause| refused(path, &cause))
            }
            Self::Object(object) => Ok(RandomFile::of_object(object)),
        }
    }

    /// Opens the bytes from the start, in order.
    fn stream(&self) -> Result<Stream> {
        let random = match self {
            Self::File(..) => self.random()?,
            Self::Object(object) => RandomFile::of_stream(object),
        };
        Ok(Box::new(random.reader_at(0)))
    }

    /// Opens the bytes from the start. A file that became shorter since the job began is an error;
    /// an object cannot change.
    fn whole(&self) -> Result<Stream> {
        let stream = self.stream()?;
        Ok(Box::new(Whole { stream, len: self.len(), read: 0 }))
    }
}

/// The faults of an object, which decoders of the bytes take for damage.
#[derive(Clone, Default)]
pub(crate) struct Faults(Option<Arc<Object>>);

impl Faults {
    /// Releases the first range of the object.
    pub(crate) fn forget(&self) {
        if let Some(object) = &self.0 {
            object.forget();
        }
    }

    /// Returns the earlier fault of the object, if any; otherwise `error`.
    pub(crate) fn behind(&self, error: Error) -> Error {
        self.0.as_ref().and_then(|object| object.fault()).unwrap_or(error)
    }
}

impl Origin {
    /// Inspects a file without reading it, or an object by its first range.
    ///
    /// # Errors
    /// `Data` if the path is missing, is a directory or may not be read.
    pub(crate) fn of_path(path: &Path, options: &ReadOptions) -> Result<Self> {
        let name: Arc<str> = path.display().to_string().into();
        if is_far(path) {
            let look = match options.format.or_else(|| Format::of_path(path)) {
                Some(Format::Parquet) => Look::Tail(TAIL),
                _ => Look::Head(HEAD_OF_TEXT),
            };
            let object = Object::open(&options.stores, path, look, &options.cancel)?;
            let place = Storage::There(There::Object(Arc::new(object)));
            return Ok(Self::at(name, place));
        }
        let file = open_file(path)?;
        let about = file.metadata().map_err(|cause| refused(path, &cause))?;
        let place = if about.is_file() {
            Storage::There(There::File(path.to_owned(), about.len()))
        } else if about.is_dir() {
            return Err(Error::input(path, "is a directory, not a file"));
        } else {
            // A named pipe or a process substitution can be opened only once.
            Storage::Passing(Mutex::new(Some(Box::new(file))))
        };
        Ok(Self::at(name, place))
    }

    fn at(name: Arc<str>, place: Storage) -> Self {
        Self { name, place, turned: Vec::new(), charset: None, unpacking: 0, look: Arc::default() }
    }

    /// Takes standard input. Only the first call succeeds.
    pub(crate) fn of_stdin(stdin: &mut Option<Stream>) -> Result<Self> {
        let stream =
            stdin.take().ok_or_else(|| Error::usage("standard input (-) can be read only once"))?;
        let place = Storage::Passing(Mutex::new(Some(stream)));
        Ok(Self::at("stdin".into(), place))
    }

    /// Adds a conversion to rows. Offsets are then offsets in the text of the rows.
    pub(crate) fn turned(mut self, turn: Turn) -> Self {
        self.look = Arc::default();
        match &self.place {
            Storage::Passing(stream) => {
                let mut stream = lock(stream);
                *stream = stream.take().map(|text| turn.of(text));
            }
            _ => self.turned.push(turn),
        }
        self
    }

    /// Converts the text to UTF-8 from the character set of its byte order mark, or else from
    /// `charset`.
    pub(crate) fn in_utf8(mut self, charset: Option<Charset>) -> Result<Self> {
        let charset = Charset::of_mark(&self.head(HEAD)?).or(charset);
        let Some(charset) = charset.filter(|charset| !charset.is_utf8()) else { return Ok(self) };
        match &self.place {
            Storage::Passing(stream) => {
                let mut stream = lock(stream);
                *stream = stream.take().map(|text| Box::new(charset.reader(text)) as Stream);
            }
            _ => self.charset = Some(charset),
        }
        self.look = Arc::default();
        self.unpacking += CHARSET_BYTES;
        Ok(self)
    }

    /// Decodes and converts `bytes` to text.
    fn text(&self, bytes: Stream) -> Stream {
        let text = match self.charset {
            Some(charset) => Box::new(charset.reader(bytes)),
            None => bytes,
        };
        self.turned.iter().fold(text, |text, turn| turn.of(text))
    }

    /// Adds decompression, if the input starts with the magic number of a compressor.
    pub(crate) fn unpacked(mut self, decompressors: Decompressors) -> Result<Self> {
        let head = self.head(HEAD)?;
        let Some(packing) = Packing::of_magic(&head) else { return Ok(self) };
        self.unpacking = packing.reader_bytes(&head, decompressors);
        self.place = match self.place {
            Storage::There(there) => {
                Storage::Packed(Packed { there, packing, head: head.to_vec(), decompressors })
            }
            Storage::Passing(stream) => {
                let packed = stream.into_inner().unwrap_or_else(PoisonError::into_inner);
                let text =
                    packed.map(|packed| packing.reader(packed, &head, decompressors)).transpose();
                Storage::Passing(Mutex::new(text.map_err(|cause| unreadable(&self.name, &cause))?))
            }
            other => other,
        };
        self.look = Arc::default();
        Ok(self)
    }

    /// Returns the name for messages.
    pub(crate) fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// Returns the memory for sequential reading besides the readers: for decompression, and for
    /// ranges of an object.
    pub(crate) fn stream_bytes(&self) -> usize {
        let ahead = match self.there() {
            Some(There::Object(object)) => object.len().min(2 * RANGE),
            _ => 0,
        };
        self.unpacking + usize::try_from(ahead).unwrap_or(0)
    }

    fn there(&self) -> Option<&There> {
        match &self.place {
            Storage::There(there) | Storage::Packed(Packed { there, .. }) => Some(there),
            Storage::Spooled(_) | Storage::Passing(_) => None,
        }
    }

    /// Returns whether each random read is a request.
    pub(crate) fn is_far(&self) -> bool {
        matches!(self.there(), Some(There::Object(_)))
    }

    /// Returns the faults of the input's store.
    pub(crate) fn faults(&self) -> Faults {
        match self.there() {
            Some(There::Object(object)) => Faults(Some(Arc::clone(object))),
            _ => Faults::default(),
        }
    }

    /// Returns whether the bytes can be read only once, in order.
    pub(crate) fn passes_once(&self) -> bool {
        matches!(self.place, Storage::Passing(_))
    }

    /// Returns up to `limit` of the first bytes, which are still there for the next reader. A second look that goes no
    /// further reads nothing.
    pub(crate) fn head(&self, limit: usize) -> Result<Head> {
        let mut look = lock(&self.look);
        if let Some(head) = look.up_to(limit) {
            return Ok(head);
        }
        let mut bytes = Vec::new();
        let failed = |cause| self.unreadable(&cause);
        match &self.place {
            Storage::Passing(stream) => {
                let mut stream = lock(stream);
                if let Some(mut rest) = stream.take() {
                    rest.by_ref().take(limit as u64).read_to_end(&mut bytes).map_err(failed)?;
                    *look = Head::new(bytes, limit);
                    *stream = Some(Box::new(Cursor::new(look.clone()).chain(rest)));
                }
            }
            _ => {
                self.stream()?.take(limit as u64).read_to_end(&mut bytes).map_err(failed)?;
                *look = Head::new(bytes, limit);
            }
        }
        Ok(look.clone())
    }

    /// Returns the last look at the first bytes. Whoever opens many inputs forgets it.
    pub(crate) fn look(&self) -> Arc<Mutex<Head>> {
        Arc::clone(&self.look)
    }

    /// Opens the bytes from the start, in order.
    pub(crate) fn stream(&self) -> Result<Stream> {
        match &self.place {
            Storage::Passing(stream) => lock(stream)
                .take()
                .ok_or_else(|| self.error("is a stream and can be read only once")),
            Storage::Packed(packed) => Ok(self.text(packed.open(&self.name)?)),
            Storage::There(there) => Ok(self.text(there.stream()?)),
            Storage::Spooled(file) => Ok(self.text(Box::new(file.reader_at(0)))),
        }
    }

    /// Opens the bytes from the start, in order. A file that is shorter than at the start of the
    /// job is an error.
    pub(crate) fn whole(&self) -> Result<Stream> {
        match &self.place {
            Storage::There(there) => Ok(self.text(there.whole()?)),
            _ => self.stream(),
        }
    }

    /// Opens the bytes from `offset` on; `None` if the bytes can be read only once.
    pub(crate) fn again_from(&self, offset: u64) -> Option<Stream> {
        match &self.place {
            Storage::Passing(_) => None,
            // Offsets in the text are not offsets in compressed or unconverted bytes.
            place
                if !self.turned.is_empty()
                    || self.charset.is_some()
                    || matches!(place, Storage::Packed(..)) =>
            {
                let mut text = self.stream().ok()?;
                std::io::copy(&mut text.by_ref().take(offset), &mut std::io::sink()).ok()?;
                Some(text)
            }
            _ => Some(Box::new(self.random().ok()?.reader_at(offset))),
        }
    }

    /// Opens the bytes for positioned reads.
    pub(crate) fn random(&self) -> Result<RandomFile> {
        match &self.place {
            Storage::There(there) => there.random(),
            Storage::Spooled(file) => Ok(file.clone()),
            Storage::Passing(_) | Storage::Packed(..) => {
                Err(self.error("is a stream; spool it before reading at random"))
            }
        }
    }

    /// Copies a stream or a compressed input to an unnamed file in `directory`, for random access.
    /// Subtracts the length of the copy from `left`.
    ///
    /// # Errors
    /// `Space` if the directory is full or the copy is longer than `left`.
    pub(crate) fn spooled(
        self,
        directory: Option<&Path>,
        left: &mut u64,
        cancel: &Cancel,
    ) -> Result<Self> {
        if !self.passes_once() && self.unpacking == 0 {
            return Ok(self);
        }
        let directory = directory.map_or_else(std::env::temp_dir, Path::to_owned);
        let copy =
            tempfile::tempfile_in(&directory).map_err(|cause| Error::output(&directory, &cause))?;
        let mut copy = Copying::new(copy);
        let mut stream = self.stream()?;
        let mut chunk = vec![0; 128 << 10];
        loop {
            let read = match stream.read(&mut chunk) {
                Ok(read) => read,
                Err(cause) if cause.kind() == std::io::ErrorKind::Interrupted => continue,
                Err(cause) => return Err(self.unreadable(&cause)),
            };
            if read == 0 {
                break;
            }
            cancel.check()?;
            *left = left.checked_sub(read as u64).ok_or_else(|| {
                Error::space(format!(
                    "{}: the copy of it in {}, which is needed to read it at random, takes more than \
                     {} leaves; raise that, or name a file",
                    self.name,
                    directory.display(),
                    Setting::MaxTempSize
                ))
            })?;
            std::io::Write::write_all(&mut copy, &chunk[..read])
                .map_err(|cause| Error::output(&directory, &cause))?;
        }
        let copy = RandomFile::of_copy(copy.finish());
        Ok(Self { place: Storage::Spooled(copy), unpacking: 0, ..self })
    }

    /// Returns the length in bytes; `None` for a stream.
    pub(crate) fn len(&self) -> Option<u64> {
        match &self.place {
            Storage::There(there) | Storage::Packed(Packed { there, .. }) => match there {
                There::File(path, _) => std::fs::metadata(path).ok().map(|file| file.len()),
                There::Object(object) => Some(object.len()),
            },
            Storage::Spooled(file) => Some(file.len),
            Storage::Passing(_) => None,
        }
    }

    /// Returns the error for bytes that cannot be read or are no change log.
    pub(crate) fn unreadable(&self, cause: &std::io::Error) -> Error {
        let error = match cause.get_ref().and_then(|cause| cause.downcast_ref::<Fault>()) {
            Some(fault) => self.error(fault).at_line(fault.line),
            None => self.error(format!("cannot be read: {cause}")),
        };
        self.faults().behind(error)
    }

    /// Returns an error about this input.
    pub(crate) fn error(&self, cause: impl std::fmt::Display) -> Error {
        Error::data(format!("{}: {cause}", self.name)).in_file(Arc::clone(&self.name))
    }
}

/// The source of compressed text.
struct Packed {
    there: There,
    packing: Packing,
    /// The first compressed bytes.
    head: Vec<u8>,
    decompressors: Decompressors,
}

impl Packed {
    /// Opens the text from the start.
    fn open(&self, name: &str) -> Result<Stream> {
        let whole = self.there.whole()?;
        self.packing
            .reader(whole, &self.head, self.decompressors)
            .map_err(|cause| unreadable(name, &cause))
    }
}

fn unreadable(name: &str, cause: &std::io::Error) -> Error {
    Error::data(format!("{name}: cannot be read: {cause}")).in_file(name)
}

fn open_file(path: &Path) -> Result<File> {
    File::open(path).map_err(|cause| refused(path, &cause))
}

fn refused(path: &Path, cause: &std::io::Error) -> Error {
    use std::io::ErrorKind as K;
    let error = match cause.kind() {
        K::NotFound => {
            Error::input(path, "no such file; check the name").of_kind(ErrorKind::NotFound)
        }
        K::PermissionDenied => {
            Error::input(path, "permission denied; make the file readable first")
        }
        K::IsADirectory => Error::input(path, "is a directory, not a file"),
        _ => Error::input(path, format!("cannot be read: {cause}")),
    };
    error.caused(cause.kind())
}

/// A stream that must not end before its length: text does not show where a file was cut.
struct Whole {
    stream: Stream,
    len: u64,
    read: u64,
}

impl Read for Whole {
    fn read(&mut self, bytes: &mut [u8]) -> std::io::Result<usize> {
        let read = self.stream.read(bytes)?;
        self.read += read as u64;
        if read == 0 && !bytes.is_empty() && self.read < self.len {
            let (read, len) = (self.read, self.len);
            return Err(std::io::Error::new(
                std::io::ErrorKind::UnexpectedEof,
                format!(
                    "it ends at {read} bytes and had {len} when the job began; let its writer finish, \
                     and run the job again"
                ),
            ));
        }
        Ok(read)
    }
}
