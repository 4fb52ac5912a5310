r"""Moments of products along the path at increasing times, by transfer matrices in orthonormal Hermite polynomials.

E[g_1(phi_{t1}) .. g_m(phi_{tm})] = <1| G_1 D_12 G_2 D_23 .. G_m |1>,  G = multiplication by g,  D_st = diag(rho^n),
rho = alpha^{t-s} sqrt(K_s / K_t). The derivative in K_t at fixed variances of the other times is (Price's theorem; everything
later moves together as one function F of phi_t, and d acts on F through all later times at once)

    (1/2) d_t^2 + sum_{u > t} alpha^{u-t} d_t d_u:   g F -> (1/2) [(g F)'' - g F''],   i.e.  G -> ad(G) = (1/2) [d^2, G]

with d psi_n = sqrt(n / K) psi_{n-1}: no derivative of g is taken, so kinks need no care. a derivatives are ad^a(G).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import comb, factorial

import numpy as np

from symtensor.numerics.path.hermite import Tables

__all__ = ["Chain"]

#: modes that contribute less than this fraction of the largest to a block of two-time moments are left out of it
_NEGLIGIBLE = 1e-20


@dataclass(slots=True)
class Chain:
    """The transfer matrices of one path, cut off at a number of modes.

    Attributes
    ----------
    variances
        (T,) K at the times.
    times
        (T,) increasing layer numbers.
    alpha
        Of the path.
    tables
        Hermite functions (at least ``modes + 2 derivatives`` of them) and the components.
    modes
        Degrees 0..modes-1 are kept on every line.
    """

    variances: np.ndarray
    times: np.ndarray
    alpha: float
    tables: Tables
    modes: int
    _kept: dict[tuple[int, ...], list[np.ndarray]] = field(default_factory=dict)

    def moment(self, sizes: Sequence[int], derivatives: Sequence[int]) -> np.ndarray:
        """Moments at all increasing times, (T,) * m + (multisets of the sizes): entries at other times are zero.

        Parameters
        ----------
        sizes
            How many components stand at each of the m <= 4 times.
        derivatives
            Derivatives in the variance at each time.
        """
        sizes, derivatives = tuple(sizes), tuple(derivatives)
        last = self.columns(sizes[-1], derivatives[-1])
        match len(sizes):
            case 1:
                return last[:, :, 0]
            case 2:
                return self._two(self.rows(sizes[0], derivatives[0]), last)
            case 3:
                return self._three(self.left(sizes[:2], derivatives[:2]), last)
            case 4:
                return self._four(self.left(sizes[:2], derivatives[:2]), self.right(sizes[2:], derivatives[2:]))
        raise ValueError(f"{len(sizes)} times; the chain is done for one to four")

    # -- ends ------------------------------------------------------------------------------------------------------

    def columns(self, size: int, derivatives: int) -> np.ndarray:
        """(T, multisets, modes): <psi_m| ad^a(G) |1>, which is d^{2a} G / 2^a since d annihilates 1."""
        shift = 2 * derivatives
        scale = (0.5 * self._inverses()) ** derivatives
        return self._coefficients(size, 0, shift) * _ladder(self.modes, shift) * scale[:, None, None]

    def rows(self, size: int, derivatives: int) -> np.ndarray:
        """(T, multisets, modes): <1| ad^a(G) |psi_n>, of which <1| d^{2k} is psi_{2k} sqrt((2k)!) / K^k."""
        scale = (0.5 * self._inverses()) ** derivatives
        total = 0.0
        for k in range(derivatives + 1):
            outer, inner = 2 * k, 2 * (derivatives - k)
            weight = comb(derivatives, k) * (-1) ** (derivatives - k) * np.sqrt(factorial(outer))
            found = self._coefficients(size, outer, 0)
            part = np.zeros_like(found)
            part[..., inner:] = found[..., : max(self.modes - inner, 0)] * _ladder(max(self.modes - inner, 0), inner)
            total = total + weight * part
        return total * scale[:, None, None]

    def _coefficients(self, size: int, degree: int, shift: int) -> np.ndarray:
        """(T, multisets, modes): <psi_degree| G |psi_{n + shift}>, all layers at once where they share their nodes."""
        tables, layers = self.tables, range(len(self.times))
        values = [tables.products(layer, size) * tables.at(layer)[degree] for layer in layers]
        if tables.shared:
            # one matrix product: NumPy would take the layers one by one
            flat = np.concatenate(values) @ tables.at(0)[shift : shift + self.modes].T
            return flat.reshape(len(values), *values[0].shape[:1], self.modes)
        return np.stack([v @ tables.at(layer)[shift : shift + self.modes].T for layer, v in zip(layers, values)])

    # -- middles ---------------------------------------------------------------------------------------------------

    def left(self, sizes: tuple[int, ...], derivatives: tuple[int, ...]) -> list[np.ndarray]:
        """For each t2 (t2, multisets 1, multisets 2, modes): <1| ad(G_1) D_12 ad(G_2)."""
        key = (0, *sizes, *derivatives)
        if key not in self._kept:
            rows = self.rows(sizes[0], derivatives[0])
            found = []
            for t in range(len(self.times)):
                moved = rows[:t] * self.transfer(np.arange(t), np.full(t, t))[:, None]
                result = self._multiplied(t, moved.reshape(-1, self.modes), sizes[1], derivatives[1])
                found.append(result.reshape(t, rows.shape[1], *result.shape[1:]))
            self._kept[key] = found
        return self._kept[key]

    def right(self, sizes: tuple[int, ...], derivatives: tuple[int, ...]) -> list[np.ndarray]:
        """For each t3 (multisets 3, T - 1 - t3, multisets 4, modes): ad(G_3) D_34 ad(G_4) |1>."""
        key = (1, *sizes, *derivatives)
        if key not in self._kept:
            columns = self.columns(sizes[1], derivatives[1])
            count = len(self.times)
            found = []
            for t in range(count):
                later = np.arange(t + 1, count)
                moved = columns[t + 1 :] * self.transfer(np.full(len(later), t), later)[:, None]
                result = self._multiplied(t, moved.reshape(-1, self.modes), sizes[0], derivatives[0], transposed=True)
                shaped = result.reshape(len(later), columns.shape[1], *result.shape[1:])
                found.append(np.moveaxis(shaped, 2, 0))
            self._kept[key] = found
        return self._kept[key]

    def _multiplied(self, layer: int, vectors: np.ndarray, size: int, derivatives: int, transposed: bool = False) -> np.ndarray:
        """(vectors, multisets, modes): v ad^a(G), or ad^a(G) v; ad^a(G) = 2^-a sum_k binom(a, k) (-1)^(a-k) d^2k G d^2(a-k)."""
        A, g = self.tables.at(layer), self.tables.products(layer, size)
        modes, scale = self.modes, 0.5 * self._inverses()[layer]
        total = np.zeros((len(vectors), len(g), modes))
        if derivatives and not scale:
            return total
        for k in range(derivatives + 1):
            weight = comb(derivatives, k) * (-1) ** (derivatives - k) * scale**derivatives
            outer, inner = 2 * k, 2 * (derivatives - k)
            if transposed:
                # d^inner lowers the vector, d^outer lowers the product
                moved = np.zeros_like(vectors)
                moved[:, : max(modes - inner, 0)] = vectors[:, inner:] * _ladder(modes, inner)[: max(modes - inner, 0)]
                nodes = (moved @ A[:modes])[:, None] * g
                part = nodes.reshape(-1, A.shape[1]) @ A[outer : outer + modes].T
                total += weight * part.reshape(total.shape) * _ladder(modes, outer)
            else:
                # on a row vector d^outer raises it, and the result is raised by d^inner
                moved = vectors * _ladder(modes, outer)
                nodes = (moved @ A[outer : outer + modes])[:, None] * g
                kept = max(modes - inner, 0)
                part = nodes.reshape(-1, A.shape[1]) @ A[:kept].T
                total[..., inner:] += weight * part.reshape(*total.shape[:2], kept) * _ladder(kept, inner)
        return total

    def _inverses(self) -> np.ndarray:
        """1/K at every layer, and 0 where there is no variance that could vary."""
        return np.divide(1.0, self.variances, out=np.zeros(len(self.variances)), where=self.variances > 0)

    # -- contractions ----------------------------------------------------------------------------------------------

    def transfer(self, early: np.ndarray, late: np.ndarray) -> np.ndarray:
        """(pairs, modes): rho^n."""
        k, t = self.variances[early], self.variances[late]
        ratio = np.divide(k, t, out=np.zeros_like(k), where=t > 0)
        step = self.times[late] - self.times[early]
        rho = np.minimum(np.abs(self.alpha) ** step * np.sqrt(ratio), 1.0)
        degree = np.arange(self.modes)
        with np.errstate(divide="ignore", invalid="ignore", under="ignore"):
            powers = np.exp(np.log(rho)[:, None] * degree)
        powers[:, 0] = 1.0
        if self.alpha < 0:
            powers *= np.where((step[:, None] * degree) % 2, -1.0, 1.0)
        return powers

    def _two(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """Rows below and columns from the middle layer on, as one product; then both halves."""
        count = len(self.times)
        out = np.zeros((count, count, rows.shape[1], columns.shape[1]))
        stack = [(0, count)]
        while stack:
            low, high = stack.pop()
            mid = (low + high) // 2
            if mid == low:
                continue
            early, late = np.arange(low, mid), np.arange(mid, high)
            first = (rows[low:mid] * self.transfer(early, np.full(len(early), mid))[:, None]).reshape(-1, self.modes)
            second = (columns[mid:high] * self.transfer(np.full(len(late), mid), late)[:, None]).reshape(-1, self.modes)
            weight = np.abs(first).max(axis=0) * np.abs(second).max(axis=0)
            used = weight > _NEGLIGIBLE * weight.max()
            block = first[:, used] @ second[:, used].T
            shaped = block.reshape(len(early), rows.shape[1], len(late), columns.shape[1])
            out[low:mid, mid:high] = np.moveaxis(shaped, 2, 1)
            stack += [(low, mid), (mid, high)]
        return out

    def _three(self, left: list[np.ndarray], columns: np.ndarray) -> np.ndarray:
        count = len(self.times)
        out = np.zeros((count,) * 3 + (*left[0].shape[1:3], columns.shape[1]))
        for t in range(1, count - 1):
            later = np.arange(t + 1, count)
            moved = columns[t + 1 :] * self.transfer(np.full(len(later), t), later)[:, None]
            block = left[t].reshape(-1, self.modes) @ moved.reshape(-1, self.modes).T
            out[:t, t, t + 1 :] = np.moveaxis(block.reshape(*left[t].shape[:3], len(later), -1), 3, 1)
        return out

    def _four(self, left: list[np.ndarray], right: list[np.ndarray]) -> np.ndarray:
        count = len(self.times)
        third, _, fourth, _ = right[0].shape
        out = np.zeros((count,) * 4 + (*left[0].shape[1:3], third, fourth))
        for t in range(1, count - 2):
            for u in range(t + 1, count - 1):
                moved = left[t] * self.transfer(np.array([t]), np.array([u]))[0]
                block = moved.reshape(-1, self.modes) @ right[u].reshape(-1, self.modes).T
                shaped = block.reshape(*left[t].shape[:3], third, count - 1 - u, fourth)
                # (t1, u1, u2, u3, t4, u4) -> (t1, t4, u1, u2, u3, u4)
                out[:t, t, u, u + 1 :] = np.moveaxis(shaped, 4, 1)
        return out


def _ladder(modes: int, shift: int) -> np.ndarray:
    """(modes,): sqrt((n + shift)! / n!)."""
    n = np.arange(modes, dtype=float)
    result = np.ones(modes)
    for k in range(1, shift + 1):
        result *= np.sqrt(n + k)
    return result
