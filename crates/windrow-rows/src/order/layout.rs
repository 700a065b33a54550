//! Layouts: an order bound to a schema, and the resulting shape of rows.
//!
//! ```text
//! keep, first, last:  | key | then | sequence | payload                | tombstone 0 or 1 |
//! sum:                | key | other orderable columns | payload | time 0 to 32 | diffs 8 each |
//!                      \_____ ordered code ______/     \_ equality code _/   \_ tail _/
//! ```
//!
//! Invariant: without their tail, rows compare as bytes like rows under the order, with ties in
//! input order. Two rows of the sum rule have equal bytes if and only if the rows are equal. Under
//! `last` and `last_known`, the columns of `then` and the sequence are complemented, so that the
//! winner comes first. The payload holds wide values first.

use std::cmp::Reverse;
use std::sync::Arc;

use arrow_schema::{DataType, Field, Schema, SchemaRef};

use super::code::{Node, OrderedCode, PayloadCode, plain_type};
use super::fold::{Diffs, Fold, LANE};
use super::shape::{Sequence, Shape};
use super::{Names, Order, Rule, SortColumn};
use crate::error::{Error, Result};
use crate::time::MOST_TIME_BYTES;

/// A column in the ordered part of a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slot {
    /// Position in the schema.
    pub column: usize,
    /// True if the code is complemented.
    pub descending: bool,
    /// Whether nulls come before all values.
    pub nulls_first: bool,
    pub(crate) nullable: bool,
    /// True if a spare code stands for the null, without a marker byte: see `rows::escape`.
    pub(crate) escapes: bool,
    pub(crate) code: OrderedCode,
    /// Tree of the type's parts, if the code is nested.
    pub(crate) node: Option<Arc<Node>>,
}

impl Slot {
    fn new(column: usize, field: &Field, code: OrderedCode) -> Self {
        let node = match code {
            OrderedCode::Nested => Node::of(plain_type(field.data_type())).map(Arc::new),
            _ => None,
        };
        Self { nullable: field.is_nullable(), node, ..Self::of_number(column, code) }
    }

    /// Returns the slot of a column of numbers without nulls, ascending.
    pub(crate) fn of_number(column: usize, code: OrderedCode) -> Self {
        Self {
            column,
            descending: false,
            nulls_first: false,
            nullable: false,
            escapes: false,
            code,
            node: None,
        }
    }

    /// Returns true if nulls inside nested values have low codes, before `descending` complements
    /// the codes.
    pub(crate) fn low_nulls(&self) -> bool {
        self.nulls_first != self.descending
    }

    /// Counts the bytes that the slot takes at least: its marker, and its value if the width is
    /// fixed.
    pub(crate) fn fixed_len(&self) -> usize {
        usize::from(self.has_marker()) + self.code.width()
    }

    /// Returns true if a marker byte distinguishes nulls from values.
    pub(crate) fn has_marker(&self) -> bool {
        self.nullable && !self.escapes && self.code != OrderedCode::Null
    }
}

/// Minimum width in bytes of numbers with a spare code for a null.
const LEAST_ESCAPING: usize = 4;

/// The tail: data at a fixed distance from the end of a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tail {
    /// Rows end with their time or their payload.
    None,
    /// One byte: 1 if the row deletes its key. The column's position.
    Tombstone(usize),
    /// Lanes of eight bytes, little-endian.
    Diffs(Diffs),
}

impl Tail {
    /// Returns the bytes of the tail.
    #[expect(clippy::len_without_is_empty, reason = "a length in bytes")]
    pub fn len(&self) -> usize {
        match self {
            Self::None => 0,
            Self::Tombstone(_) => 1,
            Self::Diffs(diffs) => LANE * diffs.columns.len(),
        }
    }

    /// Returns the number of diffs.
    pub fn lanes(&self) -> usize {
        self.len() / LANE
    }

    /// Returns true if the tail is a single sum, which kernels support.
    pub fn is_one_sum(&self) -> bool {
        self.diffs().is_some_and(Diffs::are_one_sum)
    }

    /// Adds a diff to another one of the same row: [`Diffs::add`].
    #[inline]
    pub fn add(&self, into: &mut [u8], diff: &[u8], wrapped: impl FnMut(usize, i64)) {
        if let Some(diffs) = self.diffs() {
            diffs.add(into, diff, wrapped);
        }
    }

    /// Returns true if a row with this diff is removed.
    #[inline]
    pub fn is_zero(&self, diff: &[u8]) -> bool {
        self.diffs().is_some_and(|diffs| diffs.is_zero(diff))
    }

