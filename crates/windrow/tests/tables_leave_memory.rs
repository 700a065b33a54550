//! A table of four times the memory that it may take: its rows leave memory and come back, whoever holds chunks of it. In a
//! file of its own: peaks are of a process.

#[path = "common/churn.rs"]
mod churn;

#[test]
fn at_four_times_the_limit() {
    churn::churn(None);
}
