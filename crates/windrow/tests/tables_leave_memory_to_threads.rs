//! As `tables_leave_memory`, with a thread that merges beside.

#[path = "common/churn.rs"]
mod churn;

use windrow::Mergers;

#[test]
fn at_four_times_the_limit() {
    churn::churn(Some(&Mergers::new(1).unwrap()));
}
