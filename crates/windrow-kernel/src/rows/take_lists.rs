//! Reads lists of numbers out of rows, if no number is null.
//!
//! ```text
//! row      | 01 01 a a a a | 01 01 b b b b | 00 |       more, a value, its code; the end
//! numbers  | a a a a | b b b b |                        least significant byte first
//! count    2
//! ```

use super::take_text::room_of;
use crate::values::Values;

/// Bytes before a number: the list goes on, and the number is not null.
pub(super) const HEAD: usize = 2;
/// The value of both bytes.
pub(super) const GOES_ON: u8 = 1;
/// The byte that ends a list.
pub(super) const END: u8 = 0;

/// Lists of numbers at any place in rows.
#[derive(Clone, Copy, Debug)]
pub struct Lists<'a> {
    pub bytes: &'a [u8],
    /// The ends of the rows: no list reaches further.
    pub ends: &'a [usize],
    /// Bytes of a number.
    pub width: usize,
    /// The mask that every byte is XORed with.
    pub flip: u8,
}

/// Appends the codes of the numbers of the first lists at `cursors` to `numbers`, in native byte
/// order, and moves the cursors past them. Writes the number of numbers of each list to `counts`.
/// Returns the number of lists read: reading stops at a list with a null number, or a damaged list.
///
/// Benefit: reading each number separately took 220 us for 8,192 lists of up to five numbers of
/// four bytes.
///
/// # Panics
/// If the numbers of cursors, ends and counts differ, or if a number has no bytes, or more than 32.
pub fn take_lists(
    lists: &Lists<'_>,
    cursors: &mut [usize],
    numbers: &mut Values<u8>,
    counts: &mut [usize],
) -> usize {
    assert!((1..=32).contains(&lists.width), "numbers of up to 32 bytes");
    assert_eq!(counts.len(), cursors.len(), "a count for each cursor");
    let Some(room) = room_of(lists.bytes, cursors, lists.ends) else { return 0 };
    numbers.reserve(room);
    #[cfg(target_arch = "x86_64")]
    if super::avx512::detected() {
        let target = numbers.room(room);
        // SAFETY: the features were detected. Each cursor has an end and a count, as asserted.
        // `room_of` checked that no cursor is after the end of its row, and no end after the bytes.
        // `target` has space for the rest of all rows and a step. The kernel wrote the bytes that
        // it returns.
        unsafe {
            let (read, bytes) =
                super::avx512::take_lists::take_lists(lists, cursors, target, counts);
            numbers.grow(bytes);
            return read;
        }
    }
    take_each(lists, cursors, numbers, counts)
}

/// The portable twin.
fn take_each(
    lists: &Lists<'_>,
    cursors: &mut [usize],
    numbers: &mut Values<u8>,
    counts: &mut [usize],
) -> usize {
    let Lists { bytes, ends, width, flip } = *lists;
    for (read, ((cursor, &end), count)) in cursors.iter_mut().zip(ends).zip(counts).enumerate() {
        let (mut left, before) = (&bytes[*cursor..end], numbers.len());
        *count = 0;
        while let Some((head, code)) = left.split_at_checked(HEAD)
            && head.iter().all(|byte| byte ^ flip == GOES_ON)
            && let Some((code, behind)) = code.split_at_checked(width)
        {
            for at in 0..width {
                let from = if cfg!(target_endian = "little") { width - 1 - at } else { at };
                numbers.push(code[from] ^ flip);
            }
            *count += 1;
            left = behind;
        }
        if left.first().map(|byte| byte ^ flip) != Some(END) {
            numbers.truncate(before);
            return read;
        }
        *cursor = end - left.len() + 1;
    }
    cursors.len()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn both_read_lists_alike(
            lists in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..120), 1..100),
            width in prop_oneof![Just(1usize), Just(2), Just(4), Just(8), Just(16), Just(32)],
            descending: bool,
            behind in 0usize..3,
            null: Option<u16>,
            broken: Option<u16>,
        ) {
            let flip = if descending { 0xff } else { 0 };
            let (mut rows, mut starts, mut ends) = (vec![], vec![], vec![]);
            let (mut expected, mut lens) = (Vec::<u8>::new(), vec![]);
            for list in &lists {
                starts.push(rows.len());
                for number in list.chunks_exact(width) {
                    rows.extend([1, 1]);
                    rows.extend_from_slice(number);
                    expected.extend(number.iter().rev());
                }
                lens.push(list.len() / width);
                rows.push(0);
                rows.extend([0, 1].iter().take(behind));
                ends.push(rows.len());
            }
            if let Some(null) = null {
                // A null number in place of the end.
                let row = usize::from(null) % lists.len();
                let at = ends[row] - behind - 1;
                rows.splice(at..at, [1, 0]);
                starts[row + 1..].iter_mut().for_each(|start| *start += 2);
                ends[row..].iter_mut().for_each(|end| *end += 2);
                let numbers: usize = lens[..row].iter().sum();
                expected.truncate(numbers * width);
                lens.truncate(row);
            }
            rows.iter_mut().for_each(|byte| *byte ^= flip);
            if let Some(at) = broken {
                let at = usize::from(at) % rows.len();
                rows[at] ^= 1;
            }
            let read = Lists { bytes: &rows, ends: &ends, width, flip };
            let (mut at, mut at_twin) = (starts.clone(), starts.clone());
            let (mut counts, mut counts_twin) = (vec![0; ends.len()], vec![0; ends.len()]);
            let (mut own, mut twin) = (Values::with_capacity(0), Values::with_capacity(0));
            // After other numbers.
            own.push(7);
            twin.push(7);
            let done = take_lists(&read, &mut at, &mut own, &mut counts);
            prop_assert_eq!(done, take_each(&read, &mut at_twin, &mut twin, &mut counts_twin));
            prop_assert_eq!(&counts[..done], &counts_twin[..done]);
            prop_assert_eq!(own.as_ref(), twin.as_ref());
            prop_assert_eq!(&at[done..], &starts[done..]);
            prop_assert_eq!(&at[..done], &at_twin[..done]);
            if broken.is_none() && cfg!(target_endian = "little") {
                prop_assert_eq!(&counts[..done], &lens[..]);
                prop_assert_eq!(&own.as_ref()[1..], &expected[..]);
                prop_assert!(at[..done].iter().zip(&ends).all(|(at, end)| at + behind == *end));
            }
        }
    }
}
