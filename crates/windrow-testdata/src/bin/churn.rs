//! Changes a table of four times its memory limit; any argument adds a merge thread. Fails if the
//! table or the process exceeds the limit. Unlike [`windrow`]'s own test, this program is optimized
//! and small in code.

#[path = "../../../windrow/tests/common/churn.rs"]
mod churn;

use windrow::Mergers;

fn main() {
    let merger = std::env::args().nth(1).map(|_| Mergers::new(1).expect("a thread"));
    churn::churn(merger.as_ref());
}
