//! Text into rows and back, 64 bytes at a time.

use std::arch::x86_64::*;

use super::super::lane::Span;
use super::super::text::{Form, Offset, Taken, Text, Texts};
use crate::kernel::prefetch::prefetch_written;

/// Bytes of a step.
pub(super) const STEP: usize = 64;
/// Bytes of a text, on average, up to which steps of half the length are faster: a store of 64 bytes nearly
/// always crosses from one cache line to the next.
pub(super) const SHORT: usize = 24;

/// Bytes from what is written to the line that is asked for meanwhile: 5 % of either way for texts of 64 to 128
/// bytes, where the second-level cache is nearly full of them.
const AHEAD: usize = 512;

/// As `put_texts` of the module.
///
/// Benefit: 10 % of encoding texts of 64 to 128 bytes; little for short ones.
///
/// # Safety
/// The CPU has AVX-512 F, BW and VL, and BMI2.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,bmi2")]
pub(in crate::kernel::rows) unsafe fn put_texts(
    source: &[u8],
    spans: impl ExactSizeIterator<Item = Span> + Clone,
    form: Form,
    cursors: &mut [usize],
    out: &mut [u8],
) {
    let bytes: usize = spans.clone().map(|(start, end)| end.saturating_sub(start)).sum();
    // SAFETY: as this function's.
    unsafe {
        match bytes <= SHORT * spans.len() {
            true => put_texts_of::<{ STEP / 2 }>(source, spans, form, cursors, out),
            false => put_texts_of::<STEP>(source, spans, form, cursors, out),
        }
    }
}

/// # Safety
/// As [`put_texts`]; `N` is a step or half of it.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,bmi2")]
unsafe fn put_texts_of<const N: usize>(
    source: &[u8],
    spans: impl Iterator<Item = Span>,
    form: Form,
    cursors: &mut [usize],
    out: &mut [u8],
) {
    let (add, flip) = (_mm512_set1_epi8(form.shift as i8), _mm512_set1_epi8(form.flip as i8));
    let end_byte = form.end ^ form.flip;
    for ((start, end), cursor) in spans.zip(cursors) {
        if start > end {
            continue;
        }
        let (len, to) = (end - start, *cursor);
        *cursor = to + len + 1;
        assert!(end <= source.len() && to + len < out.len(), "a text lies within its bytes");
        // SAFETY: `source` reaches to `start`, and `out` to `to`.
        let (from, target) = unsafe { (source.as_ptr().add(start), out.as_mut_ptr().add(to)) };
        // Whole steps, if what is behind may be read and overwritten.
        let is_free = start + len + N <= source.len() && to + len + N <= out.len();
        let mut at = 0;
        while at < len {
            // SAFETY: a whole step lies within both, or the mask leaves what does.
            unsafe {
                let (from, target) = (from.add(at), target.add(at));
                if !is_free {
                    let own = _bzhi_u64(u64::MAX, (len - at).min(N) as u32);
                    let sum = _mm512_add_epi8(_mm512_maskz_loadu_epi8(own, from.cast()), add);
                    _mm512_mask_storeu_epi8(target.cast(), own, _mm512_xor_si512(sum, flip));
                } else if N == STEP {
                    prefetch_written(target.wrapping_add(AHEAD));
                    let sum = _mm512_add_epi8(_mm512_loadu_si512(from.cast()), add);
                    _mm512_storeu_si512(target.cast(), _mm512_xor_si512(sum, flip));
                } else {
                    let (add, flip) = (_mm512_castsi512_si256(add), _mm512_castsi512_si256(flip));
                    let sum = _mm256_add_epi8(_mm256_loadu_si256(from.cast()), add);
                    _mm256_storeu_si256(target.cast(), _mm256_xor_si256(sum, flip));
                }
            }
            at += N;
        }
        // SAFETY: the byte behind the text lies within `out`, as was checked.
        unsafe { target.add(len).write(end_byte) };
    }
}

/// Strings by which it is told how long most of them are.
const SAMPLE: usize = 16;

