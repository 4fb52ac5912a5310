"""From connected amputated diagrams to sources, to one-particle irreducible diagrams, and back.

With A(phi) the connected amputated diagrams and C the covariance, a source j joins every field: the connected functions
are W(j) = j.C.j/2 + A(C j). Cutting every line of C that is a bridge turns A into irreducible parts Gamma:

    Gamma(psi) = A(phi) + A'(phi).C.A'(phi)/2,    psi = phi + C A'(phi),

the Legendre transform without an inverse of C. The same with -C builds the trees: A from Gamma.
"""

from __future__ import annotations

from fractions import Fraction

from symtensor.diagrams.weights.ring import Grade, Poly, Powers, Ring, Series, divides

__all__ = ["Matrix", "legendre", "to_sources"]

Matrix = tuple[tuple[int, ...], ...]


def legendre(amputated: Series, lines: Matrix, ring: Ring, degree: int) -> Series:
    """Gamma to `degree` in the fields; `lines` is C, or -C to build the trees of irreducible parts.

    Around phi*, the point of psi = 0, let A(phi* + chi) = A0 + a.chi + B(chi). Then Gamma = A0 + a.C.a/2 + a.psi + G(psi)
    with G(chi + C B') = B + B'.C.B'/2, where nothing of a degree above the one asked for enters.
    """
    low = Ring(ring.bound, ring.fields, max(degree, 1))
    shifted = _around_mean(amputated, lines, low)
    linear = low.of_degree(shifted, 1, 1)
    slopes = tuple(low.derivative(linear, i) for i in range(ring.fields))
    rest = low.of_degree(shifted, 2)
    gradient = tuple(low.derivative(rest, i) for i in range(ring.fields))
    value = low.add((1, rest), (Fraction(1, 2), _quadratic(gradient, lines, low)))
    moved = [[(c, gradient[j]) for j, c in enumerate(row) if c] for row in lines]
    images = tuple(low.add((1, low.variable(i)), *terms) for i, terms in enumerate(moved))
    constant = _quadratic(slopes, lines, low)
    total = low.add((1, low.of_degree(shifted, 0, 1)), (Fraction(1, 2), constant), (1, _unsubstituted(value, images, low)))
    return low.of_degree(total, 0, degree)


def _around_mean(series: Series, lines: Matrix, low: Ring) -> Series:
    """A(phi* + chi) to the cap of `low` in chi, where phi* + C A'(phi*) = 0."""
    mean: tuple[Series, ...] = ({},) * low.fields
    tangent = Ring(low.bound, low.fields, 1)
    while True:
        slope = _shifted(series, mean, tangent)
        slopes = tuple(tangent.of_degree(tangent.derivative(slope, i), 0, 0) for i in range(low.fields))
        new = tuple(tangent.add(*((-c, slopes[j]) for j, c in enumerate(row) if c)) for row in lines)
        if new == mean:
            return _shifted(series, mean, low)
        mean = new


def _shifted(series: Series, mean: tuple[Series, ...], low: Ring) -> Series:
    if not any(mean):
        return low.of_degree(series, 0, low.cap)
    return low.substitute(series, tuple(low.add((1, low.variable(i)), (1, mean[i])) for i in range(low.fields)))


def _quadratic(vector: tuple[Series, ...], lines: Matrix, ring: Ring) -> Series:
    """v.C.v"""
    terms = [(c, ring.multiply(vector[i], vector[j])) for i, row in enumerate(lines) for j, c in enumerate(row) if c]
    return ring.add(*terms)


def _unsubstituted(value: Series, images: tuple[Series, ...], ring: Ring) -> Series:
    """G with G(images) = value, where images are the fields themselves at order zero: one grade after the other."""
    left = value
    out: Series = {}
    powers: dict[Powers, Series] = {}
    for grade in ring.grades:
        if grade in left:
            out[grade] = left[grade]
            left = ring.add((1, left), (-1, ring.substitute({grade: left[grade]}, images, powers)))
    return out


def to_sources(amputated: Series, lines: Matrix, bound: Grade, legs: tuple[int, ...]) -> Series:
    """W(j) = j.C.j/2 + A(C j) as a series graded by (bound, legs), with the powers of j among the grades.

    The coefficient of j^n is the weight with n labelled legs divided by n!.
    """
    out: Series = {}
    free = (0,) * len(bound)
    size = len(legs)
    for i in range(size):
        for j in range(i, size):
            if lines[i][j]:
                exponents = tuple((k == i) + (k == j) for k in range(size))
                _put(out, (*free, *exponents), 0, size, Fraction(1, 1 + (i == j)), legs)
    expansions: dict[Powers, dict[Powers, Fraction]] = {}
    for grade, poly in amputated.items():
        for key, value in poly.items():
            if key[:-1] not in expansions:
                expansions[key[:-1]] = _joined_to_legs(key[:-1], lines, legs)
            for exponents, factor in expansions[key[:-1]].items():
                _put(out, (*grade, *exponents), key[-1], size, value * factor, legs)
    return out


def _put(out: Series, grade: Grade, loops: int, size: int, value: Fraction, legs: tuple[int, ...]) -> None:
    if divides(grade[len(grade) - size :], legs):
        poly: Poly = out.setdefault(grade, {})
        key = (*(0,) * size, loops)
        poly[key] = poly.get(key, Fraction(0)) + value


def _joined_to_legs(powers: Powers, lines: Matrix, legs: tuple[int, ...]) -> dict[Powers, Fraction]:
    """prod over fields g of (sum over f of C_gf j_f)^power, up to j^legs."""
    out = {(0,) * len(legs): Fraction(1)}
    for g, power in enumerate(powers):
        for _ in range(power):
            new: dict[Powers, Fraction] = {}
            for key, value in out.items():
                for f, c in enumerate(lines[g]):
                    if c and key[f] < legs[f]:
                        target = (*key[:f], key[f] + 1, *key[f + 1 :])
                        new[target] = new.get(target, Fraction(0)) + value * c
            out = new
    return out
