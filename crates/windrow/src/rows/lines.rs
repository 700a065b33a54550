//! Adjacent columns of fixed width, to be written in one go by the kernels.
//!
//! ```text
//! | mark | bool | i16 | mark | i64 | i64 | i64 | mark | binary(20) | mark | text
//!   \______ bytes ________/    \__ numbers _/   bytes    raw         bytes  other
//! ```
//!
//! Invariant: a group is of one form, and of more than one field only where the kernels write these together.

use std::ops::Range;

use super::column::Column;
use super::lanes::{RAW, bits, slot_code, validity};
use super::text;
use crate::kernel::rows::{
    Bits, ByteLane, Code, Lane, Lanes, Places, Raw, Source, Strided, put, put_bytes, put_raw,
};
use crate::order::code::{Kind, OrderedCode, PayloadCode};
use crate::order::{Layout, Slot};

/// The marker or the value of a slot, or the value of a payload column.
#[derive(Clone, Copy, Debug)]
pub(super) struct Field {
    /// Its position among the slots, or in the payload.
    pub(super) at: usize,
    marker: bool,
}

/// Fields next to each other that are written together.
#[derive(Clone, Debug)]
pub(super) struct Group {
    pub(super) fields: Vec<Field>,
    form: Form,
}

/// What fields are to the kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// One or two bytes that stand for themselves.
    Bytes,
    /// Numbers of 4, 8 or 16 bytes.
    Numbers(usize),
    /// A column whose bytes are moved as they are, or complemented.
    Raw,
    /// A column that they have no path for.
    Other,
}

impl Form {
    fn of_slot(slot: &Slot) -> Self {
        use Kind::{Float, Signed, Unsigned};
        match slot.code {
            OrderedCode::Bool | OrderedCode::Fixed(1 | 2, Unsigned | Signed | Float) => Self::Bytes,
            OrderedCode::Fixed(width @ (4 | 8), Unsigned | Signed | Float) => Self::Numbers(width),
            OrderedCode::Fixed(16, Unsigned | Signed) => Self::Numbers(16),
            OrderedCode::FixedBinary(_) => Self::Raw,
            _ => Self::Other,
        }
    }

    fn of_payload(code: PayloadCode) -> Self {
        match code {
            PayloadCode::Bool | PayloadCode::Fixed(1 | 2) => Self::Bytes,
            PayloadCode::Fixed(width @ (4 | 8 | 16)) => Self::Numbers(width),
            PayloadCode::Fixed(_) => Self::Raw,
            PayloadCode::Null | PayloadCode::Bytes | PayloadCode::Value => Self::Other,
        }
    }
}

fn add(groups: &mut Vec<Group>, form: Form, field: Field) {
    match groups.last_mut() {
        Some(last) if last.form == form && matches!(form, Form::Bytes | Form::Numbers(_)) => {
            last.fields.push(field);
        }
        _ => groups.push(Group { fields: vec![field], form }),
    }
}

/// The slots of `layout`.
pub(super) fn slot_groups(layout: &Layout) -> Vec<Group> {
    let mut groups = Vec::new();
    for (at, slot) in layout.slots().iter().enumerate() {
        if slot.has_marker() {
            add(&mut groups, Form::Bytes, Field { at, marker: true });
        }
        add(&mut groups, Form::of_slot(slot), Field { at, marker: false });
    }
    groups
}

/// The payload of `layout`: what of it stands in the head.
pub(super) fn payload_groups(layout: &Layout) -> Vec<Group> {
    let mut groups = Vec::new();
    for (at, &(_, code)) in layout.payload().iter().enumerate() {
        if code.width() > 0 {
            add(&mut groups, Form::of_payload(code), Field { at, marker: false });
        }
    }
    groups
}

