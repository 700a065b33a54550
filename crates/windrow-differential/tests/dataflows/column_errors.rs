//! Invalid programs are rejected by the offending call, with the names involved.

use std::sync::Arc;

use crate::common::records::{Edge, Order, Person, Record};
use windrow::arrow_array::{ArrayRef, Int64Array, RecordBatch};
use windrow::arrow_schema::{DataType, Field, Schema, SchemaRef};
use windrow::{Error, Pool};
use windrow_differential::{
    Changes, ColumnArranged, ColumnCollection, ColumnInput, Context, count, max, sum,
};

type Input = ColumnInput<u64, isize>;

/// Returns the error of `program` over orders and people.
fn refused<X>(
    program: impl for<'scope> Fn(
        &Context,
        ColumnCollection<'scope, u64, isize>,
        ColumnCollection<'scope, u64, isize>,
    ) -> Result<X, Error>
    + Send
    + Sync
    + 'static,
) -> Error {
    let context = Context::new(Pool::unlimited());
    timely::execute_directly(move |worker| {
        worker.dataflow::<u64, _, _>(|scope| {
            let (_, orders) = Input::new(scope, &Order::schema());
            let (_, people) = Input::new(scope, &Person::schema());
            program(&context, orders, people).err().expect("it is refused")
        })
    })
}

fn totals<'scope>(
    context: &Context,
    orders: ColumnCollection<'scope, u64, isize>,
) -> ColumnArranged<'scope, u64, isize> {
    orders.arrange_by(context, "user").unwrap()
}

#[test]
fn columns_that_are_not_there() {
    let error = refused(|cx, orders, _| orders.arrange_by(cx, ["user", "when"]).map(drop));
    assert!(error.to_string().contains("\"when\"; the columns are user, amount"), "{error}");
    let error = refused(|cx, orders, people| {
        totals(cx, orders).join_rows(people.arrange_by(cx, "id")?, ["user", "street"]).map(drop)
    });
    assert!(matches!(&error, Error::MissingColumn { column, .. } if column == "street"), "{error}");
    let error =
        refused(|cx, orders, _| totals(cx, orders).reduce_columns([sum("cents")]).map(drop));
    assert!(matches!(&error, Error::MissingColumn { column, .. } if column == "cents"), "{error}");
    let error = refused(|_, orders, _| orders.project(["users"]).map(drop));
    assert!(matches!(error, Error::MissingColumn { .. }), "{error}");
}

#[test]
fn names_that_are_there_twice() {
    let error = refused(|cx, orders, _| orders.arrange_by(cx, ["user", "user"]).map(drop));
    assert!(matches!(error, Error::InvalidOrder(_)), "{error}");
    let error = refused(|cx, orders, _| {
        let totals = totals(cx, orders);
        totals.clone().join_rows(totals, ["user", "amount"]).map(drop)
    });
    assert!(error.to_string().contains("both sides have a column \"amount\""), "{error}");
    let error =
        refused(|cx, orders, _| totals(cx, orders).reduce_columns([count(), count()]).map(drop));
    assert!(error.to_string().contains("\"count\""), "{error}");
}

#[test]
fn keys_that_do_not_compare() {
    let error = refused(|cx, orders, people| {
        let by_name = people.arrange_by(cx, "name")?;
        totals(cx, orders).join_rows(by_name, ["user"]).map(drop)
    });
    let said = error.to_string();
    assert!(said.contains("\"user\": Int64") && said.contains("\"name\": Utf8 not null"), "{said}");
    // A nullable key has another encoding; `nullable` makes the keys comparable.
    let error = refused(|cx, orders, _| {
        let numbers = with_column(orders.clone(), "user", DataType::Int64, false);
        let (a, b) = (totals(cx, orders), numbers.arrange_by(cx, "user")?);
        a.join_rows(b, ["user"]).map(drop)
    });
    assert!(error.to_string().contains("not null"), "{error}");
    let error = refused(|cx, orders, _| {
        let numbers = with_column(orders.clone(), "user", DataType::Int64, false);
        let numbers = numbers.nullable(["user"])?.arrange_by(cx, "user")?;
        totals(cx, orders).join_rows(numbers, ["user"])?.project(["nobody"]).map(drop)
    });
    assert!(matches!(error, Error::MissingColumn { .. }), "{error}");
}

