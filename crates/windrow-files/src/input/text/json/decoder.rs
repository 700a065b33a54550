//! Decoder of NDJSON: plain records are walked over once, others are the decoder of arrow's.
//!
//! Blocks of plain records are walked over once: see [`plain`](super::plain). For others
//! the decoder of arrow reads 1.5 into a column of integers as 1: see [`exact`](crate::input::text::exact). It reads "5"
//! there as 5: see [`records`](super::records).

use arrow_array::RecordBatch;
use arrow_schema::{ArrowError, SchemaRef};
use memchr::memchr;

use crate::input::text::exact::Exact;
use crate::input::text::named::NamedTypes;

use super::plain::Plain;
use super::records::Records;

/// The decoder of arrow, what is looked at beside it, and what is parsed after it.
pub(crate) struct Decoder {
    plain: Option<Plain>,
    decoder: arrow_json::reader::Decoder,
    records: Records,
    exact: Exact,
}

impl Decoder {
    /// Of records of `schema`, of which the types that are not `named` were inferred.
    pub(crate) fn new(
        schema: &SchemaRef,
        named: &NamedTypes,
        batch_rows: usize,
    ) -> Result<Self, ArrowError> {
        let (records, exact) =
            (Records::new(schema, named.all()), Exact::of_json(schema, named.clone()));
        let plain = Plain::of(schema, named.all(), exact.text(), batch_rows);
        let decoder = arrow_json::ReaderBuilder::new(exact.text().clone())
            .with_batch_size(batch_rows)
            // A column of text keeps what numbers and booleans it meets.
            .with_coerce_primitive(true)
            // A key that is in no column is an error: else its values were lost.
            .with_strict_mode(true)
            .build_decoder()?;
        Ok(Self { plain, decoder, records, exact })
    }

    /// The rows of `text`, which is all records, if it is as text mostly is; what is in hand stays.
    pub(crate) fn decode_plain(&mut self, text: &[u8]) -> Option<RecordBatch> {
        let batch = self.plain.as_mut()?.decode(text)?;
        self.exact.parse(batch).ok()
    }

    /// Takes bytes; returns how many.
    pub(crate) fn decode(&mut self, bytes: &[u8]) -> Result<usize, ArrowError> {
        let mut taken = 0;
        while taken < bytes.len() {
            let rest = &bytes[taken..];
            let line = &rest[..memchr(b'\n', rest).map_or(rest.len(), |end| end + 1)];
            let step = self.decoder.decode(line)?;
            self.records.pass(&line[..step], self.decoder.has_partial_record())?;
            taken += step;
            if step < line.len() {
                break;
            }
        }
        Ok(taken)
    }

    /// Whether a record has begun and not ended.
    pub(crate) fn is_within_record(&self) -> bool {
        self.decoder.has_partial_record()
    }

    pub(crate) fn flush(&mut self) -> Result<Option<RecordBatch>, ArrowError> {
        self.decoder.flush()?.map(|batch| self.exact.parse(batch)).transpose()
    }
}
