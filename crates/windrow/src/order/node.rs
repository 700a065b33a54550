//! Nested types without their encodings: what the order of their values depends on.

use arrow_schema::DataType;

use super::code::OrderedCode;

/// A type as a tree. Lists of every layout are lists, dictionaries and run ends are their values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Node {
    /// All values are null and take no bytes.
    Nothing,
    Plain(OrderedCode),
    List(Box<Node>),
    FixedList(Box<Node>, usize),
    Struct(Vec<Node>),
    Union(Vec<(i8, Node)>),
}

impl Node {
    /// The tree of a type, or nothing if its values have no order.
    pub(crate) fn of(data_type: &DataType) -> Option<Self> {
        use DataType as T;
        let boxed = |data_type: &DataType| Self::of(data_type).map(Box::new);
        Some(match data_type {
            T::Null => Self::Nothing,
            T::Dictionary(_, values) => Self::of(values)?,
            T::RunEndEncoded(_, values) => Self::of(values.data_type())?,
            T::List(field)
            | T::LargeList(field)
            | T::ListView(field)
            | T::LargeListView(field)
            | T::Map(field, _) => Self::List(boxed(field.data_type())?),
            T::FixedSizeList(field, size) => {
                Self::FixedList(boxed(field.data_type())?, usize::try_from(*size).ok()?)
            }
            T::Struct(fields) => {
                let fields = fields.iter().map(|field| Self::of(field.data_type()));
                Self::Struct(fields.collect::<Option<_>>()?)
            }
            T::Union(fields, _) => {
                let child = |id: i8, field: &arrow_schema::FieldRef| {
                    Self::of(field.data_type()).map(|node| (id, node))
                };
                Self::Union(fields.iter().map(|(id, f)| child(id, f)).collect::<Option<_>>()?)
            }
            other => Self::Plain(OrderedCode::of(other)?),
        })
    }
}