/// The fields of a group as the kernels take them.
#[derive(Debug)]
pub(super) enum Line<'a> {
    Numbers(Lanes<'a>),
    Bytes(Vec<ByteLane<'a>>),
    Raw(Raw<'a>),
}

impl<'a> Line<'a> {
    /// Slots of `rows` rows, unless a kernel does not write them: `longer` are those that have values
    /// which take a byte more than most.
    pub(super) fn of_slots(
        group: &Group,
        slots: &[Slot],
        columns: &'a [Column],
        longer: &[bool],
        rows: usize,
    ) -> Option<Self> {
        match group.form {
            Form::Bytes => {
                let mut lanes = Vec::with_capacity(group.fields.len());
                for &Field { at, marker } in &group.fields {
                    let (slot, column) = (&slots[at], &columns[at]);
                    match marker {
                        true => lanes.push(marker_lane(column, text::markers(slot))),
                        false => {
                            let one = u8::from(!slot.descending);
                            let bools = [1 - one, one];
                            add_bytes(column, slot.code, slot.descending, bools, &mut lanes)?;
                        }
                    }
                }
                Some(Self::Bytes(lanes))
            }
            Form::Numbers(width) => {
                if group.fields.iter().any(|field| longer[field.at]) {
                    return None;
                }
                Self::numbers(group, columns, width, rows, |at| slot_code(&slots[at]))
            }
            Form::Raw => {
                Self::raw(group, columns, |at| slots[at].code.width(), |at| slots[at].descending)
            }
            Form::Other => None,
        }
    }

    /// Payload columns of `rows` rows.
    pub(super) fn of_payload(
        group: &Group,
        payload: &[(usize, PayloadCode)],
        columns: &'a [Column],
        rows: usize,
    ) -> Option<Self> {
        match group.form {
            Form::Bytes => {
                let mut lanes = Vec::with_capacity(group.fields.len());
                for field in &group.fields {
                    add_raw_bytes(&columns[field.at], payload[field.at].1.width(), &mut lanes)?;
                }
                Some(Self::Bytes(lanes))
            }
            Form::Numbers(width) => Self::numbers(group, columns, width, rows, |_| RAW),
            Form::Raw => Self::raw(group, columns, |at| payload[at].1.width(), |_| false),
            Form::Other => None,
        }
    }

    fn numbers(
        group: &Group,
        columns: &'a [Column],
        width: usize,
        rows: usize,
        code: impl Fn(usize) -> Code,
    ) -> Option<Self> {
        let lane = |field: &Field| match &columns[field.at] {
            Column::Fixed { values, nulls } => {
                Some(Lane { values, valid: validity(nulls), code: code(field.at) })
            }
            _ => None,
        };
        let lanes = group.fields.iter().map(lane).collect::<Option<Vec<_>>>()?;
        Some(Self::Numbers(Lanes::new(lanes, width, rows)))
    }

    fn raw(
        group: &Group,
        columns: &'a [Column],
        width: impl Fn(usize) -> usize,
        descends: impl Fn(usize) -> bool,
    ) -> Option<Self> {
        let at = group.fields.first()?.at;
        let Column::Fixed { values, nulls } = &columns[at] else { return None };
        let flip = if descends(at) { 0xff } else { 0 };
        Some(Self::Raw(Raw { values, width: width(at), valid: validity(nulls), flip }))
    }

    /// Bytes that they take in a row.
    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::Numbers(lanes) => lanes.bytes(),
            Self::Bytes(lanes) => lanes.len(),
            Self::Raw(raw) => raw.width,
        }
    }

    /// Rows that are written first, if all columns are written at once; then all others are.
    fn first_rows(&self) -> Option<usize> {
        match self {
            Self::Numbers(lanes) => lanes.is_one_block().then_some(FIRST_ROWS),
            Self::Bytes(_) | Self::Raw(_) => Some(usize::MAX),
        }
    }

    /// Writes them for `rows`, as [`put`].
    pub(super) fn put<P: Places>(&self, rows: Range<usize>, places: P, out: &mut [u8]) -> bool {
        match self {
            Self::Numbers(lanes) => return put(lanes, rows, places, out),
            Self::Bytes(lanes) => put_bytes(lanes, rows, places, out),
            Self::Raw(raw) => put_raw(raw, rows, places, out),
        }
        false
    }
}

/// The marker of each row of `column`: what stands for a null, and for a value.
pub(super) fn marker_lane(column: &Column, (null, value): (u8, u8)) -> ByteLane<'_> {
    ByteLane::of(match column.nulls() {
        Some(nulls) => Source::Bits(bits(nulls), [null, value]),
        None => Source::Same(value),
    })
}

