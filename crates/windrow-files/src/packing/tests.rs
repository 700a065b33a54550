//! Tests of compression: text is read back from one member or several, and damage is an error.

use std::io::{Cursor, Read, Write};
use std::path::Path;

use super::*;

fn packed(packing: Packing, level: u32, text: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut packer = Packer::new(packing, level, &mut out).unwrap();
    packer.write_all(text).unwrap();
    packer.finish().unwrap();
    out
}

/// Returns the text, from one decoder and from members on three threads.
fn unpacked(packing: Packing, bytes: &[u8]) -> std::io::Result<Vec<u8>> {
    let one = unpacked_ahead(packing, bytes, Decompressors::default());
    let three = unpacked_ahead(packing, bytes, Decompressors::within(Some(96 << 20), 3));
    match (one, three) {
        (Ok(one), Ok(three)) => assert!(one == three, "{packing:?}"),
        (one, three) => {
            assert_eq!(one.is_ok(), three.is_ok(), "{packing:?}");
            return one;
        }
    }
    unpacked_ahead(packing, bytes, Decompressors::default())
}

fn unpacked_ahead(
    packing: Packing,
    bytes: &[u8],
    ahead: Decompressors,
) -> std::io::Result<Vec<u8>> {
    let mut text = Vec::new();
    let head = &bytes[..bytes.len().min(HEAD)];
    packing.reader(Box::new(Cursor::new(bytes.to_vec())), head, ahead)?.read_to_end(&mut text)?;
    Ok(text)
}

/// Returns members as bgzip writes them, of at most 60,000 bytes of text.
fn bgzip(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    for text in text.chunks(60_000).chain([&b""[..]]) {
        let builder = flate2::GzBuilder::new().extra(*b"BC\x02\0\0\0");
        let mut member = builder.write(Vec::new(), flate2::Compression::new(6));
        member.write_all(text).unwrap();
        let mut member = member.finish().unwrap();
        let length = u16::try_from(member.len() - 1).unwrap();
        member[16..18].copy_from_slice(&length.to_le_bytes());
        out.extend(member);
    }
    out
}

/// Returns frames as pzstd writes them, each behind a skippable frame with its length.
fn pzstd(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    for text in text.chunks(700_000) {
        let frame = packed(Packing::Zstd, 3, text);
        out.extend(b"\x50\x2a\x4d\x18\x04\0\0\0");
        out.extend(u32::try_from(frame.len()).unwrap().to_le_bytes());
        out.extend(frame);
    }
    out
}

fn text(length: usize) -> Vec<u8> {
    let mut state = 7u32;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        b'a' + (state >> 27) as u8 % 9
    };
    (0..length).map(|_| next()).collect()
}

#[test]
fn members_come_back() {
    for packing in Packing::ALL {
        for length in [0, 1, 10, 65_535, 65_536, 65_537, 300_000] {
            for level in [1, 6] {
                let text = text(length);
                let member = packed(packing, level, &text);
                if length > 0 || packing != Packing::Lz4 {
                    assert_eq!(Packing::of_magic(&member), Some(packing), "{length}");
                }
                assert!(unpacked(packing, &member).unwrap() == text, "{packing:?} {length}");
                let twice = [&member[..], &member].concat();
                let both = [&text[..], &text].concat();
                assert!(unpacked(packing, &twice).unwrap() == both, "{packing:?} {length} twice");
            }
        }
    }
}

