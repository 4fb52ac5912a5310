"""How far the estimated errors of the path cumulants move the results."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from symtensor.fields.layered.vertices import PathSource
from symtensor.numerics.path import PathArray

if TYPE_CHECKING:
    from symtensor.fields.layered.result import LayeredExpansion

__all__ = ["relative_errors"]


class _Shifted:
    """A source of path cumulants with one pattern moved by its estimated error."""

    def __init__(self, source: PathSource, pattern: tuple[int, ...]) -> None:
        self._source, self._pattern = source, pattern

    def leading(self) -> tuple[np.ndarray, np.ndarray, float]:
        """As the source."""
        return self._source.leading()

    def cumulants(self, pattern: tuple[int, ...], later_only: bool = False) -> PathArray:
        """As the source, moved for the chosen pattern (zeros stay zeros: causality and coinciding legs are exact)."""
        found = self._source.cumulants(pattern, later_only)
        if pattern != self._pattern:
            return found
        return PathArray(np.where(found.values == 0, 0.0, found.values + found.error), found.error)


def relative_errors(expansion: LayeredExpansion) -> dict[str, float]:
    """For each output, relative to its largest entry, the sum over the path cumulants of the change by their errors."""
    from symtensor.fields.layered.expansion import arrays_of, evaluate, path_patterns

    program, found = expansion.program, dict.fromkeys(expansion.values, 0.0)
    for pattern in sorted(path_patterns(program.arrays, program.later_only)):
        source = _Shifted(expansion.source, pattern)
        arrays, others, _ = arrays_of(expansion.network, source, program.arrays, program.later_only)
        for name, value in evaluate(program, {**arrays, **others}).items():
            scale = float(np.max(np.abs(expansion.values[name])))
            change = float(np.max(np.abs(value - expansion.values[name])))
            found[name] += change / scale if scale > 0 else change
    return found
