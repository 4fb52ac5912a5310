"""What one run found out beyond the exact theory, as a value: truncations, parts, other activations, the limit dt -> 0."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from derivations.layered_network.activations import Row
from derivations.layered_network.closure import Part
from derivations.layered_network.continuous import Limit
from derivations.layered_network.theory import Exact

__all__ = ["Diagnosis", "first_depth_off"]

#: a closure holds as far as it is within this of the exact theory
WINDOW = 0.05


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """Truncated theories by name, contributions of Hermite degrees, and comparisons.

    `closures` are those at converged expectations (`kernel_only`, `V4_for_w`, `one_mode`), `markov` the (G, S) hierarchy,
    `modes` the parts of the exact theory by Hermite degree, `gauss_hermite` the published closure with 32 nodes.
    """

    exact: Exact
    closures: dict[str, Part]
    markov: Part
    modes: dict[str, Part]
    rows: tuple[Row, ...]
    gauss_hermite: Part
    limit: Limit

    def closure_error(self, quantity: str) -> dict[str, np.ndarray]:
        """kernel-only minus exact as a sum: the step's order in dt, V_4 in place of V_4 - w (K_1 only), the left-out degrees."""
        get = {name: np.asarray(getattr(closure, quantity)) for name, closure in self.closures.items()}
        parts = {"step O(dt)": get["kernel_only"] - get["V4_for_w"]}
        if quantity == "K1":
            parts["V_4 for V_4 - w"] = get["V4_for_w"] - get["one_mode"]
        left_out = {f"degree {name}": -getattr(part, quantity) for name, part in self.modes.items() if name != "2"}
        return parts | left_out


def first_depth_off(closure: np.ndarray, exact: np.ndarray, level: float = WINDOW) -> int | None:
    """The first depth at which a closure differs from the exact theory by more than `level` of the largest component there."""
    axes = tuple(range(1, exact.ndim))
    scale, gap = np.abs(exact).max(axis=axes), np.abs(closure - exact).max(axis=axes)
    off = np.flatnonzero(gap > np.maximum(level * scale, 1e-12))
    return int(off[0]) if off.size else None