#[test]
fn members_of_known_length_are_the_text() {
    let text = text(5_000_000);
    for (packing, whole) in [(Packing::Gzip, bgzip(&text)), (Packing::Zstd, pzstd(&text))] {
        assert_eq!(Packing::of_magic(&whole), Some(packing));
        assert!(Decompressors::within(Some(96 << 20), 3).is_useful());
        assert!(unpacked(packing, &whole).unwrap() == text, "{packing:?}");
        // Members of unknown length, and of one that is longer than expected.
        let more = [&whole[..], &packed(packing, 1, &text[..9]), &whole].concat();
        assert!(unpacked(packing, &more).unwrap() == [&text[..], &text[..9], &text].concat());
        for cut in [whole.len() - 1, whole.len() - 30, whole.len() / 2, whole.len() / 3] {
            let found = unpacked(packing, &whole[..cut]);
            assert!(found.is_err_and(|error| error.to_string().contains("cut short")), "{cut}");
        }
        for at in (40..whole.len()).step_by(whole.len() / 100) {
            let mut bytes = whole.clone();
            bytes[at] ^= 0x55;
            let ahead = Decompressors::within(Some(96 << 20), 3);
            if let Ok(found) = unpacked_ahead(packing, &bytes, ahead) {
                assert!(found == text, "{packing:?} flipped at {at}");
            }
        }
    }
    // A member with more text than bgzip permits, and a frame with more than the memory.
    let zeros = vec![b'0'; 40_000_000];
    let mut bomb = flate2::GzBuilder::new()
        .extra(*b"BC\x02\0\0\0")
        .write(Vec::new(), flate2::Compression::new(9));
    bomb.write_all(&zeros[..10_000_000]).unwrap();
    let mut bomb = bomb.finish().unwrap();
    let length = u16::try_from(bomb.len() - 1).unwrap();
    bomb[16..18].copy_from_slice(&length.to_le_bytes());
    assert!(unpacked(Packing::Gzip, &bomb).unwrap() == zeros[..10_000_000]);
    assert!(unpacked(Packing::Zstd, &packed(Packing::Zstd, 1, &zeros)).unwrap() == zeros);
}

#[test]
fn lengths_of_members_are_known_at_any_cut() {
    let text = text(300_000);
    for (packing, whole) in
        [(Packing::Gzip, bgzip(&text)), (Packing::Zstd, packed(Packing::Zstd, 3, &text))]
    {
        let Length::Known { bytes, text } = packing.member(&whole, usize::MAX) else { panic!() };
        assert!(text >= 60_000 && bytes <= whole.len());
        for cut in 0..bytes {
            assert_eq!(packing.member(&whole[..cut], usize::MAX), Length::Beyond, "{cut}");
        }
        assert_eq!(packing.member(&whole, 1000), Length::Unknown);
    }
    for other in [&b"\x1f\x8b\x08\0\0\0\0\0\0\0\0\0"[..], b"id,text,more\n"] {
        assert_eq!(Packing::Gzip.member(other, usize::MAX), Length::Unknown);
    }
    assert_eq!(Packing::Xz.member(b"", usize::MAX), Length::Unknown);
}

#[test]
fn a_member_does_not_depend_on_how_it_is_written() {
    let text = text(200_000);
    for packing in Packing::ALL {
        let whole = packed(packing, 2, &text);
        for piece in [1, 777, 70_000] {
            let mut out = Vec::new();
            let mut packer = Packer::new(packing, 2, &mut out).unwrap();
            for piece in text.chunks(piece) {
                packer.write_all(piece).unwrap();
                packer.flush().unwrap();
            }
            packer.finish().unwrap();
            assert!(out == whole, "{packing:?} {piece}");
        }
    }
}

#[test]
fn damage_is_an_error_and_no_panic() {
    let text = text(100_000);
    for packing in Packing::ALL {
        let whole = packed(packing, 3, &text);
        for cut in [12, 20, whole.len() / 2, whole.len() - 9, whole.len() - 1] {
            match unpacked(packing, &whole[..cut]) {
                Err(error) => assert!(error.to_string().contains(packing.name()), "{error}"),
                Ok(found) => panic!("{packing:?} cut at {cut}: {} bytes", found.len()),
            }
        }
        for at in (0..whole.len()).step_by(whole.len() / 200) {
            let mut bytes = whole.clone();
            bytes[at] ^= 0x55;
            // Some bytes of a header have no effect.
            if let Ok(found) = unpacked(packing, &bytes) {
                assert!(found == text || at < 32, "{packing:?} flipped at {at}");
            }
        }
        let garbage = [&whole[..], b"no member"].concat();
        assert!(unpacked(packing, &garbage).is_err(), "{packing:?} with garbage behind it");
    }
}

#[test]
fn a_file_cut_anywhere_is_cut_short() {
    for packing in Packing::ALL {
        let whole = packed(packing, 3, &text(3_000));
        for cut in 1..whole.len() {
            let Err(error) = unpacked(packing, &whole[..cut]) else {
                panic!("{packing:?} cut at {cut} of {}", whole.len())
            };
            assert!(error.to_string().contains(packing.name()), "{error}");
        }
    }
}

