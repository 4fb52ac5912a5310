"""R9-R11: maxima and sums over families."""

from __future__ import annotations

from .._input import exact
from ..expr import Expr
from ..facts import Fact
from ..modes import ALL_MOMENTS, DET, PSI2, Kind, L
from ..scale import Comparison, Scale
from ..value import Bound
from .base import Call, Given, is_constant, rule, strictly_below, weakest_mode
from .independence import centred, independent_members, mutually_independent, same_law, uncorrelated_members

_UNIFORM = "state iid_over(index), identically_distributed_over(index) or known(.., uniform=U1(index))"


@rule(
    "R9",
    "a fixed finite family: max_i M_i = O(max_i f_i)",
    ("fixed finite family",),
    "for a growing family use max_over and R10",
    variants=(("two-sided",), ()),
)
def fixed_maximum(call: Call) -> Bound:
    """The largest scale; Theta if its member is Theta."""
    for i in range(len(call.premises)):
        call.need_upper(i)
    scale = Scale.max(*(bound.scale for bound in call.premises))
    mode = weakest_mode(call.premises)
    if "two-sided" in call.variant:
        for i, bound in enumerate(call.premises):
            if bound.kind is Kind.THETA and bound.scale.compare(scale) is Comparison.EQUAL:
                call.need("lower", i, "a Theta member of the largest scale", True, "")
                return call.conclude(scale, Kind.THETA, mode)
        raise call.missing("a Theta member of the largest scale", call.node, "state kind Theta for it")
    small = all(strictly_below(bound, scale) for bound in call.premises)
    return call.conclude(scale, Kind.SMALL_O if small else Kind.O, mode)


def _uniform_member(call: Call, index: str, level: int = 1) -> None:
    call.need_upper(0)
    call.need_uniform(0, index, level, _UNIFORM)


def _log_factor(number: Scale) -> Scale:
    return Scale.one() if is_constant(number) else number.log() ** 0.5


@rule(
    "R10",
    "max of N items with common psi2 scale f = O(f sqrt(log N)); of deterministic or U2 items O(f)",
    ("mode psi2", "U1(index)"),
    "items that are only O_p(f) have no bound at all: M^k_n = n 1{n = k} is 0 eventually for every k, its supremum is n",
    variants=(("gaussian",), ("det",), ("U2",), ("psi2",)),
    tight="for independent Gaussians",
)
def sub_gaussian_maximum(call: Call) -> Bound:
    """Union bound over sub-Gaussian tails."""
    index, (bound,) = call.node.data[0], call.premises
    (child,) = call.node.children
    fix = "state the tails: known(f, mode=PSI2, uniform=U1(index)), or k-th moments (R10b)"
    if "U2" in call.variant:
        _uniform_member(call, index, 2)
        return call.conclude(bound.scale, bound.kind if not bound.kind.lower else Kind.O, bound.mode)
    if "det" in call.variant:
        call.need_mode(0, DET, "the certain bound is one form of R10")
        _uniform_member(call, index)
        return call.conclude(bound.scale, bound.kind.upper_half, DET)
    call.need_mode(0, PSI2, fix)
    _uniform_member(call, index)
    scale = bound.scale * _log_factor(child.size(index))
    if "gaussian" in call.variant:
        if child.valence or child.op != "leaf":
            raise call.missing("scalar Gaussian items", child, "the lower bound is for independent scalar Gaussians")
        call.require("gaussian", child, fix="state gaussian() for the lower bound")
        proof = independent_members(child, index, call.given)
        if proof is None:
            raise call.missing("independent_over", child, "state iid_over(index) for the lower bound")
        call.use(*proof)
        call.need_lower(0)
        return call.conclude(scale, Kind.THETA, PSI2)
    return call.conclude(scale, bound.kind.upper_half, PSI2)


