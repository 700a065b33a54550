//! Where inputs come from: arguments become sources, a source becomes bytes in order or by position.

pub(crate) mod copied;
pub(crate) mod expand;
pub(crate) mod head;
pub(crate) mod info;
pub(crate) mod origin;
pub(crate) mod pattern;
pub(crate) mod random;
pub(crate) mod reader;
pub(crate) mod tables;