/// As `put_exact` of the module, where nothing is escaped: the end of a string under a mask.
///
/// Benefit: four columns of short texts are encoded in 96 us in place of 140 for 8,192 rows, and in 210 in place of
/// 296 if a tenth of them are nulls.
///
/// # Safety
/// The CPU has AVX-512 F, BW and VL, and BMI2.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,bmi2")]
pub(in crate::kernel::rows) unsafe fn put_exact<'a>(
    strings: impl Iterator<Item = Text<'a>> + Clone,
    form: Form,
    cursors: &mut [usize],
    out: &mut [u8],
) {
    let sample = strings.clone().take(SAMPLE).map(|(string, _)| string.len());
    // SAFETY: as this function's.
    unsafe {
        match sample.sum::<usize>() <= SHORT * SAMPLE {
            true => put_exact_of::<{ STEP / 2 }>(strings, form, cursors, out),
            false => put_exact_of::<STEP>(strings, form, cursors, out),
        }
    }
}

/// # Safety
/// As [`put_exact`]; `N` is a step or half of it.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,bmi2")]
unsafe fn put_exact_of<'a, const N: usize>(
    strings: impl Iterator<Item = Text<'a>>,
    form: Form,
    cursors: &mut [usize],
    out: &mut [u8],
) {
    let same = |byte: u8| _mm512_set1_epi8(byte as i8);
    let (add, flip, last) = (same(form.shift), same(form.flip), same(form.end ^ form.flip));
    let half = |v: __m512i| _mm512_castsi512_si256(v);
    for ((string, valid), cursor) in strings.zip(cursors) {
        // Of a null nothing: which strings are null is not to be predicted.
        let keep = 0u64.wrapping_sub(u64::from(valid));
        let (len, to) = (string.len() & keep as usize, *cursor);
        *cursor = to + len + usize::from(valid);
        assert!(*cursor <= out.len(), "a string lies within its bytes");
        let mut at = 0;
        loop {
            let left = len - at;
            let own = _bzhi_u64(u64::MAX, left.min(STEP) as u32);
            // SAFETY: the masks leave what of the string is left, and behind it the byte of its end, which lies
            // within `out`, as was checked.
            unsafe {
                let from = string.as_ptr().add(at);
                let target = out.as_mut_ptr().add(to + at);
                if left < N {
                    let put = (own << 1 | 1) & keep;
                    if N < STEP {
                        let v = _mm256_maskz_loadu_epi8(own as u32, from.cast());
                        let v = _mm256_xor_si256(_mm256_add_epi8(v, half(add)), half(flip));
                        let v = _mm256_mask_mov_epi8(v, !own as u32, half(last));
                        _mm256_mask_storeu_epi8(target.cast(), put as u32, v);
                    } else {
                        let v = _mm512_maskz_loadu_epi8(own, from.cast());
                        let v = _mm512_xor_si512(_mm512_add_epi8(v, add), flip);
                        let v = _mm512_mask_mov_epi8(v, !own, last);
                        _mm512_mask_storeu_epi8(target.cast(), put, v);
                    }
                    break;
                }
                if N < STEP {
                    let v = _mm256_add_epi8(_mm256_loadu_si256(from.cast()), half(add));
                    _mm256_storeu_si256(target.cast(), _mm256_xor_si256(v, half(flip)));
                } else {
                    let v = _mm512_add_epi8(_mm512_loadu_si512(from.cast()), add);
                    _mm512_storeu_si512(target.cast(), _mm512_xor_si512(v, flip));
                }
            }
            at += N;
        }
    }
}

/// As `put_counted` of the module: the end of a string under a mask.
///
/// Benefit: two texts and fourteen more that are payload, are encoded in 661 us in place of 1,185 for 8,192 rows, and
/// in 827 in place of 1,472 if a tenth of them are nulls.
///
/// # Safety
/// The CPU has AVX-512 F, BW and VL, and BMI2.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,bmi2")]
pub(in crate::kernel::rows) unsafe fn put_counted<'a>(
    strings: impl Iterator<Item = Text<'a>> + Clone,
    count: impl Fn(usize, &mut [u8]) -> usize,
    cursors: &mut [usize],
    out: &mut [u8],
) {
    let sample = strings.clone().take(SAMPLE).map(|(string, _)| string.len());
    // SAFETY: as this function's.
    unsafe {
        match sample.sum::<usize>() <= SHORT * SAMPLE {
            true => put_counted_of::<{ STEP / 2 }>(strings, count, cursors, out),
            false => put_counted_of::<STEP>(strings, count, cursors, out),
        }
    }
}

