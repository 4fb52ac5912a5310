r"""Perturbation series in zero dimensions: <prod x_i^{k_i} exp V>_0 order by order in the couplings, exact, without diagrams.

Sign: the weight is exp(+V) over a Gaussian, so V = -S_int for an action S; a term ``g x^k/k!`` of V is a vertex with the
factor g. Moments come from integration by parts (`moment_recursion`), which yields normalised ones directly, without a
division; log <exp V> from ``|g| W_g = <|.| V>_g``, without a logarithm; cumulants from `cumulants`. The covariance may be
any symmetric matrix; nothing has to converge, the series are formal.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import sympy as sp

from .coefficient_ring import CoefficientRing, as_polynomial
from .cumulants import solve_cumulants
from .gaussian_law import Covariance, GaussianLaw, Mean, natural
from .moment_errors import GradingError, MomentError, NotPolynomialError
from .moment_recursion import MomentRecursion, Term
from .series import Series, UnknownCoefficientError
from .truncated import Truncated, Truncation

__all__ = ["CouplingSeries", "PerturbationTheory", "perturbative_moments"]

Kind = Literal["normalised", "unnormalised", "connected"]
Powers = tuple[int, ...]
Order = int | Mapping[Any, int]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class CouplingSeries:
    """A truncated series in couplings: ``s[2]``, ``s[1, 0]``, ``s.expr``; for one coupling ``s.series()``."""

    couplings: tuple[sp.Symbol, ...]
    truncation: Truncation
    terms: Mapping[Powers, Any]

    def __getitem__(self, powers: int | Powers) -> Any:
        """The coefficient of the given powers of the couplings; raises UnknownCoefficientError beyond the order."""
        key = powers if isinstance(powers, tuple) else (powers,)
        if len(key) != len(self.couplings):
            raise MomentError(f"{len(key)} powers for the couplings {', '.join(map(str, self.couplings))}; give one for each")
        if min(key, default=0) < 0 or not self.truncation.allows(key):
            raise UnknownCoefficientError(f"order {key} in {self.couplings} was not computed; ask for a higher order")
        return self.terms.get(key, sp.S.Zero)

    @property
    def expr(self) -> sp.Expr:
        """The sum of all terms."""
        return sp.Add(*(c * sp.Mul(*(s**e for s, e in zip(self.couplings, k))) for k, c in self.terms.items()))

    def series(self) -> Series:
        """The series in its one coupling, with the O-term."""
        if len(self.couplings) != 1:
            raise MomentError(f"the couplings are {', '.join(map(str, self.couplings))}; only a series in one has one O-term")
        coefficients = {k: sp.sympify(c) for (k,), c in self.terms.items()}
        return Series.polynomial(self.couplings[0], 0, coefficients).truncate(self.truncation.bounds[0] + 1)

    def __repr__(self) -> str:
        shown = [f"({c})*{sp.Mul(*(s**e for s, e in zip(self.couplings, k)))}" for k, c in sorted(self.terms.items())]
        return " + ".join(shown or ["0"]) + " + ..."


def perturbative_moments(
    potential: Any,
    observables: Any,
    order: Order,
    covariance: Covariance,
    grading: Mapping[Any, int] | None = None,
    *,
    mean: Mean = None,
    fields: Sequence[Any] | None = None,
    kind: Kind = "normalised",
) -> Any:
    """The series of <O exp V>_0 in the couplings for one observable, or a tuple of series for a list of observables.

    Args:
        potential: V, a polynomial in fields and couplings; or {exponents: coefficient}, exponents in the order of the fields.
        observables: {field: power}, or a polynomial (a monomial for kind connected); or a list of these.
        order: an integer n: all terms with a weighted number of couplings up to n; or {coupling: n}, each up to its own n.
        covariance: of the fields, as for `gaussian_moment`; a matrix needs `fields`.
        grading: {coupling: weight}, weights 1, 2, ..; if not given, every symbol that is no field is a coupling of weight 1
            (or those that `order` names). Symbols that are no couplings are parameters of the coefficients.
        kind: ``normalised`` <O exp V>/<exp V>; ``unnormalised`` <O exp V>; ``connected``: the joint cumulant of the
            factors of O, or log <exp V> for O = 1.

    Raises:
        NotPolynomialError: V or O is no polynomial; the message says which part and how to expand it.
        GradingError: a term of V has no coupling, a weight is not positive, an order is no natural number.
        CovarianceError, MomentError: as for `gaussian_moment`.

    Example:
        >>> x, g = sp.symbols("x g")
        >>> perturbative_moments(g * x**4 / 24, {x: 2}, 2, {(x, x): 1}).expr
        2*g**2/3 + g/2 + 1
        >>> perturbative_moments(g * x**3 / 6, 1, 4, {(x, x): 1}, kind="connected").series()
        5*g**2/24 + 5*g**4/16 + O(g**5, g -> 0)
    """
    if kind not in ("normalised", "unnormalised", "connected"):
        raise MomentError(f"the kind {kind!r} does not exist; choose normalised, unnormalised or connected")
    theory = PerturbationTheory.read(potential, order, GaussianLaw.read(covariance, mean, fields), grading)
    many = isinstance(observables, Sequence) and not isinstance(observables, str)
    found = tuple(theory.expectation(one, kind) for one in (observables if many else [observables]))
    return found if many else found[0]


@dataclass(frozen=True, slots=True)
class PerturbationTheory:
    """A law, a potential read into terms, and the tables of its moments."""

    law: GaussianLaw
    couplings: tuple[sp.Symbol, ...]
    weights: Powers
    truncation: Truncation
    terms: tuple[Term, ...]
    covariance: tuple[tuple[Any, ...], ...]
    mean: tuple[Any, ...]
    ring: CoefficientRing
    normalised: MomentRecursion = field(init=False)
    unnormalised: MomentRecursion = field(init=False)

    def __post_init__(self) -> None:
        for name in ("normalised", "unnormalised"):
            recursion = MomentRecursion(
                self.covariance, self.mean, self.ring.zero, self.ring.one, self.terms, self.weights,
                name == "normalised", self.ring.rational, self.law.elimination,
            )  # fmt: skip
            object.__setattr__(self, name, recursion)

    @classmethod
    def read(cls, potential: Any, order: Order, law: GaussianLaw, grading: Mapping[Any, int] | None = None) -> PerturbationTheory:
        """The theory of a potential; see `perturbative_moments` for arguments and errors."""
        expression, symbols = _potential(potential, law)
        couplings, weights, truncation = _couplings(expression, symbols, order, grading)
        terms = _terms(expression, symbols, couplings)
        kept = [term for term in terms if truncation.allows(term[0])]
        size = len(law.names)
        flat = [*(v for row in law.covariance for v in row), *law.mean, *(c for *_, c in kept)]
        ring, values = CoefficientRing.containing(flat)
        rows = tuple(tuple(values[i * size : (i + 1) * size]) for i in range(size))
        read = tuple((h, p, c) for (h, p, _), c in zip(kept, values[size * size + size :]))
        return cls(law, couplings, weights, truncation, read, rows, tuple(values[size * size : size * size + size]), ring)

    @property
    def entries(self) -> int:
        """How many moments the tables hold: the cost, counted."""
        return self.normalised.entries + self.unnormalised.entries

    def expectation(self, observable: Any, kind: Kind = "normalised") -> CouplingSeries:
        """<O exp V> as `kind` says; O is {field: power} or a polynomial."""
        terms = self._observable(observable)
        if kind == "connected":
            if len(terms) != 1 or terms[0][1] != 1:
                raise MomentError(f"{observable} is no product of fields; a connected moment is one of a product, such as x**2*y")
            return self.cumulant(terms[0][0])
        parts = [self.moment(powers, kind == "normalised") for powers, _ in terms]
        keys = {key for part in parts for key in part.terms}
        found = {k: sp.expand(sum(c * p.terms[k] for p, (_, c) in zip(parts, terms) if k in p.terms)) for k in sorted(keys)}
        if all(c == 1 for _, c in terms) and len(parts) == 1:
            return parts[0]
        return CouplingSeries(self.couplings, self.truncation, {k: c for k, c in found.items() if c != 0})

    def moment(self, powers: Powers, normalised: bool = True) -> CouplingSeries:
        """<x^powers exp V>, divided by <exp V> if `normalised`."""
        return self.written(self._series(powers, normalised))

    def cumulant(self, powers: Powers) -> CouplingSeries:
        """The joint cumulant of all factors of x^powers; log <exp V> if there is none."""
        if not any(powers):
            found = {g: self.normalised.log_partition(g) for g in self.truncation.monomials if any(g)}
            return self.written(Truncated(self.truncation, found))
        below = [k for k in itertools.product(*(range(n + 1) for n in powers)) if any(k)]
        moments = {k: self._series(k, True) for k in below}
        return self.written(solve_cumulants(moments, [powers])[powers])

    def written(self, series: Truncated) -> CouplingSeries:
        """A series of ring elements, for the user."""
        terms = {g: self.ring.write(c) for g, c in sorted(series.terms.items())}
        return CouplingSeries(self.couplings, series.truncation, {g: c for g, c in terms.items() if c != 0})

    def _series(self, powers: Powers, normalised: bool) -> Truncated:
        table = self.normalised if normalised else self.unnormalised
        found = {g: table.moment(powers, g) for g in self.truncation.monomials}
        return Truncated(self.truncation, {g: c for g, c in found.items() if c})

    def _observable(self, observable: Any) -> list[tuple[Powers, Any]]:
        if isinstance(observable, Mapping):
            return [(self.law.powers(observable), sp.S.One)]
        expression = sp.sympify(observable)
        symbols = _field_symbols(expression, self.law)
        if set(self.couplings) & expression.free_symbols:
            raise MomentError(f"the observable {expression} contains a coupling; multiply the series of its parts instead")
        return as_polynomial(expression, symbols)


def _field_symbols(expression: sp.Basic, law: GaussianLaw) -> tuple[sp.Symbol, ...]:
    """The symbols that stand for the fields in an expression: those with the names of the law."""
    free = {s.name: s for s in sorted(expression.free_symbols, key=sp.default_sort_key) if isinstance(s, sp.Symbol)}
    return tuple(free.get(str(name), symbol) for name, symbol in zip(law.names, law.symbols()))


def _potential(potential: Any, law: GaussianLaw) -> tuple[sp.Expr, tuple[sp.Symbol, ...]]:
    if isinstance(potential, Mapping):
        symbols, parts = law.symbols(), []
        for powers, factor in potential.items():
            if not isinstance(powers, tuple) or len(powers) != len(symbols):
                raise MomentError(f"the exponents {powers!r} must be a tuple of {len(symbols)}, one for each field of {symbols}")
            parts.append(sp.sympify(factor) * sp.Mul(*(s ** natural(p, s) for s, p in zip(symbols, powers))))
        return sp.Add(*parts), symbols
    if isinstance(potential, str):
        raise NotPolynomialError(
            f"the potential {potential!r} is text; read it first: symtensor.parsing.parse_expression(text, names)"
        )
    expression = sp.sympify(potential)
    return expression, _field_symbols(expression, law)


def _couplings(
    expression: sp.Expr, fields: Sequence[sp.Symbol], order: Order, grading: Mapping[Any, int] | None
) -> tuple[tuple[sp.Symbol, ...], Powers, Truncation]:
    """The couplings with their weights, and which powers of them are kept."""
    free = sorted(expression.free_symbols - set(fields), key=sp.default_sort_key)
    named = grading if grading is not None else order if isinstance(order, Mapping) else dict.fromkeys(free, 1)
    by_name: dict[str, Any] = {str(s): s for s in free}
    clash = [str(name) for name in named if str(name) in {str(s) for s in fields}]
    if clash:
        raise GradingError(f"{clash[0]} is a field and no coupling; the symbols that may be are {', '.join(by_name) or 'none'}")
    couplings = tuple(by_name.get(str(name), sp.Symbol(str(name))) for name in named)
    weights = tuple(grading.values()) if grading is not None else (1,) * len(couplings)
    for name, weight in zip(couplings, weights):
        if not isinstance(weight, int) or isinstance(weight, bool) or weight < 1:
            raise GradingError(f"the coupling {name} has the weight {weight!r}; it must be a positive integer")
    bounds = [(couplings, order)] if not isinstance(order, Mapping) else [((c,), _bound(order, c)) for c in couplings]
    constraints = []
    for members, limit in bounds:
        if isinstance(limit, bool) or not isinstance(limit, int) or limit < 0:
            raise GradingError(f"the order in {', '.join(map(str, members))} is {limit!r}; it must be an integer, 0 or more")
        whole = not isinstance(order, Mapping)
        constraints.append((tuple((w if whole else 1) * (c in members) for c, w in zip(couplings, weights)), limit))
    return couplings, weights, Truncation(tuple(constraints))


def _bound(order: Mapping[Any, int], coupling: sp.Symbol) -> int:
    bounds = {str(name): bound for name, bound in order.items()}
    if str(coupling) not in bounds:
        raise GradingError(f"the order does not bound the coupling {coupling}; add it, or give one integer for all")
    return bounds[str(coupling)]


def _terms(expression: sp.Expr, fields: Sequence[sp.Symbol], couplings: Sequence[sp.Symbol]) -> list[Term]:
    count, found = len(fields), []
    for powers, factor in as_polynomial(expression, [*fields, *couplings]):
        if not any(powers[count:]):
            term = factor * sp.Mul(*(s**e for s, e in zip(fields, powers)))
            raise GradingError(
                f"the term {term} of the potential has no coupling among {', '.join(map(str, couplings)) or 'none'}, so that "
                "every order would be infinite; multiply it by a counting symbol, or put it into the covariance and the mean"
            )
        found.append((powers[count:], powers[:count], factor))
    return found
