"""Compiled loops over Hermite degrees: polynomials, conditional coefficients, symmetric powers of 2 x 2 matrices.

The block of degree N in two coordinates has the orthonormal basis ``u1^(N-j) u2^j / sqrt((N-j)! j!)``, j = 0..N, at
``offset(N) + j``.  A linear map R of the coordinates acts on it as the symmetric power
``S_N[j, l] = (1/N) (R11 sqrt((N-j)(N-l)) S_{N-1}[j, l] + R12 sqrt((N-j) l) S_{N-1}[j, l-1]
+ R21 sqrt(j (N-l)) S_{N-1}[j-1, l] + R22 sqrt(j l) S_{N-1}[j-1, l-1])``, an average, hence stable for ``|R| <= 1``.
"""

from __future__ import annotations

import numba
import numpy as np

__all__ = [
    "carried",
    "carried_back",
    "conditional_coefficients",
    "hermite_table",
    "offset",
    "second_derivative",
    "symmetric_powers",
    "symmetric_vectors",
    "triangular_powers",
]


def offset(degree: int) -> int:
    """Where the block of a degree starts among all coefficients in two coordinates."""
    return degree * (degree + 1) // 2


@numba.njit(cache=True, nogil=True)
def hermite_table(degree: int, z: np.ndarray) -> np.ndarray:
    """(degree + 1, len(z)): orthonormal Hermite polynomials He_n / sqrt(n!)."""
    table = np.empty((degree + 1, len(z)))
    table[0] = 1.0
    if degree > 0:
        table[1] = z
    for n in range(1, degree):
        up, down = 1.0 / np.sqrt(n + 1.0), np.sqrt(n / (n + 1.0))
        for m in range(len(z)):
            table[n + 1, m] = up * z[m] * table[n, m] - down * table[n - 1, m]
    return table


@numba.njit(cache=True, nogil=True)
def conditional_coefficients(values: np.ndarray, z: np.ndarray, degree: int) -> np.ndarray:
    """(degree + 1, rows): sum over the nodes z of each row of `values` (weights included) times He_n / sqrt(n!)."""
    rows, count = values.shape
    result = np.empty((degree + 1, rows))
    now, before = np.empty(count), np.empty(count)
    for row in range(rows):
        for m in range(count):
            before[m] = 0.0
            now[m] = values[row, m]
        for n in range(degree + 1):
            total = 0.0
            up, down = 1.0 / np.sqrt(n + 1.0), np.sqrt(n / (n + 1.0))
            for m in range(count):
                total += now[m]
                following = up * z[row, m] * now[m] - down * before[m]
                before[m] = now[m]
                now[m] = following
            result[n, row] = total
    return result


#: entries below 1e-60 are set to zero: denormal numbers would be far slower
_FAST = {"contract", "nsz", "arcp", "reassoc"}


@numba.njit(cache=True, nogil=True, fastmath=_FAST, error_model="numpy")
def _power_row(above, row, out, n, a, b, c, d, roots, back) -> None:  # type: ignore[no-untyped-def]
    """Row j of S_n from rows j ("row") and j - 1 ("above") of S_{n-1}, all behind a zero in front."""
    for l in range(n + 1):
        value = back[l] * (a * row[l + 1] + c * above[l + 1]) + roots[l] * (b * row[l] + d * above[l])
        out[l + 1] = value if abs(value) > 1e-60 else 0.0


@numba.njit(cache=True, nogil=True)
def _raise_power(previous: np.ndarray, following: np.ndarray, n: int, R: np.ndarray, roots: np.ndarray, back: np.ndarray) -> None:
    """following = S_n from previous = S_{n-1}; both are padded by a row and a column of zeros in front."""
    for l in range(n + 1):
        back[l] = roots[n - l]
    for j in range(n + 1):
        left, lower = roots[n - j] / n, roots[j] / n
        a, b, c, d = R[0, 0] * left, R[0, 1] * left, R[1, 0] * lower, R[1, 1] * lower
        _power_row(previous[j], previous[j + 1], following[j + 1], n, a, b, c, d, roots, back)


@numba.njit(cache=True, nogil=True)
def symmetric_powers(R: np.ndarray, degree: int, present: np.ndarray, flat: np.ndarray) -> None:
    """The symmetric powers S_N(R) with present[N], 1 <= N <= degree, one after the other in `flat`, row by row."""
    roots = np.sqrt(np.arange(degree + 2))
    back = np.empty(degree + 2)
    previous, following = np.zeros((degree + 3, degree + 3)), np.zeros((degree + 3, degree + 3))
    previous[1, 1] = 1.0
    start = 0
    for n in range(1, degree + 1):
        _raise_power(previous, following, n, R, roots, back)
        if present[n]:
            for j in range(n + 1):
                flat[start : start + n + 1] = following[j + 1, 1 : n + 2]
                start += n + 1
        previous, following = following, previous


@numba.njit(cache=True, nogil=True)
def carried(f: np.ndarray, R: np.ndarray, degree: int, present: np.ndarray) -> np.ndarray:
    """(functions, blocks): the coefficients S_N(R)^T f^(N) of each row of `f`, for the degrees N with present[N]."""
    roots = np.sqrt(np.arange(degree + 2))
    back = np.empty(degree + 2)
    previous, following = np.zeros((degree + 3, degree + 3)), np.zeros((degree + 3, degree + 3))
    previous[1, 1] = 1.0
    result = np.zeros_like(f)
    result[:, 0] = f[:, 0]
    for n in range(1, degree + 1):
        _raise_power(previous, following, n, R, roots, back)
        if present[n]:
            start = n * (n + 1) // 2
            power = following[1 : n + 2, 1 : n + 2].copy()
            result[:, start : start + n + 1] = np.dot(f[:, start : start + n + 1].copy(), power)
        previous, following = following, previous
    return result


