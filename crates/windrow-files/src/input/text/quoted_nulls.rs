//! Quoted CSV fields with the text of a null: such fields are text, as in PostgreSQL, not null.
//!
//! ```text
//!  stands for null   text        the decoder takes   value in a column of text
//!  (no text)         1,"",x      1,~,x               ""
//!  \N                1,"\N",x    1,~\N,x             "\N"
//! ```
//! The decoder does not report which fields had quotes. Before decoding, a [mark](MARK), `~` above,
//! therefore replaces the quotes. The mark is as long as two quotes, so all other text keeps its
//! position. In columns of other types, a marked field remains null.
//!
//! Invariant: marks depend on the text alone, not on the cuts between blocks.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, RecordBatch, StringArray, StringViewArray};
use arrow_schema::{ArrowError, DataType, Schema};
use memchr::memmem::{Finder, find};

use crate::input::options::csv::CsvOptions;
use crate::nested::with_rows;

use super::quotes::Quotes;

/// An unassigned character, expected in no text.
const MARK: &str = "\u{5ff}";

/// Maximum bytes of a text for null; a longer text is not marked.
const MOST_TEXT: usize = 256;

/// Marks quoted nulls, and removes the marks.
#[derive(Clone)]
pub(super) struct QuotedNulls {
    delimiter: u8,
    /// Texts for null; the same texts in quotes.
    texts: Vec<String>,
    quoted: Vec<Finder<'static>>,
}

impl QuotedNulls {
    /// Creates a finder for CSV with these options; `None` if no quoted null is possible.
    pub(super) fn of(csv: &CsvOptions) -> Option<Self> {
        let quote = csv.quote?;
        let special = [Some(csv.separator()), Some(quote), csv.escape, Some(b'\n'), Some(b'\r')];
        let nulls = if csv.nulls.is_empty() { vec![String::new()] } else { csv.nulls.clone() };
        let is_plain = |text: &String| {
            text.len() <= MOST_TEXT && !text.bytes().any(|byte| special.contains(&Some(byte)))
        };
        let texts: Vec<String> = nulls.into_iter().filter(is_plain).collect();
        let quoted = texts.iter().map(|text| {
            let needle = [&[quote], text.as_bytes(), &[quote]].concat();
            Finder::new(&needle).into_owned()
        });
        let quoted = quoted.collect();
        (!texts.is_empty()).then_some(Self { delimiter: csv.separator(), texts, quoted })
    }

    /// Returns the maximum bytes from the opening quote of a quoted null to the byte after the
    /// field.
    pub(super) fn reach(&self) -> usize {
        self.texts.iter().map(String::len).max().unwrap_or(0) + 3
    }

    /// Marks quoted nulls in `text`. `quotes` is the state of a CSV parser before the text. Returns
    /// whether any field was marked.
    ///
    /// # Errors
    /// If text with quoted nulls contains the mark itself.
    pub(super) fn mark(&self, text: &mut [u8], mut quotes: Quotes) -> Result<bool, ArrowError> {
        if self.quoted.iter().all(|quoted| quoted.find(text).is_none()) {
            return Ok(false);
        }
        let mut found = Vec::new();
        quotes.each_quoted(text, |place| {
            let ends = |end: usize| match text.get(end) {
                None | Some(b'\n' | b'\r') => true,
                Some(byte) => *byte == self.delimiter,
            };
            let is_field = |quoted: &&Finder| {
                text[place..].starts_with(quoted.needle()) && ends(place + quoted.needle().len())
            };
            if let Some(quoted) = self.quoted.iter().find(is_field) {
                found.push((place, quoted.needle().len()));
            }
        });
        if !found.is_empty() && find(text, MARK.as_bytes()).is_some() {
            return Err(ArrowError::CsvError(format!(
                "the text has the character {MARK:?}, which is not assigned, beside quoted fields that are empty"
            )));
        }
        for &(place, length) in &found {
            text.copy_within(place + 1..place + length - 1, place + 2);
            text[place..place + 2].copy_from_slice(MARK.as_bytes());
        }
        Ok(!found.is_empty())
    }

