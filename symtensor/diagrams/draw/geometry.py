"""Curves of the plane as values: circular arcs and self-loops; points are complex numbers."""

from __future__ import annotations

import cmath
import math
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

__all__ = ["Arc", "Curve", "Loop", "Points", "bezier", "crossings", "point_distance", "polyline", "turn"]

FULL = 2 * math.pi
Points = NDArray[np.complex128]


def turn(angle: float) -> complex:
    """The unit vector at `angle`.

    >>> turn(0.0)
    (1+0j)
    """
    return cmath.rect(1.0, angle)


@dataclass(frozen=True, slots=True)
class Arc:
    """A circular arc from `start` to `end`; `sagitta` is its height over the chord, to the left if positive, 0 if straight."""

    start: complex
    end: complex
    sagitta: float = 0.0

    @property
    def chord(self) -> float:
        return abs(self.end - self.start)

    @property
    def bend(self) -> float:
        """The angle between chord and tangent at both ends, positive to the left: tan(bend/2) = 2 sagitta/chord."""
        return 2 * math.atan2(2 * self.sagitta, self.chord)

    @property
    def radius(self) -> float:
        """The radius of the circle; infinite for a straight line."""
        return math.inf if self.sagitta == 0 else abs((self.chord**2 / 4 + self.sagitta**2) / (2 * self.sagitta))

    @property
    def length(self) -> float:
        return self.chord if self.sagitta == 0 else 2 * abs(self.bend) * self.radius

    def point(self, t: float) -> complex:
        """The point at the fraction `t` of the length."""
        if self.sagitta == 0:
            return self.start + t * (self.end - self.start)
        centre = self.start + self.radius * self.direction(0.0) * (-1j if self.sagitta > 0 else 1j)
        return centre + (self.start - centre) * turn(-2 * self.bend * t)

    def direction(self, t: float) -> complex:
        """The unit tangent at `t`."""
        along = (self.end - self.start) / self.chord
        return along * turn(self.bend * (1 - 2 * t))

    def leaving(self, at_start: bool) -> float:
        """The angle at which the curve leaves its start, or its end looked at from there."""
        return cmath.phase(self.direction(0.0) if at_start else -self.direction(1.0))

    def piece(self, t0: float, t1: float) -> Arc:
        """The part between two fractions of the length."""
        a, b = self.point(t0), self.point(t1)
        return Arc(a, b, math.tan(self.bend * (t1 - t0) / 2) * abs(b - a) / 2)

    def mapped(self, factor: complex, shift: complex = 0j, mirror: bool = False) -> Arc:
        """The image under z -> factor z + shift, with z replaced by its conjugate first if `mirror`."""
        a, b = (z.conjugate() if mirror else z for z in (self.start, self.end))
        return Arc(factor * a + shift, factor * b + shift, self.sagitta * abs(factor) * (-1 if mirror else 1))


@dataclass(frozen=True, slots=True)
class Loop:
    """A self-loop at `at`, towards `angle`, reaching as far as `reach`; a circle if `opening` is pi, else a teardrop."""

    at: complex
    angle: float
    reach: float
    opening: float = math.pi

    @property
    def is_circle(self) -> bool:
        return self.opening > 0.93 * math.pi

    @property
    def controls(self) -> tuple[complex, complex]:
        """The inner control points of the cubic curve of a teardrop."""
        size = self.reach / (0.75 * math.cos(self.opening / 2))
        return self.at + size * turn(self.angle - self.opening / 2), self.at + size * turn(self.angle + self.opening / 2)

    @property
    def length(self) -> float:
        points = self.sample(24)
        return sum(abs(b - a) for a, b in pairwise(points))

    def point(self, t: float) -> complex:
        if self.is_circle:
            centre = self.at + self.reach / 2 * turn(self.angle)
            return centre + (self.at - centre) * turn(FULL * t)
        a, b = self.controls
        return self.at * ((1 - t) ** 3 + t**3) + 3 * a * t * (1 - t) ** 2 + 3 * b * t**2 * (1 - t)

    def direction(self, t: float) -> complex:
        """The unit tangent at `t`."""
        if self.is_circle:
            return turn(self.angle - math.pi / 2 + FULL * t)
        a, b = self.controls
        step = (a - self.at) * (1 - t) ** 2 + 2 * (b - a) * t * (1 - t) + (self.at - b) * t**2
        return step / abs(step)

    def sample(self, count: int) -> list[complex]:
        return [self.point(k / count) for k in range(count + 1)]

    def mapped(self, factor: complex, shift: complex = 0j, mirror: bool = False) -> Loop:
        """The image, as for an arc; the sense of rotation is not kept, since a loop has none that matters."""
        at, angle = (self.at.conjugate(), -self.angle) if mirror else (self.at, self.angle)
        return Loop(factor * at + shift, angle + cmath.phase(factor), self.reach * abs(factor), self.opening)