/// A killed writer leaves whole blocks without an end mark.
#[test]
fn frames_of_lz4_without_their_end_mark_are_cut_short() {
    use lz4_flex::frame::{BlockMode, BlockSize, FrameEncoder, FrameInfo};
    let text = text(200_000);
    for mode in [BlockMode::Independent, BlockMode::Linked] {
        for (checksum, size) in [(false, None), (true, Some(text.len() as u64))] {
            let info = FrameInfo::new()
                .block_size(BlockSize::Max64KB)
                .block_mode(mode)
                .content_checksum(checksum)
                .content_size(size);
            let mut frame = FrameEncoder::with_frame_info(info, Vec::new());
            frame.write_all(&text).unwrap();
            let frame = frame.finish().unwrap();
            assert!(unpacked(Packing::Lz4, &frame).unwrap() == text);
            let mut block = if size.is_some() { 15 } else { 7 };
            let mut blocks = 0;
            loop {
                let length = u32::from_le_bytes(frame[block..block + 4].try_into().unwrap());
                let cut = unpacked(Packing::Lz4, &frame[..block]).unwrap_err();
                assert!(cut.to_string().contains("cut short"), "{cut}");
                if length == 0 {
                    break;
                }
                block += 4 + (length & 0x7fff_ffff) as usize;
                blocks += 1;
            }
            assert!(blocks > 3);
            // A complete frame, followed by an incomplete one.
            let both = [&frame[..], &frame[..block]].concat();
            assert!(unpacked(Packing::Lz4, &both).is_err());
        }
    }
}

#[test]
fn zeros_behind_gzip_are_padding() {
    let member = packed(Packing::Gzip, 6, b"id\n1\n");
    for zeros in [1, 511, 200_000] {
        let padded = [&member[..], &vec![0; zeros]].concat();
        assert_eq!(unpacked(Packing::Gzip, &padded).unwrap(), b"id\n1\n");
        let garbage = [&padded[..], b"x"].concat();
        assert!(unpacked(Packing::Gzip, &garbage).is_err());
    }
}

#[test]
fn packings_are_told_by_magic_and_by_name() {
    for (name, expected) in [
        ("a.csv.gz", Some((Packing::Gzip, "a.csv"))),
        ("b/a.tsv.ZST", Some((Packing::Zstd, "b/a.tsv"))),
        ("a.bz2", Some((Packing::Bzip2, "a"))),
        ("a.json.xz", Some((Packing::Xz, "a.json"))),
        ("a.ndjson.lz4", Some((Packing::Lz4, "a.ndjson"))),
        ("a.csv", None),
        ("gz", None),
    ] {
        let found = Packing::of_path(Path::new(name));
        let expected = expected.map(|(packing, stem)| (packing, PathBuf::from(stem)));
        assert_eq!(found, expected, "{name}");
    }
    for text in [&b"BZh9,a\n1,2\n3,4\n"[..], b"\x1f", b"", b"id,v\n", b"BZh"] {
        assert_eq!(Packing::of_magic(text), None, "{text:?}");
    }
}

#[test]
fn windows_are_told_by_the_head() {
    let zstd = |level: i32, text: &[u8]| zstd::stream::encode_all(text, level).unwrap();
    let long = text(1 << 20);
    assert_eq!(zstd_window(&zstd(3, &long)[..HEAD]), Some(2 << 20));
    assert_eq!(zstd_window(&zstd::bulk::compress(&long, 3).unwrap()[..HEAD]), Some(1 << 20));
    assert_eq!(zstd_window(&zstd::bulk::compress(&long[..300], 3).unwrap()[..HEAD]), Some(300));
    assert_eq!(zstd_window(b"\x28\xb5\x2f\xfd"), None);
    let xz = packed(Packing::Xz, 6, &long);
    assert_eq!(xz_window(&xz[..HEAD]), Some(1 << 20));
    // The header of `xz -9`.
    let nine = b"\xfd7zXZ\0\0\x04\xe6\xd6\xb4\x46\x02\x00\x21\x01\x1c\x00";
    assert_eq!(xz_window(nine), Some(64 << 20));
    assert!(Packing::Xz.reader_bytes(nine, Decompressors::default()) > 64 << 20);
    assert!(Packing::Zstd.reader_bytes(&[], Decompressors::default()) < 10 << 20);
    // A window above the first member's is refused.
    let mut far = zstd::stream::write::Encoder::new(Vec::new(), 1).unwrap();
    far.window_log(25).unwrap();
    far.write_all(&long).unwrap();
    let far = far.finish().unwrap();
    assert!(unpacked(Packing::Zstd, &far).unwrap() == long);
    let later = [&zstd(1, b"id\n")[..], &far].concat();
    assert!(unpacked(Packing::Zstd, &later).is_err());
}
