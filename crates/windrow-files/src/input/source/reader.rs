//! Record batches of a caller, as an input beside files.
//!
//! ```text
//! RecordBatchReader --Source::reader--> first batch, looked at to plan --> first, second, ...
//! ```
//!
//! The batches can be read once. A reader is one unit, decoded by the caller's own code, on one
//! thread after the other. Memory held by the caller's code is the caller's. The plan assumes that
//! no batch is larger than the first.

use std::fmt;
use std::sync::{Arc, Mutex};

use arrow_array::RecordBatchReader;
use arrow_schema::SchemaRef;

use super::expand::Source;

/// A reader to be read once, by the first user. Clones share the reader.
#[derive(Clone)]
pub struct Reader(pub(crate) Arc<Handed>);

pub(crate) struct Handed {
    pub(crate) name: Arc<str>,
    pub(crate) schema: SchemaRef,
    /// `None` after the reader was taken.
    pub(crate) batches: Mutex<Option<Box<dyn RecordBatchReader + Send>>>,
}

impl Source {
    /// Makes an input of a caller's record batches, with `name` for messages. The input can be read
    /// once.
    pub fn reader(name: &str, batches: impl RecordBatchReader + Send + 'static) -> Self {
        Self::Reader(Reader(Arc::new(Handed {
            name: name.into(),
            schema: batches.schema(),
            batches: Mutex::new(Some(Box::new(batches))),
        })))
    }
}

impl PartialEq for Reader {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Reader {}

impl fmt::Debug for Reader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Reader").field(&self.0.name).finish()
    }
}

impl fmt::Display for Reader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.name)
    }
}
