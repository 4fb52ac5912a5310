"""Independence, centring and lack of correlation of expressions, inferred from facts about the tensors inside.

Each function returns the facts that prove the property, or ``None``; nothing is assumed for want of a fact. An index that an
operation inside has summed, maximised or integrated out is no dependence: only free indices make members differ.
"""

from __future__ import annotations

from collections.abc import Iterable

from ..expr import Expr
from ..facts import Fact
from .base import Given

__all__ = ["centred", "independent_members", "mutually_independent", "same_law", "uncorrelated_members"]

Proof = tuple[Fact, ...] | None
Memo = dict[int, Proof]
DEPTH = 50
_LINEAR = ("sum", "scaled", "sum_over", "entry", "assemble", "trace")
_PRODUCT = ("outer", "contract", "contract_vectors")


def mutually_independent(parts: Iterable[Expr], given: Given) -> Proof:
    """Facts that make the parts independent: one that names them all, or one that names all tensors inside.

    Pairwise facts do not add up: signs X, Y and XY are pairwise independent, and E[X Y (XY)] = 1.
    """
    parts = tuple(parts)
    if any(part.unknowns for part in parts):
        return None  # an O-term may depend on everything
    direct = given.find("independent", *parts)
    if direct is not None:
        return (direct,)
    fixed = {name: f for part in parts for name in part.tensors if (f := given.find("deterministic", name))}
    names = [sorted(part.tensors - set(fixed)) for part in parts]
    together = [name for group in names for name in group]
    if len(set(together)) < len(together):
        return None
    if sum(map(bool, names)) <= 1:
        return tuple(fixed.values())
    found = given.find("independent", *together)
    return None if found is None else (found, *fixed.values())


def centred(node: Expr, given: Given, depth: int = DEPTH, memo: Memo | None = None) -> Proof:
    """Facts that make E node = 0; each node is decided once."""
    memo = {} if memo is None else memo
    if id(node) not in memo:
        memo[id(node)] = _centred(node, given, depth, memo) if depth else None
    return memo[id(node)]


def _centred(node: Expr, given: Given, depth: int, memo: Memo) -> Proof:
    if node.unknowns:
        return None
    if node.op == "fluctuation":
        return ()
    found = given.find("centred", node) or (given.find("gaussian", node) if node.op == "leaf" else None)
    if found is not None:
        return (found,)
    if node.op in _LINEAR:
        proofs = [centred(child, given, depth - 1, memo) for child in node.children]
        return None if any(proof is None for proof in proofs) else _united(*(proof or () for proof in proofs))
    if node.op in _PRODUCT:
        for place, child in enumerate(node.children):
            proof = centred(child, given, depth - 1, memo)
            apart = mutually_independent((child, _rest(node, place)), given) if proof is not None else None
            if proof is not None and apart is not None:
                return _united(proof, apart)
    return None


def _united(*proofs: tuple[Fact, ...]) -> tuple[Fact, ...]:
    """The facts of several proofs, each once."""
    return tuple(dict.fromkeys(fact for proof in proofs for fact in proof))


def _rest(node: Expr, place: int) -> Expr:
    """The factors at all other places as one node, for their tensors only; a factor that occurs twice is its own rest."""
    others = tuple(part for i, part in enumerate(node.children) if i != place)
    return others[0] if len(others) == 1 else Expr("rest", others, None, (), ())


def same_law(node: Expr, index: str, given: Given) -> Proof:
    """Facts that give every member of the family the same law: one per tensor that depends on the index."""
    if node.op == "entry" and index in node.data:  # the index comes from slots, not from a family of tensors
        return _independent_entries(node, given)
    return _each_leaf(node, index, given, ("iid_over", "identically_distributed_over"))


