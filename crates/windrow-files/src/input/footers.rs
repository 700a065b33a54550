//! The footers of the Parquet files that are being read, with what planning has found out of their pages.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use super::parquet::Footer;
use super::profile::Profile;

/// Footers kept: one for each of the threads that read, and some more for a merge of few files.
const CACHED: usize = 8;

/// What is known of a file.
#[derive(Clone)]
pub(super) struct Known {
    pub(super) footer: Footer,
    /// Of each row group, where all of its pages were looked at. There are at most as many steps in them as
    /// [planning](super::profile::Allowance::to_plan) may look at pages.
    pub(super) profiles: Arc<[Option<Profile>]>,
}

/// The files used last, by their ordinal.
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
