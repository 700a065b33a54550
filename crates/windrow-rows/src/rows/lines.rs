//! Groups of adjacent columns of fixed width, which kernels write in one go.
//!
//! ```text
//! | mark | bool | i16 | mark | i64 | mark | i64 | i64 | i64 | mark | binary(20) | mark | text
//!   \_____ bytes ____/    \________ cells _______/ \_ numbers /  bytes   raw       bytes   other
//! ```
//!
//! Invariant: a group has one form. It has several fields only if the kernels write them together.

use std::ops::Range;

use super::column::Column;
use super::lanes::{RAW, bits, number_width, slot_code, validity};
use super::text;
use crate::order::code::{Kind, OrderedCode, PayloadCode};
use crate::order::{Layout, Slot};
use windrow_kernel::rows::{
    Bits, ByteLane, Cells, Code, Lane, Lanes, Places, Raw, Source, Strided, put, put_bytes,
    put_cells, put_raw,
};

/// The marker or the value of a slot, or the value of a payload column.
#[derive(Clone, Copy, Debug)]
pub(super) struct Field {
    /// Position among the slots, or in the payload.
    pub(super) at: usize,
    marker: bool,
}

/// Adjacent fields that are written together.
#[derive(Clone, Debug)]
pub(super) struct Group {
    pub(super) fields: Vec<Field>,
    form: Form,
}

/// Form of a field for the kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// One or two bytes, written one by one.
    Bytes,
    /// Numbers of 4, 8 or 16 bytes.
    Numbers(usize),
    /// Numbers of 4, 8 or 16 bytes, each after its marker.
    Cells(usize),
    /// A column whose bytes are copied unchanged or complemented.
    Raw,
    /// A column without a kernel.
    Other,
}

impl Form {
    fn of_slot(slot: &Slot) -> Self {
        use Kind::{Float, Signed, Unsigned};
        match slot.code {
            OrderedCode::Bool | OrderedCode::Fixed(1 | 2, Unsigned | Signed | Float) => Self::Bytes,
            OrderedCode::FixedBinary(_) => Self::Raw,
            code => number_width(code).map_or(Self::Other, Self::Numbers),
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
        Some(last) if last.form == form && !matches!(form, Form::Raw | Form::Other) => {
            last.fields.push(field);
        }
        _ => groups.push(Group { fields: vec![field], form }),
    }
}

/// Groups the slots of `layout`.
pub(super) fn slot_groups(layout: &Layout) -> Vec<Group> {
    let mut groups = Vec::new();
    for (at, slot) in layout.slots().iter().enumerate() {
        let form = match (Form::of_slot(slot), slot.has_marker()) {
            (Form::Numbers(width), true) => Form::Cells(width),
            (form, true) => {
                add(&mut groups, Form::Bytes, Field { at, marker: true });
                form
            }
            (form, false) => form,
        };
        add(&mut groups, form, Field { at, marker: false });
    }
    groups
}

/// Groups the payload columns of `layout` in the head.
pub(super) fn payload_groups(layout: &Layout) -> Vec<Group> {
    let mut groups = Vec::new();
    for (at, &(_, code)) in layout.payload().iter().enumerate() {
        if code.width() > 0 {
            add(&mut groups, Form::of_payload(code), Field { at, marker: false });
        }
    }
    groups
}

/// The fields of a group in the kernels' form.
#[derive(Debug)]
pub(super) enum Line<'a> {
    Numbers(Lanes<'a>),
    Cells(Cells<'a>),
    Bytes(Vec<ByteLane<'a>>),
    Raw(Raw<'a>),
}

impl<'a> Line<'a> {
    /// Converts slots of `rows` rows, or returns `None` if no kernel writes them. `longer` marks
    /// slots with values that take an extra byte.
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
            Form::Cells(width) => {
                let lanes = lanes(group, columns, |at| slot_code(&slots[at]))?;
                let nulls = group.fields.iter().map(|field| text::markers(&slots[field.at]).0);
                Some(Self::Cells(Cells::new(lanes, nulls.collect(), width)))
            }
            Form::Raw => {
                Self::raw(group, columns, |at| slots[at].code.width(), |at| slots[at].descending)
            }
            Form::Other => None,
        }
    }

    /// Converts payload columns of `rows` rows.
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
                    let column = &columns[field.at];
                    let code = match column {
                        Column::Bool { .. } => OrderedCode::Bool,
                        _ => OrderedCode::Fixed(payload[field.at].1.width(), Kind::Unsigned),
                    };
                    // The bytes are unchanged, last byte first; nulls are zeros.
                    let first = lanes.len();
                    add_bytes(column, code, false, [0, 1], &mut lanes)?;
                    lanes[first..].reverse();
                }
                Some(Self::Bytes(lanes))
            }
            Form::Numbers(width) => Self::numbers(group, columns, width, rows, |_| RAW),
            Form::Raw => Self::raw(group, columns, |at| payload[at].1.width(), |_| false),
            Form::Cells(_) | Form::Other => None,
        }
    }

    fn numbers(
        group: &Group,
        columns: &'a [Column],
        width: usize,
        rows: usize,
        code: impl Fn(usize) -> Code,
    ) -> Option<Self> {
        Some(Self::Numbers(Lanes::new(lanes(group, columns, code)?, width, rows)))
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

    /// Returns the bytes of the fields in a row.
    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::Numbers(lanes) => lanes.bytes(),
            Self::Cells(cells) => cells.bytes(),
            Self::Bytes(lanes) => lanes.len(),
            Self::Raw(raw) => raw.width,
        }
    }

    /// Writes the fields of `rows` like [`put`]. Returns true if a value has no code of its width.
    pub(super) fn put<P: Places>(&self, rows: Range<usize>, places: P, out: &mut [u8]) -> bool {
        match self {
            Self::Numbers(lanes) => return put(lanes, rows, places, out),
            Self::Cells(cells) => put_cells(cells, rows, places, out),
            Self::Bytes(lanes) => put_bytes(lanes, rows, places, out),
            Self::Raw(raw) => put_raw(raw, rows, places, out),
        }
        false
    }
}

