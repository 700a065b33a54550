//! Rows that are numbers and Booleans and then one text: where they end tells how long it is.
//!
//! ```text
//! | a | b | text .. 01 | a | b | text .. 01 |
//! ^ start              ^ end                      of each row
//! ```

use arrow_array::ArrayRef;

use super::builder::Builder;
use super::columns;
use super::decode::corrupt;
use super::lanes::{self, Form, Run};
use super::text;
use crate::error::Result;
use crate::kernel::rows::{NULL, Scattered, Span};
use crate::order::code::OrderedCode;
use crate::order::{Layout, Sequence, Slot, Tail};

/// Rows that are read by all columns in turn: their places stay in the first-level cache.
const TILE: usize = 1024;

/// The text at the end of the rows, if all in front of it is what the kernels read.
fn text_slot<'a>(layout: &'a Layout, runs: &[Run]) -> Option<&'a Slot> {
    let slots = layout.slots();
    let (last, front) = runs.split_last()?;
    let is_all = layout.payload().is_empty()
        && layout.time().is_none()
        && layout.tail() == Tail::None
        && layout.sequence() == Sequence::None;
    let is_read = |run: &Run| match run.form {
        Form::Numbers(_) => !slots[run.columns.clone()].iter().any(|s| s.has_marker() || s.escapes),
        Form::Booleans => true,
        Form::Other => false,
    };
    let last = &slots[last.columns.start];
    (is_all && last.code == OrderedCode::Text && front.iter().all(is_read)).then_some(last)
}

/// Reads rows of `bytes`, the first of which begins at `start`: the text into its builder, all else into `ready`.
/// False if they are of another kind.
pub(super) fn take_rows(
    layout: &Layout,
    builders: &mut [Option<Builder>],
    bytes: &[u8],
    start: usize,
    ends: &[u32],
    ready: &mut [Option<ArrayRef>],
) -> Result<bool> {
    let runs = lanes::slot_runs(layout);
    let Some(last) = text_slot(layout, &runs) else { return Ok(false) };
    let Some(strings) = builders[last.column].as_mut().and_then(Builder::strings) else {
        return Ok(false);
    };
    let marker = usize::from(last.has_marker());
    let fixed =
        layout.slots().iter().map(|slot| usize::from(slot.has_marker()) + slot.code.width());
    let front: usize = fixed.sum();
    let (mut next, mut is_short) = (start, false);
    let mut spans: Vec<Span> = Vec::with_capacity(ends.len());
    spans.extend(ends.iter().map(|&end| {
        let span = (next + front, end as usize);
        is_short |= span.0 > span.1;
        next = span.1;
        span
    }));
    if is_short {
        return Err(corrupt("a row ends inside its key"));
    }
    let mut valid = Vec::new();
    if marker == 1 {
        let null = text::markers(last).0;
        valid.reserve(ends.len());
        for span in &mut spans {
            let (first, end) = *span;
            let is_null = bytes[first - 1] == null;
            if is_null && first != end {
                return Err(corrupt("a row does not end where its columns do"));
            }
            valid.push(!is_null);
            if is_null {
                *span = NULL;
            }
        }
    }
    strings.read_ended(bytes, &spans, last.descending)?;
    let in_front = &runs[..runs.len() - 1];
    let mut cursors = Vec::new();
    if !in_front.is_empty() {
        let starts = std::iter::once(start).chain(ends.iter().map(|&end| end as usize));
        cursors.extend(starts.take(ends.len()));
    }
    let mut distance = 0;
    for run in in_front {
        let slots = &layout.slots()[run.columns.clone()];
        let places = |distance: usize| Scattered { cursors: &cursors, distance };
        let marked = slots[0].has_marker().then(|| places(distance));
        distance += usize::from(marked.is_some());
        let rows = columns::Rows { bytes, places: places(distance), count: ends.len(), tile: TILE };
        distance += slots.iter().map(|slot| slot.code.width()).sum::<usize>();
        let wanted = slots.iter().any(|slot| builders[slot.column].is_some());
        if wanted {
            columns::take_slots(layout, (run.form, slots), marked, rows, ready)?;
        }
    }
    if let Some(builder) = &mut builders[last.column] {
        builder.end_strings(ends.len(), valid.into_iter());
    }
    Ok(true)
}
