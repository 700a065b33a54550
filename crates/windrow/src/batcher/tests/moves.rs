//! Moves of a cursor, and of a position in a map of maps; moves that fail.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::cursors::Shown;
use super::{Change, Keys};
use crate::cursor::Cursor;
use windrow_pool::{Budget, ForceSpill, Pool, PoolOptions};
use windrow_rows::Result;

/// A move of a cursor.
#[derive(Clone, Debug)]
pub(super) enum Move {
    SeekKey(u64),
    FindKey(u64),
    StepKey,
    RewindKeys,
    SeekValue(u64),
    StepValue,
    RewindValues,
    MapChanges,
    SeekKeyBack(u64),
    StepKeyBack,
    FastForwardKeys,
    SeekValueBack(u64),
    StepValueBack,
    FastForwardValues,
}

pub(super) fn moves() -> impl Strategy<Value = Vec<Move>> {
    let each = prop_oneof![
        3 => (0..32u64).prop_map(Move::SeekKey),
        3 => (0..32u64).prop_map(Move::FindKey),
        3 => Just(Move::StepKey),
        1 => Just(Move::RewindKeys),
        3 => (0..5u64).prop_map(Move::SeekValue),
        4 => Just(Move::StepValue),
        2 => Just(Move::RewindValues),
        2 => Just(Move::MapChanges),
        3 => (0..32u64).prop_map(Move::SeekKeyBack),
        4 => Just(Move::StepKeyBack),
        1 => Just(Move::FastForwardKeys),
        3 => (0..5u64).prop_map(Move::SeekValueBack),
        4 => Just(Move::StepValueBack),
        2 => Just(Move::FastForwardValues),
    ];
    prop::collection::vec(each, 1..60)
}

/// What a move returns: whether a key was found, and changes of the key.
type Found = (Option<bool>, Vec<(u64, u64, i64)>);

impl Move {
    pub(super) fn go(&self, keys: Keys, cursor: &mut Cursor) -> Found {
        let (mut key_found, mut changes) = (None, Vec::new());
        match *self {
            Self::SeekKey(key) => cursor.seek_key(&keys.key_bytes(key)),
            Self::FindKey(key) => {
                cursor.find_key(&keys.key_bytes(key)).map(|found| key_found = Some(found))
            }
            Self::StepKey => cursor.step_key(),
            Self::RewindKeys => cursor.rewind_keys(),
            Self::SeekValue(value) => cursor.seek_value(&value.to_be_bytes()),
            Self::StepValue => cursor.step_value(),
            Self::RewindValues => cursor.rewind_values(),
            Self::MapChanges => cursor.map_changes(|value, time, diff: i64| {
                changes.push((u64::from_be_bytes(value.try_into().unwrap()), time, diff));
            }),
            Self::SeekKeyBack(key) => cursor.seek_key_back(&keys.key_bytes(key)),
            Self::StepKeyBack => cursor.step_key_back(),
            Self::FastForwardKeys => cursor.fast_forward_keys(),
            Self::SeekValueBack(value) => cursor.seek_value_back(&value.to_be_bytes()),
            Self::StepValueBack => cursor.step_value_back(),
            Self::FastForwardValues => cursor.fast_forward_values(),
        }
        .unwrap();
        changes.sort_unstable();
        (key_found, changes)
    }
}

/// The position of a cursor that shows the map.
pub(super) struct Position<'a> {
    keys: Keys,
    shown: &'a Shown,
    all: Vec<&'a String>,
    key: usize,
    /// The number of the value, from 1 on: 0 is before the first one.
    value: usize,
}

impl<'a> Position<'a> {
    pub(super) fn new(keys: Keys, shown: &'a Shown) -> Self {
        Self { keys, shown, all: shown.keys().collect(), key: 0, value: 1 }
    }

