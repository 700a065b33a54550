//! Plans: the parts of a layout's rows.
//!
//! ```text
//! slots        | a | b | marker | c | text .. | d |      a and b, numbers of one width: one part
//! wanted       | * | * |        |   | *       | * |      c and its marker: unwanted, one part;
//!                                                        wanted, they may join other marked ones
//! ```

use super::built::Built;
use super::cells::{Cells, held};
use super::each::{Coding, Diffs, Each, NullBits, Raw, Skip};
use super::numbers::{Number, Numbers};
use super::part::{Part, Room};
use super::texts::Texts;
use super::whole::{Bodies, Nulls, Pass, body};
use crate::error::Result;
use crate::order::code::{OrderedCode, PayloadCode, plain_type};
use crate::order::{Layout, Sequence, Slot, Tail};
use crate::rows::encode::time_slot;
use crate::rows::fixed::with_word;
use crate::rows::lanes::{self, RAW};
use crate::rows::strings::{self, Strings};
use crate::rows::{sequence, skip, text};
use windrow_kernel::rows::{Cell, Code, Held};

/// Returns the parts of `rows` rows of `layout`. `wanted` has a flag for each column.
pub(in crate::rows) fn plan<'a>(
    layout: &'a Layout,
    wanted: &[bool],
    rows: usize,
    room: Room,
) -> Result<Vec<Box<dyn Part + 'a>>> {
    let mut plan = Plan { layout, wanted, rows, room, parts: Vec::new(), open: Open::None };
    for slot in layout.slots() {
        plan.slot(slot)?;
    }
    match layout.sequence() {
        Sequence::None => {}
        Sequence::Wide => plan.skip(8),
        Sequence::Short => {
            let flip = if layout.sequence_descends() { 0xff } else { 0 };
            plan.add(Pass(move |row: &[u8]| Ok(sequence::skip_short(row, 0, flip))));
        }
    }
    plan.payload()?;
    if let Some(column) = layout.time() {
        plan.slot(&time_slot(layout, column))?;
    }
    match layout.tail() {
        Tail::None => {}
        Tail::Tombstone(column) if wanted[*column] => plan.boolean(*column),
        Tail::Tombstone(_) => plan.skip(1),
        Tail::Diffs(diffs) => diffs.columns.iter().for_each(|&column| match wanted[column] {
            true => plan.add(Diffs::new(column, rows)),
            false => plan.skip(8),
        }),
    }
    plan.close();
    Ok(plan.parts)
}

/// The parts so far.
struct Plan<'a, 'w> {
    layout: &'a Layout,
    wanted: &'w [bool],
    rows: usize,
    room: Room,
    parts: Vec<Box<dyn Part + 'a>>,
    open: Open,
}

/// Returns true for values of one or two bytes, which are read together as bytes.
fn is_narrow(code: OrderedCode) -> bool {
    use OrderedCode::{Bool, Fixed, FixedBinary};
    matches!(code, Bool | Fixed(1 | 2, _) | FixedBinary(1 | 2))
}

/// Adjacent columns that the next column may join.
enum Open {
    None,
    Skip(usize),
    /// Numbers of one width.
    Numbers(usize, Vec<Number>),
    /// Columns with markers, or narrow columns.
    Cells(Vec<(usize, Cell)>),
}

