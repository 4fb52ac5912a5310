r"""When all eigenvalues of a matrix have positive real parts: exact conditions, decided as far as the symbols allow.

The matrix falls into irreducible blocks (its eigenvalues are those of the blocks). A block of size 1 gives its entry, a
symmetric block its leading principal minors (Sylvester), any other the minors of Hurwitz for det(s + A): with the coefficients
s^n + a_1 s^{n-1} + .. + a_n, the leading principal minors of H_{ij} = a_{2j - i} up to n - 1, and a_n.

Reference: Gantmacher, The Theory of Matrices (1959), vol. 1, chapter X (Sylvester), vol. 2, chapter XV (Hurwitz).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import mpmath
import sympy as sp

__all__ = ["DIGITS", "MAX_FACTORED", "MAX_SYMBOLS", "Verdict", "examine", "numeric_matrix", "reads_zero", "reality", "tidy"]

DIGITS = 30
#: below this size, relative to the matrix, an eigenvalue of a matrix with decimals counts as zero
ZERO = 1e-12
#: larger expressions are not brought over one denominator, or not factored (the time of factoring in many symbols is erratic)
MAX_OPERATIONS = 2000
MAX_FACTORED = 300
MAX_SYMBOLS = 4
Status = Literal["stable", "conditional", "unstable", "zero"]
Values = Mapping[sp.Symbol, sp.Expr]


@dataclass(frozen=True, slots=True)
class Verdict:
    """`status`, the relations that have to hold where it is conditional, and for a failure the eigenvalue or the direction."""

    status: Status
    conditions: tuple[Any, ...] = ()
    reason: str = ""


def examine(matrix: Any, fields: Sequence[sp.Symbol], values: Values, invertible: bool = False) -> Verdict:
    """Whether all eigenvalues of the matrix have positive real parts (`invertible`: whether none of them is zero).

    Symbols are taken to be real; `values` decide what they leave open.
    """
    real, back, known = _as_real(matrix, values)
    conditions: list[Any] = []
    failure = ""
    for block in _irreducible(real):
        part = real.extract(block, block)
        determinant = tidy(part.det(method="berkowitz"))
        numbers = numeric_matrix(part.xreplace(known)) if part.xreplace(known).free_symbols == set() else None
        if reads_zero(determinant) or (numbers is not None and _singular(part, numbers)):
            return Verdict("zero", (), _direction(matrix, fields, values))
        if invertible:
            sign, open_factors = _sign(determinant, known)
            conditions += [sp.Ne(sp.Mul(*(_bare(c) for c in open_factors)), 0)] if open_factors else []
            continue
        if numbers is not None:
            worst = min(_eigenvalues(numbers), key=lambda e: e.real)
            if worst.real <= ZERO * mpmath.mnorm(numbers, 1):
                exact = part[0, 0].xreplace(known) if len(block) == 1 else None
                shown = sp.sstr(exact) if exact is not None and exact.is_Rational else _complex_text(worst)
                failure = failure or f"the eigenvalue {shown} of {_names(fields, block)}"
            continue
        for condition in _conditions(part, determinant):
            sign, open_factors = _sign(condition, known)
            if sign < 0 and not open_factors:
                failure = failure or _eigenvalue(part.xreplace(back), [fields[i] for i in block])
            elif open_factors:
                conditions += [sp.Gt(c, 0) for c in open_factors]
    if failure:
        return Verdict("unstable", (), failure)
    left = tuple(dict.fromkeys(c.xreplace(back) for c in conditions if c not in (sp.true, True)))
    return Verdict("conditional" if left else "stable", left)


def reality(point: Sequence[sp.Expr], values: Values) -> tuple[Any, ...] | None:
    """The relations under which the values are real; None if they are not."""
    found: list[Any] = []
    for value in point:
        if value.is_real is False:
            return None
        row = sp.Matrix([value])
        real, back, known = _as_real(row, values)
        inside: Any = real[0]
        for root in _open_roots(inside):
            sign, open_factors = _sign(root.base, known)
            if not open_factors and sign < 0:
                return None
            found += [sp.Gt(c, 0).xreplace(back) for c in open_factors]
    return tuple(dict.fromkeys(found))


def reads_zero(value: Any) -> bool:
    """Whether an expression is zero, as far as cancellation (and 30 digits, for a number) can tell."""
    if value.is_zero or value == 0:
        return True
    if value.is_number:
        return bool(abs(sp.N(value, DIGITS + 10)) < sp.Float(10) ** -DIGITS) and value.equals(0) is not False
    return bool(tidy(value) == 0 or sp.expand(value) == 0)


def tidy(value: Any) -> Any:
    """The expression over one denominator, and as a product of factors if it is short enough for that."""
    if value.count_ops() > MAX_OPERATIONS:
        return value
    try:
        reduced: Any = sp.cancel(sp.together(value))
        small = reduced.count_ops() <= MAX_FACTORED and len(reduced.free_symbols) <= MAX_SYMBOLS
        return sp.factor(reduced) if small else sp.factor_terms(reduced)
    except (sp.PolynomialError, NotImplementedError):
        return value


def numeric_matrix(matrix: Any) -> Any:
    """The matrix of numbers, to `DIGITS` digits."""
    with mpmath.workdps(DIGITS + 10):
        rows, columns = matrix.shape
        return mpmath.matrix([[mpmath.mpmathify(sp.N(matrix[i, j], DIGITS + 10)) for j in range(columns)] for i in range(rows)])


def _as_real(matrix: Any, values: Values) -> tuple[sp.Matrix, dict[Any, Any], dict[Any, Any]]:
    """The matrix in real symbols, what leads back, and the values for the real symbols."""
    dummies: dict[Any, Any] = {s: sp.Dummy(s.name, real=True) for s in matrix.free_symbols if s.is_real is None}
    known = {dummies.get(symbol, symbol): sp.sympify(value) for symbol, value in values.items()}
    return sp.Matrix(matrix).xreplace(dummies), {dummy: symbol for symbol, dummy in dummies.items()}, known


def _irreducible(matrix: sp.Matrix) -> list[list[int]]:
    """The strongly connected sets of rows: i and j together if each acts on the other, directly or not."""
    size = matrix.rows
    reach = [[i == j or matrix[i, j] != 0 for j in range(size)] for i in range(size)]
    for k in range(size):
        for i in range(size):
            if reach[i][k]:
                reach[i] = [a or b for a, b in zip(reach[i], reach[k])]
    found: list[list[int]] = []
    for i in range(size):
        if not any(i in block for block in found):
            found.append([j for j in range(size) if reach[i][j] and reach[j][i]])
    return found


def _conditions(part: Any, determinant: Any) -> list[Any]:
    size = part.rows
    if size == 1:
        return [part[0, 0]]
    if part == part.T:
        return [*_leading(part), determinant]
    coefficients = (-part).charpoly().all_coeffs()
    place = dict(enumerate(coefficients))
    hurwitz = sp.Matrix(size, size, lambda i, j: place.get(2 * (j + 1) - (i + 1), sp.S.Zero))
    return [*_leading(hurwitz), determinant]


def _leading(matrix: Any) -> list[Any]:
    """The leading principal minors, the determinant left out."""
    return [matrix[:k, :k].det(method="berkowitz") for k in range(1, matrix.rows)]


def _sign(value: Any, known: Mapping[Any, Any]) -> tuple[int, list[Any]]:
    """(sign, factors): the sign of a value that is not identically zero; where it is open, positive factors make it positive."""
    value = tidy(value)
    at_values = value.xreplace(dict(known))
    if at_values.is_number:
        number = sp.re(sp.N(at_values, DIGITS))
        return (1 if number > 0 else -1), []
    positive = {root: sp.Dummy("root", positive=True) for root in _open_roots(value)}
    assumed = [factor for root in positive for factor in _sign(root.base, known)[1]]
    sign, rest = 1, []
    for factor in sp.Mul.make_args(tidy(value.xreplace(positive))):
        base, exponent = factor.as_base_exp()
        if factor.is_nonnegative or (exponent.is_Integer and exponent % 2 == 0):
            continue
        if factor.is_nonpositive:
            sign = -sign
            continue
        rest.append(base if exponent.is_Integer else factor)
    product = sign * sp.Mul(*rest)
    if product.is_number:
        return (1, assumed) if product > 0 else (-1, [])
    return 1, [*assumed, sp.expand(product) if product.is_Add else product.xreplace({d: r for r, d in positive.items()})]


def _open_roots(value: Any) -> list[Any]:
    """The square roots of symbolic expressions whose sign is open, the outermost first."""
    powers: list[Any] = [p for p in value.atoms(sp.Pow) if p.exp.is_Rational and p.exp.q == 2 and p.base.is_positive is None]
    return sorted((p for p in powers if p.base.free_symbols), key=lambda p: (-p.count_ops(), str(p)))


def _bare(factor: sp.Expr) -> sp.Expr:
    return -factor if factor.could_extract_minus_sign() else factor


def _eigenvalues(numbers: Any) -> list[Any]:
    if numbers.rows == 1:  # for which mpmath.eig ignores what it is asked to return
        return [mpmath.mpc(numbers[0, 0])]
    with mpmath.workdps(DIGITS + 10):
        return [mpmath.mpc(e) for e in mpmath.eig(numbers, left=False, right=False)]


def _singular(part: sp.Matrix, numbers: Any) -> bool:
    if not part.atoms(sp.Float):
        return False
    return min(abs(e) for e in _eigenvalues(numbers)) <= ZERO * mpmath.mnorm(numbers, 1)


def _direction(matrix: Any, fields: Sequence[sp.Symbol], values: Values) -> str:
    """The zero mode as a sum of fields."""
    at = sp.Matrix(matrix).xreplace(dict(values))
    exact = at.nullspace(iszerofunc=reads_zero) if not at.atoms(sp.Float) else []
    if exact:
        vector = [tidy(entry) for entry in exact[0]]
    else:
        _, _, right = mpmath.svd_r(numeric_matrix(at))
        vector = [sp.Float(str(right[at.rows - 1, i]), 6) for i in range(at.rows)]
        vector = [v if abs(v) > ZERO else sp.S.Zero for v in vector]
    terms = [f"{'' if v == 1 else f'({sp.sstr(v)})*'}{s}" for v, s in zip(vector, fields) if v != 0]
    return f"the zero mode {' + '.join(terms) or ', '.join(map(str, fields))}"


def _eigenvalue(part: Any, fields: Sequence[sp.Symbol]) -> str:
    names = ", ".join(map(str, fields))
    if part.rows == 1:
        return f"the eigenvalue {sp.sstr(tidy(part[0, 0]))} of {names}"
    if part.rows == 2:
        half, determinant = part.trace() / 2, part.det()
        lowest = tidy(half) - sp.sqrt(tidy(half**2 - determinant))
        return f"the eigenvalue {sp.sstr(lowest)} of ({names})"
    return f"an eigenvalue of the matrix {part.tolist()} of ({names})"


def _complex_text(value: Any) -> str:
    real, imaginary = str(mpmath.nstr(value.real, 8)), str(mpmath.nstr(value.imag, 8))
    scale = max(abs(value), 1)
    if abs(value.imag) <= ZERO * scale:
        return real
    return f"{imaginary}*i" if abs(value.real) <= ZERO * scale else f"{real} + {imaginary}*i"


def _names(fields: Sequence[sp.Symbol], block: Sequence[int]) -> str:
    names = ", ".join(str(fields[i]) for i in block)
    return names if len(block) == 1 else f"({names})"