    pub(super) fn key(&self) -> Option<&'a String> {
        self.all.get(self.key).copied()
    }

    /// Returns the value with its times and diffs.
    pub(super) fn value(&self) -> Option<(&'a u64, &'a Vec<(u64, i64)>)> {
        self.values()?.iter().nth(self.value.checked_sub(1)?)
    }

    fn values(&self) -> Option<&'a BTreeMap<u64, Vec<(u64, i64)>>> {
        self.key().map(|key| &self.shown[key])
    }

    pub(super) fn go(&mut self, step: &Move) -> Found {
        let (keys, all, end) = (self.keys, &self.all, self.values().map_or(0, BTreeMap::len) + 1);
        let before = |key: usize| key.checked_sub(1).unwrap_or(all.len());
        let key = match *step {
            Move::SeekKey(key) => all.partition_point(|other| **other < keys.text(key)),
            Move::FindKey(key) => {
                let there = all.iter().position(|other| **other == keys.text(key));
                (self.key, self.value) = (there.unwrap_or(all.len()), 1);
                return (Some(there.is_some()), Vec::new());
            }
            Move::StepKey => (self.key + 1).min(all.len()),
            Move::RewindKeys => 0,
            Move::SeekKeyBack(key) => {
                before(all.partition_point(|other| **other <= keys.text(key)))
            }
            Move::StepKeyBack if self.key == all.len() => self.key,
            Move::StepKeyBack => before(self.key),
            Move::FastForwardKeys => before(all.len()),
            _ => return self.go_to_value(step, end),
        };
        (self.key, self.value) = (key, 1);
        (None, Vec::new())
    }

    /// Moves within a key, whose last value has the number before `end`.
    fn go_to_value(&mut self, step: &Move, end: usize) -> Found {
        let values = self.values();
        let mut changes = Vec::new();
        self.value = match *step {
            Move::SeekValue(value) => values.map_or(0, |values| values.range(..value).count()) + 1,
            Move::StepValue => (self.value + 1).min(end),
            Move::RewindValues => 1,
            Move::SeekValueBack(value) => values.map_or(0, |all| all.range(..=value).count()),
            Move::StepValueBack => self.value.saturating_sub(1),
            Move::FastForwardValues => end - 1,
            _ => {
                changes.extend(values.into_iter().flatten().flat_map(|(&value, times)| {
                    times.iter().map(move |&(time, diff)| (value, time, diff))
                }));
                end
            }
        };
        (None, changes)
    }
}

/// Moves within a key from its first value, or from its last one, whose rows can no longer be read.
#[test]
fn without_the_rows_there_is_no_key() {
    type Step = fn(&mut Cursor) -> Result<()>;
    let steps: [(bool, Step); 6] = [
        (false, Cursor::step_value),
        (false, |cursor| cursor.seek_value(&150u64.to_be_bytes())),
        (false, Cursor::fast_forward_values),
        (true, Cursor::step_value_back),
        (true, |cursor| cursor.seek_value_back(&50u64.to_be_bytes())),
        (true, Cursor::rewind_values),
    ];
    for (from_last, step) in steps {
        let directory = tempfile::tempdir().unwrap();
        // No thread reads ahead.
        let options =
            PoolOptions::new().directories([directory.path()]).policy(ForceSpill).spill_threads(0);
        let pool = Pool::with_chunks(Budget::unlimited(), options, 200, 200).unwrap().for_index();
        let changes: Vec<Change> = (0..200).map(|at| (7, at * 37 % 200, 0, 1)).collect();
        let batches = [&changes[..], &changes[..100]].map(|rows| Keys::Numbers.sealed(&pool, rows));
        let mut cursor = Cursor::new(&batches).unwrap();
        if from_last {
            cursor.fast_forward_values().unwrap();
        }
        // What was read leaves.
        pool.set_limit(1).unwrap();
        assert!(pool.stats().spills > 50);
        for entry in std::fs::read_dir("/proc/self/fd").unwrap() {
            let path = entry.unwrap().path();
            if std::fs::read_link(&path).is_ok_and(|target| target.starts_with(directory.path())) {
                std::fs::File::options().write(true).open(path).unwrap().set_len(0).unwrap();
            }
        }
        let failed = (0..200).any(|_| step(&mut cursor).is_err());
        assert!(failed && !cursor.has_key() && !cursor.has_value());
        assert_eq!((cursor.key(), cursor.value()), (None, None));
        cursor.step_key().unwrap();
        cursor.seek_value(&[]).unwrap();
        cursor.step_value_back().unwrap();
        assert!(!cursor.has_value());
    }
}