@rule(
    "R10b",
    "max of N items with k-th moments <= f^k = O(f N^(1/k)) in L^k",
    ("mode L^k", "U1(index)"),
    "items that are only O_p(f) have no bound at all",
    tight="in the exponent (Pareto tails)",
)
def moment_maximum(call: Call) -> Bound:
    """E max^k <= N f^k; k is the closed order of the premise, or the one that was asked for."""
    (index, asked), (bound,) = call.node.data, call.premises
    (child,) = call.node.children
    order = asked
    if order is None and bound.mode.name == "L" and not bound.mode.open:
        order = bound.mode.k
    fix = "state moment(k, f) or a bound in mode L(k), uniform over the index"
    if order is None:
        known = bound.mode.name in ("L", "psi2", "det")
        raise call.missing("moment order k" if known else "mode L^k", child, "give max_over(.., moment=k)" if known else fix)
    call.need("mode", 0, "mode L^k", bound.mode.moment(order), fix)
    _uniform_member(call, index)
    scale = bound.scale * child.size(index) ** (1 / exact(order))
    return call.conclude(scale, bound.kind.upper_half, L(order))


@rule(
    "R11a",
    "sum of N terms with sup_i E ||M_i|| <= f is O(N f); also if sup_i ||M_i|| = O(f) (U2)",
    ("mode L^1", "U1(index)"),
    "terms that are only O_p(f), even iid: n |Cauchy| sums to (2/pi) n log n",
    variants=(("U2",), ("moments",)),
    tight="for identical copies",
)
def plain_sum(call: Call) -> Bound:
    """Triangle inequality in L^k, k >= 1."""
    index, (bound,) = call.node.data, call.premises
    scale = bound.scale * call.node.children[0].size(index)
    kind = bound.kind.upper_half
    if "U2" in call.variant:
        _uniform_member(call, index, 2)
        return call.conclude(scale, kind, bound.mode)
    call.need_moment(0, 1, "state a first moment: moment(1, f), or a bound in mode L(k), k >= 1, uniform over the index")
    _uniform_member(call, index)
    return call.conclude(scale, kind, bound.mode)


@rule(
    "R11b",
    "uncorrelated, mean 0, variance <= f^2 (scalars, or Frobenius norm): sum = O(sqrt(N) f)",
    ("uncorrelated_over", "centred", "mode L^2", "scalar or one block (Frobenius)"),
    "mean mu adds N |mu|; identical copies give N f; tail index alpha < 2 gives N^(1/alpha) f",
    variants=(("clt",), ("independent",), ("second moment",)),
    tight="for a fixed law (CLT)",
)
def uncorrelated_sum(call: Call) -> Bound:
    """E ||sum||^2 = sum E ||M_i||^2; for a contraction of a white vector with an independent factor likewise."""
    if call.node.op == "contract":
        return _white_contraction(call)
    index, (bound,) = call.node.data, call.premises
    (child,) = call.node.children
    if len(call.grouping) > 1:
        where = f"{call.node} with norm over {'|'.join(map(''.join, call.grouping))}"
        raise call.missing("scalar or one block (Frobenius)", where, "use R11c, or grouping=[all slots in one block]")
    call.need_moment(0, 2, "state a second moment: moment(2, f), or a bound in mode L(k), k >= 2")
    _uniform_member(call, index)
    call.use(*_proved(call, "centred", "state centred(), or split off the mean: a mean mu adds N |mu|"))
    scale = bound.scale * child.size(index) ** 0.5
    if "second moment" in call.variant:
        call.use(*_proved(call, "uncorrelated_over", "state uncorrelated_over(index), iid_over(index), or independence"))
        return call.conclude(scale, bound.kind.upper_half, L(2))
    return _independent_sum(call, child, index, scale)


def _proved(call: Call, name: str, fix: str) -> tuple[Fact, ...]:
    """Facts that prove a property of the terms of a sum; a refusal says whether only independence is missing."""
    (child,) = call.node.children
    index = call.node.data

    def prove(given: Given) -> tuple[Fact, ...] | None:
        if name == "centred":
            return centred(child, given)
        found = independent_members if name == "independent_over" else uncorrelated_members
        return found(child, index, given)

    proof = prove(call.given)
    if proof is None:
        together = Fact("independent", tuple(sorted(child.tensors)))
        if len(child.tensors) > 1 and prove(call.given.plus(together)) is not None:
            names = ", ".join(sorted(child.tensors))
            raise call.missing("independent", names, f"state independent({names}): it makes the terms {name}")
        raise call.missing(name, child, fix)
    return proof