    /// Returns the fold that replaces sums.
    pub(super) fn fold(&self) -> Option<&'static dyn Fold> {
        self.diffs().and_then(|diffs| diffs.fold)
    }

    fn diffs(&self) -> Option<&Diffs> {
        match self {
            Self::Diffs(diffs) => Some(diffs),
            Self::None | Self::Tombstone(_) => None,
        }
    }

    /// Returns the columns in the tail.
    fn columns(&self) -> &[usize] {
        match self {
            Self::None => &[],
            Self::Tombstone(column) => std::slice::from_ref(column),
            Self::Diffs(diffs) => &diffs.columns,
        }
    }
}

/// Maximum number of diffs of a row: headers store the number in a byte.
const MOST_LANES: usize = u8::MAX as usize;

/// An [`Order`] bound to a schema. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Layout {
    inner: Arc<Inner>,
}

#[derive(Clone, Debug)]
struct Inner {
    schema: SchemaRef,
    order: Vec<SortColumn>,
    slots: Vec<Slot>,
    key_slots: usize,
    payload: Vec<(usize, PayloadCode)>,
    shape: Shape,
    time: Option<usize>,
    tail: Tail,
    rule: Rule,
}

impl Layout {
    pub(super) fn bind(order: &Order, schema: SchemaRef) -> Result<Self> {
        let sums = order.rule == Rule::Sum;
        let reversed = order.rule.prefers_last();
        check(order)?;
        let names = Names::of(&schema);
        let time = order.time.as_deref();
        let time = time.map(|name| column_of(&names, name, "the time of a change", is_time));
        let time = time.transpose()?;
        let diffs = order.diffs.iter().map(|name| column_of(&names, name, "a diff", is_diff));
        let tail = match &order.tombstone {
            _ if sums => {
                Tail::Diffs(Diffs { columns: diffs.collect::<Result<_>>()?, fold: order.fold })
            }
            Some(name) => Tail::Tombstone(column_of(&names, name, "a tombstone", |data_type| {
                *data_type == DataType::Boolean
            })?),
            None => Tail::None,
        };
        let mut taken = vec![false; schema.fields().len()];
        if let Some(time) = time {
            taken[time] = true;
        }
        let twice = |name: &str| {
            Error::InvalidOrder(format!("column {name:?} has more than one part in the order"))
        };
        for &column in tail.columns() {
            if std::mem::replace(&mut taken[column], true) {
                return Err(twice(schema.field(column).name()));
            }
        }

        let mut slots = Vec::new();
        let named =
            order.key.iter().map(|c| (c, false)).chain(order.then.iter().map(|c| (c, true)));
        for (column, within_key) in named {
            let (index, field) = names.find(&column.name)?;
            if std::mem::replace(&mut taken[index], true) {
                return Err(twice(&column.name));
            }
            let code = OrderedCode::of(field.data_type())
                .ok_or_else(|| unsupported(field, "a sort key"))?;
            let flip = reversed && within_key;
            slots.push(Slot {
                descending: column.descending != flip,
                nulls_first: column.nulls_first != flip,
                ..Slot::new(index, field, code)
            });
        }
        let mut payload = Vec::new();
        for (index, field) in schema.fields().iter().enumerate() {
            if taken[index] {
                continue;
            }
            match OrderedCode::of(field.data_type()) {
                Some(code) if sums => slots.push(Slot::new(index, field, code)),
                _ => payload.push((index, PayloadCode::of(field))),
            }
        }
        // Values of one width are adjacent, so that the kernels write and read them together.
        payload.sort_by_key(|&(_, code)| Reverse(code.width()));
        let time_len = time.map_or(0, |time| ordered_width(&schema, time));
        let shape = Shape::new(&schema, &slots, &payload, !sums, time_len, &tail);
        Ok(Self {
            inner: Arc::new(Inner {
                key_slots: order.key.len(),
                order: order.key.iter().chain(&order.then).cloned().collect(),
                shape,
                rule: order.rule,
                schema,
                slots,
                payload,
                time,
                tail,
            }),
        })
    }

