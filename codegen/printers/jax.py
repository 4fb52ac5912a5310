"""Text for `jax.numpy`. Functions that exist only under other names when traced (erf) are named explicitly."""

from __future__ import annotations

from .base import Printer

__all__ = ["IMPORTS", "helpers", "jax_printer"]

_FUNCTIONS = {
    "exp": "jnp.exp", "expm1": "jnp.expm1", "log": "jnp.log", "log1p": "jnp.log1p", "sqrt": "jnp.sqrt",
    "sin": "jnp.sin", "cos": "jnp.cos", "tan": "jnp.tan", "asin": "jnp.arcsin", "acos": "jnp.arccos",
    "atan": "jnp.arctan", "atan2": "jnp.arctan2", "sinh": "jnp.sinh", "cosh": "jnp.cosh", "tanh": "jnp.tanh",
    "asinh": "jnp.arcsinh", "erf": "erf", "erfc": "erfc", "abs": "jnp.abs", "sign": "jnp.sign",
    "maximum": "jnp.maximum", "minimum": "jnp.minimum", "power": "jnp.power",
    "sech2": "_sech2", "sigmoid": "_sigmoid", "softplus": "_softplus",
}  # fmt: skip

#: function -> name to import from `jax.scipy.special`
IMPORTS = {"erf": "erf", "erfc": "erfc"}

#: function -> definition that a module using it contains
HELPERS = {
    "sech2": '''\
@jax.custom_jvp
def _sech2(x: Array) -> Array:
    """1 - tanh(x)**2 without cancellation or overflow."""
    decay = jnp.exp(-2 * jnp.abs(x))
    return 4 * decay / (1 + decay) ** 2


# by hand, because differentiating |x| loses the even derivatives at 0
_sech2.defjvps(lambda dx, value, x: -2 * jnp.tanh(x) * value * dx)''',
    "sigmoid": '''\
@jax.custom_jvp
def _sigmoid(x: Array) -> Array:
    """1 / (1 + exp(-x)) without overflow; sigmoid(-x) keeps its digits."""
    decay = jnp.exp(-jnp.abs(x))
    return jnp.where(x > 0, 1, decay) / (1 + decay)


_sigmoid.defjvps(lambda dx, value, x: value * _sigmoid(-x) * dx)''',
    "softplus": '''\
@jax.custom_jvp
def _softplus(x: Array) -> Array:
    """log(1 + exp(x)) without overflow."""
    return jnp.maximum(x, 0) + jnp.log1p(jnp.exp(-jnp.abs(x)))


_softplus.defjvps(lambda dx, value, x: _sigmoid(x) * dx)''',
}


#: helper -> helpers that its definition uses
_NEEDS = {"softplus": ("sigmoid",)}


def helpers(used: set[str]) -> list[str]:
    """Definitions that the used functions need, in a fixed order."""
    needed = used | {other for name in used for other in _NEEDS.get(name, ())}
    return [HELPERS[name] for name in sorted(needed & set(HELPERS))]


def jax_printer() -> Printer:
    """A printer for `jax.numpy` text; `printer.used` tells which imports and helpers the text needs."""
    return Printer(_FUNCTIONS, "jnp.where")
