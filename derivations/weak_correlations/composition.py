r"""Composition: bounds of C_{D,d} for A . phi . B from bounds of the parts, by Faa di Bruno's formula and the bound algebra.

F = n^{-1/2} sum_i a_i phi_i(z_i), z = B(theta') in R^n. A derivative of F has at most one slot in a, and splits its other slots
over the derivatives of z_i by set partitions:

    grad^k phi_i(z_i) = sum over partitions of phi_i^(r)(z_i) prod_blocks grad^|block| z_i.

What is asked of a part B (`Part`), per neuron i and with v = grad F:

* entries: grad^q z_i [v^q] = O(beta_q), uniformly in i: the contracted gradient is spread over the neurons;
* operators: the tensor (i | free slots) grad^{p+q} z [v^q], p >= 1, in the norm over i and the free slots.

A pointwise phi with phi^(r) = O((r+1)!) may differ from neuron to neuron: only the supremum over i of its derivatives enters.

References: weak_correlations.md, sections 2, 4, 6; stochastic_order.md, R1-R11, N1-N8.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from symtensor.bounds import (
    ALL_MOMENTS,
    U1,
    Bound,
    Expr,
    Fact,
    Kind,
    RandomTensor,
    Scale,
    assemble,
    bound,
    centred,
    contract,
    gaussian,
    iid_over,
    known,
    max_over,
    outer,
    power,
    scale,
    scaled,
    sum_over,
    uncorrelated_over,
)

__all__ = ["Contribution", "Part", "hidden_layer", "input_layer", "read_out", "residual_block", "set_partitions"]

ROOT = scale("1/sqrt(n)")
Blocks = tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Part:
    """What is known of z = B(theta) with n components.

    Attributes:
        name: of the layer.
        entries: q -> scale of grad^q z_i [v^q], uniformly in i; q = 0 is z_i itself. A missing q vanishes.
        operators: (p, q) -> scale of the norm of grad^{p+q} z [v^q] over (i | p free slots). A missing pair vanishes.
        uncorrelated: neurons are uncorrelated given nothing (one hidden layer); else centred sums over neurons are not assumed
            to be smaller than n terms, unless `read_out` is told so.
    """

    name: str
    entries: Mapping[int, Scale]
    operators: Mapping[tuple[int, int], Scale]
    uncorrelated: bool


@dataclass(frozen=True, slots=True)
class Contribution:
    """One term of Faa di Bruno's formula: where its a-slot is, how the slots are split, and its bound."""

    slot: str
    blocks: Blocks
    bound: Bound


def input_layer() -> Part:
    """z_i = w_i . x / sqrt(n_0): linear in its own weights; grad z_i [v] = n^{-1/2} a_i phi'(z_i) |x|^2 / n_0."""
    return Part("input layer", {0: scale("1"), 1: ROOT}, {(1, 0): scale("1")}, True)


def set_partitions(free: int, contracted: int) -> frozenset[Blocks]:
    """The partitions of free and contracted slots as sorted (free, contracted) sizes; slots of one kind are alike.

    >>> sorted(set_partitions(1, 1))
    [((0, 1), (1, 0)), ((1, 1),)]
    """
    if not free and not contracted:
        return frozenset({()})
    found = set()
    first = (1, 0) if free else (0, 1)
    for p in range(free - first[0] + 1):
        for q in range(contracted - first[1] + 1):
            block = first[0] + p, first[1] + q
            for rest in set_partitions(free - block[0], contracted - block[1]):
                found.add(tuple(sorted((block, *rest))))
    return frozenset(found)


