r"""The free part of a theory: what its propagators are.

Static: weight exp(-S), the propagator is the inverse of the Hessian of S at the saddle.

Stochastic: dx = -A x dt + G dW around the saddle, B = G G^T. In the basis of eigenvectors of A (columns of U), with rates a_k,

    R_kl(t) = delta_kl theta(t) exp(-a_k t),    C_kl(t) = M_kl exp(-a_k t)  (t >= 0),    M_kl = (U^-1 B U^-T)_kl / (a_k + a_l),

so that every propagator between modes is one exponential; back in the fields, R = U R U^-1 and C = U C U^T.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import mpmath
import sympy as sp

from symtensor.fields.errors import TheoryError, UnstableError, ZeroModeError

__all__ = ["LinearFree", "StaticFree"]

#: digits of eigenvalues that have no closed form
DIGITS = 40


@dataclass(frozen=True)
class StaticFree:
    """The covariance of the fields at the saddle: the inverse of the Hessian of the action.

    >>> a, b = sp.symbols("a b")
    >>> StaticFree.of(sp.Matrix([[a, b], [b, a]]), sp.symbols("x y")).covariance[0, 1]
    -b/(a**2 - b**2)
    """

    hessian: sp.ImmutableMatrix

    @classmethod
    def of(cls, hessian: Any, names: Sequence[sp.Symbol]) -> StaticFree:
        """Raise ZeroModeError, naming the direction."""
        matrix = sp.ImmutableMatrix(hessian)
        determinant: Any = matrix.det()
        if determinant.equals(0):
            null = matrix.nullspace()
            mode = " + ".join(f"({c})*{n}" for c, n in zip(null[0], names) if c != 0) if null else "one of the fields"
            raise ZeroModeError(
                f"the quadratic form of the action has a zero mode, {mode}, so that it has no propagator; add a term that is "
                "quadratic in it (a mass), fix it by a constraint, or expand around another point"
            )
        return cls(matrix)

    @cached_property
    def covariance(self) -> sp.ImmutableMatrix:
        """<x_a x_b> of the free theory."""
        return sp.ImmutableMatrix(self.hessian.inv().applyfunc(sp.cancel))

    def joined(self, one: int, other: int) -> bool:
        """Whether the quadratic form couples two fields directly."""
        return self.hessian[one, other] != 0


@dataclass(frozen=True)
class LinearFree:
    """The linear stochastic equation at the saddle: `drift` A and `noise` B = G G^T.

    >>> free = LinearFree.of(sp.Matrix([[1]]), sp.Matrix([[2 * sp.Symbol("T")]]), [sp.Symbol("x")])
    >>> free.rates, free.covariance
    ((1,), Matrix([[T]]))
    """

    drift: sp.ImmutableMatrix
    noise: sp.ImmutableMatrix

    @classmethod
    def of(cls, drift: Any, noise: Any, names: Sequence[sp.Symbol]) -> LinearFree:
        """Raise ZeroModeError or UnstableError (a rate that is known not to be positive), naming the direction or the rate."""
        matrix = sp.ImmutableMatrix(drift)
        determinant: Any = matrix.det()
        if determinant.equals(0):
            null = matrix.nullspace()
            mode = " + ".join(f"({c})*{n}" for c, n in zip(null[0], names) if c != 0) if null else "one of the variables"
            raise ZeroModeError(
                f"the linear drift has a zero mode, {mode}: its propagator does not decay and the stationary state does not exist; "
                "add a relaxation to it, or expand around another point"
            )
        free = cls(matrix, sp.ImmutableMatrix(noise))
        for rate in free._stability_rates():
            real = sp.re(rate)
            if real.is_positive is False or (real.is_number and not real > 0):
                raise UnstableError(
                    f"the drift is unstable at the saddle: a perturbation decays with the rate {sp.sstr(rate)}, which is not "
                    "positive; expand around a stable fixed point (point=...), or change the sign of the linear drift"
                )
        return free

    def _stability_rates(self) -> tuple[Any, ...]:
        """The eigenvalues, also of a drift without a full set of eigenvectors (the time grid needs none)."""
        try:
            return self.rates
        except TheoryError:
            if self.drift.has(sp.Float):
                raise
            return tuple(self.drift.eigenvals())

    @cached_property
    def _eigen(self) -> tuple[tuple[Any, ...], sp.ImmutableMatrix, sp.ImmutableMatrix]:
        size = self.drift.rows
        if self.drift.is_diagonal():
            return tuple(self.drift[i, i] for i in range(size)), sp.ImmutableMatrix.eye(size), sp.ImmutableMatrix.eye(size)
        if self.drift.has(sp.Float):
            return _numerical_modes(self.drift)
        try:
            columns, diagonal = self.drift.diagonalize()
        except sp.matrices.exceptions.MatrixError as error:
            raise TheoryError(
                "the linear drift cannot be diagonalised (two rates coincide): its propagators are no sums of exponentials; change "
                "a rate slightly, or use the time grid (compile(method='grid'))"
            ) from error
        inverse = columns.inv().applyfunc(sp.cancel)
        return tuple(diagonal[i, i] for i in range(size)), sp.ImmutableMatrix(columns), sp.ImmutableMatrix(inverse)

    @property
    def rates(self) -> tuple[Any, ...]:
        """The eigenvalues of A, one a mode."""
        return self._eigen[0]

    @property
    def modes(self) -> sp.ImmutableMatrix:
        """U: field a = sum_k U[a, k] mode k."""
        return self._eigen[1]

    @property
    def inverse_modes(self) -> sp.ImmutableMatrix:
        """U^-1; response field a = sum_k U^-1[k, a] response mode k."""
        return self._eigen[2]

    @cached_property
    def mode_covariance(self) -> sp.ImmutableMatrix:
        """M: equal-time covariance of the modes."""
        noise = self.inverse_modes * self.noise * self.inverse_modes.T
        size = noise.rows
        entries = [[sp.cancel(noise[k, l] / (self.rates[k] + self.rates[l])) for l in range(size)] for k in range(size)]
        return sp.ImmutableMatrix(entries)

    @cached_property
    def covariance(self) -> sp.ImmutableMatrix:
        """Equal-time covariance of the fields: A C + C A^T = B."""
        try:
            modes = self.modes
        except TheoryError:
            return _lyapunov(self.drift, self.noise)
        return sp.ImmutableMatrix((modes * self.mode_covariance * modes.T).applyfunc(sp.cancel).applyfunc(_real))

    def joined(self, one: int, other: int) -> bool:
        """Whether drift or noise couples two variables directly."""
        return any(m[i, j] != 0 for m in (self.drift, self.noise) for i, j in ((one, other), (other, one)))

    def response(self, time: Any) -> sp.ImmutableMatrix:
        """R(t) for t > 0, in the fields."""
        decay = sp.diag(*(sp.exp(-rate * time) for rate in self.rates))
        return sp.ImmutableMatrix(self.modes * decay * self.inverse_modes)

    def correlator(self, time: Any) -> sp.ImmutableMatrix:
        """C(t) for t >= 0, in the fields."""
        return sp.ImmutableMatrix(self.response(time) * self.covariance)


def _real(entry: Any) -> Any:
    """The entry of a real matrix without the imaginary rounding errors that decimal complex modes leave."""
    return sp.expand(entry).xreplace({sp.I: sp.S.Zero}) if entry.has(sp.Float) and entry.has(sp.I) else entry


def _lyapunov(drift: sp.ImmutableMatrix, noise: sp.ImmutableMatrix) -> sp.ImmutableMatrix:
    """C of A C + C A^T = B as a system of linear equations, for a drift without a full set of eigenvectors."""
    size = drift.rows
    unit = sp.eye(size)
    system = sp.Matrix(sp.kronecker_product(drift, unit) + sp.kronecker_product(unit, drift))
    found = system.LUsolve(sp.Matrix(noise.flat()))
    return sp.ImmutableMatrix(size, size, [sp.cancel(entry) for entry in found])


def _numerical_modes(drift: sp.ImmutableMatrix) -> tuple[tuple[Any, ...], sp.ImmutableMatrix, sp.ImmutableMatrix]:
    if drift.free_symbols:
        raise TheoryError(
            f"the linear drift mixes decimal numbers with the parameters {', '.join(sorted(map(str, drift.free_symbols)))}; give "
            "exact numbers (Rational, or decimals as text), or values for all parameters"
        )
    with mpmath.workdps(DIGITS + 10):
        numbers = [[mpmath.mpmathify(str(x.evalf(DIGITS + 10))) for x in row] for row in drift.tolist()]
        values, vectors = mpmath.eig(mpmath.matrix(numbers))
        inverse = vectors**-1
        size = drift.rows
        read = [_number(values[k]) for k in range(size)]
        tables = [[[_number(m[i, j]) for j in range(size)] for i in range(size)] for m in (vectors, inverse)]
    return tuple(read), sp.ImmutableMatrix(tables[0]), sp.ImmutableMatrix(tables[1])


def _number(value: Any) -> sp.Expr:
    real, imaginary = (sp.Float(str(part), DIGITS) for part in (mpmath.re(value), mpmath.im(value)))
    return real if abs(imaginary) < sp.Float(10) ** (5 - DIGITS) else real + sp.I * imaginary
