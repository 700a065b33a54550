//! Changes to the plan after a reader meets a row longer than planned.
//!
//! ```text
//! reader: a row of 20 MB --> admits? --> less for rows from now on; all threads hand over what they hold
//!                               \-----> MemoryFloor, with a limit that is enough
//! after reading: --> choose once more, by the longest row met: who writes, and how
//! ```

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use windrow::{Pool, Pusher};

use super::plan::{Costs, Plan, Planned, enough_for};
use crate::error::Result;
use crate::lock::lock;
use crate::longest::{Longest, Need};

/// Maximum wait for other threads to release memory. Their current work may take longer.
const PATIENCE: Duration = Duration::from_secs(2);

/// The costs of a running job.
pub(super) struct Met {
    planned: Planned,
    /// Whether the job can start again.
    repeats: bool,
    /// Costs, with the longest row so far.
    costs: Mutex<Costs>,
    /// The plan for a restart.
    again: Mutex<Option<Planned>>,
}

impl Met {
    pub(super) fn new(planned: &Planned, repeats: bool) -> Arc<Self> {
        Arc::new(Self {
            planned: planned.clone(),
            repeats,
            costs: Mutex::new(planned.costs.clone()),
            again: Mutex::default(),
        })
    }

    /// Takes the plan for a restart, if the job ended for one.
    pub(super) fn again(&self) -> Option<Planned> {
        lock(&self.again).take()
    }

    /// Returns the limit of row lengths. Admitting a longer row shrinks the budget of `pool`.
    pub(super) fn longest(self: &Arc<Self>, pool: &Pool) -> Longest {
        if self.planned.terms.limit.is_none() {
            return Longest::default();
        }
        let (met, pool) = (Arc::clone(self), pool.clone());
        let decide = move |row: u64| met.admit(row, &pool);
        Longest::new(self.planned.costs.longest(), Box::new(decide))
    }

    fn admit(&self, row: u64, pool: &Pool) -> Result<u64, Need> {
        let Planned { costs: known, terms, plan, began } = &self.planned;
        let mut met = lock(&self.costs);
        let bytes = usize::try_from(row).unwrap_or(usize::MAX);
        // A margin of an eighth avoids a decision for each of many slowly growing rows.
        for bytes in [bytes.saturating_add(bytes / 8), bytes] {
            let costs = met.longer(bytes);
            if let Some(budget) = plan.admits(&costs, terms) {
                let budget = budget.min(pool.budget().limit());
                pool.budget().set_limit(budget);
                *met = costs;
                return Ok(met.longest() as u64);
            }
        }
        let costs = met.longer(bytes.saturating_add(bytes / 8));
        let limit = terms.limit.unwrap_or(u64::MAX);
        let enough = match Plan::choose(&costs, terms) {
            _ if !self.repeats => enough_for(known, &costs, terms),
            Err(floor) => floor.named(&costs),
            Ok(plan) => {
                let enough = plan.floor;
                let again = Planned { costs, terms: *terms, plan, began: *began };
                *lock(&self.again) = Some(again);
                enough
            }
        };
        Err(Need { row, enough, limit })
    }

    /// Returns the plan for the phase after reading.
    ///
    /// # Errors
    /// `MemoryFloor`, if the longest row so far does not fit the limit.
    pub(super) fn replan(&self) -> Result<Plan> {
        let costs = lock(&self.costs);
        let terms = &self.planned.terms;
        Plan::choose(&costs, terms).map_err(|floor| floor.error(&costs, terms))
    }
}

/// Hands over the rows of `pusher`, and waits until rows use no more memory than the budget.
pub(super) fn make_room(pusher: &mut Pusher, pool: &Pool) -> Result<()> {
    pusher.flush()?;
    pool.set_limit(pool.budget().limit())?;
    let start = Instant::now();
    while pool.budget().used() > pool.budget().limit() && start.elapsed() < PATIENCE {
        std::thread::sleep(Duration::from_millis(1));
    }
    windrow::give_back_free_blocks();
    Ok(())
}
