//! Sampling for range partitions: an extra pass over the inputs before the job.

use super::ingest::side_by_side;
use super::source::{Step, Units};
use crate::error::{Error, Result};
use crate::input::Inputs;
use crate::lock::{lock, unlocked};
use crate::partition::Ids;
use crate::watch::Watch;

/// Determines the ranges of `ids`, if needed.
pub(super) fn sample(inputs: &Inputs, ids: &Ids, readers: usize, watch: &Watch) -> Result<()> {
    let Some(mut sample) = ids.sample()? else { return Ok(()) };
    if let Some(file) = inputs.files().iter().find(|file| file.bytes.is_none()) {
        return Err(Error::usage(format!(
            "`range`: {} is a stream, and finding ranges needs to read it twice; give them with \
             `range_at`, or name a file",
            file.name
        )));
    }
    let units = Units::new(inputs, watch);
    let drawn = std::sync::Mutex::new(Vec::new());
    let work = || -> Result<()> {
        let Some(mut sample) = ids.sample()? else { return Ok(()) };
        let mut reader = units.reader();
        while let Some(step) = reader.next()? {
            watch.pause()?;
            let Step::Rows(batch, place) = step else { continue };
            sample.push(&ids.prepared(&inputs.selected(batch)?.0)?, place)?;
        }
        lock(&drawn).push(sample);
        Ok(())
    };
    side_by_side(std::iter::repeat_n(work, readers))?;
    for other in unlocked(drawn) {
        sample.merge(other);
    }
    ids.cut(sample)
}
