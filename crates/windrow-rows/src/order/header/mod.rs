//! Layouts as bytes: the header of a run that is written separately and compared later.
//!
//! ```text
//! "WRWL" | version 2 | floats 1 | rule 1 | key | then | time | diffs | tombstone | fold | schema
//! columns    count 4, then each: name, flags 1 (1 descending, 2 nulls first)
//! name       length 4, UTF-8; time, diffs and tombstone: number of names (1 byte), the names
//! fold       its name, if the rule is a fold: such a layout is compared, and not read back
//! schema     fields and metadata, as drawn in `types`
//! ```
//! Numbers are little-endian.
//!
//! Invariant: rows of two layouts with equal headers compare as bytes. `from_bytes` binds the order
//! again, so that its layout is right by construction, whatever the bytes.

mod types;
mod wire;

use arrow_schema::{Schema, SchemaRef};

use self::wire::{Reader, Writer};
use super::{Layout, Order, Rule, SortColumn, Tail};
use crate::error::{Error, Result};

const MAGIC: &[u8; 4] = b"WRWL";
/// The version of the row format, sequences and payload included.
const VERSION: u16 = 3;
/// Floats in IEEE 754 totalOrder, bit for bit: the only policy.
const TOTAL_ORDER: u8 = 0;

/// Numbers of [`Rule::Sum`]: diffs are added up, or folded.
const SUM: u8 = 3;
const FOLD: u8 = 5;

const DESCENDING: u8 = 1;
const NULLS_FIRST: u8 = 2;

impl Layout {
    /// Returns the layout as bytes, for a header in front of its rows. The bytes contain everything
    /// that rows depend on: the version of the format, schema and nullability, order, rule, and the
    /// order of floats. Types nested over 64 levels deep are written, but cannot be read back.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Writer::default();
        out.raw(MAGIC);
        out.raw(&VERSION.to_le_bytes());
        out.byte(TOTAL_ORDER);
        out.byte(match self.rule() {
            Rule::Keep => 0,
            Rule::First => 1,
            Rule::Last => 2,
            Rule::Sum if self.tail().fold().is_some() => FOLD,
            Rule::Sum => SUM,
            Rule::LastKnown => 4,
        });
        let (key, then) = self.order().split_at(self.key().count());
        for columns in [key, then] {
            out.count(columns.len());
            for column in columns {
                out.text(&column.name);
                let flag = |set: bool, flag: u8| if set { flag } else { 0 };
                let descending = flag(column.descending, DESCENDING);
                out.byte(descending | flag(column.nulls_first, NULLS_FIRST));
            }
        }
        let (diffs, tombstone) = match self.tail() {
            Tail::None => (&[][..], None),
            Tail::Diffs(diffs) => (&diffs.columns[..], None),
            Tail::Tombstone(column) => (&[][..], Some(*column)),
        };
        for columns in [self.time().as_slice(), diffs, tombstone.as_slice()] {
            out.byte(columns.len() as u8);
            columns.iter().for_each(|&column| out.text(self.schema().field(column).name()));
        }
        if let Some(fold) = self.tail().fold() {
            out.text(fold.name());
        }
        types::put_schema(self.schema(), &mut out);
        out.finish()
    }

    /// Reads a layout that [`Layout::to_bytes`] wrote.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if the bytes are not a layout or have another version;
    /// [`Error::InvalidOrder`] if diffs are [folded](Order::fold), since functions have no bytes;
    /// the errors of [`Order::bind`] if the order does not fit the schema.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let mut input = Reader::new(bytes);
        if input.raw(MAGIC.len())? != MAGIC {
            return Err(corrupt("these are not the bytes of a layout"));
        }
        let version = u16::from_le_bytes([input.byte()?, input.byte()?]);
        if version != VERSION {
            let message = format!("version {version} of the row format; this is {VERSION}");
            return Err(corrupt(message));
        }
        if input.byte()? != TOTAL_ORDER {
            return Err(corrupt("an unknown order of floats"));
        }
        let number = input.byte()?;
        let rule = match number {
            0 => Rule::Keep,
            1 => Rule::First,
            2 => Rule::Last,
            SUM | FOLD => Rule::Sum,
            4 => Rule::LastKnown,
            other => return Err(corrupt(format!("no rule has the number {other}"))),
        };
        let (key, then) = (columns(&mut input)?, columns(&mut input)?);
        let (time, diffs, tombstone) = (input.option()?, input.texts()?, input.option()?);
        if number == FOLD {
            let fold = input.text()?;
            let message = format!("diffs of these rows are folded by {fold:?}, which has no bytes");
            return Err(Error::InvalidOrder(message));
        }
        let schema: Schema = types::take_schema(&mut input)?;
        input.end()?;
        let order = Order { key, then, rule, time, diffs, fold: None, tombstone };
        Self::bind(&order, SchemaRef::new(schema))
    }
}

fn columns(input: &mut Reader<'_>) -> Result<Vec<SortColumn>> {
    let count = input.count()?;
    (0..count)
        .map(|_| {
            let (name, flags) = (input.text()?, input.byte()?);
            if flags & !(DESCENDING | NULLS_FIRST) != 0 {
                return Err(corrupt("unknown flags of a column"));
            }
            let descending = flags & DESCENDING != 0;
            Ok(SortColumn { name, descending, nulls_first: flags & NULLS_FIRST != 0 })
        })
        .collect()
}

