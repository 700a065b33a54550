//! How text is written down, and the decoder for each way.

use arrow_array::RecordBatch;
use arrow_schema::ArrowError;
use arrow_schema::SchemaRef;
use memchr::{memchr, memchr_iter, memrchr};

use crate::input::options::csv::{CsvOptions, NO_QUOTE};
use crate::input::source::origin::Stream;

use super::exact::Exact;
use super::json;
use super::json::null_lines::without_nulls;
use super::named::NamedTypes;
use super::preamble::Preamble;
use super::quoted_nulls::QuotedNulls;

/// Bytes read at a time.
pub(super) const BUFFER: usize = 128 << 10;

/// How text is written down.
#[derive(Debug, Clone)]
pub(crate) enum Dialect {
    Csv(CsvOptions),
    Ndjson,
}

impl Dialect {
    /// The text that its decoder takes, from `offset` on.
    pub(super) fn stream(&self, text: Stream, offset: u64) -> Stream {
        match self {
            Self::Csv(csv) if csv.skip_lines > 0 && offset == 0 => {
                Box::new(Preamble::new(text, csv.skip_lines))
            }
            Self::Csv(_) => text,
            Self::Ndjson => Box::new(without_nulls(text)),
        }
    }

    /// Bytes that stand in front of the first record in `bytes`: blank ones, and comments, `within` one of which they
    /// may begin and end.
    pub(super) fn lead(&self, bytes: &[u8], within: &mut bool) -> usize {
        let Self::Csv(csv) = self else { return bytes.len() - bytes.trim_ascii_start().len() };
        for (place, byte) in bytes.iter().enumerate() {
            match byte {
                b'\n' => *within = false,
                b'\r' => {}
                _ if *within => {}
                byte if csv.comment == Some(*byte) => *within = true,
                _ => return place,
            }
        }
        bytes.len()
    }
}

/// The columns of a text file.
#[derive(Clone)]
pub(crate) struct Columns {
    /// All of them, in the order of the file.
    pub(crate) schema: SchemaRef,
    /// Those that `schema` names; the types of the others were inferred.
    pub(crate) named: NamedTypes,
}

/// A decoder of CSV.
pub(super) struct CsvDecoder {
    decoder: arrow_csv::reader::Decoder,
    exact: Exact,
    quote: Option<u8>,
    nulls: Option<QuotedNulls>,
    /// Whether the text that it has may hold marks of quoted nulls.
    is_marked: bool,
}

/// Either decoder.
pub(super) enum Decoder {
    Csv(Box<CsvDecoder>),
    Ndjson(Box<json::decoder::Decoder>),
}

/// What a decoder did with the bytes it was given.
pub(super) struct Step {
    pub(super) taken: usize,
    /// The batch is full, or the input is at its end.
    pub(super) done: bool,
}

impl Columns {
    /// Whether `schema` takes the type of the column that `fault` is in. Of nested columns the whole would have to be named.
    pub(super) fn can_be_named(&self, fault: &str) -> bool {
        let name = fault.strip_prefix("column '").and_then(|rest| rest.split_once("': "));
        name.is_none_or(|(name, _)| {
            let field = self.schema.field_with_name(name);
            field.is_ok_and(|field| !field.data_type().is_nested())
                || self.named.of_row(name).is_some()
        })
    }

    /// `fault` with the column of a row by the name that `schema` knows it by.
    pub(super) fn of_row(&self, fault: String) -> String {
        let name = fault.strip_prefix("column '").and_then(|rest| rest.split_once('\''));
        match name.and_then(|(path, rest)| Some((path, self.named.of_row(path)?, rest))) {
            Some((path, name, rest)) => format!("column '{name}' ({path}){rest}"),
            None => fault,
        }
    }

