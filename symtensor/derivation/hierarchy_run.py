"""A finished run of a kernel hierarchy as a value: what its report, its terminal table and its files are made from."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from symtensor.derivation.compare import RELATIVE_LEVEL, Z_LEVEL, Comparison, compare_all
from symtensor.derivation.model import CheckResult, Derivation, Step
from symtensor.derivation.results import Labelled

if TYPE_CHECKING:
    from symtensor.derivation.document import Document


class EstimateLike(Protocol):
    """A simulated quantity: mean and standard error on the same axes as the theory."""

    @property
    def mean(self) -> np.ndarray: ...

    @property
    def se(self) -> np.ndarray: ...


@dataclass(frozen=True, slots=True)
class Quantity:
    """A quantity with a theory and an estimate: keys in `theory`, `simulation` and `theory_ode`, and how it is written.

    `alternative` is the key of the theory that the comparison must be able to reject; without one it is the theory
    itself, off by the relative level.
    """

    name: str
    theory: str
    estimate: str
    latex: str
    text: str
    meaning: str
    ode: str = ""
    alternative: str = ""


K_0 = Quantity(
    "K", "K0", "K", "K_0", "K_0", "mean kernel at infinite width; at width $n$ the mean differs by $K_1/n$", ode="K0"
)
V_4 = Quantity("V4", "V4_kernel_only", "V4", "V_4", "V_4", "kernel covariance times $n$, kernel-only", ode="V4")
K_1 = Quantity("K1", "K1_kernel_only", "K1", "K_1", "K_1", "mean correction times $n$, kernel-only", ode="K1")
U_MODEL = Quantity("U1_model", "U1_model", "U1", r"U_1^{\mathrm{model}}", "U_1 model", "source of $K_1$ in the model")
U_EXACT = Quantity(
    "U1_exact", "U1_exact", "U1", r"U_1^{\mathrm{exact}}", "U_1 exact", "source of $K_1$, exact where known",
    alternative="U1_model",
)  # fmt: skip
V_4_EXACT_STEP = Quantity(
    "V4_one_mode", "V4_one_mode", "V4", r"V_4^{\mathrm{one\,mode}}", "V_4 one mode",
    "the same closure with the layer's step exact in $dt$",
)  # fmt: skip
MAIN = (K_0, V_4, K_1)
SOURCES = (V_4_EXACT_STEP, U_MODEL, U_EXACT)


@dataclass(frozen=True, slots=True)
class HierarchyRun:
    """Everything a report of a kernel hierarchy shows. Arrays have the depth 0..L as first axis, then input indices.

    `theory` and `theory_ode` hold `Labelled` arrays by key; `simulation` has an attribute with `.mean` and `.se` for
    the `estimate` of each quantity, and may have `gain` (variance gain of the control variates, by name).
    `residual` holds `source` and `transport`, the two summands of K_1 (simulated) - K_1 (theory) at each depth, with
    first axis 0..L or 1..L. `checks` are the verdicts of the steps; None runs them when the report is made. Each of
    `sections` adds what is particular to a derivation to the report, after the comparison with simulation.
    """

    derivation: Derivation
    steps: tuple[Step, ...]
    parameters: Mapping[str, Any]
    inputs: str
    t: np.ndarray
    theory: Mapping[str, Labelled]
    quadrature: Mapping[str, Any]
    theory_ode: Mapping[str, Labelled] | None = None
    simulation: Any = None
    residual: Mapping[str, np.ndarray] | None = None
    condition: float | None = None
    labels: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    module_source: str = ""
    versions: Mapping[str, str] = field(default_factory=dict)
    timings: Mapping[str, float] = field(default_factory=dict)
    command: str = ""
    checks: tuple[CheckResult, ...] | None = None
    main: tuple[Quantity, ...] = MAIN
    sources: tuple[Quantity, ...] = SOURCES
    z_level: float = Z_LEVEL
    relative_level: float = RELATIVE_LEVEL
    files: tuple[tuple[str, str], ...] = ()
    sections: tuple[Callable[[Document], None], ...] = ()

    @property
    def depth(self) -> int:
        """L, the number of layers."""
        return len(self.t) - 1

    @property
    def count(self) -> int:
        """P, the number of inputs."""
        return self.values(self.main[0].theory).shape[1]

    @property
    def quantities(self) -> tuple[Quantity, ...]:
        """Those that `theory` has, main ones first."""
        return tuple(quantity for quantity in (*self.main, *self.sources) if quantity.theory in self.theory)

    def values(self, key: str) -> np.ndarray:
        """The array of `theory[key]`."""
        return np.asarray(self.theory[key].values)

    def estimate(self, quantity: Quantity) -> EstimateLike | None:
        """The simulated counterpart of `quantity`, None without simulation."""
        return None if self.simulation is None else getattr(self.simulation, quantity.estimate, None)

    def comparisons(self) -> dict[str, Comparison]:
        """Theory against simulation by quantity name; empty without simulation."""
        if self.simulation is None:
            return {}
        pairs = {quantity.name: (quantity.theory, quantity.estimate) for quantity in self.quantities}
        return compare_all(self.theory, self.simulation, pairs)

    def _repr_html_(self) -> str:
        from symtensor.derivation.hierarchy_report import hierarchy_document

        return hierarchy_document(self).fragment()

    def alternative(self, quantity: Quantity) -> tuple[np.ndarray, str]:
        """The values that a comparison of `quantity` must be able to reject, and their description."""
        if quantity.alternative in self.theory:
            known = {item.theory: f"${item.latex}$" for item in self.quantities}
            return self.values(quantity.alternative), known.get(quantity.alternative, f"`{quantity.alternative}`")
        return self.values(quantity.theory) * (1 + self.relative_level), f"theory off by {self.relative_level:.0%}"


def shown_depths(last: int, count: int = 20) -> list[int]:
    """At most `count` depth indices from 0 to `last`, evenly spread, both ends included."""
    if last < count:
        return list(range(last + 1))
    return sorted({round(index * last / (count - 1)) for index in range(count)})


def components(inputs: int, axes: int) -> list[tuple[int, ...]]:
    """Up to four representative components of a tensor with `axes` input axes (2 or 4), diagonal ones first."""
    if inputs == 1:
        return [(0,) * axes]
    pairs = [(0, 0), (0, 1), (1, 1)] + ([(0, 2)] if inputs > 2 else [])
    if axes == 2:
        return pairs
    return [(0, 0, 0, 0), (0, 0, 0, 1), (0, 1, 0, 1), (0, 0, 1, 1)]


def component_name(component: tuple[int, ...]) -> str:
    """Input numbers from 1, pairs separated by a comma: (0, 0, 0, 1) is `11,12`."""
    words = [str(index + 1) for index in component]
    separator = "" if max(component, default=0) < 9 else " "
    half = len(words) // 2
    return separator.join(words) if len(words) < 4 else f"{separator.join(words[:half])},{separator.join(words[half:])}"
