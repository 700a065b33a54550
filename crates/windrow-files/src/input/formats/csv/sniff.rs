//! Detection of the CSV delimiter from the first records.
//!
//! The delimiter is the first of comma, semicolon, tab and bar that splits all records into the
//! same number of fields, more than one; otherwise the comma. A first line `sep=;`, as written by
//! Excel, states the delimiter.

use crate::input::charset::newlines;
use crate::input::options::csv::CsvOptions;

/// Maximum number of inspected records.
const RECORDS: usize = 200;

/// Candidates, in order of preference.
const DELIMITERS: [u8; 4] = *b",;\t|";

/// Adds to `csv` the facts found in `head`, the first bytes of a file. `is_all` means that the file
/// has no more bytes.
pub(crate) fn told(mut csv: CsvOptions, head: &[u8], is_all: bool) -> CsvOptions {
    let text = behind_lines(head, csv.skip_lines);
    if let Some(delimiter) = said(text) {
        csv.skip_lines += 1;
        csv.delimiter.get_or_insert(delimiter);
    }
    if csv.delimiter.is_none() {
        let text = behind_lines(head, csv.skip_lines);
        let found = DELIMITERS.into_iter().find(|delimiter| splits(text, *delimiter, &csv, is_all));
        csv.delimiter = found;
    }
    csv
}

/// Returns the delimiter that the first line states.
fn said(text: &[u8]) -> Option<u8> {
    let text = text.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(text);
    let line = text.split(|byte| *byte == b'\n').next()?;
    match line.trim_ascii_end() {
        [b's', b'e', b'p', b'=', delimiter] => Some(*delimiter),
        // A tab was trimmed.
        b"sep=" if line.starts_with(b"sep=\t") => Some(b'\t'),
        _ => None,
    }
}

/// Returns `text` without its first `lines` lines.
pub(super) fn behind_lines(text: &[u8], lines: usize) -> &[u8] {
    let Some(last) = lines.checked_sub(1) else { return text };
    let end = memchr::memchr_iter(b'\n', text).nth(last);
    &text[end.map_or(text.len(), |end| end + 1)..]
}

/// Returns whether `delimiter` splits the first records of `text` into the same number of fields,
/// more than one.
fn splits(text: &[u8], delimiter: u8, csv: &CsvOptions, is_all: bool) -> bool {
    let mut counts = Records { text, delimiter, csv, is_all }.take(RECORDS);
    match counts.next() {
        Some(first) if first > 1 => counts.all(|fields| fields == first),
        _ => false,
    }
}

/// Returns the line on which a record of `text` begins.
pub(super) fn line_of(text: &[u8], record: usize, csv: &CsvOptions) -> u64 {
    let mut records = Records { text, delimiter: csv.separator(), csv, is_all: true };
    if let Some(before) = record.checked_sub(1) {
        records.nth(before);
    }
    records.pass_lead();
    1 + newlines(&text[..text.len() - records.text.len()])
}

/// Maximum number of records before the column names, in the search for a preamble.
const MOST_PREAMBLE: usize = 20;

/// Returns the number of lines before the probable column names, if these are not the first record.
/// All records after the column names have as many fields as the column names, and more than the
/// first record.
pub(super) fn preamble(text: &[u8], csv: &CsvOptions, is_all: bool) -> Option<usize> {
    let delimiters = csv.delimiter.map_or(DELIMITERS.to_vec(), |delimiter| vec![delimiter]);
    delimiters.into_iter().find_map(|delimiter| {
        let counts: Vec<usize> = Records { text, delimiter, csv, is_all }.take(RECORDS).collect();
        let (first, last) = (*counts.first()?, *counts.last()?);
        let names = counts.iter().rposition(|fields| *fields != last)? + 1;
        let is_behind = last > first.max(1) && names <= MOST_PREAMBLE && names + 1 < counts.len();
        is_behind.then(|| line_of(text, names, csv) as usize - 1)
    })
}

/// Iterator over the number of fields of each record.
struct Records<'a> {
    text: &'a [u8],
    delimiter: u8,
    csv: &'a CsvOptions,
    is_all: bool,
}

impl Records<'_> {
    /// Skips empty lines and comments.
    fn pass_lead(&mut self) {
        loop {
            match self.text {
                [b'\n' | b'\r', rest @ ..] => self.text = rest,
                [first, ..] if self.csv.comment == Some(*first) => {
                    self.text = behind_lines(self.text, 1);
                }
                _ => break,
            }
        }
    }
}

