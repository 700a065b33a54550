//! Spines written out and read back: the same, or an error.

use std::fs;
use std::path::{Path, PathBuf};

use proptest::prelude::*;

use super::cursors::spilling;
use super::spines::seen;
use super::*;
use crate::spine::Spine;
use windrow_rows::{Antichain, Error};

fn spine_of(keys: Keys, pool: &Pool, rounds: &[Vec<Change>]) -> (Spine, u64) {
    let layout = keys.layout();
    let mut spine = Spine::new(&layout, pool).unwrap();
    let mut batcher = Batcher::new(&layout, pool);
    let upper = inserted(keys, &mut spine, &mut batcher, rounds, 0);
    (spine, upper)
}

/// Inserts a batch for each round, the times of which begin at `upper`. Returns the new upper end.
fn inserted(
    keys: Keys,
    spine: &mut Spine,
    batcher: &mut Batcher,
    rounds: &[Vec<Change>],
    mut upper: u64,
) -> u64 {
    for changes in rounds {
        let changes: Vec<Change> =
            changes.iter().map(|&(k, v, t, d)| (k, v, upper + t, d)).collect();
        upper += 4;
        batcher.push(&keys.record_batch(&changes)).unwrap();
        spine.insert(batcher.seal(&Antichain::at(upper)).unwrap()).unwrap();
    }
    upper
}

fn rounds() -> impl Strategy<Value = Vec<Vec<Change>>> {
    let change = (0..40u64, 0..3u64, 0..4u64, -2..3i64);
    prop::collection::vec(prop::collection::vec(change, 0..60), 0..12)
}

fn files(directory: &Path) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> =
        fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(30))]

    /// Saves while merges run, and their inputs make way for parts of their output.
    #[test]
    fn a_later_save_writes_what_is_new(
        rounds in prop::collection::vec((rounds(), 0..60i64), 1..8),
        chunk in 60usize..300,
        opens in any::<bool>(),
    ) {
        let (keys, pool) = (Keys::Numbers, tiny(chunk));
        let directories = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        let (mut spine, mut upper) = spine_of(keys, &pool, &[]);
        let mut batcher = Batcher::new(&keys.layout(), &pool);
        for (number, (rounds, fuel)) in rounds.into_iter().enumerate() {
            upper = inserted(keys, &mut spine, &mut batcher, &rounds, upper);
            spine.work(&mut fuel.clone()).unwrap();
            // Mostly to the same directory.
            let directory = directories[usize::from(number % 4 == 3)].path();
            let saved = |directory: &Path| -> Vec<(PathBuf, Vec<u8>)> {
                files(directory).into_iter().map(|path| (path.clone(), fs::read(path).unwrap())).collect()
            };
            spine.save(directory).unwrap();
            let (first, expected) = (saved(directory), seen(keys, spine.cursor().unwrap(), spine.since()));
            spine.save(directory).unwrap();
            let is_manifest = |path: &Path| path.ends_with("MANIFEST");
            for ((path, bytes), (again, same)) in first.iter().zip(saved(directory)) {
                prop_assert_eq!(path, &again);
                prop_assert!(is_manifest(path) || *bytes == same);
            }
            let opened = Spine::<u64>::open(directory, &pool).unwrap();
            prop_assert_eq!(opened.upper(), spine.upper());
            prop_assert_eq!(seen(keys, opened.cursor().unwrap(), spine.since()), expected);
            if opens {
                spine = opened;
            }
        }
    }

    #[test]
    fn what_is_saved_comes_back(
        rounds in rounds(),
        since in 0..40u64,
        fuel in 0..100i64,
        chunk in 60usize..1500,
        keys in prop::sample::select(&ALL_KEYS[..]),
        spills in any::<bool>(),
    ) {
        let pool = if spills { spilling(chunk) } else { tiny(chunk) };
        let directory = tempfile::tempdir().unwrap();
        let (mut spine, upper) = spine_of(keys, &pool, &rounds);
        spine.set_since(&Antichain::at(since.min(upper))).unwrap();
        spine.work(&mut fuel.clone()).unwrap();
        let since = spine.since().clone();
        let expected = seen(keys, spine.cursor().unwrap(), &since);
        // Over an older state, which must vanish.
        for _ in 0..2 {
            spine.save(directory.path()).unwrap();
        }
        prop_assert_eq!(files(directory.path()).len(), spine.batches().count() + 1);
        let mut opened = Spine::<u64>::open(directory.path(), &pool).unwrap();
        prop_assert_eq!((opened.since(), opened.upper()), (&since, spine.upper()));
        prop_assert_eq!(seen(keys, opened.cursor().unwrap(), &since), expected.clone());
        // The opened spine accepts inserts.
        let layout = keys.layout();
        let mut batcher = Batcher::new(&layout, &pool);
        drop(batcher.seal(spine.upper()).unwrap());
        batcher.push(&keys.record_batch(&[(41, 1, upper, 1)])).unwrap();
        opened.insert(batcher.seal(&Antichain::at(upper + 1)).unwrap()).unwrap();
        while !opened.work(&mut 30).unwrap() {}
        let mut expected = expected;
        let time = since.advance(upper).unwrap();
        expected.insert((keys.text(41), 1, time), 1);
        prop_assert_eq!(seen(keys, opened.cursor().unwrap(), &since), expected);
    }
}

