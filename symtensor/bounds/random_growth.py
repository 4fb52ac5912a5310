r"""Laws without a definite bound, with exact quantiles and samplers: n^U, exp(sqrt(log n) Z), exp(c log n |Z|), long products.

Their spread on the logarithmic scale grows with n, so that no quantile bounds the higher ones.
"""

from __future__ import annotations

from typing import Any

import sympy

from ._input import exact
from .quantiles import QuantileError, QuantileFamily

__all__ = ["exp_log_normal", "exp_sqrt_log_normal", "long_product", "power_of_uniform"]

_N = sympy.Symbol("n", positive=True)
_EPS = sympy.Symbol("eps", positive=True)
_Z = sympy.Symbol("z", real=True)


def power_of_uniform() -> QuantileFamily:
    """n^U with U uniform on (0, 1): q_{1-eps} = n^{1-eps}."""
    return QuantileFamily("n^U", _N ** (1 - _EPS), _EPS, _N, increasing=False)


def exp_sqrt_log_normal() -> QuantileFamily:
    """exp(sqrt(log n) Z): q = exp(sqrt(log n) z) with the normal quantile z."""
    return QuantileFamily("exp(sqrt(log n) Z)", sympy.exp(sympy.sqrt(sympy.log(_N)) * _Z), _Z, _N)


def exp_log_normal(c: Any = 1) -> QuantileFamily:
    """exp(c log n |Z|) = n^{c |Z|}: q = n^{c z} with the quantile z of |Z|.

    Raises:
        QuantileError: c is not positive.
    """
    factor = exact(c)
    if not factor.is_positive:
        raise QuantileError(f"c must be positive, given {c}")
    return QuantileFamily(f"exp({factor} log n |Z|)", _N ** (factor * _Z), _Z, _N)


def long_product(count: Any, mean_log: Any = 0, sd_log: Any = 1, *, of: str = "product") -> QuantileFamily:
    """A product of ``count(n)`` iid factors with log-mean and log-deviation: the CLT gives the quantiles.

    log |M| = count mean_log + sqrt(count) sd_log z (1 + o(1)); a network of depth ``count`` is the same, layer by layer. With a
    fixed count, or without fluctuation of the factors, the smallest bound exists.

    Args:
        count: a positive number or an expression in n, such as ``"2*log(n)"``.

    Example:
        >>> from symtensor.bounds.quantiles import minimal_bound
        >>> minimal_bound(long_product("log(n)")).exists, minimal_bound(long_product(3)).exists
        (False, True)
    """
    number = _count(count)
    mean, deviation = exact(mean_log), exact(sd_log)
    if deviation.is_negative or not deviation.is_real:
        raise QuantileError(f"a deviation of the logarithms is not negative, given {sd_log}")
    quantile = sympy.exp(number * mean + sympy.sqrt(number) * deviation * _Z)
    return QuantileFamily(f"{of} of {number} random factors", quantile, _Z, _N)


def _count(count: Any) -> Any:
    value = exact(count, ["n"])
    return value.subs({s: _N for s in value.free_symbols if s.name == "n"})
