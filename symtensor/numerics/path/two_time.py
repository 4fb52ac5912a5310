"""Covariances of functions of one path at two layers k < t, by Mehler's expansion in the whitened coordinates of pairs.

``c(f_k, g_t) = sum_{N >= 1} f^(N) . Sym^N(R) g^(N)`` with R = B_k^{-1} alpha^{t-k} K_k(ab, cd) B_t^{-T} (pseudo-inverses
on singular pairs).  R factorises through the pair cd at layer k, R = [B_ab^{-1} K_k(ab, cd) B_cd,k^{-T}] [B_cd,k^T
alpha^{t-k} B_cd,t^{-T}], and the second factor is a product of one-layer contractions: the coefficients of all later
layers go back together, one matrix per layer and degree.  A pair in one coordinate needs no matrices: its
contraction is the ratio of two scales, and halving the range of layers keeps every power at most one.

Derivatives in the covariance are ladder operators on the coefficients, never derivatives of the function.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from symtensor.numerics.path.hermite_kernels import (
    carried,
    carried_back,
    offset,
    symmetric_powers,
    symmetric_vectors,
    triangular_powers,
)
from symtensor.numerics.path.ladder import differentiated, lowered, raised
from symtensor.numerics.path.pair_hermite import PairTable
from symtensor.numerics.path.pairs import derivative_forms, pair_number
from symtensor.numerics.path.tails import block_terms, tail_estimate

__all__ = ["Expansion", "columns_of", "rows_of", "two_time"]

_WORKERS = 2
#: degrees whose coefficients are all below this fraction of the largest are absent (the wrong parity)
_ABSENT = 1e-15
#: entries of a symmetric power (at most one) that are rounding
_TINY = 1e-18
#: beyond this part of the diagonals of the symmetric powers dense products are faster
_BANDED = 0.3


@dataclass(frozen=True, slots=True)
class Expansion:
    """What the two-time expansion needs: coefficients of every pair, kernels (L+1, P, P), alpha, degrees that are kept.

    ``derivative``: ``none``, ``later`` (in K_t) or ``earlier`` (in K_k, with the covariance alpha^{t-k} K_k that it sets).
    Contributions of one degree below the fraction ``negligible`` of the largest are not carried on.
    """

    tables: Sequence[PairTable]
    kernels: np.ndarray
    alpha: float
    derivative: str = "none"
    modes: frozenset[int] | None = None
    negligible: float = 1e-18

    @property
    def inputs(self) -> int:
        return self.kernels.shape[1]

    @property
    def layers(self) -> int:
        return len(self.kernels)

    @property
    def functions(self) -> int:
        return self.tables[0].coefficients.shape[1]

    def kept(self, degree: int) -> np.ndarray:
        """The total degrees 1..degree that are kept."""
        return np.array([n for n in range(1, degree + 1) if self.modes is None or n in self.modes], dtype=int)


def two_time(expansion: Expansion, out: np.ndarray) -> float:
    """Fill out[k, r, ab, t, s, cd(, e)] for k < t; return the estimated truncation error of the worst entry.

    Parameters
    ----------
    out
        (L+1, R, E, L+1, R, E), with one more axis E for a derivative; R functions, E pairs; zeros on entry.
    """
    if not expansion.alpha:
        return 0.0  # nothing of a layer is left in the next one

    def fill(cd: int) -> float:
        return (_plane if expansion.tables[cd].frame.plane else _line)(expansion, cd, out)

    # the pairs write to different parts of the array
    with ThreadPoolExecutor(min(_WORKERS, os.cpu_count() or 1)) as pool:
        return max(pool.map(fill, range(len(expansion.tables))), default=0.0)


# -- the coefficients of the two sides -----------------------------------------------------------------------------


def columns_of(expansion: Expansion, cd: int, layer: int | None = None) -> tuple[np.ndarray, list[int] | None]:
    """(L+1, R, n, blocks): coefficients of the later functions, or of their derivatives in K_t, and the pairs e of these.

    With a layer: (1, R, n, blocks) of that one.
    """
    table = expansion.tables[cd]
    layers = slice(None) if layer is None else slice(layer, layer + 1)
    coefficients = table.coefficients[layers]
    if expansion.derivative != "later":
        return coefficients[:, :, None], None
    number = pair_number(expansion.inputs)
    parts, places = [], []
    for pair, form in derivative_forms(table.frame.pair, table.frame.inverse[layers]):
        parts.append(differentiated(coefficients, form, table.frame.plane, table.degree))
        places.append(int(number[pair]))
    return np.stack(parts, axis=2), places


def rows_of(expansion: Expansion, k: int, ab: int, cd: int) -> tuple[np.ndarray, list[int] | None]:
    """(R, n, blocks of cd): the earlier functions of ab, or derivatives in K_k, carried to the coordinates of cd at k."""
    source, target = expansion.tables[ab], expansion.tables[cd]
    (a, b), (c, d) = source.frame.pair, target.frame.pair
    cross = expansion.kernels[k][np.ix_((a, b), (c, d))]
    R = source.frame.inverse[k] @ cross @ target.frame.inverse[k].T
    f = source.coefficients[k]
    if expansion.derivative != "earlier":
        return _carry(f, R, source, target)[:, None], None
    return _earlier_rows(expansion, k, ab, cd, R)


def _earlier_rows(expansion: Expansion, k: int, ab: int, cd: int, R: np.ndarray) -> tuple[np.ndarray, list[int]]:
    source, target = expansion.tables[ab], expansion.tables[cd]
    f, plane, degree = source.coefficients[k], source.frame.plane, source.degree
    number = pair_number(expansion.inputs)
    rows: dict[int, np.ndarray] = {}
    for pair, form in derivative_forms(source.frame.pair, source.frame.inverse[k]):
        rows[int(number[pair])] = _carry(differentiated(f[None], form[None], plane, degree)[0], R, source, target)
        rows[int(number[pair])][:, 0] = 0.0  # the mean is not part of a covariance
    for p in dict.fromkeys(source.frame.pair):
        moved = _carry(lowered(f, _slope(source, k, p), plane, degree), R, source, target)
        for q in dict.fromkeys(target.frame.pair):
            part = raised(moved, _slope(target, k, q), target.frame.plane, target.degree)
            # K_k^{pq} is the covariance of p at the earlier with q at the later layer
            e = int(number[p, q])
            rows[e] = rows[e] + part if e in rows else part
    return np.stack(list(rows.values()), axis=1), list(rows)


def _slope(table: PairTable, layer: int, label: int) -> np.ndarray:
    """(2,): d/dphi_label = slope . d/dz in the coordinates of the pair."""
    columns = [column for column, member in enumerate(table.frame.pair) if member == label]
    return table.frame.inverse[layer][:, columns].sum(axis=1)


def _carry(f: np.ndarray, R: np.ndarray, source: PairTable, target: PairTable) -> np.ndarray:
    """(R, blocks of target): Sym^N(R)^T f^(N), the degrees both have."""
    degree = min(source.degree, target.degree)
    if source is target:
        return f.copy()
    result = np.zeros((len(f), target.coefficients.shape[-1]))
    blocks = offset(np.arange(degree + 1))  # type: ignore[arg-type]
    if not source.frame.plane and not target.frame.plane:
        result[:, : degree + 1] = f[:, : degree + 1] * R[0, 0] ** np.arange(degree + 1)
    elif not source.frame.plane:
        # one coordinate is the first of two
        repeated = np.repeat(f[:, : degree + 1], np.arange(1, degree + 2), axis=1)
        result[:, : repeated.shape[1]] = repeated * symmetric_vectors(R[0, 0], R[0, 1], degree)
    elif not target.frame.plane:
        stop = source.block(degree).stop
        result[:, : degree + 1] = np.add.reduceat(f[:, :stop] * symmetric_vectors(R[0, 0], R[1, 0], degree), blocks, axis=1)
    else:
        stop = source.block(degree).stop
        size = np.maximum.reduceat(np.abs(f[:, :stop]).max(axis=0), blocks)
        present = size > _ABSENT * size.max()
        result[:, :stop] = carried(np.ascontiguousarray(f[:, :stop]), np.ascontiguousarray(R), degree, present)
    return result


# -- a pair cd in one coordinate -----------------------------------------------------------------------------------


def _line(expansion: Expansion, cd: int, out: np.ndarray) -> float:
    table = expansion.tables[cd]
    columns, places = columns_of(expansion, cd)
    layers, functions = expansion.layers, expansion.functions
    scale = _log_scale(expansion, table)
    error = 0.0
    for ab, source in enumerate(expansion.tables):
        degree = min(source.degree, table.degree)
        kept = expansion.kept(degree)
        parts = [rows_of(expansion, k, ab, cd) for k in range(layers)]
        F = np.stack([part[0][..., kept] for part in parts])
        G = columns[..., kept]
        shape = (functions, F.shape[2]), (functions, G.shape[2])
        F, G = F.reshape(layers, -1, len(kept)), G.reshape(layers, -1, len(kept))
        for (low, mid, high), block in _separable(F, G, scale, kept, expansion.negligible):
            shaped = block.reshape(mid - low, *shape[0], high - mid, *shape[1])
            _store(out, (slice(low, mid), slice(mid, high)), ab, cd, shaped, parts[0][1], places)
        if expansion.modes is None:
            error = max(error, _line_tail(F, G, scale, degree, kept))
    return error


def _log_scale(expansion: Expansion, table: PairTable) -> np.ndarray:
    """log(alpha^{-k} sqrt(variance)): the contraction from t to k is exp(s_k - s_t), at most 1."""
    length = np.linalg.norm(table.frame.factor[:, :, 0], axis=1)
    # a layer without variance has nothing to hand on; the large negative number stands for -infinity
    logarithm = np.log(length, out=np.full(len(length), -1e6), where=length > 0)
    return logarithm - np.arange(expansion.layers) * np.log(abs(expansion.alpha))


def _powers(gap: np.ndarray, kept: np.ndarray) -> np.ndarray:
    return np.exp(np.maximum(np.minimum(gap, 0.0)[:, None] * kept, -700.0))


def _separable(
    F: np.ndarray, G: np.ndarray, scale: np.ndarray, kept: np.ndarray, negligible: float
) -> Iterator[tuple[tuple[int, int, int], np.ndarray]]:
    """sum_N F[k, N] exp(N (s_k - s_t)) G[t, N] for all k < t: rows below and columns from the middle, then both halves."""
    stack = [(0, len(scale))]
    while stack:
        low, high = stack.pop()
        if high - low < 2:
            continue
        mid = (low + high) // 2
        left = F[low:mid] * _powers(scale[low:mid] - scale[mid], kept)[:, None]
        right = G[mid:high] * _powers(scale[mid] - scale[mid:high], kept)[:, None]
        left, right = left.reshape(-1, len(kept)), right.reshape(-1, len(kept))
        weight = np.abs(left).max(axis=0, initial=0.0) * np.abs(right).max(axis=0, initial=0.0)
        used = weight > negligible * weight.max(initial=0.0)
        if used.any():
            yield (low, mid, high), left[:, used] @ right[:, used].T
        stack += [(low, mid), (mid, high)]


def _line_tail(F: np.ndarray, G: np.ndarray, scale: np.ndarray, degree: int, kept: np.ndarray) -> float:
    worst = 0.0
    for k in range(len(scale) - 1):
        ratio = _powers(scale[k : k + 1] - scale[k + 1], kept)[0]
        terms = np.zeros(degree + 1)
        terms[kept] = np.abs(F[k]).max(axis=0) * np.abs(G[k + 1]).max(axis=0) * ratio
        worst = max(worst, tail_estimate(terms))
    return worst


def _store(out, layers, ab, cd, block, row_places, places) -> None:  # type: ignore[no-untyped-def]
    """block[k, r, row, t, s, column] into out[k, r, ab, t, s, cd(, e)]."""
    early, late = layers
    target = out[early, :, ab, late, :, cd]
    if row_places is None and places is None:
        target += block[:, :, 0, :, :, 0]
    elif places is not None:
        for column, e in enumerate(places):
            target[..., e] += block[:, :, 0, :, :, column]
    else:
        for row, e in enumerate(row_places or []):
            target[..., e] += block[:, :, row, :, :, 0]


# -- a pair cd in two coordinates ----------------------------------------------------------------------------------


def _plane(expansion: Expansion, cd: int, out: np.ndarray) -> float:
    table = expansion.tables[cd]
    columns, places = columns_of(expansion, cd)
    last, count = expansion.layers - 1, expansion.functions
    later = [_Later.of(columns[:, s], table, expansion.kept(table.degree), expansion.negligible) for s in range(count)]
    power = _Powers.of(later, table.degree)
    error = 0.0
    for k in range(last - 1, -1, -1):
        step = expansion.alpha * table.frame.factor[k].T @ table.frame.inverse[k + 1].T
        power.set(step)
        found = [rows_of(expansion, k, ab, cd) for ab in range(len(expansion.tables))]
        rows = np.concatenate([part.reshape(-1, part.shape[-1]) for part, _ in found])
        sizes = table.norms(rows).max(axis=0)
        for s, group in enumerate(later):
            group.step_back(power, k)
            values = group.contract(rows)
            if expansion.modes is None:
                error = max(error, group.tail(sizes))
            first = 0
            for ab, (part, row_places) in enumerate(found):
                size = part.shape[0] * part.shape[1]
                block = values[first : first + size].reshape(1, count, -1, last - k, 1, columns.shape[2])
                _store(out[:, :, :, :, s : s + 1], (slice(k, k + 1), slice(k + 1, last + 1)), ab, cd, block, row_places, places)
                first += size
    return error


@dataclass(slots=True)
class _Powers:
    """The symmetric powers of the step from one layer to the one before, in one buffer, for the degrees in use.

    Cholesky factors make the step upper triangular, and nearly diagonal between layers that are nearly equal: then only the
    ``widths[N]`` diagonals that matter are kept.
    """

    present: np.ndarray
    start: np.ndarray
    buffer: np.ndarray
    widths: np.ndarray
    banded: bool

    @classmethod
    def of(cls, later: Sequence[_Later], degree: int) -> _Powers:
        present = np.zeros(degree + 1, dtype=bool)
        for group in later:
            present[group.degrees] = True
        sizes = np.where(present, (np.arange(degree + 1) + 1) ** 2, 0)
        ends = np.cumsum(sizes)
        return cls(present, ends - sizes, np.empty(int(ends[-1])), np.zeros(degree + 1, dtype=np.int64), False)

    def set(self, step: np.ndarray) -> None:
        """Compute them for another step."""
        used = np.flatnonzero(self.present)
        highest = int(used.max(initial=0))
        if not highest:
            return
        self.banded = step[1, 0] == 0
        if self.banded:
            triangular_powers(np.ascontiguousarray(step), highest, self.present, _TINY, self.buffer, self.start, self.widths)
            self.banded = bool(self.widths[used].sum() <= _BANDED * (used + 1).sum())
        if not self.banded:
            symmetric_powers(np.ascontiguousarray(step), highest, self.present, self.buffer)

    def apply(self, block: np.ndarray, degree: int) -> None:
        """Every row of block (rows, degree + 1) becomes S_N row, in place."""
        start, size = int(self.start[degree]), degree + 1
        matrix = self.buffer[start : start + size**2].reshape(size, size)
        if self.banded:
            carried_back(block, matrix, degree, self.widths)
        else:
            block[:] = block @ matrix.T


@dataclass(slots=True)
class _Later:
    """Coefficients of one later function at all layers t > k in the coordinates of its pair at layer k.

    Columns run through (t, derivative) from the last layer down, so that layer k + 1 joins at the end; ``start`` is the
    first column of each degree that still matters.
    """

    source: np.ndarray
    table: PairTable
    degrees: np.ndarray
    blocks: dict[int, np.ndarray]
    start: dict[int, int]
    floor: dict[int, float]
    count: int

    @classmethod
    def of(cls, source: np.ndarray, table: PairTable, kept: np.ndarray, negligible: float) -> _Later:
        layers, width = source.shape[:2]
        norms = table.norms(source).max(axis=(0, 1))
        degrees = kept[norms[kept] > _ABSENT * norms[kept].max(initial=0.0)]
        blocks = {n: np.zeros(((layers - 1) * width, n + 1)) for n in degrees}
        earlier = table.norms().max(axis=(0, 1))
        total = float((earlier * norms)[degrees].max(initial=0.0))
        floor = {n: negligible * total / max(earlier[n], 1e-300) for n in degrees}
        return cls(source, table, degrees, blocks, dict.fromkeys(degrees, 0), floor, 0)

    def step_back(self, power: _Powers, k: int) -> None:
        """Add the columns of layer k + 1 and carry all of them to layer k."""
        width = self.source.shape[1]
        first, self.count = self.count, self.count + width
        for n in self.degrees:
            block, begin = self.blocks[n], self.start[n]
            block[first : self.count] = self.source[k + 1][:, self.table.block(n)]
            power.apply(block[begin : self.count], int(n))
            while begin < first and float(np.abs(block[begin : begin + width]).max()) < self.floor[n]:
                begin += width
            self.start[n] = begin

    def contract(self, rows: np.ndarray) -> np.ndarray:
        """(rows, later layers in increasing order, derivatives)."""
        width = self.source.shape[1]
        total = np.zeros((len(rows), self.count))
        for n in self.degrees:
            begin = self.start[n]
            total[:, begin:] += rows[:, self.table.block(n)] @ self.blocks[n][begin : self.count].T
        return total.reshape(len(rows), -1, width)[:, ::-1]

    def tail(self, sizes: np.ndarray) -> float:
        """Estimated truncation error of the covariances with layer k + 1, for rows with these norms in each degree."""
        width = self.source.shape[1]
        terms = np.zeros(self.table.degree + 1)
        for n in block_terms(self.degrees, self.table.degree):
            newest = self.blocks[n][self.count - width : self.count]
            terms[n] = sizes[n] * np.sqrt((newest**2).sum(axis=1).max())
        return tail_estimate(terms)
