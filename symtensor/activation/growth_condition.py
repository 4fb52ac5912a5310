r"""The growth condition phi^(k) = O((k+1)!) on an activation, with its best constant, over the real line and at a point.

    B = sup_k sup_x |phi^(k)(x)| / (k + 1)!

decides whether the theorems on weak correlations cover an analytic activation. With no singularity within the distance a of the
real axis and |phi| <= M(r) on |Im z| <= r < a, Cauchy's estimate |phi^(k)| <= k! M(r) / r^k bounds all orders: a > 1 satisfies the
condition geometrically, a < 1 violates it, a = 1 needs the order of the singularity. Orders at which phi^(k) is unbounded (phi
itself, if it grows) are counted separately: the condition then holds for the derivatives.

References: weak_correlations.md, section 4.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import sympy as sp
from numpy.typing import NDArray

from symtensor.activation.named import activation
from symtensor.activation.pieces import ActivationError
from symtensor.activation.value import Activation, X

__all__ = ["GrowthAtPoint", "GrowthCondition", "growth_at", "growth_condition", "strip_of_analyticity"]

#: where suprema over the real line are searched; beyond, growth is judged by doubling
REACH, SPACING, CIRCLE = 30.0, 0.02, 128
#: a derivative that grows by more than this from |x| <= REACH to 2 REACH and on is unbounded
GROWS = 1.2


@dataclass(frozen=True, slots=True)
class GrowthAtPoint:
    """phi^(k)(x0) / (k + 1)! for k = 0, 1, ...

    Attributes:
        point: x0. derivatives: phi^(k)(x0), exact. ratios: |phi^(k)(x0)| / (k + 1)!.
        radius: distance of x0 to the nearest singularity.
        verdict: satisfied (radius > 1), violated (radius < 1), or borderline (radius 1: the ratios decide).
    """

    point: sp.Expr
    derivatives: tuple[sp.Expr, ...]
    ratios: tuple[sp.Expr, ...]
    radius: sp.Expr
    verdict: str

    @property
    def constant(self) -> sp.Expr:
        """The largest ratio found."""
        return sp.Max(*self.ratios)


@dataclass(frozen=True, slots=True)
class GrowthCondition:
    """The growth condition over the real line.

    Attributes:
        activation: its name.
        verdict: satisfied, borderline, violated, or "not analytic".
        reason: what decides it.
        strip: distance a of the nearest singularity from the real axis; oo for entire functions.
        suprema: sup over R of |phi^(k)| for k = 0, 1, .. (located numerically); inf where unbounded.
        constant: the largest sup |phi^(k)| / (k + 1)! over bounded orders, tail included; attained at ``order``.
        unbounded: orders with an unbounded derivative.
        tail: Cauchy's bound of the ratios beyond the orders listed.
    """

    activation: str
    verdict: str
    reason: str
    strip: sp.Expr
    suprema: tuple[float, ...] = ()
    constant: float = float("nan")
    order: int = -1
    unbounded: tuple[int, ...] = ()
    tail: float = float("nan")

    @property
    def satisfied(self) -> bool:
        """Whether the theorems cover it."""
        return self.verdict == "satisfied"

    def __str__(self) -> str:
        text = f"{self.activation}: {self.verdict}; {self.reason}"
        if self.order >= 0:
            text += f"; sup |phi^(k)|/(k+1)! = {self.constant:.6g} at k = {self.order}"
        if self.unbounded:
            text += f"; unbounded at k = {', '.join(map(str, self.unbounded))}"
        return text


def growth_condition(phi: Any, orders: int = 12) -> GrowthCondition:
    """Decide the growth condition of an activation over the real line, with the best constant.

    Args:
        phi: a name, an expression in x, or an `Activation`.
        orders: derivatives of orders below this are searched for their suprema; the rest is bounded by Cauchy's estimate.

    Raises:
        ActivationError: a pole on the real axis (no activation of a Gaussian layer), or singularities that cannot be located.

    Example:
        >>> print(growth_condition("tanh"))
        tanh: satisfied; no singularity within pi/2 of the real axis; sup |phi^(k)|/(k+1)! = 1 at k = 0
        >>> growth_condition("relu").verdict
        'not analytic'
    """
    if isinstance(orders, bool) or not isinstance(orders, int) or orders < 2:
        raise ValueError(f"orders = {orders!r}: at least 2 orders of derivatives are required")
    shape = activation(phi)
    if not shape.smooth:
        kinks = ", ".join(map(str, shape.kinks))
        return GrowthCondition(shape.name, "not analytic", f"kink at x = {kinks}", sp.S.Zero)
    strip = strip_of_analyticity(shape.expr)
    if strip == 0:
        raise ActivationError(f"{shape.name!r} is singular on the real axis: a Gaussian layer reaches the singularity")
    suprema = _suprema(shape, strip, orders)
    unbounded = tuple(k for k, value in enumerate(suprema) if not np.isfinite(value))
    bounded = {k: value / float(sp.factorial(k + 1)) for k, value in enumerate(suprema) if k not in unbounded}
    where = f"no singularity within {strip} of the real axis" if strip.is_finite else "entire"
    if not bounded:
        reason = "unbounded derivatives of every order"
        return GrowthCondition(shape.name, "violated", reason, strip, tuple(suprema), unbounded=unbounded)
    tail = _tail(shape, strip, max(unbounded, default=-1) + 1, orders)
    order = max(bounded, key=lambda k: bounded[k])
    verdict = "satisfied" if strip > 1 and np.isfinite(tail) else "violated" if strip < 1 else "borderline"
    constant = max(bounded[order], 0.0)
    return GrowthCondition(shape.name, verdict, where, strip, tuple(suprema), constant, order, unbounded, tail)


def growth_at(phi: Any, point: Any = 0, orders: int = 10) -> GrowthAtPoint:
    """The condition at one point, exactly; for a function that is no activation too (a SymPy expression in x).

    Example:
        >>> growth_at(1 / (1 - X)**2).ratios[:4], growth_at(1 / (1 - X)**2).verdict
        ((1, 1, 1, 1), 'borderline')
    """
    expr = phi if isinstance(phi, sp.Expr) else activation(phi).expr
    expr = expr.xreplace({symbol: X for symbol in expr.free_symbols if str(symbol) == "x"})
    at = sp.sympify(point) if not isinstance(point, str) else activation(point).expr
    derivatives = tuple(sp.simplify(sp.diff(expr, X, k).subs(X, at)) for k in range(orders))
    if any(not value.is_finite for value in derivatives):
        raise ActivationError(f"{expr} is singular at x = {at}; choose another point")
    ratios = tuple(sp.Abs(value) / sp.factorial(k + 1) for k, value in enumerate(derivatives))
    distances = [sp.Abs(z - at) for z in _singularities(expr)]
    radius = min(distances, key=lambda r: float(r.evalf())) if distances else sp.oo
    verdict = "satisfied" if radius > 1 else "violated" if radius < 1 else "borderline"
    return GrowthAtPoint(at, derivatives, ratios, sp.nsimplify(sp.simplify(radius)) if radius.is_finite else radius, verdict)


def strip_of_analyticity(expr: sp.Expr) -> sp.Expr:
    """The distance of the singularities of an elementary function of x from the real axis; oo if it is entire.

    Raises:
        ActivationError: singularities that cannot be located.

    Example:
        >>> strip_of_analyticity(sp.tanh(X)), strip_of_analyticity(sp.log(1 + sp.exp(X))), strip_of_analyticity(sp.erf(X))
        (pi/2, pi, oo)
    """
    heights = [sp.Abs(sp.im(z)) for z in _singularities(expr)]
    return min(heights, key=lambda h: float(h.evalf())) if heights else sp.oo


# -- singularities ------------------------------------------------------------------------------------------------------


def _singularities(expr: Any) -> list[sp.Expr]:
    """The singularities next to the real axis: every one of a rational part, the nearest of each periodic family."""
    if expr.is_polynomial(X):
        return []
    if isinstance(expr, sp.Add | sp.Mul):
        return [z for part in expr.args for z in _singularities(part)]
    if isinstance(expr, sp.exp | sp.sin | sp.cos | sp.sinh | sp.cosh | sp.erf | sp.erfc):
        return _singularities(expr.args[0])
    if isinstance(expr, sp.tanh | sp.tan):
        below = sp.cosh(expr.args[0]) if isinstance(expr, sp.tanh) else sp.cos(expr.args[0])
        return _zeros(below) + _singularities(expr.args[0])
    if isinstance(expr, sp.log):
        return _zeros(expr.args[0]) + _singularities(expr.args[0])
    if isinstance(expr, sp.atan | sp.asinh):
        inner: Any = expr.args[0]
        return _zeros(1 + inner**2) + _singularities(inner)
    if isinstance(expr, sp.Pow) and not expr.exp.has(X):
        whole = expr.exp.is_integer and expr.exp.is_nonnegative
        return ([] if whole else _zeros(expr.base)) + _singularities(expr.base)
    raise ActivationError(f"the singularities of {expr} cannot be located: write it with exp, tanh, log, erf, sin and powers")


def _zeros(expr: Any) -> list[sp.Expr]:
    """Complex zeros of a polynomial in x, or the ones next to the real axis of a polynomial in exp(c x)."""
    expr = sp.together(sp.expand(expr.rewrite(sp.exp)))
    above = sp.numer(expr)
    if above.is_polynomial(X):
        return list(sp.roots(sp.Poly(above, X))) if above.has(X) else []
    exponents = [node.args[0] for node in above.atoms(sp.exp) if node.args[0].has(X)]
    rates = [sp.expand(exponent).coeff(X, 1) for exponent in exponents]
    shifts = [sp.expand(exponent - rate * X) for exponent, rate in zip(exponents, rates)]
    if any(shift.has(X) for shift in shifts) or not rates:
        raise ActivationError(f"the zeros of {expr} cannot be located: exponents linear in x are required")
    unit = min(rates, key=lambda rate: float(sp.Abs(rate).evalf()))
    y = sp.Dummy("y")
    powers = {sp.exp(e): sp.exp(s) * y ** (rate / unit) for e, rate, s in zip(exponents, rates, shifts)}
    polynomial = sp.numer(sp.together(above.xreplace(powers)))
    if not polynomial.is_polynomial(y) or polynomial.has(X):
        raise ActivationError(f"the zeros of {expr} cannot be located: it is no polynomial in one exponential")
    found = []
    for root in sp.roots(sp.Poly(polynomial, y)):
        if root != 0:  # log has its imaginary part in (-pi, pi]: the nearest of the zeros that differ by 2 pi i / rate
            found.append(sp.simplify(sp.log(root).expand(complex=True) / unit))
    return found


# -- suprema ------------------------------------------------------------------------------------------------------------


def _suprema(shape: Activation, strip: sp.Expr, orders: int) -> list[float]:
    """sup over R of |phi^(k)|: a grid, refined at the maximum; inf if it grows on beyond the grid."""
    radius = min(0.7 * float(strip), 1.5)
    inside = np.arange(-REACH, REACH + SPACING / 2, SPACING)
    table = _derivatives(shape, inside, orders, radius)
    found = []
    far = [np.concatenate([-np.linspace(f, 2 * f, 200), np.linspace(f, 2 * f, 200)]) for f in (REACH, 2 * REACH, 4 * REACH)]
    tails = [np.abs(_derivatives(shape, x, orders, radius)) for x in far]
    for k in range(orders):
        near = float(np.max(np.abs(table[k])))
        beyond = [float(np.max(tail[k])) if np.isfinite(tail[k]).all() else np.inf for tail in tails]
        noise = 1e-9 * float(sp.factorial(k)) / radius**k * max(1.0, 8 * REACH)
        if beyond[2] > max(GROWS * beyond[0], noise) and beyond[2] > near * (1 + 1e-9) + noise:
            found.append(np.inf)
            continue
        at = int(np.argmax(np.abs(table[k])))
        found.append(max(_refined(shape, inside[at], k, radius), near, *(_at_infinity(shape) if k == 0 else ())))
    return found


def _at_infinity(shape: Activation) -> tuple[float, ...]:
    """|phi| at both ends of the line where SymPy finds it; a supremum may be a limit."""
    found = []
    for end in (-sp.oo, sp.oo):
        try:
            value = sp.Abs(sp.limit(_bounded(shape.expr), X, end))
        except (NotImplementedError, ValueError, TypeError):
            continue
        if value.is_number and value.is_finite:
            found.append(float(value))
    return tuple(found)


def _refined(shape: Activation, at: float, k: int, radius: float) -> float:
    """The maximum between the neighbours of a grid point, by repeated subdivision."""
    low, high = at - SPACING, at + SPACING
    best = 0.0
    for _ in range(6):
        x = np.linspace(low, high, 21)
        values = np.abs(_derivatives(shape, x, k + 1, radius)[k])
        best, centre = float(values.max()), float(x[int(np.argmax(values))])
        low, high = centre - (high - low) / 20, centre + (high - low) / 20
    return best


def _derivatives(shape: Activation, x: NDArray[np.float64], orders: int, radius: float) -> NDArray[np.float64]:
    """phi^(k)(x) for k < orders by Cauchy's formula on circles, (orders, len(x))."""
    function = _complex_function(shape)
    circle = radius * np.exp(2j * np.pi * np.arange(CIRCLE) / CIRCLE)
    with np.errstate(all="ignore"):
        values = np.broadcast_to(function(x[:, None] + circle[None, :]), (len(x), CIRCLE))
        series = np.fft.fft(values, axis=1)[:, :orders].real.T / CIRCLE
    scale = np.array([float(sp.factorial(k)) / radius**k for k in range(orders)])
    return series * scale[:, None]


