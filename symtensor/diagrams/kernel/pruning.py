"""Rules that cut a branch as soon as a prefix of rows shows that no completion of it belongs to the class.

Nodes with legs still open, or not reached yet, are *open*. Lines between closed (saturated) nodes, or between a closed and an
open node, are final. Contracting all open nodes into one gives a graph whose bridges are bridges of every completion.
"""

from __future__ import annotations

import numpy as np

from symtensor.diagrams.kernel.jit import jit
from symtensor.diagrams.kernel.state import EVERY_PROPAGATOR, FREE, ONE_PARTICLE

__all__ = ["row_stands"]

ONE = np.int64(1)
EVERYTHING = np.int64(-1)
#: position of the only bit b of a number, found at (b * _DE_BRUIJN) >> 58 (C. E. Leiserson et al. 1998)
_DE_BRUIJN = np.uint64(0x03F79D71B4CB0A89)
_POSITION = np.zeros(64, np.int64)
for _bit in range(64):
    _POSITION[(((1 << _bit) * int(_DE_BRUIJN)) & (2**64 - 1)) >> 58] = _bit


@jit
def lowest(bits):
    """Index of the lowest bit of a nonempty bit set."""
    return _POSITION[(np.uint64(bits & -bits) * _DE_BRUIJN) >> np.uint64(58)]


@jit
def component(neighbours, start, allowed):
    """Bit set of the nodes of `allowed` that the bit set `start` leads to, given bit sets of neighbours (or successors)."""
    reached = start
    frontier = start
    while frontier:
        new = neighbours[lowest(frontier)] & ~reached & allowed
        frontier = (frontier & (frontier - 1)) | new
        reached |= new
    return reached


@jit
def closes_response_loop(successors, node):
    """True if a closed loop of response lines passes `node`."""
    return component(successors, successors[node], EVERYTHING) >> np.int64(node) & 1


@jit
def has_closed_set(successors, escapes, first_vertex, count):
    """True if no response line leaves the vertices that some vertex leads to; `escapes`: bit set of the nodes that are
    outside (legs) or may still get a response line (or have an amputated response leg)."""
    for node in range(first_vertex, count):  # noqa: SIM110 (the compiler has no any())
        if component(successors, ONE << np.int64(node), EVERYTHING) & escapes == 0:
            return True
    return False


@jit
def no_way_out(successors, exits, accepting, count):
    """True if some node leads to no exit, and no node that does has a leg left to which its response lines could lead.

    Following response lines of a diagram without closed loops of them (or, for the non-local rule, out of every set of vertices)
    ends at a leg or at a vertex without response legs: those are the exits. `accepting`: nodes with a leg left that a response
    line may end on.
    """
    good = exits
    grown = True
    while grown:
        grown = False
        for node in range(count):
            if not good >> np.int64(node) & 1 and successors[node] & good:
                good |= ONE << np.int64(node)
                grown = True
    return good != (ONE << np.int64(count)) - 1 and good & accepting == 0


@jit
def index_line_fits(neighbours, open_nodes, legs, node, length):
    """True if the index line through `node` may still become what its class says: a closed loop through `length` nodes, or,
    for length 0, a line between two legs."""
    line = component(neighbours, ONE << np.int64(node), EVERYTHING)
    closed = line & open_nodes == 0
    if length == 0:
        return not (closed and line & legs == 0)
    size = 0
    while line:
        line &= line - 1
        size += 1
    return size == length if closed else size <= length


@jit
def has_snail(neighbours, n_legs, count):
    """True if taking one vertex away leaves a part without legs (for vacuum diagrams: more than one part)."""
    legs = (ONE << np.int64(n_legs)) - 1
    for node in range(n_legs, count):
        rest = ((ONE << np.int64(count)) - 1) & ~(ONE << np.int64(node))
        whole = rest
        while rest:
            part = component(neighbours, rest & -rest, whole)
            if part & legs == 0 and (n_legs or part != whole):
                return True
            rest &= ~part
    return False


@jit
def has_forbidden_bridge(entries, totals, kinds, is_open, n_legs, rule, mask, count, scratch):
    """True if a final line of a propagator in `mask` is a bridge that `rule` forbids, legs' lines apart.

    ONE_PARTICLE forbids every bridge, NO_TADPOLE those with a side that has no leg. totals[e] is the number of lines of
    entry e, kinds[e] the bit set of its propagators. Depth-first search with low points (R. E. Tarjan 1972) on the graph with
    the open nodes contracted into node `count`.
    """
    seen, low, legs_below, up, up_lines, up_kind, position, stack = (
        scratch[0], scratch[1], scratch[2], scratch[3], scratch[4], scratch[5], scratch[6], scratch[7]
    )  # fmt: skip
    for a in range(count + 1):
        seen[a] = 0
    clock = 0
    any_open = False
    for a in range(count):
        any_open |= is_open[a]
    root = count if any_open else 0
    open_legs = 0
    for a in range(n_legs):
        open_legs += is_open[a]
    depth = 0
    stack[0] = root
    clock += 1
    seen[root] = low[root] = clock
    legs_below[root] = open_legs if root == count else np.int64(root < n_legs)
    position[root] = 0
    up[root] = -1
    while depth >= 0:
        node = stack[depth]
        if position[node] <= count:
            other = position[node]
            position[node] += 1
            if other < count and is_open[other]:
                continue
            lines, kind = _joined(entries, totals, kinds, is_open, node, other, count)
            if lines == 0 or other == node:
                continue
            if seen[other] == 0:
                depth += 1
                stack[depth] = other
                clock += 1
                seen[other] = low[other] = clock
                position[other] = 0
                legs_below[other] = np.int64(other < n_legs)
                up[other], up_lines[other], up_kind[other] = node, lines, kind
            elif other != up[node] or up_lines[node] > 1:
                low[node] = min(low[node], seen[other])
            continue
        depth -= 1
        if depth < 0:
            break
        parent = up[node]
        low[parent] = min(low[parent], low[node])
        legs_below[parent] += legs_below[node]
        if low[node] > seen[parent] and up_lines[node] == 1 and node >= n_legs and parent >= n_legs and up_kind[node] & mask:
            if rule == ONE_PARTICLE:
                return True
            if legs_below[node] == 0 or legs_below[node] == n_legs:
                return True
    return False


