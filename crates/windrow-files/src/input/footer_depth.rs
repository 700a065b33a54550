//! How deep the schema in a Parquet footer nests, and whether columns are encrypted.
//!
//! Those who read the schema recur into its groups, and a footer may have a million of them within each
//! other. So its list of elements is looked at first. It is in the order of a walk, each element with the
//! number of its members:
//!
//! ```text
//!  root 2   id -   a 1   b 1   v -
//!           leaf   group of a group of a leaf: three deep
//! ```
//! The bytes are Thrift's compact protocol (thrift/doc/specs/thrift-compact-protocol.md). What is wrong with them
//! is told by those who read all of them.

use std::io::{self, BufRead, Read};

/// Groups within each other, a leaf among them. A list is two, and types of Arrow nest 61 deep at the most.
const MOST_DEPTH: usize = 256;

/// Structs within each other in a footer, of which the format has four.
const MOST_STRUCTS: usize = 16;

/// Fields of `FileMetaData` and of `SchemaElement`.
const SCHEMA: i64 = 2;
const ENCRYPTION: i64 = 8;
const MEMBERS: i64 = 5;

/// The types of the compact protocol.
mod kind {
    pub(super) const TRUE: u8 = 1;
    pub(super) const FALSE: u8 = 2;
    pub(super) const BYTE: u8 = 3;
    pub(super) const I16: u8 = 4;
    pub(super) const I64: u8 = 6;
    pub(super) const DOUBLE: u8 = 7;
    pub(super) const BINARY: u8 = 8;
    pub(super) const LIST: u8 = 9;
    pub(super) const SET: u8 = 10;
    pub(super) const MAP: u8 = 11;
    pub(super) const STRUCT: u8 = 12;
}

/// Refuses the schema of `footer` if it nests too deep.
///
/// # Errors
/// What is wrong with it.
pub(super) fn check(footer: impl BufRead) -> Result<(), String> {
    match Footer(footer).is_too_deep() {
        Ok(true) => Err(format!("its schema is nested more than {MOST_DEPTH} deep")),
        // Who reads on tells what is damaged.
        Ok(false) | Err(_) => Ok(()),
    }
}

/// Whether `footer` says how columns are encrypted, while it is not itself.
pub(super) fn is_encrypted(footer: impl BufRead) -> bool {
    let mut footer = Footer(footer);
    let mut last = 0;
    // Who reads on tells what is damaged.
    while let Ok(Some((field, kind))) = footer.field(&mut last) {
        if (field, kind) == (ENCRYPTION, kind::STRUCT) {
            return true;
        }
        if footer.skip(kind, 0).is_err() {
            break;
        }
    }
    false
}

struct Footer<R>(R);

impl<R: BufRead> Footer<R> {
    fn is_too_deep(&mut self) -> io::Result<bool> {
        let mut last = 0;
        while let Some((field, kind)) = self.field(&mut last)? {
            if (field, kind) != (SCHEMA, kind::LIST) {
                self.skip(kind, 0)?;
                continue;
            }
            let (elements, _) = self.list()?;
            // Of each group that the walk is in: the members that are to come.
            let mut groups: Vec<i64> = Vec::new();
            for _ in 0..elements {
                let members = self.members()?;
                if let Some(group) = groups.last_mut() {
                    *group -= 1;
                }
                if members > 0 {
                    groups.push(members);
                }
                if groups.len() > MOST_DEPTH {
                    return Ok(true);
                }
                while groups.last() == Some(&0) {
                    groups.pop();
                }
            }
            return Ok(false);
        }
        Ok(false)
    }

    /// The members of the schema element that comes next.
    fn members(&mut self) -> io::Result<i64> {
        let (mut last, mut members) = (0, 0);
        while let Some((field, kind)) = self.field(&mut last)? {
            match (field, kind) {
                (MEMBERS, kind::I16..=kind::I64) => members = self.integer()?,
                _ => self.skip(kind, 0)?,
            }
        }
        Ok(members)
    }