/// Returns the number fields of a group.
fn lanes<'a>(
    group: &Group,
    columns: &'a [Column],
    code: impl Fn(usize) -> Code,
) -> Option<Vec<Lane<'a>>> {
    let lane = |field: &Field| match &columns[field.at] {
        Column::Fixed { values, nulls } => {
            Some(Lane { values, valid: validity(nulls), code: code(field.at) })
        }
        _ => None,
    };
    group.fields.iter().map(lane).collect()
}

/// Returns the markers of `column`: the bytes for a null and for a value.
pub(super) fn marker_lane(column: &Column, (null, value): (u8, u8)) -> ByteLane<'_> {
    ByteLane::of(match column.nulls() {
        Some(nulls) => Source::Bits(bits(nulls), [null, value]),
        None => Source::Same(value),
    })
}

/// Adds the bytes of a slot of one or two bytes, first byte first; nulls are zeros. `bools` are the
/// bytes of false and of true.
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
            // Little-endian machines hold the least significant byte first.
            for at in (0..width).rev() {
                // Negative floats complement all bits but the sign.
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

/// Bytes of a row in the widest block, which is written at once. Tiles of such narrow rows only
/// serve to find early that a value is longer than assumed.
const BLOCK: usize = 64;
/// Rows of a tile of such narrow rows.
const MANY_ROWS: usize = 1024;
/// Bytes of a tile in the first-level cache, where one block of columns finds the output of the
/// block before.
const NEAR_TILE: usize = 16 << 10;
/// Minimum rows of such a tile. Wider rows use tiles of [`FAR_ROWS`].
const NEAR_ROWS: usize = 128;
/// Rows of a tile in the second-level cache: stretches of columns are then long enough for
/// prefetching (`windrow-bench rows --only 50`).
const FAR_ROWS: usize = 192;

/// Returns the number of rows of a tile, for rows of `stride` bytes.
pub(super) fn tile_rows(stride: usize) -> usize {
    let near = NEAR_TILE / stride.max(1) / 64 * 64;
    match stride {
        0..=BLOCK => MANY_ROWS,
        _ if near >= NEAR_ROWS => near,
        _ => FAR_ROWS,
    }
}

/// Writes rows of `stride` bytes, which consist of `lines` in sequence, like [`put`].
pub(super) fn put_tiled<'a>(
    lines: impl Iterator<Item = &'a Line<'a>> + Clone,
    stride: usize,
    rows: Range<usize>,
    out: &mut [u8],
) -> bool {
    let tile_rows = tile_rows(stride).min(rows.len()).max(1);
    let mut escaped = false;
    for first in (0..rows.len()).step_by(tile_rows) {
        let tile = rows.start + first..rows.end.min(rows.start + first + tile_rows);
        let mut places = Strided { first: first * stride, stride };
        for line in lines.clone() {
            escaped |= line.put(tile.clone(), places, out);
            places.first += line.bytes();
        }
        if escaped {
            break;
        }
    }
    escaped
}
