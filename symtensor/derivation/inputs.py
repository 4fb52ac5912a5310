"""The inputs of a network: a kernel K^0 of P inputs, given as it is or made from raw inputs or a shipped data set.

Raw inputs x (P x features) become K^0 = scale * x x^T / features, so `scale` is C_W of the input layer.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from symtensor.derivation.readers import SUFFIXES, InputError, finite, read_matrix

CountCheck = Callable[[int], None]


class KernelError(InputError):
    """A matrix that is not a covariance: not square, not symmetric, not positive semidefinite."""


@dataclass(frozen=True, slots=True)
class Inputs:
    """`kernel` K^0 (P, P), one label per input, where it came from, and the raw inputs (P, features) if any."""

    kernel: np.ndarray
    labels: tuple[str, ...]
    provenance: str
    raw: np.ndarray | None = None

    @property
    def count(self) -> int:
        """P, the number of inputs."""
        return len(self.labels)

    @property
    def smallest_eigenvalue(self) -> float:
        """The smallest eigenvalue of the kernel (zero up to rounding for dependent inputs)."""
        return float(np.linalg.eigvalsh(self.kernel)[0])


def load_kernel(text: str | np.ndarray, check: CountCheck | None = None) -> Inputs:
    """K^0 from a number (one input), from a .csv/.npy file with a P x P matrix, or from an array.

    `check` is called with the number of inputs before anything is computed from them; it may raise.

    Raises InputError or KernelError (both ValueError), naming file, place and requirement.

    >>> load_kernel("2.0").kernel
    array([[2.]])
    """
    if isinstance(text, np.ndarray):
        (check or _accept)(len(np.atleast_1d(text)))
        kernel = validate_kernel(np.atleast_2d(text), "the kernel")
        return Inputs(kernel, _labels("row", len(kernel)), f"kernel given as an array ({len(kernel)} x {len(kernel)})")
    number = _as_number(text)
    if number is not None:
        (check or _accept)(1)
        kernel = validate_kernel(np.array([[number]]), "--kernel")
        return Inputs(kernel, ("the input",), f"kernel given as the number {text.strip()}")
    path = Path(text)
    if path.suffix.lower() not in SUFFIXES and not path.exists():
        raise InputError(f"the kernel must be a number or a .csv or .npy file, got {text!r}")
    matrix = read_matrix(path, "the kernel")
    (check or _accept)(len(matrix))
    kernel = validate_kernel(matrix, str(path))
    return Inputs(kernel, _labels("row", len(kernel)), f"kernel read from {path.name} ({len(kernel)} x {len(kernel)})")


def load_inputs(
    text: str | np.ndarray, n_inputs: int | None = None, scale: float = 1.0, check: CountCheck | None = None
) -> Inputs:
    """K^0 = scale x x^T / features from raw inputs: a .csv/.npy file (P x features) or a data set by name.

    `check` is called with the number of inputs before anything is computed from them; it may raise.

    Data sets: `digits`, the 8 x 8 handwritten digits shipped with scikit-learn (pixel/16, one row per image). The
    first `n_inputs` rows are taken, all of a file's rows if it is None (of a data set, 2).
    """
    if n_inputs is not None and n_inputs < 1:
        raise InputError(f"the number of inputs must be at least 1, got {n_inputs}")
    if not (np.isfinite(scale) and scale > 0):
        raise InputError(f"the input scale must be a positive finite number, got {scale}")
    if isinstance(text, np.ndarray):
        raw = finite(np.atleast_2d(np.asarray(text, dtype=float)), "the inputs")
        labels, origin = _labels("row", len(raw)), "an array"
        wanted = len(raw) if n_inputs is None else n_inputs
    elif text in DATA_SETS:
        raw, labels, origin = DATA_SETS[text]()
        wanted = 2 if n_inputs is None else n_inputs
    else:
        raw, labels, origin = _from_file(text)
        wanted = len(raw) if n_inputs is None else n_inputs
    if wanted > len(raw):
        raise InputError(f"{wanted} inputs were asked for, but {text!r} has only {len(raw)}")
    (check or _accept)(wanted)
    raw, labels = raw[:wanted], labels[:wanted]
    rows = "row" if wanted == 1 else f"{wanted} rows"
    factor = "" if scale == 1 else f"{scale:g} "
    provenance = f"{origin}, first {rows}; K^0 = {factor}x x^T / {raw.shape[1]}"
    return Inputs(validate_kernel(gram(raw, scale), origin), labels, provenance, raw)


def gram(raw: np.ndarray, scale: float = 1.0) -> np.ndarray:
    """scale * x x^T / features, (P, P): exactly symmetric, and equal rows of x give exactly equal rows of the result.

    Both matter: two equal inputs must stay equal through every layer. A matrix product sums entries in an order that
    depends on their place, so the sums are taken one row at a time instead.
    """
    sums = np.array([(row * raw).sum(axis=1) for row in raw])
    return scale * sums / raw.shape[1]


def validate_kernel(kernel: np.ndarray, name: str = "the kernel") -> np.ndarray:
    """`kernel` as a float64 matrix, exactly symmetric; singular is fine.

    Raises KernelError: not square; not symmetric beyond rounding (names the entries); a negative variance (names the
    input); not positive semidefinite beyond rounding (reports the smallest eigenvalue).
    """
    kernel = np.asarray(kernel)
    if kernel.dtype.kind not in "fiu":
        raise KernelError(f"{name}: real numbers are required, got dtype {kernel.dtype}")
    kernel = kernel.astype(np.float64)
    if kernel.ndim != 2 or kernel.shape[0] != kernel.shape[1] or kernel.size == 0:
        hint = " (raw inputs, one row each, are given as --inputs)" if kernel.ndim == 2 else ""
        raise KernelError(f"{name}: a square matrix P x P is required, got shape {kernel.shape}{hint}")
    finite(kernel, name)
    size = float(np.abs(kernel).max())
    _require_symmetric(kernel, size, name)
    kernel = (kernel + kernel.T) / 2
    _require_semidefinite(kernel, size, name)
    return kernel


def _require_symmetric(kernel: np.ndarray, size: float, name: str) -> None:
    gap = np.abs(kernel - kernel.T)
    if gap.max() > 1e-12 * size:
        row, column = np.unravel_index(int(gap.argmax()), gap.shape)
        raise KernelError(
            f"{name}: not symmetric: entry ({row + 1}, {column + 1}) is {kernel[row, column]:.12g}, "
            f"entry ({column + 1}, {row + 1}) is {kernel[column, row]:.12g}"
        )


def _require_semidefinite(kernel: np.ndarray, size: float, name: str) -> None:
    variances = kernel.diagonal()
    if variances.min() < 0:
        index = int(variances.argmin())
        raise KernelError(f"{name}: negative variance {variances[index]:.12g} of input {index + 1}")
    smallest = float(np.linalg.eigvalsh(kernel)[0])
    if smallest < -64 * np.finfo(np.float64).eps * len(kernel) * size:
        raise KernelError(
            f"{name}: not positive semidefinite: its smallest eigenvalue is {smallest:.6g}. A covariance has none "
            "below zero; if this is rounding, give more digits, or the raw inputs themselves with --inputs"
        )


def _from_file(text: str) -> tuple[np.ndarray, tuple[str, ...], str]:
    path = Path(text)
    if path.suffix.lower() not in SUFFIXES and not path.exists():
        known = ", ".join(sorted(DATA_SETS))
        raise InputError(f"inputs must be a .csv or .npy file or one of the data sets {known}; got {text!r}")
    raw = read_matrix(path, "the inputs")
    return raw, _labels("row", len(raw)), f"{path.name} ({raw.shape[0]} x {raw.shape[1]})"


def _digits() -> tuple[np.ndarray, tuple[str, ...], str]:
    try:
        from sklearn.datasets import load_digits
    except ImportError as error:
        raise InputError("the data set 'digits' comes with scikit-learn: install it, or give a file") from error
    bunch: Any = load_digits()
    labels = tuple(f"digit {target} (row {index + 1})" for index, target in enumerate(bunch["target"]))
    return np.asarray(bunch["data"], dtype=np.float64) / 16.0, labels, "digits of scikit-learn (8 x 8 images, pixel/16)"


#: data sets by name: each returns (raw inputs, labels, where they come from)
DATA_SETS: dict[str, Callable[[], tuple[np.ndarray, tuple[str, ...], str]]] = {"digits": _digits}


def _labels(word: str, count: int) -> tuple[str, ...]:
    return tuple(f"{word} {index + 1}" for index in range(count))


def _accept(count: int) -> None:
    """Any number of inputs."""


def _as_number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
