//! Runs `tables_leave_memory` with a merging thread.

#[path = "common/churn.rs"]
mod churn;

use windrow::Mergers;

#[test]
fn at_four_times_the_limit() {
    churn::churn(Some(&Mergers::new(1).unwrap()));
}
