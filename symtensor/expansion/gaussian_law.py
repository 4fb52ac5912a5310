"""A (formal) Gaussian law: names, covariance and mean, read from matrices, mappings, functions or one variance."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sympy as sp

from .coefficient_ring import plain
from .moment_errors import CovarianceError, MomentError

__all__ = ["Covariance", "GaussianLaw", "Mean", "is_zero", "natural"]

Name = Hashable
#: A matrix in the order of the names; {(a, b): C_ab}, absent pairs being 0; a symmetric function; for one name its variance.
Covariance = Any
#: A sequence in the order of the names, {a: m_a} (absent: 0), a function; for one name its mean.
Mean = Any


@dataclass(frozen=True, slots=True)
class GaussianLaw:
    """Names, covariance and mean; nothing is assumed about the covariance but its symmetry.

    Raises:
        CovarianceError: the covariance is not symmetric, has the wrong size, or does not know a name.

    Example:
        >>> law = GaussianLaw.read({("x", "xt"): 1, ("x", "x"): 0.5})
        >>> law.names, law.covariance[0]
        (('x', 'xt'), (0.5, Fraction(1, 1)))
    """

    names: tuple[Name, ...]
    covariance: tuple[tuple[Any, ...], ...]
    mean: tuple[Any, ...]

    @classmethod
    def read(cls, covariance: Covariance, mean: Mean = None, names: Sequence[Name] | None = None) -> GaussianLaw:
        """The law of `names`; these may be left out if the covariance is a mapping."""
        if isinstance(covariance, GaussianLaw):
            return covariance
        if names is None:
            if not isinstance(covariance, Mapping):
                raise CovarianceError("a covariance without names: give them (fields=...), or a mapping {(a, b): value}")
            names = list(dict.fromkeys(name for pair in covariance for name in _pair(pair)))
        order = tuple(names)
        if len(set(map(str, order))) < len(order):
            raise CovarianceError(f"a variable is named twice among {', '.join(map(str, order))}; name each once")
        rows = tuple(map(tuple, _rows(covariance, order)))
        return cls(order, rows, tuple(_means(mean, order)))

    @property
    def elimination(self) -> tuple[int, ...]:
        """Indices, independent groups one after the other, sparse rows first: the cheap order of integration."""
        size = len(self.names)
        joined = [[j for j in range(size) if j != i and not is_zero(self.covariance[i][j])] for i in range(size)]
        weight = [len(joined[i]) + (not is_zero(self.covariance[i][i])) for i in range(size)]
        found: list[int] = []
        for start in sorted(range(size), key=lambda i: (weight[i], i)):
            group, position = [start] if start not in found else [], 0
            while position < len(group):
                group += [j for j in joined[group[position]] if j not in group]
                position += 1
            found += sorted(group, key=lambda i: (weight[i], i))
        return tuple(found)

    def index(self, name: Name) -> int:
        """The position of a variable, given by name or by a symbol of that name."""
        for position, known in enumerate(self.names):
            if known == name or str(known) == str(name):
                return position
        raise CovarianceError(
            f"{name} has no covariance; the variables are {', '.join(map(str, self.names))}. Add ({name}, {name}) or correct "
            "the name"
        )

    def powers(self, powers: Mapping[Any, Any]) -> tuple[int, ...]:
        """A mapping name -> power as a tuple of exponents; raises MomentError for a power that is no number 0, 1, 2, .."""
        exponents = [0] * len(self.names)
        for name, power in powers.items():
            exponents[self.index(name)] += natural(power, name)
        return tuple(exponents)

    def symbols(self) -> tuple[sp.Symbol, ...]:
        """The variables as SymPy symbols."""
        return tuple(name if isinstance(name, sp.Symbol) else sp.Symbol(str(name)) for name in self.names)


def natural(power: Any, name: Any) -> int:
    """The power as a Python integer; raises MomentError unless it is 0, 1, 2, .."""
    if isinstance(power, bool) or not hasattr(power, "__index__") or int(power) < 0:
        raise MomentError(f"the power of {name} is {power!r}; it must be an integer, 0 or more")
    return int(power)


def _pair(pair: Any) -> tuple[Any, Any]:
    if isinstance(pair, tuple) and len(pair) == 2:
        return pair
    raise CovarianceError(f"the key {pair!r} of the covariance is no pair of names; write {{(a, b): value}}")


def _rows(covariance: Covariance, names: tuple[Name, ...]) -> list[list[Any]]:
    if isinstance(covariance, Mapping):
        return _from_mapping(covariance, names)
    if callable(covariance) and not isinstance(covariance, sp.Basic):
        return _checked([[covariance(a, b) for b in names] for a in names], names)
    shape = getattr(covariance, "shape", None)
    if isinstance(covariance, sp.MatrixBase):
        return _checked(covariance.tolist(), names)
    if shape or (isinstance(covariance, Sequence) and not isinstance(covariance, str)):
        return _checked([list(row) for row in _lines(covariance)], names)
    if len(names) == 1:
        return _checked([[covariance]], names)
    raise CovarianceError(f"one variance ({covariance}) for {len(names)} variables {', '.join(map(str, names))}; give a matrix")


def _lines(covariance: Any) -> Iterator[Any]:
    for row in covariance:
        if not hasattr(row, "__iter__") or isinstance(row, str):
            raise CovarianceError(f"the row {row!r} of the covariance is no sequence; give a square matrix [[..], ..]")
        yield row


def _from_mapping(covariance: Mapping[Any, Any], names: tuple[Name, ...]) -> list[list[Any]]:
    place = {name: i for i, name in enumerate(names)}
    place.update({str(name): i for i, name in enumerate(names)})
    known: set[int] = set()
    rows: list[list[Any]] = [[None] * len(names) for _ in names]
    for key, value in covariance.items():
        ends = [place.get(name, place.get(str(name))) for name in _pair(key)]
        known.update(i for i in ends if i is not None)
        i, j = ends
        if i is not None and j is not None:
            if rows[i][j] is not None and not _same(rows[i][j], value):
                raise CovarianceError(f"the covariance of {key} is given as {rows[i][j]} and as {value}; give it once")
            rows[i][j] = rows[j][i] = value
    for i, name in enumerate(names):
        if i not in known:
            everyone = ", ".join(dict.fromkeys(str(n) for pair in covariance for n in pair))
            raise CovarianceError(f"{name} has no covariance; the mapping has {everyone}. Add ({name}, {name}), 0 if it is fixed")
    return [[plain(0 if value is None else value) for value in row] for row in rows]


def _checked(rows: list[list[Any]], names: tuple[Name, ...]) -> list[list[Any]]:
    if len(rows) != len(names) or any(len(row) != len(names) for row in rows):
        shape = f"{len(rows)} x {len(rows[0]) if rows else 0}"
        raise CovarianceError(f"the covariance is {shape} for the {len(names)} variables {', '.join(map(str, names))}")
    rows = [[plain(value) for value in row] for row in rows]
    for i, name in enumerate(names):
        for j in range(i):
            if not _same(rows[i][j], rows[j][i]):
                raise CovarianceError(
                    f"the covariance is not symmetric: ({names[j]}, {name}) is {rows[j][i]}, ({name}, {names[j]}) is "
                    f"{rows[i][j]}; give C_ab = C_ba"
                )
            rows[i][j] = rows[j][i]
    return rows


def _means(mean: Mean, names: tuple[Name, ...]) -> list[Any]:
    if mean is None:
        return [plain(0) for _ in names]
    if isinstance(mean, Mapping):
        known = {str(name) for name in names}
        stray = [name for name in mean if str(name) not in known]
        if stray:
            raise CovarianceError(f"a mean is given for {stray[0]}; the variables are {', '.join(map(str, names))}")
        given = {str(name): value for name, value in mean.items()}
        return [plain(given.get(str(name), 0)) for name in names]
    if callable(mean) and not isinstance(mean, sp.Basic):
        return [plain(mean(name)) for name in names]
    values: list[Any] = list(mean) if hasattr(mean, "__iter__") else [mean]  # type: ignore[arg-type]
    if len(values) != len(names):
        raise CovarianceError(f"{len(values)} means for {len(names)} variables {', '.join(map(str, names))}")
    return [plain(value) for value in values]


def is_zero(value: Any) -> bool:
    """Zero as written."""
    return bool(value == 0) or getattr(value, "is_zero", None) is True


def _same(one: Any, other: Any) -> bool:
    """Equal as written, after expansion, or up to rounding."""
    one, other = plain(one), plain(other)
    if isinstance(one, sp.Basic) or isinstance(other, sp.Basic):
        left: Any = sp.sympify(one)
        difference = sp.expand(left - sp.sympify(other))
        return difference == 0 or sp.simplify(difference) == 0
    if isinstance(one, float | complex) or isinstance(other, float | complex):
        return abs(one - other) <= 1e-12 * (abs(one) + abs(other))
    return one == other
