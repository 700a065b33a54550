//! Byte strings in any of Arrow's layouts, for the encoder.

use std::ops::Range;

use arrow_array::cast::AsArray;
use arrow_array::types::ByteArrayType;
use arrow_array::{ArrayRef, GenericByteArray, OffsetSizeTrait};
use arrow_buffer::Buffer;
use arrow_schema::DataType;
use windrow_kernel::rows::Bits;
use windrow_kernel::rows::exact::Text;
use windrow_kernel::rows::lengths::{Form, add_each};
use windrow_kernel::viewed::Viewed;

/// An operation on byte strings, independent of their layout.
pub(crate) trait Visit {
    /// Processes the strings of consecutive rows.
    fn visit<'a>(self, strings: impl Iterator<Item = Text<'a>> + Clone);
}

/// Calls a function with each string.
pub(crate) struct Each<F>(pub(super) F);

impl<F: FnMut(Text<'_>)> Visit for Each<F> {
    #[inline]
    fn visit<'a>(self, strings: impl Iterator<Item = Text<'a>> + Clone) {
        strings.for_each(self.0);
    }
}

/// Byte strings in any of Arrow's layouts.
pub(crate) enum Bytes {
    Small {
        offsets: arrow_buffer::ScalarBuffer<i32>,
        data: Buffer,
    },
    Large {
        offsets: arrow_buffer::ScalarBuffer<i64>,
        data: Buffer,
    },
    Views(Viewed),
    /// Values of a dictionary, at least one, selected by keys.
    Picked {
        values: Box<Bytes>,
        keys: Vec<u32>,
    },
}

impl Bytes {
    pub(super) fn of(array: &ArrayRef) -> Self {
        match array.data_type() {
            DataType::Utf8 => Self::small(array.as_string::<i32>()),
            DataType::Binary => Self::small(array.as_binary::<i32>()),
            DataType::LargeUtf8 => Self::large(array.as_string::<i64>()),
            DataType::LargeBinary => Self::large(array.as_binary::<i64>()),
            DataType::Utf8View => Self::Views(Viewed::of(array.as_string_view())),
            _ => Self::Views(Viewed::of(array.as_binary_view())),
        }
    }

    fn small(array: &GenericByteArray<impl ByteArrayType<Offset = i32>>) -> Self {
        Self::Small { offsets: array.offsets().inner().clone(), data: array.values().clone() }
    }

    fn large(array: &GenericByteArray<impl ByteArrayType<Offset = i64>>) -> Self {
        Self::Large { offsets: array.offsets().inner().clone(), data: array.values().clone() }
    }

    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Small { offsets, .. } => offsets.len().saturating_sub(1),
            Self::Large { offsets, .. } => offsets.len().saturating_sub(1),
            Self::Views(views) => views.len(),
            Self::Picked { keys, .. } => keys.len(),
        }
    }

    #[inline(always)]
    pub(crate) fn get(&self, row: usize) -> &[u8] {
        match self {
            Self::Picked { values, keys } => values.get_plain(keys[row] as usize),
            plain => plain.get_plain(row),
        }
    }

    #[inline(always)]
    fn get_plain(&self, row: usize) -> &[u8] {
        match self {
            // A dictionary of dictionaries was resolved before.
            Self::Picked { .. } => &[],
            Self::Small { offsets, data } => {
                &data[offsets[row] as usize..offsets[row + 1] as usize]
            }
            Self::Large { offsets, data } => {
                &data[offsets[row] as usize..offsets[row + 1] as usize]
            }
            Self::Views(views) => views.get(row),
        }
    }

    pub(super) fn add_lengths(
        &self,
        valid: Option<Bits<'_>>,
        form: Form,
        lengths: &mut [u32],
    ) -> u64 {
        fn each(
            lens: impl Iterator<Item = usize>,
            valid: Option<Bits<'_>>,
            form: Form,
            lengths: &mut [u32],
        ) -> u64 {
            let lens = lens.zip(0..);
            match valid {
                None => add_each(lens.map(|(len, _)| (len, true)), form, lengths),
                Some(valid) => {
                    add_each(lens.map(|(len, row)| (len, valid.get(row))), form, lengths)
                }
            }
        }
        let rows = lengths.len();
        match self {
            Self::Small { offsets, .. } => {
                let ends = offsets[..=rows].windows(2);
                each(ends.map(|ends| (ends[1] - ends[0]) as usize), valid, form, lengths)
            }
            Self::Large { offsets, .. } => {
                let ends = offsets[..=rows].windows(2);
                each(ends.map(|ends| (ends[1] - ends[0]) as usize), valid, form, lengths)
            }
            Self::Views(views) => each(views.lens(0..rows), valid, form, lengths),
            Self::Picked { values, keys } => {
                let keys = keys[..rows].iter().map(|&key| key as usize);
                if let Self::Small { offsets, .. } = &**values {
                    let lens = keys.map(|key| (offsets[key + 1] - offsets[key]) as usize);
                    return each(lens, valid, form, lengths);
                }
                each(keys.map(|key| values.get_plain(key).len()), valid, form, lengths)
            }
        }
    }

    #[inline(always)]
    pub(super) fn visit(
        &self,
        rows: Range<usize>,
        valid: impl Fn(usize) -> bool + Clone,
        visitor: impl Visit,
    ) {
        match self {
            Self::Small { offsets, data } => {
                let ends = offsets[rows.start..=rows.end].windows(2);
                visitor.visit(rows.zip(ends).map(|(row, ends)| span(data, ends, valid(row))));
            }
            Self::Large { offsets, data } => {
                let ends = offsets[rows.start..=rows.end].windows(2);
                visitor.visit(rows.zip(ends).map(|(row, ends)| span(data, ends, valid(row))));
            }
            Self::Views(views) => visitor.visit(rows.map(|row| {
                let (beyond, len) = views.get_beyond(row);
                Text::new(beyond, len, valid(row))
            })),
            Self::Picked { values, keys } => {
                if let Self::Small { offsets, data } = &**values {
                    let keys = keys[rows.clone()].iter().map(|&key| key as usize);
                    visitor.visit(
                        keys.zip(rows)
                            .map(|(key, row)| span(data, &offsets[key..key + 2], valid(row))),
                    );
                    return;
                }
                let own = |row: usize| values.get_plain(keys[row] as usize);
                visitor.visit(rows.map(|row| Text::from((own(row), valid(row)))));
            }
        }
    }
}

/// Returns the string of `data` between two offsets.
#[inline(always)]
fn span<'a, O: OffsetSizeTrait>(data: &'a [u8], ends: &[O], valid: bool) -> Text<'a> {
    let (start, end) = (ends[0].as_usize(), ends[1].as_usize());
    Text::new(&data[start..], end - start, valid)
}