def _tail(shape: Activation, strip: sp.Expr, lowest: int, orders: int) -> float:
    """Cauchy's bound of sup |phi^(k)|/(k+1)! for k >= orders, from the lowest bounded derivative on a strip of half-width > 1."""
    if strip <= 1:
        return float("inf")
    half = min((1 + float(strip)) / 2, 2.0)
    x = np.arange(-REACH, REACH, 4 * SPACING)
    function = _complex_function(shape, lowest)
    with np.errstate(all="ignore"):
        size = max(float(np.max(np.abs(function(x + 1j * y) + 0 * x))) for y in np.linspace(0, half, 41))
    k = orders - lowest
    factor = float(sp.factorial(k) / sp.factorial(orders + 1))
    return size * factor / half**k


def _complex_function(shape: Activation, order: int = 0) -> Callable[[Any], Any]:
    """phi^(order) of complex arguments, without overflow where exp of a large argument stands in a quotient."""
    from scipy.special import erf, erfc

    names = {"erf": erf, "erfc": erfc}
    return sp.lambdify(X, sp.diff(_bounded(shape.expr), X, order) if order else _bounded(shape.expr), [names, "numpy"])


def _bounded(expr: sp.Expr) -> sp.Expr:
    """1/(1 + e^u) = (1 - tanh(u/2))/2, which does not overflow."""
    a = sp.Wild("a")
    return expr.replace(1 / (1 + sp.exp(a)), lambda a: (1 - sp.tanh(a / 2)) / 2)  # type: ignore[attr-defined]
