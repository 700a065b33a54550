//! Decoding of fields: the parts of a row of arrow-row, for [`crate::rows::read`].
//!
//! ```text
//! fields   | i64 | i32 | bool | decimal | utf8 | list | struct {  a  ,  b  } |
//! row      | 01 8 | 01 4 | 01 1 | 01 16 | 2 8 FF 8 3 | 01 .. 01 | 01 | 01 8 | 2 8 5 |
//! parts    | cells             | wide  | strings    | list     | struct, whose fields are parts |
//! ```
//!
//! Cells - up to eight bytes after a marker - are read several at once, strings block by block, and
//! wider values a column at a time. Elements of lists and values of dictionaries are rows of their
//! own. Unions and run ends are read value by value, through ordered codes.
//!
//! Invariant: the bytes of a null are ignored, and read as zero or empty; an invalid marker is an
//! error.

use std::slice::from_ref;
use std::sync::Arc;

use arrow_array::{ArrayRef, StructArray};
use arrow_schema::{DataType, Field, FieldRef, Fields, SortOptions};

use super::dictionaries::Dictionaries;
use super::field::{NOTHING, SortField, corrupt, flip, null_byte};
use super::inner::Inner;
use super::lists::{FixedLists, Lists};
use super::node::{Node, inner};
use crate::error::Result;
use crate::order::code::{Node as Tree, OrderedCode};
use crate::rows::fixed::with_word;
use crate::rows::nested::{Form, other_node};
use crate::rows::read::cells::{Cells, held};
use crate::rows::read::each::{Coding, Each, Null, Raw};
use crate::rows::read::texts::Texts;
use crate::rows::read::whole::Nulls;
use crate::rows::read::{Bits, Columns, Part, Room, Tile, take_all};
use crate::rows::row_ref::Rest;
use crate::rows::text::binary_form;
use crate::rows::value::{self, ValueReader};
use windrow_kernel::rows::Cell;
use windrow_kernel::rows::take_text::Coded;

/// Returns the parts of `rows` rows of `fields`, which are read into `columns`. `bytes` is the
/// approximate size of all values of a varying column.
pub(super) fn parts<'a>(
    fields: &'a [(SortField, Node)],
    columns: &'a Fields,
    rows: usize,
    bytes: usize,
) -> Result<Vec<Box<dyn Part + 'a>>> {
    let nodes = fields.iter().map(|(field, node)| (node, field.options));
    let mut plan = Plan::new(rows, bytes);
    for (column, (node, options)) in nodes.enumerate() {
        plan.add(column, columns[column].data_type(), node, options)?;
    }
    Ok(plan.finish())
}

/// The parts so far.
pub(super) struct Plan<'a> {
    rows: usize,
    bytes: usize,
    parts: Vec<Box<dyn Part + 'a>>,
    /// Cells that the next column may join.
    cells: Vec<(usize, Cell)>,
}

impl<'a> Plan<'a> {
    fn new(rows: usize, bytes: usize) -> Self {
        Self { rows, bytes, parts: Vec::new(), cells: Vec::new() }
    }

    /// Makes a plan of columns inside another column, of these types and with these `options`.
    fn within(
        &self,
        columns: impl IntoIterator<Item = &'a DataType>,
        nodes: &'a [Node],
        options: SortOptions,
    ) -> Result<Self> {
        let mut own = Self::new(self.rows, self.bytes);
        for (column, (data_type, node)) in columns.into_iter().zip(nodes).enumerate() {
            own.add(column, data_type, node, options)?;
        }
        Ok(own)
    }

