//! Units of work: a part of an opened file, and the schema of the rows that it yields.

use std::ops::Range;
use std::sync::Arc;

use arrow_schema::SchemaRef;

use crate::input::opened::{About, Content};
use crate::input::schema::hive::Appendix;
use crate::input::schema::unify::Order;

/// A file that is opened for planning.
pub(crate) struct File {
    pub(crate) content: Box<dyn Content>,
    pub(crate) order: Order,
    pub(crate) about: About,
    /// Values of the names of its directories.
    pub(crate) appendix: Option<Appendix>,
}

/// A part of a file that is read on its own.
#[derive(Clone)]
pub(crate) struct Unit {
    /// The ordinal of the file.
    pub(crate) file: usize,
    /// The number within its file of the unit's first row.
    pub(crate) first_row: u64,
    /// The rows of the unit, where the format tells.
    pub(crate) rows: Option<u64>,
    pub(crate) part: Range<usize>,
    /// The rows of it that can count, if not all can.
    pub(crate) kept: Option<Arc<[Range<u64>]>>,
    pub(crate) schema: SchemaRef,
    pub(crate) batch_rows: usize,
    pub(crate) files: Arc<[File]>,
}
