"""The search itself: fill rows in decreasing order, prune, test, and hand out a block of canonical diagrams at a time."""

from __future__ import annotations

import numpy as np

from symtensor.diagrams.kernel.canonicity import is_canonical
from symtensor.diagrams.kernel.fill import join, lift, offer, place_lines, place_self_loops
from symtensor.diagrams.kernel.jit import jit
from symtensor.diagrams.kernel.pruning import row_stands

__all__ = ["advance", "load_prefix"]

#: Places tried before control goes back, so that a long search can be interrupted.
STEPS = 5_000_000


@jit
def _open_row(tables, same, entries, left, capacity, row):
    """Refine the cells by the row just filled and get ready for row `row`."""
    count = left.shape[0]
    same[row, row] = False
    for other in range(row + 1, count):
        same[row, other] = same[row - 1, other] and entries[row - 1, other] == entries[row - 1, other - 1]
    offer(tables.partner, left, capacity, row)


@jit
def load_prefix(tables, state, code, rows):
    """Put rows 0..rows-1 of an upper triangle, and stand before the first diagram that begins with them."""
    count = state.left.shape[0]
    offer(tables.partner, state.left, state.capacity, 0)
    at = 0
    for row in range(rows):
        entry = np.int64(code[at])
        at += 1
        state.loops[row] = entry
        for field in range(state.left.shape[1]):
            state.left[row, field] -= tables.self_uses[entry, field]
        for column in range(row + 1, count):
            if code[at]:
                join(tables, state.entries, state.left, state.neighbours, row, column, np.int64(code[at]))
            at += 1
        _open_row(tables, state.same, state.entries, state.left, state.capacity, row + 1)
    state.position[0] = state.position[1] = rows


@jit
def _store(loops, entries, orbits, code, sizes):
    count = loops.shape[0]
    at = 0
    for row in range(count):
        code[at] = loops[row]
        at += 1
        for column in range(row + 1, count):
            code[at] = entries[row, column]
            at += 1
        sizes[row] = orbits[row]


@jit
def advance(tables, rules, state, first_row, last_row, codes, sizes):
    """Write canonical diagrams (upper triangles, row by row) and their orbit sizes until the block is full, all are found, or
    `STEPS` places have been tried.

    Rows before `first_row` stay as they are; a diagram is complete when row `last_row` is (the last one, or an earlier one to
    get the prefixes that independent searches go on from). Returns how many were written; state.position[2] is 1 when the
    search is finished. The first call of a search must be preceded by `load_prefix`.
    """
    self_uses, transposed, uses = tables.self_uses, tables.transposed, tables.uses
    entries, loops, left, same, neighbours = state.entries, state.loops, state.left, state.same, state.neighbours
    choice, capacity, settled, orders = state.choice, state.capacity, state.settled, state.orders
    tried, parent, orbits = state.tried, state.parent, state.orbits
    count, written, steps = left.shape[0], 0, 0
    row, column, finished = state.position[0], state.position[1], state.position[2]
    while not finished and written < codes.shape[0] and steps < STEPS:
        steps += 1
        lift(self_uses, transposed, uses, entries, loops, left, neighbours, row, column)
        if row == column:
            placed = place_self_loops(tables, same, choice, loops, left, capacity, row)
        else:
            entry = place_lines(tables, same, choice, entries, left, capacity, row, column)
            placed = entry >= 0
            if entry > 0:
                join(tables, entries, left, neighbours, row, column, entry)
        if not placed:
            choice[row, column] = -1
            finished = np.int64(row == column == first_row)
            if row == column:
                row, column = row - 1, count - 1
            else:
                column -= 1
            continue
        if column < count - 1:
            column += 1
            continue
        if not row_stands(tables, rules, state, row):
            continue
        if not is_canonical(entries, loops, same, settled, orders, tried, parent, row, count, orbits):
            continue
        if row == last_row:
            _store(loops, entries, orbits, codes[written], sizes[written])
            written += 1
            continue
        row += 1
        column = row
        _open_row(tables, same, entries, left, capacity, row)
    state.position[0], state.position[1], state.position[2] = row, column, finished
    return written
