"""N1-N8: the subordinate norm of products, contractions, traces, groupings, symmetric and block-diagonal tensors."""

from __future__ import annotations

from ..expr import Expr
from ..modes import DET, Kind
from ..scale import Scale
from ..value import Bound, Grouping, check_blocks
from .base import Call, rule

_BOTH = (
    "bound both factors in the norm that puts the contracted slots in one block, known(f, grouping=((.., ..),)), "
    "or state the nuclear norm of one factor, bounded_fact('nuclear', Bound(g), N), or use coarser(M) (N6, a dimension factor)"
)


def _upper_kind(call: Call) -> Kind:
    for i in range(len(call.premises)):
        call.need_upper(i)
    return Kind.SMALL_O if any(bound.kind is Kind.SMALL_O for bound in call.premises) else Kind.O


def _scale(call: Call) -> Scale:
    scale = Scale.one()
    for bound in call.premises:
        scale = scale * bound.scale
    return scale


def _certain(call: Call) -> None:
    for i in range(len(call.premises)):
        call.need_mode(i, DET, "for random factors the rule is R3 or R4")


@rule(
    "N1",
    "norm(M (x) N) = norm(M) norm(N) for disjoint slots",
    ("disjoint slots", "mode det"),
    "a shared slot is a contraction",
    variants=(("exact",), ()),
    tight="exact",
)
def outer_norm(call: Call) -> Bound:
    """Deterministic factors; R3 is the random case."""
    _certain(call)
    labels = [label for child in call.node.children for label in child.labels]
    if len(labels) != len(set(labels)):
        raise call.missing("disjoint slots", call.node, "rename the slots of one factor")
    if "exact" in call.variant:
        if call.extra == "coarser":
            raise call.missing("unmixed grouping", call.node, "a block that mixes both factors is only bounded")
        for i in range(len(call.premises)):
            call.need_lower(i)
        theta = all(bound.kind is Kind.THETA for bound in call.premises)
        return call.conclude(_scale(call), Kind.THETA if theta else Kind.OMEGA, DET)
    return call.conclude(_scale(call), _upper_kind(call), DET)


@rule(
    "N2",
    "one contracted pair: norm(M . N) <= norm(M) norm(N)",
    ("exactly one contracted pair", "mode det"),
    "<I_n, I_n> = n with norm(I) norm(I) = 1",
)
def single_contraction(call: Call) -> Bound:
    """Deterministic factors; R4 is the random case."""
    if len(call.node.data) != 1:
        raise call.missing("exactly one contracted pair", f"the contraction over {', '.join(call.node.data)}", "use N3")
    _certain(call)
    return call.conclude(_scale(call), _upper_kind(call), DET)


@rule(
    "N3",
    "several contracted pairs: norm <= norm_J(M) norm_J(N), contracted slots in one block; or norm(M) nuclear(N)",
    ("grouped norms, or nuclear norm",),
    "<I_n, I_n> = n, norm(I) norm(I) = 1",
    variants=(("grouped",), ("nuclear",)),
)
def several_contractions(call: Call) -> Bound:
    """Cauchy-Schwarz over the joint contracted slot, or duality with the nuclear norm."""
    summed = set(call.node.data)
    if "nuclear" in call.variant:
        return _nuclear(call)
    for child, bound in zip(call.node.children, call.premises, strict=True):
        if not any(summed <= set(block) for block in bound.grouping):
            pairs = " ".join(call.node.data)
            raise call.missing(f"grouped norm over ({pairs})", child, _BOTH)
    from ..modes import Mode

    return call.conclude(_scale(call), _upper_kind(call), Mode.product(bound.mode for bound in call.premises))


def _nuclear(call: Call) -> Bound:
    """``extra`` is the factor whose nuclear norm is known; the premise is the other's plain norm."""
    if call.extra not in (0, 1):
        raise call.missing("grouped norms, or nuclear norm", call.node, _BOTH)
    other = call.node.children[call.extra]
    if set(other.labels) != set(call.node.data):
        raise call.missing("nuclear norm of a factor without free slots", other, _BOTH)
    found = call.require("nuclear", other, fix=_BOTH)
    assert found.bound is not None
    if not found.bound.kind.upper:
        raise call.missing("upper bound O", f"nuclear norm of {other}", "an Omega bound does not bound from above")
    from ..modes import Mode

    kind = Kind.SMALL_O if found.bound.kind is Kind.SMALL_O else _upper_kind(call)
    mode = Mode.product([call.premises[0].mode, found.bound.mode])
    return call.conclude(_scale(call) * found.bound.scale, kind, mode, ())


@rule("N4", "norm(M[g_1, .., g_d, .]) <= norm(M) prod norm(g_i): d single contractions", ("one vector per slot",))
def vector_contraction(call: Call) -> Bound:
    """Each vector takes one slot of M."""
    from ..modes import Mode

    for child in call.node.children[1:]:
        if child.valence != 1:
            raise call.missing("one vector per slot", child, "contract matrices pair by pair (R4) or grouped (N3)")
    return call.conclude(_scale(call), _upper_kind(call), Mode.product(bound.mode for bound in call.premises))