#[test]
fn damage_is_an_error() {
    let (keys, pool) = (Keys::Texts, tiny(500));
    let directory = tempfile::tempdir().unwrap();
    let changes: Vec<Change> = (0..20).map(|n| (n, 1, n % 4, 1)).collect();
    let (spine, _) = spine_of(keys, &pool, &[changes.clone(), changes]);
    spine.save(directory.path()).unwrap();
    for path in files(directory.path()) {
        let whole = fs::read(&path).unwrap();
        for at in 0..whole.len() {
            let mut damaged = whole.clone();
            damaged[at] ^= 1 << (at % 8);
            fs::write(&path, &damaged).unwrap();
            let found = Spine::<u64>::open(directory.path(), &pool).map(drop);
            assert!(matches!(found, Err(Error::Corrupt { .. })), "{path:?} {at}: {found:?}");
        }
        for len in [0, 1, whole.len() / 2, whole.len() - 1] {
            fs::write(&path, &whole[..len]).unwrap();
            let found = Spine::<u64>::open(directory.path(), &pool).map(drop);
            assert!(matches!(found, Err(Error::Corrupt { .. })), "{path:?} {len}: {found:?}");
        }
        fs::remove_file(&path).unwrap();
        let found = Spine::<u64>::open(directory.path(), &pool).map(drop);
        assert!(matches!(found, Err(Error::Io { .. })), "{found:?}");
        fs::write(&path, &whole).unwrap();
    }
    assert!(Spine::<u64>::open(directory.path(), &pool).is_ok());
    let signed = Spine::<i64>::open(directory.path(), &pool).map(drop);
    assert!(matches!(signed, Err(Error::UnsupportedColumn { .. })), "{signed:?}");
}

#[test]
fn a_save_that_was_cut_off_leaves_the_last_state() {
    let (keys, pool) = (Keys::Numbers, Pool::unlimited());
    let directory = tempfile::tempdir().unwrap();
    let (spine, _) = spine_of(keys, &pool, &[vec![(1, 1, 0, 1)]]);
    spine.save(directory.path()).unwrap();
    let before = seen(keys, spine.cursor().unwrap(), &Antichain::least());
    let (more, _) = spine_of(keys, &pool, &[vec![(1, 1, 0, 1)], vec![(2, 2, 0, 1)]]);
    // A directory blocks the file of the new manifest.
    let unfinished = directory.path().join(".MANIFEST.tmp");
    fs::create_dir(&unfinished).unwrap();
    assert!(matches!(more.save(directory.path()), Err(Error::Io { .. })));
    let opened = Spine::<u64>::open(directory.path(), &pool).unwrap();
    assert_eq!(seen(keys, opened.cursor().unwrap(), &Antichain::least()), before);
    fs::remove_dir(&unfinished).unwrap();
    more.save(directory.path()).unwrap();
    let opened = Spine::<u64>::open(directory.path(), &pool).unwrap();
    let after = seen(keys, more.cursor().unwrap(), &Antichain::least());
    assert_eq!(seen(keys, opened.cursor().unwrap(), &Antichain::least()), after);
    assert_eq!(files(directory.path()).len(), more.batches().count() + 1);
}
