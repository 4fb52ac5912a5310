r"""A field theory as one value: from an action or a stochastic equation to cumulants and vertex functions.

Conventions (`CONVENTIONS` holds them as text; every report prints them).

* Static: weight exp(-S). Propagator: the inverse Hessian of S at the saddle. Vertex factor: minus a derivative of S.
* Stochastic, Ito: dx = f(x) dt + G(x) dW. MSRJD weight exp(-S),
  S = int dt [ xt.(dx/dt - f(x)) - xt.G(x) G(x)^T xt / 2 ], xt on the imaginary axis; theta(0) = 0, so that no ghosts
  and no closed response loops occur and Z = 1. Averages are those of the stationary state.
* The value of a diagram is (1 / symmetry factor) * (vertex factors) * (propagators), summed over components and integrated
  over the times of the vertices.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import sympy as sp

from symtensor.diagrams import Model
from symtensor.fields.elements import Elements
from symtensor.fields.equations import Interpretation, read_equations
from symtensor.fields.errors import SourceError, TheoryError
from symtensor.fields.free import LinearFree, StaticFree
from symtensor.fields.reading import read_action
from symtensor.fields.saddle import stationary_point
from symtensor.fields.vertices import Kind, VertexTensor, blocks, derivatives, diagram_model, vertex_tensors

if TYPE_CHECKING:
    from symtensor.fields.diagram_sum import DiagramSum
    from symtensor.fields.effective import EffectiveAction
    from symtensor.fields.theory_file import TheoryFile

__all__ = ["CONVENTIONS", "FieldTheory"]

STATIC = (
    "weight exp(-S); propagator = inverse Hessian of S at the saddle; vertex factor = minus the derivative of S at the saddle",
    "value of a diagram = (1/symmetry factor) x (vertex factors) x (propagators), summed over components",
)
STOCHASTIC = (
    "Ito equation dx = f(x) dt + G(x) dW; weight exp(-S), S = int dt [xt.(dx/dt - f(x)) - xt.G(x) G(x)^T xt/2], xt imaginary",
    "theta(0) = 0 (pre-point): no ghosts, no closed response loops, Z = 1; averages in the stationary state",
    "R(t) = <x(t) xt(0)> = theta(t) exp(-A t); C(t) = <x(t) x(0)> = exp(-A t) C(0) for t > 0, A C(0) + C(0) A^T = G G^T",
    "vertex factor = derivative of xt.f(x) + xt.G(x) G(x)^T xt/2 at the saddle; value of a diagram = (1/symmetry factor) x "
    "(vertex factors) x (propagators), summed over components, integrated over the times of the vertices",
    "Fourier: x(omega) = int dt exp(i omega t) x(t)",
)
CONVENTIONS = {"static": STATIC, "stochastic": STOCHASTIC}
LATEX = {
    "static": (
        r"weight $e^{-S}$; the propagator $\Delta$ is the inverse Hessian of $S$ at the saddle, a vertex factor minus the "
        r"derivative of $S$ there",
        r"value of a diagram: (1/symmetry factor) $\times$ (vertex factors) $\times$ (propagators), summed over components",
    ),
    "stochastic": (
        r"Ito equation $dx = f(x)\,dt + G(x)\,dW$; weight $e^{-S}$ with $S = \int\! dt\,[\tilde x\cdot(\dot x - f(x)) - "
        r"\frac{1}{2}\,\tilde x\cdot G(x) G(x)^T \tilde x]$, $\tilde x$ imaginary",
        r"$\theta(0) = 0$ (pre-point): no ghosts, no closed response loops, $Z = 1$; averages in the stationary state",
        r"$R(t) = \langle x(t)\,\tilde x(0)\rangle = \theta(t)\,e^{-A t}$; $C(t) = \langle x(t)\,x(0)\rangle = e^{-A t} C(0)$ for "
        r"$t > 0$, with $A\,C(0) + C(0)\,A^T = G G^T$",
        r"vertex factors: derivatives of $\mathcal{V} = \tilde x\cdot f(x) + \frac{1}{2}\,\tilde x\cdot G(x) G(x)^T \tilde x$ at "
        r"the saddle; value of a diagram: (1/symmetry factor) $\times$ (vertex factors) $\times$ (propagators), summed over "
        r"components, integrated over the times of the vertices",
        r"Fourier transform: $x(\omega) = \int\! dt\,e^{i\omega t} x(t)$",
    ),
}


@dataclass(frozen=True, eq=False)
class FieldTheory:
    """A theory: fields, the local density of its interaction, its saddle and its free part.

    Made by `FieldTheory.static`, `FieldTheory.langevin` or `symtensor.fields.theory(name)`.

    Attributes:
        fields: the physical fields, real symbols.
        responses: their response fields (``xt`` of ``x``); empty for a static theory.
        density: V, so that the weight is exp(int V) with the time derivative left out: -S, or xt.f + xt.G G^T.xt/2.
        saddle: the point of expansion, one value a field.
        free: what the propagators are made of.
        parameters: the other symbols, in order of name.
        conditions: relations between parameters that the stability of the saddle needs.

    >>> theory = FieldTheory.static("x^2/2 + g*x^4/24", "x")
    >>> theory.cumulant("x,x", loops=2).expr
    2*g**2/3 - g/2 + 1
    """

    name: str
    fields: tuple[sp.Symbol, ...]
    responses: tuple[sp.Symbol, ...]
    density: sp.Expr
    saddle: tuple[Any, ...]
    free: StaticFree | LinearFree
    parameters: tuple[sp.Symbol, ...] = ()
    title: str = ""
    conditions: tuple[Any, ...] = ()
    _cache: dict[Any, Any] = field(default_factory=dict, repr=False)

    @classmethod
    def static(
        cls,
        action: Any,
        fields: Any,
        *,
        parameters: Sequence[Any] | None = None,
        point: Mapping[Any, Any] | None = None,
        values: Mapping[Any, Any] | None = None,
        name: str = "action",
        title: str = "",
    ) -> FieldTheory:
        """The theory with weight exp(-action), expanded around `point` (a stationary point found if none is given).

        Args:
            action: text (parsed, never evaluated) or a SymPy expression, polynomial or not.
            fields: names, as ``"x"`` or ``["x", "y"]`` or ``{"x": 3}`` for the components x_1, x_2, x_3.
            parameters: the other names that may occur; all of them if not given.
            values: numbers for parameters: they decide which saddle is stable, and are put in where it has no closed form.

        Raises: TheoryError or a subclass: unreadable text, unknown names, no stationary point, a zero mode.
        """
        read = read_action(action, fields, parameters)
        symbols = read.fields
        _check_values(values, read.parameters)
        saddle = stationary_point(read.gradient, symbols, point, values)
        expression = read.expression if saddle.exact else _valued(read.expression, values)
        hessian = sp.hessian(expression, list(symbols)).subs(dict(zip(symbols, saddle)), simultaneous=True)
        free = StaticFree.of(hessian.applyfunc(sp.cancel), symbols)
        return cls(name, symbols, (), -expression, saddle.point, free, _parameters(expression, symbols), title, saddle.conditions)

    @classmethod
    def langevin(
        cls,
        equations: Any,
        noise: Any = None,
        *,
        parameters: Any = None,
        variables: Any = None,
        interpretation: Interpretation = "ito",
        point: Mapping[Any, Any] | None = None,
        values: Mapping[Any, Any] | None = None,
        name: str = "langevin",
        title: str = "",
    ) -> FieldTheory:
        """The MSRJD theory of Ito equations, expanded around the fixed point `point` (found if not given).

        Args:
            equations: text such as ``"dx = -(x + g*x^3) dt + sqrt(2*T) dW"`` (one line an equation), or a mapping
                {variable: drift} with `noise` the mapping or matrix G; see `symtensor.fields.reading.read_equations`.
            parameters, variables, interpretation: as for `read_equations` (numbers of components, Stratonovich equations).

        Raises: TheoryError or a subclass: unreadable text, no fixed point, a zero mode, an unstable drift.

        >>> theory = FieldTheory.langevin("dx = -(x + g*x^3) dt + sqrt(2*T) dW")
        >>> theory.cumulant("x,x", loops=1).expr
        -3*T**2*g*t*exp(-t) - 3*T**2*g*exp(-t) + T*exp(-t)
        """
        read = read_equations(equations, noise, parameters, variables=variables, interpretation=interpretation)
        symbols = read.variables
        _check_values(values, read.parameters)
        saddle = stationary_point(read.drift, symbols, point, values, drift=True)
        numbers = None if saddle.exact else values
        drift = sp.Matrix([_valued(f, numbers) for f in read.drift])
        strength = sp.Matrix(read.diffusion).applyfunc(lambda entry: sp.expand(_valued(entry, numbers)))
        at = dict(zip(symbols, saddle))
        linear = -drift.jacobian(list(symbols)).subs(at, simultaneous=True).applyfunc(sp.cancel)
        free = LinearFree.of(linear, strength.subs(at, simultaneous=True), symbols)
        responses = tuple(sp.Symbol(f"{s.name}t", real=True) for s in symbols)
        clash = {s.name for s in responses} & {str(s) for s in {*symbols, *drift.free_symbols, *strength.free_symbols}}
        if clash:
            raise SourceError(f"the name {min(clash)!r} is needed for a response field; rename that variable or parameter")
        column = sp.Matrix(responses)
        density = (column.T * drift)[0] + (column.T * strength * column)[0] / 2
        left = _parameters(sp.Matrix([*drift, *strength]), symbols)
        return cls(name, symbols, responses, density, saddle.point, free, left, title, saddle.conditions)

    @classmethod
    def from_file(cls, file: TheoryFile) -> FieldTheory:
        """The theory that a theory file describes (`symtensor.fields.theory_file.load_theory_file`)."""
        common: dict[str, Any] = {
            "parameters": file.parameters, "point": file.point or None, "values": file.values or None, "name": file.name,
            "title": file.title,
        }  # fmt: skip
        if file.stochastic:
            return cls.langevin(file.equations, variables=file.variables, interpretation=file.interpretation, **common)
        return cls.static(file.action, file.fields, **common)

    @property
    def stochastic(self) -> bool:
        """Whether there are times and response fields."""
        return bool(self.responses)

    @property
    def conventions(self) -> tuple[str, ...]:
        """What the signs and factors mean, one sentence each."""
        return CONVENTIONS["stochastic" if self.stochastic else "static"]

    @property
    def conventions_latex(self) -> tuple[str, ...]:
        """`conventions` with inline LaTeX between dollar signs."""
        return LATEX["stochastic" if self.stochastic else "static"]

    @property
    def symbol_names(self) -> dict[sp.Symbol, str]:
        """How response fields are written in LaTeX: a tilde over the name of the field."""
        return {r: rf"\tilde{{{sp.latex(x)}}}" for x, r in zip(self.fields, self.responses)}

    @cached_property
    def kinds(self) -> tuple[Kind, ...]:
        """The kinds of lines: fields that the quadratic form mixes belong to one."""
        found = []
        for block in blocks(len(self.fields), self.free.joined):
            name = _kind_name([self.fields[i].name for i in block], {s.name for s in (*self.fields, *self.responses)})
            found.append(Kind(name, block))
            if self.stochastic:
                response = self.responses[block[0]].name if len(block) == 1 else name + "t"
                found.append(Kind(response, tuple(i + len(self.fields) for i in block), response=True))
        return tuple(found)

    def kind_of(self, component: int) -> Kind:
        """The kind of line to which a field (or response field) belongs."""
        return next(kind for kind in self.kinds if component in kind.components)

    def component(self, name: str) -> int:
        """The position of a field among (fields, responses); raises TheoryError naming those there are."""
        names = [s.name for s in (*self.fields, *self.responses)]
        if name not in names:
            raise TheoryError(f"{name!r} is no field of {self.name}; its fields are {', '.join(names)}")
        return names.index(name)

    def drift_and_noise(self) -> tuple[tuple[sp.Expr, ...], tuple[tuple[sp.Expr, ...], ...]]:
        """f(x) and G(x) G(x)^T of a stochastic theory."""
        zero: Any = dict.fromkeys(self.responses, 0)
        drift = tuple(self.density.diff(r).subs(zero) for r in self.responses)
        strength = sp.hessian(self.density, list(self.responses))
        return drift, tuple(tuple(strength.row(i)) for i in range(strength.rows))

    def derivatives(self, valence: int) -> Mapping[tuple[int, ...], Any]:
        """The derivatives of the density at the saddle of order 3 to `valence`: {orders in (fields, responses): value}."""
        if ("derivatives", valence) not in self._cache:
            symbols = (*self.fields, *self.responses)
            point = (*self.saddle, *(0 for _ in self.responses))
            self._cache["derivatives", valence] = derivatives(self.density, symbols, point, valence)
        return self._cache["derivatives", valence]

    def tensors(self, valence: int) -> tuple[VertexTensor, ...]:
        """The vertices with at most `valence` legs, in the fields."""
        if ("tensors", valence) not in self._cache:
            self._cache["tensors", valence] = vertex_tensors(self.derivatives(valence), self.kinds)
        return self._cache["tensors", valence]

    def propagators_latex(self) -> tuple[str, ...]:
        """The propagators of the free theory, as equations in LaTeX."""
        names = ", ".join(sp.latex(s) for s in self.fields)
        several = len(self.fields) > 1
        if isinstance(self.free, StaticFree):
            value = self.free.covariance if several else self.free.covariance[0, 0]
            return (rf"\Delta_{{{names}}} = {sp.latex(value)}",)
        if self.free.drift.has(sp.Float):  # numerical modes are no formula
            matrices = {"A": self.free.drift, "G G^T": self.free.noise, "C(0)": self.free.covariance}
            return tuple(f"{name} = {sp.latex(matrix.evalf(6))}" for name, matrix in matrices.items())
        t = sp.Symbol("t", positive=True)
        response, correlator = self.free.response(t), self.free.correlator(t)
        shown = (response, correlator) if several else (response[0, 0], correlator[0, 0])
        return tuple(rf"{letter}_{{{names}}}(t) = {sp.latex(value)}\quad (t > 0)" for letter, value in zip("RC", shown))

    def elements(self, valence: int) -> Elements:
        """Vertices and propagators as elements of one exact domain."""
        if ("elements", valence) not in self._cache:
            self._cache["elements", valence] = Elements.of(self, valence)
        return self._cache["elements", valence]

    def model(self, valence: int) -> Model:
        """The diagram model with all vertices of at most `valence` legs."""
        joined: list[tuple[str, str]] = []
        for kind in self.kinds:
            if kind.response:
                continue
            if self._fluctuates(kind):
                joined.append((kind.name, kind.name))
            if self.stochastic:
                joined.append((kind.name, self.kind_of(kind.components[0] + len(self.fields)).name))
        return diagram_model(self.name, self.kinds, joined, self.tensors(valence))

    def _fluctuates(self, kind: Kind) -> bool:
        return any(self.free.covariance[i, j] != 0 for i in kind.components for j in kind.components)

    def cumulant(self, legs: Any, loops: int = 1, times: Sequence[Any] | str | None = None) -> DiagramSum:
        """The joint cumulant <x_1 .. x_m> up to `loops` loops, as a sum of connected diagrams.

        legs: ``"x,x"``, ``"x,xt"`` or a sequence of names. times: names of the times of the legs, the latest first, equal names for
        equal times; by default (t, 0) for two legs, t1 >= t2 >= .. >= 0 for more; ``"equal"`` puts all at one time.
        """
        from symtensor.fields.diagram_sum import DiagramSum

        return DiagramSum.of(self, legs, loops, "connected", times)

    def vertex_function(self, legs: Any, loops: int = 1, times: Sequence[Any] | str | None = None) -> DiagramSum:
        """The loop corrections to the vertex function of `legs`: one-particle irreducible diagrams, legs amputated.

        With two legs this is the self-energy Sigma: the inverse propagator is the free one minus Sigma.
        """
        from symtensor.fields.diagram_sum import DiagramSum

        return DiagramSum.of(self, legs, loops, "1pi", times)

    def effective_action(self, loops: int = 1, degree: int = 4) -> EffectiveAction:
        """The effective action of a static theory, by its one-particle irreducible diagrams."""
        from symtensor.fields.effective import EffectiveAction

        return EffectiveAction(self, loops, degree)

    def __repr__(self) -> str:
        names = ", ".join(s.name for s in (*self.fields, *self.responses))
        at = ", ".join(f"{s} = {sp.sstr(v)}" for s, v in zip(self.fields, self.saddle))
        return f"<FieldTheory {self.name}: fields {names}; saddle {at}; density {sp.sstr(self.density)}>"


def _check_values(values: Mapping[Any, Any] | None, parameters: Sequence[sp.Symbol]) -> None:
    """Raise SourceError for a value of something that is no parameter."""
    known = {s.name for s in parameters}
    stray = sorted(str(name) for name in values or () if str(name) not in known)
    arrays = {name.rpartition("_")[0] for name in known} | {name.split("_")[0] for name in known}
    stray = [name for name in stray if name not in arrays]
    if stray:
        there = ", ".join(sorted(known)) or "none"
        raise SourceError(f"values= names {', '.join(stray)}, which is no parameter; the parameters are {there}")


def _valued(expression: Any, values: Mapping[Any, Any] | None) -> Any:
    """The expression with numbers for parameters; decimals become exact."""
    if not values:
        return expression
    by_name = {str(name): sp.nsimplify(value, rational=True) for name, value in values.items()}
    return expression.subs({s: by_name[s.name] for s in expression.free_symbols if s.name in by_name}, simultaneous=True)


def _parameters(expression: Any, fields: Sequence[sp.Symbol]) -> tuple[sp.Symbol, ...]:
    return tuple(sorted(expression.free_symbols - set(fields), key=lambda s: s.name))


def _kind_name(names: list[str], taken: set[str]) -> str:
    """``x`` for x_1, x_2, ..; else the names joined."""
    if len(names) == 1:
        return names[0]
    stems = {name.rpartition("_")[0] for name in names}
    stem = stems.pop() if len(stems) == 1 else ""
    name = stem or "_".join(names)
    while name in taken or name + "t" in taken:
        name += "_"
    return name
