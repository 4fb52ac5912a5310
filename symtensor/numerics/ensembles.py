"""Random objects whose order is known, drawn in batches: the ground truth that bounds and verdicts are tested against.

A draw is a function of (ensemble, n, sample index, seed) alone: to rounding it does not depend on how the memory cap cuts
the work into chunks, and the first samples of a longer run are those of a shorter one. Different n are independent.
Importing this module imports JAX.

References
----------
Auffinger, Ben Arous, Cerny, "Random matrices and complexity of spin glasses", Comm. Pure Appl. Math. 66 (2013) 165.
Chambers, Mallows, Stuck, "A method for simulating stable random variables", J. Amer. Statist. Assoc. 71 (1976) 340.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from symtensor.numerics._draws import fold_in, key_words, normals
from symtensor.numerics._ensemble import MemoryCapError, require_integer
from symtensor.numerics._norm_bracket import Array, NormBracket, bracket
from symtensor.numerics._norm_dense import starting_vectors
from symtensor.numerics._norm_input import require_float64
from symtensor.numerics._norm_lanczos import basis_size, top_eigenpair
from symtensor.numerics.norms import MEMORY, subordinate_norm
from symtensor.parsing import suggestion

__all__ = ["ENSEMBLES", "GroundTruth", "UnknownEnsembleError", "sample_norms", "sampler"]

_CHUNK = 2**20  # normals drawn at a time
_LANES = 512  # samples drawn at a time, at most
_STABLE = 1.5
_FEW = 5  # p of the Wishart ensemble with p fixed

Side = Literal["lower", "upper"]


class UnknownEnsembleError(ValueError):
    """No ensemble of that name."""


@dataclass(frozen=True, slots=True)
class GroundTruth:
    """An ensemble and what is known of it.

    Attributes
    ----------
    name, statement
        Its name, and the law with its constant on one line.
    scale
        The order of the values, as text in n; None if no definite bound exists.
    status
        "exact", or "bracket" for norms with three slots.
    smallest
        The least n for which it is defined.
    """

    name: str
    statement: str
    scale: str | None
    rows: Callable[[int], int]
    draw: Callable[[jax.Array, int], jax.Array]
    norm: Callable[..., NormBracket] | None = None
    status: str = "exact"
    smallest: int = 1


def sample_norms(
    name: str, n: int, samples: int, seed: int = 0, *, memory: int = MEMORY, restarts: int = 16
) -> Array | NormBracket:
    """Independent values of an ensemble of :data:`ENSEMBLES` at size n.

    Returns
    -------
    ndarray or NormBracket
        Values of shape `(samples,)`; a bracket of that shape where the norm has three slots.

    Raises
    ------
    UnknownEnsembleError, MemoryCapError, ValueError, TypeError
        For an unknown name, a size below the smallest, no samples, a sample that does not fit under `memory` bytes.

    Examples
    --------
    >>> import jax; jax.config.update("jax_enable_x64", True)
    >>> lengths = sample_norms("gaussian vector", 400, 100)
    >>> bool(abs(lengths.mean() / 20 - 1) < 0.02)
    True
    """
    require_float64()
    truth = _find(name)
    n, samples = require_integer("n", n, truth.smallest), require_integer("samples", samples, 1)
    seed = require_integer("seed", seed, 0)
    if samples >= 2**32 or seed >= 2**63:
        raise ValueError(f"samples = {samples} must be below 2^32 and seed = {seed} below 2^63")
    memory, restarts = require_integer("memory", memory, 1), require_integer("restarts", restarts, 1)
    chunks = _chunks(truth, n, samples, seed, memory)
    if truth.norm is None:
        return np.concatenate(list(chunks))[:samples]
    parts = [truth.norm(part, memory, restarts) for part in chunks]
    lower, upper, residual, count = (
        np.concatenate([getattr(part, field) for part in parts])[:samples]
        for field in ("lower", "upper", "residual", "iterations")
    )
    joined = bracket(lower, upper, residual, count, None, 1e-10)
    return joined.value if truth.status == "exact" else joined


def sampler(name: str, side: Side = "lower", **options: int) -> Callable[[int, int, int], Array]:
    """`(n, samples, seed) -> values` of an ensemble, for `verify_bound`; of a bracket the chosen side.

    A bracket's side must go with `norm_status` of the same name: a lower bound of the norm supports fewer verdicts.
    """
    _find(name)
    if side not in ("lower", "upper"):
        raise ValueError(f"side = {side!r} must be 'lower' or 'upper'")

    def draw(n: int, samples: int, seed: int) -> Array:
        values = sample_norms(name, n, samples, seed, **options)
        return getattr(values, side) if isinstance(values, NormBracket) else values

    return draw


def _find(name: str) -> GroundTruth:
    if name not in ENSEMBLES:
        raise UnknownEnsembleError(f"{name!r} is not an ensemble{suggestion(str(name), ENSEMBLES)}; known: {', '.join(ENSEMBLES)}")
    return ENSEMBLES[name]


def _chunks(truth: GroundTruth, n: int, samples: int, seed: int, memory: int) -> Iterator[Array]:
    """Draws `(lanes, ..)` in order; all chunks have one size, so that one program serves them: a few draws too many."""
    rows = truth.rows(n)
    one = 8 * 6 * rows  # words, normals, their transform, the object and its copies
    if one > memory:
        raise MemoryCapError(
            f"{truth.name!r} at n = {n} needs {one / 2**20:.3g} MB for one sample, the cap is {memory / 2**20:.3g} MB; "
            "raise memory or lower n"
        )
    most = max(1, min(_LANES, _CHUNK // rows, memory // one))
    lanes = -(-samples // -(-samples // most))
    words = jnp.asarray(key_words(seed), jnp.uint32)
    for first in range(0, samples, lanes):
        yield np.asarray(_drawn(truth.name, n, lanes, words, jnp.uint32(first)))


@functools.partial(jax.jit, static_argnames=("name", "n", "lanes"))
def _drawn(name: str, n: int, lanes: int, words: jax.Array, first: jax.Array) -> jax.Array:
    truth = ENSEMBLES[name]
    keys = fold_in((words[0], words[1]), jnp.uint32(n))
    keys = fold_in(keys, first + lax.iota(jnp.uint32, lanes))
    z = normals(keys, truth.rows(n), chunked=jax.default_backend() == "cpu")
    return truth.draw(z, n)


def _square(columns: Callable[[int], int]) -> Callable[[jax.Array, int], jax.Array]:
    """`(n columns(n), lanes)` normals as matrices `(lanes, n, columns(n))`."""
    return lambda z, n: z.T.reshape(z.shape[1], n, columns(n))


def _wishart(z: jax.Array, p: int, n: int) -> jax.Array:
    x = z.T.reshape(z.shape[1], p, n)
    return jnp.einsum("lan,lbn->lab", x, x) / n - jnp.eye(p)


def _goe_gap(z: jax.Array, n: int) -> jax.Array:
    """|2 - largest eigenvalue| of (A + A^T)/sqrt(2 n)."""
    a = z.T.reshape(z.shape[1], n, n)
    start, spare = starting_vectors(n, basis_size(n), 0)

    def one(matrix: jax.Array) -> jax.Array:
        # shifted by 4, twice the edge, so that all eigenvalues are positive
        return top_eigenpair(lambda v: matrix @ v + 4.0 * v, jnp.asarray(start), jnp.asarray(spare), 1e-10, 2000).value - 4.0

    return jnp.abs(2.0 - lax.map(one, (a + jnp.swapaxes(a, 1, 2)) / math.sqrt(2 * n)))


def _cube(z: jax.Array, n: int) -> jax.Array:
    return z.T.reshape(z.shape[1], n, n, n)


def _symmetric_cube(z: jax.Array, n: int) -> jax.Array:
    cube = _cube(z, n)
    return sum(jnp.transpose(cube, (0, *order)) for order in itertools.permutations((1, 2, 3))) / 6.0  # type: ignore[return-value]


def _stable(z: jax.Array) -> jax.Array:
    """Symmetric stable variables of index 3/2 from four normals each: an angle from two, an exponential from two."""
    a, b, c, d = z.reshape(4, -1, z.shape[1])
    angle, waiting = jnp.arctan(a / b), (c * c + d * d) / 2
    skew = jnp.cos((1 - _STABLE) * angle) / waiting
    return jnp.sin(_STABLE * angle) / jnp.cos(angle) ** (1 / _STABLE) * skew ** ((1 - _STABLE) / _STABLE)


@functools.lru_cache(maxsize=1)
def _tanh_kernel() -> float:
    """E tanh(Z)^2 by the trapezoidal rule, which converges geometrically here."""
    z = np.linspace(-12.0, 12.0, 481)
    return float(np.sum(np.tanh(z) ** 2 * np.exp(-(z**2) / 2)) * (z[1] - z[0]) / math.sqrt(2 * math.pi))


def _kernel_gap(z: jax.Array, _: int) -> jax.Array:
    return jnp.abs(jnp.mean(jnp.tanh(z) ** 2, axis=0) - _tanh_kernel())


def _matrix_norm(part: Array, memory: int, restarts: int) -> NormBracket:
    del restarts
    return subordinate_norm(part, batch_dims=1, memory=memory)


def _cube_norm(part: Array, memory: int, restarts: int) -> NormBracket:
    return subordinate_norm(part, batch_dims=1, memory=memory, restarts=restarts)


def _symmetric_norm(part: Array, memory: int, restarts: int) -> NormBracket:
    return subordinate_norm(part, batch_dims=1, memory=memory, restarts=restarts, symmetric=True)


def _half(n: int) -> int:
    return max(1, n // 2)


_ALL = (
    GroundTruth("normal", "one N(0, 1), absolute value", "1", lambda n: 1, lambda z, n: jnp.abs(z[0])),
    GroundTruth(
        "gaussian vector", "|g| = sqrt n + O(1), chi_n law", "sqrt(n)", lambda n: n, lambda z, n: jnp.sqrt((z * z).sum(axis=0))
    ),
    GroundTruth(
        "gaussian matrix", "n x n: 2 sqrt n - O(n^-1/6)", "sqrt(n)", lambda n: n * n, _square(lambda n: n), _matrix_norm
    ),
    GroundTruth(
        "gaussian rectangle", "n x n/2: (1 + sqrt(1/2)) sqrt n", "sqrt(n)", lambda n: n * _half(n), _square(_half), _matrix_norm
    ),
    GroundTruth(
        "goe edge", "|2 - largest eigenvalue|, Tracy-Widom", "n^(-2/3)", lambda n: n * n, _goe_gap, smallest=2
    ),
    GroundTruth(
        "wishart fixed", "|W/n - I|, p = 5", "n^(-1/2)", lambda n: _FEW * n, lambda z, n: _wishart(z, _FEW, n), _matrix_norm
    ),
    GroundTruth(
        "wishart proportional", "|W/n - I|, p = n/2: sqrt(1/2)(2 + sqrt(1/2))", "1", lambda n: n * _half(n),
        lambda z, n: _wishart(z, _half(n), n), _matrix_norm,
    ),
    GroundTruth(
        "symmetric order 3", "symmetrised iid Gaussian: 1.6570 sqrt n", "sqrt(n)", lambda n: n**3, _symmetric_cube,
        _symmetric_norm, "bracket",
    ),
    GroundTruth("iid order 3", "iid Gaussian: at most 3 sqrt n", "sqrt(n)", lambda n: n**3, _cube, _cube_norm, "bracket"),
    GroundTruth(
        "order 3 unfolding", "n x n^2 Gaussian: n (1 + n^-1/2)", "n", lambda n: n**3, _square(lambda n: n * n), _matrix_norm
    ),
    GroundTruth(
        "order 3 frobenius", "n^(3/2)", "n^(3/2)", lambda n: n**3, lambda z, n: jnp.sqrt((z * z).sum(axis=0))
    ),
    GroundTruth(
        "centred sum", "|sum of n iid (Z^2 - 1)/sqrt 2|", "sqrt(n)", lambda n: n,
        lambda z, n: jnp.abs((z * z - 1).sum(axis=0)) / math.sqrt(2),
    ),
    GroundTruth(
        "stable sum", "|sum of n iid symmetric stable, index 3/2|", "n^(2/3)", lambda n: 4 * n,
        lambda z, n: jnp.abs(_stable(z).sum(axis=0)),
    ),
    GroundTruth(
        "cauchy mean", "|mean of n iid Cauchy|, Cauchy again", "1", lambda n: 2 * n,
        lambda z, n: jnp.abs((z[:n] / z[n:]).mean(axis=0)),
    ),
    GroundTruth(
        "cauchy vector", "|(c_1, .., c_n)|, Cauchy entries", "n", lambda n: 2 * n,
        lambda z, n: jnp.sqrt(((z[:n] / z[n:]) ** 2).sum(axis=0)),
    ),
    GroundTruth(
        "normal maximum", "max of n |N(0, 1)|", "sqrt(log(n))", lambda n: n, lambda z, n: jnp.abs(z).max(axis=0), smallest=2
    ),
    GroundTruth("layer kernel", "|mean tanh(Z)^2 - E|: sqrt(V4/n)", "n^(-1/2)", lambda n: n, _kernel_gap),
    GroundTruth(
        "two values", "1 or n with probability 1/2 each", "n", lambda n: 1, lambda z, n: jnp.where(z[0] > 0, float(n), 1.0)
    ),
    GroundTruth(
        "uniform power", "n^U: no definite bound exists", None, lambda n: 1,
        lambda z, n: jnp.exp(math.log(n) * jax.scipy.special.ndtr(z[0])),
    ),
)  # fmt: skip

#: The ensembles by name.
ENSEMBLES: MappingProxyType[str, GroundTruth] = MappingProxyType({truth.name: truth for truth in _ALL})
