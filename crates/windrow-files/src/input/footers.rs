//! A cache of the footers of Parquet files, with the page profiles found while planning.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use super::parquet::Footer;
use super::profile::Profile;

/// Maximum number of cached footers: one for each reading thread, and some more for a merge of few
/// files.
const CACHED: usize = 8;

/// A footer, and the profiles of its row groups.
#[derive(Clone)]
pub(super) struct Known {
    pub(super) footer: Footer,
    /// Profile of each row group whose pages were all examined. The profiles together have at most
    /// as many steps as [planning](super::profile::Allowance::to_plan) may examine pages.
    pub(super) profiles: Arc<[Option<Profile>]>,
}

/// Files used last, by their ordinals.
#[derive(Default)]
pub(super) struct FooterCache(Mutex<VecDeque<(usize, Known)>>);

impl FooterCache {
    pub(super) fn get(&self, file: usize) -> Option<Known> {
        let mut files = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let place = files.iter().position(|(key, _)| *key == file)?;
        let found = files.remove(place)?;
        let known = found.1.clone();
        files.push_back(found);
        Some(known)
    }

    pub(super) fn put(&self, file: usize, known: Known) {
        let mut files = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        files.retain(|(key, _)| *key != file);
        if files.len() == CACHED {
            files.pop_front();
        }
        files.push_back((file, known));
    }
}
