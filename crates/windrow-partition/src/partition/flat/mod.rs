//! Blocks: record batches as bytes, the form of a partition's waiting rows.
//!
//! ```text
//!  | rows, bytes of shape, bytes of body | shape: lengths of arrays and buffers | body: buffers |
//!    three u64                             varying-length numbers, padded         each padded to 8
//! ```
//!
//! The bytes do not contain the schema: the reader must have it. Arrays come in the order of
//! columns, an array before its children.
//!
//! A block often has a row or two, and blocks come by the hundreds: making and dropping an array
//! for each costs more than copying its contents. So arrays without children are *plain*: their
//! buffers are copied and joined as bytes, and only whole chunks become arrays. All other columns
//! are handled as arrays.
//!
//! Invariant: a block contains only what its rows use: slices, views and dictionaries are cut out,
//! down to the last child. The reader returns the written rows, in the same types.

mod read;
mod write;

use arrow_schema::DataType;

use windrow_rows::Error;

pub(super) use read::read;
pub(super) use write::Writer;

/// Bytes of the three numbers in front.
const HEAD: usize = 24;
/// Padding of buffers and blocks in bytes; readers copy buffers with a greater alignment.
const ALIGNMENT: usize = 8;

fn damaged() -> Error {
    Error::Corrupt {
        place: "a block of a partition".into(),
        message: "its numbers do not fit its bytes".into(),
    }
}

/// Layout of the values of an array without children.
#[derive(Clone, Copy, Debug)]
enum Plain {
    Bits,
    /// Values of this many bytes each.
    Numbers(usize),
    /// Offsets of this many bytes each, and the bytes of the strings.
    Texts(usize),
    Views,
}

impl Plain {
    fn of(data_type: &DataType) -> Option<Self> {
        use DataType as T;
        match data_type {
            T::Boolean => Some(Self::Bits),
            T::Utf8 | T::Binary => Some(Self::Texts(4)),
            T::LargeUtf8 | T::LargeBinary => Some(Self::Texts(8)),
            T::Utf8View | T::BinaryView => Some(Self::Views),
            T::FixedSizeBinary(width @ 1..) => Some(Self::Numbers(*width as usize)),
            other => other.primitive_width().map(Self::Numbers),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::sync::Arc;

    use arrow_array::types::Int32Type;
    use arrow_array::{
        ArrayRef, BooleanArray, Decimal128Array, FixedSizeBinaryArray, LargeStringArray, ListArray,
        RecordBatch, StringArray, StringViewArray,
    };
    use arrow_buffer::Buffer;

    use super::*;

    /// Returns 40 rows in the middle of more, of every plain kind and one other, with some nulls.
    fn batch() -> RecordBatch {
        let text = |n: usize| {
            (!n.is_multiple_of(5)).then(|| "a string of some length"[..n % 24].to_owned())
        };
        let texts = || (0..70).map(text);
        let lists = (0..70).map(|n| Some((0..n % 3).map(Some)));
        let fixed = (0..70).map(|n| (n % 7 > 0).then_some([n as u8; 3]));
        let columns: [(&str, ArrayRef); 7] = [
            (
                "bits",
                Arc::new((0..70).map(|n| (n > 50).then_some(n % 3 > 0)).collect::<BooleanArray>()),
            ),
            ("wide", Arc::new((0..70).map(|n| Some(n << 70)).collect::<Decimal128Array>())),
            ("text", Arc::new(texts().collect::<StringArray>())),
            ("large", Arc::new(texts().collect::<LargeStringArray>())),
            ("view", Arc::new(texts().collect::<StringViewArray>())),
            (
                "fixed",
                Arc::new(FixedSizeBinaryArray::try_from_sparse_iter_with_size(fixed, 3).unwrap()),
            ),
            ("list", Arc::new(ListArray::from_iter_primitive::<Int32Type, _, _>(lists))),
        ];
        RecordBatch::try_from_iter(columns).unwrap().slice(13, 40)
    }

    fn blocks(batch: &RecordBatch, ends: &[usize]) -> Vec<u8> {
        let (mut writer, mut bytes, mut start) = (Writer::new(batch), Vec::new(), 0);
        for &end in ends {
            writer.write(start..end, &mut bytes).unwrap();
            start = end;
        }
        bytes
    }

    fn read_one(like: &RecordBatch, bytes: &[Buffer]) -> windrow_rows::Result<RecordBatch> {
        let mut out = VecDeque::new();
        read(&like.schema(), bytes, false, &mut out)?;
        assert_eq!(out.len(), 1);
        let mut copied = VecDeque::new();
        read(&like.schema(), bytes, true, &mut copied)?;
        assert_eq!(copied, out);
        Ok(out.pop_front().unwrap())
    }

    #[test]
    fn blocks_of_any_rows_are_joined_to_what_was_written() {
        let batch = batch();
        for ends in [&[40][..], &[1, 2, 3, 40], &[17, 40], &[8, 16, 23, 24, 39, 40]] {
            let bytes = Buffer::from_vec(blocks(&batch, ends));
            let found = read_one(&batch, std::slice::from_ref(&bytes)).unwrap();
            assert_eq!(found, batch, "{ends:?}");
            let twice = read_one(&batch, &[bytes.clone(), bytes]).unwrap();
            assert_eq!((twice.slice(0, 40), twice.slice(40, 40)), (batch.clone(), batch.clone()));
        }
    }

    #[test]
    fn damaged_blocks_are_errors_or_other_rows() {
        let batch = batch();
        let bytes = blocks(&batch, &[9, 40]);
        for at in 0..bytes.len() {
            for flip in [1, 0x80, 0xff] {
                let mut damaged = bytes.clone();
                damaged[at] ^= flip;
                let _rows = read_one(&batch, &[Buffer::from_vec(damaged)]);
            }
            let cut = read_one(&batch, &[Buffer::from_vec(bytes[..at].to_vec())]);
            assert!(cut.is_err() || cut.unwrap().num_rows() < 40);
        }
    }
}