    /// Returns the same order for rows that stand alone. Rows carry no sequence, so that equal rows
    /// have equal bytes. Spare codes stand for nulls wherever a type has some. The columns of
    /// `then` keep the user's order, even if the rule puts the winner first.
    pub(crate) fn standing_alone(&self) -> Self {
        let mut inner = Inner::clone(&self.inner);
        if inner.rule.prefers_last() {
            for slot in &mut inner.slots[inner.key_slots..] {
                slot.descending = !slot.descending;
                slot.nulls_first = !slot.nulls_first;
            }
        }
        // The nulls of wide numbers are encoded by a spare code instead of a marker.
        for slot in &mut inner.slots {
            let wide = matches!(slot.code, OrderedCode::Fixed(width, _) if width >= LEAST_ESCAPING);
            slot.escapes = slot.nullable && wide;
        }
        let time_len = inner.time.map_or(0, |time| ordered_width(&inner.schema, time));
        let Inner { schema, slots, payload, tail, .. } = &inner;
        inner.shape = Shape::new(schema, slots, payload, false, time_len, tail);
        Self { inner: Arc::new(inner) }
    }

    /// Returns the layout of the keys alone. The schema holds the key's columns, in the order of
    /// the key; the rows are prefixes of this layout's rows.
    pub(crate) fn of_keys(&self) -> Self {
        self.of_first(self.inner.key_slots)
    }

    /// Returns the layout of the columns of the order alone, like [`Layout::of_keys`], for rows
    /// that stand alone.
    pub(crate) fn of_order(&self) -> Self {
        self.standing_alone().of_first(self.order().len())
    }

    /// Returns the layout of the columns of the first slots alone.
    fn of_first(&self, count: usize) -> Self {
        let (inner, slots) = (&*self.inner, &self.slots()[..count]);
        let field = |slot: &Slot| Arc::clone(&inner.schema.fields()[slot.column]);
        let schema: SchemaRef = Arc::new(Schema::new(slots.iter().map(field).collect::<Vec<_>>()));
        let place = |(column, slot): (usize, &Slot)| Slot { column, ..slot.clone() };
        let slots: Vec<Slot> = slots.iter().enumerate().map(place).collect();
        let shape = Shape::new(&schema, &slots, &[], false, 0, &Tail::None);
        Self {
            inner: Arc::new(Inner {
                order: inner.order[..slots.len()].to_vec(),
                key_slots: slots.len(),
                payload: Vec::new(),
                time: None,
                tail: Tail::None,
                rule: Rule::Keep,
                schema,
                slots,
                shape,
            }),
        }
    }

    /// Returns true if the keys of this layout and of `other` compare as bytes: the key columns
    /// have the same types, nullability, directions and positions of nulls. Names, positions and
    /// all other columns may differ.
    pub fn same_key(&self, other: &Self) -> bool {
        let keys = self.key_slots().iter().zip(other.key_slots());
        self.inner.key_slots == other.inner.key_slots
            && keys.clone().all(|(a, b)| *a == Slot { column: a.column, ..b.clone() })
    }

    fn compare(&self, other: &Self) -> Result<()> {
        self.check_schema(other.schema())?;
        let (a, b) = (&*self.inner, &*other.inner);
        let same = (a.rule, a.time, a.key_slots) == (b.rule, b.time, b.key_slots)
            && (&a.slots, &a.payload, &a.tail) == (&b.slots, &b.payload, &b.tail)
            && a.shape.null_bits == b.shape.null_bits;
        if same {
            return Ok(());
        }
        let order = |of: &Inner| format!("rows by {:?}, {:?}", of.order, of.rule);
        Err(Error::SchemaMismatch { expected: order(a), got: order(b) })
    }

    /// Returns the schema that the order was bound to.
    pub fn schema(&self) -> &SchemaRef {
        &self.inner.schema
    }

    /// Returns the columns of the order, most significant first: the key, then the order within a
    /// key.
    pub fn order(&self) -> &[SortColumn] {
        &self.inner.order
    }

    /// Returns the positions of the key columns in the schema.
    pub fn key(&self) -> impl Iterator<Item = usize> + '_ {
        self.inner.slots[..self.inner.key_slots].iter().map(|slot| slot.column)
    }

    /// Returns the rule that combines rows with equal keys.
    pub fn rule(&self) -> Rule {
        self.inner.rule
    }

    pub(crate) fn slots(&self) -> &[Slot] {
        &self.inner.slots
    }

    pub(crate) fn payload(&self) -> &[(usize, PayloadCode)] {
        &self.inner.payload
    }

    /// Returns the length of a row in bytes, if all rows of the layout have the same length: no key
    /// or payload column varies. Follows from the schema alone.
    pub fn stride(&self) -> Option<usize> {
        self.inner.shape.stride
    }

    pub(crate) fn shape(&self) -> &Shape {
        &self.inner.shape
    }

    /// Returns true if later sequences sort first.
    pub(crate) fn sequence_descends(&self) -> bool {
        self.inner.rule.prefers_last()
    }
}

