//! The dialect of CSV, as set by the caller.
//!
//! ```text
//!  exported on 2026-01-31          skip_lines 1
//!  # amounts in euro               comment #
//!  id;note;amount                  delimiter ;  (told by looking)
//!  1;'it\'s; so';1,50              quote '  escape \  decimal comma
//!  2;\N;                           nulls \N
//! ```

use std::path::Path;

use arrow_csv::reader::Format;
use arrow_schema::ArrowError;

use crate::error::{Error, Result};
use crate::packing::Packing;
use crate::settings::{Setting, setters};

/// In place of the quote in CSV without quotes: no byte of UTF-8.
pub(crate) const NO_QUOTE: u8 = 0xFF;

/// The dialect of CSV.
///
/// ```
/// use windrow_files::CsvOptions;
///
/// let excel = CsvOptions::default().delimiter(';')?.decimal_comma(true);
/// let dump = CsvOptions::default().delimiter('\t')?.quote(None)?.null("\\N");
/// # Ok::<(), windrow_files::Error>(())
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct CsvOptions {
    /// The delimiter of fields. By default, a tab in `.tsv` files. In other files, the delimiter is
    /// detected: the first of comma, semicolon, tab and bar that splits all of the first lines
    /// alike, otherwise the comma. A first line `sep=;` also states the delimiter.
    pub delimiter: Option<u8>,
    /// The quote around fields with delimiters, quotes or line ends; `None` if quotes have no
    /// meaning.
    pub quote: Option<u8>,
    /// In inputs, the byte before a quote within quotes. A doubled quote is a quote as well.
    pub escape: Option<u8>,
    /// In inputs, the first byte of comment lines.
    pub comment: Option<u8>,
    /// In inputs, the number of lines before everything else.
    pub skip_lines: usize,
    /// Texts for null; by default, a field without text. If set, a field without text is an empty
    /// string in text columns, and null in others. Outputs use the first text. In quotes, such a
    /// text is a string in text columns, and null in others.
    pub nulls: Vec<String>,
    /// Whether a comma precedes the fraction of a number.
    pub decimal_comma: bool,
    /// Whether the first line names the columns.
    pub has_header: bool,
}

impl CsvOptions {
    /// Sets the delimiter of fields.
    ///
    /// # Errors
    /// `Usage` if the character is not ASCII, ends a line, or already has another meaning.
    pub fn delimiter(mut self, delimiter: char) -> Result<Self> {
        self.delimiter = Some(byte(Setting::CsvDelimiter, delimiter)?);
        self.distinct()
    }

    /// Sets the quote around fields with delimiters, quotes or line ends. Without a quote, quotes
    /// in inputs are ordinary characters, and such fields cannot be written.
    ///
    /// # Errors
    /// `Usage` if the character is not ASCII, ends a line, or already has another meaning.
    pub fn quote(mut self, quote: Option<char>) -> Result<Self> {
        self.quote = quote.map(|quote| byte(Setting::CsvQuote, quote)).transpose()?;
        self.distinct()
    }

    /// Sets the character before a quote within quotes, in inputs.
    ///
    /// # Errors
    /// `Usage` if the character is not ASCII, ends a line, or already has another meaning.
    pub fn escape(mut self, escape: char) -> Result<Self> {
        self.escape = Some(byte(Setting::CsvEscape, escape)?);
        self.distinct()
    }

    /// Sets the first character of comment lines, in inputs.
    ///
    /// # Errors
    /// `Usage` if the character is not ASCII, ends a line, or already has another meaning.
    pub fn comment(mut self, comment: char) -> Result<Self> {
        self.comment = Some(byte(Setting::CsvComment, comment)?);
        self.distinct()
    }

    /// Adds a text for null.
    pub fn null(mut self, text: impl Into<String>) -> Self {
        self.nulls.push(text.into());
        self
    }

    setters! {
        /// Sets the number of lines before everything else, in inputs.
        skip_lines: usize;
        /// Sets whether a comma precedes the fraction of a number.
        decimal_comma: bool;
        /// Sets whether the first line names the columns.
        has_header: bool;
    }

    /// Returns the delimiter; the comma if unknown.
    pub(crate) fn separator(&self) -> u8 {
        self.delimiter.unwrap_or(b',')
    }

    /// Returns the quote, or a byte of no valid text.
    pub(crate) fn quote_byte(&self) -> u8 {
        self.quote.unwrap_or(NO_QUOTE)
    }

    /// Returns the text for null in outputs.
    pub(crate) fn null_text(&self) -> &str {
        self.nulls.first().map_or("", String::as_str)
    }

