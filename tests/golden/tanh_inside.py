r"""Kernel hierarchy of a residual network with activation tanh.

n Cov(G_ab, G_cd) = V_4 and n (E G - K_0) = K_1 at order 1/n, for
phi' = phi + sqrt(dt) eta,  eta | phi ~ N(0, C_b + C_W S),  S_ab = mean_i sigma(phi_a) sigma(phi_b).

Equations

    K_0' = K_0 + dt\,(C_b + C_W\,\mathrm{E}[\sigma\sigma])
    V_4' = V_4 + dt\,(\chi V_4 + V_4 \chi^T + N)

Functions (jitted; differentiable; arrays may be float32 or float64, results follow)

    moments(K) -> Moments
    Q(c_w, c_b, m00) -> (P, P)
    K0_step(alpha, dt, K0, Q0) -> (P, P)
    V4_noise(K0, Q0) -> (P, P, P, P)
    V4_transport(c_w, m20, m11, V4) -> (P, P, P, P)
    V4_step(dt, V4, transport, noise) -> (P, P, P, P)
    U1_model(m40, m31, m22, V4) -> (P, P)
    K1_transport(c_w, m20, m11, K1) -> (P, P)
    K1_step(dt, c_w, K1, moved, source) -> (P, P)
    drift(c_w, moved, source) -> (P, P)
    V4_drift(transport, noise) -> (P, P, P, P)
    layer(K0, V4, K1, c_w, c_b, alpha, dt) -> Layer
    hierarchy(K0, V4, K1, c_w, c_b, alpha, dt) -> Hierarchy
    flow(K0, V4, K1, c_w, c_b) -> Flow
    continuous(K0, V4, K1, c_w, c_b) -> Continuous

P is the number of inputs. Run this file to compare every function with the reference values it holds.

References

    Kawase & Ota, Collective Kernel EFT for Pre-activation ResNets, arXiv:2604.15742
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import diffrax
import jax
import jax.numpy as jnp
from jax import Array, lax


def _floats(*values: Array) -> tuple[Array, ...]:
    """All values in one floating type: float64 if any is, integers follow the others."""
    dtype = jnp.result_type(float, *values)
    return tuple(jnp.asarray(value, dtype) for value in values)


def _broadcast(letters: str, x: Array) -> Array:
    """The axes of x placed where the output has their letters, "ba->abef"; a repeated letter takes the diagonal."""
    own, axes = letters.split("->")
    for letter in [letter for letter in dict.fromkeys(own) if own.count(letter) > 1]:
        while own.count(letter) > 1:
            first, second = own.index(letter), own.rindex(letter)
            x = jnp.diagonal(x, axis1=first, axis2=second)
            own = own[:first] + own[first + 1 : second] + own[second + 1 :] + letter
    x = jnp.transpose(x, [own.index(letter) for letter in axes if letter in own])
    return jnp.expand_dims(x, [place for place, letter in enumerate(axes) if letter not in own])


def _sqrt(x: Array) -> Array:
    """sqrt(x); 0, with gradient 0, where x <= 0."""
    positive = x > 0
    return jnp.where(positive, jnp.sqrt(jnp.where(positive, x, 1)), 0)


def _ratio(x: Array, y: Array) -> Array:
    """x / y; 0, with gradient 0, where y = 0."""
    nonzero = y != 0
    return jnp.where(nonzero, x / jnp.where(nonzero, y, 1), 0)


@jax.custom_jvp
def _sech2(x: Array) -> Array:
    """1 - tanh(x)**2 without cancellation or overflow."""
    decay = jnp.exp(-2 * jnp.abs(x))
    return 4 * decay / (1 + decay) ** 2


# by hand, because differentiating |x| loses the even derivatives at 0
_sech2.defjvps(lambda dx, value, x: -2 * jnp.tanh(x) * value * dx)


#: quadrature of the moments; another rule can be passed to `moments` as z, w
RULE = "trapezoid:113@8.5"
#: (i, j) of the moments that are evaluated per pair
ORDERS = ((0, 0), (2, 0), (1, 1), (4, 0), (3, 1), (2, 2), (0, 2), (0, 4), (1, 3))
#: position of (j, i) among them
MIRROR = (0, 6, 2, 7, 8, 5, 1, 3, 4)
#: cap on the quadrature nodes held in memory at a time, by platform (8 bytes each in float64, about ten arrays)
BATCH_NODES = {"cpu": 50_000, "default": 4_000_000}


class Moments(NamedTuple):
    r"""Tables m_ij[a, b] = E[d_a^i d_b^j sigma(phi_a) sigma(phi_b)], phi ~ N(0, K); m_ji[a, b] = m_ij[b, a]."""

    m00: Array
    m20: Array
    m11: Array
    m40: Array
    m31: Array
    m22: Array


def activation(x: Array) -> Array:
    r"""sigma(x) = \tanh{\left(x \right)}"""
    return jnp.tanh(x)


def activation_derivatives(x: Array) -> tuple[Array, ...]:
    """sigma(x) and its derivatives up to order 4."""
    t0 = jnp.tanh(x)
    t1 = _sech2(x)
    t2 = t0**2
    return (
        t0,
        t1,
        -2 * t1 * t0,
        t1 * (-2 * t1 + 4 * t2),
        t1 * t0 * (16 * t1 - 8 * t2),
    )


def nodes(dtype: Any = float) -> tuple[Array, Array]:
    """Nodes and weights of E f(Z), Z standard normal: trapezoid:113@8.5."""
    z = (17 / 112) * (jnp.arange(113, dtype=dtype) - 56)
    return z, 0.06055373898950318 * jnp.exp(-0.5 * z * z)


_dot = partial(jnp.matmul, precision=lax.Precision.HIGHEST)


def _factor(k11: Array, k12: Array, k22: Array) -> tuple[Array, Array, Array]:
    """Cholesky factor of a pair: x = l11 z1, y = l21 z1 + l22 z2; l22 = 0 if singular (det <= 500 eps k11 k22)."""
    l11 = _sqrt(k11)
    rest = jnp.where(k11 > 0, _ratio(k11 * k22 - k12 * k12, k11), k22)
    regular = rest > 500 * jnp.finfo(rest.dtype).eps * k22
    return l11, _ratio(k12, l11), _sqrt(jnp.where(regular, rest, 0))


def _single(k: Array, z: Array, w: Array) -> Array:
    """All m_ij of one input with itself."""
    x = jnp.stack(activation_derivatives(_sqrt(k) * z))
    return _select(_dot(x * w, x.T))


def _pair(k11: Array, k12: Array, k22: Array, z: Array, w: Array) -> Array:
    """All m_ij of two inputs; the sum over z2 comes first, because x does not depend on it."""
    l11, l21, l22 = _factor(k11, k12, k22)
    x = jnp.stack(activation_derivatives(l11 * z))
    y = jnp.stack([_dot(values, w) for values in activation_derivatives(l21 * z[:, None] + l22 * z)])
    return _select(_dot(x * w, y.T))


def _select(table: Array) -> Array:
    return jnp.stack([table[i, j] for i, j in ORDERS])


@jax.jit
def moments(K: Array, z: Array | None = None, w: Array | None = None) -> Moments:
    r"""Weak Gaussian moments.

        m_{ij}[a,b] = \mathrm{E}\,[\partial_a^i \partial_b^j\, \sigma(\phi_a)\, \sigma(\phi_b)], \quad \phi \sim
        N(0, K)

    K  (P, P)  covariance
    Returns Moments:
        m00  (P, P)
        m20  (P, P)
        m11  (P, P)
        m40  (P, P)
        m31  (P, P)
        m22  (P, P)
    """
    (K,) = _floats(K)
    if K.ndim != 2 or K.shape[0] != K.shape[1]:
        raise ValueError(f"K has shape {K.shape}; a covariance has shape (P, P)")
    if z is None or w is None:
        z, w = nodes(K.dtype)
    P, k = K.shape[0], jnp.diagonal(K)
    pairs = [(a, b) for a in range(P) for b in range(a + 1, P)]
    place = {(a, a): a for a in range(P)}
    values = jax.vmap(lambda variance: _single(variance, z, w))(k)
    if pairs:
        a, b = jnp.array(pairs).T
        upper = _batched(lambda pair: _pair(*pair, z, w), (k[a], K[a, b], k[b]), 12769)
        values = jnp.concatenate([values, upper, upper[:, jnp.array(MIRROR)]])
        place |= {pair: P + n for n, pair in enumerate(pairs)}
        place |= {(b, a): P + len(pairs) + n for n, (a, b) in enumerate(pairs)}
    values = values[jnp.array([[place[a, b] for b in range(P)] for a in range(P)])]
    return Moments(*(values[..., n] for n in range(6)))


def _batched(function: Callable[[Any], Array], arguments: tuple[Array, ...], size: int) -> Array:
    """`function` of every pair, in batches: small ones that stay in the cache of a CPU, large ones elsewhere."""

    def run(limit: int, arguments: tuple[Array, ...]) -> Array:
        if len(arguments[0]) * size <= limit:
            return jax.vmap(function)(arguments)
        return lax.map(function, arguments, batch_size=max(1, limit // size))

    return lax.platform_dependent(
        arguments, cpu=partial(run, BATCH_NODES["cpu"]), default=partial(run, BATCH_NODES["default"])
    )


@jax.jit
def Q(c_w: Array, c_b: Array, m00: Array) -> Array:
    r"""Drive.

        \mathrm{Q}_{ab} = c_{b} {\delta}_{aa} {\delta}_{bb} + c_{w} {m_{00}}_{ab}

    c_w  scalar
    c_b  scalar
    m00  (P, P)
    Returns (P, P).
    """
    return c_b + c_w * m00


@jax.jit
def K0_step(alpha: Array, dt: Array, K0: Array, Q0: Array) -> Array:
    r"""Sum of products of arrays.

        \mathrm{K0\_step}_{ab} = \alpha^{2} {K_{0}}_{ab} + dt {Q_{0}}_{ab}

    alpha  scalar
    dt     scalar
    K0     (P, P)
    Q0     (P, P)
    Returns (P, P).
    """
    return alpha**2 * K0 + dt * Q0


@jax.jit
def V4_noise(K0: Array, Q0: Array) -> Array:
    r"""Noise of one layer.

        \mathrm{V4\_noise}_{abcd} = {K_{0}}_{ac} {Q_{0}}_{bd} + {K_{0}}_{ad} {Q_{0}}_{bc} + {K_{0}}_{bc}
        {Q_{0}}_{ad} + {K_{0}}_{bd} {Q_{0}}_{ac}

    K0  (P, P)
    Q0  (P, P)
    Returns (P, P, P, P).
    """
    K0_ac = _broadcast("ac->abcd", K0)
    Q0_bd = _broadcast("bd->abcd", Q0)
    K0_ad = _broadcast("ad->abcd", K0)
    Q0_bc = _broadcast("bc->abcd", Q0)
    K0_bc = _broadcast("bc->abcd", K0)
    Q0_ad = _broadcast("ad->abcd", Q0)
    K0_bd = _broadcast("bd->abcd", K0)
    Q0_ac = _broadcast("ac->abcd", Q0)
    return K0_ac * Q0_bd + K0_ad * Q0_bc + K0_bc * Q0_ad + K0_bd * Q0_ac


@jax.jit
def V4_transport(c_w: Array, m20: Array, m11: Array, V4: Array) -> Array:
    r"""Sum of products of arrays.

        \mathrm{V4\_transport}_{abef} = \frac{c_{w}}{2} {m_{20}}_{ab} {V_{4}}_{aaef} + c_{w} {m_{11}}_{ab}
        {V_{4}}_{abef} + \frac{c_{w}}{2} {m_{20}}_{ba} {V_{4}}_{bbef} + \frac{c_{w}}{2} {m_{20}}_{ef} {V_{4}}_{eeab}
        + c_{w} {m_{11}}_{ef} {V_{4}}_{efab} + \frac{c_{w}}{2} {m_{20}}_{fe} {V_{4}}_{ffab}

    c_w  scalar
    m20  (P, P)
    m11  (P, P)
    V4   (P, P, P, P)
    Returns (P, P, P, P).
    """
    V4_aaef = _broadcast("aaef->abef", V4)
    m20_ab = _broadcast("ab->abef", m20)
    m11_ab = _broadcast("ab->abef", m11)
    V4_bbef = _broadcast("bbef->abef", V4)
    m20_ba = _broadcast("ba->abef", m20)
    half = c_w * (0.5 * (V4_aaef * m20_ab + V4_bbef * m20_ba) + V4 * m11_ab)
    return half + half.transpose(2, 3, 0, 1)


@jax.jit
def V4_step(dt: Array, V4: Array, transport: Array, noise: Array) -> Array:
    r"""Sum of products of arrays.

        \mathrm{V4\_step}_{abcd} = {V_{4}}_{abcd} + dt {transport}_{abcd} + dt {noise}_{abcd}

    dt         scalar
    V4         (P, P, P, P)
    transport  (P, P, P, P)
    noise      (P, P, P, P)
    Returns (P, P, P, P).
    """
    return V4 + dt * (noise + transport)


@jax.jit
def U1_model(m40: Array, m31: Array, m22: Array, V4: Array) -> Array:
    r"""Sum of products of arrays.

        \mathrm{U1\_model}_{ab} = \frac{1}{8} {m_{40}}_{ab} {V_{4}}_{aaaa} + \frac{1}{2} {m_{31}}_{ab}
        {V_{4}}_{aaab} + \frac{1}{4} {m_{22}}_{ab} {V_{4}}_{aabb} + \frac{1}{2} {m_{22}}_{ab} {V_{4}}_{abab} +
        \frac{1}{2} {m_{31}}_{ba} {V_{4}}_{abbb} + \frac{1}{8} {m_{40}}_{ba} {V_{4}}_{bbbb}

    m40  (P, P)
    m31  (P, P)
    m22  (P, P)
    V4   (P, P, P, P)
    Returns (P, P).
    """
    V4_aaab = _broadcast("aaab->ab", V4)
    V4_aaaa = _broadcast("aaaa->ab", V4)
    V4_aabb = _broadcast("aabb->ab", V4)
    V4_abab = _broadcast("abab->ab", V4)
    half = 0.5 * V4_aaab * m31 + 0.125 * V4_aaaa * m40
    return half + half.transpose(1, 0) + 0.25 * V4_aabb * m22 + 0.5 * V4_abab * m22


@jax.jit
def K1_transport(c_w: Array, m20: Array, m11: Array, K1: Array) -> Array:
    r"""Sum of products of arrays.

        \mathrm{K1\_transport}_{ab} = \frac{c_{w}}{2} {m_{20}}_{ab} {K_{1}}_{aa} + c_{w} {m_{11}}_{ab} {K_{1}}_{ab}
        + \frac{c_{w}}{2} {m_{20}}_{ba} {K_{1}}_{bb}

    c_w  scalar
    m20  (P, P)
    m11  (P, P)
    K1   (P, P)
    Returns (P, P).
    """
    K1_aa = _broadcast("aa->ab", K1)
    K1_bb = _broadcast("bb->ab", K1)
    m20_ba = _broadcast("ba->ab", m20)
    return c_w * (0.5 * (K1_aa * m20 + K1_bb * m20_ba) + K1 * m11)


@jax.jit
def K1_step(dt: Array, c_w: Array, K1: Array, moved: Array, source: Array) -> Array:
    r"""Sum of products of arrays.

        \mathrm{K1\_step}_{ab} = {K_{1}}_{ab} + dt {moved}_{ab} + c_{w} dt {source}_{ab}

    dt      scalar
    c_w     scalar
    K1      (P, P)
    moved   (P, P)
    source  (P, P)
    Returns (P, P).
    """
    return K1 + dt * moved + c_w * dt * source


@jax.jit
def drift(c_w: Array, moved: Array, source: Array) -> Array:
    r"""Sum of products of arrays.

        \mathrm{drift}_{ab} = {moved}_{ab} + c_{w} {source}_{ab}

    c_w     scalar
    moved   (P, P)
    source  (P, P)
    Returns (P, P).
    """
    return moved + c_w * source


@jax.jit
def V4_drift(transport: Array, noise: Array) -> Array:
    r"""Sum of products of arrays.

        \mathrm{V4\_drift}_{abcd} = {transport}_{abcd} + {noise}_{abcd}

    transport  (P, P, P, P)
    noise      (P, P, P, P)
    Returns (P, P, P, P).
    """
    return noise + transport


class Layer(NamedTuple):
    r"""What layer returns."""

    K0_next: Array
    V4_next: Array
    K1_next: Array
    U1: Array


@jax.jit
def layer(K0: Array, V4: Array, K1: Array, c_w: Array, c_b: Array, alpha: Array, dt: Array) -> Layer:
    r"""One layer of the kernel-only hierarchy.

    K0     (P, P)        mean kernel
    V4     (P, P, P, P)  covariance of the kernel, times n
    K1     (P, P)
    c_w    scalar
    c_b    scalar
    alpha  scalar
    dt     scalar
    Returns Layer:
        K0_next  (P, P)
        V4_next  (P, P, P, P)
        K1_next  (P, P)
        U1       (P, P)
    """
    m = moments(K0)
    Q0 = Q(c_w, c_b, m.m00)
    noise = V4_noise(K0, Q0)
    transport = V4_transport(c_w, m.m20, m.m11, V4)
    U1 = U1_model(m.m40, m.m31, m.m22, V4)
    moved = K1_transport(c_w, m.m20, m.m11, K1)
    K0_next = K0_step(alpha, dt, K0, Q0)
    V4_next = V4_step(dt, V4, transport, noise)
    K1_next = K1_step(dt, c_w, K1, moved, U1)
    return Layer(K0_next=K0_next, V4_next=V4_next, K1_next=K1_next, U1=U1)


class Hierarchy(NamedTuple):
    r"""What hierarchy returns."""

    K0: Array
    V4: Array
    K1: Array
    U1: Array


@partial(jax.jit, static_argnames="depth")
def hierarchy(
    K0: Array,
    V4: Array,
    K1: Array,
    c_w: Array,
    c_b: Array,
    alpha: Array,
    dt: Array,
    *,
    depth: int,
) -> Hierarchy:
    r"""All layers.

    K0     (P, P)        mean kernel
    V4     (P, P, P, P)  covariance of the kernel, times n
    K1     (P, P)
    c_w    scalar
    c_b    scalar
    alpha  scalar
    dt     scalar
    depth  scalar        number of layers, a static integer
    Returns Hierarchy:
        K0  (depth + 1, P, P)        mean kernel
        V4  (depth + 1, P, P, P, P)  covariance of the kernel, times n
        K1  (depth + 1, P, P)
        U1  (depth + 1, P, P)
    """
    K0, V4, K1, c_w, c_b, alpha, dt = _floats(K0, V4, K1, c_w, c_b, alpha, dt)

    def _advance(_state: tuple[Array, ...], _: None) -> tuple[tuple[Array, ...], tuple[Array, ...]]:
        K0, V4, K1 = _state
        _now = jax.checkpoint(layer, prevent_cse=False)(K0, V4, K1, c_w, c_b, alpha, dt)
        return (_now.K0_next, _now.V4_next, _now.K1_next), (K0, V4, K1, _now.U1)

    _, _history = lax.scan(_advance, (K0, V4, K1), None, length=depth + 1)
    return Hierarchy(*_history)


class Flow(NamedTuple):
    r"""What flow returns."""

    Q0: Array
    V4_rate: Array
    K1_rate: Array


@jax.jit
def flow(K0: Array, V4: Array, K1: Array, c_w: Array, c_b: Array) -> Flow:
    r"""Several functions in sequence.

    K0   (P, P)        mean kernel
    V4   (P, P, P, P)  covariance of the kernel, times n
    K1   (P, P)
    c_w  scalar
    c_b  scalar
    Returns Flow:
        Q0       (P, P)
        V4_rate  (P, P, P, P)
        K1_rate  (P, P)
    """
    m = moments(K0)
    Q0 = Q(c_w, c_b, m.m00)
    noise = V4_noise(K0, Q0)
    transport = V4_transport(c_w, m.m20, m.m11, V4)
    U1 = U1_model(m.m40, m.m31, m.m22, V4)
    moved = K1_transport(c_w, m.m20, m.m11, K1)
    V4_rate = V4_drift(transport, noise)
    K1_rate = drift(c_w, moved, U1)
    return Flow(Q0=Q0, V4_rate=V4_rate, K1_rate=K1_rate)


class Continuous(NamedTuple):
    r"""What continuous returns."""

    K0: Array
    V4: Array
    K1: Array
    success: Array
    steps: Array


@partial(jax.jit, static_argnames="max_steps")
def continuous(
    K0: Array,
    V4: Array,
    K1: Array,
    c_w: Array,
    c_b: Array,
    ts: Array,
    rtol: float | None = None,
    atol: float | None = None,
    *,
    max_steps: int = 256,
) -> Continuous:
    r"""The hierarchy in continuous depth.

    K0          (P, P)        mean kernel
    V4          (P, P, P, P)  covariance of the kernel, times n
    K1          (P, P)
    c_w         scalar
    c_b         scalar
    ts          (T,)          increasing times at which the state is returned; the first is the initial time
    rtol, atol  scalar        tolerances per step; by default 1e-12 in float64 (1e-10 between steps), 1e-6 in
    max_steps   scalar        static; `success` is False if they do not suffice; about 16 states are kept per step
    Returns Continuous:
        K0       (T, P, P)        mean kernel
        V4       (T, P, P, P, P)  covariance of the kernel, times n
        K1       (T, P, P)
        success  scalar
        steps    scalar
    """
    K0, V4, K1, c_w, c_b, ts = _floats(K0, V4, K1, c_w, c_b, ts)
    _accuracy = 1e-12 if ts.dtype == jnp.float64 else 1e-6

    def _rate(_t: Array, _state: tuple[Array, ...], _: None) -> tuple[Array, ...]:
        K0, V4, K1 = _state
        _now = flow(K0, V4, K1, c_w, c_b)
        return (_now.Q0, _now.V4_rate, _now.K1_rate)

    _solution = diffrax.diffeqsolve(
        diffrax.ODETerm(_rate),
        diffrax.Dopri8(),
        t0=ts[0],
        t1=ts[-1],
        dt0=None,
        y0=(K0, V4, K1),
        # dense output, evaluated below: asking for `ts` here would check their order by a call to the host
        saveat=diffrax.SaveAt(dense=True),
        stepsize_controller=diffrax.PIDController(
            rtol=_accuracy if rtol is None else rtol, atol=_accuracy if atol is None else atol
        ),
        max_steps=max_steps,
        throw=False,
    )
    return Continuous(
        *lax.map(_solution.evaluate, ts),
        success=_solution.result == diffrax.RESULTS.successful,
        steps=_solution.stats["num_steps"],
    )


#: (function, arguments, expected values): 30 digits, evaluated from the mathematical input by an independent route
REFERENCE = (
    (
        "moments",
        {
            "K": [["1", "0.125"], ["0.125", "0.25"]],
        },
        {
            "m00": [
                ["0.394294490397841201900774876776", "0.0626946146961236544514761703795"],
                ["0.0626946146961236544514761703795", "0.173516143432371844346207012677"],
            ],
            "m20": [
                ["-0.282605214307781182903056560463", "-0.0377882534118987520321830686498"],
                ["-0.0760810061915543761612568118835", "-0.218207989929036394460837300358"],
            ],
            "m11": [
                ["0.46440290244826826215884807425", "0.50347080494095264313614279672"],
                ["0.50347080494095264313614279672", "0.717379861603109958423374337144"],
            ],
            "m40": [
                ["0.670802014793999812347635725018", "0.0715223177976960222679281287128"],
                ["0.315740994187867829445792722254", "0.947852723712499733998981810146"],
            ],
            "m31": [
                ["-0.478500086890255360572155041154", "-0.305945112618502712553691935682"],
                ["-0.616629536821118540146358100174", "-0.979588552349058616641741537023"],
            ],
            "m22": [
                ["0.30020381200418738698587617364", "0.0463113186037099749947643090309"],
                ["0.0463113186037099749947643090309", "0.303447447238107570477438912349"],
            ],
        },
    ),
    (
        "moments",
        {
            "K": [["0.25", "0.5"], ["0.5", "1"]],
        },
        {
            "m00": [
                ["0.173516143432371844346207012677", "0.258735725874620403619275066376"],
                ["0.258735725874620403619275066376", "0.394294490397841201900774876776"],
            ],
            "m20": [
                ["-0.218207989929036394460837300358", "-0.340878329768994237092272214795"],
                ["-0.167587956560215217693965428225", "-0.282605214307781182903056560463"],
            ],
            "m11": [
                ["0.717379861603109958423374337144", "0.555366327521186642357520213409"],
                ["0.555366327521186642357520213409", "0.46440290244826826215884807425"],
            ],
            "m40": [
                ["0.947852723712499733998981810146", "1.58057483708301105274074416229"],
                ["0.345498246887052162801268195835", "0.670802014793999812347635725018"],
            ],
            "m31": [
                ["-0.979588552349058616641741537023", "-0.874673489590580222063920246001"],
                ["-0.420629108556977493460493633393", "-0.478500086890255360572155041154"],
            ],
            "m22": [
                ["0.303447447238107570477438912349", "0.267638369593083180753012584319"],
                ["0.267638369593083180753012584319", "0.30020381200418738698587617364"],
            ],
        },
    ),
    (
        "moments",
        {
            "K": [["0", "0"], ["0", "1"]],
        },
        {
            "m00": [["0", "0"], ["0", "0.394294490397841201900774876776"]],
            "m20": [["0", "0"], ["0", "-0.282605214307781182903056560463"]],
            "m11": [
                ["1", "0.605705509602158853610376354482"],
                ["0.605705509602158853610376354482", "0.46440290244826826215884807425"],
            ],
            "m40": [["0", "0"], ["0", "0.670802014793999812347635725018"]],
            "m31": [
                ["-2", "-1.21141101920431770722075270896"],
                ["-0.363595376280974158511583027575", "-0.478500086890255360572155041154"],
            ],
            "m22": [["0", "0"], ["0", "0.30020381200418738698587617364"]],
        },
    ),
    (
        "Q",
        {
            "c_w": "0.5",
            "c_b": "0.75",
            "m00": [["0.25", "0.75"], ["0.75", "0.625"]],
        },
        {
            "Q": [["0.875", "1.125"], ["1.125", "1.0625"]],
        },
    ),
    (
        "K0_step",
        {
            "alpha": "0.5",
            "dt": "0.75",
            "K0": [["0.25", "0.75"], ["0.75", "0.625"]],
            "Q0": [["0.75", "1.25"], ["1.25", "1.125"]],
        },
        {
            "K0_step": [["0.625", "1.125"], ["1.125", "1"]],
        },
    ),
    (
        "V4_noise",
        {
            "K0": [["-0.75", "-0.25"], ["-0.25", "-0.375"]],
            "Q0": [["-0.25", "0.25"], ["0.25", "0.125"]],
        },
        {
            "V4_noise": [
                [[["0.75", "-0.25"], ["-0.25", "-0.25"]], [["-0.25", "-0.125"], ["-0.125", "-0.25"]]],
                [[["-0.25", "-0.125"], ["-0.125", "-0.25"]], [["-0.25", "-0.25"], ["-0.25", "-0.1875"]]],
            ],
        },
    ),
    (
        "V4_transport",
        {
            "c_w": "0.5",
            "m20": [["-0.25", "0.25"], ["-0.375", "0.125"]],
            "m11": [["0.25", "0.75"], ["0.75", "0.625"]],
            "V4": [
                [[["0.75", "0.375"], ["0.375", "-0.625"]], [["0.375", "0.875"], ["0.875", "-0.125"]]],
                [[["0.375", "0.875"], ["0.875", "-0.125"]], [["-0.625", "-0.125"], ["-0.125", "-0.25"]]],
            ],
        },
        {
            "V4_transport": [
                [
                    [["0", "0.24609375"], ["0.24609375", "-0.234375"]],
                    [["0.24609375", "0.7265625"], ["0.7265625", "-0.109375"]],
                ],
                [
                    [["0.24609375", "0.7265625"], ["0.7265625", "-0.109375"]],
                    [["-0.234375", "-0.109375"], ["-0.109375", "-0.1875"]],
                ],
            ],
        },
    ),
    (
        "V4_step",
        {
            "dt": "0.5",
            "V4": [
                [[["-0.25", "-0.625"], ["-0.625", "0.5"]], [["-0.625", "-0.125"], ["-0.125", "1"]]],
                [[["-0.625", "-0.125"], ["-0.125", "1"]], [["0.5", "1"], ["1", "0.875"]]],
            ],
            "transport": [
                [[["0.25", "-0.125"], ["-0.75", "1"]], [["0.75", "0.375"], ["-0.25", "-0.625"]]],
                [[["0.125", "-0.25"], ["1.25", "0.875"]], [["0.625", "0.25"], ["-0.375", "-0.75"]]],
            ],
            "noise": [
                [[["0.75", "0.375"], ["-0.25", "-0.625"]], [["1.25", "0.875"], ["0.25", "-0.125"]]],
                [[["0.625", "0.25"], ["-0.375", "-0.75"]], [["1.125", "0.75"], ["0.125", "-0.25"]]],
            ],
        },
        {
            "V4_step": [
                [[["0.25", "-0.5"], ["-1.125", "0.6875"]], [["0.375", "0.5"], ["-0.125", "0.625"]]],
                [[["-0.25", "-0.125"], ["0.3125", "1.0625"]], [["1.375", "1.5"], ["0.875", "0.375"]]],
            ],
        },
    ),
    (
        "U1_model",
        {
            "m40": [["-0.75", "-0.25"], ["1.25", "-0.375"]],
            "m31": [["-0.25", "0.25"], ["-0.375", "0.125"]],
            "m22": [["0.25", "0.75"], ["0.75", "0.625"]],
            "V4": [
                [[["0.75", "0.375"], ["0.375", "-0.625"]], [["0.375", "0.875"], ["0.875", "-0.125"]]],
                [[["0.375", "0.875"], ["0.875", "-0.125"]], [["-0.625", "-0.125"], ["-0.125", "-0.25"]]],
            ],
        },
        {
            "U1_model": [["-0.1875", "0.21875"], ["0.21875", "-0.125"]],
        },
    ),
    (
        "K1_transport",
        {
            "c_w": "0.5",
            "m20": [["-0.25", "0.25"], ["-0.375", "0.125"]],
            "m11": [["0.25", "0.75"], ["0.75", "0.625"]],
            "K1": [["0.75", "1.25"], ["1.25", "1.125"]],
        },
        {
            "K1_transport": [["0", "0.41015625"], ["0.41015625", "0.421875"]],
        },
    ),
    (
        "K1_step",
        {
            "dt": "0.5",
            "c_w": "0.75",
            "K1": [["0.25", "0.75"], ["0.75", "0.625"]],
            "moved": [["0.75", "1.25"], ["0.625", "1.125"]],
            "source": [["1.25", "-0.375"], ["-0.375", "-0.5"]],
        },
        {
            "K1_step": [["1.09375", "1.234375"], ["0.921875", "1"]],
        },
    ),
    (
        "drift",
        {
            "c_w": "0.5",
            "moved": [["-0.25", "0.25"], ["-0.375", "0.125"]],
            "source": [["0.25", "0.75"], ["0.75", "0.625"]],
        },
        {
            "drift": [["-0.125", "0.625"], ["0", "0.4375"]],
        },
    ),
    (
        "V4_drift",
        {
            "transport": [
                [[["-0.75", "1"], ["0.375", "0"]], [["-0.25", "-0.625"], ["0.875", "0.5"]]],
                [[["1.25", "0.875"], ["0.25", "-0.125"]], [["-0.375", "-0.75"], ["0.75", "0.375"]]],
            ],
            "noise": [
                [[["-0.25", "-0.625"], ["0.875", "0.5"]], [["0.25", "-0.125"], ["-0.75", "1"]]],
                [[["-0.375", "-0.75"], ["0.75", "0.375"]], [["0.125", "-0.25"], ["1.25", "0.875"]]],
            ],
        },
        {
            "V4_drift": [
                [[["-1", "0.375"], ["1.25", "0.5"]], [["0", "-0.75"], ["0.125", "1.5"]]],
                [[["0.875", "0.125"], ["1", "0.25"]], [["-0.25", "-1"], ["2", "1.25"]]],
            ],
        },
    ),
    (
        "layer",
        {
            "K0": [["1", "0.125"], ["0.125", "0.25"]],
            "V4": [
                [[["-0.25", "-0.625"], ["-0.625", "0.5"]], [["-0.625", "-0.125"], ["-0.125", "1"]]],
                [[["-0.625", "-0.125"], ["-0.125", "1"]], [["0.5", "1"], ["1", "0.875"]]],
            ],
            "K1": [["0.25", "0.75"], ["0.75", "0.625"]],
            "c_w": "1.25",
            "c_b": "0.875",
            "alpha": "0.375",
            "dt": "1.5",
        },
        {
            "K0_next": [
                ["2.19242716949595228825842241349", "1.4476305275552319162812864306"],
                ["1.4476305275552319162812864306", "1.67299901893569713529075215774"],
            ],
            "V4_next": [
                [
                    [
                        ["7.78677334535210174948360872804", "1.91819998239576228193925544474"],
                        ["1.91819998239576228193925544474", "1.85343516360376647789109938458"],
                    ],
                    [
                        ["1.91819998239576228193925544474", "2.0489356949903259064171834325"],
                        ["2.0489356949903259064171834325", "3.92431846798637717910196442972"],
                    ],
                ],
                [
                    [
                        ["1.91819998239576228193925544474", "2.0489356949903259064171834325"],
                        ["2.0489356949903259064171834325", "3.92431846798637717910196442972"],
                    ],
                    [
                        ["1.85343516360376647789109938458", "3.92431846798637717910196442972"],
                        ["3.92431846798637717910196442972", "4.1507504728662514281722906162"],
                    ],
                ],
            ],
            "K1_next": [
                ["0.375364568279266508366021071197", "1.07173292455863955474626436626"],
                ["1.07173292455863955474626436626", "0.364979888224350845771226659053"],
            ],
            "U1": [
                ["0.0214116810471537168114597449176", "-0.177513364496425268823642795724"],
                ["-0.177513364496425268823642795724", "-0.450659812743308851867851672068"],
            ],
        },
    ),
    (
        "hierarchy",
        {
            "K0": [["1"]],
            "V4": [[[["-0.25"]]]],
            "K1": [["0.25"]],
            "c_w": "0.1875",
            "c_b": "0.375",
            "alpha": "0.3125",
            "dt": "0.4375",
            "depth": 2,
        },
        {
            "K0": [[["1"]], [["0.294063219915447926489093788405"]], [["0.208739929705893750844225564833"]]],
            "V4": [
                [[[["-0.25"]]]],
                [[[["0.528171333859154490397713743732"]]]],
                [[[["0.779549637528500927174945900333"]]]],
            ],
            "K1": [[["0.25"]], [["0.255484699862217889965165795729"]], [["0.246071219522328660245236164883"]]],
            "U1": [
                [["0.0214116810471537168114597449176"]],
                [["-0.231586422689756293857854529961"]],
                [["-0.473016291351582185420454607083"]],
            ],
        },
    ),
    (
        "flow",
        {
            "K0": [["1", "0.125"], ["0.125", "0.25"]],
            "V4": [
                [[["-0.25", "-0.625"], ["-0.625", "0.5"]], [["-0.625", "-0.125"], ["-0.125", "1"]]],
                [[["-0.625", "-0.125"], ["-0.125", "1"]], [["0.5", "1"], ["1", "0.875"]]],
            ],
            "K1": [["0.25", "0.75"], ["0.75", "0.625"]],
            "c_w": "1.25",
            "c_b": "0.875",
        },
        {
            "Q0": [
                ["1.36786811299730137747587832564", "0.953368268370154536839322645392"],
                ["0.953368268370154536839322645392", "1.0918951792904647568605014385"],
            ],
            "V4_rate": [
                [
                    [
                        ["5.35784889690140175844135228544", "1.69546665493050818795950362983"],
                        ["1.69546665493050818795950362983", "0.902290109069177614919965435547"],
                    ],
                    [
                        ["1.69546665493050818795950362983", "1.44929046332688393761145562166"],
                        ["1.44929046332688393761145562166", "1.94954564532425167477924787818"],
                    ],
                ],
                [
                    [
                        ["1.69546665493050818795950362983", "1.44929046332688393761145562166"],
                        ["1.44929046332688393761145562166", "1.94954564532425167477924787818"],
                    ],
                    [
                        ["0.902290109069177614919965435547", "1.94954564532425167477924787818"],
                        ["1.94954564532425167477924787818", "2.18383364857750050802565056074"],
                    ],
                ],
            ],
            "K1_rate": [
                ["0.0835763788528443574143977912172", "0.214488616372426416090135603554"],
                ["0.214488616372426416090135603554", "-0.173346741183766084315465150212"],
            ],
        },
    ),
)
#: largest error that is accepted, relative to the largest entry of each expected array
TOLERANCE = {"float64": 1e-08, "float32": 0.0005}


class Check(NamedTuple):
    """Errors by "function.output", the tolerance, and whether every error is within it."""

    errors: dict[str, float]
    tolerance: float
    passed: bool


def self_check(dtype: Any = None) -> Check:
    """Every function against the reference values, in the given floating type (default: JAX's default float)."""
    dtype = jnp.dtype(jnp.result_type(float) if dtype is None else dtype)
    if dtype == jnp.float64 and jnp.result_type(float) != jnp.float64:
        raise ValueError('float64 was asked for but JAX runs in float32; set jax.config.update("jax_enable_x64", True)')
    errors: dict[str, float] = {}
    for name, arguments, expected in REFERENCE:
        given = {key: _numbers(value, dtype) for key, value in arguments.items()}
        result = globals()[name](**given)
        found = result._asdict() if isinstance(result, tuple) else dict.fromkeys(expected, result)
        for key, value in expected.items():
            wanted = _numbers(value, dtype)
            scale = jnp.max(jnp.abs(wanted))
            error = jnp.max(jnp.abs(found[key] - wanted)) / jnp.where(scale > 0, scale, 1)
            label = name if key == name else f"{name}.{key}"
            errors[label] = max(errors.get(label, 0.0), float(error) if bool(jnp.isfinite(error)) else float("inf"))
    tolerance = TOLERANCE[dtype.name]
    return Check(errors, tolerance, all(error <= tolerance for error in errors.values()))


def _numbers(value: Any, dtype: Any) -> Any:
    """Nested lists of decimal text as an array; plain integers are static arguments."""

    def read(part: Any) -> Any:
        return [read(item) for item in part] if isinstance(part, list) else float(part)

    return value if isinstance(value, int) else jnp.array(read(value), dtype)


def main() -> int:
    """Print a table of errors; 0 if all are within the tolerance."""
    check = self_check()
    for label, error in check.errors.items():
        print(f"{label:<32} {error:9.2e}  {'ok' if error <= check.tolerance else 'FAIL'}")
    print(f"tolerance {check.tolerance:g}: {'passed' if check.passed else 'FAILED'}")
    return 0 if check.passed else 1


if __name__ == "__main__":
    jax.config.update("jax_enable_x64", True)
    raise SystemExit(main())