/// # Safety
/// As [`put_counted`]; `N` is a step or half of it.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,bmi2")]
unsafe fn put_counted_of<'a, const N: usize>(
    strings: impl Iterator<Item = Text<'a>>,
    count: impl Fn(usize, &mut [u8]) -> usize,
    cursors: &mut [usize],
    out: &mut [u8],
) {
    for ((string, valid), cursor) in strings.zip(cursors) {
        // Of a null nothing: which strings are null is not to be predicted.
        let len = string.len() & 0usize.wrapping_sub(usize::from(valid));
        let to = *cursor + count(len, &mut out[*cursor..]);
        *cursor = to + len;
        assert!(*cursor <= out.len(), "a string lies within its bytes");
        let mut at = 0;
        loop {
            let own = _bzhi_u64(u64::MAX, (len - at).min(N) as u32);
            // SAFETY: the mask leaves what of the string is left, for which there is room, as was checked.
            unsafe {
                let (from, target) = (string.as_ptr().add(at), out.as_mut_ptr().add(to + at));
                if N < STEP {
                    let v = _mm256_maskz_loadu_epi8(own as u32, from.cast());
                    _mm256_mask_storeu_epi8(target.cast(), own as u32, v);
                } else {
                    let v = _mm512_maskz_loadu_epi8(own, from.cast());
                    _mm512_mask_storeu_epi8(target.cast(), own, v);
                }
            }
            at += N;
            if at >= len {
                break;
            }
        }
    }
}

/// Bytes of a string that are escaped at once: there are at most as many again.
const HALF: usize = STEP / 2;

/// As `put_exact` of the module, where bytes up to `escape` are escaped: half a step is spread over a whole one.
///
/// ```text
/// bytes          05 00 07 02
/// to be escaped   0  1  0  1      in every other place: 00 01 00 01
/// may be used    01 11 01 11      those, and the places behind them
/// spread         05 02 01 07 02 03
/// ```
///
/// Benefit: four columns of eight random bytes are encoded in 206 us in place of 335, for 8,192 rows.
///
/// # Safety
/// The CPU has AVX-512 F, BW, VL and VBMI2, and BMI2.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi2,bmi2,popcnt")]
pub(in crate::kernel::rows) unsafe fn put_escaped<'a>(
    strings: impl Iterator<Item = Text<'a>>,
    form: Form,
    escape: u8,
    cursors: &mut [usize],
    out: &mut [u8],
) {
    const BEHIND: u64 = 0xaaaa_aaaa_aaaa_aaaa;
    let same = |byte: u8| _mm512_set1_epi8(byte as i8);
    let (flip, last) = (same(form.flip), same(form.end));
    let (escapes, greatest) = (same(escape), _mm256_set1_epi8(escape as i8));
    for ((string, valid), cursor) in strings.zip(cursors) {
        let keep = 0u64.wrapping_sub(u64::from(valid));
        let len = string.len() & keep as usize;
        let (mut at, mut to) = (0, *cursor);
        loop {
            let left = len - at;
            let own = _bzhi_u64(u64::MAX, left.min(HALF) as u32);
            // SAFETY: the mask leaves what of the string is left.
            let v = unsafe { _mm256_maskz_loadu_epi8(own as u32, string.as_ptr().add(at).cast()) };
            let found = _mm256_mask_cmple_epu8_mask(own as u32, v, greatest);
            let v = _mm256_mask_add_epi8(v, found, v, _mm256_set1_epi8(1));
            let places = _pdep_u64(u64::from(found), !BEHIND) | BEHIND;
            let behind = _pext_u64(BEHIND, places);
            let v = _mm512_mask_expand_epi8(escapes, behind, _mm512_castsi256_si512(v));
            let count = left.min(HALF) + found.count_ones() as usize;
            let is_last = left < HALF;
            let own = _bzhi_u64(u64::MAX, count as u32);
            let v = _mm512_xor_si512(_mm512_mask_mov_epi8(v, !own, last), flip);
            let put = if is_last { (own << 1 | 1) & keep } else { own };
            let next = to + count + usize::from(is_last & valid);
            assert!(next <= out.len(), "a string lies within its bytes");
            // SAFETY: the bytes of the mask lie within `out`, as was checked.
            unsafe { _mm512_mask_storeu_epi8(out.as_mut_ptr().add(to).cast(), put, v) };
            to = next;
            if is_last {
                break;
            }
            at += HALF;
        }
        *cursor = to;
    }
}

