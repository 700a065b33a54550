//! Arrow IPC: a part is a list of encoded messages, for a stream or for the body of a file.
//!
//! ```text
//!  stream:  schema | [dictionaries | rows] ... | end
//!  file:    magic  | schema | rows ... | dictionaries | end | footer (where each message is) | magic
//! ```
//!
//! Messages have [`ROWS_A_MESSAGE`] rows and do not depend on their position, so workers encode and
//! compress them. A stream may replace a dictionary at any time, so each message brings its own
//! dictionaries. A file has one dictionary for each column, complete only at the end. The format
//! permits dictionaries at the end, since readers of files find them by the footer first. Delta
//! dictionaries could come earlier, but some readers do not support them. For a file with
//! dictionaries, the appender numbers the keys and encodes the messages.
//!
//! Known limits. One thread encodes a file with dictionaries. If the distinct values exceed the key
//! type, the job fails: the type of a column never changes. Dictionaries of dictionaries are
//! refused.

use std::io::BufWriter;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_ipc::convert::IpcSchemaEncoder;
use arrow_ipc::writer::{
    DictionaryTracker, EncodedData, IpcDataGenerator, IpcWriteContext, IpcWriteOptions,
    write_message,
};
use arrow_ipc::{Block, FooterBuilder, MetadataVersion};
use arrow_schema::{ArrowError, Schema, SchemaRef};

use super::compression::Compression;
use super::dictionaries::Dictionaries;
use super::options::OutputOptions;
use super::part::{
    ALIGNMENT, Appender, Encoder, Incoming, Part, PartRows, Payload, Written, array_bytes,
    foreign_part,
};
use super::rebatch::{Runs, rebatch};
use super::sink::{self, Sink};
use super::target::Destination;
use super::views::compact_views;
use crate::error::{Error, Result};
use crate::settings::Format;
use crate::watch::Watch;

/// Rows of a message. A reader loads a message whole, and compression works on its buffers.
const ROWS_A_MESSAGE: usize = 8192;
/// Bytes of long values after which a message ends before its full number of rows.
const BYTES_A_MESSAGE: usize = 1 << 20;
const MAGIC: &[u8] = b"ARROW1";
/// The continuation marker, and a metadata length of zero.
const END: [u8; 8] = [0xFF, 0xFF, 0xFF, 0xFF, 0, 0, 0, 0];

pub(super) fn open(
    target: &Destination,
    schema: &SchemaRef,
    options: &OutputOptions,
) -> Result<(Arc<dyn Encoder>, Box<dyn Appender>)> {
    let compression = options.write.compression.unwrap_or(Compression::None);
    let messages = Messages {
        schema: Arc::clone(schema),
        watch: options.watch.clone(),
        options: compression.ipc()?,
    };
    let dictionaries = Dictionaries::of(schema)?;
    let file = options.format == Format::ArrowFile;
    let mut appender = MessageAppender {
        sink: BufWriter::new(Sink::open(target, options)?),
        messages: messages.clone(),
        footer: file.then(Footer::default),
        position: 0,
        dictionaries: None,
    };
    appender.start()?;
    let mode = match dictionaries {
        None => Mode::Plain,
        Some(_) if !file => Mode::DictionaryEach,
        Some(dictionaries) => {
            appender.dictionaries = Some(dictionaries);
            Mode::Postpone
        }
    };
    let encoder = MessageEncoder { messages, mode };
    Ok((Arc::new(encoder), Box::new(appender)))
}

/// See [`super::part_bytes`].
pub(super) fn part_bytes(schema: &SchemaRef, options: &OutputOptions, part: PartRows) -> usize {
    let PartRows { rows, bytes, .. } = part;
    // The encoded part; the rows of a message, as received and concatenated; the message, in a
    // vector that doubles to grow; the metadata.
    let message = bytes.checked_div(rows).unwrap_or(0) * ROWS_A_MESSAGE.min(rows);
    let message = message.max(BYTES_A_MESSAGE);
    let metadata = (rows / ROWS_A_MESSAGE + 1) * schema.fields().len() * 128;
    let compression = options.write.compression.unwrap_or(Compression::None);
    bytes + 4 * message.min(bytes) + metadata + compression.context_bytes()
}

