//! How text is written down, and the decoder for each way.

use std::io::BufReader;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;

use super::CsvOptions;
use super::exact::{Exact, Writing};
use super::ndjson;
use super::null_lines::NullLines;
use super::origin::Stream;
use super::records::Records;

/// Bytes read at a time.
pub(super) const BUFFER: usize = 128 << 10;

/// How text is written down.
#[derive(Debug, Clone, Copy)]
pub(super) enum Dialect {
    Csv(CsvOptions),
    Ndjson,
}

impl Dialect {
    /// The text that its decoder takes.
    pub(super) fn open(self, text: Stream) -> BufReader<Stream> {
        let text = match self {
            Self::Csv(_) => text,
            Self::Ndjson => Box::new(NullLines::new(text)),
        };
        BufReader::with_capacity(BUFFER, text)
    }
}

/// The columns of a text file.
#[derive(Clone)]
pub(super) struct Columns {
    /// All of them, in the order of the file.
    pub(super) schema: SchemaRef,
    /// Those of `schema`; the types of the others were inferred.
    pub(super) named: Option<SchemaRef>,
}

/// Either decoder.
pub(super) enum Decoder {
    Csv(Box<arrow::csv::reader::Decoder>, Exact),
    Ndjson(Box<ndjson::Decoder>),
}

/// What a decoder did with the bytes it was given.
pub(super) struct Step {
    pub(super) taken: usize,
    /// The batch is full, or the input is at its end.
    pub(super) done: bool,
}

impl Columns {
    /// Whether `schema` takes the type of the column that `fault` is in. It has none for nested columns.
    pub(super) fn can_be_named(&self, fault: &str) -> bool {
        let name = fault.strip_prefix("column '").and_then(|rest| rest.split_once("': "));
        name.is_none_or(|(name, _)| {
            let field = self.schema.field_with_name(name);
            field.is_ok_and(|field| !field.data_type().is_nested())
        })
    }

    pub(super) fn decoder(
        &self,
        dialect: Dialect,
        batch_rows: usize,
    ) -> Result<Decoder, ArrowError> {
        let exact = |writing| Exact::new(&self.schema, self.named.as_deref(), writing);
        Ok(match dialect {
            Dialect::Csv(options) => {
                let exact = exact(Writing::Csv);
                let decoder = arrow::csv::ReaderBuilder::new(exact.text().clone())
                    .with_header(options.has_header)
                    .with_delimiter(options.delimiter)
                    .with_batch_size(batch_rows)
                    .build_decoder();
                Decoder::Csv(Box::new(decoder), exact)
            }
            Dialect::Ndjson => {
                let records = Records::new(&self.schema, self.named.as_deref());
                let exact = exact(Writing::Json);
                Decoder::Ndjson(Box::new(ndjson::Decoder::new(records, exact, batch_rows)?))
            }
        })
    }
}

impl Decoder {
    /// Takes bytes; none at the end of the input.
    pub(super) fn decode(&mut self, bytes: &[u8]) -> Result<Step, ArrowError> {
        match self {
            Self::Csv(decoder, _) => {
                let taken = decoder.decode(bytes)?;
                let done = taken == 0 || decoder.capacity() == 0;
                Ok(Step { taken, done })
            }
            Self::Ndjson(decoder) => {
                let taken = decoder.decode(bytes)?;
                let done = bytes.is_empty() || taken < bytes.len();
                Ok(Step { taken, done })
            }
        }
    }

    /// Whether a record has begun that does not end at its line.
    pub(super) fn is_within_record(&self) -> bool {
        match self {
            Self::Csv(..) => false,
            Self::Ndjson(decoder) => decoder.is_within_record(),
        }
    }

    pub(super) fn flush(&mut self) -> Result<Option<RecordBatch>, ArrowError> {
        match self {
            Self::Csv(decoder, exact) => {
                decoder.flush()?.map(|batch| exact.parse(batch)).transpose()
            }
            Self::Ndjson(decoder) => decoder.flush(),
        }
    }
}