def _each_leaf(node: Expr, index: str, given: Given, names: tuple[str, ...]) -> Proof:
    """One fact for each tensor; the joint law with something random that all members share is not known."""
    inside = _members(node, index)
    if not inside:
        return None
    used = []
    for part in inside:
        found = next((f for name in names if (f := given.find(name, part, index=index))), None)
        if found is None:
            return None
        used.append(found)
    return tuple(dict.fromkeys(used))


def _members(node: Expr, index: str) -> list[Expr] | None:
    """The tensors that differ from member to member; ``None`` if something random is common to all members.

    The index must be free in every part: sum_k Y_k inside is one random variable for all members.
    """
    found, stack, done = [], [node], set()
    while stack:
        part = stack.pop()
        if id(part) in done:
            continue
        done.add(id(part))
        if not part.depends_on(index):
            if part.tensors or part.unknowns:
                return None
        elif part.op == "leaf":
            found.append(part)
        elif part.op == "oterm" or (part.op == "entry" and index in part.data):
            return None
        elif part.op == "derivative" and part.data == index:
            return None  # a derivative in the index depends on neighbouring members: their joint law, not the law of each
        else:
            stack.extend(part.children)
    return found


def independent_members(node: Expr, index: str, given: Given) -> Proof:
    """Facts that make the members of a family independent: every tensor inside is, and they are mutually."""
    found = given.find("iid_over", node, index=index) or given.find("independent_over", node, index=index)
    if found is not None:
        return (found,)
    if node.op == "entry" and index in node.data:
        return _independent_entries(node, given)
    if not node.children or node.unknowns or not _elementwise(node):
        return None
    inside = _members(node, index)
    if not inside:
        return None
    used = _each_leaf(node, index, given, ("iid_over", "independent_over"))
    distinct = list({part.data.name: part for part in inside}.values())
    apart = mutually_independent(distinct, given)
    return None if used is None or apart is None else tuple(dict.fromkeys((*used, *apart)))


def _elementwise(node: Expr) -> bool:
    """Whether no operation inside turns slots into members or changes the law."""
    stack, done = [node], set()
    while stack:
        part = stack.pop()
        if part.op in ("entry", "oterm", "reindexed", "limit_over", "given_event"):
            return False
        stack.extend(child for child in part.children if id(child) not in done)
        done.update(map(id, part.children))
    return True


def _independent_entries(node: Expr, given: Given) -> Proof:
    (child,) = node.children
    if child.op != "leaf":
        return None
    found = given.find("gaussian", child) or given.find("iid_entries", child)
    return None if found is None else (found,)


def uncorrelated_members(node: Expr, index: str, given: Given, depth: int = DEPTH, memo: Memo | None = None) -> Proof:
    """Facts for E[M_i (x) M_j] = 0, i != j, of centred members; each node is decided once."""
    memo = {} if memo is None else memo
    if id(node) not in memo:
        memo[id(node)] = _uncorrelated(node, index, given, depth, memo) if depth else None
    return memo[id(node)]


def _uncorrelated(node: Expr, index: str, given: Given, depth: int, memo: Memo) -> Proof:
    found = given.find("uncorrelated_over", node, index=index)
    if found is not None:
        return (found,)
    proof = independent_members(node, index, given)
    if proof is not None:
        return proof
    if node.op == "scaled":
        return uncorrelated_members(node.children[0], index, given, depth - 1, memo)
    if node.op in _PRODUCT:
        return _one_uncorrelated_factor(node, index, given, depth, memo)
    return None


def _one_uncorrelated_factor(node: Expr, index: str, given: Given, depth: int, memo: Memo) -> Proof:
    """E[F_i F_j] E[G_i G_j] = 0 if the F are centred, uncorrelated and independent of the G."""
    for place, child in enumerate(node.children):
        if not child.depends_on(index):
            continue
        proof = uncorrelated_members(child, index, given, depth - 1, memo)
        mean = centred(child, given) if proof is not None else None
        apart = mutually_independent((child, _rest(node, place)), given) if mean is not None else None
        if proof is not None and mean is not None and apart is not None:
            return _united(proof, mean, apart)
    return None