/// Treatment of dictionaries by an encoder.
enum Mode {
    /// The schema has no dictionaries.
    Plain,
    /// Each message has its own dictionaries.
    DictionaryEach,
    /// The appender encodes the rows.
    Postpone,
}

struct MessageEncoder {
    messages: Messages,
    mode: Mode,
}

impl Encoder for MessageEncoder {
    fn encode(&self, batches: Incoming<'_>) -> Result<Part> {
        let mut context = IpcWriteContext::default();
        let mut encoded = Vec::new();
        let mut postponed = Vec::new();
        let runs = Runs::of(ROWS_A_MESSAGE, BYTES_A_MESSAGE);
        let rows = rebatch(batches, runs, &self.messages.watch, |run| {
            match self.mode {
                Mode::Plain => encoded.push(self.messages.rows(&run, &mut context)?),
                Mode::DictionaryEach => {
                    if let Some(mut dictionaries) = Dictionaries::of(&self.messages.schema)? {
                        let keys = dictionaries.renumber(&run)?;
                        let values = dictionaries.carrier()?;
                        encoded.extend(self.messages.dictionaries(&values, &mut context)?);
                        encoded.push(self.messages.rows(&keys, &mut context)?);
                    }
                }
                Mode::Postpone => postponed.push(run),
            }
            Ok(())
        })?;
        let payload = match self.mode {
            Mode::Postpone => Payload::Batches(postponed),
            _ => Payload::Messages(encoded),
        };
        Ok(Part { rows, payload })
    }
}

/// Encoder of messages of one schema.
#[derive(Clone)]
struct Messages {
    schema: SchemaRef,
    watch: Watch,
    options: IpcWriteOptions,
}

impl Messages {
    /// Returns the first message, and a tracker with the ids of its dictionaries.
    fn schema(&self) -> (EncodedData, DictionaryTracker) {
        let mut tracker = DictionaryTracker::new(false);
        let (generator, options) = (IpcDataGenerator::default(), &self.options);
        let message =
            generator.schema_to_bytes_with_dictionary_tracker(&self.schema, &mut tracker, options);
        (message, tracker)
    }

    /// Encodes a record batch without dictionaries.
    fn rows(&self, batch: &RecordBatch, context: &mut IpcWriteContext) -> Result<EncodedData> {
        // The vector of a message doubles to grow, and cannot reuse the memory of its smaller
        // versions.
        self.watch.room_for(2 * array_bytes(batch));
        let mut tracker = DictionaryTracker::new(false);
        let batch = compact_views(batch).map_err(encoding)?;
        let (_, message) = IpcDataGenerator::default()
            .encode(&batch, &mut tracker, &self.options, context)
            .map_err(encoding)?;
        Ok(message)
    }

    /// Encodes the dictionaries of a record batch.
    fn dictionaries(
        &self,
        carrier: &RecordBatch,
        context: &mut IpcWriteContext,
    ) -> Result<Vec<EncodedData>> {
        let (_, mut tracker) = self.schema();
        let (messages, _) = IpcDataGenerator::default()
            .encode(carrier, &mut tracker, &self.options, context)
            .map_err(encoding)?;
        Ok(messages)
    }
}

/// Positions of a file's messages.
#[derive(Default)]
struct Footer {
    dictionaries: Vec<Block>,
    rows: Vec<Block>,
}

struct MessageAppender {
    sink: BufWriter<Sink>,
    messages: Messages,
    /// `None` for a stream.
    footer: Option<Footer>,
    position: usize,
    dictionaries: Option<Dictionaries>,
}

impl MessageAppender {
    fn start(&mut self) -> Result<()> {
        if self.footer.is_some() {
            let mut magic = [0; ALIGNMENT];
            magic[..MAGIC.len()].copy_from_slice(MAGIC);
            self.bytes(&magic)?;
        }
        self.message(self.messages.schema().0).map(drop)
    }