@rule(
    "N5",
    "self-trace over two slots of size d: norm(tr M) <= d norm(M)",
    ("the dimension d",),
    "norm(I_d) = 1 and tr I_d = d: no bound without the dimension",
    tight="attained by the identity",
)
def self_trace(call: Call) -> Bound:
    """d terms, each an evaluation at basis vectors."""
    dimension = call.node.children[0].size(call.node.data[0])
    return call.conclude(dimension * call.premises[0].scale, _upper_kind(call), call.premises[0].mode)


@rule(
    "N6",
    "max entry <= norm <= unfolding norms <= Frobenius <= sqrt(prod d_k / max d_k) norm",
    ("a bound in a coarser grouping, or the dimensions",),
    "norm(I_n) = 1 and norm_F(I_n) = sqrt n",
    variants=(("finer",), ("dimension",)),
)
def regrouped(call: Call) -> Bound:
    """A known coarser norm bounds a finer one; a finer one bounds a coarser one with a dimension factor."""
    if call.node.op == "coarser":
        factor = dimension_factor(call.node, call.grouping)
        return call.conclude(factor * call.premises[0].scale, _upper_kind(call), call.premises[0].mode)
    fact = call.extra
    if "finer" not in call.variant or fact is None or fact not in call.given.all("known", call.node):
        raise call.missing("a bound in a coarser grouping", call.node, "state known(f, grouping=..), or use coarser(M)")
    bound = translated(call.node, fact.bound)
    if not refines(call.grouping, bound.grouping) or not bound.kind.upper:
        raise call.missing("a bound in a coarser grouping", call.node, "a finer norm bounds nothing without dimensions")
    call.use(fact)
    return call.conclude(bound.scale, bound.kind.upper_half, bound.mode, bound.uniform)


def dimension_factor(node: Expr, grouping: Grouping) -> Scale:
    """prod over blocks of sqrt(prod d / max d)."""
    factor = Scale.one()
    for block in grouping:
        sizes = [node.size(label) for label in block]
        total = Scale.one()
        for size in sizes:
            total = total * size
        factor = factor * (total / Scale.max(*sizes)) ** 0.5
    return factor


def refines(fine: Grouping, coarse: Grouping) -> bool:
    """Whether every block of ``fine`` lies inside a block of ``coarse``."""
    return all(any(set(block) <= set(big) for big in coarse) for block in fine)


def translated(node: Expr, bound: Bound) -> Bound:
    """A bound stated with the slot names of a tensor, in the labels of this use of it; no grouping means singletons."""
    from dataclasses import replace

    names = node.labels
    if node.op == "leaf":
        original = [label for label, _ in node.data.slots]
        renamed = dict(zip(original, node.labels, strict=True))
        if bound.grouping:
            check_blocks(bound.grouping, original)
        return replace(bound, grouping=canonical([[renamed[label] for label in block] for block in bound.grouping] or names))
    if bound.grouping:
        check_blocks(bound.grouping, names)
    return replace(bound, grouping=canonical(bound.grouping or names))


def canonical(blocks: object) -> Grouping:
    """Blocks as sorted tuples, in order."""
    found = [(block,) if isinstance(block, str) else tuple(sorted(block)) for block in blocks]  # type: ignore[attr-defined]
    return tuple(sorted(found))


@rule(
    "N7",
    "symmetric M: the norm is attained at equal vectors (Banach 1938)",
    ("symmetric", "diagonal_bound"),
    "an antisymmetric matrix vanishes at equal vectors and has a norm",
    tight="exact",
)
def symmetric_norm(call: Call) -> Bound:
    """sup over one unit vector is the subordinate norm."""
    fix = "state symmetric(M) and bounded_fact('diagonal_bound', Bound(f), M)"
    if any(len(block) > 1 for block in call.grouping):
        raise call.missing("the subordinate norm", call.node, "grouped norms are not attained at equal vectors")
    call.require("symmetric", call.node, fix=fix)
    found = call.require("diagonal_bound", call.node, fix=fix)
    assert found.bound is not None
    return call.conclude(found.bound.scale, found.bound.kind, found.bound.mode, found.bound.uniform)


@rule(
    "N8",
    "block-diagonal: r >= 2 the maximum over blocks, r = 1 the l2 sum",
    ("r >= 2: a bound of the maximum; r = 1: mode L^2 and U1(index)",),
    "n blocks of norm 1: the vector has norm sqrt n, the matrix 1",
    tight="exact for r >= 2",
)
def block_diagonal(call: Call) -> Bound:
    """The premise is the maximum over blocks (r >= 2) or one block (r = 1)."""
    (bound,) = call.premises
    if call.node.valence >= 2:
        if any(len(block) > 1 for block in call.grouping):
            raise call.missing("the subordinate norm", call.node, "for the Frobenius norm use assemble (R22)")
        return call.conclude(bound.scale, bound.kind, bound.mode)
    index = call.node.data
    fix = "state a second moment, uniform over the blocks: moment(2, f) and iid_over(index), or known(.., uniform=U1(index))"
    call.need_moment(0, 2, fix)
    call.need_uniform(0, index, 1, fix)
    return call.conclude(bound.scale * call.node.children[0].size(index) ** 0.5, _upper_kind(call), bound.mode)
