"""Logarithms of scales, and relations between sizes (m = n, p = n^gamma, depth fixed)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ._input import exact
from .monomial import Monomial, exponent, sign_set
from .scale import Scale, ScaleError, SizeParameter, as_scale

__all__ = ["log_of", "substitute"]


def log_of(mono: Monomial, whole: Scale) -> Scale:
    """log of a monomial: its leading size or logarithm in every size; terms that tend to infinity only."""
    parts = []
    for name, (a, b, c) in mono.powers:
        if sign_set(a) == {1}:
            parts.append(Scale.power_of(name, 0, 1))
        elif sign_set(a) == {0} and sign_set(b) == {1}:
            parts.append(Scale.power_of(name, 0, 0, 1))
        else:
            # a decreasing factor would subtract, and logloglog is outside the group
            raise ScaleError(f"log({whole}) is outside the group: the exponents ({a}, {b}, {c}) of {name} do not allow it")
    return Scale.max(*parts)


def substitute(mono: Monomial, images: Mapping[str, Any]) -> Scale:
    """The monomial with sizes and exponent symbols replaced; a size becomes a scale that tends to infinity, or fixed."""
    result = Scale.one()
    for name, (a, b, c) in mono.powers:
        value = images.get(name, SizeParameter(name))
        symbols = {s: exact(images[s.name]) for e in (a, b, c) for s in e.free_symbols if s.name in images}  # type: ignore[attr-defined]
        a, b, c = (exponent(e.subs(list(symbols.items()))) for e in (a, b, c))
        image = as_scale(value)
        if image == Scale.one():
            continue  # a fixed size and its logarithms are constants
        if image.limit() != "oo":
            raise ScaleError(f"{name} = {image} does not tend to infinity; a size does, or give a number for a fixed one")
        result = result * image**a
        for level, power in ((1, b), (2, c)):
            if not power.is_zero:
                result = result * (image.log() if level == 1 else image.log().log()) ** power
    return result
