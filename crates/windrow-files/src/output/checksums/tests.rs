//! Tests of headers with checksums, and of refused headers.

use super::*;

/// Header of a dictionary of 3 values in 4 bytes.
const DICTIONARY: &[u8] = &[0x15, 4, 0x15, 8, 0x15, 8, 0x4C, 0x15, 6, 0x15, 0, 0x12, 0, 0];

fn checked(header: &[u8], body: &[u8]) -> Result<Bytes> {
    let mut pages = Pages { checked: true, ..Pages::default() };
    pages.put(Bytes::copy_from_slice(header))?;
    pages.put(Bytes::copy_from_slice(body))?;
    pages.take(PageKey::new(0))
}

#[test]
fn a_checksum_becomes_field_four() {
    let header = checked(DICTIONARY, b"1234");
    // 0x9BE3E0A3, which is 0xC8383EB9 in zigzag encoding.
    let expected = [
        0x15, 4, 0x15, 8, 0x15, 8, 0x15, 0xB9, 0xFD, 0xE0, 0xC1, 0x0C, 0x3C, 0x15, 6, 0x15, 0,
        0x12, 0, 0,
    ];
    assert_eq!(header.ok().as_deref(), Some(&expected[..]));
    // A header with a correct checksum stays unchanged.
    assert_eq!(checked(&expected, b"1234").ok().as_deref(), Some(&expected[..]));
    assert!(checked(&expected, b"1235").is_err());
}

#[test]
fn all_checksums_are_read_as_written() {
    let plain = Header::parse(DICTIONARY);
    for crc in [0, 1, -1, 63, -64, 64, i32::MAX, i32::MIN, 0x1234_5678, -0x1234_5678] {
        let longer = plain.as_ref().map(|header| header.with_crc(crc));
        let longer = longer.unwrap_or_default();
        let parsed = Header::parse(&longer);
        assert_eq!(parsed.map(|header| (header.kind, header.crc)), Some((2, Some(crc))));
    }
}

#[test]
fn other_headers_and_bodies_are_refused() {
    assert!(checked(DICTIONARY, b"12345").is_err());
    for cut in 0..DICTIONARY.len() {
        assert!(Header::parse(&DICTIONARY[..cut]).is_none());
    }
    assert!(Header::parse(&[DICTIONARY, &[0]].concat()).is_none());
    // A body and a header in one blob, or two headers.
    assert!(checked(&[DICTIONARY, b"1234"].concat(), b"1234").is_err());
    let mut pages = Pages { checked: true, ..Pages::default() };
    assert!(pages.put(Bytes::from_static(DICTIONARY)).is_ok());
    assert!(pages.put(Bytes::from_static(DICTIONARY)).is_err());
    // The struct of another type; fields in another order; a list.
    for (place, byte) in [(1, 0), (6, 0x5C), (0, 0x25), (2, 0x16), (7, 0x19), (7, 0x05)] {
        let mut other = DICTIONARY.to_vec();
        other[place] = byte;
        assert!(Header::parse(&other).is_none(), "{place} {byte}");
    }
    // Random bytes never cause a panic.
    let mut state = 1u64;
    for _ in 0..200_000 {
        let mut other = DICTIONARY.to_vec();
        for _ in 0..3 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            other[(state >> 33) as usize % DICTIONARY.len()] = (state >> 56) as u8;
        }
        if let Some(header) = Header::parse(&other) {
            header.with_crc(-1);
        }
    }
}
