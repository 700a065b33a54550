//! Types that a struct is of, without values of them.

use std::marker::PhantomData;

/// Says that a struct has to do with `X`, and may go wherever it likes without one.
pub(crate) type Of<X> = PhantomData<fn() -> X>;

/// An update: key and value, time, diff.
pub(crate) type Update<K, V, T, R> = ((K, V), T, R);
