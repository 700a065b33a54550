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
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::{Array, RecordBatch, RecordBatchReader};
use arrow_schema::ArrowError;
use arrow_schema::SchemaRef;

use super::content::{Pieces, decoded};
use super::{Content, Opened, Source, Span};
use crate::error::{Error, Result};
use crate::format::Format;
use crate::watch::Watch;

/// A reader to be read once, by the first user. Clones share the reader.
#[derive(Clone)]
pub struct Reader(Arc<Handed>);

struct Handed {
    name: Arc<str>,
    schema: SchemaRef,
    /// `None` after the reader was taken.
    batches: Mutex<Option<Box<dyn RecordBatchReader + Send>>>,
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

/// A reader after its first record batch was examined.
struct Opening {
    name: Arc<str>,
    rest: Mutex<Option<Rest>>,
}

type Rest = (Option<RecordBatch>, Box<dyn RecordBatchReader + Send>);

/// Takes the reader, and examines its first record batch.
pub(super) fn open(Reader(handed): &Reader) -> Result<Opened> {
    let name = Arc::clone(&handed.name);
    let taken = handed.batches.lock().unwrap_or_else(PoisonError::into_inner).take();
    let Some(mut batches) = taken else {
        return Err(Error::data(format!("{name}: a reader can be read only once")).in_file(name));
    };
    let first = batches.next().transpose().map_err(|error| failed(&name, error))?;
    let (rows, bytes) = first.as_ref().map_or((1, 0), |first| {
        let bytes = first.columns().iter().map(|column| column.get_array_memory_size()).sum();
        (first.num_rows().max(1), bytes)
    });
    let spans = vec![Span { part: 0..1, first_row: 0, rows: None }];
    Ok(Opened {
        format: Format::ArrowStream,
        schema: Arc::clone(&handed.schema),
        bytes: None,
        rows: None,
        spans,
        // The first batch is in memory already; the next arrives while the first is pushed.
        reader_bytes: bytes,
        row_bytes: bytes / rows,
        longest_row: bytes / rows,
        // The caller owns the batches; slices of them copy nothing.
        copies: 0,
        content: Box::new(Opening { name, rest: Mutex::new(Some((first, batches))) }),
    })
}

impl Content for Opening {
    fn name(&self) -> &Arc<str> {
        &self.name
    }

    fn read(&self, _: Range<usize>, _: usize, _: &Watch) -> Result<Pieces> {
        let name = Arc::clone(&self.name);
        let rest = self.rest.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some((first, batches)) = rest else {
            return Err(
                Error::data(format!("{name}: a reader can be read only once")).in_file(name)
            );
        };
        let rest = batches.map(move |batch| batch.map_err(|error| failed(&name, error)));
        Ok(decoded(first.map(Ok).into_iter().chain(rest)))
    }
}

/// Converts an error of the caller's code. An error of this crate, wrapped by the caller, is
/// unwrapped.
fn failed(name: &Arc<str>, error: ArrowError) -> Error {
    match error {
        ArrowError::ExternalError(inner) => match inner.downcast::<Error>() {
            Ok(own) => *own,
            Err(other) => Error::data(format!("{name}: {other}")).in_file(Arc::clone(name)),
        },
        error => Error::data(format!("{name}: {error}")).in_file(Arc::clone(name)),
    }
}