    /// A decoder of text from its start on, or from behind other records.
    pub(super) fn decoder(
        &self,
        dialect: &Dialect,
        batch_rows: usize,
        at_start: bool,
    ) -> Result<Decoder, ArrowError> {
        let named = &self.named;
        Ok(match dialect {
            Dialect::Csv(csv) => {
                let exact = Exact::of_csv(&self.schema, named.clone(), csv);
                let mut decoder = arrow_csv::ReaderBuilder::new(exact.text().clone())
                    .with_format(csv.format(false)?.with_header(csv.has_header && at_start))
                    .with_batch_size(batch_rows)
                    .build_decoder();
                if !at_start {
                    // A byte order mark is one in the first bytes only.
                    decoder.decode(b"\n")?;
                }
                let (quote, nulls) = (csv.quote, QuotedNulls::of(csv));
                Decoder::Csv(Box::new(CsvDecoder { decoder, exact, quote, nulls, is_marked: true }))
            }
            Dialect::Ndjson => {
                let decoder = json::decoder::Decoder::new(&self.schema, named, batch_rows)?;
                Decoder::Ndjson(Box::new(decoder))
            }
        })
    }
}

/// The lines of `bytes` in front of one that holds `byte`, which no text has.
fn text_of(bytes: &[u8], byte: u8) -> Result<&[u8], ArrowError> {
    let Some(place) = memchr(byte, bytes) else { return Ok(bytes) };
    let end = memrchr(b'\n', &bytes[..place]);
    let end = end.ok_or_else(|| ArrowError::CsvError("not valid UTF-8".to_owned()))?;
    Ok(&bytes[..=end])
}

impl Decoder {
    /// Takes bytes; none at the end of the input.
    pub(super) fn decode(&mut self, bytes: &[u8]) -> Result<Step, ArrowError> {
        match self {
            Self::Csv(csv) => {
                let bytes = if csv.quote.is_none() { text_of(bytes, NO_QUOTE)? } else { bytes };
                let decoder = &mut csv.decoder;
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

    /// Says whether text that it takes next may hold marks of quoted nulls; text `behind` other text has those of both.
    pub(super) fn expect_marks(&mut self, is_marked: bool, behind: bool) {
        if let Self::Csv(csv) = self {
            csv.is_marked = is_marked || behind && csv.is_marked;
        }
    }

    /// The rows of `text`, which is all records, if that is known faster than by taking it.
    pub(super) fn decode_plain(&mut self, text: &[u8]) -> Option<RecordBatch> {
        match self {
            Self::Csv(..) => None,
            Self::Ndjson(decoder) => decoder.decode_plain(text),
        }
    }

    /// Takes all of `bytes`; batches that are full go to `batches`.
    pub(super) fn take(
        &mut self,
        mut bytes: &[u8],
        batches: &mut Vec<RecordBatch>,
    ) -> Result<(), ArrowError> {
        while !bytes.is_empty() {
            let step = self.decode(bytes)?;
            bytes = &bytes[step.taken..];
            if step.done {
                batches.extend(self.flush()?);
            }
        }
        Ok(())
    }

    /// Takes the lines of `bytes` that the record goes on in, where the decoder alone knows where that ends, and then
    /// has nothing in hand; returns how many bytes these are, and whether it ended.
    pub(super) fn take_record(
        &mut self,
        bytes: &[u8],
        batches: &mut Vec<RecordBatch>,
    ) -> Result<(usize, bool), ArrowError> {
        if let Self::Csv(..) = self {
            return Ok((0, false));
        }
        let mut start = 0;
        for line in memchr_iter(b'\n', bytes) {
            self.take(&bytes[start..=line], batches)?;
            start = line + 1;
            if !self.is_within_record() {
                batches.extend(self.flush()?);
                return Ok((start, true));
            }
        }
        self.take(&bytes[start..], batches)?;
        Ok((bytes.len(), false))
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
            Self::Csv(csv) => {
                let Some(batch) = csv.decoder.flush()? else { return Ok(None) };
                let batch = match &csv.nulls {
                    Some(nulls) if csv.is_marked => nulls.unmarked(&batch, csv.exact.schema())?,
                    _ => batch,
                };
                csv.exact.parse(batch).map(Some)
            }
            Self::Ndjson(decoder) => decoder.flush(),
        }
    }
}