    /// Makes a collector for inner rows of these columns.
    fn inner(
        &self,
        fields: &'a [FieldRef],
        nodes: &'a [Node],
        options: SortOptions,
    ) -> Result<Inner<'a>> {
        let own = self.within(fields.iter().map(|field| field.data_type()), nodes, options)?;
        Ok(Inner::new(own.finish(), nodes, fields.iter().cloned().collect()))
    }

    /// Returns all parts.
    fn finish(mut self) -> Vec<Box<dyn Part + 'a>> {
        self.close();
        self.parts
    }

    /// Closes the open cells: no further column joins.
    fn close(&mut self) {
        if !self.cells.is_empty() {
            self.parts.push(Box::new(Cells::new(std::mem::take(&mut self.cells))));
        }
    }

    fn push(&mut self, part: impl Part + 'a) {
        self.close();
        self.parts.push(Box::new(part));
    }

    fn add(
        &mut self,
        column: usize,
        data_type: &'a DataType,
        node: &'a Node,
        options: SortOptions,
    ) -> Result<()> {
        let (rows, null) = (self.rows, null_byte(options));
        match (node, data_type) {
            (Node::Nothing, DataType::Null) => self.push(Nulls { column, width: NOTHING.len() }),
            (node, DataType::Dictionary(_, values)) if is_marked(node) => {
                let fields = vec![Field::new("values", values.as_ref().clone(), true)].into();
                let own = self.within([values.as_ref()], from_ref(node), options)?;
                let values = Inner::new(own.finish(), from_ref(node), fields);
                self.push(Dictionaries::new(column, options, node, values));
            }
            (Node::Plain(code), data_type) => {
                if let Some(held) = held(*code, options.descending, flip(options)) {
                    self.cells.push((column, Cell::new(held, Some(null), rows)));
                    return Ok(());
                }
                match *code {
                    OrderedCode::Fixed(width, kind) => with_word!(width, W => {
                        let (descending, null) = (options.descending, Null::Marker(null));
                        self.push(Each::<W>::new(column, Coding { kind, descending, null }, rows));
                    }),
                    OrderedCode::FixedBinary(width) => {
                        self.push(Raw::new(column, width, flip(options), Some(null), rows));
                    }
                    _ => {
                        let room = (rows, Room { values: self.bytes, tile: Some(0) });
                        let coded = (Coded::Blocks, binary_form(flip(options)));
                        self.push(Texts::new(column, data_type, coded, Some(null), room));
                    }
                }
            }
            (Node::Struct(nodes), DataType::Struct(fields)) if nodes.iter().all(is_by_parts) => {
                let own = self.within(fields.iter().map(|f| f.data_type()), nodes, options)?;
                self.push(Structs {
                    column,
                    markers: Cells::markers(column, null),
                    valid: fields.iter().map(|_| Bits::default()).collect(),
                    fields,
                    nodes,
                    parts: own.finish(),
                });
            }
            (
                Node::List(element),
                DataType::List(field)
                | DataType::LargeList(field)
                | DataType::ListView(field)
                | DataType::LargeListView(field),
            ) => {
                let elements = self.inner(from_ref(field), from_ref(element), inner(options))?;
                self.push(Lists::new(column, options, elements));
            }
            (Node::Map(nodes), DataType::Map(entries, _)) => {
                let fields = match entries.data_type() {
                    DataType::Struct(fields) => fields,
                    _ => return Err(corrupt("a map whose entries are no structs")),
                };
                let elements = self.inner(fields, nodes, inner(options))?;
                self.push(Lists::new(column, options, elements));
            }
            (
                Node::FixedList(element, size @ 1..=FixedLists::MOST),
                DataType::FixedSizeList(field, _),
            ) => {
                let elements = self.inner(from_ref(field), from_ref(element), options)?;
                self.push(FixedLists::new(column, options, (field, *size), element, elements));
            }
            _ => {
                let tree = Tree::of(data_type).ok_or_else(other_node)?;
                let reader = value::reader(data_type)?;
                self.push(Others { column, node, options, tree, reader });
            }
        }
        Ok(())
    }
}

/// Returns true if a marker byte distinguishes values from nulls.
fn is_marked(node: &Node) -> bool {
    !matches!(node, Node::Nothing | Node::Union(_) | Node::Runs(_))
}

/// Returns true if parts read the nulls of a field as nulls. A null struct contains the nulls of
/// its fields, and the nulls of unions and runs are values.
fn is_by_parts(node: &Node) -> bool {
    match node {
        Node::Struct(nodes) => nodes.iter().all(is_by_parts),
        Node::Nothing => true,
        other => is_marked(other),
    }
}

/// A column of structs: markers, and then the fields of all structs.
struct Structs<'a> {
    column: usize,
    markers: Cells,
    fields: &'a Fields,
    nodes: &'a [Node],
    parts: Vec<Box<dyn Part + 'a>>,
    /// Validity of each field.
    valid: Vec<Bits>,
}

impl Part for Structs<'_> {
    fn take(&mut self, tile: &mut Tile<'_>, valid: &mut [Bits]) -> Result<()> {
        tile.require(self.markers.bytes())?;
        self.markers.take(tile, valid)?;
        take_all(&mut self.parts, tile, &mut self.valid)
    }

    fn finish(self: Box<Self>, columns: &mut Columns) -> Result<()> {
        let (nulls, rows) = (columns.nulls(self.column), columns.rows);
        let mut own = Columns::new(self.fields.clone(), rows);
        own.valid = self.valid;
        self.parts.into_iter().try_for_each(|part| part.finish(&mut own))?;
        let fields: Vec<ArrayRef> = own.ready.into_iter().flatten().collect();
        for (field, node) in fields.iter().zip(self.nodes) {
            let is_within = match (&nulls, field.nulls()) {
                (None, _) => true,
                // A column of type Null has only nulls.
                (Some(_), None) => matches!(node, Node::Nothing),
                (Some(nulls), Some(own)) => own.contains(nulls),
            };
            if !is_within {
                return Err(corrupt("a value in a struct that is null"));
            }
        }
        let array = StructArray::try_new_with_length(self.fields.clone(), fields, nulls, rows);
        let array = array.map_err(|error| corrupt(&error.to_string()))?;
        columns.ready[self.column] = Some(Arc::new(array));
        Ok(())
    }
}

/// A column of any other type.
struct Others<'a> {
    column: usize,
    node: &'a Node,
    options: SortOptions,
    /// Tree of the type, for ordered codes.
    tree: Tree,
    reader: Box<dyn ValueReader>,
}

impl Part for Others<'_> {
    fn take(&mut self, tile: &mut Tile<'_>, _valid: &mut [Bits]) -> Result<()> {
        let (mut bytes, mut starts, mut ends) = (Vec::new(), Vec::new(), Vec::new());
        tile.for_each(|row| {
            let mut rest = row.row();
            starts.push(bytes.len());
            self.node.read(&mut rest, self.options, &mut bytes)?;
            ends.push(bytes.len());
            Ok(row.len() - rest.len())
        })?;
        let codes = &mut Rest { bytes: &bytes, cursors: &mut starts, ends: &ends };
        self.reader.read_codes(&self.tree, Form::STORED, codes)
    }

    fn finish(mut self: Box<Self>, columns: &mut Columns) -> Result<()> {
        columns.ready[self.column] = Some(self.reader.finish()?);
        Ok(())
    }
}
