"""The field of numbers in which a moment hierarchy calculates: rationals, parameters, and algebraic rates."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import mpmath
import sympy as sp
from sympy.polys.matrices import DomainMatrix
from sympy.polys.polyerrors import CoercionFailed

from symtensor.fields.errors import TheoryError

__all__ = ["DIGITS", "Scalars", "eigenvalues", "exact", "numerical_modes", "triangular_basis"]

#: Digits to which rates without a closed form are taken; results are written with two thirds of them.
DIGITS = 60

Matrix = list[list[Any]]


@dataclass(frozen=True, eq=False)
class Scalars:
    """Elements of one exact domain: `read` from SymPy, `write` to SymPy, `inverse`; `+ - *` are the elements' own.

    With `fractions` false, parameters occur as polynomials and only numbers are divided by, which saves all
    cancellations of common factors.
    """

    domain: Any
    fractions: bool
    _inverses: dict[Any, Any] = field(default_factory=dict)

    @classmethod
    def holding(cls, values: Iterable[sp.Expr], divisors: Iterable[sp.Expr]) -> Scalars:
        """The smallest domain with all values, in which sums of the divisors can be divided by.

        Raises TheoryError for a parameter under a root.
        """
        values, divisors = list(values), list(divisors)
        algebraic: set[sp.Expr] = set()
        generators: set[sp.Expr] = set()
        for value in [*values, *divisors]:
            _generators(value, algebraic, generators)
        numbers = sp.QQ.algebraic_field(*sorted(algebraic, key=sp.default_sort_key)) if algebraic else sp.QQ
        if not generators:
            return cls(numbers, True)
        names = sorted(generators, key=sp.default_sort_key)
        polynomials = numbers.poly_ring(*names)
        try:
            for value in values:
                polynomials.from_sympy(value)
            for divisor in divisors:
                numbers.from_sympy(divisor)
        except CoercionFailed:
            return cls(numbers.frac_field(*names), True)
        return cls(polynomials, False)

    @property
    def zero(self) -> Any:
        return self.domain.zero

    @property
    def one(self) -> Any:
        return self.domain.one

    def read(self, value: Any) -> Any:
        """A SymPy expression as an element."""
        return self.domain.from_sympy(sp.sympify(value))

    def write(self, element: Any) -> sp.Expr:
        """An element as a SymPy expression."""
        return self.domain.to_sympy(element)

    def inverse(self, element: Any) -> Any:
        """1/element; an element that is no number is refused by the domain of polynomials."""
        found = self._inverses.get(element)
        if found is None:
            if self.fractions:
                found = self.one / element
            else:
                number = self.domain.domain.one / element.coeff(1)
                found = self.domain.convert_from(number, self.domain.domain)
            self._inverses[element] = found
        return found


def exact(value: Any) -> sp.Expr:
    """An expression with decimals read as the rationals they print as."""
    expression = sp.sympify(value, strict=True)
    decimals = {number: sp.Rational(repr(float(number))) for number in expression.atoms(sp.Float)}
    return expression.xreplace(decimals)


def _generators(value: sp.Expr, algebraic: set[sp.Expr], generators: set[sp.Expr]) -> None:
    """Sort the parts of an expression that rational operations do not reach into numbers and parameters."""
    if value.is_Rational:
        return
    if isinstance(value, sp.Mul):  # roots that occur as a product only need a smaller field than each root by itself
        roots = [part for part in value.args if _is_root(part)]  # type: ignore[arg-type]
        if len(roots) > 1:
            algebraic.add(sp.Mul(*roots))
            value = sp.Mul(*(part for part in value.args if part not in roots))
    if isinstance(value, sp.Add | sp.Mul) or (isinstance(value, sp.Pow) and value.exp.is_Integer):
        for part in value.args if not isinstance(value, sp.Pow) else value.args[:1]:
            _generators(part, algebraic, generators)  # type: ignore[arg-type]
    elif value.is_Rational:
        return
    elif _is_root(value):
        algebraic.add(value)
    elif isinstance(value, sp.Pow) and value.exp.is_Rational:
        raise TheoryError(
            f"the parameter {value.base} stands under a root, {value}; name the root instead (for example {value.base} = w**2), "
            "so that exact arithmetic knows its square"
        )
    else:
        generators.add(value)


def _is_root(value: sp.Expr) -> bool:
    return value is sp.I or (isinstance(value, sp.Pow) and bool(value.base.is_Rational and value.exp.is_Rational))


def eigenvalues(matrix: Matrix) -> list[tuple[sp.Expr, int]]:
    """Eigenvalues with multiplicity, in closed form: rational in the parameters, or roots of quadratic equations in numbers.

    Raises TheoryError if they are neither.
    """
    z = sp.Dummy("z")
    characteristic = (z * sp.eye(len(matrix)) - sp.Matrix(matrix)).det(method="berkowitz")
    polynomial = sp.factor_list(sp.numer(sp.together(characteristic)), z)[1]
    found: list[tuple[sp.Expr, int]] = []
    for factor, multiplicity in polynomial:
        poly = sp.Poly(factor, z)
        if poly.degree() == 0:
            continue
        if poly.degree() > 2 or (poly.degree() == 2 and poly.free_symbols - {z}):
            equation = sp.sstr(poly.as_expr().subs(z, sp.Symbol("a")))
            raise TheoryError(
                f"the rates of the linear drift solve {equation} = 0, which has no root that is "
                "rational in the parameters; give rational numbers for the parameters of the linear drift, such that the rates "
                "of variables that drive each other solve quadratic equations"
            )
        found += [(root, multiplicity * count) for root, count in sp.roots(poly).items()]
    return found


def triangular_basis(matrix: Matrix, rates: Sequence[tuple[sp.Expr, int]], scalars: Scalars) -> Matrix:
    """Columns P with P^-1 A P upper triangular: bases of ker(A - a) inside ker(A - a)^2 .. for every rate a."""
    size = len(matrix)
    rows = [[scalars.read(entry) for entry in row] for row in matrix]
    columns: list[list[Any]] = []
    for rate, multiplicity in rates:
        shifted = [[rows[i][j] - (scalars.read(rate) if i == j else scalars.zero) for j in range(size)] for i in range(size)]
        base = DomainMatrix(shifted, (size, size), scalars.domain)
        power, here = base, []
        for _ in range(multiplicity):
            for vector in power.nullspace().to_list():
                candidate = [*here, vector]
                if DomainMatrix(candidate, (len(candidate), size), scalars.domain).rank() == len(candidate):
                    here = candidate
            power = power * base
        columns += here
    return [[columns[j][i] for j in range(size)] for i in range(size)]


def numerical_modes(matrix: Matrix) -> tuple[list[sp.Expr], Matrix, Matrix]:
    """Rates, modes P and a matrix P diag(rates) P^-1 that agrees with the given one to `DIGITS` digits; all entries rational.

    The arithmetic stays exact: what is solved is an equation whose linear drift differs in the last digit.

    Raises TheoryError if the modes are too nearly parallel for that.
    """
    with mpmath.workdps(DIGITS + 15):
        entries = [[_mp(entry) for entry in row] for row in matrix]
        values, vectors = mpmath.eig(mpmath.matrix(entries))
        rates = [_rational(value) for value in values]
        modes = sp.Matrix(len(matrix), len(matrix), lambda i, j: _rational(vectors[i, j]))
        if mpmath.cond(vectors) > mpmath.mpf(10) ** (DIGITS // 3):
            raise TheoryError("two rates of the linear drift coincide and have no closed form; change a parameter slightly")
    inverse = modes.inv().applyfunc(sp.expand)
    return rates, modes.tolist(), (modes * sp.diag(*rates) * inverse).applyfunc(sp.expand).tolist()


def _mp(value: sp.Expr) -> Any:
    number = value.evalf(DIGITS + 15)
    return mpmath.mpc(*(mpmath.mpf(str(part)) for part in number.as_real_imag()))


def _rational(value: Any) -> sp.Expr:
    parts = [sp.Rational(int(mpmath.nint(part * mpmath.mpf(10) ** DIGITS)), 10**DIGITS) for part in (value.real, value.imag)]
    return parts[0] + sp.I * parts[1]
