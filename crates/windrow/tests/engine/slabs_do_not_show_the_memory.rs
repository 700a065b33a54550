//! Ends of slabs depend only on the rows and the request, decoded columns only on the projection;
//! also the first and last rows of slabs.

use crate::common::arrays::Rng;
use crate::common::engine::Way;
use crate::common::tables;
use arrow_schema::DataType;
use windrow::arrow_array::RecordBatch;
use windrow::{Decoder, Error, Finish, Order};

fn input(rng: &mut Rng) -> RecordBatch {
    let columns = [("a", DataType::Utf8), ("b", DataType::Int32), ("c", DataType::LargeBinary)];
    let columns = columns.map(|(name, data_type)| {
        (name, tables::key_array(rng, &data_type, true, 20_000, 700), true)
    });
    RecordBatch::try_from_iter_with_nullable(columns).unwrap()
}

#[test]
fn slabs_are_cut_the_same_in_every_memory() {
    let rng = &mut Rng::new(5);
    let input = input(rng);
    let orders = [Order::by("b").then("c"), Order::by("b").last(), Order::by(["b", "a"]).first()];
    for order in orders {
        let layout = order.bind(&input.schema()).unwrap();
        for (rows, bytes) in [(1000, usize::MAX), (usize::MAX, 10_000), (100, 5000), (1, 1), (0, 0)]
        {
            let mut cuts: Option<Vec<(usize, usize)>> = None;
            for budget in [usize::MAX, 1 << 20, 1] {
                let way = Way { budget, rows: 3000, ..Way::PLAIN };
                let batch = way.arrange(rng, &layout, &way.pool(), &input).unwrap();
                let mut slabs = batch.slabs(Finish::Log);
                let mut got = Vec::new();
                while let Some(slab) = slabs.next(rows, bytes).unwrap() {
                    assert!((1..=rows.max(1)).contains(&slab.rows()));
                    got.push((slab.rows(), slab.bytes()));
                }
                // Only the last slab may end before it is full.
                for &(r, b) in &got[..got.len() - 1] {
                    assert!(r == rows.max(1) || b >= bytes, "{r} rows, {b} bytes");
                }
                assert_eq!(cuts.get_or_insert_with(|| got.clone()), &got, "{way:?}");
            }
        }
    }
}

#[test]
fn projections_choose_and_order_columns() {
    let rng = &mut Rng::new(6);
    let input = input(rng);
    for order in [Order::by("b").then("a"), Order::by(["c", "a"]).last(), Order::by("c").first()] {
        let layout = order.bind(&input.schema()).unwrap();
        let arrange = |rng: &mut Rng| Way::PLAIN.arrange(rng, &layout, &Way::PLAIN.pool(), &input);
        let read = |projection: &[usize], rng: &mut Rng| {
            let mut decoder = Decoder::new(&layout, projection).unwrap();
            let mut slabs = arrange(rng).unwrap().slabs(Finish::Log);
            let mut out = Vec::new();
            while let Some(slab) = slabs.next(997, usize::MAX).unwrap() {
                let batch = decoder.decode(&slab).unwrap();
                assert_eq!(batch.num_rows(), slab.rows());
                assert_eq!(&batch.schema(), decoder.schema());
                let (ends, last) = (decoder.decode(&slab.ends()).unwrap(), slab.rows() - 1);
                assert_eq!(ends.num_rows(), slab.ends().rows());
                assert_eq!(ends.slice(0, 1), batch.slice(0, 1));
                assert_eq!(ends.slice(last.min(1), 1), batch.slice(last, 1));
                assert!(slab.ends().bytes() <= slab.bytes());
                out.push(batch);
            }
            out
        };
        let whole = read(&[0, 1, 2], rng);
        for projection in [&[][..], &[0], &[1], &[2], &[2, 0], &[1, 2, 0], &[1, 1, 0]] {
            for (got, whole) in read(projection, rng).iter().zip(&whole) {
                assert_eq!(got, &whole.project(projection).unwrap());
            }
        }
    }
    let layout = Order::by("b").bind(&input.schema()).unwrap();
    assert!(matches!(Decoder::new(&layout, &[3]), Err(Error::InvalidOrder(_))));
}
