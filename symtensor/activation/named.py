"""Activation names and the one function that turns what a user typed into an :class:`Activation`."""

from __future__ import annotations

import re
from functools import lru_cache

import sympy as sp

from symtensor.activation.pieces import ActivationError
from symtensor.activation.value import Activation
from symtensor.parsing import FUNCTIONS, ExpressionSyntaxError, parse_expression, suggestion

__all__ = ["NAMES", "activation"]

#: name -> its definition in x
NAMES: dict[str, str] = {
    "tanh": "tanh(x)",
    "erf": "erf(x)",
    "sin": "sin(x)",
    "relu": "relu(x)",
    "leaky-relu": "leaky_relu(x)",
    "gelu": "gelu(x)",
    "softplus": "softplus(x)",
    "sigmoid": "sigmoid(x)",
    "identity": "x",
}
ALIASES = {"linear": "identity"}
_WORD = re.compile(r"[A-Za-z][A-Za-z0-9_-]*(:.*)?")


def activation(spec: str | sp.Expr | Activation) -> Activation:
    """An activation from its name or from an expression in ``x``.

    Parameters
    ----------
    spec
        ``tanh``, ``erf`` (= erf(x)), ``sin``, ``relu``, ``leaky-relu:SLOPE`` (default 0.01), ``gelu`` (= x Phi(x)),
        ``softplus``, ``sigmoid``, ``identity`` (alias ``linear``); or an expression such as
        ``"Max(0, x) - 0.3*Max(0, -x)"``; or a SymPy expression in ``x``; or an :class:`Activation` (returned as is).

    Raises
    ------
    ActivationError
        Unknown name (the nearest one is suggested), complex values, poles, undecidable kinks.
    ExpressionSyntaxError
        Text that is not an expression of the small language.

    Examples
    --------
    >>> activation("leaky-relu:0.2").expr
    x/5 + 4*Max(0, x)/5
    >>> activation("Abs(x)").kinks
    (0,)
    """
    if isinstance(spec, Activation):
        return spec
    if isinstance(spec, sp.Expr):
        return Activation.from_expr(spec)
    if not isinstance(spec, str):
        raise TypeError(f"an activation is a name, an expression in x or an Activation, not {type(spec).__name__}")
    return _from_text(spec.strip())


@lru_cache(maxsize=256)
def _from_text(text: str) -> Activation:
    word, _, parameter = text.partition(":")
    word = ALIASES.get(word.lower(), word.lower())
    if word == "leaky-relu":
        return _leaky_relu(parameter if ":" in text else "0.01")
    if word in NAMES and ":" not in text:
        return Activation.from_expr(parse_expression(NAMES[word]), word)
    if word in NAMES:
        raise ActivationError(f"{text!r}: {word} has no parameter; write {word!r}")
    if _WORD.fullmatch(text) and text not in ("x", "pi", "E"):
        spellings = [*NAMES, *ALIASES]
        hint = f": write '{text}(x)'" if text in FUNCTIONS else suggestion(word, spellings)
        raise ActivationError(f"unknown activation {text!r}{hint}; known names: {', '.join(spellings)}; or an expression in x")
    expr = parse_expression(text)
    for name, definition in NAMES.items():
        if expr == parse_expression(definition):
            return _from_text(name)
    return Activation.from_expr(expr)


def _leaky_relu(parameter: str) -> Activation:
    try:
        slope = parse_expression(parameter, symbols=())
    except ExpressionSyntaxError as error:
        raise ActivationError(f"leaky-relu:SLOPE takes a number, for example leaky-relu:0.01; {error}") from None
    expr = slope * parse_expression("x") + (1 - slope) * parse_expression("relu(x)")
    return Activation.from_expr(expr, "identity" if slope == 1 else f"leaky-relu:{float(slope)!r}")