def read_out(part: Part, D: int, d: int, *, uncorrelated: bool | None = None) -> tuple[Bound, tuple[Contribution, ...]]:
    """The bound of C_{D,d} of F = n^{-1/2} sum_i a_i phi_i(z_i) (eta is fixed), with the contribution of each partition.

    F is odd in a, and so is v: a sum over neurons without free slots is centred exactly for even d.

    Args:
        part: z. D, d: which correlation, (D, d) != (0, 0).
        uncorrelated: that neurons are uncorrelated, where the part does not know it: a hypothesis.

    Raises:
        ValueError: the function itself, or negative D or d.

    Example:
        >>> [str(read_out(input_layer(), D, d)[0].scale) for D, d in ((0, 1), (0, 2), (0, 3), (1, 1), (2, 0))]
        ['1', '1/n', '1/n', '1/sqrt(n)', 'sqrt(log n) / sqrt(n)']
    """
    if D < 0 or d < 0 or D + d == 0:
        raise ValueError(f"C_{{{D},{d}}}: D, d >= 0 and D + d >= 1 are required")
    apart = part.uncorrelated if uncorrelated is None else uncorrelated
    found = [Contribution(slot, blocks, bound(expr)) for slot, blocks, expr in _terms(part, D, d, apart)]
    if not found:
        raise ValueError(f"C_{{{D},{d}}} vanishes for {part.name}")
    total = Scale.max(*(item.bound.scale for item in found))
    top = next((item.bound for item in found if item.bound.scale == total), found[0].bound)
    return Bound(total, Kind.O, top.mode, (), (), "exact", None, f"the largest of {len(found)} terms (R1)"), tuple(found)


def _terms(part: Part, D: int, d: int, apart: bool) -> Iterator[tuple[str, Blocks, Expr]]:
    odd = d % 2 == 0
    for blocks in _allowed(part, D, d):
        yield "none", blocks, scaled(ROOT, _neurons(part, blocks, d + 1, odd and apart))
    if d:
        for blocks in _allowed(part, D, d - 1):
            # the gradient in a is n^{-1/2} phi(z_i)
            yield "contracted", blocks, scaled(ROOT * ROOT, _neurons(part, blocks, d - 1, odd and apart))
    if D:
        for blocks in _allowed(part, D - 1, d):
            yield "free", blocks, scaled(ROOT, _own_slot(part, blocks, d))


def _allowed(part: Part, free: int, contracted: int) -> list[Blocks]:
    """The partitions whose blocks do not vanish."""
    known_blocks = {(0, q) for q in part.entries if q} | set(part.operators)
    return sorted(blocks for blocks in set_partitions(free, contracted) if set(blocks) <= known_blocks)


def _coefficient(part: Part, blocks: Blocks) -> Scale:
    """Scale of phi^(r)(z_i) times the contracted blocks, at one neuron."""
    value = scale("1")
    for p, q in blocks:
        if p == 0:
            value = value * part.entries[q]
    return value


def _member(scale_of: Scale, *facts: Fact) -> RandomTensor:
    return RandomTensor("c", facts=[known(scale_of, mode=ALL_MOMENTS, uniform=U1("i")), *facts], family={"i": "n"})


def _largest(part: Part, blocks: Blocks, gaussians: int) -> Expr:
    """max_i |c_i| <= C max_i |a_i|^gaussians: c_i has that many factors a_i, and bounded derivatives of phi."""
    a = RandomTensor("a", facts=[gaussian(), iid_over("i")], family={"i": "n"})
    top = power(max_over(a, "i"), gaussians) if gaussians else RandomTensor("one", facts=[known("1")]).expr
    return scaled(_coefficient(part, blocks), top)


def _operators(part: Part, blocks: Blocks) -> list[Expr]:
    """The free blocks as operators (i | slots), each with its own labels."""
    found = []
    for at, (p, q) in enumerate(blocks):
        if p:
            slots = {f"s{at}_{k}": "n" for k in range(p)}
            tensor = RandomTensor(f"X{at}", {"i": "n", **slots}, [known(part.operators[p, q])])
            found.append(tensor[("i", *slots)])
    return found


def _neurons(part: Part, blocks: Blocks, gaussians: int, centred_sum: bool) -> Expr:
    """sum_i c_i prod_blocks X_i: no free slot, one free block, or several."""
    free = _operators(part, blocks)
    if not free:
        facts = [centred(), uncorrelated_over("i")] if centred_sum else []
        return sum_over(_member(_coefficient(part, blocks), *facts), "i")
    if len(free) == 1 and sum(p for p, _ in blocks) == 1:
        vector = assemble(_member(_coefficient(part, blocks)), "i")
        return contract(vector, free[0], over="i")
    return _hadamard(part, blocks, gaussians, free)


