r"""Kernel hierarchy of a residual network with activation gelu.

n Cov(G_ab, G_cd) = V_4 and n (E G - K_0) = K_1 at order 1/n, for
phi' = phi + sqrt(dt) eta,  eta | phi ~ N(0, C_b + C_W S),  S_ab = mean_i sigma(phi_a) sigma(phi_b).

Equations

    K_0' = K_0 + dt\,(C_b + C_W\,\mathrm{E}[\sigma\sigma])
    V_4' = V_4 + dt\,(\chi V_4 + V_4 \chi^T + N)

Functions (jitted; differentiable; arrays may be float32 or float64, results follow)

    moments(K) -> Moments
    Q(c_w, c_b, m00) -> (P, P)
    U1_model(m40, m31, m22, V4) -> (P, P)
    K1_transport(c_w, m20, m11, K1) -> (P, P)

P is the number of inputs. Run this file to compare every function with the reference values it holds.

References

    Kawase & Ota, Collective Kernel EFT for Pre-activation ResNets, arXiv:2604.15742
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax
from jax.scipy.special import erfc


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
    r"""sigma(x) = x \left(\frac{\operatorname{erf}{\left(\frac{\sqrt{2} x}{2} \right)}}{2} + \frac{1}{2}\right)"""
    return 0.5 * x * erfc(-0.7071067811865476 * x)


def activation_derivatives(x: Array) -> tuple[Array, ...]:
    """sigma(x) and its derivatives up to order 4."""
    t0 = erfc(-0.7071067811865476 * x)
    t1 = x**2
    t2 = jnp.exp(-0.5 * t1)
    t3 = -0.3989422804014327 * t1
    return (
        0.5 * x * t0,
        0.5 * t0 + 0.3989422804014327 * x * t2,
        t2 * (t3 + 0.7978845608028654),
        x * t2 * (0.3989422804014327 * t1 - 1.5957691216057308),
        t2 * (t1 * (t3 + 2.7925959628100285) - 1.5957691216057308),
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


#: (function, arguments, expected values): 30 digits, evaluated from the mathematical input by an independent route
REFERENCE = (
    (
        "moments",
        {
            "K": [["1", "0.125"], ["0.125", "0.25"]],
        },
        {
            "m00": [
                ["0.425221482570298681125109396817", "0.0585413646227228856577795568228"],
                ["0.0585413646227228856577795568228", "0.0835067237933498074387017595654"],
            ],
            "m20": [
                ["0.0306293830789884473364548256313", "0.0359701682372577519197776041437"],
                ["0.177964317493801205127823550356", "0.0372521805033867448031514868489"],
            ],
            "m11": [
                ["0.455850865649287118053223366587", "0.284084273166775647112558544904"],
                ["0.284084273166775647112558544904", "0.355685139652112458641397552128"],
            ],
            "m40": [
                ["0.10720284077645957088176231764", "-0.0277163602902252143023176245151"],
                ["-0.26240146607773706666222324202", "-0.0148142392234398463657374378499"],
            ],
            "m31": [
                ["-0.21440568155291914176352463528", "-0.0285462250694660454874984623075"],
                ["-0.0517324279508532824944921912902", "-0.165035822927794784131805272409"],
            ],
            "m22": [
                ["0.27566444771089604337532819045", "0.274477518302642831127258205015"],
                ["0.274477518302642831127258205015", "0.443994011813621136663954303003"],
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
                ["0.0835067237933498074387017595654", "0.185087666590635663288466616905"],
                ["0.185087666590635663288466616905", "0.425221482570298681125109396817"],
            ],
            "m20": [
                ["0.0372521805033867448031514868489", "0.12638081407000872902202104342"],
                ["0.00736828440240256191118284334607", "0.0306293830789884473364548256313"],
            ],
            "m11": [
                ["0.355685139652112458641397552128", "0.393753843268959513590488086265"],
                ["0.393753843268959513590488086265", "0.455850865649287118053223366587"],
            ],
            "m40": [
                ["-0.0148142392234398463657374378499", "-0.0736907035273881849679611377724"],
                ["0.0348765461713721261483023283745", "0.10720284077645957088176231764"],
            ],
            "m31": [
                ["-0.165035822927794784131805272409", "-0.234527580338871943776979378526"],
                ["-0.130664243402605434463126243827", "-0.21440568155291914176352463528"],
            ],
            "m22": [
                ["0.443994011813621136663954303003", "0.322239637865072037214986266918"],
                ["0.322239637865072037214986266918", "0.27566444771089604337532819045"],
            ],
        },
    ),
    (
        "moments",
        {
            "K": [["0", "0"], ["0", "1"]],
        },
        {
            "m00": [["0", "0"], ["0", "0.425221482570298681125109396817"]],
            "m20": [["0", "0.225079079039276513940492918664"], ["0", "0.0306293830789884473364548256313"]],
            "m11": [["0.25", "0.25"], ["0.25", "0.455850865649287118053223366587"]],
            "m40": [["0", "-0.450158158078553027880985837328"], ["0", "0.10720284077645957088176231764"]],
            "m31": [["0", "0"], ["0", "-0.21440568155291914176352463528"]],
            "m22": [
                ["0.636619772367581382432888403855", "0.33761861855891478478852718581"],
                ["0.33761861855891478478852718581", "0.27566444771089604337532819045"],
            ],
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
