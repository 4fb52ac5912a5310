"""Which rules can bound a node in a given norm, and which norms of its parts each of them needs."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from .expr import Expr
from .rules.base import Given
from .rules.norms import canonical
from .value import Grouping

__all__ = ["Plan", "plans", "singletons"]

Key = tuple[Expr, Grouping]


@dataclass(frozen=True, slots=True)
class Plan:
    """One rule with the premises it needs; ``stated`` if it only reads facts about the node."""

    rule: str
    premises: tuple[Key, ...] = ()
    extra: Any = None
    stated: bool = False


def singletons(node: Expr) -> Grouping:
    """The grouping of the subordinate norm."""
    return canonical(node.labels)


def plans(node: Expr, grouping: Grouping, given: Given) -> list[Plan]:
    """Rules by facts about the node first, then rules for its operation (the first of which speaks for a refusal)."""
    found = list(_stated(node, given))
    found.extend(_PLANS[node.op](node, grouping, given))
    return found or [Plan("A", stated=True)]


def _stated(node: Expr, given: Given) -> Iterable[Plan]:
    if not given.by_name:
        return
    for fact in given.all("known", node):
        yield Plan("A", extra=fact, stated=True)
        if fact.bound is not None and fact.bound.grouping:
            yield Plan("N6", extra=fact, stated=True)
    for fact in given.all("converges_to", node):
        yield Plan("A", extra=fact, stated=True)
    if given.all("chaos_degree", node):
        yield Plan("R8c", stated=True)
    for fact in given.all("moment", node):
        yield Plan("R8b", extra=fact.number, stated=True)
    for rule, names in _BY_FACT:
        if any(given.all(name, node) for name in names):
            yield Plan(rule, stated=True)


_BY_FACT = (
    ("R14", ("conditional_bound",)),
    ("R16", ("on_event",)),
    ("R17", ("every_subsequence", "along_subsequence")),
    ("N7", ("diagonal_bound",)),
)


def _leaf(node: Expr, grouping: Grouping, given: Given) -> list[Plan]:
    names = ("gaussian", "sub_gaussian_entries")
    return [Plan("G", stated=True)] if any(given.all(name, node) for name in names) else []


def _same(rule: str) -> Callable[[Expr, Grouping, Given], list[Plan]]:
    """Every child in the same norm."""
    return lambda node, grouping, given: [Plan(rule, tuple((child, grouping) for child in node.children))]


def _first(rule: str) -> Callable[[Expr, Grouping, Given], list[Plan]]:
    """The first child in the same norm."""
    return lambda node, grouping, given: [Plan(rule, ((node.children[0], grouping),))]


def _norms(rule: str) -> Callable[[Expr, Grouping, Given], list[Plan]]:
    """The plain norm of every child."""
    return lambda node, grouping, given: [Plan(rule, tuple((child, singletons(child)) for child in node.children))]


def _alone(rule: str) -> Callable[[Expr, Grouping, Given], list[Plan]]:
    return lambda node, grouping, given: [Plan(rule)]


def restricted(grouping: Grouping, labels: Iterable[str]) -> list[tuple[str, ...]]:
    """The blocks of a grouping, cut to some labels."""
    kept = set(labels)
    cut = [tuple(label for label in block if label in kept) for block in grouping]
    return [block for block in cut if block]


def _mixed(node: Expr, grouping: Grouping) -> list[tuple[str, ...]]:
    """Blocks with slots of more than one factor."""
    owner = {label: i for i, child in enumerate(node.children) for label in child.labels}
    return [block for block in grouping if len({owner[label] for label in block}) > 1]


def _outer(node: Expr, grouping: Grouping, given: Given) -> list[Plan]:
    if len(_mixed(node, grouping)) <= 1:  # one common block: the norm still factorises
        keys = tuple((child, canonical(restricted(grouping, child.labels))) for child in node.children)
        return [Plan("N1", keys), Plan("R3", keys)]
    keys = tuple((child, canonical([child.labels])) if child.valence else (child, ()) for child in node.children)
    return [Plan("N1", keys, "coarser"), Plan("R3", keys, "coarser")]


def _contract(node: Expr, grouping: Grouping, given: Given) -> list[Plan]:
    several = len(node.data) > 1
    found = []
    for keys in _contraction_norms(node, grouping, node.data):
        found += [Plan("N3", keys)] if several else [Plan("N2", keys), Plan("R4", keys)]
    if several:
        return found + list(_nuclear(node, grouping, given))
    return found + list(_white(node, grouping, given))


def _contraction_norms(node: Expr, grouping: Grouping, summed: tuple[str, ...]) -> Iterable[tuple[Key, ...]]:
    """Norms of the factors with the summed labels in one block.

    A block with slots of both factors is the Frobenius norm of a matrix product, at most ||A|| ||B||_F or ||A||_F ||B||;
    with several such blocks everything goes into one block (Cauchy-Schwarz).
    """
    a, b = node.children
    mixed = _mixed(node, grouping)
    plain = [restricted(grouping, child.labels) for child in (a, b)]
    if not mixed:
        yield ((a, canonical([*plain[0], summed])), (b, canonical([*plain[1], summed])))
        return
    if len(mixed) > 1:
        yield ((a, canonical([a.labels])), (b, canonical([b.labels])))
        return
    for joined in (1, 0):
        keys = []
        for place, child in enumerate((a, b)):
            own = tuple(label for label in mixed[0] if label in child.labels)
            blocks = [block for block in plain[place] if block != own]
            keys.append((child, canonical([*blocks, own + summed] if place == joined else [*blocks, own, summed])))
        yield tuple(keys)


def _nuclear(node: Expr, grouping: Grouping, given: Given) -> Iterable[Plan]:
    for place in (0, 1):
        if given.all("nuclear", node.children[place]):
            other = node.children[1 - place]
            blocks = [*restricted(grouping, other.labels), *((label,) for label in node.data)]
            yield Plan("N3", ((other, canonical(blocks)),), place)


def _white(node: Expr, grouping: Grouping, given: Given) -> Iterable[Plan]:
    for place in (0, 1):
        white, other = node.children[place], node.children[1 - place]
        names = ("gaussian", "iid_entries")
        if white.op == "leaf" and white.valence == 1 and any(given.all(name, white) for name in names):
            yield Plan("R11b", ((other, canonical([other.labels])),), place)


def _trace(node: Expr, grouping: Grouping, given: Given) -> list[Plan]:
    (child,) = node.children
    return [Plan("N5", ((child, canonical([*grouping, *((label,) for label in node.data)])),))]


def _vectors(node: Expr, grouping: Grouping, given: Given) -> list[Plan]:
    main, *vectors = node.children
    first = (main, canonical([*grouping, *((label,) for label in node.data)]))
    return [Plan("N4", (first, *((g, singletons(g)) for g in vectors)))]


def _power(node: Expr, grouping: Grouping, given: Given) -> list[Plan]:
    (child,) = node.children
    return [Plan("R5", ((child, singletons(child) if node.data[1] is None else canonical(node.data[1])),))]


def _apply(node: Expr, grouping: Grouping, given: Given) -> list[Plan]:
    key = ((node.children[0], grouping),)
    return [Plan("R6b", key), Plan("R6b", key, "regular"), Plan("R6", key)]


def _expectation(node: Expr, grouping: Grouping, given: Given) -> list[Plan]:
    (child,) = node.children
    found = [Plan("R8a", ((child, grouping),))]
    for inner in _PLANS[child.op](child, grouping, given) if child.op in ("outer", "contract") else ():
        if inner.rule in ("R3", "R4"):
            found.insert(0, Plan("R15", inner.premises))
    return found


def _fluctuation(node: Expr, grouping: Grouping, given: Given) -> list[Plan]:
    return [Plan("R8b", ((node.children[0], grouping),)), Plan("R8b")]


def _max_over(node: Expr, grouping: Grouping, given: Given) -> list[Plan]:
    key = ((node.children[0], singletons(node.children[0])),)
    return [Plan("R10", key), Plan("R10b", key)]


def _sum_over(node: Expr, grouping: Grouping, given: Given) -> list[Plan]:
    key = ((node.children[0], grouping),)
    return [Plan("R11a", key), Plan("R11b", key), Plan("R11c", key)]


def _inverse(node: Expr, grouping: Grouping, given: Given) -> list[Plan]:
    found = [Plan("R13")]
    if len(node.children) == 3:
        found.append(Plan("R13b", tuple((child, grouping) for child in node.children[1:])))
    return found


def _entry(node: Expr, grouping: Grouping, given: Given) -> list[Plan]:
    (child,) = node.children
    found = [Plan("R22", ((child, canonical([*grouping, *((label,) for label in node.data)])),))]
    names = ("gaussian", "sub_gaussian_entries", "entry_variance")
    if child.op == "leaf" and any(given.all(name, child) for name in names):
        found.append(Plan("G"))
    return found


def _assemble(node: Expr, grouping: Grouping, given: Given) -> list[Plan]:
    (child,) = node.children
    return [Plan("R22", ((child, canonical([child.labels] if child.valence else [])),))]


def _taylor(node: Expr, grouping: Grouping, given: Given) -> list[Plan]:
    (child,) = node.children  # the deviation as one vector: the Taylor polynomial is in its entries
    return [Plan("R7", ((child, canonical([child.labels] if child.valence else [])),))]


def _dominated(node: Expr, grouping: Grouping, given: Given) -> list[Plan]:
    return [Plan("R14b", ((node.children[1], singletons(node.children[1])),))]


_PLANS: dict[str, Callable[[Expr, Grouping, Given], list[Plan]]] = {
    "leaf": _leaf, "number": _alone("C"), "scale": _alone("C"), "oterm": _alone("R21"), "sum": _same("R1"),
    "scaled": _same("R2"), "outer": _outer, "contract": _contract, "contract_vectors": _vectors, "trace": _trace,
    "power": _power, "apply": _apply, "expectation": _expectation, "fluctuation": _fluctuation, "max_of": _norms("R9"),
    "max_over": _max_over, "sum_over": _sum_over, "inverse": _inverse, "inverse_remainder": _same("R13b"),
    "entry": _entry, "assemble": _assemble, "block_diagonal": _norms("N8"), "integral": _first("R19"),
    "derivative": _alone("R19"), "limit_over": _first("R12"), "given_event": _first("R14"), "conditional": _alone("R14"),
    "reindexed": _first("R18"), "iterate": _first("R20"), "dominated": _dominated, "taylor": _taylor,
    "coarser": _norms("N6"),
}  # fmt: skip