def _own_slot(part: Part, blocks: Blocks, d: int) -> Expr:
    """e_i (x) phi^(r)(z_i) prod X_i: a vector over neurons, or block-diagonal."""
    free = _operators(part, blocks)
    if not free:
        return assemble(_member(_coefficient(part, blocks)), "i")
    return _hadamard(part, blocks, d, free)


def _hadamard(part: Part, blocks: Blocks, gaussians: int, free: list[Expr]) -> Expr:
    """|sum_i c_i X_i(u) Y_i(w)..| <= max |c_i| |X u| |Y w| ..: every further vector over i is at most its Euclidean norm (N6)."""
    total = _largest(part, blocks, gaussians)
    for at, operator in enumerate(free):
        slots = [label for label in operator.labels if label != "i"]
        plain = RandomTensor(f"Y{at}", {f"j{at}": "n", **dict.fromkeys(slots, "n")}, [known(bound(operator).scale)])
        total = outer(total, plain[(f"j{at}", *slots)])
    return total


# -- deeper networks ----------------------------------------------------------------------------------------------------


def hidden_layer(part: Part, orders: int = 4) -> Part:
    """z' = n^{-1/2} W phi(z): what the read-out asks of the next layer, from what is known of this one.

    ||n^{-1/2} W|| = O(1) (Gaussian), W has one slot at most. The entries of the result assume that the contracted gradient stays
    spread over the neurons of z' (its Euclidean norm is what the operators give, and is divided by sqrt n).
    """
    w = RandomTensor("W", {"i": "n", "j": "n"}, [gaussian()])
    spread = bound(scaled(ROOT, w["i", "j"])).scale
    entries: dict[int, Scale] = {0: scale("1")}
    operators: dict[tuple[int, int], Scale] = {}
    for q in range(1, orders + 1):
        found = [spread * _coefficient(part, blocks) for blocks in _allowed(part, 0, q)]
        # the gradient in W_ij is n^{-1} a_i phi'(z'_i) phi(z_j): a sum over j of n such terms
        found += [ROOT * _coefficient(part, blocks) for blocks in _allowed(part, 0, q - 1)]
        entries[q] = Scale.max(*found)
    for p in range(1, orders + 1):
        for q in range(orders + 1 - p):
            found = [spread * _with_maximum(part, blocks, q) for blocks in _allowed(part, p, q)]
            found += [_own(part, blocks, q) for blocks in _allowed(part, p - 1, q)]
            if q:
                found += [ROOT * _with_maximum(part, blocks, q - 1) for blocks in _allowed(part, p, q - 1)]
            if found:
                operators[p, q] = Scale.max(*found)
    return Part(f"hidden layer on {part.name}", entries, operators, False)


def _with_maximum(part: Part, blocks: Blocks, gaussians: int) -> Scale:
    value = bound(_largest(part, blocks, gaussians)).scale
    for p, q in blocks:
        value = value * part.operators[p, q] if p else value
    return value


def _own(part: Part, blocks: Blocks, gaussians: int) -> Scale:
    """The free W-slot: n^{-1/2} times a vector over j, or its maximum if more slots are free."""
    if any(p for p, _ in blocks):
        return ROOT * _with_maximum(part, blocks, gaussians)
    return bound(scaled(ROOT, assemble(_member(_coefficient(part, blocks)), "i"))).scale


def residual_block(part: Part, orders: int = 4) -> Part:
    """z' = z + n^{-1/2} W phi(z): term by term the larger of the identity and the hidden layer (R1)."""
    branch = hidden_layer(part, orders)
    entries = {q: Scale.max(*(p.entries[q] for p in (part, branch) if q in p.entries)) for q in {*part.entries, *branch.entries}}
    pairs = {*part.operators, *branch.operators}
    operators = {pair: Scale.max(*(p.operators[pair] for p in (part, branch) if pair in p.operators)) for pair in sorted(pairs)}
    return Part(f"residual block on {part.name}", dict(sorted(entries.items())), operators, False)
