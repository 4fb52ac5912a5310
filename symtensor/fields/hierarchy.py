r"""Moments and correlation functions of stochastic equations order by order, from the moment hierarchy: without diagrams.

For dx = f(x) dt + G(x) dW (Ito) with polynomial f and D = G G^T, the backward generator

    L = f . grad + (1/2) D : grad grad,        d/dt <phi(x(t))> = <(L phi)(x(t))>,

maps monomials to monomials. At order zero in the coupling it does not raise the degree, so that every order is a finite
triangular problem: stationary moments by division by sums of rates, functions of several times as exact sums of
t^p exp(-rate t). A response field at the time t acts as a derivative, <.. xt_j(t)> = <d_j ..> of what comes later, which is the
response to a field added to the drift. Nothing here knows of propagators, vertices or saddles.

Stationary state; the series is formal: an unbounded potential has it as well (an expansion about a metastable state).

References: Risken, The Fokker-Planck Equation (1989), sections 2.5, 4.2 and 7; Gardiner, Handbook of Stochastic Methods
(2004), section 4.3.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

import networkx as nx
import sympy as sp
from sympy.polys.matrices import DomainMatrix
from sympy.polys.rings import PolyRing

from symtensor.expansion.cumulants import solve_cumulants
from symtensor.expansion.gaussian_law import natural
from symtensor.expansion.truncated import Truncated, Truncation
from symtensor.fields._moment_operator import Operator, Powers, generator, lowered_by, substituted
from symtensor.fields._moment_windows import Functionals, Sum
from symtensor.fields._scalars import DIGITS, Scalars, eigenvalues, numerical_modes, triangular_basis
from symtensor.fields.drift_diffusion import DriftDiffusion, graded, read_couplings, read_drift_diffusion
from symtensor.fields.errors import SourceError, TheoryError, UnstableError
from symtensor.fields.time_series import TimeSeries

__all__ = ["MomentHierarchy"]

Legs = Any

#: rational numbers with a larger denominator are decimals, whose roots are not worth an algebraic field
EXACT = 10**12


@dataclass(frozen=True, eq=False)
class MomentHierarchy:
    """The moment hierarchy of a stochastic equation with polynomial coefficients.

    Args:
        drift: f, one expression a variable (a sequence, a mapping, or the expression for one variable).
        noise: G, a matrix with one row a variable; a sequence or mapping of amplitudes is a diagonal. Only G G^T has to be
            polynomial.
        variables: names or symbols.
        coupling: the symbol in which the series run; {symbol: weight} counts weighted powers of several. At order zero the drift
            must be affine and must have positive rates, and the noise must not raise the degree.
        responses: names of the response fields; ``xt`` for ``x`` if not given.

    Raises:
        SourceError: shapes, names, text. NotPolynomialError: f or G G^T.
        UnstableError: a rate is not positive, or no moment closes at order zero. TheoryError: rates without a closed form.

    Example:
        >>> x, g, T = sp.symbols("x g T", positive=True)
        >>> cubic = MomentHierarchy(-(x + g * x**3), sp.sqrt(2 * T), x, g)
        >>> cubic.moment({x: 2}, 2).series()
        T - 3*T**2*g + 24*T**3*g**2 + O(g**3, g -> 0)
        >>> cubic.response(x, x, 1)[1]
        -3*T*t*exp(-t)
        >>> cubic.correlation(x, x, 1).expr
        T*exp(-t) + g*(-3*T**2*t*exp(-t) - 3*T**2*exp(-t))
    """

    drift: Any
    noise: Any
    variables: Any
    coupling: Any = None
    responses: Sequence[Any] | None = None
    equations: DriftDiffusion = field(init=False, repr=False)
    rates: tuple[sp.Expr, ...] = field(init=False)
    assumptions: tuple[str, ...] = field(init=False)
    _scalars: Scalars = field(init=False, repr=False)
    _functionals: Functionals = field(init=False, repr=False)
    _places: dict[str, tuple[bool, int]] = field(init=False, repr=False)
    _bases: tuple[Any, Any] = field(init=False, repr=False)
    _couplings: tuple[sp.Symbol, ...] = field(init=False, repr=False)
    _numerical: bool = field(init=False, repr=False)
    _insertions: dict[Powers, Operator] = field(init=False, repr=False, default_factory=dict)

    @classmethod
    def of(cls, equations: DriftDiffusion, coupling: Any = None, responses: Sequence[Any] | None = None) -> MomentHierarchy:
        """The hierarchy of equations that are given by D = G G^T, which need not be the square of a known G."""
        return cls(equations.drift, equations, equations.variables, coupling, responses)

    def __post_init__(self) -> None:
        equations = read_drift_diffusion(self.drift, self.noise, self.variables)
        couplings = read_couplings(self.coupling, equations)
        names = equations.variables
        drift = [graded(part, names, couplings) for part in equations.drift]
        size = len(names)
        diffusion = [[graded(equations.diffusion[i][j], names, couplings) for j in range(size)] for i in range(size)]
        linear = [[-part.get(0, {}).get(_unit(size, j), sp.S.Zero) for j in range(size)] for part in drift]
        linear, modes = _with_known_modes(linear)
        for part, row in zip(drift, linear):
            part.setdefault(0, {}).update({_unit(size, j): -entry for j, entry in enumerate(row) if entry != 0})
        parts = [*drift, *(part for row in diffusion for part in row)]
        rates, scalars, basis, inverse = _solvable_basis(linear, modes, parts)
        operator = _transformed(drift, diffusion, basis, inverse, scalars)
        self._require_closure(operator, names)
        self._store("equations", equations)
        self._store("rates", tuple(map(_decimals, rates)) if modes else rates)
        self._store("assumptions", (*_positive_rates(rates), *([f"the rates are taken to {DIGITS} digits"] if modes else [])))
        self._store("_numerical", bool(modes))
        self._store("_scalars", scalars)
        self._store("_functionals", Functionals(operator, scalars))
        self._store("_places", _places(names, self.responses))
        self._store("_bases", (basis, inverse))
        self._store("_couplings", tuple(couplings))

    def _store(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)

    def moment(self, legs: Legs, order: int) -> TimeSeries:
        """<product of the legs> in the stationary state, up to the given order.

        `legs` is {field: power}, all at one time, or a sequence of these, one a time, the latest first. At equal times a field
        does not respond to a response field (theta(0) = 0).

        Raises SourceError: an unknown field, no leg, an order or a power that is no natural number.
        """
        groups = self._legs(legs)
        order = natural(order, "the coupling")
        values = self._value(groups, order)
        return self._series(values, len(groups) - 1)

    def cumulant(self, legs: Legs, order: int) -> TimeSeries:
        """The joint cumulant of the legs, which are given as for `moment`; a power counts as that many legs."""
        groups = self._legs(legs)
        order = natural(order, "the coupling")
        truncation = Truncation((((1,), order),))
        width = len(groups[0])
        flat = tuple(n for group in groups for n in group)
        moments = {}
        for k in itertools.product(*(range(n + 1) for n in flat)):
            parts = [k[i : i + width] for i in range(0, len(k), width)]
            values = self._value(parts, order) if any(k) else []
            moments[k] = Truncated(truncation, {(g,): value for g, value in enumerate(values) if value})
        found = solve_cumulants(moments, [flat])[flat].terms
        return self._series([found.get((g,), Sum({})) for g in range(order + 1)], len(groups) - 1)

    def correlation(self, late: Legs, early: Legs, order: int) -> TimeSeries:
        """The joint cumulant <late(t) early(0)>, t > 0, of two groups of fields; a symbol stands for its first power."""
        return self.cumulant([late, early], order)

    def response(self, late: Legs, field: Any, order: int) -> TimeSeries:
        """d<late(t)>/dh for a field h delta(t) added to the drift of the variable `field` at time 0."""
        place = self._places.get(str(field))
        if place is None or place[0]:
            raise SourceError(f"{field} is no variable; these are {', '.join(map(str, self.equations.variables))}")
        flat = [0] * (2 * len(self.equations.variables))
        flat[place[1] + len(self.equations.variables)] = 1
        groups = [*self._legs([late]), tuple(flat)]
        return self._series(self._value(groups, natural(order, "the coupling")), 1)

    def _value(self, groups: Sequence[Powers], order: int) -> list[Sum]:
        chain = tuple(self._insertion(group) for group in reversed(groups))
        return self._functionals.value(chain, order, len(self.equations.variables))

    def _series(self, values: Sequence[Sum], windows: int) -> TimeSeries:
        names = ["t"] if windows == 1 else [f"t{w + 1}" for w in range(windows)]
        times = tuple(sp.Symbol(name, positive=True) for name in names)
        def write(element: Any) -> sp.Expr:
            value = self._scalars.write(element)
            return _decimals(value) if self._numerical else value

        read = [
            {tuple((write(e), p) for e, p in reversed(key)): write(c) for key, c in value.terms.items()} for value in values
        ]
        return TimeSeries(self._couplings, times, tuple(read))

    def _legs(self, legs: Legs) -> list[Powers]:
        groups = list(legs) if isinstance(legs, list | tuple) else [legs]
        size = len(self.equations.variables)
        found = []
        for group in groups:
            flat = [0] * (2 * size)
            powers = list(group.items()) if isinstance(group, Mapping) else [(group, 1)]
            for name, power in powers:
                if str(name) not in self._places:
                    raise SourceError(f"{name} is no field of the equations; these are {', '.join(self._places)}")
                response, place = self._places[str(name)]
                flat[place + size * response] += natural(power, name)
            found.append(tuple(flat))
        if not any(any(group) for group in found):
            raise SourceError("the correlation function has no leg; name at least one field, for example {x: 2}")
        return found

    def _insertion(self, group: Powers) -> Operator:
        """x^m d^r in the basis of the hierarchy: all factors x act after the derivatives."""
        known = self._insertions.get(group)
        if known is None:
            size = len(group) // 2
            ring = PolyRing([f"y{i}" for i in range(2 * size)], self._scalars.domain)
            basis, inverse = self._bases
            images = [sum((ring.gens[j] * basis[i][j] for j in range(size)), ring.zero) for i in range(size)]
            images += [sum((ring.gens[size + j] * inverse[j][i] for j in range(size)), ring.zero) for i in range(size)]
            product: Any = prod((image**n for image, n in zip(images, group)), start=ring.one)
            known = Operator({(0, k[:size], k[size:]): c for k, c in product.items()})
            self._insertions[group] = known
        return known

    @staticmethod
    def _require_closure(operator: Operator, names: Sequence[sp.Symbol]) -> None:
        term = lowered_by(operator)
        if term is not None:
            degree, derivatives = sum(term[1]), sum(term[2])
            what = "drift" if derivatives == 1 else "noise strength G G^T"
            raise UnstableError(
                f"at order zero in the coupling the {what} has a term of degree {degree} in {', '.join(map(str, names))}, which "
                "couples moments to higher ones, so that the hierarchy does not close; multiply the term by the coupling"
            )


def _unit(size: int, i: int) -> Powers:
    return tuple(int(j == i) for j in range(size))


def _places(names: Sequence[sp.Symbol], responses: Sequence[Any] | None) -> dict[str, tuple[bool, int]]:
    given = [f"{name}t" for name in names] if responses is None else [str(name) for name in responses]
    if len(given) != len(names):
        raise SourceError(f"{len(given)} response fields for {len(names)} variables; name one for each")
    found = {str(name): (False, i) for i, name in enumerate(names)}
    for i, name in enumerate(given):
        if name in found:
            raise SourceError(f"the response field {name} has the name of another field; choose names (responses=[..])")
        found[name] = (True, i)
    return found


Square = list[list[sp.Expr]]


def _with_known_modes(linear: Square) -> tuple[Square, Any]:
    """The linear drift and None if its rates have a closed form; else one that agrees to many digits, its rates and modes."""
    if _order(linear) is not None:
        return linear, None
    entries = [entry for row in linear for entry in row]
    decimal = all(entry.is_Rational for entry in entries) and any(sp.fraction(entry)[1] > EXACT for entry in entries)
    if not decimal:
        try:
            eigenvalues(linear)
        except TheoryError:
            if any(entry.free_symbols for entry in entries):
                raise
        else:
            return linear, None
    rates, modes, replaced = numerical_modes(linear)
    return replaced, (rates, modes)


def _order(linear: Square) -> list[int] | None:
    """The order of the variables in which A is upper triangular, if there is one."""
    size = len(linear)
    graph = nx.DiGraph([(i, j) for i in range(size) for j in range(size) if i != j and linear[i][j] != 0])
    graph.add_nodes_from(range(size))
    return list(nx.lexicographical_topological_sort(graph)) if nx.is_directed_acyclic_graph(graph) else None


def _solvable_basis(linear: Square, modes: Any, parts: Sequence[Mapping[int, Mapping[Powers, sp.Expr]]]) -> tuple[Any, ...]:
    """Rates, scalars, and P, P^-1 with P^-1 A P upper triangular: a permutation if there is one."""
    size, order = len(linear), _order(linear)
    coefficients = [c for part in parts for terms in part.values() for c in terms.values()]
    if order is not None:
        rates = tuple(linear[i][i] for i in order)
        scalars = Scalars.holding(coefficients, rates)
        basis = [[scalars.one if order[j] == i else scalars.zero for j in range(size)] for i in range(size)]
        return rates, scalars, basis, [list(row) for row in zip(*basis)]
    if modes:
        rates, columns = tuple(modes[0]), modes[1]
        entries = list(itertools.chain(*columns))
        scalars = Scalars.holding([*coefficients, *rates, *entries], [*rates, *entries])
        basis = [[scalars.read(entry) for entry in row] for row in columns]
    else:
        found = eigenvalues(linear)
        rates = tuple(rate for rate, count in found for _ in range(count))
        scalars = Scalars.holding([*coefficients, *rates], [*rates, *itertools.chain(*linear)])
        basis = triangular_basis(linear, found, scalars)
    inverse = DomainMatrix(basis, (size, size), scalars.domain).to_field().inv().to_list()
    return rates, scalars, basis, [[scalars.domain.convert(entry) for entry in row] for row in inverse]


def _transformed(drift: Any, diffusion: Any, basis: Any, inverse: Any, scalars: Scalars) -> Operator:
    """The generator in y with x = P y: f -> P^-1 f(P y), D -> P^-1 D(P y) P^-T."""
    size = len(drift)
    ring = PolyRing([f"y{i}" for i in range(size)], scalars.domain)

    def read(part: Any) -> Any:
        return substituted({g: {k: scalars.read(c) for k, c in terms.items()} for g, terms in part.items()}, basis, ring)

    vector, matrix = [read(part) for part in drift], [[read(part) for part in row] for row in diffusion]
    new_drift = [_combined([(inverse[i][j], vector[j]) for j in range(size)]) for i in range(size)]
    pairs = list(itertools.product(range(size), repeat=2))
    new_noise = [
        [_combined([(inverse[i][a] * inverse[j][b], matrix[a][b]) for a, b in pairs]) for j in range(size)] for i in range(size)
    ]
    return generator(new_drift, new_noise, scalars.read(sp.S.Half))


def _combined(parts: Sequence[tuple[Any, Mapping[int, Mapping[Powers, Any]]]]) -> dict[int, dict[Powers, Any]]:
    found: dict[int, dict[Powers, Any]] = {}
    for factor, graded_part in parts:
        if factor:
            for order, terms in graded_part.items():
                into = found.setdefault(order, {})
                for k, c in terms.items():
                    into[k] = into[k] + factor * c if k in into else factor * c
    return found


def _decimals(value: sp.Expr) -> Any:
    """Long rationals as decimals, without what is zero to their accuracy."""
    rounded = sp.expand(value).evalf(DIGITS * 2 // 3)
    return rounded.xreplace({f: sp.S.Zero for f in rounded.atoms(sp.Float) if abs(f) < sp.Float(10) ** (-DIGITS // 2)})


def _positive_rates(rates: Sequence[sp.Expr]) -> tuple[str, ...]:
    """What has to be assumed of symbolic rates; raises UnstableError for one that is not positive."""
    assumed = []
    for rate in dict.fromkeys(rates):
        real = sp.re(rate) if rate.is_number else rate
        if real.is_zero or real.is_positive is False or (real.is_number and not real > 0):
            raise UnstableError(
                f"the linear drift at order zero has the rate {sp.sstr(rate)}, which is not positive, so that there is no "
                "stationary state to expand about; make it stable, or shift the variables to a stable point"
            )
        if real.is_positive is None:
            assumed.append(f"{sp.sstr(rate)} > 0")
    return tuple(assumed)