/// As `add_lengths` of the module, where bytes up to `escape` take two.
///
/// Benefit: included in that of [`put_escaped`].
///
/// # Safety
/// The CPU has AVX-512 F and BW, BMI2, and a count of bits.
#[target_feature(enable = "avx512f,avx512bw,bmi2,popcnt")]
pub(in crate::kernel::rows) unsafe fn add_lengths<'a>(
    strings: impl Iterator<Item = Text<'a>>,
    escape: u8,
    lengths: &mut [u32],
) -> u64 {
    let greatest = _mm512_set1_epi8(escape as i8);
    let mut total = 0;
    for ((string, valid), length) in strings.zip(lengths) {
        let mut own = string.len() + 1;
        for at in (0..string.len()).step_by(STEP) {
            let mask = _bzhi_u64(u64::MAX, (string.len() - at).min(STEP) as u32);
            // SAFETY: the mask leaves what of the string is left.
            let v = unsafe { _mm512_maskz_loadu_epi8(mask, string.as_ptr().add(at).cast()) };
            own += _mm512_mask_cmple_epu8_mask(mask, v, greatest).count_ones() as usize;
        }
        own *= usize::from(valid);
        total += own as u64;
        *length = length.wrapping_add(own as u32);
    }
    total
}

/// As `take_texts` of the module, `N` bytes at a time, for whole words of rows that are followed by a step that may be
/// read; nothing if one of them does not end within its row.
///
/// Benefit: its forerunner, which was told the ends, was 1.5x the portable twin for texts of up to 31 bytes; half steps
/// are worth a tenth for short ones. To see on the way that all is ASCII spares those of 64 to 128 bytes a fifth.
///
/// # Safety
/// The CPU has AVX-512 F, BW and VL, BMI1 and BMI2; `N` is a step or half of it; there are as many ends, of rows and of
/// texts, as cursors; no cursor is behind the end of its row, which is within the bytes; `data` has room for what is left
/// of all rows, and a step.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,bmi1,bmi2")]
pub(in crate::kernel::rows) unsafe fn take_texts<O: Offset, const N: usize>(
    texts: &Texts<'_>,
    cursors: &mut [usize],
    data: &mut Vec<u8>,
    text_ends: &mut [O],
    valid: &mut Vec<u64>,
) -> Option<Taken> {
    // SAFETY: as this function's.
    unsafe {
        match texts.null {
            Some(null) => take_texts_of::<O, N, true>(texts, null, cursors, data, text_ends, valid),
            None => take_texts_of::<O, N, false>(texts, 0, cursors, data, text_ends, valid),
        }
    }
}

