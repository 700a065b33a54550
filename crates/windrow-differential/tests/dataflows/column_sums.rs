//! Sums of every numeric type, with and without nulls, and sums that overflow.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use windrow::arrow_array::types::{
    Decimal32Type, Decimal64Type, Decimal128Type, DurationSecondType, Float16Type, Float32Type,
    Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type, UInt32Type,
    UInt64Type,
};
use windrow::arrow_array::{
    Array, ArrayRef, ArrowPrimitiveType, BooleanArray, PrimitiveArray, RecordBatch,
};
use windrow::arrow_schema::{DataType, Field, Schema};
use windrow::{Budget, Pool};
use windrow_differential::{ColumnInput, Context, sum};

/// Returns the sums of a column over two groups: all rows, the first with multiplicity two; and
/// only the last row.
fn sums(column: &ArrayRef) -> ArrayRef {
    let rows = column.len();
    let groups: ArrayRef = Arc::new(BooleanArray::from(vec![false; rows]));
    let other: ArrayRef = Arc::new(BooleanArray::from(vec![true; 1]));
    let fields = vec![
        Field::new("group", DataType::Boolean, false),
        Field::new("number", column.data_type().clone(), column.is_nullable()),
    ];
    let schema = Arc::new(Schema::new(fields));
    let batch =
        RecordBatch::try_new(Arc::clone(&schema), vec![groups, Arc::clone(column)]).unwrap();
    let last = RecordBatch::try_new(Arc::clone(&schema), vec![other, column.slice(rows - 1, 1)]);
    let last = last.unwrap();
    let context =
        Context::new(Pool::in_dir(std::env::temp_dir(), Budget::bytes(16 << 20)).unwrap());
    timely::execute_directly(move |worker| {
        let all = Rc::new(RefCell::new(Vec::new()));
        let shown = Rc::clone(&all);
        let (mut input, probe) = worker.dataflow::<u64, _, _>(|scope| {
            let (input, numbers) = ColumnInput::<u64, i64>::new(scope, &schema);
            let sums = numbers.arrange_by(&context, "group").unwrap();
            let sums = sums.reduce_columns([sum("number")]).unwrap();
            let probe = sums.for_each_frontier(move |_, changes| {
                shown.borrow_mut().extend(changes);
                Ok(())
            });
            (input, probe)
        });
        let mut twice = vec![1; rows];
        twice[0] = 2;
        input.push_changes(batch, twice).unwrap();
        input.push(last).unwrap();
        input.advance_to(1);
        while probe.less_than(&1) {
            worker.step();
        }
        let all = all.borrow();
        assert_eq!((all.len(), all[0].diffs()), (1, &[1, 1][..]));
        Arc::clone(all[0].batch().column(1))
    })
}

fn numbers<T: ArrowPrimitiveType>(values: [T::Native; 3]) -> PrimitiveArray<T> {
    PrimitiveArray::from_iter_values(values)
}

/// Creates the same numbers with the last one replaced by a null.
fn with_null<T: ArrowPrimitiveType>(values: [T::Native; 3]) -> PrimitiveArray<T> {
    let data_type = numbers::<T>(values).data_type().clone();
    let some: PrimitiveArray<T> = [Some(values[0]), Some(values[1]), None].into_iter().collect();
    some.with_data_type(data_type)
}

/// Checks `sums` of `values`. `sums_of` holds the sum of the first group, the same without the last
/// value, and the last value.
fn check<T: ArrowPrimitiveType, S: ArrowPrimitiveType>(
    values: [T::Native; 3],
    sums_of: [S::Native; 3],
) {
    let [all, without_last, last] = sums_of;
    let whole: ArrayRef = Arc::new(PrimitiveArray::<S>::from_iter_values([all, last]));
    let got = sums(&(Arc::new(numbers::<T>(values)) as ArrayRef));
    assert_eq!(values_of::<S>(&got), values_of::<S>(&whole), "{}", T::DATA_TYPE);
    let some: PrimitiveArray<S> = [Some(without_last), None].into_iter().collect();
    let got = sums(&(Arc::new(with_null::<T>(values)) as ArrayRef));
    assert_eq!(values_of::<S>(&got), some.iter().collect::<Vec<_>>(), "{}", T::DATA_TYPE);
}

fn values_of<S: ArrowPrimitiveType>(array: &ArrayRef) -> Vec<Option<S::Native>> {
    array.as_any().downcast_ref::<PrimitiveArray<S>>().unwrap().iter().collect()
}

#[test]
fn every_type_of_number() {
    check::<Int8Type, Int64Type>([-128, 127, -1], [-130, -129, -1]);
    check::<Int16Type, Int64Type>([-32_768, 32_767, 5], [-32_764, -32_769, 5]);
    check::<Int32Type, Int64Type>([i32::MIN, i32::MAX, 0], [-2_147_483_649, -2_147_483_649, 0]);
    check::<Int64Type, Int64Type>([i64::MAX / 2, -7, 1], [i64::MAX - 7, i64::MAX - 8, 1]);
    check::<UInt8Type, UInt64Type>([255, 0, 1], [511, 510, 1]);
    check::<UInt16Type, UInt64Type>([65_535, 0, 1], [131_071, 131_070, 1]);
    check::<UInt32Type, UInt64Type>([u32::MAX, 0, 1], [8_589_934_591, 8_589_934_590, 1]);
    check::<UInt64Type, UInt64Type>([u64::MAX / 2, 0, 1], [u64::MAX, u64::MAX - 1, 1]);
    check::<Decimal32Type, Decimal128Type>([-5, 3, 9], [2, -7, 9]);
    check::<Decimal64Type, Decimal128Type>([-5, 3, 9], [2, -7, 9]);
    check::<Decimal128Type, Decimal128Type>([-5, 3, 9], [2, -7, 9]);
    check::<DurationSecondType, DurationSecondType>([-5, 3, 9], [2, -7, 9]);
    let half = |number: f32| <Float16Type as ArrowPrimitiveType>::Native::from_f32(number);
    check::<Float16Type, Float64Type>([half(-1.5), half(0.25), half(8.0)], [5.25, -2.75, 8.0]);
    check::<Float32Type, Float64Type>([-1.5, 0.25, 8.0], [5.25, -2.75, 8.0]);
    check::<Float64Type, Float64Type>([-1.5, 0.25, 8.0], [5.25, -2.75, 8.0]);
}

/// Returns the panic message of summing a column.
fn ended(column: ArrayRef) -> String {
    let ended = std::thread::spawn(move || drop(sums(&column))).join();
    let message = ended.unwrap_err();
    message.downcast_ref::<String>().cloned().unwrap_or_default()
}

#[test]
fn sums_that_do_not_fit_end_the_dataflow() {
    let large: ArrayRef = Arc::new(numbers::<Int64Type>([i64::MAX, 0, 1]));
    assert!(ended(large).contains("column \"number\": a sum does not fit"));
    let large: ArrayRef = Arc::new(numbers::<UInt64Type>([u64::MAX, 0, 1]));
    assert!(ended(large).contains("a sum does not fit"));
    let most = 10_i128.pow(38) - 1;
    let large = numbers::<Decimal128Type>([most, 0, 1]).with_precision_and_scale(38, 0).unwrap();
    assert!(ended(Arc::new(large)).contains("a sum does not fit"));
}
