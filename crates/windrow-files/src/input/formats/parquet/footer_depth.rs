//! Survey of a Parquet footer before parsing: nesting depth of the schema, memory of the parsed
//! footer, and encryption of columns.
//!
//! The parser of a footer takes some 400 bytes for the 40 bytes of a column chunk in the file. The
//! parser also recurs into the groups of the schema, and a footer may have a million nested groups.
//! A walk over the footer therefore comes first. The list of elements is in depth-first order, each
//! element with the number of its members:
//!
//! ```text
//!  root 2   id -   a 1   b 1   v -
//!           leaf   group of a group of a leaf: three deep
//! ```
//! The parser reports damaged bytes.

use std::io::{self, BufRead};

use roaring::RoaringBitmap;

use crate::thrift::{Thrift, kind};

/// Maximum depth of nested groups, including a leaf. A list has two levels; types of Arrow nest at
/// most 61 deep.
const MOST_DEPTH: usize = 256;

/// Field numbers of `FileMetaData`, of `SchemaElement` and of `RowGroup`.
const SCHEMA: i64 = 2;
const ROW_GROUPS: i64 = 4;
const ENCRYPTION: i64 = 8;
const MEMBERS: i64 = 5;
const CHUNKS: i64 = 1;
/// Field of `ColumnChunk`.
const CHUNK_ENCRYPTION: i64 = 8;

/// Bytes of a parsed schema element: the columns of Parquet and of Arrow, with names and paths.
const ELEMENT_BYTES: u64 = 1280;
/// Bytes of a parsed column chunk, without statistics.
const CHUNK_BYTES: u64 = 432;

/// The contents of a footer.
#[derive(Debug, Default)]
pub(super) struct Survey {
    elements: u64,
    chunks: u64,
    is_too_deep: bool,
    /// The encrypted columns, if the footer is readable.
    pub(super) encrypted: Encrypted,
}

/// The encrypted columns of a file whose footer is readable.
#[derive(Debug, Default)]
pub(super) struct Encrypted {
    /// Whether the footer names the algorithm.
    has_algorithm: bool,
    /// As a bitmap: the walk comes before any check of memory.
    leaves: RoaringBitmap,
}

impl Encrypted {
    /// Returns true if one of the leaves that `is_read` is encrypted. A footer that names an
    /// algorithm and no columns encrypts all of them.
    pub(super) fn any(&self, is_read: impl Fn(usize) -> bool) -> bool {
        match self.leaves.is_empty() {
            true => self.has_algorithm,
            false => self.leaves.iter().any(|leaf| is_read(leaf as usize)),
        }
    }
}

impl Survey {
    /// Walks over `footer`.
    ///
    /// # Errors
    /// If its schema nests too deep.
    pub(super) fn of(footer: impl BufRead) -> Result<Self, String> {
        let mut survey = Self::default();
        // The parser of the footer reports damage.
        let _ = survey.walk(&mut Thrift(footer));
        match survey.is_too_deep {
            true => Err(format!("its schema is nested more than {MOST_DEPTH} deep")),
            false => Ok(survey),
        }
    }

    /// Returns the number of columns and groups.
    pub(super) fn columns(&self) -> u64 {
        self.elements
    }

    /// Returns the memory of the parsed footer.
    pub(super) fn bytes(&self) -> u64 {
        let elements = self.elements.saturating_mul(ELEMENT_BYTES);
        elements.saturating_add(self.chunks.saturating_mul(CHUNK_BYTES))
    }

    fn walk(&mut self, footer: &mut Thrift<impl BufRead>) -> io::Result<()> {
        footer.fields(|footer, field, kind| match (field, kind) {
            (SCHEMA, kind::LIST) => self.schema(footer),
            (ROW_GROUPS, kind::LIST) => {
                let groups = footer.list()?.0;
                (0..groups).try_for_each(|_| self.row_group(footer))
            }
            (ENCRYPTION, kind::STRUCT) => {
                self.encrypted.has_algorithm = true;
                footer.skip(kind, 0)
            }
            (_, kind) => footer.skip(kind, 0),
        })
    }

    fn schema(&mut self, footer: &mut Thrift<impl BufRead>) -> io::Result<()> {
        let (elements, _) = footer.list()?;
        // For each group around the current element, the number of members still to come.
        let mut groups: Vec<i64> = Vec::new();
        for _ in 0..elements {
            let mut members = 0;
            footer.fields(|footer, field, kind| match (field, kind) {
                (MEMBERS, kind::I16..=kind::I64) => footer.integer().map(|count| members = count),
                (_, kind) => footer.skip(kind, 0),
            })?;
            self.elements += 1;
            if let Some(group) = groups.last_mut() {
                *group -= 1;
            }
            if members > 0 {
                groups.push(members);
            }
            if groups.len() > MOST_DEPTH {
                self.is_too_deep = true;
                return Err(io::ErrorKind::InvalidData.into());
            }
            while groups.last() == Some(&0) {
                groups.pop();
            }
        }
        Ok(())
    }

