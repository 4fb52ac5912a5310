r"""The network: equations, field theory, diagram sums; and its moments by the moment hierarchy, without diagrams."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import sympy as sp

from symtensor.activation import X, activation
from symtensor.derivation.settings import OptionError
from symtensor.fields import DiagramSum, FieldTheory
from symtensor.fields.free import LinearFree
from symtensor.fields.loop_hierarchy import loop_cumulant
from symtensor.fields.time_series import TimeSeries

__all__ = ["DEFAULT", "PAIRS", "VARIABLES", "D", "Network", "read_network"]

VARIABLES = sp.symbols("u v", real=True)
D = sp.Symbol("D", positive=True)
#: two-point functions by name: (later leg, earlier leg)
PAIRS = {"uu": (0, 0), "uv": (0, 1), "vu": (1, 0), "vv": (1, 1)}


@dataclass(frozen=True, slots=True)
class Network:
    """tau_i dx_i = (-x_i + phi(weights_i . x + inputs_i)) dt + tau_i sqrt(2 D) dW_i, x = (u, v), tau = (1, tau).

    `phi` is an expression in `symtensor.activation.X`; weights, inputs and tau are exact rationals. `start` is the fixed point to
    expand about, as decimals, if there are several stable ones.
    """

    name: str
    phi: sp.Expr
    weights: tuple[tuple[Any, Any], tuple[Any, Any]]
    inputs: tuple[Any, Any]
    tau: Any = sp.S.One
    start: tuple[Any, ...] | None = None

    @property
    def times(self) -> tuple[sp.Expr, sp.Expr]:
        """The time constants."""
        return sp.S.One, self.tau

    def drives(self, point: Sequence[Any] = VARIABLES) -> tuple[sp.Expr, ...]:
        """The arguments of phi, weights . x + inputs."""
        return tuple(sp.Add(*(w * x for w, x in zip(row, point)), h) for row, h in zip(self.weights, self.inputs))

    def drift(self) -> dict[sp.Symbol, sp.Expr]:
        """f(x)."""
        return {x: (-x + self.phi.subs(X, s)) / t for x, s, t in zip(VARIABLES, self.drives(), self.times)}

    @property
    def theory(self) -> FieldTheory:
        """The field theory about the fixed point; D stays a symbol. Raises TheoryError: no, or several, stable fixed points."""
        return _theory(self)

    @property
    def linear(self) -> LinearFree:
        """The linear equation at the fixed point."""
        free = self.theory.free
        assert isinstance(free, LinearFree)
        return free

    @property
    def point(self) -> tuple[sp.Expr, ...]:
        """The fixed point."""
        return tuple(map(sp.sympify, self.theory.saddle))

    def mean(self, variable: int, loops: int = 1) -> DiagramSum:
        """<u> or <v>."""
        return _cumulant(self, (variable,), loops)

    def covariance(self, pair: str, loops: int = 1) -> DiagramSum:
        """<x_i(t) x_j(0)> - <x_i><x_j>; `pair` is a key of PAIRS."""
        return _cumulant(self, PAIRS[pair], loops)

    def slopes(self, order: int) -> tuple[sp.Expr, ...]:
        """The derivative of phi of the given order at the two arguments of the fixed point, to 30 digits."""
        derivative = sp.diff(self.phi, X, order) if order else self.phi
        return tuple(sp.sympify(derivative.subs(X, s)).evalf(30) for s in self.drives(self.point))

    def without_diagrams(self, legs: Any, loops: int) -> TimeSeries:
        """A cumulant by number of loops, from the moment hierarchy of the drift expanded about the fixed point.

        legs: {variable number: power} at equal times, or a sequence of these, the latest first.
        """
        groups = legs if isinstance(legs, list | tuple) else [legs]
        return _hierarchy(self, tuple(tuple(sorted(group.items())) for group in groups), loops)


@cache
def _theory(network: Network) -> FieldTheory:
    noise = {x: sp.sqrt(2 * D) for x in VARIABLES}
    point = dict(zip(VARIABLES, network.start)) if network.start else None
    return FieldTheory.langevin(network.drift(), noise, point=point, name="rate-network")


@cache
def _cumulant(network: Network, legs: tuple[int, ...], loops: int) -> DiagramSum:
    return network.theory.cumulant(",".join(str(VARIABLES[leg]) for leg in legs), loops)


@cache
def _hierarchy(network: Network, groups: tuple[tuple[tuple[int, int], ...], ...], loops: int) -> TimeSeries:
    """With y = x - x*: tau f_i = -y_i + sum_k phi^(k)(s_i) (w_i . y)^k / k!, as far as the order needs it."""
    count = sum(power for group in groups for _, power in group)
    drift = []
    for i, (y, row, t) in enumerate(zip(VARIABLES, network.weights, network.times)):
        drive = sp.Add(*(w * other for w, other in zip(row, VARIABLES)))
        # the numbers of the fixed point have 30 digits; as rationals they keep the hierarchy exact
        terms = [sp.Rational(str(network.slopes(k)[i])) * drive**k / sp.factorial(k) for k in range(1, max(count + 2 * loops, 3))]
        drift.append(sp.expand((-y + sp.Add(*terms)) / t))
    legs = [{VARIABLES[variable]: power for variable, power in group} for group in groups]
    return loop_cumulant(dict(zip(VARIABLES, drift)), {x: sp.sqrt(2 * D) for x in VARIABLES}, VARIABLES, legs, loops)


def _network(name: str, phi: sp.Expr, numbers: Mapping[str, Any], start: Any = None) -> Network:
    a, b, c, d, h, k, tau = (sp.Rational(str(numbers[key])) for key in ("a", "b", "c", "d", "h_u", "h_v", "tau"))
    point = None if start is None else tuple(sp.Float(str(x)) for x in start)  # decimals are refined
    return Network(name, phi, ((a, -b), (c, -d)), (h, k), tau, point)


def read_network(settings: Mapping[str, Any]) -> Network:
    """The network that the options describe.

    Raises:
        ActivationError: the nonlinearity cannot be read. OptionError: it has kinks or is linear, or only one of u0 and v0 is given.
    """
    function = activation(settings["nonlinearity"])
    if not function.smooth:
        kinks = ", ".join(map(str, function.kinks))
        raise OptionError(
            f"--nonlinearity {function.name} has a kink at x = {kinks}, and no expansion in powers about every fixed point; use a "
            "smooth one, for example softplus for relu"
        )
    if sp.diff(function.expr, X, 2) == 0:
        raise OptionError(f"--nonlinearity {function.name} is linear: there are no vertices and no loops; use a curved one")
    given = [key for key in ("u0", "v0") if settings[key] is not None]
    if len(given) == 1:
        raise OptionError(f"--{given[0]} alone does not name a fixed point; give both --u0 and --v0, or none")
    start = (settings["u0"], settings["v0"]) if given else None
    return _network(function.name, function.expr, settings, start)


DEFAULT = _network("tanh", activation("tanh").expr, {"a": "1.5", "b": 1, "c": 1, "d": "0.5", "h_u": "0.3", "h_v": "-0.2", "tau": 1})
