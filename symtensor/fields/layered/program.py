"""Sums of diagrams of a layered network -> kernels -> one generated module."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import sympy as sp

from symtensor._codegen import codegen
from symtensor.fields.layered.diagram_terms import LayeredSum
from symtensor.fields.layered.plan import AXES, Plan, canonical, shape_of
from symtensor.fields.layered.tensor_network import Array, Index, TensorNetwork
from symtensor.kernels import Argument, Assignment, CompositeKernel, TensorKernel
from symtensor.tensor import Index as TensorIndex
from symtensor.tensor import Tensor, TensorExpr

__all__ = ["Output", "Program"]

STATEMENT = (
    "R = n <s J>, C = n <s s>, with K for s where the line ends on the variance of a cumulant's leg; kappa_<axes>_<pattern> "
    "joint cumulants along the path of one neuron with derivatives with respect to variances; A_b = d^b K / dS^b. T: layers, "
    "C: components, F: those that feed forward, E: pairs of inputs. Each sum of amputated diagrams is contracted with its "
    "external lines at the end."
)


@dataclass(frozen=True, slots=True)
class Output:
    """A sum of diagrams as an output called `name`; `equal`: all external legs at one layer, else each has its own axis."""

    name: str
    total: LayeredSum
    equal: bool = True

    @property
    def axes(self) -> tuple[Index, ...]:
        """Time and component of each leg; one time for all of them if they are equal."""
        legs = range(self.total.legs)
        if self.equal:
            return (("T", 0), *(("C", at) for at in legs))
        return tuple(index for at in legs for index in (("T", at), ("C", at)))


@dataclass(frozen=True, eq=False)
class Program:
    """The kernels of some outputs, planned for given lengths of the axes.

    Attributes:
        arrays: names of the arrays that the function `diagrams` takes, in order (see `plan.shape_of`).
        later_only: whether cumulants of two legs with one derivative are used only with the other leg strictly earlier.
    """

    outputs: tuple[Output, ...]
    plan: Plan
    sums: tuple[TensorKernel, ...]
    assignments: tuple[Assignment, ...]
    returned: tuple[str, ...]
    arrays: tuple[str, ...]
    later_only: bool

    @classmethod
    def of(cls, outputs: Sequence[Output], degree: int | None, sizes: Mapping[str, int], limit: float = float("inf")) -> Program:
        """Plan the outputs; `degree` is the highest nonzero derivative of Sigma, `limit` the most entries of an intermediate."""
        plan, builder = Plan(sizes, limit), _Sums()
        networks = {output: [n for term in output.total for n in term.networks(degree)] for output in outputs}
        returned = tuple(builder.output(plan, output, found) for output, found in networks.items())
        everything = [network for found in networks.values() for network in found]
        names = {array.name for network in everything for array in (*network.internal, *network.external)}
        later = all(_later(network) for network in everything)
        return cls(tuple(outputs), plan, tuple(builder.kernels), tuple(plan.calls), returned, tuple(sorted(names)), later)

    @property
    def megabytes(self) -> float:
        """Float64 memory of the arguments (with a copy for the compiled function) and of the largest intermediates."""
        entries = sum(self.plan.size(tuple((kind, 0) for kind in shape_of(name))) for name in self.arrays)
        return 8e-6 * (2 * entries + 3 * self.plan.largest)

    def spec(self, name: str = "layered_network") -> Any:
        """The specification of the module, with one function `diagrams`."""
        arguments = tuple(Argument(array, shape_of(array)) for array in self.arrays)
        returns = tuple(Argument(value, tuple(kind for kind, _ in o.axes)) for value, o in zip(self.returned, self.outputs))
        title = "Coefficients of the expansion in 1/n, by the diagrams of the action n[Shat.S + W]."
        main = CompositeKernel("diagrams", arguments, self.assignments, returns, title)
        kernels = (*self.plan.kernels.values(), *self.sums, main)
        return codegen().ModuleSpec(name, title, kernels, statement=STATEMENT, reference_points=False)

    @cached_property
    def module(self) -> Any:
        """The generated module (`source`, `write`, `load`)."""
        return codegen().generate(self.spec())

    @property
    def title(self) -> str:
        """The outputs in words."""
        return "; ".join(output.total.title.split(":")[0] for output in self.outputs)


class _Sums:
    """Networks summed before their external lines are attached."""

    def __init__(self) -> None:
        self.kernels: list[TensorKernel] = []

    def output(self, plan: Plan, output: Output, networks: Sequence[TensorNetwork]) -> str:
        """Plan one output; the name of its array."""
        groups: dict[tuple[Array, ...], dict[tuple[Array, ...], Fraction]] = {}
        for network in networks:
            external, internal = _normal(network)
            members = groups.setdefault(external, {})
            members[internal] = members.get(internal, Fraction(0)) + network.coefficient
        values = []
        for external, members in groups.items():
            inner = _inner(external)
            terms = [(plan.contract(internal, inner), weight) for internal, weight in members.items() if internal]
            factors = list(_at_equal_times(external) if output.equal else external)
            if terms:
                factors.append(Array(self._added(plan, terms, inner), inner))
            values.append((plan.contract(factors, output.axes), Fraction(1)))
        return self._added(plan, values, output.axes, output.name)

    def _added(self, plan: Plan, terms: Sequence[tuple[str, Fraction]], axes: tuple[Index, ...], name: str = "") -> str:
        """The sum of arrays with the same axes."""
        weights: dict[str, Fraction] = {}
        for value, weight in terms:
            weights[value] = weights.get(value, Fraction(0)) + weight
        named = name or f"amputated_{len(self.kernels) + 1}"
        indices = tuple(TensorIndex(f"{kind.lower()}{at}", AXES[kind]) for at, (kind, _) in enumerate(axes))
        kinds = tuple(AXES[kind] for kind, _ in axes)
        total = TensorExpr.zero(*indices)
        for value, weight in weights.items():
            total = total + sp.Rational(weight.numerator, weight.denominator) * Tensor(value, kinds)[indices]
        arguments = tuple(Argument(value, tuple(kind for kind, _ in axes)) for value in weights)
        self.kernels.append(TensorKernel(f"sum_{named}", arguments, total, indices))
        plan.calls.append(Assignment((named,), f"sum_{named}", tuple(weights)))
        return named


def _normal(network: TensorNetwork) -> tuple[tuple[Array, ...], tuple[Array, ...]]:
    """External and internal factors with canonical numbers: inner ends of external lines in order, then the rest."""
    outer = {index for pair in network.open_axes for index in pair}
    number: dict[Index, Index] = {}
    for array in network.external:
        for index in array.indices:
            if index not in outer and index not in number:
                number[index] = (index[0], 100 + len(number))
    moved = [Array(a.name, tuple(number.get(i, (i[0], i[1] + 10_000)) for i in a.indices)) for a in network.internal]
    external = tuple(Array(a.name, tuple(number.get(i, i) for i in a.indices)) for a in network.external)
    return external, canonical(moved, tuple(number.values()))


def _inner(external: Sequence[Array]) -> tuple[Index, ...]:
    return tuple(dict.fromkeys(index for array in external for index in array.indices if index[1] >= 100))


def _at_equal_times(external: Sequence[Array]) -> tuple[Array, ...]:
    return tuple(Array(a.name, tuple(("T", 0) if i[0] == "T" and i[1] < 100 else i for i in a.indices)) for a in external)


def _later(network: TensorNetwork) -> bool:
    """Whether each cumulant of two legs with one derivative has the leg without derivatives strictly earlier."""
    earlier = {(a.indices[2], a.indices[0]) for a in network.internal if a.name == "R_EF"}
    used = [a for a in network.internal if a.name.startswith("kappa_") and a.name.endswith("_10")]
    return all((array.indices[2], array.indices[0]) in earlier for array in used)
