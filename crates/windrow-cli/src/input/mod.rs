//! Files in.
