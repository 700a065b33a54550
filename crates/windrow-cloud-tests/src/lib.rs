//! An in-process object server, behind a proxy with fault injection.
//!
//! ```text
//!  windrow-files --> Proxy: 500s, cuts, lost answers --> Server: s3s-fs, a bucket is a directory
//! ```

mod proxy;
mod server;

pub use proxy::{Fault, Proxy, Request};
pub use server::{ACCESS_KEY, SECRET_KEY, Server};