@jit
def _joined(entries, totals, kinds, is_open, node, other, count):
    """Number of lines, and bit set of their propagators, between two nodes of the contracted graph (`count`: the open ones)."""
    if node < count and other < count:
        return totals[entries[node, other]], kinds[entries[node, other]]
    if node == count and other == count:
        return 0, 0
    closed = min(node, other)
    lines, kind = 0, 0
    for a in range(count):
        if is_open[a] and entries[closed, a]:
            lines += totals[entries[closed, a]]
            kind |= kinds[entries[closed, a]]
    return lines, kind


@jit
def open_lines_are_done(neighbours, open_nodes, node_class, cycle_length, n_legs):
    """True if all index lines between legs are closed, but vertices that must lie on such a line are left over."""
    covered, wanted = np.int64(0), np.int64(0)
    for node in range(node_class.shape[0]):
        bit = ONE << np.int64(node)
        if cycle_length[node_class[node]] == 0:
            if node >= n_legs:
                wanted |= bit
            elif not covered & bit:
                covered |= component(neighbours, bit, EVERYTHING)
    return covered & open_nodes == 0 and wanted & ~covered != 0


@jit
def _stubs(left, nodes):
    """Number of open legs of a set of nodes (2 stands for more than one)."""
    stubs = 0
    while nodes and stubs < 2:
        node = lowest(nodes)
        nodes &= nodes - 1
        for field in range(left.shape[1]):
            stubs += left[node, field]
    return stubs


@jit
def _open_nodes(left, is_open, fields):
    """Bit set of the nodes with an open leg of one of the marked fields; noted in `is_open` as well."""
    nodes = np.int64(0)
    for node in range(left.shape[0]):
        is_open[node] = False
        for field in range(left.shape[1]):
            if left[node, field] and fields[field]:
                is_open[node] = True
        if is_open[node]:
            nodes |= ONE << np.int64(node)
    return nodes


@jit
def _hangs_on_one_stub(left, mine, row, rules):
    """True if the only open leg of a component will carry a bridge that the rule forbids."""
    legs = (ONE << np.int64(rules.n_legs)) - 1
    if rules.bridge_mask != EVERY_PROPAGATOR or row < rules.n_legs - 1 or _stubs(left, mine) != 1:
        return False
    return rules.bridge_rule == ONE_PARTICLE or mine & legs == 0 or mine & legs == legs


@jit
def row_stands(tables, rules, state, row):
    """False if no completion of rows 0..row belongs to the class."""
    left, neighbours, is_open = state.left, state.neighbours, state.is_open
    count = left.shape[0]
    if rules.by_length and tables.cycle_length[tables.node_class[row]] >= 0:
        open_index = _open_nodes(left, is_open, tables.index_field)
        legs = (ONE << np.int64(rules.n_legs)) - 1
        length = tables.cycle_length[tables.node_class[row]]
        if not index_line_fits(neighbours[2], open_index, legs, row, length):
            return False
        if length == 0 and row >= rules.n_legs - 1 and open_lines_are_done(
            neighbours[2], open_index, tables.node_class, tables.cycle_length, rules.n_legs
        ):  # fmt: skip
            return False
    if rules.local and closes_response_loop(neighbours[1], row):
        return False
    if rules.local or rules.nonlocal_:
        exits = (ONE << np.int64(rules.n_legs)) - 1
        if rules.local:
            exits |= tables.no_response
        if no_way_out(neighbours[1], exits, _open_nodes(left, is_open, tables.accepts), count):
            return False
    if rules.nonlocal_:
        escapes = _open_nodes(left, is_open, tables.response) | ((ONE << np.int64(rules.n_legs)) - 1)
        if has_closed_set(neighbours[1], escapes, rules.n_legs, count):
            return False
    open_nodes = _open_nodes(left, is_open, tables.any_field)
    mine = component(neighbours[0], ONE << np.int64(row), EVERYTHING)
    if mine != (ONE << np.int64(count)) - 1:
        if mine & open_nodes == 0:
            return False
        if rules.bridge_rule != FREE and _hangs_on_one_stub(left, mine, row, rules):
            return False
    if rules.bridge_rule != FREE and has_forbidden_bridge(
        state.entries, tables.totals, tables.kinds, is_open, rules.n_legs, rules.bridge_rule, rules.bridge_mask, count,
        state.scratch,
    ):  # fmt: skip
        return False
    return not (rules.no_snails and row == count - 1 and has_snail(neighbours[0], rules.n_legs, count))