/// The bytes of a slot of one or two, the first of them first; of a null they are zeros. `bools` stand for a
/// Boolean that is false, and one that is true.
pub(super) fn add_bytes<'a>(
    column: &'a Column,
    code: OrderedCode,
    descends: bool,
    bools: [u8; 2],
    lanes: &mut Vec<ByteLane<'a>>,
) -> Option<()> {
    match (code, column) {
        (OrderedCode::Bool, Column::Bool { values, nulls }) => {
            let bits = Bits { bytes: values.values(), first: values.offset() };
            let source = Source::Bits(bits, bools);
            lanes.push(ByteLane { source, valid: validity(nulls), null: 0 });
        }
        (OrderedCode::Fixed(width @ (1 | 2), kind), Column::Fixed { values, nulls }) => {
            let flip = if descends { 0xff } else { 0 };
            let sign = if kind == Kind::Unsigned { 0 } else { 0x80 };
            let float = if kind == Kind::Float { 0xff } else { 0 };
            // Least significant bytes first, as a machine that is little-endian holds them.
            for at in (0..width).rev() {
                // All bits but the sign are those that a negative float complements.
                let own = if at + 1 == width { sign } else { 0 };
                let (flip, float) = (flip ^ own, float & !own);
                let source = Source::Values { values, width, at, flip, float };
                lanes.push(ByteLane { source, valid: validity(nulls), null: 0 });
            }
        }
        _ => return None,
    }
    Some(())
}

/// The bytes of a payload column of one or two, as they are; of a null they are zeros.
fn add_raw_bytes<'a>(
    column: &'a Column,
    width: usize,
    lanes: &mut Vec<ByteLane<'a>>,
) -> Option<()> {
    let Column::Fixed { values, nulls } = column else {
        return add_bytes(column, OrderedCode::Bool, false, [0, 1], lanes);
    };
    for at in 0..width {
        let source = Source::Values { values, width, at, flip: 0, float: 0 };
        lanes.push(ByteLane { source, valid: validity(nulls), null: 0 });
    }
    Some(())
}

/// Bytes of a tile of nothing but numbers that fits the first-level cache, so that what one block
/// of columns has written is there for the next one: 8 % faster for 10 columns.
const NEAR_TILE: usize = 16 << 10;
/// Rows of such a tile at the least, else it is one of [`FAR_ROWS`].
const NEAR_ROWS: usize = 128;
/// Rows of a tile that stays in the second-level cache: columns are then read in stretches that are
/// worth fetching ahead. 10 to 30 % faster for 50 columns than what fits the first-level cache, and 4 % than
/// tiles of 1,024, unless memory is slow; 1 % faster than 256, where there are no nulls.
const FAR_ROWS: usize = 192;

/// Rows of the first tile of one block: where many numbers have no code of one length, one of them does not. With 2,048,
/// what was written in vain was 15 % of the time of such a column.
const FIRST_ROWS: usize = 128;

/// Rows of `stride` bytes that are written column by column before going on to the next ones.
pub(super) fn tile_rows(stride: usize) -> usize {
    let near = NEAR_TILE / stride.max(1) / 64 * 64;
    if near >= NEAR_ROWS { near } else { FAR_ROWS }
}

/// Writes rows of `stride` bytes, which are `lines` one behind the other and nothing else, as
/// [`put`].
pub(super) fn put_tiled<'a>(
    lines: impl Iterator<Item = &'a Line<'a>> + Clone,
    stride: usize,
    rows: Range<usize>,
    out: &mut [u8],
) -> bool {
    // Of one block there is nothing in tiles but to learn early that the rows are wrong.
    let is_one_line = lines.clone().count() == 1;
    let first_rows = lines.clone().next().filter(|_| is_one_line).and_then(Line::first_rows);
    let mut tile_rows = first_rows.unwrap_or_else(|| tile_rows(stride));
    let (mut escaped, mut at) = (false, 0);
    while at < rows.len() && !escaped {
        let tile = rows.start + at..rows.start + (at + tile_rows).min(rows.len());
        if first_rows.is_some() {
            tile_rows = rows.len();
        }
        let mut places = Strided { first: at * stride, stride };
        at += tile.len();
        for line in lines.clone() {
            escaped |= line.put(tile.clone(), places, out);
            places.first += line.bytes();
        }
    }
    escaped
}
