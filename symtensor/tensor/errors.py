"""The errors of tensor expressions: each names the index, head or symbol at fault and the likely fix."""

from __future__ import annotations


class TensorError(ValueError):
    """Base of all errors raised by `symtensor.tensor`."""


class IndexClashError(TensorError):
    """Indices that do not fit together: other free indices, a sum over no free index, one name for two indices."""


class IndexTypeError(TensorError):
    """An index in a slot that cannot hold it: other dimension, wrong number of indices, value out of range."""


class SymmetryError(TensorError):
    """A symmetry group that does not fit its tensor, or an array without the symmetry that was declared for it."""


class CoefficientError(TensorError):
    """A coefficient that is no finite commuting scalar, or a symbol without the required property."""


class ArrayError(TensorError):
    """An array (or scalar value) that is missing or has the wrong shape."""