    /// Returns `batch` with marked fields as text in the text columns of `schema`, and as nulls in
    /// other columns.
    pub(super) fn unmarked(
        &self,
        batch: &RecordBatch,
        schema: &Schema,
    ) -> Result<RecordBatch, ArrowError> {
        let columns = batch.columns().iter().zip(schema.fields());
        let columns = columns.map(|(column, field)| {
            let is_text = match field.data_type() {
                DataType::Dictionary(_, values) => values.is_string(),
                kind => kind.is_string(),
            };
            self.plain(column, is_text)
        });
        with_rows(batch.schema_ref(), columns.collect(), batch.num_rows())
    }

    fn plain(&self, column: &ArrayRef, is_text: bool) -> ArrayRef {
        let value = |value: Option<&'_ str>| match value?.strip_prefix(MARK) {
            Some(text) if self.texts.iter().any(|null| null == text) => {
                is_text.then(|| text.to_owned())
            }
            _ => value.map(str::to_owned),
        };
        match column.data_type() {
            DataType::Utf8 => {
                let values = column.as_string::<i32>();
                match find(values.value_data(), MARK.as_bytes()) {
                    None => Arc::clone(column),
                    Some(_) => Arc::new(values.iter().map(value).collect::<StringArray>()),
                }
            }
            DataType::Utf8View => {
                let values = column.as_string_view().iter().map(value);
                Arc::new(values.collect::<StringViewArray>())
            }
            DataType::Dictionary(..) => {
                let dictionary = column.as_any_dictionary();
                dictionary.with_values(self.plain(dictionary.values(), is_text))
            }
            _ => Arc::clone(column),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marked(text: &str, csv: &CsvOptions) -> (String, bool) {
        let mut bytes = text.as_bytes().to_vec();
        let nulls = QuotedNulls::of(csv).unwrap();
        let found = nulls.mark(&mut bytes, Quotes::new(csv)).unwrap();
        assert_eq!(bytes.len(), text.len());
        (String::from_utf8(bytes).unwrap().replace(MARK, "~"), found)
    }

    #[test]
    fn quoted_fields_that_stand_for_null() {
        let csv = CsvOptions::default();
        for (text, expected) in [
            ("1,\"\",2\n", "1,~,2\n"),
            ("\"\"\n\"\"", "~\n~"),
            ("\"\",\"\"\r\n,\n", "~,~\r\n,\n"),
            ("\"\"\"\",\"a\"\"b\",\"\"\"\"\"\"\n", "\"\"\"\",\"a\"\"b\",\"\"\"\"\"\"\n"),
            ("\"a,\"\",b\",a\"\",\"\"x\n", "\"a,\"\",b\",a\"\",\"\"x\n"),
            ("\"a\n\"\",\"\"\n\",\"\"\n", "\"a\n\"\",\"\"\n\",~\n"),
        ] {
            assert_eq!(marked(text, &csv), (expected.to_owned(), text != expected), "{text}");
        }
        let csv = CsvOptions::default().null("\\N").null("NULL");
        for (text, expected) in [
            ("1,\"\\N\",\"\"\n", "1,~\\N,\"\"\n"),
            ("\"NULL\",NULL,\"NULLS\"", "~NULL,NULL,\"NULLS\""),
        ] {
            assert_eq!(marked(text, &csv), (expected.to_owned(), true), "{text}");
        }
        assert!(QuotedNulls::of(&CsvOptions::default().quote(None).unwrap()).is_none());
        let mut text = "\"\",\u{5ff}\n".to_owned().into_bytes();
        let nulls = QuotedNulls::of(&CsvOptions::default()).unwrap();
        let fault = nulls.mark(&mut text, Quotes::new(&CsvOptions::default())).unwrap_err();
        assert!(fault.to_string().contains("not assigned"));
    }
}
