"""From a request to numbers: the diagrams, their truncations, and what each Hermite degree contributes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from derivations.layered_network.closure import OneTime, Part, closures, one_time, one_time_by_rule
from derivations.layered_network.paths import MarkovPaths, Paths, SelectedModes
from derivations.layered_network.request import Request
from symtensor.activation import Activation
from symtensor.fields.layered import LayeredExpansion, LayeredNetwork, expand
from symtensor.numerics.rules import Rule

__all__ = ["MODES", "Exact", "baseline", "exact_theory", "fixed_rule", "markov_theory", "mode_parts"]

#: Hermite degrees of the two-time covariances that are shown one by one, and what they are called; the rest is a difference
MODES: Mapping[str, tuple[int, ...]] = {"2": (2,), "4": (4,), "6": (6,), "odd, 1 to 7": (1, 3, 5, 7)}
#: the quadrature of the published numbers
PUBLISHED_RULE = Rule("gh", 32)


@dataclass(frozen=True, slots=True)
class Exact:
    """The expansion with the path cumulants it was made from; `notes` says where the tolerance was not reached."""

    expansion: LayeredExpansion
    paths: Paths
    tol: float
    memory_mb: float
    notes: tuple[str, ...] = field(default=())

    @property
    def network(self) -> LayeredNetwork:
        """The model."""
        return self.expansion.network

    @property
    def part(self) -> Part:
        """V_4, K_1, U_1."""
        return _part(self.expansion)

    @property
    def law(self) -> OneTime:
        """The expectations that the closures use."""
        return one_time(self.paths, len(self.network.pairs))

    def arrays(self) -> dict[str, np.ndarray]:
        """Everything by name, as the summary has it."""
        found = self.expansion
        part = self.part
        arrays = {
            "K0": found.kernels, "V4": part.V4, "K1": part.K1, "S0": found.mean("S", 0), "S1": found.mean("S", 1), "U1": part.U1,
        }  # fmt: skip
        if found.order > 1:
            arrays |= {"K2": found.mean("G", 2), "V4_1": found.covariance("G", "G", 1), "kappa3": found.third_cumulant("G")}
        return arrays


def exact_theory(network: LayeredNetwork, order: int, tol: float, memory_mb: float) -> Exact:
    """The expansion of G and S of a network.

    Raises
    ------
    ValueError
        Divergence (the layer is named), no second moment, more memory than allowed, a tolerance far out of reach.
    """
    paths = Paths(network, network.functions(), tol, memory_mb)
    expansion = expand(network, order, tol=tol, memory_mb=memory_mb, paths=paths)
    notes = tuple(
        f"path cumulants of pattern {pattern} are known to {error:.1e} of the largest one, not to {tol:.1e}: {_reason(network)}"
        for pattern, error in paths.notes.items()
    )
    return Exact(expansion, paths, tol, memory_mb, notes)


def _reason(network: LayeredNetwork) -> str:
    function = network.branches[0].activation
    if function.smooth:
        return "neighbouring layers are almost equal, and the series in Hermite degrees converges slowly there"
    return f"{function.name} has a kink, and the series in Hermite degrees converges slowly between neighbouring layers"


def _part(expansion: LayeredExpansion) -> Part:
    return Part(expansion.covariance("G", "G"), expansion.mean("G", 1), expansion.non_gaussian_mean("S"))


def mode_parts(exact: Exact) -> dict[str, Part]:
    """The contributions of the Hermite degrees `MODES` and of all others to V_4, K_1, U_1; their sum is the theory.

    V_4, K_1 and U_1 at order 1/n are linear in the two-time covariances, so that the contributions add up exactly.
    """
    total, parts = exact.part, {}
    for name, modes in MODES.items():
        source = SelectedModes(exact.paths, modes)
        parts[name] = _part(expand(exact.network, 1, tol=exact.tol, memory_mb=exact.memory_mb, paths=source))
    rest = (getattr(total, key) - sum(getattr(part, key) for part in parts.values()) for key in ("V4", "K1", "U1"))
    return {**parts, "others": Part(*rest)}


def markov_theory(exact: Exact) -> Part:
    """The (G, S) hierarchy: the same diagrams with two-time covariances carried by the fluctuations of G and S."""
    source = MarkovPaths(exact.paths)
    return _part(expand(exact.network, 1, tol=exact.tol, memory_mb=exact.memory_mb, paths=source))


def baseline(exact: Exact) -> dict[str, Part]:
    """The closures at the converged expectations."""
    return closures(exact.network, exact.law)


def fixed_rule(request: Request, function: Activation, kernel: np.ndarray | None = None) -> Part:
    """The published closure with the published quadrature, 32-point Gauss-Hermite.

    Derivatives are taken inside the expectation where the activation has them, as published, and by parts otherwise.
    """
    network = request.network_of(function, kernel)
    law = one_time_by_rule(network, function, PUBLISHED_RULE, "inside" if function.smooth else "hermite")
    return closures(network, law)["kernel_only"]
