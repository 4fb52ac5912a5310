"""Certificates of kernels of arrays: values against the oracle, derivatives against its difference quotients.

Tensor kernels are compared entry by entry: sum of |terms| over |sum| is their condition. Everything else (moments, layers,
loops) is compared relative to the largest entry of each output; its condition is the largest response to relative changes
of the arguments in a few random directions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import mpmath
import numpy as np

from symtensor.kernels import ArrayKernel, Kernel, MomentKernel, OdeKernel, TensorKernel

from .backends.jax_backend import call
from .backends.jax_derivatives import derivative_products
from .backends.reference import ReferenceBackend, exact, tensor_magnitude
from .backends.scalar_oracle import Exact
from .certificate import Cancellation, Measured
from .certify_scalar import summary
from .check import integration
from .errors import GenerationError
from .points import test_arguments

if TYPE_CHECKING:
    from .module import GeneratedModule

__all__ = ["certify_arrays"]

_Values = dict[str, np.ndarray]
_Evaluate = Callable[[Mapping[str, Any]], _Values]
#: of an integration: both sides choose their own steps
_INTEGRATION_TOLERANCE = 1e-8
_SALTS = (1, 2)


@dataclass(frozen=True, slots=True)
class ArrayCertificate:
    """Parts of a certificate that come from one kernel of arrays."""

    measured: tuple[Measured, ...]
    notes: tuple[str, ...] = ()
    domain: tuple[str, ...] = ()
    cancellations: tuple[Cancellation, ...] = ()


def certify_arrays(
    module: GeneratedModule, kernel: Kernel, digits: int, tolerances: Mapping[str, float], gradient: bool, seed: int
) -> ArrayCertificate:
    """Measure one kernel that takes arrays; see `codegen.certify.certify`."""
    if isinstance(kernel, OdeKernel):
        return _ode(module, kernel, tolerances)
    oracle = ReferenceBackend(module.spec, digits)
    cases: dict[tuple[str, str], list] = {}
    notes: list[str] = []
    seen = False  # derivatives are measured once
    for label, arguments in _arguments(module, kernel):
        measure = _Measurement(module, kernel, oracle, digits, arguments, seed)
        try:
            expected = measure.expected()
            slopes = measure.slopes() if gradient and not seen and measure.differentiable() else None
        except (ArithmeticError, GenerationError) as error:
            notes.append(f"{kernel.name}: {label} left out: {error}")
            continue
        seen |= slopes is not None
        for dtype in tolerances:
            for name, entries in measure.compared(expected, dtype).items():
                cases.setdefault((name, dtype), []).extend(({"arguments": label}, *entry) for entry in entries)
            for name, entry in measure.derivatives(expected, slopes, dtype) if slopes else ():
                cases.setdefault((name, dtype), []).append(({"arguments": label}, *entry))
    if not cases:
        notes.append(f"{kernel.name}: nothing was compared; the oracle has no value at the test arguments")
    measured = tuple(summary(name, dtype, tolerances[dtype], entries) for (name, dtype), entries in sorted(cases.items()))
    return ArrayCertificate(measured, tuple(notes), (f"{kernel.name}: arrays of the shapes and symmetries of its arguments",))


def _arguments(module: GeneratedModule, kernel: Kernel) -> Iterator[tuple[str, dict[str, Any]]]:
    """Arguments with a name each."""
    # one set of arguments for what calls other kernels, which are certified by themselves
    salts = _SALTS if isinstance(kernel, MomentKernel | TensorKernel) else _SALTS[:1]
    for salt in salts:
        for number, arguments in enumerate(test_arguments(kernel, module.spec, salt)):
            yield f"test arguments {salt}.{number + 1}", arguments


@dataclass(frozen=True, slots=True)
class _Measurement:
    """One kernel at one set of arguments."""

    module: GeneratedModule
    kernel: Kernel
    oracle: ReferenceBackend
    digits: int
    arguments: Mapping[str, Any]
    seed: int

    @property
    def _arrays(self) -> dict[str, np.ndarray]:
        return {name: value for name, value in self.arguments.items() if not isinstance(value, int)}

    def expected(self) -> dict[str, tuple[np.ndarray, Any]]:
        """Output -> (values, spread); the spread is an array for tensor kernels, else one number."""
        values = self.oracle.evaluate(self.kernel.name, self.arguments)
        if isinstance(self.kernel, TensorKernel):
            (name,) = values
            return {name: (values[name], tensor_magnitude(self.kernel, self.arguments))}
        moved = [self._moved(values, signs) for signs in self._signs()]
        return {name: (value, max(_largest(change[name]) for change in moved)) for name, value in values.items()}

    def differentiable(self) -> bool:
        """Not complex arrays, and not at a singular covariance: derivatives of its moments are defined along its range only."""
        if isinstance(self.kernel, ArrayKernel) and any(output.is_complex for output in self.kernel.outputs):
            return False
        if not isinstance(self.kernel, MomentKernel):
            return True
        k = np.asarray(self.arguments["K"], dtype=float)
        return bool(np.linalg.eigvalsh(k)[0] > 1e-6 * np.trace(k))

    def _signs(self) -> list[dict[str, int]]:
        """Directions of relative change, one sign per argument so that symmetries are kept: all up, and up and down in turn."""
        names = list(self._arrays)
        return [dict.fromkeys(names, 1), {name: (-1) ** place for place, name in enumerate(names)}]

    def _moved(self, values: _Values, signs: Mapping[str, int]) -> _Values:
        """sum_i +-x_i d_i f, to a few digits."""
        with mpmath.workdps(2 * self.digits):
            step = mpmath.mpf(10) ** (-(self.digits // 2))
            moved = {name: value * (1 + signs[name] * step) for name, value in self._arrays.items()}
            found = self.oracle.evaluate(self.kernel.name, {**self.arguments, **moved})
            return {name: (found[name] - values[name]) / step for name in values}

    def _along(self, direction: Mapping[str, np.ndarray]) -> _Values:
        """The derivative in a direction by a central difference, with an error of about 10^(-2/3 digits)."""
        with mpmath.workdps(2 * self.digits):
            step = mpmath.mpf(10) ** (-(self.digits // 3))
            ends = []
            for sign in (1, -1):
                moved = {name: value + exact(direction[name]) * (sign * step) for name, value in self._arrays.items()}
                ends.append(self.oracle.evaluate(self.kernel.name, {**self.arguments, **moved}))
            return {name: (ends[0][name] - ends[1][name]) / (2 * step) for name in ends[0]}

    def direction(self) -> dict[str, np.ndarray]:
        """A change of every argument with the symmetries of the argument itself, but not proportional to it."""
        rng = np.random.default_rng(self.seed)
        found = {}
        for name, value in self._arrays.items():
            entries = np.asarray(value, dtype=float)
            # an odd function of the entries keeps symmetries and antisymmetries
            size = np.abs(entries).max(initial=0.0) or 1.0
            found[name] = rng.uniform(0.25, 1.0) * (entries + 0.75 * entries**3 / size**2)
        return found

    def slopes(self) -> _Values:
        """The oracle's derivative in that direction."""
        return self._along({name: exact(value) for name, value in self.direction().items()})

    # -- emitted code -------------------------------------------------------------------------------------------------

    def compared(self, expected: Mapping[str, tuple[np.ndarray, Any]], dtype: str) -> dict[str, list[tuple[Exact, Any]]]:
        """Output -> (expected, found) pairs: of every entry, or of the entry that is worst relative to the largest."""
        found = call(self.module, self.kernel.name, self.arguments, dtype)
        result = {}
        for name, (values, spread) in expected.items():
            label = self.kernel.name if name == self.kernel.name else f"{self.kernel.name}.{name}"
            if np.shape(found[name]) != np.shape(values):
                raise GenerationError(f"{label}: shape {np.shape(found[name])}, expected {np.shape(values)}")
            if isinstance(spread, np.ndarray):
                entries = zip(values.ravel(), spread.ravel(), np.ravel(found[name]))
                result[label] = [(Exact(value, size), number) for value, size, number in entries]
            else:
                result[label] = [_normwise(values, found[name], spread)]
        return result

    def derivatives(
        self, expected: Mapping[str, tuple[np.ndarray, Any]], slopes: _Values, dtype: str
    ) -> Iterator[tuple[str, tuple[Exact, Any]]]:
        """J v output by output, and the sum of all its entries from the gradient in reverse mode.

        v is about as large as the arguments, so a derivative much smaller than the value is measured relative to the value.
        """
        forwards, reverse = derivative_products(self.module, self.kernel.name, self.arguments, self.direction(), dtype)
        for name, wanted in slopes.items():
            label = self.kernel.name if name == self.kernel.name else f"{self.kernel.name}.{name}"
            floor = _largest(expected[name][0])
            yield f"d {label} along a direction", _normwise(wanted, forwards[name], _largest(wanted), floor)
        entries = [entry for value in slopes.values() for entry in np.ravel(value)]
        size = mpmath.fsum(map(abs, entries)) + mpmath.fsum(_largest(values) for values, _ in expected.values())
        yield f"d {self.kernel.name} in reverse", (Exact(mpmath.fsum(entries), size, floor=size), reverse)