/// # Safety
/// As [`take_texts`]; `MARKED` if a byte in front says whether there is a text.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,bmi1,bmi2")]
unsafe fn take_texts_of<O: Offset, const N: usize, const MARKED: bool>(
    texts: &Texts<'_>,
    null: u8,
    cursors: &mut [usize],
    data: &mut Vec<u8>,
    text_ends: &mut [O],
    valid: &mut Vec<u64>,
) -> Option<Taken> {
    let Texts { bytes, ends, form, .. } = *texts;
    let with = Back::of(form);
    let marker = usize::from(MARKED);
    let whole = u64::MAX >> (64 - N);
    let (mut len, target) = (data.len(), data.as_mut_ptr());
    let mut most = _mm512_setzero_si512();
    let last = bytes.len().checked_sub(N + marker);
    let mut done = 0;
    let words = cursors.chunks_mut(64).zip(ends.chunks(64)).zip(text_ends.chunks_mut(64));
    for ((cursors, ends), text_ends) in words {
        if last.is_none_or(|last| cursors.iter().any(|&cursor| cursor > last)) {
            break;
        }
        let mut word = 0u64;
        let rows = cursors.iter_mut().zip(ends).zip(text_ends).enumerate();
        for (row, ((cursor, &end), text_end)) in rows {
            let start = *cursor + marker;
            // SAFETY: a marker and a step behind it lie within the bytes, since this cursor is not beyond the last one.
            let is_valid = !MARKED || unsafe { *bytes.get_unchecked(*cursor) } != null;
            // SAFETY: as above; the step that is written begins where the texts so far end, which are as long as what
            // their rows had left at the most: there is room for a step more.
            let mut found = unsafe {
                with.step::<N>(
                    bytes.as_ptr().add(start),
                    whole,
                    target.add(len),
                    &mut most,
                    !is_valid,
                )
            };
            let mut at = 0;
            while found == 0 {
                at += N;
                if start + at >= end {
                    return None;
                }
                let own = _bzhi_u64(whole, (bytes.len() - start - at).min(N) as u32);
                // SAFETY: the mask leaves what lies within the bytes; the step that is written begins in front of the
                // end of the row, so that there is room for it.
                found = unsafe {
                    prefetch_written(target.wrapping_add(len + at + AHEAD));
                    let from = bytes.as_ptr().add(start + at);
                    with.step::<N>(from, own, target.add(len + at), &mut most, false)
                };
            }
            let text = at + found.trailing_zeros() as usize;
            *cursor = start + text + usize::from(is_valid);
            if *cursor > end {
                return None;
            }
            len += text;
            *text_end = O::of(len);
            word |= u64::from(is_valid) << row;
        }
        if MARKED {
            valid.push(word);
        }
        done += cursors.len();
    }
    // SAFETY: the texts so far were written.
    unsafe { data.set_len(len) };
    let greatest = _mm512_set1_epi8(0x7fu8.wrapping_add(form.shift).cast_signed());
    let ascii = _mm512_cmpgt_epu8_mask(most, greatest) == 0;
    Some(Taken { texts: done, ascii })
}

/// What makes texts of their codes.
struct Back {
    flip: __m512i,
    add: __m512i,
}

impl Back {
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw")]
    fn of(form: Form) -> Self {
        Self {
            flip: _mm512_set1_epi8(form.flip.cast_signed()),
            add: _mm512_set1_epi8(form.back().cast_signed()),
        }
    }

    /// Writes `N` bytes at `to` of the codes at `from` that are `own`, all of them in a whole step. Returns which of
    /// these codes end a text, or that the first does if the text `is_null`; `most` is the greatest of those in front,
    /// byte by byte.
    ///
    /// # Safety
    /// As [`take_texts`]; `own` are bytes that may be read at `from`, and `N` may be written at `to`.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,bmi1")]
    unsafe fn step<const N: usize>(
        &self,
        from: *const u8,
        own: u64,
        to: *mut u8,
        most: &mut __m512i,
        is_null: bool,
    ) -> u64 {
        let (flip, add, two) = (self.flip, self.add, _mm512_set1_epi8(2));
        // SAFETY: as this function's.
        unsafe {
            if N == STEP {
                let v = _mm512_maskz_loadu_epi8(own, from.cast());
                _mm512_storeu_si512(to.cast(), _mm512_xor_si512(_mm512_add_epi8(v, add), flip));
                let code = _mm512_xor_si512(v, flip);
                let found = _mm512_mask_cmplt_epu8_mask(own, code, two) | u64::from(is_null);
                *most = _mm512_mask_max_epu8(*most, in_front(found) & own, *most, code);
                return found;
            }
            let (flip, add) = (_mm512_castsi512_si256(flip), _mm512_castsi512_si256(add));
            let v = _mm256_maskz_loadu_epi8(own as u32, from.cast());
            _mm256_storeu_si256(to.cast(), _mm256_xor_si256(_mm256_add_epi8(v, add), flip));
            let code = _mm256_xor_si256(v, flip);
            let two = _mm512_castsi512_si256(two);
            let found = _mm256_mask_cmplt_epu8_mask(own as u32, code, two);
            let found = u64::from(found) | u64::from(is_null);
            let code = _mm512_castsi256_si512(code);
            *most = _mm512_mask_max_epu8(*most, in_front(found) & own, *most, code);
            found
        }
    }
}

/// The bytes in front of the first of `found`; all of them if there is none.
#[inline(always)]
fn in_front(found: u64) -> u64 {
    found.wrapping_sub(1) & !found
}
