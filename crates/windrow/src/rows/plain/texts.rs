//! Rows with texts: where each begins is found first, then texts are written, then numbers.
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

use arrow_array::RecordBatch;
use arrow_schema::DataType;

use super::super::text;
use super::find::{FindTexts, Texts, texts_of};
use super::{Numbers, Part, PlainEncoder};
use crate::error::Result;
use crate::kernel::rows::text::{Form, Offset};
use crate::kernel::rows::{MOST, Places, Starts, put_texts_at};

/// Rows of any length, and room for more behind them.
pub(crate) struct Behind<'a> {
    pub(crate) bytes: &'a mut [u8],
    /// Where they start, and where the last one ends.
    pub(crate) starts: &'a mut Vec<u32>,
    /// Bytes at the end of `bytes` to be left for each row.
    pub(crate) spare: usize,
}

impl Behind<'_> {
    /// Puts as many of the rows that the starts behind the first `known` are of where there is room for them,
    /// and forgets the others; how many.
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
        fn span<O: Offset>(offsets: &[O]) -> usize {
            offsets.last().map_or(0, |end| end.at() - offsets[0].at())
        }
        match self {
            Self::Small(offsets, _) => span(offsets),
            Self::Large(offsets, _) => span(offsets),
        }
    }

    /// Moves each of `ends` by the bytes of the texts up to there.
    fn move_ends(self, ends: &mut [u32]) {
        fn add<O: Offset>(offsets: &[O], ends: &mut [u32]) {
            for (end, offset) in ends.iter_mut().zip(&offsets[1..]) {
                *end += (offset.at() - offsets[0].at()) as u32;
            }
        }
        match self {
            Self::Small(offsets, _) => add(offsets, ends),
            Self::Large(offsets, _) => add(offsets, ends),
        }
    }

    /// Where what stands behind each of them begins.
    fn follow(self, places: Starts<'_>, behind: &mut Vec<u32>) {
        fn ends<O: Offset>(offsets: &[O], places: Starts<'_>, behind: &mut Vec<u32>) {
            behind.clear();
            behind.extend(
                offsets.windows(2).zip(0..places.starts.len()).map(|(ends, row)| {
                    (places.place(row) + (ends[1].at() - ends[0].at()) + 1) as u32
                }),
            );
        }
        match self {
            Self::Small(offsets, _) => ends(offsets, places, behind),
            Self::Large(offsets, _) => ends(offsets, places, behind),
        }
    }

    /// Writes them to their places.
    fn put(self, form: Form, places: Starts<'_>, is_free: bool, out: &mut [u8]) {
        let rows = places.starts.len();
        match self {
            Self::Small(offsets, bytes) => {
                put_texts_at(bytes, &offsets[..=rows], form, places, is_free, out);
            }
            Self::Large(offsets, bytes) => {
                put_texts_at(bytes, &offsets[..=rows], form, places, is_free, out);
            }
        }
    }
}

/// Where the parts of rows begin.
#[derive(Clone, Copy)]
struct Starting<'a> {
    /// Where rows start, and where the last one ends.
    starts: &'a [u32],
    /// The part behind the last text, and how far in front of the next row it begins.
    last: usize,
    back: usize,
}

impl<'a> Starting<'a> {
    /// Part number `at`; those that are neither the first nor the last begin `between` texts.
    fn part(self, at: usize, between: &'a [Vec<u32>]) -> Starts<'a> {
        let rows = self.starts.len() - 1;
        match at {
            0 => Starts { starts: &self.starts[..rows], ahead: 0, back: 0 },
            _ if at == self.last => Starts { starts: &self.starts[1..], ahead: 0, back: self.back },
            _ => Starts { starts: &between[at - 1], ahead: 0, back: 0 },
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
        let mut found = [Texts::NONE; MOST];
        let texts = self.parts.iter().filter_map(Part::text);
        for (found, text) in found.iter_mut().zip(texts) {
            *found = text.find(batch, rows.clone())?;
        }
        let found = &found[..=self.between.len()];
        let (known, start) = (target.starts.len(), *target.starts.last()?);
        let bytes: usize = found.iter().map(|texts| texts.bytes()).sum();
        // Starts are 32 bits wide.
        u32::try_from(start as usize + bytes + rows.len() * self.fixed).ok()?;
        let fixed = self.fixed as u32;
        target.starts.extend((1..=rows.len() as u32).map(|row| start + row * fixed));
        found.iter().for_each(|texts| texts.move_ends(&mut target.starts[known..]));
        let fit = target.fit(known);
        rows.end = rows.start + fit;
        let written = self.put_parts(batch, rows, found, known, target);
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
        found: &[Texts<'_>],
        known: usize,
        target: &mut Behind<'_>,
    ) -> Option<()> {
        let (starts, out) = (&target.starts[known - 1..], &mut *target.bytes);
        let back = self.parts.iter().rev().map_while(Part::numbers).map(Numbers::bytes).sum();
        let parts = Starting { starts, last: found.len(), back };
        // Texts first: they may overwrite what stands behind them, which is written after them.
        let (mut at, mut ahead) = (0, 0);
        for each in &self.parts {
            match each {
                Part::Numbers(numbers) => ahead += numbers.bytes(),
                Part::Text(text) => {
                    let (before, behind) = self.between.split_at_mut(at);
                    let places = parts.part(at, before).shifted(std::mem::take(&mut ahead));
                    found[at].put(text.form, places, at == 0, out);
                    if let Some(behind) = behind.first_mut() {
                        found[at].follow(places, behind);
                    }
                    at += 1;
                }
            }
        }
        (at, ahead) = (0, 0);
        for each in &self.parts {
            match each {
                Part::Numbers(numbers) => {
                    let mut values = [&[][..]; MOST];
                    let values = numbers.find(batch.columns(), &mut values)?;
                    let places = parts.part(at, &self.between).shifted(ahead);
                    numbers.plain.put(values, rows.clone(), places, out);
                    ahead += numbers.bytes();
                }
                Part::Text(_) => (at, ahead) = (at + 1, 0),
            }
        }
        Some(())
    }
}
