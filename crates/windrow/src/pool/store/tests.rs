//! Extents: as written, or an error.

use std::os::unix::fs::FileExt;

use super::*;

fn store(max_bytes: u64, codec: Codec) -> (tempfile::TempDir, Store) {
    let directory = tempfile::tempdir().unwrap();
    let directories = vec![directory.path().to_path_buf()];
    let options = PoolOptions { directories, max_temp_bytes: max_bytes, codec };
    (directory, Store::new(options).unwrap())
}

#[test]
fn extents_come_back_as_written_and_leave_no_name() {
    for codec in [Codec::None, Codec::Lz4, Codec::Zstd] {
        let (directory, store) = store(u64::MAX, codec);
        let extents: Vec<Extent> =
            (0..20u8).map(|i| store.write(&vec![i; 5000 + i as usize]).unwrap()).collect();
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
        for (i, extent) in (0..20u8).zip(&extents) {
            let mut out = vec![0; extent.len()];
            store.read(extent, &mut out).unwrap();
            assert_eq!(out, vec![i; 5000 + i as usize]);
        }
    }
}

#[test]
fn freed_space_is_used_again_and_the_limit_is_kept() {
    let (_directory, store) = store(64 << 10, Codec::None);
    for _ in 0..100 {
        let first = store.write(&[1; 20_000]).unwrap();
        let second = store.write(&[2; 20_000]).unwrap();
        let mut out = vec![0; 20_000];
        store.read(&first, &mut out).unwrap();
        assert!(out.iter().all(|&byte| byte == 1));
        drop((first, second));
    }
    let held: Vec<_> = (0..3).map(|_| store.write(&[3; 20_000])).collect();
    assert!(held.iter().all(Result::is_ok));
    assert!(matches!(store.write(&[4; 20_000]), Err(Error::TempSpace { .. })));
}

#[test]
fn a_damaged_or_short_extent_is_corruption() {
    let (_directory, store) = store(u64::MAX, Codec::None);
    let extent = store.write(&[7; 10_000]).unwrap();
    let file = extent.file.raw();
    let mut out = vec![0; 10_000];
    for at in [0, 4_096, 9_999] {
        file.write_all_at(&[8], extent.offset + at).unwrap();
        assert!(matches!(store.read(&extent, &mut out), Err(Error::Corrupt { .. })));
        file.write_all_at(&[7], extent.offset + at).unwrap();
    }
    store.read(&extent, &mut out).unwrap();
    file.set_len(100).unwrap();
    assert!(matches!(store.read(&extent, &mut out), Err(Error::Corrupt { .. })));
}

#[test]
fn an_extent_read_from_another_place_is_corruption() {
    let (_directory, store) = store(u64::MAX, Codec::None);
    let extents: Vec<Extent> = (0..=FILES).map(|_| store.write(&[7; 4096]).unwrap()).collect();
    let [first, other_file, .., same_file] = &extents[..] else { unreachable!() };
    assert_eq!((first.offset, first.file.index), (other_file.offset, 0));
    assert_eq!((same_file.offset, same_file.file.index), (4096, 0));
    for misdirected in [other_file, same_file] {
        let extent = Extent {
            file: Arc::clone(&misdirected.file),
            offset: misdirected.offset,
            checksum: first.checksum,
            ..*first
        };
        let mut out = vec![0; 4096];
        assert!(matches!(store.read(&extent, &mut out), Err(Error::Corrupt { .. })));
        std::mem::forget(extent);
    }
}

#[test]
fn a_directory_without_room_is_passed_over() {
    let (broken, fine) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let directories = vec![broken.path().to_path_buf(), fine.path().to_path_buf()];
    let store = Store::new(PoolOptions { directories, ..PoolOptions::default() }).unwrap();
    broken.close().unwrap();
    let extents: Vec<Extent> = (0..10u8).map(|i| store.write(&[i; 5000]).unwrap()).collect();
    for (i, extent) in (0..10u8).zip(&extents) {
        assert!(extent.file.place(0).contains(fine.path().to_str().unwrap()));
        let mut out = vec![0; 5000];
        store.read(extent, &mut out).unwrap();
        assert_eq!(out, [i; 5000]);
    }
    fine.close().unwrap();
    store.write(&[1; 5000]).unwrap();
}
