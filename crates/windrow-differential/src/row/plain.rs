//! Values with a single column: numbers, text, bytes.

use windrow::arrow_schema::DataType;

use super::{Form, Row};

/// The terminator of text and bytes.
const END: u8 = 1;
/// The offset added to each byte of text.
const SHIFT: u8 = 2;
/// The escape byte: bytes up to `ESCAPE` are stored as `ESCAPE`, followed by the byte plus one.
const ESCAPE: u8 = 2;

/// Takes the first `N` bytes off `bytes`.
#[inline(always)]
pub(super) fn take<'a, const N: usize>(bytes: &mut &'a [u8]) -> &'a [u8; N] {
    let (first, rest) = bytes.split_first_chunk().expect("a row is whole");
    *bytes = rest;
    first
}

macro_rules! number {
    ($($number:ty as $code:ty, $data_type:expr, $flip:expr;)+) => {$(
        impl Row for $number {
            const WIDTH: Option<usize> = Some(size_of::<$code>());

            fn data_type() -> DataType {
                $data_type
            }

            #[inline(always)]
            fn encode(&self, form: Form, out: &mut Vec<u8>) {
                form.put_marker(out);
                out.extend_from_slice(&(*self as $code ^ $flip).to_be_bytes());
            }

            #[inline(always)]
            fn decode(form: Form, bytes: &mut &[u8]) -> Self {
                form.take_marker(bytes);
                (<$code>::from_be_bytes(*take(bytes)) ^ $flip) as Self
            }
        }
    )+};
}
number! {
    u8 as u8, DataType::UInt8, 0;
    u16 as u16, DataType::UInt16, 0;
    u32 as u32, DataType::UInt32, 0;
    u64 as u64, DataType::UInt64, 0;
    usize as u64, DataType::UInt64, 0;
    u128 as u128, DataType::FixedSizeBinary(16), 0;
    i8 as u8, DataType::Int8, 1 << 7;
    i16 as u16, DataType::Int16, 1 << 15;
    i32 as u32, DataType::Int32, 1 << 31;
    i64 as u64, DataType::Int64, 1 << 63;
    isize as u64, DataType::Int64, 1 << 63;
    i128 as u128, DataType::Decimal128(38, 0), 1 << 127;
}

impl Row for bool {
    const WIDTH: Option<usize> = Some(1);

    fn data_type() -> DataType {
        DataType::Boolean
    }

    fn encode(&self, form: Form, out: &mut Vec<u8>) {
        form.put_marker(out);
        out.push(u8::from(*self));
    }

    fn decode(form: Form, bytes: &mut &[u8]) -> Self {
        form.take_marker(bytes);
        *take::<1>(bytes) != [0]
    }
}

impl Row for char {
    const WIDTH: Option<usize> = Some(4);

    fn data_type() -> DataType {
        DataType::UInt32
    }

    fn encode(&self, form: Form, out: &mut Vec<u8>) {
        u32::from(*self).encode(form, out);
    }

    fn decode(form: Form, bytes: &mut &[u8]) -> Self {
        Self::from_u32(u32::decode(form, bytes)).expect("a row holds a char")
    }
}

impl Row for String {
    const WIDTH: Option<usize> = None;

    fn data_type() -> DataType {
        DataType::Utf8
    }

    fn encode(&self, form: Form, out: &mut Vec<u8>) {
        form.put_marker(out);
        // UTF-8 contains no FE and no FF, so the shift does not wrap.
        out.extend(self.bytes().map(|byte| byte.wrapping_add(SHIFT)));
        out.push(END);
    }

    fn decode(form: Form, bytes: &mut &[u8]) -> Self {
        form.take_marker(bytes);
        let end = bytes.iter().position(|&byte| byte == END).expect("a row is whole");
        let text = bytes[..end].iter().map(|byte| byte.wrapping_sub(SHIFT)).collect();
        *bytes = &bytes[end + 1..];
        Self::from_utf8(text).expect("a row holds text")
    }
}

/// Bytes of any length, as a `Binary` column. A `Vec<u8>` is a list of numbers, each with a marker.
impl Row for Box<[u8]> {
    const WIDTH: Option<usize> = None;

    fn data_type() -> DataType {
        DataType::Binary
    }

    fn encode(&self, form: Form, out: &mut Vec<u8>) {
        form.put_marker(out);
        for &byte in self.iter() {
            match byte {
                0..=ESCAPE => out.extend([ESCAPE, byte + 1]),
                _ => out.push(byte),
            }
        }
        out.push(END);
    }

    fn decode(form: Form, bytes: &mut &[u8]) -> Self {
        form.take_marker(bytes);
        let mut value = Vec::new();
        loop {
            match *take::<1>(bytes) {
                [END] => return value.into(),
                [ESCAPE] => value.push(take::<1>(bytes)[0] - 1),
                [byte] => value.push(byte),
            }
        }
    }
}