@numba.njit(cache=True, nogil=True, fastmath=_FAST)
def _carried_row(row: np.ndarray, power: np.ndarray, n: int, widths: np.ndarray, out: np.ndarray) -> None:
    """row becomes S_n row; ``power[m, j] = S_n[j, j + m]``, diagonal by diagonal."""
    for j in range(n + 1):
        out[j] = power[0, j] * row[j]
    for m in range(1, widths[n]):
        for j in range(n + 1 - m):
            out[j] += power[m, j] * row[j + m]
    for j in range(n + 1):
        row[j] = out[j]


@numba.njit(cache=True, nogil=True)
def carried_back(block: np.ndarray, power: np.ndarray, n: int, widths: np.ndarray) -> None:
    """Each row of `block` (rows, n + 1) becomes S_n(R) row for an upper triangular R, in place."""
    out = np.empty(n + 1)
    for row in range(len(block)):
        _carried_row(block[row], power, n, widths, out)


@numba.njit(cache=True, nogil=True, fastmath=_FAST)
def _raise_diagonal(now: np.ndarray, n: int, m: int, a: float, b: float, d: float, roots: np.ndarray, out: np.ndarray) -> float:
    """Diagonal m of S_n from those of S_{n-1}; the largest entry.  Both are padded by one zero in front."""
    largest = 0.0
    for j in range(n + 1 - m):
        l = j + m
        value = a * roots[n - j] * roots[n - l] * now[m, j + 1] + d * roots[j] * roots[l] * now[m, j]
        if m > 0:
            value += b * roots[n - j] * roots[l] * now[m - 1, j + 1]
        value /= n
        out[m, j + 1] = value if abs(value) > 1e-60 else 0.0
        largest = max(largest, abs(value))
    return largest


@numba.njit(cache=True, nogil=True)
def triangular_powers(
    R: np.ndarray, degree: int, present: np.ndarray, negligible: float, flat: np.ndarray, starts: np.ndarray, widths: np.ndarray
) -> None:
    """The symmetric powers of an upper triangular R by diagonals, for the degrees N with present[N].

    ``flat[starts[N] + m (N + 1) + j] = S_N[j, j + m]`` for m < widths[N]; the diagonals after those, whose entries are all
    below `negligible`, are left out: few are left for a step that is nearly diagonal.
    """
    roots = np.sqrt(np.arange(degree + 2.0))
    now, following = np.zeros((degree + 2, degree + 3)), np.zeros((degree + 2, degree + 3))
    now[0, 1] = 1.0
    width, widest = 1, 1
    for n in range(1, degree + 1):
        most = min(width + 1, n + 1)
        width = 1
        for m in range(most):
            if _raise_diagonal(now, n, m, R[0, 0], R[0, 1], R[1, 1], roots, following) > negligible:
                width = m + 1
            following[m, n + 2 - m] = 0.0
        widest = max(widest, most)
        following[width:widest] = 0.0
        widths[n] = width
        if present[n]:
            for m in range(width):
                first = starts[n] + m * (n + 1)
                flat[first : first + n + 1 - m] = following[m, 1 : n + 2 - m]
        now, following = following, now


@numba.njit(cache=True, nogil=True)
def symmetric_vectors(x: float, y: float, degree: int) -> np.ndarray:
    """(blocks,): the symmetric powers of the vector (x, y), sqrt(N!/((N-j)! j!)) x^(N-j) y^j."""
    flat = np.zeros((degree + 1) * (degree + 2) // 2)
    flat[0] = 1.0
    for n in range(1, degree + 1):
        start, before = n * (n + 1) // 2, n * (n - 1) // 2
        for j in range(n + 1):
            value = 0.0
            if j < n:
                value += np.sqrt((n - j) / n) * x * flat[before + j]
            if j > 0:
                value += np.sqrt(j / n) * y * flat[before + j - 1]
            flat[start + j] = value if abs(value) > 1e-60 else 0.0
    return flat


@numba.njit(cache=True, nogil=True)
def second_derivative(g: np.ndarray, form: np.ndarray, degree: int) -> np.ndarray:
    """(layers, functions, blocks): coefficients of sum_ij form_ij d_i d_j g for one form a layer, up to degree - 2."""
    layers, count, size = g.shape
    result = np.zeros((layers, count, size))
    root = np.sqrt(np.arange(degree + 3))
    for layer in range(layers):
        a, b, c = form[layer, 0, 0], form[layer, 0, 1] + form[layer, 1, 0], form[layer, 1, 1]
        for r in range(count):
            for n in range(degree - 1):
                here, above = n * (n + 1) // 2, (n + 2) * (n + 3) // 2
                for j in range(n + 1):
                    result[layer, r, here + j] = (
                        a * root[n - j + 1] * root[n - j + 2] * g[layer, r, above + j]
                        + b * root[n - j + 1] * root[j + 1] * g[layer, r, above + j + 1]
                        + c * root[j + 1] * root[j + 2] * g[layer, r, above + j + 2]
                    )
    return result
