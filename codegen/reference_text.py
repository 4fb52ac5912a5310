"""Reference points as text: arguments and expected values with 30 digits, embedded in a module for its self-check."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import mpmath
import numpy as np

__all__ = ["DIGITS", "ReferencePoint", "decimal_text", "reference_lines"]

DIGITS = 30
_WIDTH = 116


@dataclass(frozen=True, slots=True)
class ReferencePoint:
    """Arguments (arrays of mpmath numbers, or an int for `depth`) and expected outputs of one kernel."""

    kernel: str
    arguments: Mapping[str, Any]
    expected: Mapping[str, np.ndarray]


def decimal_text(number: Any) -> str:
    """Shortest decimal text with 30 significant digits; exact zeros are "0"."""
    text = str(mpmath.nstr(mpmath.mpf(number), DIGITS, strip_zeros=True, min_fixed=-6, max_fixed=8))
    return text[:-2] if text.endswith(".0") else text


def reference_lines(points: tuple[ReferencePoint, ...]) -> list[str]:
    """Lines of a tuple of (kernel, arguments, expected)."""
    lines = []
    for point in points:
        lines += ["(", f'    "{point.kernel}",']
        for mapping in (point.arguments, point.expected):
            lines.append("    {")
            for name, value in mapping.items():
                lines += _entry(name, value)
            lines.append("    },")
        lines.append("),")
    return lines


def _entry(name: str, value: Any) -> list[str]:
    nested = value if isinstance(value, int) else _nested(np.asarray(value, dtype=object).tolist())
    lines = _lines(nested, 8)
    lines[0] = f'        "{name}": {lines[0]}'
    lines[-1] += ","
    return lines


def _nested(value: Any) -> Any:
    return [_nested(part) for part in value] if isinstance(value, list) else decimal_text(value)


def _lines(nested: Any, indent: int) -> list[str]:
    flat = _flat(nested)
    if not isinstance(nested, list) or len(flat) + indent + 16 <= _WIDTH:
        return [flat]
    lines = ["["]
    for part in nested:
        below = _lines(part, indent + 4)
        below[-1] += ","
        lines += [" " * (indent + 4) + below[0], *below[1:]]
    return [*lines, " " * indent + "]"]


def _flat(nested: Any) -> str:
    if isinstance(nested, list):
        return "[" + ", ".join(map(_flat, nested)) + "]"
    return str(nested) if isinstance(nested, int) else f'"{nested}"'
