r"""Trajectories of a stochastic equation at two step sizes and of its linear part, all driven by one noise.

Constant noise: Strang splitting of the generator. With N(u) = f(x* + u) + A u,

    u -> kick(h/2) -> exp(-A h) u + xi -> kick(h/2),

kick the flow of du/dt = N(u) by the midpoint rule, xi the exact noise of the linear equation over h: weak order 2, exact for N = 0.
Noise that depends on x: the Euler-Maruyama scheme (Ito), weak order 1. A step 2h uses exp(-A h) xi_1 + xi_2, or dW_1 + dW_2: the
noise of the same path. Responses are the derivatives of the steps, propagated beside the path.

References: Kloeden & Platen, Numerical Solution of Stochastic Differential Equations (1992), sections 14.1, 15.3;
Strang, SIAM J. Numer. Anal. 5 (1968) 506.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from symtensor.numerics._langevin_model import Langevin, factor

__all__ = ["Plan", "Sums", "run_group"]

Step = Callable[[jax.Array, jax.Array], jax.Array]


@dataclass(frozen=True, slots=True)
class Plan:
    """Sizes of one group: `step` is h; a record is taken every `pairs` steps of size 2h; `lags` records make the longest lag.

    exponents : monomials whose means are taken; bounds : (low, high) in x, each of length d, or None.
    """

    walkers: int
    step: float
    pairs: int
    lags: int
    burn_in: int
    records: int
    exponents: tuple[tuple[int, ...], ...]
    response: bool
    bounds: tuple[tuple[float, ...], tuple[float, ...]] | None


class Sums(NamedTuple):
    """Sums over records (moments (M, W), products (lags+1, d, d, W), tangents (lags+1, d, d, W)) for each trajectory."""

    moments: jax.Array
    products: jax.Array
    tangents: jax.Array


class _State(NamedTuple):
    """Fine, coarse and linear u (d, W); the tangents (d, d, W) of the first two, columns last but one; who has escaped."""

    paths: tuple[jax.Array, jax.Array, jax.Array]
    tangents: tuple[jax.Array, jax.Array]
    escaped: jax.Array


def run_group(model: Langevin, plan: Plan) -> Callable[[jax.Array], tuple[tuple[Sums, ...], jax.Array]]:
    """key -> (means over the trajectories that have stayed inside, for fine, coarse and linear; how many have)."""
    advance = _advance(model, plan)

    @jax.jit
    def compiled(start: jax.Array, keys: jax.Array) -> tuple[tuple[Sums, ...], jax.Array]:
        identity = _identity(model.size, plan.walkers)
        state = _State((start, start, start), (identity, identity), jnp.zeros(plan.walkers, bool))
        buffers = (jnp.zeros((plan.lags + 1, model.size, plan.walkers)),) * 3
        begin = (state, buffers, (_zero(model, plan),) * 3)
        # one loop for all of the path, so that the step is compiled once; records before 0 only move and fill the buffers
        indices = jnp.arange(-plan.burn_in - plan.lags, plan.records)
        (state, _, sums), _ = lax.scan(functools.partial(_record, advance, plan), begin, (indices, keys))
        inside = ~state.escaped & functools.reduce(jnp.logical_and, [jnp.isfinite(part).all(0) for part in state.paths])
        count = inside.sum()
        return tuple(jax.tree.map(lambda a: _mean(a, inside, count), part) for part in sums), count

    def run(key: jax.Array) -> tuple[tuple[Sums, ...], jax.Array]:
        keys = jax.random.split(key, 1 + plan.burn_in + plan.lags + plan.records)
        start = jnp.asarray(factor(model.covariance)) @ jax.random.normal(keys[0], (model.size, plan.walkers))
        return compiled(start, keys[1:])

    return run


def _mean(values: jax.Array, inside: jax.Array, count: jax.Array) -> jax.Array:
    return jnp.where(inside, values, 0.0).sum(-1) / jnp.maximum(count, 1)


def _identity(size: int, walkers: int) -> jax.Array:
    return jnp.broadcast_to(jnp.eye(size)[:, :, None], (size, size, walkers))


def _zero(model: Langevin, plan: Plan) -> Sums:
    size, walkers = model.size, plan.walkers
    lagged = jnp.zeros((plan.lags + 1, size, size, walkers))
    return Sums(jnp.zeros((len(plan.exponents), walkers)), lagged, lagged if plan.response else jnp.zeros((0, walkers)))


def _record(advance: Any, plan: Plan, carry: Any, record: tuple[jax.Array, jax.Array]) -> tuple[Any, None]:
    """One record: monomials, products with all earlier records in reach, tangents since the last reset."""
    (state, buffers, sums), (index, key) = carry, record
    since = index % plan.lags
    if plan.response:
        fresh = _identity(state.paths[0].shape[0], plan.walkers)
        one, two = (jnp.where(since == 0, fresh, part) for part in state.tangents)
        state = state._replace(tangents=(one, two))
    state = advance(state, key)
    buffers = tuple(jnp.concatenate([path[None], buffer[:-1]]) for path, buffer in zip(state.paths, buffers))

    def added(sums: tuple[Sums, ...]) -> tuple[Sums, ...]:
        found = []
        for i, (path, buffer, total) in enumerate(zip(state.paths, buffers, sums)):
            tangents = total.tangents
            if plan.response and i < 2:
                tangents = tangents.at[since + 1].add(state.tangents[i] * (plan.lags / plan.records))
            products = total.products + path[None, :, None] * buffer[:, None, :] / plan.records
            found.append(Sums(total.moments + _monomials(path, plan) / plan.records, products, tangents))
        return tuple(found)

    return (state, buffers, lax.cond(index >= 0, added, lambda sums: sums, sums)), None


def _monomials(path: jax.Array, plan: Plan) -> jax.Array:
    """The powers of u, each from a lower one by one multiplication."""
    known = {(0,) * path.shape[0]: jnp.ones_like(path[0])}
    for k in plan.exponents:
        i = next(i for i, n in enumerate(k) if n)
        known[k] = known[(*k[:i], k[i] - 1, *k[i + 1 :])] * path[i]
    return jnp.stack([known[k] for k in plan.exponents])


def _advance(model: Langevin, plan: Plan) -> Callable[[_State, jax.Array], _State]:
    """From one record to the next."""
    multiplicative = model.noise is not None
    decay, law, joint = (jnp.asarray(part) for part in model.step_law(plan.step))
    chosen = joint if multiplicative else law
    width = model.amplitude.shape[1]
    fine, coarse = (_step(model, h) for h in (plan.step, 2 * plan.step))

    def pair(state: _State, normal: jax.Array) -> tuple[_State, None]:
        one, two = chosen @ normal[0], chosen @ normal[1]
        exact_one, exact_two = (part[width:] if multiplicative else part for part in (one, two))
        shared = one[:width] + two[:width] if multiplicative else decay @ one + two
        kicks = (one[:width], two[:width]) if multiplicative else (one, two)
        (a, b, y), (s, t), escaped = state
        y = decay @ (decay @ y + exact_one) + exact_two
        for kick in kicks:
            a, s = _with_tangents(fine, a, s, kick, plan.response)
            escaped = escaped | _outside(a, model, plan)
        b, t = _with_tangents(coarse, b, t, shared, plan.response)
        escaped = escaped | _outside(b, model, plan)
        a, b = (jnp.where(escaped, 0.0, path) for path in (a, b)) if plan.bounds else (a, b)
        return _State((a, b, y), (s, t), escaped), None

    shape = (plan.pairs, 2, chosen.shape[1], plan.walkers)
    return lambda state, key: lax.scan(pair, state, jax.random.normal(key, shape))[0]


def _outside(path: jax.Array, model: Langevin, plan: Plan) -> jax.Array:
    if plan.bounds is None:
        return jnp.zeros(path.shape[1:], bool)
    low, high = (jnp.asarray(bound)[:, None] - jnp.asarray(model.point)[:, None] for bound in plan.bounds)
    return ~((path >= low) & (path <= high)).all(0)


def _with_tangents(step: Step, path: jax.Array, tangents: jax.Array, kick: jax.Array, wanted: bool) -> tuple[jax.Array, jax.Array]:
    if not wanted:
        return step(path, kick), tangents
    moved, push = jax.linearize(lambda u: step(u, kick), path)
    return moved, jax.vmap(push, in_axes=1, out_axes=1)(tangents)


def _step(model: Langevin, step: float) -> Step:
    """One step of the scheme as a function of u and the noise."""
    point, linear = jnp.asarray(model.point)[:, None], jnp.asarray(model.linear)
    decay, noise = jnp.asarray(model.decay(step)), model.noise
    if noise is not None:
        return lambda u, dw: u + step * model.drift(point + u) + jnp.einsum("imw,mw->iw", noise(point + u), dw)

    def rest(u: jax.Array) -> jax.Array:
        return model.drift(point + u) + linear @ u

    def kicked(u: jax.Array) -> jax.Array:
        return u + (step / 2) * rest(u + (step / 4) * rest(u))

    return lambda u, xi: kicked(decay @ kicked(u) + xi)
