"""R12, R17-R19, R13, R13b, R14, R14b, R16, R22: limits, inverses, conditioning, entries."""

from __future__ import annotations

from ..modes import Kind, P
from ..scale import Scale
from ..value import Bound
from .base import Call, rule


def _kind(call: Call) -> Kind:
    for i in range(len(call.premises)):
        call.need_upper(i)
    return Kind.SMALL_O if any(bound.kind is Kind.SMALL_O for bound in call.premises) else Kind.O


@rule(
    "R12",
    "two limits may be interchanged under U1 in the second index: the limit of M_m = O(f) is O(f)",
    ("U1(index)",),
    "1{m > n} is 0 eventually in n for every m, and its limit in m is 1",
)
def limit(call: Call) -> Bound:
    """Probabilities of large values pass to the limit (Fatou)."""
    index, (bound,) = call.node.data, call.premises
    if index in bound.scale.sizes:
        raise call.missing("a scale free of the index", f"O({bound.scale}) in {index}", "bound it uniformly in the index first")
    call.need_uniform(0, index, 1, "state iid_over(index) or known(.., uniform=U1(index))")
    return call.conclude(bound.scale, _kind(call), bound.mode)


@rule(
    "R17",
    "if every subsequence has a further one along which M = O(f), then M = O(f), and conversely",
    ("every_subsequence",),
    "one subsequence proves nothing: a power-of-two grid never sees odd n",
)
def subsequences(call: Call) -> Bound:
    """Tightness is a property of subsequences."""
    call.plain_norm("every_subsequence")
    found = call.require("every_subsequence", call.node, fix="state fact('every_subsequence', M, scale=f) for all of them")
    return call.conclude(found.scale or Scale.one(), Kind.O, P, ())


@rule(
    "R18",
    "M_{m(n)} = O(f(m(n))) for a deterministic m(n) -> oo",
    ("m deterministic; for a random index independent or anscombe, and random_size",),
    "a random index can pick the exceptional n",
    variants=(("deterministic",), ("independent",), ("anscombe",)),
)
def reindex(call: Call) -> Bound:
    """The scale is evaluated at the new size."""
    (relations, random), (bound,) = call.node.data, call.premises
    images = dict(relations)
    scale = bound.scale.subs(images)
    if random is None:
        if "deterministic" not in call.variant:
            raise call.missing("m deterministic", call.node, "name the random index")
        return call.conclude(scale, bound.kind, bound.mode)
    child = call.node.children[0]
    fix = f"state independent({random!r}, M), or fact('anscombe', M): the index may depend on the sequence"
    if "independent" in call.variant:
        names = sorted(child.tensors)
        if child.unknowns:  # an O-term may depend on everything
            raise call.missing("independent", f"{random}, {child}", fix)
        call.require("independent", random, *names, fix=fix)
    elif "anscombe" in call.variant:
        call.require("anscombe", child, fix=fix)
    else:
        raise call.missing("independent", f"{random}, {child}", fix)
    for image in images.values():
        found = call.require("random_size", random, fix=f"state fact('random_size', {random!r}, scale=..)")
        if found.scale != image:
            raise call.missing("random_size", f"{random} = Theta({image})", f"it is stated as Theta({found.scale})")
    return call.conclude(scale, _kind(call), P, ())


@rule(
    "R19",
    "int M(t) dt = O(f) over a compact range if E int ||M(t)|| dt = O(f), or U2 in t",
    ("mode L^1 with U1(t), or U2(t)",),
    "n^2 1{|t - U| < 1/n} is 0 with probability 1 - 2/n at each t, its integral is 2n; derivatives: sin(n^2 t)/n",
    variants=(("U2",), ("moments",)),
)
def integral(call: Call) -> Bound:
    """Tonelli, or the supremum over the range; a derivative is never bounded by the function."""
    index = call.node.data
    if call.node.op == "derivative":
        fix = "state a bound of the derivative itself: known(f, of=derivative(M, t)), or expand M in t before"
        raise call.missing("a bound of the derivative", call.node, fix)
    (bound,) = call.premises
    fix = "state a moment and identically_distributed_over(t), or known(.., uniform=U2(t)): U1 in probability is not enough"
    if "U2" in call.variant:
        call.need_uniform(0, index, 2, fix)
        return call.conclude(bound.scale, _kind(call), bound.mode)
    call.need_moment(0, 1, fix)
    call.need_uniform(0, index, 1, fix)
    return call.conclude(bound.scale, _kind(call), bound.mode)


@rule(
    "R13",
    "||M^-1|| = O(1/f) if sigma_min(M) = Omega(f)",
    ("sigma_min",),
    "||M|| = Omega(f) is not enough: a square Gaussian has ||G|| ~ sqrt n and ||G^-1|| ~ sqrt n; 1/N(0,1) is O_p(1) "
    "with infinite mean",
)
def inverse(call: Call) -> Bound:
    """The least singular value is the inverse of the norm of the inverse."""
    child = call.node.children[0]
    if len(call.grouping) < 2:
        raise call.missing("the operator norm", call.node, "for the Frobenius norm use coarser(inverse(M)) (N6)")
    found = call.require("sigma_min", child, fix="state sigma_min(f): the least singular value is Omega(f)")
    return call.conclude((found.scale or Scale.one()) ** -1, Kind.O, P, ())


