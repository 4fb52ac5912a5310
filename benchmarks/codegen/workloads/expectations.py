"""(e) bivariate Gaussian expectations E f(u) f(v) on batches of covariances."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import sympy as sp

import symtensor

from .workload import Workload

__all__ = ["erf_expectation", "tanh_expectation"]


def _covariances(batch: int) -> list[Any]:
    rng = np.random.default_rng(3)
    k11, k22 = rng.uniform(0.2, 2, batch), rng.uniform(0.2, 2, batch)
    return [jnp.asarray(v) for v in (k11, rng.uniform(-0.9, 0.9, batch) * np.sqrt(k11 * k22), k22)]


def _node(function: sp.Expr, u: sp.Symbol) -> tuple[Any, list[sp.Symbol]]:
    v = sp.Symbol("v", real=True)
    k11, k22 = sp.symbols("k11 k22", positive=True)
    k12 = sp.Symbol("k12", real=True)
    law = sp.Matrix([[k11, k12], [k12, k22]])
    return symtensor.GaussianExpectation(function * function.subs(u, v), (u, v), law), [k11, k12, k22]


def erf_expectation(batch: int = 100_000) -> Workload:
    """The closed form, found by symtensor and known to the author of the other."""
    u = sp.Symbol("u", real=True)
    node, symbols = _node(sp.erf(u), u)

    def hand(k11: Any, k12: Any, k22: Any) -> Any:
        return 2 / np.pi * jnp.arcsin(2 * k12 / jnp.sqrt((1 + 2 * k11) * (1 + 2 * k22)))

    contenders = {"symtensor": lambda: symtensor.compile(node, symbols, reference_points=False).function, "hand": lambda: hand}
    return Workload("e erf", "E erf(u) erf(v)", batch, _covariances(batch), contenders, 10, 8 * 4, 15.0, 1e-12,
                    lambda: symtensor.compile(node, symbols))  # fmt: skip


def tanh_expectation(batch: int = 10_000, nodes: int = 33) -> Workload:
    """The same trapezoidal rule in both (1e-8 or better at these covariances), so that the code is compared, not the rule."""
    u = sp.Symbol("u", real=True)
    node, symbols = _node(sp.tanh(u), u)
    points = np.linspace(-7, 7, nodes)
    weights = (points[1] - points[0]) / np.sqrt(2 * np.pi) * np.exp(-points * points / 2)

    def one(k11: Any, k12: Any, k22: Any) -> Any:
        left = jnp.sqrt(k11)
        slope = k12 / left
        rest = jnp.sqrt(k22 - slope * slope)
        inner = jnp.tanh(slope * points[:, None] + rest * points) @ weights
        return (jnp.tanh(left * points) * weights) @ inner

    def hand(k11: Any, k12: Any, k22: Any) -> Any:
        return jax.lax.map(lambda values: one(*values), (k11, k12, k22), batch_size=64)

    def ours(rule: str | None = None) -> Any:
        return symtensor.compile(node, symbols, rule=rule, reference_points=False)

    contenders = {"symtensor": lambda: ours(f"trapezoid:{nodes}@7.0").function, "hand": lambda: hand}
    count = nodes * (nodes + 1)
    return Workload("e tanh", "E tanh(u) tanh(v)", batch, _covariances(batch), contenders, 4 * count, 8 * 4, 2.5 * count, 1e-9,
                    ours)  # fmt: skip