/// For the engine.
#[doc(hidden)]
impl Layout {
    /// Returns true if `other` is this layout or a clone.
    pub fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.inner, &other.inner)
    }

    /// Fails unless rows of `other` are valid rows of this layout.
    #[inline]
    pub fn check_same(&self, other: &Self) -> Result<()> {
        if self.is(other) { Ok(()) } else { self.compare(other) }
    }

    /// Returns the ordered columns of the key.
    pub fn key_slots(&self) -> &[Slot] {
        &self.inner.slots[..self.inner.key_slots]
    }

    /// Returns how rows store their position in the input, after the ordered columns.
    pub fn sequence(&self) -> Sequence {
        self.inner.shape.sequence
    }

    /// Returns the column of the time.
    pub fn time(&self) -> Option<usize> {
        self.inner.time
    }

    /// Returns the tail of the rows.
    pub fn tail(&self) -> &Tail {
        &self.inner.tail
    }

    /// Fails unless a record batch of `schema` can be encoded with this layout.
    pub fn check_schema(&self, schema: &Schema) -> Result<()> {
        check_fields(self.schema(), schema)
    }
}

/// Fails unless `got` has the columns of `expected`, by name and type. Metadata and nullability may
/// differ: the encoder checks the values for nulls.
pub fn check_fields(expected: &Schema, got: &Schema) -> Result<()> {
    let mismatch = |expected: String, got: String| Err(Error::SchemaMismatch { expected, got });
    if expected.fields().len() != got.fields().len() {
        return mismatch(
            format!("{} columns", expected.fields().len()),
            format!("{} columns", got.fields().len()),
        );
    }
    for (want, got) in expected.fields().iter().zip(got.fields()) {
        let same = Arc::ptr_eq(want, got)
            || want.name() == got.name() && want.data_type() == got.data_type();
        if !same {
            return mismatch(
                format!("{:?}: {}", want.name(), want.data_type()),
                format!("{:?}: {}", got.name(), got.data_type()),
            );
        }
    }
    Ok(())
}

fn column_of(
    names: &Names<'_>,
    name: &str,
    role: &'static str,
    fits: impl Fn(&DataType) -> bool,
) -> Result<usize> {
    let (index, field) = names.find(name)?;
    if fits(field.data_type()) { Ok(index) } else { Err(unsupported(field, role)) }
}

fn is_time(data_type: &DataType) -> bool {
    OrderedCode::of(data_type).is_some_and(|code| match code {
        OrderedCode::FixedBinary(width) => width <= MOST_TIME_BYTES,
        code => code.is_integer() && code.width() <= 8,
    })
}

fn is_diff(data_type: &DataType) -> bool {
    use DataType::{Int8, Int16, Int32, Int64, UInt8, UInt16, UInt32};
    matches!(data_type, Int8 | Int16 | Int32 | Int64 | UInt8 | UInt16 | UInt32)
}

/// Returns the bytes of a column's ordered code, or 0 if the type has none.
fn ordered_width(schema: &Schema, column: usize) -> usize {
    OrderedCode::of(schema.field(column).data_type()).map_or(0, OrderedCode::width)
}

fn unsupported(field: &Field, role: &'static str) -> Error {
    Error::UnsupportedColumn {
        column: field.name().clone(),
        data_type: field.data_type().clone(),
        role,
    }
}

/// Checks whether the parts of `order` go together.
fn check(order: &Order) -> Result<()> {
    let sums = order.rule == Rule::Sum;
    let faults = [
        (
            sums && !order.then.is_empty(),
            "a consolidation orders by every column: add the columns of `then` to the key",
        ),
        (
            order.tombstone.is_some() && !order.rule.prefers_last(),
            "a tombstone column needs the rule `last` or `last_known`",
        ),
        (
            sums == order.diffs.is_empty() || order.diffs.len() > MOST_LANES,
            &format!("the rule `sum` needs diff columns, up to {MOST_LANES}"),
        ),
        (order.fold.is_some() && !sums, "a fold needs diff columns"),
        (order.time.is_some() && !sums, "a time column needs a diff column"),
    ];
    match faults.iter().find(|(is_wrong, _)| *is_wrong) {
        Some((_, message)) => Err(Error::InvalidOrder((*message).into())),
        None => Ok(()),
    }
}
