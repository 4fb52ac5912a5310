"""R1-R5 and R21: sums of a fixed number of terms, scalar multiples, products, one contraction, powers, O-terms."""

from __future__ import annotations

from ..facts import Fact
from ..modes import DET, Kind, Mode
from ..scale import Scale
from ..value import Bound
from .base import Call, rule, strictly_below, weakest_mode
from .independence import mutually_independent

_INDEPENDENT = "state independent(...) of the tensors inside"


@rule("C", "a deterministic number or scale is Theta of itself, with certainty")
def constant(call: Call) -> Bound:
    """A number other than 0, or a scale; 0 is o of everything, said of 1."""
    if call.node.op == "number" and call.node.data.is_zero is not False:
        return call.conclude(Scale.one(), Kind.SMALL_O, DET)
    scale = call.node.data if call.node.op == "scale" else Scale.one()
    return call.conclude(scale, Kind.THETA, DET)


@rule(
    "R21",
    "an O-term used as a value is an unknown of its own; O(f) - O(f) = O(f), and it does not divide",
    counterexample="O(f)/O(f) is undefined and O(f) - O(f) is not 0",
)
def order_symbol(call: Call) -> Bound:
    """The bound that the O-term states."""
    symbol = call.node.data
    return call.conclude(symbol.scale, symbol.kind, symbol.mode)


@rule(
    "R1",
    "a fixed number of terms: O(f) + O(g) = O(max(f, g)); Theta(f) + o(f) = Theta(f)",
    ("fixed number of terms",),
    "for n terms use sum_over and R11",
    variants=(("dominant",), ("plain",)),
    tight="only when one Theta term dominates strictly (X - X = 0)",
)
def sum_of_terms(call: Call) -> Bound:
    """Triangle inequality; one dominant term decides both sides."""
    if "dominant" in call.variant:
        return _dominant(call)
    for i in range(len(call.premises)):
        call.need_upper(i)
    scale = Scale.max(*(bound.scale for bound in call.premises))
    small = all(strictly_below(bound, scale) for bound in call.premises)
    return call.conclude(scale, Kind.SMALL_O if small else Kind.O, weakest_mode(call.premises))


def _dominant(call: Call) -> Bound:
    for i, bound in enumerate(call.premises):
        others = [other for j, other in enumerate(call.premises) if j != i]
        if bound.kind.lower and all(other.kind.upper and strictly_below(other, bound.scale) for other in others):
            call.need("lower", i, "a dominant term", True, "")
            return call.conclude(bound.scale, bound.kind, weakest_mode(call.premises))
    raise call.missing("a dominant term", call.node, "one term must be Theta and all others of smaller order")


@rule("R2", "c_n O(f) = O(|c_n| f) for deterministic c_n", ("c_n deterministic",), tight="yes")
def multiple(call: Call) -> Bound:
    """Kind and mode are kept."""
    (bound,) = call.premises
    factor = call.node.data if isinstance(call.node.data, Scale) else Scale.one()
    return call.conclude(factor * bound.scale, bound.kind, bound.mode)


@rule(
    "R3",
    "M (x) N = O(f g) for any dependence, since ||M (x) N|| = ||M|| ||N|| (N1); moments by Hoelder (R15)",
    ("both factors bounded from above",),
    "n 1_A and n 1_{A^c} have definite bounds n and product 0",
    variants=(("tight", "independent"), ("tight",), ("independent",), ()),
    tight="if both factors are Theta",
)
def product(call: Call) -> Bound:
    """Scales multiply; the mode is the Hoelder mode, or the weakest under independence."""
    kind = _product_kind(call)
    return call.conclude(_product_scale(call), kind, _product_mode(call))


def _product_kind(call: Call) -> Kind:
    kinds = [bound.kind for bound in call.premises]
    if "tight" in call.variant:
        if call.extra == "coarser":
            raise call.missing("unmixed grouping", call.node, "blocks that mix the factors are only bounded")
        if not all(kind.lower for kind in kinds):
            raise call.missing("lower bound Omega", call.node, "every factor must be Theta")
        for i in range(len(kinds)):
            call.need_lower(i, "every factor must be Theta")
        return Kind.THETA if all(kind is Kind.THETA for kind in kinds) else Kind.OMEGA
    for i in range(len(kinds)):
        call.need_upper(i)
    return Kind.SMALL_O if Kind.SMALL_O in kinds else Kind.O


def _product_scale(call: Call) -> Scale:
    scale = call.premises[0].scale
    for bound in call.premises[1:]:
        scale = scale * bound.scale
    return scale


def _product_mode(call: Call) -> Mode:
    modes = [bound.mode for bound in call.premises]
    plain = Mode.product(modes)
    if "independent" not in call.variant:
        return plain
    better = Mode.product(modes, independent=True)
    if better == plain:
        raise call.missing("independence that helps", call.node, "the modes multiply without it")
    call.use(*_independence(call))
    return better


def _independence(call: Call) -> tuple[Fact, ...]:
    found = mutually_independent(call.node.children, call.given)
    if found is None:
        raise call.missing("independent", call.node, _INDEPENDENT)
    return found


@rule(
    "R4",
    "M . N = O(f g) for exactly one contracted pair, since ||M . N|| <= ||M|| ||N|| (N2)",
    ("exactly one contracted pair",),
    "<I_n, I_n> = n with norm(I) norm(I) = 1: for two pairs use N3",
    variants=(("independent",), ()),
    tight="no: u.v of two Gaussian vectors is bounded by n and is of order sqrt n",
)
def one_contraction(call: Call) -> Bound:
    """Scales multiply; never Theta."""
    if len(call.node.data) != 1:
        pairs = ", ".join(call.node.data)
        raise call.missing("exactly one contracted pair", f"the contraction over {pairs}", "use rule N3 with grouped norms")
    for i in range(2):
        call.need_upper(i)
    small = any(bound.kind is Kind.SMALL_O for bound in call.premises)
    return call.conclude(_product_scale(call), Kind.SMALL_O if small else Kind.O, _product_mode(call))


@rule(
    "R5",
    "||M||^p = O(f^p) for p > 0; for p < 0 if ||M|| = Omega(f)",
    ("Omega(f) if p < 0",),
    "1/||M|| is unbounded where ||M|| can be small",
    variants=(("two-sided",), ()),
    tight="yes",
)
def norm_power(call: Call) -> Bound:
    """Kind and mode transform with the exponent; negative powers swap O and Omega."""
    (bound,) = call.premises
    p = call.node.data[0]
    scale = bound.scale**p
    if p.is_negative:
        call.need_lower(0, "a negative power needs the norm away from 0: state kind Theta or Omega")
        two_sided = bound.kind is Kind.THETA and "two-sided" in call.variant
        mode = DET if bound.mode == DET else Mode("P")
        # uniformity is about the upper half: sup_i ||M_i|| says nothing about the smallest of them
        return call.conclude(scale, Kind.THETA if two_sided else Kind.O, mode, ())
    if "two-sided" in call.variant:
        call.need_lower(0)
        return call.conclude(scale, bound.kind, bound.mode.power(p))
    call.need_upper(0)
    return call.conclude(scale, bound.kind.upper_half, bound.mode.power(p))
