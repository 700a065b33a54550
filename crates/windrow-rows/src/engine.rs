//! Parts of rows for the other crates of Windrow. Not stable: any release may change them.

pub use crate::order::code::OrderedCode;
pub use crate::order::{Names, Sequence, Slot, Tail, check_fields};
pub use crate::rows::{Decoder, Encoder, Payload, Prepared, check_rows, diff_of, show};
pub use crate::time::MOST_TIME_BYTES;
