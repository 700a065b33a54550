//! The budget under every interleaving of threads that lease, return and change the limit.
//!
//! The file of the budget is compiled here once more, with loom's atomics in the place of the
//! standard library's.

mod sync {
    pub(crate) use loom::sync::Arc;
    pub(crate) use loom::sync::atomic::{AtomicUsize, Ordering};
}

#[path = "../src/budget.rs"]
#[expect(dead_code, unreachable_pub, reason = "a part of another crate")]
mod budget;

use budget::Budget;
use loom::thread;

#[test]
fn leases_return_to_the_budget_as_it_is_then() {
    loom::model(|| {
        let budget = Budget::bytes(100);
        let first = budget.try_lease(60).unwrap();
        assert!(budget.try_lease(60).is_none());
        budget.set_limit(50);
        let over = budget.lease(30);
        assert_eq!((budget.used(), budget.peak()), (90, 90));
        drop(first);
        assert!(budget.try_lease(21).is_none());
        drop(over);
        assert_eq!(budget.used(), 0);
        assert!(budget.try_lease(50).is_some());
    });
}

#[test]
fn leases_never_pass_the_limit_together() {
    loom::model(|| {
        let budget = Budget::bytes(100);
        let other = budget.clone();
        let thread = thread::spawn(move || other.try_lease(60).map(|lease| lease.bytes()));
        let here = budget.try_lease(60);
        assert!(budget.used() <= 100 && budget.peak() <= 100);
        let there = thread.join().unwrap();
        assert!(here.is_some() || there.is_some());
        drop(here);
        assert_eq!(budget.used(), 0);
    });
}

#[test]
fn leases_return_to_a_limit_that_shrinks_and_grows() {
    loom::model(|| {
        let budget = Budget::bytes(100);
        let lease = budget.try_lease(80).unwrap();
        let other = budget.clone();
        let thread = thread::spawn(move || drop(lease));
        other.set_limit(50);
        let more = other.try_lease(50);
        other.set_limit(100);
        thread.join().unwrap();
        assert_eq!(other.used(), if more.is_some() { 50 } else { 0 });
        drop(more);
        assert_eq!(other.used(), 0);
        // Nothing was credited twice: exactly the limit can be leased, and no more.
        let all = other.try_lease(100);
        assert!(all.is_some() && other.try_lease(1).is_none());
    });
}

#[test]
fn a_lease_that_may_pass_the_limit_is_counted() {
    loom::model(|| {
        let budget = Budget::bytes(10);
        let other = budget.clone();
        let thread = thread::spawn(move || drop(other.lease(20)));
        let here = budget.try_lease(10);
        thread.join().unwrap();
        assert_eq!(budget.used(), here.map_or(0, |lease| lease.bytes()));
        assert_eq!(budget.used(), 0);
        assert!(budget.peak() >= 20);
    });
}
