//! Frames of Arrow IPC, the parts of its files and streams.
//!
//! ```text
//!  frame = FFFFFFFF | length of head (4) | head: a flatbuffer message | body
//!  head  = schema, or dictionary / record batch: rows, where each buffer is in the body
//!  body  = buffers; a compressed one opens with its length before compression (8)
//! ```
//! Lengths in the data allocate no memory before a check: a buffer whose declared length exceeds
//! the yield of its codec is refused.

use arrow_ipc::{
    CompressionType, Message, MessageHeader, RecordBatch as BatchHead, root_as_message,
};

/// Maximum yield of a codec in bytes from one byte: lz4 encodes a run of 255 bytes in one byte,
/// zstd a block of 128 KiB in four.
const LZ4_YIELD: u64 = 255;
const ZSTD_YIELD: u64 = 32 << 10;

/// The head of a frame, verified.
pub(super) struct Frame {
    pub(super) bytes: Vec<u8>,
    /// Position of the flatbuffer.
    pub(super) message: usize,
}

impl Frame {
    /// Parses the first bytes of a block of the file format.
    pub(super) fn of_block(bytes: Vec<u8>) -> Result<Self, String> {
        let message = if bytes.starts_with(&[0xFF; 4]) { 8 } else { 4 };
        if bytes.len() < message {
            return Err("the file is damaged: a block without a head".into());
        }
        let frame = Self { bytes, message };
        frame.message()?;
        Ok(frame)
    }

    pub(super) fn message(&self) -> Result<Message<'_>, String> {
        root_as_message(&self.bytes[self.message..])
            .map_err(|cause| format!("the file is damaged: {cause}"))
    }

    /// Returns the number of rows of a record batch, `None` for other messages.
    pub(super) fn rows(&self) -> Result<Option<u64>, String> {
        match self.message()?.header_as_record_batch() {
            Some(batch) => u64::try_from(batch.length())
                .map(Some)
                .map_err(|_| "the file is damaged: a negative number of rows".into()),
            None => Ok(None),
        }
    }
}

/// Returns the decompressed bytes of a body's compressed buffers. `prefix` reads 8 bytes of the
/// body.
pub(super) fn plain_bytes(
    frame: &Frame,
    prefix: &dyn Fn(u64) -> Option<[u8; 8]>,
) -> Result<u64, String> {
    let message = frame.message()?;
    let batch: Option<BatchHead<'_>> = match message.header_type() {
        MessageHeader::RecordBatch => message.header_as_record_batch(),
        MessageHeader::DictionaryBatch => {
            message.header_as_dictionary_batch().and_then(|dictionary| dictionary.data())
        }
        _ => None,
    };
    let Some((compression, buffers)) =
        batch.and_then(|batch| batch.compression().zip(batch.buffers()))
    else {
        return Ok(0);
    };
    let most =
        if compression.codec() == CompressionType::LZ4_FRAME { LZ4_YIELD } else { ZSTD_YIELD };
    let damaged =
        || "the file is damaged: the length of a compressed buffer is impossible".to_string();
    let mut total = 0_u64;
    for buffer in buffers {
        if buffer.length() == 0 {
            continue;
        }
        let at = u64::try_from(buffer.offset()).map_err(|_| damaged())?;
        let packed = u64::try_from(buffer.length()).map_err(|_| damaged())?;
        let plain = i64::from_le_bytes(prefix(at).ok_or_else(damaged)?);
        // -1 marks an uncompressed buffer.
        if plain != -1 {
            let plain = u64::try_from(plain).map_err(|_| damaged())?;
            if plain > packed.saturating_mul(most) {
                return Err(damaged());
            }
            total = total.saturating_add(plain);
        }
    }
    Ok(total)
}
