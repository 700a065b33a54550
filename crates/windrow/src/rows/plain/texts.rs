//! Rows with texts: where each begins is found first, then what they have is written, in the order of the row.
//!
//! ```text
//! starts    s0                               s1                            s2
//! row       | numbers | text 0 | numbers | text 1 | numbers |  ...
//!           part 0             part 1             part 2: so far in front of the next start
//! ```
//!
//! Of one text there are two parts: one begins where rows start, one ends where they end. Where parts between
//! two texts begin is written down.

use std::ops::Range;

use arrow_array::{OffsetSizeTrait, RecordBatch};
use arrow_schema::DataType;

use super::super::text;
use super::find::{FindTexts, Texts, texts_of};
use super::{MOST, Part, PlainEncoder};
use crate::error::Result;
use crate::kernel::rows::exact::{self, put_exact};
use crate::kernel::rows::text::Form;
use crate::kernel::rows::{Places, Starts};

/// Rows of any length, and room for more behind them.
pub(crate) struct Behind<'a> {
    pub(crate) bytes: &'a mut [u8],
    /// Where they start, and where the last one ends.
    pub(crate) starts: &'a mut Vec<u32>,
    /// Bytes at the end of `bytes` to be left for each row.
    pub(crate) spare: usize,
}

impl Behind<'_> {
    /// Of the rows that end at the starts behind the first `known`, forgets those that have no room; how many
    /// are left.
    fn fit(&mut self, known: usize) -> usize {
        let (spare, room) = (self.spare, self.bytes.len());
        let fits = |at: usize, end: u32| end as usize + at * spare <= room;
        let last = self.starts.len() - 1;
        if !fits(last, self.starts[last]) {
            // Ends and room for each ascend.
            let (mut low, mut high) = (known, last);
            while low < high {
                let middle = low + (high - low) / 2;
                if fits(middle, self.starts[middle]) { low = middle + 1 } else { high = middle }
            }
            self.starts.truncate(low);
        }
        self.starts.len() - known
    }
}

/// A column of text.
#[derive(Debug)]
pub(super) struct Text {
    column: usize,
    form: Form,
    find: FindTexts,
}

impl Text {
    pub(super) fn of(column: usize, descending: bool, data_type: &DataType) -> Option<Self> {
        let flip = if descending { 0xff } else { 0 };
        Some(Self { column, form: text::form(flip), find: texts_of(data_type)? })
    }

    fn find<'a>(&self, batch: &'a RecordBatch, rows: Range<usize>) -> Option<Texts<'a>> {
        Some((self.find)(batch.column(self.column).as_ref())?.of(rows))
    }
}

impl<'a> Texts<'a> {
    const NONE: Self = Self::Small(&[0], &[]);

    /// Those of some rows.
    fn of(self, rows: Range<usize>) -> Self {
        match self {
            Self::Small(offsets, bytes) => Self::Small(&offsets[rows.start..=rows.end], bytes),
            Self::Large(offsets, bytes) => Self::Large(&offsets[rows.start..=rows.end], bytes),
        }
    }

    /// Bytes of all of them.
    fn bytes(self) -> usize {
        fn span<O: OffsetSizeTrait>(offsets: &[O]) -> usize {
            offsets.last().map_or(0, |end| end.as_usize() - offsets[0].as_usize())
        }
        match self {
            Self::Small(offsets, _) => span(offsets),
            Self::Large(offsets, _) => span(offsets),
        }
    }

    /// Adds where rows end that hold them and `fixed` bytes, and that begin at `start`.
    fn add_ends(self, start: u32, fixed: u32, ends: &mut Vec<u32>) {
        macro_rules! add {
            ($offsets:ident) => {{
                let [first, rest @ ..] = $offsets else { return };
                // Modulo 2^32 none follows from the one before: many at a time are made.
                let mut behind = start.wrapping_sub(*first as u32);
                ends.extend(rest.iter().map(|offset| {
                    behind = behind.wrapping_add(fixed);
                    behind.wrapping_add(*offset as u32)
                }));
            }};
        }
        match self {
            Self::Small(offsets, _) => add!(offsets),
            Self::Large(offsets, _) => add!(offsets),
        }
    }

    /// Moves each of `ends` by the bytes of the texts up to there.
    fn move_ends(self, ends: &mut [u32]) {
        macro_rules! add {
            ($offsets:ident) => {
                for (end, offset) in ends.iter_mut().zip(&$offsets[1..]) {
                    *end += (offset - $offsets[0]) as u32;
                }
            };
        }
        match self {
            Self::Small(offsets, _) => add!(offsets),
            Self::Large(offsets, _) => add!(offsets),
        }
    }