def _independent_sum(call: Call, child: Expr, index: str, scale: Scale) -> Bound:
    (bound,) = call.premises
    call.use(*_proved(call, "independent_over", "state iid_over(index) or independent_over(index)"))
    kept = bound.mode if bound.mode.name == "L" or call.node.children[0].valence else PSI2  # Rosenthal; Hoeffding
    mode = ALL_MOMENTS if kept == DET or (kept.name == "psi2" and call.node.children[0].valence) else kept
    if "clt" in call.variant:
        call.require("fixed_law", call.node.children[0], fix="state fact('fixed_law', M) for the lower bound by the CLT")
        law = same_law(call.node.children[0], index, call.given)
        if law is None:
            raise call.missing("identically_distributed_over", child, "state iid_over(index) for the CLT")
        call.use(*law)
        call.need_lower(0)
        return call.conclude(scale, Kind.THETA, mode)
    return call.conclude(scale, bound.kind.upper_half, mode)


def _white_contraction(call: Call) -> Bound:
    """sum_k u_k V_k with u white and independent of V: E ||.||_F^2 = var(u) E ||V||_F^2; ``extra`` says which is u."""
    if call.variant != ("second moment",) or len(call.node.data) != 1 or call.extra not in (0, 1):
        raise call.missing("white vector", call.node, "one pair, one factor a vector of centred uncorrelated entries")
    white, other = call.node.children[call.extra], call.node.children[1 - call.extra]
    spread = _spread(call, white)
    apart = mutually_independent((white, other), call.given)
    if apart is None:
        fix = "state independent(..) of the two factors; then E |sum_k u_k v_k|^2 = var(u) E ||v||^2"
        raise call.missing("independent", f"{white}, {other}", fix)
    call.use(*apart)
    call.need_moment(0, 2, "the other factor needs a second moment: moment(2, f) or a bound in mode L(2)")
    call.need_upper(0)
    small = call.premises[0].kind is Kind.SMALL_O
    # a variance that is stated for each member of a family need not be uniform over it
    keeps = () if white.family and call.given.find("gaussian", white) is None else None
    return call.conclude(call.premises[0].scale * spread, Kind.SMALL_O if small else Kind.O, L(2), keeps)


def _spread(call: Call, node: Expr) -> Scale:
    """Standard deviation of the entries of a vector with centred uncorrelated entries."""
    found = call.given.find("gaussian", node)
    if found is not None:
        call.use(found)
        return Scale.one()
    fix = "state gaussian(), or iid_entries(), centred() and entry_variance(f)"
    if call.given.find("entry_variance", node) is None and call.given.find("iid_entries", node) is None:
        raise call.missing("gaussian", node, fix)
    for name in ("iid_entries", "centred"):
        call.require(name, node, fix=fix)
    return (call.require("entry_variance", node, fix=fix).scale or Scale.one()) ** 0.5


@rule(
    "R11c",
    "independent centred d x d matrices, ||X_i|| <= L: sum = O(sqrt(v log d) + L log d) (matrix Bernstein)",
    ("independent_over", "centred", "mode det", "matrix"),
    "without the certain bound L one heavy term dominates; without independence N L",
    variants=(("proxy",), ()),
    tight="the log is not always there (diagonal Rademacher: exactly 1)",
)
def matrix_sum(call: Call) -> Bound:
    """v from the fact ``variance_proxy``, or v <= N L^2."""
    index, (bound,) = call.node.data, call.premises
    (child,) = call.node.children
    if child.valence != 2 or len(call.grouping) != 2:
        raise call.missing(
            "matrix", child, "matrix Bernstein is for the spectral norm of two slots; scalars and Frobenius norms use R11b"
        )
    call.need_mode(0, DET, "state known(L, mode=DET, uniform=U1(index)): ||X_i|| <= L with certainty")
    _uniform_member(call, index)
    call.use(*_proved(call, "centred", "state centred(), or split off the mean"))
    call.use(*_proved(call, "independent_over", "state independent_over(index) or iid_over(index)"))
    proxy = child.size(index) * bound.scale**2
    if "proxy" in call.variant:
        found = call.require("variance_proxy", child, fix="state fact('variance_proxy', X, scale=v)")
        proxy = found.scale or proxy
    dimension = Scale.max(*(size for _, size in child.slots))
    logarithm = Scale.one() if is_constant(dimension) else dimension.log()
    return call.conclude(Scale.max((proxy * logarithm) ** 0.5, bound.scale * logarithm), Kind.O, ALL_MOMENTS)
