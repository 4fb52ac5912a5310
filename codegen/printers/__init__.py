"""Printers from graphs to text: one strict base, and tables for jax.numpy, NumPy and mpmath."""

from __future__ import annotations

from .base import Printer, number_text
from .jax import jax_printer
from .mpmath import mpmath_printer
from .numpy import numpy_printer

__all__ = ["Printer", "jax_printer", "mpmath_printer", "number_text", "numpy_printer"]
