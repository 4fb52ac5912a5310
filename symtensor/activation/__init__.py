"""Activation functions: names and user expressions, kinks, weak derivatives, growth against a Gaussian."""

from __future__ import annotations

from symtensor.activation.named import NAMES, activation
from symtensor.activation.pieces import ActivationError, Piece
from symtensor.activation.value import Activation, KinkedDerivativeError, NotSquareIntegrableError, X

__all__ = [
    "NAMES",
    "Activation",
    "ActivationError",
    "KinkedDerivativeError",
    "NotSquareIntegrableError",
    "Piece",
    "X",
    "activation",
]