@rule(
    "R13b",
    "(A+E)^-1 = A^-1 - A^-1 E A^-1 + O(||E||^2) if ||A^-1|| = O(1) and E = o(1); hence ||(A+E)^-1|| = O(1)",
    ("||A^-1|| = O(1)", "E = o(1)"),
    "A = 1, E = -1 is not invertible",
)
def perturbed_inverse(call: Call) -> Bound:
    """Neumann series; premises are the bounds of A^-1 and E."""
    first, second = call.premises
    if len(call.grouping) < 2:
        raise call.missing("the operator norm", call.node, "for the Frobenius norm use coarser(..) (N6)")
    kind = _kind(call)
    if not first.scale.within(1):
        raise call.missing("||A^-1|| = O(1)", call.node, f"it is O({first.scale}): divide A by its scale first")
    small = second.scale.limit() == "0" or (second.kind is Kind.SMALL_O and second.scale.within(1))
    call.need("vanishing", 1, "E = o(1)", small, "the perturbation must tend to 0")
    if call.node.op == "inverse":
        return call.conclude(Scale.one(), Kind.O, P)
    return call.conclude(second.scale**2, kind, P)


@rule(
    "R14",
    "M = O(f) if P(||M|| > g f | sigma-field) -> 0 in probability for every g -> oo, and conversely",
    ("conditional_bound; for an event probability_bounded_below",),
    "conditioning on an event of vanishing probability: M = n 1_A",
)
def conditioning(call: Call) -> Bound:
    """Conditional tightness is tightness; under an event of probability >= c every bound survives."""
    if call.node.op == "given_event":
        (bound,) = call.premises
        event = call.node.data
        call.require("probability_bounded_below", event, fix=f"state fact('probability_bounded_below', {event!r})")
        return call.conclude(bound.scale, bound.kind, bound.mode)
    child = call.node.children[0] if call.node.op == "conditional" else call.node
    sigma = call.node.data if call.node.op == "conditional" else None
    fix = "state fact('conditional_bound', M, scale=f, index=sigma_field)"
    call.plain_norm("conditional_bound")
    found = call.require("conditional_bound", child, index=sigma, fix=fix)
    return call.conclude(found.scale or Scale.one(), Kind.O, P, ())


@rule("R14b", "M = O(F), F random, F = O(f) give M = O(f)", ("dominated_by",), "F must itself be bounded")
def domination(call: Call) -> Bound:
    """The premise is the bound of F."""
    child, other = call.node.children
    call.plain_norm("dominated_by")
    call.require("dominated_by", child, other, fix="state fact('dominated_by', M, F): ||M|| = O(||F||) in probability")
    return call.conclude(call.premises[0].scale, _kind(call), P, ())


@rule(
    "R16",
    "M = O(f) on events E_n with P(E_n) -> 1 gives M = O(f)",
    ("on_event", "probability_to_one"),
    "on an event of probability 1/2 nothing is said about the rest",
)
def likely_event(call: Call) -> Bound:
    """The exceptional event costs a vanishing probability."""
    call.plain_norm("on_event")
    found = call.require("on_event", call.node, fix="state fact('on_event', M, index=event, scale=f)")
    call.require("probability_to_one", found.index, fix=f"state fact('probability_to_one', {found.index!r})")
    return call.conclude(found.scale or Scale.one(), Kind.O, P, ())


@rule(
    "R22",
    "entries are O(||M||), U2; from entries to the norm with E v_i^2 <= f^2: ||v|| = O(sqrt(d) f)",
    ("for the norm: mode L^2 and U1(index), or U2(index)",),
    "Cauchy entries: ||v|| ~ n; iid +-1 matrix sqrt n, all-ones matrix n",
    variants=(("U2",), ("moments",)),
)
def entries(call: Call) -> Bound:
    """Both directions; the norm from entries is the Frobenius norm of the new slots."""
    (bound,) = call.premises
    if call.node.op == "entry":
        from ..modes import U2
        from .base import shared_uniformity

        kept = shared_uniformity(call.node, call.premises)
        fresh = tuple(U2(label) for label in call.node.data)
        mine = [u for u in kept if u.index not in call.node.data]
        return call.conclude(bound.scale, _kind(call), bound.mode, (*mine, *fresh))
    scale = bound.scale
    fix = "state a second moment, uniform over the index: moment(2, f) with iid_over(index), or known(.., U1(index))"
    level = 2 if "U2" in call.variant else 1
    for index in call.node.data:
        scale = scale * call.node.children[0].size(index) ** 0.5
        if level == 1:
            call.need_moment(0, 2, fix)
        call.need_uniform(0, index, level, fix)
    return call.conclude(scale, _kind(call), bound.mode)
