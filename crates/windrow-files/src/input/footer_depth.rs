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
//! What is wrong with the bytes is told by those who read all of them.

use std::io::{self, BufRead};

use crate::thrift::{Thrift, kind};

/// Groups within each other, a leaf among them. A list is two, and types of Arrow nest 61 deep at the most.
const MOST_DEPTH: usize = 256;

/// Fields of `FileMetaData` and of `SchemaElement`.
const SCHEMA: i64 = 2;
const ENCRYPTION: i64 = 8;
const MEMBERS: i64 = 5;

/// Refuses the schema of `footer` if it nests too deep.
///
/// # Errors
/// What is wrong with it.
pub(super) fn check(footer: impl BufRead) -> Result<(), String> {
    match Footer(Thrift(footer)).is_too_deep() {
        Ok(true) => Err(format!("its schema is nested more than {MOST_DEPTH} deep")),
        // Who reads on tells what is damaged.
        Ok(false) | Err(_) => Ok(()),
    }
}

/// Whether `footer` says how columns are encrypted, while it is not itself.
pub(super) fn is_encrypted(footer: impl BufRead) -> bool {
    let mut footer = Thrift(footer);
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

struct Footer<R>(Thrift<R>);

impl<R: BufRead> Footer<R> {
    fn is_too_deep(&mut self) -> io::Result<bool> {
        let mut last = 0;
        while let Some((field, kind)) = self.0.field(&mut last)? {
            if (field, kind) != (SCHEMA, kind::LIST) {
                self.0.skip(kind, 0)?;
                continue;
            }
            let (elements, _) = self.0.list()?;
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
        while let Some((field, kind)) = self.0.field(&mut last)? {
            match (field, kind) {
                (MEMBERS, kind::I16..=kind::I64) => members = self.0.integer()?,
                _ => self.0.skip(kind, 0)?,
            }
        }
        Ok(members)
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
