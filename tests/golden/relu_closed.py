r"""Kernel hierarchy of a residual network with activation relu.

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

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array


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


#: (i, j) of the moments that are evaluated per pair
ORDERS = ((0, 0), (2, 0), (1, 1), (4, 0), (3, 1), (2, 2))


class Moments(NamedTuple):
    r"""Tables m_ij[a, b] = E[d_a^i d_b^j sigma(phi_a) sigma(phi_b)], phi ~ N(0, K); m_ji[a, b] = m_ij[b, a]."""

    m00: Array
    m20: Array
    m11: Array
    m40: Array
    m31: Array
    m22: Array


def activation(x: Array) -> Array:
    r"""sigma(x) = \max\left(0, x\right)"""
    return jnp.maximum(x, 0)


def _closed(k11: Array, k12: Array, k22: Array) -> tuple[Array, ...]:
    """The tables, elementwise; Euler's relation on singular pairs, along which sigma sigma is quadratic."""
    regular = k11 * k22 - k12 * k12 > 500 * jnp.finfo(k12.dtype).eps * k11 * k22
    slope = jnp.where(k12 > 0, 0.5, jnp.where(k12 < 0, 0.0, 0.0)).astype(k12.dtype)
    singular = {(0, 0): slope * k12, (1, 1): slope}
    k11, k12, k22 = jnp.where(regular, k11, 1), jnp.where(regular, k12, 0), jnp.where(regular, k22, 1)
    t0 = k12**2
    t1 = jnp.sqrt(k11 * k22 - t0)
    t2 = jnp.arctan2(k12, t1)
    t3 = 1 / k11
    t4 = 1 / t1
    values = (
        0.25 * k12 + 0.15915494309189535 * (t1 + k12 * t2),
        0.15915494309189535 * t3 * t1,
        0.07957747154594767 * (2 * t2 + 3.141592653589793),
        0.15915494309189535 * t3**2 * (-k11 * k22 + 2 * t0) * t4,
        -0.15915494309189535 * k12 * t3 * t4,
        0.15915494309189535 * t4,
    )
    return tuple(jnp.where(regular, value, singular.get(order, 0)) for order, value in zip(ORDERS, values))


@jax.jit
def moments(K: Array) -> Moments:
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
    k = jnp.diagonal(K)
    k11, k22 = jnp.broadcast_arrays(k[:, None], k)
    return Moments(*_closed(k11, K, k22))


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
            "m00": [["0.5", "0.11332746946113536612443795093"], ["0.11332746946113536612443795093", "0.125"]],
            "m20": [["0", "0.0770505555076874820707999447222"], ["0.308202222030749928283199778889", "0"]],
            "m11": [["0.5", "0.290215311627583127940255280919"], ["0.290215311627583127940255280919", "0.5"]],
            "m40": [["0", "-0.0719138518071749804905223868445"], ["-1.15062162891479968784835818951", "0"]],
            "m31": [["0", "-0.0410936296040999848866448473927"], ["-0.164374518416399939546579389571", "0"]],
            "m22": [["0", "0.328749036832799879093158779142"], ["0.328749036832799879093158779142", "0"]],
        },
    ),
    (
        "moments",
        {
            "K": [["0.25", "0.5"], ["0.5", "1"]],
        },
        {
            "m00": [["0.125", "0.25"], ["0.25", "0.5"]],
            "m20": [["0", "0"], ["0", "0"]],
            "m11": [["0.5", "0.5"], ["0.5", "0.5"]],
            "m40": [["0", "0"], ["0", "0"]],
            "m31": [["0", "0"], ["0", "0"]],
            "m22": [["0", "0"], ["0", "0"]],
        },
    ),
    (
        "moments",
        {
            "K": [["0", "0"], ["0", "1"]],
        },
        {
            "m00": [["0", "0"], ["0", "0.5"]],
            "m20": [["0", "0"], ["0", "0"]],
            "m11": [["0", "0"], ["0", "0.5"]],
            "m40": [["0", "0"], ["0", "0"]],
            "m31": [["0", "0"], ["0", "0"]],
            "m22": [["0", "0"], ["0", "0"]],
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
