//! Extents are read back as written, or as an error, on media with every kind of fault.

use std::collections::BTreeSet;
use std::io;
use std::sync::Mutex;

use super::*;

/// To a file, uncompressed.
const RAW: (SpillTo, Codec) = (SpillTo::Disk, Codec::None);

fn store(max_temp_bytes: u64) -> (tempfile::TempDir, Store) {
    let directory = tempfile::tempdir().unwrap();
    let options = PoolOptions::new().directories([directory.path()]).max_temp_bytes(max_temp_bytes);
    (directory, Store::new(options, &Budget::unlimited(), 1 << 20).unwrap())
}

fn read(store: &Store, extent: &Extent) -> Result<Vec<u8>> {
    let mut out = vec![0; extent.len()];
    store.read(extent, &mut out).map(|()| out)
}

/// A fault of a [`Shaky`] medium.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fault {
    None,
    /// At most so many blocks; discarding a range frees its blocks.
    Full(usize),
    /// Writing fails.
    Write,
    /// Reading fails.
    Read,
    /// The byte at this position is flipped.
    Flip(u64),
    /// Reads return the bytes this far further on.
    Misdirect(u64),
    /// The last bytes written are missing.
    Cut(usize),
}

/// Bytes in memory, a fault, and the taken blocks.
#[derive(Clone, Debug)]
struct Shaky(Arc<Mutex<Inside>>);

type Inside = (Vec<u8>, Fault, BTreeSet<u64>);

impl Shaky {
    fn new() -> Self {
        Self(Arc::new(Mutex::new((Vec::new(), Fault::None, BTreeSet::new()))))
    }

    fn fault(&self, fault: Fault) {
        self.0.lock().unwrap().1 = fault;
    }
}

impl Medium for Shaky {
    fn name(&self) -> String {
        "shaky".to_owned()
    }

    fn make(&self) -> io::Result<()> {
        Ok(())
    }

    fn write(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let (data, fault, blocks) = &mut *self.0.lock().unwrap();
        let more = blocks_of(offset, bytes.len() as u64);
        match fault {
            Fault::Full(room) if blocks.union(&more).count() > *room => {
                return Err(io::ErrorKind::StorageFull.into());
            }
            Fault::Write => return Err(io::Error::from_raw_os_error(5)),
            _ => blocks.extend(more),
        }
        let end = offset as usize + bytes.len();
        data.resize(data.len().max(end), 0);
        data[offset as usize..end].copy_from_slice(bytes);
        Ok(())
    }

