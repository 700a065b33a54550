//! Page headers exactly as the `parquet` crate writes them, and the insertion of a checksum.

use crate::thrift::{Thrift, kind, put_integer};

/// A page header. Only the parts for a checksum are parsed:
///
/// ```text
///  1 type, 2 size, 3 size as compressed,  [4 crc,]  the struct of the type, stop
///                                       ^ `at`
/// ```
#[derive(Debug)]
pub(super) struct Header<'a> {
    bytes: &'a [u8],
    pub(super) kind: i32,
    pub(super) body_bytes: i32,
    pub(super) crc: Option<i32>,
    /// Position of field 4, present or not.
    at: usize,
}

impl<'a> Header<'a> {
    pub(super) const DICTIONARY: i32 = 2;

    /// Parses a header; `None` for any other form than the above.
    pub(super) fn parse(bytes: &'a [u8]) -> Option<Self> {
        let mut thrift = Thrift(bytes);
        let mut last = 0;
        let kind = number(&mut thrift, &mut last)?;
        let _size = number(&mut thrift, &mut last)?;
        let body_bytes = number(&mut thrift, &mut last)?;
        let at = bytes.len() - thrift.0.len();
        let crc = match thrift.0.first() {
            Some(&NEXT_I32) => Some(number(&mut thrift, &mut last)?),
            _ => None,
        };
        // Fields 5 to 8 belong to the types 0 to 3. The field number is stored as the difference to
        // the last one.
        let field = u8::try_from(kind).ok().filter(|kind| *kind <= 3)? + 5;
        let head = (field - u8::try_from(last).ok()?) << 4 | kind::STRUCT;
        if thrift.0.first() != Some(&head) {
            return None;
        }
        thrift.field(&mut last).ok()??;
        pass_fields(&mut thrift)?;
        let is_end = thrift.field(&mut last).ok()?.is_none() && thrift.0.is_empty();
        is_end.then_some(Self { bytes, kind, body_bytes, crc, at })
    }

    /// Returns the header with a checksum. The header must have none.
    pub(super) fn with_crc(&self, crc: i32) -> Vec<u8> {
        let (before, after) = self.bytes.split_at_checked(self.at).unwrap_or((self.bytes, &[]));
        let mut longer = Vec::with_capacity(self.bytes.len() + 6);
        longer.extend_from_slice(before);
        longer.push(NEXT_I32);
        put_integer(i64::from(crc), &mut longer);
        if let Some((field, after)) = after.split_first() {
            // This field number is now relative to field 4.
            longer.push(field.wrapping_sub(1 << 4));
            longer.extend_from_slice(after);
        }
        longer
    }
}

/// Head of an i32 field with the last field's number plus one.
const NEXT_I32: u8 = 1 << 4 | kind::I32;

/// Reads the next field's number, if the field has the head [`NEXT_I32`].
fn number(thrift: &mut Thrift<&[u8]>, last: &mut i64) -> Option<i32> {
    if thrift.0.first() != Some(&NEXT_I32) {
        return None;
    }
    thrift.field(last).ok()??;
    i32::try_from(thrift.integer().ok()?).ok()
}

/// Skips the fields of a struct, provided that their numbers are relative and no field is a list.
fn pass_fields(thrift: &mut Thrift<&[u8]>) -> Option<()> {
    let mut last = 0;
    loop {
        let head = *thrift.0.first()?;
        match thrift.field(&mut last).ok()? {
            None => return Some(()),
            Some((_, of)) if head >> 4 > 0 && of != kind::LIST => thrift.skip(of, 0).ok()?,
            Some(_) => return None,
        }
    }
}
