r"""Path cumulants for the diagrams, exact and truncated: the same diagrams evaluated with them are the closures.

`Paths` computes what the theory needs and keeps going, with the error it reached, where the tolerance is out of reach.
`SelectedModes` keeps some Hermite degrees of the two-time covariances, `MarkovPaths` replaces them by those of a Markov
chain of the fluctuations of (G, S).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from symtensor.fields.layered import Functions, LayeredNetwork
from symtensor.fields.layered.vertices import PathSource
from symtensor.numerics.path import PathArray, PathLaw, PathNotConverged, leading_order, path_cumulants

__all__ = ["MarkovPaths", "Paths", "SelectedModes"]

#: a relative error beyond this is not reported but refused
WORST = 1e-2
#: eigenvalues of a correlation matrix below this count as zero: two functions are then the same
DEGENERATE = 1e-10


class Paths:
    """Path cumulants to `tol`; where that is not reached, what was reached, recorded in `notes` (pattern -> relative error)."""

    def __init__(self, network: LayeredNetwork, functions: Functions, tol: float, memory_mb: float) -> None:
        self.network, self.functions = network, functions
        self.notes: dict[tuple[int, ...], float] = {}
        self._tol, self._memory = tol, memory_mb
        self._leading: tuple[np.ndarray, np.ndarray, float] | None = None
        self._found: dict[tuple[tuple[int, ...], bool], PathArray] = {}

    def leading(self) -> tuple[np.ndarray, np.ndarray, float]:
        """Kernels (T, P, P), means (T, C), estimated error."""
        if self._leading is None:
            net, functions = self.network, self.functions
            found = leading_order(
                functions.functions, functions.branches, net.drive, net.alpha, net.dt, net.depth, net.kernel,
                tol=max(self._tol, 1e-13),
            )  # fmt: skip
            self._leading = found.kernels, found.means, found.error
        return self._leading

    def cumulants(self, pattern: tuple[int, ...], later_only: bool = False) -> PathArray:
        """The cumulant of len(pattern) legs with derivatives, each once."""
        key = pattern, later_only
        if key not in self._found:
            self._found[key] = self.compute(pattern, later_only, None)
        return self._found[key]

    def compute(self, pattern: tuple[int, ...], later_only: bool, modes: Sequence[int] | None) -> PathArray:
        """The cumulant with only these modes."""
        law = PathLaw(self.leading()[0], self.network.alpha)
        try:
            found = path_cumulants(
                law, self.functions.functions, pattern, tol=self._tol, modes=modes, later_only=later_only, memory_mb=self._memory
            )
        except PathNotConverged as failure:
            found = failure.array
            scale = float(np.abs(found.values).max(initial=0.0))
            if not np.isfinite(found.values).all() or found.error > WORST * scale:
                raise
            if modes is None:
                self.notes[pattern] = found.error / scale
        return PathArray(found.values, found.error)


class SelectedModes:
    """Some Hermite degrees of the two-time covariances; means and one-time derivatives are complete."""

    def __init__(self, base: Paths, modes: Sequence[int]) -> None:
        self._base, self._modes = base, tuple(modes)

    def leading(self) -> tuple[np.ndarray, np.ndarray, float]:
        """As without selection."""
        return self._base.leading()

    def cumulants(self, pattern: tuple[int, ...], later_only: bool = False) -> PathArray:
        """Two legs: the selected degrees; one leg: everything."""
        if len(pattern) == 1:
            return self._base.cumulants(pattern, later_only)
        return self._base.compute(pattern, later_only, self._modes)


class MarkovPaths:
    r"""Two-time covariances of the (G, S) hierarchy: the fluctuations u = (S, G) of one layer carry all memory.

        c(f_k, g_t) = c(f_k, u_k) prod_{k <= j < t-1} [c(u_j, u_j)^{-1} c(u_j, u_{j+1})] c(u_{t-1}, u_{t-1})^{-1} c(u_{t-1}, g_t)

    Covariances at one layer and at adjacent layers stay exact, so that V_4 - w is right to second order in dt; what is lost is
    memory that does not pass through u.
    """

    def __init__(self, base: PathSource) -> None:
        self._base = base
        self._covariances: np.ndarray | None = None

    def leading(self) -> tuple[np.ndarray, np.ndarray, float]:
        """Exact."""
        return self._base.leading()

    def cumulants(self, pattern: tuple[int, ...], later_only: bool = False) -> PathArray:
        """One leg: exact; two legs: propagated by regression."""
        exact = self._base.cumulants(pattern, later_only)
        if len(pattern) == 1:
            return exact
        if pattern == (0, 0):
            return PathArray(self._propagated()[0], exact.error)
        if pattern == (0, 1) and later_only:
            return PathArray(self._derivatives(exact.values), exact.error)
        raise ValueError(f"pattern {pattern}: the Markov closure is made for order 1/n")

    def _propagated(self) -> tuple[np.ndarray, np.ndarray]:
        """c(u_k, u_t), and c(u_k, u_{t-1}) c(u_{t-1}, u_{t-1})^{-1} for k < t (else 0); (T, C, T, C) each."""
        exact = self._base.cumulants((0, 0)).values
        layers, count = exact.shape[:2]
        result, weights = np.zeros_like(exact), np.zeros_like(exact)
        here = np.zeros((layers, count, count))
        for t in range(layers):
            if t:
                inverse = _inverse(exact[t - 1, :, t - 1])
                weights[:t, :, t] = here[:t] @ inverse
                here[:t] = weights[:t, :, t] @ exact[t - 1, :, t]
            here[t] = exact[t, :, t]
            result[: t + 1, :, t] = here[: t + 1]
            result[t, :, : t + 1] = here[: t + 1].transpose(2, 0, 1)
        return result, weights

    def _derivatives(self, exact: np.ndarray) -> np.ndarray:
        weights = self._propagated()[1]
        result = np.zeros_like(exact)
        for t in range(1, len(exact)):
            result[:t, :, t] = np.einsum("kcd,dfe->kcfe", weights[:t, :, t], exact[t - 1, :, t])
        return result


def _inverse(covariance: np.ndarray) -> np.ndarray:
    """The pseudo-inverse of a covariance, by its correlations: equal functions (linear activation, equal inputs) are one."""
    deviation = np.sqrt(np.maximum(np.diagonal(covariance), 0.0))
    scale = np.where(deviation > 0, 1 / np.where(deviation > 0, deviation, 1.0), 0.0)
    return scale[:, None] * np.linalg.pinv(covariance * scale[:, None] * scale, rcond=DEGENERATE, hermitian=True) * scale