impl Iterator for Records<'_> {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        self.pass_lead();
        if self.text.is_empty() {
            return None;
        }
        let (mut fields, mut quoted, mut at_start) = (1, false, true);
        let mut bytes = self.text.iter().enumerate();
        while let Some((place, &byte)) = bytes.next() {
            let is_quote = self.csv.quote == Some(byte);
            if quoted && self.csv.escape == Some(byte) && !is_quote {
                bytes.next();
            } else if is_quote && (quoted || at_start) {
                // A doubled quote closes the field and reopens it.
                quoted = !quoted;
                at_start = !quoted;
                continue;
            } else if !quoted && byte == self.delimiter {
                fields += 1;
                at_start = true;
                continue;
            } else if !quoted && byte == b'\n' {
                self.text = &self.text[place + 1..];
                return Some(fields);
            }
            at_start = false;
        }
        self.text = &[];
        // A record that was cut off has an unknown number of fields.
        (self.is_all && !quoted).then_some(fields)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn delimiter(text: &str) -> Option<u8> {
        told(CsvOptions::default(), text.as_bytes(), true).delimiter
    }

    #[test]
    fn the_first_records_tell_it() {
        for (text, expected) in [
            ("a,b\n1,2\n", Some(b',')),
            ("a;b\n1;2\n", Some(b';')),
            ("a\tb\n1\t2", Some(b'\t')),
            ("a|b|c\r\n1|2|3\r\n", Some(b'|')),
            // Decimal commas.
            ("a;b\n1,5;2,5\n3,5;4\n", Some(b';')),
            ("1,5;2,5\n3;4,5\n", Some(b';')),
            // The comma has precedence.
            ("a,b;c\n1,2;3\n", Some(b',')),
            // One column, whatever its values.
            ("a\nx;y\nz\n", None),
            ("note\n\"a;b\"\n\"c;d\"\n", None),
            ("", None),
            ("a", None),
            ("\"a;x\";b\n1;\"y\n;\"\n", Some(b';')),
            ("\"a \"\";\"\" x\",b\n1,2\n", Some(b',')),
            // Records with another number of fields are faults in a file with commas as well.
            ("a;b\n1;2;3\n", None),
        ] {
            assert_eq!(delimiter(text), expected, "{text:?}");
        }
    }

    #[test]
    fn a_line_says_it() {
        for (text, expected) in
            [("sep=;\na;b\n", b';'), ("sep=\t\r\na\tb\n", b'\t'), ("\u{feff}sep=|\na,b|c\n", b'|')]
        {
            let csv = told(CsvOptions::default(), text.as_bytes(), true);
            assert_eq!((csv.delimiter, csv.skip_lines), (Some(expected), 1), "{text:?}");
        }
        let csv = told(CsvOptions::default().delimiter(':').unwrap(), b"sep=;\na:b\n", true);
        assert_eq!((csv.delimiter, csv.skip_lines), (Some(b':'), 1));
        assert_eq!(delimiter("sep=;x\n1\n"), None);
    }

    #[test]
    fn lines_in_front_of_the_names() {
        for (text, expected) in [
            ("Report\n\nid,v\n1,a\n2,b\n", Some(2)),
            ("Report;x\nfoo\nid,v,w\n1,a,\n2,b,\n", Some(2)),
            ("Report\nid;v\n1;a\n", Some(1)),
            ("id,v\n1,a\n", None),
            ("id\n1\n", None),
            ("id\n1,2\n", None),
            ("id,v\n1\n2,3\n", None),
            ("", None),
        ] {
            let csv = told(CsvOptions::default(), text.as_bytes(), true);
            assert_eq!(preamble(text.as_bytes(), &csv, true), expected, "{text:?}");
        }
    }

    #[test]
    fn what_is_no_record_is_passed_over() {
        let csv = CsvOptions::default().comment('#').unwrap().skip_lines(2).escape('\\').unwrap();
        let text = b"x,y\nz,,\n# a, b\n\na;\"b\\\";\"\n#,\n1;2\n3";
        let told = told(csv, text, false);
        assert_eq!(told.delimiter, Some(b';'));
    }
}
