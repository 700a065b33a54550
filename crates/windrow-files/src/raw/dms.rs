//! AWS DMS files without header lines. Rows of a full load have no `Op`; changes have it as their
//! first field.
//!
//! If both are read together, rows of the full load have a field less. This module inserts an empty
//! first field, which marks a row from before the first change:
//!
//! ```text
//!  LOAD00000001.csv      1,anna     -->   ,1,anna
//!  20260131-120000.csv   U,1,anne         U,1,anne
//! ```

use std::io;

use crate::rewrite::Rewrite;

/// Returns the first field of CSV, and the number of fields of its first record. Returns `None` if
/// `head` is empty, or does not contain the record's end.
pub(crate) fn first_fields(head: &[u8], delimiter: u8) -> Option<(String, usize)> {
    let (mut quoted, mut fields, mut first) = (false, 1, Vec::new());
    for (place, &byte) in head.iter().enumerate() {
        match byte {
            b'"' => quoted = !quoted,
            b'\n' | b'\r' if !quoted && place == 0 => return None,
            b'\n' if !quoted => {
                return Some((String::from_utf8_lossy(&first).trim().to_owned(), fields));
            }
            byte if byte == delimiter && !quoted => fields += 1,
            byte if fields == 1 => first.push(byte),
            _ => {}
        }
    }
    None
}

/// Inserts an empty first field into the rows of a full load.
pub(crate) struct FullLoad {
    delimiter: u8,
    /// Whether a row starts here, and whether the text is within quotes.
    at_start: bool,
    quoted: bool,
}

impl FullLoad {
    pub(crate) fn new(delimiter: u8) -> Self {
        Self { delimiter, at_start: true, quoted: false }
    }
}

impl Rewrite for FullLoad {
    fn take(&mut self, text: &[u8], out: &mut Vec<u8>) -> io::Result<()> {
        for &byte in text {
            // An empty line is no row.
            if self.at_start && !matches!(byte, b'\n' | b'\r') {
                out.push(self.delimiter);
                self.at_start = false;
            }
            self.quoted ^= byte == b'"';
            self.at_start |= byte == b'\n' && !self.quoted;
            out.push(byte);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;
    use crate::rewrite::Rewritten;

    #[test]
    fn rows_of_a_full_load_get_an_empty_field() {
        let text = "1,\"a\nb\"\n\n2,\"c\"\"d\"\r\n3,e";
        let mut whole = String::new();
        Rewritten::new(text.as_bytes(), FullLoad::new(b',')).read_to_string(&mut whole).unwrap();
        assert_eq!(whole, ",1,\"a\nb\"\n\n,2,\"c\"\"d\"\r\n,3,e");
    }

    #[test]
    fn first_records_are_counted() {
        let first = |text: &str| first_fields(text.as_bytes(), b',');
        assert_eq!(first("I,1,\"a,\nb\"\n2"), Some(("I".to_owned(), 3)));
        assert_eq!(first("1\r\n"), Some(("1".to_owned(), 1)));
        assert_eq!(first("1,2"), None);
        assert_eq!(first("\n1,2\n"), None);
    }
}
