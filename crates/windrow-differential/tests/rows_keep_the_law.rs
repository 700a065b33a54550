//! The order of values is the order of their bytes, bytes come back as values, and they are the bytes that the engine makes
//! of columns of the same values.

use std::fmt::Debug;

use proptest::prelude::*;
use windrow_differential::Row;

/// Parts of every kind.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Row)]
struct Item {
    user: u64,
    name: String,
    place: (i32, Option<u8>),
    tags: Vec<Tag>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Row)]
enum Tag {
    None,
    Word(String),
    At { line: i64, column: Point<u16> },
    Empty(),
    Raw(Box<[u8]>),
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Row)]
struct Point<N>(N, bool);

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Row)]
struct Nothing;

fn numbers() -> impl Strategy<Value = i64> {
    prop_oneof![Just(i64::MIN), Just(-1), Just(0), Just(1), Just(i64::MAX), any::<i64>()]
}

fn words() -> impl Strategy<Value = String> {
    prop_oneof!["[a\u{0}\u{1}\u{2}\u{7f}]{0,3}", "\\PC{0,4}"]
}

fn bytes() -> impl Strategy<Value = Box<[u8]>> {
    let byte = prop_oneof![0..4u8, Just(255), any::<u8>()];
    prop::collection::vec(byte, 0..5).prop_map(Vec::into_boxed_slice)
}

fn tags() -> impl Strategy<Value = Tag> {
    prop_oneof![
        Just(Tag::None),
        words().prop_map(Tag::Word),
        (numbers(), any::<u16>(), any::<bool>())
            .prop_map(|(line, at, end)| Tag::At { line, column: Point(at, end) }),
        Just(Tag::Empty()),
        bytes().prop_map(Tag::Raw),
    ]
}

fn items() -> impl Strategy<Value = Item> {
    (0..3u64, words(), (-1..2i32, prop::option::of(0..2u8)), prop::collection::vec(tags(), 0..3))
        .prop_map(|(user, name, place, tags)| Item { user, name, place, tags })
}

/// The law, for two values.
fn holds<V: Row + Debug>(a: &V, b: &V) {
    let (bytes_a, bytes_b) = (a.to_bytes(), b.to_bytes());
    assert_eq!(a.cmp(b), bytes_a.cmp(&bytes_b), "{a:?} {b:?}: {bytes_a:?} {bytes_b:?}");
    assert_eq!(&V::from_bytes(&bytes_a), a);
    assert!(a == b || !bytes_a.starts_with(&bytes_b), "{b:?} begins {a:?}");
    if let Some(width) = V::WIDTH {
        assert_eq!(bytes_a.len(), width);
    }
}

proptest! {
    #[test]
    fn of_items(a in items(), b in items()) {
        holds(&a, &b);
        holds(&(a.tags.clone(), a.user), &(b.tags.clone(), b.user));
        holds(&Some(a.clone()), &Some(b));
        holds(&None, &Some(a));
    }

    #[test]
    fn of_tags(a in tags(), b in tags()) {
        holds(&a, &b);
        holds(&(a, Nothing, ()), &(b, Nothing, ()));
    }

    #[test]
    fn of_numbers(a in numbers(), b in numbers()) {
        holds(&a, &b);
        holds(&(a as u64), &(b as u64));
        holds(&(a as i32, b as u8), &(b as i32, a as u8));
        holds(&(a as i8, b as i16), &(b as i8, a as i16));
        holds(&(a as isize, b as usize, a as u16), &(b as isize, a as usize, b as u16));
        let wide = |high: i64, low: i64| i128::from(high) << 64 | i128::from(low);
        holds(&wide(a, b), &wide(b, a));
        holds(&(wide(a, b) as u128, a as u32), &(wide(b, a) as u128, b as u32));
    }

    #[test]
    fn of_text_and_bytes(a in (words(), bytes()), b in (words(), bytes()), c: char, d: char) {
        holds(&a, &b);
        holds(&(a.1, a.0), &(b.1, b.0));
        holds(&vec![Some(c)], &vec![Some(d), None]);
    }
}