    /// The number and the type of the field that comes next in a struct, after the field `last`.
    fn field(&mut self, last: &mut i64) -> io::Result<Option<(i64, u8)>> {
        let head = self.byte()?;
        if head == 0 {
            return Ok(None);
        }
        *last = match head >> 4 {
            0 => self.integer()?,
            more => last.saturating_add(i64::from(more)),
        };
        Ok(Some((*last, head & 0xf)))
    }

    /// The length of a list, and the type of what is in it.
    fn list(&mut self) -> io::Result<(u64, u8)> {
        let head = self.byte()?;
        let length = match head >> 4 {
            15 => self.number()?,
            length => u64::from(length),
        };
        Ok((length, head & 0xf))
    }

    fn skip(&mut self, kind: u8, within: usize) -> io::Result<()> {
        if within > MOST_STRUCTS {
            return Err(io::ErrorKind::InvalidData.into());
        }
        match kind {
            kind::TRUE | kind::FALSE => Ok(()),
            kind::BYTE => self.pass(1),
            kind::I16..=kind::I64 => self.number().map(drop),
            kind::DOUBLE => self.pass(8),
            kind::BINARY => {
                let length = self.number()?;
                self.pass(length)
            }
            kind::LIST | kind::SET => {
                let (length, of) = self.list()?;
                (0..length).try_for_each(|_| match of {
                    // In a list they have a byte.
                    kind::TRUE | kind::FALSE => self.pass(1),
                    of => self.skip(of, within + 1),
                })
            }
            kind::STRUCT => {
                let mut last = 0;
                while let Some((_, kind)) = self.field(&mut last)? {
                    self.skip(kind, within + 1)?;
                }
                Ok(())
            }
            // The format has no maps.
            kind::MAP.. | 0 => Err(io::ErrorKind::InvalidData.into()),
        }
    }

    fn pass(&mut self, bytes: u64) -> io::Result<()> {
        let passed = io::copy(&mut self.0.by_ref().take(bytes), &mut io::sink())?;
        if passed < bytes { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(()) }
    }

    /// A number of the zigzag form.
    fn integer(&mut self) -> io::Result<i64> {
        let number = self.number()?;
        Ok((number >> 1).cast_signed() ^ -(number & 1).cast_signed())
    }

    fn number(&mut self) -> io::Result<u64> {
        let mut number = 0;
        for place in (0..64).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f) << place;
            if byte < 0x80 {
                return Ok(number);
            }
        }
        Err(io::ErrorKind::InvalidData.into())
    }

    fn byte(&mut self) -> io::Result<u8> {
        let mut byte = [0];
        self.0.read_exact(&mut byte)?;
        Ok(byte[0])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A footer whose schema is a root with a leaf and with a leaf in so many groups.
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
            assert_eq!(check(&*footer(groups)).is_ok(), fits, "{groups} groups");
        }
        // Groups beside each other are none within each other.
        let mut wide = vec![0x19, 0xfc, 0x80, 0x08, 0x48, 1, b'r', 0x15, 0xfe, 0x07, 0];
        for _ in 0..511 {
            wide.extend([0x48, 1, b'g', 0x15, 2, 0, 0x48, 1, b'v', 0]);
        }
        assert_eq!(check(&*wide), Ok(()));
    }

    #[test]
    fn footers_that_tell_of_encryption() {
        let mut bytes = footer(2);
        assert!(!is_encrypted(&*bytes));
        // Behind the row groups, field 4: a union of two structs, of which the first is empty.
        bytes.pop();
        bytes.extend([0x4c, 0x1c, 0, 0, 0]);
        assert!(is_encrypted(&*bytes));
        for end in 0..bytes.len() - 5 {
            assert!(!is_encrypted(&bytes[..end]));
        }
    }

    #[test]
    fn what_is_damaged_is_left_to_others() {
        let whole = footer(2);
        for end in 0..whole.len() {
            assert_eq!(check(&whole[..end]), Ok(()));
        }
        assert_eq!(check(&[0x1c; 1000][..]), Ok(()));
        assert_eq!(check(&[0x19, 0xf9, 0xff, 0xff, 0xff, 0xff, 0xff][..]), Ok(()));
    }
}
