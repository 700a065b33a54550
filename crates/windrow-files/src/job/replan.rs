//! What becomes of the plan when a row is met that is longer than it knew.
//!
//! ```text
//! reader: a row of 20 MB --> admits? --> less for rows from now on; all threads hand over what they hold
//!                               \-----> MemoryFloor, with a limit that is enough
//! after reading: --> choose once more, by the longest row met: who writes, and how
//! ```

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use windrow::{Pool, Pusher};

use super::plan::{Costs, Plan, Planned, enough_for};
use crate::error::Result;
use crate::longest::{Longest, Need};

/// How long a thread waits for what others hold to leave. What they are at work with may be longer in leaving.
const PATIENCE: Duration = Duration::from_secs(2);

/// The costs of a job under way.
pub(super) struct Met {
    planned: Planned,
    /// Whether the job can begin again.
    repeats: bool,
    /// With the longest row that was met.
    costs: Mutex<Costs>,
    /// The plan of a job that begins again.
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

    /// The plan by which the job begins again, which ended for that.
    pub(super) fn again(&self) -> Option<Planned> {
        self.again.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Decides about longer rows: `pool` has less from then on.
    pub(super) fn longest(self: &Arc<Self>, pool: &Pool) -> Longest {
        if self.planned.terms.limit.is_none() {
            return Longest::default();
        }
        let (met, pool) = (Arc::clone(self), pool.clone());
        let decide = move |row: u64| met.admit(row, &pool);
        Longest::new(self.planned.costs.longest(), Box::new(decide))
    }

    fn admit(&self, row: u64, pool: &Pool) -> Result<u64, Need> {
        let Planned { costs: known, terms, plan } = &self.planned;
        let mut met = self.costs.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes = usize::try_from(row).unwrap_or(usize::MAX);
        // Rows that grow little by little are not decided about one by one.
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
                let again = Planned { costs, terms: *terms, plan };
                *self.again.lock().unwrap_or_else(PoisonError::into_inner) = Some(again);
                enough
            }
        };
        Err(Need { row, enough, limit })
    }

    /// The plan for what comes after reading.
    ///
    /// # Errors
    /// `MemoryFloor`, if all that was met does not fit together.
    pub(super) fn replan(&self) -> Result<Plan> {
        let costs = self.costs.lock().unwrap_or_else(PoisonError::into_inner);
        let terms = &self.planned.terms;
        Plan::choose(&costs, terms).map_err(|floor| floor.error(&costs, terms))
    }
}

/// Hands over what `pusher` holds, and waits until rows have no more memory than they may.
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
