"""Packed index layouts of the simulator: pairs `a <= b`, pairs of pairs, and the rows of one sample's statistics."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

LINEAR = ("dG", "rG", "dS", "rS")  # deviations of G and S, and what the control variates leave of them
QUADRATIC = ("GG", "CV", "RR")  # see `Layout`


@dataclass(frozen=True)
class Layout:
    """Where the statistics of one sample and depth are stored.

    With `dG = G - K_0`, the control `c = c_G` and the residual `r = dG - c`, packed over the M = P(P+1)/2 pairs:
    rows `dG, rG, dS, rS` (M each), then over the M(M+1)/2 pairs of pairs `GG = dG dG`, `RR = r r` and
    `CV = n (r c + c r) + mean_i c_i c_i`, the mean over single neurons.
    """

    inputs: int

    @cached_property
    def pair(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """First and second index of each pair `a <= b`."""
        return np.triu_indices(self.inputs)

    @cached_property
    def quad(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """First and second pair of each pair of pairs."""
        return np.triu_indices(self.pairs)

    @property
    def pairs(self) -> int:
        return self.inputs * (self.inputs + 1) // 2

    @property
    def quads(self) -> int:
        return self.pairs * (self.pairs + 1) // 2

    @property
    def rows(self) -> int:
        return len(LINEAR) * self.pairs + len(QUADRATIC) * self.quads

    def part(self, name: str) -> slice:
        """Rows of the statistic `name` in a vector of length `rows`."""
        if name in LINEAR:
            start = LINEAR.index(name) * self.pairs
            return slice(start, start + self.pairs)
        start = len(LINEAR) * self.pairs + QUADRATIC.index(name) * self.quads
        return slice(start, start + self.quads)

    def pack(self, matrix: NDArray[np.float64]) -> NDArray[np.float64]:
        """`(..., P, P)` symmetric to `(..., M)`."""
        return matrix[..., self.pair[0], self.pair[1]]

    def unpack(self, packed: NDArray[np.float64]) -> NDArray[np.float64]:
        """`(..., M)` to symmetric `(..., P, P)`."""
        return packed[..., _inverse(self.inputs)]

    def unpack_quads(self, packed: NDArray[np.float64]) -> NDArray[np.float64]:
        """`(..., M(M+1)/2)` to pair-symmetric `(..., P, P, P, P)`."""
        pairs = _inverse(self.inputs)
        return packed[..., _inverse(self.pairs)[pairs[:, :, None, None], pairs[None, None]]]

    def pack_response(self, response: NDArray[np.float64]) -> NDArray[np.float64]:
        """`J (..., P, P, P, P)`, `dES_ab = sum_cd J_abcd dK_cd`, to `(..., M, M)` acting on packed symmetric dK."""
        (a, b), (c, d) = self.pair, self.pair
        rows = response[..., a, b, :, :]
        return np.where(c == d, rows[..., c, d], rows[..., c, d] + rows[..., d, c])


def _inverse(size: int) -> NDArray[np.intp]:
    """Packed position of (a, b) and (b, a)."""
    table = np.zeros((size, size), dtype=np.intp)
    first, second = np.triu_indices(size)
    table[first, second] = table[second, first] = np.arange(len(first))
    return table
