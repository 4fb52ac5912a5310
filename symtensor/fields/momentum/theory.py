r"""Theories whose lines carry a momentum: static ones, and stochastic equations that are first order in time.

Conventions
-----------
x(r, t) = int d^dk/(2 pi)^d exp(i k.r) x(k, t);  every loop is int d^dq/(2 pi)^d. Vertex factors are minus the functional
derivatives of the action S (weight exp(-S)) with respect to the fields at wave vectors p1, p2, .., which add up to zero.

Static      the propagator <x(k) x(-k)> = D(k).
Stochastic  dx(k)/dt = -r(k) x(k) + .. + noise of strength b(k):  S = int dt [ xt (dx/dt + r x) - (1/2) b xt^2 - .. ], theta(0) = 0,
            R(k, t) = theta(t) exp(-r t),  C(k, t) = (b / 2 r) exp(-r |t|).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import sympy as sp

from symtensor.diagrams import Field, Model, Propagator, Vertex
from symtensor.fields.errors import TheoryError
from symtensor.fields.momentum.vectors import ScalarProduct, in_one_dimension, multiplied_out, squared

if TYPE_CHECKING:
    from symtensor.fields.momentum.momentum_sum import MomentumSum

__all__ = ["MOMENTUM_THEORIES", "MomentumTheory", "MomentumVertex", "P", "momentum_theory"]

#: the wave vector in a propagator, a rate or a noise strength
P = sp.Symbol("p")


@dataclass(frozen=True, slots=True)
class MomentumVertex:
    """A vertex: its legs (``x``, ``xt``), and its factor, a polynomial in the scalar products of the wave vectors p1, p2, ..

    The factor is minus the derivative of the action and is symmetric in equal legs. In a theory of one dimension it may hold
    p1, p2, .. themselves.
    """

    name: str
    legs: tuple[str, ...]
    factor: Any

    def at(self, momenta: Any) -> Any:
        """The factor at the given wave vectors, in the order of `legs`."""
        return self.factor.subs(dict(zip(self.symbols, momenta)), simultaneous=True)

    @property
    def symbols(self) -> tuple[sp.Symbol, ...]:
        """p1, p2, .."""
        return tuple(sp.Symbol(f"p{i + 1}") for i in range(len(self.legs)))


@dataclass(frozen=True, slots=True)
class MomentumTheory:
    """A theory of one field, static or stochastic, in d dimensions; see the formulas at the top of this module.

    Attributes:
        vertices: at least three legs each.
        propagator: D of a static theory as a function of `P`; None for a stochastic one.
        rate, noise: r and b of a stochastic theory, functions of `P`; None for a static one.
        dimension: a number, or the symbol d.

    Raises: TheoryError for a theory that is neither static nor stochastic, for unknown legs, and for a factor that is not
        symmetric.

    >>> theory = momentum_theory("kpz")  # Sigma to order k^2
    >>> theory.vertex_function("xt,x", 1).at(1).small_momentum(2).coefficients[2]
    D*lam**2*(d - 2)*k^2/(4*d*nu**2*q**2)
    """

    name: str
    vertices: tuple[MomentumVertex, ...]
    propagator: Any = None
    rate: Any = None
    noise: Any = None
    dimension: Any = field(default_factory=lambda: sp.Symbol("d", positive=True))
    title: str = ""

    def __post_init__(self) -> None:
        dynamic = self.rate is not None and self.noise is not None
        if dynamic == (self.propagator is not None) or (self.rate is None) != (self.noise is None):
            raise TheoryError(f"theory {self.name!r}: give either propagator (static), or rate and noise (stochastic)")
        known = ("x", "xt") if dynamic else ("x",)
        for vertex in self.vertices:
            wrong = [leg for leg in vertex.legs if leg not in known]
            if wrong or len(vertex.legs) < 3:
                what = f"has the unknown leg {wrong[0]!r}" if wrong else f"has {len(vertex.legs)} legs, at least 3 are required"
                raise TheoryError(f"vertex {vertex.name!r} of {self.name} {what}; the fields are {', '.join(known)}")
            if dynamic and "xt" not in vertex.legs:
                raise TheoryError(f"vertex {vertex.name!r} of {self.name} has no response leg xt, so that probability is not kept")
            self._check_factor(vertex)

    def _check_factor(self, vertex: MomentumVertex) -> None:
        """Raise TheoryError if the factor depends on other wave vectors, or on the order of equal legs."""
        allowed = set(vertex.symbols)
        inside = {s for dot in vertex.factor.atoms(ScalarProduct) for s in dot.free_symbols}
        if inside - allowed:
            raise TheoryError(
                f"the factor of vertex {vertex.name!r} has the scalar product of {sorted(map(str, inside - allowed))[0]}; the wave "
                f"vectors are {', '.join(map(str, vertex.symbols))}"
            )
        if vertex.factor.replace(ScalarProduct, lambda *_: sp.S.One).free_symbols & allowed and self.dimension != 1:
            raise TheoryError(f"the factor of vertex {vertex.name!r} is not a scalar: wave vectors stand only in ScalarProduct(..)")
        conserved = (*vertex.symbols[:-1], -sp.Add(*vertex.symbols[:-1]))
        plain = self._scalar(vertex.at(conserved))
        for a, b in itertools.combinations(range(len(vertex.legs)), 2):
            if vertex.legs[a] == vertex.legs[b]:
                order = list(conserved)
                order[a], order[b] = order[b], order[a]
                if self._scalar(vertex.at(order)) != plain:
                    raise TheoryError(
                        f"the factor of vertex {vertex.name!r} changes if its legs {a + 1} and {b + 1}, both {vertex.legs[a]}, are "
                        "exchanged; give the derivative of the action, which is symmetric"
                    )

    def _scalar(self, expression: Any) -> Any:
        return sp.expand(in_one_dimension(expression) if self.dimension == 1 else multiplied_out(expression))

    # -- what it is made of ----------------------------------------------------------------------------------------------

    @property
    def stochastic(self) -> bool:
        """Whether the fields depend on time."""
        return self.rate is not None

    @property
    def parameters(self) -> tuple[sp.Symbol, ...]:
        """The parameters by name."""
        parts = [self.propagator, self.rate, self.noise, *(vertex.factor for vertex in self.vertices)]
        vectors = {P, *(s for vertex in self.vertices for s in vertex.symbols)}
        found = {s for part in parts if part is not None for s in part.free_symbols} - vectors
        return tuple(sorted(found, key=str))

    @property
    def model(self) -> Model:
        """Fields, lines and vertices as the diagrams know them."""
        vertices = tuple(Vertex(vertex.name, vertex.legs, {"g": len(vertex.legs) - 2}) for vertex in self.vertices)
        if not self.stochastic:
            return Model(self.name, (Field("x"),), (Propagator("x", "x"),), vertices)
        fields, lines = (Field("x"), Field("xt", response=True)), (Propagator("x", "x"), Propagator("x", "xt"))
        return Model(self.name, fields, lines, vertices, causality="local")

    def vertex(self, name: str) -> MomentumVertex:
        """The vertex of that name."""
        return next(vertex for vertex in self.vertices if vertex.name == name)

    def line(self, momentum: Any) -> Any:
        """The static propagator, or the equal-time correlator b/(2 r), at a wave vector."""
        return self._at(self.propagator if self.propagator is not None else self.noise / (2 * self.rate), momentum)

    def rate_at(self, momentum: Any) -> Any:
        """The rate at a wave vector."""
        return self._at(self.rate, momentum)

    @staticmethod
    def _at(expression: Any, momentum: Any) -> Any:
        return expression.subs(P, momentum)

    @staticmethod
    def latex(expression: Any) -> str:
        """LaTeX, the parameter lam as a Greek letter."""
        return sp.latex(expression, symbol_names={s: r"\lambda" for s in expression.free_symbols if s.name == "lam"})

    @property
    def conventions(self) -> tuple[str, ...]:
        """What the signs and factors mean."""
        shared = (
            "weight exp(-S); vertex factor = minus the derivative of S at wave vectors that add up to zero; a diagram is divided "
            "by its symmetry factor",
            "x(r) = int d^dk/(2 pi)^d exp(i k.r) x(k); every loop is int d^dq/(2 pi)^d, loop momenta placed symmetrically",
        )
        if not self.stochastic:
            return (*shared, f"line: {self.propagator}")
        lines = f"R(p, t) = theta(t) exp(-({self.rate}) t), C(p, t) = ({self.line(P)}) exp(-({self.rate}) |t|)"
        return (*shared, f"{lines}, theta(0) = 0")

    # -- what can be asked -----------------------------------------------------------------------------------------------

    def cumulant(self, legs: Any, loops: int = 1, times: str | None = None) -> MomentumSum:
        """A connected correlation function; `times` is ``"equal"`` or, for two legs, ``"t,0"`` (what is taken)."""
        from symtensor.fields.momentum.momentum_sum import MomentumSum

        return MomentumSum.of(self, legs, loops, "connected", times)

    def vertex_function(self, legs: Any, loops: int = 1, times: str | None = None) -> MomentumSum:
        """A one-particle irreducible function with amputated legs.

        `times`: ``"t,0"`` (two legs), or ``"integrated"``, at zero external frequencies (what is taken for other numbers).
        """
        from symtensor.fields.momentum.momentum_sum import MomentumSum

        return MomentumSum.of(self, legs, loops, "1pi", times)


# -- named theories ------------------------------------------------------------------------------------------------------


def _symbols(*names: str) -> list[Any]:
    return [sp.Symbol(name, positive=True) for name in names]


def _phi4() -> MomentumTheory:
    m, g = _symbols("m", "g")
    vertex = MomentumVertex("g", ("x",) * 4, -g)
    return MomentumTheory("phi4-field", (vertex,), 1 / (m**2 + squared(P)), title="S = int (grad x)^2/2 + m^2 x^2/2 + g x^4/24")


def _kpz() -> MomentumTheory:
    nu, noise, lam = _symbols("nu", "D", "lam")
    _, p2, p3 = sp.symbols("p1 p2 p3")
    vertex = MomentumVertex("g", ("xt", "x", "x"), -lam * ScalarProduct(p2, p3))
    title = "dx/dt = nu lap x + (lam/2) (grad x)^2 + noise, <noise noise> = 2 D delta"
    return MomentumTheory("kpz", (vertex,), rate=nu * squared(P), noise=2 * noise, title=title)


def _burgers() -> MomentumTheory:
    nu, noise, lam = _symbols("nu", "D", "lam")
    vertex = MomentumVertex("g", ("xt", "x", "x"), sp.I * lam * sp.Symbol("p1"))
    title = "dx/dt = nu x'' - (lam/2) (x^2)' + d/dr noise in one dimension: x = -h' of KPZ"
    return MomentumTheory(
        "burgers", (vertex,), rate=nu * squared(P), noise=2 * noise * squared(P), dimension=sp.S.One, title=title
    )


def _model_a() -> MomentumTheory:
    m, g, mobility, heat = _symbols("m", "g", "Gamma", "T")
    vertex = MomentumVertex("g", ("xt", "x", "x", "x"), -mobility * g)
    title = "dx/dt = -Gamma dF/dx + noise 2 Gamma T, F = int (grad x)^2/2 + m^2 x^2/2 + g x^4/24"
    return MomentumTheory("model-a", (vertex,), rate=mobility * (m**2 + squared(P)), noise=2 * mobility * heat, title=title)


#: name -> constructor
MOMENTUM_THEORIES: dict[str, Callable[[], MomentumTheory]] = {
    "kpz": _kpz, "burgers": _burgers, "model-a": _model_a, "phi4-field": _phi4,
}  # fmt: skip


def momentum_theory(name: str) -> MomentumTheory:
    """The theory with momenta of that name.

    >>> momentum_theory("kpz").parameters
    (D, lam, nu)
    """
    if name.lower() not in MOMENTUM_THEORIES:
        raise TheoryError(f"unknown theory with momenta {name!r}; there are {', '.join(MOMENTUM_THEORIES)}")
    return MOMENTUM_THEORIES[name.lower()]()
