r"""Definite (tight) bounds: a certificate, or a refusal that names why.

Only three constructors prove that a smallest bound exists: (a) ||M||/f converges in law to X with P(X > 0) > 0; (b) Theta(f);
(c) a polynomial of fixed degree in Gaussians with f = sqrt(E ||M||^2), rule R8c. Everything else is refused: a smallest bound
need not exist (n^U, exp(sqrt(log n) Z), exp(c log n |Z|), products of about log n factors, networks of depth ~ log n,
P(M != 0) -> 0), and where only O(f) is known nothing says that f is smallest.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import reduce, singledispatch
from operator import mul
from typing import Any

import sympy

from .cluster import ClusterBound
from .definite_error import NoDefiniteBoundError
from .derivative_networks import DerivativeContraction
from .errors import MissingHypothesisError
from .evidence import DiscreteLaw, GaussianPolynomial, LimitLaw
from .expr import Expr
from .facts import Fact, chaos_degree, second_moment, subject_key
from .from_expression import FIXED, NotANetworkError, network_of
from .gaussian_tails import small_ball, upper_tail
from .modes import DET, Kind, P
from .network import GaussianNetwork, NetworkSum
from .network_moments import MAX_STATES, MomentScale, scale_of_moment
from .network_moments import second_moment as exact_second_moment
from .neurons import NeuronContraction
from .quantiles import ByResidue, QuantileFamily, Steps, minimal_bound
from .rules.base import Given, apply_rule
from .rules.ground import limit_value
from .scale import Scale
from .scale_text import from_sympy
from .tensors import RandomTensor
from .value import Bound

__all__ = ["Certificate", "DiscreteLaw", "GaussianPolynomial", "LimitLaw", "NoDefiniteBoundError", "definite_bound", "is_definite"]

CONSTRUCTORS = {
    "a": "||M||/f converges in law to X with P(X > 0) > 0",
    "b": "M = Theta(f)",
    "c": "polynomial of fixed degree in Gaussians, f = sqrt(E ||M||^2) (R8c)",
}
_SHORT = {"a": "limit law", "b": "Theta", "c": "Gaussian polynomial of fixed degree, R8c"}


@dataclass(frozen=True, slots=True)
class Certificate:
    """The proof that f is the definite bound of M, unique up to Theta.

    Attributes:
        scale: f.
        constructor: ``"a"``, ``"b"`` or ``"c"``.
        evidence: what it rests on, as text.
        bound: Theta(f), or O(f) with ``definite = "proved"``.
        degree: the degree for (c).
        second_moment: the exact E ||M||^2 for (c), where known.
        source: what was certified.
        options: the keywords it was certified with.
    """

    scale: Scale
    constructor: str
    evidence: str
    bound: Bound
    degree: int | None = None
    second_moment: sympy.Expr | None = None
    source: Any = field(default=None, compare=False, repr=False)
    options: tuple[tuple[str, Any], ...] = field(default=(), compare=False, repr=False)

    def check(self) -> None:
        """Derive the certificate again from its source, and every step of its bound.

        Raises:
            ValueError: the source gives another certificate.
        """
        self.bound.check()
        found = definite_bound(self.source, **dict(self.options))
        if found != self:
            raise ValueError(f"the source of this certificate gives {found}, not {self}")

    def upper_tail(self, t: float) -> float:
        """For (c): a bound on P(||M|| > t sqrt(E ||M||^2))."""
        return upper_tail(self._degree(), t)

    def small_ball(self, eps: float) -> float:
        """For (c): a bound on P(||M|| <= eps sqrt(E ||M||^2))."""
        return small_ball(self._degree(), eps)

    def _degree(self) -> int:
        if self.degree is None:
            raise ValueError(f"constructor ({self.constructor}) gives no tails; only a Gaussian polynomial (c) does")
        return self.degree

    def __str__(self) -> str:
        reason = f"({self.constructor}) {CONSTRUCTORS[self.constructor]}"
        return f"definite bound {self.scale}: {reason}; {self.evidence}; {self.bound}"

    def _repr_latex_(self) -> str:
        return f"$\\displaystyle {self.bound.latex()}\\quad\\text{{definite: ({self.constructor}) {_SHORT[self.constructor]}}}$"


def definite_bound(x: Any, **options: Any) -> Certificate:
    """The definite bound of x with its proof.

    Args:
        x: a `Bound` or expression (constructor b); a `LimitLaw` or `DiscreteLaw` (a); a Gaussian network, a sum of networks, a
            derivative contraction or a `GaussianPolynomial` (c). Quantile functions are checked and refused by name.
        options: ``norm="frobenius"`` for networks with two or more free indices; ``growing`` sizes for (c); ``assume``,
            ``grouping`` for expressions, passed to `bound`.

    Raises:
        NoDefiniteBoundError: no smallest bound exists, or none of the three constructors proves it; the reason is named.
        TypeError: something else.

    Example:
        >>> trace = GaussianNetwork((("W", "i i"),), sizes={"i": "n"})
        >>> print(definite_bound(trace).bound)
        Theta(sqrt(n)) [all moments], n -> oo
        >>> from symtensor.bounds.random_growth import power_of_uniform
        >>> definite_bound(power_of_uniform())
        Traceback (most recent call last):
        ...
        symtensor.bounds.definite_error.NoDefiniteBoundError: no definite bound: n^U has the quantiles n**(1 - eps): ...
    """
    return _certify(x, tuple(sorted(options.items())), **options)


def is_definite(x: Any, **options: Any) -> str | None:
    """``"proved"`` if one of the constructors applies, else ``None``: not proved, which is not "does not exist"."""
    try:
        definite_bound(x, **options)
    except NoDefiniteBoundError:
        return None
    return "proved"


@singledispatch
def _certify(x: Any, options: tuple, **_: Any) -> Certificate:
    raise TypeError(
        f"a definite bound is asked of {type(x).__name__}; give a Bound, an expression, a LimitLaw, a Gaussian network, a "
        "derivative contraction, a GaussianPolynomial or a quantile function"
    )


@_certify.register
def _of_limit(x: LimitLaw, options: tuple) -> Certificate:
    kind = Kind.THETA if x.two_sided else Kind.O
    bound = Bound(x.scale, kind, P, definite="proved", provenance=f"limit law: {x.statement}, P(X > 0) = {x.positive}")
    return Certificate(x.scale, "a", f"{x.statement}, P(X > 0) = {x.positive}", bound, source=x, options=options)


@_certify.register
def _of_discrete(x: DiscreteLaw, options: tuple) -> Certificate:
    found = _of_limit(x.limit_law(), options)
    return Certificate(found.scale, "a", found.evidence, found.bound, source=x, options=options)


@_certify.register
def _of_bound(x: Bound, options: tuple) -> Certificate:
    if x.kind is not Kind.THETA:
        raise NoDefiniteBoundError(
            f"only {x} is known: {x.kind.value} says nothing about being smallest"
            + (", and the claim definite = 'proved' without its certificate is no proof" if x.definite else "")
            + ". Prove Theta, or give a limit law or an exact second moment.",
            "not proved",
        )
    x.check()
    why = f"by {', '.join(dict.fromkeys(x.rules))}" if x.rules else f"assumed: {x.provenance or 'stated by the user'}"
    return Certificate(x.scale, "b", why, x, source=x, options=options)


@_certify.register
def _of_expression(x: Expr, options: tuple, assume: Any = (), grouping: Any = None) -> Certificate:
    """Theta by the rules; else a limit law among the facts; else the Wick second moment of a contraction of Gaussians."""
    from .derive import bound

    facts = [*assume, *(x.data.facts if x.op == "leaf" else ())]
    law = _limit_fact(x, facts)
    if law is not None:
        with suppress(MissingHypothesisError):
            bound(x, assume, grouping)  # raises if another fact contradicts the limit
        found = _of_limit(law, options)
        return Certificate(found.scale, "a", found.evidence, found.bound, source=x, options=options)
    try:
        derived = _of_bound(bound(x, assume, grouping), ())
    except (NoDefiniteBoundError, MissingHypothesisError) as error:
        return _by_wick(x, options, facts, grouping, error)
    constructor = "c" if derived.bound.step is not None and derived.bound.step.rule == "R8c" else "b"
    return Certificate(derived.scale, constructor, derived.evidence, derived.bound, source=x, options=options)


def _limit_fact(x: Expr, facts: list[Fact]) -> LimitLaw | None:
    """``converges_to`` a number other than 0 is a limit law of scale 1."""
    for item in facts:
        if item.name == "converges_to" and subject_key(x) in item.subjects and not (x.valence or x.family) and limit_value(item):
            return LimitLaw(1, 1, f"{x} -> {item.number} in probability")
    return None


def _by_wick(x: Expr, options: tuple, facts: list[Fact], grouping: Any, refused: ValueError) -> Certificate:
    try:
        network = network_of(x, facts)
    except (NotANetworkError, MissingHypothesisError) as error:
        reason = "missing hypothesis" if isinstance(refused, MissingHypothesisError) else "not proved"
        raise NoDefiniteBoundError(f"{refused} No Wick second moment either: {error}", reason) from refused
    _check_norm("frobenius" if grouping is not None and len(tuple(grouping)) == 1 else None, x.valence, str(x))
    names = frozenset(network.size_names) - {FIXED.name}
    found = _moment_scale(exact_second_moment(network), names, network.degree)
    bound = _gaussian_bound(found.scale, found.degree, dict(x.slots))
    evidence = f"degree {found.degree}, second moment by Wick of order {found.scale**2}"
    return Certificate(found.scale, "c", evidence, bound, found.degree, None, x, options)


@_certify.register
def _of_tensor(x: RandomTensor, options: tuple, **given: Any) -> Certificate:
    found = _of_expression(x.expr, options, **given)
    return replace(found, source=x)


@_certify.register
def _of_polynomial(x: GaussianPolynomial, options: tuple) -> Certificate:
    moment = x.second_moment if isinstance(x.second_moment, sympy.Expr) else None
    labels = ("i", "j") if x.norm == "frobenius" else ("i",) if x.norm == "euclidean" else ()
    bound = _gaussian_bound(x.scale, int(x.degree), {label: Scale.one() for label in labels})
    return Certificate(x.scale, "c", f"degree {x.degree}, E ||M||^2 = {x.second_moment}", bound, int(x.degree), moment, x, options)


@_certify.register(GaussianNetwork)
@_certify.register(NetworkSum)
def _of_network(x: Any, options: tuple, norm: str | None = None, growing: Any = None, max_states: int = MAX_STATES) -> Certificate:
    _check_norm(norm, len(x.free), "the network")
    value = exact_second_moment(x, max_states=max_states)
    sizes = dict(x.terms[0].sizes)
    names = frozenset(x.size_names if growing is None else growing)
    slots = {i: from_sympy(sizes[i], names) for i in x.free}
    return _of_moment(_moment_scale(value, names, x.degree), slots, x, options)


@_certify.register(DerivativeContraction)
@_certify.register(NeuronContraction)
def _of_contraction(x: Any, options: tuple, norm: str | None = None, growing: Any = None) -> Certificate:
    _check_norm(norm, x.D, f"C_{{{x.D},{x.d}}}")
    if isinstance(x, NeuronContraction):
        names = frozenset(s.name for s in x.width.free_symbols)  # type: ignore[attr-defined]
        found = x.moment_scale() if x.second_moment() != 0 else _moment_scale(sympy.S.Zero, names, 1)
        slots = {f"p{k}": from_sympy(x.width, names) for k in range(x.D)}
    else:
        names = frozenset(x.size_names if growing is None else growing)
        found = _moment_scale(x.second_moment(), names, x.degree)
        slots = {f"p{k}": _slot_size(x, k, names) for k in range(x.D)}
    return _of_moment(found, slots, x, options)


def _moment_scale(value: sympy.Expr, names: frozenset[str], degree: int) -> MomentScale:
    if value == 0:
        raise NoDefiniteBoundError(
            "the exact second moment is 0: M vanishes identically, every f > 0 is a bound and none is smallest", "P(M != 0) -> 0"
        )
    return scale_of_moment(value, names, degree)


def _of_moment(found: MomentScale, slots: dict[str, Scale], source: Any, options: tuple) -> Certificate:
    bound = _gaussian_bound(found.scale, found.degree, slots)
    norm = "M" if not slots else "||M||" if len(slots) == 1 else "||M||_F"
    evidence = f"degree {found.degree}, E {norm}^2 = {found.second_moment} exactly"
    if found.assumptions:
        evidence += f", assumed {', '.join(found.assumptions)}"
    return Certificate(found.scale, "c", evidence, bound, found.degree, found.second_moment, source, options)


def _gaussian_bound(scale: Scale, degree: int, slots: dict[str, Scale]) -> Bound:
    """Theta by rule R8c, as a checked derivation step; degree 0 is a deterministic constant."""
    tensor = RandomTensor("M", slots, [chaos_degree(degree), second_moment(scale**2, frobenius=len(slots) > 1)])
    grouping = (tuple(slots),) if slots else ()
    return apply_rule("R8c", tensor.expr, (), Given(tensor.facts), grouping)


def _check_norm(norm: str | None, valence: int, what: str) -> None:
    fitting = {0: (None, "absolute"), 1: (None, "euclidean", "frobenius")}.get(valence, ("frobenius",))
    if norm in fitting:
        return
    if norm is None:
        raise NoDefiniteBoundError(
            f"{what} has {valence} free slots, and its size is the subordinate norm, of which R8c says nothing: E ||M||_F^2 is the "
            'size of the Frobenius norm; ask for norm="frobenius"',
            "norm",
        )
    raise NoDefiniteBoundError(
        f"R8c does not cover the {norm} norm of {what} with {valence} free slots; it covers {', '.join(f for f in fitting if f)}",
        "norm",
    )


def _slot_size(x: DerivativeContraction, slot: int, names: frozenset[str]) -> Scale:
    """Number of parameters behind a free slot: the largest parameter tensor."""
    found = [Scale.one()]
    for _, network in x.blocks:
        sizes = dict(network.terms[0].sizes)
        of_block = [from_sympy(sizes[i], names) for i in network.free if i.startswith(f"s{slot}.")]
        found.append(reduce(mul, of_block, Scale.one()))
    return Scale.max(*found)


@_certify.register(QuantileFamily)
@_certify.register(Steps)
def _of_quantiles(x: Any, options: tuple) -> Certificate:
    found = minimal_bound(x)
    if found.exists:
        raise NoDefiniteBoundError(
            f"{x.name}: a smallest bound exists ({found.why}), but quantiles stated by hand are no constructor; give the limit "
            f"law of ||M|| / ({found.scale}) as a LimitLaw",
            "not proved",
        )
    reason = "P(M != 0) -> 0" if isinstance(x, Steps) else "no minimal bound"
    raise NoDefiniteBoundError(f"no definite bound: {found.why}", reason)


@_certify.register
def _of_residues(x: ByResidue, options: tuple) -> Certificate:
    first = x.scales[0]
    if not all(other.within(first) and first.within(other) for other in x.scales):
        raise NoDefiniteBoundError(
            f"the sequence {x} has no single scale over the residue classes of n; it is its own smallest bound, outside the group",
            "no scale",
        )
    bound = Bound(first, Kind.THETA, DET, provenance="deterministic sequence")
    return Certificate(first, "b", "deterministic sequence", bound, source=x, options=options)


@_certify.register
def _of_cluster(x: ClusterBound, options: tuple) -> Certificate:
    raise x.refusal()
