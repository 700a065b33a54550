//! Record batches of a caller: the first is looked at to plan, as the head of a file is.

use std::ops::Range;
use std::sync::{Arc, Mutex};

use arrow_array::{Array, RecordBatch, RecordBatchReader};
use arrow_schema::ArrowError;

use crate::error::{Error, Result};
use crate::input::opened::{About, Content, Opened, Pieces, Span, decoded};
use crate::input::source::reader::Reader;
use crate::lock::lock;
use crate::settings::Format;
use crate::watch::Watch;

/// A reader after its first record batch was examined.
struct HandedReader {
    name: Arc<str>,
    rest: Mutex<Option<Rest>>,
}

type Rest = (Option<RecordBatch>, Box<dyn RecordBatchReader + Send>);

/// Takes the reader, and examines its first record batch.
pub(crate) fn open(reader: &Reader) -> Result<Opened> {
    let handed = &reader.0;
    let name = Arc::clone(&handed.name);
    let mut batches = lock(&handed.batches).take().ok_or_else(|| taken_before(&name))?;
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
        about: About { name: Arc::clone(&name), ..About::default() },
        content: Box::new(HandedReader { name, rest: Mutex::new(Some((first, batches))) }),
    })
}

impl Content for HandedReader {
    fn read(&self, _: Range<usize>, _: usize, _: &Watch) -> Result<Pieces> {
        let name = Arc::clone(&self.name);
        let rest = lock(&self.rest).take();
        let (first, batches) = rest.ok_or_else(|| taken_before(&name))?;
        let rest = batches.map(move |batch| batch.map_err(|error| failed(&name, error)));
        Ok(decoded(first.map(Ok).into_iter().chain(rest)))
    }
}

fn taken_before(name: &Arc<str>) -> Error {
    Error::data(format!("{name}: a reader can be read only once")).in_file(Arc::clone(name))
}

/// Converts an error of the caller's code. An error of this crate, wrapped by the caller, is
/// unwrapped.
fn failed(name: &Arc<str>, error: ArrowError) -> Error {
    let told = |what: String| Error::data(format!("{name}: {what}")).in_file(Arc::clone(name));
    match error {
        ArrowError::ExternalError(inner) => {
            inner.downcast().map_or_else(|other| told(other.to_string()), |own: Box<Error>| *own)
        }
        error => told(error.to_string()),
    }
}
