//! A table of four times the memory limit: its rows are spilled and read back, even while chunks
//! are in use. The test has its own file since peaks are per process.

#[path = "common/churn.rs"]
mod churn;

#[test]
fn at_four_times_the_limit() {
    churn::churn(None);
}
