//! The `inspect` verb.
