"""Gaussian expectations in closed form: polynomials, exponentials, sines, bumps, erf and the ReLU family.

Everything rests on three derivations, none of which needs the covariance to be invertible or positive.

* Isserlis/Wick: ``E[x_1 .. x_n]`` with mean m is ``m_1 E[x_2 ..] + sum_j C_1j E[.. without 1, j ..]``.
* Tilting: for ``G`` symmetric, ``E[p(x) exp(v.x + x.G.x)] = det(1 - 2CG)^(-1/2) exp(v.C'v/2) E'[p]``, where E' is the
  Gaussian with covariance ``C' = (1 - 2CG)^(-1) C`` and mean ``C' v``.  Sines are exponentials of imaginary ``v``.
* Price: ``d/dk12 E[f(x) g(y)] = E[f' g']``, ``d/dk11 E[f g] = E[f'' g]/2``; integrated in ``k12`` it gives erf and
  ReLU, differentiated it gives every weak moment.

References: Isserlis, Biometrika 12 (1918); Price, IRE Trans. Inf. Theory 4 (1958); Cho & Saul, NIPS (2009), eq. 6.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any, Literal

import sympy as sp

from symtensor.activation import Activation, X
from symtensor.activation import activation as as_activation

__all__ = ["K11", "K12", "K22", "ClosedForm", "closed_form", "gaussian_expectation", "isserlis", "quadratic_exponents"]

#: Covariance of the pair (x, y): symbols of every closed form.
K11, K22 = sp.symbols("k11 k22", nonnegative=True)
K12 = sp.Symbol("k12", real=True)
_Y = sp.Symbol("y", real=True)
_PERIODIC = (sp.sin, sp.cos, sp.sinh, sp.cosh)

Covariance = sp.MatrixBase | Callable[[Any, Any], Any]


def isserlis(indices: Sequence[Any], covariance: Covariance, mean: Callable[[Any], Any] | None = None) -> sp.Expr:
    """E[x_{i1} x_{i2} ..] of a Gaussian vector, a polynomial in its covariance (and mean): no positivity is needed.

    Parameters
    ----------
    indices
        Labels of the factors, repeated for powers.
    covariance
        A matrix indexed by the labels, or a symmetric function of two labels.
    mean
        A function of one label; zero if not given.

    Examples
    --------
    >>> C = sp.Matrix(2, 2, sp.symbols("a b b c"))
    >>> isserlis((0, 0, 1, 1), C)
    a*c + 2*b**2
    """
    entry = covariance if callable(covariance) else lambda i, j: covariance[i, j]

    @cache
    def moment(rest: tuple[Any, ...]) -> sp.Expr:
        if not rest:
            return sp.S.One
        first, *others = rest
        total = sp.sympify(mean(first)) * moment(tuple(others)) if mean else sp.S.Zero
        for position, other in enumerate(others):
            total += sp.sympify(entry(first, other)) * moment(tuple(others[:position] + others[position + 1 :]))
        return total

    return sp.expand(moment(tuple(indices)))


def gaussian_expectation(
    expr: sp.Expr, variables: Sequence[sp.Symbol], covariance: sp.MatrixBase, mean: sp.MatrixBase | None = None
) -> sp.Expr | None:
    """E[f] for sums of polynomial * exp(quadratic), sines and hyperbolic sines included; None outside this class.

    Notes
    -----
    With a growing exponential of a square the formula holds only where the expectation exists
    (``1 - 2 C G`` positive); :attr:`Activation.critical_variance` says where.

    Examples
    --------
    >>> x, k = sp.Symbol("x", real=True), sp.Symbol("k", positive=True)
    >>> gaussian_expectation(sp.exp(x), [x], sp.Matrix([[k]]))
    exp(k/2)
    """
    terms = _exponential_terms(expr, tuple(variables))
    if terms is None:
        return None
    center = mean if mean is not None else sp.zeros(len(variables), 1)
    total = sp.Add(*(_tilted(term, tuple(variables), covariance, center) for term in terms))
    return _collected(_real_form(total), covariance)


def quadratic_exponents(expr: sp.Expr, variables: Sequence[sp.Symbol]) -> list[sp.Matrix] | None:
    """Real symmetric G of every term polynomial * exp(x.G.x + ..) of a sum; None outside this class.

    The expectation under covariance ``B B^T`` exists if every ``1 - 2 B^T G B`` is positive definite.
    """
    terms = _exponential_terms(expr, tuple(variables))
    if terms is None:
        return None
    return [sp.hessian(term.exponent, list(variables)).applyfunc(sp.re) / 2 for term in terms]


@dataclass(frozen=True, slots=True)
class _Term:
    """polynomial * exp(exponent), the exponent a polynomial of degree at most two."""

    polynomial: sp.Expr
    exponent: sp.Expr


def _exponential_terms(expr: Any, variables: tuple[sp.Symbol, ...]) -> list[_Term] | None:
    if not expr.is_polynomial(*variables):
        expr = expr.replace(lambda node: isinstance(node, _PERIODIC), lambda node: node.rewrite(sp.exp))
        expr = expr.replace(
            lambda node: isinstance(node, sp.Pow) and not node.base.has(*variables) and node.exp.has(*variables),
            lambda node: sp.exp(node.exp * sp.log(node.base)),
        )
    terms = []
    for summand in sp.Add.make_args(sp.expand(expr)):
        exponent: Any = sp.S.Zero
        polynomial: Any = sp.S.One
        for factor in sp.Mul.make_args(summand):
            if isinstance(factor, sp.exp):
                exponent += factor.args[0]
            else:
                polynomial *= factor
        exponent = sp.expand(exponent)
        if not (polynomial.is_polynomial(*variables) and exponent.is_polynomial(*variables)):
            return None
        if sp.Poly(exponent, *variables).total_degree() > 2:
            return None
        terms.append(_Term(polynomial, exponent))
    return terms


def _tilted(term: _Term, variables: tuple[sp.Symbol, ...], covariance: sp.MatrixBase, mean: sp.MatrixBase) -> sp.Expr:
    """E of one term: center at the mean, absorb the exponential into the Gaussian, then Isserlis."""
    shift: Any = {variable: variable + mean[row] for row, variable in enumerate(variables)}
    exponent = sp.Poly(term.exponent.subs(shift, simultaneous=True), *variables)
    constant = exponent.coeff_monomial(1)
    linear = sp.Matrix([exponent.coeff_monomial(variable) for variable in variables])
    quadratic = sp.hessian(exponent.as_expr(), variables) / 2
    weight, tilted = sp.exp(constant), covariance
    if not quadratic.is_zero_matrix:
        system = sp.eye(len(variables)) - 2 * covariance * quadratic
        weight /= sp.sqrt(sp.factor(system.det()))
        tilted = (system.adjugate() * covariance / system.det()).applyfunc(sp.cancel)
    center = tilted * linear
    weight *= sp.exp(sp.expand((linear.T * center)[0] / 2))
    polynomial = sp.Poly(term.polynomial.subs(shift, simultaneous=True), *variables)
    total = sp.S.Zero
    for powers, coefficient in polynomial.terms():
        indices = [index for index, power in enumerate(powers) for _ in range(power)]
        total += coefficient * isserlis(indices, tilted, lambda index: center[index])
    return weight * total


def _real_form(expr: sp.Expr) -> sp.Expr:
    """Real form of a real quantity written with complex exponentials."""
    if not expr.has(sp.I):
        return expr
    real, imaginary = sp.expand(expr, complex=True).as_real_imag()
    if sp.simplify(imaginary) != 0:
        raise ValueError("the expectation of a real function came out complex: are all its symbols declared real?")
    return sp.expand(real)


def _collected(expr: sp.Expr, covariance: sp.MatrixBase) -> sp.Expr:
    """Like exponentials together, and exp(u) - exp(-u) of a covariance as sinh(u), which does not cancel near 0."""
    if not expr.has(sp.exp):
        return sp.expand(expr) if expr.is_polynomial() else expr
    expr = sp.expand(expr)
    for entry in {covariance[i, j] for i in range(covariance.rows) for j in range(i) if covariance[i, j].free_symbols}:
        exponents: set[Any] = {node.args[0] for node in expr.atoms(sp.exp)}
        powers = {power for power in exponents if power.as_independent(entry)[1] == entry}
        for power in powers:
            if -power in powers and not power.could_extract_minus_sign():
                hyperbolic = {sp.exp(sign * power): sp.cosh(power) + sign * sp.sinh(power) for sign in (1, -1)}
                expr = sp.expand(expr.xreplace(hyperbolic))
    return sp.factor_terms(sp.powsimp(expr, combine="exp"))


@dataclass(frozen=True, slots=True)
class ClosedForm:
    """E[sigma(x) sigma(y)] of one activation under covariance ((k11, k12), (k12, k22)), as a SymPy expression.

    Attributes
    ----------
    expectation
        Expression in :data:`K11`, :data:`K12`, :data:`K22`.
    kind
        ``"smooth"``: holds for any covariance, singular ones too.  ``"homogeneous"`` (ReLU family): derivatives of
        second order hold for k11 k22 > k12^2 only; on singular pairs the caller uses Euler's relation instead.
    """

    expectation: sp.Expr
    kind: Literal["smooth", "homogeneous"]

    def moment(self, i: int, j: int) -> sp.Expr:
        """Weak moment m_ij = E[d_x^i d_y^j sigma(x) sigma(y)], i + j even, by Price's theorem.

        ``m_ij = d_12^min (2 d_11)^((i-j)/2) F`` for i >= j, and with d_22 for i < j.

        Raises
        ------
        ValueError
            If i + j is odd or an order is negative: those are not derivatives in the covariance.
        """
        if i < 0 or j < 0 or (i + j) % 2:
            raise ValueError(f"moment ({i}, {j}): Price's theorem gives orders i, j >= 0 with i + j even")
        return _moment(self, i, j)


@lru_cache(maxsize=1024)
def _moment(form: ClosedForm, i: int, j: int) -> sp.Expr:
    common, excess, variance = min(i, j), abs(i - j) // 2, K11 if i >= j else K22
    result = form.expectation
    if common:
        result = _tidy(form, sp.diff(result, K12, common))
    return _tidy(form, 2**excess * sp.diff(result, variance, excess)) if excess else result


def _tidy(form: ClosedForm, expr: sp.Expr) -> sp.Expr:
    """Cancel k11 k22 against det + k12^2, which differentiating the arc-cosine form leaves behind."""
    if form.kind == "smooth":
        return sp.expand(expr) if expr.is_polynomial(K11, K12, K22) else sp.factor_terms(expr)
    root = sp.Symbol("r", positive=True)
    angle = sp.Symbol("theta", real=True)
    flat = expr.subs(sp.atan2(K12, _ROOT_DET), angle).subs(_ROOT_DET, root)
    flat = flat.subs(sp.sqrt(K11 * K22), sp.sqrt(root**2 + K12**2)).subs(K12**2, K11 * K22 - root**2)
    flat = sp.cancel(sp.together(flat))
    return flat.subs({angle: sp.atan2(K12, _ROOT_DET), root: _ROOT_DET})


_ROOT_DET = sp.sqrt(K11 * K22 - K12**2)


@lru_cache(maxsize=256)
def closed_form(activation: Activation | str | sp.Expr) -> ClosedForm | None:
    """The closed form of E[sigma(x) sigma(y)], or None if there is none in this module; names are understood.

    Examples
    --------
    >>> from symtensor.activation import activation
    >>> closed_form(activation("erf")).expectation
    2*asin(2*k12/(sqrt(2*k11 + 1)*sqrt(2*k22 + 1)))/pi
    """
    if not isinstance(activation, Activation):
        return closed_form(as_activation(activation))
    if activation.slopes is not None:
        return _relu_family(*activation.slopes)
    if not activation.smooth:
        return None
    form = _error_function(activation.expr)
    if form is not None:
        return form
    if _exponential_terms(activation.expr, (X,)) is None:
        return None
    pair = activation.expr * activation.expr.subs(X, _Y)
    value = gaussian_expectation(pair, (X, _Y), sp.Matrix([[K11, K12], [K12, K22]]))
    return None if value is None else ClosedForm(value, "smooth")


def _error_function(expr: sp.Expr) -> ClosedForm | None:
    """sigma = a erf(c x) + b: integrate Price's equation d/dk12 E[sigma sigma] = E[sigma' sigma'] from k12 = 0.

    E[sigma' sigma'] is ``4 a^2 c^2 / (pi sqrt(A - B k12^2))`` by tilting, whose integral is an arcsine; at k12 = 0 the
    odd part has expectation zero.
    """
    a, b, c = (sp.Wild(name, exclude=[X]) for name in "abc")
    found = expr.match(a * sp.erf(c * X) + b)
    if not found or not found.get(a) or found.get(c) in (None, 0):
        return None
    slope = sp.diff(found[a] * sp.erf(found[c] * X), X)
    derivative = gaussian_expectation(slope * slope.subs(X, _Y), (X, _Y), sp.Matrix([[K11, K12], [K12, K22]]))
    assert derivative is not None
    inverse_square = sp.expand(sp.cancel(1 / derivative**2))
    constant, quadratic = inverse_square.coeff(K12, 0), -inverse_square.coeff(K12, 2)
    argument = sp.powsimp(K12 * sp.sqrt(quadratic) / sp.sqrt(sp.factor(constant)))
    return ClosedForm(found[b] ** 2 + sp.asin(argument) / sp.sqrt(quadratic), "smooth")


def _relu_family(left: sp.Expr, right: sp.Expr) -> ClosedForm:
    """sigma = m x + h |x|: ``E = m^2 k12 + h^2 E|x||y|``, and E|x||y| by integrating Price's equation twice.

    ``d^2/dk12^2 E|x||y| = 4 E[delta(x) delta(y)] = 2 / (pi sqrt(det))``; at k12 = 0 the slope E[sign sign] is 0 and the
    value E|x| E|y| is ``(2/pi) sqrt(k11 k22)``.  Hence the slope ``(2/pi) asin rho`` and the value
    ``(2/pi) (sqrt(det) + k12 asin rho)``, with ``asin rho = atan2(k12, sqrt(det))``, which never leaves [-pi/2, pi/2].
    """
    mean, half = (left + right) / 2, (right - left) / 2
    absolute = 2 / sp.pi * (_ROOT_DET + K12 * sp.atan2(K12, _ROOT_DET))
    return ClosedForm(sp.expand(mean**2 * K12) + half**2 * absolute, "homogeneous")