Curve = Arc | Loop


def bezier(curve: Curve, t0: float = 0.0, t1: float = 1.0) -> tuple[complex, complex, complex, complex]:
    """A part of a curve as a cubic: its ends and the two control points between (nearly exact for circular arcs)."""
    if isinstance(curve, Loop) and not curve.is_circle:
        p = (curve.at, *curve.controls, curve.at)
        return _blossom(p, t0, t0, t0), _blossom(p, t0, t0, t1), _blossom(p, t0, t1, t1), _blossom(p, t1, t1, t1)
    a, b = curve.point(t0), curve.point(t1)
    if isinstance(curve, Arc) and curve.sagitta == 0:
        return a, (2 * a + b) / 3, (a + 2 * b) / 3, b
    half = abs(curve.bend) * (t1 - t0) if isinstance(curve, Arc) else math.pi * (t1 - t0)
    reach = abs(b - a) * 2 / 3 * math.tan(half / 2) / math.sin(half)
    return a, a + reach * curve.direction(t0), b - reach * curve.direction(t1), b


def _blossom(points: tuple[complex, ...], *at: float) -> complex:
    """The polar form of a Bezier curve."""
    row = list(points)
    for t in at:
        row = [(1 - t) * x + t * y for x, y in pairwise(row)]
    return row[0]


def polyline(curve: Curve, pieces: int = 10) -> list[complex]:
    """Points along the curve, its ends included; a straight line has only these."""
    count = 1 if isinstance(curve, Arc) and curve.sagitta == 0 else pieces
    return [curve.point(k / count) for k in range(count + 1)]


def _segments(curves: list[Curve], pieces: int) -> tuple[Points, Points, NDArray[np.int64]]:
    lines = [polyline(curve, pieces) for curve in curves]
    starts = np.array([z for line in lines for z in line[:-1]], dtype=complex)
    ends = np.array([z for line in lines for z in line[1:]], dtype=complex)
    owner = np.array([k for k, line in enumerate(lines) for _ in line[1:]], dtype=int)
    return starts, ends, owner


def crossings(curves: list[Curve], pieces: int = 10) -> int:
    """The number of points where two different curves cross inside both (common ends do not count)."""
    if len(curves) < 2:
        return 0
    starts, ends, owner = _segments(curves, pieces)
    along = ends - starts

    def side(a: Points, d: Points, p: Points) -> NDArray[np.float64]:
        offset = p[None, :] - a[:, None]
        return np.imag(np.conj(d)[:, None] * offset)

    one, two = side(starts, along, starts), side(starts, along, ends)
    # a segment that ends on another one (a common vertex) has a side of zero there and is no crossing
    apart = (one * two < -1e-9) & (owner[:, None] != owner[None, :])
    return int(np.count_nonzero(apart & apart.T)) // 2


def point_distance(points: list[complex], curve: Curve, pieces: int = 10) -> list[float]:
    """The distance of each point from the curve."""
    line = np.array(polyline(curve, pieces), dtype=complex)
    a, d = line[:-1], np.diff(line)
    p = np.array(points, dtype=complex)[:, None]
    norm = np.maximum(np.abs(d) ** 2, 1e-12)
    t = np.clip(np.real((p - a) * np.conj(d)) / norm, 0.0, 1.0)
    return np.abs(p - a - t * d).min(axis=1).tolist()
