//! Graph algorithms with all state in rows: loops up to a fixed point.

use differential_dataflow::VecCollection;
use differential_dataflow::operators::iterate::Iterate;

use crate::{ArrangeRows, Context, Row, RowArrangement, TimeCode};

/// Returns the distance of each node from the nearest of `roots`, in steps along `edges`.
/// Unreachable nodes are absent.
pub fn bfs<'scope, N: Row, T: TimeCode>(
    edges: VecCollection<'scope, T, (N, N)>,
    roots: VecCollection<'scope, T, N>,
    context: &Context,
) -> VecCollection<'scope, T, (N, u32)> {
    spread(edges, roots.map(|root| (root, 0)), context, |steps| steps + 1)
}

/// Returns for each node the least label of all nodes from which it can be reached, itself
/// included.
pub fn propagate<'scope, N: Row, L: Row, T: TimeCode>(
    edges: VecCollection<'scope, T, (N, N)>,
    labels: VecCollection<'scope, T, (N, L)>,
    context: &Context,
) -> VecCollection<'scope, T, (N, L)> {
    spread(edges, labels, context, |label| label)
}

/// Returns for each node the least label of its own and of those that `along` an edge make of the
/// labels of the nodes before it.
fn spread<'scope, N: Row, L: Row, T: TimeCode>(
    edges: VecCollection<'scope, T, (N, N)>,
    labels: VecCollection<'scope, T, (N, L)>,
    context: &Context,
    along: fn(L) -> L,
) -> VecCollection<'scope, T, (N, L)> {
    let edges = edges.arrange_rows(context);
    labels.clone().iterate(|scope, known| {
        known
            .arrange_rows(context)
            .join_rows(edges.enter(scope), move |_, label, to| Some((to.get(), along(label.get()))))
            .concat(labels.enter(scope))
            .arrange_rows(context)
            .reduce_rows(context, |_node, labels, out| out.push((labels[0].0.get(), 1)))
            .map_rows(|node, label| (node.get(), label.get()))
    })
}

/// Returns the edges inside strongly connected components: each end is reachable from the opposite
/// end.
///
/// Alternately along the edges and against them, an edge is kept if the least node that reaches one
/// end also reaches the opposite end, until no edge is removed.
pub fn strongly_connected<'scope, N: Row, T: TimeCode>(
    edges: VecCollection<'scope, T, (N, N)>,
    context: &Context,
) -> VecCollection<'scope, T, (N, N)> {
    edges.clone().iterate(|scope, kept| {
        let edges = edges.enter(scope);
        let reversed = edges.clone().map(|(from, to)| (to, from));
        let forwards = trim(kept, edges, context);
        trim(forwards, reversed, context)
    })
}

/// Returns `edges`, reversed, without edges whose two ends have different labels after labels
/// propagate along `kept`.
fn trim<'scope, N: Row, T: TimeCode>(
    kept: VecCollection<'scope, T, (N, N)>,
    edges: VecCollection<'scope, T, (N, N)>,
    context: &Context,
) -> VecCollection<'scope, T, (N, N)> {
    let nodes = edges.clone().map(|(_from, to)| (to.clone(), to));
    let labels = propagate(kept, nodes, context).arrange_rows(context);
    edges
        .arrange_rows(context)
        .join_rows(labels.clone(), |from, to, label| Some((to.get(), (from.get(), label.get()))))
        .arrange_rows(context)
        .join_rows(labels, |to, edge, label| {
            let (from, other) = edge.get();
            (other == label.get()).then(|| (to.get(), from))
        })
}