    /// Returns whether fields without text are null only in columns of types other than text.
    pub(crate) fn has_other_nulls(&self) -> bool {
        !self.nulls.is_empty()
    }

    /// Adds the delimiter known from the name of the file.
    pub(crate) fn known_of(mut self, path: Option<&Path>) -> Self {
        if self.delimiter.is_none() && path.is_some_and(is_tsv) {
            self.delimiter = Some(b'\t');
        }
        self
    }

    /// Converts the options to the options of the parser. With `empty_is_null`, fields without text
    /// are null, also beside other texts for null.
    ///
    /// # Errors
    /// If the texts for null are too long for a pattern.
    pub(crate) fn format(&self, empty_is_null: bool) -> Result<Format, ArrowError> {
        let mut format = Format::default()
            .with_header(self.has_header)
            .with_delimiter(self.separator())
            .with_quote(self.quote_byte());
        if let Some(escape) = self.escape {
            format = format.with_escape(escape);
        }
        if let Some(comment) = self.comment {
            format = format.with_comment(comment);
        }
        if self.has_other_nulls() {
            let mut texts: Vec<_> = self.nulls.iter().map(|text| regex::escape(text)).collect();
            texts.extend(empty_is_null.then(String::new));
            let pattern = regex::Regex::new(&format!("^(?:{})$", texts.join("|")));
            let pattern = pattern.map_err(|fault| ArrowError::CsvError(fault.to_string()))?;
            format = format.with_null_regex(pattern);
        }
        Ok(format)
    }

    /// Refuses a byte with two meanings.
    fn distinct(self) -> Result<Self> {
        let bytes = [
            (Setting::CsvDelimiter, self.delimiter),
            (Setting::CsvQuote, self.quote),
            (Setting::CsvEscape, self.escape),
            (Setting::CsvComment, self.comment),
        ];
        let given = |at: usize| bytes[at].1.map(|byte| (bytes[at].0, byte));
        for (setting, byte) in (0..bytes.len()).filter_map(given) {
            let mut others =
                (0..bytes.len()).filter_map(given).filter(|(other, _)| *other != setting);
            // A quote that escapes quotes is a doubled quote.
            let is_doubled = |other| {
                [setting, other].contains(&Setting::CsvQuote)
                    && [setting, other].contains(&Setting::CsvEscape)
            };
            if let Some((other, _)) =
                others.find(|(other, same)| *same == byte && !is_doubled(*other))
            {
                return Err(Error::usage(format!(
                    "{setting} and {other} are both {:?}; name different characters",
                    char::from(byte)
                )));
            }
        }
        Ok(self)
    }
}

impl Default for CsvOptions {
    fn default() -> Self {
        Self {
            delimiter: None,
            quote: Some(b'"'),
            escape: None,
            comment: None,
            skip_lines: 0,
            nulls: Vec::new(),
            decimal_comma: false,
            has_header: true,
        }
    }
}

fn byte(setting: Setting, character: char) -> Result<u8> {
    let byte = u8::try_from(character).ok();
    byte.filter(|byte| byte.is_ascii() && !b"\r\n\0".contains(byte)).ok_or_else(|| {
        Error::usage(format!("{setting} takes one ASCII character that ends no line"))
    })
}

fn is_tsv(path: &Path) -> bool {
    let unpacked = Packing::of_path(path).map(|(_, path)| path);
    let extension = unpacked.as_deref().unwrap_or(path).extension();
    extension.is_some_and(|extension| extension.eq_ignore_ascii_case("tsv"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_mean_one_thing_each() {
        let csv = CsvOptions::default;
        assert!(csv().delimiter('"').is_err());
        assert!(csv().delimiter('"').is_err_and(|error| error.to_string().contains("csv_quote")));
        assert!(csv().quote(None).unwrap().delimiter('"').is_ok());
        assert!(csv().quote(Some('\'')).unwrap().delimiter('"').is_ok());
        assert!(csv().escape('"').is_ok(), "as it is without");
        assert!(csv().comment('#').unwrap().escape('#').is_err());
        for character in ['\n', '\r', 'ä', '\0'] {
            assert!(csv().delimiter(character).is_err(), "{character:?}");
        }
    }

    #[test]
    fn names_tell_tabs() {
        for (name, delimiter) in
            [("a.tsv", Some(b'\t')), ("a.TSV.gz", Some(b'\t')), ("a.csv", None)]
        {
            let csv = CsvOptions::default().known_of(Some(Path::new(name)));
            assert_eq!(csv.delimiter, delimiter, "{name}");
        }
        let given = CsvOptions::default().delimiter(',').unwrap();
        assert_eq!(given.known_of(Some(Path::new("a.tsv"))).delimiter, Some(b','));
    }
}