    /// Where what stands behind each of them begins.
    fn follow(self, places: Starts<'_>, behind: &mut Vec<u32>) {
        fn ends<O: OffsetSizeTrait>(offsets: &[O], places: Starts<'_>, behind: &mut Vec<u32>) {
            behind.clear();
            behind.extend(offsets.windows(2).zip(0..places.len()).map(|(ends, row)| {
                (places.place(row) + (ends[1].as_usize() - ends[0].as_usize()) + 1) as u32
            }));
        }
        match self {
            Self::Small(offsets, _) => ends(offsets, places, behind),
            Self::Large(offsets, _) => ends(offsets, places, behind),
        }
    }

    /// Writes them to their places.
    fn put(self, form: Form, places: Starts<'_>, out: &mut [u8]) {
        fn put<O: OffsetSizeTrait>(
            (offsets, bytes): (&[O], &[u8]),
            form: Form,
            places: Starts<'_>,
            out: &mut [u8],
        ) {
            let texts = offsets.windows(2).map(|ends| {
                let (start, end) = (ends[0].as_usize(), ends[1].as_usize());
                exact::Text::new(&bytes[start..], end - start, true)
            });
            put_exact(texts, form, None, places.places(), out);
        }
        match self {
            Self::Small(offsets, bytes) => put((offsets, bytes), form, places, out),
            Self::Large(offsets, bytes) => put((offsets, bytes), form, places, out),
        }
    }
}

impl PlainEncoder {
    /// Writes `rows` of `batch` behind those that are there, as many as there is room for; returns how many.
    /// Nothing if they are for the general encoder: something in the batch is null.
    ///
    /// # Errors
    /// [`crate::Error::SchemaMismatch`].
    pub(crate) fn write_varying(
        &mut self,
        batch: &RecordBatch,
        rows: Range<usize>,
        target: &mut Behind<'_>,
    ) -> Result<Option<usize>> {
        self.check_schema(batch.schema_ref())?;
        Ok(self.write_texts(batch, rows, target))
    }

    fn write_texts(
        &mut self,
        batch: &RecordBatch,
        mut rows: Range<usize>,
        target: &mut Behind<'_>,
    ) -> Option<usize> {
        let mut texts = [Texts::NONE; MOST];
        let columns = self.parts.iter().filter_map(Part::text);
        for (texts, column) in texts.iter_mut().zip(columns) {
            *texts = column.find(batch, rows.clone())?;
        }
        let texts = &texts[..=self.between.len()];
        let (known, start) = (target.starts.len(), *target.starts.last()?);
        let bytes: usize = texts.iter().map(|texts| texts.bytes()).sum();
        // Starts are 32 bits wide.
        u32::try_from(start as usize + bytes + rows.len() * self.fixed).ok()?;
        texts[0].add_ends(start, self.fixed as u32, target.starts);
        texts[1..].iter().for_each(|texts| texts.move_ends(&mut target.starts[known..]));
        let fit = target.fit(known);
        rows.end = rows.start + fit;
        let written = self.put_parts(batch, rows, texts, (known, target));
        if written.is_none() {
            target.starts.truncate(known);
        }
        written.map(|()| fit)
    }

    /// Writes `rows` behind the first `known` starts, which are those of the rows in front, and one more.
    fn put_parts(
        &mut self,
        batch: &RecordBatch,
        rows: Range<usize>,
        texts: &[Texts<'_>],
        (known, target): (usize, &mut Behind<'_>),
    ) -> Option<()> {
        let (count, out) = (rows.len(), &mut *target.bytes);
        let starts = Starts::new(&target.starts[known - 1..]);
        let last = starts.part(1..count + 1, self.behind_texts);
        let mut values = [&[][..]; MOST];
        let (mut between, mut next_text) = (self.between.iter_mut(), texts.iter());
        let mut places = starts.part(0..count, 0);
        for part in &self.parts {
            match part {
                Part::Numbers(numbers) => {
                    let values = numbers.find(batch.columns(), &mut values)?;
                    numbers.put(values, rows.clone(), places, out);
                    places = places.shifted(numbers.bytes());
                }
                Part::Text(text) => {
                    let texts = next_text.next()?;
                    texts.put(text.form, places, out);
                    places = match between.next() {
                        Some(between) => {
                            texts.follow(places, between);
                            Starts::new(between)
                        }
                        None => last,
                    };
                }
            }
        }
        Some(())
    }
}
