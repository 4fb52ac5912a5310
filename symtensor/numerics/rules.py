"""Quadrature rules for a standard normal variable, as values: kind, number of nodes, radius."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, get_args

import numpy as np
from scipy import special

__all__ = ["CLOSED", "Derivatives", "Rule", "RuleError", "nodes_weights", "parse_rule"]

Kind = Literal["trapezoid", "gh", "split", "closed"]
#: how weak derivatives are taken; "auto": inside for a smooth function with the trapezoid, else hermite;
#: "weak": inside with the delta terms of a kinked function written out
Derivatives = Literal["auto", "inside", "hermite", "weak"]
DEFAULT_RADIUS = 10.0
_TEXT = re.compile(r"(trapezoid|gh|split):(\d+)(?:@(\d+(?:\.\d+)?))?")


class RuleError(ValueError):
    """The text or the numbers do not describe a quadrature rule."""


@dataclass(frozen=True, slots=True)
class Rule:
    """A quadrature rule for E over whitened (standard normal) coordinates.

    Attributes
    ----------
    kind
        ``trapezoid``: n equidistant nodes on [-radius, radius], weights ``h exp(-z^2/2)/sqrt(2 pi)``, not renormalised.
        ``gh``: n-point Gauss-Hermite (probabilists'); the radius is not used.
        ``split``: n-point Gauss-Legendre panels on [-radius, radius], split at the kinks.
        ``closed``: the closed form, no nodes.
    n
        Nodes per coordinate (per panel for ``split``).
    radius
        Cut-off in standard deviations.

    Examples
    --------
    >>> str(Rule("trapezoid", 161)), parse_rule("gh:32")
    ('trapezoid:161', Rule(kind='gh', n=32, radius=10.0))
    """

    kind: Kind
    n: int = 0
    radius: float = DEFAULT_RADIUS

    def __post_init__(self) -> None:
        if self.kind not in get_args(Kind):
            raise RuleError(f"unknown rule {self.kind!r}; known: {', '.join(get_args(Kind))}")
        least = {"trapezoid": 3, "gh": 1, "split": 2, "closed": 0}[self.kind]
        if self.n < least or self.n > 20000:
            raise RuleError(f"{self.kind} takes {least} to 20000 nodes, not {self.n}")
        if not 0 < self.radius < 1000:
            raise RuleError(f"the radius of {self.kind} is {self.radius}; it is a positive number of standard deviations")

    def __str__(self) -> str:
        if self.kind == "closed":
            return "closed"
        radius = "" if self.kind == "gh" or self.radius == DEFAULT_RADIUS else f"@{self.radius:g}"
        return f"{self.kind}:{self.n}{radius}"


CLOSED = Rule("closed")


def parse_rule(text: str) -> Rule | None:
    """Read ``gh:32``, ``trapezoid:161``, ``trapezoid:161@12`` (radius 12), ``split:16``, ``closed``; ``auto``: None.

    Raises
    ------
    RuleError
        For any other text.
    """
    word = text.strip().lower()
    if word == "auto":
        return None
    if word == "closed":
        return CLOSED
    match = _TEXT.fullmatch(word)
    if not match:
        raise RuleError(f"unknown quadrature {text!r}; write auto, closed, gh:N, trapezoid:N, trapezoid:N@RADIUS or split:N")
    kind, n, radius = match.groups()
    return Rule(kind, int(n), float(radius) if radius else DEFAULT_RADIUS)  # type: ignore[arg-type]


@lru_cache(maxsize=256)
def nodes_weights(rule: Rule) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights of a standard normal expectation: ``E f(Z) ~ sum(weights * f(nodes))``.

    For ``split`` these are the panels without any kink (width about 1).

    Returns
    -------
    (nodes, weights)
        Read-only float64 arrays of equal length.
    """
    match rule.kind:
        case "trapezoid":
            nodes = np.linspace(-rule.radius, rule.radius, rule.n)
            weights = normal_density(nodes) * (2 * rule.radius / (rule.n - 1))
        case "gh":
            nodes, weights = special.roots_hermitenorm(rule.n)
            weights = weights / np.sqrt(2 * np.pi)
        case "split":
            nodes, weights = panel_nodes(uniform_edges(rule.radius), rule.n)
        case _:
            raise RuleError("a closed form has no nodes")
    nodes.setflags(write=False)
    weights.setflags(write=False)
    return nodes, weights


def normal_density(z: np.ndarray) -> np.ndarray:
    """exp(-z^2/2) / sqrt(2 pi)."""
    return np.exp(-0.5 * z * z) / np.sqrt(2 * np.pi)


def uniform_edges(radius: float) -> np.ndarray:
    """Edges of panels of width about 1 on [-radius, radius]."""
    return np.linspace(-radius, radius, 2 * int(np.ceil(radius)) + 1)


@lru_cache(maxsize=64)
def _legendre(n: int) -> tuple[np.ndarray, np.ndarray]:
    return np.polynomial.legendre.leggauss(n)


def panel_nodes(edges: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Normal nodes and weights of n-point Gauss-Legendre on the panels between sorted edges (last axis)."""
    unit, weight = _legendre(n)
    half = np.diff(edges, axis=-1)[..., None] / 2
    nodes = edges[..., :-1, None] + half * (1 + unit)
    weights = half * weight * normal_density(nodes)
    shape = (*edges.shape[:-1], -1)
    return nodes.reshape(shape), weights.reshape(shape)