/// Returns a collection with a single column.
fn with_column<'scope>(
    like: ColumnCollection<'scope, u64, isize>,
    name: &str,
    data_type: DataType,
    nullable: bool,
) -> ColumnCollection<'scope, u64, isize> {
    let schema: SchemaRef = Arc::new(Schema::new(vec![Field::new(name, data_type, nullable)]));
    Input::new(like.into_inner().scope(), &schema).1
}

#[test]
fn columns_that_cannot_play_their_part() {
    let error = refused(|cx, orders, _| totals(cx, orders).reduce_columns([sum("note")]).map(drop));
    assert!(error.to_string().contains("\"note\" of type Utf8 cannot be added up"), "{error}");
    let error = refused(|cx, orders, _| totals(cx, orders).reduce_columns([max("user")]).map(drop));
    assert!(error.to_string().contains("one of the key"), "{error}");
}

#[test]
fn rows_of_other_columns() {
    let error = refused(|_, orders, people| orders.concat(people).map(drop));
    assert!(matches!(error, Error::SchemaMismatch { .. }), "{error}");
    let error = refused(|cx, orders, _| {
        let context = cx.clone();
        orders.iterate(move |_, inner| inner.project(["user"])?.consolidate(&context)).map(drop)
    });
    assert!(matches!(error, Error::SchemaMismatch { .. }), "{error}");
    let error = refused(|cx, orders, _| {
        let context = cx.clone();
        let numbers = with_column(orders, "user", DataType::Int64, false);
        numbers.iterate(move |_, inner| inner.nullable(["user"])?.consolidate(&context)).map(drop)
    });
    assert!(error.to_string().contains("not null"), "{error}");
}

#[test]
fn batches_of_another_schema_and_times_that_are_over() {
    timely::execute_directly(|worker| {
        let mut input = worker.dataflow::<u64, _, _>(|scope| Input::new(scope, &Edge::schema()).0);
        let numbers: ArrayRef = Arc::new(Int64Array::from(vec![1]));
        let other = RecordBatch::try_from_iter([("from", numbers)]).unwrap();
        let error = input.push(other).unwrap_err().to_string();
        assert!(error.contains("\"to\": UInt32") && error.contains("\"from\": Int64"), "{error}");
        input.advance_to(3);
        let edge = || Edge::batch(&[(1, 2)]);
        let early = Changes::new(edge(), vec![2], vec![1]).unwrap();
        assert!(input.push_timed(early).unwrap_err().to_string().contains("a change at 2"));
        assert!(matches!(input.push_changes(edge(), vec![]), Err(Error::InvalidOrder(_))));
        input.push(edge()).unwrap();
    });
}

#[test]
fn a_batch_that_does_not_fit_stops_the_dataflow() {
    let context = Context::new(Pool::unlimited());
    let ended = std::thread::spawn(move || {
        timely::execute_directly(move |worker| {
            let mut input = worker.dataflow::<u64, _, _>(|scope| {
                let (input, edges) = Input::new(scope, &Edge::schema());
                let inner = edges.into_inner();
                let orders = ColumnCollection::new(inner, &Order::schema());
                orders.consolidate(&context).unwrap();
                input
            });
            input.push(Edge::batch(&[(1, 2)])).unwrap();
        })
    });
    let message = ended.join().unwrap_err();
    let message = message.downcast_ref::<String>().map_or("", |message| message.as_str());
    assert!(message.contains("windrow: schema mismatch"), "{message}");
}
