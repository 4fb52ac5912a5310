"""What `symtensor.fields` reaches by name and on first use: its numerical side, which imports JAX, and the kinds of kernels.

Formulas work without JAX; kernels stand in `symtensor.derivation`, which is above the fields and imports them.
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

__all__ = ["jax_side", "kernel_kinds"]


def jax_side(name: str) -> ModuleType:
    """The module `symtensor.numerics.<name>`."""
    return import_module(f"symtensor.numerics.{name}")


def kernel_kinds() -> ModuleType:
    """The module `symtensor.derivation.kernels`."""
    return import_module("symtensor.derivation.kernels")
