"""What a search knows: fixed tables, the rules that cut branches, and where it stands."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

__all__ = ["EVERY_PROPAGATOR", "FREE", "NO_TADPOLE", "ONE_PARTICLE", "Rules", "State", "Tables", "new_state"]

#: Which bridges are forbidden: none, all, those with a side that has no leg.
FREE, ONE_PARTICLE, NO_TADPOLE = 0, 1, 2
#: The bit set of all propagators.
EVERY_PROPAGATOR = (1 << 62) - 1


class Tables(NamedTuple):
    """What does not change during a search: N nodes, C classes, E entries, S self-entries, F fields. Entry 0 is "no line"."""

    node_class: np.ndarray  #: (N,) class of each node, in blocks
    need: np.ndarray  #: (N, F) legs of each field at each node
    pair_start: np.ndarray  #: (C, C) where the entries allowed between two classes start in pair_entries
    pair_stop: np.ndarray  #: (C, C)
    pair_entries: np.ndarray  #: entries, decreasing within each pair of classes
    transposed: np.ndarray  #: (E,) the entry seen from the other node
    uses: np.ndarray  #: (E, F) legs an entry uses at its first node
    totals: np.ndarray  #: (E,) number of lines
    kinds: np.ndarray  #: (E,) bit set of propagators
    leaves: np.ndarray  #: (E,) 1 if a response line runs from the first node to the second
    carries: np.ndarray  #: (E,) 1 if an index line joins the two
    self_start: np.ndarray  #: (C,)
    self_stop: np.ndarray  #: (C,)
    self_entries: np.ndarray
    self_uses: np.ndarray  #: (S, F)
    partner: np.ndarray  #: (F, F) 1 if legs of the two fields may be joined
    any_field: np.ndarray  #: (F,) ones
    response: np.ndarray  #: (F,) 1 for response fields
    accepts: np.ndarray  #: (F,) 1 for fields that a response line may end on
    no_response: np.int64  #: bit set of the vertices without a response leg
    index_field: np.ndarray  #: (F,) 1 for fields that carry the index
    cycle_length: np.ndarray  #: (C,) length of the index lines of a class; 0 a line between legs, -1 no condition


class Rules(NamedTuple):
    """Which branches are cut; the switches are 0 or 1."""

    n_legs: int
    bridge_rule: int = FREE
    bridge_mask: int = EVERY_PROPAGATOR  #: bit set of propagators whose bridges count
    local: int = 0  #: no closed response loop
    nonlocal_: int = 0  #: a response line leaves every set of vertices
    no_snails: int = 0
    by_length: int = 0  #: index lines have prescribed lengths


class State(NamedTuple):
    """Where the search stands; it can be stopped after any diagram and taken up again."""

    position: np.ndarray  #: row, column, 1 if finished
    choice: np.ndarray  #: (N, N) position in the list of entries tried at each place
    entries: np.ndarray  #: (N, N)
    loops: np.ndarray  #: (N,)
    left: np.ndarray  #: (N, F) legs still open
    same: np.ndarray  #: (N + 1, N) [row, j]: node j is in the cell of node j - 1 before the row is filled
    capacity: np.ndarray  #: (N, N + 1, F) legs that columns >= j offer to a leg of the row
    neighbours: np.ndarray  #: (3, N) bit sets: all neighbours, successors along response lines, along index lines
    settled: np.ndarray  #: (N, N) [row, level]: bit set of candidates that can only give smaller rows
    orders: np.ndarray  #: (N + 2, N) scratch of the canonicity test, as are the next three
    tried: np.ndarray
    parent: np.ndarray
    orbits: np.ndarray
    is_open: np.ndarray  #: (N,) some leg of the node is open
    scratch: np.ndarray  #: (8, N + 1) scratch of the search for bridges


def new_state(tables: Tables) -> State:
    """The state before the first diagram."""
    count, fields = tables.need.shape
    same = np.zeros((count + 1, count), np.bool_)
    same[0, 1:] = tables.node_class[1:] == tables.node_class[:-1]

    def zeros(*shape: int) -> np.ndarray:
        return np.zeros(shape, np.int64)

    return State(
        position=zeros(3), choice=np.full((count, count), -1, np.int64), entries=zeros(count, count), loops=zeros(count),
        left=tables.need.copy(), same=same, capacity=zeros(count, count + 1, fields), neighbours=zeros(3, count),
        settled=zeros(count, count), orders=zeros(count + 2, count), tried=zeros(count + 1), parent=zeros(count),
        orbits=np.ones(count, np.int64), is_open=np.zeros(count, np.bool_), scratch=zeros(8, count + 1),
    )  # fmt: skip
