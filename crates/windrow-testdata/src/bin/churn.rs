//! A table of four times the memory that it may take, with a thread that merges if there is an argument. Fails if it, or this
//! process, takes more: optimized, and of little code, as [`windrow`]'s own test of it is not.

#[path = "../../../windrow/tests/common/churn.rs"]
mod churn;

use windrow::Mergers;

fn main() {
    let merger = std::env::args().nth(1).map(|_| Mergers::new(1).expect("a thread"));
    churn::churn(merger.as_ref());
}