fn corrupt(message: impl Into<String>) -> Error {
    Error::Corrupt { place: "the header of a layout".into(), message: message.into() }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_schema::{
        DataType as T, Field, Fields, IntervalUnit, TimeUnit, UnionFields, UnionMode,
    };

    use super::super::{asc, desc};
    use super::*;

    fn field(name: &str, data_type: T) -> Arc<Field> {
        let metadata = [("key".to_owned(), name.to_owned())].into();
        Arc::new(Field::new(name, data_type, true).with_metadata(metadata))
    }

    fn every_type() -> Vec<T> {
        let mut types = vec![
            T::Null,
            T::Boolean,
            T::Int8,
            T::Int16,
            T::Int32,
            T::Int64,
            T::UInt8,
            T::UInt16,
            T::UInt32,
            T::UInt64,
            T::Float16,
            T::Float32,
            T::Float64,
            T::Utf8,
            T::LargeUtf8,
            T::Utf8View,
            T::Binary,
            T::LargeBinary,
            T::BinaryView,
            T::Date32,
            T::Date64,
            T::FixedSizeBinary(7),
            T::Decimal32(9, 2),
            T::Decimal64(18, -2),
            T::Decimal128(38, 3),
            T::Decimal256(76, 0),
            T::Timestamp(TimeUnit::Second, None),
            T::Timestamp(TimeUnit::Nanosecond, Some("Europe/Paris".into())),
        ];
        for unit in [TimeUnit::Second, TimeUnit::Millisecond] {
            types.extend([T::Time32(unit), T::Duration(unit)]);
        }
        for unit in [TimeUnit::Microsecond, TimeUnit::Nanosecond] {
            types.extend([T::Time64(unit), T::Duration(unit)]);
        }
        use IntervalUnit::{DayTime, MonthDayNano, YearMonth};
        types.extend([YearMonth, DayTime, MonthDayNano].map(T::Interval));
        let item = field("item", T::Utf8);
        types.extend([
            T::List(item.clone()),
            T::LargeList(item.clone()),
            T::ListView(item.clone()),
            T::LargeListView(item.clone()),
            T::FixedSizeList(item.clone(), 3),
            T::Struct(Fields::from(vec![item.clone(), field("n", T::Int8)])),
            T::Struct(Fields::empty()),
            T::Dictionary(Box::new(T::UInt16), Box::new(T::Utf8)),
            T::RunEndEncoded(Arc::new(Field::new("ends", T::Int64, false)), item.clone()),
        ]);
        let entries = T::Struct(Fields::from(vec![field("k", T::Utf8), field("v", T::Int8)]));
        types.push(T::Map(Arc::new(Field::new("entries", entries, false)), true));
        for mode in [UnionMode::Sparse, UnionMode::Dense] {
            let fields = UnionFields::try_new([4, 9], [item.clone(), field("n", T::Int8)]).unwrap();
            types.push(T::Union(fields, mode));
        }
        types
    }

    fn layouts() -> Vec<Layout> {
        let mut fields: Vec<Field> = every_type()
            .into_iter()
            .enumerate()
            .map(|(at, data_type)| Field::new(format!("c{at}"), data_type, at % 3 > 0))
            .collect();
        fields.extend(["time", "diff"].map(|name| Field::new(name, T::Int64, false)));
        fields.push(Field::new("gone", T::Boolean, false));
        let schema = Schema::new_with_metadata(fields, [("a".into(), "b".into())].into());
        let by = || Order::by([desc("c3").nulls_first(), asc("c13")]);
        [
            by(),
            by().first(),
            by().then(desc("c5")).last().tombstone("gone"),
            by().then(desc("c5")).last_known().tombstone("gone"),
            by().time("time").diff("diff"),
            by().diffs(["time", "diff"]),
        ]
        .map(|order| order.bind(&schema).unwrap())
        .into()
    }

    #[test]
    fn a_layout_comes_back() {
        for layout in layouts() {
            let bytes = layout.to_bytes();
            let back = Layout::from_bytes(&bytes).unwrap();
            assert_eq!(back.schema(), layout.schema());
            assert_eq!(back.to_bytes(), bytes);
            assert_eq!((back.order(), back.rule()), (layout.order(), layout.rule()));
            assert_eq!((back.time(), back.tail()), (layout.time(), layout.tail()));
            assert_eq!(back.stride(), layout.stride());
        }
    }

    #[test]
    fn golden_bytes() {
        let schema = Schema::new(vec![Field::new("id", T::Int64, false)]);
        let layout = Order::by(desc("id")).bind(&schema).unwrap();
        let expected = [
            &b"WRWL\x03\x00\x00\x00"[..],
            b"\x01\0\0\0\x02\0\0\0id\x01",
            b"\0\0\0\0",
            b"\0\0\0",
            b"\x01\0\0\0\x02\0\0\0id\x00\x05\0\0\0\0",
            b"\0\0\0\0",
        ]
        .concat();
        assert_eq!(layout.to_bytes(), expected);
    }

    #[test]
    fn damaged_headers_are_errors() {
        let bytes = layouts()[2].to_bytes();
        for len in 0..bytes.len() {
            assert!(Layout::from_bytes(&bytes[..len]).is_err(), "{len}");
        }
        for at in 0..bytes.len() {
            for value in [0, 1, 0x7f, 0xff] {
                let mut damaged = bytes.clone();
                damaged[at] = value;
                let _any = Layout::from_bytes(&damaged);
            }
        }
        assert!(Layout::from_bytes(&[&bytes[..], &[0]].concat()).is_err());
    }
}
