"""The coefficients of the expansion of a layered network, by observable."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np

from symtensor.fields.layered.diagram_terms import LayeredSum
from symtensor.fields.layered.errors import LayeredError
from symtensor.fields.layered.network import Functions, LayeredNetwork
from symtensor.fields.layered.program import Program
from symtensor.fields.layered.vertices import PathSource

__all__ = ["LayeredExpansion"]


@dataclass(frozen=True, eq=False)
class LayeredExpansion:
    """What `expand` returns: arrays over all layers 0 .. depth (first axis) and inputs.

    Attributes:
        network, functions: the model, and the functions that are followed.
        order: the highest order in 1/n.
        kernels: K_0, (T, P, P).
        means, slope: order n^0 of all components, (T, C), and dE[h]/dK, (T, C, E), over pairs a <= b of inputs.
        errors: estimated absolute error of the worst entry of each path cumulant.
    """

    network: LayeredNetwork
    functions: Functions
    order: int
    program: Program
    kernels: np.ndarray
    means: np.ndarray
    slope: np.ndarray
    values: Mapping[str, np.ndarray]
    source: PathSource
    errors: Mapping[str, float]
    vertices: Mapping[str, np.ndarray]

    # -- values --------------------------------------------------------------------------------------------------------

    def mean(self, name: str, order: int = 1) -> np.ndarray:
        """The coefficient of n^{-order} in E (1/n) sum_i f(phi_i(a)) f(phi_i(b)), shape (T, P, P); K_1 is mean("G", 1)."""
        packed = self.means if order == 0 else self._value(1, order)
        return self._unpacked(packed[:, self._part(name)], 1)

    def covariance(self, first: str, second: str, order: int = 0, times: Literal["equal", "all"] = "equal") -> np.ndarray:
        """The coefficient of n^{-order} in n Cov(X_ab, Y_cd): (T, P, P, P, P), or for all two layers (T, T, P, P, P, P).

        All pairs of layers are available at order 0.
        """
        value = self._value(2, order)
        one, other = self._part(first), self._part(second)
        if times not in ("equal", "all"):
            raise LayeredError(f"times={times!r}: 'equal' or 'all'")
        if order > 0:
            if times == "all":
                raise LayeredError(f"times='all' with order={order}: covariances at two different layers are given at order 0 only")
            return self._unpacked(value[:, one, other], 1)
        if times == "all":
            return self._unpacked(value[:, one, :, other].transpose(0, 2, 1, 3), 2)
        layers = np.arange(len(value))
        return self._unpacked(value[layers, :, layers][:, one, other], 1)

    def third_cumulant(self, name: str, second: str = "", third: str = "", order: int = 0) -> np.ndarray:
        """The coefficient of n^{-order} in n^2 kappa_3 of three observables (of one, by default): (T, P, P, P, P, P, P)."""
        places = [self._part(each) for each in (name, second or name, third or name)]
        return self._unpacked(self._value(3, order)[:, places[0], places[1], places[2]], 1)

    def non_gaussian_mean(self, name: str) -> np.ndarray:
        """U_1 = S_1 - (dE[h]/dK) K_1, shape (T, P, P): what remains of n (E S - E_{N(0, E G)} h) as n -> infinity.

        Needs the observable "G".
        """
        shift = self._value(1, 1)[:, self._part("G")]
        part = self._part(name)
        return self._unpacked(self._value(1, 1)[:, part] - np.einsum("tce,te->tc", self.slope[:, part], shift), 1)

    def _value(self, legs: int, order: int) -> np.ndarray:
        key = f"cumulant_{legs}_{order}"
        if key not in self.values:
            has = ", ".join(f"{output.total.legs} legs with {output.total.loops} loops" for output in self.program.outputs)
            raise LayeredError(f"the cumulant of {legs} legs with {order} loops is not in this expansion, which has {has}")
        return self.values[key]

    def _part(self, name: str) -> slice:
        pairs = len(self.network.pairs)
        place = self.functions.place(name)
        return slice(place * pairs, (place + 1) * pairs)

    def _unpacked(self, packed: np.ndarray, layers: int) -> np.ndarray:
        """Pairs a <= b in the axes after `layers` axes -> two axes of inputs each."""
        size = self.network.inputs
        place = np.empty((size, size), int)
        rows, columns = np.triu_indices(size)
        place[rows, columns] = place[columns, rows] = np.arange(len(rows))
        for axis in reversed(range(layers, packed.ndim)):
            packed = np.take(packed, place, axis=axis)
        return packed

    # -- where they come from ------------------------------------------------------------------------------------------

    @property
    def terms(self) -> tuple[LayeredSum, ...]:
        """The sums of diagrams that were evaluated."""
        return tuple(output.total for output in self.program.outputs)

    @property
    def module(self) -> Any:
        """The generated module (`source`, `write`)."""
        return self.program.module

    @cached_property
    def error(self) -> float:
        """The largest estimated error of a result, relative to the largest entry of it; see `relative_errors`."""
        return max(self.relative_errors.values())

    @cached_property
    def relative_errors(self) -> dict[str, float]:
        """For each output the sum of its changes when each path cumulant is changed by its estimated error, all entries alike."""
        from symtensor.fields.layered.sensitivity import relative_errors

        return relative_errors(self)

    def __repr__(self) -> str:
        names: Sequence[str] = [total.title.split(":")[0] for total in self.terms]
        return f"<LayeredExpansion of {self.network!r} to order 1/n^{self.order}: {'; '.join(names)}>"