impl<'a> Plan<'a, '_> {
    /// Closes the open columns: no further column joins.
    fn close(&mut self) {
        let rows = self.rows;
        let part: Box<dyn Part + 'a> = match std::mem::replace(&mut self.open, Open::None) {
            Open::None => return,
            Open::Skip(bytes) => Box::new(Skip(bytes)),
            Open::Numbers(4, numbers) => Box::new(Numbers::<u32>::new(numbers, rows)),
            Open::Numbers(8, numbers) => Box::new(Numbers::<u64>::new(numbers, rows)),
            Open::Numbers(_, numbers) => Box::new(Numbers::<u128>::new(numbers, rows)),
            Open::Cells(cells) => Box::new(Cells::new(cells)),
        };
        self.parts.push(part);
    }

    fn add(&mut self, part: impl Part + 'a) {
        // A part without bytes does not separate other parts.
        if part.width() != Some(0) {
            self.close();
        }
        self.parts.push(Box::new(part));
    }

    fn skip(&mut self, bytes: usize) {
        match &mut self.open {
            Open::Skip(before) => *before += bytes,
            _ if bytes == 0 => {}
            _ => {
                self.close();
                self.open = Open::Skip(bytes);
            }
        }
    }

    /// Passes over an unwanted slot that varies, or whose codes may be longer.
    fn pass(&mut self, slot: &Slot) {
        let slot = slot.clone();
        self.add(Pass(move |row: &[u8]| Ok(skip::skip(&slot, row, 0))));
    }

    /// Adds a Boolean, a byte of 0 or 1.
    fn boolean(&mut self, column: usize) {
        self.cell(column, Cell::new(Held::Bit(0), None, self.rows));
    }

    fn number(&mut self, width: usize, number: Number) {
        match &mut self.open {
            Open::Numbers(before, numbers) if *before == width => numbers.push(number),
            _ => {
                self.close();
                self.open = Open::Numbers(width, vec![number]);
            }
        }
    }

    fn cell(&mut self, column: usize, cell: Cell) {
        match &mut self.open {
            Open::Cells(cells) => cells.push((column, cell)),
            _ => {
                self.close();
                self.open = Open::Cells(vec![(column, cell)]);
            }
        }
    }

    fn slot(&mut self, slot: &Slot) -> Result<()> {
        let (column, rows) = (slot.column, self.rows);
        let is_wanted = self.wanted[column];
        if slot.code == OrderedCode::Null {
            if is_wanted {
                self.add(Nulls { column, width: 0 });
            }
            return Ok(());
        }
        let data_type = self.layout.schema().field(column).data_type();
        if Built::reads(slot, data_type) && is_wanted {
            self.add(Built::new(self.layout, column)?);
            return Ok(());
        }
        let null = slot.has_marker().then(|| text::markers(slot).0);
        if slot.code.varies() {
            let (coded, room) = (strings::coded(slot.code, slot.descending), (rows, self.room));
            match is_wanted {
                true => self.add(Texts::new(column, plain_type(data_type), coded, null, room)),
                false => self.pass(slot),
            }
            return Ok(());
        }
        if !is_wanted && !slot.escapes {
            self.skip(slot.fixed_len());
            return Ok(());
        }
        if (null.is_some() || is_narrow(slot.code))
            && let Some(held) = held(slot.code, slot.descending, slot.descending.into())
        {
            self.cell(column, Cell::new(held, null, rows));
            return Ok(());
        }
        if let Some(null) = null {
            self.cell(column, Cell::new(Held::Nothing, Some(null), 0));
        }
        match (slot.code, lanes::number_width(slot.code)) {
            (OrderedCode::Fixed(_, kind), Some(width)) => {
                let code = lanes::slot_code(slot);
                let longer = slot.escapes.then(|| Coding::of(slot, kind));
                self.number(width, Number { column, code, longer, is_wanted });
            }
            (OrderedCode::Fixed(..), _) if !is_wanted => self.pass(slot),
            (OrderedCode::Fixed(width, kind), _) => {
                let coding = Coding::of(slot, kind);
                with_word!(width, W => self.add(Each::<W>::new(column, coding, rows)));
            }
            (OrderedCode::FixedBinary(width), _) => self.raw(column, width, slot.descending),
            // Read above.
            _ => {}
        }
        Ok(())
    }

    /// Adds bytes of one width, unchanged or complemented.
    fn raw(&mut self, column: usize, width: usize, descending: bool) {
        let code = OrderedCode::FixedBinary(width);
        if is_narrow(code)
            && let Some(held) = held(code, descending, 0)
        {
            self.cell(column, Cell::new(held, None, self.rows));
        } else if let 4 | 8 | 16 = width {
            let flip = if descending { u64::MAX >> (64 - 8 * width.min(8)) } else { 0 };
            let code = Code { flip, ..RAW };
            self.number(width, Number { column, code, longer: None, is_wanted: true });
        } else {
            let flip = if descending { 0xff } else { 0 };
            self.add(Raw::new(column, width, flip, None, self.rows));
        }
    }

    fn payload(&mut self) -> Result<()> {
        let (layout, rows) = (self.layout, self.rows);
        let bits = &layout.shape().null_bits;
        let payload = layout.payload();
        let is_wanted = |&at: &usize| self.wanted[payload[at].0];
        if bits.iter().any(is_wanted) {
            let columns = |bits: &[usize]| {
                let bits = bits.iter().enumerate().filter(|(_, at)| is_wanted(at));
                bits.map(|(bit, &at)| (payload[at].0, bit)).collect()
            };
            let bytes = bits.chunks(8).map(columns).collect();
            self.add(NullBits { bytes });
        } else {
            self.skip(bits.len().div_ceil(8));
        }
        for &(column, code) in payload {
            match code {
                _ if !self.wanted[column] => self.skip(code.width()),
                PayloadCode::Null => self.add(Nulls { column, width: 0 }),
                PayloadCode::Bool => self.boolean(column),
                PayloadCode::Fixed(width) => self.raw(column, width, false),
                PayloadCode::Bytes | PayloadCode::Value => {}
            }
        }
        for &(column, code) in payload.iter().filter(|(_, code)| code.varies()) {
            match code {
                _ if !self.wanted[column] => {
                    self.add(Pass(|row: &[u8]| body(row).map(|(head, value)| head + value.len())));
                }
                PayloadCode::Value => self.add(Built::new(layout, column)?),
                _ => {
                    let data_type = plain_type(layout.schema().field(column).data_type());
                    let mut strings = Strings::new(data_type);
                    strings.reserve(rows, self.room.values);
                    self.add(Bodies { column, strings });
                }
            }
        }
        Ok(())
    }
}