    fn bytes(&mut self, bytes: &[u8]) -> Result<()> {
        sink::write(&mut self.sink, bytes)?;
        self.position += bytes.len();
        Ok(())
    }

    /// Writes a message, and returns its position.
    fn message(&mut self, message: EncodedData) -> Result<Block> {
        let written = write_message(&mut self.sink, message, &self.messages.options);
        let (metadata, body) = written.map_err(|error| self.sink.get_ref().failed(error))?;
        let too_large = |_| Error::data("Arrow: a message is too large");
        let block = Block::new(
            i64::try_from(self.position).map_err(too_large)?,
            i32::try_from(metadata).map_err(too_large)?,
            i64::try_from(body).map_err(too_large)?,
        );
        self.position += metadata + body;
        Ok(block)
    }

    fn rows_message(&mut self, message: EncodedData) -> Result<()> {
        let block = self.message(message)?;
        self.footer.iter_mut().for_each(|footer| footer.rows.push(block));
        Ok(())
    }

    /// Ends the messages. In a file, also writes dictionaries and footer.
    fn end(&mut self) -> Result<()> {
        if let Some(dictionaries) = self.dictionaries.take() {
            let mut context = IpcWriteContext::default();
            let carrier = dictionaries.carrier()?;
            for message in self.messages.dictionaries(&carrier, &mut context)? {
                let block = self.message(message)?;
                self.footer.iter_mut().for_each(|footer| footer.dictionaries.push(block));
            }
        }
        self.bytes(&END)?;
        if let Some(footer) = self.footer.take() {
            let footer = self.encode_footer(&footer);
            self.bytes(&footer)?;
            let length = i32::try_from(footer.len());
            let length = length.map_err(|_| Error::data("Arrow: too many messages"))?;
            self.bytes(&length.to_le_bytes())?;
            self.bytes(MAGIC)?;
        }
        Ok(())
    }

    fn encode_footer(&self, footer: &Footer) -> Vec<u8> {
        let mut tracker = DictionaryTracker::new(false);
        // The builder's crate is a dependency of Arrow alone: encoding any schema gives access to a
        // builder.
        let mut builder = IpcSchemaEncoder::new().schema_to_fb(&Schema::empty());
        builder.reset();
        let dictionaries = builder.create_vector(&footer.dictionaries);
        let rows = builder.create_vector(&footer.rows);
        let schema = IpcSchemaEncoder::new()
            .with_dictionary_tracker(&mut tracker)
            .schema_to_fb_offset(&mut builder, &self.messages.schema);
        let mut footer = FooterBuilder::new(&mut builder);
        footer.add_version(MetadataVersion::V5);
        footer.add_schema(schema);
        footer.add_dictionaries(dictionaries);
        footer.add_recordBatches(rows);
        let root = footer.finish();
        builder.finish(root, None);
        builder.finished_data().to_vec()
    }
}

impl Appender for MessageAppender {
    fn append(&mut self, part: Part) -> Result<()> {
        match part.payload {
            Payload::Messages(messages) => {
                messages.into_iter().try_for_each(|message| self.rows_message(message))?;
            }
            Payload::Batches(batches) => {
                let mut context = IpcWriteContext::default();
                for batch in batches {
                    let Some(dictionaries) = &mut self.dictionaries else {
                        return Err(foreign_part());
                    };
                    let keys = dictionaries.renumber(&batch)?;
                    let message = self.messages.rows(&keys, &mut context)?;
                    self.rows_message(message)?;
                }
            }
            _ => return Err(foreign_part()),
        }
        self.sink.get_mut().appended(part.rows);
        Ok(())
    }

    fn finish(mut self: Box<Self>) -> Result<Written> {
        self.end()?;
        sink::finish(&mut self.sink)
    }
}

fn encoding(error: ArrowError) -> Error {
    Error::data(format!("Arrow: {error}"))
}
