//! Texts into rows that start anywhere, 64 bytes at a time.

use arrow_array::OffsetSizeTrait;

use super::super::starts::Starts;
use super::super::text::Form;
use super::text::put_all;

/// As `put_texts_at` of the module.
///
/// # Safety
/// The CPU has AVX-512 F, BW and VL, and BMI2.
///
/// # Panics
/// As that.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,bmi2")]
pub(in crate::kernel::rows) unsafe fn put_texts_at<O: OffsetSizeTrait>(
    source: &[u8],
    offsets: &[O],
    form: Form,
    places: Starts<'_>,
    is_free: bool,
    out: &mut [u8],
) {
    let [first, ends @ ..] = offsets else { return };
    let Some(last) = ends.last() else { return };
    let (cursors, place) = places.cursors(ends.len());
    // No way out in the middle: several at a time. Lengths have no highest bit, nor have places.
    let (mut wrong, mut furthest) = (first.as_usize(), 0);
    for ((start, end), &cursor) in offsets.iter().zip(ends).zip(cursors) {
        let len = end.as_usize().wrapping_sub(start.as_usize());
        let behind = place(cursor).wrapping_add(len).wrapping_add(1);
        wrong |= end.as_usize() | len | place(cursor) | behind;
        furthest = furthest.max(behind);
    }
    let is_within = wrong.cast_signed() >= 0 && last.as_usize() <= source.len();
    assert!(is_within && furthest <= out.len(), "a text lies within its bytes");
    let free = is_free.then_some(furthest);
    // SAFETY: the features are there; the texts lie within the source, one behind the other, and the code of each, which
    // does not end behind the furthest, within `out`.
    unsafe { put_all(source, offsets, form, cursors, |cursor, _| place(cursor), free, out) }
}