    fn row_group(&mut self, footer: &mut Thrift<impl BufRead>) -> io::Result<()> {
        footer.fields(|footer, field, kind| match (field, kind) {
            (CHUNKS, kind::LIST) => {
                for leaf in 0..footer.list()?.0 {
                    self.chunk(leaf, footer)?;
                    self.chunks += 1;
                }
                Ok(())
            }
            (_, kind) => footer.skip(kind, 1),
        })
    }

    fn chunk(&mut self, leaf: u64, footer: &mut Thrift<impl BufRead>) -> io::Result<()> {
        footer.fields(|footer, field, kind| {
            // A schema has more elements than leaves.
            if field == CHUNK_ENCRYPTION && leaf < self.elements {
                self.encrypted.leaves.insert(u32::try_from(leaf).unwrap_or(u32::MAX));
            }
            footer.skip(kind, 2)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a footer whose schema is a root with two leaves, one of them in nested groups.
    fn footer(groups: usize) -> Vec<u8> {
        // The version, and the head of the list.
        let mut bytes = vec![0x15, 0x02, 0x19, 0xfc];
        let mut elements = groups + 3;
        while elements > 0x7f {
            bytes.push((elements & 0x7f) as u8 | 0x80);
            elements >>= 7;
        }
        bytes.push(elements as u8);
        // A name, and the number of members; or a type, a repetition and a name.
        bytes.extend([0x48, 1, b'r', 0x15, 4, 0]);
        bytes.extend([0x15, 4, 0x25, 2, 0x18, 1, b'i', 0]);
        bytes.extend([0x35, 2, 0x18, 1, b'g', 0x15, 2, 0].repeat(groups));
        bytes.extend([0x15, 4, 0x25, 2, 0x18, 1, b'v', 0]);
        // No rows, no row groups.
        bytes.extend([0x16, 0, 0x19, 0x0c, 0]);
        bytes
    }

    #[test]
    fn schemas_that_nest_too_deep() {
        for (groups, fits) in [(0, true), (1, true), (255, true), (256, false), (1_000_000, false)]
        {
            assert_eq!(Survey::of(&*footer(groups)).is_ok(), fits, "{groups} groups");
        }
        // Adjacent groups are not nested.
        let mut wide = vec![0x29, 0xfc, 0x80, 0x08, 0x48, 1, b'r', 0x15, 0xfe, 0x07, 0];
        for _ in 0..511 {
            wide.extend([0x48, 1, b'g', 0x15, 2, 0, 0x48, 1, b'v', 0]);
        }
        assert_eq!(Survey::of(&*wide).map(|survey| survey.elements), Ok(1023));
    }

    #[test]
    fn footers_that_tell_of_encryption() {
        let is_encrypted = |bytes: &[u8]| Survey::of(bytes).unwrap().encrypted.any(|_| true);
        let mut bytes = footer(2);
        assert!(!is_encrypted(&bytes));
        // After the row groups, field 4: a union of two structs, the first one empty.
        bytes.pop();
        bytes.extend([0x4c, 0x1c, 0, 0, 0]);
        assert!(is_encrypted(&bytes));
        for end in 0..bytes.len() - 5 {
            assert!(!is_encrypted(&bytes[..end]));
        }
    }

    #[test]
    fn what_is_damaged_is_left_to_others() {
        let whole = footer(2);
        for end in 0..whole.len() {
            assert!(Survey::of(&whole[..end]).is_ok());
        }
        assert!(Survey::of(&[0x1c; 1000][..]).is_ok());
        assert!(Survey::of(&[0x19, 0xf9, 0xff, 0xff, 0xff, 0xff, 0xff][..]).is_ok());
    }

    #[test]
    fn what_footers_take_is_counted() {
        let mut bytes = footer(0);
        // Two row groups in place of none: each has three chunks, which are empty structs, and a
        // number.
        bytes.truncate(bytes.len() - 3);
        let group = [0x19, 0x3c, 0, 0, 0, 0x16, 2, 0];
        bytes.extend([0x19, 0x2c].into_iter().chain(group).chain(group).chain([0]));
        let survey = Survey::of(&*bytes).unwrap();
        assert_eq!((survey.elements, survey.chunks), (3, 6));
        assert_eq!(survey.bytes(), 3 * ELEMENT_BYTES + 6 * CHUNK_BYTES);
    }
}
