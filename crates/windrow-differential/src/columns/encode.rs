//! Encoding of record batches into rows, before exchange and sort.

use std::rc::Rc;

use timely::container::CapacityContainerBuilder;
use timely::dataflow::Stream;
use timely::dataflow::channels::pact::Pipeline;
use timely::dataflow::operators::generic::operator::Operator;

use super::shape::Shape;
use super::{Changes, Columns};
use crate::context::done;
use crate::diff::DiffCode;
use crate::exchange::PIECE;
use crate::format::put_tail;
use crate::time::TimeCode;
use crate::updates::Updates;

/// Encoded rows of a stream.
pub(super) type ColumnUpdates<T, R> = Updates<Columns, Columns, T, R>;

/// Rows encoded at once: some hundred KiB.
const ROWS: usize = 8192;

/// Encodes the changes as rows of `shape`.
pub(super) fn encoded<'scope, T: TimeCode, R: DiffCode>(
    stream: Stream<'scope, T, Changes<T, R>>,
    shape: Rc<Shape>,
) -> Stream<'scope, T, ColumnUpdates<T, R>> {
    stream.unary::<CapacityContainerBuilder<ColumnUpdates<T, R>>, _, _, _>(
        Pipeline,
        "EncodeColumns",
        |_, _| {
            move |input, output| {
                input.for_each(|capability, changes| {
                    let mut session = output.session(&capability);
                    let (batch, times, diffs) = std::mem::take(changes).into_parts();
                    let mut updates = Updates::default();
                    for start in (0..times.len()).step_by(ROWS) {
                        let count = ROWS.min(times.len() - start);
                        let rows = done(shape.encode(&batch.slice(start, count)));
                        let tails = times[start..].iter().zip(&diffs[start..]);
                        for (row, (time, diff)) in rows.iter().zip(tails) {
                            updates.push_with(|out| {
                                out.extend_from_slice(row);
                                put_tail(time, diff, out);
                            });
                            if updates.bytes().len() >= PIECE {
                                session.give_container(&mut updates);
                                updates = Updates::default();
                            }
                        }
                    }
                    if !updates.is_empty() {
                        session.give_container(&mut updates);
                    }
                });
            }
        },
    )
}