    fn read(&self, out: &mut [u8], offset: u64) -> io::Result<()> {
        let (data, fault, _) = &*self.0.lock().unwrap();
        let mut data = data.clone();
        let mut offset = offset;
        match *fault {
            Fault::Read => return Err(io::Error::from_raw_os_error(5)),
            Fault::Flip(at) => data[at as usize] ^= 1,
            Fault::Misdirect(by) => offset += by,
            Fault::Cut(by) => data.truncate(data.len() - by),
            _ => {}
        }
        let source = data.get(offset as usize..offset as usize + out.len());
        out.copy_from_slice(source.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }

    fn prefetch(&self, _offset: u64, _length: usize) {}

    fn is_memory(&self) -> bool {
        false
    }

    fn discard(&self, offset: u64, length: u64) -> bool {
        let (_, _, blocks) = &mut *self.0.lock().unwrap();
        let freed = blocks_of(offset, length);
        blocks.retain(|block| !freed.contains(block));
        true
    }
}

fn blocks_of(offset: u64, length: u64) -> BTreeSet<u64> {
    (offset / BLOCK..(offset + length).div_ceil(BLOCK)).collect()
}

/// Returns a store of shaky media only.
fn shaky(volumes: usize) -> (Vec<Shaky>, Store) {
    let media: Vec<Shaky> = (0..volumes).map(|_| Shaky::new()).collect();
    let boxed = |medium: &Shaky| Box::new(medium.clone()) as Box<dyn Medium>;
    let media_of = media.iter().map(boxed).collect();
    let store = Store::of_media(media_of, Vec::new(), u64::MAX, &Budget::unlimited(), 1 << 20);
    (media, store)
}

#[test]
fn extents_come_back_as_written_and_leave_no_name() {
    for to in [SpillTo::Disk, SpillTo::Memory] {
        for codec in [Codec::None, Codec::Lz4, Codec::Zstd] {
            let (directory, store) = store(u64::MAX);
            let extents: Vec<Extent> = (0..20u8)
                .map(|i| store.write(&vec![i; 5000 + i as usize], (to, codec), false).unwrap())
                .collect();
            assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
            for (i, extent) in (0..20u8).zip(&extents) {
                assert_eq!(read(&store, extent).unwrap(), vec![i; 5000 + i as usize]);
            }
        }
    }
}

#[test]
fn codec_and_place_change_while_extents_are_out() {
    let (_directory, store) = store(u64::MAX);
    let mut extents = Vec::new();
    for to in [SpillTo::Disk, SpillTo::Memory] {
        for codec in [Codec::None, Codec::Lz4, Codec::Zstd] {
            extents.push(store.write(&[7; 9000], (to, codec), false).unwrap());
            for extent in &extents {
                assert_eq!(read(&store, extent).unwrap(), [7; 9000]);
            }
        }
    }
}

#[test]
fn freed_space_is_used_again_and_the_limit_is_kept() {
    for to in [SpillTo::Disk, SpillTo::Memory] {
        let (_directory, store) = store(64 << 10);
        for _ in 0..100 {
            let first = store.write(&[1; 20_000], (to, Codec::None), false).unwrap();
            let second = store.write(&[2; 20_000], (to, Codec::None), false).unwrap();
            assert_eq!(read(&store, &first).unwrap(), [1; 20_000]);
            drop((first, second));
        }
        let held: Vec<_> =
            (0..3).map(|_| store.write(&[3; 20_000], (to, Codec::None), false)).collect();
        assert!(held.iter().all(Result::is_ok));
        assert!(matches!(
            store.write(&[4; 20_000], (to, Codec::None), false),
            Err(Error::TempSpace { .. })
        ));
        assert!(store.size() <= 64 << 10);
    }
}

#[test]
fn a_byte_that_is_not_as_written_is_corruption_wherever_it_is() {
    for in_parts in [false, true] {
        let (media, store) = shaky(1);
        let extents: Vec<Extent> =
            (0..3).map(|i| store.write(&[i; 5000], RAW, in_parts).unwrap()).collect();
        for position in (0..5000).step_by(7).chain([4999]) {
            media[0].fault(Fault::Flip(extents[1].offset + position));
            let Err(Error::Corrupt { place, message }) = read(&store, &extents[1]) else {
                panic!("a flipped byte at {position} was not noticed");
            };
            let offset = extents[1].offset + if in_parts { position & !(BLOCK - 1) } else { 0 };
            assert!(place.contains("shaky") && place.contains(&offset.to_string()));
            assert!(message.contains("expected checksum"));
            assert!(read(&store, &extents[0]).is_ok() && read(&store, &extents[2]).is_ok());
        }
    }
}

#[test]
fn parts_are_as_written_whatever_else_is_damaged() {
    let (media, store) = shaky(1);
    let bytes: Vec<u8> = (0..10_000u32).map(|at| (at * 7919 / 32) as u8).collect();
    let before = store.write(&[1; 9000], RAW, false).unwrap();
    let extent = store.write(&bytes, RAW, true).unwrap();
    assert!(extent.has_parts() && !before.has_parts());
    assert!(!store.write(&[7; 9000], (SpillTo::Disk, Codec::Lz4), true).unwrap().has_parts());
    store.release_scratch();
    assert_eq!(read(&store, &extent).unwrap(), bytes);
    media[0].fault(Fault::Flip(extent.offset + 5000));
    for range in [0..1, 0..4096, 8192..10_000, 9999..10_000, 100..100] {
        let part = store.read_part(&extent, range.clone()).unwrap();
        assert_eq!(&part[..], &bytes[range]);
    }
    for range in [0..4097, 4096..4097, 5000..5001, 8191..8192, 0..10_000] {
        assert!(matches!(store.read_part(&extent, range), Err(Error::Corrupt { .. })));
    }
    for fault in [Fault::Misdirect(4096), Fault::Cut(9000)] {
        media[0].fault(fault);
        assert!(matches!(store.read_part(&extent, 0..9999), Err(Error::Corrupt { .. })));
    }
    media[0].fault(Fault::None);
    assert_eq!(&store.read_part(&extent, 4000..9000).unwrap()[..], &bytes[4000..9000]);
    assert_eq!(store.budget.used(), 0, "parts give back what they had");
}

#[test]
fn a_damaged_compressed_extent_is_corruption() {
    for codec in [Codec::Lz4, Codec::Zstd] {
        let (media, store) = shaky(1);
        let extent = store.write(&[9; 5000], (SpillTo::Disk, codec), false).unwrap();
        for position in 0..extent.stored_len as u64 {
            media[0].fault(Fault::Flip(position));
            assert!(matches!(read(&store, &extent), Err(Error::Corrupt { .. })));
        }
    }
}

#[test]
fn an_extent_read_from_another_place_is_corruption() {
    let (media, store) = shaky(2);
    let extents: Vec<Extent> =
        [7, 7, 8].map(|i| store.write(&[i; 4096], RAW, false).unwrap()).into();
    media[0].fault(Fault::Misdirect(4096));
    assert!(matches!(read(&store, &extents[0]), Err(Error::Corrupt { .. })));
    // The same position on the other volume.
    let (volume, checksums) = (Arc::clone(&extents[1].volume), extents[0].checksums.clone());
    let other = Extent { volume, checksums, ..extents[0] };
    assert_eq!(other.offset, extents[1].offset);
    assert!(matches!(read(&store, &other), Err(Error::Corrupt { .. })));
    std::mem::forget(other);
}

#[test]
fn a_medium_that_ends_early_is_corruption_and_one_that_fails_says_so() {
    let (media, store) = shaky(1);
    let extent = store.write(&[7; 4096], RAW, false).unwrap();
    media[0].fault(Fault::Cut(1));
    assert!(matches!(read(&store, &extent), Err(Error::Corrupt { .. })));
    media[0].fault(Fault::Read);
    let Err(Error::Io { context, .. }) = read(&store, &extent) else { panic!("read") };
    assert!(context.contains("reading") && context.contains("shaky"));
    media[0].fault(Fault::Write);
    let Err(Error::Io { context, .. }) = store.write(&[1; 10], RAW, false) else {
        panic!("written")
    };
    assert!(context.contains("writing"));
    media[0].fault(Fault::None);
    assert_eq!(read(&store, &extent).unwrap(), [7; 4096]);
    // A failed write takes no space.
    let size = store.size();
    drop(store.write(&[1; 4096], RAW, false).unwrap());
    assert_eq!(store.size(), size);
}

#[test]
fn a_full_disk_gets_back_what_is_free_then_another_is_used() {
    let (media, store) = shaky(2);
    let first = store.write(&[1; 4096], RAW, false).unwrap();
    let second = store.write(&[2; 4096], RAW, false).unwrap();
    drop(first);
    // Two blocks do not fit beside the free block, but fit in its place.
    media.iter().for_each(|medium| medium.fault(Fault::Full(2)));
    let third = store.write(&[3; 8192], RAW, false).unwrap();
    assert_eq!((third.volume.index, third.offset), (0, 4096));
    assert!(matches!(store.write(&[4; 8192], RAW, false), Err(Error::TempSpace { .. })));
    media[1].fault(Fault::None);
    let fourth = store.write(&[4; 8192], RAW, false).unwrap();
    assert_eq!(fourth.volume.index, 1);
    for (value, extent) in [(2, &second), (3, &third), (4, &fourth)] {
        assert_eq!(read(&store, extent).unwrap(), vec![value; extent.len()]);
    }
}

#[test]
fn a_directory_without_room_is_passed_over() {
    let (broken, fine) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let directories = vec![broken.path().to_path_buf(), fine.path().to_path_buf()];
    let store =
        Store::new(PoolOptions::new().directories(directories), &Budget::unlimited(), 1 << 20)
            .unwrap();
    broken.close().unwrap();
    let extents: Vec<Extent> =
        (0..10u8).map(|i| store.write(&[i; 5000], RAW, false).unwrap()).collect();
    for (i, extent) in (0..10u8).zip(&extents) {
        assert!(extent.volume.place(0).contains(fine.path().to_str().unwrap()));
        assert_eq!(read(&store, extent).unwrap(), [i; 5000]);
    }
    // Files that are open stay usable without their directory.
    fine.close().unwrap();
    assert_eq!(read(&store, &store.write(&[1; 5000], RAW, false).unwrap()).unwrap(), [1; 5000]);
}
