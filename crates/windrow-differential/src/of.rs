//! Marker types.

use std::marker::PhantomData;

/// Makes a struct generic over `X` without holding an `X`; the struct stays `Send` and `Sync`.
pub(crate) type Of<X> = PhantomData<fn() -> X>;

/// An update: key and value, time, diff.
pub(crate) type Update<K, V, T, R> = ((K, V), T, R);
