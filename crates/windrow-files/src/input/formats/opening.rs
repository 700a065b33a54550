//! The interface of formats to the opener, and the state of an input at opening.

use std::path::Path;
use std::sync::Arc;

use arrow_schema::Schema;

use crate::error::Result;
use crate::input::opened::Opened;
use crate::input::options::ReadOptions;
use crate::input::source::origin::Origin;
use crate::input::text::named::Named;
use crate::raw::Raw;

use super::parquet::footers::FooterCache;

/// A format of inputs. [`of`](super::of) lists the implementations.
pub(crate) trait InputFormat: Sync {
    /// Returns true if an input that begins with `head` is of this format. CSV may begin with anything.
    fn sniff(&self, _head: &[u8]) -> bool {
        false
    }

    /// Returns true if inputs are text. The opener decompresses text, and decodes it to UTF-8.
    fn is_text(&self) -> bool {
        false
    }

    /// Opens `origin` far enough to plan: its schema, its parts, and the memory for reading a part.
    ///
    /// # Errors
    /// `Data` for a damaged input, or an input that needs more memory than `options` allow.
    fn open(&self, origin: Origin, opening: &mut Opening<'_>) -> Result<Opened>;
}

/// The state of the inputs opened before a source.
#[derive(Clone, Copy)]
pub(crate) struct Like<'a> {
    /// The common schema of their files.
    pub(crate) reference: Option<&'a Schema>,
    /// The places of the needed columns of a file with a schema; `None` if all are needed.
    pub(crate) counted: &'a dyn Fn(&Schema) -> Option<Vec<usize>>,
}

/// The state of an input at opening.
pub(crate) struct Opening<'a> {
    pub(crate) options: &'a ReadOptions,
    pub(crate) path: Option<&'a Path>,
    /// The number of the input.
    pub(crate) ordinal: usize,
    pub(crate) like: Like<'a>,
    /// The columns of `schema`. Formats of text note the columns that an input has.
    pub(crate) named: &'a mut Named,
    /// The conversion of the text to events, if any.
    pub(crate) raw: Option<&'a Raw>,
    pub(crate) footers: &'a Arc<FooterCache>,
    /// Remaining bytes for temporary files.
    pub(crate) temp_left: &'a mut u64,
}

impl Opening<'_> {
    /// Returns `origin` for reads by position: a stream is copied first.
    ///
    /// # Errors
    /// `Space` without space for the copy.
    pub(crate) fn at_random(&mut self, origin: Origin) -> Result<Origin> {
        let ReadOptions { temp_dir, cancel, .. } = self.options;
        origin.spooled(temp_dir.as_deref(), self.temp_left, cancel)
    }
}
