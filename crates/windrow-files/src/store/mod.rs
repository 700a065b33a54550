//! Objects at addresses such as `s3://bucket/key`, read by ranges and written in parts.
//!
//! ```text
//!  address --Stores--> Object: length, identity --ranges--> Window: pieces in memory --> readers of formats
//!                 \--> Upload: parts, invisible until it is complete
//!                 \--> Prefix: many uploads, completed one after the other, then _SUCCESS
//! ```
//! Invariants. All ranges of an object belong to one version: each request is conditional on the
//! entity tag, and the response is checked as well, since some servers ignore conditions. Output is
//! visible completely or not at all; the objects of a prefix are the exception, and appear one
//! after the other at the end.
//!
//! One thread with its own runtime does all work on the network, and is started at the first
//! address. Without the feature `cloud` this thread does not exist, addresses are refused, and the
//! types have no values.

#[cfg(feature = "cloud")]
mod address;
#[cfg(feature = "cloud")]
mod client;
#[cfg(feature = "cloud")]
mod counted;
#[cfg(feature = "cloud")]
mod fault;
#[cfg(feature = "cloud")]
mod kinds;
#[cfg(feature = "cloud")]
mod lane;
#[cfg(feature = "cloud")]
mod listing;
mod local;
#[cfg(feature = "cloud")]
mod object;
#[cfg(feature = "cloud")]
mod prefix;
mod sizes;
mod stores;
#[cfg(feature = "cloud")]
mod upload;
#[cfg(feature = "cloud")]
mod window;
#[cfg(not(feature = "cloud"))]
mod without;

pub(crate) use local::is_far;
pub(crate) use sizes::{CLIENT_BYTES, HELD, Look, RANGE, part_bytes, upload_bytes};
pub use stores::Stores;
#[cfg(not(feature = "cloud"))]
pub(crate) use without::{Object, Prefix, Upload, Window, held_bytes};
#[cfg(feature = "cloud")]
pub(crate) use {
    object::Object,
    prefix::Prefix,
    upload::Upload,
    window::{Window, held_bytes},
};
