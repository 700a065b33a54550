//! Copies the strings of views out of buffers whose bytes mostly belong to other strings.
//!
//! ```text
//! view    length | first 4 bytes | buffer | offset        up to 12 bytes: length | bytes
//!
//! buffer 0  ....aaaaaaa......bbbb...        out  bbbbaaaaaaacccccc     in the order of the views
//! buffer 1  ..cccccc................
//! ```
//!
//! Half of the strings lie in their views, unpredictably: a register is copied for every row, and
//! the next string overwrites the surplus.

use std::ops::Deref;

/// Longest string, in bytes, that a view holds.
pub const INLINE: usize = 12;
/// Bytes of a copy whatever the length, and bytes after `out` within the reach of such a copy.
const WIDE: usize = 32;
pub const PAD: usize = WIDE;

/// Returns the string of a view that is longer than [`INLINE`]. Returns `None` if the view refers
/// to no bytes of `buffers`.
pub fn outside(view: u128, buffers: &[impl Deref<Target = [u8]>]) -> Option<&[u8]> {
    let (len, at) = (view as u32 as usize, (view >> 96) as usize);
    buffers.get((view >> 64) as u32 as usize)?.get(at..)?.get(..len)
}

/// Returns the total length of the strings outside of their views.
pub fn outside_bytes(views: &[u128]) -> usize {
    let lengths = views.iter().map(|view| *view as u32 as usize);
    lengths.map(|len| if len > INLINE { len } else { 0 }).sum()
}

/// Copies the strings outside of their views to `out`, one after the other, and points the views to
/// the copies in buffer 0. `out` is [`PAD`] bytes longer than the views' [`outside_bytes`], which
/// are less than 2^31. An invalid view, allowed only at a null row, becomes an empty string.
///
/// # Panics
/// If `out` is too short.
pub fn copy_out(views: &mut [u128], buffers: &[impl Deref<Target = [u8]>], out: &mut [u8]) {
    let mut end = 0;
    for view in views {
        let len = *view as u32 as usize;
        // All ones for a string outside. The compiler makes no branch of this expression.
        let long = ((INLINE as i64 - len as i64) >> 63) as u64;
        // For a string inside, the start of the first buffer: the next copy overwrites the copied
        // bytes.
        let place = (*view >> 64) as u64 & long;
        let (buffer, at) = (place as u32 as usize, (place >> 32) as usize);
        let buffer = buffers.get(buffer).map_or(&[][..], Deref::deref);
        if len <= WIDE
            && let Some(wide) = buffer.get(at..).and_then(<[u8]>::first_chunk::<WIDE>)
        {
            out[end..end + WIDE].copy_from_slice(wide);
        } else if long != 0 {
            let Some(bytes) = outside(*view, buffers) else {
                *view = 0;
                continue;
            };
            out[end..end + len].copy_from_slice(bytes);
        }
        // Length and first bytes stay.
        let moved = ((*view >> 64) as u64 & !long) | (((end as u64) << 32) & long);
        *view = u128::from(*view as u64) | u128::from(moved) << 64;
        end += len & long as usize;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_copied_out_and_views_point_to_them() {
        let bytes: [Vec<u8>; 2] = [1, 3].map(|step| (0..200).map(|i| (i * step) as u8).collect());
        let buffers: Vec<&[u8]> = bytes.iter().map(Vec::as_slice).collect();
        let view = |len: u128, buffer: u128, at: u128| len | 7 << 32 | buffer << 64 | at << 96;
        // Near the end, at the end, long, in the view, and invalid.
        let mut views = vec![
            view(13, 1, 180),
            view(12, u128::MAX >> 96, 9),
            view(20, 0, 180),
            view(100, 1, 3),
            view(0, 0, 0),
            view(50, 2, 0),
            view(33, 0, 190),
            view(32, 0, 100),
        ];
        let expected: Vec<Option<Vec<u8>>> =
            views.iter().map(|&view| outside(view, &buffers).map(<[u8]>::to_vec)).collect();
        let before = views.clone();
        let used = outside_bytes(&views);
        assert_eq!(used, 13 + 20 + 100 + 50 + 33 + 32);
        let mut out = vec![0; used + PAD];
        copy_out(&mut views, &buffers, &mut out);
        for (row, view) in views.into_iter().enumerate() {
            match (&expected[row], before[row] as u32) {
                (_, ..=12) => assert_eq!(view, before[row]),
                (Some(bytes), _) => {
                    assert_eq!(outside(view, &[&out[..used]]), Some(&bytes[..]));
                    assert_eq!(view as u64, before[row] as u64);
                }
                (None, _) => assert_eq!(view, 0),
            }
        }
    }
}
