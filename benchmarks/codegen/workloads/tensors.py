"""(d) pair-symmetric tensors, (f) right-hand sides of the kernel equations, (g) a two-loop contraction on a time grid."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

import symtensor
from codegen import ModuleSpec, generate
from symtensor.activation import activation
from symtensor.kernels import Argument, Assignment, CompositeKernel, Kernel, MomentKernel, TensorKernel
from symtensor.tensor import Dimension, SymmetryGroup, Tensor, TensorExpr, delta

from .workload import Workload

__all__ = ["kernel_rates", "pair_terms", "two_loops"]

P = Dimension("P")
a, b, c, d, e, f = P.indices("a b c d e f")
PAIRED = SymmetryGroup.product(SymmetryGroup.symmetric(2), SymmetryGroup.symmetric(2))


def _symmetric(shape: tuple[int, ...], seed: int, exchange: bool = False) -> Any:
    raw = np.random.default_rng(seed).normal(size=shape)
    raw = raw + raw.swapaxes(0, 1)
    if len(shape) == 4:
        raw = raw + raw.swapaxes(2, 3)
    return jnp.asarray(raw + raw.transpose(2, 3, 0, 1) if exchange else raw)


def _argument(tensor: Tensor) -> Argument:
    return Argument(tensor.name, tuple(map(str, tensor.dimensions)))


def pair_terms(size: int) -> Workload:
    """chi V + (chi V)^T + the four products K S, in pairs of indices."""
    chi, V = Tensor("chi", (P,) * 4, symmetry=PAIRED), Tensor("V", (P,) * 4, symmetry=SymmetryGroup.pair_symmetric())
    K, S = (Tensor(name, (P, P), symmetry=SymmetryGroup.symmetric(2)) for name in "KS")
    moved = (chi[a, b, c, d] * V[c, d, e, f]).sum(c, d) + (chi[e, f, c, d] * V[c, d, a, b]).sum(c, d)
    terms = moved + K[a, e] * S[b, f] + K[a, f] * S[b, e] + K[b, e] * S[a, f] + K[b, f] * S[a, e]
    kernel = TensorKernel("step", tuple(map(_argument, (chi, V, K, S))), terms, (a, b, e, f))
    four, two = (size,) * 4, (size,) * 2
    arguments = [_symmetric(four, 1), _symmetric(four, 2, True), _symmetric(two, 3), _symmetric(two, 4)]
    places = [(i, j) for i in range(size) for j in range(i, size)]
    upper = np.array([i * size + j for i, j in places])
    twice = np.array([1.0 + (i < j) for i, j in places])
    number = {pair: place for place, pair in enumerate(places)}
    full = np.array([number[min(i, j), max(i, j)] for i in range(size) for j in range(size)])

    def products(K: Any, S: Any) -> Any:
        total = K[:, None, :, None] * S[None, :, None, :] + K[:, None, None, :] * S[None, :, :, None]
        return total + K[None, :, :, None] * S[:, None, None, :] + K[None, :, None, :] * S[:, None, :, None]

    def packed(chi: Any, V: Any, K: Any, S: Any) -> Any:
        square = (size * size, size * size)
        result = (chi.reshape(square)[upper][:, upper] * twice) @ V.reshape(square)[upper][:, upper]
        result = (result + result.T)[full][:, full]
        return result.reshape(four) + products(K, S)

    def gemm(chi: Any, V: Any, K: Any, S: Any) -> Any:
        square = (size * size, size * size)
        result = chi.reshape(square) @ V.reshape(square)
        return (result + result.T).reshape(four) + products(K, S)

    def by_einsum(chi: Any, V: Any, K: Any, S: Any) -> Any:
        specs = ("ae,bf->abef", "af,be->abef", "be,af->abef", "bf,ae->abef")
        moved = jnp.einsum("abcd,cdef->abef", chi, V) + jnp.einsum("efcd,cdab->abef", chi, V)
        return moved + sum(jnp.einsum(spec, K, S) for spec in specs)

    def module() -> Any:
        return generate(ModuleSpec("pairs", "Pairs.", (kernel,), reference_points=False))

    contenders = {
        "symtensor": lambda: module().load().step,
        "hand": lambda: packed if size >= 16 else gemm,
        "hand, not packed": lambda: gemm,
        "einsum": lambda: by_einsum,
    }
    count = len(places)
    title = f"pair-tensor terms, P = {size}"
    return Workload(f"d{size}", title, 1, arguments, contenders, 2 * count**3 + 8 * size**4, 8 * 3 * size**4, 0, 1e-12,
                    module)  # fmt: skip


def _rate_kernels() -> tuple[Kernel, ...]:
    orders = ((0, 0), (2, 0), (1, 1))
    symmetric, pairs = SymmetryGroup.symmetric(2), SymmetryGroup.pair_symmetric()
    K, Q, m00, m11 = (Tensor(name, (P, P), symmetry=symmetric) for name in ("K", "Q", "m00", "m11"))
    m20, V = Tensor("m20", (P, P)), Tensor("V", (P,) * 4, symmetry=pairs)
    transport: TensorExpr = m20[a, b] * V[a, a, e, f] / 2 + m11[a, b] * V[a, b, e, f] + m20[b, a] * V[b, b, e, f] / 2
    noise = K[a, e] * Q[b, f] + K[a, f] * Q[b, e] + K[b, e] * Q[a, f] + K[b, f] * Q[a, e]
    both = 2 * transport + 2 * transport.rename({a: e, b: f, e: a, f: b}) + noise
    square, four = ("P", "P"), ("P",) * 4
    return (
        MomentKernel("moments", activation("erf"), orders),
        TensorKernel("drive", (_argument(m00),), delta(a, a) * delta(b, b) / 10 + 2 * m00[a, b], (a, b)),
        TensorKernel("spread", tuple(map(_argument, (K, Q, m20, m11, V))), both, (a, b, e, f)),
        CompositeKernel(
            "rates",
            (Argument("K", square), Argument("V", four)),
            (
                Assignment(("m",), "moments", ("K",)),
                Assignment(("Q",), "drive", ("m.m00",)),
                Assignment(("rate",), "spread", ("K", "Q", "m.m20", "m.m11", "V")),
            ),
            (Argument("Q", square), Argument("rate", four)),
        ),
    )


def kernel_rates(size: int, batch: int) -> Workload:
    """dK/dt = C_b + C_W E[s s], dV/dt = chi V + V chi^T + K Q pairs for s = erf, on a batch."""
    rng = np.random.default_rng(5)
    root = rng.normal(size=(batch, size, size)) / size
    K = jnp.asarray(root @ root.transpose(0, 2, 1) + 0.5 * np.eye(size))
    raw = rng.normal(size=(batch, size * (size + 1) // 2, size * (size + 1) // 2))
    number = np.zeros((size, size), int)
    number[np.triu_indices(size)] = np.arange(size * (size + 1) // 2)
    number = np.maximum(number, number.T)
    V = jnp.asarray((raw + raw.transpose(0, 2, 1))[:, number[:, :, None, None], number[None, None]])

    def hand(K: Any, V: Any) -> Any:
        k = jnp.diagonal(K, axis1=1, axis2=2)
        u, v = 1 + 2 * k[:, :, None], 1 + 2 * k[:, None, :]
        gap = u * v - 4 * K * K
        m00 = 2 / np.pi * jnp.arcsin(2 * K / jnp.sqrt(u * v))
        m11 = 4 / np.pi / jnp.sqrt(gap)
        m20 = -8 / np.pi * K / (u * jnp.sqrt(gap))
        Q = 0.1 + 2 * m00
        VD = jnp.diagonal(V, axis1=1, axis2=2).transpose(0, 3, 1, 2)
        moved = m20[..., None, None] * VD[:, :, None] + 2 * m11[..., None, None] * V
        moved = moved + m20.transpose(0, 2, 1)[..., None, None] * VD[:, None]
        noise = K[:, :, None, :, None] * Q[:, None, :, None, :] + K[:, :, None, None, :] * Q[:, None, :, :, None]
        noise = noise + K[:, None, :, :, None] * Q[:, :, None, None, :] + K[:, None, :, None, :] * Q[:, :, None, :, None]
        return Q, moved + moved.transpose(0, 3, 4, 1, 2) + noise

    def module() -> Any:
        return generate(ModuleSpec("r", "Rates.", _rate_kernels(), reference_points=False))

    contenders = {
        "symtensor": lambda: jax.vmap(module().load().rates),
        "hand": lambda: hand,
    }
    entries = size**4
    return Workload(
        f"f{size}", f"kernel equations, P = {size}", batch, [K, V], contenders, 20 * entries, 8 * 2 * entries, size**2 * 20.0,
        1e-11, module,
    )  # fmt: skip


def two_loops(size: int = 400) -> Workload:
    """The sunset self-energy between two propagators: sum_cd R_ac C_cd^3 R_bd."""
    R, C = Tensor("R", (P, P)), Tensor("C", (P, P), symmetry=SymmetryGroup.symmetric(2))
    loops = (R[a, c] * C[c, d] * C[c, d] * C[c, d] * R[b, d]).sum(c, d)
    rng = np.random.default_rng(6)
    arguments = [jnp.asarray(rng.normal(size=(size, size))), _symmetric((size, size), 7)]

    def hand(R: Any, C: Any) -> Any:
        return jnp.matmul(jnp.matmul(R, C * C * C, precision=lax.Precision.HIGHEST), R.T, precision=lax.Precision.HIGHEST)

    def compiled() -> Any:
        return symtensor.compile(loops, [R, C], axes=[a, b], reference_points=False)

    contenders = {
        "symtensor": lambda: compiled().function,
        "hand": lambda: hand,
        "einsum": lambda: lambda R, C: jnp.einsum("ac,cd,cd,cd,bd->ab", R, C, C, C, R),
    }
    return Workload("g", f"two loops on {size} times", 1, arguments, contenders, 4 * size**3, 8 * 3 * size**2, 0, 1e-11,
                    compiled)  # fmt: skip
