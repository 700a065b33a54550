//! Dialects of text files, with a decoder for each.

use arrow_array::RecordBatch;
use arrow_schema::{ArrowError, SchemaRef};
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

/// The dialect of a text file.
#[derive(Debug, Clone)]
pub(crate) enum Dialect {
    Csv(CsvOptions),
    Ndjson,
}

impl Dialect {
    /// Returns the text for the decoder, from `offset` on.
    pub(super) fn stream(&self, text: Stream, offset: u64) -> Stream {
        match self {
            Self::Csv(csv) if csv.skip_lines > 0 && offset == 0 => {
                Box::new(Preamble::new(text, csv.skip_lines))
            }
            Self::Csv(_) => text,
            Self::Ndjson => Box::new(without_nulls(text)),
        }
    }

    /// Returns the bytes before the first record in `bytes`: blanks and comments. `within` is true
    /// if `bytes` begin within a comment; on return, if `bytes` end within a comment.
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
    /// All columns, in the order of the file.
    pub(crate) schema: SchemaRef,
    /// The columns in `schema`; the types of other columns were inferred.
    pub(crate) named: NamedTypes,
}

/// A decoder of CSV.
pub(super) struct CsvDecoder {
    decoder: arrow_csv::reader::Decoder,
    exact: Exact,
    quote: Option<u8>,
    nulls: Option<QuotedNulls>,
    /// Whether the decoder's text may contain marks of quoted nulls.
    is_marked: bool,
}

/// A decoder of either dialect.
pub(super) enum Decoder {
    Csv(Box<CsvDecoder>),
    Ndjson(Box<json::decoder::Decoder>),
}

/// The result of decoding some bytes.
pub(super) struct Step {
    pub(super) taken: usize,
    /// Whether the batch is full or the input ends.
    pub(super) done: bool,
}

impl Columns {
    /// Returns whether `schema` can give a type to the column in `fault`. A nested column has no
    /// such type.
    pub(super) fn can_be_named(&self, fault: &str) -> bool {
        let name = fault.strip_prefix("column '").and_then(|rest| rest.split_once("': "));
        name.is_none_or(|(name, _)| {
            let field = self.schema.field_with_name(name);
            field.is_ok_and(|field| !field.data_type().is_nested())
                || self.named.of_row(name).is_some()
        })
    }

    /// Adds the name in `schema` to the path of a row's column in `fault`.
    pub(super) fn of_row(&self, fault: String) -> String {
        let name = fault.strip_prefix("column '").and_then(|rest| rest.split_once('\''));
        match name.and_then(|(path, rest)| Some((path, self.named.of_row(path)?, rest))) {
            Some((path, name, rest)) => format!("column '{name}' ({path}){rest}"),
            None => fault,
        }
    }

    /// Creates a decoder for text from the start of a file, or from a later record on.
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
                let mut decoder = arrow_csv::ReaderBuilder::new(exact.text.clone())
                    .with_format(csv.format(false)?.with_header(csv.has_header && at_start))
                    .with_batch_size(batch_rows)
                    .build_decoder();
                if !at_start {
                    // Only the first bytes of a decoder may be a byte order mark.
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

/// Returns the lines of `bytes` before the line with `byte`, a byte of no valid text.
fn text_of(bytes: &[u8], byte: u8) -> Result<&[u8], ArrowError> {
    let Some(place) = memchr(byte, bytes) else { return Ok(bytes) };
    let end = memrchr(b'\n', &bytes[..place]);
    let end = end.ok_or_else(|| ArrowError::CsvError("not valid UTF-8".to_owned()))?;
    Ok(&bytes[..=end])
}

impl Decoder {
    /// Decodes bytes; no bytes mean the end of the input.
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

    /// Sets whether the next text may contain marks of quoted nulls. With `behind`, marks of
    /// earlier text remain possible.
    pub(super) fn expect_marks(&mut self, is_marked: bool, behind: bool) {
        if let Self::Csv(csv) = self {
            csv.is_marked = is_marked || behind && csv.is_marked;
        }
    }

    /// Returns the rows of `text`, complete records, if a fast path can decode them.
    pub(super) fn decode_plain(&mut self, text: &[u8]) -> Option<RecordBatch> {
        match self {
            Self::Csv(..) => None,
            Self::Ndjson(decoder) => decoder.decode_plain(text),
        }
    }

    /// Decodes all of `bytes`; appends full batches to `batches`.
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

    /// Decodes the lines of `bytes` up to the end of the current record, if only the decoder knows
    /// the end, and flushes. Returns the decoded bytes, and whether the record ended.
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

    /// Returns whether a record continues after its line.
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
                    Some(nulls) if csv.is_marked => nulls.unmarked(&batch, &csv.exact.schema)?,
                    _ => batch,
                };
                csv.exact.parse(batch).map(Some)
            }
            Self::Ndjson(decoder) => decoder.flush(),
        }
    }
}
