"""Derivative contractions as values: each with its status, the cost, and a table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from html import escape
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from symtensor.numerics.contractions._cost import Cost
from symtensor.numerics.norms import NormBracket

__all__ = ["Contraction", "DerivativeContractions"]

Array: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Contraction:
    """`C_{D,d}` over the batch: for no free slot its value, otherwise the subordinate norm over the D free slots.

    Attributes
    ----------
    D, d
        Free slots, contracted slots.
    norm
        Lower and upper bound with status "exact", "bracket" or "lower", over the batch.
    signed
        For D = 0 the value with its sign, otherwise None.
    frobenius
        For D >= 3, where it is computed: the Frobenius norm, exact.
    """

    D: int
    d: int
    norm: NormBracket
    signed: Array | None = None
    frobenius: Array | None = None

    @property
    def values(self) -> Array:
        """The value with sign (D = 0) or the norm; raises NotExactError where only a bracket is known."""
        return self.norm.value if self.signed is None else self.signed

    @property
    def size(self) -> Array:
        """The norm: the absolute value for D = 0; raises NotExactError where only a bracket is known."""
        return self.norm.value

    @property
    def status(self) -> str:
        """The weakest status of the batch."""
        found = set(np.unique(self.norm.status).tolist())
        return next(name for name in ("lower", "bracket", "exact") if name in found)

    def __repr__(self) -> str:
        lower, upper = np.median(self.norm.lower), np.median(self.norm.upper)
        text = f"{lower:.4g}" if self.status == "exact" else f"{lower:.4g}..{upper:.4g}"
        return f"C_{{{self.D},{self.d}}}: median |C| = {text}, {self.status}, batch {self.norm.lower.shape}"


@dataclass(frozen=True, slots=True, eq=False)
class DerivativeContractions:
    """All contractions that were asked for; `result[D, d]` is one of them.

    Attributes
    ----------
    entries
        By (D, d).
    axes
        Names of the batch axes: "seed", "input", "point", those that are there.
    eta
        The learning rate in the factor `eta^(D/2+d)`.
    seeds
        The seeds along the first axis, or None.
    parameters
        Number of parameters.
    direction, method
        Along what the slots are contracted, and by which route.
    cost
        By (D, d): counted operations for one input.
    assumptions
        What was taken on the user's word.
    """

    entries: Mapping[tuple[int, int], Contraction]
    axes: tuple[str, ...]
    eta: float
    seeds: tuple[int, ...] | None
    parameters: int
    direction: str
    method: str
    cost: Mapping[tuple[int, int], Cost]
    assumptions: tuple[str, ...] = ()

    def __getitem__(self, key: tuple[int, int]) -> Contraction:
        if key not in self.entries:
            raise KeyError(f"C_{key} was not computed; computed: {', '.join(f'C_{k}' for k in self.entries)}")
        return self.entries[key]

    def __iter__(self) -> Iterator[Contraction]:
        return iter(self.entries.values())

    def __len__(self) -> int:
        return len(self.entries)

    def _rows(self) -> list[tuple[str, ...]]:
        rows = []
        for (D, d), entry in self.entries.items():
            lower, upper = np.quantile(entry.norm.lower, (0.5, 0.9)), np.median(entry.norm.upper)
            size = f"{lower[0]:.4g}" if entry.status == "exact" else f"{lower[0]:.4g} .. {upper:.4g}"
            cost = self.cost.get((D, d))
            work = "" if cost is None else f"{cost.operations:.3g}"
            rows.append((f"C_{{{D},{d}}}", size, f"{lower[1]:.4g}", entry.status, work))
        return rows

    def _head(self) -> str:
        shape = " x ".join(f"{n} {name}s" for n, name in zip(next(iter(self)).norm.lower.shape, self.axes))
        text = f"{self.parameters} parameters, {shape}, eta = {self.eta:g}; slots: {self.direction}; {self.method}"
        return "; ".join((text, *self.assumptions))

    def __repr__(self) -> str:
        rows = [("", "median |C|", "q90", "status", "operations"), *self._rows()]
        widths = [max(len(row[i]) for row in rows) for i in range(5)]
        lines = ["  ".join(cell.ljust(w) for cell, w in zip(row, widths)).rstrip() for row in rows]
        return "\n".join((self._head(), *lines))

    def _repr_html_(self) -> str:
        head = "<tr><th></th><th>median |C|</th><th>q90</th><th>status</th><th>operations</th></tr>"
        body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in self._rows())
        return f"<div><p>{escape(self._head())}</p><table>{head}{body}</table></div>"