def _largest(values: np.ndarray) -> Any:
    return max((abs(value) for value in np.ravel(values)), default=mpmath.mpf(0))


def _normwise(values: np.ndarray, found: np.ndarray, spread: Any, floor: Any = 0) -> tuple[Exact, Any]:
    """The worst entry, as if the largest entry had its error."""
    scale = _largest(values)
    errors = [
        abs(value - mpmath.mpmathify(number.item())) if np.isfinite(number) else mpmath.inf
        for value, number in zip(np.ravel(values), np.ravel(np.asarray(found)))
    ]
    worst = max(errors, default=mpmath.mpf(0))
    return Exact(scale, spread, floor=floor), scale + worst


def _ode(module: GeneratedModule, kernel: OdeKernel, tolerances: Mapping[str, float]) -> ArrayCertificate:
    """States against an eighth-order method of another library; its own accuracy bounds what can be said."""
    measured = []
    for dtype in tolerances:
        found, expected = integration(module, kernel, dtype)
        tolerance = max(_INTEGRATION_TOLERANCE, 10 * tolerances[dtype])
        for name, wanted in expected.items():
            case = _normwise(exact(wanted), found[name], mpmath.mpf(0))
            measured.append(summary(f"{kernel.name}.{name}", dtype, tolerance, [({"arguments": "test arguments"}, *case)]))
    note = f"{kernel.name}: compared with DOP853 in double precision; its right-hand side {kernel.rhs} is certified by itself"
    return ArrayCertificate(tuple(measured), (note,))
