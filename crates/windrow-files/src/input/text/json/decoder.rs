//! Decoder of NDJSON: one walk for regular records, and the decoder of arrow for others.
//!
//! One pass decodes blocks of regular records: see [`plain`](super::plain). The decoder of arrow,
//! used for other blocks, is too tolerant in columns of integers. The decoder reads 1.5 as 1: see
//! [`exact`](crate::input::text::exact). The decoder reads "5" as 5: see [`records`](super::records).

use arrow_array::RecordBatch;
use arrow_schema::{ArrowError, SchemaRef};
use memchr::memchr;

use crate::input::text::exact::Exact;
use crate::input::text::named::NamedTypes;

use super::plain::Plain;
use super::records::Records;

/// A decoder of NDJSON: the fast path, the decoder of arrow, checks of its input, and parsers for
/// its output.
pub(crate) struct Decoder {
    plain: Option<Plain>,
    decoder: arrow_json::reader::Decoder,
    records: Records,
    exact: Exact,
}

impl Decoder {
    /// Creates a decoder of records of `schema`; types outside of `named` were inferred.
    pub(crate) fn new(
        schema: &SchemaRef,
        named: &NamedTypes,
        batch_rows: usize,
    ) -> Result<Self, ArrowError> {
        let (records, exact) =
            (Records::new(schema, named.all()), Exact::of_json(schema, named.clone()));
        let plain = Plain::of(schema, named.all(), &exact.text, batch_rows);
        let decoder = arrow_json::ReaderBuilder::new(exact.text.clone())
            .with_batch_size(batch_rows)
            // A column of text accepts numbers and booleans.
            .with_coerce_primitive(true)
            // A key without a column is an error; otherwise its values would be lost.
            .with_strict_mode(true)
            .build_decoder()?;
        Ok(Self { plain, decoder, records, exact })
    }

    /// Returns the rows of `text`, complete records, if the fast path succeeds. Earlier undecoded
    /// rows remain in the decoder.
    pub(crate) fn decode_plain(&mut self, text: &[u8]) -> Option<RecordBatch> {
        let batch = self.plain.as_mut()?.decode(text)?;
        self.exact.parse(batch).ok()
    }

    /// Decodes bytes; returns the number of decoded bytes.
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

    /// Returns whether a record has begun and not ended.
    pub(crate) fn is_within_record(&self) -> bool {
        self.decoder.has_partial_record()
    }

    pub(crate) fn flush(&mut self) -> Result<Option<RecordBatch>, ArrowError> {
        self.decoder.flush()?.map(|batch| self.exact.parse(batch)).transpose()
    }
}
