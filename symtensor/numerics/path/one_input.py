"""Joint cumulants at up to four times for one input, with derivatives in the variances; modes and nodes by their own errors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from symtensor.activation import Activation
from symtensor.numerics.path.chain import Chain
from symtensor.numerics.path.hermite import Resolution1, Tables
from symtensor.numerics.path.law import PathArray, PathLaw
from symtensor.numerics.path.leg_orders import PackedCumulants, fill
from symtensor.numerics.path.several_inputs import PathNotConverged

__all__ = ["LARGEST_ORDER", "one_input_cumulants"]

#: legs; and derivatives for each number of legs
LARGEST_ORDER = 4
MOST_DERIVATIVES = {1: 6, 2: 4, 3: 3, 4: 2}
#: modes to try: in geometric progression, so that algebraic convergence takes equal ratios
_LADDER = tuple(int(8 * 1.5**k) for k in range(18))
#: the most of them that each number of different times affords
MOST_MODES = {1: _LADDER[0], 2: _LADDER[17], 3: _LADDER[14], 4: _LADDER[13]}
#: wave numbers and radii of the nodes to try
_NODES = tuple(Resolution1(*pair) for pair in ((40, 13), (70, 15), (120, 17), (200, 20), (330, 24), (550, 28), (900, 34)))
_ROUNDING = 2e-15
#: of std(h)^q / K^p: an array whose entries are all smaller is zero
_NEGLIGIBLE = 1e-4
#: of tol: more of the variance of a component may not lie in neglected degrees
_UNSEEN = 1e3


def one_input_cumulants(
    law: PathLaw,
    functions: Sequence[Activation],
    pattern: tuple[int, ...],
    *,
    tol: float = 1e-10,
    later_only: bool = False,
    memory_mb: float = 2048.0,
) -> PathArray:
    r"""Cumulants of f_r(phi)^2 at q <= 4 times along the path of one input and their derivatives in K at these times.

    E[g_1(phi_{t1}) .. g_m(phi_{tm})] is a product of multiplication operators and diagonal transfers rho^n in Hermite
    polynomials (`chain`); cumulants and derivatives are taken of it exactly. The number of modes grows until windows of
    adjacent layers, where rho is largest, stop moving.

    Parameters
    ----------
    law
        (L+1, 1, 1) kernels and alpha.
    functions
        The functions f_r; C = len(functions).
    pattern
        Derivatives at each leg; the array is 0 where l_j = l_i, i < j, and a_j > 0.
    tol
        Error aimed at, relative to the largest entry.
    later_only
        Two legs: only l1 < l2, the rest 0.
    memory_mb
        Refuse to hold more than this.

    Returns
    -------
    PathArray
        values of shape (L+1, C) * q + (1,) * (derivatives).

    Raises
    ------
    PathNotConverged
        The error is above ``tol``; the values reached are in ``.array``.
    NotSquareIntegrableError
        A product of q components has no expectation.
    ValueError
        Several inputs, a pattern that is not done, or more memory than allowed.

    Examples
    --------
    >>> from symtensor.activation import activation
    >>> law = PathLaw(np.array([[[1.0]], [[2.0]]]), 1.0)
    >>> one_input_cumulants(law, [activation("identity")], (1, 0)).values[0, 0, 1, 0].round(12)  # d(2 K_0^2)/dK_0
    array([4.])
    """
    request = _Request.read(law, functions, tuple(pattern), later_only)
    resolution = request.nodes(tol)
    request.require_memory(MOST_MODES[1], resolution, memory_mb)
    modes, error = request.modes(resolution, tol)
    request.require_memory(modes, resolution, memory_mb)
    layers = np.arange(len(request.variances))
    values = request.evaluate(layers, modes, request.tables(layers, modes, resolution))
    scale = float(np.abs(values).max(initial=0.0))
    array = PathArray(values.reshape(values.shape + (1,) * sum(pattern)), error + _ROUNDING * scale)
    if not array.error <= tol * max(scale, request.floor(resolution)):
        names = ", ".join(function.name for function in functions)
        raise PathNotConverged(
            f"pattern {tuple(pattern)} of {names} was computed to {array.error:.2g} (largest entry {scale:.3g}) with {modes} "
            f"modes, not to {tol:.2g} relative; accept that by a larger tolerance, or take larger steps: adjacent layers that "
            "are almost equal need the most modes, the more so at a kink",
            array,  # type: ignore[arg-type]
        )
    return array


@dataclass(frozen=True, slots=True)
class _Request:
    variances: np.ndarray
    alpha: float
    functions: tuple[Activation, ...]
    pattern: tuple[int, ...]
    later_only: bool = False

    @classmethod
    def read(cls, law: PathLaw, functions: Sequence[Activation], pattern: tuple[int, ...], later_only: bool = False) -> _Request:
        kernels = np.asarray(law.kernels, dtype=float)
        if kernels.ndim != 3 or kernels.shape[1:] != (1, 1):
            raise ValueError(f"kernels of shape {kernels.shape}; required (L+1, 1, 1): this is for one input")
        if not functions:
            raise ValueError("no functions are given; at least one is needed")
        legs = len(pattern)
        if not 1 <= legs <= LARGEST_ORDER or any(not isinstance(a, int) or a < 0 for a in pattern):
            raise ValueError(f"pattern {pattern}: give the number of derivatives, 0, 1, .., of one to {LARGEST_ORDER} legs")
        if sum(pattern) > MOST_DERIVATIVES[legs]:
            raise ValueError(
                f"pattern {pattern} has {sum(pattern)} derivatives; done are at most {MOST_DERIVATIVES[legs]} for {legs} legs, "
                "which two loops need"
            )
        variances = kernels[:, 0, 0]
        if not np.isfinite(variances).all() or (variances < 0).any():
            layer = int(np.argmax(~np.isfinite(variances) | (variances < 0)))
            raise ValueError(f"the variance of layer {layer} is {variances[layer]}; it is finite and not negative")
        for layer, variance in enumerate(variances):
            for function in functions:
                # a product of q components is f^(2 q), whose growth is that of f^2 at q times the variance
                if variance > 0:
                    function.require_square_integrable(legs * float(variance), f"power {2 * legs}, layer {layer}")
        return cls(variances, float(law.alpha), tuple(functions), pattern, later_only)

    @property
    def derivatives(self) -> int:
        return sum(self.pattern)

    def tables(self, layers: np.ndarray, modes: int, resolution: Resolution1) -> Tables:
        """Hermite functions and components at some layers."""
        # the expectation of one leg is not a cumulant of centred components only if it has no derivative
        degree = modes + 2 * self.derivatives
        return Tables.of(self.variances[layers], self.functions, resolution, degree, centred=self.pattern != (0,))

    def evaluate(self, layers: np.ndarray, modes: int, tables: Tables) -> np.ndarray:
        """(T, C) * q at some layers, increasing, with their tables."""
        count = len(self.functions)
        chain = Chain(self.variances[layers], layers, self.alpha, tables, modes)
        out = np.zeros((len(layers), count) * len(self.pattern))
        fill(PackedCumulants.of(chain.moment, len(layers), count), self.pattern, out, self.later_only)
        return out

    def at_windows(self, windows: Sequence[np.ndarray], modes: int, resolution: Resolution1) -> tuple[list[np.ndarray], Tables]:
        """The cumulants at windows of layers, and the tables, which are made but once."""
        layers = np.unique(np.concatenate(windows))
        tables = self.tables(layers, modes, resolution)
        return [self.evaluate(w, modes, tables.part(np.searchsorted(layers, w))) for w in windows], tables

    def floor(self, resolution: Resolution1) -> float:
        """A small fraction of the size that a cumulant of this order could have: what is below it vanishes but for rounding."""
        layers = np.flatnonzero(self.variances > 0)
        if not len(layers):
            return 0.0
        tables = Tables.of(self.variances[layers], self.functions, resolution, 0)
        spread = [np.sqrt(((values * tables.at(at)[0]) ** 2).sum(axis=1).max()) for at, values in enumerate(tables.values)]
        size = np.array(spread) ** len(self.pattern) / self.variances[layers] ** self.derivatives
        return _NEGLIGIBLE * float(size.max())

    # -- resolution ------------------------------------------------------------------------------------------------

    def nodes(self, tol: float) -> Resolution1:
        """The coarsest nodes at which Hermite coefficients of the highest products have stopped moving."""
        layers = sorted({int(np.argmin(self.variances)), int(np.argmax(self.variances))})
        degree = 16 + 2 * self.derivatives
        before = None
        for at, resolution in enumerate(_NODES):
            found = self._coefficients(layers, resolution, degree)
            if before is not None and self._moved(before, found) <= max(0.01 * tol, 1e-14):
                return _NODES[at - 1]
            before = found
        return _NODES[-1]

    def _coefficients(self, layers: list[int], resolution: Resolution1, degree: int) -> np.ndarray:
        with np.errstate(over="ignore", invalid="ignore"):
            tables = Tables.of(self.variances[layers], self.functions, resolution, degree)
            found = []
            for at in range(len(layers)):
                for size in range(1, len(self.pattern) + 1):
                    A = tables.at(at)
                    found.append((tables.products(at, size) * A[0]) @ A.T)
        return np.concatenate(found)

    @staticmethod
    def _moved(first: np.ndarray, second: np.ndarray) -> float:
        size = np.linalg.norm(second, axis=1)
        gap = np.abs(first - second).max(axis=1)
        relative = np.divide(gap, size, out=np.zeros_like(gap), where=size > 0)
        return float(np.nan_to_num(relative, nan=np.inf).max())

    def modes(self, resolution: Resolution1, tol: float) -> tuple[int, float]:
        """How many modes, and the error of the worst entry: truncation and quadrature, at windows of adjacent layers."""
        windows, most = self._windows(), MOST_MODES[min(len(self.pattern), len(self.variances))]
        floor = self.floor(resolution)
        before: list[np.ndarray] = []
        moved = last = np.inf
        chosen, scale = _LADDER[0], floor
        for modes in (number for number in _LADDER if number <= most):
            chosen, last = modes, moved
            found, tables = self.at_windows(windows, modes, resolution)
            scale = max(floor, *(float(np.abs(values).max()) for values in found))
            if before:
                moved = max(float(np.abs(a - b).max()) for a, b in zip(before, found))
            before = found
            if most == MOST_MODES[1]:
                moved = 0.0
            elif max(moved, self._left_out(moved, last) / 0.7) <= tol * scale and self._missing(modes, tables) <= _UNSEEN * tol:
                # without the second a function that lives in high degrees alone would look converged too early
                break
        finer = _NODES[min(_NODES.index(resolution) + 1, len(_NODES) - 1)]
        again = self.at_windows(windows, chosen, finer)[0]
        quadrature = max(float(np.abs(a - b).max()) for a, b in zip(again, before))
        return chosen, self._left_out(moved, last) + quadrature

    def _missing(self, modes: int, tables: Tables) -> float:
        """The fraction of the variance in neglected degrees, as far as it reaches the most similar neighbouring layer."""
        if not self.alpha:
            return 0.0
        before, after = self.variances[:-1], self.variances[1:]
        rho2 = self.alpha**2 * np.divide(before, after, out=np.zeros_like(before), where=after > 0)
        reach = float(np.minimum(rho2.max(initial=0.0), 1.0)) ** (modes / 2)
        return reach * tables.missing(modes)

    @staticmethod
    def _left_out(moved: float, last: float) -> float:
        """What is still missing after a step that moved the values by `moved` and one before by `last`: geometric, doubled."""
        ratio = float(np.clip(moved / last, 0.0, 0.9)) if np.isfinite(last) and last > 0 else 0.5
        return 2 * moved * max(ratio / (1 - ratio), 0.5)

    def _windows(self) -> list[np.ndarray]:
        """As many adjacent layers as there are legs: at the start, at the end, and where neighbours are most alike."""
        count, legs = len(self.variances), min(len(self.pattern), len(self.variances))
        before, after = self.variances[:-1], self.variances[1:]
        ratio = np.divide(before, after, out=np.zeros_like(before), where=after > 0)
        closest = int(np.argmax(ratio)) if len(ratio) else 0
        starts = {0, count - legs, min(max(closest - legs // 2, 0), count - legs)}
        return [np.arange(start, start + legs) for start in sorted(starts)]

    def require_memory(self, modes: int, resolution: Resolution1, memory_mb: float) -> None:
        """Refuse more than allowed: result, its largest moment, half-contracted chains, tables."""
        layers, count, legs = len(self.variances), len(self.functions), len(self.pattern)
        result = float((layers * count) ** legs)
        smooth = all(function.smooth for function in self.functions)
        rule = resolution.rule(modes, smooth)
        nodes = rule.n if smooth else rule.n * 2 * int(np.ceil(rule.radius))
        halves = 0.0
        if legs > 2:
            # left (and right) chains of every pair of times, for each of the distinct ways to place the derivatives
            halves = (legs - 2) * (1 + self.derivatives) * 0.5 * layers**2 * count**2 * modes
        shared = not any(float(kink) for function in self.functions for kink in function.kinks)
        tables = (1 if shared else layers) * modes * nodes + 4 * layers * count * nodes * legs
        need = 8e-6 * (2.5 * result + halves + tables)
        if need > memory_mb:
            raise ValueError(
                f"pattern {self.pattern} takes {need:.0f} MB ({8e-6 * result:.0f} MB of them the array itself), memory_mb is "
                f"{memory_mb:.0f}: {layers} layers, {count} functions, {modes} modes; raise memory_mb, or take fewer layers"
            )
