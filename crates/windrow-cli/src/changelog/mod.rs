//! Change-log formats.
