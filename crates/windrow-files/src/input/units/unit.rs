//! Units of work: a part of an opened file, and the schema of the rows that it yields.

use std::ops::Range;
use std::sync::Arc;

use arrow_schema::SchemaRef;

use crate::input::opened::{About, Content};
use crate::input::schema::hive::Appendix;
use crate::input::schema::unify::Order;

/// A file opened for planning.
pub(crate) struct File {
    pub(crate) content: Box<dyn Content>,
    pub(crate) order: Order,
    pub(crate) about: About,
    /// Values of the names of its directories.
    pub(crate) appendix: Option<Appendix>,
}

/// A part of a file that is read separately.
#[derive(Clone)]
pub(crate) struct Unit {
    /// The ordinal of the file.
    pub(crate) file: usize,
    /// Number of the unit's first row within the file.
    pub(crate) first_row: u64,
    /// Rows of the unit, if the format stores the number.
    pub(crate) rows: Option<u64>,
    pub(crate) part: Range<usize>,
    /// Rows of the unit that can pass the filter, if not all.
    pub(crate) kept: Option<Arc<[Range<u64>]>>,
    pub(crate) schema: SchemaRef,
    pub(crate) batch_rows: usize,
    pub(crate) files: Arc<[File]>,
}
