"""What `symtensor.fields` reaches by name and on first use: its numerical side, which imports JAX. Formulas work without it."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

__all__ = ["jax_side"]


def jax_side(name: str) -> ModuleType:
    """The module `symtensor.numerics.<name>`."""
    return import_module(f"symtensor.numerics.{name}")
