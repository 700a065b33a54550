//! Lengths of varying payload: LEB128 in its shortest form, one byte up to 127.
//!
//! Invariant: each number has one form, so that equal rows have equal bytes. No form is a prefix of
//! another.

/// Bytes of the longest length: five for 32 bits.
const LONGEST: usize = 5;

/// Returns the number of bytes of the length `len`.
#[inline(always)]
pub(super) fn len_of(len: usize) -> usize {
    if len < 0x80 { 1 } else { longer_len_of(len) }
}

fn longer_len_of(len: usize) -> usize {
    (usize::BITS - len.leading_zeros()).div_ceil(7) as usize
}

/// Writes `len` to the start of `out`; returns the bytes written.
#[inline(always)]
pub(super) fn put(len: usize, out: &mut [u8]) -> usize {
    if len < 0x80 {
        out[0] = len as u8;
        return 1;
    }
    put_longer(len, out)
}

fn put_longer(mut len: usize, out: &mut [u8]) -> usize {
    let mut at = 0;
    while len >= 0x80 {
        out[at] = len as u8 | 0x80;
        len >>= 7;
        at += 1;
    }
    out[at] = len as u8;
    at + 1
}

/// Reads the length at the start of `bytes`. Returns the length and its number of bytes, or `None`
/// if the length is incomplete, not in its shortest form, or over 32 bits.
#[inline(always)]
pub(super) fn take(bytes: &[u8]) -> Option<(usize, usize)> {
    match bytes.first() {
        Some(&first) if first < 0x80 => Some((usize::from(first), 1)),
        _ => take_longer(bytes),
    }
}

fn take_longer(bytes: &[u8]) -> Option<(usize, usize)> {
    let mut len = 0u64;
    for (at, &byte) in bytes.iter().take(LONGEST).enumerate() {
        len |= u64::from(byte & 0x7f) << (7 * at);
        if byte < 0x80 {
            let shortest = byte != 0 || at == 0;
            let fits = shortest && u32::try_from(len).is_ok();
            return fits.then_some((len as usize, at + 1));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_come_back_in_their_shortest_form_only() {
        let mut numbers = vec![0, 1, u32::MAX as usize, 1 << 31];
        numbers.extend((0..5).flat_map(|bytes| [(1 << (7 * bytes)) - 1, 1 << (7 * bytes)]));
        for number in numbers {
            let mut out = [0xff; 8];
            let len = put(number, &mut out);
            assert_eq!(len, len_of(number));
            assert_eq!(take(&out), Some((number, len)));
            assert_eq!(take(&out[..len - 1]), None);
        }
        for wrong in [&[][..], &[0x80, 0], &[0xff, 0x80, 0x00], &[0xff; 9], &[0x80; 4]] {
            assert_eq!(take(wrong), None);
        }
        assert_eq!(take(&[0xff, 0xff, 0xff, 0xff, 0x10]), None, "over 32 bits");
    }
}
